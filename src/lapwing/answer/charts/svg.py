"""A chart as SVG: marks, axes and words, by the classes that pages have colours for; or with a style of its own.

Every text is escaped. Pages, files of `--plot` and of the console, and notebooks have the same drawing.
"""

from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby
from typing import Final

from lapwing.answer.charts.chart import Chart, ChartMark
from lapwing.answer.charts.drawings import AXIS, CHARACTER, LEFT, RIGHT
from lapwing.answer.charts.wrapping import cut, width_of, wrapped
from lapwing.privacy.figures import clip

LINE, HEADING, EDGE, LONGEST_TITLE, LONGEST_KEY = 16, 24, 8, 60, 200
MANY_DOTS: Final = 80
TONES: Final = ("#b5702a", "#740018", "#1306d7", "#a96ef6", "#581572")
DASHES: Final = ("7 3", "2 3", "10 3 2 3", "4 4", "14 4")
_STYLE: Final = (
    "text{font:12px sans-serif;fill:#17211d}.soft{fill:#55625b}.bar-1,.dot,.band,.arrow{fill:#3f8f7c}"
    ".band{fill-opacity:.25}.curve{fill:none;stroke:#3f8f7c;stroke-width:2}"
    ".whisker{fill:none;stroke:#17211d;stroke-width:1.5}.arrow{fill:#17211d}.rule{stroke:#d5dbd7}"
    ".zero{stroke:#8b9690}.reference{stroke:#17211d;stroke-dasharray:2 3}"
    + "".join(f".s-{n}{{fill:{tone}}}.curve.s-{n}{{fill:none;stroke:{tone}}}" for n, tone in enumerate(TONES, 1))
    + "".join(f".s-{n}{{stroke-dasharray:{dash}}}" for n, dash in enumerate(DASHES, 1))
)


def svg_of(chart: Chart, *, alone: bool = False, simulated: bool = False) -> str:
    """Return a chart as SVG.

    Args:
        alone: Whether it is a file: with a size, a style, a heading, and a white ground.
        simulated: Whether its numbers are made up, before a query is bought.
    """
    headings = wrapped(chart.title, chart.width - RIGHT) if alone else ()
    heading, below = (HEADING + LINE * (len(headings) - 1) if alone else 0), LINE * len(chart.across_title)
    top, total = -(chart.above + heading), chart.height + chart.above + below + LINE * len(chart.caption) + heading
    size = f' width="{chart.width}" height="{total}"' if alone else ""
    said = escape(clip(chart.title, LONGEST_TITLE))
    label = (
        f"Simulated chart of {said}, no data read" if simulated else f"Chart of {said}; the table has the same numbers"
    )
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart {chart.kind}" viewBox="0 {top} {chart.width} {total}"'
        f'{size} role="img" aria-label="{label}">'
    ]
    if alone:
        lines += [
            f"<style>{_STYLE}</style>",
            f'<rect y="{top}" width="100%" height="100%" fill="#fff"/>',
        ]
    lines += [
        f'<text x="{chart.width / 2}" y="{-chart.above - 6 - LINE * n}" text-anchor="middle" font-weight="bold">'
        f"{escape(text)}</text>"
        for n, text in enumerate(reversed(headings))
    ]
    edge = EDGE if alone else 0  # on a page, words begin where the title above them does
    lines += _axis_titles(chart, edge)
    lines += _legend(chart)
    lines += {"line": _line, "histogram": _histogram, "heat": _heat}.get(chart.kind, _bars)(chart)
    lines += [
        f'<text class="soft" x="{edge}" y="{chart.height + below + LINE * n - 4}">{escape(text)}</text>'
        for n, text in enumerate(chart.caption, 1)
    ]
    return "\n".join([*lines, "</svg>"])


def file_of(chart: Chart, suffix: str) -> bytes:
    """Return a chart as a file: .svg, .html, or .png, which takes the `plots` extra."""
    if suffix == ".png":
        return png_of(svg_of(chart, alone=True))
    return (page_of(chart) if suffix == ".html" else svg_of(chart, alone=True) + "\n").encode()


def png_of(drawn: str) -> bytes:
    """Return SVG as PNG, twice as fine; it takes the `plots` extra."""
    import vl_convert  # the optional extra

    return bytes(vl_convert.svg_to_png(drawn, scale=2))


def page_of(chart: Chart) -> str:
    """Return a chart as a page: drawn wide, and narrow for phones."""
    narrow = svg_of(chart.narrow or chart, alone=True)
    title = escape(clip(chart.title, LONGEST_TITLE))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>\n'
        "<style>body{margin:16px;background:#fff}svg{max-width:100%;height:auto}.narrow{display:none}"
        "@media (max-width:640px){.wide{display:none}.narrow{display:block}}</style></head>\n"
        f'<body><main><h1 hidden>{title}</h1><div class="wide">{svg_of(chart, alone=True)}</div>\n'
        f'<div class="narrow">{narrow}</div></main></body></html>\n'
    )


def _bars(chart: Chart) -> Iterator[str]:
    bottom = _bottom(chart)
    for tick in chart.across:
        yield f'<line class="rule" x1="{tick.at}" x2="{tick.at}" y1="4" y2="{bottom}"/>'
        yield f'<text class="soft" x="{tick.at}" y="{bottom + 18}" text-anchor="middle">{escape(tick.text)}</text>'
    if chart.kind == "bars":
        yield f'<line class="zero" x1="{chart.zero}" x2="{chart.zero}" y1="4" y2="{bottom}"/>'
    for mark in chart.marks:
        yield f"<g>{_told(mark)}{_bar(chart, mark)}</g>"
    if chart.reference:
        at = chart.reference.at
        yield _reference(chart, f'x1="{at}" x2="{at}" y1="4" y2="{bottom}"')


def _bar(chart: Chart, mark: ChartMark) -> str:
    middle = mark.y + mark.height / 2
    parts = [f'<text x="{chart.left}" y="{middle + 4}" text-anchor="end">{_cut(mark.label, chart.label)}</text>']
    if chart.kind == "bars":
        place = f'x="{mark.x}" y="{mark.y}" width="{mark.width}" height="{mark.height}"'
        parts.append(f'<rect class="bar-1{_series(mark.series)}" {place} rx="2"/>')
    if mark.low is not None and mark.high is not None:
        end = "" if mark.low_below else f"M{mark.low} {middle - 5}v10"
        parts.append(f'<path class="whisker" d="M{mark.low} {middle}H{mark.high}{end}M{mark.high} {middle - 5}v10"/>')
    if mark.low_below or mark.value_below:
        parts.append(f'<path class="arrow" d="M{chart.left + 3} {middle}l8 -5v10z"/>')
    if chart.kind == "points" and not mark.value_below:
        parts.append(f'<circle class="dot{_series(mark.series)}" cx="{mark.x}" cy="{middle}" r="5"/>')
    return "".join(parts)


def _axes(chart: Chart) -> Iterator[str]:
    """Yield the axes of lines and histograms."""
    right, bottom = chart.width - RIGHT, _bottom(chart)
    for tick in chart.up:
        yield f'<line class="rule" x1="{LEFT}" x2="{right}" y1="{tick.at}" y2="{tick.at}"/>'
        yield f'<text class="soft" x="56" y="{tick.at + 4}" text-anchor="end">{escape(tick.text)}</text>'
    for tick in chart.across:
        anchor = "start" if tick.at < 80 else "middle" if tick.at < chart.width - 60 else "end"
        yield f'<text class="soft" x="{tick.at}" y="{bottom + 20}" text-anchor="{anchor}">{escape(tick.text)}</text>'


def _histogram(chart: Chart) -> Iterator[str]:
    yield from _axes(chart)
    yield f'<line class="zero" x1="{LEFT}" x2="{chart.width - RIGHT}" y1="{chart.zero}" y2="{chart.zero}"/>'
    for mark in chart.marks:
        place = f'x="{mark.x}" y="{mark.y}" width="{mark.width}" height="{mark.height}"'
        yield f'<g>{_told(mark)}<rect class="bar-1" {place}/>{_upright(mark, round(mark.x + mark.width / 2, 2))}</g>'
    yield from _level(chart)


def _line(chart: Chart) -> Iterator[str]:
    yield from _axes(chart)
    radius = 3 if len(chart.marks) < MANY_DOTS else 1.5
    for series, group in groupby(sorted(chart.marks, key=lambda mark: mark.series), key=lambda mark: mark.series):
        marks = list(group)
        yield from _band(marks, _series(series))
        course = "L".join(f"{mark.x} {mark.y}" for mark in marks)
        yield f'<path class="curve{_series(series)}" d="M{course}"/>'
        for mark in marks:
            if mark.low_below or mark.value_below:
                yield f'<path class="arrow" d="M{mark.x} {_bottom(chart)}l-4 -7h8z"/>'
            place = f'cx="{mark.x}" cy="{mark.y}" r="{radius}"'
            yield f'<circle class="dot{_series(series)}" {place}>{_told(mark)}</circle>'
    yield from _level(chart)


def _band(marks: Sequence[ChartMark], series: str) -> Iterator[str]:
    """Yield the band of a line, or an interval for each number if some have none."""
    bound = [mark for mark in marks if mark.low is not None and mark.high is not None]
    if len(bound) > 1 and len(bound) == len(marks):
        ends = [f"{mark.x} {mark.high}" for mark in bound] + [f"{mark.x} {mark.low}" for mark in reversed(bound)]
        yield f'<path class="band{series}" d="M{"L".join(ends)}Z"/>'
    else:
        yield from (_upright(mark, mark.x) for mark in bound)


def _heat(chart: Chart) -> Iterator[str]:
    for mark in chart.marks:
        place = f'x="{mark.x}" y="{mark.y}" width="{mark.width}" height="{mark.height}"'
        opacity = f"{0.08 + 0.5 * mark.strength:.3f}"
        yield f'<rect class="bar-1" {place} rx="2" fill-opacity="{opacity}">{_told(mark)}</rect>'
        if mark.width > 7 * len(mark.short):
            middle = f'x="{mark.x + mark.width / 2}" y="{mark.y + 16}"'
            yield f'<text {middle} text-anchor="middle">{escape(mark.short)}</text>'
    for tick in chart.up:
        yield f'<text x="{chart.left}" y="{tick.at + 3}" text-anchor="end">{_cut(tick.text, chart.label)}</text>'
    room = int((chart.width - chart.left - 26) // (max(1, len(chart.across)) * 7))
    for tick in chart.across if room >= 2 else ():
        place = f'x="{tick.at}" y="{_bottom(chart) + 18}"'
        yield f'<text class="soft" {place} text-anchor="middle">{_cut(tick.text, room)}</text>'


def _axis_titles(chart: Chart, edge: int) -> Iterator[str]:
    for n, text in enumerate(reversed(chart.up_title)):
        yield f'<text class="soft" x="{edge}" y="{-4 - LINE * n}">{escape(text)}</text>'
    widest, room = max(map(width_of, chart.across_title), default=0.0), chart.width - RIGHT - chart.left
    middle = chart.left + room / 2 if widest <= room else chart.width / 2
    for n, text in enumerate(chart.across_title, 1):
        place = f'x="{middle}" y="{chart.height + LINE * n - 6}"'
        yield f'<text class="soft" {place} text-anchor="middle">{escape(text)}</text>'


def _legend(chart: Chart) -> Iterator[str]:
    for entry in chart.legend:
        series = _series(entry.series)
        shown = (
            f'<path class="curve{series}" d="M{entry.x + 2} {entry.y - 4}h18"/>'
            if chart.kind == "line"
            else f'<rect class="bar-1{series}" x="{entry.x + 6}" y="{entry.y - 10}" width="12" height="12" rx="2"/>'
        )
        yield f'<g>{shown}<text x="{entry.x + 24}" y="{entry.y}">{escape(entry.text)}</text></g>'


def _level(chart: Chart) -> Iterator[str]:
    """Yield the reference line of an upright axis."""
    if chart.reference:
        at = chart.reference.at
        yield _reference(chart, f'x1="{LEFT}" x2="{chart.width - RIGHT}" y1="{at}" y2="{at}"')
        place = f'x="{chart.width - RIGHT}" y="{at - 4}" text-anchor="end"'
        yield f"<text {place}>{escape(chart.reference.text)}</text>"


def _reference(chart: Chart, place: str) -> str:
    text = "" if chart.reference is None else escape(chart.reference.text)
    return f'<line class="reference" {place}><title>Reference line at {text}</title></line>'


def _upright(mark: ChartMark, x: float) -> str:
    if mark.low is None or mark.high is None:
        return ""
    return f'<path class="whisker" d="M{x} {mark.low}V{mark.high}"/>'


def _told(mark: ChartMark) -> str:
    return f"<title>{escape(clip(mark.label, LONGEST_KEY))}: {escape(mark.text)}</title>"


def _series(place: int) -> str:
    return f" s-{place}" if place else ""


def _cut(text: str, longest: int) -> str:
    return escape(cut(text, CHARACTER * longest))


def _bottom(chart: Chart) -> float:
    return chart.height - AXIS

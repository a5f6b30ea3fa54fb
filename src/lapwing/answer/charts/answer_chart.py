"""The chart of an answer, by its shape and by the choices of its reader.

Each chart is drawn twice: wide, and narrow for phones, on which the wide one would be too small to read.
Bars of what adds up, points of what does not (the means of two groups make no whole), a histogram over steps of
numbers, a line over times or numbers, or a heat map for two keys.
"""

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, Final

from lapwing.answer.answer_table import NUMERIC, column_of
from lapwing.answer.charts.chart import NARROW, WIDE, Chart, LegendEntry, Point, Shown, Size
from lapwing.answer.charts.chart_options import ChartOptions, in_order
from lapwing.answer.charts.drawings import (
    CHARACTER,
    MOST_BINS,
    RIGHT,
    TIMES,
    Look,
    bars,
    heat,
    histogram,
    line,
)
from lapwing.answer.charts.wrapping import unbroken, wrapped
from lapwing.answer.key_texts import LABELS, TEXTS, label_of, titles_in
from lapwing.privacy.figures import level, plain

USUAL: Final = ChartOptions()
LONE: Final = ""
"""The key of a number that has none: no column has an empty name."""
FEWEST_POINTS: Final = 7
"""Numbers that are drawn as a line, not as bars."""
MOST_SERIES: Final = 6
"""Colours that people can distinguish."""
LEGEND: Final = 18.0
TITLE_LINE: Final = 16.0
ADDITIVE: Final = ("Gaussian", "Laplace", "measured together")
"""What the names of mechanisms have by which a number errs by added noise."""


def chart_of(document: Mapping[str, Any], column: str | None = None, options: ChartOptions = USUAL) -> Chart | None:
    """Return the chart of one column of an answer, the first that is a noisy number unless named; None if none is.

    Raises:
        InvalidParameter: If the options name a key that the answer does not have.
    """
    types, keys = _types(document), list(document.get("keys", []))
    numbers, column = columns_of(document), column or options.column
    if not numbers or not document["rows"] or not keys:
        return None
    options.check_keys(tuple(keys))
    name = column if column is not None and column in numbers else numbers[0]
    points = [point for point in _points(document, name) if point.value is not None]
    if not points or options.kind == "table":
        return None
    drawing, shown, names = _drawing(name, keys, types, points, adds_up(document, name), options)
    confidence, titles = document.get("confidence"), _axis_titles(document, name)

    def drawn(size: Size) -> Chart:
        chart = replace(drawing(size), title=options.title or heading_of(document, name), column=name)
        chart = _titled(chart, titles, options, options.x or keys[-1])
        legend, above = _legend(names, size, chart.above)
        left_out = chart.left_out + len(points) - len(shown)
        return replace(
            chart, legend=legend, above=above, left_out=left_out, caption=caption_of(chart, confidence, size)
        )

    return replace(drawn(WIDE), narrow=drawn(NARROW))


def table_of(
    document: Mapping[str, Any], column: str | None, options: ChartOptions, chart: Chart | None
) -> tuple[list[int], list[str]]:
    """Return the places of the rows, and the heads of the columns, of the table of a chart with these choices.

    Rows have the order of its bars; those without a number come last. Heads are the titles of its axes.
    """
    rows, keys, numbers = document["rows"], list(document.get("keys", ())), columns_of(document)
    if not numbers:
        return list(range(len(rows))), list(document["columns"])
    name = column if column in numbers else numbers[0]
    along = _along_first(keys, options)
    labels = [[_labelled(document, row)[key] for key in along] for row in rows]
    places = in_order(options.arrange, [_number(row[name]) for row in rows], labels)
    if options.arrange != "released":
        places = sorted(places, key=lambda place: rows[place][name] is None)
    if chart is not None and chart.kind == "heat":
        across = options.x or keys[-1]
        up = next(key for key in keys if key != across)
    else:
        across, up = along[0] if len(along) == 1 else None, name
    stated = {across: options.x_title, up: options.y_title}
    titles = _axis_titles(document, name)
    return list(places), [stated.get(one) or titles.get(one, one) for one in document["columns"]]


def _along_first(keys: Sequence[str], options: ChartOptions) -> list[str]:
    """Return the keys in the order in which a chart has them along its axis: all but that of its colours."""
    ordered = [key for key in (options.x, *keys) if key is not None and key != options.colour]
    return list(dict.fromkeys(ordered) if ordered else keys)


def lone_chart_of(document: Mapping[str, Any], column: str, options: ChartOptions) -> Chart:
    """Return the chart of a column that stands without its table, as `chart_of` does, and of every result.

    A number without keys is one bar. Of a result that has no numbers, the chart says so.
    """
    rows, keys = document["rows"], document["keys"]
    if not keys:
        alone = {"rows": [{**row, LONE: column} for row in rows], "types": {**document["types"], LONE: "text"}}
        document = {**document, **alone, "keys": [LONE]}
    chart = chart_of(document, column, options)
    if chart is not None:
        return chart
    title = options.title or heading_of({**document, "keys": keys}, column)

    def nothing(size: Size) -> Chart:
        return replace(bars(title, (), (), Look(), size), column=column, across=(), caption=("No numbers to draw.",))

    return replace(nothing(WIDE), narrow=nothing(NARROW))


def heading_of(document: Mapping[str, Any], name: str) -> str:
    """Return the name of a column, and the titles of the keys if the catalog has any.

    >>> heading_of({"keys": ["sex", "plan"], "texts": {"sex": {"title": "Sex at birth"}}}, "n")
    'n by Sex at birth · plan'
    """
    keys = document.get("keys", ())
    titles = titles_in({key: texts for key, texts in document.get(TEXTS, {}).items() if key in keys})
    return f"{name} by {' · '.join(titles.get(key, key) for key in keys)}" if titles else name


def _axis_titles(document: Mapping[str, Any], name: str) -> Mapping[str, str]:
    """Return what the axes of keys and of a number are called: by the catalog, or as the columns are."""
    keys = document.get("keys", ())
    titles = titles_in({column: said for column, said in document.get(TEXTS, {}).items() if column in (*keys, name)})
    return {column: titles.get(column, column) for column in (*keys, name)}


def _titled(chart: Chart, titles: Mapping[str, str], options: ChartOptions, x: str) -> Chart:
    """Return a chart with the titles of its axes: below the one, and above the upward one, so that none is turned.

    Args:
        x: The key of a heat map of which `x_title` is the title.
    """

    def title_of(axis: Sequence[str]) -> str:
        of_keys = axis == [x] if chart.kind == "heat" else axis != [chart.column]
        stated = options.x_title if of_keys else options.y_title
        return stated or " · ".join(titles[name] for name in axis)

    across = wrapped(title_of(chart.axis_across), chart.width - RIGHT)
    up = wrapped(title_of(chart.axis_up), chart.width - RIGHT)
    return replace(chart, across_title=across, up_title=up, above=TITLE_LINE * len(up) + 2 if up else 0.0)


def _points(document: Mapping[str, Any], name: str) -> Shown:
    """Return the numbers of a column."""
    texts = column_of(document, name, range(len(document["rows"])))
    return [
        Point(
            row=_labelled(document, row),
            value=_number(row[name]),
            low=low,
            high=high,
            text=texts[place].text,
            margin=texts[place].margin,
        )
        for place, row in enumerate(document["rows"])
        for low, high in [_ends(document, name, place)]
    ]


def _drawing(
    name: str, keys: Sequence[str], types: Mapping[str, str], shown: Shown, sums: bool | None, options: ChartOptions
) -> tuple[Callable[[Size], Chart], Shown, Sequence[str]]:
    """Return what draws a chart in a size, the numbers on it, and the names of their colours."""
    x, *others = _along_first(keys, options)
    points = options.kind == "points" or sums is False
    look = Look(points=points, log=options.log, line=options.line, line_title=options.line_title)
    plainly = options.kind == "auto" and options.colour is None and options.arrange == "released"
    if plainly and len(keys) == 2 and options.line is None and not options.log:
        return partial(heat, name, (others[0], x) if options.x else keys, shown), shown, ()
    if plainly and len(keys) == 1 and _along(types[x], shown, x):
        if sums and not options.log and _are_steps(types[x], shown, x):
            return partial(histogram, name, x, shown, look), shown, ()
        return partial(line, name, x, types[x], shown, look), shown, ()
    along = options.kind == "lines" or (options.kind == "auto" and options.colour and types[x] in TIMES)
    told_apart = [key for key in keys if key != x] if along else [options.colour] if options.colour else []
    coloured, names = _coloured(shown, told_apart)
    if along:
        return partial(line, name, x, types[x], coloured, look), coloured, names
    return partial(bars, name, list(keys), _arranged(coloured, options.arrange, (x, *others)), look), coloured, names


def _coloured(rows: Shown, keys: Sequence[str]) -> tuple[Shown, Sequence[str]]:
    """Return the numbers of the first colours, each with its own, and the names of the colours."""
    if not keys:
        return rows, ()
    texts = [" · ".join(plain(point.row[key]) for key in keys) for point in rows]
    names = list(dict.fromkeys(texts))[:MOST_SERIES]
    coloured = [
        replace(point, series=names.index(text)) for point, text in zip(rows, texts, strict=True) if text in names
    ]
    return coloured, names


def _arranged(rows: Shown, order: str, keys: Sequence[str]) -> Shown:
    """Return numbers in the order that is wanted."""
    labels = [[point.row[key] for key in keys] for point in rows]
    return [rows[place] for place in in_order(order, [point.value for point in rows], labels)]


def _legend(names: Sequence[str], size: Size, title: float) -> tuple[Sequence[LegendEntry], float]:
    """Return the names of colours in lines above the title of the upward axis, and how high both are."""
    x, row, entries = 0.0, 1, []
    for series, name in enumerate(names if len(names) > 1 else ()):
        text = name if len(name) <= size.label else f"{name[: size.label - 1]}…"
        width = 30 + CHARACTER * len(text)
        if x and x + width > size.width:
            x, row = 0.0, row + 1
        entries.append(LegendEntry(x=x, y=row * LEGEND, text=text, series=series))
        x += width
    height = title + (LEGEND * row + 6 if entries else 0.0)
    return [replace(entry, y=entry.y - height) for entry in entries], height


def caption_of(chart: Chart, confidence: float | None, size: Size) -> Sequence[str]:
    """Return the lines below a chart, as wide as it: noise, intervals, and what is below a log scale."""
    ranges = [mark for mark in chart.marks if mark.low is not None and mark.high is not None]
    below = sum(mark.value_below or mark.low_below for mark in chart.marks)
    drawn = {"line": "Bands", "heat": "±"}.get(chart.kind, "Thin lines")
    parts = ["The numbers contain noise."] if confidence is not None or ranges else []
    if ranges or (chart.kind == "heat" and parts):
        parts.append(f"{drawn}: {'' if confidence is None else f'{unbroken(level(confidence))} '}intervals.")
    if chart.reference:
        parts.append(f"Dotted line: {chart.reference.text}.")
    if below:
        parts.append(f"{below:,} {'reaches' if below == 1 else 'reach'} below this log scale (arrows).")
    return textwrap.wrap(" ".join(parts), int(min(size.width, chart.width) / 6.6))


def _types(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the types of the columns; a key with labels is drawn as text, because its codes are no numbers."""
    return {**document["types"], **dict.fromkeys(document.get(LABELS, {}), "text")}


def _labelled(document: Mapping[str, Any], row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a row with labels in the place of the values that have one."""
    labels = {key: label_of(document, key, row[key]) for key in document.get(LABELS, {}) if key in row}
    return {**row, **{key: label for key, label in labels.items() if label is not None}} if labels else row


def columns_of(document: Mapping[str, Any]) -> list[str]:
    """Return the columns that a chart can show."""
    return [name for name in document["intervals"] if document["types"].get(name) in NUMERIC]


def adds_up(document: Mapping[str, Any], column: str) -> bool | None:
    """Tell whether a column is one noisy count or sum, as which it adds up over rows; None if that is not known."""
    for facts in document.get("facts", ()):
        if facts["name"] == column and facts["measures"]:
            noises = [measure["mechanism"] for measure in facts["measures"]]
            added = any(word in noises[0] for word in ADDITIVE)
            return len(noises) == 1 and facts["half_width"] is not None and added
    return None


def _along(kind: str, rows: Shown, key: str) -> bool:
    """Tell whether a key is drawn along an axis: times always, whole numbers if there are several."""
    values = [point.row[key] for point in rows]
    if len(set(values)) != len(values) or None in values:
        return False
    return kind in TIMES or (kind in NUMERIC and len(values) >= FEWEST_POINTS)


def _are_steps(kind: str, rows: Shown, key: str) -> bool:
    """Tell whether numbers are equally far from each other, as those of bins are."""
    if kind not in NUMERIC:
        return False
    values = sorted(float(point.row[key]) for point in rows)
    steps = [after - before for before, after in pairwise(values)]
    return len(values) <= MOST_BINS and max(steps) - min(steps) <= 1e-9 * max(steps)


def _ends(document: Mapping[str, Any], name: str, place: int) -> tuple[float | None, float | None]:
    ends = document["intervals"][name]
    return _number(ends["low"][place]), _number(ends["high"][place])


def _number(value: Any) -> float | None:
    return None if value is None else float(value)

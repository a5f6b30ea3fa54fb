"""Drawings of the numbers of an answer: bars, points, a histogram, lines, and a heat map for two keys."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final, final

from lapwing.answer.answer_table import NUMERIC
from lapwing.answer.charts.chart import NARROW, Chart, ChartMark, Point, Shown, Size
from lapwing.answer.charts.scales import AxisTick, Scale, log_scale_of, scale_of
from lapwing.answer.charts.wrapping import cut, width_of
from lapwing.privacy.figures import plain, separated

CHARACTER, GAP, RIGHT = 7.0, 10.0, 16.0
"""How wide a character is, and what is left free next to labels and at the end."""
BAR, TOP, AXIS = 26.0, 8.0, 28.0
LINE_HEIGHT: Final = 260.0
LEFT: Final = 64.0
MOST_BARS, MOST_CELLS, MOST_BINS = 60, 40, 80
TIMES: Final = ("date", "timestamp")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The choices that drawings share.

    Args:
        points: Whether numbers are points, whose axis need not begin at 0.
        log: Whether their axis is logarithmic. A bar has no length there, so numbers are points.
        line: Where a reference line is.
        line_title: The name of the line; empty: only its number is shown.
    """

    points: bool = False
    log: bool = False
    line: float | None = None
    line_title: str = ""

    def scale(self, rows: Shown, start: float, end: float) -> Scale:
        """Return the axis of the numbers; a linear one if a logarithmic one could show none of them."""
        reference = [] if self.line is None else [self.line]
        values = [*reference, *(point.value for point in rows if point.value is not None)]
        ends = [end for point in rows for end in (point.low, point.high) if end is not None]
        found = log_scale_of(values, ends, start, end) if self.log else None
        return found or scale_of([*values, *ends], start, end, zero=not (self.points or self.log))

    def reference(self, scale: Scale) -> AxisTick | None:
        """Return the reference line."""
        if self.line is None:
            return None
        number = separated(self.line)
        return AxisTick(at=scale.at(self.line), text=f"{self.line_title} ({number})" if self.line_title else number)


def _mark(point: Point, label: str, scale: Scale, **place: Any) -> ChartMark:
    """Return the mark of a number: arrows stand for parts below the axis."""
    value = point.value or 0
    return ChartMark(
        label=label,
        text=point.told,
        low=None if point.low is None else scale.at(point.low),
        high=None if point.high is None else scale.at(point.high),
        value_below=scale.is_below(value),
        low_below=point.low is not None and scale.is_below(point.low),
        series=point.series,
        **place,
    )


def bars(name: str, keys: Sequence[str], rows: Shown, look: Look, size: Size) -> Chart:
    """Return bars from nothing on; or of what does not add up, points on an axis that need not begin there."""
    shown, points = rows[:MOST_BARS], look.points or look.log
    labels = [" · ".join(plain(point.row[key]) for key in keys) for point in shown]
    left = _room(labels, size)
    end = left + GAP + (size.bar or size.width - left - GAP - RIGHT)
    scale = look.scale(shown, left + GAP, end)
    zero, marks = scale.at(0), []
    for place, point in enumerate(shown):
        at = scale.at(point.value or 0)
        x, width = (at, 0.0) if points else (min(zero, at), abs(at - zero))
        marks.append(_mark(point, labels[place], scale, x=x, y=TOP + place * BAR, width=width, height=BAR - 8))
    return Chart(
        kind="points" if points else "bars",
        title=name,
        width=end + RIGHT,
        height=TOP + len(shown) * BAR + AXIS,
        left=left,
        marks=marks,
        across=scale.ticks(size.numbers),
        up=(),
        zero=zero,
        left_out=len(rows) - len(shown),
        label=size.label,
        reference=look.reference(scale),
        axis_across=[name],
        axis_up=list(keys),
    )


def histogram(name: str, key: str, rows: Shown, look: Look, size: Size) -> Chart:
    """Return bars that stand side by side, along steps of a number."""
    ordered = sorted(rows, key=lambda point: float(point.row[key]))
    values = look.scale(ordered, TOP + LINE_HEIGHT, TOP)
    room, zero = (size.width - RIGHT - LEFT) / len(ordered), values.at(0)
    marks = [
        _mark(
            point,
            plain(point.row[key]),
            values,
            x=round(LEFT + place * room + 1, 2),
            y=min(zero, values.at(point.value or 0)),
            width=round(max(room - 2, room / 2), 2),
            height=abs(values.at(point.value or 0) - zero),
        )
        for place, point in enumerate(ordered)
    ]
    few = marks[:: max(1, -(-len(marks) // size.bins))]
    return Chart(
        kind="histogram",
        title=name,
        width=size.width,
        height=TOP + LINE_HEIGHT + AXIS,
        left=LEFT,
        marks=marks,
        across=[AxisTick(at=round(mark.x + mark.width / 2, 2), text=mark.label[:8]) for mark in few],
        up=values.ticks(),
        zero=zero,
        left_out=0,
        label=size.label,
        reference=look.reference(values),
        axis_across=[key],
        axis_up=[name],
    )


def line(name: str, key: str, kind: str, rows: Shown, look: Look, size: Size) -> Chart:
    """Return a line for each colour along a key: where its values are, or side by side if they are names.

    Args:
        kind: The type of the key.
    """
    named = list(dict.fromkeys(plain(point.row[key]) for point in rows))

    def place(point: Point) -> float:
        value = point.row[key]
        return _seconds(value) if kind in TIMES else float(value) if kind in NUMERIC else named.index(plain(value))

    ordered = sorted(rows, key=place)
    values = look.scale(ordered, TOP + LINE_HEIGHT, TOP)
    along = scale_of([place(point) for point in ordered], LEFT, size.width - RIGHT, zero=False)
    marks = [
        _mark(point, plain(point.row[key]), values, x=along.at(place(point)), y=values.at(point.value or 0))
        for point in ordered
    ]
    ends = list({mark.x: mark for mark in marks}.values())
    labels = [mark.label for mark in ends]
    texts = _times(labels) if kind in TIMES else [label[: size.label // 2] for label in labels]
    most = int((size.width - RIGHT - LEFT) / (CHARACTER * len(texts[0]) + 24)) if kind in TIMES else size.bins
    step = max(1, -(-len(ends) // most))
    across = [AxisTick(at=mark.x, text=text) for mark, text in list(zip(ends, texts, strict=True))[::step]]
    return Chart(
        kind="line",
        title=name,
        width=size.width,
        height=TOP + LINE_HEIGHT + AXIS,
        left=LEFT,
        marks=marks,
        across=along.ticks(size.numbers) if kind in NUMERIC else across,
        up=values.ticks(),
        zero=values.at(0),
        left_out=0,
        label=size.label,
        reference=look.reference(values),
        axis_across=[key],
        axis_up=[name],
    )


def heat(name: str, keys: Sequence[str], rows: Shown, size: Size) -> Chart:
    """Return cells for two keys, the stronger in colour the larger."""
    names = [list(dict.fromkeys(plain(point.row[key]) for point in rows))[:MOST_CELLS] for key in keys]
    turned = names[::-1]
    if size is NARROW and _cell(names, size) < _needed(rows) and _cell(turned, size) > _cell(names, size):
        names, keys = turned, keys[::-1]  # on a phone, the way that leaves room for each ±
    up, across = names
    left, width = _room(up, size), _cell(names, size)
    strengths = scale_of([point.value or 0 for point in rows], 0.0, 1.0, zero=False)
    marks = [
        ChartMark(
            label=f"{plain(point.row[keys[0]])} · {plain(point.row[keys[1]])}",
            text=point.told,
            x=round(left + GAP + across.index(plain(point.row[keys[1]])) * width, 2),
            y=TOP + up.index(plain(point.row[keys[0]])) * BAR,
            width=round(width - 2, 2),
            height=BAR - 2,
            strength=strengths.at(point.value or 0),
            short=point.told if width >= _needed([point]) else point.text,
        )
        for point in rows
        if plain(point.row[keys[1]]) in across and plain(point.row[keys[0]]) in up
    ]
    return Chart(
        kind="heat",
        title=name,
        width=size.width,
        height=TOP + len(up) * BAR + AXIS,
        left=left,
        marks=marks,
        across=[AxisTick(at=round(left + GAP + (n + 0.5) * width, 2), text=text) for n, text in enumerate(across)],
        up=[AxisTick(at=TOP + n * BAR + BAR / 2, text=text) for n, text in enumerate(up)],
        zero=0.0,
        left_out=len(rows) - len(marks),
        label=size.label,
        axis_across=[keys[1]],
        axis_up=[keys[0]],
    )


def _cell(names: Sequence[Sequence[str]], size: Size) -> float:
    """Return the width of a cell, by the names upwards and across."""
    return (size.width - _room(names[0], size) - GAP - RIGHT) / len(names[1])


def _needed(rows: Shown) -> float:
    """Return how wide cells are that have room for numbers with their ±."""
    return CHARACTER * max(len(point.told) for point in rows) + GAP


def _seconds(value: str) -> float:
    if len(value) == 10:
        return float(date.fromisoformat(value).toordinal()) * 86_400
    moment = datetime.fromisoformat(value)
    return moment.toordinal() * 86_400.0 + moment.hour * 3600 + moment.minute * 60 + moment.second


def _times(labels: Sequence[str]) -> list[str]:
    """Return times as an axis says them: months or days if all begin one, and no day that all have in common.

    >>> _times(["2026-03-02T01:00:00", "2026-03-02T02:00:00"]), _times(["2026-03-02T01:00:00", "2026-03-03T01:00:00"])
    (['01:00', '02:00'], ['03-02 01:00', '03-03 01:00'])
    >>> _times(["2026-03-01T00:00:00", "2026-04-01T00:00:00"]), _times(["2026-03-02T00:00:00", "2026-03-09T00:00:00"])
    (['2026-03', '2026-04'], ['2026-03-02', '2026-03-09'])
    """
    one_year, one_day = (len({label[:n] for label in labels}) == 1 for n in (4, 10))
    if all(label[10:19] in ("", "T00:00:00") for label in labels):
        months = len(set(labels)) > 1 and all(label[8:10] == "01" for label in labels)
        return [label[: 7 if months else 10] for label in labels]
    first = 11 if one_day else 5 if one_year else 0
    return [label[first:16].replace("T", " ") for label in labels]


def _room(labels: Sequence[str], size: Size) -> float:
    """Return where labels end that begin at the edge."""
    most = CHARACTER * size.label
    return GAP + max((width_of(cut(label, most)) for label in labels), default=0.0)

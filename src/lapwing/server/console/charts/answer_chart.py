"""The chart of an answer, by its shape.

Each chart is drawn twice: wide, and narrow for phones, on which the wide one would be too small to read.
Bars of what adds up, points of what does not (the means of two groups make no whole), a histogram over steps of
numbers, a line over times or numbers, or a heat map for two keys.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import partial
from itertools import pairwise
from typing import Any, Final, Literal, final

from lapwing.privacy.figures import plain
from lapwing.server.console.answer_table import column_of
from lapwing.server.console.charts.scales import AxisTick, Scale, scale_of
from lapwing.server.console.labels import LABELS, label_of

CHARACTER, GAP, RIGHT = 7.0, 10.0, 16.0
"""How wide a character is, and what is left free next to labels and at the end."""
BAR, TOP, AXIS = 26.0, 8.0, 28.0
LINE_HEIGHT: Final = 260.0
LEFT: Final = 64.0
MOST_BARS, MOST_CELLS, MOST_BINS = 60, 40, 80
FEWEST_POINTS: Final = 7
"""Numbers that are drawn as a line, not as bars."""
NUMERIC: Final = ("integer", "decimal", "real")
TIMES: Final = ("date", "timestamp")
ADDITIVE: Final = ("Gaussian", "Laplace", "measured together")
"""What the names of mechanisms have by which a number errs by added noise."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much room a drawing has.

    Args:
        width: Of all of it.
        bar: Of the longest bar; 0: what labels leave.
        label: Characters of a label that are shown.
        numbers: Most round numbers on the axis of values.
        bins: Most labels below a histogram.
        times: Most labels below a line over times.
    """

    width: float
    bar: float
    label: int
    numbers: int
    bins: int
    times: int


WIDE: Final = Size(width=720.0, bar=440.0, label=24, numbers=6, bins=12, times=6)
NARROW: Final = Size(width=320.0, bar=0.0, label=12, numbers=3, bins=5, times=2)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ChartMark:
    """One number of an answer.

    Args:
        label: Its key.
        text: What is told of it.
        x: Of its bar or cell, or where its point is.
        y: Of its bar or cell, or where its point is.
        width: Of its bar or cell, or where its point is.
        height: Of its bar or cell, or where its point is.
        low: The ends of its interval on the axis of values, None where there is none.
        high: As `low`.
        strength: From 0 to 1.
        short: What is written into a cell.
    """

    label: str
    text: str
    x: float = 0.0
    y: float = 0.0
    width: float = 0.0
    height: float = 0.0
    low: float | None = None
    high: float | None = None
    strength: float = 0.0
    short: str = ""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart.

    Args:
        left: Where labels end and the rest begins.
        across: The names and places on its axes.
        up: The names and places on its axes.
        left_out: How many numbers it does not show.
        label: Characters of a label that it shows.
        narrow: The same for a narrow screen; None of a narrow one.
    """

    kind: Literal["bars", "points", "histogram", "line", "heat"]
    title: str
    width: float
    height: float
    left: float
    marks: Sequence[ChartMark]
    across: Sequence[AxisTick]
    up: Sequence[AxisTick]
    zero: float
    left_out: int
    label: int
    narrow: "Chart | None" = None


def chart_of(document: Mapping[str, Any], column: str | None = None) -> Chart | None:
    """Return the chart of one column of an answer, the first that is a noisy number unless named; None if none is."""
    types, keys = _types(document), document.get("keys", [])
    numbers = [name for name in document["intervals"] if types.get(name) in NUMERIC]
    if not numbers or not document["rows"] or not keys:
        return None
    name = column if column is not None and column in numbers else numbers[0]
    texts = column_of(document, name, range(len(document["rows"])))
    rows = [
        Point(
            row=_labelled(document, row),
            value=value,
            low=low,
            high=high,
            text=texts[place].text,
            margin=texts[place].margin,
        )
        for place, row in enumerate(document["rows"])
        for value, (low, high) in [(_number(row[name]), _ends(document, name, place))]
    ]
    shown = [point for point in rows if point.value is not None]
    if not shown:
        return None
    drawing = _drawing(name, keys, types, shown, adds_up(document, name))
    return replace(drawing(WIDE), narrow=drawing(NARROW))


def _drawing(
    name: str, keys: Sequence[str], types: Mapping[str, str], shown: "Shown", sums: bool | None
) -> Callable[[Size], Chart]:
    """Return what draws a chart in a size: by how many keys there are, and what they are."""
    if len(keys) == 2:
        return partial(_heat, name, keys, shown)
    if len(keys) == 1 and _along(types[keys[0]], shown, keys[0]):
        if sums and _are_steps(types[keys[0]], shown, keys[0]):
            return partial(_histogram, name, keys[0], shown)
        return partial(_line, name, keys[0], types[keys[0]], shown)
    return partial(_bars, name, keys, shown, sums is False)


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


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A number of a row, the ends of its interval, and both as the table has them."""

    row: Mapping[str, Any]
    value: float | None
    low: float | None
    high: float | None
    text: str
    margin: str

    @property
    def told(self) -> str:
        """The number with its ±."""
        return f"{self.text} {self.margin}".rstrip()


Shown = Sequence[Point]


def _along(kind: str, rows: Shown, key: str) -> bool:
    """Tell whether a key is drawn along an axis: times always, whole numbers if there are several."""
    values = [point.row[key] for point in rows]
    if len(set(values)) != len(values) or None in values:
        return False
    return kind in TIMES or (kind in NUMERIC and len(values) >= FEWEST_POINTS)


def _are_steps(kind: str, rows: Shown, key: str) -> bool:
    """Tell whether numbers are equally far from each other, as those of bins are."""
    values = sorted(float(point.row[key]) for point in rows)
    steps = [after - before for before, after in pairwise(values)]
    return kind in NUMERIC and len(values) <= MOST_BINS and max(steps) - min(steps) <= 1e-9 * max(steps)


def _bars(name: str, keys: Sequence[str], rows: Shown, points: bool, size: Size) -> Chart:
    """Return bars from nothing on; or of what does not add up, points on an axis that need not begin there."""
    shown = rows[:MOST_BARS]
    labels = [" · ".join(_text(point.row[key]) for key in keys) for point in shown]
    left = _room(labels, size)
    end = left + GAP + (size.bar or size.width - left - GAP - RIGHT)
    scale = _values(shown, left + GAP, end, zero=not points)
    zero, marks = scale.at(0), []
    for place, point in enumerate(shown):
        at = scale.at(point.value or 0)
        marks.append(
            ChartMark(
                label=labels[place],
                text=point.told,
                x=at if points else min(zero, at),
                y=TOP + place * BAR,
                width=0.0 if points else abs(at - zero),
                height=BAR - 8,
                low=None if point.low is None else scale.at(point.low),
                high=None if point.high is None else scale.at(point.high),
            )
        )
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
    )


def _histogram(name: str, key: str, rows: Shown, size: Size) -> Chart:
    ordered = sorted(rows, key=lambda point: float(point.row[key]))
    values = _values(ordered, TOP + LINE_HEIGHT, TOP)
    room, zero = (size.width - RIGHT - LEFT) / len(ordered), values.at(0)
    marks = [
        ChartMark(
            label=_text(point.row[key]),
            text=point.told,
            x=round(LEFT + place * room + 1, 2),
            y=min(zero, values.at(point.value or 0)),
            width=round(max(room - 2, room / 2), 2),
            height=abs(values.at(point.value or 0) - zero),
            low=None if point.low is None else values.at(point.low),
            high=None if point.high is None else values.at(point.high),
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
    )


def _line(name: str, key: str, kind: str, rows: Shown, size: Size) -> Chart:
    place: Callable[[Any], float] = _seconds if kind in TIMES else float
    ordered = sorted(rows, key=lambda point: place(point.row[key]))
    values = _values(ordered, TOP + LINE_HEIGHT, TOP)
    along = scale_of([place(point.row[key]) for point in ordered], LEFT, size.width - RIGHT, zero=False)
    marks = [
        ChartMark(
            label=_text(point.row[key]),
            text=point.told,
            x=along.at(place(point.row[key])),
            y=values.at(point.value or 0),
            low=None if point.low is None else values.at(point.low),
            high=None if point.high is None else values.at(point.high),
        )
        for point in ordered
    ]
    few = marks[:: max(1, -(-len(marks) // size.times))]
    texts = _times([mark.label for mark in few]) if kind in TIMES else []
    across = [AxisTick(at=mark.x, text=text) for mark, text in zip(few, texts, strict=False)] or along.ticks(
        size.numbers
    )
    return Chart(
        kind="line",
        title=name,
        width=size.width,
        height=TOP + LINE_HEIGHT + AXIS,
        left=LEFT,
        marks=marks,
        across=across,
        up=values.ticks(),
        zero=values.at(0),
        left_out=0,
        label=size.label,
    )


def _heat(name: str, keys: Sequence[str], rows: Shown, size: Size) -> Chart:
    across = list(dict.fromkeys(_text(point.row[keys[1]]) for point in rows))[:MOST_CELLS]
    up = list(dict.fromkeys(_text(point.row[keys[0]]) for point in rows))[:MOST_CELLS]
    left = _room(up, size)
    width = (size.width - left - GAP - RIGHT) / len(across)
    strengths = scale_of([point.value or 0 for point in rows], 0.0, 1.0, zero=False)
    marks = [
        ChartMark(
            label=f"{_text(point.row[keys[0]])} · {_text(point.row[keys[1]])}",
            text=point.told,
            x=round(left + GAP + across.index(_text(point.row[keys[1]])) * width, 2),
            y=TOP + up.index(_text(point.row[keys[0]])) * BAR,
            width=round(width - 2, 2),
            height=BAR - 2,
            strength=strengths.at(point.value or 0),
            short=point.told if width > 7 * len(point.told) else point.text,
        )
        for point in rows
        if _text(point.row[keys[1]]) in across and _text(point.row[keys[0]]) in up
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
    )


def _values(rows: Shown, start: float, end: float, *, zero: bool = True) -> Scale:
    return scale_of(
        [n for point in rows for n in (point.value, point.low, point.high) if n is not None], start, end, zero=zero
    )


def _ends(document: Mapping[str, Any], name: str, place: int) -> tuple[float | None, float | None]:
    ends = document["intervals"][name]
    return _number(ends["low"][place]), _number(ends["high"][place])


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _seconds(value: str) -> float:
    if len(value) == 10:
        return float(date.fromisoformat(value).toordinal()) * 86_400
    moment = datetime.fromisoformat(value)
    return moment.toordinal() * 86_400.0 + moment.hour * 3600 + moment.minute * 60 + moment.second


def _times(labels: Sequence[str]) -> list[str]:
    """Return times as an axis says them: without what all of them have in common.

    >>> _times(["2026-03-02T01:00:00", "2026-03-02T02:00:00"]), _times(["2026-03-02T01:00:00", "2026-03-03T01:00:00"])
    (['01:00', '02:00'], ['03-02 01:00', '03-03 01:00'])
    """
    one_year, one_day = (len({label[:n] for label in labels}) == 1 for n in (4, 10))
    if all(len(label) == 10 for label in labels):
        return list(labels)
    first = 11 if one_day else 5 if one_year else 0
    return [label[first:16].replace("T", " ") for label in labels]


def _room(labels: Sequence[str], size: Size) -> float:
    """Return where labels end that begin at the edge."""
    return GAP + CHARACTER * min(size.label, max(map(len, labels), default=0))


def _text(value: Any) -> str:
    return plain(value)

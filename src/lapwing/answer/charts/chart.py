"""A chart: the positions of its marks, axes and words, for the template that writes SVG."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, final

from lapwing.answer.charts.scales import AxisTick


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
    """

    width: float
    bar: float
    label: int
    numbers: int
    bins: int


WIDE: Final = Size(width=720.0, bar=440.0, label=24, numbers=6, bins=12)
NARROW: Final = Size(width=320.0, bar=0.0, label=12, numbers=3, bins=5)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ChartMark:
    """One number of an answer.

    Args:
        label: Its key.
        text: Its description.
        x: Of its bar or cell, or where its point is.
        y: Of its bar or cell, or where its point is.
        width: Of its bar or cell, or where its point is.
        height: Of its bar or cell, or where its point is.
        low: The ends of its interval on the axis of values, None where there is none.
        high: As `low`.
        strength: From 0 to 1.
        short: The text in a cell.
        series: The position of its colour in the legend.
        value_below: Whether the number is below the axis. On a log scale, 0 is.
        low_below: Whether its interval goes on below the axis.
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
    series: int = 0
    value_below: bool = False
    low_below: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LegendEntry:
    """The name of a colour, and its place above the chart."""

    x: float
    y: float
    text: str
    series: int


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
        column: The name of the numbers.
        reference: A reference line: its place on the axis of the numbers, and its title and number.
        legend: The names of the colours; empty if there is one.
        above: How much room the legend and the title of the upward axis take above.
        across_title: The title of the axis below, by lines.
        up_title: The title of the upward axis, by lines, which stand above it.
        axis_across: The columns on the axis below.
        axis_up: The columns on the upward axis.
        caption: Lines below: that the numbers contain noise, and what the intervals are.
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
    column: str = ""
    reference: AxisTick | None = None
    legend: Sequence[LegendEntry] = ()
    above: float = 0.0
    across_title: Sequence[str] = ()
    up_title: Sequence[str] = ()
    axis_across: Sequence[str] = ()
    axis_up: Sequence[str] = ()
    caption: Sequence[str] = ()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A number of a row, the ends of its interval, both as the table has them, and the place of its colour."""

    row: Mapping[str, Any]
    value: float | None
    low: float | None
    high: float | None
    text: str
    margin: str
    series: int = 0

    @property
    def told(self) -> str:
        """The number with its ±."""
        return f"{self.text} {self.margin}".rstrip()


Shown = Sequence[Point]

"""Charts of commands: drawn in the terminal, or written to a file."""

import math
import sys
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from rich.cells import cell_len

from lapwing.answer.python_values import Cell
from lapwing.cli.characters import visible
from lapwing.cli.console import note, page_width, rendered, text
from lapwing.errors import InvalidParameter
from lapwing.plots.files import require_suffix
from lapwing.privacy.figures import level, plain, with_margins

if TYPE_CHECKING:
    from lapwing.answer.presentation import EndArray
    from lapwing.documents.described_answer import DescribedAnswer
    from lapwing.plots import Plot

HELP: Final = "Also write a chart: .json (Vega-Lite), .html, .svg or .png."
HELP_DRAWN: Final = "Also draw a chart here, or write it to a file: .json (Vega-Lite), .html, .svg or .png."
HERE: Final = Path("-")
"""In the place of a file: the terminal."""
TIMES: Final = "M"
"""NumPy's kind of ends that are dates or times, which have no length that a bar could have."""
MOST_BARS, MOST_LABEL, LEAST_BAR = 60, 30, 10
BLOCKS: Final = "█▓░│"
"""Up to the near end of the interval, from there to the number, from there to the far end, and zero."""
ASCII: Final = "#+.|"


class Drawable(Protocol):
    """A result with noisy columns, of a table or of a graph, here or from a server."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in order."""

    def rows(self) -> Sequence[Mapping[str, Cell]]:
        """Return the rows."""

    def interval(self, confidence: Fraction) -> Mapping[str, tuple["EndArray", "EndArray"]]:
        """Return the ends of the intervals of noisy columns."""

    def plot(self, *, confidence: Fraction) -> "Plot":
        """Return a chart for a file."""


class Bar(NamedTuple):
    """A number as a chart draws it. Args: text: As the table has it."""

    label: str
    value: float
    low: float
    high: float
    text: str


def require_chart(file: Path | None, *, here: bool = False) -> None:
    """Check the name of a chart's file before any work is done for it.

    Args:
        here: Whether the chart may be drawn in the terminal.

    Raises:
        InvalidParameter: For an unknown suffix, or if a picture needs the `plots` extra and it is missing.
    """
    if file == HERE and not here:
        raise InvalidParameter("--plot needs a file here, such as chart.svg.")
    if file is not None and file != HERE:
        require_suffix(file, "--plot")


def write_chart(plot: "Plot", file: Path) -> None:
    """Write a chart as its suffix says, the specification as .json or a picture, and note where it is."""
    plot.save(file)
    note("written", str(file))


def make_chart(answer: Drawable, file: Path, confidence: Fraction, told: "DescribedAnswer | None" = None) -> None:
    """Write the chart of an answer to a file, or draw it in the terminal.

    Args:
        told: The same answer with what the catalog says of its keys.
    """
    if file == HERE:
        draw_chart(answer, confidence, told)
    else:
        write_chart(chart_of(answer, confidence, told), file)
        if len(answer.interval(confidence)) > 1:
            note("note", "the chart shows only the first noisy number of the result")


def chart_of(answer: Drawable, confidence: Fraction, told: "DescribedAnswer | None" = None) -> "Plot":
    """Return the chart of an answer for a file; arguments as of `make_chart`.

    Raises:
        InvalidParameter: If it has no noisy column of numbers.
    """
    if told is None:
        return answer.plot(confidence=confidence)
    from lapwing.answer.chart import bars  # here: few answers are drawn

    numbers = {name: ends for name, ends in told.interval(confidence).items() if ends[0].dtype.kind != TIMES}
    titles, rows = told.key_titles, told.labelled_rows()
    return bars(rows, numbers, keys=told.keys, column=None, confidence=confidence, key_titles=titles)


def draw_chart(answer: Drawable, confidence: Fraction, told: "DescribedAnswer | None" = None) -> None:
    """Draw the first noisy column of an answer as bars, as wide as the terminal.

    The chart stands below the answer's table. It goes to standard error where standard output is data for a program.

    Args:
        told: As of `make_chart`.

    Raises:
        InvalidParameter: If it has no noisy column of numbers.
    """
    stream = sys.stdout if sys.stdout.isatty() else sys.stderr
    name, bars = bars_of(answer, confidence, answer.rows() if told is None else told.labelled_rows())
    keys = [] if told is None else [told.key_titles.get(key, key) for key in told.keys]
    try:
        BLOCKS.encode(stream.encoding or "utf-8")
        marks = BLOCKS
    except UnicodeEncodeError:
        marks = ASCII
    lines = drawn(bars[:MOST_BARS], page_width(stream), marks)
    more = [f"… and {len(bars) - MOST_BARS:,} more rows"] if len(bars) > MOST_BARS else []
    if len(answer.interval(confidence)) > 1:
        more.append(f"only {name} is drawn, the first noisy number")
    key = f"{marks[1]} ends at the number"
    if all(math.isnan(bar.low) for bar in bars):
        key += f"; {name} has no interval"
    else:
        key += f", {marks[0]} and {marks[2]} at the ends of its {level(confidence)} interval"
    head = text(name, "bold").append_text(text(f" by {visible(' · '.join(keys))}" if keys else ""))
    page = [text(""), head, *map(text, lines), *(text(line, "dim") for line in (*more, key))]
    stream.write(rendered(stream, *page))


def bars_of(answer: Drawable, confidence: Fraction, shown: Sequence[Mapping[str, Cell]]) -> tuple[str, list[Bar]]:
    """Return the name and the numbers of the first noisy column of numbers.

    Args:
        shown: The rows, with keys as people read them.

    Raises:
        InvalidParameter: If there is none.
    """
    intervals = answer.interval(confidence)
    name = next((name for name in answer.columns if name in intervals and intervals[name][0].dtype.kind != TIMES), None)
    if name is None:
        raise InvalidParameter("Lapwing cannot draw a chart, because no column of this result is a noisy number.")
    keys = [column for column in answer.columns if column not in intervals]
    low, high = intervals[name]
    values = [row[name] for row in shown]
    return name, [
        Bar(
            label=visible(" · ".join(plain(row[key]) for key in keys)),
            value=_number(row[name]),
            low=float(low[at]),
            high=float(high[at]),
            text=f"{number}{margin}",
        )
        for at, (row, (number, margin)) in enumerate(zip(shown, with_margins(values, low, high), strict=True))
    ]


def drawn(bars: Sequence[Bar], width: int, marks: str = BLOCKS) -> list[str]:
    """Return bars as lines that fit a width: a label, the bar with its interval, and the number.

    >>> drawn([Bar("a", 4.0, 2.0, 6.0, "4 ±2"), Bar("bc", 1.0, -1.0, 3.0, "1 ±2")], 22)
    ['a    │███▓▓▓▓░░░░ 4 ±2', 'bc ░░│▓░░░░       1 ±2']
    >>> drawn([Bar("a", 4.0, math.nan, math.nan, "4"), Bar("b", 2.0, math.nan, math.nan, "2")], 12)
    ['a ▓▓▓▓▓▓▓▓▓▓ 4', 'b ▓▓▓▓▓      2']
    """
    if not bars:
        return []
    ends = [end for bar in bars for end in (bar.value, bar.low, bar.high) if math.isfinite(end)]
    left, right = min([0.0, *ends]), max([0.0, *ends])
    labels = [_cut(bar.label) for bar in bars]
    room = [max(map(cell_len, texts)) for texts in (labels, [bar.text for bar in bars])]
    cells = max(LEAST_BAR, width - sum(room) - (2 if room[0] else 1))
    zero = None if left == 0 or right == left else min(cells - 1, math.floor(cells * -left / (right - left)))
    lines = []
    for label, bar in zip(labels, bars, strict=True):
        strip = _strip(bar, left, right, cells, zero, marks)
        padded = label + " " * (room[0] - cell_len(label) + bool(room[0]))
        lines.append(f"{padded}{strip} {bar.text.rjust(room[1])}")
    return lines


def _strip(bar: Bar, left: float, right: float, cells: int, zero: int | None, marks: str) -> str:
    """Return the cells of a bar: each is what its middle is in."""
    solid, near, far, axis = tuple(marks)
    crossing = math.isnan(bar.low) or bar.low <= 0 <= bar.high  # a number without an interval is drawn up to itself
    near_end = 0.0 if crossing else min(bar.low, bar.high, key=abs)
    strip = []
    for at in range(cells):
        middle = left + (right - left) * (at + 0.5) / cells
        if at == zero:
            strip.append(axis)
        elif _within(middle, 0.0, near_end):
            strip.append(solid)
        elif _within(middle, near_end, bar.value):
            strip.append(near)
        else:
            strip.append(far if bar.low <= middle <= bar.high else " ")
    return "".join(strip)


def _within(number: float, one: float, other: float) -> bool:
    return min(one, other) <= number <= max(one, other)


def _number(value: Cell) -> float:
    return float(value) if isinstance(value, int | float | Decimal) else math.nan


def _cut(label: str) -> str:
    return label if len(label) <= MOST_LABEL else f"{label[: MOST_LABEL - 1]}…"

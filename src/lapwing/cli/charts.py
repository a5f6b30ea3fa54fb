"""Charts of commands: drawn in the terminal, or written to a file."""

import math
import sys
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from rich.cells import cell_len

from lapwing.answer.charts.chart_options import ChartOptions, axes_of, places_of, read_choices
from lapwing.answer.python_values import Cell
from lapwing.cli.characters import visible
from lapwing.cli.console import note, page_width, rendered, text
from lapwing.errors import InvalidParameter, ServiceFault
from lapwing.plots.files import require_suffix
from lapwing.privacy.figures import level, plain, with_margins

if TYPE_CHECKING:
    from lapwing.answer.column_facts import ColumnFacts
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
BLOCKS: Final = "█▓░│┆"
"""Up to the near end of the interval, from there to the number and to the far end, zero, and a reference line."""
ASCII: Final = "#+.|:"
USUAL: Final = ChartOptions()


class Drawable(Protocol):
    """A result with noisy columns, of a table or of a graph, here or from a server."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in order."""

    def rows(self) -> Sequence[Mapping[str, Cell]]:
        """Return the rows."""

    def interval(self, confidence: Fraction) -> Mapping[str, tuple["EndArray", "EndArray"]]:
        """Return the ends of the intervals of noisy columns."""

    def describe(self) -> "Sequence[ColumnFacts]":
        """Return what is public about each column."""

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
        require_suffix(file, "--plot", drawn=here)


def write_chart(plot: "Plot", file: Path) -> None:
    """Write a chart as its suffix says, the specification as .json or a picture, and note where it is."""
    plot.save(file)
    note("written", str(file))


def require_choices(choices: Sequence[str], file: Path | None) -> ChartOptions:
    """Read the choices of `--chart` before any work is done for it.

    Raises:
        InvalidParameter: If one is not allowed, or is none for the terminal.
    """
    chosen = read_choices(choices)
    if choices and file is None:
        raise InvalidParameter("--chart has choices for --plot; give that, too.")
    if chosen.kind == "table":
        raise InvalidParameter("A chart of --plot is auto, bars, points or lines; for a table leave --plot out.")
    if file == HERE and (chosen.log or chosen.colour is not None or chosen.kind not in ("auto", "bars")):
        raise InvalidParameter("In the terminal, charts are bars on a linear scale. Write others to a file.")
    return chosen


def make_chart(
    answer: Drawable,
    file: Path,
    confidence: Fraction,
    told: "DescribedAnswer | None" = None,
    options: ChartOptions = USUAL,
) -> None:
    """Write the chart of an answer to a file, or draw it in the terminal.

    Args:
        told: The same answer with what the catalog says of its keys.
        options: The choices of the chart.
    """
    if file == HERE:
        draw_chart(answer, confidence, told, options)
    else:
        write_chart(chart_of(answer, confidence, told, options), file)
        if len(answer.interval(confidence)) > 1 and options.column is None:
            note("note", "the chart shows only the first noisy number of the result")


def chart_of(
    answer: Drawable, confidence: Fraction, told: "DescribedAnswer | None" = None, options: ChartOptions = USUAL
) -> "Plot":
    """Return the chart of an answer for a file; arguments as of `make_chart`.

    Raises:
        InvalidParameter: If it has no noisy column of numbers, or not what the options name.
    """
    if told is None and options == USUAL:
        return answer.plot(confidence=confidence)
    from lapwing.answer.chart import bars  # here: few answers are drawn

    ends = answer.interval(confidence) if told is None else told.interval(confidence)
    return bars(
        answer.rows() if told is None else told.labelled_rows(),
        {name: pair for name, pair in ends.items() if pair[0].dtype.kind != TIMES},
        keys=[name for name in answer.columns if name not in ends] if told is None else told.keys,
        column=options.column,
        confidence=confidence,
        titles=None if told is None else told.titles,
        facts=_facts(answer),
        options=options,
    )


def _facts(answer: Drawable) -> "Sequence[ColumnFacts]":
    """Return what is public about the columns; nothing of an answer that a server stored without it."""
    try:
        return answer.describe()
    except ServiceFault:
        return ()


def draw_chart(
    answer: Drawable, confidence: Fraction, told: "DescribedAnswer | None" = None, options: ChartOptions = USUAL
) -> None:
    """Draw one noisy column of an answer as bars, as wide as the terminal: the first, unless the options name it.

    The chart stands below the answer's table. It goes to standard error where standard output is data for a program.

    Args:
        told: As of `make_chart`.
        options: As of `make_chart`.

    Raises:
        InvalidParameter: If it has no such column, or not the keys that the options name.
    """
    stream = sys.stdout if sys.stdout.isatty() else sys.stderr
    name, bars = bars_of(answer, confidence, answer.rows() if told is None else told.labelled_rows(), options)
    titles = {} if told is None else told.titles
    keys = [] if told is None else [titles.get(key, key) for key in axes_of(told.keys, options)]
    try:
        BLOCKS.encode(stream.encoding or "utf-8")
        marks = BLOCKS
    except UnicodeEncodeError:
        marks = ASCII
    lines = drawn(bars[:MOST_BARS], page_width(stream), marks, options.line)
    more = [f"… and {len(bars) - MOST_BARS:,} more rows"] if len(bars) > MOST_BARS else []
    if len(answer.interval(confidence)) > 1 and options.column is None:
        more.append(f"only {name} is drawn, the first noisy number")
    if options.line is not None:
        at = plain(options.line)
        more.append(f"{marks[4]} {visible(options.line_title)} ({at})" if options.line_title else f"{marks[4]} at {at}")
    key = f"The numbers contain noise. {marks[1]} ends at the number"
    if all(math.isnan(bar.low) for bar in bars):
        key += f"; {name} has no interval"
    else:
        key += f", {marks[0]} and {marks[2]} at the ends of its {level(confidence)} interval"
    axis = options.x_title or " · ".join(keys)
    by = text(f" by {visible(axis)}" if axis else "")
    head = text(visible(options.title or options.y_title or titles.get(name, name)), "bold").append_text(by)
    page = [text(""), head, *map(text, lines), *(text(line, "dim") for line in (*more, key))]
    stream.write(rendered(stream, *page))


def bars_of(
    answer: Drawable, confidence: Fraction, shown: Sequence[Mapping[str, Cell]], options: ChartOptions = USUAL
) -> tuple[str, list[Bar]]:
    """Return the name and the numbers of the first noisy column of numbers, or of the one that the options name.

    Args:
        shown: The rows, with keys as people read them.

    Raises:
        InvalidParameter: If there is none.
    """
    intervals = answer.interval(confidence)
    numbers = [name for name in answer.columns if name in intervals and intervals[name][0].dtype.kind != TIMES]
    name = next((one for one in numbers if options.column in (None, one)), None)
    if name is None and numbers:
        raise InvalidParameter(f"The result has no noisy number {options.column!r:.80}; it has {', '.join(numbers)}.")
    if name is None:
        raise InvalidParameter("Lapwing cannot draw a chart, because no column of this result is a noisy number.")
    keys = axes_of([column for column in answer.columns if column not in intervals], options)
    low, high = intervals[name]
    values = [row[name] for row in shown]
    bars = [
        Bar(
            label=visible(" · ".join(plain(row[key]) for key in keys)),
            value=_number(row[name]),
            low=float(low[at]),
            high=float(high[at]),
            text=f"{number}{margin}",
        )
        for at, (row, (number, margin)) in enumerate(zip(shown, with_margins(values, low, high), strict=True))
    ]
    return name, [bars[place] for place in places_of(shown, name, keys, options)]


def drawn(bars: Sequence[Bar], width: int, marks: str = BLOCKS, line: float | None = None) -> list[str]:
    """Return bars as lines that fit a width: a label, the bar with its interval, and the number.

    Args:
        line: A number at which there is a reference line, where no bar is.

    >>> drawn([Bar("a", 4.0, 2.0, 6.0, "4 ±2"), Bar("bc", 1.0, -1.0, 3.0, "1 ±2")], 22)
    ['a    │███▓▓▓▓░░░░ 4 ±2', 'bc ░░│▓░░░░       1 ±2']
    >>> drawn([Bar("a", 4.0, math.nan, math.nan, "4"), Bar("b", 2.0, math.nan, math.nan, "2")], 12)
    ['a ▓▓▓▓▓▓▓▓▓▓ 4', 'b ▓▓▓▓▓      2']
    >>> drawn([Bar("a", 4.0, math.nan, math.nan, "4"), Bar("b", 2.0, math.nan, math.nan, "2")], 14, line=3)
    ['a ▓▓▓▓▓▓▓▓▓▓ 4', 'b ▓▓▓▓▓  ┆   2']
    """
    if not bars:
        return []
    ends = [end for bar in bars for end in (bar.value, bar.low, bar.high) if math.isfinite(end)]
    ends += [] if line is None else [line]
    left, right = min([0.0, *ends]), max([0.0, *ends])
    labels = [_cut(bar.label) for bar in bars]
    room = [max(map(cell_len, texts)) for texts in (labels, [bar.text for bar in bars])]
    cells = max(LEAST_BAR, width - sum(room) - (2 if room[0] else 1))

    def cell_of(number: float) -> int:
        return min(cells - 1, math.floor(cells * (number - left) / (right - left)))

    zero = None if left == 0 or right == left else cell_of(0.0)
    reference = None if line is None or right == left else cell_of(line)
    lines = []
    for label, bar in zip(labels, bars, strict=True):
        strip = _strip(bar, left, right, cells, zero, marks)
        if reference is not None and strip[reference] == " ":
            strip = strip[:reference] + marks[4] + strip[reference + 1 :]
        padded = label + " " * (room[0] - cell_len(label) + bool(room[0]))
        lines.append(f"{padded}{strip} {bar.text.rjust(room[1])}")
    return lines


def _strip(bar: Bar, left: float, right: float, cells: int, zero: int | None, marks: str) -> str:
    """Return the cells of a bar: each is what its middle is in."""
    solid, near, far, axis, _ = tuple(marks)
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

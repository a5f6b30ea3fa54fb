"""A chart of the newest tick that follows a monitor: a bar and the ticks before it for each cell; lines in a pipe."""

import math
import sys
from collections import deque
from collections.abc import Sequence
from fractions import Fraction
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, final

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table

from lapwing.cli.console import print_text, text
from lapwing.privacy.figures import plain, with_margins

if TYPE_CHECKING:
    from lapwing.monitors import Monitor, Tick

HISTORY: Final = 24
_BAR: Final = 24
_SPARKS: Final = "▁▂▃▄▅▆▇█"
_EIGHTHS: Final = " ▏▎▍▌▋▊▉█"


@final
class LiveChart:
    """Shows one noisy column of numbers, the first, in all rows that fit the screen."""

    def __init__(self, monitor: "Monitor", confidence: Fraction) -> None:
        self._monitor, self._confidence = monitor, confidence
        self._console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
        self._live = Live(console=self._console, auto_refresh=False, transient=False)
        self._past = dict[str, deque[float]]()

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def show(self, tick: "Tick") -> None:
        """Show a tick in place of the one before; in a pipe, a line for each row."""
        intervals = tick.interval(self._confidence)
        if not self._console.is_terminal:
            print_text("".join(f"{line}\n" for line in lines_of(tick, self._confidence)))
            return
        if not intervals:
            return
        column = next(iter(intervals))
        rows = tick.rows()
        keys = [name for name in tick.answer.columns if name not in intervals]
        labels = [" · ".join(plain(row[name]) for name in keys) or column for row in rows]
        values = [_number(row[column]) for row in rows]
        margins = with_margins([row[column] for row in rows], *intervals[column])
        for label, value in zip(labels, values, strict=True):
            self._past.setdefault(label, deque(maxlen=HISTORY)).append(value)
        highest = max((value for value in values if math.isfinite(value)), default=1.0)
        room = max(1, self._console.height - 4)
        table = Table.grid(padding=(0, 1))
        for justify in ("left", "right", "left", "left", "left"):
            table.add_column(justify=justify)
        for label, value, (shown, margin) in list(zip(labels, values, margins, strict=True))[:room]:
            table.add_row(
                text(label),
                text(shown),
                text(margin, "cyan"),
                text(bar(value, highest, _BAR), "green"),
                text(sparkline(self._past[label]), "dim"),
            )
        head = f"{self._monitor.name}: {column} at {tick.time:%Y-%m-%d %H:%M:%S} UTC, tick {tick.number:,}"
        more = f"… and {len(rows) - room:,} more rows" if len(rows) > room else self._monitor.state()
        self._live.update(Group(text(head, "bold"), table, text(more, "dim")), refresh=True)


def lines_of(tick: "Tick", confidence: Fraction) -> list[str]:
    """Return a tick as lines for a pipe: its number, its time, the keys, and each noisy number with its ±."""
    intervals, rows = tick.interval(confidence), tick.rows()
    columns = []
    for name in tick.answer.columns:
        values = [row[name] for row in rows]
        if name in intervals:
            columns.append([f"{value}{margin}" for value, margin in with_margins(values, *intervals[name])])
        else:
            columns.append([plain(value) for value in values])
    stamp = f"{tick.number}\t{tick.time:%Y-%m-%dT%H:%M:%SZ}"
    return ["\t".join((stamp, *cells)) for cells in zip(*columns, strict=True)]


def bar(value: float, highest: float, width: int) -> str:
    """Return a bar in eighths of a character, as long in `width` as the value is in the highest."""
    if not math.isfinite(value) or highest <= 0 or value <= 0:
        return ""
    eighths = round(8 * width * min(1.0, value / highest))
    return _EIGHTHS[8] * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def sparkline(values: Sequence[float] | deque[float]) -> str:
    """Return the heights of values, each against the highest and 0."""
    known = [max(0.0, value) if math.isfinite(value) else 0.0 for value in values]
    highest = max(known, default=0.0) or 1.0
    return "".join(_SPARKS[min(7, int(8 * value / highest))] for value in known)


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float | Fraction) or hasattr(value, "__float__") else math.nan

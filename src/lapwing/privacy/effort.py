"""How hard to work for an interval, and what earlier work at other points is still good for."""

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from lapwing.privacy.certified_curve import Curve

_CELLS = 512
_MOST_CELLS = 1 << 13
_ROUNDS = 6
_RUNGS, _SHARED_RUNGS = 4, 2
_SHARE = 0.5
"""How much of the width the cutting of laws may take."""


@final
@dataclass(slots=True, eq=False)
class CurveCache:
    """The curves made so far for one composition in one direction, each of which bounds it everywhere.

    A curve is narrow near the point at which its window is aimed. So of many points, most need no curve of their own.

    Args: cells, fineness: of the last curve, from which the next one starts.
    """

    curves: "list[Curve]" = field(default_factory=list)
    cells: int = _CELLS
    fineness: float = 1.0

    def add(self, curve: "Curve", fineness: float) -> None:
        """Keep a curve, as the one to be asked first."""
        self.curves.append(curve)
        self.cells, self.fineness = curve.cells, fineness

    def prefer(self, curve: "Curve") -> None:
        """Ask this curve first from now on."""
        self.curves.remove(curve)
        self.curves.append(curve)


@final
class Effort:
    """How fine the next window and cells are, after looking at how wide the last interval was.

    Cells are on a ladder, so that nearby points and both directions share a law that is cut; where many points are
    asked for it is coarser.
    """

    def __init__(self, *, closed: bool, kept: CurveCache | None = None) -> None:
        self.closed = closed
        self.cells, self.fineness = (kept.cells, kept.fineness) if kept else (_CELLS, 1.0)
        self.rungs = _SHARED_RUNGS if kept else _RUNGS
        self.rounds, self.ratio = 0, math.inf

    def more(self, ratio: float, cut: float) -> bool:
        """Prepare another round for an interval that is `ratio` times too wide; tell whether it is worth one.

        Args: cut: the part of `ratio` that is about how coarsely laws were cut, the rest being the window's.
        """
        self.rounds += 1
        stuck = self.rounds > 2 and ratio > 0.9 * self.ratio
        if ratio <= 1 or stuck or self.rounds == _ROUNDS:
            return False
        self.ratio = ratio
        cells = self.cells
        if not self.closed and cut > _SHARE:
            # Discretisation errs by the square of a cell's width.
            self.cells = _rung(cells * min(8.0, max(1.5, math.sqrt(cut / _SHARE))), self.rungs)
        window = ratio - cut if math.isfinite(cut) else ratio
        if window > 1 - _SHARE and (self.rounds > 1 or ratio < 8):
            self.fineness *= min(16.0, max(2.0, math.sqrt(window)))
        return self.cells > cells or window > 1 - _SHARE


def _rung(cells: float, rungs: int) -> int:
    """Return about so many cells, on a ladder with so many rungs to a doubling."""
    steps = math.ceil(rungs * math.log2(cells / _CELLS) - 0.1)
    return min(_MOST_CELLS, round(_CELLS * 2 ** (steps / rungs)))

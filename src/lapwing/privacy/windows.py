"""Where to look, and how hard: guesses of tilt, step, count and smoothing that make the bounds of `inversion` close.

Everything here is a guess in floats. A poor one widens the interval and cannot make it wrong.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from lapwing.privacy.atoms import AtomLaw
from lapwing.privacy.inversion import ORDER, RATIO, WIDEST, FourierWindow
from lapwing.privacy.loss_laws import FloatArray, GaussianLaw, Laws, LossLaw, Nodes
from lapwing.privacy.quadrature import QuadratureLaw

if TYPE_CHECKING:
    from lapwing.privacy.certified_curve import Curve

_MOST_WORK = 1 << 25  # atoms times nodes: about half a second
_COPIES = 1e-7  # what the copies may add to δ, in proportion
_TILTS: NDArray[np.float64] = 2.0 ** np.arange(-30, 31, 1.0)

_CALMER: NDArray[np.float64] = 2.0 ** np.arange(0, -3.1, -0.25)

_FARTHEST = 1e9
_SPARE = 20.0
_LEAN = 0.65

_BEYOND: NDArray[np.float64] = 1 + 2.0 ** np.arange(-4, 3, 0.5)


_CELLS = 512
_MOST_CELLS = 1 << 13
_ROUNDS = 6
_RUNGS, _SHARED_RUNGS = 4, 2
_SHARE = 0.5
"""How much of the width the cutting of laws may take."""


class Aim(NamedTuple):
    """A point of the curve: log δ at ε, and the width in ε that the bounds should have there.

    A lasting aim also serves the longer lists that this one grows into: its window adds far less to δ, and its tilt is
    nearer to 0, where theirs will be.
    """

    epsilon: float
    log_delta: float
    width: float
    lasting: bool = False

    @property
    def spare(self) -> float:
        """By what factor to be better than the width needs, as a logarithm."""
        return _SPARE if self.lasting else 0.0

    @property
    def room(self) -> float:
        """How small the copies of the curve must be, as a logarithm."""
        return -self.log_delta - math.log(_COPIES) + self.spare


@final
class Cumulants:
    """log M of a composition at many tilts, as a guess."""

    def __init__(self, laws: Laws) -> None:
        self.laws = laws
        self.coarse = self.at(_TILTS)
        self.atoms = 16 + sum(_cost(law) for law, _ in laws)

    def at(self, tilts: FloatArray) -> FloatArray:
        """Return log M at some tilts."""
        total = np.zeros(len(tilts))
        for law, count in self.laws:
            total += count * law.log_moments(tilts)
        return total

    def _least(self, objective: Callable[[FloatArray, FloatArray], FloatArray]) -> tuple[float, float]:
        """Return the tilt where an objective of (tilt, log M) is least, and its value; refined twice."""
        values = objective(_TILTS, self.coarse)
        best = int(np.nanargmin(values))
        tilt, ratio = _TILTS[best], 2.0
        for _ in range(2):
            tilts = tilt * ratio ** np.linspace(-1, 1, 17)
            values = objective(tilts, self.at(tilts))
            best = int(np.nanargmin(values))
            tilt, ratio = tilts[best], ratio**0.125
        return float(tilt), float(values[best])

    def epsilon_above(self, log_delta: float) -> float:
        """Return about the least ε that Chernoff's bound δ ≤ M(θ)·e^(−θε)/(1 + θ) gives."""
        return self._least(lambda t, k: (k - np.log1p(t) - log_delta) / t)[1]

    def tilt(self, epsilon: float) -> tuple[float, float]:
        """Return the tilt where M(θ)·e^(−θε)/(θ(θ + 1)), the integrand at its centre, is least, and its logarithm."""
        return self._least(lambda t, k: k - t * epsilon - np.log(t) - np.log1p(t))

    def window(self, aim: Aim, tilt: float, fineness: float) -> FourierWindow | None:
        """Return a window for bounds about as wide as aimed at, or `fineness` times narrower; None if there is none.

        One that is too large is made smaller, and smoother.
        """
        tilt *= _LEAN if aim.lasting else 1.0
        relative = min(0.01, tilt * aim.width) / 64 / fineness
        # In x = e^ε the curve is about x^(−tilt), and what smoothing adds is of second order in x.
        curved = (RATIO**2 - 1) * tilt * (tilt + 1)
        smoothing = math.sqrt(1.5 * ORDER * min(1.0, tilt * aim.width) / curved) / fineness
        tilt, period, beyond = self._calm(aim, tilt)
        step = 2 * math.pi / period
        excess = float(self.at(np.array([tilt]))[0]) - tilt * aim.epsilon - aim.log_delta
        smoothing = min(smoothing, WIDEST, ORDER / (RATIO * tilt))
        need = math.log(1 / relative) + max(excess, 0.0)
        smooth = self._reach(tilt, need + aim.spare / 4, smoothing)
        plain = self._reach(tilt, need + aim.spare + 2, 0.0, most=1.5 * smooth)
        most = step * _MOST_WORK / self.atoms
        if min(plain, smooth) > most:
            smoothing *= smooth / most
            smooth = most
        if smoothing > WIDEST:
            return None
        if plain < math.inf:
            smoothing, smooth = 0.0, plain
        nodes = Nodes(tilt, step, math.ceil(smooth / step) + 2)
        if any(isinstance(law, QuadratureLaw) and not law.is_feasible(nodes) for law, _ in self.laws):
            return None
        return FourierWindow(nodes, smoothing, beyond)

    def _reach(self, tilt: float, need: float, smoothing: float, most: float = math.inf) -> float:
        """Return about the s at which M and the kernel's bound (w·s)^(−ORDER) are together e^(−need) of M(tilt).

        It is infinite if that is beyond `most`. Without smoothing there is no kernel.
        """
        w = smoothing / ORDER

        def is_there(s: float) -> bool:
            kernel = ORDER * math.log(max(1.0, s * w / 1.1)) + math.log(max(1.0, s))
            return kernel + sum(count * -law.log_decay(tilt, s) for law, count in self.laws) >= need

        far = min(most, 2 * _kernel_reach(need, smoothing) if smoothing else _FARTHEST)
        if not is_there(far):
            return math.inf
        low, high = 0.0, math.log(max(1.0, far))
        while high - low > 0.02:
            middle = (low + high) / 2
            low, high = (low, middle) if is_there(math.exp(middle)) else (middle, high)
        return math.exp(high)

    def _calm(self, aim: Aim, tilt: float) -> tuple[float, float, float]:
        """Return a tilt up to this one, its period, and the tilt that shows it.

        Rare large losses, as of a small sample, make M grow at once beyond some tilt. Just below it M's decay along the
        line is the best, but it takes a long period to show that the copies above are small. A smaller tilt takes more
        digits, so a reach that grows as their exponential over ORDER, and a far shorter period.
        """
        period, beyond = self.period(aim, tilt)
        best, least = (tilt, period, beyond), math.inf
        if aim.room <= 0 or period < 2 * aim.room / tilt:
            return best
        for lower in tilt * _CALMER:
            period, beyond = self.period(aim, float(lower))
            excess = float(self.at(np.array([lower]))[0]) - lower * aim.epsilon
            cost = math.log(period) + excess / ORDER
            if cost < least:
                best, least = (float(lower), period, beyond), cost
        return best

    def period(self, aim: Aim, tilt: float) -> tuple[float, float]:
        """Return a period that keeps the copies small, and the tilt that shows it of those above."""
        room = aim.room
        far = tilt * _BEYOND
        needs = (self.at(far) - far * aim.epsilon + room) / (far - tilt)
        best = int(np.nanargmin(needs))
        return max(room / tilt, float(needs[best])), float(far[best])


def _cost(law: LossLaw) -> int:
    """Return the time that a law takes at a node, about: in atoms."""
    return len(law.positions) if isinstance(law, AtomLaw) else 200 if isinstance(law, GaussianLaw) else 4


def _kernel_reach(need: float, smoothing: float) -> float:
    """Return about the s where the kernel's bound (w·s)^(−ORDER)/(π·s) is e^(−need)."""
    w = smoothing / ORDER
    reach = 1 / w
    for _ in range(4):
        reach = max(1.05 / w, math.exp((need - math.log(math.pi * reach)) / ORDER) * 1.1 / w)
    return reach


@final
@dataclass(slots=True, eq=False)
class CurveCache:
    """The curves made so far for one composition in one direction, each of which bounds it everywhere.

    A curve is narrow near the point at which its window is aimed. So of many points, most need no curve of their own.

    Args:
        cells: Of the last curve, from which the next one starts.
        fineness: Of the last curve, from which the next one starts.
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

        Args:
            cut: The part of `ratio` that is about how coarsely laws were cut, the rest being the window's.
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

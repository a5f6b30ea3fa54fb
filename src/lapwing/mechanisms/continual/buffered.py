"""Lower triangular Toeplitz matrices whose product with a stream needs few numbers of memory.

Theory of operation. Counts up to each tick are Ax, A the lower triangular matrix of ones. Let A = BC. A curator
releases y = Cx + z with fresh noise z at each tick, and By = Ax + Bz is the estimate, whose noise is small if both the
columns of C (what one event changes) and the rows of B are short. With generating functions, A is 1/(1 − s), the best C
is near 1/√(1 − s), and here it is rational,

    C(s) = 1 + Σ_i ω_i·s/(1 − θ_i·s) = Π_i (1 − θ̂_i·s)/(1 − θ_i·s),   1 > θ_1 > θ̂_1 > θ_2 > … > θ̂_d > 0.

So c_0 = 1 and c_k = Σ_i ω_i·θ_i^(k−1), for which d buffers s_i ← θ_i·s_i + x are enough. And B(s) = 1/((1 − s)·C(s))
has b_k = Σ_i α_i·θ̂_i^k with θ̂_0 = 1: d + 1 more numbers for the estimate. As the θ and θ̂ take turns, all ω and α
are positive. A window of w ticks has b_k − b_(k−w) instead.

Exactness. θ_i and ω_i are multiples of 2^−BITS, and stand for themselves: what C is, is known exactly. The θ̂_i are the
zeros for the ω before they were rounded, so the estimates are biased by 2^−BITS of themselves, which nobody sees.

Columns are not negative, do not grow, and are convex, which `participation` needs. Before ω is rounded, c_k is
Σ_i (ω_i/θ_i)·θ_i^k plus, for k = 0, Π θ̂_i/θ_i > 0: a sum of falling convex sequences. Of the ω rounded down, 0 ≤ ω,
c_k from k = 1 on is one as well, and c_0 − c_1 = 1 − Σω and (c_0 − c_1) − (c_1 − c_2) = 1 − Σω·(2 − θ) are larger.

Source:
    Dvijotham, McMahan, Pillutla, Steinke and Thakurta 2024 (Efficient and Near-Optimal Noise Generation for Streaming
    Differential Privacy); McMahan and Pillutla 2025 (an inversion theorem for buffered linear Toeplitz matrices); the
    closed forms are worked out here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Final, final

import numpy as np

from lapwing.errors import InvalidParameter
from lapwing.exact.arrays import IntArray
from lapwing.mechanisms.continual.mixtures import UPWARDS, Floats, Mixture
from lapwing.mechanisms.continual.parameters import require_ticks
from lapwing.mechanisms.continual.participation import Participation

BITS: Final = 60
_SOME: Final = 1024


@final
@dataclass(frozen=True)
class BufferedToeplitz:
    """A factorisation of the matrix of counts so far, or of counts of the last `window` ticks.

    Args:
        ticks: n, from 1; window: from 1 to n, or None for all ticks so far.
        decays: 1 − θ_1 < 1 − θ̂_1 < 1 − θ_2 < … < 1 − θ̂_d, between 0 and 1; none for fresh noise at each tick.

    Raises:
        InvalidParameter: For others.
    """

    ticks: int
    window: int | None = None
    decays: tuple[Fraction, ...] = ()

    def __post_init__(self) -> None:
        require_ticks(self.ticks, self.window)
        object.__setattr__(
            self, "decays", tuple(Fraction(round(decay * (1 << BITS)), 1 << BITS) for decay in self.decays)
        )
        grows = all(a < b for a, b in zip((Fraction(0), *self.decays), (*self.decays, Fraction(1)), strict=True))
        if len(self.decays) % 2 or not grows:
            raise InvalidParameter("decays must be pairs of numbers that grow, above 0 and below 1.")

    @cached_property
    def thetas(self) -> tuple[Fraction, ...]:
        """θ_i, exactly."""
        return tuple(1 - decay for decay in self.decays[::2])

    @cached_property
    def omegas(self) -> tuple[Fraction, ...]:
        """ω_i = Π_j (θ_i − θ̂_j)/Π_{j≠i} (θ_i − θ_j), rounded down to a multiple of 2^−BITS."""
        exact = _weights(*self._units)
        return tuple(Fraction(above // below, 1 << BITS) for above, below in exact)

    @cached_property
    def _units(self) -> tuple[list[int], list[int]]:
        """1 − θ_i and 1 − θ̂_i in units of 2^−BITS: whole numbers, whose quotients Python rounds correctly."""
        units = [number.numerator * ((1 << BITS) // number.denominator) for number in self.decays]
        return units[::2], units[1::2]

    @cached_property
    def behind(self) -> Mixture:
        """c_(k+1), k ≥ 0."""
        return Mixture(_floats(self.omegas), _floats(self.decays[::2]))

    @cached_property
    def estimating(self) -> Mixture:
        """b_k, k ≥ 0: α_0 = Π(1 − θ_j)/Π(1 − θ̂_j), α_i = Π_j (θ_j − θ̂_i)/((1 − θ̂_i)·Π_{j≠i} (θ̂_j − θ̂_i))."""
        poles, zeros = self._units
        exact = zip(_weights(zeros, poles), zeros, strict=True)
        others = (above / (below * -zero) for (above, below), zero in exact)
        return Mixture(np.array([prod(poles) / prod(zeros), *others]), _floats((Fraction(0), *self.decays[1::2])))

    @property
    def is_plain(self) -> bool:
        """Whether no state passes from tick to tick."""
        return not self.decays

    @cached_property
    def drift(self) -> Fraction:
        """How far rounding can take a cell's value at one tick, in units of the grid (`gaussian`)."""
        reaches = (min(Fraction(self.ticks), 1 / (1 - theta)) for theta in self.thetas)
        return 1 + sum((omega * reach for omega, reach in zip(self.omegas, reaches, strict=True)), Fraction(0))

    def inner(self, earlier: Floats, later: Floats) -> Floats:
        """Return the inner products of columns i ≤ j: c_0·c_(j−i) + Σ_{1≤k<n−j} c_k·c_(k+j−i)."""
        earlier, later = np.broadcast_arrays(np.asarray(earlier, float), np.asarray(later, float))
        lags = later - earlier
        head = np.where(lags == 0, 1.0, self.behind.values(np.maximum(lags - 1, 0)))
        return head + self.behind.products(lags, np.maximum(self.ticks - later - 1, 0))

    def sensitivity_squared(self, participation: Participation) -> Fraction:
        """Return the largest square of what one unit changes of Cx, for events that change 1, rounded up."""
        return Fraction(participation.sensitivity_squared(self.inner, self.ticks) * UPWARDS)

    def weight(self, ticks: int) -> float:
        """Return Σ_k of the squared coefficients of y in the estimate at the tick with this number, from 1."""
        window, start = self.window or self.ticks, np.zeros(1)
        total = float(self.estimating.products(start, np.array([min(ticks, window)]))[0])
        if ticks > window:
            weights, decays = self.estimating
            shrinking = Mixture(weights * -np.expm1(window * np.log1p(-decays)), decays)  # b_k − b_(k+w)
            total += float(shrinking.products(start, np.array([ticks - window]))[0])
        return total

    @cached_property
    def mean_weight(self) -> float:
        """The mean of `weight` over ticks, for counts so far: of all ticks, or of _SOME evenly spaced ones."""
        ticks = np.linspace(1, self.ticks, min(self.ticks, _SOME)).round()
        return float(self.estimating.products(np.zeros_like(ticks), ticks).mean())

    def error(self, participation: Participation, *, roughly: bool = False, of_all: bool = False) -> float:
        """Return the standard deviation of the last estimate, for a loss of μ = 1 and events that change 1.

        Args:
            of_all: For counts so far, to return its root mean square over all ticks instead.
        """
        changed = participation.sensitivity_squared(self.inner, self.ticks, roughly=roughly)
        return float(np.sqrt(changed * (self.mean_weight if of_all else self.weight(self.ticks))))

    # ---- products, tick by tick ----------------------------------------------------------------------------------

    @cached_property
    def _steps(self) -> tuple[IntArray, IntArray]:
        """θ_i and ω_i in units of 2^−BITS."""
        thetas, omegas = (
            np.array([[int(number * (1 << BITS))] for number in numbers], dtype=object)
            for numbers in (self.thetas, self.omegas)
        )
        return thetas, omegas

    def begun(self, cells: int) -> IntArray:
        """Return the state before the first tick: the buffers, one a row."""
        return np.zeros((len(self.thetas), cells), dtype=object)

    def advanced(self, kept: IntArray, changes: IntArray) -> tuple[IntArray, IntArray]:
        """Return Cx at the next tick, rounded down, and the new state."""
        thetas, omegas = self._steps
        values: IntArray = ((omegas * kept).sum(axis=0) >> BITS) + changes
        return values, (thetas * kept >> BITS) + changes

    def reading_begun(self, cells: int) -> Floats:
        """Return what a reader keeps before the first tick: the sums of which the estimate is made."""
        return np.zeros((len(self.estimating.weights), cells))

    def read(self, kept: Floats, released: Floats) -> tuple[Floats, Floats]:
        """Return the count so far, and what a reader keeps then."""
        weights, decays = self.estimating
        kept = (1 - decays)[:, np.newaxis] * kept + released
        return weights @ kept, kept


def _weights(poles: Sequence[int], zeros: Sequence[int]) -> list[tuple[int, int]]:
    """Return Π_j (zero_j − pole_i) and Π_{j≠i} (pole_j − pole_i) for each i, of decays."""
    return [
        (prod(zero - pole for zero in zeros), prod(other - pole for other in poles if other != pole)) for pole in poles
    ]


def _floats(numbers: Sequence[Fraction]) -> Floats:
    return np.array([float(number) for number in numbers])


def _on_grid(number: Fraction) -> Fraction:
    return Fraction(round(number * (1 << BITS)), 1 << BITS)

"""Lower triangular Toeplitz matrices of few diagonals whose product with a stream needs as many of its last ticks.

Theory of operation. As in `buffered`, A = BC is the matrix of counts, y = Cx + z is released, and By is the estimate.
Here C has the first b coefficients of the square root of A and none behind: c_k = 0 for k ≥ b. So two events b ticks
apart meet nowhere in Cx; and a window that is hardly longer than the band is made of few released numbers. There this
has less noise than five buffers, by a percent or two. The last b − 1 ticks are kept, as integers.

The estimate goes back from y to x by the recursion x̂_t = y_t − Σ_{1≤k<b} c_k·x̂_(t−k), and adds up. As c falls and is
not negative, C(s) has no zero inside the unit circle (Eneström and Kakeya), so what rounding leaves does not grow.

Exactness. Coefficients are multiples of 2^−BITS, rounded down, and stand for themselves. The product with integers is
exact, and rounded down once. So two streams' releases differ from what the exact matrix would make of them by less than
one unit of the grid a cell and tick: the `drift`.

What a unit can do is in `participation`, which needs that c falls and is not negative, and for stays that it is convex.
Both are looked at exactly; the square root's first coefficients fall, but the step to 0 behind them is mostly too large
to be convex, and then a band is refused for stays.

Source:
    Kalinin and Lampert 2024 (Banded Square Root Matrix Factorization for Differentially Private Model Training).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Final, final

import numpy as np

from lapwing.errors import InvalidParameter
from lapwing.exact.arrays import IntArray
from lapwing.mechanisms.continual.buffered import BITS
from lapwing.mechanisms.continual.mixtures import UPWARDS, Floats
from lapwing.mechanisms.continual.parameters import require_ticks
from lapwing.mechanisms.continual.participation import Participation

WIDEST: Final = 64
"""Diagonals: so that what is kept of a cell stays below a kilobyte."""
LONGEST: Final = 20_000
"""Ticks, for which the error is added up term by term."""
_WIDTHS: Final = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)


@final
@dataclass(frozen=True)
class BandedToeplitz:
    """A factorisation of the matrix of counts so far, or of counts of the last `window` ticks.

    Args:
        ticks: n, from 1; window: from 1 to n, or None for all ticks so far.
        coefficients: c_0 = 1 ≥ c_1 ≥ … ≥ c_(b−1) ≥ 0; rounded down to the multiples of 2^−BITS.

    Raises:
        InvalidParameter: For others.
    """

    ticks: int
    window: int | None
    coefficients: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        require_ticks(self.ticks, self.window)
        c = tuple(Fraction(number * (1 << BITS) // 1, 1 << BITS) for number in self.coefficients)
        object.__setattr__(self, "coefficients", c)
        if not 1 <= len(c) <= WIDEST or c[0] != 1 or any(a < b for a, b in pairwise((*c, Fraction(0)))):
            raise InvalidParameter(f"coefficients must begin with 1, fall, and be at most {WIDEST}.")

    @property
    def is_plain(self) -> bool:
        """Whether no state passes from tick to tick."""
        return len(self.coefficients) == 1

    @property
    def drift(self) -> Fraction:
        """How far rounding can take a cell's value at one tick, in units of the grid."""
        return Fraction(1)

    @property
    def is_convex(self) -> bool:
        """Whether the coefficients, with the zeros behind them, fall ever less."""
        falls = [a - b for a, b in pairwise((*self.coefficients, Fraction(0), Fraction(0)))]
        return all(a >= b for a, b in pairwise(falls))

    @cached_property
    def _products(self) -> Floats:
        """Σ_{k < terms} c_k·c_(k + lag), by lag and terms."""
        c = np.array([float(number) for number in self.coefficients])
        width, found = len(c), np.zeros((len(c) + 1, len(c) + 1))
        for lag in range(width):
            found[lag, 1 : width - lag + 1] = np.cumsum(c[: width - lag] * c[lag:])
            found[lag, width - lag + 1 :] = found[lag, width - lag]
        return found

    def inner(self, earlier: Floats, later: Floats) -> Floats:
        """Return the inner products of columns i ≤ j: Σ_{k < n−j} c_k·c_(k+j−i)."""
        width = len(self.coefficients)
        lags = np.minimum(np.asarray(later) - np.asarray(earlier), width).astype(int)
        terms = np.minimum(np.maximum(self.ticks - np.asarray(later), 0), width).astype(int)
        found: Floats = self._products[lags, terms]
        return found

    def sensitivity_squared(self, participation: Participation) -> Fraction:
        """Return the largest square of what one unit changes of Cx, for events that change 1, rounded up.

        Raises:
            InvalidParameter: If what is proven of the unit's events needs a convex column, and this is none.
        """
        if participation.needs_convexity and not self.is_convex:
            raise InvalidParameter("The band ends with too large a step for stays; use another matrix.")
        return Fraction(participation.sensitivity_squared(self.inner, self.ticks) * UPWARDS)

    @cached_property
    def _weights(self) -> Floats:
        """Σ_{k < t} b_k² for each t from 0."""
        c = np.array([float(number) for number in self.coefficients])[1:]
        b = np.zeros(self.ticks + len(c))  # behind zeros for what is before the first tick
        for place in range(self.ticks):
            counted = 1.0 if self.window is None or place < self.window else 0.0
            b[len(c) + place] = counted - c @ b[place : len(c) + place][::-1]
        return np.concatenate(([0.0], np.cumsum(b[len(c) :] ** 2)))

    def weight(self, ticks: int) -> float:
        """Return Σ_k of the squared coefficients of y in the estimate at the tick with this number, from 1."""
        return float(self._weights[ticks])

    def error(self, participation: Participation, *, roughly: bool = False) -> float:
        """Return the standard deviation of the last estimate, for a loss of μ = 1 and events that change 1."""
        changed = participation.sensitivity_squared(self.inner, self.ticks, roughly=roughly)
        return float(np.sqrt(changed * self.weight(self.ticks)))

    # ---- products, tick by tick ----------------------------------------------------------------------------------

    def begun(self, cells: int) -> IntArray:
        """Return the state before the first tick: the changes of the last b − 1 ticks, the newest first."""
        return np.zeros((len(self.coefficients) - 1, cells), dtype=object)

    def advanced(self, kept: IntArray, changes: IntArray) -> tuple[IntArray, IntArray]:
        """Return Cx at the next tick, rounded down, and the new state."""
        c = np.array([[int(number * (1 << BITS))] for number in self.coefficients[1:]], dtype=object)
        values: IntArray = ((c * kept).sum(axis=0) >> BITS) + changes
        return values, np.array([changes, *kept[:-1]], dtype=object) if len(kept) else kept

    def reading_begun(self, cells: int) -> Floats:
        """Return what a reader keeps before the first tick: the last estimates of changes, and their sum."""
        return np.zeros((len(self.coefficients), cells))

    def read(self, kept: Floats, released: Floats) -> tuple[Floats, Floats]:
        """Return the count so far, and what a reader keeps then."""
        c = np.array([float(number) for number in self.coefficients[1:]])
        change = released - c @ kept[:-1]
        so_far = kept[-1] + change
        return so_far, np.concatenate((change[np.newaxis], kept[:-2], so_far[np.newaxis]))[-len(kept) :]


@lru_cache(maxsize=64)
def best_banded(ticks: int, window: int | None, participation: Participation) -> BandedToeplitz | None:
    """Return the band of the square root with the least error.

    None if there is none, or too many ticks; and for counts so far of events that may be close to each other, where
    buffers always have less.
    """
    useful = window is not None or participation.gaps
    if participation.needs_convexity or not useful or not 1 < ticks <= LONGEST:
        return None
    column, found = _square_root(ticks, window), list[BandedToeplitz]()
    for width in sorted({*_WIDTHS, *participation.gaps, window or 1} - {1}):
        if width <= min(ticks, WIDEST):
            chosen = column[:width]
            if all(a >= b for a, b in pairwise((*chosen, Fraction(0)))):
                found.append(BandedToeplitz(ticks, window, tuple(chosen)))
    return min(found, key=lambda matrix: matrix.error(participation), default=None)


def _square_root(ticks: int, window: int | None) -> Sequence[Fraction]:
    """Return the first coefficients of √((1 − s^w)/(1 − s)): of 1/√(1 − s), and behind the window, less of them."""
    size = min(ticks, WIDEST)
    root = [Fraction(1)]
    for place in range(1, size):
        root.append(root[-1] * (2 * place - 1) / (2 * place))
    if window is None:
        return root
    less, factor, place = list(root), Fraction(1), 0
    while (place := place + 1) * window < size:  # √(1 − u) = Σ_j factor_j·u^j
        factor *= Fraction(2 * place - 3, 2 * place)
        for at in range(place * window, size):
            less[at] += factor * root[at - place * window]
    return less

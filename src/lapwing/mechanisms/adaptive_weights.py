"""Weights on keys that flow from keys with more than enough to the others, and still move by at most 1.

Theory of operation. A unit with s ≤ `high` keys is adaptive: it puts a_s, about 1/s, on each. Let W_i be the sum of
this on key i and T a public level well above the threshold. What is above T is of no use there: the part r_i =
max(0, 1 − T/W_i) is taken from the key and given back to the units that it came from; unit u with s keys gets back
e_u = a_s·Σ r_i, summed over its keys, and spreads share·e_u/max(s, low) on each of its keys. At last every adaptive
unit adds c_s − a_s to each of its keys, and every other unit c_s, about 1/√s. So a key with W_i ≤ T weighs at least
the sum of the c_s, as much as if nothing were adaptive.

Claim. Let 0 ≤ a_s ≤ 1/s, a_s ≤ c_s and s·c_s² ≤ 1. Adding or removing a unit moves the weights by at most 1 in L2
distance if for all s from 1 to `high`

    a_s + share²/low ≤ 2·c_s·(1 − share·min(s/low, 1)).                                              (*)

Proof. Let v with s keys S_v be added. If it is not adaptive, s weights move by c_s. Else let x_i be what the excess
r_i·W_i = max(0, W_i − T) of key i rises by: 0 ≤ x_i ≤ a_s, and X = Σ x_i ≤ 1. No r_i falls, so every e_u rises by some
d_u ≥ 0 (that of v from 0), and Σ d_u = X since Σ e_u = Σ r_i·W_i. So what is spread on key i rises by some y_i ≥ 0 with

    Σ y_i ≤ Σ_u s_u·share·d_u/max(s_u, low) ≤ share·X,        y_i ≤ Σ_u share·d_u/max(s_u, low) ≤ share·X/low,
    Σ_{i ∈ S_v} y_i ≤ Σ_u min(s, s_u)·share·d_u/max(s_u, low) ≤ share·X·min(s/low, 1).

The weights move by c_s − x_i + y_i on S_v and by y_i elsewhere, so the sum of squares is

    Σ (c_s − x_i)² + 2·Σ_{S_v} (c_s − x_i)·y_i + Σ y_i²
        ≤ 1 − 2·c_s·X + a_s·X + 2·c_s·share·X·min(s/low, 1) + share²·X²/low,

and as X² ≤ X, (*) makes this at most 1. ∎

Integers. a_s = ⌊2^28/s⌋, c_s = ⌊2^28/√s⌋ and T are in steps of 2^−28, so all the above but r_i and what is spread is
exact. r_i is rounded down to R_i steps of 2^−56, and what u spreads on a key to b_u = ⌊Σ R_i/m_s⌋ such steps, with an
integer m_s ≥ max(s, low)/(share·a_s): a little less is spread. When v is added, nothing falls, so only what rounding
adds to a rise matters. R_i rises by less than one step more than r_i, and only on S_v, which has at most s_u ≤ m_s keys
of u; so b_u rises by less than two steps more than without rounding. Over all pairs, 2^31 at most, this is less than
2^32 steps, and 2^−24 bounds its L2 norm. At last what is spread on a key is rounded down to 2^−40 (and both parts of a
weight are capped, which only lessens a rise). On 2^31 keys at most this adds less than 2^−40 each, less than 2^−24 in
L2 norm. In all the weights move by less than 1 + 2^−23.

Source:
    The idea and its analysis are those of MaxAdaptiveDegree (Chen, Cohen-Addad, Epasto and Zadimoghaddam 2025, arXiv
    2502.08878); this is a variant of it that spreads over max(s, low) instead of one maximal degree.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, isqrt
from typing import final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.mechanisms.contributions import Contributions
from lapwing.mechanisms.parameters import positive, whole_number
from lapwing.privacy.amount_texts import short

FRACTION_BITS = 40
"""Weights are in steps of 2^−40."""

BASE_BITS = 28
"""What does not depend on other units is in steps of 2^−28."""

SENSITIVITY = 1 + Fraction(1, 1 << 23)
"""How far the weights move in L2 distance when a unit is added or removed."""

MOST_DEGREE = 100
"""An adaptive unit has at most so many keys: 100 shares below 2^56 sum to less than 2^63."""

_LEAST_SHARE = Fraction(1, 1000)
_SHARE_BITS = 56
# Sums below 2^28 over 2^31 units fit; what is capped weighs 2^20, far above any threshold.
_LIMB_BITS = 28
CAP_BITS = 48
"""Bits of the largest sum that counts; a sum above it counts as this."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Rerouting:
    """Which units are adaptive, and how what they get back is spread.

    Args:
        low: Returned weight is spread as over at least this many keys.
        high: The largest number of keys of an adaptive unit.
        share: The part of what is given back that is spread, 1/1000 or more; the three must satisfy (*).
    """

    low: int = 10
    high: int = 50
    share: Fraction = Fraction(73, 100)

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", whole_number(self.low, "low", least=1, most=MOST_DEGREE))
        object.__setattr__(self, "high", whole_number(self.high, "high", least=1, most=MOST_DEGREE))
        object.__setattr__(self, "share", positive(self.share, "share"))
        if self.share < _LEAST_SHARE:
            raise InvalidParameter(f"share is {short(self.share)}; it must be at least {_LEAST_SHARE}.")
        if not all(self._is_bounded(s) for s in range(1, self.high + 1)):
            raise InvalidParameter(
                f"A share of {short(self.share)}, spread over {self.low} keys or more from units with up to "
                f"{self.high}, could move weights by more than 1. Give a smaller share or a larger low."
            )

    def base(self, degree: int) -> int:
        """Return a_s in steps of 2^−28, what an adaptive unit with s keys puts on each at first; 0 for other units."""
        return (1 << BASE_BITS) // degree if degree <= self.high else 0

    def full(self, degree: int) -> int:
        """Return c_s, the weight that every unit with this many keys puts on each in the end, in steps of 2^−28."""
        return isqrt((1 << 2 * BASE_BITS) // degree)

    def divisor(self, degree: int) -> int:
        """Return the m_s by which an adaptive unit divides the sum of its keys' shares."""
        return ceil((max(degree, self.low) << BASE_BITS) / (self.share * self.base(degree)))

    def most_alone(self, degree: int, novel: int) -> int:
        """Bound what a unit of this degree puts on a key that only it holds, if it alone holds `novel` of its keys.

        Such a key weighs at most 1 ≤ T before spreading, so that it has no excess; the others' shares are below 1.
        """
        own = self.full(degree) << (FRACTION_BITS - BASE_BITS)
        if degree > self.high:
            return own
        return own + (((degree - novel) << _SHARE_BITS) // self.divisor(degree) >> (_SHARE_BITS - FRACTION_BITS))

    def weights(self, contributions: Contributions, level: int) -> NDArray[np.int64]:
        """Return the weight of every key, from 0 to 2^61, in steps of 2^−40.

        Args:
            level: T, in steps of 2^−28, at least 2^28.
        """
        degrees = contributions.degrees()
        most = int(degrees.max(initial=1))
        base = np.array([0, *map(self.base, range(1, most + 1))], dtype=np.int64)[degrees]
        rest = np.array([0, *map(self.full, range(1, most + 1))], dtype=np.int64)[degrees] - base
        adaptive = contributions.sums(base)
        own = np.minimum(adaptive, level) + contributions.sums(rest)
        whole = np.minimum(own, 1 << CAP_BITS) << (FRACTION_BITS - BASE_BITS)
        return whole + self._spread(contributions, degrees, _shares(adaptive, level))

    def _spread(
        self, contributions: Contributions, degrees: NDArray[np.int64], shares: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return what is spread on every key, in steps of 2^−40, added up from words of 28 bits."""
        part = contributions.where(degrees <= self.high)
        if part.keys.size == 0 or not shares.any():
            return np.zeros(len(contributions.labels), dtype=np.int64)
        starts = np.flatnonzero(np.diff(part.units, prepend=-1))
        sizes = np.diff(starts, append=part.units.size)
        divisors = np.array([1, *map(self.divisor, range(1, self.high + 1))], dtype=np.int64)[sizes]
        spread = np.repeat(np.add.reduceat(shares[part.keys], starts) // divisors, sizes)
        low = part.sums(spread & ((1 << _LIMB_BITS) - 1))
        high = part.sums(spread >> _LIMB_BITS) + (low >> _LIMB_BITS)
        low &= (1 << _LIMB_BITS) - 1
        shift = _SHARE_BITS - FRACTION_BITS
        total = (np.minimum(high, 1 << CAP_BITS) << (_LIMB_BITS - shift)) + (low >> shift)
        return np.minimum(total, 1 << (CAP_BITS + _LIMB_BITS - shift))

    def _is_bounded(self, s: int) -> bool:
        """Check (*)."""
        a, c = Fraction(self.base(s), 1 << BASE_BITS), Fraction(self.full(s), 1 << BASE_BITS)
        kept = 1 - self.share * min(Fraction(s, self.low), Fraction(1))
        return kept >= 0 and a + self.share**2 / self.low <= 2 * c * kept


def _shares(adaptive: NDArray[np.int64], level: int) -> NDArray[np.int64]:
    """Return R_i."""
    shares = np.zeros(adaptive.size, dtype=np.int64)
    heavy = np.flatnonzero(adaptive > level)
    shares[heavy] = [((weight - level) << _SHARE_BITS) // weight for weight in adaptive[heavy].tolist()]
    return shares

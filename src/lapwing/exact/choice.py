"""Choose among many with chances that decay exponentially: P(i) ∝ m_i · e^(−d_i/scale), exactly.

Theory of operation. Write w_i = m_i · e^(−(d_i − b)/scale), b the least distance of a candidate with m_i > 0. Let W_i
be integers with W_i ≥ 2^x · w_i, W_i = 0 where m_i = 0. Propose i with probability W_i / ΣW, from one uniform integer
below ΣW and the partial sums of W; accept it with probability 2^x · w_i / W_i, else propose again. A round ends with i
accepted with probability 2^x · w_i / ΣW, and rounds are independent, so what is accepted at last has the law ∝ w_i,
whatever the W. Whether U < 2^x · w_i / W_i is decided from as many bits of U as it takes. No rounding can change the
law; the W only say how often a proposal is rejected.

The hats. Tables hold floating-point numbers that are at least e^(−C·2^k/scale) for each digit C of a distance
(`decay`), those of the top digit larger than proven by a factor of 1 + 2^−40. Their product, times m_i, takes one
correctly rounded operation a digit and two for m_i, on numbers from 2^−768 to 2^514. Each loses a factor of 1 − 2^−53
at most, and all of them (no scale in use has 2^12 digits) less than the 2^−40 gained. So the floating-point hat h_i is
at least w_i. With e such that h_i < 2^e for all i and B = 62 − (number of bits of n), W_i = ⌊h_i · 2^(B − e)⌋ + 1 is
above 2^x · w_i for x = B − e, at most 2^B, and the sum of n of them fits 62 bits.

How often a proposal is rejected. h_i exceeds w_i by a relative 2^−39, or is below 2^−64 of the greatest, and rounding
to W_i adds at most 1. So ΣW ≤ 2^x · Σw · (1 + 2^−39) + 2n, and as ΣW ≥ 2^(B − 2), a proposal is rejected with a
probability of at most about n · 2^(3 − B) ≈ n² · 2^−58: 2^−18 for a million candidates.

Candidates are kept in chunks of 2^14, of which only the sum is formed beforehand; the partial sums are those of the
sums, and then of the one chunk that is hit.

Timing. One pass over all candidates does the same work whatever the distances; only the chunk that is hit is looked
at again. Choosing several without replacement passes over (parts of) the candidates again when those that are left
weigh so little that proposals are rejected, so its time depends on the distances.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import frexp, ldexp
from typing import NamedTuple, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.exact import bounds
from lapwing.exact.arrays import IntArray
from lapwing.exact.bounds import Bracket, within
from lapwing.exact.decay import NATS, Digit, digits_of
from lapwing.exact.entropy import Entropy, read_exactly
from lapwing.exact.integers import uniform_integers
from lapwing.exact.uniform import LazyUniform

_CHUNK = 1 << 14
_MOST_CANDIDATES = 1 << 30
_MOST_MULTIPLICITY_BITS = 512
# Tables of hats are precise to 2^−_HAT_BITS, far below the smallest hat that is told apart.
_HAT_BITS = 768
_GAIN_BITS = 40
# After so many rejections the hats are formed anew.
_PATIENCE = 8


def exponential_choice(
    distances: IntArray, scale: Fraction, entropy: Entropy, *, multiplicities: IntArray | None = None
) -> int:
    """Draw an index with P(i) ∝ multiplicities[i] · e^(−distances[i]/scale), exactly.

    Args:
        distances: Integers ≥ 0 of any size.
        scale: Any rational above 0 (tables are kept for the last few).
        multiplicities: Integers from 0 to 2^512 − 1, not all 0, or None for ones.
        entropy: The randomness.
    """
    return _Wheel.of(distances, scale, multiplicities).spin(entropy)


def exponential_choices(distances: IntArray, scale: Fraction, count: int, entropy: Entropy) -> NDArray[np.int64]:
    """Draw `count` different indices, one after the other, each with P(i) ∝ e^(−distances[i]/scale) among those left.

    The other arguments are those of `exponential_choice`.

    Args:
        count: From 1 to the number of candidates.

    Returns:
        The indices in the order in which they were drawn.
    """
    if not 1 <= count <= distances.size:
        raise ValueError("the count must be from 1 to the number of candidates")
    wheel = _Wheel.of(distances, scale, None)
    chosen = []
    for drawn in range(count):
        chosen.append(wheel.spin(entropy))
        if drawn + 1 < count:
            wheel.remove(chosen[-1])
    return np.array(chosen, dtype=np.int64)


class _Hats(NamedTuple):
    """Upper bounds on the decay of each digit, as floating-point numbers; the last entry of the top bounds all beyond.

    `reach` is the distance from which on the top digit is looked up as the last entry.
    """

    tables: tuple[tuple[Digit, NDArray[np.float64]], ...]
    reach: int

    def of(self, distances: IntArray) -> NDArray[np.float64]:
        """Return numbers that are at least e^(−distances/scale), for distances ≥ 0."""
        (top, table), *low = self.tables
        hats = table.take(top.indices(distances), mode="clip")
        for digit, factors in low:
            hats *= factors.take(digit.indices(distances), mode="clip")
        return hats


@lru_cache(maxsize=16)
def _hats(scale: Fraction, nats: int) -> _Hats:
    tables = []
    for digit in digits_of(scale, nats):
        uppers = [bracket.upper for bracket in digit.brackets(_HAT_BITS)]
        if digit.is_top:
            uppers = [upper + (upper >> _GAIN_BITS) + 1 for upper in uppers]
        tables.append((digit, np.array([_float_up(upper, _HAT_BITS) for upper in uppers])))
    top = tables[0][0]
    return _Hats(tuple(tables), (top.count - 1) << top.shift)


def _float_up(numerator: int, bits: int) -> float:
    """Return a float that is at least numerator/2^bits, and exceeds it by a relative 2^−49 at most."""
    drop = max(numerator.bit_length() - 50, 0)
    return ldexp(-(-numerator >> drop), drop - bits)


@final
@dataclass(slots=True, kw_only=True)
class _Wheel:
    """The candidates with their hats W; it changes as candidates are removed, and never leaves the call that made it.

    `least` has each chunk's least distance among the candidates that can be drawn (None if there is none), `totals`
    its sum of W; x is `exponent`.
    """

    distances: IntArray
    scale: Fraction
    multiplicities: IntArray | None
    present: NDArray[np.bool_] | None
    hats: _Hats
    least: list[int | None]
    base: int = 0
    exponent: int = 0
    totals: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, distances: IntArray, scale: Fraction, multiplicities: IntArray | None) -> Self:
        """Check the arguments and form the hats."""
        if scale <= 0:
            raise ValueError("the scale must be above 0")
        if distances.ndim != 1 or distances.dtype not in (np.int64, np.object_):
            raise ValueError("the distances must be one row of int64 or of Python integers")
        if not 1 <= distances.size <= _MOST_CANDIDATES:
            raise ValueError(f"there must be 1 to {_MOST_CANDIDATES} candidates")
        bits = 0 if multiplicities is None else _checked_bits(multiplicities, distances.size)
        # A multiplicity of `bits` bits at this decay weighs less than 2^−64, for e^(−45) < 2^−64.
        hats = _hats(Fraction(scale), NATS * (1 + -(-bits // 64)))
        wheel = cls(distances=distances, scale=scale, multiplicities=multiplicities, present=None, hats=hats, least=[])
        chunks = range(-(-distances.size // _CHUNK))
        wheel.least = [wheel._least(chunk) for chunk in chunks]
        if min(least for least in wheel.least if least is not None) < 0:
            raise ValueError("the distances must be at least 0")
        wheel._form()
        return wheel

    def spin(self, entropy: Entropy) -> int:
        """Propose until a proposal is accepted."""
        rejections = 0
        while True:
            index, hat = self._propose(entropy)
            if self._accepts(index, hat, entropy):
                return index
            rejections += 1
            if rejections % _PATIENCE == 0:
                self._form()

    def remove(self, index: int) -> None:
        """Take a candidate out: from now on it weighs nothing, and nothing else changes.

        The hats of the others bound what they did. If much less weight is left, their rounding makes rejections more
        frequent, until `spin` forms them anew.
        """
        if self.present is None:
            self.present = np.ones(self.distances.size, dtype=np.bool_)
        # Marked before anything is reckoned: the least distance is of those left, and the total looks at the least.
        self.present[index] = False
        chunk = index // _CHUNK
        self.least[chunk] = self._least(chunk)
        self.totals[chunk] = self._total(chunk)

    def _form(self) -> None:
        """Choose base and exponent for the candidates that are left, and form the sums of the chunks."""
        # Base, exponent, totals: each is reckoned with the one before, and W bounds the weights only if all three fit.
        self.base = min(least for least in self.least if least is not None)
        greatest = self.hats.tables[0][1][0]
        if self.multiplicities is not None:
            greatest = max(float(self._hats_of(chunk).max()) for chunk in range(len(self.least)))
        self.exponent = 62 - self.distances.size.bit_length() - frexp(float(greatest))[1]
        self.totals = [self._total(chunk) for chunk in range(len(self.least))]

    def _propose(self, entropy: Entropy) -> tuple[int, int]:
        """Draw i with probability W_i / ΣW, and return it with W_i."""
        ends = np.cumsum(np.array(self.totals, dtype=np.int64))
        place = int(uniform_integers(int(ends[-1]), 1, entropy)[0])
        chunk = int(np.searchsorted(ends, place, side="right"))
        place -= int(ends[chunk]) - self.totals[chunk]
        weights = self._weights(chunk)
        offset = int(np.searchsorted(np.cumsum(weights), place, side="right"))
        return chunk * _CHUNK + offset, int(weights[offset])

    def _accepts(self, index: int, hat: int, entropy: Entropy) -> bool:
        """Decide whether U < 2^x · w_i / W_i."""
        multiplicity = 1 if self.multiplicities is None else int(self.multiplicities[index])
        share = Fraction(multiplicity, hat) * Fraction(2) ** self.exponent
        exponent = (int(self.distances[index]) - self.base) / self.scale

        def bracket(bits: int) -> Bracket:
            return within(bounds.fixed_point(lambda x, s: (-x).exp() * s, exponent, share, bits=bits), bits)

        word = int.from_bytes(read_exactly(entropy, 8), "little")
        return LazyUniform(prefix=word, bits=64, entropy=entropy).below(bracket)

    def _total(self, chunk: int) -> int:
        """Return the sum of the W of a chunk.

        Where all hats are below 2^−64 of the greatest, each W is 1 for what can be drawn, and need not be looked up.
        This saves time when hats are formed again; the first pass looks at all, so that its time tells nothing.
        """
        least = self.least[chunk]
        if least is None:
            return 0
        if self.present is not None and least - self.base >= self.hats.reach:
            return int(np.count_nonzero(self.present[chunk * _CHUNK : (chunk + 1) * _CHUNK]))
        return int(self._weights(chunk).sum())

    def _weights(self, chunk: int) -> NDArray[np.int64]:
        """Return the W of a chunk."""
        weights = (self._hats_of(chunk) * ldexp(1.0, self.exponent)).astype(np.int64)
        # Rounded down and one more, so that W is above the hat. Then the mask, or what was removed would weigh 1.
        weights += 1
        mask = self._mask(chunk)
        return weights if mask is None else weights * mask

    def _hats_of(self, chunk: int) -> NDArray[np.float64]:
        """Return the floating-point hats of a chunk, 0 where m_i is; those that were removed have one still."""
        distances = self._slice(chunk)
        # Only one that cannot be drawn is nearer than the base; it counts as at the base, and then as nothing.
        hats = self.hats.of(np.maximum(distances - self.base, 0) if self.base else distances)
        if self.multiplicities is not None:
            hats *= self.multiplicities[chunk * _CHUNK : (chunk + 1) * _CHUNK].astype(np.float64)
        return hats

    def _least(self, chunk: int) -> int | None:
        distances, mask = self._slice(chunk), self._mask(chunk)
        distances = distances if mask is None else distances[mask]
        return int(distances.min()) if distances.size else None

    def _slice(self, chunk: int) -> IntArray:
        return self.distances[chunk * _CHUNK : (chunk + 1) * _CHUNK]

    def _mask(self, chunk: int) -> NDArray[np.bool_] | None:
        """Return which candidates of a chunk can be drawn, or None if all can."""
        part = slice(chunk * _CHUNK, (chunk + 1) * _CHUNK)
        if self.multiplicities is not None:
            return (self.multiplicities[part] > 0).astype(np.bool_)
        return None if self.present is None else self.present[part]


def _checked_bits(multiplicities: IntArray, size: int) -> int:
    """Return how many bits the greatest multiplicity has."""
    if multiplicities.shape != (size,) or multiplicities.dtype not in (np.int64, np.object_):
        raise ValueError("the multiplicities must be integers, one a candidate")
    bits = int(multiplicities.max()).bit_length()
    if multiplicities.min() < 0 or not 0 < bits <= _MOST_MULTIPLICITY_BITS:
        raise ValueError(f"the multiplicities must be from 0 to 2^{_MOST_MULTIPLICITY_BITS} − 1, and not all 0")
    return bits

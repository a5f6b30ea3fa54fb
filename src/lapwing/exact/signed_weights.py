"""The law of integers whose weights fall like a Gaussian's, w_n = e^(−n²·rate), brackets on which make a table.

Its probabilities are sums of weights over the sum of all (a theta function), for which there is no closed form. So the
sums themselves are bracketed, term by term, with a certified remainder.
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from typing import Self, final

from lapwing.exact import bounds
from lapwing.exact.bounds import Bracket, complement, within
from lapwing.exact.tables import Boundaries


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SignedWeights:
    """The law of n or −n, P ∝ w_n (`zeros` = 1), or of n or −1 − n, P ∝ w_n (`zeros` = 2): n ≥ 0, both signs alike.

    In the first, outcome 0 has one sign, and the law is the discrete Gaussian with variance parameter 1/(2·rate). In
    the second it has two. Let s_n = w_0 + … + w_(n − 1), s their limit. All weights sum to 2s − 1 or 2s, and either
    side has P(n or more) = (s − s_n)/(2s − 1) for n ≥ 1, or (s − s_n)/(2s).
    """

    rate: Fraction
    zeros: int

    def cumulative(self, outcome: int, bits: int) -> Bracket:
        """Bracket 2^bits · P(≤ outcome)."""
        sums = _Sums.at(self.rate, bits)
        if outcome >= 0:
            return complement(sums.tail(outcome + 1, self.zeros), bits)
        return sums.tail(1 - self.zeros - outcome, self.zeros)

    def boundaries(self) -> Boundaries:
        """Bracket the boundaries out to the first tail of at most 2^−64."""
        sums = _Sums.at(self.rate, 64)
        tails = [sums.tail(2 - self.zeros, self.zeros)]
        for n in count(3 - self.zeros):
            tails.append(sums.tail(n, self.zeros))
            if tails[-1].upper <= 1:
                break
        above = (complement(tail, 64) for tail in tails[self.zeros - 1 :])
        return Boundaries(first=-len(tails), brackets=[*reversed(tails), *above])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Sums:
    """Brackets on s_0, s_1, … and s, in units of 2^−(bits + 128)."""

    bits: int
    partial: tuple[Bracket, ...]
    total: Bracket

    @classmethod
    def at(cls, rate: Fraction, bits: int) -> Self:
        """Sum weights until they are below 2^−(bits + 64).

        w_(n + 1) = w_n·q_n with q_n = e^(−(2n + 1)·rate), q_(n + 1) = q_n·e^(−2·rate). Since q_n falls, the weights
        from N on sum to at most w_N/(1 − q_N). Each product adds a unit of error to those that its factors have, so
        s_n is within n³ units: the 64 spare bits swallow that.
        """
        guard = bits + 128
        one = 1 << guard
        weight, ratio, step = Bracket(one, one), _power(rate, guard), _power(2 * rate, guard)
        partial = [Bracket(0, 0)]
        while weight.upper >> 64:
            partial.append(Bracket(partial[-1].lower + weight.lower, partial[-1].upper + weight.upper))
            weight, ratio = _product(weight, ratio, guard), _product(ratio, step, guard)
        remainder = (weight.upper << guard) // (one - ratio.upper) + 1
        total = Bracket(partial[-1].lower, partial[-1].upper + remainder)
        return cls(bits=bits, partial=tuple(partial), total=total)

    def tail(self, n: int, zeros: int) -> Bracket:
        """Bracket 2^bits · (s − s_n)/(2s + zeros − 2)."""
        known = self.partial[n] if n < len(self.partial) else Bracket(self.partial[-1].lower, self.total.upper)
        least, most = max(self.total.lower - known.upper, 0), self.total.upper - known.lower
        missing = (2 - zeros) << (self.bits + 128)
        low = (least << self.bits) // (2 * self.total.upper - missing)
        high = (most << self.bits) // (2 * self.total.lower - missing) + 1
        return within(Bracket(low, high), self.bits)


def _power(rate: Fraction, bits: int) -> Bracket:
    """Bracket 2^bits · e^(−rate)."""
    return within(bounds.fixed_point(lambda x: (-x).exp(), rate, bits=bits), bits)


def _product(a: Bracket, b: Bracket, bits: int) -> Bracket:
    return Bracket(a.lower * b.lower >> bits, (a.upper * b.upper >> bits) + 1)

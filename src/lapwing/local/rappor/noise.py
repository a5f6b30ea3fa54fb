"""The noise of RAPPOR on a bit: a permanent layer, and one for each report."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import ceil, floor, log, prod, sqrt
from typing import Final, Self, final

from lapwing.errors import InvalidParameter
from lapwing.local.client import WHOLE
from lapwing.local.client import rappor as device
from lapwing.local.lists.randomizer import Rates, informative
from lapwing.local.thresholds import epsilon_of, odds_down, odds_up
from lapwing.mechanisms.parameters import whole_number
from lapwing.privacy.amounts import Number, share

_RARE: Final = 1e-9
"""An honest report is taken for a forged one with a smaller probability than this."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """The two layers of noise on a bit, as thresholds of 64-bit words.

    Args: flip: 2^64·f/2, for the permanent response. zero, one: 2^64·p and 2^64·q, for each report; 0 and 2^64 for no
        second layer.
    """

    flip: int
    zero: int = 0
    one: int = WHOLE

    def __post_init__(self) -> None:
        whole_number(self.flip, "threshold_flip", least=1, most=WHOLE // 2 - 1)
        whole_number(self.zero, "threshold_zero", most=WHOLE - 1)
        whole_number(self.one, "threshold_one", least=1, most=WHOLE)
        informative(self.rates)

    @classmethod
    def once(cls, epsilon: Number, differing: int) -> Self:
        """Return one layer with loss ε over so many differing bits: f/2 = 1/(e^(ε/differing) + 1), rounded up."""
        return cls(flip=odds_up(epsilon_of(epsilon) / differing))

    @classmethod
    def twice(cls, one: Number, forever: Number, differing: int) -> Self:
        """Return two layers with p = 1 − q: ε∞ = `forever` of the first alone, ε₁ = `one` of both; rounded down.

        With φ of the first layer and q* = 1/(1 + e^(−ε₁/differing)) of both, q = (q* − φ)/(1 − 2φ).

        Raises: InvalidParameter unless ε₁ < ε∞.
        """
        first, flip = epsilon_of(one), odds_up(epsilon_of(forever) / differing)
        both = odds_down(first / differing, Fraction(1))
        truth = floor(Fraction((both - flip) * WHOLE, WHOLE - 2 * flip))
        if first >= epsilon_of(forever) or truth <= WHOLE // 2:
            one_, all_ = float(first), float(epsilon_of(forever))
            raise InvalidParameter(f"One report cannot lose {one_:g} if all may lose {all_:g}; it must be less.")
        return cls(flip=flip, zero=WHOLE - truth, one=truth)

    @classmethod
    def published(cls, f: Number, p: Number, q: Number) -> Self:
        """Return the noise with the parameters of the paper, to 2^-64: f and p rounded up, q down, for more privacy."""
        return cls(
            flip=ceil(share(f, "f") * WHOLE / 2),
            zero=ceil(share(p, "p") * WHOLE),
            one=floor(share(q, "q") * WHOLE),
        )

    @property
    def rates(self) -> Rates:
        """q* and p*: how often a bit is reported as 1 if it is set, and if not."""
        absent, present = device.chances(self.flip, self.zero, self.one)
        return Rates(present, absent)

    @property
    def thresholds(self) -> tuple[int, int, int]:
        """All three."""
        return self.flip, self.zero, self.one

    @property
    def instantaneous(self) -> bool:
        """Whether there is a second layer."""
        return (self.zero, self.one) != (0, WHOLE)

    def weights(self, own: range, bits: int) -> range:
        """Return the numbers of set bits that an honest report has, but for a probability of 1e-9.

        By Bernstein's inequality, as in `unary`, if the pattern sets so many bits as `own` says.
        """
        present, absent = map(float, self.rates)
        means = [ones * present + (bits - ones) * absent for ones in own]
        variance = max(
            ones * present * (1 - present) + (bits - ones) * absent * (1 - absent) for ones in (own[0], own[-1])
        )
        level = log(2 / _RARE)
        reach = level / 3 + sqrt(level**2 / 9 + 2 * variance * level)
        return range(max(0, floor(min(means) - reach)), min(bits, ceil(max(means) + reach)) + 1)


def read_bits(digits: object, count: int, weights: range) -> bytes:
    """Return packed bits from hexadecimal digits.

    Raises: ValueError if no honest device sends such.
    """
    size = -(-count // 8)
    if not isinstance(digits, str) or len(digits) != 2 * size or not set(digits) <= set("0123456789abcdef"):
        raise ValueError(f"the bits of r must be {2 * size} digits 0-9, a-f")
    number = int.from_bytes(bytes.fromhex(digits), "little")
    if number >> count:
        raise ValueError("r has bits beyond the last one")
    if number.bit_count() not in weights:
        raise ValueError(f"r has {number.bit_count()} bits set; honest ones have {weights.start} to {weights.stop - 1}")
    return bytes.fromhex(digits)


def law_of_bits(pattern: int, bits: int, rates: Rates) -> dict[tuple[int, ...], Fraction]:
    """Return the probability of every row of bits in one report on a pattern."""
    ones = [rates.p if pattern >> bit & 1 else rates.q for bit in range(bits)]
    return {
        row: prod((one if shown else 1 - one for shown, one in zip(row, ones, strict=True)), start=Fraction(1))
        for row in product((0, 1), repeat=bits)
    }

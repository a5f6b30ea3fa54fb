"""The noise of RAPPOR on a bit: a permanent layer, and one for each report."""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Self, final

from lapwing.errors import InvalidParameter
from lapwing.local.client import WHOLE
from lapwing.local.client import rappor as device
from lapwing.local.frequencies.randomizer import Rates
from lapwing.local.thresholds import epsilon_of, odds_down, odds_up
from lapwing.mechanisms.parameters import whole_number
from lapwing.privacy.amounts import Number, share


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """The two layers of noise on a bit, as thresholds of 64-bit words.

    Args:
        flip: 2^64·f/2, for the permanent response; 0 for none, if the second layer hides a bit.
        zero: 2^64·p and 2^64·q, for each report; 0 and 2^64 for no second layer. If p is above q, a set bit is rather
            reported as 0. All estimates are then the same as from the opposite bits with 1 − p and 1 − q.
        one: As `zero`.
    """

    flip: int
    zero: int = 0
    one: int = WHOLE

    def __post_init__(self) -> None:
        whole_number(self.flip, "threshold_flip", most=WHOLE // 2 - 1)
        whole_number(self.zero, "threshold_zero", most=WHOLE - 1)
        whole_number(self.one, "threshold_one", least=1, most=WHOLE)
        if not self.flip and {self.zero, self.one} & {0, WHOLE}:
            raise InvalidParameter(
                "Without a first layer (f = 0) the second has to hide both bits: p, q above 0, below 1."
            )
        if self.rates.p == self.rates.q:
            raise InvalidParameter("A bit must be reported more often, or less, if it is set; p and q cannot be equal.")

    @classmethod
    def once(cls, epsilon: Number, differing: int) -> Self:
        """Return one layer with loss ε over `differing` bits: f/2 = 1/(e^(ε/differing) + 1), rounded up."""
        return cls(flip=odds_up(epsilon_of(epsilon) / differing))

    @classmethod
    def twice(cls, one: Number, forever: Number, differing: int) -> Self:
        """Return two layers with p = 1 − q: ε∞ = `forever` of only the first, ε₁ = `one` of both; rounded down.

        With φ of the first layer and q* = 1/(1 + e^(−ε₁/differing)) of both, q = (q* − φ)/(1 − 2φ).

        Raises:
            InvalidParameter: Unless ε₁ < ε∞.
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
        """Return the noise with the parameters of the paper, to 2^-64, rounded to more: f up, p and q to each other."""
        zero, one = share(p, "p") * WHOLE, share(q, "q") * WHOLE
        nearer = (ceil, floor) if zero < one else (floor, ceil)
        return cls(flip=ceil(share(f, "f") * WHOLE / 2), zero=nearer[0](zero), one=nearer[1](one))

    @property
    def rates(self) -> Rates:
        """q* and p*: how often a bit is reported as 1 if it is set, and if not."""
        absent, present = device.chances(self.flip, self.zero, self.one)
        return Rates(present, absent)

    @property
    def thresholds(self) -> tuple[int, int, int]:
        """All three."""
        return self.flip, self.zero, self.one

    def kept(self) -> int:
        """Return the threshold of the permanent layer.

        Raises:
            InvalidParameter: If there is none.
        """
        if not self.flip:
            raise InvalidParameter(
                "With f = 0 the device remembers nothing, and there is no ε for ever; see ratio_after(reports)."
            )
        return self.flip

    @property
    def instantaneous(self) -> bool:
        """Whether there is a second layer."""
        return (self.zero, self.one) != (0, WHOLE)

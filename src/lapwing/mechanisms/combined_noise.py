"""What a number errs by that is computed from several noisy numbers of the same rows."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Final, Self, final

from lapwing.errors import InvalidParameter
from lapwing.exact.arrays import IntArray
from lapwing.exact.bounds import enclose_tightly, normal_two_sided_quantile_ball, square_root_up
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.mechanisms.additive import NoiseLaw
from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.mechanisms.laplace_combinations import combination_quantile, continuous_scale
from lapwing.mechanisms.merged_gaussian import gaussians, slack_of
from lapwing.mechanisms.noisy import TAIL_BITS, Sensitivity
from lapwing.privacy.amounts import Number, probability
from lapwing.privacy.measures import PRIVACY_MEASURES, Loss

_HALF: Final = Fraction(1, 2)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CombinedNoise:
    """What Σ w_j·y_j, rounded to an integer, errs by, where each y_j is an integer with independent noise of its own.

    It is post-processing: it adds no noise. Numbers with the same `laws`, in one answer, are computed from the same
    y_j; so the covariance of two of them is Σ w_j·w'_j·Var(y_j), but for roundings.

    Proof of the half-width. Normal noise of y_j is within its slack of N(0, σ_j²), so that the sum is within
    Σ |w_j|·slack_j of N(0, Σ w_j²σ_j²). A discrete Laplace number is within ½ of one that strays no farther than a
    continuous L_j (`laplace_combinations`), so that the sum is within Σ |w_j|/2 of one that strays no farther than
    Σ w_j·L_j. Rounding adds ½, if weights are no integers. An integer that is off by at most h is off by at most ⌊h⌋.

    Args:
        weights: of each of the noisy numbers, in steps of the number that is computed per step of theirs.
        laws: of their noise: normal, or all of it discrete Laplace; at most three of the latter have a weight.
        amount: the part of the price of all of them that this number is said to take.
    """

    name: ClassVar[str] = "measured together"
    weights: tuple[Fraction, ...] = field(hash=False)  # few have the same laws, and hashing fractions takes long
    laws: tuple[NoiseLaw, ...]
    amount: Fraction = field(default=Fraction(0), hash=False)

    def __post_init__(self) -> None:
        normal = gaussians(self.used) is not None
        if not self.used or not (normal or all(isinstance(law, DiscreteLaplace) for law in self.used)):
            raise InvalidParameter("Only numbers with normal or discrete Laplace noise are combined.")

    @property
    def used(self) -> tuple[NoiseLaw, ...]:
        """The laws of those that have a weight."""
        return tuple(law for weight, law in zip(self.weights, self.laws, strict=True) if weight)

    @property
    def is_whole(self) -> bool:
        """Whether the number is an integer without rounding."""
        return all(weight.denominator == 1 for weight in self.weights)

    @property
    def alone(self) -> NoiseLaw | None:
        """The law of the noisy number that this one is, if it is just one of them."""
        return self.used[0] if max(self.weights) == sum(map(abs, self.weights)) == 1 else None

    @property
    def scale(self) -> Fraction:
        """The root of the sum of the squares of the scales, each times its weight."""
        return _scale(self.weights, self.laws)

    @property
    def standard_deviation(self) -> float:
        """Of the noise, to floating-point accuracy; where an end is rounded, it is a half as often as not."""
        pairs = zip(self.weights, self.laws, strict=True)
        squares = [(float(weight) * law.standard_deviation) ** 2 for weight, law in pairs]
        return math.sqrt(math.fsum([*squares, 0 if self.is_whole else 1 / 8]))

    def half_width(self, confidence: Number) -> int:
        """Return an h that is certified to have P(|error| ≤ h) ≥ confidence."""
        return _half_width(self.weights, self.laws, probability(confidence, "confidence"))

    @property
    def rounding(self) -> Fraction:
        """How far rounding moves the number at most."""
        return Fraction(0) if self.is_whole else _HALF

    def loss(self, sensitivity: Sensitivity, kind: str) -> Loss:
        """Return the part of the price that the number is said to take."""
        return PRIVACY_MEASURES[kind].from_amount(self.amount)

    def distance(self, sensitivity: Sensitivity) -> float:
        """Return how far one unit moves the number."""
        return math.sqrt(sensitivity.l2_squared)

    def release(self, values: IntArray, entropy: Entropy = SYSTEM) -> IntArray:
        """Refuse: what it is computed from is released."""
        raise InvalidParameter("a number that is computed from others gets no noise; this is a bug in Lapwing")

    def record(self) -> list[str]:
        """Refuse: a ledger keeps the numbers that it is computed from."""
        raise InvalidParameter("a number that is computed from others is not stored; this is a bug in Lapwing")

    @classmethod
    def from_record(cls, parameters: Sequence[str]) -> Self:
        """Refuse: a ledger keeps the numbers that it is computed from."""
        raise InvalidParameter("a number that is computed from others is not stored; this is a bug in Lapwing")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoNoise:
    """The law of a number that everybody knows: it has no error. No data decide it."""

    name: ClassVar[str] = "public"
    scale: ClassVar[Fraction] = Fraction(0)
    standard_deviation: ClassVar[float] = 0.0

    def half_width(self, confidence: Number) -> int:
        """Return 0."""
        return 0

    def loss(self, sensitivity: Sensitivity, kind: str) -> Loss:
        """Return that it costs nothing."""
        return PRIVACY_MEASURES[kind].from_amount(Fraction(0))

    def distance(self, sensitivity: Sensitivity) -> float:
        """Return that no unit moves it."""
        return 0.0

    def release(self, values: IntArray, entropy: Entropy = SYSTEM) -> IntArray:
        """Refuse: values that come from data are no public number."""
        raise InvalidParameter("a public number is not released from data; this is a bug in Lapwing")

    def record(self) -> list[str]:
        """Refuse: a ledger keeps what was measured."""
        raise InvalidParameter("a public number is not stored; this is a bug in Lapwing")

    @classmethod
    def from_record(cls, parameters: Sequence[str]) -> Self:
        """Refuse: a ledger keeps what was measured."""
        raise InvalidParameter("a public number is not stored; this is a bug in Lapwing")


@lru_cache(maxsize=1 << 10)  # of public numbers, as `strays`
def _half_width(weights: tuple[Fraction, ...], laws: tuple[NoiseLaw, ...], confidence: Fraction) -> int:
    number = CombinedNoise(weights=weights, laws=laws)
    if number.alone is not None:
        return number.alone.half_width(confidence)
    return math.floor(strays(weights, laws, 1 - confidence) + number.rounding)


@lru_cache(maxsize=1 << 10)  # of public numbers, as `strays`
def _scale(weights: tuple[Fraction, ...], laws: tuple[NoiseLaw, ...]) -> Fraction:
    pairs = zip(weights, laws, strict=True)
    return square_root_up(sum(((weight * law.scale) ** 2 for weight, law in pairs), Fraction(0)), 45)


@lru_cache(maxsize=1 << 10)  # of public numbers, and asked for several times in every question
def strays(weights: tuple[Fraction, ...], laws: tuple[NoiseLaw, ...], chance: Fraction) -> Fraction:
    """Return an h with P(|Σ w_j·X_j| > h) ≤ chance, for independent noise X_j: normal, or discrete Laplace."""
    pairs = [(abs(weight), law) for weight, law in zip(weights, laws, strict=True) if weight]
    normal = gaussians(law for _, law in pairs)
    if normal is not None:
        sizes = [weight for weight, _ in pairs]
        variance = sum(((weight * law.sigma) ** 2 for weight, law in zip(sizes, normal, strict=True)), Fraction(0))
        quantile = enclose_tightly(normal_two_sided_quantile_ball, chance, bits=TAIL_BITS).upper
        slack = sum((weight * slack_of(law) for weight, law in zip(sizes, normal, strict=True)), Fraction(0))
        return quantile * square_root_up(variance) + slack
    scales = [weight * continuous_scale(law.scale) for weight, law in pairs]
    return combination_quantile(scales, chance) + sum((weight for weight, _ in pairs), Fraction(0)) / 2


def noises_of(laws: Iterable[NoiseLaw]) -> tuple[NoiseLaw, ...]:
    """Return the noises that were drawn: of a number that follows from others, those of these."""
    return tuple(one for law in laws for one in (law.used if isinstance(law, CombinedNoise) else (law,)))

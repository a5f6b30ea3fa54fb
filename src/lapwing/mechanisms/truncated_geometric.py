"""Select keys by how many units hold them, with the largest chance that privacy allows."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor
from typing import ClassVar, NamedTuple, Self, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact import samplers
from lapwing.exact.bounds import Ball, Bracket, Enclosure, enclose_tightly, fixed_point, within
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.mechanisms import partitions
from lapwing.mechanisms.contributions import Contributions, checked
from lapwing.mechanisms.parameters import positive, rational, whole_number
from lapwing.mechanisms.partitions import MOST_KEYS, KeySelection
from lapwing.privacy.amount_texts import short
from lapwing.privacy.amounts import Number, probability
from lapwing.privacy.measures import ApproxDP

_MOST_CHANCES = 1 << 18
_MOST_EPSILON = 1 << 16
_CHANCE_BITS = 128


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TruncatedGeometric:
    """Release a key that n units hold with the chance π_n, independently for each key.

        π_0 = 0,   π_(n+1) = min(e^ε·π_n + δ, 1 − e^(−ε)·(1 − π_n − δ), 1)

    Guarantee:
        ApproxDP(epsilon, delta) when a unit with all its keys is added or removed. For max_keys = 1, the unit moves one
        count, from n to n + 1, and the other coins keep their distribution. So four inequalities between π_n and
        π_(n+1) are to be shown. Releasing: π_(n+1) ≤ e^ε·π_n + δ is the first term of the minimum. And π_n ≤ π_(n+1),
        because each term is at least π_n. Not releasing: 1 − π_n ≤ e^ε·(1 − π_(n+1)) + δ is the second term, and 1 −
        π_(n+1) ≤ 1 − π_n. For max_keys = K, π is computed with ε/K and δ/K, and K such losses add up. With `minimum` =
        k the chance is π_(n−k+1), and 0 for n < k. Neighbouring counts have equal or neighbouring chances, so the same
        inequalities serve. Optimal: for max_keys = 1 no (ε, δ)-DP selection has a larger chance p_n for any n. The same
        two inequalities hold for p, their right sides rise with p_n, and p_0 = 0; by induction p_n ≤ π_n.

    Args:
        epsilon: Above 0.
        delta: Above 0.
        max_keys: How many keys a unit keeps.
        minimum: How many units a key needs.

    Source:
        Desfontaines, Voss, Gipson and Mandayam 2022 (arXiv 2006.03684), Theorem 1.
    """

    name: ClassVar[str] = "truncated geometric"
    epsilon: Fraction
    delta: Fraction
    max_keys: int = 1
    minimum: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive(self.epsilon, "epsilon"))
        object.__setattr__(self, "delta", probability(rational(self.delta, "delta"), "delta"))
        object.__setattr__(self, "max_keys", whole_number(self.max_keys, "max_keys", least=1, most=MOST_KEYS))
        object.__setattr__(self, "minimum", whole_number(self.minimum, "minimum", least=1))
        if self.epsilon > _MOST_EPSILON:
            raise InvalidParameter(f"epsilon is {short(self.epsilon)}; it must be at most {_MOST_EPSILON}.")
        if self._chances.count > _MOST_CHANCES:
            raise InvalidParameter(
                f"At epsilon = {short(self.epsilon)} for max_keys = {self.max_keys}, a key needs "
                f"{self._chances.count} units for a sure release. Give a larger epsilon, or use fewer keys."
            )

    @classmethod
    def for_loss(cls, loss: ApproxDP, *, max_keys: int = 1, minimum: int = 1) -> Self:
        """Return the selection that spends all of an (ε, δ)."""
        if not isinstance(loss, ApproxDP):
            raise InvalidParameter(f"The loss is of type {type(loss).__name__}; give an ApproxDP(epsilon, delta).")
        return cls(epsilon=loss.epsilon, delta=loss.delta, max_keys=max_keys, minimum=minimum)

    def loss(self, kind: str) -> ApproxDP:
        """Return (epsilon, delta) for the kind approx.

        Raises:
            InvalidParameter: For other kinds.
        """
        if kind != ApproxDP.kind:
            raise partitions.refused_kind(self.name, kind, ApproxDP.kind)
        return ApproxDP(self.epsilon, self.delta)

    def release(self, contributions: Contributions, entropy: Entropy = SYSTEM) -> NDArray[np.int64]:
        """Return the codes of the released keys, ascending."""
        contributions = checked(contributions)
        kept = contributions.where(contributions.kept(self.max_keys))
        held = kept.held()
        units = kept.sums(np.ones(kept.keys.size, dtype=np.int64))[held]
        return held[self.select(units, units, entropy)]

    def weight(self, _degree: int) -> int:
        """Return what a unit adds to the count of each of its keys: 1, however many it has."""
        return 1

    def select(
        self, units: NDArray[np.int64], _weights: NDArray[np.int64], entropy: Entropy = SYSTEM
    ) -> NDArray[np.bool_]:
        """Tell which keys are released, given how many units hold each.

        The caller has bounded the units: each has at most `max_keys` keys.
        """
        indices = np.clip(units - (self.minimum - 1), 0, self._chances.count - 1)
        return samplers.coins(self._chances, indices, entropy)

    def selects_as_well_as(self, other: KeySelection) -> bool:
        """Tell whether keys were selected with no less epsilon and no less delta than by another."""
        return isinstance(other, TruncatedGeometric) and self.epsilon >= other.epsilon and self.delta >= other.delta

    def record(self) -> list[str | int]:
        """Return the parameters as stored answers keep them."""
        return [str(self.epsilon), str(self.delta), self.max_keys, self.minimum]

    @classmethod
    def from_record(cls, epsilon: str, delta: str, max_keys: int, minimum: int) -> Self:
        """Return what `record` was written of."""
        return cls(epsilon=Fraction(epsilon), delta=Fraction(delta), max_keys=max_keys, minimum=minimum)

    @property
    def noise(self) -> None:
        """None: it flips coins."""
        return

    def units_needed(self, confidence: Number) -> tuple[int, int]:
        """Return how many units make a key's release certain to `confidence`, however many keys each has: twice."""
        count = self.count_for(confidence)
        return count, count

    def chance(self, units: int) -> Enclosure:
        """Bound the chance that a key is released if this many units hold it."""
        index = min(max(0, whole_number(units, "units") - self.minimum + 1), self._chances.count - 1)
        lower, upper = self._chances.bracket(index, _CHANCE_BITS)
        return Enclosure(Fraction(lower, 1 << _CHANCE_BITS), Fraction(upper, 1 << _CHANCE_BITS))

    def count_for(self, confidence: Number) -> int:
        """Return how many units make a key's release certain to `confidence`."""
        return partitions.count_for(confidence, lambda units: self.chance(units).lower)

    @property
    def _chances(self) -> "GeometricChances":
        return GeometricChances(epsilon=self.epsilon / self.max_keys, delta=self.delta / self.max_keys)


class _Turns(NamedTuple):
    """The last n whose chance comes from the first term of the minimum, and the first n whose chance is 1."""

    rising: int
    sure: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GeometricChances:
    """The chances π_0, π_1, … up to the first that is 1, as brackets of any precision.

    While π_n ≤ π* = (1 − δ)/(e^ε + 1) the first term of the minimum is the least, so with N = 1 + max {n : π_n ≤ π*}

        π_n = δ·(e^(nε) − 1)/(e^ε − 1)                                            for n ≤ N.

    From there on it is the second (the chances rise, so they stay above π*): 1 − π_(n+1) = e^(−ε)·(1 − π_n − δ), hence

        1 − π_(N+m) = e^(−mε)·(1 − π_N) − δ·(1 − e^(−mε))/(e^ε − 1)               while that is above 0; then π = 1.

    N and the first n with π_n = 1 are found by comparing logarithms with whole numbers, at growing precision. That
    ends: with x = e^ε, equality would mean δ(x^n − 1)(x + 1) = (1 − δ)(x − 1) for an n ≥ 1, or x − 1 + 2δ =
    δ(x^m + x^N) for m, N ≥ 1. Both are polynomial equations with rational coefficients, which the transcendental x
    (Lindemann 1882) does not solve unless they hold identically; the first never does, the second only for m = N = 1,
    δ = ½. For δ ≥ ½, π_1 = δ and 1 − π_1 − δ ≤ 0, so π_2 = 1.
    """

    epsilon: Fraction
    delta: Fraction

    @property
    def count(self) -> int:
        """How many chances there are."""
        return _turns(self.epsilon, self.delta).sure + 1

    def bracket(self, index: int, bits: int) -> Bracket:
        """Bracket 2^bits · π_index."""
        rising, sure = _turns(self.epsilon, self.delta)
        if index == 0:
            return Bracket(0, 0)
        if index >= sure:
            return Bracket(1 << bits, 1 << bits)
        if index <= rising:
            return within(fixed_point(_rising_ball, Fraction(index), self.epsilon, self.delta, bits=bits), bits)
        return within(
            fixed_point(_falling_ball, Fraction(rising), Fraction(index - rising), self.epsilon, self.delta, bits=bits),
            bits,
        )

    def brackets(self, bits: int) -> list[Bracket]:
        """Bracket 2^bits · π_n for all n, each from the one before: there may be a million.

        With x = e^ε in [x₀, x₁], π_(n+1) = x·π_n + δ up to N, and after it 1 − π_(n+1) = (1 − π_n − δ)/x, in whole
        multiples of 2^−w, lower ends rounded down and upper ends up. The first step lets the width grow to x times as
        much and by at most 3·2^−w, so that π_n is known to within 3·(1 + x + … + x^(n−1)) = 3·π_n/δ of them; the second
        shrinks it. So with w = bits + 10 + log₂(1/δ) and more for a sum over all n, a bracket is 1 or 2 wide.
        """
        rising, sure = _turns(self.epsilon, self.delta)
        if self.epsilon > 1:  # these are few
            return [self.bracket(index, bits) for index in range(sure + 1)]
        more = 10 + sure.bit_length() + (1 / self.delta).__ceil__().bit_length()
        one = 1 << bits + more
        up, down = (fixed_point(Ball.exp, sign * self.epsilon, bits=bits + more) for sign in (1, -1))
        step, step_up = floor(self.delta * one), ceil(self.delta * one)
        low, high, ends = 0, 0, [(0, 0)]
        for _ in range(rising):
            low, high = (low * up.lower >> bits + more) + step, -(-high * up.upper >> bits + more) + step_up
            ends.append((low, high))
        least, most = one - high, one - low
        for _ in range(sure - rising - 1):
            least = max(0, (least - step_up) * down.lower >> bits + more)
            most = max(0, -((step - most) * down.upper >> bits + more))
            ends.append((one - most, one - least))
        shown = map(Bracket._make, ((low >> more, -(-min(high, one) >> more)) for low, high in ends))
        return [*shown, Bracket(1 << bits, 1 << bits)]


@lru_cache(maxsize=64)
def _turns(epsilon: Fraction, delta: Fraction) -> _Turns:
    if delta >= Fraction(1, 2):
        return _Turns(1, 2)
    rising = 1 + floor(_between_whole_numbers(_last_rising_ball, epsilon, delta))
    return _Turns(rising, rising + ceil(_between_whole_numbers(_first_sure_ball, Fraction(rising), epsilon, delta)))


def _between_whole_numbers(formula: Callable[..., Ball], *arguments: Fraction) -> Fraction:
    """Return a number that lies between the same two neighbouring whole numbers as the value, which is not whole."""
    bits = 64
    while True:
        lower, upper = enclose_tightly(formula, *arguments, bits=bits)
        if floor(lower) == floor(upper) and lower.denominator != 1 and upper.denominator != 1:
            return lower
        bits *= 2


def _rising_ball(n: Ball, epsilon: Ball, delta: Ball) -> Ball:
    return delta * (n * epsilon).expm1() / epsilon.expm1()


def _falling_ball(rising: Ball, m: Ball, epsilon: Ball, delta: Ball) -> Ball:
    left = (-m * epsilon).exp() * (1 - _rising_ball(rising, epsilon, delta))
    return 1 - left - delta * (-m * epsilon).expm1() / epsilon.expm1()


def _last_rising_ball(epsilon: Ball, delta: Ball) -> Ball:
    # π_n ≤ π* for n ≤ ln(1 + π*·(e^ε − 1)/δ)/ε
    return ((1 - delta) / (epsilon.exp() + 1) * epsilon.expm1() / delta).log1p() / epsilon


def _first_sure_ball(rising: Ball, epsilon: Ball, delta: Ball) -> Ball:
    # 1 − π_(N+m) ≤ 0 for m ≥ ln(1 + (1 − π_N)·(e^ε − 1)/δ)/ε
    return ((1 - _rising_ball(rising, epsilon, delta)) * epsilon.expm1() / delta).log1p() / epsilon

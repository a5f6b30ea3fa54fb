"""The measures that allow for a failure: with probability δ anything may be shown, and otherwise a loss holds.

Precisely, (loss, δ) says of each pair of neighbours that the output's laws are (1 − δ)·P⁰ + δ·P¹ and
(1 − δ)·Q⁰ + δ·Q¹, where the pair P⁰, Q⁰ has the loss and P¹, Q¹ are any laws. Then

- if P⁰, Q⁰ is (ε, δ₀)-DP, the whole is (ε, δ + (1 − δ)·δ₀)-DP: P(S) ≤ δ + (1 − δ)·(e^ε·Q⁰(S) + δ₀), and (1 − δ)·Q⁰ ≤ Q;
- two of them together, the second chosen in the light of the first or not, are (sum of the losses, δ₁ + δ₂):
  with probability (1 − δ₁)(1 − δ₂) ≥ 1 − δ₁ − δ₂ both are of the first kind (`filters` has this for any number).

For ε alone this is (ε, δ)-differential privacy itself: each of its pairs is a post-processing of the pair that shows
with probability δ which law it is, and else randomized response (Kairouz, Oh and Viswanath 2015; Murtagh and Vadhan
2016). For μ it is to have a trade-off function of at least (1 − δ)·G_μ(x/(1 − δ)) (`groups`). For ρ it is
Bun and Steinke's.

Comparison is by both numbers, so that two losses may be in neither order. A δ of 1 promises nothing.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, NoReturn, Self, final

from lapwing.errors import InvalidParameter
from lapwing.exact.bounds import float_up
from lapwing.privacy import conversions
from lapwing.privacy.additive import GaussianDP, Loss, PureDP, ZeroConcentratedDP
from lapwing.privacy.amounts import Number, count, grid_up, literal, non_negative, share, short
from lapwing.privacy.groups import gaussian_group_delta_up, group_delta_up


class _Approximate(ABC):
    """What losses with a δ have in common; `exact_part` is the loss that holds with probability 1 − δ."""

    __slots__ = ()
    kind: ClassVar[str]
    delta: Fraction

    @property
    @abstractmethod
    def exact_part(self) -> Loss:
        """The loss that holds but for δ."""

    @abstractmethod
    def _with(self, part: Loss, delta: Fraction) -> Self:
        """Return the loss of a part of the same measure and a δ, which is cut to 1."""

    def rounded_up(self) -> Self:
        """Return the loss with both numbers rounded up to GRID, as an account charges it."""
        return self._with(self.exact_part.rounded_up(), grid_up(self.delta))

    def nothing(self) -> Self:
        """Return no loss, in this measure."""
        return self._with(self.exact_part.nothing(), Fraction(0))

    def beyond(self, other: Self) -> Self:
        """Return what of each number is beyond the other loss's; nothing if it is within it."""
        self._same(other)
        return self._with(self.exact_part.beyond(other.exact_part), max(Fraction(0), self.delta - other.delta))

    def times_in(self, room: Self) -> int | None:
        """Return how many times this loss fits into a room; None for any number, if it is nothing."""
        self._same(room)
        times = self.exact_part.times_in(room.exact_part)
        if not self.delta:
            return times
        by_delta = room.delta // self.delta
        return by_delta if times is None else min(times, by_delta)

    def to_delta(self, *, epsilon: Number) -> float:
        """Return the δ of this loss at ε, rounded up."""
        return float_up(
            min(Fraction(1), self.delta + (1 - self.delta) * Fraction(self.exact_part.to_delta(epsilon=epsilon)))
        )

    def __add__(self, other: Self) -> Self:
        """Return the loss of both together, each chosen in the light of the other's answer or not."""
        self._same(other)
        return self._with(self.exact_part + other.exact_part, self.delta + other.delta)

    def __mul__(self, times: int) -> Self:
        return self._with(count(times, least=0) * self.exact_part, times * self.delta)

    __rmul__ = __mul__

    def __le__(self, other: Self) -> bool:
        self._same(other)
        return self.exact_part <= other.exact_part and self.delta <= other.delta

    def __ge__(self, other: Self) -> bool:
        self._same(other)
        return self.exact_part >= other.exact_part and self.delta >= other.delta

    def _same(self, other: object) -> None:
        if not isinstance(other, type(self)):
            what = getattr(other, "kind", type(other).__name__)
            raise InvalidParameter(
                f"Losses of kind {self.kind} and {what} do not add or compare; state both in one measure."
            )

    def _left(self, delta: Number, *, strictly: bool = False) -> Fraction:
        """Return the δ₀ that is left for the exact part at a δ in all; above 0 if strictly."""
        left = (share(delta, "delta") - self.delta) / (1 - self.delta) if self.delta < 1 else Fraction(-1)
        if left < 0 or (strictly and left == 0):
            raise InvalidParameter(f"delta is {delta}; {self} implies no ε for a delta so near its own: ask for more.")
        return left


@final
@dataclass(frozen=True, slots=True, init=False, repr=False)
class ApproxDP(_Approximate):
    """(ε, δ)-differential privacy: no event is more than e^ε times as likely, plus δ, on a neighbouring data set.

    Args: epsilon: ≥ 0; delta: from 0 to 1.
    Source: Dwork, Kenthapadi, McSherry, Mironov and Naor 2006.
    """

    kind: ClassVar[str] = "approx"
    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Number, delta: Number) -> None:
        object.__setattr__(self, "epsilon", non_negative(epsilon, "epsilon"))
        object.__setattr__(self, "delta", share(delta, "delta", most=1))

    @property
    def exact_part(self) -> PureDP:
        """The ε that holds but for δ."""
        return PureDP(self.epsilon)

    def _with(self, part: Loss, delta: Fraction) -> Self:
        return type(self)(part.amount, min(Fraction(1), delta))

    def for_group(self, size: int) -> Self:
        """Return the loss towards `size` units together: (size·ε, δ·(e^(size·ε) − 1)/(e^ε − 1)), δ rounded up."""
        delta_up = group_delta_up(self.epsilon, self.delta, count(size))
        return type(self)(size * self.epsilon, delta_up)

    def to_epsilon(self, *, delta: Number) -> float:
        """Return ε, if `delta` is at least the loss's own δ.

        Raises: InvalidParameter for a smaller delta, for which this loss implies nothing.
        """
        return self.exact_part.to_epsilon(delta=self._left(delta))

    def to_kind(self, kind: str) -> "ApproximateLoss":
        """Return what this loss implies in approx_gdp or approx_zcdp: what its ε implies, with the same δ.

        Raises: InvalidParameter for any other kind.
        """
        return approximate(self.exact_part, self.delta, kind)

    def __repr__(self) -> str:
        return f"ApproxDP({literal(self.epsilon)}, {literal(self.delta)})"

    def __str__(self) -> str:
        return f"(ε = {short(self.epsilon)}, δ = {short(self.delta)})"


@final
@dataclass(frozen=True, slots=True, init=False, repr=False)
class ApproximateGaussianDP(_Approximate):
    """(μ, δ): with probability 1 − δ the output is that of a μ-GDP mechanism, and otherwise it may be anything.

    So the mechanism is (ε, δ + (1 − δ)·δ_μ(ε))-DP for every ε, and two of them are (√(μ₁² + μ₂²), δ₁ + δ₂) together.

    Args: mu: ≥ 0; delta: from 0 to 1.
    """

    kind: ClassVar[str] = "approx_gdp"
    gaussian: GaussianDP
    delta: Fraction

    def __init__(self, mu: Number, delta: Number) -> None:
        object.__setattr__(self, "gaussian", GaussianDP(mu))
        object.__setattr__(self, "delta", share(delta, "delta", most=1))

    @classmethod
    def of(cls, gaussian: GaussianDP, delta: Number) -> Self:
        """Return the loss of a Gaussian part and a δ."""
        loss = object.__new__(cls)
        object.__setattr__(loss, "gaussian", gaussian)
        object.__setattr__(loss, "delta", share(delta, "delta", most=1))
        return loss

    @property
    def exact_part(self) -> GaussianDP:
        """The μ that holds but for δ."""
        return self.gaussian

    def _with(self, part: Loss, delta: Fraction) -> Self:
        return self.of(GaussianDP.from_amount(part.amount), min(Fraction(1), delta))

    def for_group(self, size: int) -> Self:
        """Return the loss towards `size` units together: (size·μ, δ'), by composing trade-off functions (`groups`).

        δ' is far above size·δ, and has to be: two units of (0.5, 1e-6) are (1, 1.153e-5).
        """
        delta_up = gaussian_group_delta_up(self.gaussian.mu_squared, self.delta, count(size))
        return self.of(self.gaussian.for_group(size), delta_up)

    def to_epsilon(self, *, delta: Number) -> float:
        """Return an ε of this loss at δ, rounded up.

        Raises: InvalidParameter unless delta is above the loss's own.
        """
        return self.gaussian.to_epsilon(delta=self._left(delta, strictly=True))

    def to_kind(self, kind: str) -> "ApproximateLoss":
        """Return what this loss implies in approx_zcdp: ρ = μ²/2 with the same δ.

        Raises: InvalidParameter for any other kind.
        """
        return approximate(self.gaussian, self.delta, kind)

    def __repr__(self) -> str:
        return f"ApproximateGaussianDP.of({self.gaussian!r}, {literal(self.delta)})"

    def __str__(self) -> str:
        return f"({self.gaussian}, δ = {short(self.delta)})"


@final
@dataclass(frozen=True, slots=True, init=False, repr=False)
class ApproximateZeroConcentratedDP(_Approximate):
    """(ρ, δ): with probability 1 − δ the output is that of a ρ-zCDP mechanism, and otherwise it may be anything.

    Also written δ-approximate ρ-zCDP. Two of them are (ρ₁ + ρ₂, δ₁ + δ₂) together.

    Args: rho: ≥ 0; delta: from 0 to 1.
    Source: Bun and Steinke 2016, Definition 8.1; Whitehouse, Ramdas, Rogers and Wu 2023, under full adaptivity.
    """

    kind: ClassVar[str] = "approx_zcdp"
    rho: Fraction
    delta: Fraction

    def __init__(self, rho: Number, delta: Number) -> None:
        object.__setattr__(self, "rho", non_negative(rho, "rho"))
        object.__setattr__(self, "delta", share(delta, "delta", most=1))

    @property
    def exact_part(self) -> ZeroConcentratedDP:
        """The ρ that holds but for δ."""
        return ZeroConcentratedDP(self.rho)

    def _with(self, part: Loss, delta: Fraction) -> Self:
        return type(self)(part.amount, min(Fraction(1), delta))

    def for_group(self, size: int) -> NoReturn:
        """Refuse: no bound is known that keeps the form.

        Raises: InvalidParameter, always.
        """
        raise InvalidParameter(
            f"{self} towards one unit implies no (ρ, δ) towards {count(size)} (what happens with probability δ is "
            "amplified by as much as ρ's tail allows); state the loss as ApproxDP or ApproximateGaussianDP."
        )

    def to_epsilon(self, *, delta: Number) -> float:
        """Return an ε of this loss at δ, rounded up.

        Raises: InvalidParameter unless delta is above the loss's own.
        """
        return self.exact_part.to_epsilon(delta=self._left(delta, strictly=True))

    def to_kind(self, kind: str) -> "ApproximateLoss":
        """Return this loss if that is the kind, and refuse any other.

        Raises: InvalidParameter for any other kind.
        """
        return approximate(self.exact_part, self.delta, kind)

    def __repr__(self) -> str:
        return f"ApproximateZeroConcentratedDP({literal(self.rho)}, {literal(self.delta)})"

    def __str__(self) -> str:
        return f"({self.exact_part}, δ = {short(self.delta)})"


ApproximateLoss = ApproxDP | ApproximateGaussianDP | ApproximateZeroConcentratedDP
"""The losses that allow for a failure."""

_EXACT_KINDS = {"approx": "pure", "approx_gdp": "gdp", "approx_zcdp": "zcdp"}


def approximate(loss: Loss, delta: Number, kind: str) -> ApproximateLoss:
    """Return the loss in measure `kind` of what has `loss` but for δ: its exact part's conversion, with the same δ.

    Args: loss: that holds with probability 1 − delta; delta: from 0 to 1; kind: approx, approx_gdp or approx_zcdp.
    Raises: InvalidParameter if the exact part does not convert; the message says why.
    """
    if kind not in _EXACT_KINDS:
        raise InvalidParameter(f"The measure is {kind!r}; it must be one of {', '.join(_EXACT_KINDS)}.")
    amount = conversions.amount_in(_EXACT_KINDS[kind], loss.kind, loss.amount)
    if kind == ApproxDP.kind:
        return ApproxDP(amount, delta)
    if kind == ApproximateGaussianDP.kind:
        return ApproximateGaussianDP.of(GaussianDP.from_amount(amount), delta)
    return ApproximateZeroConcentratedDP(amount, delta)

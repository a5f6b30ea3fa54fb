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
from typing import ClassVar, Generic, NoReturn, Self, TypeVar, final

from lapwing.errors import InvalidParameter
from lapwing.exact.floats import float_up
from lapwing.privacy import conversions
from lapwing.privacy.additive import GaussianDP, Loss, PureDP, ZeroConcentratedDP
from lapwing.privacy.additive_loss import AdditiveLoss
from lapwing.privacy.amount_texts import literal, short
from lapwing.privacy.amounts import Number, count, grid_up, share
from lapwing.privacy.groups import gaussian_group_delta_up, group_delta_up

Exact = TypeVar("Exact", PureDP, GaussianDP, ZeroConcentratedDP)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class LossWithDelta(ABC, Generic[Exact]):
    """A loss that holds with probability 1 − δ: its `exact_part`; and its `delta`. Both add up."""

    kind: ClassVar[str]
    exact_part: Exact
    delta: Fraction

    @classmethod
    def of(cls, exact_part: Exact, delta: Number) -> Self:
        """Return the loss of an exact part and a δ."""
        loss = object.__new__(cls)
        object.__setattr__(loss, "exact_part", exact_part)
        object.__setattr__(loss, "delta", share(delta, "delta", most=1))
        return loss

    @abstractmethod
    def for_group(self, size: int) -> Self:
        """Return the loss towards `size` privacy units together."""

    def to_epsilon(self, *, delta: Number) -> float:
        """Return an ε of this loss at δ, rounded up.

        Raises:
            InvalidParameter: Unless delta is above the loss's own.
        """
        return self.exact_part.to_epsilon(delta=self._left(delta, strictly=True))

    def to_delta(self, *, epsilon: Number) -> float:
        """Return the δ of this loss at ε, rounded up."""
        return float_up(
            min(Fraction(1), self.delta + (1 - self.delta) * Fraction(self.exact_part.to_delta(epsilon=epsilon)))
        )

    def to_kind(self, kind: str) -> "ApproximateLoss":
        """Return what this loss implies in another measure with a δ: what its exact part implies, with the same δ.

        Raises:
            InvalidParameter: If no such conversion exists.
        """
        return approximate(self.exact_part, self.delta, kind)

    def rounded_up(self) -> Self:
        """Return the loss with both numbers rounded up to GRID; an account charges this."""
        return self._cut(self.exact_part.rounded_up(), grid_up(self.delta))

    def nothing(self) -> Self:
        """Return no loss, in this measure."""
        return self.of(self.exact_part.nothing(), 0)

    def beyond(self, other: Self) -> Self:
        """Return what of each number is beyond the other loss's; nothing if it is within it."""
        self._require_same(other)
        return self.of(self.exact_part.beyond(other.exact_part), max(Fraction(0), self.delta - other.delta))

    def times_in(self, room: Self) -> int | None:
        """Return how many times this loss fits into a room; None for any number, if it is nothing."""
        self._require_same(room)
        times = self.exact_part.times_in(room.exact_part)
        if not self.delta:
            return times
        by_delta = room.delta // self.delta
        return by_delta if times is None else min(times, by_delta)

    def __add__(self, other: Self) -> Self:
        """Return the loss of both together, each chosen in the light of the other's answer or not."""
        self._require_same(other)
        return self._cut(self.exact_part + other.exact_part, self.delta + other.delta)

    def __mul__(self, times: int) -> Self:
        return self._cut(count(times, least=0) * self.exact_part, times * self.delta)

    __rmul__ = __mul__

    def __le__(self, other: Self) -> bool:
        self._require_same(other)
        return self.exact_part <= other.exact_part and self.delta <= other.delta

    def __ge__(self, other: Self) -> bool:
        self._require_same(other)
        return self.exact_part >= other.exact_part and self.delta >= other.delta

    def _cut(self, exact_part: Exact, delta: Fraction) -> Self:
        return self.of(exact_part, min(Fraction(1), delta))

    def _require_same(self, other: object) -> None:
        if not isinstance(other, type(self)):
            what = other.kind if isinstance(other, AdditiveLoss | LossWithDelta) else type(other).__name__
            raise InvalidParameter(
                f"Losses of kind {self.kind} and {what} do not add or compare; state both in one measure."
            )

    def _left(self, delta: Number, *, strictly: bool = False) -> Fraction:
        """Return the δ₀ that is left for the exact part at a δ in all; above 0 if strictly."""
        left = (share(delta, "delta") - self.delta) / (1 - self.delta) if self.delta < 1 else Fraction(-1)
        if left < 0 or (strictly and left == 0):
            raise InvalidParameter(f"delta is {delta}; {self} implies no ε for a delta so near its own: ask for more.")
        return left

    def __str__(self) -> str:
        return f"({self.exact_part}, δ = {short(self.delta)})"


@final
@dataclass(frozen=True, slots=True, init=False, repr=False)
class ApproxDP(LossWithDelta[PureDP]):
    """(ε, δ)-differential privacy: no event is more than e^ε times as likely, plus δ, on a neighbouring data set.

    Args:
        epsilon: ≥ 0.
        delta: From 0 to 1.

    Source:
        Dwork, Kenthapadi, McSherry, Mironov and Naor 2006.
    """

    kind: ClassVar[str] = "approx"

    def __init__(self, epsilon: Number, delta: Number) -> None:
        object.__setattr__(self, "exact_part", PureDP(epsilon))
        object.__setattr__(self, "delta", share(delta, "delta", most=1))

    @property
    def epsilon(self) -> Fraction:
        """The ε that holds but for δ."""
        return self.exact_part.amount

    def for_group(self, size: int) -> Self:
        """Return the loss towards `size` units together: (size·ε, δ·(e^(size·ε) − 1)/(e^ε − 1)), δ rounded up."""
        return self.of(self.exact_part.for_group(size), group_delta_up(self.epsilon, self.delta, count(size)))

    def to_epsilon(self, *, delta: Number) -> float:
        """Return ε, if `delta` is at least the loss's own δ.

        Raises:
            InvalidParameter: For a smaller delta, for which this loss implies nothing.
        """
        return self.exact_part.to_epsilon(delta=self._left(delta))

    def __repr__(self) -> str:
        return f"ApproxDP({literal(self.epsilon)}, {literal(self.delta)})"


@final
@dataclass(frozen=True, slots=True, init=False, repr=False)
class ApproximateGaussianDP(LossWithDelta[GaussianDP]):
    """(μ, δ): with probability 1 − δ the output is the output of a μ-GDP mechanism, and otherwise it may be anything.

    So the mechanism is (ε, δ + (1 − δ)·δ_μ(ε))-DP for every ε, and two of them are (√(μ₁² + μ₂²), δ₁ + δ₂) together.

    Args:
        mu: ≥ 0.
        delta: From 0 to 1.
    """

    kind: ClassVar[str] = "approx_gdp"

    def __init__(self, mu: Number, delta: Number) -> None:
        object.__setattr__(self, "exact_part", GaussianDP(mu))
        object.__setattr__(self, "delta", share(delta, "delta", most=1))

    @property
    def gaussian(self) -> GaussianDP:
        """The μ that holds but for δ."""
        return self.exact_part

    def for_group(self, size: int) -> Self:
        """Return the loss towards `size` units together: (size·μ, δ'), by composing trade-off functions (`groups`).

        δ' is far above size·δ, and has to be: two units of (0.5, 1e-6) are (1, 1.153e-5).
        """
        delta_up = gaussian_group_delta_up(self.exact_part.amount, self.delta, count(size))
        return self.of(self.exact_part.for_group(size), delta_up)

    def __repr__(self) -> str:
        return f"ApproximateGaussianDP.of({self.exact_part!r}, {literal(self.delta)})"


@final
@dataclass(frozen=True, slots=True, init=False, repr=False)
class ApproximateZeroConcentratedDP(LossWithDelta[ZeroConcentratedDP]):
    """(ρ, δ): with probability 1 − δ the output is the output of a ρ-zCDP mechanism, and otherwise it may be anything.

    Also written δ-approximate ρ-zCDP. Two of them are (ρ₁ + ρ₂, δ₁ + δ₂) together.

    Args:
        rho: ≥ 0.
        delta: From 0 to 1.

    Source:
        Bun and Steinke 2016, Definition 8.1; Whitehouse, Ramdas, Rogers and Wu 2023, under full adaptivity.
    """

    kind: ClassVar[str] = "approx_zcdp"

    def __init__(self, rho: Number, delta: Number) -> None:
        object.__setattr__(self, "exact_part", ZeroConcentratedDP(rho))
        object.__setattr__(self, "delta", share(delta, "delta", most=1))

    @property
    def rho(self) -> Fraction:
        """The ρ that holds but for δ."""
        return self.exact_part.amount

    def for_group(self, size: int) -> NoReturn:
        """Refuse: no bound is known that keeps the form.

        Raises:
            InvalidParameter: Always.
        """
        raise InvalidParameter(
            f"{self} towards one unit implies no (ρ, δ) towards {count(size)}, because ρ's tail amplifies the event of "
            "probability δ. State the loss as ApproxDP or ApproximateGaussianDP."
        )

    def __repr__(self) -> str:
        return f"ApproximateZeroConcentratedDP({literal(self.rho)}, {literal(self.delta)})"


ApproximateLoss = ApproxDP | ApproximateGaussianDP | ApproximateZeroConcentratedDP
"""The losses that allow for a failure."""

_EXACT_KINDS = {"approx": "pure", "approx_gdp": "gdp", "approx_zcdp": "zcdp"}


def approximate(loss: Loss, delta: Number, kind: str) -> ApproximateLoss:
    """Return the loss in measure `kind` of what has `loss` but for δ: its exact part's conversion, with the same δ.

    Args:
        loss: That holds with probability 1 − delta.
        delta: From 0 to 1.
        kind: Approx, approx_gdp or approx_zcdp.

    Raises:
        InvalidParameter: If the exact part does not convert; the message says why.
    """
    if kind not in _EXACT_KINDS:
        raise InvalidParameter(f"The measure is {kind!r}; it must be one of {', '.join(_EXACT_KINDS)}.")
    amount = conversions.amount_in(_EXACT_KINDS[kind], loss.kind, loss.amount)
    if kind == ApproxDP.kind:
        return ApproxDP(amount, delta)
    if kind == ApproximateGaussianDP.kind:
        return ApproximateGaussianDP.of(GaussianDP.from_amount(amount), delta)
    return ApproximateZeroConcentratedDP(amount, delta)

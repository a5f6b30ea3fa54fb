"""Measures of privacy loss: what a mechanism's output can reveal about one privacy unit.

Each measure bounds how far apart the output's laws on two neighbouring data sets can be. A loss is one value of a
measure. Its state is an exact rational; what adds up under composition is its `amount`: ε for pure differential
privacy, μ² for Gaussian, ρ for zero-concentrated. Statements in another measure are certified upper bounds.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self, final

from lapwing.errors import InvalidParameter
from lapwing.exact.bounds import float_up, square_root_up
from lapwing.privacy import conversions
from lapwing.privacy.amounts import GRID, Number, exact, grid_up, non_negative, probability, read, short, written

__all__ = [
    "GRID",
    "MEASURES",
    "ApproxDP",
    "ApproximateGaussianDP",
    "GaussianDP",
    "Loss",
    "Number",
    "PureDP",
    "ZeroConcentratedDP",
    "exact",
    "from_record",
]


class _Additive(ABC):
    """What the losses that a ledger can hold have in common: amounts add up, and compare within one measure."""

    __slots__ = ()
    kind: ClassVar[str]

    @property
    @abstractmethod
    def amount(self) -> Fraction:
        """What adds up under composition."""

    @classmethod
    @abstractmethod
    def from_amount(cls, amount: Number) -> Self:
        """Return the loss with this amount, a number ≥ 0."""

    @abstractmethod
    def for_group(self, size: int) -> Self:
        """Return the loss towards `size` privacy units together."""

    @abstractmethod
    def to_delta(self, *, epsilon: Number) -> float:
        """Return a δ for which this loss implies (epsilon, δ)-DP, rounded up."""

    @abstractmethod
    def to_epsilon(self, *, delta: Number) -> float:
        """Return an ε for which this loss implies (ε, delta)-DP, rounded up."""

    def rounded_up(self) -> Self:
        """Return the loss with its amount rounded up to GRID, as a ledger charges it."""
        return self.from_amount(grid_up(self.amount))

    def to_kind(self, kind: str) -> "Loss":
        """Return the loss that this one implies in another measure.

        Raises: InvalidParameter if no such conversion exists; the message says why.
        """
        return _measure(kind).from_amount(conversions.amount_in(kind, self.kind, self.amount))

    def to_record(self) -> dict[str, str]:
        """Return the loss as text, exactly; `from_record` reads it."""
        return {"measure": self.kind, "amount": written(self.amount)}

    def __add__(self, other: "Loss") -> Self:
        """Return the loss of both together, each chosen in the light of the other's answer or not."""
        return self.from_amount(self.amount + self._same(other))

    def __mul__(self, times: int) -> Self:
        return self.from_amount(_count(times, least=0) * self.amount)

    __rmul__ = __mul__

    def __lt__(self, other: "Loss") -> bool:
        return self.amount < self._same(other)

    def __le__(self, other: "Loss") -> bool:
        return self.amount <= self._same(other)

    def __gt__(self, other: "Loss") -> bool:
        return self.amount > self._same(other)

    def __ge__(self, other: "Loss") -> bool:
        return self.amount >= self._same(other)

    def _same(self, other: "Loss") -> Fraction:
        if not isinstance(other, type(self)):
            what = getattr(other, "kind", type(other).__name__)
            raise InvalidParameter(f"A {self.kind} loss and a {what} do not add or compare; state both in one measure.")
        return other.amount


@final
@dataclass(frozen=True, slots=True, init=False, repr=False)
class PureDP(_Additive):
    """ε-differential privacy: no event is more than e^ε times as likely on a neighbouring data set.

    Args: epsilon: ≥ 0.
    Source: Dwork, McSherry, Nissim and Smith 2006.
    """

    kind: ClassVar[str] = "pure"
    epsilon: Fraction

    def __init__(self, epsilon: Number) -> None:
        object.__setattr__(self, "epsilon", non_negative(epsilon, "epsilon"))

    @property
    def amount(self) -> Fraction:
        """ε, which adds up under composition."""
        return self.epsilon

    @classmethod
    def from_amount(cls, amount: Number) -> Self:
        """Return the loss with this ε."""
        return cls(amount)

    def for_group(self, size: int) -> Self:
        """Return the loss towards `size` units together: size·ε (one neighbour at a time)."""
        return type(self)(_count(size) * self.epsilon)

    def to_delta(self, *, epsilon: Number) -> float:
        """Return the δ of this loss at another ε: 0 from its own ε upwards."""
        return float_up(conversions.pure_delta_up(self.epsilon, non_negative(epsilon, "epsilon")))

    def to_epsilon(self, *, delta: Number = 0) -> float:
        """Return ε; it needs no δ."""
        _delta(delta)
        return float_up(self.epsilon)

    def __repr__(self) -> str:
        return f"PureDP({_literal(self.epsilon)})"

    def __str__(self) -> str:
        return f"ε = {short(self.epsilon)}"


@final
@dataclass(frozen=True, slots=True, init=False, repr=False)
class GaussianDP(_Additive):
    """μ-Gaussian differential privacy: telling two neighbouring data sets apart is as hard as N(0, 1) from N(μ, 1).

    The state is μ², which adds up and, unlike μ, stays rational.

    Args: mu: ≥ 0.
    Source: Dong, Roth and Su 2022 (Gaussian Differential Privacy, arXiv 1905.02383), which also has composition.
    """

    kind: ClassVar[str] = "gdp"
    mu_squared: Fraction

    def __init__(self, mu: Number) -> None:
        object.__setattr__(self, "mu_squared", non_negative(non_negative(mu, "mu") ** 2, "the square of mu"))

    @classmethod
    def from_mu_squared(cls, mu_squared: Number) -> Self:
        """Return the loss with this μ²."""
        loss = object.__new__(cls)
        object.__setattr__(loss, "mu_squared", non_negative(mu_squared, "mu_squared"))
        return loss

    @property
    def mu(self) -> float:
        """μ, rounded up."""
        return float_up(square_root_up(self.mu_squared))

    @property
    def amount(self) -> Fraction:
        """μ², which adds up under composition."""
        return self.mu_squared

    @classmethod
    def from_amount(cls, amount: Number) -> Self:
        """Return the loss with this μ²."""
        return cls.from_mu_squared(amount)

    def for_group(self, size: int) -> Self:
        """Return the loss towards `size` units together: size·μ (Dong, Roth and Su 2022, on group privacy)."""
        return type(self).from_mu_squared(_count(size) ** 2 * self.mu_squared)

    def to_delta(self, *, epsilon: Number) -> float:
        """Return the δ of this loss at ε, rounded up."""
        return float_up(conversions.gdp_delta_up(self.mu_squared, non_negative(epsilon, "epsilon")))

    def to_epsilon(self, *, delta: Number) -> float:
        """Return the ε of this loss at δ, rounded up."""
        return float_up(conversions.gdp_epsilon_up(self.mu_squared, probability(delta, "delta")))

    def __repr__(self) -> str:
        root = square_root_up(self.mu_squared)
        if root**2 == self.mu_squared and exact(float(root), "mu") == root:
            return f"GaussianDP({_literal(root)})"
        return f"GaussianDP.from_mu_squared({_literal(self.mu_squared)})"

    def __str__(self) -> str:
        return f"μ = {short(square_root_up(self.mu_squared))}"


@final
@dataclass(frozen=True, slots=True, init=False, repr=False)
class ZeroConcentratedDP(_Additive):
    """ρ-zero-concentrated differential privacy: the Rényi divergence of every order α > 1 is at most ρ·α.

    Args: rho: ≥ 0.
    Source: Bun and Steinke 2016, Definition 1.1, Lemma 1.7 (composition).
    """

    kind: ClassVar[str] = "zcdp"
    rho: Fraction

    def __init__(self, rho: Number) -> None:
        object.__setattr__(self, "rho", non_negative(rho, "rho"))

    @property
    def amount(self) -> Fraction:
        """ρ, which adds up under composition."""
        return self.rho

    @classmethod
    def from_amount(cls, amount: Number) -> Self:
        """Return the loss with this ρ."""
        return cls(amount)

    def for_group(self, size: int) -> Self:
        """Return the loss towards `size` units together: size²·ρ (Bun and Steinke 2016, Proposition 1.9)."""
        return type(self)(_count(size) ** 2 * self.rho)

    def to_delta(self, *, epsilon: Number) -> float:
        """Return a δ that this loss implies at ε, rounded up."""
        return float_up(conversions.zcdp_delta_up(self.rho, non_negative(epsilon, "epsilon")))

    def to_epsilon(self, *, delta: Number) -> float:
        """Return an ε that this loss implies at δ, rounded up."""
        return float_up(conversions.zcdp_epsilon_up(self.rho, probability(delta, "delta")))

    def __repr__(self) -> str:
        return f"ZeroConcentratedDP({_literal(self.rho)})"

    def __str__(self) -> str:
        return f"ρ = {short(self.rho)}"


@final
@dataclass(frozen=True, slots=True, init=False, repr=False)
class ApproxDP:
    """(ε, δ)-differential privacy: no event is more than e^ε times as likely, plus δ, on a neighbouring data set.

    Comparison is by both numbers, so two losses may be in neither order. A δ of 1 promises nothing.

    Args: epsilon: ≥ 0; delta: from 0 to 1.
    Source: Dwork, Kenthapadi, McSherry, Mironov and Naor 2006.
    """

    kind: ClassVar[str] = "approx"
    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Number, delta: Number) -> None:
        object.__setattr__(self, "epsilon", non_negative(epsilon, "epsilon"))
        object.__setattr__(self, "delta", _delta(delta, most=1))

    def for_group(self, size: int) -> Self:
        """Return the loss towards `size` units together: (size·ε, δ·(e^(size·ε) − 1)/(e^ε − 1)), δ rounded up."""
        delta_up = conversions.group_delta_up(self.epsilon, self.delta, _count(size))
        return type(self)(size * self.epsilon, delta_up)

    def to_delta(self, *, epsilon: Number) -> float:
        """Return the δ of this loss at another ε, rounded up: its own δ from its own ε upwards."""
        pure_up = conversions.pure_delta_up(self.epsilon, non_negative(epsilon, "epsilon"))
        return float_up(self.delta + (1 - self.delta) * pure_up)

    def to_epsilon(self, *, delta: Number) -> float:
        """Return ε, if `delta` is at least the loss's own δ.

        Raises: InvalidParameter for a smaller delta, for which this loss implies nothing.
        """
        if _delta(delta) < self.delta:
            raise InvalidParameter(f"delta is {delta}; {self} implies no ε for a delta below its own: ask for that.")
        return float_up(self.epsilon)

    def __add__(self, other: Self) -> Self:
        """Return the loss of both together (basic composition: ε and δ add)."""
        if not isinstance(other, ApproxDP):
            raise InvalidParameter(f"An approx loss and a {type(other).__name__} do not add; state both as ApproxDP.")
        return type(self)(self.epsilon + other.epsilon, min(Fraction(1), self.delta + other.delta))

    def __mul__(self, times: int) -> Self:
        return type(self)(_count(times, least=0) * self.epsilon, min(Fraction(1), times * self.delta))

    __rmul__ = __mul__

    def __le__(self, other: Self) -> bool:
        if not isinstance(other, ApproxDP):
            raise InvalidParameter(f"An approx loss and a {type(other).__name__} do not compare.")
        return self.epsilon <= other.epsilon and self.delta <= other.delta

    def __ge__(self, other: Self) -> bool:
        return other.__le__(self)

    def __repr__(self) -> str:
        return f"ApproxDP({_literal(self.epsilon)}, {_literal(self.delta)})"

    def __str__(self) -> str:
        return f"(ε = {short(self.epsilon)}, δ = {short(self.delta)})"


@final
@dataclass(frozen=True, slots=True, init=False, repr=False)
class ApproximateGaussianDP:
    """(μ, δ): with probability 1 − δ the output is that of a μ-GDP mechanism, and otherwise it may be anything.

    Precisely: on each pair of neighbours the output's laws are (1 − δ)·P⁰ + δ·P¹ and (1 − δ)·Q⁰ + δ·Q¹, where telling
    P⁰ from Q⁰ is at least as hard as N(0, 1) from N(μ, 1). So the mechanism is (ε, δ_μ(ε) + δ)-DP for every ε, and two
    of them together are (√(μ₁² + μ₂²), δ₁ + δ₂): both are of the first kind with probability at least 1 − δ₁ − δ₂.

    Args: mu: ≥ 0; delta: from 0 to 1.
    """

    kind: ClassVar[str] = "approx_gdp"
    gaussian: GaussianDP
    delta: Fraction

    def __init__(self, mu: Number, delta: Number) -> None:
        object.__setattr__(self, "gaussian", GaussianDP(mu))
        object.__setattr__(self, "delta", _delta(delta, most=1))

    @classmethod
    def of(cls, gaussian: GaussianDP, delta: Number) -> Self:
        """Return the loss of a Gaussian part and a δ."""
        loss = object.__new__(cls)
        object.__setattr__(loss, "gaussian", gaussian)
        object.__setattr__(loss, "delta", _delta(delta, most=1))
        return loss

    def to_delta(self, *, epsilon: Number) -> float:
        """Return the δ of this loss at ε, rounded up."""
        return min(1.0, float_up(Fraction(self.gaussian.to_delta(epsilon=epsilon)) + self.delta))

    def to_epsilon(self, *, delta: Number) -> float:
        """Return an ε of this loss at δ, rounded up.

        Raises: InvalidParameter unless delta is above the loss's own.
        """
        if _delta(delta) <= self.delta:
            raise InvalidParameter(f"delta is {delta}; {self} implies no ε at its own delta or below: ask for more.")
        return self.gaussian.to_epsilon(delta=exact(delta, "delta") - self.delta)

    def __add__(self, other: Self) -> Self:
        """Return the loss of both together, each chosen in the light of the other's answer or not."""
        if not isinstance(other, ApproximateGaussianDP):
            raise InvalidParameter(f"An approx_gdp loss and a {type(other).__name__} do not add; state both as (μ, δ).")
        return type(self).of(self.gaussian + other.gaussian, min(Fraction(1), self.delta + other.delta))

    def __repr__(self) -> str:
        return f"ApproximateGaussianDP.of({self.gaussian!r}, {_literal(self.delta)})"

    def __str__(self) -> str:
        return f"({self.gaussian}, δ = {short(self.delta)})"


Loss = PureDP | GaussianDP | ZeroConcentratedDP
"""The losses that add up, and that a ledger can hold."""

MEASURES: dict[str, type[PureDP] | type[GaussianDP] | type[ZeroConcentratedDP]] = {
    measure.kind: measure for measure in (PureDP, GaussianDP, ZeroConcentratedDP)
}


def from_record(record: Mapping[str, str]) -> Loss:
    """Return the loss that `to_record` wrote.

    Raises: InvalidParameter if the record is anything else.
    """
    if set(record) != {"measure", "amount"}:
        raise InvalidParameter(f"A loss's record has the keys {sorted(record)}; it must have measure and amount.")
    return _measure(record["measure"]).from_amount(read(record["amount"], "amount"))


def _measure(kind: str) -> type[PureDP] | type[GaussianDP] | type[ZeroConcentratedDP]:
    if kind not in MEASURES:
        raise InvalidParameter(f"The measure is {kind!r}; it must be one of {', '.join(MEASURES)}.")
    return MEASURES[kind]


def _count(value: int, *, least: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidParameter(f"The number is {value!r}; it must be a whole number from {least} upwards.")
    return value


def _delta(value: Number, *, most: int | None = None) -> Fraction:
    delta = non_negative(value, "delta")
    if delta > 1 or (delta == 1 and most != 1):
        raise InvalidParameter(f"delta is {value}; it must be at least 0 and below 1.")
    return delta


def _literal(amount: Fraction) -> str:
    """Return Python text for the amount: the float or int that reads as it, else an exact Fraction."""
    if amount.denominator == 1:
        return str(amount.numerator)
    nearest = float(amount)
    return repr(nearest) if Fraction(str(nearest)) == amount else f"Fraction('{written(amount)}')"

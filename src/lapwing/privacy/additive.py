"""The measures whose losses are one number that adds up: pure, Gaussian and zero-concentrated differential privacy.

Each bounds how far apart the output's laws on two neighbouring data sets can be. A loss is one value of a measure. Its
state is an exact rational; what adds up under composition is its `amount`: ε for pure differential privacy, μ² for
Gaussian, ρ for zero-concentrated. Statements in another measure are certified upper bounds.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self, final

from lapwing.errors import InvalidParameter
from lapwing.exact.bounds import square_root_up
from lapwing.exact.floats import float_up
from lapwing.privacy import concentrated_profile, conversions, gaussian_epsilon, gaussian_profile, pure_profile
from lapwing.privacy.amount_texts import literal, short
from lapwing.privacy.amounts import Number, count, exact, grid_up, non_negative, probability, read, share, written


@dataclass(frozen=True, slots=True, init=False, repr=False)
class AdditiveLoss(ABC):
    """A loss of which one number, its `amount`, adds up under composition, whatever is asked along the way.

    `kind` names the measure, `_symbol` its amount where one is refused. Losses of one measure add and compare.
    """

    kind: ClassVar[str]
    _symbol: ClassVar[str]
    amount: Fraction

    @classmethod
    def from_amount(cls, amount: Number) -> Self:
        """Return the loss with this amount, a number ≥ 0."""
        loss = object.__new__(cls)
        object.__setattr__(loss, "amount", non_negative(amount, cls._symbol))
        return loss

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

    def nothing(self) -> Self:
        """Return no loss, in this measure."""
        return self.from_amount(0)

    def beyond(self, other: "Loss") -> Self:
        """Return what of this loss is beyond another; nothing if it is within it."""
        return self.from_amount(max(Fraction(0), self.amount - self._amount_of(other)))

    def times_in(self, room: "Loss") -> int | None:
        """Return how many times this loss fits into a room; None for any number, if it is nothing."""
        return self._amount_of(room) // self.amount if self.amount else None

    def to_kind(self, kind: str) -> "Loss":
        """Return the loss that this one implies in another measure.

        Raises:
            InvalidParameter: If no such conversion exists; the message says why.
        """
        return measure_of(kind).from_amount(conversions.amount_in(kind, self.kind, self.amount))

    def to_record(self) -> dict[str, str]:
        """Return the loss as text, exactly; `from_record` reads it."""
        return {"measure": self.kind, "amount": written(self.amount)}

    def __add__(self, other: "Loss") -> Self:
        """Return the loss of both together, each chosen in the light of the other's answer or not."""
        return self.from_amount(self.amount + self._amount_of(other))

    def __mul__(self, times: int) -> Self:
        return self.from_amount(count(times, least=0) * self.amount)

    __rmul__ = __mul__

    def __lt__(self, other: "Loss") -> bool:
        return self.amount < self._amount_of(other)

    def __le__(self, other: "Loss") -> bool:
        return self.amount <= self._amount_of(other)

    def __gt__(self, other: "Loss") -> bool:
        return self.amount > self._amount_of(other)

    def __ge__(self, other: "Loss") -> bool:
        return self.amount >= self._amount_of(other)

    def _amount_of(self, other: "Loss") -> Fraction:
        """Return the amount of a loss of the same measure.

        Raises:
            InvalidParameter: If it is of another, as a ρ and a μ² are both numbers and do not add.
        """
        if not isinstance(other, type(self)):
            what = getattr(other, "kind", type(other).__name__)
            raise InvalidParameter(
                f"Losses of kind {self.kind} and {what} do not add or compare; state both in one measure."
            )
        return other.amount


@final
@dataclass(frozen=True, slots=True, init=False, repr=False)
class PureDP(AdditiveLoss):
    """ε-differential privacy: no event is more than e^ε times as likely on a neighbouring data set.

    Args:
        epsilon: ≥ 0; it adds up under composition.

    Source:
        Dwork, McSherry, Nissim and Smith 2006.
    """

    kind: ClassVar[str] = "pure"
    _symbol: ClassVar[str] = "epsilon"

    def __init__(self, epsilon: Number) -> None:
        object.__setattr__(self, "amount", non_negative(epsilon, "epsilon"))

    @property
    def epsilon(self) -> Fraction:
        """ε, the amount of the loss."""
        return self.amount

    def for_group(self, size: int) -> Self:
        """Return the loss towards `size` units together: size·ε (one neighbour at a time)."""
        return self.from_amount(count(size) * self.amount)

    def to_delta(self, *, epsilon: Number) -> float:
        """Return the δ of this loss at another ε: 0 from its own ε upwards."""
        return float_up(pure_profile.pure_delta_up(self.amount, non_negative(epsilon, "epsilon")))

    def to_epsilon(self, *, delta: Number = 0) -> float:
        """Return ε; it needs no δ."""
        share(delta, "delta")
        return float_up(self.amount)

    def __repr__(self) -> str:
        return f"PureDP({literal(self.amount)})"

    def __str__(self) -> str:
        return f"ε = {short(self.amount)}"


@final
@dataclass(frozen=True, slots=True, init=False, repr=False)
class GaussianDP(AdditiveLoss):
    """μ-Gaussian differential privacy: telling two neighbouring data sets apart is as hard as N(0, 1) from N(μ, 1).

    The amount is μ², which adds up and, unlike μ, stays rational.

    Args:
        mu: ≥ 0.

    Source:
        Dong, Roth and Su 2022 (Gaussian Differential Privacy, arXiv 1905.02383), which also has composition.
    """

    kind: ClassVar[str] = "gdp"
    _symbol: ClassVar[str] = "mu_squared"

    def __init__(self, mu: Number) -> None:
        object.__setattr__(self, "amount", non_negative(non_negative(mu, "mu") ** 2, "the square of mu"))

    @classmethod
    def from_mu_squared(cls, mu_squared: Number) -> Self:
        """Return the loss with this μ²."""
        return cls.from_amount(mu_squared)

    @property
    def mu_squared(self) -> Fraction:
        """μ², the amount of the loss."""
        return self.amount

    @property
    def mu(self) -> float:
        """μ, rounded up."""
        return float_up(square_root_up(self.amount))

    def for_group(self, size: int) -> Self:
        """Return the loss towards `size` units together: size·μ (Dong, Roth and Su 2022, on group privacy)."""
        return self.from_amount(count(size) ** 2 * self.amount)

    def to_delta(self, *, epsilon: Number) -> float:
        """Return the δ of this loss at ε, rounded up."""
        return float_up(gaussian_profile.gdp_delta_up(self.amount, non_negative(epsilon, "epsilon")))

    def to_epsilon(self, *, delta: Number) -> float:
        """Return the ε of this loss at δ, rounded up."""
        return float_up(gaussian_epsilon.gdp_epsilon_up(self.amount, probability(delta, "delta")))

    def __repr__(self) -> str:
        root = square_root_up(self.amount)
        if root**2 == self.amount and exact(float(root), "mu") == root:
            return f"GaussianDP({literal(root)})"
        return f"GaussianDP.from_mu_squared({literal(self.amount)})"

    def __str__(self) -> str:
        return f"μ = {short(square_root_up(self.amount))}"


@final
@dataclass(frozen=True, slots=True, init=False, repr=False)
class ZeroConcentratedDP(AdditiveLoss):
    """ρ-zero-concentrated differential privacy: the Rényi divergence of every order α > 1 is at most ρ·α.

    Args:
        rho: ≥ 0; it adds up under composition.

    Source:
        Bun and Steinke 2016, Definition 1.1, Lemma 1.7 (composition).
    """

    kind: ClassVar[str] = "zcdp"
    _symbol: ClassVar[str] = "rho"

    def __init__(self, rho: Number) -> None:
        object.__setattr__(self, "amount", non_negative(rho, "rho"))

    @property
    def rho(self) -> Fraction:
        """ρ, the amount of the loss."""
        return self.amount

    def for_group(self, size: int) -> Self:
        """Return the loss towards `size` units together: size²·ρ (Bun and Steinke 2016, Proposition 1.9)."""
        return self.from_amount(count(size) ** 2 * self.amount)

    def to_delta(self, *, epsilon: Number) -> float:
        """Return a δ that this loss implies at ε, rounded up."""
        return float_up(concentrated_profile.zcdp_delta_up(self.amount, non_negative(epsilon, "epsilon")))

    def to_epsilon(self, *, delta: Number) -> float:
        """Return an ε that this loss implies at δ, rounded up."""
        return float_up(concentrated_profile.zcdp_epsilon_up(self.amount, probability(delta, "delta")))

    def __repr__(self) -> str:
        return f"ZeroConcentratedDP({literal(self.amount)})"

    def __str__(self) -> str:
        return f"ρ = {short(self.amount)}"


Loss = PureDP | GaussianDP | ZeroConcentratedDP
"""The losses that add up, and that a ledger can hold."""

MEASURES: dict[str, type[PureDP] | type[GaussianDP] | type[ZeroConcentratedDP]] = {
    measure.kind: measure for measure in (PureDP, GaussianDP, ZeroConcentratedDP)
}


def from_record(record: Mapping[str, str]) -> Loss:
    """Return the loss that `to_record` wrote.

    Raises:
        InvalidParameter: If the record is anything else.
    """
    if set(record) != {"measure", "amount"}:
        raise InvalidParameter(f"A loss's record has the keys {sorted(record)}; it must have measure and amount.")
    return measure_of(record["measure"]).from_amount(read(record["amount"], "amount"))


def measure_of(kind: str) -> type[PureDP] | type[GaussianDP] | type[ZeroConcentratedDP]:
    """Return the measure of a kind: pure, gdp or zcdp.

    Raises:
        InvalidParameter: For anything else.
    """
    if not isinstance(kind, str) or kind not in MEASURES:
        raise InvalidParameter(f"The measure is {kind!r:.40}; it must be one of {', '.join(MEASURES)}.")
    return MEASURES[kind]

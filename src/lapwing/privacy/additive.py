"""The measures whose losses are one number that adds up: pure, Gaussian and zero-concentrated differential privacy.

Each bounds how far apart the output's laws on two neighbouring data sets can be. A loss is one value of a measure. Its
state is an exact rational; what adds up under composition is its `amount`: ε for pure differential privacy, μ² for
Gaussian, ρ for zero-concentrated. Statements in another measure are certified upper bounds.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final, Self, final

from lapwing.exact.bounds import square_root_up
from lapwing.exact.floats import float_up
from lapwing.privacy import concentrated_profile, gaussian_epsilon, gaussian_profile, pure_profile
from lapwing.privacy.additive_loss import PRIVACY_MEASURES, AdditiveLoss
from lapwing.privacy.amount_texts import literal, short
from lapwing.privacy.amounts import Number, count, exact, non_negative, probability, share


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
PrivacyMeasure = type[PureDP] | type[GaussianDP] | type[ZeroConcentratedDP]
"""One of their measures."""

_ALL: Final[tuple[PrivacyMeasure, ...]] = (PureDP, GaussianDP, ZeroConcentratedDP)
PRIVACY_MEASURES.update({measure.kind: measure for measure in _ALL})

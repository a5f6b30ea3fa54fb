"""The mechanisms that a list may hold, as an accountant knows them: what each loses, in every form that is known.

Each has a loss in pure, gdp and zcdp where a theorem gives one, an (ε, δ), a Rényi curve, a dominating pair, and what
it is towards two units together. `listing` makes them from numbers.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, Protocol, Self, final

from lapwing.errors import InvalidParameter
from lapwing.privacy.additive import MEASURES
from lapwing.privacy.bounded_range import bounded_range_amount
from lapwing.privacy.discrete_pairs import DiscreteGaussianPair, DiscreteLaplacePair
from lapwing.privacy.laplace_implies import discrete_laplace_loss, laplace_loss
from lapwing.privacy.measures import ApproxDP, GaussianDP, Loss, PureDP, ZeroConcentratedDP
from lapwing.privacy.neighbours import replaced
from lapwing.privacy.pairs import (
    ApproximatePair,
    BoundedRangePair,
    GaussianPair,
    LaplacePair,
    Pair,
    RandomizedResponsePair,
)
from lapwing.privacy.renyi import RenyiDP

Neighbouring = Literal["add_remove", "replace_one"]


class ListedMechanism(Protocol):
    """What an accountant knows of a mechanism.

    `neighbouring`: the relation that it is bound to, if to one.
    """

    neighbouring: ClassVar[Neighbouring | None]

    @property
    def has_epsilon(self) -> bool:
        """Whether it has an ε without a share of the list's δ."""

    @property
    def attained(self) -> bool:
        """Whether one mechanism of the kind has all that its pair has, so that a lower bound speaks of it."""

    @property
    def failure(self) -> Fraction:
        """The probability with which anything may be shown."""

    def loss(self, kind: str) -> Loss:
        """Return the loss that holds but for `failure`, in pure, gdp or zcdp; refuse where there is none."""

    def at(self, share: Fraction) -> ApproxDP:
        """Return an (ε, δ) of the mechanism; δ is the share if it has no ε without one."""

    def curve(self) -> RenyiDP:
        """Return its Rényi divergences; refuse where there are none."""

    def pair(self) -> Pair:
        """Return a dominating pair."""

    def doubled(self) -> Self:
        """Return what it is towards two units together."""


@final
@dataclass(frozen=True, slots=True)
class LaplaceNoise:
    """Laplace noise on a number. Args: epsilon: sensitivity (L1) over scale, > 0."""

    neighbouring: ClassVar[Neighbouring | None] = None
    has_epsilon: ClassVar[bool] = True
    attained: ClassVar[bool] = True
    failure: ClassVar[Fraction] = Fraction(0)
    epsilon: Fraction

    def loss(self, kind: str) -> Loss:
        """Return the loss in a measure that adds up."""
        return laplace_loss(self.epsilon, kind)

    def at(self, share: Fraction) -> ApproxDP:
        """Return an (ε, δ)."""
        return ApproxDP(self.epsilon, 0)

    def curve(self) -> RenyiDP:
        """Return its Rényi divergences."""
        return RenyiDP.laplace(scale=1, l1=self.epsilon)

    def pair(self) -> Pair:
        """Return a pair that dominates it."""
        return LaplacePair(self.epsilon)

    def doubled(self) -> Self:
        """Return what it is towards two units."""
        return type(self)(2 * self.epsilon)


@final
@dataclass(frozen=True, slots=True)
class DiscreteLaplaceNoise:
    """Discrete Laplace noise on an integer. Args: scale: > 0; sensitivity: ≥ 1."""

    neighbouring: ClassVar[Neighbouring | None] = None
    has_epsilon: ClassVar[bool] = True
    attained: ClassVar[bool] = True
    failure: ClassVar[Fraction] = Fraction(0)
    scale: Fraction
    sensitivity: int

    def loss(self, kind: str) -> Loss:
        """Return the loss in a measure that adds up."""
        return discrete_laplace_loss(1 / self.scale, self.sensitivity, kind)

    def at(self, share: Fraction) -> ApproxDP:
        """Return an (ε, δ)."""
        return ApproxDP(self.sensitivity / self.scale, 0)

    def curve(self) -> RenyiDP:
        """Return its Rényi divergences."""
        return RenyiDP.discrete_laplace(scale=self.scale, l1=self.sensitivity)

    def pair(self) -> Pair:
        """Return a pair that dominates it."""
        return DiscreteLaplacePair(self.scale, self.sensitivity)

    def doubled(self) -> Self:
        """Return what it is towards two units."""
        return type(self)(self.scale, 2 * self.sensitivity)


@final
@dataclass(frozen=True, slots=True)
class GaussianNoise:
    """Gaussian noise on a vector, or that rounded. Args: mu_squared: of sensitivity (L2) over σ, > 0."""

    neighbouring: ClassVar[Neighbouring | None] = None
    has_epsilon: ClassVar[bool] = False
    attained: ClassVar[bool] = True
    failure: ClassVar[Fraction] = Fraction(0)
    mu_squared: Fraction

    def loss(self, kind: str) -> Loss:
        """Return the loss in a measure that adds up."""
        return GaussianDP.from_mu_squared(self.mu_squared).to_kind(kind)

    def at(self, share: Fraction) -> ApproxDP:
        """Return an (ε, δ)."""
        return ApproxDP(Fraction(GaussianDP.from_mu_squared(self.mu_squared).to_epsilon(delta=share)), share)

    def curve(self) -> RenyiDP:
        """Return its Rényi divergences."""
        return RenyiDP.from_loss(GaussianDP.from_mu_squared(self.mu_squared))

    def pair(self) -> Pair:
        """Return a pair that dominates it."""
        return GaussianPair(self.mu_squared)

    def doubled(self) -> Self:
        """Return what it is towards two units."""
        return type(self)(4 * self.mu_squared)


@final
@dataclass(frozen=True, slots=True)
class DiscreteGaussianNoise:
    """Discrete Gaussian noise on an integer. Args: variance: > 0; sensitivity: ≥ 1."""

    neighbouring: ClassVar[Neighbouring | None] = None
    has_epsilon: ClassVar[bool] = False
    attained: ClassVar[bool] = True
    failure: ClassVar[Fraction] = Fraction(0)
    variance: Fraction
    sensitivity: int

    def loss(self, kind: str) -> Loss:
        """Return the loss in a measure that adds up."""
        return self._concentrated.to_kind(kind)

    def at(self, share: Fraction) -> ApproxDP:
        """Return an (ε, δ)."""
        return ApproxDP(Fraction(self._concentrated.to_epsilon(delta=share)), share)

    def curve(self) -> RenyiDP:
        """Return its Rényi divergences."""
        return RenyiDP.from_loss(self._concentrated)

    def pair(self) -> Pair:
        """Return a pair that dominates it."""
        return DiscreteGaussianPair(self.variance, self.sensitivity)

    def doubled(self) -> Self:
        """Return what it is towards two units."""
        return type(self)(self.variance, 2 * self.sensitivity)

    @property
    def _concentrated(self) -> ZeroConcentratedDP:
        """ρ = sensitivity²/(2·variance) (Canonne, Kamath and Steinke 2020, The Discrete Gaussian, Proposition 5)."""
        return ZeroConcentratedDP(Fraction(self.sensitivity) ** 2 / (2 * self.variance))


@final
@dataclass(frozen=True, slots=True)
class Response:
    """Randomized response among some choices. Args: epsilon: > 0; choices: ≥ 2."""

    neighbouring: ClassVar[Neighbouring | None] = "replace_one"
    has_epsilon: ClassVar[bool] = True
    attained: ClassVar[bool] = True
    failure: ClassVar[Fraction] = Fraction(0)
    epsilon: Fraction
    choices: int

    def loss(self, kind: str) -> Loss:
        """Return the loss in a measure that adds up."""
        return PureDP(self.epsilon).to_kind(kind)

    def at(self, share: Fraction) -> ApproxDP:
        """Return an (ε, δ)."""
        return ApproxDP(self.epsilon, 0)

    def curve(self) -> RenyiDP:
        """Return its Rényi divergences."""
        return RenyiDP.from_loss(PureDP(self.epsilon))

    def pair(self) -> Pair:
        """Return a pair that dominates it."""
        return RandomizedResponsePair(self.epsilon, self.choices)

    def doubled(self) -> Self:
        """Return what it is towards two units."""
        raise InvalidParameter("Randomized response is for replace_one already.")


@final
@dataclass(frozen=True, slots=True)
class BoundedRange:
    """Any mechanism of bounded range, such as the exponential mechanism. Args: eta: > 0; its ε is as large."""

    neighbouring: ClassVar[Neighbouring | None] = None
    has_epsilon: ClassVar[bool] = True
    attained: ClassVar[bool] = False
    failure: ClassVar[Fraction] = Fraction(0)
    eta: Fraction

    def loss(self, kind: str) -> Loss:
        """Return the loss in a measure that adds up."""
        return MEASURES[kind].from_amount(bounded_range_amount(kind, self.eta))

    def at(self, share: Fraction) -> ApproxDP:
        """Return an (ε, δ)."""
        return ApproxDP(self.eta, 0)

    def curve(self) -> RenyiDP:
        """Return its Rényi divergences."""
        return RenyiDP.bounded_range(self.eta)

    def pair(self) -> Pair:
        """Return a pair that dominates it."""
        return BoundedRangePair(self.eta)

    def doubled(self) -> Self:
        """Return what it is towards two units."""
        return type(self)(2 * self.eta)


@final
@dataclass(frozen=True, slots=True)
class AnyPrivate:
    """Any (ε, δ)-DP mechanism, of which nothing else is known. Args: epsilon: > 0; failure: from 0, below 1."""

    neighbouring: ClassVar[Neighbouring | None] = None
    has_epsilon: ClassVar[bool] = True
    attained: ClassVar[bool] = True
    epsilon: Fraction
    failure: Fraction = Fraction(0)

    def loss(self, kind: str) -> Loss:
        """Return the loss in a measure that adds up."""
        return PureDP(self.epsilon).to_kind(kind)

    def at(self, share: Fraction) -> ApproxDP:
        """Return an (ε, δ)."""
        return ApproxDP(self.epsilon, self.failure)

    def curve(self) -> RenyiDP:
        """Return its Rényi divergences."""
        if self.failure:
            raise InvalidParameter("An (ε, δ) has no Rényi curve: what may happen with probability δ is unbounded.")
        return RenyiDP.from_loss(PureDP(self.epsilon))

    def pair(self) -> Pair:
        """Return a pair that dominates it."""
        return ApproximatePair(self.epsilon, self.failure) if self.failure else RandomizedResponsePair(self.epsilon)

    def doubled(self) -> Self:
        """Return what it is towards two units."""
        loss = replaced(ApproxDP(self.epsilon, self.failure))
        return type(self)(loss.epsilon, loss.delta)

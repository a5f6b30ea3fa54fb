"""The mechanisms that a list may hold, as an accountant knows them: what each loses, in every form that is known.

`listing` makes them from the numbers that people give.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Final, Literal, final

from lapwing.errors import InvalidParameter
from lapwing.privacy.additive_loss import PRIVACY_MEASURES
from lapwing.privacy.amplification import subsampled
from lapwing.privacy.bounded_range import bounded_range_amount
from lapwing.privacy.combined_pairs import SubsampledPair
from lapwing.privacy.continuous_laplace import laplace_loss
from lapwing.privacy.discrete_pairs import DiscreteGaussianPair, DiscreteLaplacePair
from lapwing.privacy.laplace_implies import discrete_laplace_loss
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
from lapwing.privacy.subset_pair import SubsetPair

Neighbouring = Literal["add_remove", "replace_one"]

_MOST_SHARE: Final = Fraction(1, 2)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ListedMechanism:
    """What an accountant knows of a mechanism, each thing computed when it is asked for.

    Args:
        loss: What it loses but for `failure`, in the measure pure, gdp or zcdp.
        at: An (ε, δ) of it, where δ is the share of the list's that it is given if it has no ε without one.
        curve: Its Rényi divergences.
        pair: A dominating pair.
        doubled: What it is towards two units together, None if it is bound to one relation. A function raises
            InvalidParameter where nothing is known.
        has_epsilon: Whether it has an ε without a share of δ.
        attained: Whether one mechanism of the kind has all that its pair has, so that a lower bound speaks of it.
        failure: The probability with which anything may be shown.
        neighbouring: The relation that it is bound to, if to one.
    """

    loss: Callable[[str], Loss]
    at: Callable[[Fraction], ApproxDP]
    curve: Callable[[], RenyiDP]
    pair: Callable[[], Pair]
    doubled: Callable[[], "ListedMechanism"] | None = None
    has_epsilon: bool = True
    attained: bool = True
    failure: Fraction = Fraction(0)
    neighbouring: Neighbouring | None = None


def laplace_noise(epsilon: Fraction) -> ListedMechanism:
    """Return Laplace noise on a number.

    Args:
        epsilon: Sensitivity (L1) over scale, > 0.
    """
    return ListedMechanism(
        loss=lambda kind: laplace_loss(epsilon, kind),
        at=lambda _share: ApproxDP(epsilon, 0),
        curve=lambda: RenyiDP.laplace(scale=1, l1=epsilon),
        pair=lambda: LaplacePair(epsilon),
        doubled=lambda: laplace_noise(2 * epsilon),
    )


def discrete_laplace_noise(scale: Fraction, sensitivity: int) -> ListedMechanism:
    """Return discrete Laplace noise on an integer.

    Args:
        scale: > 0.
        sensitivity: ≥ 1.
    """
    return ListedMechanism(
        loss=lambda kind: discrete_laplace_loss(1 / scale, sensitivity, kind),
        at=lambda _share: ApproxDP(sensitivity / scale, 0),
        curve=lambda: RenyiDP.discrete_laplace(scale=scale, l1=sensitivity),
        pair=lambda: DiscreteLaplacePair(scale, sensitivity),
        doubled=lambda: discrete_laplace_noise(scale, 2 * sensitivity),
    )


def gaussian_noise(mu_squared: Fraction) -> ListedMechanism:
    """Return Gaussian noise on a vector, or that rounded.

    Args:
        mu_squared: Of sensitivity (L2) over σ, > 0.
    """

    def stated() -> GaussianDP:
        return GaussianDP.from_mu_squared(mu_squared)

    return ListedMechanism(
        loss=lambda kind: stated().to_kind(kind),
        at=lambda share: ApproxDP(Fraction(stated().to_epsilon(delta=share)), share),
        curve=lambda: RenyiDP.from_loss(stated()),
        pair=lambda: GaussianPair(mu_squared),
        doubled=lambda: gaussian_noise(4 * mu_squared),
        has_epsilon=False,
    )


def discrete_gaussian_noise(variance: Fraction, sensitivity: int) -> ListedMechanism:
    """Return discrete Gaussian noise on an integer.

    Args:
        variance: > 0.
        sensitivity: ≥ 1.

    It has ρ = sensitivity²/(2·variance) (Canonne, Kamath and Steinke 2020, The Discrete Gaussian, Proposition 5).
    """

    def stated() -> ZeroConcentratedDP:
        return ZeroConcentratedDP(Fraction(sensitivity) ** 2 / (2 * variance))

    return ListedMechanism(
        loss=lambda kind: stated().to_kind(kind),
        at=lambda share: ApproxDP(Fraction(stated().to_epsilon(delta=share)), share),
        curve=lambda: RenyiDP.from_loss(stated()),
        pair=lambda: DiscreteGaussianPair(variance, sensitivity),
        doubled=lambda: discrete_gaussian_noise(variance, 2 * sensitivity),
        has_epsilon=False,
    )


def randomized_response(epsilon: Fraction, choices: int) -> ListedMechanism:
    """Return randomized response among some choices.

    Args:
        epsilon: > 0.
        choices: ≥ 2.
    """
    return ListedMechanism(
        loss=PureDP(epsilon).to_kind,
        at=lambda _share: ApproxDP(epsilon, 0),
        curve=lambda: RenyiDP.from_loss(PureDP(epsilon)),
        pair=lambda: RandomizedResponsePair(epsilon, choices),
        neighbouring="replace_one",
    )


def bounded_range(eta: Fraction) -> ListedMechanism:
    """Return any mechanism of bounded range, such as the exponential mechanism.

    Args:
        eta: > 0; its ε is as large.
    """
    return ListedMechanism(
        loss=lambda kind: PRIVACY_MEASURES[kind].from_amount(bounded_range_amount(kind, eta)),
        at=lambda _share: ApproxDP(eta, 0),
        curve=lambda: RenyiDP.bounded_range(eta),
        pair=lambda: BoundedRangePair(eta),
        doubled=lambda: bounded_range(2 * eta),
        attained=False,
    )


def any_private(epsilon: Fraction, failure: Fraction) -> ListedMechanism:
    """Return any (ε, δ)-DP mechanism, of which nothing else is known.

    Args:
        epsilon: > 0.
        failure: From 0, below 1.
    """

    def curve() -> RenyiDP:
        if failure:
            raise InvalidParameter("An (ε, δ) has no Rényi curve: what may happen with probability δ is unbounded.")
        return RenyiDP.from_loss(PureDP(epsilon))

    def doubled() -> ListedMechanism:
        loss = replaced(ApproxDP(epsilon, failure))
        return any_private(loss.epsilon, loss.delta)

    return ListedMechanism(
        loss=PureDP(epsilon).to_kind,
        at=lambda _share: ApproxDP(epsilon, failure),
        curve=curve,
        pair=lambda: ApproximatePair(epsilon, failure) if failure else RandomizedResponsePair(epsilon),
        doubled=doubled,
        failure=failure,
    )


def zero_concentrated(rho: Fraction) -> ListedMechanism:
    """Return any ρ-zCDP mechanism, of which nothing else is known.

    Args:
        rho: > 0.
    """
    stated = ZeroConcentratedDP(rho)

    def pair() -> Pair:
        raise InvalidParameter("A ρ bounds divergences and is no law of a loss; give the mechanism that has it.")

    return ListedMechanism(
        loss=stated.to_kind,
        at=lambda share: ApproxDP(Fraction(stated.to_epsilon(delta=share)), share),
        curve=lambda: RenyiDP.from_loss(stated),
        pair=pair,
        doubled=lambda: zero_concentrated(4 * rho),
        has_epsilon=False,
    )


def renyi_private(stated: RenyiDP) -> ListedMechanism:
    """Return any mechanism with a Rényi curve, of which nothing else is known."""

    def pair() -> Pair:
        raise InvalidParameter("A Rényi curve is no law of a loss; give the mechanism that has it.")

    return ListedMechanism(
        loss=stated.to_kind,
        at=lambda share: ApproxDP(Fraction(stated.to_epsilon(delta=share)), share),
        curve=lambda: stated,
        pair=pair,
        has_epsilon=False,
    )


def sampled(mechanism: ListedMechanism, rate: Fraction) -> ListedMechanism:
    """Return a mechanism run on a secret Poisson sample.

    Args:
        mechanism: Without a failure.
        rate: Above 0, below 1.

    What is known of it is an ε, where the mechanism has one, the pair of `SubsampledPair` with its Rényi divergences,
    and what ε implies. It is bound to add_remove: which of two units are in a sample is not one chance.
    """

    def pure(lack: str) -> PureDP:
        if not mechanism.has_epsilon:
            raise InvalidParameter(f"Gaussian noise on a Poisson sample has {lack}.")
        return subsampled(PureDP(mechanism.at(_MOST_SHARE).epsilon), rate)

    return ListedMechanism(
        loss=lambda kind: pure(f"no smaller {kind} loss than without the sample").to_kind(kind),
        at=lambda share: subsampled(mechanism.at(min(share / rate, _MOST_SHARE)), rate),
        curve=cache(lambda: mechanism.curve().subsampled(rate, pair=mechanism.pair())),
        pair=lambda: SubsampledPair(mechanism.pair(), rate),
        has_epsilon=mechanism.has_epsilon,
        attained=mechanism.attained,
        neighbouring="add_remove",
    )


def in_subset(mechanism: ListedMechanism, size: int, population: int) -> ListedMechanism:
    """Return a mechanism run on a secret subset of a fixed size.

    Args:
        mechanism: For replace_one, without a failure.

    What is known of it is as for `sampled`, but that no mechanism is known to attain its pair, that of `SubsetPair`. It
    is bound to replace_one: under add_remove the population is not known.
    """

    def pure(kind: str) -> Loss:
        if not mechanism.has_epsilon:
            raise InvalidParameter(f"Gaussian noise on a subset has no smaller {kind} loss than without the subset.")
        epsilon = mechanism.at(_MOST_SHARE).epsilon
        return subsampled(PureDP(epsilon), size=size, population=population).to_kind(kind)

    def at(share: Fraction) -> ApproxDP:
        own = mechanism.at(min(share * population / size, _MOST_SHARE))
        return subsampled(own, size=size, population=population)

    return ListedMechanism(
        loss=pure,
        at=at,
        curve=cache(lambda: mechanism.curve().subsampled(size=size, population=population, pair=mechanism.pair())),
        pair=lambda: SubsetPair(mechanism.pair(), size, population),
        has_epsilon=mechanism.has_epsilon,
        attained=False,
        neighbouring="replace_one",
    )

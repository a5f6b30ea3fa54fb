"""Bet against a promised loss, through the real samplers, for as long as there is time.

A mechanism M promises (ε, δ) for neighbours D and D'. A bet is an event A and a stake λ, both fixed before anything is
drawn. In every round x is drawn of M(D) and y of M(D'), and the wealth is multiplied by

    1 + λ·(1_A(x) − e^ε·1_A(y) − δ),    0 ≤ λ ≤ 1/(e^ε + δ).

Proof that it finds no violation where there is none. The least value of the factor is 1 − λ(e^ε + δ) ≥ 0, so wealth is
never below 0. The draws are fresh, so given the past the factor has the mean 1 + λ·(P(A) − e^ε·P'(A) − δ). That is at
most 1, because (ε, δ)-DP says P(A) ≤ e^ε·P'(A) + δ. Hence wealth is a nonnegative supermartingale that begins at 1. So
is the average of several, each with its own A, λ, ε and δ of one promise. By Ville's inequality it ever reaches 1/α
with a probability of at most α. That holds for every rule by which one stops. The alarm is at a wealth of 10⁶ ×
`LIFE`, and an installation makes at most `LIFE` tests in its life. So the probability of any false alarm in that life
is at most 10⁻⁶, by adding up. ∎

Let the promise be broken for an event that is bet on. Then the mean of the logarithm is above 0 for a small λ, and
wealth grows exponentially. The alarm comes after about log(10⁶ × `LIFE`) / growth rounds (`smallest_violation`).

Pure noise promises (ε, 0). A μ-Gaussian mechanism promises (ε, Φ(μ/2 − ε/μ) − e^ε·Φ(−ε/μ − μ/2)) for every ε. This is
corollary 2.13 of Dong, Roth and Su 2022. The bets are on some ε where δ is above 0.02. A δ of 10⁻⁶ shows in one of a
million draws. No sampling finds a violation of it, and the exact checks have to.

The method is testing by betting (Waudby-Smith and Ramdas 2024). González et al. 2025 use it for differential privacy
(arXiv 2509.07055).
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, final

import numpy as np

from lapwing.audit import exact_laws
from lapwing.audit.exact_laws import Distribution, normal
from lapwing.audit.sampler_cases import FAST, SLOW, Draws, first_told
from lapwing.audit.sampler_laws import LIFE
from lapwing.mechanisms.discrete_laplace import DiscreteLaplace
from lapwing.mechanisms.noisy import Sensitivity
from lapwing.mechanisms.private_selection import ExponentialMechanism, PermuteAndFlip
from lapwing.mechanisms.rounded_gaussian import RoundedGaussian
from lapwing.mechanisms.scores import ScoreSensitivity
from lapwing.mechanisms.sparse_vector import AboveThreshold
from lapwing.privacy.measures import GaussianDP, PureDP

ALARM_AT: Final = math.log(1e6 * LIFE)
"""The logarithm of the wealth that raises an alarm."""
STAKES: Final = (0.004, 0.02, 0.1, 0.5)
"""Parts of the largest stake: small ones for small violations."""
EPSILONS: Final = (0.0, 0.5, 1.0)
"""For which ε the promise of a Gaussian mechanism is tried."""
STEPS: Final = 1024
"""The distance of neighbours in the wide cases, in steps. Sums move by many steps."""
SIDES: Final = (True, False)
_UP: Final = 1 + 1e-9
"""Promises are rounded up by more than double precision errs by."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Bet:
    """An event, the promise that it is about, and a stake.

    Args:
        event: Outcomes of this number or more.
        epsilon: Of the promise.
        delta: Of the promise.
        stake: λ.
    """

    event: int
    epsilon: float
    delta: float
    stake: float

    @classmethod
    def all_of(cls, event: int, epsilon: float, delta: float) -> "list[Bet]":
        """Return a bet of each stake."""
        most = 1 / (math.exp(epsilon) + delta)
        return [cls(event=event, epsilon=epsilon, delta=delta, stake=part * most) for part in STAKES]

    def factor(self, mine: bool, theirs: bool) -> float:
        """Return by what a round multiplies wealth, if x is in A, and if y is."""
        return 1 + self.stake * (mine - math.exp(self.epsilon) * theirs - self.delta)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyPromise:
    """A mechanism's promise, and how it is tried.

    Args:
        name: For people.
        draw: Returns outcomes of a number, on the one data set (True) or on its neighbour.
        bets: Fixed beforehand.
        batch: How many rounds are drawn at once.
        changed: The laws on both data sets if its scale were multiplied by a factor.
    """

    name: str
    draw: Callable[[bool, int], Draws]
    bets: Sequence[Bet]
    batch: int
    changed: Callable[[float], tuple[Distribution, Distribution]]


@final
@dataclass(slots=True)
class Wealth:
    """The gains so far: the logarithm of each bet's wealth, and the largest of the average."""

    promise: PrivacyPromise
    logs: list[float]
    rounds: int = 0
    most: float = 0.0

    @classmethod
    def of(cls, promise: PrivacyPromise) -> "Wealth":
        """Return the wealth before the first round."""
        return cls(promise=promise, logs=[0.0] * len(promise.bets))

    @property
    def alarms(self) -> bool:
        """Whether the promise is broken."""
        return self.most >= ALARM_AT

    def play(self) -> None:
        """Draw a batch of rounds. To look at wealth after whole batches only is allowed: it is a stopping rule."""
        mine, theirs = (self.promise.draw(side, self.promise.batch) for side in (True, False))
        for place, bet in enumerate(self.promise.bets):
            for (one, other), many in _rounds(mine >= bet.event, theirs >= bet.event):
                factor = bet.factor(one, other)
                self.logs[place] += many * math.log(factor) if factor > 0 else (-math.inf if many else 0.0)
        self.rounds += self.promise.batch
        self.most = max(self.most, _mean_of(self.logs))


def _rounds(mine: Any, theirs: Any) -> Iterator[tuple[tuple[bool, bool], int]]:
    both, one, other, size = int((mine & theirs).sum()), int(mine.sum()), int(theirs.sum()), len(mine)
    yield (True, True), both
    yield (True, False), one - both
    yield (False, True), other - both
    yield (False, False), size - one - other + both


def _mean_of(logs: Sequence[float]) -> float:
    """Return the logarithm of the average."""
    best = max(logs)
    return best + math.log(math.fsum(math.exp(one - best) for one in logs) / len(logs)) if best > -math.inf else best


def smallest_violation(promise: PrivacyPromise, rounds: int) -> float:
    """Return the least part by which a scale that is too small would have been found, on average; 1 if none is."""
    for part in (*(step / 200 for step in range(1, 40)), *(step / 20 for step in range(4, 20))):
        mine, theirs = promise.changed(1 - part)
        growth = max(_growth(bet, 1 - mine(bet.event - 1), 1 - theirs(bet.event - 1)) for bet in promise.bets)
        if rounds * growth >= ALARM_AT + math.log(len(promise.bets)):
            return part
    return 1.0


def _growth(bet: Bet, mine: float, theirs: float) -> float:
    """Return the mean of the logarithm of a round's factor."""
    chances = ((True, mine), (False, 1 - mine)), ((True, theirs), (False, 1 - theirs))
    return sum(
        p * q * math.log(max(bet.factor(one, other), 1e-300)) for one, p in chances[0] for other, q in chances[1]
    )


# ---- what is promised ------------------------------------------------------------------------------------------------


def promises(kind: str) -> list[PrivacyPromise]:
    """Return the promises of the mechanisms that a catalog's measure uses, at losses of 1 and ¼."""
    found = [_pure_noise(epsilon, steps) for epsilon in (Fraction(1), Fraction(1, 4)) for steps in (1, STEPS)]
    if kind == PureDP.kind:
        return [*found, _flipped(), _first_above()]
    return [*found, *(_gaussian(mu, steps) for mu in (Fraction(1), Fraction(1, 4)) for steps in (1, STEPS)), _chosen()]


def _pure_noise(epsilon: Fraction, steps: int) -> PrivacyPromise:
    """Return the promise of discrete Laplace noise, for a number that moves by some steps; A is [steps, ∞)."""
    noise = DiscreteLaplace.for_loss(PureDP(epsilon), Sensitivity.from_l1(steps))
    return PrivacyPromise(
        name=f"discrete Laplace at ε = {float(epsilon):g} for {steps:,} steps",
        draw=_moved(noise, steps),
        bets=Bet.all_of(steps, float(epsilon) * _UP, 0.0),
        batch=FAST,
        changed=lambda factor: _laws(noise, factor, steps),
    )


def _gaussian(mu: Fraction, steps: int) -> PrivacyPromise:
    """Return the promise of rounded normal noise; the event for ε is where the densities differ by e^ε."""
    noise = RoundedGaussian.for_loss(GaussianDP.from_mu_squared(mu**2), Sensitivity.from_l1(steps))
    bets: list[Bet] = []
    for share in EPSILONS:
        epsilon, m = share * float(mu), float(mu)
        delta = normal(m / 2 - epsilon / m) - math.exp(epsilon) * normal(-m / 2 - epsilon / m)
        bets += Bet.all_of(round(steps * (epsilon / m**2 + 0.5)), epsilon * _UP, delta * _UP)
    return PrivacyPromise(
        name=f"rounded Gaussian at μ = {float(mu):g} for {steps:,} steps",
        draw=_moved(noise, steps),
        bets=bets,
        batch=FAST,
        changed=lambda factor: _laws(noise, factor, steps),
    )


def _moved(noise: DiscreteLaplace | RoundedGaussian, steps: int) -> Callable[[bool, int], Draws]:
    return lambda side, size: np.asarray(noise.release(np.full(size, steps if side else 0, dtype=np.int64)))


def _laws(noise: object, factor: float, steps: int) -> tuple[Distribution, Distribution]:
    law = exact_laws.distribution_of(noise, factor) or exact_laws.laplace(factor)
    return (lambda x: law(x - steps)), law


def _flipped() -> PrivacyPromise:
    """Return the promise of permute-and-flip at ε = 1: with the first score one lower its choice is e^ε less likely."""
    flip = PermuteAndFlip.for_loss(PureDP(1), ScoreSensitivity(bound=Fraction(1), monotonic=True))
    return _selected("permute-and-flip", flip, exact_laws.permute_and_flip, {True: (1, 1), False: (1, 0)})


def _chosen() -> PrivacyPromise:
    """Return the promise of the exponential mechanism at ε = 1: between many candidates, one score moves by 1."""
    choice = ExponentialMechanism.for_loss(PureDP(1), ScoreSensitivity(bound=Fraction(1), monotonic=True))
    scores = {True: (*(0,) * 20, 1), False: (0,) * 21}
    return _selected("exponential mechanism", choice, exact_laws.exponential, scores)


def _selected(
    name: str,
    mechanism: PermuteAndFlip | ExponentialMechanism,
    law: Callable[[Sequence[int], float], Sequence[float]],
    scores: Mapping[bool, Sequence[int]],
) -> PrivacyPromise:
    """Return the promise of a choice at ε = 1, with a bet on the last candidate, whose score moves."""
    return PrivacyPromise(
        name=f"{name} at ε = 1",
        draw=lambda side, size: _each(lambda: mechanism.release(scores[side]), size),
        bets=Bet.all_of(len(scores[True]) - 1, _UP, 0.0),
        batch=SLOW,
        changed=lambda factor: _tables(*(law(scores[side], factor * float(mechanism.scale)) for side in SIDES)),
    )


def _first_above() -> PrivacyPromise:
    """Return the promise of the sparse vector technique at ε = 1: eight answers move by 1, all one way or both ways."""
    above = AboveThreshold.for_loss(PureDP(1), ScoreSensitivity(bound=Fraction(1), monotonic=False))
    answers = {True: (*(-1,) * 7, 1), False: (*(0,) * 7, 0)}

    def first_told_law(factor: float, given: Sequence[int]) -> list[float]:
        scales = (factor * float(scale) for scale in (above.threshold_scale, above.query_scale))
        return exact_laws.first_above(given, above.offset, *scales)

    return PrivacyPromise(
        name="sparse vector at ε = 1",
        draw=lambda side, size: _each(lambda: first_told(above, answers[side]), size),
        bets=Bet.all_of(7, _UP, 0.0),
        batch=SLOW,
        changed=lambda factor: _tables(*(first_told_law(factor, answers[s]) for s in SIDES)),
    )


def _tables(mine: Sequence[float], theirs: Sequence[float]) -> tuple[Distribution, Distribution]:
    return (lambda x: math.fsum(mine[: x + 1])), (lambda x: math.fsum(theirs[: x + 1]))


def _each(draw: Callable[[], int], size: int) -> Draws:
    return np.fromiter((draw() for _ in range(size)), dtype=np.int64, count=size)

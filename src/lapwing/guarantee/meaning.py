"""What a budget means for one person, and for several together, in numbers that are never too small."""

import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Final, final

from lapwing.catalog.model import Budget
from lapwing.errors import InvalidParameter
from lapwing.exact.bounds import exp
from lapwing.exact.floats import float_up
from lapwing.privacy import guesses
from lapwing.privacy.approximate import ApproxDP, ApproximateGaussianDP, ApproximateLoss
from lapwing.privacy.measures import GaussianDP, Loss, PureDP

GROUPS: Final = (2, 3, 4, 5, 10)
LEVELS: Final = (Fraction(1, 100), Fraction(5, 100), Fraction(10, 100))
_NORMAL: Final = NormalDist()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Towards:
    """The (ε, δ) towards some people together; both None if nothing is promised to so many."""

    people: int
    epsilon: float | None
    delta: Fraction | None


def odds_factor_up(epsilon: Fraction) -> float:
    """Return e^ε, rounded up; infinity beyond what a float holds."""
    return float_up(exp(epsilon).upper) if epsilon < 700 else math.inf


def odds_change_up(epsilon: Fraction, delta: Fraction) -> tuple[float, Fraction]:
    """Return the largest change of odds by all results, a factor, and the chance of a larger one; both rounded up.

    With δ = 0, P(S)/Q(S) ≤ e^ε for every set S, hence so for odds. With δ > 0 let S be where ln(P/Q) > ε + ln 2:
    P(S) ≤ e^ε·Q(S) + δ ≤ P(S)/2 + δ, so P(S) ≤ 2δ. Where ln(Q/P) > ε + ln 2, Q ≤ 2δ by the same and P ≤ e^(−ε)·δ.
    Together less than 3δ. No test separates neighbours better.
    """
    factor = odds_factor_up(epsilon)
    return (2 * factor, 3 * delta) if delta else (factor, Fraction(0))


def towards_group(budget: Budget, total: Loss, people: int) -> Towards:
    """Return what the cap promises to so many people together.

    Without δ for keys the cap is one loss, and `for_group` has its value for a group. With δ for keys in a ledger of
    μ², trade-off functions are composed (`privacy.groups`); ε is then stated at the δ of one person if that is above
    the δ that the group's keys take, and else at twice the latter. In other ledgers (ε, δ) itself is stated for the
    group.

    Source:
        Dong, Roth and Su 2022 for μ; Vadhan 2017, Lemma 2.2, for (ε, δ).
    """
    try:
        return _towards(budget, total, people)
    except InvalidParameter:
        return Towards(people=people, epsilon=None, delta=None)


def _towards(budget: Budget, total: Loss, people: int) -> Towards:
    loss: Loss | ApproximateLoss
    if not budget.delta_keys:
        loss = total.for_group(people)
        return Towards(people=people, epsilon=loss.to_epsilon(delta=budget.delta), delta=budget.delta)
    if isinstance(total, GaussianDP):
        loss = ApproximateGaussianDP.of(total, budget.delta_keys).for_group(people)
        delta = budget.delta if loss.delta < budget.delta else 2 * loss.delta
    else:
        loss = ApproxDP(budget.epsilon, budget.delta).for_group(people)
        delta = loss.delta
    if delta >= 1:
        return Towards(people=people, epsilon=None, delta=None)
    return Towards(people=people, epsilon=loss.to_epsilon(delta=delta), delta=delta)


def power_up(budget: Budget, total: Loss, level: Fraction) -> Fraction:
    """Return the best power of a test for a person's presence, at a rate of false alarms.

    In a ledger of μ² it is δ_keys + (1 − δ_keys)·Φ(Φ⁻¹(level/(1 − δ_keys)) + μ), else by (ε, δ) the lesser of
    e^ε·level + δ and 1 − e^(−ε)·(1 − level − δ). Rounded up to a tenth of a percent, of a float's accuracy.

    Source:
        Dong, Roth and Su 2022; Kairouz, Oh and Viswanath 2015 for (ε, δ).
    """
    if isinstance(total, GaussianDP):
        keys = float(budget.delta_keys)
        power = keys + (1 - keys) * _NORMAL.cdf(_NORMAL.inv_cdf(float(level) / (1 - keys)) + total.mu)
    else:
        factor, delta = odds_factor_up(budget.epsilon), float(budget.delta)
        power = min(factor * float(level) + delta, 1 - (1 - float(level) - delta) / factor)
    return min(Fraction(1), Fraction(math.ceil(power * 1000 + 1e-6), 1000))


def guess_up(budget: Budget, total: Loss, steps: int = 1) -> Fraction:
    """Return how often a guess between two equally likely data sets is right at most (`privacy.guesses`), rounded up.

    Args:
        steps: From one data set to the other. Under add_remove two contents of one unit's rows are two steps apart, by
            way of the data without them.
    """
    if isinstance(total, GaussianDP):
        group = ApproximateGaussianDP.of(total, budget.delta_keys).for_group(steps)
        return guesses.right_guesses_up(group.gaussian, group.delta)
    towards = towards_group(budget, total, steps)
    if towards.epsilon is None or towards.delta is None:
        return Fraction(1)
    return guesses.right_guesses_up(PureDP(Fraction(towards.epsilon)), towards.delta)


def times_of_100(budget: Budget, total: Loss, steps: int = 1) -> int:
    """Return `guess_up` in whole times out of 100, rounded up."""
    return guesses.times_of_100(guess_up(budget, total, steps))

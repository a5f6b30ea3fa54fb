"""What it costs to answer the same question again and again, each time with fresh noise.

A limit of ε "a day", or a budget that is reset every month, bounds one day or one month. This adds up what a person has
lost since the first day.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from lapwing.local.frequencies.binary import BinaryResponse
from lapwing.local.shuffling.binomial import Binomial
from lapwing.local.thresholds import chance, epsilon_of
from lapwing.mechanisms.parameters import whole_number
from lapwing.privacy.amounts import Number, probability
from lapwing.privacy.certified_curve import Interval
from lapwing.privacy.loss_distribution import compose
from lapwing.privacy.measures import PureDP
from lapwing.privacy.pairs import RandomizedResponsePair

MOST_REPORTS: Final = 100_000
DELTA: Final = Fraction(1, 10**6)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """The loss of several reports of one person together, each ε-DP with fresh noise.

    Args:
        reports: How many.
        epsilon: Of all together, in pure differential privacy: the sum. Randomized response with an unchanged answer
            attains it, by a run of equal reports.
        concentrated: The ε at `delta` that zCDP states.
        tight: Bounds on the least ε at `delta` that holds for every ε-DP mechanism, from the exact law of the privacy
            loss.
        mistaken: The probability that the majority of the reports, of yes or no by randomized response, is not the
            answer; a coin decides a tie. At equal odds no other guess is better. It is exact to nine digits; below
            1e-40 it is an upper bound.
    """

    reports: int
    epsilon: Fraction
    delta: Fraction
    concentrated: float
    tight: Interval
    mistaken: float

    @property
    def recovered(self) -> float:
        """The probability that the majority is the answer."""
        return 1 - self.mistaken


def repeated_reports(epsilon: Number, reports: int, delta: Number = DELTA) -> Repeated:
    """Return the loss of several reports together, if each is ε-DP, has fresh noise, and is of an unchanged answer.

    Guarantee:
        Neighbours are two answers, or sequences of answers, of one person (`replace_one`). The reports together are
        Tε-DP, and (tight.upper, delta)-DP. Every ε-DP mechanism is a post-processing of randomized response at ε. So
        the reports lose at most as much as T such responses, and the privacy loss of those is computed exactly.

    Source:
        Kairouz, Oh and Viswanath 2015 (every mechanism); Bun and Steinke 2016, Steinke 2024 (zCDP).
    """
    amount, count = epsilon_of(epsilon), whole_number(reports, "reports", least=1, most=MOST_REPORTS)
    failure = probability(delta, "delta")
    return Repeated(
        reports=count,
        epsilon=amount * count,
        delta=failure,
        concentrated=(count * PureDP(amount).to_kind("zcdp")).to_epsilon(delta=failure),
        tight=compose([(RandomizedResponsePair(amount), count)]).to_epsilon(failure),
        mistaken=majority_mistaken(amount, count),
    )


def over_days(epsilon: Number, reports_a_day: int, days: int, delta: Number = DELTA) -> tuple[Repeated, ...]:
    """Return what has been revealed by the end of each day; that a limit is reset every night changes nothing."""
    whole_number(days, "days", least=1, most=MOST_REPORTS)
    whole_number(reports_a_day, "reports_a_day", least=1, most=MOST_REPORTS // days)
    return tuple(repeated_reports(epsilon, day * reports_a_day, delta) for day in range(1, days + 1))


def majority_mistaken(epsilon: Number, reports: int) -> float:
    """Return the probability that the majority of T fresh randomized responses is not the answer.

    It is P(X < T/2) + P(X = T/2)/2 for X of Binomial(T, p), p = e^ε/(1 + e^ε) to 64 bits. By the lemma of Neyman and
    Pearson no guess is right more often for both answers, as the likelihood ratio grows with X.
    """
    truth = chance(BinaryResponse.for_epsilon(epsilon).threshold_yes)
    right = Binomial.of(reports, truth)
    fewer = max(0, -(-reports // 2) - right.first)
    even = right.mass[fewer] / 2 if reports % 2 == 0 and right.first <= reports // 2 else 0.0
    return float(right.mass[:fewer].sum() + even) + right.below

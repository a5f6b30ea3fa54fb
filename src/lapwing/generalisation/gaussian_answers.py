"""Answers with Gaussian noise, each good for the population, however the questions were chosen."""

import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Self, final

from lapwing.errors import InvalidParameter
from lapwing.exact.floats import float_up
from lapwing.generalisation.answers import gaussian_reach_up
from lapwing.generalisation.posterior import posterior_gap_up
from lapwing.mechanisms.parameters import whole_number
from lapwing.privacy.amounts import Number, positive, probability
from lapwing.privacy.measures import GaussianDP

_NORMAL = NormalDist()
_NOTHING = GaussianDP(0)
_SHARES = 400
"""Parts of the error probability that are tried for how to share it out."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianAnswers:
    """Means of n values in [0, 1], each with noise N(0, σ²), up to a number of questions.

    Guarantee:
        All together GaussianDP(√questions/(n·σ)) for `replace_one` neighbours, because one person moves a mean by 1/n.
        With the wanted probability, all answers are within `half_width` of the population's means.

    Args:
        people: n.
        questions: How many at most.
        sigma: Of the noise on a mean.
        besides: The loss of everything else that was or will be released of the same persons, for `replace_one`
            neighbours.
    """

    people: int
    questions: int
    sigma: Fraction
    besides: GaussianDP = _NOTHING

    def __post_init__(self) -> None:
        whole_number(self.people, "people", least=1)
        whole_number(self.questions, "questions", least=1)
        object.__setattr__(self, "sigma", positive(self.sigma, "sigma"))

    @property
    def loss(self) -> GaussianDP:
        """The loss of all answers together, for `replace_one` neighbours."""
        return GaussianDP.from_mu_squared(self.questions / (self.people * self.sigma) ** 2)

    def half_width(self, confidence: Number) -> float:
        """Return what all answers are within of the population's means with this confidence, rounded up.

        |a_j − q_j(P)| ≤ |a_j − q_j(Π)| + |q_j(Π) − q_j(P)|; `answers` bounds the first and `posterior` the second, each
        but with a part of the error probability.
        """
        return float_up(self.half_width_up(1 - probability(confidence, "confidence")))

    def half_width_up(self, chance: Fraction) -> Fraction:
        """Return the half-width that is missed with this chance at most."""
        part = Fraction(_best_share(self.questions, float(chance)), _SHARES) * chance
        reach = gaussian_reach_up(self.sigma, self.questions, chance - part)
        return reach + posterior_gap_up(self.loss + self.besides, part)

    @classmethod
    def best(cls, people: int, questions: int, confidence: Number, *, besides: GaussianDP = _NOTHING) -> Self:
        """Return the noise that makes the half-width about as small as it can be."""
        chance = float(1 - probability(confidence, "confidence"))
        n, k = whole_number(people, "people", least=1), whole_number(questions, "questions", least=1)
        part = _best_share(k, chance) * chance / _SHARES
        noise = _least_at(float(besides.mu_squared), k / n**2, believed(part) / _noised(k, chance - part))
        return cls(people=n, questions=k, sigma=Fraction(noise).limit_denominator(1 << 60), besides=besides)

    @classmethod
    def most(
        cls, people: int, half_width: Number, confidence: Number, *, besides: GaussianDP = _NOTHING
    ) -> "Self | None":
        """Return the most answers that are all within a half-width of the population's means; None if not even one is.

        The result's half-width is certified; that no more would do is up to the search, which may miss a few.
        """
        wanted, chance = positive(half_width, "half_width"), 1 - probability(confidence, "confidence")
        whole_number(people, "people", least=1)
        if wanted >= 1:
            raise InvalidParameter(f"half_width is {half_width}; values are in [0, 1], so ask for less than 1.")

        def kept(k: int) -> "Self | None":
            answers = cls.best(people, k, 1 - chance, besides=besides)
            return answers if answers.half_width_up(chance) <= wanted else None

        low = 1
        result = kept(low)
        if result is None:
            return None
        while (more := kept(4 * low)) is not None:
            low, result = 4 * low, more
        high = 4 * low
        while high - low > max(1, low // 1000):
            middle = (low + high) // 2
            more = kept(middle)
            low, high, result = (middle, high, more) if more is not None else (low, middle, result)
        return result


# In floating point, for guesses. With small μ, δ_μ(ε) = μ·(φ(x) − x·Φ(−x)) with x = ε/μ, and tanh(ε/4) = ε/4, so that
# the gap is μ·φ(x)/β for Φ(−x) = β/4; the half-width of n answers is least where both of its parts are alike.


def believed(chance: float) -> float:
    """Return the gap of the posterior beside μ, for small μ."""
    return _NORMAL.pdf(_NORMAL.inv_cdf(chance / 4)) / chance


def _noised(questions: int, chance: float) -> float:
    """Return how far answers are from the posterior, beside σ."""
    part = chance / (2 * questions)
    return _NORMAL.pdf(_NORMAL.inv_cdf(min(part, 0.5))) / part


def _least_at(besides: float, moved: float, ratio: float) -> float:
    """Return the σ at which σ + ratio·√(besides + moved/σ²) is least; √(ratio·√moved) with nothing besides."""
    sigma = math.sqrt(ratio * math.sqrt(moved))
    for _ in range(50):  # where the derivative is 0, σ³ = ratio·moved/√(besides + moved/σ²): damped, it settles soon
        after = (ratio * moved / math.sqrt(besides + moved / sigma**2)) ** (1 / 3)
        if abs(after - sigma) <= 1e-9 * sigma:
            break
        sigma = (after + sigma) / 2
    return sigma


def _best_share(questions: int, chance: float) -> int:
    """Return the part of the chance that the posterior's gap should have, in units of 1/_SHARES."""
    return min(
        range(1, _SHARES),
        key=lambda i: believed(chance * i / _SHARES) * _noised(questions, chance * (1 - i / _SHARES)),
    )

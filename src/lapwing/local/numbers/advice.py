"""Which mechanism to take for a mean: the exact error of each."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, sqrt
from statistics import NormalDist
from typing import Final, final

from lapwing.errors import InvalidParameter
from lapwing.local import client
from lapwing.local.numbers.duchi import DuchiMean
from lapwing.local.numbers.hybrid import HybridMean
from lapwing.local.numbers.means import MeanRandomizer, Parabola
from lapwing.local.numbers.piecewise import PiecewiseMean
from lapwing.local.thresholds import LARGEST_EPSILON, epsilon_of
from lapwing.mechanisms.parameters import whole_number
from lapwing.privacy.amounts import Number, exact, probability

MEAN_MAKERS: Final[dict[str, Callable[[Number, client.Number], MeanRandomizer]]] = {
    "duchi": DuchiMean.for_epsilon,
    "piecewise": PiecewiseMean.for_epsilon,
    "hybrid": HybridMean.for_epsilon,
}
_STEP: Final = Fraction(1, 1000)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MeanOption:
    """A mechanism for a mean with its exact error.

    Args: error: the standard deviation of the mean, given who responded, at the worst numbers or at those expected.
        worst: that of the mean of a population of which the respondents are a random sample, whatever its numbers are.
        report_bytes: what one says, packed.
    """

    name: str
    mechanism: MeanRandomizer
    error: float
    worst: float
    report_bytes: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MeanAdvice:
    """All mechanisms for a mean, the most accurate first; of equals, the one with shorter reports."""

    epsilon: Fraction
    respondents: int
    options: tuple[MeanOption, ...]

    @property
    def best(self) -> MeanOption:
        """The one to take."""
        return self.options[0]


def advise_mean(
    epsilon: Number,
    number: client.Number,
    respondents: int,
    *,
    expected: tuple[Number, Number] | None = None,
) -> MeanAdvice:
    """Return every mechanism for a mean with the exact error that it would have.

    Args: expected: mean and standard deviation that the numbers are thought to have; without them, the error is that of
        the worst numbers.
    Raises: InvalidParameter if numbers within the bounds cannot have such a mean and standard deviation.
    """
    amount, n = epsilon_of(epsilon), whole_number(respondents, "respondents", least=1)
    places = _places(number, *expected) if expected is not None else None
    length = float(number.upper - number.lower)
    options = []
    for name, make in MEAN_MAKERS.items():
        mechanism = make(amount, number)
        variance = mechanism.variance.most() if places is None else mechanism.variance.average(*places)
        error, worst = (sqrt(each / n) * length for each in (variance, population_variance(mechanism.variance)))
        options.append(
            MeanOption(name=name, mechanism=mechanism, error=error, worst=worst, report_bytes=mechanism.report_bytes)
        )
    ranked = sorted(options, key=lambda option: (float(f"{option.error:.12g}"), option.report_bytes))
    return MeanAdvice(epsilon=amount, respondents=n, options=tuple(ranked))


def mean_respondents_needed(
    epsilon: Number, number: client.Number, half_width: Number, confidence: Number = 0.95
) -> int:
    """Return how many respondents make the interval for the population's mean that narrow, whatever its numbers are.

    With z of the confidence and the worst variance s²/n of the mean, that is n = z²s²/half_width², for the mechanism
    that `advise_mean` puts first.

    Args: half_width: in the units of the number, above 0 and below half of what is between the bounds.
    """
    wanted = exact(half_width, "half_width")
    most = (Fraction(number.upper) - Fraction(number.lower)) / 2
    if not 0 < wanted < most:
        raise InvalidParameter(f"half_width is {float(wanted):g}; it must be above 0 and below {float(most):g}.")
    z = NormalDist().inv_cdf((1 + float(probability(confidence, "confidence"))) / 2)
    return ceil((z * advise_mean(epsilon, number, 1).best.worst / float(wanted)) ** 2)


def mean_epsilon_needed(
    respondents: int, number: client.Number, half_width: Number, confidence: Number = 0.95
) -> Fraction:
    """Return the least ε, in steps of 0.001, with which so many respondents suffice; found by halving.

    Raises: InvalidParameter if none up to 32 does: the sample itself is too small.
    """
    n = whole_number(respondents, "respondents", least=1)
    low, high = 0, int(LARGEST_EPSILON / _STEP)
    if mean_respondents_needed(high * _STEP, number, half_width, confidence) > n:
        raise InvalidParameter(
            f"{n:,} respondents are too few for that at any epsilon; ask more, or for less accuracy."
        )
    while high - low > 1:
        middle = (low + high) // 2
        enough = mean_respondents_needed(middle * _STEP, number, half_width, confidence) <= n
        low, high = (low, middle) if enough else (middle, high)
    return high * _STEP


def population_variance(law: Parabola) -> Fraction:
    """Return the largest variance of the position in one report of a random member of any population.

    With the variance A + Bu + Cu² of a position given u, and E[u] = ū, E[u²] = m, it is A + Bū + (1 + C)m − ū². That is
    linear in m, which is from ū² (all numbers are the same) to ū (all are at the bounds): one of these is the worst.
    """
    same = law
    ends = Parabola(law.constant, law.linear + 1 + law.square, Fraction(-1))
    return max(same.most(), ends.most())


def _places(number: client.Number, mean: Number, deviation: Number) -> tuple[Fraction, Fraction]:
    """Return mean and standard deviation as positions from 0 to 1, for which deviation² ≤ mean(1 − mean)."""
    low, length = Fraction(number.lower), Fraction(number.upper) - Fraction(number.lower)
    centre, spread = (exact(mean, "the expected mean") - low) / length, exact(deviation, "the deviation") / length
    if not (0 <= centre <= 1 and spread >= 0 and spread**2 <= centre * (1 - centre)):
        raise InvalidParameter("Numbers within the bounds cannot have the expected mean and standard deviation.")
    return centre, spread

"""Which mechanism to take, for frequencies or for a mean: the exact error of each, and the cost of an accuracy."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, sqrt
from statistics import NormalDist
from typing import Final, final

from lapwing.errors import InvalidParameter
from lapwing.local import client
from lapwing.local.frequencies.randomizer import Randomizer
from lapwing.local.frequencies.variance import mean_variance, worst_deviation
from lapwing.local.means.mean_randomizer import MeanRandomizer, Parabola
from lapwing.local.registry import FREQUENCY_MAKERS, MEAN_MAKERS
from lapwing.local.thresholds import LARGEST_EPSILON, epsilon_of
from lapwing.mechanisms.parameters import whole_number
from lapwing.privacy.amounts import Number, exact, probability

_MOST_HASHING: Final = 16
_STEP: Final = Fraction(1, 1000)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A mechanism for a list of values with its exact error.

    Args:
        error: The root of the mean squared error of a share, over values, given who responded.
        worst: The standard deviation at worst of a share of the population that the respondents are a sample of.
        report_bytes: The size of one report, packed.
        operations: Steps of the estimate.
    """

    name: str
    mechanism: Randomizer
    error: float
    worst: float
    report_bytes: int
    operations: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """All mechanisms for a list of values, the most accurate first; of equals, the one with shorter reports."""

    epsilon: Fraction
    categories: int
    respondents: int
    options: tuple[Option, ...]

    @property
    def best(self) -> Option:
        """The one to take."""
        return self.options[0]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MeanOption:
    """A mechanism for a mean with its exact error.

    Args:
        error: The standard deviation of the mean, given who responded, at the worst numbers or at those expected.
        worst: The standard deviation of the mean of a population of which the respondents are a random sample, at the
            worst numbers.
        report_bytes: The size of one report, packed.
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


def advise(epsilon: Number, categories: int, respondents: int, *, most_bytes: int | None = None) -> Advice:
    """Return every mechanism for a number of values with the exact error that it would have.

    The error is for an average value. It is √((q(1−q)/(p−q)² + (1−p−q)/(k(p−q)))/n), with the mechanism's own p and q.

    Args:
        most_bytes: Leave out mechanisms with longer reports.
    """
    amount, n = epsilon_of(epsilon), whole_number(respondents, "respondents", least=1)
    options = []
    for name, make in FREQUENCY_MAKERS.items():
        if (name == "binary" and categories != 2) or (name == "hashing" and amount > _MOST_HASHING):
            continue
        mechanism = make(amount, categories)
        option = Option(
            name=name,
            mechanism=mechanism,
            error=sqrt(mean_variance(mechanism) / n),
            worst=worst_deviation(mechanism) / sqrt(n),
            report_bytes=mechanism.report_bytes,
            operations=mechanism.operations(n),
        )
        if most_bytes is None or option.report_bytes <= most_bytes:
            options.append(option)
    if not options:
        raise InvalidParameter(f"Every mechanism has reports of more than {most_bytes} bytes.")
    options.sort(key=lambda option: (_comparable(option.error), option.report_bytes, option.operations))
    return Advice(epsilon=amount, categories=categories, respondents=n, options=tuple(options))


def advise_mean(
    epsilon: Number,
    number: client.Number,
    respondents: int,
    *,
    expected: tuple[Number, Number] | None = None,
) -> MeanAdvice:
    """Return every mechanism for a mean with the exact error that it would have.

    Args:
        expected: Mean and standard deviation that the numbers are thought to have. Without them, the error is for the
            worst numbers.

    Raises:
        InvalidParameter: If numbers within the bounds cannot have such a mean and standard deviation.
    """
    amount, n = epsilon_of(epsilon), whole_number(respondents, "respondents", least=1)
    moments = _positions(number, *expected) if expected is not None else None
    length = float(number.upper - number.lower)
    options = []
    for name, make in MEAN_MAKERS.items():
        mechanism = make(amount, number)
        variance = mechanism.variance.most() if moments is None else mechanism.variance.average(*moments)
        error, worst = (sqrt(each / n) * length for each in (variance, population_variance(mechanism.variance)))
        options.append(
            MeanOption(name=name, mechanism=mechanism, error=error, worst=worst, report_bytes=mechanism.report_bytes)
        )
    options.sort(key=lambda option: (_comparable(option.error), option.report_bytes))
    return MeanAdvice(epsilon=amount, respondents=n, options=tuple(options))


def respondents_needed(epsilon: Number, categories: int, half_width: Number, confidence: Number = 0.95) -> int:
    """Return how many respondents make every share's interval for the population that narrow, for any shares.

    With z of the confidence and the worst share's variance s²/n, that is n = z²s²/half_width², for the mechanism that
    `advise` puts first.
    """
    reach = float(probability(half_width, "half_width"))
    return _respondents(advise(epsilon, categories, 1).best.worst, reach, confidence)


def mean_respondents_needed(
    epsilon: Number, number: client.Number, half_width: Number, confidence: Number = 0.95
) -> int:
    """Return how many respondents make the interval for the population's mean that narrow, for any numbers.

    With z of the confidence and the worst variance s²/n of the mean, that is n = z²s²/half_width². The mechanism is the
    one that `advise_mean` puts first.

    Args:
        half_width: In the units of the number, above 0 and below half of what is between the bounds.
    """
    reach, most = exact(half_width, "half_width"), (Fraction(number.upper) - Fraction(number.lower)) / 2
    if not 0 < reach < most:
        raise InvalidParameter(f"half_width is {float(reach):g}; it must be above 0 and below {float(most):g}.")
    return _respondents(advise_mean(epsilon, number, 1).best.worst, float(reach), confidence)


def epsilon_needed(respondents: int, categories: int, half_width: Number, confidence: Number = 0.95) -> Fraction:
    """Return the least ε, in steps of 0.001, with which this many respondents suffice; found by halving.

    Raises:
        InvalidParameter: If none up to 32 does: the sample itself is too small.
    """
    n = whole_number(respondents, "respondents", least=1)
    return _least_epsilon(n, f"{n}", lambda e: respondents_needed(e, categories, half_width, confidence))


def mean_epsilon_needed(
    respondents: int, number: client.Number, half_width: Number, confidence: Number = 0.95
) -> Fraction:
    """Return the least ε, in steps of 0.001, with which this many respondents suffice; found by halving.

    Raises:
        InvalidParameter: If none up to 32 does: the sample itself is too small.
    """
    n = whole_number(respondents, "respondents", least=1)
    return _least_epsilon(n, f"{n:,}", lambda e: mean_respondents_needed(e, number, half_width, confidence))


def population_variance(law: Parabola) -> Fraction:
    """Return the largest variance of the position in one report of a random member of any population.

    With the variance A + Bu + Cu² of a position given u, and E[u] = ū, E[u²] = m, it is A + Bū + (1 + C)m − ū². That is
    linear in m, which is from ū² (all numbers are the same) to ū (all are at the bounds): one of these is the worst.
    """
    same = law
    ends = Parabola(law.constant, law.linear + 1 + law.square, Fraction(-1))
    return max(same.most(), ends.most())


def _comparable(error: float) -> float:
    """Return an error to twelve digits: mechanisms that differ by less are equally accurate."""
    return float(f"{error:.12g}")


def _respondents(deviation: float, reach: float, confidence: Number) -> int:
    """Return how many respondents bring z times a deviation of √n down to a half-width."""
    z = NormalDist().inv_cdf((1 + float(probability(confidence, "confidence"))) / 2)
    return ceil((z * deviation / reach) ** 2)


def _least_epsilon(respondents: int, written: str, needed: Callable[[Fraction], int]) -> Fraction:
    """Return the least ε, in steps, at which no more respondents are needed."""
    low, high = 0, int(LARGEST_EPSILON / _STEP)
    if needed(high * _STEP) > respondents:
        raise InvalidParameter(
            f"{written} respondents are too few for this accuracy at any epsilon. Ask more people, or accept less "
            f"accuracy."
        )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if needed(middle * _STEP) <= respondents else (middle, high)
    return high * _STEP


def _positions(number: client.Number, mean: Number, deviation: Number) -> tuple[Fraction, Fraction]:
    """Return mean and standard deviation as positions from 0 to 1, for which deviation² ≤ mean(1 − mean)."""
    low, length = Fraction(number.lower), Fraction(number.upper) - Fraction(number.lower)
    centre, spread = (exact(mean, "the expected mean") - low) / length, exact(deviation, "the deviation") / length
    if not (0 <= centre <= 1 and spread >= 0 and spread**2 <= centre * (1 - centre)):
        raise InvalidParameter("Numbers within the bounds cannot have the expected mean and standard deviation.")
    return centre, spread

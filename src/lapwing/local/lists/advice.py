"""Which mechanism to take: the exact error of each, what it sends, and what it takes to be so accurate."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, sqrt
from statistics import NormalDist
from typing import Final, final

from lapwing.errors import InvalidParameter
from lapwing.local.lists.binary import BinaryResponse
from lapwing.local.lists.hashing import LocalHashing
from lapwing.local.lists.kary import KaryResponse
from lapwing.local.lists.randomizer import Randomizer
from lapwing.local.lists.subset import SubsetSelection
from lapwing.local.lists.unary import UnaryEncoding
from lapwing.local.lists.variance import mean_variance, worst_deviation
from lapwing.local.thresholds import LARGEST_EPSILON, epsilon_of
from lapwing.mechanisms.parameters import whole_number
from lapwing.privacy.amounts import Number, probability

MAKERS: Final[dict[str, Callable[[Number, int], Randomizer]]] = {
    "binary": lambda epsilon, k: BinaryResponse.for_epsilon(epsilon),
    "k-ary": KaryResponse.for_epsilon,
    "subset": SubsetSelection.for_epsilon,
    "optimised unary": UnaryEncoding.optimised,
    "symmetric unary": UnaryEncoding.symmetric,
    "hashing": LocalHashing.for_epsilon,
}
_MOST_HASHING: Final = 16
_STEP: Final = Fraction(1, 1000)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A mechanism with its exact error.

    Args: error: the root of the mean squared error of a share, over values, given who responded. worst: the standard
        deviation at worst of a share of the population that the respondents are a sample of. report_bytes: what one
        says, packed. operations: steps of the estimate.
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
    """All mechanisms, the most accurate first; of equals, the one with shorter reports."""

    epsilon: Fraction
    categories: int
    respondents: int
    options: tuple[Option, ...]

    @property
    def best(self) -> Option:
        """The one to take."""
        return self.options[0]


def advise(epsilon: Number, categories: int, respondents: int, *, most_bytes: int | None = None) -> Advice:
    """Return every mechanism for a number of values with the exact error that it would have.

    The error is that of an average value: √((q(1−q)/(p−q)² + (1−p−q)/(k(p−q)))/n), with the mechanism's own p and q.

    Args: most_bytes: leave out mechanisms with longer reports.
    """
    amount, n = epsilon_of(epsilon), whole_number(respondents, "respondents", least=1)
    found = [_option(name, MAKERS[name](amount, categories), n) for name in _fitting(amount, categories)]
    short = [option for option in found if most_bytes is None or option.report_bytes <= most_bytes]
    if not short:
        raise InvalidParameter(f"Every mechanism has reports of more than {most_bytes} bytes.")
    ranked = sorted(short, key=lambda option: (float(f"{option.error:.12g}"), option.report_bytes, option.operations))
    return Advice(epsilon=amount, categories=categories, respondents=n, options=tuple(ranked))


def respondents_needed(epsilon: Number, categories: int, half_width: Number, confidence: Number = 0.95) -> int:
    """Return how many respondents make every share's interval for the population that narrow, whatever the shares are.

    With z of the confidence and the worst share's variance s²/n, that is n = z²s²/half_width², for the mechanism that
    `advise` puts first.
    """
    wanted, z = float(probability(half_width, "half_width")), _quantile(confidence)
    return ceil((z * advise(epsilon, categories, 1).best.worst / wanted) ** 2)


def epsilon_needed(respondents: int, categories: int, half_width: Number, confidence: Number = 0.95) -> Fraction:
    """Return the least ε, in steps of 0.001, with which so many respondents suffice; found by halving.

    Raises: InvalidParameter if none up to 32 does: the sample itself is too small.
    """
    n = whole_number(respondents, "respondents", least=1)
    low, high = 0, int(LARGEST_EPSILON / _STEP)
    if respondents_needed(high * _STEP, categories, half_width, confidence) > n:
        raise InvalidParameter(f"{n} respondents are too few for that at any epsilon; ask more, or for less accuracy.")
    while high - low > 1:
        middle = (low + high) // 2
        enough = respondents_needed(middle * _STEP, categories, half_width, confidence) <= n
        low, high = (low, middle) if enough else (middle, high)
    return high * _STEP


def _fitting(epsilon: Fraction, categories: int) -> list[str]:
    left_out = {"binary"} if categories != 2 else set()
    return [name for name in MAKERS if name not in left_out | ({"hashing"} if epsilon > _MOST_HASHING else set())]


def _option(name: str, mechanism: Randomizer, respondents: int) -> Option:
    return Option(
        name=name,
        mechanism=mechanism,
        error=sqrt(mean_variance(mechanism) / respondents),
        worst=worst_deviation(mechanism) / sqrt(respondents),
        report_bytes=mechanism.report_bytes,
        operations=mechanism.operations(respondents),
    )


def _quantile(confidence: Number) -> float:
    return NormalDist().inv_cdf((1 + float(probability(confidence, "confidence"))) / 2)

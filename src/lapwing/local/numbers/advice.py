"""Which mechanism to take for a mean: the exact error of each."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Final, final

from lapwing.errors import InvalidParameter
from lapwing.local import client
from lapwing.local.numbers.duchi import DuchiMean
from lapwing.local.numbers.hybrid import HybridMean
from lapwing.local.numbers.means import MeanRandomizer
from lapwing.local.numbers.piecewise import PiecewiseMean
from lapwing.local.thresholds import epsilon_of
from lapwing.mechanisms.parameters import whole_number
from lapwing.privacy.amounts import Number, exact

MEAN_MAKERS: Final[dict[str, Callable[[Number, client.Number], MeanRandomizer]]] = {
    "duchi": DuchiMean.for_epsilon,
    "piecewise": PiecewiseMean.for_epsilon,
    "hybrid": HybridMean.for_epsilon,
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MeanOption:
    """A mechanism for a mean with its exact error.

    Args: error: the standard deviation of the mean, given who responded, at the worst numbers or at those expected.
        report_bytes: what one says, packed.
    """

    name: str
    mechanism: MeanRandomizer
    error: float
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
        error = sqrt(variance / n) * length
        options.append(MeanOption(name=name, mechanism=mechanism, error=error, report_bytes=mechanism.report_bytes))
    ranked = sorted(options, key=lambda option: (float(f"{option.error:.12g}"), option.report_bytes))
    return MeanAdvice(epsilon=amount, respondents=n, options=tuple(ranked))


def _places(number: client.Number, mean: Number, deviation: Number) -> tuple[Fraction, Fraction]:
    """Return mean and standard deviation as positions from 0 to 1, for which deviation² ≤ mean(1 − mean)."""
    low, length = Fraction(number.lower), Fraction(number.upper) - Fraction(number.lower)
    centre, spread = (exact(mean, "the expected mean") - low) / length, exact(deviation, "the deviation") / length
    if not (0 <= centre <= 1 and spread >= 0 and spread**2 <= centre * (1 - centre)):
        raise InvalidParameter("Numbers within the bounds cannot have the expected mean and standard deviation.")
    return centre, spread

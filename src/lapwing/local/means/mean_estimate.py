"""A mean from noisy reports of numbers, with intervals that say for whom they are.

The raw mean is the average position of the reports, from the lower bound to the upper: right on average, whatever the
numbers are. It may lie beyond the bounds.
"""

from dataclasses import dataclass
from math import ceil, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, final

from lapwing.errors import InvalidParameter
from lapwing.local.frequencies.frequency_estimate import Whom, checked_whom
from lapwing.local.frequencies.randomizer import Reports
from lapwing.local.means.mean_randomizer import MeanRandomizer
from lapwing.mechanisms.parameters import whole_number
from lapwing.privacy.amounts import Number, probability

if TYPE_CHECKING:
    import pyarrow


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MeanEstimate:
    """The mean of a number, estimated from reports.

    Args:
        mechanism: Of the reports.
        reports: How many.
        position: The averages of their positions, and of the squares of these.
        square: As `position`.
    """

    mechanism: MeanRandomizer
    reports: int
    position: float
    square: float

    @property
    def raw(self) -> float:
        """The unbiased mean, which may lie beyond the bounds."""
        return self._number(self.position)

    @property
    def consistent(self) -> float:
        """The raw mean, moved into the bounds; no longer unbiased."""
        return self._number(min(max(self.position, 0.0), 1.0))

    def standard_error(self, whom: Whom = "respondents") -> float:
        """Return the standard error of the raw mean, at the position moved into [0, 1]."""
        u = min(max(self.position, 0.0), 1.0)
        constant, linear, square = self._spread(whom)
        return sqrt(max(constant + linear * u + square * u**2, 0.0) / self.reports) * self._length

    def interval(self, confidence: Number = 0.95, *, whom: Whom = "respondents") -> tuple[float, float]:
        """Return the ends of an interval for the mean: all u with (û − u)² ≤ z²·v(u)/n.

        For Duchi's mechanism, whose positions have two values, that is Wilson's interval. They are right for many
        reports (from some thousand), not certified. Forged reports are in neither, and neither are numbers beyond the
        bounds: the mean counts the numbers after they were moved into them.
        """
        z = NormalDist().inv_cdf((1 + float(probability(confidence, "confidence"))) / 2)
        constant, linear, square = self._spread(whom)
        unit = z**2 / self.reports
        # (1 − unit·square)u² − (2û + unit·linear)u + û² − unit·constant ≤ 0
        lead, middle = 1 - unit * square, 2 * self.position + unit * linear
        root = sqrt(max(middle**2 - 4 * lead * (self.position**2 - unit * constant), 0.0))
        return self._number((middle - root) / (2 * lead)), self._number((middle + root) / (2 * lead))

    def _spread(self, whom: Whom) -> tuple[float, float, float]:
        """Return v(u) as coefficients of 1, u and u²: n times the variance of the average position.

        With the variance A + Bu + Cu² of a position given a point's u, the mean square of a position is A + Bū +
        (1 + C)·m for points whose squares have the mean m. If C = −1, as of Duchi's mechanism, that is known; else it
        is measured. From it, ū² is subtracted for the population. For the respondents, whose own numbers do not vary,
        it is the mean of their numbers' squares: m, less what the rounding to points added, (1/2s)² at most. It
        follows from the same mean square, and is from ū² to ū; where it cannot be told (C = −1), the lower end is
        taken, so that the interval is that for the population, too wide rather than too narrow.
        """
        law = self.mechanism.variance
        if law.square == -1:
            checked_whom(whom)
            return float(law.constant), float(law.linear), -1.0
        if checked_whom(whom) == "population":
            return self.square, 0.0, -1.0
        u = min(max(self.position, 0.0), 1.0)
        mean_square = (self.square - float(law.constant) - float(law.linear) * u) / float(1 + law.square)
        rounding = 1 / (2 * self.mechanism.number.steps) ** 2
        return self.square - min(max(mean_square - rounding, u**2), u), 0.0, 0.0

    def forged(self, reports: int) -> tuple[float, float]:
        """Return how far this many forged reports among all can have moved the raw mean down and up.

        The raw mean is the mean of all positions. So the equation of `FrequencyEstimate.forged` holds here too.

        Args:
            reports: How many, below the number of all reports.
        """
        many = whole_number(reports, "reports", most=self.reports - 1) / (self.reports - reports) * self._length
        least, greatest = self.mechanism.extremes
        return many * (self.position - float(least)), many * (float(greatest) - self.position)

    def respondents_for(self, half_width: float, confidence: Number = 0.95) -> int:
        """Return how many reports make the interval for the population that narrow, if the numbers stay as they are."""
        if not half_width > 0:
            raise InvalidParameter(f"The half-width is {half_width}; it must be above 0.")
        z = NormalDist().inv_cdf((1 + float(probability(confidence, "confidence"))) / 2)
        return ceil((z * self.standard_error("population") * sqrt(self.reports) / half_width) ** 2)

    def rows(self, confidence: Number = 0.95, *, whom: Whom = "respondents") -> list[dict[str, int | float]]:
        """Return one record, raw and moved into the bounds."""
        low, high = self.interval(confidence, whom=whom)
        return [
            {
                "reports": self.reports,
                "mean": self.raw,
                "standard_error": self.standard_error(whom),
                "low": low,
                "high": high,
                "consistent": self.consistent,
            }
        ]

    def to_arrow(self, confidence: Number = 0.95, *, whom: Whom = "respondents") -> "pyarrow.Table":
        """Return the record as an Arrow table."""
        import pyarrow

        return pyarrow.Table.from_pylist(self.rows(confidence, whom=whom))

    @property
    def _length(self) -> float:
        return float(self.mechanism.number.upper - self.mechanism.number.lower)

    def _number(self, position: float) -> float:
        return float(self.mechanism.number.lower) + position * self._length


def estimate_mean(mechanism: MeanRandomizer, reports: Reports) -> MeanEstimate:
    """Return what reports say about the mean of a number.

    Raises:
        InvalidParameter: For reports of another mechanism, or for no reports.
    """
    if not len(reports):
        raise InvalidParameter("There are no reports to estimate from.")
    positions = mechanism.positions(reports)
    return MeanEstimate(
        mechanism=mechanism,
        reports=len(reports),
        position=float(positions.mean()),
        square=float((positions**2).mean()),
    )

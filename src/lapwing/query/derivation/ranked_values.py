"""The value of a row by its rank: medians and other quantiles, least and greatest values, read off a distribution."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, final

from lapwing.mechanisms.additive import QUANTILE, QUANTILES, NoiseLaw
from lapwing.query.derivation.columns import (
    Rationals,
    Shape,
)
from lapwing.query.derivation.intervals import INTERVAL_CONFIDENCE, Endpoints, Interval
from lapwing.query.derivation.noisy_trees import RankKind, rank_error
from lapwing.query.measures.distribution import Distribution
from lapwing.query.measures.measures import Measure

if TYPE_CHECKING:  # `node` knows these values, as the parts that an interval rests on
    from lapwing.query.derivation.derived import NoisyCells
    from lapwing.query.derivation.node import Derived, Part

_NO_INTERVAL = (
    "It has no ±. Select DP_INTERVAL_LOW of it as well, and it has one. But then it comes from noisy counts of all "
    "values, and may lie more rows from the exact one"
)
_SHARED = ". It is read off noisy counts of all values; MIN, MAX and every quantile of these values share them"
_NO_ROWS = "In a group without rows it may be any value"
_FEW_ROWS = "A group shows no value if its noisy number of rows, which is part of the cost, is below"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OrderStatistic:
    """The value of a row by its rank in a distribution; NULL where the noisy number of rows is below 1.

    Discrete is the first value with a share of the rows up to it; continuous lies between two rows. An extreme, of
    share 0 or 1, is the outermost value that is seen through the noise (`noisy_trees`).

    Args:
        unit: What a unit of the number is called, "days" or "seconds" where it stands for a time (`calendar`).
    """

    distribution: Distribution
    share: Fraction
    kind: RankKind
    shape: Shape
    unit: str = ""

    children: ClassVar[tuple["Derived", ...]] = ()
    has_interval: ClassVar[bool] = True
    never_null: ClassVar[bool] = False

    @property
    def parts(self) -> tuple["Part", ...]:
        """Itself: what is read off one distribution may miss the truth each by itself."""
        return (self,)

    def column(self, cells: "NoisyCells") -> Rationals:
        """Return its value in every cell."""
        return cells.ranks[self.distribution].values(self)

    def interval(self, cells: "NoisyCells", margins: Mapping[Measure, Fraction]) -> Interval | None:
        """Return where the true value is in every cell; the margin of a distribution is the chance to miss it.

        None if it was chosen by itself: then nothing is known of the values beside it.
        """
        ends = cells.ranks[self.distribution].ends(self, margins[self.distribution])
        return None if ends is None else (Endpoints(numbers=ends[0]), Endpoints(numbers=ends[1]))

    def note(self, noise: NoiseLaw) -> str:
        """Say how far its rank is off, and from how wide a step its value is read."""
        measure = self.distribution
        width = f"{float(measure.width * measure.type.step):g} {self.unit}".rstrip()
        read_off = f", and the result is exact only to {width}" if measure.width > 1 else ""
        if self.kind == "extreme":
            beyond = rank_error(measure, noise, 2 * INTERVAL_CONFIDENCE - 1, self.share)
            side = "below" if self.share == 0 else "above"
            edge, share = ("smallest", "0.01") if self.share == 0 else ("largest", "0.99")
            return (
                f"about {beyond:,} rows are {side} it, because noise hides the {edge} values{read_off}. A quantile, "
                f"such as QUANTILE_CONT(x, {share}), is more exact"
            )
        most = rank_error(measure, noise, INTERVAL_CONFIDENCE, self.share)
        within = f"if rows are sorted, it is within {most:,} rows of the exact one (95 %){read_off}"
        if noise.name not in (QUANTILE, QUANTILES):
            return within + _SHARED
        from lapwing.mechanisms.quantiles_of_counts import QuantilesOfCounts  # here: most answers have no quantile

        is_counted = isinstance(noise, QuantilesOfCounts) and noise.counting is not None
        return f"{within}. {f'{_FEW_ROWS} {most:,}' if is_counted else _NO_ROWS}. {_NO_INTERVAL}"

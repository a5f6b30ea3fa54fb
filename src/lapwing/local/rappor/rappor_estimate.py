"""What RAPPOR's reports say about each text: its share, how sure that is, and whether it is there at all."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Final, Literal, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.local.frequencies.consistency import Shares
from lapwing.mechanisms.parameters import whole_number
from lapwing.privacy.amounts import Number, probability

if TYPE_CHECKING:
    import pyarrow

Correction = Literal["bonferroni", "benjamini-hochberg"]
CORRECTIONS: Final = ("bonferroni", "benjamini-hochberg")
FEW: Final = 30
"""Of fewer reports the scatter tells too little: of two, intervals for 95 % would cover in 27 to 49 % of cases."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RapporEstimate:
    """Shares of the texts that were measured.

    Args:
        texts: Those, in the order of the candidates.
        candidates: How many there were.
        reports: How many measured.
        chosen_by: How many others chose the texts; 0 if all candidates were measured.
        raw: Unbiased shares.
        covariance: Of these.
        consistent: The shares of least squares that are at least 0 and 1 in all at most.
        misfit: The scatter of the reports around the fit, divided by the scatter from noise. If other texts have a
            share, it is above 1, and standard errors are larger by its root.
        reach: How far a report moves each raw share at most, if there were one only.
    """

    texts: tuple[str, ...]
    candidates: int
    reports: int
    chosen_by: int
    raw: Shares
    covariance: NDArray[np.float64] = field(repr=False)
    consistent: Shares
    misfit: float
    reach: NDArray[np.float64] = field(repr=False)

    @property
    def standard_error(self) -> Shares:
        """Of each raw share, if respondents are a random sample of a population; a little large for themselves."""
        return np.sqrt(np.maximum(self.covariance.diagonal(), 0))

    @property
    def few(self) -> bool:
        """Whether there are too few reports for the normal law; then no text has an interval or is seen."""
        return self.reports < FEW

    @property
    def unallocated(self) -> float:
        """The share of all other texts: what the raw shares leave of 1. It may be negative."""
        return 1 - float(self.raw.sum())

    @property
    def unallocated_error(self) -> float:
        """Its standard error."""
        return sqrt(max(0.0, float(self.covariance.sum())))

    def interval(self, confidence: Number = 0.95, *, together: bool = False) -> tuple[Shares, Shares]:
        """Return the ends of an interval for each text's share of the population.

        By the normal law of many reports, not certified. Forged reports are not covered. Of few reports the ends are
        infinite: nothing narrower would hold.

        Args:
            together: All hold at once with this confidence (Bonferroni).
        """
        level = 1 - float(probability(confidence, "confidence"))
        if self.few:
            return np.full(self.raw.shape, -np.inf), np.full(self.raw.shape, np.inf)
        reach = NormalDist().inv_cdf(1 - level / (max(1, len(self.texts)) if together else 1) / 2) * self.standard_error
        return self.raw - reach, self.raw + reach

    def significance(self, correction: Correction = "bonferroni") -> Shares:
        """Return the chance that pure noise gives a share as large, corrected for the number of texts; 1 if few.

        One-sided, by the normal law. With Bonferroni's correction, all texts below 0.05 are there with 95 % confidence.
        With the one of Benjamini and Hochberg about 5 % of them are not: it holds for independent shares, and these
        nearly are.

        Source:
            Benjamini and Hochberg 1995.
        """
        if correction not in CORRECTIONS:
            raise InvalidParameter(f"correction is {correction!r:.60}; it must be one of {', '.join(CORRECTIONS)}.")
        if self.few:
            return np.ones(self.raw.shape)
        error = self.standard_error
        scores = np.divide(self.raw, error, out=np.zeros_like(error), where=error > 0)  # few reports may not scatter
        single = np.array([NormalDist().cdf(-z) for z in scores], dtype=np.float64)
        many = single.size
        if correction == "bonferroni":
            return np.minimum(single * many, 1)
        order = np.argsort(-single, kind="stable")
        corrected = np.empty(many)
        corrected[order] = np.minimum.accumulate(single[order] * many / np.arange(many, 0, -1))
        return corrected

    def forged(self, reports: int) -> Shares:
        """Return how far this many reports, forged in the cohorts of as many honest ones, can move each raw share."""
        return whole_number(reports, "reports", most=self.reports) * self.reach

    def rows(
        self, confidence: Number = 0.95, *, together: bool = False, correction: Correction = "bonferroni"
    ) -> list[dict[str, str | float | bool | None]]:
        """Return one record a text; `seen` is whether pure noise rarely gives as much.

        Of few reports it is false, and `low`, `high` and `significance` are None.
        """
        low, high = self.interval(confidence, together=together)
        chance = self.significance(correction)
        nothing = [None] * self.raw.size
        columns: dict[str, Sequence[float | None]] = {
            "share": self.raw.tolist(),
            "standard_error": self.standard_error.tolist(),
            "low": nothing if self.few else low.tolist(),
            "high": nothing if self.few else high.tolist(),
            "consistent": self.consistent.tolist(),
            "significance": nothing if self.few else chance.tolist(),
            "seen": (chance <= 1 - float(probability(confidence, "confidence"))).tolist(),
        }
        return [
            {"value": text, **{name: column[index] for name, column in columns.items()}}
            for index, text in enumerate(self.texts)
        ]

    def to_arrow(
        self, confidence: Number = 0.95, *, together: bool = False, correction: Correction = "bonferroni"
    ) -> "pyarrow.Table":
        """Return the records as an Arrow table."""
        import pyarrow

        names = ("share", "standard_error", "low", "high", "consistent", "significance")
        kinds = {"value": pyarrow.string(), **dict.fromkeys(names, pyarrow.float64()), "seen": pyarrow.bool_()}
        rows = self.rows(confidence, together=together, correction=correction)
        return pyarrow.Table.from_pylist(rows, schema=pyarrow.schema(kinds))

"""Shares of values from noisy reports: raw, with intervals that say for whom they are, and made consistent.

The raw share of a value with C supports among n reports is (C/n − q)/(p − q): right on average, whatever the truth. It
may be negative. Intervals are for it.
"""

from dataclasses import dataclass, field, replace
from math import sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Final, Literal, final

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.local.frequencies import rare_counts
from lapwing.local.frequencies.consistency import Shares, on_simplex
from lapwing.local.frequencies.randomizer import Randomizer, Reports
from lapwing.local.frequencies.variance import Rated
from lapwing.mechanisms.parameters import whole_number
from lapwing.privacy.amounts import Number, probability

if TYPE_CHECKING:
    import pyarrow

Whom = Literal["respondents", "population"]
WHOM: Final = ("respondents", "population")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FrequencyEstimate:
    """The shares of values, estimated from reports.

    Args:
        values: Their names.
        mechanism: Of the reports.
        reports: How many.
        supports: Of each value.
        shared: For a sketch, what its common functions add to the variance of a share f, divided by (1 − f)²; 0
            otherwise.
    """

    values: tuple[str, ...]
    mechanism: Rated
    reports: int
    supports: NDArray[np.int64] = field(repr=False)
    shared: float = 0.0

    @property
    def raw(self) -> Shares:
        """Unbiased shares, which may be negative and need not add up to 1."""
        p, q = self._rates()
        return (self.supports / self.reports - q) / (p - q)

    @property
    def consistent(self) -> Shares:
        """The nearest shares that are at least 0 and add up to 1; no longer unbiased."""
        return on_simplex(self.raw)

    def standard_error(self, whom: Whom = "respondents") -> Shares:
        """Return the standard error of each raw share, by the formulas of `variance` at the share moved into [0, 1]."""
        p, q = self._rates()
        share = np.clip(self.raw, 0, 1)
        supported = q + share * (p - q)
        each = {
            "respondents": share * p * (1 - p) + (1 - share) * q * (1 - q),
            "population": supported * (1 - supported),
        }
        return np.sqrt(each[checked_whom(whom)] / self.reports / (p - q) ** 2 + self.shared * (1 - share) ** 2)

    def interval(
        self, confidence: Number = 0.95, *, whom: Whom = "respondents", together: bool = False
    ) -> tuple[Shares, Shares]:
        """Return the ends of an interval for each raw share.

        For the respondents (the shares among those who sent a report), it has all f with (f̂ − f)² ≤ z²·v(f)/n. Here v
        is the variance given who responded. For the population of which they are a random sample: Wilson's interval for
        the probability of a support, mapped to shares. Both are near for many reports, not certified. Where supports
        are too rare for that, the intervals are exact (`rare_counts`): they hold with the confidence or more. Forged
        reports are in none of them.

        Args:
            together: All intervals hold at once with this confidence (Bonferroni), not each by itself.

        Source:
            Wilson 1927.
        """
        level = 1 - float(probability(confidence, "confidence"))
        tail = level / (len(self.values) if together else 1) / 2
        z = NormalDist().inv_cdf(1 - tail)
        if rare_counts.rare(self.reports, *self._rates()):
            low, high = self._exact(tail, checked_whom(whom))
        else:
            low, high = self._around(z) if checked_whom(whom) == "respondents" else self._wilson(z)
        raw, more = self.raw, z**2 * self.shared * (1 - np.clip(self.raw, 0, 1)) ** 2
        return raw - np.sqrt((raw - low) ** 2 + more), raw + np.sqrt((high - raw) ** 2 + more)

    def _exact(self, tail: float, whom: str) -> tuple[Shares, Shares]:
        """Return the ends of exact intervals, moved to take in the raw share, which may lie beyond what is possible."""
        known: dict[tuple[int, float, float], tuple[float, float]] = {}
        for key in zip(self.supports.tolist(), *(rate.tolist() for rate in self._rates()), strict=True):
            if key not in known:
                supports, p, q = key
                if whom == "respondents":
                    known[key] = rare_counts.ends_for_respondents(supports, self.reports, p, q, tail)
                else:
                    low, high = rare_counts.ends_for_population(supports, self.reports, tail)
                    known[key] = (low - q) / (p - q), (high - q) / (p - q)
        each = zip(self.supports.tolist(), *(rate.tolist() for rate in self._rates()), strict=True)
        ends = np.array([known[key] for key in each])
        return np.minimum(ends[:, 0], self.raw), np.maximum(ends[:, 1], self.raw)

    def _around(self, z: float) -> tuple[Shares, Shares]:
        """Solve d²f² − (2xd + z²B/n)f + x² − z²A/n ≤ 0 for x = C/n − q, d = p − q, variance A + Bf of a coin."""
        p, q = self._rates()
        d, base, slope = p - q, q * (1 - q), p * (1 - p) - q * (1 - q)
        x, unit = self.supports / self.reports - q, z**2 / self.reports
        middle = 2 * x * d + unit * slope
        root = np.sqrt(np.maximum(middle**2 - 4 * d**2 * (x**2 - unit * base), 0))
        return (middle - root) / (2 * d**2), (middle + root) / (2 * d**2)

    def _wilson(self, z: float) -> tuple[Shares, Shares]:
        p, q = self._rates()
        supported, unit = self.supports / self.reports, z**2 / self.reports
        centre = (supported + unit / 2) / (1 + unit)
        reach = np.sqrt(unit * supported * (1 - supported) + unit**2 / 4) / (1 + unit)
        ends = (centre - reach - q) / (p - q), (centre + reach - q) / (p - q)
        return np.minimum(*ends), np.maximum(*ends)

    def noise_band(self, confidence: Number = 0.95) -> Shares:
        """Return how large noise may make each raw share; a smaller share cannot be distinguished from 0.

        If all true shares were 0, all raw shares together would stay below this, with the given confidence.
        """
        tail = (1 - float(probability(confidence, "confidence"))) / len(self.values)
        z = NormalDist().inv_cdf(1 - tail)
        p, q = self._rates()
        if rare_counts.rare(self.reports, p, q):
            most = {chance: rare_counts.most_by_noise(self.reports, chance, tail) for chance in set(q.tolist())}
            reached = np.array([most[chance] for chance in q.tolist()]) / self.reports
            band: Shares = (reached - q) / (p - q) + z * np.sqrt(np.full(len(q), self.shared))
            return band
        return z * np.sqrt(q * (1 - q) / self.reports / (p - q) ** 2 + self.shared)

    def forged(self, reports: int) -> tuple[Shares, Shares]:
        """Return how far this many forged reports among all can have moved each raw share down and up.

        The raw share f is the mean of n reports, each (1 − q)/(p − q) or −q/(p − q). If m of them are forged and have
        the mean c, the share without them is g = (nf − mc)/(n − m). So f − g = m(c − f)/(n − m). This is an equation
        and not an average. The largest and least c give the bounds, and forgeries that all say the same reach them.

        Args:
            reports: m, below the number of all reports.
        """
        many = whole_number(reports, "reports", most=self.reports - 1) / (self.reports - reports)
        p, q = self._rates()
        ends = np.stack([(1 - q) / (p - q), -q / (p - q)])
        return many * (self.raw - ends.min(axis=0)), many * (ends.max(axis=0) - self.raw)

    def respondents_for(self, half_width: float, confidence: Number = 0.95) -> int:
        """Return how many reports make every interval for the population that narrow, if shares stay as they are."""
        if not 0 < half_width < 1:
            raise InvalidParameter(f"The half-width is {half_width}; it must be above 0 and below 1.")
        z = NormalDist().inv_cdf((1 + float(probability(confidence, "confidence"))) / 2)
        deviation = float(replace(self, shared=0.0).standard_error("population").max()) * sqrt(self.reports)
        allowed = (half_width / z) ** 2 - self.shared
        if allowed <= 0:
            raise InvalidParameter("The sketch has too few functions for this half-width; take more of them.")
        return int(np.ceil(deviation**2 / allowed))

    def rows(
        self, confidence: Number = 0.95, *, whom: Whom = "respondents", together: bool = False
    ) -> list[dict[str, str | int | float | bool]]:
        """Return one record a value, raw and consistent; `seen`: whether pure noise rarely gives as much."""
        low, high = self.interval(confidence, whom=whom, together=together)
        columns: dict[str, list[float]] = {
            "share": self.raw.tolist(),
            "standard_error": self.standard_error(whom).tolist(),
            "low": low.tolist(),
            "high": high.tolist(),
            "consistent": self.consistent.tolist(),
        }
        seen = (self.raw > self.noise_band(confidence)).tolist()
        return [
            {
                "value": value,
                "supports": int(self.supports[i]),
                **{name: numbers[i] for name, numbers in columns.items()},
                "seen": bool(seen[i]),
            }
            for i, value in enumerate(self.values)
        ]

    def to_arrow(
        self, confidence: Number = 0.95, *, whom: Whom = "respondents", together: bool = False
    ) -> "pyarrow.Table":
        """Return the records as an Arrow table."""
        import pyarrow

        return pyarrow.Table.from_pylist(self.rows(confidence, whom=whom, together=together))

    def _rates(self) -> tuple[Shares, Shares]:
        """Return p and q of each value; but for the first they are all the same."""
        first, rest = self.mechanism.rates(0), self.mechanism.rates(1)
        p, q = (np.full(len(self.values), float(chance)) for chance in rest)
        p[0], q[0] = (float(chance) for chance in first)
        return p, q


def estimate(mechanism: Randomizer, reports: Reports, values: tuple[str, ...] | None = None) -> FrequencyEstimate:
    """Return what reports say about the share of each value.

    Raises:
        InvalidParameter: For reports of another mechanism, or for no reports.
    """
    if not len(reports):
        raise InvalidParameter("There are no reports to estimate from.")
    names = values if values is not None else tuple(str(code) for code in range(mechanism.categories))
    if len(names) != mechanism.categories:
        raise InvalidParameter(f"There are {len(names)} names for {mechanism.categories} values.")
    return FrequencyEstimate(
        values=names, mechanism=mechanism, reports=len(reports), supports=mechanism.support_counts(reports)
    )


def checked_whom(whom: str) -> str:
    """Return for whom an interval is, or raise InvalidParameter."""
    if whom not in WHOM:
        raise InvalidParameter(f"whom is {whom!r:.60}; it must be respondents or population.")
    return whom

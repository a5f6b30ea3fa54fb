"""Shares of texts from RAPPOR's bits: least squares on candidates, with standard errors, and what is left unallocated.

Theory of operation. In cohort c, with N_c reports and C_cj ones at bit j, y_cj = (C_cj/N_c − p*)/(q* − p*) is right on
average: it is the share of respondents whose pattern has the bit. So y_c = Σ_s β_s x_cs for patterns x_cs and shares
β_s of all texts. Texts that are no candidates set a bit with chance d_j, as if they were hashed anew in every cohort,
and have the rest 1 − Σβ_s: hence y_c − d = Σ_s β_s(x_cs − d) + noise, over candidates alone. Least squares weighted by
N_c solve that. They are linear in the reports, so right on average if all texts are candidates, and with other texts on
average over the hash functions.

Few candidates are measured with all reports. Many could not be told apart, as there are only m(k − 1) equations: half
of the cohorts choose some, by the non-negative LASSO, and the other half measure those. So their estimates are not
biased by the choice. Halves of the reports would not do: a candidate that looks like another text by chance
would look like it in both.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Final, Self, final
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.local.frequencies.randomizer import Reports
from lapwing.local.rappor.bloom_filters import Patterns
from lapwing.local.rappor.full import Rappor
from lapwing.local.rappor.least_squares import Floats, inverted, nonnegative, shares
from lapwing.local.rappor.rappor_estimate import RapporEstimate

MOST_CANDIDATES: Final = 1_000_000
_PART: Final = 0.5
"""Of the equations there may be so many unknowns: with more, measuring all is worse than measuring some with half."""
_MOST_CHOSEN: Final = 500
_MORE_AT_ONCE: Final = 20
_ABOVE: Final = 1 + 1e-9
_FALSE_CHOICES: Final = 1
"""So many texts that nobody has are chosen on average."""
_AT_ONCE: Final = 1 << 16


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Sums over the reports of each cohort.

    Args:
        reports: How many, by cohort.
        ones: How many have a bit set, by cohort and bit.
        pairs: How many have both of two bits set; whole numbers.
    """

    reports: NDArray[np.int64]
    ones: NDArray[np.int64] = field(repr=False)
    pairs: NDArray[np.float64] = field(repr=False)

    @classmethod
    def of(cls, mechanism: Rappor, reports: Reports) -> Self:
        """Add up reports."""
        bits, cohorts = mechanism.bits, mechanism.cohorts
        ones, pairs = np.zeros((cohorts, bits), dtype=np.int64), np.zeros((cohorts, bits, bits))
        order = np.argsort(reports["cohort"], kind="stable")
        sizes = np.bincount(reports["cohort"], minlength=cohorts)
        for cohort, of_cohort in enumerate(np.split(order, np.cumsum(sizes)[:-1])):
            for start in range(0, of_cohort.size, _AT_ONCE):
                rows = mechanism.unpacked(reports[of_cohort[start : start + _AT_ONCE]])
                ones[cohort] += rows.sum(axis=0, dtype=np.int64)
                floats = rows.astype(np.float32)  # sums of 65,536 ones are exact
                pairs[cohort] += floats.T @ floats
        return cls(reports=sizes.astype(np.int64), ones=ones, pairs=pairs)

    def scatter(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return for each cohort the sum over reports of (r − μ)(r − μ)ᵀ, for the mean of each bit."""
        cross = self.ones[:, :, None] * means[:, None, :]
        spread: NDArray[np.float64] = (
            self.pairs
            - cross
            - cross.transpose(0, 2, 1)
            + self.reports[:, None, None] * means[:, :, None] * means[:, None, :]
        )
        return spread


def decode(mechanism: Rappor, reports: Reports, candidates: Sequence[str]) -> RapporEstimate:
    """Return what reports say about the share of each candidate.

    Args:
        candidates: Texts that may occur, as many as a million; they are taken in Unicode's form NFC, as devices take
            answers. The share of all other texts is unallocated.

    Raises:
        InvalidParameter: For no reports, for no candidates or one that is there twice, or for candidates that look the
            same in every cohort.
    """
    if not len(reports):
        raise InvalidParameter("There are no reports to estimate from.")
    texts = [normalize("NFC", text) for text in candidates]
    if not 1 <= len(texts) <= MOST_CANDIDATES or len(set(texts)) != len(texts):
        raise InvalidParameter(f"There must be 1 to {MOST_CANDIDATES:,} candidates, no two the same.")
    patterns = mechanism.patterns(texts)
    if len(texts) <= _PART * equations(mechanism, reports):
        return _measured(_Fit.of(mechanism, reports, patterns), texts, np.arange(len(texts)), chosen_by=0)
    even = reports["cohort"] % 2 == 0
    if even.all() or not even.any():
        raise InvalidParameter(f"Reports of one cohort cannot tell {len(texts):,} candidates apart; list fewer.")
    chosen = _Fit.of(mechanism, reports[even], patterns).choose()
    fit = _Fit.of(mechanism, reports[~even], patterns)
    return _measured(fit, texts, chosen, chosen_by=int(even.sum()))


def equations(mechanism: Rappor, reports: Reports) -> int:
    """Return how many independent equations there are at least: k − 1 for each cohort that reports."""
    return int(np.unique(reports["cohort"]).size) * (mechanism.bits - 1)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Fit:
    """The equations of candidates: amounts are y − d, by cohort and bit."""

    mechanism: Rappor
    counts: Counts
    patterns: Patterns
    amounts: Floats = field(repr=False)

    @classmethod
    def of(cls, mechanism: Rappor, reports: Reports, patterns: Patterns) -> Self:
        counts = Counts.of(mechanism, reports)
        present, absent = map(float, mechanism.rates)
        many = counts.reports[:, None]
        bits = (counts.ones - absent * many) / (present - absent) - many * patterns.density
        amounts = np.divide(bits, many, out=np.zeros_like(bits), where=many > 0)
        return cls(mechanism=mechanism, counts=counts, patterns=patterns, amounts=amounts)

    def weighted(self, columns: Floats) -> tuple[Floats, Floats]:
        """Return A = Σ N_c·X_cᵀX_c and b = Σ N_c·X_cᵀ(y_c − d)."""
        heavy = columns * self.counts.reports[:, None, None]
        flat = heavy.reshape(self.amounts.size, columns.shape[2])
        return columns.reshape(flat.shape).T @ flat, flat.T @ self.amounts.reshape(-1)

    def choose(self) -> NDArray[np.int64]:
        """Return the candidates that the non-negative LASSO takes, the working set growing until no other is wanted.

        The penalty falls with what is left unexplained, as in the scaled LASSO (Sun and Zhang 2012).
        """
        chosen, rest, unexplained = np.zeros(0, dtype=np.int64), self.amounts, self.amounts
        equations = int((self.counts.reports > 0).sum()) * (self.mechanism.bits - 1)
        most = max(1, min(_MOST_CHOSEN, int(_PART * equations)))
        while chosen.size < most:
            penalty = self.penalty(unexplained, chosen.size)
            scores = self.patterns.scores(rest * self.counts.reports[:, None])
            scores[chosen] = -np.inf
            best = np.argsort(-scores, kind="stable")[: min(_MORE_AT_ONCE, most - chosen.size)]
            entering = best[scores[best] > penalty * _ABOVE]
            if not entering.size:
                break
            chosen, rest, unexplained = self.taken(np.concatenate([chosen, entering]), penalty)
        return np.sort(chosen)

    def taken(self, trial: NDArray[np.int64], penalty: float) -> tuple[NDArray[np.int64], Floats, Floats]:
        """Return which of some candidates the LASSO takes, and what they leave of it, with and without penalty."""
        columns = self.patterns.columns(trial)
        gram, target = self.weighted(columns)
        penalised, free = nonnegative(gram, target - penalty), nonnegative(gram, target)
        return trial[penalised > 0], self.amounts - columns @ penalised, self.amounts - columns @ free

    def penalty(self, rest: Floats, unknowns: int) -> float:
        """Return what the score of a text that nobody has exceeds by chance for about one candidate in all.

        A score's variance is σ²·Σ N_c·|x_c − d|², where |x_c − d|² is Σ d(1 − d) for an average pattern, and σ² that of
        the amounts of one report: what is left unexplained, or p*(1 − p*)/(q* − p*)² by noise alone, if that is more.
        """
        present, absent = map(float, self.mechanism.rates)
        many = self.counts.reports
        degrees = max(1, int((many > 0).sum()) * self.mechanism.bits - unknowns)
        noise = max(absent * (1 - absent) / (present - absent) ** 2, float((many @ rest**2).sum()) / degrees)
        density = self.patterns.density
        spread = noise * many.sum() * (density * (1 - density)).sum()
        false = min(_FALSE_CHOICES / self.patterns.places.shape[1], 0.5)
        return float(NormalDist().inv_cdf(1 - false) * np.sqrt(spread))

    def covariance(self, columns: Floats, inverse: Floats, means: Floats) -> Floats:
        """Return that of the estimates, from how reports scatter around the fitted means."""
        present, absent = map(float, self.mechanism.rates)
        scatter = self.counts.scatter(means)
        middle = np.einsum("cjs,cjt->st", columns, scatter @ columns, optimize=True)
        spread: Floats = inverse @ middle @ inverse / (present - absent) ** 2
        return spread

    def misfit(self, means: Floats, unknowns: int) -> float:
        """Return how much more the ones scatter around the fitted means than noise makes: χ² by its degrees."""
        present, absent = map(float, self.mechanism.rates)
        many, inside = self.counts.reports[:, None], np.clip(means, min(absent, present), max(absent, present))
        parts = (self.counts.ones - many * inside) ** 2 / np.maximum(many * inside * (1 - inside), 1e-300)
        degrees = int((many > 0).sum()) * self.mechanism.bits - unknowns
        return float(parts[many[:, 0] > 0].sum() / degrees) if degrees > 0 else 1.0


def _measured(fit: _Fit, candidates: Sequence[str], which: NDArray[np.int64], *, chosen_by: int) -> RapporEstimate:
    columns = fit.patterns.columns(which)
    gram, target = fit.weighted(columns)
    inverse = inverted(gram)
    raw = inverse @ target
    present, absent = map(float, fit.mechanism.rates)
    means = absent + (present - absent) * (fit.patterns.density + columns @ raw)
    misfit = fit.misfit(means, which.size)
    reach = np.abs(columns @ inverse).sum(axis=1).max(axis=0, initial=0) / abs(present - absent)
    return RapporEstimate(
        texts=tuple(candidates[index] for index in which),
        candidates=len(candidates),
        reports=int(fit.counts.reports.sum()),
        chosen_by=chosen_by,
        raw=raw,
        covariance=fit.covariance(columns, inverse, means) * max(1.0, misfit),
        consistent=shares(gram, target),
        misfit=misfit,
        reach=reach,
    )

"""Whether what devices draw in public was drawn: groups, functions, rows, questions, and how many bits are set.

Theory of operation. A device draws these without looking at the answer, so their law does not depend on answers. Forged
reports look like honest ones. But a forger who wants to move one estimate chooses the group, the function or the bits
that move it most. Then some outcome comes too often.

*Outcomes that are equally likely.* Of n reports, w of m outcomes have N ~ Binomial(n, w/m). Their tail is
P(Binomial(n, w/m) ≥ N). Of t such windows, some tail is x or less with probability t·x at most (union bound). Tails are
the upper bounds of `shuffling.binomial`. Of up to 32 outcomes, all windows of neighbours are looked at. Of more, each
outcome and some 256 windows side by side: each of the two looks has half of the probability. The last window may be
shorter, and counts as if it were not.

*Numbers of ones.* For every answer, a report has one coin of chance p and k − 1 coins of chance q. The sum of all ones
is t or more from its mean with probability 2·exp(−t²/(2V + 2t/3)) at most (Bernstein's inequality).

So the p-value is an upper bound if reports are from different devices, and each drew by itself. It says nothing of
forgeries that draw as devices do. These move an estimate as far as its `forged` says.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import exp, sqrt
from typing import Final, final

import numpy as np

from lapwing.exact.arrays import IntArray
from lapwing.local.shuffling.binomial import Binomial

UNLIKELY: Final = 1e-3
"""The p-value below which draws are called uneven: honest reports are called so once in a thousand tasks at most."""
_FEW: Final = 32
_RUNS: Final = 256
_EACH: Final = 50
"""Reports that a run of outcomes has on average, at least."""
_SHOWN: Final = 3


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Crowded:
    """Outcomes from `first` to `last` that more reports have than their law explains."""

    first: int
    last: int
    reports: int
    expected: float
    deviation: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DrawCheck:
    """How likely it is that something was drawn by its law.

    Args:
        name: The draw, such as "group".
        reports: How many draws there are.
        p_value: At least the probability that honest draws are as uneven.
        crowded: The outcomes that are too frequent, the most frequent first; for ones, how many there are in all.
    """

    name: str
    reports: int
    p_value: float
    crowded: tuple[Crowded, ...] = ()

    @property
    def uneven(self) -> bool:
        """Whether the draws are too uneven to be honest ones."""
        return self.p_value < UNLIKELY


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EqualDraw:
    """A draw of equally likely outcomes: each report has a number from 0."""

    name: str
    outcomes: int
    seen: IntArray = field(repr=False)

    def check(self) -> DrawCheck:
        """Return whether an outcome, or some that follow each other, are too frequent."""
        found = sorted((one for windows in self._windows() for one in self._of(windows)), key=lambda one: one[0])
        crowded: list[Crowded] = []
        for p_value, window in found:
            apart = all(window.last < other.first or other.last < window.first for other in crowded)
            if p_value < UNLIKELY and apart and len(crowded) < _SHOWN:
                crowded.append(window)
        least = found[0][0] if found else 1.0
        return DrawCheck(name=self.name, reports=len(self.seen), p_value=least, crowded=tuple(crowded))

    def _windows(self) -> Iterator["_Windows"]:
        """Yield all that is looked at: all windows of few outcomes; of many, each outcome, and runs side by side."""
        if self.outcomes <= _FEW:
            up_to = np.concatenate([[0], np.cumsum(np.bincount(self.seen, minlength=self.outcomes))])
            tried = self.outcomes * (self.outcomes + 1) // 2 - 1
            for width in range(1, self.outcomes):
                first = np.arange(self.outcomes - width + 1)
                yield _Windows(width=width, tried=tried, first=first, counts=up_to[width:] - up_to[:-width])
            return
        runs = max(2, min(_RUNS, len(self.seen) // _EACH))
        for width in (1, -(-self.outcomes // runs)):
            places, counts = np.unique(self.seen // width, return_counts=True)
            tried = 2 * -(-self.outcomes // width)
            yield _Windows(width=width, tried=tried, first=places * width, counts=counts)

    def _of(self, windows: "_Windows") -> Iterator[tuple[float, Crowded]]:
        """Yield the most frequent of some windows, each with a bound on the probability of one as frequent."""
        reports, share = len(self.seen), Fraction(windows.width, self.outcomes)
        if not reports:
            return
        law, expected = Binomial.of(reports, share), float(reports * share)
        for place in np.argsort(-windows.counts, kind="stable")[:_SHOWN]:
            first, count = int(windows.first[place]), int(windows.counts[place])
            window = Crowded(
                first=first,
                last=min(self.outcomes, first + windows.width) - 1,
                reports=count,
                expected=expected,
                deviation=sqrt(expected * float(1 - share)),
            )
            yield min(1.0, windows.tried * law.reaching(count)), window


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Windows:
    """Windows of so many outcomes that follow each other, of so many that are looked at in all."""

    width: int
    tried: int
    first: IntArray
    counts: IntArray


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OnesDraw:
    """The number of all ones. In a report, one bit is 1 with probability p and each other bit with probability q.

    Args:
        reports: How many there are.
        bits: Of a report.
        ones: Of all reports.
        p: The chance of a one in the answer's own bit.
        q: The chance of a one in each other bit.
    """

    name: str
    reports: int
    bits: int
    ones: int
    p: Fraction
    q: Fraction

    def check(self) -> DrawCheck:
        """Return whether there are too many ones, or too few."""
        mean = float(self.reports * (self.p + (self.bits - 1) * self.q))
        variance = float(self.reports * (self.p * (1 - self.p) + (self.bits - 1) * self.q * (1 - self.q)))
        away = abs(self.ones - mean)
        p_value = min(1.0, 2 * exp(-(away**2) / (2 * variance + 2 * away / 3))) if away else 1.0
        all_ones = Crowded(first=0, last=self.bits - 1, reports=self.ones, expected=mean, deviation=sqrt(variance))
        crowded = (all_ones,) if p_value < UNLIKELY else ()
        return DrawCheck(name=self.name, reports=self.reports, p_value=p_value, crowded=crowded)


PublicDraw = EqualDraw | OnesDraw


def check_draws(draws: Sequence[PublicDraw]) -> list[DrawCheck]:
    """Return the check of each draw, with p-values that hold for all of them together (Bonferroni)."""
    checks = [draw.check() for draw in draws]
    return [replace(check, p_value=min(1.0, len(checks) * check.p_value)) for check in checks]

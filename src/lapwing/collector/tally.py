"""What reports add up to while they come in: enough for the estimate, and no larger with more reports."""

from typing import Any, Final, Protocol, final

import numpy as np

from lapwing.errors import InvalidParameter
from lapwing.local import client
from lapwing.local.attributes import OneAttribute
from lapwing.local.frequencies.frequency_estimate import FrequencyEstimate
from lapwing.local.frequencies.randomizer import Randomizer
from lapwing.local.longitudinal.dyadic_tree import DyadicTree
from lapwing.local.longitudinal.tree_estimate import TreeEstimate, block_totals
from lapwing.local.means.mean_estimate import MeanEstimate
from lapwing.local.means.mean_randomizer import MeanRandomizer
from lapwing.local.mechanism import Mechanism
from lapwing.local.registry import FREQUENCIES, MEANS

POPULATION: Final = "population"
"""For whom all intervals of a collector are: the people of whom those who sent reports are a random sample."""

Row = dict[str, Any]


class Tally(Protocol):
    """The totals of one task's reports."""

    def add(self, reports: Any) -> None:
        """Add reports, as the mechanism gathers them."""

    def rows(self, confidence: float) -> list[Row]:
        """Return the estimates with their intervals, a record a value, or a period; none without reports."""


def tally_of(asked: client.Asked | client.Attributes, mechanism: Mechanism) -> Tally | None:
    """Return empty totals for a mechanism; None for one whose estimate is made from the reports themselves.

    These are the mechanisms for texts: what they say depends on the words that are looked for.
    """
    if isinstance(asked, client.Attributes) and isinstance(mechanism, OneAttribute):
        return _Record(asked, mechanism)
    if isinstance(mechanism, DyadicTree):
        return _Periods(mechanism)
    if isinstance(asked, client.Asked) and asked.mechanism in FREQUENCIES and isinstance(asked.answers, client.Values):
        return _Shares(mechanism, asked.answers.texts)  # type: ignore[arg-type]
    if isinstance(asked, client.Asked) and asked.mechanism in MEANS:
        return _Mean(mechanism)  # type: ignore[arg-type]
    return None


@final
class _Shares:
    def __init__(self, mechanism: Randomizer, values: tuple[str, ...]) -> None:
        self._mechanism, self._values = mechanism, values
        self._reports, self._supports = 0, np.zeros(len(values), dtype=np.int64)

    def add(self, reports: Any) -> None:
        self._reports += len(reports)
        self._supports += self._mechanism.support_counts(reports)

    def rows(self, confidence: float) -> list[Row]:
        if not self._reports:
            return []
        found = FrequencyEstimate(
            values=self._values, mechanism=self._mechanism, reports=self._reports, supports=self._supports
        )
        return [{**row, "reports": self._reports} for row in found.rows(confidence, whom=POPULATION)]


@final
class _Mean:
    def __init__(self, mechanism: MeanRandomizer) -> None:
        self._mechanism, self._reports, self._sum, self._squares = mechanism, 0, 0.0, 0.0

    def add(self, reports: Any) -> None:
        positions = self._mechanism.positions(reports)
        self._reports += len(reports)
        self._sum += float(positions.sum())
        self._squares += float((positions**2).sum())

    def rows(self, confidence: float) -> list[Row]:
        if not self._reports:
            return []
        found = MeanEstimate(
            mechanism=self._mechanism,
            reports=self._reports,
            position=self._sum / self._reports,
            square=self._squares / self._reports,
        )
        return found.rows(confidence, whom=POPULATION)


@final
class _Periods:
    def __init__(self, tree: DyadicTree) -> None:
        self._tree, size = tree, 2 * tree.periods - 1
        self._counts, self._sums = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)

    def add(self, reports: Any) -> None:
        counts, sums = block_totals(self._tree, reports)
        self._counts += counts
        self._sums += sums

    def rows(self, confidence: float) -> list[Row]:
        if not self._counts[0]:
            return []
        return TreeEstimate(tree=self._tree, counts=self._counts, sums=self._sums).rows(confidence)


@final
class _Record:
    def __init__(self, asked: client.Attributes, mechanism: OneAttribute) -> None:
        self._questions, self._each = mechanism.questions, []
        for (_, one), own in zip(asked.each, mechanism.each, strict=True):
            tally = tally_of(one, own)
            if tally is None:
                raise InvalidParameter("One of several attributes has a mechanism that is for texts.")
            self._each.append(tally)

    def add(self, reports: Any) -> None:
        for tally, part in zip(self._each, reports, strict=True):
            tally.add(part)

    def rows(self, confidence: float) -> list[Row]:
        each = zip(self._questions, self._each, strict=True)
        return [{"question": question, **row} for question, tally in each for row in tally.rows(confidence)]

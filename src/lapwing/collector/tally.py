"""What reports add up to while they come in: enough for the estimate, and no larger with more reports.

Of texts it is the reports themselves, as their mechanism gathers them: what they say depends on the words.
"""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, final
from unicodedata import normalize

import numpy as np

from lapwing.collector.report_store import Row
from lapwing.errors import InvalidParameter
from lapwing.local import client
from lapwing.local.attributes import AllAttributes, OneAttribute
from lapwing.local.frequencies.frequency_estimate import FrequencyEstimate
from lapwing.local.frequencies.randomizer import Randomizer
from lapwing.local.heavy_hitters.prefix_extending import PrefixExtending
from lapwing.local.heavy_hitters.prefix_search import find_words
from lapwing.local.heavy_hitters.sketches import CountMeanSketch, HadamardSketch, estimate_sketch
from lapwing.local.joint_estimates import joint_counts
from lapwing.local.longitudinal.dyadic_tree import DyadicTree
from lapwing.local.longitudinal.tree_estimate import TreeEstimate, block_totals
from lapwing.local.means.mean_estimate import MeanEstimate
from lapwing.local.means.mean_randomizer import MeanRandomizer
from lapwing.local.mechanism import Mechanism
from lapwing.local.rappor.decoding import decode
from lapwing.local.rappor.full import Rappor
from lapwing.local.registry import FREQUENCIES, MEANS

POPULATION: Final = "population"
"""For whom all intervals of a collector are: the people of whom those who sent reports are a random sample."""
REST: Final = 10
"""An estimate of texts is computed anew after so many times as long as it took: so it never fills a processor."""

LOOKED_FOR: Final = ("sketch", "hadamard", "rappor", "rappor-once")
"""Mechanisms whose reports say something of the words that are looked for alone."""

Rows = Callable[[float], list[Row]]
"""From a confidence to the estimates with their intervals, a record a value, or a period; none without reports."""


class Tally(Protocol):
    """The totals of one task's reports."""

    def add(self, reports: Any) -> None:
        """Add reports, as the mechanism gathers them."""

    def estimate(self, *, fresh: bool = False) -> Rows:
        """Return the estimates of what was added so far, whatever is added later; cheap, whatever they cost.

        Args:
            fresh: Of all that was added, also where estimates rest between computations.
        """


def tally_of(
    asked: client.Asked | client.Attributes, mechanism: Mechanism, candidates: Sequence[str] | None = None
) -> Tally | None:
    """Return empty totals for a mechanism; None for one that needs candidates, if there are none.

    Raises:
        InvalidParameter: For candidates that the mechanism does not look for.
    """
    if isinstance(mechanism, CountMeanSketch | HadamardSketch | Rappor):
        return _of_words(mechanism, candidates)
    if candidates is not None:
        raise InvalidParameter("The task has no use for candidates: it lists what may be answered, or finds its words.")
    if isinstance(mechanism, PrefixExtending):
        return _Texts(mechanism, lambda reports: _found_words(mechanism, reports))
    if isinstance(asked, client.Attributes) and isinstance(mechanism, OneAttribute | AllAttributes):
        return _Record(asked, mechanism)
    if isinstance(mechanism, DyadicTree):
        return _Periods(mechanism)
    if isinstance(asked, client.Asked) and asked.mechanism in FREQUENCIES and isinstance(asked.answers, client.Values):
        return _Shares(mechanism, asked.answers.texts)  # type: ignore[arg-type]
    if isinstance(asked, client.Asked) and asked.mechanism in MEANS:
        return _Mean(mechanism)  # type: ignore[arg-type]
    return None


def _of_words(mechanism: CountMeanSketch | HadamardSketch | Rappor, candidates: Sequence[str] | None) -> Tally | None:
    if candidates is None:
        return None
    words = tuple(dict.fromkeys(normalize("NFC", word) for word in candidates))  # as devices take them
    if isinstance(mechanism, Rappor):
        return _Texts(mechanism, lambda reports: decode(mechanism, reports, words).rows)
    mechanism.among(words)  # refuses what cannot be told apart before anything is collected
    return _Texts(mechanism, lambda reports: _rows_of(estimate_sketch(mechanism, reports, words)))


def _found_words(mechanism: PrefixExtending, reports: Any) -> Rows:
    found = find_words(mechanism, reports).estimate
    return _none if found is None else _rows_of(found)


def _rows_of(found: FrequencyEstimate) -> Rows:
    return lambda confidence: [{**row, "reports": found.reports} for row in found.rows(confidence, whom=POPULATION)]


def _none(_: float) -> list[Row]:
    return []


@final
class _Shares:
    def __init__(self, mechanism: Randomizer, values: tuple[str, ...]) -> None:
        self._mechanism, self._values = mechanism, values
        self._reports, self._supports = 0, np.zeros(len(values), dtype=np.int64)

    def add(self, reports: Any) -> None:
        self._reports += len(reports)
        self._supports += self._mechanism.support_counts(reports)

    def estimate(self, *, fresh: bool = False) -> Rows:
        if not self._reports:
            return _none
        return _rows_of(
            FrequencyEstimate(
                values=self._values, mechanism=self._mechanism, reports=self._reports, supports=self._supports.copy()
            )
        )


@final
class _Mean:
    def __init__(self, mechanism: MeanRandomizer) -> None:
        self._mechanism, self._reports, self._sum, self._squares = mechanism, 0, 0.0, 0.0

    def add(self, reports: Any) -> None:
        positions = self._mechanism.positions(reports)
        self._reports += len(reports)
        self._sum += float(positions.sum())
        self._squares += float((positions**2).sum())

    def estimate(self, *, fresh: bool = False) -> Rows:
        if not self._reports:
            return _none
        found = MeanEstimate(
            mechanism=self._mechanism,
            reports=self._reports,
            position=self._sum / self._reports,
            square=self._squares / self._reports,
        )
        return lambda confidence: found.rows(confidence, whom=POPULATION)


@final
class _Periods:
    def __init__(self, tree: DyadicTree) -> None:
        self._tree, size = tree, 2 * tree.periods - 1
        self._counts, self._sums = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)

    def add(self, reports: Any) -> None:
        counts, sums = block_totals(self._tree, reports)
        self._counts += counts
        self._sums += sums

    def estimate(self, *, fresh: bool = False) -> Rows:
        if not self._counts[0]:
            return _none
        return TreeEstimate(tree=self._tree, counts=self._counts.copy(), sums=self._sums.copy()).rows


@final
class _Record:
    def __init__(self, asked: client.Attributes, mechanism: OneAttribute | AllAttributes) -> None:
        self._questions, self._each = mechanism.questions, []
        for (_, one), own in zip(asked.each, mechanism.each, strict=True):
            tally = tally_of(one, own)
            if tally is None:
                raise InvalidParameter("One of several attributes has a mechanism that is for texts.")
            self._each.append(tally)
        self._tables = list(joint_counts(asked))

    def add(self, reports: Any) -> None:
        for tally, part in zip(self._each, reports, strict=True):
            tally.add(part)
        for table in self._tables:
            table.add(reports)

    def estimate(self, *, fresh: bool = False) -> Rows:
        each = [(question, tally.estimate()) for question, tally in zip(self._questions, self._each, strict=True)]
        tables = [table.estimate() for table in self._tables if table.reports]
        each += [(" × ".join(table.questions), table.rows) for table in tables]
        return lambda confidence: [{"question": question, **row} for question, rows in each for row in rows(confidence)]


@final
class _Texts:
    """The reports themselves, and one computation at a time of what they say.

    An estimate is good for a while: it is computed anew when there are more reports and it has rested (`REST`).
    """

    def __init__(self, mechanism: Mechanism, tell: Callable[[Any], Rows]) -> None:
        self._tell, self._pieces = tell, [mechanism.gather([])]
        self._computing = threading.Lock()
        self._told: tuple[int, Rows] = (0, _none)
        self._next = 0.0

    def add(self, reports: Any) -> None:
        if len(reports):
            self._pieces.append(reports)

    def estimate(self, *, fresh: bool = False) -> Rows:
        if len(self._pieces) > 1:
            self._pieces = [np.concatenate(self._pieces)]
        reports = self._pieces[0]

        def rows(confidence: float) -> list[Row]:
            with self._computing:
                if len(reports) > self._told[0] and (fresh or time.monotonic() >= self._next):
                    begun = time.monotonic()
                    try:
                        told = self._tell(reports)
                    except InvalidParameter:  # too few reports: a group of them has none
                        told = _none
                    self._told = len(reports), told
                    self._next = time.monotonic() + REST * (time.monotonic() - begun)
                told = self._told[1]
            return told(confidence)

        return rows

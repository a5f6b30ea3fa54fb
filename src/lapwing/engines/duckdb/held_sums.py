"""The truncated sums of a search among thresholds, held until the question is asked at one of them.

Theory of operation. Where several units share rows, a search computes the sum truncated at every threshold, and one of
them is chosen (`query.aggregates.truncation`). Then the question is asked at a threshold that is again one of these. So
its exact integers are known, and need no second look at the rows.

Guarantee:
    They are the same integers, as both come of the same function of the same rows: the sums are found only by the text
    of the selection, the keys, the measure with its threshold, and the digests of all data beneath. Nothing leaves but
    what `release` adds noise to, for a question whose charge is durable.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import final

from lapwing.engines.duckdb.database import Rows
from lapwing.engines.duckdb.queries import Batch
from lapwing.query.plan.plan import Question


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class _Searched:
    """A search and the rows of its cells: private data.

    Args:
        digests: Of the data beneath.
    """

    question: Question
    digests: Mapping[str, str]
    cells: Rows

    def answer(self, question: Question, digests: Mapping[str, str]) -> Rows | None:
        """Return the rows of a question's cells, if they are among these."""
        mine = self.question
        same = (str(mine.selection), set(mine.keys)) == (str(question.selection), set(question.keys))
        if not same or self.digests != digests or question.sets or not set(question.measures) <= set(mine.measures):
            return None
        places = [mine.keys.index(key) for key in question.keys]
        places += [len(mine.keys) + mine.measures.index(measure) for measure in question.measures]
        return [tuple(row[place] for place in places) for row in self.cells]


@final
class HeldSums:
    """The sums of the search that ran last. Thread-safe."""

    def __init__(self) -> None:
        self._held: _Searched | None = None
        self._lock = Lock()

    def ask(
        self,
        question: Question,
        digests: Mapping[str, str],
        of_rows: Callable[[Question], Iterable[Batch]],
        known: Callable[[], bool],
    ) -> list[Batch] | None:
        """Answer a search, or the question after it; None for any other.

        Args:
            of_rows: Asks of the rows.
            known: Whether the data still have these digests.
        """
        if question.choosing:
            batches = list(of_rows(question))
            cells = [row for batch in batches for row in batch.cells]
            held = _Searched(question=question, digests=dict(digests), cells=cells) if known() else None
            with self._lock:
                self._held = held
            return batches
        with self._lock:
            held = self._held
            cells_found = None if held is None else held.answer(question, digests)
            if cells_found is None:
                return None
            self._held = None
        return [Batch(cells=cells_found)]

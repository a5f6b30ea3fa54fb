"""What each unit adds to each group, computed once for all searches of a question, and held until it is asked.

Theory of operation. A question that leaves bounds to be found is asked several times over: once for each search, and
then with what was found. Most of the time goes into one relation, of what each unit adds to each group: a search counts
its rows by their magnitude, the question adds them up, clamped. So the first search that runs stores the relation, with
what all searches of the question need of it (`PerUnit.whole`), as a table of the engine's database in memory. The other
searches and the question read that table. It is dropped when the question was asked, or when other searches begin.

Guarantee:
    Every question gets the exact integers that it would get of the rows themselves. The table is the relation that its
    SQL names in any case, of the same engine, and it is found only by the text of its source and groups, which is its
    meaning, and by the digests of all data beneath; these are compared again after it was made, before it is held. That
    every row is of one unit and group, and sums of whole numbers are exact, makes the sums of its rows those of all
    rows. Nothing leaves but these integers, for questions whose charge is durable. The table is made for a charged
    search, from rows that this search may read. It has sums that other searches ask for, which may not be charged: they
    stay in it.

What is not held, or not any more, is computed from the rows: so it makes a difference in time and in nothing else. The
model of `query.work` counts every search and the question as if nothing were shared; so it never says too little.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from threading import Lock
from typing import Any, Protocol, final

from lapwing.engines.base import FAILED
from lapwing.engines.duckdb import leaves
from lapwing.engines.duckdb.clamped_sums import added_up
from lapwing.engines.duckdb.cleaned import WHOLE, Pass
from lapwing.engines.duckdb.database import Database, Rows
from lapwing.engines.duckdb.expressions import have_keys, keys_as_columns, where_clause
from lapwing.engines.duckdb.held_sums import HeldSums
from lapwing.engines.duckdb.literals import identifier
from lapwing.engines.duckdb.queries import Batch
from lapwing.engines.duckdb.relations import relation, unit_names
from lapwing.errors import EngineFault
from lapwing.query.aggregates.unit_totals import common_keys, total_of, unit_totals
from lapwing.query.measures.measures import Count, Sum
from lapwing.query.plan.plan import Question
from lapwing.query.relations.per_unit import FirstRows, PerUnit
from lapwing.query.relations.relation import FilteredRows

Meaning = tuple[object, ...]
Asker = Callable[..., Batch]
"""Asks a question of a batch of units, as `queries.ask` does."""


class AsksRows(Protocol):
    """Asks a question of its rows."""

    def __call__(self, question: Question, asker: Asker = ...) -> Iterable[Batch]:
        """Ask batch by batch of units, in the way that is given."""
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _HeldTotals:
    """A table that holds a relation under its columns' names.

    Args:
        of: What it is, and of what data.
    """

    table: str
    totals: PerUnit
    of: Meaning

    def has(self, asked: PerUnit) -> bool:
        """Tell whether it has all aggregates of a relation over the same rows and groups."""
        return set(asked.aggregates) <= set(self.totals.aggregates)

    def rows(self, asked: PerUnit) -> str:
        """Return the FROM item of a relation over the same rows and groups."""
        held = dict(zip((*self.totals.groups, *self.totals.aggregates), self.totals.columns, strict=True))
        pairs = zip((*asked.groups, *asked.aggregates), asked.columns, strict=True)
        named = [f"{identifier(held[part].name)} AS {identifier(column.name)}" for part, column in pairs]
        return f"(SELECT {', '.join([*unit_names(self.totals), *named])} FROM {self.table})"


@final
class HeldTotals:
    """The relation that one database holds: of the searches that ran last. Thread-safe."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._numbers = count()
        self._held: _HeldTotals | None = None
        self._lock = Lock()
        self._sums = HeldSums()

    def ask(
        self, question: Question, digests: Mapping[str, str], of_rows: AsksRows, known: Callable[[], bool]
    ) -> list[Batch] | None:
        """Answer a search, or a question whose searches ran last; None for any other, and where nothing is held.

        Args:
            of_rows: Asks of the rows.
            known: Whether the data still have these digests.
        """
        if question.units_of_row > 1:
            return self._sums.ask(question, digests, of_rows, known)
        search = _search_of(question)
        if search is not None and search.whole is not None:
            return [self._searched(question, search, search.whole, digests, of_rows, known)]
        asked = None if self._held is None else _totals_of(question)
        held = None if asked is None else self._taken(_meaning(asked, digests))
        if asked is None or held is None:
            return None
        try:
            return [self._added_up(question, asked, held)] if held.has(asked) else None
        finally:
            self._drop(held)

    # ---- asking ------------------------------------------------------------------------------------------------------

    def _searched(
        self,
        question: Question,
        search: PerUnit,
        whole: PerUnit,
        digests: Mapping[str, str],
        of_rows: AsksRows,
        known: Callable[[], bool],
    ) -> Batch:
        """Answer a search, and hold the relation: in the text of its query, its rows are read where they are held."""
        held = self._taken(_meaning(whole, digests))
        try:
            if held is None or not held.has(whole):
                self._drop(held)
                held = self._made(whole, digests, of_rows)
                if not known():
                    raise EngineFault(FAILED)
            (measure,) = question.distributions
            text = leaves.leaves(question, measure).replace(relation(search), held.rows(search))
            batch = Batch(cells=[], leaves=[self._database.query(text)])
            with self._lock:
                held, self._held = self._held, held
        finally:
            self._drop(held)
        return batch

    def _added_up(self, question: Question, asked: PerUnit, held: _HeldTotals) -> Batch:
        """Answer a question: add up what units have in all, clamped; of groups that are one cell, what they have."""
        columns = dict(zip((*asked.groups, *asked.aggregates), asked.columns, strict=True))
        groups = dict(zip(common_keys([question.keys]), asked.columns, strict=False))
        keys = [replace(key, expression=groups[key]) for key in question.keys]
        shared = any(key.other is not None for key in keys)
        shown = keys_as_columns(keys)
        for place, measure in enumerate(_sums(question)):
            total = identifier(columns[total_of(measure, asked.source)].name)
            shown.append(f"COALESCE({f'SUM({total})' if shared else total}, 0) AS measure{place}")
        cells = [*unit_names(asked), *(str(place + 1) for place in range(len(keys)))]
        grouped = f" GROUP BY {', '.join(cells)}" if shared else ""
        partials = f"SELECT {', '.join(shown)} FROM {held.rows(asked)}{where_clause(None, have_keys(keys))}{grouped}"
        return Batch(cells=self._database.query(added_up(question.numbers, len(keys), partials)))

    # ---- holding -----------------------------------------------------------------------------------------------------

    def _made(self, totals: PerUnit, digests: Mapping[str, str], of_rows: AsksRows) -> _HeldTotals:
        """Store a relation, batch by batch of units."""
        held = _HeldTotals(
            table=f"memory.main.totals{next(self._numbers)}", totals=totals, of=_meaning(totals, digests)
        )
        begun = False

        def store(_: Question, rows: Callable[[Pass], str], fetch: Callable[[str], Rows], *_further: Any) -> Batch:
            nonlocal begun
            into = f"INSERT INTO {held.table}" if begun else f"CREATE TABLE {held.table} AS"
            begun = True
            fetch(f"{into} WITH {rows(WHOLE)} SELECT * FROM {relation(totals)}")
            return Batch(cells=[])

        try:
            list(of_rows(Question(selection=FilteredRows(relation=totals), keys=(), measures=(Count(),)), store))
        except BaseException:
            self._drop(held)
            raise
        return held

    def _taken(self, of: Meaning) -> _HeldTotals | None:
        """Take what is held, if it is this: whoever has it drops it, or holds it again."""
        with self._lock:
            if self._held is None or self._held.of != of:
                return None
            held, self._held = self._held, None
            return held

    def _drop(self, held: _HeldTotals | None) -> None:
        if held is not None:
            self._database.query(f"DROP TABLE IF EXISTS {held.table}")


def _meaning(totals: PerUnit, digests: Mapping[str, str]) -> Meaning:
    """Return what a relation is, but for its aggregates, and of what data."""
    return (str(totals.source), *map(str, totals.groups), *sorted(digests.items()))


def _search_of(question: Question) -> PerUnit | None:
    """Return the relation whose rows a search counts, if a question is a search for a bound on totals."""
    counted = question.selection.relation
    below = counted.source.relation if isinstance(counted, FirstRows) else counted
    return below if isinstance(below, PerUnit) and below.whole is not None else None


def _totals_of(question: Question) -> PerUnit | None:
    """Return the relation that a question adds up, if all that it measures is what units add, clamped."""
    sums = [measure for measure in _sums(question) if measure.clamp is not None]
    if not sums or len(sums) < len(question.measures) or question.sets or question.private_keys:
        return None
    if any(isinstance(measure, Sum) and (measure.origin or measure.averaged) for measure in sums):
        return None
    return unit_totals(sums, question.selection, [question.keys])


def _sums(question: Question) -> list[Count | Sum]:
    return [measure for measure in question.measures if isinstance(measure, Count | Sum)]

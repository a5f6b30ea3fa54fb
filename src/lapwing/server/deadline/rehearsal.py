"""What a question's SQL takes on made-up rows of the catalog's shape: it raises what the model says of it.

The model (`query.work`) knows the plan, and not what an engine makes of it. So before somebody's first question of a
shape waits for its turn, the SQL that would be run is run on rows that nobody has: with texts as long as they may be,
each unit with as many rows as it may have, and conditions that are computed and hold; once with rows that are alike
within a unit, so that what is joined there meets, and once with rows that all differ, so that there are all groups. It
is run on few rows and on many; what a row more costs is then taken for each of `rows_at_most`.

It proves no upper bound: patterns that these texts do not feed, values that pile up, and what spills to disk are the
model's. Linked and public tables are left to it too.

Claim: what comes of it tells nothing of the data, and nothing of others. The rows are made up of the catalog. Beside
questions that run it would measure these too: so it runs only while nothing that was admitted is still to leave, which
follows from public moments, and counts only if that is so at its end as well. What a person's questions were found to
take is kept for this person alone: so it takes the time that it takes for everybody who asks the first time. Previews
ask for none.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import date
from fractions import Fraction
from pathlib import Path
from re import sub
from typing import Any, Final, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from lapwing.catalog.model import Catalog, Table
from lapwing.catalog.table import Column
from lapwing.engines import DuckDB
from lapwing.errors import LapwingError
from lapwing.machine.scratch import temporary_folder
from lapwing.query.bind.bind import bind
from lapwing.query.expressions.expression import ColumnReference, Operation, walk
from lapwing.query.expressions.types import BOOLEAN, TEXT
from lapwing.query.plan.composition import plans_asked
from lapwing.query.plan.plan import Plan, Question
from lapwing.query.plan.traversal import expressions_of
from lapwing.query.relations.relation import FilteredRows, ProtectedRows, public_tables_of
from lapwing.query.relations.set_operations import Union
from lapwing.server.datasets import Datasets, ServedDataset
from lapwing.server.deadline.cost import most_rows
from lapwing.server.log import log
from lapwing.server.rounds import Rounds
from lapwing.tables import quoted

FEW, MANY = 2_048, 16_384
"""Rows of each table. What is dear is run on few of them alone."""
DEAR: Final = 0.02
"""Seconds from which few rows are enough to tell."""
LOST: Final = 0.001
"""Seconds that many rows take more than few, below which it is lost among what any question takes."""
IN_ALL: Final = 1.0
"""Seconds after which no further question of a batch is rehearsed."""
REMEMBERED: Final = 4_096
"""Shapes of all people that are remembered; the one that was asked longest ago goes first."""
DATASETS: Final = 8
"""Data sets with made-up rows, which take some 75 MB each; questions of others go by the model."""
LOOK: Final = 5.0
"""Seconds between two looks for new data sets."""


@final
class Rehearsals:
    """Rehearses questions of the data sets of a service.

    Args:
        quiet: Tells whether nothing is under way that was admitted.
    """

    def __init__(self, datasets: Datasets, quiet: Callable[[], bool]) -> None:
        self._datasets, self._quiet = datasets, quiet
        self._rows: dict[str, tuple[Catalog, MadeUpRows | None]] = {}
        self._known: OrderedDict[tuple[str, str, str], float] = OrderedDict()
        self._lock, self._running = threading.Lock(), threading.Lock()
        self._looked = threading.Event()
        self.rounds = Rounds("rehearsals", 0.0, self._round)

    def seconds(self, person: str, served: ServedDataset, plans: Sequence[Plan], *, remembered: bool = False) -> float:
        """Return what the engine takes for questions by what was rehearsed; 0 for those that are left to the model.

        Args:
            remembered: Whether to go by what this person has rehearsed before, and to run nothing.
        """
        total, begun = 0.0, time.thread_time()
        for question in (one for plan in plans for leaf in plans_asked(plan) for one in asked(leaf)):
            if not is_plain(question) and time.thread_time() - begun < IN_ALL:
                total += self._of(person, served, question, remembered=remembered)
        return total

    def wait(self) -> None:
        """Return once the rows of the first data sets are made, or cannot be: no query is to run beside that."""
        self._looked.wait()

    def close(self) -> None:
        """Remove all made-up rows."""
        self.rounds.close()
        with self._running:
            for _, rows in self._rows.values():
                if rows is not None:
                    rows.close()
            self._rows = {}

    def look(self) -> None:
        """Make rows for data sets that are new, or have another catalog, while nothing is under way.

        It takes this process some tenths of a second, and what was admitted is to leave punctually.
        """
        for served in self._datasets.everything():
            catalog, before = self._rows.get(served.name, (None, None))
            if catalog is served.session.catalog or not self._quiet():
                continue
            catalog, rows = served.session.catalog, None
            others = sum(name != served.name and made is not None for name, (_, made) in self._rows.items())
            if others < DATASETS and all(table.link is None for table in catalog.tables):
                with suppress(LapwingError, OSError, pa.ArrowException):
                    rows = MadeUpRows(catalog)
            if rows is None:
                log("not rehearsed", dataset=served.name)
            with self._running:
                self._rows[served.name] = (catalog, rows)
                if before is not None:
                    before.close()
                with self._lock:
                    for key in [key for key in self._known if key[1] == served.name]:
                        del self._known[key]

    def _of(self, person: str, served: ServedDataset, question: Question, *, remembered: bool) -> float:
        key = (person, served.name, shape(question))
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
        # Nobody waits for a rehearsal of somebody else's: it goes by the model, as it does beside what is under way.
        if remembered or not self._running.acquire(blocking=False):
            return 0.0
        try:
            return self._rehearsed(key, served, question)
        finally:
            self._running.release()

    def _rehearsed(self, key: tuple[str, str, str], served: ServedDataset, question: Question) -> float:
        catalog, rows = self._rows.get(served.name, (None, None))
        if rows is None or catalog is not served.session.catalog or not self._quiet():
            return 0.0
        found = rows.seconds(question)
        if not self._quiet():
            return 0.0
        with self._lock:
            self._known[key] = found
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return found

    def _round(self) -> float:
        try:
            if not self._looked.is_set():
                pa.array([])  # loads pandas if it is installed: that holds up all threads for up to a second, once
            self.look()
        finally:
            self._looked.set()
        return LOOK


def asked(plan: Plan) -> tuple[Question, ...]:
    """Return the questions that are asked of the data, searches first."""
    return (*(search.question for search in plan.searches), plan.question)


def is_plain(question: Question) -> bool:
    """Tell whether a question counts and sums a table's own rows by conditions on numbers: the model is sharp there."""
    return (
        isinstance(question.selection.relation, ProtectedRows)
        and not question.keys
        and not question.distributions
        and all(measure.clamp is None for measure in question.numbers)
        and not _unusual(question)
    )


_PLAIN: Final = frozenset(
    {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "between", "and", "or", "not", "is_null"}
)


def _unusual(question: Question) -> bool:
    nodes = [node for one in expressions_of(question) for node in walk(one)]
    functions = {node.function for node in nodes if isinstance(node, Operation)}
    return not functions <= _PLAIN or any(isinstance(n, ColumnReference) and n.type == TEXT for n in nodes)


def shape(question: Question) -> str:
    """Return the text of a question with 0 for every digit, and of its texts the lengths alone, in powers of two."""
    texts = sub(r"'[^']*'", lambda found: f"'{'s' * len(found[0]).bit_length()}'", str(question))
    return sub(r"[0-9]", "0", texts)


def all_met(selection: FilteredRows) -> FilteredRows:
    """Return a selection whose conditions are computed, and then hold: each is joined by one that is always true."""
    relation: Any = selection.relation
    if isinstance(relation, Union):
        parts = tuple(replace(part, source=all_met(part.source)) for part in relation.parts)
        relation = replace(relation, parts=parts)
    else:
        names = [name for name in ("source", "other") if isinstance(getattr(relation, name, None), FilteredRows)]
        relation = replace(relation, **{name: all_met(getattr(relation, name)) for name in names})
    where = selection.where
    columns = [] if where is None else [node for node in walk(where) if isinstance(node, ColumnReference)]
    if where is not None and columns:
        unknown = Operation(function="is_null", arguments=(columns[0],), type=BOOLEAN)
        known = Operation(function="not", arguments=(unknown,), type=BOOLEAN)
        where = Operation(function="or", arguments=(where, unknown, known), type=BOOLEAN)
    return replace(selection, relation=relation, where=where)


MadeUp = tuple[DuckDB, dict[str, str]]
"""An engine and the digests of its rows."""


def _took(question: Question, rows: MadeUp) -> float:
    """Return the seconds of this thread, in which the engine runs."""
    engine, digests = rows
    begun = time.thread_time()
    engine.run(question, digests)
    return time.thread_time() - begun


@final
class MadeUpRows:
    """Engines over made-up rows of all protected tables of a catalog. They are to be closed."""

    def __init__(self, catalog: Catalog) -> None:
        self._stack = ExitStack()
        try:
            folder = self._stack.enter_context(temporary_folder("lapwing-rehearsal-"))
            self._engines = [
                [self._open(catalog, folder / f"{size}{alike}", size, alike=alike) for size in (FEW, MANY)]
                for alike in (True, False)
            ]
        except BaseException:
            self._stack.close()
            raise

    def close(self) -> None:
        """Close all engines, and remove the rows."""
        self._stack.close()

    def seconds(self, question: Question) -> float:
        """Return the seconds of a processor that the engine takes for as many rows as there may be; 0 if unknown."""
        if dict(public_tables_of(question.selection.relation)):
            return 0.0
        dearest = replace(question, selection=all_met(question.selection))
        each = 0.0
        for few, many in self._engines:
            try:
                once = _took(dearest, few)
                if once >= DEAR:
                    each = max(each, once / FEW)
                    continue
                less, more = (min(_took(dearest, rows) for _ in range(2)) for rows in (few, many))
            except LapwingError:
                continue
            each = max(each, (more - less) / (MANY - FEW) if more - less >= LOST else 0.0)
        return each * max(map(most_rows, question.tables))

    def _open(self, catalog: Catalog, folder: Path, size: int, *, alike: bool) -> "MadeUp":
        folder.mkdir()
        tables = []
        for number, table in enumerate(catalog.tables):
            pq.write_table(_made(table, size, alike=alike), folder / f"{number}.parquet")
            tables.append(replace(table, source=f"{number}.parquet", text=None, where=(), unreadable=None))
        made = replace(
            catalog, file=folder / "made.toml", folder=folder, tables=tuple(tables), public_tables=(), graphs=()
        )
        engine = DuckDB(made, threads=1, indexing=False)
        self._stack.callback(engine.close)
        digests = {}
        for table in tables:
            digests[table.name] = engine.digest(table)
            engine.build_index(table)
            engine.run(
                bind(f"SELECT COUNT(*) FROM {quoted(table.name)}", made).question, digests
            )  # loads what all need
        return engine, digests


# ---- rows that nobody has --------------------------------------------------------------------------------------------


def _made(table: Table, size: int, *, alike: bool) -> pa.Table:
    """Return rows of a table: full units, whose rows are alike, or all different."""
    rows = np.arange(size)
    units = rows // table.max_rows_per_unit
    columns: dict[str, Any] = {column.name: _values(column, units if alike else rows) for column in table.columns}
    if table.privacy_unit is not None and table.privacy_unit != "row":
        columns[table.privacy_unit] = pa.array(units)
    return pa.table(columns or {"nothing": pa.array(units)})


def _values(column: Column, number: NDArray[np.int64]) -> pa.Array:
    """Return a value for each number: of texts the longest, different for different numbers where there are as many."""
    if column.values is not None:
        return pa.array(list(column.values)).take(pa.array(number % len(column.values)))
    low, high = column.lower, column.upper
    match column.type:
        case "string":
            length = column.max_length or 1
            padded = pc.utf8_rpad(pc.cast(pa.array(number), pa.string()), width=length, padding="a")
            return pc.utf8_slice_codeunits(padded, 0, length)
        case "date":
            first = np.datetime64(low if isinstance(low, date) else date(2000, 1, 1), "D")
            return pa.array(first + number % 3_000)
        case "timestamp":
            return pa.array(np.datetime64("2000-01-01", "us") + number * 7_919_000_000 % 10**15)
        case "integer":
            least, most = (int(end) if isinstance(end, Fraction) else 2**31 for end in (low or Fraction(0), high))
            return pa.array(least + number % max(1, most - least + 1))
    bounded = isinstance(low, Fraction) and isinstance(high, Fraction)
    first_number, span = (float(low), float(high - low)) if bounded else (0.0, 1e6)  # type: ignore[arg-type,operator]
    return pa.array(first_number + number % 9_973 / 9_973 * span)

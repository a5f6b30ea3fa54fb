"""DuckDB over Parquet and CSV files, locked down.

Theory of operation. Questions run in a `database` that may read the catalog's own files and nothing else. It never sees
an analyst's text: `query.render` prints its SQL from a checked plan. That SQL cannot raise on data by construction; if
the engine fails all the same (memory, disk, time, a damaged file), the caller learns that it failed and nothing else.

Some faults of a file show only when it is read: a page that is damaged, text that is not UTF-8, a CSV line with a field
too many, a time that overflows. Questions that fail or not, depending on one row, would tell about that row. So the
first digest of a file also reads all of it through, the way questions will: what cannot be read to its end is no data,
and nobody has asked yet. A question runs only on a file that was read through and has not been written since. An index
is written only of such files, so that who finds one for a digest need not read the file through again.

A question's rows come from an `index` where there is one. The second question about the same large file makes one: that
rests on how many questions were asked and how large the file is, never on what is in it. Whether one is there changes
how long a question takes, and nothing else.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from threading import Lock
from typing import Any, Final, final

import duckdb
import numpy as np
from numpy.typing import NDArray

from lapwing import progress
from lapwing.catalog.model import Catalog, PublicTable, Table
from lapwing.engines import files, index
from lapwing.engines.base import Exact, PublicSources
from lapwing.engines.database import DISABLED_OPTIMIZERS, Database, Rows
from lapwing.engines.files import File, Stamp, stamp_of
from lapwing.errors import DataFault, EngineFault, Fault
from lapwing.query.cleaned import Pass, Source, kept_rows, layers, public_layer, read_through, stored
from lapwing.query.expression import Constant
from lapwing.query.keys import Key
from lapwing.query.measures import CountDistinct, CountUnits, Distribution
from lapwing.query.plan import Question
from lapwing.query.render import LEAF, answer, holders, leaves
from lapwing.query.types import Fixed

__all__ = ["DISABLED_OPTIMIZERS", "FAILED", "MEMORY", "DuckDB", "File", "IndexState", "Stamp"]

MEMORY: Final = 1_000_000_000  # bytes
SECONDS: Final = 600.0
INDEXED_FROM: Final = 64 * 1024**2
"""Bytes of a file that is worth an index; smaller ones are bounded in less than half a second."""
INDEXED_AT: Final = 2
"""The question about the same data that makes one: the first pays for itself alone."""
FAILED: Final = (
    "The engine could not finish the question. The price is paid; ask the curator to look at memory, disk and data."
)

Batch = list[Rows]
"""Of some units: the rows of each query that a question asks."""


class IndexState(StrEnum):
    """What is beside a table's data."""

    current = "current"
    unusable = "unusable"
    absent = "absent"


@final
class DuckDB:
    """An engine over the files of one catalog.

    Args:
        catalog: its tables' sources are paths relative to the catalog's folder.
        public: where its public tables are; questions that join them fail without.
        memory: the most memory the engine may use, in bytes.
        threads: 0 for one a core.
        seconds: the longest that reading a file through, or a pass of a question, may take.
        indexing: whether questions may make an index beside the data; one that is there is used in any case.
    """

    def __init__(
        self,
        catalog: Catalog,
        *,
        public: PublicSources | None = None,
        memory: int = MEMORY,
        threads: int = 0,
        seconds: float = SECONDS,
        indexing: bool = True,
    ) -> None:
        self._catalog = catalog
        self._public = public
        self._folder = catalog.folder
        self._memory = memory
        self._indexing = indexing
        self._digests: dict[tuple[str, Stamp], str] = {}
        self._described: dict[tuple[str, Stamp], tuple[File, Source]] = {}
        self._asked: Counter[tuple[str, str]] = Counter()
        self._lock = Lock()
        self._indexes = index.Indexes()
        sources = [self._path(table) for table in catalog.tables]
        public_files = [self._path(table) for table in catalog.public_tables]
        indexes = [index.path_of(self._path(table), table) for table in catalog.tables]
        self._database = Database(
            paths=[
                *map(str, sources),
                *map(str, public_files),
                *map(str, indexes),
                *(f"{path}.wal" for path in indexes),
            ],
            folders=self._indexes.folders(sources),
            memory=memory,
            threads=threads,
            seconds=seconds,
        )
        self._connection = self._database.connection

    def digest(self, table: Table) -> str:
        """Return the SHA-256 of a table's file, remembered for as long as the file's stamp does not change."""
        path = self._path(table)
        stamp = stamp_of(path, table)
        with self._lock:
            known = self._digests.get((table.name, stamp))
        if known is None:
            file = self._describe(table)
            known = files.hashed(path, table)
            if self._find_index(table, known) is None:
                self._read_through(table, file)
            if stamp_of(path, table) != stamp:
                raise DataFault(f"The file {table.source} of table {table.name} changed while it was read; try again")
            with self._lock:
                self._digests[(table.name, stamp)] = known
        return known

    def run(self, question: Question, digest: str) -> Exact:
        """Run a question over the index, or in as many passes as keep its sort in memory."""
        exact = self._exact(question, digest)
        if exact is None:  # raised out here, the fault drags no engine's message along
            raise EngineFault(FAILED)
        return exact

    def build_index(self, table: Table) -> bool:
        """Write the index of a table, unless there is one; return whether it was written. The curator's act.

        Raises: DataFault if the data cannot be read; Fault if the index cannot be written.
        """
        digest = self.digest(table)
        if self._has_sound_index(table, digest):
            return False
        try:
            written = self._build(table, digest)
        except (duckdb.Error, OSError):
            written = False
        if not written:
            raise Fault(
                f"The index of table {table.name} could not be written beside {table.source}; look at the folder's "
                "rights, at the space on its disk, and whether the data are being written. Questions need no index."
            )
        return True

    def drop_index(self, table: Table) -> bool:
        """Remove the index of a table; return whether there was one."""
        return index.drop(index.path_of(self._path(table), table))

    def index_state(self, table: Table) -> IndexState:
        """Return whether a table has an index, and whether it is of these data, this catalog and this engine."""
        path = self._path(table)
        if self._has_sound_index(table, files.hashed(path, table)):
            return IndexState.current
        there = index.path_of(path, table)
        return IndexState.unusable if there.exists() or there.is_symlink() else IndexState.absent

    def close(self) -> None:
        """Close the database and remove its folder."""
        self._database.close()

    # ---- questions ---------------------------------------------------------------------------------------------------

    def _exact(self, question: Question, digest: str) -> Exact | None:
        """Return what was found, or None if anything failed: saying what could tell something about the data."""
        table = question.table
        try:
            if self._known(table) != digest:
                return None
            batches = self._from_index(question, digest)
            if batches is None:
                batches = list(self._from_source(question))
            self._public_layers(question)  # a public file that has changed is a fault, also now
            return _exact(batches, question) if self._known(table) == digest else None
        except Exception:
            return None

    def _from_index(self, question: Question, digest: str) -> list[Batch] | None:
        """Return what the index says, or None if there is none or it is damaged."""
        table = question.table
        relation = self._find_index(table, digest)
        if relation is None and self._is_due(table, digest):
            with suppress(duckdb.Error, OSError):
                self._build(table, digest)
            relation = self._find_index(table, digest)
        if relation is None:
            return None
        try:
            with progress.work(f"Asking the index of {table.name}"):
                rows = ", ".join([stored(relation), *self._public_layers(question)])
                return [[self._fetch(f"WITH {rows} {query}") for query in _queries(question)]]
        except duckdb.InterruptException:  # out of time: it would not be faster without
            raise
        except Exception:
            self._indexes.doubt(index.path_of(self._path(table), table))
            return None

    def _from_source(self, question: Question) -> Iterator[Batch]:
        """Ask the file, in batches of units whose cells add up."""
        file, table, queries = self._describe(question.table), question.table, _queries(question)
        public = self._public_layers(question)
        passes = self._passes(file, table)
        parts = [Pass(index=part, of=passes) for part in range(passes)]
        batches = [[part] for part in parts] if is_additive(question) else [parts]
        with progress.work(f"Reading {table.name}"):
            for number, batch in enumerate(batches):
                with progress.step(number, len(batches)):
                    if len(batch) == len(queries) == 1:
                        rows = ", ".join([layers(table, file.source, batch[0]), *public])
                        yield [self._fetch(f"WITH {rows} {queries[0]}")]
                    else:
                        yield self._gathered(table, file.source, batch, queries, public)

    def _gathered(
        self, table: Table, source: Source, parts: Sequence[Pass], queries: Sequence[str], public: Sequence[str]
    ) -> Batch:
        """Gather the kept rows of several passes, which may spill, and ask them several queries."""
        with self._database.session() as query:
            try:
                for number, part in enumerate(parts):
                    into = "INSERT INTO kept_rows" if number else "CREATE TEMP TABLE kept_rows AS"
                    with progress.step(number, len(parts)):
                        query(f"{into} {kept_rows(table, source, part)}")
                rows = ", ".join([stored("temp.kept_rows"), *public])
                return [query(f"WITH {rows} {asked}") for asked in queries]
            finally:
                query("DROP TABLE IF EXISTS temp.kept_rows")

    def _passes(self, file: File, table: Table) -> int:
        """Return how many passes keep the bounding sort inside the memory limit."""
        if table.privacy_unit == "row":
            return 1
        bytes_a_row = 24 + 16 * len(table.columns)
        return max(1, -(-file.rows * bytes_a_row * 10 // (self._memory * 6)))

    def _fetch(self, query: str) -> Rows:
        """Return the rows of a question's query."""
        return self._query(query)

    def _query(self, query: str) -> Rows:
        return self._database.query(query)

    # ---- indexes -----------------------------------------------------------------------------------------------------

    def _find_index(self, table: Table, digest: str) -> str | None:
        path = self._path(table)
        there = index.path_of(path, table)
        return self._indexes.find(self._database, there, self._identity(table, digest), path)

    def _has_sound_index(self, table: Table, digest: str) -> bool:
        relation = self._find_index(table, digest)
        there = index.path_of(self._path(table), table)
        return relation is not None and self._indexes.is_sound(self._database, there, relation)

    def _identity(self, table: Table, digest: str) -> str:
        """Return what an index must be of: the data by their digest, wherever they are."""
        return index.identity_of(table, self._facts(table)[1], digest)

    def _is_due(self, table: Table, digest: str) -> bool:
        """Count a question without an index, and tell whether it is the one that makes one."""
        if not self._indexing or self._path(table).stat().st_size < INDEXED_FROM:
            return False
        with self._lock:
            self._asked[(table.name, digest)] += 1
            return self._asked[(table.name, digest)] == INDEXED_AT

    def _build(self, table: Table, digest: str) -> bool:
        file, path = self._describe(table), self._path(table)
        passes = self._passes(file, table)
        parts = [kept_rows(table, file.source, Pass(index=part, of=passes)) for part in range(passes)]
        with progress.work(f"Writing the index of {table.name}"):
            return self._indexes.build(
                self._database,
                index.path_of(path, table),
                self._identity(table, digest),
                parts,
                lambda: self._known(table) == digest,
            )

    # ---- files -------------------------------------------------------------------------------------------------------

    def _public_layers(self, question: Question) -> list[str]:
        """Return the layers of the public tables that a question joins."""
        wanted = [table for table in self._catalog.public_tables if table.name in question.public_tables]
        if self._public is None:
            return []
        return [public_layer(self._public.described(table), self._public.source(table)) for table in wanted]

    def _known(self, table: Table) -> str | None:
        """Return the digest of a file that was read through, or None for one that was not.

        A new link or other rights change a file's stamp and not its content: then the content is hashed again.
        """
        path = self._path(table)
        stamp = stamp_of(path, table)
        with self._lock:
            known = {at: digest for (name, at), digest in self._digests.items() if name == table.name}
        if stamp in known:
            return known[stamp]
        digest = files.hashed(path, table)
        if digest not in known.values() or stamp_of(path, table) != stamp:
            return None
        with self._lock:
            self._digests[(table.name, stamp)] = digest
        return digest

    def _path(self, table: Table | PublicTable) -> Path:
        return (self._folder / table.source).resolve()

    def _read_through(self, table: Table, file: File) -> None:
        with files.readable(file.path, table), progress.work(f"Reading {table.name} through"):
            ((rows, _),) = self._query(read_through(table, file.source))
            if rows != files.rows_of(file.path, file):
                raise files.unreadable(table)

    def _describe(self, table: Table) -> File:
        return self._facts(table)[0]

    def _facts(self, table: Table) -> tuple[File, Source]:
        """Return a file and what it would be as a source anywhere else, remembered like its digest."""
        stamp = stamp_of(self._path(table), table)
        with self._lock:
            facts = self._described.get((table.name, stamp))
        if facts is None:
            facts = self._look_at(table)
            with self._lock:
                self._described[(table.name, stamp)] = facts
        return facts

    def _look_at(self, table: Table) -> tuple[File, Source]:
        path = self._path(table)
        with files.readable(path, table):
            rows, names = files.metadata(path)
            relation = files.relation(path, names)
            unit = [] if table.privacy_unit == "row" else [table.privacy_unit]
            source = files.columns(self._connection, relation, names, table, *unit)
        types = source.types
        if table.privacy_unit != "row" and types[table.privacy_unit] in {"DOUBLE", "FLOAT", "BOOLEAN"}:
            raise DataFault(
                f"The privacy unit {table.privacy_unit} of {table.name} is a {types[table.privacy_unit].lower()} in "
                f"{table.source}; it must be an integer or a text"
            )
        anywhere = files.relation(Path(f"source{path.suffix}"), names)
        file = File(path=path, source=source, rows=rows)
        return file, Source(relation=anywhere, types=types)


# ---- what was found --------------------------------------------------------------------------------------------------


def is_additive(question: Question) -> bool:
    """Tell whether the cells of disjoint sets of units add up to the cells of all: different values do not."""
    return not any(isinstance(measure, CountDistinct) for measure in question.measures)


def _queries(question: Question) -> list[str]:
    """Return what is asked of the kept rows: the cells, of private keys who holds them, and distributions."""
    numbers = [answer(question)] if question.numbers and not _are_holders(question) else []
    held = [holders(question)] if question.private_keys else []
    return [*numbers, *held, *(leaves(question, measure) for measure in question.distributions)]


def _exact(batches: Sequence[Batch], question: Question) -> Exact:
    """Add the answers of batches of units."""
    cells: dict[tuple[Constant, ...], tuple[int, ...]] = {}
    held: dict[tuple[Constant, ...], dict[int, int]] = {}
    packed: dict[Distribution, dict[tuple[Constant, ...], list[int]]] = {m: {} for m in question.distributions}
    all_keys, private_keys = _reader(question.keys), _reader(question.private_keys)
    counted = _are_holders(question)
    for batch in batches:
        answers = iter(batch)
        for row in next(answers) if question.numbers and not counted else ():
            key, values = all_keys(row)
            sums = cells.get(key)
            cells[key] = values if sums is None else tuple(map(sum, zip(sums, values, strict=True)))
        for row in next(answers) if question.private_keys else ():
            key, (degree, units) = private_keys(row)
            degrees = held.setdefault(key, {})
            degrees[degree] = degrees.get(degree, 0) + units
        for measure, rows in zip(question.distributions, answers, strict=True):
            for row in rows:
                packed[measure].setdefault(all_keys(row)[0], []).extend(row[-1] or ())
    if counted:
        cells = {key: (sum(degrees.values()),) * len(question.numbers) for key, degrees in held.items()}
    found = {measure: {key: _unpacked(values) for key, values in rows.items()} for measure, rows in packed.items()}
    return Exact(cells=cells, holders=held, leaves=found)


def _unpacked(values: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return leaves and their numbers of rows."""
    array = np.array(values, dtype=np.int64)
    return array // LEAF, array % LEAF


def _are_holders(question: Question) -> bool:
    """Tell whether all that is counted is how many units hold each private key, which is asked for anyway."""
    private = question.private_keys
    return bool(private) and private == question.keys and question.numbers == (CountUnits(),)


def _reader(keys: Sequence[Key]) -> Callable[[tuple[Any, ...]], tuple[tuple[Constant, ...], tuple[int, ...]]]:
    """Return a function that takes a row apart: its keys, as answers hold them, and its integers."""
    count = len(keys)
    steps = [key.expression.type.step if isinstance(key.expression.type, Fixed) else None for key in keys]
    if not any(steps):
        return lambda row: (row[:count], row[count:])

    def read(row: tuple[Any, ...]) -> tuple[tuple[Constant, ...], tuple[int, ...]]:
        pairs = zip(row, steps, strict=False)
        return tuple(x if step is None or x is None else x * step for x, step in pairs), row[count:]

    return read

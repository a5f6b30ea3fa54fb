"""DuckDB over Parquet and CSV files, locked down.

Theory of operation. Questions run in a `database` that may read the catalog's own files and nothing else. It never sees
an analyst's text: `queries` prints its SQL from a checked plan. That SQL cannot raise on data by construction; if
the engine fails all the same (memory, disk, time, a damaged file), the caller learns that it failed and nothing else.

Some faults of a file show only when it is read: a page that is damaged, text that is not UTF-8, a CSV line with a field
too many, a time that overflows. Questions that fail or not, depending on one row, would tell about that row. So the
first digest of a file also reads all of it through, the way questions will: what cannot be read to its end is no data,
and nobody has asked yet. A question runs only on a file that was read through and has not been written since. An index
is written only of such files, so that who finds one for a digest need not read the file through again.

A question about linked tables stands on the files of all their parents. What holds of one file holds of each: their
digests are compared before and after, and a digest also says that the keys that links lead to (`link_keys`) are unique
among the rows that have a unit. That rests on the parents' data too, so it is remembered with the digests of all.

A question's rows come from an `index` where there is one. The second question about the same large file makes one, and
of a small file the thirty-second: that rests on how many questions were asked and how large the file is, never on what
is in it. Whether one is there changes how long a question takes, and nothing else.
"""

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from threading import Lock
from typing import Final, final

import duckdb

from lapwing.catalog.model import Catalog, Table
from lapwing.engines.base import FAILED, NOTHING, Exact, IndexState
from lapwing.engines.data_check import TableCheck
from lapwing.engines.duckdb import checking, files, index, source_reading, unit_masks
from lapwing.engines.duckdb.cleaned import WHOLE, Location, Pass, Relations, from_files, layer, needed, passes_for
from lapwing.engines.duckdb.coded_rows import coded_rows
from lapwing.engines.duckdb.database import Database, Rows
from lapwing.engines.duckdb.files import File
from lapwing.engines.duckdb.held_totals import Asker, HeldTotals
from lapwing.engines.duckdb.indexing import IndexIdentities, Indexing
from lapwing.engines.duckdb.link_keys import is_repeated, keys_of, not_unique
from lapwing.engines.duckdb.public_data import PublicSources
from lapwing.engines.duckdb.queries import Batch, ask, is_additive, prepare, queries_of, together
from lapwing.engines.duckdb.relations import public_layer
from lapwing.engines.duckdb.stamps import Stamp, mark, readable, stamp_of
from lapwing.engines.duckdb.stored_rows import Layers, gathered, held
from lapwing.engines.duckdb.unreadable import unreadable
from lapwing.errors import DataFault, EngineFault
from lapwing.machine import progress
from lapwing.query.expressions.expression import ColumnReference, columns_of
from lapwing.query.measures.distinct_counts import CountUnits
from lapwing.query.measures.measures import argument_of
from lapwing.query.plan.capabilities import Capabilities
from lapwing.query.plan.plan import Question
from lapwing.query.relations.relation import ProtectedRows, public_tables_of, reads

MEMORY: Final = 1_000_000_000  # bytes
SECONDS: Final = 600.0
CAPABILITIES: Final = Capabilities(engine="DuckDB")
CODED_FROM: Final = 1_000_000  # rows of a table whose texts are worth their codes
INDEXED_FROM: Final = 64 * 1024**2
"""Bytes of a large file; smaller ones are bounded in less than half a second."""
INDEXED_AT: Final = 2
"""The question about the same large file that makes an index: the first pays for itself alone."""
SMALL_INDEXED_AT: Final = 32
"""The question about the same small file that does: a service that was asked so many will be asked more."""


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
        folder = catalog.folder.absolute()
        self._paths = {table.name: folder / table.source for table in catalog.tables}  # each may be a link
        self._memory = memory
        self._indexing = indexing
        self._digests: dict[tuple[str, Stamp], str] = {}
        self._unique: set[tuple[str, ...]] = set()
        self._identities = IndexIdentities(catalog)
        self._described: dict[tuple[str, Stamp], tuple[File, Location]] = {}
        self._asked: Counter[tuple[str, str]] = Counter()
        self._lock = Lock()
        self._indexes = index.Indexes()
        sources = {name: path.resolve() for name, path in self._paths.items()}
        read = [*sources.values(), *((folder / table.source).resolve() for table in catalog.public_tables)]
        self._index_paths = {table.name: index.path_of(sources[table.name], table) for table in catalog.tables}
        self._index_seen: set[str] = set()  # where there was one, it may be open: whether it still is, `find` looks
        indexes = self._index_paths.values()
        paths = [*map(str, [*read, *indexes]), *(f"{path}.wal" for path in indexes)]
        folders = [*self._indexes.folders(list(sources.values())), *files.folders_read(read)]
        self._database = Database(paths=paths, folders=folders, memory=memory, threads=threads, seconds=seconds)
        self._connection = self._database.connection
        self._totals = HeldTotals(self._database)

    @property
    def capabilities(self) -> Capabilities:
        """Everything that a plan can have."""
        return CAPABILITIES

    def digest(self, table: Table, accepted: Mapping[str, str] = NOTHING) -> str:
        """Return the SHA-256 of a table's file, remembered for as long as the file's stamp does not change.

        By then all of it was read, and the keys that links lead to were found to be unique among its rows.
        """
        return self._lineage_digests(table)[table.name]

    def rows(self, table: Table) -> int:
        """Return how many rows a table's file has."""
        return source_reading.rows_of(self._describe(table), table)

    def check(self, table: Table) -> TableCheck:
        """Read a table's file, and return what its data are like. The curator's act."""
        return checking.checked(table, self._catalog, self._describe(table), self._layers(reads=False), self._database)

    def unfit_columns(self, table: Table) -> Sequence[str]:
        """Return the columns of a table's file that hold values which are not what the declared type says."""
        return checking.unfit_columns(table, self._describe(table), self._database)

    def prepare(self, question: Question) -> None:
        """Load the code that a question takes."""
        prepare(question)

    def run(self, question: Question, digests: Mapping[str, str]) -> Exact:
        """Run a question over indexes, or over files in as many passes as keep their sorts in memory."""
        exact = self._exact(question, digests)
        if exact is None:  # raised out here, the fault drags no engine's message along
            raise EngineFault(FAILED)
        return exact

    def build_index(self, table: Table) -> bool:
        """Write the index of a table, unless there is one; return whether it was written. The curator's act.

        Raises:
            DataFault: If the data cannot be read.
            Fault: If the index cannot be written.
        """
        return self._index_work.ensure(table, self._lineage_digests(table))

    def drop_index(self, table: Table) -> bool:
        """Remove the index of a table; return whether there was one."""
        return index.drop(self._index_paths[table.name])

    def index_state(self, table: Table) -> IndexState:
        """Return whether a table has an index, and whether it is of these data, this catalog and this engine."""
        digests = {above.name: files.hashed(self._paths[above.name], above) for above in table.lineage}
        return self._index_work.state(table, digests)

    def close(self) -> None:
        """Close the database and remove its folder."""
        self._database.close()

    # ---- questions ---------------------------------------------------------------------------------------------------

    def _exact(self, question: Question, digests: Mapping[str, str]) -> Exact | None:
        """Return what was found, or None if anything failed: saying what could tell something about the data."""
        try:
            if not self._are_known(question.lineage, digests):
                return None
            batches = self._batches(question, digests)
            self._public_layers(question)  # a public file that has changed is a fault, also now
            # Again, as somebody may have changed a file while it was read.
            return together(batches, question) if self._are_known(question.lineage, digests) else None
        except Exception:
            return None

    def _batches(self, question: Question, digests: Mapping[str, str]) -> list[Batch]:
        """Ask indexes as far as there are any; if one turns out to be damaged, the files."""
        indexes = self._indexes_for(question, digests)
        if indexes:
            try:
                return self._answered(question, digests, indexes)
            except duckdb.InterruptException:  # out of time: it would not be faster without
                raise
            except Exception:
                self._doubt(indexes)
        return self._answered(question, digests, {})

    def _answered(self, question: Question, digests: Mapping[str, str], indexes: Relations) -> list[Batch]:
        """Ask a question of what is held of the searches for its bounds, else of the rows."""
        asks, known = partial(self._ask, indexes), partial(self._are_known, question.lineage, digests)
        searched = question.distributions or any(measure.clamp is not None for measure in question.numbers)
        held = self._totals.ask(question, digests, asks, known) if searched else None
        return list(asks(question, self._asker(question))) if held is None else held

    def _asker(self, question: Question) -> Asker:
        """Return how a question is asked of its rows: if it counts the units of many, by their masks."""
        counts_units = any(isinstance(measure, CountUnits) for measure in question.numbers)
        if counts_units and unit_masks.LEAST_ROWS <= self._describe(question.table).rows < unit_masks.MOST_ROWS:
            return partial(ask, last_layer=unit_masks.answer)
        return ask

    def _ask(self, indexes: Relations, question: Question, asker: Asker = ask) -> Iterator[Batch]:
        """Ask a question, in batches of units whose cells add up.

        Args:
            indexes: Of tables that are needed. If there is one of all that are, nothing is left to be bounded, and all
                units are one batch.
            asker: How each batch is asked.
        """
        names = ", ".join(table.name for table in question.tables)
        bounded = from_files(question.tables, indexes)
        if not bounded:
            with progress.work(f"Asking the index of {names}"):
                rows, parts = self._held(question, indexes), self._key_parts(question)
                yield asker(question, rows, self.fetch, self._database.columns, parts)
            return
        file = self._describe(question.table)
        coded = coded_rows(question, file, self._memory) if file.rows >= CODED_FROM and not indexes else None
        passes = self._passes(bounded) if coded is None else coded.passes
        parts = [Pass(index=part, of=passes) for part in range(passes)]
        batches = [[part] for part in parts] if is_additive(question) else [parts]
        direct = queries_of(question) == 1 and len(self._key_parts(question, passes)) == 1
        # Mostly nobody watches, and one batch is the whole work.
        with progress.work(f"Reading {names}") if progress.watcher.get() is not None else nullcontext():
            for number, batch in enumerate(batches):
                with progress.step(number, len(batches)) if len(batches) > 1 else nullcontext():
                    if direct and len(batch) == 1:
                        text = self._direct(question, indexes, batch[0]) if coded is None else coded.layer(batch[0])
                        yield asker(question, lambda _, text=text: text, self.fetch, self._database.columns)
                    else:
                        yield self._gathered(question, indexes, batch, len(batches), asker)

    def _layers(self, *, reads: bool) -> Layers:
        # Made when asked for: held, it would hold the engine.
        return Layers(source=lambda table: self._describe(table).source, reads=reads)

    def _direct(self, question: Question, indexes: Relations, part: Pass) -> str:
        """Return the layers of a batch that is not divided further."""
        tables = needed(question.tables, indexes)
        read = reads(question.selection.relation)
        stored = self._layers(reads=read).of(tables, indexes, part) if indexes else ()
        fresh = () if indexes else [layer(table, self._describe(table).source, read, part) for table in tables]
        return ", ".join([*stored, *fresh, *self._public_layers(question)])

    def _gathered(self, question: Question, indexes: Relations, parts: list[Pass], batches: int, asker: Asker) -> Batch:
        """Gather the kept rows of several passes and ask them several queries.

        Args:
            batches: How many batches like this there are.
        """
        tables = from_files(question.tables, indexes)
        layers = self._layers(reads=reads(question.selection.relation))
        with self._database.session() as query, gathered(tables, indexes, parts, layers, query) as relations:
            rows = self._held(question, relations, parts[0] if len(parts) == 1 else WHOLE)
            return asker(question, rows, query, query.columns, self._key_parts(question, batches))

    def _passes(self, tables: Iterable[Table]) -> int:
        """Return how many passes keep the bounding sorts of tables inside the memory limit."""
        return passes_for({table: self._describe(table).rows for table in tables}, self._memory)

    def _key_parts(self, question: Question, batches: int = 1) -> list[Pass]:
        """Return parts of the units of one batch: who holds which keys is counted in memory, part by part."""
        if question.table.unit_is_row or not question.private_keys:
            return [WHOLE]
        from lapwing.engines.duckdb.held_keys import parts_in_memory  # here: most questions have no private keys

        return parts_in_memory(question, lambda table: self._describe(table).rows, self._memory * batches)

    def _held(self, question: Question, relations: Relations, part: Pass = WHOLE) -> Callable[[Pass], str]:
        """Return the layers of a question over kept rows that are stored, as a function of a part of the units."""
        public, tables = self._public_layers(question), question.tables
        return lambda within: ", ".join([*held(tables, relations, part, within), *public])

    def fetch(self, query: str) -> Rows:
        """Return the rows of a query over protected rows: what `run` reads as rows, it reads here."""
        return self._database.query(query)

    # ---- indexes -----------------------------------------------------------------------------------------------------

    def _find_index(self, table: Table, digests: Mapping[str, str]) -> index.IndexedRows | None:
        there = self._index_paths[table.name]
        if table.name not in self._index_seen:
            if not os.path.lexists(there):
                return None
            self._index_seen.add(table.name)
        return self._indexes.find(self._database, there, self._identity(table, digests), self._paths[table.name])

    def _identity(self, table: Table, digests: Mapping[str, str]) -> str:
        return self._identities.of(table, digests, lambda above: self._facts(above)[1])

    @property
    def _index_work(self) -> Indexing:
        return Indexing(
            database=self._database,
            indexes=self._indexes,
            layers=self._layers(reads=True),
            paths=self._index_paths,
            stored=self._find_index,
            identity=self._identity,
            passes=self._passes,
            unchanged=self._are_known,
        )  # made when asked for: held, it would hold the engine

    def _indexes_for(self, question: Question, digests: Mapping[str, str]) -> dict[str, str]:
        """Return the indexes of tables that a question stands on, by name; those that are due are made first."""
        found, passed = self._found(question.lineage, digests), passed_on(question)
        due = [table for table in from_files(question.tables, found) if self._is_due(table, digests[table.name])]
        for table in due:
            with suppress(duckdb.Error, OSError):
                self._index_work.build(table, digests)
        found = self._found(question.lineage, digests, passed) if due or passed else found
        return {table.name: found[table.name] for table in needed(question.tables, found) if table.name in found}

    def _found(
        self, tables: Iterable[Table], digests: Mapping[str, str], passed_on: Collection[str] = ()
    ) -> dict[str, str]:
        """Return the indexes that there are of tables, as relations."""
        found = {table.name: self._find_index(table, digests) for table in tables}
        return {name: stored.relation(passed_on) for name, stored in found.items() if stored is not None}

    def _doubt(self, names: Iterable[str]) -> None:
        """Use the indexes of tables no more while they stay what they are."""
        for name in names:
            self._indexes.doubt(self._index_paths[name])

    def _is_due(self, table: Table, digest: str) -> bool:
        """Count a question without an index, and tell whether it is the one that makes one."""
        if not self._indexing:
            return False
        small = stamp_of(self._paths[table.name], table).size < INDEXED_FROM
        with self._lock:
            self._asked[(table.name, digest)] += 1
            return self._asked[(table.name, digest)] == (SMALL_INDEXED_AT if small else INDEXED_AT)

    # ---- files -------------------------------------------------------------------------------------------------------

    def _lineage_digests(self, table: Table) -> dict[str, str]:
        """Return the digests of a table and of all that its links lead to, by name; the root's is found first."""
        digests: dict[str, str] = {}
        for above in reversed(table.lineage):
            digests[above.name] = self._digest(above, digests)
        return digests

    def _digest(self, table: Table, above: Mapping[str, str]) -> str:
        path = self._paths[table.name]
        stamp = stamp_of(path, table)
        with self._lock:
            known = self._digests.get((table.name, stamp))
        own = files.hashed(path, table) if known is None else known
        digests = {**above, table.name: own}
        with self._lock:
            if known is not None and mark(table, digests) in self._unique:
                return own
        file = self._describe(table)
        if self._find_index(table, digests) is None:
            if known is None:
                self._read_through(table, file)
            self._require_unique(table)
        if stamp_of(path, table) != stamp or any(self._known(one) != above[one.name] for one in table.lineage[1:]):
            raise DataFault(f"The file {table.source} of table {table.name} changed while it was read; try again")
        with self._lock:
            self._digests[(table.name, stamp)] = own
            self._unique.add(mark(table, digests))
        return own

    def _require_unique(self, table: Table) -> None:
        for key in keys_of(table, self._catalog):
            what = f"Looking for repeated keys of {table.name}"
            path = self._paths[table.name]
            with readable(path, table), self._database.session() as query, progress.work(what):
                repeated = is_repeated(key, table, self._layers(reads=False), self._passes(table.lineage), query)
            if repeated:
                raise not_unique(key, table, self._catalog)

    def _public_layers(self, question: Question) -> list[str]:
        """Return the layers of the public tables that a question joins."""
        public, read = self._public, dict(public_tables_of(question.selection.relation))
        wanted = [table for table in self._catalog.public_tables if table.name in read]
        return [public_layer(public.described(table), public.source(table)) for table in wanted if public is not None]

    def _are_known(self, tables: Iterable[Table], digests: Mapping[str, str]) -> bool:
        """Tell whether tables have these digests, their files were read through and their keys found to be unique."""
        if any(self._known(table) != digests[table.name] for table in tables):
            return False
        with self._lock:
            return all(mark(table, digests) in self._unique for table in tables)

    def _known(self, table: Table) -> str | None:
        """Return the digest of a file that was read through, or None for one that was not.

        A new link or other rights change a file's stamp and not its content: then the content is hashed again.
        """
        path = self._paths[table.name]
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

    def _read_through(self, table: Table, file: File) -> None:
        why = partial(source_reading.why, file.path, table)
        with readable(file.path, table, why), progress.work(f"Reading {table.name} through"):
            with progress.step(0, 2):
                ((rows, _),) = self._database.query(source_reading.read_through(table, file.source))
            if rows != source_reading.rows_of(file, table):
                raise unreadable(table, why())

    def _describe(self, table: Table) -> File:
        return self._facts(table)[0]

    def _facts(self, table: Table) -> tuple[File, Location]:
        """Return a file and what it would be as a source anywhere else, remembered like its digest."""
        path = self._paths[table.name]
        with self._lock:
            facts = self._described.get((table.name, stamp_of(path, table)))
        if facts is None:
            path = path.resolve()  # one file is stamped and described, though a link be turned to another meanwhile
            stamp = stamp_of(path, table)
            facts = source_reading.described(path, table, self._database, self._catalog)
            with self._lock:
                self._described[(table.name, stamp)] = facts
        return facts


def passed_on(question: Question) -> frozenset[str]:
    """Return the columns of a table that are private keys as they are, and that nothing else looks at."""
    if not question.private_keys or not isinstance(question.selection.relation, ProtectedRows):
        return frozenset()
    plain = [key.expression for key in question.private_keys if isinstance(key.expression, ColumnReference)]
    others = [key.expression for key in question.keys if key.expression not in plain]
    looked_at = [question.where, *others, *map(argument_of, question.measures)]
    return frozenset(column.name for column in plain).difference(*map(columns_of, looked_at))

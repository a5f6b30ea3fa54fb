"""One table of a source's state as a file: its declared columns, in order, in a Parquet file, with their digest.

Rows are read once. They go in batches from the source through `conforming` into a sort, which spills into a private
folder, and from there in order into the file and the digest. A second and a third reading, of the same state, is needed
only where a column holds a value that its preferred type cannot, which shows when it comes.
"""

import errno
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, final

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from lapwing.catalog import spelling
from lapwing.catalog.condition import conditions_facts
from lapwing.catalog.public import PublicTable
from lapwing.catalog.table import Table
from lapwing.errors import DataFault, Fault
from lapwing.machine import progress
from lapwing.sources.conforming import candidates, conformed, delivered_type, plain
from lapwing.sources.content import ContentDigest
from lapwing.sources.restricting import fulfilled
from lapwing.sources.source import Names, SourceState, Where

MEMORY: Final = (40, 200, 1000)
"""Megabytes of the sort: the next, if those before are too few for so many rows, or for rows of this size."""
AnyTable = Table | PublicTable
BATCH: Final = 1 << 15
"""Rows that are written at a time, which are a row group of the file."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """A table's rows as they were written, and what they hash to."""

    rows: int
    digest: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """A table as it was delivered from a former state, which had a mark (`SourceState.mark`)."""

    file: Path
    mark: str


@final
@dataclass(slots=True)
class _Plan:
    """Of each column by name, how it is delivered, and which of its candidate types is tried."""

    columns: Mapping[str, Sequence[pa.DataType]]
    tried: dict[str, int] = field(default_factory=dict)

    def types(self, delivered: pa.Schema) -> dict[str, pa.DataType]:
        """Return the types that are tried, by name; that of the delivered column where no candidate is left."""
        return {
            name: [*kinds, delivered_type(delivered.field(name).type)][min(self.tried.get(name, 0), len(kinds))]
            for name, kinds in self.columns.items()
        }


def meaning_of(table: AnyTable) -> str:
    """Return a text that two tables share if what is delivered for them is of the same rows, and stored alike."""
    columns = {column.name: column for column in table.columns}
    stored = [[name, list(map(str, candidates(columns.get(name))))] for name in _needed(table)]
    return json.dumps([table.source, stored, *([conditions_facts(table.where)] if table.where else [])])


def deliver(
    state: SourceState, names: Names, table: AnyTable, file: Path, scratch: Path, before: Before | None = None
) -> Delivered:
    """Write the declared columns of a table's rows, and its privacy unit, as they are in a state.

    Args:
        names: Which table it is there.
        file: To write.
        scratch: A private folder for what does not fit into memory.
        before: A former state of the same columns, to whose rows those are added that came since, if the source knows
            them; else, and if the rows do not add up, all are read.

    Raises:
        DataFault: If the source does not deliver all of it.
        Fault: If it cannot be written.
    """
    wanted = _wanted(state, names, table)
    where = [replace(condition, column=wanted[condition.column]) for condition in table.where]
    counted = state.rows(names, where)
    if not wanted:
        return _nothing_but_rows(counted or 0, file)
    declared = {column.name: column for column in table.columns}
    plan = _Plan(columns={there: candidates(declared.get(here)) for here, there in wanted.items()})
    called = {there: here for here, there in wanted.items()}
    memory = list(MEMORY)
    delivered = None
    while delivered is None:
        added = None if before is None else state.added(names, list(wanted.values()), before.mark, where)
        if before is None or added is None:
            before, batches = None, state.batches(names, list(wanted.values()), where)
        else:
            batches = _together(before.file, added, called, plan)
        stream = DeliveredBatches(batches, plan, called, table, where)
        try:
            with _own_memory():
                delivered = _written(stream, file, scratch, table, memory[0])
        except duckdb.OutOfMemoryException:
            del memory[0]
            if not memory:
                raise _not_written(table, "the rows need more memory than is available") from None
        if before is not None and (delivered is None or stream.rows != counted):
            plan.tried.clear()
            before = delivered = None  # a value of another type, or a row less: from the beginning
    if counted is not None and stream.rows != counted:
        raise DataFault(
            f"The source of table {table.name} delivered {'fewer' if stream.rows < counted else 'more'} rows than it "
            "counts in the same state; nothing was taken. Try again, and check the network and the source"
        )
    return delivered


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _MixedBatches:
    """Batches whose types may differ, and the types in which columns are stored for which no candidate is left."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self.batches

    def close(self) -> None:
        """Read no further."""


def _together(file: Path, added: pa.RecordBatchReader, called: Mapping[str, str], plan: "_Plan") -> _MixedBatches:
    """Return the rows of a former state and those that came since; what was tried then is not tried again."""
    kept = pq.ParquetFile(file)
    kinds = {name: delivered_type(kept.schema_arrow.field(here).type) for name, here in called.items()}
    for name, kind in kinds.items():
        tried = [*plan.columns[name], kind].index(kind)
        plan.tried[name] = max(tried, plan.tried.get(name, 0))

    def batches() -> Iterator[pa.RecordBatch]:
        with kept:
            for batch in kept.iter_batches(BATCH, columns=list(called.values())):
                columns = [batch.column(here).cast(kinds[name]) for name, here in called.items()]
                yield pa.record_batch(columns, names=list(called))
        for batch in added:
            yield pa.record_batch([batch.column(name) for name in called], names=list(called))

    return _MixedBatches(schema=pa.schema(kinds), batches=batches())


def _nothing_but_rows(rows: int, file: Path) -> Delivered:
    """Write rows of which nothing is declared: a column of NULL says how many there are."""
    table = pa.table({"nothing": pa.nulls(rows, pa.bool_())})
    content = ContentDigest(table.schema)
    for batch in table.to_batches():
        content.update(batch)
    pq.write_table(table, file, store_schema=False)
    return Delivered(rows=rows, digest=content.digest())


def _wanted(state: SourceState, names: Names, table: AnyTable) -> dict[str, str]:
    """Return the columns that are needed, by the names of the catalog, each with its name in the source."""
    offered = {column.name: column for column in state.columns(names)}
    wanted = {}
    for name in _needed(table):
        like = [name] if name in offered else [other for other in offered if other.casefold() == name.casefold()]
        if len(like) != 1:
            listed = ", ".join(map(spelling.key, offered)) or "none"
            what = "several columns that differ only in case from" if like else "no column"
            raise DataFault(f"The source of table {table.name} has {what} {spelling.key(name)}; it has {listed}")
        if offered[like[0]].type is None:
            raise DataFault(
                f"The column {spelling.key(name)} of table {table.name} has the type {offered[like[0]].stored_as} in "
                "the source, and a catalog has no such type. Take it out of the catalog, or make a view that casts it"
            )
        wanted[name] = like[0]
    return wanted


def _needed(table: AnyTable) -> list[str]:
    """Return the columns that are stored, in the order of their names: those that are declared, and the unit."""
    stands_there = isinstance(table, Table) and table.link is None and not table.unit_is_row
    unit = [table.unit_column] if isinstance(table, Table) and stands_there else []
    return sorted({*(column.name for column in table.columns), *unit})


@final
class DeliveredBatches:
    """Batches of a source as they are to be stored, with what went wrong in them."""

    def __init__(
        self,
        reader: pa.RecordBatchReader | _MixedBatches,
        plan: _Plan,
        called: Mapping[str, str],
        table: AnyTable,
        where: Where,
    ) -> None:
        self._reader, self._plan, self._called, self._table = reader, plan, called, table
        self._where = where
        self._types = plan.types(reader.schema)
        self.rows = 0
        self.misfit = False
        self.fault: BaseException | None = None
        self.schema = pa.schema([(called[name], kind) for name, kind in self._types.items()])

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches; from a value on that does not fit, none, but all that are left are looked through."""
        try:
            for delivered in self._reader:
                self.rows += delivered.num_rows
                batch = self.restricted(delivered)
                columns = [self._column(batch, name) for name in self._called]
                if not self.misfit and batch.num_rows:
                    yield pa.record_batch(columns, schema=self.schema)
        except BaseException as fault:
            self.fault = fault
            raise
        finally:
            self._reader.close()

    def restricted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that fulfil the catalog's conditions; the source may have left out others already."""
        for condition in self._where:
            batch = batch.filter(fulfilled(self._plain(batch, condition.column), condition))
        return batch

    def _plain(self, batch: pa.RecordBatch, name: str) -> pa.Array:
        try:
            return plain(batch.column(name))
        except UnicodeError:
            raise DataFault(
                f"The column {spelling.key(self._called[name])} of table {self._table.name} holds a text that is not "
                "UTF-8; mend it in the source, or its encoding"
            ) from None

    def _column(self, batch: pa.RecordBatch, name: str) -> pa.Array | None:
        column = self._plain(batch, name)
        stored = column if column.type == self._types[name] else conformed(column, self._types[name])
        while stored is None:
            self.misfit = True
            if self._plan.tried.get(name, 0) >= len(self._plan.columns[name]):
                return None  # of a former state: rows that came since are of another type
            self._plan.tried[name] = self._plan.tried.get(name, 0) + 1
            self._types = self._plan.types(self._reader.schema)
            stored = column if column.type == self._types[name] else conformed(column, self._types[name])
        return stored


def _written(stream: DeliveredBatches, file: Path, scratch: Path, table: AnyTable, memory: int) -> Delivered | None:
    """Write what a stream has in order, or return None if a column must be stored otherwise.

    Raises:
        OutOfMemoryException: If the sort needs more.
        LapwingError: What the stream raised.
        Fault: If something outside fails.
    """
    content = ContentDigest(stream.schema)
    columns = ", ".join('"' + name.replace('"', '""') + '"' for name in stream.schema.names)
    try:
        with duckdb.connect(config=_settings(scratch, memory)) as sort, progress.work(f"Fetching {table.name}"):
            sort.register("delivered", pa.RecordBatchReader.from_batches(stream.schema, stream.batches()))
            ordered = sort.sql(f"SELECT {columns} FROM delivered ORDER BY ALL").to_arrow_reader(BATCH)
            with ordered, pq.ParquetWriter(file, stream.schema, store_schema=False) as writer:
                for batch in ordered:
                    rows = batch.cast(stream.schema)
                    content.update(rows)
                    writer.write_batch(rows)
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        if stream.fault is None and isinstance(error, duckdb.OutOfMemoryException):
            raise
        if stream.fault is None:
            full = isinstance(error, OSError) and error.errno == errno.ENOSPC
            why = "the disk is full" if full else "look at the rights of its folder, and at the room on its disk"
            raise _not_written(table, why) from None
    if stream.fault is not None:
        raise stream.fault
    return None if stream.misfit else Delivered(rows=content.rows, digest=content.digest())


def _settings(scratch: Path, megabytes: int) -> dict[str, str | bool | int | float | list[str]]:
    return {
        "memory_limit": f"{megabytes}MB",
        "temp_directory": str(scratch),
        "threads": 1,  # the source and Arrow take the others; two would need a third more memory
        "arrow_large_buffer_size": True,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "python_enable_replacements": False,
    }


def _not_written(table: AnyTable, why: str) -> Fault:
    return Fault(f"The data from the source of table {table.name} could not be written: {why}. Nothing was taken.")


@contextmanager
def _own_memory() -> Iterator[None]:
    """Let Arrow give back at once what it no longer needs: its own pool keeps twenty megabytes."""
    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(before)

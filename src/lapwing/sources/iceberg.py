"""Iceberg: a snapshot of a table, which never changes: that which the address pins, or the newest.

The catalog is PyIceberg's, by its name: where it is and how to get in stands in `~/.pyiceberg.yaml` or in variables
like PYICEBERG_CATALOG__LAKE__URI, as with any program that uses it.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, final

import pyarrow as pa
from pyiceberg import expressions
from pyiceberg.io.pyarrow import ArrowScan, schema_to_pyarrow

from lapwing.catalog.condition import Compared
from lapwing.catalog.file_columns import FileColumn, columns_of_arrow
from lapwing.catalog.source_address import SourceAddress
from lapwing.sources.iceberg_table import IcebergSnapshot, opened, unreadable
from lapwing.sources.source import Names, Where

if TYPE_CHECKING:
    from lapwing.sources.source import SourceState


@contextmanager
def state(address: SourceAddress, folder: Path) -> "Iterator[SourceState]":
    """Open a snapshot of a table."""
    yield IcebergState(opened(address))


@final
class IcebergState:
    """A snapshot of a table."""

    holds_several = False

    def __init__(self, snapshot: IcebergSnapshot) -> None:
        self.version = None if snapshot.number is None else str(snapshot.number)
        self._snapshot = snapshot

    def columns(self, table: Names) -> Sequence[FileColumn]:
        """Return the columns of the snapshot."""
        return columns_of_arrow(self._snapshot.schema.as_arrow())

    def mark(self, table: Names) -> str | None:
        """Return the numbers of the snapshot and of its schema."""
        return self._snapshot.mark

    def added(self, table: Names, columns: Sequence[str], mark: str, where: Where = ()) -> pa.RecordBatchReader | None:
        """Return the rows of the files that a former snapshot lacks, if this one has all of its files as they were.

        A former snapshot with other columns has other rows in the same files. Then all rows are read.
        """
        there = self._snapshot.table
        try:
            former = self._snapshot.is_former(mark)
            if former is None:
                return None
            scan = self._scan(columns, where)
            before = there.scan(row_filter=self._filter(where), snapshot_id=former)
            known, now = ({task.file.file_path: task for task in one.plan_files()} for one in (before, scan))
            if not known.keys() <= now.keys() or any(task.delete_files for task in (*known.values(), *now.values())):
                return None
            fresh = [task for path, task in now.items() if path not in known]
            schema = scan.projection()
            arrow = ArrowScan(there.metadata, there.io, schema, scan.row_filter)
            batches = arrow.to_record_batches(fresh)
        except Exception:
            return None
        return pa.RecordBatchReader.from_batches(schema_to_pyarrow(schema, include_field_ids=False), _guarded(batches))

    def rows(self, table: Names, where: Where = ()) -> int | None:
        """Return how many rows the snapshot has."""
        try:
            return int(self._scan(where=where).count())
        except Exception:
            raise unreadable() from None

    def batches(self, table: Names, columns: Sequence[str], where: Where = ()) -> pa.RecordBatchReader:
        """Return the columns of the snapshot's files; those of other partitions than are wanted are not opened."""
        try:
            reader = self._scan(columns, where).to_arrow_batch_reader()
        except Exception:
            raise unreadable() from None
        return pa.RecordBatchReader.from_batches(reader.schema, _guarded(reader))

    def _scan(self, columns: Sequence[str] = ("*",), where: Where = ()) -> Any:
        return self._snapshot.scan(row_filter=self._filter(where), selected_fields=tuple(columns))

    def _filter(self, where: Where) -> Any:
        """Return conditions as PyIceberg's, as far as columns are stored in the type that is declared."""
        made: Any = expressions  # whose constructors are typed as Pydantic's, which they replace
        found = made.AlwaysTrue()
        schema = self._snapshot.schema.as_arrow() if where else None
        for condition in where:
            name, field = condition.column, cast(pa.Schema, schema).field(condition.column)
            (offered,) = columns_of_arrow(pa.schema([field]))
            if offered.type != condition.type:
                continue
            if condition.values is not None:
                found = made.And(found, made.In(name, [_literal(value, field.type) for value in condition.values]))
            if condition.lower is not None:
                found = made.And(found, made.GreaterThanOrEqual(name, _literal(condition.lower, field.type)))
            if condition.upper is not None:
                found = made.And(found, made.LessThanOrEqual(name, _literal(condition.upper, field.type)))
        return found


def _literal(value: Compared, kind: pa.DataType) -> Any:
    """Return a value as PyIceberg's expressions take it: a time as text, with a zone if the column has one."""
    if not isinstance(value, datetime):
        return value
    return value.isoformat() if kind.tz is not None else value.replace(tzinfo=None).isoformat()


def _guarded(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    try:
        yield from batches
    except Exception:
        raise unreadable() from None

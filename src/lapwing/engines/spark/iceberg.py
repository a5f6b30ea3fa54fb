"""A snapshot of an Iceberg table: its files, its columns by their numbers, and the rows that its delete files hide."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final, Literal, final

import numpy as np
from pyiceberg import types as iceberg
from pyiceberg.io.pyarrow import _read_all_delete_files
from pyiceberg.schema import Schema
from pyiceberg.table import FileScanTask, Table
from pyiceberg.transforms import IdentityTransform

from lapwing.catalog.source_address import SourceAddress
from lapwing.engines.spark.beside import Value
from lapwing.engines.spark.delta import Field, path_of
from lapwing.sources.iceberg_table import opened, unreadable

_KINDS: Final[Mapping[type[iceberg.IcebergType], str]] = {
    iceberg.BooleanType: "BOOLEAN",
    iceberg.IntegerType: "INT",
    iceberg.LongType: "BIGINT",
    iceberg.FloatType: "FLOAT",
    iceberg.DoubleType: "DOUBLE",
    iceberg.DateType: "DATE",
    iceberg.TimestampType: "TIMESTAMP_NTZ",
    iceberg.TimestamptzType: "TIMESTAMP",
    iceberg.StringType: "STRING",
}


@final
@dataclass(frozen=True, slots=True)
class IcebergVersion:
    """A snapshot of a table with its columns. It never changes.

    Args:
        values: None: values of partitions are in the files.
        deleted: Finds the positions of deleted rows, by file.
        mapping: Numbers of columns by the names that files without numbers may have.
        unfilled: Numbers of columns that are not NULL in a file that lacks them.
    """

    mark: str
    fields: Mapping[str, Field]
    values: Mapping[Path, Sequence[Value]]
    deleted: Callable[[], Mapping[Path, Sequence[int]]]
    mapping: Mapping[str, int]
    unfilled: Callable[[Path], frozenset[int]]
    has_layouts: ClassVar[Literal[True]] = True


def snapshot_of(address: SourceAddress) -> tuple[list[str], str, IcebergVersion]:
    """Open a snapshot, and return the addresses of its files, its folder, and what its metadata have beside them.

    Raises:
        DataFault: If it has delete files that are not read. The client raises other errors.
    """
    snapshot = opened(address)
    table, schema = snapshot.table, snapshot.schema
    tasks: list[FileScanTask] = list(snapshot.scan().plan_files())
    never = frozenset(field.field_id for field in schema.fields if field.required or field.initial_default is not None)
    parts = {path_of(task.file.file_path): _parts(table, task) for task in tasks}
    mapped = table.name_mapping()

    def deleted() -> Mapping[Path, Sequence[int]]:
        return _deleted(table, tasks)

    version = IcebergVersion(
        mark=f"{table.metadata.table_uuid} {snapshot.mark}",
        fields=_fields(schema),
        values={},
        deleted=deleted,
        mapping={} if mapped is None else {n: f.field_id for f in mapped if f.field_id is not None for n in f.names},
        unfilled=lambda file: never | parts[file],
    )
    return [task.file.file_path for task in tasks], table.location(), version


def _fields(schema: Schema) -> dict[str, Field]:
    return {
        field.name: Field(stored=field.name, number=field.field_id, kind=_kind(field.field_type), parts=False)
        for field in schema.fields
    }


def _kind(kind: iceberg.IcebergType) -> str | None:
    if isinstance(kind, iceberg.DecimalType):
        return f"DECIMAL({kind.precision},{kind.scale})"
    return _KINDS.get(type(kind))


def _parts(table: Table, task: FileScanTask) -> frozenset[int]:
    """Return the numbers of columns by whose values a file is in its partition: it may lack them."""
    fields = table.specs()[task.file.spec_id].fields
    return frozenset(field.source_id for field in fields if isinstance(field.transform, IdentityTransform))


def _deleted(table: Table, tasks: Sequence[FileScanTask]) -> dict[Path, Sequence[int]]:
    """Return the positions that delete files and deletion vectors name, by file, in order and each once."""
    try:
        found = _read_all_delete_files(table.io, tasks)
    except Exception:  # of the client; the texts of these may hold an address
        raise unreadable() from None
    lists = {path: [np.asarray(one, dtype=np.int64) for one in found[path]] for path in found}
    live = {task.file.file_path for task in tasks}
    return {
        path_of(path): np.unique(np.concatenate(some)).tolist()
        for path, some in lists.items()
        if path in live and any(one.size for one in some)
    }

"""Delete files of Iceberg tables, which PyIceberg reads and does not write, added as other writers do."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent, ManifestWriterV2
from pyiceberg.table import Table

from tests.support.sources import rows

_NUMBERS = {"file_path": 2147483546, "pos": 2147483545}


class _Deletes(ManifestWriterV2):
    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


def lake(folder: Path) -> Catalog:
    """Return the catalog in a folder."""
    return load_catalog("lake", **rows.iceberg_catalog(folder))


def delete(table: Table, positions: Sequence[int], *, file: int = 0) -> None:
    """Delete rows of a file by their positions. Args: file: Which one, in the order of their paths."""
    task = sorted(table.scan().plan_files(), key=lambda one: one.file.file_path)[file]
    path = task.file.file_path
    columns = {"file_path": pa.array([path] * len(positions)), "pos": pa.array(positions, pa.int64())}
    _add(table, columns, _NUMBERS, DataFileContent.POSITION_DELETES, task.file)


def delete_values(table: Table, column: str, values: pa.Array) -> None:
    """Delete rows by the values of a column."""
    task = next(iter(table.scan().plan_files()))
    number = table.schema().find_field(column).field_id
    _add(table, {column: values}, {column: number}, DataFileContent.EQUALITY_DELETES, task.file)


def _add(
    table: Table, columns: dict[str, pa.Array], numbers: dict[str, int], content: DataFileContent, beside: DataFile
) -> None:
    fields = [
        pa.field(name, values.type, nullable=False, metadata={"PARQUET:field_id": str(numbers[name])})
        for name, values in columns.items()
    ]
    folder = Path(urlsplit(table.location()).path)
    there = folder / f"deletes-{len(list(folder.glob('deletes-*')))}.parquet"
    pq.write_table(pa.table(columns, schema=pa.schema(fields)), there)
    counts = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
    statistics: dict[str, Any] = {name: {} for name in counts}
    file = DataFile.from_args(
        content=content, file_path=f"file://{there}", file_format=FileFormat.PARQUET, partition=beside.partition,
        record_count=len(next(iter(columns.values()))), file_size_in_bytes=there.stat().st_size, **statistics,
        equality_ids=None if content is DataFileContent.POSITION_DELETES else list(numbers.values()),
    )  # fmt: skip
    file.spec_id = beside.spec_id
    with table.transaction() as changed, changed.update_snapshot().fast_append() as added:
        added.new_manifest_writer = lambda spec: _Deletes(  # type: ignore[method-assign]
            spec, table.schema(), added.new_manifest_output(), added.snapshot_id, added._compression
        )
        added.append_data_file(file)

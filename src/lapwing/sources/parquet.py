"""Parquet files, on this machine or in an object store: one listing of them, none of which may change meanwhile.

A place is a file, a folder, or a pattern with `*` and `**`. Folders named `column=value` are columns, as in files
beside the catalog. Where the files are is for Arrow's file systems to know: S3, Google Cloud Storage, Azure and HDFS
find credentials as their own tools do, in the environment or in files.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow import fs

from lapwing.catalog.condition import Condition
from lapwing.catalog.file_columns import FileColumn, columns_of_arrow
from lapwing.catalog.source_address import SourceAddress
from lapwing.errors import DataFault
from lapwing.sources.credentials import credentials_of
from lapwing.sources.parquet_paths import folder_of, is_passed_over, pattern_of
from lapwing.sources.restricting import expression, fulfilled
from lapwing.sources.source import Names, Where

if TYPE_CHECKING:
    from lapwing.sources.source import SourceState

BATCH: Final = 1 << 16
"""Rows that are handed over at a time."""


@contextmanager
def state(address: SourceAddress, folder: Path) -> "Iterator[SourceState]":
    """Open the files that are there now."""
    try:
        system, path = _system(address, folder)
        yield ParquetState(system, path)
    except (OSError, pa.ArrowException) as error:
        missing = isinstance(error, FileNotFoundError)
        raise DataFault("There are no such files" if missing else UNREADABLE) from None


UNREADABLE: Final = (
    "The Parquet files of the data cannot be read to their end, or not by this user. Check the place and the "
    "credentials, and whether the files are complete and have the same columns"
)


def _system(address: SourceAddress, folder: Path) -> tuple[fs.FileSystem, str]:
    place = address.place.removeprefix("parquet:")
    if "://" not in place:
        return fs.LocalFileSystem(), str((folder / place).absolute())
    options = dict(address.options) | credentials_of(address)
    if place.startswith("s3://") and options:
        return fs.S3FileSystem(**options), place.removeprefix("s3://")
    found: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(place)
    return found


@final
class ParquetState:
    """Files as they were listed."""

    holds_several = False

    def __init__(self, system: fs.FileSystem, path: str) -> None:
        self._system, self._path, self._pattern = system, folder_of(path), pattern_of(path)
        self._listed = self._listing()
        self.version = hashlib.sha256(json.dumps(self._listed).encode()).hexdigest()[:12]
        self._data = self._dataset()

    def columns(self, table: Names) -> Sequence[FileColumn]:
        """Return the columns of the files, and of the folders that they lie in."""
        return columns_of_arrow(self._data.schema)

    def mark(self, table: Names) -> str | None:
        """Return None: what came since a state is not known."""
        return None

    def added(self, table: Names, columns: Sequence[str], mark: str, where: Where = ()) -> pa.RecordBatchReader | None:
        """Return None: what came since a state is not known."""
        return None

    def rows(self, table: Names, where: Where = ()) -> int | None:
        """Return how many rows the files say that they have."""
        try:
            data, among = self._wanted(where)
            return int(data.count_rows(filter=among))
        except (OSError, pa.ArrowException):
            raise DataFault(UNREADABLE) from None

    def batches(self, table: Names, columns: Sequence[str], where: Where = ()) -> pa.RecordBatchReader:
        """Return the columns of the files in the folders that are wanted; all must be as they were at the end, too."""
        data, among = self._wanted(where)
        scanner = data.scanner(
            columns=list(columns), filter=among, batch_size=BATCH, batch_readahead=2, fragment_readahead=1
        )

        def delivered() -> Iterator[pa.RecordBatch]:
            try:
                yield from scanner.to_batches()
                unchanged = self._listing() == self._listed
            except (OSError, pa.ArrowException):
                raise DataFault(UNREADABLE) from None
            if not unchanged:
                raise DataFault(
                    "The Parquet files of the data changed while they were read; nothing was taken. Try again"
                )

        return pa.RecordBatchReader.from_batches(scanner.projected_schema, delivered())

    def _wanted(self, where: Where) -> tuple[ds.Dataset, Any]:
        """Return the files whose folders fulfil conditions, and a filter of the others on their rows."""
        own = [condition for condition in where if condition.column not in self._folders]
        named = [condition for condition in where if condition.column in self._folders]
        fragments = [
            fragment
            for fragment in self._data.get_fragments()
            if all(_fulfils(fragment.partition_expression, condition) for condition in named)
        ]
        files = ds.FileSystemDataset(fragments, self._data.schema, self._data.format, self._data.filesystem)
        return files, expression(self._data.schema, own)

    def _listing(self) -> list[tuple[str, int, int]]:
        found = self._system.get_file_info(self._path)
        if found.type == fs.FileType.Directory:
            infos = self._system.get_file_info(fs.FileSelector(self._path, recursive=True))
        else:
            infos = [found]
        files = [
            info
            for info in infos
            if info.is_file
            and not is_passed_over(info.path[len(self._path) :])
            and (self._pattern is None or self._pattern.fullmatch(info.path))
        ]
        if not files:
            raise FileNotFoundError
        return sorted((info.path, info.size, info.mtime_ns or 0) for info in files)

    def _dataset(self) -> ds.Dataset:
        files = [path for path, _, _ in self._listed]
        first = ds.dataset(files[:1], filesystem=self._system, format="parquet")
        keys = self._folders = _keys(files[0][len(self._path) :])
        parts = ds.partitioning(pa.schema([(key, pa.string()) for key in keys]), flavor="hive") if keys else None
        schema = pa.schema([*first.schema, *(pa.field(key, pa.string()) for key in keys)])
        return ds.dataset(files, schema=schema, filesystem=self._system, format="parquet", partitioning=parts,
                          partition_base_dir=self._path)  # fmt: skip


def _fulfils(folders: ds.Expression, condition: Condition) -> bool:
    """Tell whether the value that folders give a column fulfils a condition."""
    value = ds.get_partition_keys(folders).get(condition.column)
    return bool(fulfilled(pa.array([value], pa.string()), condition)[0].as_py())


def _keys(path: str) -> list[str]:
    return [part.partition("=")[0] for part in path.split("/")[:-1] if "=" in part]

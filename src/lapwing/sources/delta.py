"""Delta Lake: a version of a table, which never changes: that which the address pins, or the newest."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from lapwing.catalog.file_columns import FileColumn, columns_of_arrow
from lapwing.catalog.source_address import SourceAddress
from lapwing.errors import DataFault
from lapwing.sources.credentials import credentials_of
from lapwing.sources.delta_features import HARMLESS, SCANNED, located, opened, require_names
from lapwing.sources.delta_scan import DeltaScan
from lapwing.sources.restricting import expression
from lapwing.sources.source import Names, Where

if TYPE_CHECKING:
    from lapwing.sources.source import SourceState

BATCH: Final = 1 << 16
VERSION: Final = "version"


@contextmanager
def state(address: SourceAddress, folder: Path) -> "Iterator[SourceState]":
    """Open a version of a table."""
    where = located(address.place.removeprefix("delta:"), folder)
    options = {name: value for name, value in address.options if name != VERSION} | credentials_of(address)
    try:
        table, features = opened(where, _pinned(address), options, HARMLESS | SCANNED)
        require_names(table, features, options)
    except (DeltaError, pa.ArrowException, OSError, ValueError):
        raise _fault() from None
    yield DeltaScan(table, _fault()) if features & SCANNED else DeltaState(table)


def _pinned(address: SourceAddress) -> int | None:
    pinned = address.option(VERSION)
    if pinned is not None and not pinned.isdecimal():
        raise DataFault("The version in the address of the Delta table is not a number; write one like ?version=12")
    return None if pinned is None else int(pinned)


@final
class DeltaState:
    """A version of a table."""

    holds_several = False

    def __init__(self, table: DeltaTable) -> None:
        self.version = str(table.version())
        self._table = table
        try:
            self._data = table.to_pyarrow_dataset()
        except (DeltaError, pa.ArrowException, OSError, ValueError, NotImplementedError):
            raise _fault() from None

    def columns(self, table: Names) -> Sequence[FileColumn]:
        """Return the columns of the version."""
        return columns_of_arrow(self._data.schema)

    def mark(self, table: Names) -> str | None:
        """Return the version."""
        return self.version

    def added(self, table: Names, columns: Sequence[str], mark: str, where: Where = ()) -> pa.RecordBatchReader | None:
        """Return the rows of the files that a former version lacks, if this one has all of its files."""
        try:
            before = DeltaTable(self._table.table_uri, version=int(mark), storage_options=self._table._storage_options)
            known = {fragment.path for fragment in before.to_pyarrow_dataset().get_fragments()}
            now = list(self._data.get_fragments())
        except (DeltaError, pa.ArrowException, OSError, ValueError, NotImplementedError):
            return None
        if not known <= {fragment.path for fragment in now}:
            return None
        fresh = [fragment for fragment in now if fragment.path not in known]
        files = ds.FileSystemDataset(fresh, self._data.schema, self._data.format, self._data.filesystem)
        return _batches(files, columns, where)

    def rows(self, table: Names, where: Where = ()) -> int | None:
        """Return how many rows its files have."""
        try:
            return int(self._data.count_rows(filter=expression(self._data.schema, where)))
        except (pa.ArrowException, OSError):
            raise _fault() from None

    def batches(self, table: Names, columns: Sequence[str], where: Where = ()) -> pa.RecordBatchReader:
        """Return the columns of its files; those of other partitions than are wanted are not opened."""
        return _batches(self._data, columns, where)


def _batches(data: ds.Dataset, columns: Sequence[str], where: Where) -> pa.RecordBatchReader:
    scanner = data.scanner(
        columns=list(columns),
        filter=expression(data.schema, where),
        batch_size=BATCH,
        batch_readahead=2,
        fragment_readahead=1,
    )

    def delivered() -> Iterator[pa.RecordBatch]:
        try:
            yield from scanner.to_batches()
        except (DeltaError, pa.ArrowException, OSError):
            raise _fault() from None

    return pa.RecordBatchReader.from_batches(scanner.projected_schema, delivered())


def _fault() -> DataFault:
    return DataFault(
        "The Delta table of the data is missing, has no such version, or cannot be read to its end. Check the place, "
        "the version (vacuum removes old ones) and the credentials"
    )

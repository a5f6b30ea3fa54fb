"""Delta Lake: a version of a table, which never changes: that which the address pins, or the newest."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from lapwing.catalog.file_columns import FileColumn, columns_of_arrow
from lapwing.catalog.source_address import SourceAddress
from lapwing.errors import DataFault
from lapwing.sources.credentials import credentials_of
from lapwing.sources.source import Names

if TYPE_CHECKING:
    from lapwing.sources.source import State

BATCH: Final = 1 << 16
VERSION: Final = "version"


@contextmanager
def state(address: SourceAddress, folder: Path) -> "Iterator[State]":
    """Open a version of a table."""
    place = address.place.removeprefix("delta:")
    where = place if "://" in place else str((folder / place).absolute())
    options = {name: value for name, value in address.options if name != VERSION} | credentials_of(address)
    try:
        table = DeltaTable(where, version=_pinned(address), storage_options=options or None)
    except (DeltaError, OSError, ValueError):
        raise _fault() from None
    yield DeltaState(table)


def _pinned(address: SourceAddress) -> int | None:
    pinned = address.option(VERSION)
    if pinned is not None and not pinned.isdecimal():
        raise DataFault("The version in the address of the Delta table is no number; write one like ?version=12")
    return None if pinned is None else int(pinned)


@final
class DeltaState:
    """A version of a table."""

    holds_several = False

    def __init__(self, table: DeltaTable) -> None:
        self.version = str(table.version())
        try:
            self._data = table.to_pyarrow_dataset()
        except (DeltaError, pa.ArrowException, OSError, ValueError, NotImplementedError):
            raise _fault() from None

    def columns(self, table: Names) -> Sequence[FileColumn]:
        """Return the columns of the version."""
        return columns_of_arrow(self._data.schema)

    def rows(self, table: Names) -> int | None:
        """Return how many rows its files have."""
        try:
            return int(self._data.count_rows())
        except (pa.ArrowException, OSError):
            raise _fault() from None

    def batches(self, table: Names, columns: Sequence[str]) -> pa.RecordBatchReader:
        """Return the columns of all of its files."""
        scanner = self._data.scanner(columns=list(columns), batch_size=BATCH, batch_readahead=2, fragment_readahead=1)

        def delivered() -> Iterator[pa.RecordBatch]:
            try:
                yield from scanner.to_batches()
            except (DeltaError, pa.ArrowException, OSError):
                raise _fault() from None

        return pa.RecordBatchReader.from_batches(scanner.projected_schema, delivered())


def _fault() -> DataFault:
    return DataFault(
        "The Delta table of the data is not there, has no such version, or cannot be read to its end; look after the "
        "place, the version (vacuum removes old ones), credentials, and features of the table that its reader lacks"
    )

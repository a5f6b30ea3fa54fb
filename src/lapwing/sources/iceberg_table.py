"""Open a snapshot of an Iceberg table: the newest with the table's own schema, or a pinned one with the schema it had.

A column is known by its number. Its name in a file may be another one than its name now. The newest snapshot has the
columns that the table has now, also if no row came since they changed. A pinned snapshot has the columns of its own
time, so that it never changes.
"""

from dataclasses import dataclass
from typing import Any, Final, final

from pyiceberg.catalog import load_catalog
from pyiceberg.manifest import DataFileContent, ManifestContent
from pyiceberg.schema import Schema
from pyiceberg.table import Table

from lapwing.catalog.source_address import SourceAddress
from lapwing.errors import DataFault
from lapwing.sources.credentials import credentials_of

SNAPSHOT: Final = "snapshot"


@final
@dataclass(frozen=True, slots=True)
class IcebergSnapshot:
    """A snapshot of a table.

    Args:
        number: None is the state of a table that never had a row.
    """

    table: Table
    number: int | None
    pinned: bool

    @property
    def schema(self) -> Schema:
        """The columns that the snapshot has."""
        return self.scan().projection()  # type: ignore[no-any-return]

    @property
    def mark(self) -> str | None:
        """A text that two states share only if they have the same rows and the same columns."""
        return None if self.number is None else f"{self.number}:{self.schema.schema_id}"

    def scan(self, **options: Any) -> Any:
        """Return a scan of the snapshot's rows."""
        return self.table.scan(snapshot_id=self.number if self.pinned else None, **options)

    def is_former(self, mark: str) -> int | None:
        """Return the number of the former snapshot that a mark names, if that snapshot has the columns of this one."""
        number, _, schema = mark.partition(":")
        former = self.table.snapshot_by_id(int(number))
        ours = self.schema.schema_id
        return int(number) if former is not None and schema == str(ours) and former.schema_id == ours else None


def opened(address: SourceAddress) -> IcebergSnapshot:
    """Open the snapshot that an address pins, or the newest.

    Raises:
        DataFault: If there is none, or if it has delete files that no reader here understands.
    """
    pinned = address.option(SNAPSHOT)
    if pinned is not None and not pinned.isdecimal():
        raise DataFault("The snapshot in the address of the Iceberg table is not a number; write one like ?snapshot=12")
    options: dict[str, Any] = {name: value for name, value in address.options if name != SNAPSHOT}
    try:
        catalog = load_catalog(address.place.removeprefix("iceberg:"), **options, **credentials_of(address))
        table = catalog.load_table(address.table)
        newest = table.current_snapshot()
        number = int(pinned) if pinned is not None else None if newest is None else newest.snapshot_id
        snapshot = None if number is None else table.snapshot_by_id(number)
        by_values = snapshot is not None and _has_equality_deletes(table, snapshot)
    except DataFault:
        raise
    except Exception:  # of the client; the texts of these may hold an address
        raise unreadable() from None
    if pinned is not None and snapshot is None:
        raise unreadable()
    if by_values:
        raise DataFault(
            "The Iceberg table of the data has equality deletes, which delete rows by their values. Lapwing does not "
            "read them. Run rewrite_data_files of Iceberg on the table, with the options rewrite-all and "
            "remove-dangling-deletes, and accept the new snapshot"
        )
    return IcebergSnapshot(table, number, pinned is not None)


def unreadable() -> DataFault:
    """Return the error for a table that cannot be read. The texts of the client are never shown."""
    return DataFault(
        "The Iceberg table of the data is missing, has no such snapshot, or cannot be read to its end. Check the "
        "catalog (~/.pyiceberg.yaml or PYICEBERG_CATALOG__…), the name, and whether the snapshot has expired"
    )


def _has_equality_deletes(table: Table, snapshot: Any) -> bool:
    manifests = (found for found in snapshot.manifests(table.io) if found.content == ManifestContent.DELETES)
    return any(
        entry.data_file.content == DataFileContent.EQUALITY_DELETES
        for manifest in manifests
        for entry in manifest.fetch_manifest_entry(table.io)
    )

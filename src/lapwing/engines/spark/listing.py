"""Which files a table has: files of a pattern, objects in a store, or files that a Delta or Iceberg table names.

Delta Lake and Iceberg are read as lists of Parquet files, by `deltalake` and `pyiceberg`: no JVM package is needed.
Values and deleted rows that stand beside the files are read too (`delta`, `iceberg`, `beside`). Folders of a pattern
with names like `zone=east` give their files a column `zone`. DuckDB reads them so too.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from lapwing.catalog.model import Table
from lapwing.catalog.patterns import files_of, folder_of, is_pattern
from lapwing.catalog.several_files import keys_of, partition_keys
from lapwing.catalog.source_address import SourceAddress, read_address
from lapwing.engines.spark.object_store import STORED, ObjectStore, StoredObject
from lapwing.errors import DataFault, LapwingError

if TYPE_CHECKING:
    from lapwing.engines.spark.delta import DeltaVersion
    from lapwing.engines.spark.iceberg import IcebergVersion

LAKES: Final = ("delta:", "iceberg:")
"""How the addresses of tables begin that are lists of files."""
_SNAPSHOT: Final = 'fetch it as a snapshot, with engine = "duckdb"'


@final
@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a table, in the order of their names, and the folder that they are named from.

    Args:
        lake: The version of a Delta or Iceberg table whose files they are.
        folders: The columns that the folders of a pattern name.
        store: Where the files are if they are objects.
        objects: The status of each file in the store.
    """

    files: tuple[Path, ...]
    folder: Path
    lake: "DeltaVersion | IcebergVersion | None" = None
    folders: tuple[str, ...] = ()
    store: ObjectStore | None = None
    objects: tuple[StoredObject, ...] = ()

    @property
    def mark(self) -> str:
        """The version of the lake, by which what it says beside files is known. Of objects, a digest of their ETags."""
        if self.objects:
            return sha256("\n".join(stored.version for stored in self.objects).encode()).hexdigest()
        return "" if self.lake is None else self.lake.mark


def listed(table: Table, folder: Path, driver: Callable[[], Any]) -> Listing:
    """Return the files of a table.

    Args:
        folder: Where relative paths start from.
        driver: Returns the Spark application, which lists object stores.

    Raises:
        DataFault: If a Delta or Iceberg table cannot be opened, is more than its files, or is not on a file system. If
            an object store has no such files, or does not list them.
    """
    if table.source.startswith(STORED):
        return in_store(ObjectStore(driver(), table))
    if not table.source.startswith(LAKES):
        source = folder / table.source
        if not is_pattern(source):
            return Listing(files_of(source), source.parent)
        return Listing(files_of(source), folder_of(source), folders=_folders(source))
    try:
        files, root, lake = _of_lake(read_address(table.source), folder)
    except ImportError:
        raise DataFault("Delta and Iceberg tables need their clients: `pip install 'lapwing-dp[lake]'`") from None
    except LapwingError:
        raise
    except Exception:  # whatever a client raises, whose texts may hold an address
        raise _unreadable(table) from None
    return Listing(_local(files, table), _local([root], table)[0], lake)


def in_store(store: ObjectStore) -> Listing:
    """Return the objects that a store has now."""
    objects = store.listed()
    files, folder = tuple(stored.path for stored in objects), store.folder(objects)
    try:
        folders = keys_of(folder, files)
    except ValueError:
        folders = ()
    return Listing(files, folder, folders=folders, store=store, objects=objects)


def _folders(source: Path) -> tuple[str, ...]:
    try:
        return partition_keys(source)
    except ValueError:  # folders that do not all name the same columns name none
        return ()


def _of_lake(address: SourceAddress, folder: Path) -> "tuple[list[str], str, DeltaVersion | IcebergVersion]":
    if address.door == "delta":
        from lapwing.engines.spark.delta import version_of

        return version_of(address, folder)
    from lapwing.engines.spark.iceberg import snapshot_of

    return snapshot_of(address)


def _local(places: Iterable[str], table: Table) -> tuple[Path, ...]:
    """Return places as paths of this machine, which they hold as they are: nothing is unquoted here."""
    from lapwing.engines.spark.delta import path_of

    paths = []
    for place in places:
        path = path_of(place)
        if "://" in place and not place.startswith("file:"):
            raise DataFault(
                f"The files of table {table.name} are not on a file system that this machine has; {_SNAPSHOT}"
            )
        paths.append(path)
    return tuple(sorted(paths))


def _unreadable(table: Table) -> DataFault:
    return DataFault(f"The table {table.name} cannot be opened in its lake; is it there, and may this program read it?")

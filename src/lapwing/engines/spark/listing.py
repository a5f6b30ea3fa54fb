"""Which files a table has: those of a pattern, or those that a Delta or Iceberg table names in one of its versions.

Delta Lake and Iceberg are read as lists of Parquet files, by `deltalake` and `pyiceberg`: no JVM package is needed.
That is all of the table only where nothing beside the files says which of their rows and columns there are. So a table
with deletion vectors or delete files is refused, and so is one whose columns were renamed or mapped. Columns that stand
in the names of folders are in no file, and are missing.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final
from urllib.parse import unquote, urlsplit

from lapwing.catalog.model import Table
from lapwing.catalog.patterns import files_of, folder_of, is_pattern
from lapwing.catalog.source_address import read_address
from lapwing.errors import DataFault

LAKES: Final = ("delta:", "iceberg:")
"""How the addresses of tables begin that are lists of files."""
_SNAPSHOT: Final = 'fetch it as a snapshot, with engine = "duckdb"'


@final
@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a table, in the order of their names, and the folder that they are named from."""

    files: tuple[Path, ...]
    folder: Path


def listed(table: Table, folder: Path) -> Listing:
    """Return the files of a table.

    Args:
        folder: Where relative paths start from.

    Raises:
        DataFault: If a Delta or Iceberg table cannot be opened, is more than its files, or is not on a file system.
    """
    if not table.source.startswith(LAKES):
        source = folder / table.source
        return Listing(files_of(source), folder_of(source) if is_pattern(source) else source.parent)
    try:
        files, root = (_of_delta if table.source.startswith("delta:") else _of_iceberg)(table, folder)
    except ImportError:
        raise DataFault("Delta and Iceberg tables need their clients: `pip install 'lapwing-dp[lake]'`") from None
    return Listing(_local(files, table), _local([root], table)[0])


def _of_delta(table: Table, folder: Path) -> tuple[list[str], str]:
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    address = read_address(table.source)
    place, version = address.place.removeprefix("delta:"), address.option("version")
    where = place if "://" in place else str((folder / place).absolute())
    try:
        opened = DeltaTable(where, version=None if version is None else int(version))
        files, reader = list(opened.file_uris()), opened.protocol().min_reader_version
    except (DeltaError, OSError, ValueError):
        raise _unreadable(table) from None
    if reader > 1:  # column mapping comes with 2, deletion vectors with 3
        raise DataFault(
            f"The Delta table {table.name} needs a reader of version {reader}, which may hide rows of its files or "
            f"map columns; {_SNAPSHOT}"
        )
    return files, where


def _of_iceberg(table: Table, folder: Path) -> tuple[list[str], str]:
    from pyiceberg.catalog import load_catalog

    address = read_address(table.source)
    options = {name: value for name, value in address.options if name != "snapshot"}
    pinned = address.option("snapshot")
    try:
        opened = load_catalog(address.place.removeprefix("iceberg:"), **options).load_table(address.table)
        tasks = list(opened.scan(snapshot_id=None if pinned is None else int(pinned)).plan_files())
        schemas, root = opened.schemas(), opened.location()
    except Exception:  # whatever its catalog's client raises, whose texts may hold an address
        raise _unreadable(table) from None
    if any(task.delete_files for task in tasks):
        raise DataFault(f"The Iceberg table {table.name} has delete files, which hide rows of its data; {_SNAPSHOT}")
    if len(schemas) > 1:
        raise DataFault(f"The columns of the Iceberg table {table.name} have changed, by name or type; {_SNAPSHOT}")
    return [task.file.file_path for task in tasks], root


def _local(places: Iterable[str], table: Table) -> tuple[Path, ...]:
    """Return places as paths of this machine."""
    paths = []
    for place in places:
        parts = urlsplit(place)
        if parts.scheme not in ("", "file"):
            raise DataFault(
                f"The files of table {table.name} are not on a file system that this machine has; {_SNAPSHOT}"
            )
        paths.append(Path(unquote(parts.path) if parts.scheme else place))
    return tuple(sorted(paths))


def _unreadable(table: Table) -> DataFault:
    return DataFault(f"The table {table.name} cannot be opened in its lake; is it there, and may this program read it?")

"""Which files a table has: those of a pattern, or those that a Delta or Iceberg table names in one of its versions.

Delta Lake and Iceberg are read as lists of Parquet files, by `deltalake` and `pyiceberg`: no JVM package is needed.
Values and deleted rows that stand beside the files of a Delta table are read too (`delta`, `beside`). An Iceberg table
with delete files is refused, and so is one whose columns were renamed. Folders of a pattern with names like `zone=east`
give their files a column `zone`. DuckDB reads them so too.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from lapwing.catalog.model import Table
from lapwing.catalog.patterns import files_of, folder_of, is_pattern
from lapwing.catalog.several_files import partition_keys
from lapwing.catalog.source_address import read_address
from lapwing.errors import DataFault, LapwingError

if TYPE_CHECKING:
    from lapwing.engines.spark.delta import DeltaVersion

LAKES: Final = ("delta:", "iceberg:")
"""How the addresses of tables begin that are lists of files."""
_SNAPSHOT: Final = 'fetch it as a snapshot, with engine = "duckdb"'


@final
@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a table, in the order of their names, and the folder that they are named from.

    Args:
        lake: The Delta table whose files they are.
        folders: The columns that the folders of a pattern name.
    """

    files: tuple[Path, ...]
    folder: Path
    lake: "DeltaVersion | None" = None
    folders: tuple[str, ...] = ()

    @property
    def mark(self) -> str:
        """The version of the lake, by which what it says beside files is known."""
        return "" if self.lake is None else self.lake.mark


def listed(table: Table, folder: Path) -> Listing:
    """Return the files of a table.

    Args:
        folder: Where relative paths start from.

    Raises:
        DataFault: If a Delta or Iceberg table cannot be opened, is more than its files, or is not on a file system.
    """
    if not table.source.startswith(LAKES):
        source = folder / table.source
        if not is_pattern(source):
            return Listing(files_of(source), source.parent)
        return Listing(files_of(source), folder_of(source), folders=_folders(source))
    try:
        from lapwing.engines.spark.delta import version_of

        lake = None
        if table.source.startswith("delta:"):
            files, root, lake = version_of(read_address(table.source), folder)
        else:
            files, root = _of_iceberg(table)
    except ImportError:
        raise DataFault("Delta and Iceberg tables need their clients: `pip install 'lapwing-dp[lake]'`") from None
    except LapwingError:
        raise
    except Exception:  # whatever a client raises, whose texts may hold an address
        raise _unreadable(table) from None
    return Listing(_local(files, table), _local([root], table)[0], lake)


def _folders(source: Path) -> tuple[str, ...]:
    try:
        return partition_keys(source)
    except ValueError:  # folders that do not all name the same columns name none
        return ()


def _of_iceberg(table: Table) -> tuple[list[str], str]:
    from pyiceberg.catalog import load_catalog

    address = read_address(table.source)
    options = {name: value for name, value in address.options if name != "snapshot"}
    pinned = address.option("snapshot")
    opened = load_catalog(address.place.removeprefix("iceberg:"), **options).load_table(address.table)
    tasks = list(opened.scan(snapshot_id=None if pinned is None else int(pinned)).plan_files())
    schemas, root = opened.schemas(), opened.location()
    if any(task.delete_files for task in tasks):
        raise DataFault(f"The Iceberg table {table.name} has delete files, which hide rows of its data; {_SNAPSHOT}")
    if len(schemas) > 1:
        raise DataFault(f"The columns of the Iceberg table {table.name} have changed, by name or type; {_SNAPSHOT}")
    return [task.file.file_path for task in tasks], root


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

"""Which files a table has: those of a pattern, or those that a Delta or Iceberg table names in one of its versions.

Delta Lake and Iceberg are read as lists of Parquet files, by `deltalake` and `pyiceberg`: no JVM package is needed.
That is all of the table only where nothing beside the files says which of their rows and columns there are. So a table
with deleted rows or delete files is refused, and so is one whose columns were renamed or mapped. Columns that stand in
the names of folders are in no file, and are missing.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final
from urllib.parse import unquote

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
    from deltalake.exceptions import DeltaError

    from lapwing.sources.delta_features import (
        CHECKPOINTS,
        DELETIONS,
        HARMLESS,
        VACUUM,
        located,
        opened,
        require_understood,
    )

    address = read_address(table.source)
    where, version = located(address.place.removeprefix("delta:"), folder), address.option("version")
    understood = HARMLESS | {CHECKPOINTS, DELETIONS, VACUUM}
    try:
        lake, features = opened(where, None if version is None else int(version), None, understood)
        files: list[str] = _column(lake.get_add_actions(), "path")
        if DELETIONS in features:  # the client does not tell deleted rows of a table that also needs the other
            require_understood(features, understood - {VACUUM})
        deletions = DELETIONS in features and any(_column(lake.deletion_vectors(), "filepath"))
    except (DeltaError, OSError, ValueError):
        raise _unreadable(table) from None
    if deletions:
        require_understood(features, understood - {DELETIONS})
    # The log has addresses, which are quoted once: the folder zone=east%27s is zone=east%2527s there.
    root = where if "://" not in where else unquote(where)
    return [unquote(file) if "://" in file else f"{root}/{unquote(file)}" for file in files], root


def _column(table: Any, name: str) -> list[Any]:
    import pyarrow as pa

    return pa.table(table).column(name).to_pylist()  # type: ignore[no-any-return]


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
    """Return places as paths of this machine, which they hold as they are: nothing is unquoted here."""
    paths = []
    for place in places:
        path = re.sub("^file:(//)?(?=/)", "", place)
        if "://" in path:
            raise DataFault(
                f"The files of table {table.name} are not on a file system that this machine has; {_SNAPSHOT}"
            )
        paths.append(Path(path))
    return tuple(sorted(paths))


def _unreadable(table: Table) -> DataFault:
    return DataFault(f"The table {table.name} cannot be opened in its lake; is it there, and may this program read it?")

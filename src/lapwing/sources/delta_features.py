"""Features of a Delta table: what a reader must understand to see the rows that the table has.

A table names them in its protocol. Only writers need the other features, which do not change how rows are read. Lapwing
refuses a feature of readers that is not listed here by its name. A reader without it may see deleted rows.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from deltalake.fs import DeltaStorageHandler

from lapwing.errors import DataFault

HARMLESS: Final = frozenset({"timestampNtz", "variantType", "variantType-preview"})
"""Features that name types of columns: no catalog declares a variant, and times without a zone are in every file."""
MAPPING: Final = "columnMapping"
DELETIONS: Final = "deletionVectors"
CHECKPOINTS: Final = "v2Checkpoint"
VACUUM: Final = "vacuumProtocolCheck"
SCANNED: Final = frozenset({MAPPING, DELETIONS, CHECKPOINTS})
"""Features that `deltalake` reads by its own scan, and not as a data set of Arrow."""
_DROPPED: Final = {
    MAPPING: "ALTER TABLE … DROP FEATURE columnMapping",
    DELETIONS: "REORG TABLE … APPLY (PURGE)",
    "typeWidening": "ALTER TABLE … DROP FEATURE typeWidening",
    "typeWidening-preview": "ALTER TABLE … DROP FEATURE 'typeWidening-preview'",
    VACUUM: "ALTER TABLE … DROP FEATURE vacuumProtocolCheck",
}
"""Commands of Delta Lake, after which the files have the rows of the table."""
_UNOPENED: Final = re.compile(r"%[0-9A-Fa-f]{2}|[\[\]]")


def located(place: str, folder: Path) -> str:
    """Return where a table is, as its client takes it. Args: folder: where relative paths start from.

    Raises:
        DataFault: For a folder that the client takes for another: it reads `a%20b` as `a b`.
    """
    if "://" in place:
        return place
    where = str((folder / place).absolute())
    if _UNOPENED.search(where):
        raise DataFault(
            "The client of Delta tables does not open folders with brackets, or % and two digits, in their path. "
            "Rename the folder"
        )
    return where


def opened(
    where: str, version: int | None, options: Mapping[str, str] | None, understood: frozenset[str]
) -> tuple[DeltaTable, frozenset[str]]:
    """Open a version of a table, and return it with the features that its readers must understand.

    Args:
        understood: Those that whoever calls this reads rightly.

    Raises:
        DataFault: If the table uses another; the text names it. The client may raise other errors.
    """
    try:
        table = DeltaTable(where, version=version, storage_options=dict(options or {}) or None)
    except DeltaError:  # the client has a list of its own, and says so in words alone
        require_understood(_logged(where, version, options), understood)
        raise
    protocol = table.protocol()
    named = _named(protocol.min_reader_version, protocol.reader_features)
    require_understood(named, understood)
    return table, named


def require_understood(features: frozenset[str], understood: frozenset[str]) -> None:
    """Refuse features that a reader lacks, by their names, with what to do instead."""
    lacking = sorted(features - understood)
    if not lacking:
        return
    commands = [f"`{_DROPPED[name]}`" for name in lacking if name in _DROPPED]
    remedy = f"Run {' and '.join(commands)} on the table" if len(commands) == len(lacking) else _EXPORT
    raise DataFault(
        f"The Delta table of the data uses {', '.join(lacking)}, which Lapwing does not read here. {remedy}, and "
        f"accept the new version"
    )


_EXPORT: Final = (
    "Write its rows as Parquet files with an engine that reads it, as Spark does by `SELECT * FROM …` and "
    "`write.parquet`, name these files as the source"
)


def require_names(table: DeltaTable, features: frozenset[str], options: Mapping[str, str] | None) -> None:
    """Refuse a table that finds columns by number, if a file has another name for a number.

    `deltalake` looks for the name, and would read NULL in every row of such a file.
    """
    if MAPPING not in features or table.metadata().configuration.get("delta.columnMapping.mode") != "id":
        return
    notes = [column["metadata"] for column in json.loads(table.schema().to_json())["fields"]]
    numbers = {note["delta.columnMapping.physicalName"]: note["delta.columnMapping.id"] for note in notes}
    system = fs.PyFileSystem(DeltaStorageHandler(table.table_uri, dict(options or {})))
    for path in pa.table(table.get_add_actions()).column("path").to_pylist():
        with system.open_input_file(unquote(path)) as file:
            fields = pq.read_schema(file)
        there = {field.name: int((field.metadata or {}).get(b"PARQUET:field_id", -1)) for field in fields}
        if has_other_names(numbers, there):
            raise DataFault(OTHER_NAMES)


def has_other_names(numbers: Mapping[str, int], there: Mapping[str, int | None]) -> bool:
    """Tell whether a file has a name with another number than the table, or a number under another name."""
    names: dict[int | None, str] = {number: name for name, number in numbers.items()}
    return any(numbers.get(name, found) != found or names.get(found, name) != name for name, found in there.items())


OTHER_NAMES: Final = (
    "The Delta table of the data finds columns by number (columnMapping by id), and a file has another name for a "
    f"number. Run `{_DROPPED[MAPPING]}` on the table, which writes its files anew, and accept the new version"
)


def _named(version: int, features: list[str] | None) -> frozenset[str]:
    """Return the features of readers that a protocol has. Until version 3 a version stands for them."""
    if version > 3:
        return frozenset({f"reader version {version}"})
    return frozenset(features or ()) if version == 3 else frozenset({MAPPING} if version == 2 else ())


def _logged(where: str, version: int | None, options: Mapping[str, str] | None) -> frozenset[str]:
    """Return the features that the log of a table names, which its client does not open; none if it has no log."""
    try:
        system = fs.PyFileSystem(DeltaStorageHandler(where, dict(options or {})))
        files = system.get_file_info(fs.FileSelector("_delta_log"))
        for path in sorted((file.path for file in files if file.is_file), reverse=True):
            number = path.rpartition("/")[2].partition(".")[0]
            if not number.isdecimal() or (version is not None and int(number) > version):
                continue
            for protocol in _protocols(system, path):
                return _named(protocol["minReaderVersion"], protocol.get("readerFeatures"))
    except (DeltaError, pa.ArrowException, OSError, ValueError, KeyError):
        pass
    return frozenset()


def _protocols(system: fs.FileSystem, path: str) -> list[dict[str, Any]]:
    with system.open_input_file(path) as file:
        if path.endswith(".parquet"):
            found = pq.read_table(file, columns=["protocol"]).column("protocol").to_pylist()
        else:
            found = [json.loads(line).get("protocol") for line in file.read().splitlines() if line.strip()]
    return [protocol for protocol in found if protocol]

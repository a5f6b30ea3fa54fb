"""A version of a Delta table: its files, and the values and deleted rows that its log has beside them."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, final
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable

from lapwing.catalog.source_address import SourceAddress
from lapwing.engines.spark.beside import Value
from lapwing.sources.delta_features import (
    CHECKPOINTS,
    DELETIONS,
    HARMLESS,
    MAPPING,
    VACUUM,
    located,
    opened,
    require_understood,
)

READ: Final = HARMLESS | {CHECKPOINTS, DELETIONS, MAPPING, VACUUM}
_KINDS: Final = {
    "long": "BIGINT", "integer": "INT", "short": "SMALLINT", "byte": "TINYINT", "string": "STRING", "date": "DATE",
    "boolean": "BOOLEAN", "timestamp": "TIMESTAMP", "timestamp_ntz": "TIMESTAMP_NTZ", "float": "FLOAT",
    "double": "DOUBLE",
}  # fmt: skip
_PARTS: Final = {"long": "BIGINT", "integer": "BIGINT", "short": "BIGINT", "byte": "BIGINT"} | {
    name: _KINDS[name] for name in ("string", "date", "boolean")
}


@final
@dataclass(frozen=True, slots=True)
class Field:
    """A column of a table.

    Args:
        stored: Its name in the files.
        number: Its number in the files, if the table finds columns by that.
        kind: Its type in Spark, None for one that no declared type is read from.
        parts: Whether it is one of partitions, which is in no file.
    """

    stored: str
    number: int | None
    kind: str | None
    parts: bool


@final
@dataclass(frozen=True, slots=True)
class DeltaVersion:
    """A version of a table. It never changes.

    Args:
        values: Of the columns of partitions, by file, in the order of the fields.
        deleted: Finds the positions of deleted rows, by file.
    """

    mark: str
    fields: Mapping[str, Field]
    values: Mapping[Path, Sequence[Value]]
    deleted: Callable[[], Mapping[Path, Sequence[int]]]
    has_layouts: ClassVar[Literal[False]] = False
    """All files call a column alike."""


def version_of(address: SourceAddress, folder: Path) -> tuple[list[str], str, DeltaVersion]:
    """Open a table, and return the addresses of its files, its folder, and what its log has beside them.

    Raises:
        DataFault: If it has a feature that is not read. The client raises other errors.
    """
    where, version = located(address.place.removeprefix("delta:"), folder), address.option("version")
    table, features = opened(where, None if version is None else int(version), None, READ)
    if DELETIONS in features:  # the client does not tell deleted rows of a table that also needs the other
        require_understood(features, READ - {VACUUM})
    root = where if "://" not in where else unquote(where)
    actions = pa.table(table.get_add_actions())
    # The log has addresses, which are quoted once: the folder zone=east%27s is zone=east%2527s there.
    files = [unquote(file) if "://" in file else f"{root}/{unquote(file)}" for file in _column(actions, "path")]
    fields = fields_of(table, MAPPING in features)
    names = [name for name, column in fields.items() if column.parts]
    entries = _column(actions, "partition") if names else [{}] * len(files)
    values = {
        path_of(file): [_value(entry[name]) for name in names] for file, entry in zip(files, entries, strict=True)
    }

    def deleted() -> Mapping[Path, Sequence[int]]:
        return _deleted(table) if DELETIONS in features else {}

    return files, root, DeltaVersion(f"{table.table_uri} {table.version()}", fields, values, deleted)


def path_of(place: str) -> Path:
    """Return a place as a path of this machine. It holds the path as it is: nothing is unquoted here."""
    return Path(re.sub("^file:(//)?(?=/)", "", place))


def fields_of(table: DeltaTable, mapped: bool) -> dict[str, Field]:
    """Return the columns of a version. Args: mapped: whether its readers must know column mapping."""
    described = table.metadata()
    mode = described.configuration.get("delta.columnMapping.mode", "none") if mapped else "none"
    fields = {}
    for column in json.loads(table.schema().to_json())["fields"]:
        name, kind, notes = column["name"], column["type"], column["metadata"]
        parts = name in described.partition_columns
        decimal = isinstance(kind, str) and kind.startswith("decimal(")
        known = _PARTS if parts else _KINDS
        fields[name] = Field(
            stored=name if mode == "none" else notes["delta.columnMapping.physicalName"],
            number=notes["delta.columnMapping.id"] if mode == "id" else None,
            kind=kind.upper() if decimal and not parts else known.get(kind) if isinstance(kind, str) else None,
            parts=parts,
        )
    return fields


def _value(value: Any) -> Value:
    """Return the value of a partition. An empty one is NULL, says Delta's protocol."""
    return None if value == "" else value


def _deleted(table: DeltaTable) -> dict[Path, Sequence[int]]:
    found = pa.table(table.deletion_vectors())
    masks = zip(found.column("filepath").to_pylist(), found.column("selection_vector"), strict=True)
    positions = {
        path_of(unquote(place)): np.flatnonzero(~np.asarray(mask.values, dtype=bool)).tolist() for place, mask in masks
    }
    return {path: found for path, found in positions.items() if found}


def _column(table: pa.Table, name: str) -> list[Any]:
    return table.column(name).to_pylist()  # type: ignore[no-any-return]

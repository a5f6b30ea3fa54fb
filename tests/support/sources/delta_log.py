"""Entries of a Delta log that `deltalake` does not write, as other writers do: deletion vectors, renamed columns.

The formats are those of Delta's protocol: a deletion vector is a portable 64-bit Roaring bitmap behind a magic number,
written into the log in Z85, or into a file between its size and its checksum.
"""

import json
import struct
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

_MAGIC: Final = 1681511377
_NO_RUNS: Final = 12346
_Z85: Final = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"

Action = dict[str, Any]


def actions(table: Path) -> list[Action]:
    """Return all actions of a log of JSON files, in order."""
    logs = sorted((table / "_delta_log").glob("*.json"))
    return [json.loads(line) for log in logs for line in log.read_text().splitlines()]


def commit(table: Path, *entries: Action) -> int:
    """Add a version to a log, and return its number."""
    version = len(list((table / "_delta_log").glob("*.json")))
    lines = [json.dumps(entry) for entry in ({"commitInfo": {"timestamp": version}}, *entries)]
    (table / "_delta_log" / f"{version:020}.json").write_text("\n".join(lines) + "\n")
    return version


def require(table: Path, *features: str, reader: int = 3) -> int:
    """Add a version in which the readers of a table need these features."""
    named = {"readerFeatures": list(features), "writerFeatures": list(features)} if reader >= 3 else {}
    return commit(table, {"protocol": {"minReaderVersion": reader, "minWriterVersion": 7, **named}})


def describe_anew(table: Path, change: Callable[[Action, list[Action]], None]) -> int:
    """Add a version with other metadata. Args: change: changes the metadata, and the fields of its schema, in place."""
    metadata = [action["metaData"] for action in actions(table) if "metaData" in action][-1]
    schema = json.loads(metadata["schemaString"])
    change(metadata, schema["fields"])
    return commit(table, {"metaData": {**metadata, "schemaString": json.dumps(schema)}})


def files(table: Path) -> list[Action]:
    """Return the entries of the files that a table has, in the order in which they came."""
    there = dict[str, Action]()
    for action in actions(table):
        if "remove" in action:
            there.pop(action["remove"]["path"], None)
        if "add" in action:
            there[action["add"]["path"]] = action["add"]
    return list(there.values())


def delete(table: Path, positions: Iterable[int], *, file: int = 0, beside: bool = False) -> int:
    """Add a version in which rows of a file are deleted by their positions.

    Args:
        file: Which one, in the order in which they came.
        beside: Whether the positions are in a file of their own and not in the log.
    """
    added, deleted = files(table)[file], sorted(set(positions))
    bitmap = _bitmap(deleted)
    vector: Action = {"storageType": "i", "pathOrInlineDv": _z85(bitmap)}
    if beside:
        there = table.absolute() / f"deletion_vector_{len(actions(table))}.bin"
        there.write_bytes(b"\1" + struct.pack(">I", len(bitmap)) + bitmap + struct.pack(">I", zlib.crc32(bitmap)))
        vector = {"storageType": "p", "pathOrInlineDv": there.as_uri(), "offset": 1}
    vector |= {"sizeInBytes": len(bitmap), "cardinality": len(deleted)}
    removed = {name: added[name] for name in ("path", "partitionValues", "size")}
    removed |= {"deletionTimestamp": 1, "dataChange": True, "extendedFileMetadata": True}
    if "deletionVector" in added:
        removed["deletionVector"] = added["deletionVector"]
    return commit(table, {"remove": removed}, {"add": {**added, "deletionVector": vector}})


def _bitmap(positions: list[int]) -> bytes:
    parts = dict[int, dict[int, list[int]]]()
    for position in positions:
        parts.setdefault(position >> 32, {}).setdefault(position >> 16 & 0xFFFF, []).append(position & 0xFFFF)
    written = struct.pack("<IQ", _MAGIC, len(parts))
    for high, containers in parts.items():
        written += struct.pack("<III", high, _NO_RUNS, len(containers))
        written += b"".join(struct.pack("<HH", key, len(values) - 1) for key, values in containers.items())
        start = 8 + 8 * len(containers)
        for values in containers.values():
            written += struct.pack("<I", start)
            start += 2 * len(values)
        written += b"".join(struct.pack(f"<{len(values)}H", *values) for values in containers.values())
    return written


def _z85(content: bytes) -> str:
    text = ""
    content += b"\0" * (-len(content) % 4)
    for start in range(0, len(content), 4):
        number = int.from_bytes(content[start : start + 4], "big")
        text += "".join(_Z85[number // 85**power % 85] for power in range(4, -1, -1))
    return text

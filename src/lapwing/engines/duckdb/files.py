"""Source files as they are described, what they hash to, and which folders hold them."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import final

from lapwing.catalog.model import PublicTable, Table
from lapwing.catalog.patterns import files_of, folder_of, is_pattern
from lapwing.engines.duckdb.cleaned import Location
from lapwing.engines.duckdb.stamps import readable


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A source file as its metadata describe it: no row is read for this."""

    path: Path
    source: Location
    rows: int


def folders_read(sources: Iterable[Path]) -> list[str]:
    """Return the folders that patterns are about, which the database must be allowed: files may come to be in them."""
    return sorted({f"{folder_of(source)}/" for source in sources if is_pattern(source)})


def hashed(path: Path, table: Table | PublicTable) -> str:
    """Return the SHA-256 of a file, or of the names and digests of several, in hexadecimal."""
    with readable(path, table):
        if not is_pattern(path):
            return _digest(path)
        listed = [[file.relative_to(folder_of(path)).as_posix(), _digest(file)] for file in files_of(path)]
        return hashlib.sha256(json.dumps(listed).encode()).hexdigest()


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()

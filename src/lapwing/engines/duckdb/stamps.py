"""Stamps that show whether source files changed, and the error for a file that cannot be read.

A source that is a pattern has several files (`patterns`), and changes when one of them does, comes or goes.
"""

import csv
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG
from typing import Final, final

import duckdb

from lapwing.catalog.model import PublicTable, Table
from lapwing.catalog.patterns import files_of
from lapwing.engines.duckdb.unreadable import unreadable
from lapwing.errors import DataFault

_SPECIAL: Final = frozenset("*?[")
"""Characters that the engine reads as a pattern."""
_UNREADABLE: Final = (OSError, UnicodeError, csv.Error, duckdb.Error, StopIteration)


@final
@dataclass(frozen=True, slots=True)
class Stamp:
    """What changes when one of the files of a source is written: it stands in for the digest while it stays the same.

    Args:
        size: In bytes, of all together.
        files: Their paths, and what the system says of each.
    """

    size: int
    files: tuple[tuple[str, int, int, int, int], ...]

    @classmethod
    def of(cls, files: Mapping[Path, os.stat_result]) -> "Stamp":
        """Return the stamp of files, of each of which the system says this."""
        stamps = [(str(f), at.st_size, at.st_mtime_ns, at.st_ctime_ns, at.st_ino) for f, at in files.items()]
        return cls(size=sum(at.st_size for at in files.values()), files=tuple(stamps))


def stamp_of(path: Path, table: Table | PublicTable) -> Stamp:
    """Return the stamp of a source's files."""
    if set(text := str(path)).isdisjoint(_SPECIAL):  # one file, mostly: `readable` says what is wrong with any other
        try:
            at = os.stat(text)
        except OSError:
            at = None
        if at is not None and S_ISREG(at.st_mode):
            return Stamp.of({path: at})
    with readable(path, table):
        return Stamp.of({file: file.stat() for file in files_of(path)})


@final
@dataclass(frozen=True, slots=True)
class readable:  # noqa: N801 - reads as a statement
    """Turn what a file system or a file format may raise into our fault, which names the source and nothing of it."""

    path: Path
    table: Table | PublicTable
    why: Callable[[], str | None] = lambda: None

    def __enter__(self) -> None:
        what, files = f"The file {self.table.source} of table {self.table.name}", files_of(self.path)
        if not files or not all(file.is_file() for file in files):
            raise DataFault(f"{what} is missing")
        if any(set(str(file)) & _SPECIAL for file in files):
            raise DataFault(f"{what} has *, ? or [ in its path, which the engine reads as a pattern; rename it")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, _UNREADABLE):
            raise unreadable(self.table, self.why()) from None


def mark(table: Table, digests: Mapping[str, str]) -> tuple[str, ...]:
    """Name a table and the data that its rows that exist follow from."""
    return (table.name, *(digests[above.name] for above in table.lineage))

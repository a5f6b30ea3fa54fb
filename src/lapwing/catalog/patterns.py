"""Patterns, which name several files with the same columns that are read as one.

A name with `*` or `?` is a pattern: `visits-*.csv`, or `flights/**/*.parquet` for all files below a folder, at any
depth. Names that begin with `.` or `_` are passed over: writers put notes of theirs there.
"""

from pathlib import Path
from typing import Final

_WILD: Final = frozenset("*?")


def is_pattern(source: Path) -> bool:
    """Tell whether a source names several files."""
    return not _WILD.isdisjoint(str(source))


def folder_of(source: Path) -> Path:
    """Return the folder of a file, or of a pattern the one that all its files are below."""
    return next(above for above in source.parents if not is_pattern(above))


def files_of(source: Path) -> tuple[Path, ...]:
    """Return the files of a source: itself, or those that a pattern matches, in the order of their names."""
    if not is_pattern(source):
        return (source,)
    folder = folder_of(source)
    found = (path for path in folder.glob(source.relative_to(folder).as_posix()) if path.is_file())
    return tuple(sorted(path for path in found if not is_passed_over(path.relative_to(folder))))


def is_passed_over(path: Path) -> bool:
    """Tell whether a file is a writer's note and no data, by its path within its folder."""
    return any(part.startswith((".", "_")) for part in path.parts)

"""Sources of several files: folders of them, and the columns that the names of folders hold, as Hive writes them.

A folder `month=1` gives all files in it a column `month`, whose value is the text after the sign. Every file of a
source must have the same columns, its own and those.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from lapwing.catalog.patterns import files_of, folder_of, is_passed_over, is_pattern
from lapwing.catalog.source_address import OF_STORES, is_in_store
from lapwing.catalog.source_names import ending
from lapwing.errors import DataFault

_PARTITION: Final = re.compile(r"([^=?]+)=([^=?]+)")


def named(source: Path) -> Path:
    """Return a source as a catalog names it: a folder as the pattern of the data files in it.

    Raises:
        DataFault: For a folder without data files, or with several kinds of them, and for files in an object store.
    """
    if is_in_store(str(source)):
        raise DataFault(f"The source is no file here: {OF_STORES}")
    if not source.is_dir():
        return source
    every = (path for path in source.glob("**/*") if path.is_file() and not is_passed_over(path.relative_to(source)))
    kinds = sorted({ending(path) for path in every} - {""})
    if len(kinds) != 1:
        what = f"files of several kinds, {', '.join(kinds)}" if kinds else "no data files"
        raise DataFault(f"The folder {source} has {what}; name the files that belong together, like '{source}/*.csv'.")
    return source / "**" / f"*{kinds[0]}"


def guessed_partitions(source: Path) -> dict[str, str]:
    """Guess the types of the columns that the names of folders hold from their values, for a curator's eyes."""
    values = dict[str, list[str]]()
    for path in files_of(source):
        for match in map(_PARTITION.fullmatch, path.relative_to(folder_of(source)).parts[:-1]):
            if match:
                values.setdefault(match[1], []).append(match[2])
    shapes = {"integer": "0|-?[1-9][0-9]{0,17}", "date": "[0-9]{4}-[0-9]{2}-[0-9]{2}"}
    return {
        key: next(
            (kind for kind, shape in shapes.items() if all(re.fullmatch(shape, text) for text in found)), "string"
        )
        for key, found in values.items()
    }


def partition_keys(source: Path) -> tuple[str, ...]:
    """Return the columns that the names of folders below a pattern's own hold, outermost first.

    Raises:
        ValueError: Which names no file, if not all files have the same, or one that cannot be read as a column.
    """
    return keys_of(folder_of(source), files_of(source)) if is_pattern(source) else ()


def keys_of(folder: Path, files: Iterable[Path]) -> tuple[str, ...]:
    """Return the columns that the names of folders between a folder and files hold, outermost first.

    Raises:
        ValueError: As `partition_keys`.
    """
    found = set[tuple[str, ...]]()
    for path in files:
        matches = [_PARTITION.fullmatch(part) for part in path.relative_to(folder).parts[:-1] if "=" in part]
        found.add(tuple(match[1] for match in matches if match))
        if None in matches:
            raise ValueError("a folder's name has = but not the form column=value")
    if len(found) > 1:
        raise ValueError("some files lie in folders column=value of other columns than others")
    keys = next(iter(found), ())
    if len({key.casefold() for key in keys}) < len(keys):
        raise ValueError("two folders, one in the other, name the same column")
    return keys

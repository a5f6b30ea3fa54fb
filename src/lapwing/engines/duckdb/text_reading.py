"""Text files and sources of several files, before DuckDB reads them: their columns, their rows, and copies in UTF-8."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from shutil import copyfileobj
from typing import Final
from uuid import uuid4

from lapwing import progress
from lapwing.catalog.model import PublicTable, Table
from lapwing.catalog.patterns import files_of, folder_of
from lapwing.catalog.several_files import partition_keys
from lapwing.catalog.source_names import compression, ending, is_json
from lapwing.catalog.text_files import TextFormat, format_of, header, lines_of, opened, size
from lapwing.errors import DataFault

_CHARACTERS: Final = 1 << 20
"""That are copied at a time."""
_LINES: Final = 1 << 16
"""That are read between two reports of how far it is."""


def metadata(
    path: Path, table: Table | PublicTable, further: Sequence[str], keys: Sequence[str]
) -> tuple[int, list[str]]:
    """Return the most rows that text files may have, and the names of their columns: of JSON lines, those declared.

    Raises: DataFault if the first lines of the files differ.
    """
    files = files_of(path)
    if is_json(path):
        declared = dict.fromkeys([*(column.name for column in table.columns), *further])
        names = [name for name in declared if name not in keys]
    else:
        names, *others = [header(file, format_of(file, table.text)) for file in files]
        if any(other != names for other in others):
            raise differ(table)
        require_apart(path, names, keys, table)
    # A row takes at least two bytes a column, or two in all: an upper bound on their number without reading them.
    return sum(map(size, files)) // (2 if is_json(path) else 2 * len(names)), names


def differ(table: Table | PublicTable) -> DataFault:
    """Return the fault of files of one source that do not have the same columns."""
    return DataFault(
        f"The files of {table.source} of table {table.name} do not all have the same columns, in the same order and of "
        "the same types; `lapwing init` says which"
    )


def folder_keys(path: Path, table: Table | PublicTable) -> tuple[str, ...]:
    """Return the columns that the names of folders hold.

    Raises: DataFault if they cannot be told.
    """
    try:
        return partition_keys(path)
    except ValueError as error:
        raise DataFault(f"{table.source} of table {table.name} cannot be read as one table: {error}") from None


def require_apart(path: Path, names: Sequence[str], keys: Sequence[str], table: Table | PublicTable) -> None:
    """Refuse a column that files and the names of folders hold both: the engine would believe the folders.

    It looks at the whole path, also at what is above the folder that a pattern is about.
    """
    above = [part.partition("=")[0] for part in folder_of(path).parts if keys and "=" in part]
    for key in [*keys, *above]:
        if key.casefold() in {name.casefold() for name in [*names, *(keys if key in above else ())]}:
            raise DataFault(
                f"{table.source} of table {table.name} has the column {key} in the files and in the names of their "
                "folders; rename one"
            )


def copies(path: Path, declared: TextFormat | None, folder: Path) -> tuple[Path, ...]:
    """Return the files of a source, or if they are text of another encoding, copies in UTF-8 in a folder of one's own.

    Raises: OSError or UnicodeError. DataFault if one is written meanwhile: the copy would be of neither version.
    """
    files = files_of(path)
    if declared is None or declared.encoding == "utf-8":
        return files
    into = folder / uuid4().hex
    return tuple(_copy(file, declared, into / file.relative_to(folder_of(path))) for file in files)


def _copy(file: Path, declared: TextFormat, copy: Path) -> Path:
    copy = copy.with_name(copy.name[: -len(ending(file))] + ".csv")
    copy.parent.mkdir(parents=True, exist_ok=True)
    before = file.stat()
    with opened(file, declared) as source, copy.open("w", encoding="utf-8", newline="") as target:
        copyfileobj(source, target, _CHARACTERS)
    after = file.stat()
    if (before.st_ino, before.st_mtime_ns, before.st_ctime_ns) != (after.st_ino, after.st_mtime_ns, after.st_ctime_ns):
        raise DataFault(f"The file {file.name} changed while it was read; try again")
    return copy


def rows_of(path: Path, table: Table | PublicTable) -> int:
    """Return how many rows the files of a source should have, by another reader than the engine's.

    The engine's own does not mind a quote that is never closed: it drops what follows, to the end of the file.
    """
    files = files_of(path)
    with progress.step(1, 2):
        return sum(_rows(file, format_of(file, table.text) if not is_json(file) else TextFormat()) for file in files)


def _rows(file: Path, written: TextFormat) -> int:
    with opened(file, written) as content:
        lines: Iterator[Sequence[str]] = content if is_json(file) else lines_of(content, written)
        alone = not is_json(file) and len(next(lines)) == 1  # then an empty line is a row that is NULL
        rows, whole = 0, file.stat().st_size
        while some := list(islice(lines, _LINES)):
            rows += sum(1 for line in some if alone or (line and not (isinstance(line, str) and line.isspace())))
            if compression(file) is None:
                progress.report(content.buffer.tell() / whole)
    return rows

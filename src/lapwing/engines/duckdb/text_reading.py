"""Text files and sources of several files, before DuckDB reads them: their columns, their rows, and copies in UTF-8."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final
from uuid import uuid4

from lapwing.catalog.model import PublicTable, Table
from lapwing.catalog.patterns import files_of, folder_of
from lapwing.catalog.several_files import partition_keys
from lapwing.catalog.source_names import compression, ending, is_json
from lapwing.catalog.text_files import (
    TextFormat,
    fault_in,
    format_of,
    has_mixed_line_ends,
    header,
    lines_of,
    named_all,
    opened,
    size,
    with_one_line_end,
)
from lapwing.errors import DataFault
from lapwing.machine import progress

_CHARACTERS: Final = 1 << 20
"""That are copied at a time."""
_LINES: Final = 1 << 16
"""That are read between two reports of how far it is."""


def metadata(
    path: Path, table: Table | PublicTable, further: Sequence[str], keys: Sequence[str]
) -> tuple[int, list[str]]:
    """Return the most rows that text files may have, and the names of their columns: of JSON lines, those declared.

    Raises:
        DataFault: If the first lines of the files differ.
    """
    files = files_of(path)
    if is_json(path):
        declared = dict.fromkeys([*(column.name for column in table.columns), *further])
        names = [name for name in declared if name not in keys]
    else:
        names, *others = [named_all(header(file, format_of(file, table.text))) for file in files]
        if any(other != names for other in others):
            raise differ(table)
        require_apart(path, names, keys, table)
    # A row takes at least two bytes a column, or two in all: an upper bound on their number without reading them.
    return sum(map(size, files)) // (2 if is_json(path) else 2 * len(names)), names


def differ(table: Table | PublicTable) -> DataFault:
    """Return the fault of files of one source that do not have the same columns."""
    return DataFault(
        f"The files of {table.source} of table {table.name} differ in columns, their order or their types; "
        "`lapwing init` says which"
    )


def folder_keys(path: Path, table: Table | PublicTable) -> tuple[str, ...]:
    """Return the columns that the names of folders hold.

    Raises:
        DataFault: If they cannot be told.
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
    """Return the files of a source; of text of another encoding, or with mixed line ends, copies in one's own folder.

    The engine reads UTF-8, and lines that all end alike. A copy holds the same fields of the same rows, so that what is
    read depends on each line alone, whether there was a copy or not.

    Raises:
        OSError: If the system refuses.
        UnicodeError: If it fails.
        DataFault: If one is written meanwhile: the copy would be of neither version.
    """
    files, into = files_of(path), folder / uuid4().hex
    written = [format_of(file, declared) for file in files]
    mixed = [has_mixed_line_ends(file, own) for file, own in zip(files, written, strict=True)]
    if not any(mixed) and all(own.encoding == "utf-8" for own in written):
        return files
    places = [into / file.relative_to(folder_of(path)) for file in files]
    return tuple(map(_copy, files, written, places, mixed))


def _copy(file: Path, declared: TextFormat, copy: Path, mixed: bool) -> Path:
    kind = ".tsv" if ending(file).startswith(".tsv") else ".csv"
    copy = copy.with_name(copy.name[: -len(ending(file))] + kind)
    copy.parent.mkdir(parents=True, exist_ok=True)
    before = file.stat()
    with opened(file, declared) as source, copy.open("w", encoding="utf-8", newline="") as target:
        chunks = iter(lambda: source.read(_CHARACTERS), "")
        target.writelines(with_one_line_end(chunks, declared.quote) if mixed else chunks)
    after = file.stat()
    if (before.st_ino, before.st_mtime_ns, before.st_ctime_ns) != (after.st_ino, after.st_mtime_ns, after.st_ctime_ns):
        raise DataFault(f"The file {file.name} changed while it was read; try again")
    return copy


def why(path: Path, table: Table | PublicTable) -> str | None:
    """Say what is wrong with the files of a source, if they are CSV: for a curator, by file and line."""
    for file in files_of(path) if not is_json(path) else ():
        with suppress(OSError):
            found = fault_in(file, format_of(file, table.text))
            if found is not None:
                return f"{file.name}: {found}"
    return None


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

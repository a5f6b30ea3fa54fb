"""The process that reads an uploaded file: started by `inspection`, for one file, with limits that it sets itself.

It says how many rows and columns there are, or why the file is refused: by a code, and where that helps a line number.
It says nothing of what a row holds.
"""

import csv
import json
import os
import resource
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TextIO, final

from lapwing.catalog import spelling
from lapwing.catalog.source_names import ending, is_text
from lapwing.catalog.text_files import TextFormat, first_line_says, lines_of, opened

LONGEST_LINE: Final = 1 << 18
"""Characters; the engine reads lines of 2 MB."""
LONGEST_ROW: Final = 1 << 20
"""Characters, over all lines in quotes."""
LONGEST_NAME: Final = 200
MOST_FOOTER: Final = 16 << 20
"""Bytes of a Parquet file's metadata."""
MOST_GROUPS: Final = 100_000
BATCH: Final = 1 << 14


@final
class FileRefused(Exception):
    """Why a file is refused: a value of `UploadCause`, and a sentence."""

    def __init__(self, cause: str, detail: str) -> None:
        self.cause, self.detail = cause, detail
        super().__init__(detail)


def main() -> None:
    """Read what standard input names, and write what was found to standard output."""
    said = json.loads(sys.stdin.buffer.read())
    _limit(said["seconds"], said["memory"])
    try:
        rows, columns = read(Path(said["path"]), said["columns"], said["inside"])
        found: dict[str, object] = {"rows": rows, "columns": columns}
    except FileRefused as refused:
        found = {"cause": refused.cause, "detail": refused.detail}
    except MemoryError:
        os._exit(1)  # whoever started it says what that means
    sys.stdout.write(json.dumps(found))


def read(path: Path, columns: int, inside: int) -> tuple[int, int]:
    """Return how many rows and columns a file has, of which it reads every byte.

    Args:
        columns: At most.
        inside: Bytes at most, once decompressed.

    Raises:
        FileRefused: If it is not what its name says, or exceeds a limit.
    """
    return _text(path, columns, inside) if is_text(path) else _parquet(path, columns, inside)


def _limit(seconds: int, memory: int) -> None:
    for kind, most in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, memory)):
        _, hard = resource.getrlimit(kind)
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (least, least))


def _require_names(names: list[str], most: int) -> None:
    if len(names) > most:
        raise FileRefused("too_many_columns", f"The file has {len(names):,} columns. At most {most:,} are allowed.")
    for place, name in enumerate(names, start=1):
        if len(name) > LONGEST_NAME:
            raise FileRefused("column_name", f"The name of column {place:,} has more than {LONGEST_NAME} characters.")
        if not spelling.storable(name) or not spelling.is_seen(name):
            raise FileRefused("column_name", f"The name of column {place:,} has a character that cannot be shown.")


# ---- CSV ---------------------------------------------------------------------------------------------------------


@final
class _Lines:
    """The lines of a text, none of them longer than allowed."""

    def __init__(self, text: TextIO, inside: int) -> None:
        self._text, self._left = text, inside
        self.number, self.row = 0, 0

    def __iter__(self) -> Iterator[str]:
        while line := self._text.readline(LONGEST_LINE + 1):
            self.number += 1
            self.row += len(line)
            self._left -= len(line)
            if len(line) > LONGEST_LINE or self.row > LONGEST_ROW:
                raise FileRefused("long_row", f"The row at line {self.number:,} is too long, or a quote is not closed.")
            if self._left < 0:
                raise FileRefused("expands_too_far", "The file holds more text than allowed, once decompressed.")
            if "\0" in line:
                raise FileRefused(
                    "nul", f"Line {self.number:,} has the character NUL (U+0000). The file is no plain text."
                )
            yield line


def _text(path: Path, columns: int, inside: int) -> tuple[int, int]:
    """Read a text in the encoding of its first line, and what is not in that one as Excel writes in Western Europe."""
    for encoding in (None, "windows-1252"):
        with suppress(UnicodeError):
            return _text_in(path, columns, inside, encoding)
    raise FileRefused("encoding", "The file is neither in UTF-8 nor in windows-1252. In Excel, save it as “CSV UTF-8”.")


def _text_in(path: Path, columns: int, inside: int, encoding: str | None) -> tuple[int, int]:
    kind = ending(path)
    lines = None
    try:
        written = first_line_says(path, encoding)
        with opened(path, written) as text:
            lines = _Lines(text, inside)
            return _rows(lines, written, columns)
    except csv.Error:
        near = lines.number if lines is not None else 1
        raise FileRefused(
            "damaged", f"Line {near:,} is not {kind[1:]}: a quote is not closed, text follows it, or a field is long."
        ) from None
    except OSError:
        raise FileRefused("damaged", f"The file cannot be decompressed as {kind[1:]}.") from None


def _rows(lines: _Lines, written: TextFormat, columns: int) -> tuple[int, int]:
    rows_read = lines_of(iter(lines), written)  # type: ignore[arg-type]
    names = next(rows_read, [])
    if not names or not any(names):
        raise FileRefused("empty", "The file has no first line with the names of its columns.")
    _require_names(names, columns)
    rows, width = 0, len(names)
    for row in rows_read:
        lines.row = 0
        if row and (len(row) < width or any(row[width:])):
            raise FileRefused(
                "uneven_rows",
                f"The row that ends at line {lines.number:,} does not have as many fields as the first line: "
                f"{len(row):,}, not {width:,}.",
            )
        rows += bool(row) or width == 1
    if not rows:
        raise FileRefused("no_rows", "The file has names of columns and no row.")
    return rows, width


# ---- Parquet -----------------------------------------------------------------------------------------------------


def _parquet(path: Path, columns: int, inside: int) -> tuple[int, int]:
    _require_footer(path)
    import pyarrow as pa  # here: it takes long to load, and no CSV file needs it
    from pyarrow import parquet

    pa.set_cpu_count(1)
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        with parquet.ParquetFile(path, thrift_string_size_limit=MOST_FOOTER, page_checksum_verification=True) as file:
            metadata = file.metadata
            if metadata.num_columns > columns:
                raise FileRefused(
                    "too_many_columns",
                    f"The file has {metadata.num_columns:,} columns. At most {columns:,} are allowed.",
                )
            _require_names(list(file.schema_arrow.names), columns)
            _require_groups(metadata, inside)
            return _batches(file, metadata.num_rows, inside), len(file.schema_arrow.names)
    except (pa.ArrowMemoryError, MemoryError):
        raise MemoryError from None
    except (pa.ArrowException, OSError, ValueError, OverflowError):
        raise FileRefused("damaged", "The file cannot be read as parquet: it is damaged or cut off.") from None


def _require_footer(path: Path) -> None:
    size = path.stat().st_size
    with path.open("rb") as file:
        first = file.read(4)
        file.seek(max(0, size - 8))
        last = file.read(8)
    if first != b"PAR1" or last[-4:] != b"PAR1" or size < 12:
        raise FileRefused("wrong_kind", "The file is not parquet: it does not begin and end like one.")
    footer = int.from_bytes(last[:4], "little")
    if footer > size - 12 or footer > MOST_FOOTER:
        raise FileRefused("metadata", f"The metadata of the file have {footer:,} bytes. That is too many.")


def _require_groups(metadata: Any, inside: int) -> None:
    groups = metadata.num_row_groups
    if metadata.num_rows < 1:
        raise FileRefused("no_rows", "The file has no row.")
    if groups > MOST_GROUPS or groups > metadata.num_rows:
        raise FileRefused("metadata", f"The file has {groups:,} row groups. That is too many.")
    sizes = [metadata.row_group(place).total_byte_size for place in range(groups)]
    if any(size < 0 for size in sizes):
        raise FileRefused("metadata", "The metadata of the file state a negative size.")
    if sum(sizes) > inside:
        raise FileRefused("expands_too_far", "The file holds more data than allowed, once decompressed.")


def _batches(file: Any, stated: int, inside: int) -> int:
    rows = size = 0
    for batch in file.iter_batches(batch_size=BATCH, use_threads=False):
        rows += batch.num_rows
        size += batch.nbytes
        if size > inside:
            raise FileRefused("expands_too_far", "The file holds more data than allowed, once decompressed.")
    if rows != stated:
        raise FileRefused("damaged", "The file has another number of rows than it states.")
    return rows


if __name__ == "__main__":
    main()

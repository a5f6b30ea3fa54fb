"""CSV and TSV files: which files are read as such, by which delimiter, and the names in their first line.

Nothing of it is guessed. The ending of the file's name says the delimiter, and whether the file is compressed; the
first line holds the names, and all else is RFC 4180 in UTF-8. A CSV file holds no types; whoever declares one says
them.
"""

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, TextIO, cast

TEXT: Final = {
    kind + squeezed: (between, compression)
    for kind, between in {".csv": ",", ".tsv": "\t"}.items()
    for squeezed, compression in {"": None, ".gz": "gzip", ".zst": "zstd"}.items()
}
"""The delimiter and the compression of text files, by the ending of their names."""
DATA: Final = (".parquet", *TEXT)
"""Of the names of all files that tables are read from."""
_CHUNK: Final = 1 << 20


def ending(path: Path) -> str:
    """Return the ending of a file's name that says how it is read, as in DATA; empty if it says nothing."""
    name = path.name.casefold()
    return max((known for known in DATA if name.endswith(known)), key=len, default="")


def stem(path: Path) -> str:
    """Return a file's name without what says how it is read."""
    return path.name[: -len(ending(path))] if ending(path) else path.stem


def is_text(path: Path) -> bool:
    """Tell whether a file is read as CSV or TSV, by its name."""
    return ending(path) in TEXT


def delimiter(path: Path) -> str:
    """Return what stands between the fields of a CSV or TSV file."""
    return TEXT[ending(path)][0]


def compression(path: Path) -> str | None:
    """Return how a CSV or TSV file is compressed, "gzip" or "zstd"; None if it is not."""
    return TEXT[ending(path)][1]


def size(path: Path) -> int:
    """Return how many bytes of text a CSV or TSV file has: a compressed one is read for it.

    Raises: OSError if it cannot be read.
    """
    if compression(path) is None:
        return path.stat().st_size
    with _content(path) as content:
        return sum(len(chunk) for chunk in iter(lambda: content.read(_CHUNK), b""))


@contextmanager
def opened(path: Path, errors: str = "strict") -> Iterator[TextIO]:
    """Open a CSV or TSV file for the module `csv`.

    Raises: OSError or UnicodeError, here or while it is read.
    """
    with _content(path) as content, io.TextIOWrapper(content, "utf-8-sig", errors, newline="") as text:
        yield text


@contextmanager
def _content(path: Path) -> Iterator[BinaryIO]:
    compressed = compression(path)
    if compressed is None:
        with path.open("rb") as file:
            yield file
        return
    import pyarrow as pa  # here: Arrow takes long to load, and few files are compressed

    with pa.input_stream(str(path), compression=compressed) as stream:
        yield cast(BinaryIO, stream)


def header(path: Path) -> list[str]:
    """Return the names of the columns of a CSV or TSV file, which its first line has. No row is looked at.

    Raises: OSError, UnicodeError or csv.Error if there is none, or it cannot be read.
    """
    # What the system reads ahead may be rows, which must not decide whether the header can be read: so it is checked
    # by itself that it is UTF-8.
    with opened(path, errors="surrogateescape") as file:
        names = next(csv.reader(file, delimiter=delimiter(path), strict=True), [])
    if not names:
        raise csv.Error("There is no first line.")
    for name in names:
        name.encode()
    return names

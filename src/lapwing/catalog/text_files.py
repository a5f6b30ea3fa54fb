"""CSV and TSV files: how they are written, and the names in their first line.

The ending of the file's name says the delimiter (`source_names`), unless the catalog says otherwise (`TextFormat`); the
first line holds the names, and all else is RFC 4180. A draft is helped by the first line alone, which is public. A CSV
file holds no types; whoever declares one says them.
"""

import codecs
import csv
import io
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, TextIO, cast, final

from lapwing.catalog.source_names import TEXT, compression, ending

if TYPE_CHECKING:
    from _csv import Reader

ENCODINGS: Final = {
    "utf-8": "utf-8-sig",
    "utf-16": "utf-16",
    "latin-1": "latin-1",
    "windows-1252": "cp1252",
    "iso-8859-15": "iso8859-15",
    "windows-1250": "cp1250",
    "windows-1251": "cp1251",
    "shift_jis": "cp932",
    "gb18030": "gb18030",
    "big5": "big5hkscs",
    "euc-kr": "cp949",
}
"""How characters are written, and what the standard library calls it."""
DELIMITERS: Final = (",", ";", "\t", "|")
"""That are looked for in a first line."""
_CHUNK: Final = 1 << 20
_LONGEST_LINE: Final = 1 << 20
_WIDE_ENDS: Final = (b"\r\0", b"\n\0")
"""In UTF-16, as it is written by computers of today; others are read as the engine reads them."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TextFormat:
    """How a CSV file is written.

    Args:
        delimiter: Between fields.
        quote: Around fields that hold one; doubled inside.
        encoding: One of ENCODINGS.
    """

    delimiter: str = ","
    quote: str = '"'
    encoding: str = "utf-8"

    @property
    def codec(self) -> str:
        """The encoding, as the standard library calls it."""
        return ENCODINGS[self.encoding]


def format_of(path: Path, declared: TextFormat | None = None) -> TextFormat:
    """Return how a CSV or TSV file is written: as its catalog declares, or as the ending of its name says."""
    return TextFormat(delimiter=TEXT[ending(path)][0]) if declared is None else declared


def size(path: Path) -> int:
    """Return how many bytes of text a CSV or TSV file has: a compressed one is read for it.

    Raises:
        OSError: If it cannot be read.
    """
    if compression(path) is None:
        return path.stat().st_size
    with _content(path) as content:
        return sum(len(chunk) for chunk in iter(lambda: content.read(_CHUNK), b""))


@contextmanager
def opened(path: Path, written: TextFormat, errors: str = "strict") -> Iterator[TextIO]:
    """Open a CSV or TSV file for the module `csv`.

    Raises:
        OSError: Here or while it is read.
        UnicodeError: Here or while it is read.
    """
    with _content(path) as content, io.TextIOWrapper(content, written.codec, errors, newline="") as text:
        yield text


def lines_of(text: TextIO, written: TextFormat) -> "Reader":
    """Return the fields of each line, read strictly."""
    return csv.reader(text, delimiter=written.delimiter, quotechar=written.quote, strict=True)


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


def header(path: Path, written: TextFormat) -> list[str]:
    """Return the names of the columns of a CSV or TSV file, which its first line has. No row is looked at.

    A name that is there already, but for case, gets a number: `name`, `name_2`, `name_3`.

    Raises:
        OSError: If there is none, or it cannot be read.
        csv.Error: Likewise.
        UnicodeError: Likewise.
    """
    # What the system reads ahead may be rows, which must not decide whether the header can be read: so it is checked
    # by itself that it is of the encoding.
    errors = "surrogateescape" if written.encoding == "utf-8" else "replace"
    with opened(path, written, errors=errors) as file:
        names = next(lines_of(file, written), [])
    if not names:
        raise csv.Error("There is no first line.")
    for name in names:
        name.encode()
        if errors == "replace" and "\ufffd" in name:
            raise UnicodeError("The first line has another encoding.")
    return _told_apart(names)


def fault_in(path: Path, written: TextFormat) -> str | None:
    """Say what is wrong with the first line that cannot be read, by its number and not by what it holds; None if none.

    A line may have more fields than the first one if these are empty: nothing of it is lost.

    Raises:
        OSError: If it cannot be read.
    """
    number = 1
    try:
        with opened(path, written) as text:
            lines = lines_of(text, written)
            names: list[str] = next(lines, [])
            number = lines.line_num
            for line in lines:
                number = lines.line_num
                if line and (len(line) < len(names) or any(line[len(names) :])):
                    what = f"line {number:,} has {len(line):,} fields, and the first line {len(names):,}"
                    unnamed = len(line) == len(names) + 1
                    return what + (": is a name missing before its first one, or is a field not in quotes?" * unnamed)
    except UnicodeError:
        return f"soon after line {number:,} a character is not in {written.encoding}"
    except csv.Error:
        return f"in or after line {number:,} a quote is not closed, or text follows a closing one"
    return None


def has_mixed_line_ends(path: Path, written: TextFormat) -> bool:
    """Tell whether the lines of a file end in more than one way; line ends in quotes are looked at like others.

    Raises:
        OSError: If it cannot be read.
        UnicodeError: If it cannot be read.
    """
    both = feeds = returns = 0
    before, (carriage, feed) = b"", (b"\r", b"\n") if written.encoding != "utf-16" else _WIDE_ENDS
    with _content(path) as content:
        for chunk in iter(lambda: content.read(_CHUNK), b""):
            returned = before.endswith(carriage)
            if returned or carriage in chunk:
                both += chunk.count(carriage + feed) + (returned and chunk.startswith(feed))
                returns += chunk.count(carriage)
            feeds += chunk.count(feed)
            before = chunk
    return (both, both) != (feeds, returns) if both else bool(feeds and returns)


def with_one_line_end(chunks: Iterable[str], quote: str) -> Iterator[str]:
    """Return a text whose lines outside of quotes all end in a line feed; what stands in quotes stays."""
    quoted, held = False, ""
    for chunk in chunks:
        text = held + chunk
        held = "\r" if text.endswith("\r") else ""  # a line feed may follow
        parts = text.removesuffix(held).split(quote)
        for place, part in enumerate(parts):
            quoted = quoted if place == 0 else not quoted
            parts[place] = part if quoted else part.replace("\r\n", "\n").replace("\r", "\n")
        yield quote.join(parts)
    yield held if quoted else held.replace("\r", "\n")


def named_all(names: Sequence[str]) -> list[str]:
    """Return the names of a first line, with one that no column has where there is none: nothing can ask for it."""
    taken = {name.casefold() for name in names}
    found = []
    for place, name in enumerate(names, start=1):
        called = name or f"unnamed column {place}"
        while not name and called in taken:
            called += "_"
        found.append(called)
    return found


def like_values(names: Sequence[str]) -> str:
    """Return those names of a first line that look like values, if it looks like a row: empty if it does not.

    Years may well be names, of columns beside one with a word for a name.
    """
    odd = [name for name in names if re.fullmatch(r"[-+]?\d+([.,]\d+)?|\d{4}-\d\d-\d\d.*|\d\d?[./]\d\d?[./]\d+", name)]
    is_row = names[:1] == odd[:1] or any(re.search(r"[-.,/]", name) for name in odd)
    return ", ".join(odd[:3]) if odd and is_row else ""


def encoding_named(name: str) -> str | None:
    """Return the encoding that a name means, by any that the standard library has for it; None if there is none."""
    if name in ENCODINGS:
        return name
    try:
        meant = codecs.lookup(name)
    except LookupError:
        return None
    alike = (ours for ours, theirs in ENCODINGS.items() if codecs.lookup(theirs).name == meant.name)
    return meant.name if meant.name in ENCODINGS else next(alike, None)


def _told_apart(names: Sequence[str]) -> list[str]:
    taken, told = {name.casefold() for name in names}, list[str]()
    for place, name in enumerate(names):
        if name and name.casefold() in {before.casefold() for before in names[:place]}:
            number = 2
            while f"{name}_{number}".casefold() in taken:
                number += 1
            name = f"{name}_{number}"
            taken.add(name.casefold())
        told.append(name)
    return told


# ---- found out for a draft -------------------------------------------------------------------------------------------


def first_line_says(path: Path, encoding: str | None = None) -> TextFormat:
    """Return how a file seems to be written, by its first line and the mark before it, which are public.

    Raises:
        OSError: If it cannot be read.
        UnicodeError: If it cannot be read.
    """
    usual = format_of(path)
    with _content(path) as content:
        mark = content.read(2)
    wide = mark in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    written = replace(usual, encoding=encoding or ("utf-16" if wide else "utf-8"))
    with opened(path, written, errors="replace") as file:
        line = re.sub(r'"[^"]*"', "", file.readline(_LONGEST_LINE))
    best = max((usual.delimiter, *DELIMITERS), key=line.count)
    return replace(written, delimiter=best)


def seems_encoded(path: Path, most: int | None = None) -> str:
    """Return the encoding that a file seems to have, for a curator's eyes: any row that is read decides.

    Args:
        most: How many Mi characters are read; None for all.

    Raises:
        OSError: If it cannot be read.
    """
    found = first_line_says(path).encoding
    try:
        with opened(path, TextFormat(encoding=found)) as file:
            deque(islice(iter(lambda: file.read(_CHUNK), ""), most), maxlen=0)
    except UnicodeError:
        return "windows-1252"
    return found

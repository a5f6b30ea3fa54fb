"""CSV and TSV files: which files are read as such, by which delimiter, and the names in their first line.

Nothing of it is guessed. The ending of the file's name says the delimiter, the first line holds the names, and all else
is RFC 4180 in UTF-8. A CSV file holds no types; whoever declares one says them.
"""

import csv
from pathlib import Path
from typing import Final

DELIMITERS: Final = {".csv": ",", ".tsv": "\t"}


def is_text(path: Path) -> bool:
    """Tell whether a file is read as CSV or TSV, by its name."""
    return path.suffix.casefold() in DELIMITERS


def delimiter(path: Path) -> str:
    """Return what stands between the fields of a CSV or TSV file."""
    return DELIMITERS[path.suffix.casefold()]


def header(path: Path) -> list[str]:
    """Return the names of the columns of a CSV or TSV file, which its first line has. No row is looked at.

    Raises: OSError, UnicodeError or csv.Error if there is none, or it cannot be read.
    """
    # What the system reads ahead may be rows, which must not decide whether the header can be read: so it is checked
    # by itself that it is UTF-8.
    with path.open(newline="", encoding="utf-8-sig", errors="surrogateescape") as file:
        names = next(csv.reader(file, delimiter=delimiter(path), strict=True), [])
    if not names:
        raise csv.Error("There is no first line.")
    for name in names:
        name.encode()
    return names

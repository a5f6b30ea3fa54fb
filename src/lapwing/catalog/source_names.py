"""What the ending of a source's name says: of which kind its files are, and whether they are compressed."""

import re
from pathlib import Path
from typing import Final

from lapwing.catalog.patterns import folder_of, is_pattern

TEXT: Final = {
    kind + squeezed: (between, compression)
    for kind, between in {".csv": ",", ".tsv": "\t"}.items()
    for squeezed, compression in {"": None, ".gz": "gzip", ".zst": "zstd"}.items()
}
"""The delimiter and the compression of text files, by the ending of their names."""
LINES: Final = {
    kind + squeezed: compression
    for kind in (".jsonl", ".ndjson")
    for squeezed, compression in {"": None, ".gz": "gzip", ".zst": "zstd"}.items()
}
"""The compression of files of JSON lines, by the ending of their names."""
DATA: Final = (".parquet", *TEXT, *LINES)
"""Of the names of all files that tables are read from."""


def ending(path: Path) -> str:
    """Return the ending of a file's name that says how it is read, as in DATA; empty if it says nothing."""
    name = path.name.casefold()
    return max((known for known in DATA if name.endswith(known)), key=len, default="")


def stem(path: Path) -> str:
    """Return a source's name without what says how it is read; of a pattern, what all its files share."""
    name = path.name[: -len(ending(path))] if ending(path) else path.stem
    if not is_pattern(path):
        return name
    shared = "" if is_pattern(path.parent) else re.split(r"[*?]", name)[0].rstrip("-_. ")
    return shared or folder_of(path).absolute().name


def catalog_beside(source: Path) -> Path:
    """Return where the catalog of a source is, if it was not written elsewhere: beside its data."""
    return folder_of(source) / f"{stem(source)}.lapwing.toml"


def is_text(path: Path) -> bool:
    """Tell whether a file is read as CSV or TSV, by its name."""
    return ending(path) in TEXT


def is_json(path: Path) -> bool:
    """Tell whether a file is read as JSON lines, by its name."""
    return ending(path) in LINES


def holds_no_types(path: Path) -> bool:
    """Tell whether a file is of a kind that does not say the types of its columns, by its name."""
    return is_text(path) or is_json(path)


def compression(path: Path) -> str | None:
    """Return how a text file is compressed, "gzip" or "zstd"; None if it is not."""
    return LINES[ending(path)] if is_json(path) else TEXT[ending(path)][1]

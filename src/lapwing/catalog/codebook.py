"""A codebook: what the columns of a data file mean, as whoever collected the data wrote it down; all of it is public.

As TOML or JSON it has one entry a column, with the keys that a catalog has (`columns.age = { type = "integer" }`), and
`values` may be pairs of a code and what it stands for. As CSV it has one line a column:

    column,type,lower,upper,values,missing
    age,integer,0,110,,-99|999
    sex,,,,1=male|2=female,9=refused
    visited,date,,,,
"""

import csv
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, final

from lapwing.catalog import spelling
from lapwing.catalog.codebook_texts import ColumnTexts
from lapwing.catalog.column_checks import TYPES
from lapwing.catalog.dictionary import OF_COLUMN
from lapwing.catalog.place import refuse, within
from lapwing.catalog.reading import OPTIONS
from lapwing.catalog.suggestions import closest
from lapwing.errors import CatalogError

KINDS: Final = (".csv", ".json", ".toml")
KEYS: Final = ("type", "lower", "upper", "step", "values", "other", "max_length", *OPTIONS, *OF_COLUMN)
ALIASES: Final = {
    "variable": "column", "name": "column", "field": "column", "min": "lower", "max": "upper", "codes": "values",
    "minimum": "lower", "maximum": "upper", "na": "missing", "missing_values": "missing",
    "label": "title", "units": "unit",
}  # fmt: skip
"""Other names of columns of a codebook in CSV."""
IGNORED: Final = ("question", "note", "notes", "comment")
"""Columns of a codebook in CSV that are for people."""
OTHER_TYPES: Final = {
    "int": "integer", "numeric": "float", "number": "float", "double": "float", "real": "float", "text": "string",
    "character": "string", "factor": "string", "categorical": "string", "bool": "boolean", "logical": "boolean",
    "datetime": "timestamp",
}  # fmt: skip
"""What types are called elsewhere."""
_HIGHEST: Final = 10_000_000
"""Bytes of a codebook."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Codebook:
    """What a codebook says, as `draft` takes it: of each column by name.

    Args:
        reading: The options of `catalog.reading`.
        texts: For people.
    """

    types: Mapping[str, str] = field(default_factory=dict)
    bounds: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    values: Mapping[str, Sequence[object]] = field(default_factory=dict)
    max_length: Mapping[str, int] = field(default_factory=dict)
    others: Mapping[str, str] = field(default_factory=dict)
    reading: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    texts: Mapping[str, ColumnTexts] = field(default_factory=dict)


def read_codebook(file: Path) -> Codebook:
    """Read a codebook.

    Raises:
        CatalogError: With file, column and key.
    """
    if file.suffix.casefold() not in KINDS:
        refuse(file.name, f"is not a codebook; give a file whose name ends in {', '.join(KINDS)}")
    with within(f"{file.name}: "):
        return _codebook(_entries(file))


def combined(
    book: Mapping[str, Mapping[str, object]], said: Mapping[str, Mapping[str, object]]
) -> dict[str, dict[str, object]]:
    """Return options of columns: those of a codebook, and before them those that were given."""
    return {name: {**book.get(name, {}), **said.get(name, {})} for name in dict.fromkeys([*book, *said])}


def _entries(file: Path) -> dict[str, dict[str, object]]:
    try:
        if file.stat().st_size > _HIGHEST:
            raise CatalogError(f"it is larger than {_HIGHEST:,} bytes, the maximum for a codebook")
        content = file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise CatalogError(f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise CatalogError("not UTF-8 text; save it as UTF-8") from None
    kind = file.suffix.casefold()
    if kind == ".csv":
        return _of_csv(content)
    try:
        load = json.loads if kind == ".json" else tomllib.loads
        said: object = load(content, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        raise CatalogError(f"not {kind[1:].upper()}: {str(error)[:200]}; correct that place") from None
    columns = said.get("columns", said) if isinstance(said, dict) else said
    if isinstance(columns, list) and all(isinstance(column, dict) for column in columns):
        columns = {
            str(column.get("column", column.get("name", ""))): {
                key: content for key, content in column.items() if key not in ("column", "name")
            }
            for column in columns
        }
    if not isinstance(columns, dict) or not all(isinstance(column, dict) for column in columns.values()):
        raise CatalogError('it has no columns; write like [columns] and age = { type = "integer", missing = [-99] }')
    for name, entry in columns.items():
        for key in [key for key in entry if key.casefold() in IGNORED]:
            del entry[key]
        for key, other in (("label", "title"), ("units", "unit")):
            if key in entry:
                entry.setdefault(other, entry.pop(key))
        _require_known(f"columns.{spelling.key(name)}", entry)
    return columns


def _of_csv(content: str) -> dict[str, dict[str, object]]:
    """Read one line a column; codes are between bars, and code and meaning on the two sides of `=`."""
    first = content.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    try:
        read = csv.reader(content.splitlines(keepends=True), delimiter=delimiter, strict=True)
        header, *lines = [line for line in read if any(line)]
    except (csv.Error, ValueError):
        raise CatalogError("its first line does not name columns, or a quote is not closed") from None
    names = [ALIASES.get(name.strip().casefold(), name.strip().casefold()) for name in header]
    _require_known("the first line", {name: "" for name in names if name not in ("column", *IGNORED)})
    if names.count("column") != 1:
        raise CatalogError("the first line names no column called column, with the names of the columns of the data")
    entries: dict[str, dict[str, object]] = {}
    for number, line in enumerate(lines, start=2):
        if len(line) > len(names):
            raise CatalogError(f"entry {number - 1} has {len(line)} fields, and the first line {len(names)}")
        row = {name: cell.strip() for name, cell in zip(names, line, strict=False) if cell.strip()}
        name = row.pop("column", "")
        if not name or name in entries:
            raise CatalogError(f"entry {number - 1} names {'no column' if not name else f'{name} again'}")
        entries[name] = {key: _cell(key, cell) for key, cell in row.items() if key not in IGNORED}
    return entries


def _require_known(place: str, entry: Mapping[str, object]) -> None:
    for key in entry:
        if key not in KEYS:
            close = closest(key, KEYS)
            meant = f" (did you mean {close[0]}?)" if close else ""
            refuse(place, f"{spelling.text(key)} is unknown{meant}; allowed: {', '.join(KEYS)}")


def _cell(key: str, cell: str) -> object:
    parts = [part.strip() for part in cell.split("|")]
    if key == "missing":
        return [part.partition("=")[0].strip() for part in parts]
    if key == "recode" or (key == "values" and all("=" in part for part in parts)):
        return {code.strip(): meaning.strip() for code, _, meaning in (part.partition("=") for part in parts)}
    return parts if key == "values" else cell


def _codebook(entries: Mapping[str, Mapping[str, object]]) -> Codebook:
    types: dict[str, str] = {}
    bounds: dict[str, tuple[Any, Any]] = {}
    values: dict[str, Sequence[object]] = {}
    lengths: dict[str, int] = {}
    others: dict[str, str] = {}
    reading: dict[str, Mapping[str, object]] = {}
    texts: dict[str, ColumnTexts] = {}
    for name, entry in entries.items():
        place = f"columns.{spelling.key(name)}"
        listed = entry.get("values")
        kind = _type(entry, place, listed)
        if kind is not None:
            types[name] = f"{kind}:{entry['step']}" if "step" in entry else kind
        if ("lower" in entry) != ("upper" in entry):
            refuse(place, "has one bound; give lower and upper, or neither")
        if "lower" in entry:
            bounds[name] = (entry["lower"], entry["upper"])
        options = {key: entry[key] for key in OPTIONS if key in entry}
        labels: Mapping[str, str] = {}
        if isinstance(listed, Mapping):
            codes, meanings = list(listed), [str(meaning) for meaning in listed.values()]
            if kind in (None, "string"):
                types[name] = "string"
                values[name] = list(dict.fromkeys(meanings))
                labels = dict(zip(codes, meanings, strict=True))
                options["recode"] = {**labels, **_mapping(options.get("recode"), place)}
            elif kind == "boolean":
                options["recode"] = {**listed, **_mapping(options.get("recode"), place)}
            elif kind in ("integer", "date"):
                values[name] = codes
                labels = dict(zip(map(str, codes), meanings, strict=True))
        elif isinstance(listed, list):
            values[name] = listed
        elif listed is not None:
            refuse(f"{place}.values", "is neither a list nor pairs of codes and meanings")
        if "max_length" in entry:
            lengths[name] = _whole(entry["max_length"], f"{place}.max_length")
        if "other" in entry:
            others[name] = str(entry["other"])
        if options:
            reading[name] = options
        words = {key: _words(entry[key]) for key in OF_COLUMN if _words(entry.get(key, ""))}
        if words or labels:
            texts[name] = ColumnTexts(texts=words, labels={code: _words(label) for code, label in labels.items()})
    return Codebook(
        types=types, bounds=bounds, values=values, max_length=lengths, others=others, reading=reading, texts=texts
    )


def _words(text: object) -> str:
    """Return a text on one line: codebooks break lines where a page was too narrow."""
    return " ".join(str(text).split())


def _type(entry: Mapping[str, object], place: str, listed: object) -> str | None:
    said = entry.get("type")
    if said is None:
        return None
    kind, colon, step = str(said).strip().partition(":")
    kind = OTHER_TYPES.get(kind.casefold(), kind.casefold())
    if kind not in TYPES:
        refuse(f"{place}.type", f"{spelling.text(str(said))} is unknown; write one of {', '.join(TYPES)}")
    return f"{kind}{colon}{step}"


def _mapping(value: object, place: str) -> Mapping[str, object]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        refuse(f"{place}.recode", "is not pairs of a stored value and its meaning")
    return value


def _whole(value: object, place: str) -> int:
    if not str(value).isdecimal():
        refuse(place, f"{value} is not a number of bytes")
    return int(str(value))

"""The columns of a data file: their names and types, as the file declares them or as the curator does.

Of a Parquet file only the schema in the footer is read, neither rows nor the footer's statistics. A CSV file declares
names and no types, and its rows may not decide them: whether a column is of integers or of floats decides steps, and
with them sensitivities and prices, and one person's 5.5 among integers would show in both. So the curator gives types
(`--types`, `types=`), and a column without one is text.

Types can be guessed from the first rows, for a curator's eyes: see `guessed_types`. Messages never contain what Arrow
says about a broken file, because that may quote a row.
"""

import csv
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Final, final

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from lapwing.catalog import spelling
from lapwing.catalog.column_checks import NUMERIC, TYPES
from lapwing.catalog.json_lines import guessed_columns
from lapwing.catalog.patterns import files_of
from lapwing.catalog.place import refuse, within
from lapwing.catalog.several_files import guessed_partitions, partition_keys
from lapwing.catalog.source_names import DATA, ending, holds_no_types, is_json, is_text
from lapwing.catalog.table import Column
from lapwing.catalog.text_files import (
    ENCODINGS,
    TextFormat,
    encoding_named,
    fault_in,
    first_line_says,
    format_of,
    header,
    lines_of,
    opened,
)
from lapwing.errors import CatalogError, DataFault


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FileColumn:
    """A column as a file or its curator declares it; `type` is None if the catalog has no such type.

    Args:
        stored_as: The file's own name for its type.
        untyped: Whether it is text because nobody said what it is.
    """

    name: str
    type: str | None
    step: Fraction | None
    stored_as: str
    untyped: bool = False


def read_columns(source: Path, types: Mapping[str, str], text: TextFormat | None = None) -> tuple[FileColumn, ...]:
    """Return the columns of a source: of its files, which must all have the same, and of the folders that they lie in.

    Args:
        types: Of columns of a CSV file, of JSON lines and of folders, as `type_of` reads them; the others are text.
        text: How it is written.

    Guarantee:
        A function of Parquet files' schemas, of the first lines of CSV files and of `types`, which alone name the
        columns of JSON lines; and of the folders' names before their `=`.

    Raises:
        DataFault: If a file is missing, unreadable, or of another kind.
        CatalogError: Starting with `types`, for types that cannot be meant.
    """
    files = _files_of(source)
    own = _own_columns(files[0], types, text)
    for other in files[1:] if not is_json(source) else ():
        if _own_columns(other, types, text) != own:
            raise DataFault(f"{other} has other columns or types than {files[0]}; all files of a source need the same.")
    keys, named = _folder_keys(source), {column.name for column in own}
    if not holds_no_types(source) and set(types) - set(keys):
        refuse("types", f"{source.name} declares its types; leave them out, or change them in the catalog")
    return (*own, *(_text_column(key, types.get(key)) for key in keys if key not in named))


def _files_of(source: Path) -> tuple[Path, ...]:
    if not ending(source):
        known = f"{', '.join(DATA[:-1])} or {DATA[-1]}"
        raise DataFault(f"{source.name} is not of a supported kind; give a file whose name ends in {known}.")
    files = files_of(source)
    if not files:
        raise DataFault(f"No file matches {source}; check the path.")
    return files


def _folder_keys(source: Path) -> tuple[str, ...]:
    try:
        return partition_keys(source)
    except ValueError as error:
        raise DataFault(f"{source} cannot be read as one table: {error}.") from None


def _own_columns(file: Path, types: Mapping[str, str], text: TextFormat | None) -> tuple[FileColumn, ...]:
    if is_json(file):
        if not file.is_file():
            raise DataFault(f"There is no file {file}; check the path.")
        if not types:
            refuse("types", f"missing; the rows of {file.name} must not decide its columns, so name each with its type")
        return tuple(_text_column(name, kind) for name, kind in types.items())
    with _readable(file):
        if not is_text(file):
            return tuple(_file_column(field) for field in pa.parquet.read_schema(file))
        names = header(file, format_of(file, text))
    return tuple(_text_column(name, types.get(name)) for name in names)


MARKS: Final = {".gz": b"\x1f\x8b", ".zst": b"\x28\xb5\x2f\xfd", ".parquet": b"PAR1"}
"""What files begin with, by the ends of their names."""


@contextmanager
def _readable(source: Path) -> Iterator[None]:
    """Turn what files may raise into our fault, which quotes none of their rows."""
    if not source.is_file():
        raise DataFault(f"There is no file {source}; check the path.")
    try:
        yield
    except (OSError, pa.ArrowException, ValueError, csv.Error) as error:  # of which UnicodeError is one
        kind, why = ending(source).removeprefix("."), _why(source, error)
        raise DataFault(f"{source.name} cannot be read as {kind}: {why}.") from None


def _why(source: Path, error: Exception) -> str:
    """Say what is wrong with a file that cannot be read: of its content no more than how it begins and ends."""
    if isinstance(error, PermissionError):
        return "you may not read it; ask its owner"
    if isinstance(error, UnicodeError):
        return "it is not in UTF-8; give its encoding, for example by `lapwing init --encoding windows-1252`"
    mark = MARKS.get(source.suffix.casefold())
    try:
        with source.open("rb") as content:
            first = content.read(8)
            content.seek(max(0, content.seek(0, 2) - 4))
            last = content.read()
    except OSError:
        return "the system cannot read it"
    if not first:
        return "it is empty"
    if mark is not None and not first.startswith(mark):
        return "its content does not match the ending of its name"
    if mark == b"PAR1" and last != mark:
        return "its end is missing"
    if isinstance(error, csv.Error):
        return "its first line is not CSV"
    if is_text(source):
        with suppress(OSError, UnicodeError):
            return fault_in(source, first_line_says(source)) or "it is damaged or cut off"
    return "not every line is an object" if is_json(source) else "it is damaged or cut off"


# ---- what Parquet declares -------------------------------------------------------------------------------------------


def columns_of_arrow(schema: pa.Schema) -> tuple[FileColumn, ...]:
    """Return the columns of a schema."""
    return tuple(map(_file_column, schema))


def _file_column(field: pa.Field) -> FileColumn:
    usable = _usable(field.name)
    kind = _type_of_arrow(field.type) if usable else None
    step = Fraction(10) ** -field.type.scale if kind == "decimal" else None
    return FileColumn(name=field.name, type=kind, step=step, stored_as=str(field.type) if usable else "unnamed")


def _usable(name: str) -> bool:
    return bool(name) and spelling.storable(name)


def _type_of_arrow(kind: pa.DataType) -> str | None:
    return next((name for is_of, name in _ARROW_TYPES if is_of(kind)), None)


def _is_text(kind: pa.DataType) -> bool:
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(value) or pa.types.is_large_string(value) or pa.types.is_string_view(value))


_ARROW_TYPES: Final[tuple[tuple[Callable[[pa.DataType], bool], str], ...]] = (
    (pa.types.is_integer, "integer"),
    (pa.types.is_decimal, "decimal"),
    (pa.types.is_floating, "float"),
    (pa.types.is_boolean, "boolean"),
    (_is_text, "string"),
    (pa.types.is_date, "date"),
    (pa.types.is_timestamp, "timestamp"),
)


# ---- what the curator says of CSV ------------------------------------------------------------------------------------


def type_of(text: str) -> tuple[str, Fraction | None]:
    """Read a type: one of the catalog's, and for a number its step too, as in `decimal:0.01`.

    Raises:
        CatalogError: Without a place.
    """
    kind, colon, step = text.partition(":")
    if kind not in TYPES:
        raise CatalogError(f"{spelling.text(text)} is unknown; write one of {', '.join(TYPES)}, or one like {_DECIMAL}")
    if not colon:
        return kind, None
    if kind not in NUMERIC:
        raise CatalogError(f"{spelling.text(text)} has a step, which is for numbers; write {kind}")
    try:
        return kind, spelling.exact(Decimal(step))
    except InvalidOperation:
        raise CatalogError(
            f"{spelling.text(text)} has a step that is not a number; write one like {_DECIMAL}"
        ) from None


_DECIMAL: Final = "decimal:0.01"


def spelled(column: Column) -> str:
    """Spell the type of a column as `type_of` reads it: a decimal with its step, if it has one."""
    decimal = column.type == "decimal" and column.step is not None
    return f"decimal:{spelling.value(column.step)}" if decimal else column.type


def _text_column(name: str, text: object) -> FileColumn:
    if not _usable(name):
        return FileColumn(name=name, type=None, step=None, stored_as="unnamed")
    if text is not None and not isinstance(text, str):
        refuse(f"types.{spelling.key(name)}", f"{text!r} is not a text; write one like 'integer' or {_DECIMAL!r}")
    with within(f"types.{spelling.key(name)}: "):
        kind, step = ("string", None) if text is None else type_of(text)
    return FileColumn(name=name, type=kind, step=step, stored_as="text", untyped=text is None)


# ---- how it is written -----------------------------------------------------------------------------------------------


def found_text(
    source: Path, *, delimiter: str | None = None, quote: str | None = None, encoding: str | None = None
) -> TextFormat | None:
    """Return how a CSV file is written: as given, and else as its first line says; None if its name says the same.

    Raises:
        DataFault: If the file is missing or unreadable.
        CatalogError: For an encoding that is not known.
    """
    encoding = encoding and (encoding_named(encoding) or encoding)
    given = {"delimiter": delimiter, "quote": quote, "encoding": encoding}
    said = {key: value for key, value in given.items() if value is not None}
    if not is_text(source):
        return TextFormat(**said) if said else None  # which a catalog refuses
    if encoding is not None and encoding not in ENCODINGS:
        refuse("encoding", f"{spelling.text(encoding)} is unknown; write one of {', '.join(ENCODINGS)}")
    (first, *_) = _files_of(source)
    with _readable(first):
        found = replace(first_line_says(first, encoding), **said)
    return None if found == format_of(source) else found


# ---- a draft for the curator's eyes ----------------------------------------------------------------------------------


def guessed_types(source: Path, text: TextFormat | None = None) -> dict[str, str]:
    """Guess the types of the columns of a source that declares none from its first rows, spelled as `type_of` does.

    Of JSON lines their names too.

    Guarantee:
        None. One person's row may decide what is guessed. So of a file of protected rows it is shown to the curator,
        who judges it by what the columns are for and says the types; nothing else may use it.

    Raises:
        DataFault: If the file is missing or unreadable.
    """
    (first, *_) = _files_of(source)
    keys = guessed_partitions(source) if _folder_keys(source) else {}
    with _readable(first):
        if is_json(first):
            return {name: kind for name, kind in guessed_columns(first).items() if _usable(name)} | keys
        if not is_text(first):
            return keys
        written = format_of(first, text)
        names = header(first, written)
        shape = pa.csv.ParseOptions(delimiter=written.delimiter, quote_char=written.quote, newlines_in_values=True)
        reading = pa.csv.ReadOptions(encoding=written.codec)
        with pa.csv.open_csv(first, parse_options=shape, read_options=reading) as reader:
            kinds = [_type_of_arrow(field.type) or "string" for field in reader.schema]
        padded = _with_leading_zeros(first, written)
        kinds = ["string" if place in padded else kind for place, kind in enumerate(kinds)]
    return {name: kind for name, kind in zip(names, kinds, strict=True) if _usable(name)} | keys


_LINES_LOOKED_AT: Final = 100_000


def _with_leading_zeros(file: Path, written: TextFormat) -> set[int]:
    """Return the columns, from 0, with numbers like 01234: these are codes, such as postal ones, and stay texts."""
    found = set[int]()
    with opened(file, written) as text:
        lines = lines_of(text, written)
        next(lines, None)
        for line in islice(lines, _LINES_LOOKED_AT):
            found |= {place for place, field in enumerate(line) if field[:1] == "0" and field[1:].isdecimal()}
    return found

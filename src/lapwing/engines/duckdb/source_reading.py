"""How DuckDB is told to read a source file, and what its metadata say of it: no row is read for this."""

from itertools import islice
from pathlib import Path
from shutil import copyfileobj
from typing import Final
from uuid import uuid4

import duckdb

from lapwing import progress
from lapwing.catalog.model import Catalog, PublicTable, Table
from lapwing.catalog.text_files import (
    TextFormat,
    compression,
    ending,
    format_of,
    header,
    is_text,
    lines_of,
    opened,
    size,
)
from lapwing.engines.duckdb.cleaned import Location, clean, unit_value
from lapwing.engines.duckdb.database import Database
from lapwing.engines.duckdb.files import File, readable
from lapwing.engines.duckdb.link_keys import linked_columns
from lapwing.engines.duckdb.literals import text
from lapwing.errors import DataFault

_CHARACTERS: Final = 1 << 20
"""That are copied at a time."""
_LINES: Final = 1 << 16
"""That are read between two reports of how far it is."""


def described(path: Path, table: Table, database: Database, catalog: Catalog) -> tuple[File, Location]:
    """Return a table's file, and what it would be as a source anywhere else.

    Raises: DataFault if it cannot be read, has not the columns that are declared, or identifiers of a type that does
        not tell them apart.
    """
    with readable(path, table):
        rows, names = metadata(path, database.connection, table.text)
        here = relation(in_utf8(path, table.text, database.scratch), names, table.text)
        unit = [] if table.unit_is_row or table.link is not None else [table.unit_column]
        source = columns(database.connection, here, names, table, *unit)
    linked = linked_columns(table, catalog)
    for name, what in [*((name, "privacy unit") for name in unit), *((name, "key") for name in linked)]:
        if source.types[name] in {"DOUBLE", "FLOAT", "BOOLEAN"}:
            raise DataFault(
                f"The {what} {name} of {table.name} is a {source.types[name].lower()} in {table.source}; it must be "
                "an integer or a text"
            )
    anywhere = relation(Path(f"source{ending(path)}"), names, table.text)
    return File(path=path, source=source, rows=rows), Location(relation=anywhere, types=source.types)


def metadata(path: Path, connection: duckdb.DuckDBPyConnection, declared: TextFormat | None) -> tuple[int, list[str]]:
    """Return the number of rows (used to plan passes, never shown) and the names of the columns."""
    if is_text(path):
        names = header(path, format_of(path, declared))
        # A row takes at least two bytes a column: an upper bound on their number without reading them.
        return size(path) // (2 * len(names)), names
    # By the engine that reads the rows afterwards; a Parquet library of its own takes longer to load than to ask.
    cursor, source = connection.cursor(), text(str(path))
    ((rows,),) = cursor.execute(f"SELECT num_rows FROM parquet_file_metadata({source})").fetchall()
    return int(rows), _columns_of(cursor.execute(f"SELECT name, num_children FROM parquet_schema({source})").fetchall())


def _columns_of(elements: list[tuple[str, int | None]]) -> list[str]:
    """Return the columns of a Parquet schema, which lists the root and then each column followed by its parts."""
    names: list[str] = []
    inside = 0  # parts that are still to come of the columns before
    for name, children in elements[1:]:
        if inside:
            inside -= 1
        else:
            names.append(name)
        inside += children or 0
    return names


def columns(
    connection: duckdb.DuckDBPyConnection, relation: str, names: list[str], table: Table | PublicTable, *further: str
) -> Location:
    """Return a relation with the engine's types of a table's declared columns, and of further ones.

    Raises: DataFault if one is missing, or there several times but for case.
    """
    described = connection.cursor().execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
    types = {str(name).casefold(): str(kind) for name, kind, *_ in described}
    needed = [*(column.name for column in table.columns), *further]
    missing = sorted({name for name in needed if name.casefold() not in types})
    if missing:
        raise DataFault(f"{table.source} has no column {', '.join(missing)}; it has {', '.join(names)}")
    folded = [name.casefold() for name in names]
    twice = sorted({name for name in needed if folded.count(name.casefold()) > 1})
    if twice:
        raise DataFault(f"{table.source} has several columns called {', '.join(twice)}, but for case; rename them")
    return Location(relation=relation, types={name: types[name.casefold()] for name in needed})


def in_utf8(path: Path, declared: TextFormat | None, folder: Path) -> Path:
    """Return a file itself, or if it is text of another encoding, a copy in UTF-8 in a folder of one's own.

    Raises: OSError or UnicodeError. DataFault if it is written meanwhile: the copy would be of neither version.
    """
    if declared is None or declared.encoding == "utf-8":
        return path
    before, copy = path.stat(), folder / f"{uuid4().hex}.csv"
    with opened(path, declared) as source, copy.open("w", encoding="utf-8", newline="") as target:
        copyfileobj(source, target, _CHARACTERS)
    after = path.stat()
    if (before.st_ino, before.st_mtime_ns, before.st_ctime_ns) != (after.st_ino, after.st_mtime_ns, after.st_ctime_ns):
        raise DataFault(f"The file {path.name} changed while it was read; try again")
    return copy


def rows_of(file: File, table: Table | PublicTable) -> int:
    """Return how many rows a file should have: of a text, by another reader than the engine's.

    The engine's own does not mind a quote that is never closed: it drops what follows, to the end of the file.
    """
    path = file.path
    if not is_text(path):
        return file.rows
    written = format_of(path, table.text)
    with opened(path, written) as content:
        lines = lines_of(content, written)
        alone = len(next(lines)) == 1  # then an empty line is a row that is NULL
        rows, whole = 0, path.stat().st_size
        with progress.step(1, 2):
            while some := list(islice(lines, _LINES)):
                rows += sum(1 for line in some if line or alone)
                if compression(path) is None:
                    progress.report(content.buffer.tell() / whole)
        return rows


def relation(path: Path, names: list[str], declared: TextFormat | None) -> str:
    """Return the table function that reads a file, and nothing but the file: no column comes from the path.

    Text is read as text, by the rules of RFC 4180 and by one reader: nothing is guessed, padded or skipped, so that no
    line can swallow its neighbours unseen.
    """
    if not is_text(path):
        return f"read_parquet({text(str(path))}, hive_partitioning = false)"
    columns = ", ".join(f"{text(name)}: 'VARCHAR'" for name in names)
    written = format_of(path, declared)
    quote = text(written.quote)
    options = (
        f"auto_detect = false, header = true, delim = {text(written.delimiter)}, quote = {quote}, escape = {quote}"
    )
    strict = "nullstr = '', parallel = false, hive_partitioning = false"
    compressed = compression(path)
    strict += "" if compressed is None else f", compression = {text(compressed)}"
    return f"read_csv({text(str(path))}, {options}, {strict}, columns = {{{columns}}})"


def read_through(table: Table, source: Location) -> str:
    """Return a query that computes every cleaned value of every row, and the number of rows."""
    values = [clean(column, source.types[column.name]) for column in table.columns]
    if not table.unit_is_row and table.link is None:
        values.append(unit_value(table, source.types[table.unit_column]))
    return f"SELECT COUNT(*), bit_xor(hash({', '.join(values) or '0'})) FROM {source.relation}"

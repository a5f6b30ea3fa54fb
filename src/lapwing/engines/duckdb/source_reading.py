"""How DuckDB is told to read a source's files, and what their metadata say of them: no row is read for this."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import duckdb

from lapwing.catalog.model import Catalog, PublicTable, Table
from lapwing.catalog.patterns import files_of, is_pattern
from lapwing.catalog.source_names import compression, ending, holds_no_types, is_json, is_text
from lapwing.catalog.text_files import TextFormat, format_of
from lapwing.engines.duckdb import text_reading
from lapwing.engines.duckdb.cleaned import Location, clean, unit_value
from lapwing.engines.duckdb.database import Database
from lapwing.engines.duckdb.files import File
from lapwing.engines.duckdb.link_keys import linked_columns
from lapwing.engines.duckdb.literals import text
from lapwing.engines.duckdb.stamps import readable
from lapwing.errors import DataFault

_ELEMENT: Final = "file_name, name, num_children, type, type_length, converted_type, scale, precision, logical_type"


def described(path: Path, table: Table, database: Database, catalog: Catalog) -> tuple[File, Location]:
    """Return a table's file, and what it would be as a source anywhere else.

    Raises:
        DataFault: If it cannot be read, has not the columns that are declared, or identifiers of a type that does not
            tell them apart.
    """
    unit = [] if table.unit_is_row or table.link is not None else [table.unit_column]
    with readable(path, table):
        rows, source, anywhere = located(path, table, database, *unit)
    linked = linked_columns(table, catalog)
    for name, what in [*((name, "privacy unit") for name in unit), *((name, "key") for name in linked)]:
        if source.types[name] in {"DOUBLE", "FLOAT", "BOOLEAN"}:
            raise DataFault(
                f"The {what} {name} of {table.name} is a {source.types[name].lower()} in {table.source}; it must be "
                "an integer or a text"
            )
    return File(path=path, source=source, rows=rows), anywhere


def located(
    path: Path, table: Table | PublicTable, database: Database, *further: str
) -> tuple[int, Location, Location]:
    """Return how many rows a source has (to plan passes, never shown), and how it is read here and anywhere else.

    Args:
        *further: Columns that are needed and not declared.

    Raises:
        DataFault: If not all files have the same columns, or not those that are declared.
    """
    rows, names, keys = _metadata(path, database, table, further)
    files = text_reading.copies(path, table.text, database.scratch) if is_text(path) else files_of(path)
    here = relation(files, names, keys, table.text)
    source = columns(database.connection, here, [*names, *keys], table, *further)
    anywhere = relation([Path(f"source{ending(path)}")], names, keys, table.text)
    return rows, source, Location(relation=anywhere, types=source.types)


def _metadata(
    path: Path, database: Database, table: Table | PublicTable, further: Sequence[str]
) -> tuple[int, list[str], Sequence[str]]:
    """Return the number of rows, the columns of the files, and those of folders."""
    keys = text_reading.folder_keys(path, table) if is_pattern(path) else ()
    if holds_no_types(path):
        return *text_reading.metadata(path, table, further, keys), keys
    # By the engine that reads the rows afterwards; a Parquet library of its own takes longer to load than to ask.
    cursor, files = database.connection.cursor(), _listed(files_of(path))
    ((rows,),) = cursor.execute(f"SELECT SUM(num_rows) FROM parquet_file_metadata({files})").fetchall()
    schemas = dict[str, list[tuple[str, int | None, str]]]()
    for file, *element in cursor.execute(f"SELECT {_ELEMENT} FROM parquet_schema({files})").fetchall():
        schemas.setdefault(file, []).append((element[0], element[1], str(element[2:])))
    first, *others = schemas.values()
    names = _columns_of([(name, children) for name, children, _ in first])
    # The root's own name, which comes first, is its writer's.
    if any(other[1:] != first[1:] for other in others):
        raise text_reading.differ(table)
    text_reading.require_apart(path, names, keys, table)
    return int(rows), names, keys


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

    Raises:
        DataFault: If one is missing, or there several times but for case.
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
        raise DataFault(
            f"{table.source} has several columns called {', '.join(twice)} that differ only in case; rename them"
        )
    return Location(relation=relation, types={name: types[name.casefold()] for name in needed})


def relation(files: Sequence[Path], names: Sequence[str], keys: Sequence[str], declared: TextFormat | None) -> str:
    """Return the table function that reads files, and nothing but the files and the columns that folders name.

    Text is read as text, by the rules of RFC 4180 and by one reader: nothing is guessed, padded or skipped, so that no
    line can swallow its neighbours unseen.
    """
    folders = "hive_partitioning = true, hive_types_autocast = false" if keys else "hive_partitioning = false"
    if not holds_no_types(files[0]):
        return f"read_parquet({_listed(files)}, {folders})"
    columns = ", ".join(f"{text(name)}: 'VARCHAR'" for name in names)
    compressed = compression(files[0])
    strict = folders if compressed is None else f"{folders}, compression = {text(compressed)}"
    if is_json(files[0]):
        lines = "format = 'newline_delimited', records = true"
        return f"read_json({_listed(files)}, {lines}, {strict}, columns = {{{columns}}})"
    written = format_of(files[0], declared)
    quote = text(written.quote)
    options = (
        f"auto_detect = false, header = true, delim = {text(written.delimiter)}, quote = {quote}, escape = {quote}"
    )
    strict = f"nullstr = '', parallel = false, {strict}"
    return f"read_csv({_listed(files)}, {options}, {strict}, columns = {{{columns}}})"


def _listed(files: Sequence[Path]) -> str:
    listed = ", ".join(text(str(file)) for file in files)
    return listed if len(files) == 1 else f"[{listed}]"


def read_through(table: Table, source: Location) -> str:
    """Return a query that computes every cleaned value of every row, and the number of rows."""
    values = [clean(column, source.types[column.name]) for column in table.columns]
    if not table.unit_is_row and table.link is None:
        values.append(unit_value(table, source.types[table.unit_column]))
    return f"SELECT COUNT(*), bit_xor(hash({', '.join(values) or '0'})) FROM {source.relation}"


def rows_of(file: File, table: Table | PublicTable) -> int:
    """Return how many rows a source should have: of text, by another reader than the engine's."""
    return text_reading.rows_of(file.path, table) if holds_no_types(file.path) else file.rows


def why(path: Path, table: Table | PublicTable) -> str | None:
    """Say what is wrong with a source of text that cannot be read, for a curator; None if it is no text, or unclear."""
    return text_reading.why(path, table) if is_text(path) else None

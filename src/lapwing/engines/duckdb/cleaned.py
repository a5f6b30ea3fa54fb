"""The rows that a table has for every question, as SQL: cleaned value by value, then bounded unit by unit.

cleaned  every declared column, value by value: NaN counts as NULL and so do texts longer than `max_length`, numbers are
         clamped to their bounds, rounded half up to whole steps and clamped again. What a row becomes depends on that
         row alone, and nothing raises. Whose it is stands beside: a unit is a value of any length (`unit_value`).
kept     at most K rows of each unit, the first by a hash of the unit and the row's declared values, ties broken by the
         values themselves. Rows that tie in everything are equal in everything that can be asked. So which rows of a
         unit are kept, as a bag of values, is a function of that unit's own rows: no position, no other unit takes
         part. Rows without a unit are dropped.

What is cleaned of a table in parts is a function of the unit's own rows too (`own_parts`), and what is kept of a linked
table is one of what belongs to the unit (`linked_rows`). Every question stands on `kept`; why it may be stored, and
computed in several passes, stands in `stored_rows`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lapwing.catalog.model import Column as Declared
from lapwing.catalog.model import Table
from lapwing.engines.duckdb import stored_values
from lapwing.engines.duckdb.linked_rows import linked
from lapwing.engines.duckdb.literals import INTEGER_TYPES, constant, identifier, kept_name, text, unit_name, whole
from lapwing.engines.duckdb.own_parts import own_part
from lapwing.query.expressions.as_read import names_read


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """Where an engine finds a table: a relation to select from, and the engine's own type of each column."""

    relation: str
    types: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One of `of` disjoint parts of the units."""

    index: int = 0
    of: int = 1


WHOLE = Pass()


def layer(table: Table, source: Location, reads: bool, part: Pass = WHOLE) -> str:
    """Return the common table expression of the rows of a table that exist, of a part of the units.

    That of a linked table stands on its parent's, which comes before it and takes the same part, in whatever way.
    `reads` tells here and below whether rows have bounded numbers as they are read, too.
    """
    rows = cleaned(table, source, reads, part)
    return f"{kept_name(table)} AS (WITH cleaned AS ({rows}) {kept(table, unit_name(table), source, reads)})"


def of_part(values: Sequence[str], part: Pass) -> str | None:
    """Return the condition that a unit is of a part."""
    return f"hash({', '.join(values)}) % {part.of} = {part.index}" if part.of > 1 else None


# ---- the tables that a question needs ------------------------------------------------------------------------------

Relations = Mapping[str, str]
"""Relations that hold the rows of tables that exist, by the table's name."""


def needed(tables: Iterable[Table], relations: Relations) -> list[Table]:
    """Return these tables, and those of which a linked one's rows are taken unless stored: parents first, each once."""
    found: dict[str, Table] = {}
    for table in tables:
        beyond = next((place for place, above in enumerate(table.lineage, 1) if above.name in relations), None)
        found |= {above.name: above for above in reversed(table.lineage[:beyond])}
    return list(found.values())


def from_files(tables: Iterable[Table], relations: Relations) -> list[Table]:
    """Return those of the tables that are needed which have to be cleaned and bounded."""
    return [table for table in needed(tables, relations) if table.name not in relations]


def passes_for(rows: Mapping[Table, int], memory: int) -> int:
    """Return how many passes keep the bounding sorts of tables with so many rows inside a memory limit, all at once."""
    beside = {t: sum(c.name != t.privacy_unit for c in t.columns) for t in rows if not t.unit_is_row}
    size = sum(rows[table] * (24 + 16 * columns) for table, columns in beside.items())
    return max(1, -(-size * 10 // (memory * 6)))


# ---- cleaned rows ----------------------------------------------------------------------------------------------------


def cleaned(table: Table, source: Location, reads: bool, part: Pass = WHOLE) -> str:
    """Select every declared column, cleaned, and the unit; of a table in parts, the rows of each unit's own part.

    Of a linked table, the rows that belong to units of a part are those that lead to rows of such units.
    """
    if table.link is not None:
        rows = f"SELECT {', '.join(_columns(table, source, reads))} FROM {source.relation}"
        return linked(table, table.link, rows, reads)
    rows = _cleaned(table, source, reads, part)
    return rows if table.part_column is None else own_part(table, table.part_column, rows)


def _columns(table: Table, source: Location, reads: bool) -> list[str]:
    columns = [f"{clean(column, source.types[column.name])} AS {identifier(column.name)}" for column in table.columns]
    if reads:
        from lapwing.engines.duckdb.bounded_values import columns_read  # here: most questions read none

        columns += columns_read(table, source.types)
    return columns


def _cleaned(table: Table, source: Location, reads: bool, part: Pass) -> str:
    columns = _columns(table, source, reads)
    if table.unit_is_row:
        return f"SELECT {', '.join(columns) or 'NULL AS nothing'} FROM {source.relation}"
    unit = unit_value(table, source.types[table.unit_column])
    conditions = [f"{unit} IS NOT NULL", *filter(None, [of_part([unit], part)])]
    chosen = ", ".join([f"{unit} AS {unit_name(table)}", *columns])
    return f"SELECT {chosen} FROM {source.relation} WHERE {' AND '.join(conditions)}"


def unit_value(table: Table, physical: str) -> str:
    """Return the unit's identity: equality of its value as the declared type, or of its text if it is not declared.

    Where several tables may have the same units, as `unit` says, the engine's type follows from the declared one alone.
    """
    name, declared, own = identifier(table.unit_column), table.unit_type, table.unit is None
    if (column := table.column(table.unit_column)) is not None and column.reading is not None:
        name = stored_values.unless_missing(column, physical, plain)
    if declared == "integer":
        return name if own and physical in INTEGER_TYPES else f"TRY_CAST({name} AS HUGEINT)"
    if declared in ("date", "timestamp"):
        return f"TRY_CAST({name} AS {declared.upper()})"
    as_it_is = physical == "VARCHAR" or (own and physical in INTEGER_TYPES)
    return name if as_it_is else f"CAST({name} AS VARCHAR)"


def clean(column: Declared, physical: str) -> str:
    """Return the cleaned value of a declared column; where it promises not to be NULL, a NULL counts as a constant."""
    value = _clean(column, physical)
    if column.null_counts_as is None:
        return value
    numeric = column.numeric and column.bounded
    return f"COALESCE({value}, {whole(column.low) if numeric else constant(column.null_counts_as)})"


def _clean(column: Declared, physical: str) -> str:
    value = read(column, physical)
    if column.type == "string":
        return f"CASE WHEN strlen({value}) <= {column.max_length} THEN {value} END"
    if column.bounded:
        from lapwing.engines.duckdb import bounded_values as bounded  # here: what has no bounds needs none of it

        return bounded.clean(column, physical, value)
    # Adding 0 makes −0.0, which equals 0.0 but is not the same double, 0.0.
    number = column.type not in ("boolean", "integer", "date", "timestamp")
    return f"NULLIF({value} + 0.0::DOUBLE, 'nan'::DOUBLE)" if number else value


def read(column: Declared, physical: str) -> str:
    """Return a value as its declared type has it, before anything bounds it: NULL where it cannot be read so."""
    if column.reading is not None:
        return stored_values.read_stored(column, physical, plain)
    return plain(column, physical, identifier(column.name))


def plain(column: Declared, physical: str, name: str) -> str:
    """Return an expression of a stored type as the declared type has it."""
    if column.type == "string":
        return name if physical == "VARCHAR" else f"CAST({name} AS VARCHAR)"
    if column.type == "boolean":
        return name if physical == "BOOLEAN" else f"TRY_CAST({name} AS BOOLEAN)"
    if column.type in ("date", "timestamp"):
        return f"TRY_CAST({name} AS {column.type.upper()})"
    if column.type == "integer" and not column.bounded:
        return name if physical == "BIGINT" else f"TRY_CAST({_half_up(name, physical)} AS BIGINT)"
    return name if is_whole(column, physical) else _double(name, physical)


def is_whole(column: Declared, physical: str) -> bool:
    """Tell whether bounded numbers are integers that stay as they are."""
    return column.bounded and physical in INTEGER_TYPES and column.step == 1


def _half_up(name: str, physical: str) -> str:
    return f"floor({_double(name, physical)} + 0.5)" if physical in {"FLOAT", "DOUBLE"} else name


def _double(name: str, physical: str) -> str:
    return name if physical == "DOUBLE" else f"TRY_CAST({name} AS DOUBLE)"


def kept(table: Table, unit: str, source: Location, reads: bool) -> str:
    """Keep the first rows of each unit in the order of a salted hash of the unit and their values.

    Then come all columns of a fixed width, and whole texts last, lest who reads no text sort texts (`coded_rows`). Of a
    bounded number that comes as it is read, if questions look at that: what is bounded is a function of it.
    """
    if table.unit_is_row:
        return "SELECT * FROM cleaned"
    place, columns = row_order(table, unit, source)
    texts = [identifier(column.name) for column in columns if column.type == "string"]
    numbers = {own: identifier(name) for own, name in names_read(table).items()} if reads else {}
    order = [place, *filter(None, (numbers.get(column.name) or fixed_width(column) for column in columns)), *texts]
    place = f"row_number() OVER (PARTITION BY {unit} ORDER BY {', '.join(order)})"
    return f"SELECT * FROM cleaned QUALIFY {place} <= {table.max_rows_per_unit}"


def row_order(table: Table, unit: str, source: Location) -> tuple[str, list[Declared]]:
    """Return the hash that orders a unit's rows, and the columns that decide then: none that is the unit itself.

    It is of the unit too, lest the same values come first in every unit, and be all that is seen of them.
    """
    same = None if table.link else unit_value(table, source.types[table.unit_column])
    own = {c.name: clean(c, source.types[c.name]) == same for c in table.columns}
    values = [unit if own[c.name] else identifier(c.name) for c in table.columns]
    return f"hash({', '.join([text(table.name), unit, *values])})", [c for c in table.columns if not own[c.name]]


def fixed_width(column: Declared) -> str | None:
    """Return a column's value where it has a fixed width; of a text which of few it is, NULL if none of them."""
    if column.type != "string":
        return identifier(column.name)
    values = ", ".join(map(constant, column.values or ()))
    return f"TRY_CAST({identifier(column.name)} AS ENUM ({values}))" if 0 < len(column.values or ()) <= 256 else None

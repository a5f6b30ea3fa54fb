"""The rows that a table has for every question, as SQL: cleaned value by value, then bounded unit by unit.

cleaned  every declared column, value by value: NaN counts as NULL, numbers are clamped to their bounds, rounded half
         up to whole steps and clamped again. What a row becomes depends on that row alone, and nothing raises.
kept     at most K rows of each unit, the first by a hash of the unit and the row's declared values, ties broken by the
         values themselves. Rows that tie in everything are equal in everything that can be asked. So which rows of a
         unit are kept, as a bag of values, is a function of that unit's own rows: no position, no other unit takes
         part. Rows without a unit are dropped.

In a table in parts a unit's part is the least declared value among its own cleaned rows, in the catalog's order; its
other rows are dropped before any are kept, and so is a unit without a declared value. That too is a function of the
unit's own rows.

Every question stands on `kept`, and `kept` may be stored: it is the same relation whenever, and in however many passes,
it is selected. For a row's cleaned values and its hash depend on nothing but the row and its unit. The order within a
unit is total but for rows that are equal in everything that can be asked, so the first K are one bag of rows, whatever
the order in which rows arrive, the threads and the memory. A pass takes or leaves whole units, so the rows of all
passes together are those of one. What this takes for granted is that the data, this SQL and the engine are the same,
and that the order of stored rows means nothing: a question may only ask for what is a function of the bag.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from lapwing.catalog.model import Column as Declared
from lapwing.catalog.model import PublicTable, Table
from lapwing.query.doubles import double, print_in_steps
from lapwing.query.printers import clamp, identifier, text, whole
from lapwing.query.rows import column_type
from lapwing.query.types import Fixed

INTEGER_TYPES = {
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "UTINYINT",
    "USMALLINT",
    "UINTEGER",
    "UBIGINT",
    "HUGEINT",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where an engine finds a table: a relation to select from, and the engine's own type of each column."""

    relation: str
    types: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One of `of` disjoint parts of the units."""

    index: int = 0
    of: int = 1


WHOLE = Pass()


def read_through(table: Table, source: Source) -> str:
    """Return a query that computes every cleaned value of every row, and the number of rows."""
    values = [clean(column, source.types[column.name]) for column in table.columns]
    if table.privacy_unit != "row":
        values.append(unit_value(table, source.types[table.privacy_unit]))
    return f"SELECT COUNT(*), bit_xor(hash({', '.join(values) or '0'})) FROM {source.relation}"


def layers(table: Table, source: Source, part: Pass) -> str:
    """Return the common table expressions `cleaned` and `kept` of a table."""
    return f"cleaned AS ({cleaned(table, source, part)}), kept AS ({kept(table, unit_name(table))})"


def stored(relation: str) -> str:
    """Return the layer `kept` where a relation holds the rows that `kept_rows` selects."""
    return f"kept AS (SELECT * FROM {relation})"


def kept_rows(table: Table, source: Source, part: Pass) -> str:
    """Return a query whose rows are those of `kept`, a unit's beside each other."""
    order = "" if table.privacy_unit == "row" else f" ORDER BY {unit_name(table)}"
    return f"WITH {layers(table, source, part)} SELECT * FROM kept{order}"


def public_layer(table: PublicTable, source: Source) -> str:
    """Return the common table expression of a public table's cleaned rows; its numbers have bounds (`described`)."""
    columns = [f"{clean(column, source.types[column.name])} AS {identifier(column.name)}" for column in table.columns]
    return f"{public_name(table)} AS (SELECT {', '.join(columns) or 'NULL AS nothing'} FROM {source.relation})"


def public_name(table: PublicTable) -> str:
    """Return the name of the layer that holds a public table's cleaned rows."""
    return identifier(f"public {table.name}")


def unit_name(table: Table) -> str:
    """Return a name for the unit that no column has."""
    name = "unit"
    while any(column.name.casefold() == name for column in table.columns):
        name += "_"
    return name


def cleaned(table: Table, source: Source, part: Pass) -> str:
    """Select every declared column, cleaned, and the unit; of a table in parts, the rows of each unit's own part."""
    rows = _cleaned(table, source, part)
    if table.part_column is None:
        return rows
    name = identifier(table.part_column.name)
    listed = [_listed(table.part_column, value) for value in table.part_column.values or ()]
    ranks = " ".join(f"WHEN {value} THEN {rank}" for rank, value in enumerate(listed))
    chosen = f"SELECT * FROM ({rows}) WHERE {name} IN ({', '.join(listed)})"
    if table.privacy_unit == "row":
        return chosen
    rank = f"CASE {name} {ranks} END"
    return f"{chosen} QUALIFY {rank} = MIN({rank}) OVER (PARTITION BY {unit_name(table)})"


def _listed(column: Declared, value: object) -> str:
    """Write a public value as it is when it is cleaned: a bounded number is a number of steps."""
    if isinstance(value, int) and column.numeric and column.bounded and column.step is not None:
        return whole(int(value / column.step))
    return _constant(value)


def _constant(value: object) -> str:
    """Write a public value of a column."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int):
        return whole(value)
    if isinstance(value, datetime):
        return f"TIMESTAMP '{str(value)[:26]}'"
    return text(value) if isinstance(value, str) else f"DATE '{value}'"


def _cleaned(table: Table, source: Source, part: Pass) -> str:
    columns = [f"{clean(column, source.types[column.name])} AS {identifier(column.name)}" for column in table.columns]
    if table.privacy_unit == "row":
        return f"SELECT {', '.join(columns) or 'NULL AS nothing'} FROM {source.relation}"
    unit = unit_value(table, source.types[table.privacy_unit])
    conditions = [f"{unit} IS NOT NULL"]
    if part.of > 1:
        conditions.append(f"hash({unit}) % {part.of} = {part.index}")
    chosen = ", ".join([f"{unit} AS {unit_name(table)}", *columns])
    return f"SELECT {chosen} FROM {source.relation} WHERE {' AND '.join(conditions)}"


def unit_value(table: Table, physical: str) -> str:
    """Return the unit's identity: equality of its value as the declared type, or of its text if it is not declared."""
    name = identifier(table.privacy_unit)
    declared = next((column.type for column in table.columns if column.name == table.privacy_unit), "string")
    if declared == "integer":
        return name if physical in INTEGER_TYPES else f"TRY_CAST({name} AS HUGEINT)"
    if declared in ("date", "timestamp"):
        return f"TRY_CAST({name} AS {declared.upper()})"
    return name if physical in INTEGER_TYPES or physical == "VARCHAR" else f"CAST({name} AS VARCHAR)"


def clean(column: Declared, physical: str) -> str:
    """Return the cleaned value of a declared column; where it promises not to be NULL, a NULL counts as a constant."""
    value = _clean(column, physical)
    if column.null_counts_as is None:
        return value
    numeric = column.numeric and column.bounded
    return f"COALESCE({value}, {whole(column.low) if numeric else _constant(column.null_counts_as)})"


def _clean(column: Declared, physical: str) -> str:
    name = identifier(column.name)
    match column.type:
        case "string":
            return name if physical == "VARCHAR" else f"CAST({name} AS VARCHAR)"
        case "boolean":
            return name if physical == "BOOLEAN" else f"TRY_CAST({name} AS BOOLEAN)"
        case "date" | "timestamp":
            return _clean_temporal(column, name)
    kind = column_type(column)
    if isinstance(kind, Fixed) and kind.bounded:
        whole_numbers = physical in INTEGER_TYPES and kind.step == 1
        return _clean_whole(name, kind) if whole_numbers else _clean_fixed(name, kind, physical)
    if column.type == "integer":
        return name if physical == "BIGINT" else f"TRY_CAST({_half_up(name, physical)} AS BIGINT)"
    # Adding 0 makes −0.0, which equals 0.0 but is not the same double, 0.0.
    return f"NULLIF({_double(name, physical)} + 0.0::DOUBLE, 'nan'::DOUBLE)"


def _half_up(name: str, physical: str) -> str:
    return f"floor({_double(name, physical)} + 0.5)" if physical in {"FLOAT", "DOUBLE"} else name


def _clean_whole(name: str, kind: Fixed) -> str:
    """Clamp an integer. A NULL meets no condition and stays NULL."""
    return (
        f"CASE WHEN {name} <= {kind.low} THEN {whole(kind.low)} WHEN {name} >= {kind.high} THEN {whole(kind.high)} "
        f"ELSE TRY_CAST({name} AS BIGINT) END"
    )


def _clean_fixed(name: str, kind: Fixed, physical: str) -> str:
    """Clamp, round half up to whole steps, clamp again: the double nearest to a bound may lie beyond it."""
    value = _double(name, physical)
    low, high = (cast(int, end) for end in (kind.low, kind.high))
    steps = f"TRY_CAST(floor({print_in_steps(value, kind.step)} + 0.5) AS BIGINT)"
    return (
        f"CASE WHEN {value} IS NULL OR isnan({value}) THEN NULL "
        f"WHEN {value} <= {double(low * kind.step)} THEN {whole(low)} "
        f"WHEN {value} >= {double(high * kind.step)} THEN {whole(high)} ELSE {clamp(steps, low, high)} END"
    )


def _clean_temporal(column: Declared, name: str) -> str:
    kind = column.type.upper()
    value = f"TRY_CAST({name} AS {kind})"
    if column.lower is None or column.upper is None:
        return value
    low, high = (f"{kind} '{str(end)[:26]}'" for end in (column.lower, column.upper))
    return f"CASE WHEN {value} IS NULL THEN NULL ELSE LEAST(GREATEST({value}, {low}), {high}) END"


def _double(name: str, physical: str) -> str:
    return name if physical == "DOUBLE" else f"TRY_CAST({name} AS DOUBLE)"


def kept(table: Table, unit: str) -> str:
    """Keep the first rows of each unit in the order of a salted hash of the unit and their values.

    The unit is hashed too, lest the same values come first in every unit, and be all that is seen of them.
    """
    if table.privacy_unit == "row":
        return "SELECT * FROM cleaned"
    values = [identifier(column.name) for column in table.columns]
    order = ", ".join([f"hash({', '.join([text(table.name), unit, *values])})", *values])
    return (
        f"SELECT * FROM cleaned QUALIFY row_number() OVER (PARTITION BY {unit} ORDER BY {order}) "
        f"<= {table.max_rows_per_unit}"
    )

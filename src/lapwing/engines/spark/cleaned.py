"""The rows that a table has for every question, as Spark's SQL: cleaned value by value, then bounded unit by unit.

cleaned  every declared column, value by value, as `engines.duckdb.cleaned` has it: NaN counts as NULL and so do texts
         that are not UTF-8 or longer than `max_length`; numbers are clamped, rounded half up to whole steps and clamped
         again. What a row becomes depends on that row alone, and nothing raises. Types that would need a conversion
         which is not proven here are refused when a table is described (`files`).
kept     at most K rows of each unit, the first by `xxhash64` of the table's name, the unit, and the row's values, ties
         broken by the values themselves.

Guarantee:
    Which rows of a unit are kept, as a bag of values, is a function of that unit's own rows. Proof. A row's place is
    its number, within the rows of its unit, in an order by h(row), v₁, …, vₘ, where v₁ … vₘ are all its values and h is
    a function of them: a fixed hash, with no seed of a session, a partition or a position in it. Only rows that are
    equal in every vᵢ are not ordered by this, and these are interchangeable: whichever of them come first, the bag of
    the first K rows is the same. The unit's other rows are all that takes part, as PARTITION BY is the unit. ∎ Nothing
    here is random, and no row number, partition number, file name or arrival order is read. So a task that is run
    again, on this executor or another, or twice at a time, makes the same rows up to the order of equal ones; and Spark
    takes one result of every partition of a stage, whichever attempt came first.

The hash of several fields is a chain: the hash of each is the seed of the next, and that of a text takes in its length.
NULL leaves the seed as it is, so that whether a value is NULL is hashed beside it. That is for an even choice alone: if
two different rows had one hash, their values would order them, and nothing in the proof would change.

Spark's hash is not DuckDB's. Where a unit has more rows than K, the two keep different rows of it; where none has, all
rows exist on either, and the integers are the same. So the engine is a part of what a table means (`Table.engine`), and
no answer of one is ever merged with one of the other.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final, cast

from lapwing.catalog.model import Column as Declared
from lapwing.catalog.model import Link, Table
from lapwing.engines.duckdb.literals import unit_name as plain_unit_name
from lapwing.engines.spark.literals import (
    WIDE,
    clamp,
    constant,
    double,
    floored,
    identifier,
    kept_name,
    moment,
    print_in_steps,
    text,
    whole,
)
from lapwing.engines.stored_values import Dialect, StoredValue, is_missing, read_stored
from lapwing.query.expressions.as_read import read_columns
from lapwing.query.expressions.days import count
from lapwing.query.expressions.types import Fixed, Real, Type

INTEGERS: Final = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT", "DECIMAL(20,0)"})
"""How integers of Parquet are read: those of 64 bits without a sign as DECIMAL(20,0)."""
READABLE: Final[Mapping[str, frozenset[str]]] = {
    "string": frozenset({"STRING", "TINYINT", "SMALLINT", "INT", "BIGINT"}),
    "boolean": frozenset({"BOOLEAN"}),
    "date": frozenset({"DATE"}),
    "timestamp": frozenset({"TIMESTAMP", "TIMESTAMP_NTZ", "DATE"}),
    "integer": INTEGERS | {"FLOAT", "DOUBLE", "DECIMAL"},
    "decimal": INTEGERS | {"FLOAT", "DOUBLE", "DECIMAL"},
    "float": INTEGERS | {"FLOAT", "DOUBLE", "DECIMAL"},
}
"""The types of a file from which a declared type is read; DECIMAL is of any size."""
DIALECT: Final = Dialect(
    matches="regexp_like",
    text_type="STRING",
    timestamp="TIMESTAMP_NTZ",
    text=text,
    whole=whole,
    double=double,
    constant=constant,
)


def readable(column: Declared) -> frozenset[str]:
    """Return the types of a file from which a column is read: texts too, if its catalog says how."""
    kinds = READABLE[column.type]
    if column.reading is None or column.type == "string":
        return kinds
    integers = column.type == "boolean" or column.reading.format is not None
    return kinds | {"STRING"} | (INTEGERS if integers else frozenset())


def unit_name(*tables: Table) -> str:
    """Return a name for the unit that no column of these tables has."""
    return identifier(plain_unit_name(*tables))


def layer(table: Table, source: str, types: Mapping[str, str], reads: bool) -> str:
    """Return the common table expression of the rows of a table that exist.

    That of a linked table stands on its parent's, which comes before it.

    Args:
        source: A relation.
        reads: Whether it has bounded numbers as they are read, too.
    """
    return f"{kept_name(table)} AS ({rows_of(table, source, types, reads)})"


def rows_of(table: Table, source: str, types: Mapping[str, str], reads: bool) -> str:
    """Return the query for the rows of a table that exist."""
    rows = cleaned(table, source, types, reads)
    if table.unit_is_row:
        return rows
    # A column that is the unit itself orders nothing within a unit.
    unit = None if table.link else unit_value(table, types[table.unit_column])
    values = [identifier(column.name) for column in table.columns if clean(column, types[column.name]) != unit]
    return kept(table, rows, values, [identifier(name) for _, name, _ in read_columns(table)] if reads else [])


# ---- cleaned rows ----------------------------------------------------------------------------------------------------


def cleaned(table: Table, source: str, types: Mapping[str, str], reads: bool) -> str:
    """Select every declared column, cleaned, and the unit; of a table in parts, the rows of each unit's own part."""
    columns = [f"{clean(column, types[column.name])} AS {identifier(column.name)}" for column in table.columns]
    read = read_columns(table) if reads else []
    for own, name, kind in read:
        columns.append(f"{as_read(own, types[own.name], kind)} AS {identifier(name)}")
    names = [*(column.name for column in table.columns), *(name for _, name, _ in read)]
    rows = f"SELECT {', '.join(columns) or 'NULL AS nothing'} FROM {source}"
    if table.link is not None:
        return _linked(table, table.link, rows, names)
    if not table.unit_is_row:
        unit = unit_value(table, types[table.unit_column])
        chosen = ", ".join([f"{unit} AS {unit_name(table)}", *columns])
        rows = f"SELECT {chosen} FROM {source} WHERE {unit} IS NOT NULL"
    return rows if table.part_column is None else _own_part(table, table.part_column, rows, names)


def _linked(table: Table, link: Link, rows: str, names: Sequence[str]) -> str:
    """Join the rows of a linked table to those of its parent that exist, and take over their units.

    Why that is unit-local stands in `engines.duckdb.linked_rows`; NULL equals nothing here either.
    """
    shown = [f"theirs.{unit_name(link.parent)} AS {unit_name(table)}"]
    shown += [f"ours.{identifier(name)}" for name in names]
    on = " AND ".join(f"ours.{identifier(here)} = theirs.{identifier(there)}" for here, there in link.on)
    return f"SELECT {', '.join(shown)} FROM ({rows}) AS ours JOIN {kept_name(link.parent)} AS theirs ON {on}"


def _own_part(table: Table, column: Declared, rows: str, names: Sequence[str]) -> str:
    """Select the rows of each unit's own part, which is the first declared value among its rows."""
    name, rank, least = identifier(column.name), free_name("rank", table), free_name("least", table)
    listed = [_listed(column, value) for value in column.values or ()]
    chosen = f"SELECT * FROM ({rows}) WHERE {name} IN ({', '.join(listed)})"
    if table.unit_is_row:
        return chosen
    ranks = " ".join(f"WHEN {value} THEN {place}" for place, value in enumerate(listed))
    first = f"MIN({rank}) OVER (PARTITION BY {unit_name(table)})"
    shown = ", ".join([unit_name(table), *map(identifier, names)])
    ranked = f"SELECT *, CASE {name} {ranks} END AS {rank} FROM ({chosen})"
    return f"SELECT {shown} FROM (SELECT *, {first} AS {least} FROM ({ranked})) WHERE {rank} = {least}"


def _listed(column: Declared, value: object) -> str:
    """Write a public value as it is when it is cleaned: a bounded number is a number of steps."""
    if isinstance(value, int) and column.numeric and column.bounded and column.step is not None:
        return whole(int(value / column.step))
    return constant(value)


def unit_value(table: Table, physical: str) -> str:
    """Return the unit's identity: equality of its value as the declared type, or of its text if it is not declared.

    Where several tables may have the same units, as `unit` says, the engine's type follows from the declared one alone.
    """
    column, unit = table.column(table.unit_column), _unit_value(table, physical)
    if column is None or column.reading is None:
        return unit
    return f"CASE WHEN NOT {missing(column, physical)} THEN {unit} END"


def _unit_value(table: Table, physical: str) -> str:
    name, own = identifier(table.unit_column), table.unit is None
    if table.unit_type in ("date", "timestamp"):
        return _moment(name, physical) if table.unit_type == "timestamp" else name
    if table.unit_type == "integer":
        return name if own else f"CAST({name} AS DECIMAL(20,0))"
    return name if own or physical == "STRING" else f"CAST({name} AS STRING)"


def clean(column: Declared, physical: str) -> str:
    """Return the cleaned value of a declared column; where it promises not to be NULL, a NULL counts as a constant."""
    value = _clean(column, physical)
    if column.null_counts_as is None:
        return value
    numeric = column.numeric and column.bounded
    return f"COALESCE({value}, {whole(column.low) if numeric else constant(column.null_counts_as)})"


def as_read(column: Declared, physical: str, kind: Type) -> str:
    """Return a bounded number as it is read, moved nowhere but from far out to the bounds of its type."""
    low, high = cast(tuple[Fraction, Fraction], cast(Fixed | Real, kind).interval())
    value, integer = read(column, physical), column.type == "integer"
    ends = (whole(int(low)), whole(int(high))) if integer else (double(low), double(high))
    if _is_whole(column, physical):
        limits, shown = (f"{int(low)}BD", f"{int(high)}BD"), f"TRY_CAST({value} AS BIGINT)"
    else:
        value = f"NULLIF({value} + 0.0D, CAST('NaN' AS DOUBLE))"
        limits, shown = (double(low), double(high)), floored(f"({value} + 0.5D)") if integer else value
    kept = (
        f"CASE WHEN {value} <= {limits[0]} THEN {ends[0]} WHEN {value} >= {limits[1]} THEN {ends[1]} ELSE {shown} END"
    )
    if column.null_counts_as is None:
        return kept
    counted = cast(Fraction, column.null_counts_as)
    return f"COALESCE({kept}, {whole(int(counted)) if column.type == 'integer' else double(counted)})"


def _clean(column: Declared, physical: str) -> str:
    value = read(column, physical)
    match column.type:
        case "string" if physical != "STRING":
            return f"CASE WHEN octet_length({value}) <= {column.max_length} THEN {value} END"
        case "string":  # a file may hold bytes that are no text
            return f"CASE WHEN octet_length({value}) <= {column.max_length} THEN try_validate_utf8({value}) END"
        case "boolean":
            return value
        case "date" | "timestamp":
            return _clean_temporal(column, value)
    if column.bounded:
        return _clean_whole(value, column) if _is_whole(column, physical) else _clean_fixed(value, column)
    # Adding 0 makes −0.0, which equals 0.0 but is not the same double, 0.0. NaN equals NaN here, and becomes NULL.
    return value if column.type == "integer" else f"NULLIF({value} + 0.0D, CAST('NaN' AS DOUBLE))"


def read(column: Declared, physical: str) -> str:
    """Return a value as its declared type has it, before anything bounds it: NULL where it cannot be read so."""
    if column.reading is None:
        return _read(column, physical, identifier(column.name))
    return read_stored(column, _stored(column, physical), lambda value: _read(column, physical, value), DIALECT)


def missing(column: Declared, physical: str) -> str:
    """Return the condition that the catalog says of a stored value that it stands for none."""
    return is_missing(column, _stored(column, physical), lambda value: _read(column, physical, value), DIALECT)


def _read(column: Declared, physical: str, name: str) -> str:
    match column.type:
        case "string":
            return name if physical == "STRING" else f"CAST({name} AS STRING)"
        case "boolean":
            return name if physical == "BOOLEAN" else f"({name} <> 0)"
        case "date":
            return name
        case "timestamp":
            return _moment(name, physical)
    if _is_whole(column, physical):
        return name
    if column.type != "integer" or column.bounded:
        return _double(name, physical)
    if physical in INTEGERS:
        return f"TRY_CAST({name} AS BIGINT)"
    if physical == "STRING":
        return f"TRY_CAST(TRY_CAST({name} AS {WIDE}) AS BIGINT)"
    return floored(f"({_double(name, physical)} + 0.5D)")


def _is_whole(column: Declared, physical: str) -> bool:
    """Tell whether bounded numbers are integers that stay as they are."""
    return column.bounded and physical in INTEGERS and column.step == 1


def _stored(column: Declared, physical: str) -> StoredValue:
    kinds = dict.fromkeys(INTEGERS, "integer") | {"STRING": "text", "FLOAT": "float", "DOUBLE": "number"}
    kind = kinds.get(physical, "number" if physical.startswith("DECIMAL") else "other")
    return StoredValue(name=identifier(column.name), kind=kind)


def _double(name: str, physical: str) -> str:
    if physical == "STRING":  # of a column that says how its texts are read
        return f"TRY_CAST({name} AS DOUBLE)"
    return name if physical == "DOUBLE" else f"CAST({name} AS DOUBLE)"


def _moment(name: str, physical: str) -> str:
    """Read a timestamp in UTC; the session's time zone is UTC."""
    return name if physical == "TIMESTAMP_NTZ" else f"TRY_CAST({name} AS TIMESTAMP_NTZ)"


def _clean_whole(name: str, column: Declared) -> str:
    """Clamp an integer. A NULL meets no condition and stays NULL."""
    low, high = column.low, column.high
    return (
        f"CASE WHEN {name} <= {low}BD THEN {whole(low)} WHEN {name} >= {high}BD THEN {whole(high)} "
        f"ELSE TRY_CAST({name} AS BIGINT) END"
    )


def _clean_fixed(value: str, column: Declared) -> str:
    """Clamp, round half up to whole steps, clamp again: the double nearest to a bound may lie beyond it."""
    low, high, step = column.low, column.high, cast(Fraction, column.step)
    steps = floored(f"({print_in_steps(value, step)} + 0.5D)")
    return (
        f"CASE WHEN {value} IS NULL OR isnan({value}) THEN NULL "
        f"WHEN {value} <= {double(low * step)} THEN {whole(low)} "
        f"WHEN {value} >= {double(high * step)} THEN {whole(high)} ELSE {clamp(steps, low, high)} END"
    )


def _clean_temporal(column: Declared, value: str) -> str:
    if column.lower is None or column.upper is None:
        return value
    low, high = (constant(end) if column.type == "date" else moment(count(end)) for end in (column.lower, column.upper))  # type: ignore[arg-type]
    return f"CASE WHEN {value} IS NULL THEN NULL ELSE LEAST(GREATEST({value}, {low}), {high}) END"


# ---- kept rows -------------------------------------------------------------------------------------------------------


def kept(table: Table, rows: str, values: Sequence[str], read: Sequence[str]) -> str:
    """Keep the first rows of each unit, in the order that the module proves.

    Args:
        values: All of a row's.
        read: What bounded ones are as they are read, which orders rows that agree in these.
    """
    unit, place = unit_name(table), free_name("place", table)
    order = ", ".join([hashed(table, unit, values), *values, *read])
    numbered = f"row_number() OVER (PARTITION BY {unit} ORDER BY {order})"
    shown = ", ".join([unit, *(identifier(column.name) for column in table.columns), *read])
    placed = f"SELECT *, {numbered} AS {place} FROM ({rows})"
    return f"SELECT {shown} FROM ({placed}) WHERE {place} <= {table.max_rows_per_unit}"


def hashed(table: Table, unit: str | None, values: Sequence[str]) -> str:
    """Return the hash of values by which the rows or groups of a unit are taken."""
    fields = [field for value in values for field in (f"{value} IS NULL", value)]
    return f"xxhash64({', '.join([text(table.name), *([unit] if unit else []), *fields])})"


def free_name(prefix: str, *tables: Table) -> str:
    """Return a name that begins like none of the tables' columns."""
    names = {column.name.casefold() for table in tables for column in table.columns}
    while any(name.startswith(prefix) for name in names):
        prefix += "_"
    return prefix

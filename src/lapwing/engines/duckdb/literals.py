"""Names, constants and types as DuckDB's SQL."""

from datetime import datetime
from fractions import Fraction

from lapwing.catalog.model import Table
from lapwing.query.expressions.types import Fixed, Real, Type

INTEGER_TYPES = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "HUGEINT"}


def identifier(name: str) -> str:
    """Quote a name."""
    return '"' + name.replace('"', '""') + '"'


def kept_name(table: Table) -> str:
    """Return the name of the layer that holds a protected table's rows that exist."""
    return identifier(f"kept {table.name}")


def unit_name(*tables: Table) -> str:
    """Return a name for the unit that no column of these tables has; that of one table is what its layer calls it."""
    return free_name("unit", *tables)


def free_name(name: str, *tables: Table) -> str:
    """Return a name, with as many underscores after it as no column of these tables has."""
    while any(column.name.casefold() == name for table in tables for column in table.columns):
        name += "_"
    return name


def text(value: str) -> str:
    """Quote a text constant."""
    return "'" + value.replace("'", "''") + "'"


def whole(value: int | None) -> str:
    """Write an integer constant in the narrowest of the two integer types used."""
    return f"{value}::{width_of(value or 0, value or 0)}"


def width_of(low: int, high: int) -> str:
    """Return the narrowest of the two integer types used that holds a range."""
    return "BIGINT" if low >= -(2**62) and high <= 2**62 else "HUGEINT"


def width(kind: Fixed) -> str:
    """Return the engine's type for a fixed-point value: 64 bits where its bounds allow, else 128."""
    return "HUGEINT" if kind.low is None or kind.high is None else width_of(kind.low, kind.high)


def clamp(value: str, low: int, high: int) -> str:
    """Keep an integer that is not NULL inside its bounds."""
    return f"LEAST(GREATEST({value}, {whole(low)}), {whole(high)})"


def constant(value: object) -> str:
    """Write a public value of a column."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int):
        return whole(value)
    if isinstance(value, datetime):
        return f"TIMESTAMP '{str(value)[:26]}'"
    return text(value) if isinstance(value, str) else f"DATE '{value}'"


def engine_type(kind: Type) -> str:
    """Return the engine's type for values of a type."""
    if isinstance(kind, Fixed):
        return width(kind)
    names = {"text": "VARCHAR", "date": "DATE", "timestamp": "TIMESTAMP"}
    return "DOUBLE" if isinstance(kind, Real) else names.get(kind.name, "BOOLEAN")


def double(value: Fraction) -> str:
    """Write the double nearest to a constant."""
    return f"{float(value)!r}::DOUBLE"

"""Stored values that the catalog says how to read, as DuckDB's SQL; see `engines.stored_values`."""

from collections.abc import Callable
from functools import partial
from typing import Final

from lapwing.catalog.model import Column
from lapwing.engines import stored_values
from lapwing.engines.duckdb.literals import INTEGER_TYPES, constant, double, identifier, text, whole
from lapwing.engines.stored_values import Dialect, StoredValue

DIALECT: Final = Dialect(
    matches="regexp_matches",
    text_type="VARCHAR",
    timestamp="TIMESTAMP",
    text=text,
    whole=whole,
    double=double,
    constant=constant,
)


Plain = Callable[[Column, str, str], str]
"""Reads an expression of a stored type as a column's type, by these two and the expression (`cleaned.plain`)."""


def read_stored(column: Column, physical: str, plain: Plain) -> str:
    """Return a stored value as its declared type has it."""
    return stored_values.read_stored(column, _stored(column, physical), partial(plain, column, physical), DIALECT)


def is_missing(column: Column, physical: str, plain: Plain) -> str:
    """Return the condition that a stored value stands for none."""
    return stored_values.is_missing(column, _stored(column, physical), partial(plain, column, physical), DIALECT)


def unless_missing(column: Column, physical: str, plain: Plain) -> str:
    """Return a stored value as it is, or NULL if it stands for none."""
    return f"(CASE WHEN NOT {is_missing(column, physical, plain)} THEN {identifier(column.name)} END)"


def _stored(column: Column, physical: str) -> StoredValue:
    return StoredValue(name=identifier(column.name), kind=_KINDS.get(physical.partition("(")[0], "other"))


_KINDS: Final = dict.fromkeys(INTEGER_TYPES, "integer") | {
    "VARCHAR": "text",
    "FLOAT": "float",
    "DOUBLE": "number",
    "DECIMAL": "number",
}

"""The type of a column as the catalog declares it."""

from lapwing.catalog.model import Column
from lapwing.query.expressions.days import bounded_temporal
from lapwing.query.expressions.types import (
    BOOLEAN,
    TEXT,
    UNBOUNDED_INTEGER,
    UNBOUNDED_REAL,
    Fixed,
    Type,
)


def column_type(declared: Column) -> Type:
    """Return the type of a declared column's value."""
    match declared.type:
        case "boolean":
            return BOOLEAN
        case "string":
            return TEXT
        case "date" | "timestamp":
            return bounded_temporal(declared.type, declared.lower, declared.upper)
    if not declared.bounded or declared.step is None:
        return UNBOUNDED_INTEGER if declared.type == "integer" else UNBOUNDED_REAL
    return Fixed(step=declared.step, low=declared.low, high=declared.high)

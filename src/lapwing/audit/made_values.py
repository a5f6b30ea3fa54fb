"""Values for made rows: what the catalog declares of a column, its limits, what lies beyond, and what is odd.

Everything here is a function of the catalog and of a number. No file of a protected table is opened.
"""

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any, Final

import pyarrow as pa

from lapwing.catalog.table import Column

HIGH: Final = "high"
LOW: Final = "low"
ODD: Final = "odd"
PLAIN: Final = "plain"
SPREAD: Final = "spread"
"""How the rows of a unit are: at or beyond the upper bounds, the lower ones, odd, or between. Rows that are spread are
at the upper bounds in many groups."""

_TEXTS: Final = ("", "x", "y", "it's", "Ünï", "%_", "12", "nan", "1e999", " x ", "-- x", "x" * 300, None)
_INTEGERS: Final = (0, 1, -1, 7, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63), None)
_FLOATS: Final = (0.0, -0.0, 5e-324, 1.005, 1e308, -1e308, math.inf, -math.inf, math.nan, None)
_DATES: Final = (date(1, 1, 1), date(2026, 1, 1), date(2026, 1, 2), date(9999, 12, 31), None)
_TIMES: Final = (
    datetime(1, 1, 1),
    datetime(2026, 1, 1),
    datetime(2026, 1, 1, 23, 59, 59, 999999),
    datetime(9999, 12, 31, 23, 59),
    None,
)
_DECIMAL_DIGITS: Final = 38
_LEAST_INTEGER, _GREATEST_INTEGER = -(2**63), 2**63 - 1


def arrow_type(column: Column) -> pa.DataType:
    """Return the type in which made values of a column are stored: the one that the catalog declares."""
    plain = {
        "integer": pa.int64(),
        "float": pa.float64(),
        "boolean": pa.bool_(),
        "string": pa.string(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us"),
    }
    return plain[column.type] if column.type != "decimal" else pa.decimal128(_DECIMAL_DIGITS, _scale(column))


def made_value(column: Column, flavour: str, chance: Random) -> Any:
    """Return a value of a column, as rows of a flavour have it."""
    if flavour == ODD:
        return None if chance.random() < 0.2 else chance.choice(_odd(column))
    if column.values is not None:
        listed = _listed(column)
        return chance.choice({HIGH: listed[:1], LOW: listed[-1:]}.get(flavour, listed))
    if column.bounded:
        least, greatest = _ends(column)
        if flavour == SPREAD and isinstance(greatest, Fraction):
            return _stored(column, greatest)
        if flavour in (PLAIN, SPREAD):
            return _stored(column, _between(least, greatest, chance))
        beyond = chance.random() < 0.5
        return (
            _stored(column, _beyond(greatest, 1) if beyond else greatest)
            if flavour == HIGH
            else (_stored(column, _beyond(least, -1) if beyond else least))
        )
    pool = [value for value in _odd(column) if value is not None]
    return {HIGH: pool[1], LOW: pool[2]}.get(flavour, chance.choice(pool))


def unit_value(column: Column | None, number: int) -> Any:
    """Return what names a unit, or a row that others are linked to: different for different numbers."""
    match "integer" if column is None else column.type:
        case "integer":
            return number
        case "string":
            return f"u{number}"
        case "date":
            return date(1990, 1, 1) + timedelta(days=number)
        case _:
            return datetime(1990, 1, 1) + timedelta(seconds=number)


def _listed(column: Column) -> Sequence[Any]:
    return [_stored(column, value) for value in column.values or ()]


def _odd(column: Column) -> list[Any]:
    """Return the values of a column that are most likely to be read wrongly: its limits, others, and NULL."""
    pools: dict[str, Sequence[Any]] = {
        "integer": _INTEGERS,
        "float": _FLOATS,
        "boolean": (True, False, None),
        "string": _TEXTS,
        "date": _DATES,
        "timestamp": _TIMES,
        "decimal": (Decimal(0), Decimal(-5), Decimal(10) ** 12, None),
    }
    limits: list[Any] = []
    if column.bounded:
        least, greatest = _ends(column)
        limits = [least, greatest, _beyond(least, -1), _beyond(greatest, 1)]
    return [_stored(column, value) for value in (*limits, *(column.values or ()), *pools[column.type])]


def _ends(column: Column) -> tuple[Any, Any]:
    if isinstance(column.lower, datetime) and isinstance(column.upper, datetime):
        return _naive(column.lower), _naive(column.upper)
    return column.lower, column.upper


def _beyond(bound: Any, way: int) -> Any:
    """Return a value on the other side of a bound, far away from it; the bound itself where there is none."""
    if isinstance(bound, Fraction):
        return bound + way * (1000 + abs(bound))
    try:
        return bound + timedelta(days=way * 1000)
    except OverflowError:
        return bound


def _between(least: Any, greatest: Any, chance: Random) -> Any:
    return least + (greatest - least) * (
        Fraction(chance.randint(0, 8), 8) if isinstance(least, Fraction) else chance.randint(0, 8) / 8
    )


def _stored(column: Column, value: Any) -> Any:
    """Return a value as a file holds it."""
    if value is None or isinstance(value, bool | str):
        return value
    match column.type:
        case "integer":
            return min(_GREATEST_INTEGER, max(_LEAST_INTEGER, int(value)))
        case "float":
            return float(value)
        case "decimal":
            scale = _scale(column)
            most = 10**_DECIMAL_DIGITS - 1
            return Decimal(min(most, max(-most, int(Fraction(value) * 10**scale)))).scaleb(-scale)
        case "date":
            return value.date() if isinstance(value, datetime) else value
        case _:
            return _naive(value) if isinstance(value, datetime) else value


def _scale(column: Column) -> int:
    """Return how many decimal places a decimal needs for its step and bounds."""
    places, wanted = 0, [part for part in (column.step, column.lower, column.upper) if isinstance(part, Fraction)]
    while any((part * 10**places).denominator != 1 for part in wanted) and places < 18:
        places += 1
    return places if wanted else 2


def _naive(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo is not None else moment

"""Checks of a column of a catalog: its name, type, bounds, step, values, and what a NULL counts as.

Each refusal names the place that is wrong and says what to write instead.
"""

from collections import Counter
from datetime import date, datetime, timedelta
from fractions import Fraction
from math import ceil, floor
from typing import TYPE_CHECKING

from lapwing.catalog import spelling
from lapwing.catalog.place import refuse
from lapwing.catalog.unreadable import check_unreadable
from lapwing.errors import InvalidParameter

if TYPE_CHECKING:  # a column calls these checks when it is made
    from lapwing.catalog.table import Bound, Column

TYPES = ("integer", "decimal", "float", "boolean", "string", "date", "timestamp")
NUMERIC = ("integer", "decimal", "float")
ORDERED = (*NUMERIC, "date", "timestamp")
LISTABLE = ("integer", "string", "boolean", "date")

MOST_STEPS = 2**53  # the integers up to here are exact in every engine, also where a column is stored as double
MOST_VALUES = 10**6
LONGEST_TEXT = 256  # bytes, where a column does not say
MOST_BYTES = 2**20
FLOAT_STEPS = 2**20


def check_form(column: "Column") -> None:
    """Check each entry by itself, before a missing step or missing values are filled in from the type."""
    for check in (_check_name, _check_bounds, _check_step):
        check(column)


def check_meaning(column: "Column") -> None:
    """Check that step, values and the rest fit the bounds and each other."""
    for check in (_check_grid, _check_values, _check_other, _check_nullable, _check_length, check_unreadable):
        check(column)


def default_step(column: "Column") -> Fraction:
    """Return the step of a bounded number that gives none."""
    if column.type == "integer":
        return Fraction(1)
    if column.type == "decimal":
        _refuse(column, "step", "missing; a bounded decimal needs its smallest step, for example step = 0.01")
    if not isinstance(column.lower, Fraction) or not isinstance(column.upper, Fraction):
        raise InvalidParameter(f"Column {spelling.text(column.name)} has no bounds, hence no default step.")
    return (column.upper - column.lower) / FLOAT_STEPS or abs(column.lower) or Fraction(1)


def default_length(column: "Column") -> int:
    """Return the most bytes of a text in a column that does not say: a listed value is none too long."""
    return max([LONGEST_TEXT, *map(_bytes, column.values or ())])


def _bytes(value: object) -> int:
    return len(value.encode("utf-8", "surrogatepass")) if isinstance(value, str) else 0


def _refuse(column: "Column", key: str, reason: str) -> None:
    refuse(f"columns.{spelling.key(column.name)}.{key}" if key else f"columns.{spelling.key(column.name)}", reason)


def _check_name(column: "Column") -> None:
    if not column.name or not spelling.storable(column.name):
        _refuse(column, "", "not a name; use at least one character, valid UTF-8, no NUL")
    if column.type not in TYPES:
        _refuse(column, "type", f"{spelling.value(column.type)} is unknown; write one of {', '.join(TYPES)}")


def _check_bounds(column: "Column") -> None:
    for key, bound in (("lower", column.lower), ("upper", column.upper)):
        if bound is not None:
            _check_bound(column, key, bound)
    if (column.lower is None) != (column.upper is None):
        missing, given = ("lower", "upper") if column.lower is None else ("upper", "lower")
        _refuse(column, missing, f"missing, but the {given} bound is given; give both bounds or neither")
    if _swapped(column.lower, column.upper):
        lower, upper = spelling.value(column.lower), spelling.value(column.upper)
        _refuse(column, "lower", f"{lower} is above the upper bound, {upper}; swap them")


def _swapped(lower: "Bound | None", upper: "Bound | None") -> bool:
    match lower, upper:
        case Fraction(), Fraction():
            return lower > upper
        case date(), date():
            return lower > upper
        case _:
            return False


def _check_bound(column: "Column", key: str, bound: "Bound") -> None:
    if column.type not in ORDERED:
        remedy = "list its values instead" if column.type == "string" else "its values are false and true"
        _refuse(column, key, f"a {column.type} column has no bounds; remove {key}, {remedy}")
    if column.numeric:
        _check_number(column, key, bound)
    elif column.type == "date" and type(bound) is not date:
        _refuse(column, key, f"{spelling.value(bound)} is not a date; write it without quotes, like 2024-12-31")
    elif column.type == "timestamp" and not (isinstance(bound, datetime) and bound.utcoffset() == timedelta(0)):
        _refuse(column, key, f"{spelling.value(bound)} is not a time in UTC; write it like 2024-12-31T00:00:00Z")


def _check_number(column: "Column", key: str, number: object) -> None:
    if not isinstance(number, Fraction):
        _refuse(column, key, f"{spelling.value(number)} is {spelling.kind(number)}; write a number")
        return
    if not spelling.is_decimal(number):
        _refuse(column, key, f"{number} is not a decimal of at most {spelling.LONGEST} digits on a side; round it")
    if column.type == "integer" and number.denominator != 1:
        _refuse(column, key, f"{spelling.number(number)} is not whole, but the column is of integers; round it")


def _check_step(column: "Column") -> None:
    if column.step is None:
        return
    if not column.numeric:
        _refuse(column, "step", f"a {column.type} column has no step; remove it")
    _check_number(column, "step", column.step)
    if column.step <= 0:
        _refuse(column, "step", f"{spelling.number(column.step)} is not allowed; write a number above 0")


def _check_grid(column: "Column") -> None:
    if not column.numeric or not column.bounded:
        return
    lower, upper, step = column._range()
    low, high = ceil(lower / step), floor(upper / step)
    if low > high:
        between = f"{spelling.number(lower)} and {spelling.number(upper)}"
        _refuse(column, "step", f"no multiple of {spelling.number(step)} lies between {between}; use a smaller step")
    if max(high - low, -low, high) > MOST_STEPS:
        counted = f"from {low} to {high} in steps of {spelling.number(step)}"
        _refuse(column, "step", f"the bounds are {counted}, more than 2^53 steps; use a larger step or closer bounds")


def _check_values(column: "Column") -> None:
    if column.values is None:
        return
    if column.type not in LISTABLE:
        _refuse(column, "values", f"a {column.type} column cannot list values; allowed for {', '.join(LISTABLE)}")
    if not column.values:
        _refuse(column, "values", "an empty list; list at least one value or remove the key")
    if len(column.values) > MOST_VALUES:
        _refuse(column, "values", f"{len(column.values)} values; at most {MOST_VALUES} are allowed, list fewer")
    for value in column.values:
        _check_value(column, value)
    repeated = [value for value, times in Counter(column.values).items() if times > 1]
    if repeated:
        _refuse(column, "values", f"{spelling.value(repeated[0])} is listed more than once; list it once")


def _check_value(column: "Column", value: object) -> None:
    python_type = {"integer": int, "string": str, "boolean": bool, "date": date}[column.type]
    shown = spelling.value(value)
    if type(value) is not python_type:
        _refuse(column, "values", f"{shown} is {spelling.kind(value)}, but the column is of type {column.type}")
    if isinstance(value, str) and not spelling.storable(value):
        _refuse(column, "values", f"{value!r} cannot be stored as text; write valid UTF-8 without NUL")
    if type(value) is int and not -(2**63) <= value < 2**63:
        _refuse(column, "values", f"{shown} does not fit in 64 bits; list smaller integers")
    if not _inside(column, value):
        lower, upper = spelling.value(column.lower), spelling.value(column.upper)
        _refuse(column, "values", f"{shown} is outside the bounds {lower} and {upper}; widen them or drop it")


def _inside(column: "Column", value: object) -> bool:
    match value, column.lower, column.upper:
        case int(), Fraction() as lower, Fraction() as upper:
            return lower <= value <= upper
        case date(), date() as earliest, date() as latest:
            return earliest <= value <= latest
        case _:
            return True


def _check_other(column: "Column") -> None:
    if column.other is None:
        return
    if column.type != "string":
        _refuse(column, "other", f"only a string column can have it, not one of type {column.type}; remove it")
    if not isinstance(column.other, str) or not spelling.storable(column.other):
        _refuse(column, "other", f"{column.other!r} is not a text that can be stored; write valid UTF-8 without NUL")
    if column.values is None:
        _refuse(column, "other", "stands for texts that are not listed, but none are; list values or remove it")
    elif column.other in column.values:
        _refuse(column, "other", f"{spelling.text(column.other)} is also one of the values; choose another text")


def _check_nullable(column: "Column") -> None:
    if type(column.nullable) is not bool:
        _refuse(column, "nullable", f"{spelling.value(column.nullable)} is not true or false; write one of them")
    if not column.nullable and not column.bounded and column.values is None:
        _refuse(column, "nullable", "a promise needs a value for NULLs to count as; add bounds or values, or remove it")


def _check_length(column: "Column") -> None:
    length = column.max_length
    if length is None:
        return
    if column.type != "string":
        _refuse(column, "max_length", f"only a text has a length, not a value of type {column.type}; remove it")
    if type(length) is not int or not 1 <= length <= MOST_BYTES:
        _refuse(
            column, "max_length", f"{spelling.value(length)} is not allowed; write whole bytes from 1 to {MOST_BYTES}"
        )
    longest = max(map(_bytes, column.values or ()), default=0)
    if longest > length:
        _refuse(column, "max_length", f"{length} is less than the {longest} bytes of a listed value; write {longest}")

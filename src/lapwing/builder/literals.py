"""Values and names as SQL writes them: the only place where a text that a user gave becomes part of a question.

A constant is what a parameter of a question may be (`query.text.parameters`), read the same way: a float as its
shortest decimal, anything else exactly. A text goes between single quotes and a name between double ones, with that
quote doubled inside; no other character means anything there.
"""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from numbers import Integral
from typing import Final

from lapwing.errors import InvalidParameter

Given = None | bool | int | float | Decimal | Fraction | str | date
"""What a user may give as a constant; a datetime is a date."""

Constant = None | bool | Fraction | str | date

_DECIMALS: Final = 18
_MOST_DIGITS: Final = 100
_LARGEST: Final = 10**30
_LONGEST: Final = 64 * 1024
_TYPES: Final = "Give bool, int, float, Decimal, Fraction, str, date, datetime or None."


def constant(value: object) -> Constant:
    """Return a value as a question may hold it.

    Raises: InvalidParameter for another type, and for what no constant can be.
    """
    match value:
        case None | bool():
            return value
        case float() | Decimal() | Fraction() | Integral():
            return number(value)
        case str():
            return text(value, "A text")
        case datetime():
            return _moment(value)
        case date():
            return date(value.year, value.month, value.day)
    raise InvalidParameter(f"A value of the type {type_name(value)} is no constant. {_TYPES}")


def number(value: object) -> Fraction:
    """Return a number exactly, a float as its shortest decimal."""
    match value:
        case bool():
            raise InvalidParameter("True and False are no numbers. Give an int, float, Decimal or Fraction.")
        case float() if isfinite(value):
            found = Fraction(repr(float(value)))
        case Decimal() if value.is_finite() and abs(value.adjusted()) <= _MOST_DIGITS:
            found = Fraction(value)
        case float() | Decimal() if not isfinite(value):
            raise InvalidParameter("A number is not finite. Give a number, or None for NULL.")
        case Fraction():
            found = value
        case Integral():
            found = Fraction(int(value))
        case float() | Decimal():
            found = Fraction(_LARGEST + 1)
        case _:
            raise InvalidParameter(f"A number is needed, not {type_name(value)}.")
    if abs(found) > _LARGEST or 10**_DECIMALS % found.denominator:
        raise InvalidParameter(f"A number has more than {_DECIMALS} decimals or is above 1e30. Round it.")
    return found


def text(value: object, what: str) -> str:
    """Return a plain text that a question may hold."""
    if not isinstance(value, str):
        raise InvalidParameter(f"{what} is needed, as a str, not {type_name(value)}.")
    plain = str.__str__(value)
    if len(plain) > _LONGEST or len(plain.encode("utf-8", "surrogatepass")) > _LONGEST:
        raise InvalidParameter(f"{what} is longer than {_LONGEST:,} bytes. Shorten it.")
    if "\0" in plain or any("\ud800" <= character <= "\udfff" for character in plain):
        raise InvalidParameter(f"{what} holds a character that is not text. Remove NUL and broken Unicode.")
    return plain


def column_name(value: object) -> str:
    """Return a name that a column or table may have."""
    name = text(value, "The name of a column")
    if not name:
        raise InvalidParameter("The name of a column is empty. Give at least one character.")
    return name


def _moment(value: datetime) -> datetime:
    """Return a moment in UTC, which one without a zone is taken to be."""
    try:
        aware = value.utcoffset() is not None
        return (value.astimezone(UTC) if aware else value).replace(tzinfo=None, fold=0)
    except (OverflowError, ValueError):
        raise InvalidParameter("A datetime has no year in UTC. Give one of the years 1 to 9999.") from None


def printed(value: Constant) -> str:
    """Write a constant in SQL."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case Fraction():
            return _digits(value)
        case str():
            return _between("'", value)
        case datetime():
            return "TIMESTAMP " + _between("'", value.isoformat(sep=" "))
        case date():
            return "DATE " + _between("'", value.isoformat())


def quoted(name: str) -> str:
    """Write a name in SQL: in quotes, so that it is exactly itself and never a word of the language."""
    return _between('"', name)


def _between(quote: str, text: str) -> str:
    return f"{quote}{text.replace(quote, quote * 2)}{quote}"


def _digits(value: Fraction) -> str:
    whole, part = divmod(abs(value) * 10**_DECIMALS, 10**_DECIMALS)
    written = f"{whole}.{int(part):0{_DECIMALS}d}".rstrip("0").rstrip(".")
    return f"-{written}" if value < 0 else written


def whole(value: object, what: str, least: int = 0) -> int:
    """Return a whole number from a least one up."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        shown = value if isinstance(value, int | float) else type_name(value)
        raise InvalidParameter(f"{what} is {shown}; it must be a whole number from {least} up.")
    return int(value)


def word(value: object, allowed: Mapping[str, str], what: str) -> str:
    """Return the SQL of one of a few words, which is never the user's own text."""
    found = allowed.get(value) if isinstance(value, str) else None
    if found is None:
        shown = f"'{value[:40]}'" if isinstance(value, str) else type_name(value)
        raise InvalidParameter(f"{what} is {shown}; allowed: {', '.join(allowed)}.")
    return found


def type_name(value: object) -> str:
    """Name the type of a value."""
    kind = type(value)
    return kind.__name__[:40] if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"[:60]

"""How names, texts, numbers and dates are spelled in a catalog, and which of them can be spelled at all.

Numbers in a catalog are exact: each is a finite decimal, read from its digits and written back with the same value. The
limit on digits keeps a mistyped exponent from filling the memory.
"""

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction

from lapwing.errors import CatalogError

LONGEST = 60  # digits before, and after, the decimal point
FILLERS = frozenset("\u115f\u1160\u3164\uffa0")
"""The fillers of Hangul: letters to Unicode and to `str.isprintable`, and blank on every screen."""

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\t": "\\t", "\n": "\\n", "\r": "\\r"}


def key(name: str) -> str:
    """Spell a name as a TOML key: bare where that is allowed, else in quotes."""
    return name if _BARE_KEY.fullmatch(name) else text(name)


def is_seen(content: str) -> bool:
    r"""Tell whether people see every character of a text.

    >>> is_seen("caf\xe9"), is_seen("a\u202eb"), is_seen("a\u3164b")
    (True, False, False)
    """
    return content.isprintable() and FILLERS.isdisjoint(content)


def text(content: str) -> str:
    """Spell a text as a TOML basic string."""
    return '"' + "".join(_ESCAPES.get(character) or _plain(character) for character in content) + '"'


def _plain(character: str) -> str:
    return f"\\u{ord(character):04x}" if ord(character) < 0x20 or ord(character) == 0x7F else character


def number(value: Fraction) -> str:
    """Spell an exact number: an integer, or a finite decimal with an exponent where it would begin with many zeros."""
    if value.denominator == 1:
        return str(value.numerator)
    places = decimal_places(value)
    if places is None:
        return str(value)
    digits = str(abs(value.numerator) * 10**places // value.denominator)
    sign = "-" if value < 0 else ""
    if places - len(digits) >= 4:
        tail = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{tail}e-{places - len(digits) + 1}"
    digits = digits.rjust(places + 1, "0")
    return f"{sign}{digits[:-places]}.{digits[-places:]}"


def value(content: object) -> str:
    """Spell any value of a catalog as TOML; what TOML cannot hold is shown as Python would."""
    match content:
        case bool():
            return "true" if content else "false"
        case int():
            return str(content)
        case Fraction():
            return number(content)
        case str():
            return text(content)
        case date():  # a datetime is a date too
            return content.isoformat()
        case _:
            return str(content)


def kind(content: object) -> str:
    """Say what sort of TOML value this is, for an error message."""
    names = {bool: "a boolean", int: "an integer", str: "a string", list: "a list", dict: "a section", date: "a date"}
    numbers = {Decimal: "a number", Fraction: "a number"}
    return (names | numbers).get(type(content), f"a {type(content).__name__}")


def decimal_places(value: Fraction) -> int | None:
    """Return how many decimal places the number has, None if it has no finite decimal expansion."""
    rest, twos, fives = value.denominator, 0, 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    return max(twos, fives) if rest == 1 else None


def is_decimal(value: Fraction) -> bool:
    """Tell whether a catalog can hold this number: a finite decimal of at most `LONGEST` digits on a side."""
    places = decimal_places(value)
    return places is not None and places <= LONGEST and abs(value) < 10**LONGEST


def exact(content: int | Decimal) -> Fraction:
    """Read a TOML number exactly.

    Raises:
        CatalogError: Without a place, for NaN, infinities and numbers of more than `LONGEST` digits on a side.
    """
    if isinstance(content, int):
        return Fraction(content)
    if not content.is_finite():
        raise CatalogError(f"{content} is not a finite number; write one")
    exponent = content.as_tuple().exponent
    if content.adjusted() >= LONGEST or not isinstance(exponent, int) or exponent < -LONGEST:
        raise CatalogError(f"{content} has too many digits; at most {LONGEST} on either side of the point are allowed")
    return Fraction(content)


def in_utc(moment: datetime) -> datetime:
    """Return a time as UTC; one without an offset is in UTC already.

    Raises:
        CatalogError: Without a place, if it falls outside the years 1 to 9999 there.
    """
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        raise CatalogError(f"{moment} is outside the years 1 to 9999 in UTC; write another time") from None


def storable(content: str) -> bool:
    """Tell whether every engine can hold this text: valid UTF-8 without the NUL character."""
    return "\0" not in content and not any("\ud800" <= character <= "\udfff" for character in content)

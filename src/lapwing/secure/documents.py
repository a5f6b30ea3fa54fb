"""Parts of a task as JSON has them, read strictly: what is of another type is refused."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final

from lapwing.errors import InvalidParameter
from lapwing.privacy.amounts import read, written

MOST_TEXT: Final = 500


def signed(text: str, name: str) -> Fraction:
    """Return a number as `read` reads it, with a minus before it or not."""
    return -read(text[1:], name) if text.startswith("-") else read(text, name)


def written_signed(number: Fraction) -> str:
    """Return a number as `signed` reads it."""
    return f"-{written(-number)}" if number < 0 else written(number)


def text_of(value: object) -> str:
    """Return a text."""
    if not isinstance(value, str):
        raise TypeError
    return value


def count_of(value: object) -> int:
    """Return a whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError
    return value


def mapping_of(value: object) -> Mapping[str, object]:
    """Return an object."""
    if not isinstance(value, dict):
        raise TypeError
    return value


def list_of(value: object) -> Sequence[object]:
    """Return a list."""
    if not isinstance(value, list):
        raise TypeError
    return value


def unrepeated(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    """Return an object's pairs; ValueError if a key appears twice."""
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key appears twice")
    return dict(pairs)


def require_printable(name: str, text: str) -> None:
    """Refuse a text that is empty, too long, or not printable."""
    if not text or len(text) > MOST_TEXT or not text.isprintable():
        raise InvalidParameter(f"A {name} must be 1 to {MOST_TEXT} printable characters.")

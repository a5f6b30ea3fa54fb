"""Numbers as people type them: decimal commas, and marks between thousands. Texts with two meanings are refused."""

import re
from typing import Final

from lapwing.errors import InvalidParameter

_COMMA: Final = re.compile(r"[+-]?[0-9]*,[0-9]+(?:[eE][+-]?[0-9]{1,3})?\s*%?")
_GROUPED: Final = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}\s*%?")
_SPACES: Final = " \u00a0\u2009\u202f'\u2019"
"""Marks between thousands that no language has for decimals."""
_THOUSANDS: Final = re.compile(
    rf"[+-]?[1-9][0-9]{{0,2}}(?:"
    rf"([{_SPACES}])[0-9]{{3}}(?:\1[0-9]{{3}})*(?:[.,][0-9]+)?"  # 5 000 and 5 000,50
    r"|(?:\.[0-9]{3})+,[0-9]+|(?:,[0-9]{3})+\.[0-9]+"  # 5.000,00 and 5,000.00
    r"|(?:\.[0-9]{3}){2,}|(?:,[0-9]{3}){2,}"  # 5.000.000 and 5,000,000
    r")"
)


def with_point(text: str) -> str:
    """Return a number with a decimal point, if it was typed with a decimal comma; any other text as it is, trimmed.

    Raises:
        InvalidParameter: If the comma may also divide thousands.

    >>> with_point(" 0,5 "), with_point("0,125"), with_point("12,5 %"), with_point("2.5"), with_point("1/3")
    ('0.5', '0.125', '12.5 %', '2.5', '1/3')
    """
    text = text.strip()
    if not _COMMA.fullmatch(text):
        return text
    if _GROUPED.fullmatch(text):
        raise InvalidParameter(f"{text[:40]} can mean two numbers. {both_readings(text)}")
    return text.replace(",", ".")


def both_readings(text: str) -> str:
    """Say how to type each of the two numbers that one mark in a number can mean.

    >>> both_readings("5,000"), both_readings("5.000")
    ('Write 5000, or 5.000 with a decimal point.', 'Write 5000, or 5 without the point.')
    """
    whole, mark, rest = text.partition("," if "," in text else ".")
    if mark == ".":
        return f"Write {whole}{rest}, or {whole}{'.' + rest.rstrip('0') if rest.strip('0') else ' without the point'}."
    return f"Write {whole}{rest}, or {whole}.{rest} with a decimal point."


def without_thousands(text: str) -> str:
    """Return a number with a decimal point and without marks between thousands, where its form has one meaning only.

    Raises:
        InvalidParameter: As `with_point`.

    >>> [without_thousands(text) for text in ("5.000,00", "5,000.00", "5 000", "1.234.567", "-5'000,5", "2.5", "many")]
    ['5000.00', '5000.00', '5000', '1234567', '-5000.5', '2.5', 'many']
    """
    text = text.strip()
    if not _THOUSANDS.fullmatch(text):
        return with_point(text)
    bare = re.sub(f"[{_SPACES}]", "", text)
    marks = [letter for letter in bare if letter in ".,"]
    has_decimals = bool(marks) and (len(set(marks)) == 2 or bare != text)
    whole, _, rest = bare.rpartition(marks[-1]) if has_decimals else (bare, "", "")
    whole = whole.replace(".", "").replace(",", "")
    return f"{whole}.{rest}" if has_decimals else whole

"""Decimal commas in numbers that people type. One that may divide thousands is refused: it can mean two numbers."""

import re
from typing import Final

from lapwing.errors import InvalidParameter

_COMMA: Final = re.compile(r"[+-]?[0-9]*,[0-9]+(?:[eE][+-]?[0-9]{1,3})?\s*%?")
_GROUPED: Final = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}\s*%?")


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
        whole, _, rest = text.partition(",")
        raise InvalidParameter(
            f"{text[:40]} can mean two numbers. Write {whole}{rest}, or {whole}.{rest} with a decimal point."
        )
    return text.replace(",", ".")

"""CONVERT with a style of SQL Server.

CONVERT(VARCHAR(7), day, 120) writes a date, and CONVERT(DATE, text, 104) reads one. A style is a format of STRFTIME.
VARCHAR(7) keeps its first 7 characters. Each part of a format has one length, so that these characters have
a format, too. A DATE has no time of day: its text ends before it.
"""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.privacy.amounts import written
from lapwing.query.expressions import conversion, instants, temporal
from lapwing.query.expressions.expression import Expression, Literal
from lapwing.query.expressions.types import DATE, TEXT, TIMESTAMP, Plain, is_temporal

STYLES: Final[Mapping[int, str]] = {
    1: "%m/%d/%y", 2: "%y.%m.%d", 3: "%d/%m/%y", 4: "%d.%m.%y", 5: "%d-%m-%y", 6: "%d %b %y", 7: "%b %d, %y",
    8: "%H:%M:%S", 10: "%m-%d-%y", 11: "%y/%m/%d", 12: "%y%m%d", 20: "%Y-%m-%d %H:%M:%S", 21: "%Y-%m-%d %H:%M:%S.",
    23: "%Y-%m-%d", 24: "%H:%M:%S", 25: "%Y-%m-%d %H:%M:%S.", 101: "%m/%d/%Y", 102: "%Y.%m.%d", 103: "%d/%m/%Y",
    104: "%d.%m.%Y", 105: "%d-%m-%Y", 106: "%d %b %Y", 107: "%b %d, %Y", 108: "%H:%M:%S", 110: "%m-%d-%Y",
    111: "%Y/%m/%d", 112: "%Y%m%d", 120: "%Y-%m-%d %H:%M:%S", 121: "%Y-%m-%d %H:%M:%S.", 126: "%Y-%m-%dT%H:%M:%S.",
}  # fmt: skip
"""Formats by style. Behind a point at the end are fractions of a second. Only shorter texts are written."""
_ISO: Final = frozenset({20, 21, 23, 25, 120, 121, 126})
"""Styles whose texts are read as any date or timestamp is."""
_TEXTS: Final = re.compile(r"N?(VAR)?CHAR(?:\((\d+)\))?")
_MOMENTS: Final[Mapping[str, Plain]] = {
    "DATE": DATE, "DATETIME": TIMESTAMP, "DATETIME2": TIMESTAMP, "SMALLDATETIME": TIMESTAMP, "TIMESTAMP": TIMESTAMP,
}  # fmt: skip
_USUAL: Final = 30
"""Characters that VARCHAR has in CONVERT where it does not say how many."""


def styled(value: Expression, number: Fraction, target: str) -> Expression:
    """Convert a date or timestamp to a text by a style, or a text to a date.

    Args:
        number: Of the style.
        target: The type as the query writes it: VARCHAR(7), DATE.
    """
    style = int(number)
    if style != number or style not in STYLES:
        remedy = f"Use {', '.join(str(known) for known in STYLES if known > 100)}, or STRFTIME(x, '%Y-%m-%d')."
        raise QueryRefused(
            f"The style {written(number)} is not answered", cause=RefusalCause.INVALID_FORMAT, remedy=remedy
        )
    kind, text = _MOMENTS.get(target), _TEXTS.fullmatch(target)
    if kind is not None:
        return _read(value, style, kind)
    if text is None:
        reason, remedy = f"A style goes with texts and dates, not with {target}", "Write CONVERT(type, x)."
        raise QueryRefused(reason, cause=RefusalCause.INVALID_FORMAT, remedy=remedy)
    if not is_temporal(value.type):
        reason, remedy = "CONVERT writes dates and timestamps by a style", "Write CAST(x AS VARCHAR)."
        raise QueryRefused(reason, cause=RefusalCause.WRONG_TYPE, remedy=remedy)
    return _written(value, style, int(text[2] or _USUAL), padded=text[1] is None)


def _read(value: Expression, style: int, kind: Plain) -> Expression:
    if is_temporal(value.type):  # no style matters to what is no text
        return conversion.to_date(value) if kind is DATE else conversion.to_timestamp(value)
    if value.type != TEXT:
        reason, remedy = "A style reads texts", "Write CAST(x AS DATE)."
        raise QueryRefused(reason, cause=RefusalCause.WRONG_TYPE, remedy=remedy)
    if style in _ISO:
        if isinstance(value, Literal) and isinstance(value.value, str):
            return conversion.temporal(value.value, kind)
        return conversion.read_temporal(value, kind)
    template = STYLES[style]
    if "%Y" not in template or "%b" in template:
        reason, remedy = (
            f"Texts of the style {style} are not read",
            "Use 101, 103, 104, 105, 110, 111, 112, 120 or 126.",
        )
        raise QueryRefused(reason, cause=RefusalCause.INVALID_FORMAT, remedy=remedy)
    return instants.read_by_format(value, template, kind)


def _written(value: Expression, style: int, size: int, *, padded: bool) -> Expression:
    template, remedy = STYLES[style], "Write STRFTIME(x, '%Y-%m-%d'), with the format that you need."
    if isinstance(value.type, Plain) and value.type.name == "date":
        template = re.split(r"[ T]?%H", template)[0]
    template, left = _first(template, size)
    if not template:
        reason = f"The style {style} writes no part of this date"
        raise QueryRefused(reason, cause=RefusalCause.INVALID_FORMAT, remedy=remedy)
    if left < 0 or template.endswith(".") or (padded and left):
        reason = f"{size} characters end within a part of the style {style}, or after it"
        remedy = "Write VARCHAR(19)." if template.endswith(".") else remedy
        raise QueryRefused(reason, cause=RefusalCause.INVALID_FORMAT, remedy=remedy)
    return temporal.formatted(value, temporal.word(template))


def _first(template: str, size: int) -> tuple[str, int]:
    """Return the format of the first characters, and how many are left; fewer than none if a part is cut."""
    found = ""
    for part in re.findall(r"%.|[^%]", template):
        if size <= 0:
            break
        found, size = found + part, size - temporal.length_of_format(part)
    return found, size

"""Formats of dates as PostgreSQL and Snowflake (`YYYY-MM`) or Spark (`yyyy-MM`) write them, as those of STRFTIME.

Only what means the same everywhere is translated, letter for letter; a format with anything else is refused.
"""

import re
from collections.abc import Mapping

from lapwing.errors import QueryRefused
from lapwing.query.expressions import strings, temporal
from lapwing.query.expressions.expression import Expression, Literal

_TO_CHAR: Mapping[str, str] = {
    "YYYY": "%Y", "YY": "%y", "MM": "%m", "DDD": "%j", "DD": "%d", "HH24": "%H", "MI": "%M", "SS": "%S",
    "yyyy": "%Y", "yy": "%y", "mm": "%m", "ddd": "%j", "dd": "%d", "hh24": "%H", "mi": "%M", "ss": "%S", "Mon": "%b",
    "Dy": "%a",
}  # fmt: skip
_DATE_FORMAT: Mapping[str, str] = {
    "yyyy": "%Y", "yy": "%y", "MM": "%m", "MMM": "%b", "MMMM": "%B", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S",
}  # fmt: skip
_BETWEEN = re.compile(r"[-/:., ]+")


def to_char(argument: Expression, template: Expression | None = None) -> Expression:
    """Bind TO_CHAR(x), of what has one exact text, and TO_CHAR(date, 'YYYY-MM')."""
    if template is None:
        return strings.to_text(argument)
    # Longest first; a letter that is part of no name is understood by nothing.
    return temporal.formatted(argument, _translated("TO_CHAR", template, re.compile("|".join(_TO_CHAR)), _TO_CHAR))


def date_format(argument: Expression, template: Expression) -> Expression:
    """Bind DATE_FORMAT(date, 'yyyy-MM'): as many equal letters as there are make one name."""
    return temporal.formatted(
        argument, _translated("DATE_FORMAT", template, re.compile(r"([A-Za-z])\1*"), _DATE_FORMAT)
    )


def _translated(name: str, template: Expression, names: re.Pattern[str], meaning: Mapping[str, str]) -> Expression:
    text = template.value if isinstance(template, Literal) else None
    remedy = "Write STRFTIME(x, '%Y-%m')."
    if not isinstance(text, str) or len(text) > 100:
        raise QueryRefused(f"{name} takes a constant format", remedy=remedy)
    at, found = 0, ""
    while at < len(text):
        between = _BETWEEN.match(text, at)
        part = between or names.match(text, at)
        if part is None or (between is None and part[0] not in meaning):
            raise QueryRefused(f"The format is not understood at '{text[at : at + 10]}'", remedy=remedy)
        found += part[0] if between else meaning[part[0]]
        at = part.end()
    return temporal.word(found)

"""Names of tables and columns that a query must write in double quotes, and wrote without."""

import re
from typing import Final

from lapwing.catalog.model import Catalog
from lapwing.catalog.suggestions import name_in_sql
from lapwing.errors import QueryRefused, RefusalCause

_MISREAD: Final = frozenset({RefusalCause.SYNTAX_ERROR, RefusalCause.INVALID_NUMBER, RefusalCause.UNKNOWN_COLUMN})


def with_quoted_name(refused: QueryRefused, text: str, catalog: Catalog) -> QueryRefused:
    """Return the same refusal, which says how to write a name, if one without its quotes stands where it points.

    A name that is a word of SQL is often understood, and the parser fails behind it: so a name just before counts, too.
    """
    if refused.position is None or refused.cause not in _MISREAD:
        return refused
    line, column = refused.position
    at = sum(len(one) + 1 for one in text.split("\n")[: line - 1]) + column - 1
    names = {name for table in catalog.tables for name in (table.name, *(one.name for one in table.columns))}
    for name in sorted((name for name in names if name_in_sql(name) != name), key=len, reverse=True):
        if any(one.start() <= at <= one.end() for one in _bare(name).finditer(text)):
            quoted = name_in_sql(name)
            reason = f"The name {name[:60]} is not understood without quotes"
            remedy = f"Write it in double quotes: {quoted}."
            return QueryRefused(reason, cause=refused.cause, remedy=remedy, position=refused.position)
    return refused


def _bare(name: str) -> re.Pattern[str]:
    """Return a pattern of a name that stands without quotes, with the space behind it."""
    return re.compile(rf'(?<![\w"]){re.escape(name)}(?![\w"])\s*', re.IGNORECASE)

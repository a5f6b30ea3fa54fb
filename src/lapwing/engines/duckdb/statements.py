"""Statements that are parsed once, for all queries that differ only in numbers.

Theory of operation. To parse a small query takes DuckDB a quarter of the time in which it answers it. Queries of one
form are printed alike, but for their constants. So numbers become parameters, and the parsed statement is remembered by
the text that is left. It knows no table and no type: it is bound, planned and run anew each time, with the numbers as
the constants that they are. Texts, dates and truth values are not parameters, nor is a number inside quotes.

Why it tells nobody what others asked. A statement is made where a query runs, and that is after its charge. People who
are not trusted with time get these results at their deadlines. The others may see how long anything takes.
"""

import re
from typing import Any, Final

import duckdb

MOST_NUMBERS: Final = 32
"""Of more, as in a long list of values, binding parameters takes longer than parsing."""
MOST_STATEMENTS: Final = 256
LONGEST: Final = 1 << 14
"""Characters of a text whose statement is remembered."""
STATEMENTS: Final[dict[str, duckdb.Statement]] = {}
_NUMBER: Final = re.compile(
    r"""'[^']*'|"[^"]*"|(?<![\w.])([0-9]{1,200}\.[0-9]{1,200}(?=::D)|[0-9]{1,18}(?=::B))::(DOUBLE|BIGINT)\b"""
)
"""A text or a name in quotes, or a number with its type; a quote inside quotes is written twice."""


def with_parameters(query: str) -> tuple[str, list[float]]:
    """Return a query with `?` for its numbers, and these.

    >>> with_parameters('SELECT 1.5::DOUBLE, -2::BIGINT, "3.5::DOUBLE" FROM t')
    ('SELECT ?::DOUBLE, -?::BIGINT, "3.5::DOUBLE" FROM t', [1.5, 2])
    """
    numbers = [float(number) if kind == "DOUBLE" else int(number) for number, kind in _NUMBER.findall(query) if kind]
    return _NUMBER.sub(lambda found: f"?::{found[2]}" if found[2] else found[0], query), numbers


def rows(cursor: duckdb.DuckDBPyConnection, query: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query, by the statement of its form."""
    text, numbers = with_parameters(query)
    if not 0 < len(numbers) <= MOST_NUMBERS or len(text) > LONGEST:
        return cursor.execute(query).fetchall()
    statement = STATEMENTS.get(text) or cursor.extract_statements(text)[0]
    if len(STATEMENTS) >= MOST_STATEMENTS:
        STATEMENTS.clear()
    STATEMENTS[text] = statement
    try:
        return cursor.execute(statement, numbers).fetchall()
    except duckdb.BinderException:  # before any row is read: a function takes nothing but constants
        return cursor.execute(query).fetchall()

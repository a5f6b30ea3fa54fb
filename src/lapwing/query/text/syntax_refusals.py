"""Refusals of texts that are not one SELECT, with what to write instead of what people often type."""

from collections.abc import Mapping
from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from lapwing.catalog.suggestions import WORDS_OF_SQL
from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.text.positions import position_of, refused_at

_BETWEEN: Final = frozenset({"select", "from", "where"})
"""Words before which something is missing where they are not understood: nobody calls a table so."""
ALLOWED: Final = "Ask one SELECT of aggregates, such as COUNT, SUM or AVG."
FUNCTIONS: Final = "Use columns, constants, operators, CASE, CAST and the functions of the SQL reference."
FIELD: Final = "Write x ->> '$.address.city', with a constant path."
"""A remedy for queries that read a field of a JSON text."""
FLATTER: Final = "Write it flatter, for example with IN instead of many ORs."
PIVOT: Final = (
    "Write FROM (SELECT y, k, x FROM …) PIVOT (SUM(x) AS s FOR k IN ('a', 'b')), or UNPIVOT (x FOR k IN (a, b))."
)
_COLUMNS: Final = ("The list of tables has their columns, and is free.", "`lapwing describe TABLE`")
INSTEAD: Final[Mapping[str, tuple[str, str]]] = {
    "DESC": _COLUMNS,
    "DESCRIBE": _COLUMNS,
    "SHOW": ("The list of tables is free.", "`lapwing tables`"),
    "SUMMARIZE": (
        "The list of tables has the public bounds and values of columns, and is free.",
        "`lapwing describe TABLE`",
    ),
}
"""By the first word of a text that is no SELECT: a remedy for every reader, and a command for a terminal."""


def not_a_question(first: Token, text: str) -> QueryRefused:
    """Return the refusal of a text that begins with another word than SELECT or WITH."""
    word = first.text[:40].upper()
    remedy, command = INSTEAD.get(word, (ALLOWED, ""))
    return refused_at(first, text, RefusalCause.NOT_A_QUERY, f"{word} is not a query", remedy, command)


def several_statements(second: Token, text: str) -> QueryRefused:
    """Return the refusal of a text that goes on after its first statement."""
    reason, remedy = "The text holds more than one statement", "Ask exactly one SELECT at a time."
    return refused_at(second, text, RefusalCause.SEVERAL_STATEMENTS, reason, remedy)


_OF_ALL = ("with_", "order", "limit", "offset")
"""Clauses after UNION ALL or parentheses, which are over all of it."""


def one_select(statement: object) -> exp.Select:
    """Return a statement as one SELECT: over answers that stand below each other if it is UNION ALL, or over VALUES.

    Raises:
        QueryRefused: If it is anything else.
    """
    while isinstance(statement, exp.Subquery) and statement.is_wrapper:  # a whole question in parentheses
        statement = statement.this
    if isinstance(statement, exp.Pivot):
        statement = exp.Subquery(this=statement)
    if isinstance(statement, exp.Union | exp.Subquery | exp.Values):
        clauses = {name: clause for name in _OF_ALL if (clause := statement.args.pop(name, None)) is not None}
        inside: exp.Expression = exp.Subquery(this=statement) if isinstance(statement, exp.Union) else statement
        if isinstance(inside, exp.Values) and not inside.args.get("alias"):
            inside.set("alias", exp.TableAlias(this=exp.to_identifier("values")))
        select = exp.Select(expressions=[exp.Star()], from_=exp.From(this=inside))
        for name, clause in clauses.items():
            select.set(name, clause)
        return select
    if isinstance(statement, exp.SetOperation):
        remedy = "For totals beside their groups write GROUP BY ROLLUP (…); ask other SELECTs one by one."
        raise QueryRefused(
            "A set operation is not a query", cause=RefusalCause.SET_OPERATION_NOT_SUPPORTED, remedy=remedy
        )
    if not isinstance(statement, exp.Select):
        raise QueryRefused(
            f"{type(statement).__name__.upper()} is not a query", cause=RefusalCause.NOT_A_QUERY, remedy=ALLOWED
        )
    return statement


def not_a_table_expression(part: exp.CTE, text: str) -> QueryRefused:
    """Return the refusal of a common table expression that is no query."""
    position = position_of(part.args["alias"], text)
    remedy = "Write WITH name AS (SELECT …)."
    return QueryRefused(
        f"'{part.alias[:40]}' is not a SELECT", cause=RefusalCause.SYNTAX_ERROR, remedy=remedy, position=position
    )


def top_refused(top: Token, number: Token, text: str) -> QueryRefused:
    """Return the refusal of SELECT TOP n PERCENT and TOP n WITH TIES."""
    return refused_at(
        top,
        text,
        RefusalCause.CLAUSE_NOT_SUPPORTED,
        "TOP takes only a number",
        f"Write ORDER BY … LIMIT {number.text[:40]} at the end.",
    )


def not_understood(error: Exception) -> QueryRefused:
    """Return the refusal of a text on which the parser failed."""
    if isinstance(error, RecursionError):
        return QueryRefused("The query is nested too deep", cause=RefusalCause.QUERY_TOO_LONG, remedy=FLATTER)
    details = getattr(error, "errors", None)
    if details and details[0].get("line"):
        first = details[0]
        near = first.get("highlight") or "the end"
        position = (int(first["line"]), max(1, int(first["col"]) - len(near) + 1))
        word = near.casefold() in WORDS_OF_SQL - _BETWEEN
        remedy = f'If {near} is the name of a table or column, write "{near}", in double quotes.' if word else ALLOWED
        return QueryRefused(
            f"The query is not understood at '{near[:40]}'",
            cause=RefusalCause.SYNTAX_ERROR,
            remedy=remedy,
            position=position,
        )
    return QueryRefused("The query is not understood", cause=RefusalCause.SYNTAX_ERROR, remedy=ALLOWED)

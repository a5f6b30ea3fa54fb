"""How large a question may become: what is written once in a subquery is put wherever its column is named.

A plan shares such expressions, but its text and its SQL repeat them, and functions that walk it take a frame of
Python's stack for every level. So sizes and depths are bounded where expressions are made.
"""

from collections.abc import Iterable

from sqlglot import exp

from lapwing.errors import QueryRefused
from lapwing.query.expressions.expression import Expression, depth_of, nodes_of
from lapwing.query.expressions.rows import Rows

MOST_NODES = 10_000
"""The most columns, constants and functions in an expression, and in all columns of a subquery together."""
MOST_NODES_IN_ALL = 100_000
"""The most of them in all aggregates of a question."""
MOST_DEPTH = 180
"""Comparing two expressions takes three of Python's 1,000 stack frames for a level."""
MOST_COLUMNS = 400
MOST_RELATIONS = 100
MOST_NESTED = 20
MOST_VIEWS = 10
MOST_ROWS_PER_UNIT = 10**6


def require_small(expression: Expression, node: exp.Expression, rows: Rows) -> Expression:
    """Return an expression, or refuse it if it has become too large."""
    if nodes_of(expression) > MOST_NODES or depth_of(expression) > MOST_DEPTH:
        reason = "An expression grows too large when the columns of subqueries are put into it"
        raise rows.refusal(node, reason, "Compute fewer things from one another.")
    return expression


def require_few(expressions: Iterable[Expression], node: exp.Expression, rows: Rows) -> None:
    """Refuse expressions that are too large together."""
    if sum(map(nodes_of, expressions)) > MOST_NODES:
        reason = "The columns of a subquery grow too large when those of others are put into them"
        raise rows.refusal(node, reason, "Compute fewer things from one another.")


def require_bounded(expressions: Iterable[Expression]) -> None:
    """Refuse a question whose aggregates are too large together."""
    if sum(map(nodes_of, expressions)) > MOST_NODES_IN_ALL:
        reason = "The aggregates of the question grow too large when the columns of subqueries are put into them"
        raise QueryRefused(reason, remedy="Ask for fewer at a time.")

"""How large an engine's copy of an expression becomes, as it repeats arguments: a limit keeps its planner quick."""

from collections.abc import Iterable, Mapping

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.expressions.expression import Expression, Operation, depth_of, nodes_of

HEAVIEST = 10_000
"""The most parts that an engine may make of an expression."""


# How many copies of each argument an engine makes: of the first, the second, …. DuckDB turns NULLIF(x, y) into a CASE
# with x in it twice, and BETWEEN and IN into comparisons. Nested in one another, a short text would take its planner
# minutes and gigabytes, after the question is paid.
COPIES: Mapping[str, tuple[int, ...]] = {
    "null_if": (2, 1),
    "divide": (1, 2),
    "remainder": (1, 2),
    "quotient": (1, 2),
    "try_number": (2,),
    "in_calendar": (4,),
    "not_negative": (2,),
    "above_zero": (2,),
    "not_zero": (2,),
    "between": (6, 2, 2),  # measured: planning takes six times as long a level
    "member": (6,),
    "magnitude": (5,),
    "exact_steps": (6,),
    "floor_real": (3,),  # on Spark
    "round_real": (3,),
    "truncate_real": (3,),
}


def weight(node: Expression) -> int:
    """Return how many parts an engine makes of an expression."""
    if not isinstance(node, Operation):
        return 1
    copies = COPIES.get(node.function, ())
    return 1 + sum(
        (copies[i] if i < len(copies) else 1) * weight(argument) for i, argument in enumerate(node.arguments)
    )


def bearable(node: Expression) -> Expression:
    """Return an expression that an engine can plan in a moment, or refuse it.

    It is asked at every level, so that what it walks through is never larger than the limit allows.
    """
    if isinstance(node, Operation) and weight(node) > HEAVIEST:
        raise QueryRefused(
            "An expression is too large for the engine",
            cause=RefusalCause.QUERY_TOO_COMPLEX,
            remedy="Nest /, NULLIF, IN and BETWEEN less.",
        )
    return node


MOST_NODES = 10_000
"""The most columns, constants and functions in an expression, and in all columns of a subquery together."""
MOST_DEPTH = 180
"""Comparing two expressions takes three of Python's 1,000 stack frames for a level."""


def require_small(expression: Expression) -> Expression:
    """Return an expression, or refuse it if it has become too large."""
    if nodes_of(expression) > MOST_NODES or depth_of(expression) > MOST_DEPTH:
        reason = "An expression grows too large when Lapwing replaces the columns of subqueries"
        raise QueryRefused(
            reason, cause=RefusalCause.QUERY_TOO_COMPLEX, remedy="Compute fewer things from one another."
        )
    return expression


def require_few(expressions: Iterable[Expression]) -> None:
    """Refuse the columns of a subquery that are too large together."""
    if sum(map(nodes_of, expressions)) > MOST_NODES:
        reason = "The columns of a subquery grow too large when Lapwing replaces the columns of other subqueries"
        raise QueryRefused(
            reason, cause=RefusalCause.QUERY_TOO_COMPLEX, remedy="Compute fewer things from one another."
        )

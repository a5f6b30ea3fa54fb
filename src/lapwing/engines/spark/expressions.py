"""Expressions, keys, and the clauses made of them, as Spark's SQL."""

from collections.abc import Sequence

from lapwing.engines.duckdb.printers import in_own_steps
from lapwing.engines.spark.literals import identifier, literal, text
from lapwing.engines.spark.printers import PRINTERS
from lapwing.query.expressions.conversion import in_calendar
from lapwing.query.expressions.expression import ColumnReference, Expression, Literal, Operation
from lapwing.query.expressions.types import is_temporal
from lapwing.query.measures.measures import Key


def expression(node: Expression) -> str:
    """Print an expression."""
    match node:
        case ColumnReference():
            return identifier(node.name)
        case Literal():
            return literal(node)
        case Operation():
            node = in_own_steps(node)
            return PRINTERS[node.function](node, [expression(argument) for argument in node.arguments])


def where_clause(condition: Expression | None, further: Sequence[str] = ()) -> str:
    """Return the WHERE clause of a condition and of further ones, if there are any."""
    conditions = [*([f"({expression(condition)})"] if condition is not None else []), *further]
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


# ---- keys -----------------------------------------------------------------------------------------------------------


def key_value(key: Key) -> str:
    """Return a key, with everything unlisted gathered under its `other` where it has one."""
    column = expression(key.expression)
    if key.other is None:
        return column
    return f"CASE WHEN {listed(key)} THEN {column} ELSE {text(key.other)} END"


def listed(key: Key) -> str:
    """Return the condition that a key is one of its public values, or known if they are private.

    A private day or moment outside the years 1 to 9999 counts as unknown: an answer could not hold it.
    """
    kind = key.expression.type
    if key.values is None:
        value = in_calendar(key.expression) if is_temporal(kind) else key.expression
        return f"{expression(value)} IS NOT NULL"
    values = ", ".join(expression(Literal(value=value, type=kind)) for value in key.values)
    return f"{expression(key.expression)} IN ({values})"


def keys_as_columns(keys: Sequence[Key]) -> list[str]:
    """Return keys as items of a SELECT that are called key0, key1 and so on."""
    return [f"{key_value(key)} AS key{i}" for i, key in enumerate(keys)]


def have_keys(keys: Sequence[Key]) -> list[str]:
    """Return the conditions that a row has a value of each key."""
    return [listed(key) for key in keys if key.other is None]

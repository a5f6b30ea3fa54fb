"""Expressions, keys, and the clauses made of them, as DuckDB's SQL."""

from collections.abc import Sequence
from datetime import date
from fractions import Fraction
from itertools import pairwise
from typing import Final, cast

from lapwing.engines.duckdb.literals import double, engine_type, identifier, text, whole
from lapwing.engines.duckdb.printers import PRINTERS, in_own_steps
from lapwing.query.expressions.conversion import in_calendar
from lapwing.query.expressions.expression import ColumnReference, Constant, Expression, Literal, Operation
from lapwing.query.expressions.types import Fixed, Real, Type, is_temporal
from lapwing.query.measures.measures import Key

FEW: Final = 256
"""Up to so many values are looked through one by one: that is faster than the join that IN becomes."""
_COMPARED: Final = frozenset({"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"})


def expression(node: Expression) -> str:
    """Print an expression. Every function prints each argument once, so that the text stays as long as the tree."""
    match node:
        case ColumnReference():
            return identifier(node.name)
        case Literal():
            return _literal(node)
        case Operation():
            node = in_own_steps(node)
            return PRINTERS[node.function](node, [expression(argument) for argument in node.arguments])


def _literal(node: Literal) -> str:
    value = node.value
    if value is None:
        return f"NULL::{engine_type(node.type)}"
    if isinstance(value, Fraction):
        return double(value) if isinstance(node.type, Real) else whole(int(value / cast(Fixed, node.type).step))
    if isinstance(value, bool):
        return str(value).upper()
    return text(value) if isinstance(value, str) else str(node)


def where_clause(condition: Expression | None, further: Sequence[str] = (), *, quick: bool = False) -> str:
    """Return the WHERE clause of a condition and further ones; `quick`: NULLs go first, so that DuckDB takes half."""
    conditions = [*([f"({expression(condition)})"] if condition is not None else []), *further]
    conditions[1:1] = [f"{identifier(name)} IS NOT NULL" for name in sorted(_not_null(condition))] if quick else []
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def _not_null(where: Expression | None) -> frozenset[str]:
    """Return columns of numbers that a condition compares with constants: it holds for no row in which one is NULL."""
    match where:
        case Operation(function="and", arguments=parts):
            return frozenset[str]().union(*map(_not_null, parts))
        case Operation(function=op, arguments=(ColumnReference(type=Fixed()) as column, Literal())) if op in _COMPARED:
            return frozenset({column.name})
    return frozenset()


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
    if key.values is None:
        value = in_calendar(key.expression) if is_temporal(key.expression.type) else key.expression
        return f"{expression(value)} IS NOT NULL"
    kind = key.expression.type
    if len(key.values) > 1 and _consecutive(key.values, kind):
        low, high = (expression(_constant(value, kind)) for value in (key.values[0], key.values[-1]))
        return f"({expression(key.expression)} BETWEEN {low} AND {high})"
    values = ", ".join(expression(_constant(value, key.expression.type)) for value in key.values)
    if len(key.values) > FEW:
        return f"{expression(key.expression)} IN ({values})"
    return f"list_contains([{values}], {expression(key.expression)})"


def keys_as_columns(keys: Sequence[Key]) -> list[str]:
    """Return keys as items of a SELECT that are called key0, key1 and so on."""
    return [f"{key_value(key)} AS key{i}" for i, key in enumerate(keys)]


def have_keys(keys: Sequence[Key]) -> list[str]:
    """Return the conditions that a row has a value of each key."""
    return [listed(key) for key in keys if key.other is None]


def group_by(count: int) -> str:
    """Return the GROUP BY clause of so many first columns; by position, as a table's column may be called key0 too."""
    return f" GROUP BY {', '.join(str(i + 1) for i in range(count))}" if count else ""


def _consecutive(values: Sequence[Constant], kind: Type) -> bool:
    """Tell whether values are whole steps, or days, each one above the one before."""
    if isinstance(kind, Fixed):
        steps = [value / kind.step for value in values if isinstance(value, Fraction)]
    else:
        steps = [Fraction(value.toordinal()) for value in values if type(value) is date]
    return len(steps) == len(values) and all(b - a == 1 for a, b in pairwise(steps))


def _constant(value: object, kind: Type) -> Literal:
    return Literal(value=value, type=kind)  # type: ignore[arg-type]  # the catalog has checked the values

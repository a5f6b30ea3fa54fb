"""Bounds that a question states itself: `WHERE cost > 0 AND cost < 100` gives `cost` the bounds 0 and 100.

Where the catalog declares no bounds of a column, and WHERE compares it with constants on both sides, every name of the
column in the question stands for its value clamped to those bounds. On the rows that WHERE keeps the clamped value is
the value, so the question means what it says. What is proven rests on the clamp, which is computed row by row, and
never on WHERE: a wrong reading of WHERE could only make an answer wrong, not a price.

Only what would be refused for want of bounds is read in this way (`implicit_bounds.bind_otherwise`).
"""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from lapwing.query.expressions.expression import ColumnReference, Expression, Literal, Operation
from lapwing.query.expressions.rows import RowScope, TableReference
from lapwing.query.expressions.types import Fixed, Real
from lapwing.query.from_clause.scope import Input, PublicInput, Scope, rows_of
from lapwing.query.relations.contribution import kept_inside


def rows_as_stated(bound: Input | PublicInput, scope: Scope) -> RowScope:
    """Return the names that expressions over bound rows may use, within the bounds that WHERE states."""
    rows = rows_of(bound, scope)
    if isinstance(bound, PublicInput):
        return rows
    conditions = list(_conjuncts(bound.selection.where))

    def stated(value: Expression) -> Expression:
        bounds = stated_bounds(value, conditions) if _is_unbounded(value) else None
        return value if bounds is None else kept_inside(value, bounds)

    def within(source: TableReference) -> TableReference:
        return replace(source, columns={name: stated(value) for name, value in source.columns.items()})

    return replace(rows, sources=tuple(map(within, rows.sources)))


def stated_bounds(value: Expression, conditions: list[Operation]) -> tuple[Fraction, Fraction] | None:
    """Return the bounds within which a value is wherever all conditions hold; None if an end is open, or none is left.

    Args:
        conditions: As plans have them, with constants on the right.
    """
    lows, highs = [], []
    for condition in conditions:
        first, *others = condition.arguments
        constants = [
            other.value for other in others if isinstance(other, Literal) and isinstance(other.value, Fraction)
        ]
        if first != value or len(constants) != len(others) or not constants:
            continue
        if condition.function in ("equal", "member", "greater", "greater_equal"):
            lows.append(min(constants))
        if condition.function in ("equal", "member", "less", "less_equal"):
            highs.append(max(constants))
    if not lows or not highs or max(lows) > min(highs):
        return None
    return max(lows), min(highs)


def _conjuncts(condition: Expression | None) -> Iterator[Operation]:
    if isinstance(condition, Operation):
        if condition.function == "and":
            for part in condition.arguments:
                yield from _conjuncts(part)
        else:
            yield condition


def _is_unbounded(value: Expression) -> bool:
    kind = value.type
    return isinstance(value, ColumnReference) and isinstance(kind, Fixed | Real) and None in (kind.low, kind.high)

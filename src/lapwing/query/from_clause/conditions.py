"""Conditions on rows: what stands after WHERE, HAVING, QUALIFY, ON and FILTER, and how they are joined."""

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from lapwing.errors import RefusalCause
from lapwing.query.expressions import logic
from lapwing.query.expressions.calls import bind_expression
from lapwing.query.expressions.expression import Expression
from lapwing.query.expressions.normal_forms import TRUE
from lapwing.query.expressions.rows import RowScope
from lapwing.query.expressions.types import BOOLEAN, describe
from lapwing.query.relations.relation import Selection


def condition(clause: exp.Expression | None, rows: RowScope, name: str) -> Expression | None:
    """Bind what stands after WHERE, HAVING or QUALIFY."""
    if clause is None:
        return None
    rows.only(clause, "this")
    return bound_condition(clause.this, rows, name)


def bound_condition(node: exp.Expression, rows: RowScope, name: str) -> Expression:
    """Bind a condition on a row."""
    bound = bind_expression(node, rows)
    if bound.type != BOOLEAN:
        raise rows.refusal(
            node,
            RefusalCause.NOT_A_CONDITION,
            f"{name} needs a condition, not {describe(bound.type)}",
            "Write a comparison.",
        )
    return bound


def conjunction(first: Expression | None, second: Expression | None) -> Expression | None:
    """Return what holds where both conditions do; None is no condition, and neither is TRUE."""
    if second is None or second == TRUE:
        return first
    if first is None:
        return second
    return logic.both(first, second)


def filtered(selection: Selection, where: Expression | None) -> Selection:
    """Return the rows of a selection for which a condition is true too."""
    return replace(selection, where=conjunction(selection.where, where))


def conjuncts(node: exp.Expression, rows: RowScope) -> Sequence[exp.Expression]:
    """Return the conditions that a chain of ANDs joins."""
    parts: list[exp.Expression] = []
    pending = [node]
    while pending:
        part = pending.pop()
        if type(part) is exp.And:
            rows.only(part, "this", "expression")
            pending += [part.expression, part.this]
        elif type(part) is exp.Paren:
            rows.only(part, "this")
            pending.append(part.this)
        else:
            parts.append(part)
    return parts

"""Conditions on rows: what stands after WHERE, HAVING, QUALIFY, ON and FILTER, and how they are joined."""

from dataclasses import replace

from sqlglot import exp

from lapwing.errors import RefusalCause
from lapwing.query.expressions import logic
from lapwing.query.expressions.calls import bind_expression
from lapwing.query.expressions.expression import Expression
from lapwing.query.expressions.normal_forms import TRUE
from lapwing.query.expressions.rows import RowScope
from lapwing.query.expressions.types import BOOLEAN, describe
from lapwing.query.relations.relation import FilteredRows


def condition(clause: exp.Expression | None, rows: RowScope, name: str) -> Expression | None:
    """Bind what stands after WHERE, HAVING or QUALIFY."""
    if clause is None:
        return None
    rows.only(clause, "this")
    return bind_condition(clause.this, rows, name)


def bind_condition(node: exp.Expression, rows: RowScope, name: str) -> Expression:
    """Bind a condition on a row."""
    condition = bind_expression(node, rows)
    if condition.type != BOOLEAN:
        raise rows.refusal(
            node,
            RefusalCause.NOT_A_CONDITION,
            f"{name} needs a condition, not {describe(condition.type)}",
            "Write a comparison.",
        )
    return condition


def conjunction(first: Expression | None, second: Expression | None) -> Expression | None:
    """Return what holds where both conditions do; None is no condition, and neither is TRUE."""
    if second is None or second == TRUE:
        return first
    if first is None:
        return second
    return logic.both(first, second)


def filtered(selection: FilteredRows, where: Expression | None) -> FilteredRows:
    """Return the rows of a selection for which a condition is true too."""
    return replace(selection, where=conjunction(selection.where, where))


def conjuncts(node: exp.Expression, rows: RowScope | None = None) -> list[exp.Expression]:
    """Return the conditions that a chain of ANDs joins.

    Args:
        rows: Refuses ANDs and parentheses that say anything else, as none does that sqlglot parses.
    """
    parts, pending = list[exp.Expression](), [node]
    while pending:
        part = pending.pop()
        inside = ("this", "expression") if type(part) is exp.And else ("this",) if type(part) is exp.Paren else ()
        if rows is not None and inside:
            rows.only(part, *inside)
        pending += [part.args[name] for name in reversed(inside)]
        parts += [] if inside else [part]
    return parts

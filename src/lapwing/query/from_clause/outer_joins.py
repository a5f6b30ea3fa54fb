"""Joins that keep public rows which match nobody: FROM public LEFT JOIN protected, and protected RIGHT JOIN public.

In SQL such a row is in the result once, with NULL in every column of the protected table. It is no unit's row, so that
it is in no relation (`relation`): what is computed is the inner join. That gives what SQL means if no aggregate can
tell the difference.

Proof. Call an expression *dark* if it is NULL wherever all columns of the protected table are: such a column, the unit,
and every function with a dark argument that is NULL where that argument is. COUNT, SUM, AVG, the moments and the order
statistics pass over rows whose argument is NULL. So a row that matches nobody adds nothing to an aggregate of a dark
argument, or with a dark FILTER, which is not true there: the aggregate is, in every cell, that of the inner join. Which
cells there are does not depend on rows: public keys are all in the answer, and that is what such a join is written for;
private keys are released by the units that hold them, and a row that matches nobody has none. In a cell without rows
SQL's SUM is NULL, and Lapwing's 0 plus noise, as it is everywhere. ∎

In a subquery rows without a unit do not exist either. Privacy is not affected: the relation is that of an inner join.
"""

from sqlglot import exp

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.expressions.attempts import FORMS, VALUES
from lapwing.query.expressions.calls import bind_expression
from lapwing.query.expressions.expression import ColumnReference, Expression, Operation
from lapwing.query.expressions.naming import name_of
from lapwing.query.expressions.rows import RowScope, attempted

_PASS_OVER_NULL = ("coalesce", "least", "greatest", "and", "or")
"""The functions that are NULL if all of their arguments are."""
_SEE_NULL = ("is_null", "distinct", "concat", "concat_ws")
"""The functions that have a value where arguments are NULL."""


def check_aggregates(select: exp.Select, rows: RowScope, dark: frozenset[str]) -> None:
    """Refuse aggregates that would count public rows which match nobody.

    Args:
        dark: The names of the protected table's columns in the relation.
    """
    clauses = [select.args[name] for name in ("having", "order") if select.args.get(name) is not None]
    for part in (*select.expressions, *clauses):
        for node in part.find_all(exp.AggFunc):
            over_answer = isinstance(node.parent, exp.Window)  # it looks at rows of the answer; its parts are looked at
            if not over_answer and not isinstance(node, exp.Grouping) and not _passes_over(node, rows, dark):
                unit = f"COUNT({rows.unit})" if rows.unit else "a column of the protected table"
                reason = f"{name_of(node)} would count rows of the public table that match nobody"
                raise rows.refusal(
                    node,
                    RefusalCause.JOIN_NOT_SUPPORTED,
                    reason,
                    f"Aggregate columns of the protected table, as {unit}, or write JOIN.",
                )


def _passes_over(node: exp.Expression, rows: RowScope, dark: frozenset[str]) -> bool:
    around = node.parent
    if isinstance(around, exp.WithinGroup):
        ordered = around.expression.expressions if around.expression is not None else []
        return any(_is_dark(term.this, rows, dark) for term in ordered) or _filtered(around, rows, dark)
    argument = node.this
    parts = argument.expressions if isinstance(argument, exp.Distinct) else [argument]
    others = [node.expression] if isinstance(node, exp.CovarPop | exp.CovarSamp | exp.Corr) else []
    return any(_is_dark(part, rows, dark) for part in (*parts, *others)) or _filtered(node, rows, dark)


def _filtered(node: exp.Expression, rows: RowScope, dark: frozenset[str]) -> bool:
    """Tell whether a FILTER leaves out rows that match nobody."""
    return isinstance(node.parent, exp.Filter) and _is_dark(node.parent.expression.this, rows, dark)


def _is_dark(node: object, rows: RowScope, dark: frozenset[str]) -> bool:
    if not isinstance(node, exp.Expression) or isinstance(node, exp.Star):
        return False
    if rows.is_unit(node):
        return True
    expression = attempted(FORMS | VALUES, bind_expression, node, rows)
    if isinstance(expression, QueryRefused):
        # Whoever binds the aggregate refuses it, unless WHERE states bounds of a column: then every row has a unit.
        return True
    return _null_without_a_unit(expression, dark)


def _null_without_a_unit(expression: Expression, dark: frozenset[str]) -> bool:
    """Tell whether an expression is NULL where all protected columns are."""
    if isinstance(expression, ColumnReference):
        return expression.name in dark
    if not isinstance(expression, Operation):
        return False
    if expression.function == "case":
        conditions, values = expression.arguments[:-1:2], (*expression.arguments[1::2], expression.arguments[-1])
        null = all(_is_null(value, dark) for value in values)
        return null or (all(_is_null(c, dark) for c in conditions) and _is_null(values[-1], dark))
    if expression.function in _SEE_NULL:
        return False
    if expression.function in _PASS_OVER_NULL:
        return all(_null_without_a_unit(argument, dark) for argument in expression.arguments)
    if expression.function == "null_if":
        return _null_without_a_unit(expression.arguments[0], dark)
    return any(_null_without_a_unit(argument, dark) for argument in expression.arguments)


def _is_null(expression: Expression, dark: frozenset[str]) -> bool:
    return getattr(expression, "value", "") is None or _null_without_a_unit(expression, dark)

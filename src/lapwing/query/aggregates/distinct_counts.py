"""Bind COUNT(DISTINCT …): of units, or of different values."""

from sqlglot import exp

from lapwing.query.aggregates.scope import SelectScope
from lapwing.query.expressions import logic
from lapwing.query.expressions.calls import bind_expression
from lapwing.query.expressions.expression import Expression
from lapwing.query.from_clause.conditions import bound_condition
from lapwing.query.measures import CountDistinct, CountUnits, Measure


def distinct_count(inner: exp.Expression, node: exp.Expression, scope: SelectScope) -> Measure:
    """Return the measure of a DISTINCT inside of a COUNT."""
    rows = scope.rows
    rows.only(inner, "expressions")
    if len(inner.expressions) != 1:
        raise rows.refusal(node, "COUNT(DISTINCT …) takes one expression", "Count each by itself.")
    if rows.is_unit(inner.expressions[0]):
        return CountUnits(where=scope.condition)
    condition = _units_where(inner.expressions[0], scope)
    if condition is not None:
        return CountUnits(where=condition)
    return CountDistinct(argument=logic.only_where(bind_expression(inner.expressions[0], rows), scope.condition))


def _units_where(node: exp.Expression, scope: SelectScope) -> Expression | None:
    """Return the condition of CASE WHEN condition THEN unit END, which is a FILTER in other words."""
    branches = node.args.get("ifs") or [] if type(node) is exp.Case and node.this is None else []
    if len(branches) != 1 or not scope.rows.is_unit(branches[0].args["true"]):
        return None
    if not isinstance(node.args.get("default"), exp.Null | None):
        return None
    scope.rows.only(node, "ifs", "default")
    scope.rows.only(branches[0], "this", "true")
    condition = bound_condition(branches[0].this, scope.rows, "CASE")
    return condition if scope.condition is None else logic.both(scope.condition, condition)

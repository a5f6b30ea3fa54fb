"""Bind COUNT, SUM and AVG: each is one integer a cell, or two."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from sqlglot import exp

from lapwing.errors import QueryRefused
from lapwing.query.aggregates.approximate_bounds import within_bounds
from lapwing.query.aggregates.scope import Aggregate, Requests, SelectScope
from lapwing.query.derivation.average import Average
from lapwing.query.derivation.derived import Derived, MeasureValue
from lapwing.query.expressions import conversion, logic
from lapwing.query.expressions.calls import bind_expression
from lapwing.query.expressions.expression import Expression, is_number
from lapwing.query.expressions.naming import as_number
from lapwing.query.expressions.types import describe
from lapwing.query.from_clause.conditions import bound_condition
from lapwing.query.measures import Count, CountDistinct, CountUnits, Measure, Sum

_ONCE = "Leave DISTINCT out, or GROUP BY x and COUNT(*): a list of the values that are there."


def _count(node: exp.Expression, scope: SelectScope, _requests: Requests) -> Derived:
    rows, condition = scope.rows, scope.condition
    rows.only(node, "this", "big_int")
    inner = node.this
    if isinstance(inner, exp.Star):
        rows.only(inner)
        return MeasureValue(measure=_rows_where(condition))
    if isinstance(inner, exp.Distinct):
        return MeasureValue(measure=_distinct(inner, node, scope))
    if inner is None:
        raise rows.refusal(node, "COUNT needs an argument", "Write COUNT(*).")
    if rows.is_unit(inner):  # rows without a unit do not exist
        return MeasureValue(measure=_rows_where(condition))
    argument = bind_expression(inner, rows)
    if not conversion.nullable(argument):
        return MeasureValue(measure=_rows_where(condition))
    return MeasureValue(measure=Count(argument=logic.only_where(argument, condition)))


def _rows_where(condition: Expression | None) -> Count:
    """Return the number of rows for which a condition is true."""
    return Count() if condition is None else Count(argument=logic.one_where(condition))


def _distinct(inner: exp.Expression, node: exp.Expression, scope: SelectScope) -> Measure:
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


def _count_if(node: exp.Expression, scope: SelectScope, _requests: Requests) -> Derived:
    scope.rows.only(node, "this")
    condition = bound_condition(node.this, scope.rows, "COUNT_IF")
    both = condition if scope.condition is None else logic.both(scope.condition, condition)
    return MeasureValue(measure=_rows_where(both))


def _total(node: exp.Expression, scope: SelectScope, requests: Requests) -> Sum:
    rows = scope.rows
    rows.only(node, "this")
    name = node.key.upper()
    if isinstance(node.this, exp.Distinct):
        raise rows.refusal(node, f"{name}(DISTINCT …) is not answered", _ONCE)
    argument = bind_expression(node.this, rows)
    if not is_number(argument.type):
        kind = describe(argument.type)
        raise rows.refusal(node, f"{name} needs a number, not {kind}", as_number(kind))
    try:
        bounded = within_bounds(argument, scope.named(node), scope.condition, requests)
        return Sum(argument=logic.only_where(conversion.summable(bounded), scope.condition))
    except QueryRefused as refused:
        raise rows.refusal(node, f"{name}: {refused.reason[0].lower()}{refused.reason[1:]}", refused.remedy) from None


def _sum(node: exp.Expression, scope: SelectScope, requests: Requests) -> Derived:
    return MeasureValue(measure=_total(node, scope, requests))


def _average(node: exp.Expression, scope: SelectScope, requests: Requests) -> Derived:
    """Bind AVG as a sum around the middle of the bounds, which halves what one row can change, over a count."""
    total = _total(node, scope, requests)
    low, high = total.type.low or 0, total.type.high or 0
    if scope.condition is None:
        count = Count(argument=total.argument) if conversion.nullable(total.argument) else Count()
    else:
        # FILTER makes the argument NULL elsewhere, which alone is no reason to count anything but the condition.
        bare = bind_expression(node.this, scope.rows)
        count = Count(argument=total.argument) if conversion.nullable(bare) else _rows_where(scope.condition)
    return Average(total=replace(total, origin=(low + high) // 2), count=count)


COUNTS_AND_SUMS: Final[Mapping[type[exp.Expression], Aggregate]] = {
    exp.Count: _count,
    exp.CountIf: _count_if,
    exp.Sum: _sum,
    exp.Avg: _average,
}

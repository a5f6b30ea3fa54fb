"""Bind COUNT: one integer a cell. For SUM and AVG see `sums`."""

from collections.abc import Mapping
from typing import Final

from sqlglot import exp

from lapwing.errors import RefusalCause
from lapwing.query.aggregates.distinct_counts import distinct_count
from lapwing.query.aggregates.scope import Aggregate, Requests, SelectScope
from lapwing.query.derivation.derived import MeasureValue
from lapwing.query.derivation.node import Derived
from lapwing.query.expressions import conversion, logic
from lapwing.query.expressions.calls import counted
from lapwing.query.expressions.expression import Expression
from lapwing.query.from_clause.conditions import bind_condition
from lapwing.query.measures.measures import Count


def _count(node: exp.Expression, scope: SelectScope, _requests: Requests) -> Derived:
    rows, condition = scope.rows, scope.condition
    rows.only(node, "this", "big_int")
    inner = node.this
    if isinstance(inner, exp.Star):
        rows.only(inner)
        return MeasureValue(measure=rows_where(condition))
    if isinstance(inner, exp.Distinct):
        return MeasureValue(measure=distinct_count(inner, node, scope))
    if inner is None:
        raise rows.refusal(node, RefusalCause.WRONG_ARGUMENT_COUNT, "COUNT needs an argument", "Write COUNT(*).")
    if rows.is_unit(inner):  # rows without a unit do not exist
        return MeasureValue(measure=rows_where(condition))
    argument = counted(inner, rows)
    if not conversion.nullable(argument):
        return MeasureValue(measure=rows_where(condition))
    return MeasureValue(measure=Count(argument=logic.only_where(argument, condition)))


def rows_where(condition: Expression | None) -> Count:
    """Return the number of rows for which a condition is true."""
    return Count() if condition is None else Count(argument=logic.one_where(condition))


def _count_if(node: exp.Expression, scope: SelectScope, _requests: Requests) -> Derived:
    scope.rows.only(node, "this")
    condition = bind_condition(node.this, scope.rows, "COUNT_IF")
    both = condition if scope.condition is None else logic.both(scope.condition, condition)
    return MeasureValue(measure=rows_where(both))


COUNTS: Final[Mapping[type[exp.Expression], Aggregate]] = {exp.Count: _count, exp.CountIf: _count_if}

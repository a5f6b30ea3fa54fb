"""Bind SUM and AVG: each is one integer a cell, or two."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, cast

from sqlglot import exp

from lapwing.errors import RefusalCause
from lapwing.query.aggregates.approximate_bounds import within_bounds
from lapwing.query.aggregates.counts import rows_where
from lapwing.query.aggregates.scope import Aggregate, Requests, SelectScope
from lapwing.query.aggregates.unit_averages import average_of_units, within_reach
from lapwing.query.derivation.average import Average
from lapwing.query.derivation.derived import MeasureValue
from lapwing.query.derivation.known_mean import KnownMean
from lapwing.query.derivation.node import Derived
from lapwing.query.expressions import conversion, logic
from lapwing.query.expressions.calls import bind_expression
from lapwing.query.expressions.casts import truth_as_number
from lapwing.query.expressions.expression import Expression, is_number
from lapwing.query.expressions.naming import as_number, said_of
from lapwing.query.expressions.rows import RowScope
from lapwing.query.expressions.types import describe
from lapwing.query.measures.distinct_sums import SumDistinct
from lapwing.query.measures.measures import Count, Sum
from lapwing.query.relations.contribution import per_row
from lapwing.query.relations.relation import ProtectedRows, table_of

_ONCE = "Leave DISTINCT out, or GROUP BY x and COUNT(*): a list of the values that are there."


def _number(node: exp.Expression, scope: SelectScope) -> Expression:
    """Bind the argument of an aggregate of numbers."""
    rows = scope.rows
    rows.only(node, "this")
    name = node.key.upper()
    if isinstance(node.this, exp.Distinct):
        raise rows.refusal(node, RefusalCause.DISTINCT_NOT_SUPPORTED, f"{name}(DISTINCT …) is not supported", _ONCE)
    return _numeric(node, node.this, rows)


def _numeric(node: exp.Expression, inner: object, rows: RowScope) -> Expression:
    argument = truth_as_number(bind_expression(cast(exp.Expression, inner), rows))
    if not is_number(argument.type):
        name, kind = node.key.upper(), describe(argument.type)
        raise rows.refusal(node, RefusalCause.WRONG_TYPE, f"{name} needs a number, not {kind}", as_number(kind))
    return argument


def _total(node: exp.Expression, scope: SelectScope, requests: Requests) -> Sum:
    argument, named = _number(node, scope), scope.named(node)
    with scope.rows.pointing(node, said_of(node.key.upper())):
        if named is not None and named.contribution_bounds_per_row == "wide":
            bounded = within_reach(argument, named)
        else:
            bounded = within_bounds(argument, named, scope.condition, requests)
        return Sum(argument=logic.only_where(conversion.summable(bounded), scope.condition))


def _sum(node: exp.Expression, scope: SelectScope, requests: Requests) -> Derived:
    if isinstance(node.this, exp.Distinct):
        return MeasureValue(measure=_distinct(node, node.this, scope))
    return MeasureValue(measure=_total(node, scope, requests))


def _distinct(node: exp.Expression, distinct: exp.Distinct, scope: SelectScope) -> SumDistinct:
    """Bind SUM(DISTINCT x), over values in steps between bounds that are known."""
    rows, named = scope.rows, scope.named(node)
    rows.only(distinct, "expressions")
    if len(distinct.expressions) != 1:
        raise rows.refusal(
            node, RefusalCause.WRONG_ARGUMENT_COUNT, "SUM(DISTINCT …) takes one expression", "Sum each by itself."
        )
    if named is not None and named.contribution_bounds_per_group is not None:
        reason = "a value that several people have counts once, so no number belongs to one of them"
        raise rows.refusal(
            node, RefusalCause.INAPPLICABLE_OPTION, f"SUM(DISTINCT …): {reason}", "Give contribution_bounds_per_row."
        )
    argument = _numeric(node, distinct.expressions[0], rows)
    with rows.pointing(node, said_of("SUM(DISTINCT …)")):
        summed = conversion.summable(per_row(argument, named))
        return SumDistinct(argument=logic.only_where(summed, scope.condition))


def _average(node: exp.Expression, scope: SelectScope, requests: Requests) -> Derived:
    """Bind AVG as a sum around the middle of the bounds, which halves what one row can change, over a count."""
    named = scope.named(node)
    if named is not None and named.contribution_bounds_per_group is not None:
        return average_of_units(_number(node, scope), named, scope)
    total = _total(node, scope, requests)
    low, high = total.type.low or 0, total.type.high or 0
    if scope.condition is None:
        count = Count(argument=total.argument) if conversion.nullable(total.argument) else Count()
    else:
        # FILTER makes the argument NULL elsewhere, which alone is no reason to count anything but the condition.
        bare = bind_expression(node.this, scope.rows)
        count = Count(argument=total.argument) if conversion.nullable(bare) else rows_where(scope.condition)
    total, people = replace(total, origin=(low + high) // 2), _known_people(total, scope)
    return Average(total=total, count=count) if people is None else KnownMean(total=total, people=people)


def _known_people(total: Sum, scope: SelectScope) -> int | None:
    """Return how many people an average is over, if the catalog says it: over everybody, one row each and none NULL."""
    relation, table = scope.selection.relation, table_of(scope.selection.relation)
    everybody = isinstance(relation, ProtectedRows) and scope.selection.where is None and not any(scope.sets)
    promised = frozenset(column.name for column in table.columns if not column.nullable)
    whole = scope.condition is None and total.clamp is None and not conversion.nullable(total.argument, promised)
    return table.people if everybody and whole and not scope.keys else None


SUMS: Final[Mapping[type[exp.Expression], Aggregate]] = {exp.Sum: _sum, exp.Avg: _average}

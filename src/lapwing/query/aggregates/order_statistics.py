"""Bind MEDIAN, QUANTILE, PERCENTILE_CONT, MIN, MAX and their like: ranks in a distribution that is released once.

All order statistics of one argument are read off one tree of counts, so that any number of them costs what one does.
The tree's leaves are the argument's own steps where there are few. Else they are 1, 2, 5, 10, 20, … steps wide, the
finest of which there are at most 65,536 in a cell and 2²⁰ nodes in all cells: halving a leaf again and again adds
little to the error of a rank, which grows with the number of levels (from 4,096 leaves to 16,384 the standard deviation
by at most 15 %, and by 22 % for Laplace noise), but a leaf that is too wide for the data hides where they are. With 4
children a node and 4,096 leaves the error of a rank is within a tenth of the least for Gaussian noise, and within a
seventh for Laplace noise.

Dates are counted in days and timestamps in whole seconds; what is read off is written as a date or timestamp again.
"""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from math import prod
from typing import Final, cast

from sqlglot import exp

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.aggregates.scope import Aggregate, Requests, SelectScope
from lapwing.query.derivation import calendar
from lapwing.query.derivation.columns import Shape
from lapwing.query.derivation.node import Derived
from lapwing.query.derivation.noisy_trees import RankKind
from lapwing.query.derivation.ranked_values import OrderStatistic
from lapwing.query.derivation.rationals import shape_in_steps
from lapwing.query.expressions import conversion, logic, temporal
from lapwing.query.expressions.calls import bind_expression
from lapwing.query.expressions.expression import Expression, Literal, is_number
from lapwing.query.expressions.naming import as_number, said_of, written_name
from lapwing.query.expressions.rows import RowScope
from lapwing.query.expressions.types import Fixed, Type, describe, is_temporal
from lapwing.query.measures.distribution import Distribution, fixed_point
from lapwing.query.relations.contribution import per_row
from lapwing.query.text.privacy_options import NamedArguments

MOST_LEAVES: Final = 1 << 16
FEWEST_LEAVES: Final = 1 << 8
NODES_BY_CHOICE: Final = 1 << 20
MOST_NODES: Final = 1 << 22
"""How many nodes the distributions of a question may have in all its cells."""


def _ranked(share: Fraction, kind: RankKind) -> Aggregate:
    """Bind MEDIAN, MIN or MAX: a share of the rows that the name says."""

    def bind(node: exp.Expression, scope: SelectScope, _requests: Requests) -> Derived:
        scope.rows.only(node, "this")
        return _statistic(node, node.this, share, kind, scope)

    return bind


def _quantile(node: exp.Expression, scope: SelectScope, _requests: Requests) -> Derived:
    scope.rows.only(node, "this", "quantile")
    return _statistic(node, node.this, share_of(node, node.args.get("quantile"), scope.rows), "discrete", scope)


def _percentile(node: exp.Expression, scope: SelectScope, _requests: Requests) -> Derived:
    scope.rows.only(node, "this", "expression")
    kind: RankKind = "continuous" if isinstance(node, exp.PercentileCont) else "discrete"
    return _statistic(node, node.this, share_of(node, node.args.get("expression"), scope.rows), kind, scope)


def _within_group(node: exp.Expression, scope: SelectScope, _requests: Requests) -> Derived:
    """Bind PERCENTILE_CONT(q) WITHIN GROUP (ORDER BY x)."""
    rows, inner, order = scope.rows, node.this, node.expression
    if isinstance(inner, exp.Expression) and scope.named(inner):
        raise rows.refusal(
            inner,
            RefusalCause.INAPPLICABLE_OPTION,
            "WITHIN GROUP takes no named arguments",
            "Write PERCENTILE_CONT(x, 0.5, …).",
        )
    rows.only(node, "this", "expression")
    if type(inner) not in (exp.PercentileCont, exp.PercentileDisc) or not isinstance(order, exp.Order):
        raise rows.refusal(
            node,
            RefusalCause.FUNCTION_NOT_SUPPORTED,
            "WITHIN GROUP follows PERCENTILE_CONT or PERCENTILE_DISC",
            _PERCENTILE,
        )
    rows.only(inner, "this")
    rows.only(order, "expressions")
    if len(order.expressions) != 1:
        raise rows.refusal(
            node, RefusalCause.WRONG_ARGUMENT_COUNT, "WITHIN GROUP orders by one expression", _PERCENTILE
        )
    (term,) = order.expressions
    rows.only(term, "this", "desc", "nulls_first")
    share = share_of(inner, inner.this, rows)
    kind: RankKind = "continuous" if isinstance(inner, exp.PercentileCont) else "discrete"
    if term.args.get("desc"):
        if kind == "discrete":
            raise rows.refusal(
                term,
                RefusalCause.CLAUSE_NOT_SUPPORTED,
                "PERCENTILE_DISC is answered in ascending order",
                "Order by x, and use 1 - q.",
            )
        share = 1 - share
    return _statistic(inner, term.this, share, kind, scope)


_PERCENTILE = "Write PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x)."

ORDER_STATISTICS: Final[Mapping[type[exp.Expression], Aggregate]] = {
    exp.Median: _ranked(Fraction(1, 2), "continuous"),
    exp.Quantile: _quantile,
    exp.ApproxQuantile: _quantile,
    exp.PercentileCont: _percentile,
    exp.PercentileDisc: _percentile,
    exp.WithinGroup: _within_group,
    exp.Min: _ranked(Fraction(0), "extreme"),
    exp.Max: _ranked(Fraction(1), "extreme"),
}


def share_of(node: exp.Expression, argument: object, rows: RowScope) -> Fraction:
    """Return the share of rows that is asked for, a constant."""
    expression = bind_expression(argument, rows) if isinstance(argument, exp.Expression) else None
    value = expression.value if isinstance(expression, Literal) else None
    if not isinstance(value, Fraction) or not 0 <= value <= 1:
        name = _name(node, rows)
        raise rows.refusal(
            node,
            RefusalCause.NOT_CONSTANT,
            f"{name} needs a constant share of the rows, from 0 to 1",
            f"Write {name}(x, 0.9).",
        )
    return value


def _name(node: exp.Expression, rows: RowScope) -> str:
    """Return the name of an order statistic as the question spells it."""
    start, end = node.meta.get("start"), node.meta.get("end")
    if isinstance(start, int) and isinstance(end, int):
        return rows.text[start : end + 1].upper()
    return written_name(node) or node.sql_name() if isinstance(node, exp.Func) else node.key.upper()


def _statistic(node: exp.Expression, argument: object, share: Fraction, kind: RankKind, scope: SelectScope) -> Derived:
    rows = scope.rows
    if isinstance(argument, exp.Distinct) or not isinstance(argument, exp.Expression):
        raise rows.refusal(
            node,
            RefusalCause.WRONG_ARGUMENT_COUNT,
            f"{_name(node, rows)} takes one expression",
            f"Write {_name(node, rows)}(x).",
        )
    expression = bind_expression(argument, rows)
    if not is_number(expression.type) and not is_temporal(expression.type):
        reason = f"{_name(node, rows)} needs a number, a date or a timestamp, not {describe(expression.type)}"
        raise rows.refusal(node, RefusalCause.WRONG_TYPE, reason, as_number(describe(expression.type)))
    with rows.pointing(node, said_of(_name(node, rows))):
        named = scope.named(node)
        number = _in_whole_numbers(expression, named) if is_temporal(expression.type) else per_row(expression, named)
        counted = logic.only_where(conversion.summable(number), scope.condition)
    discrete = kind != "continuous" and isinstance(number.type, Fixed)
    shape: Shape = shape_in_steps(cast(Fixed, number.type).step) if discrete else "real"
    sets = scope.sets or (scope.keys,)  # each grouping set has cells by its own keys
    private = any(key.private for keys in sets for key in keys)
    cells = None if private else sum(prod(len(key.domain) for key in keys) for keys in sets)
    distribution = _distribution(counted, cells)
    statistic = OrderStatistic(distribution=distribution, share=share, kind=kind, shape=shape)
    return _as_time(statistic, expression.type) if is_temporal(expression.type) else statistic


def _in_whole_numbers(argument: Expression, named: NamedArguments | None) -> Expression:
    """Return a date in days, or a timestamp in seconds.

    Guarantee:
        It is an expression over one row with public bounds, to which the engine clamps the leaf of every row
        (`engines.duckdb.leaves`), so that the tree moves by what `stability` says of one of numbers.
    """
    if named is not None and named.contribution_bounds_per_row is not None:
        raise QueryRefused(
            "A date or timestamp takes no contribution_bounds_per_row",
            cause=RefusalCause.INAPPLICABLE_OPTION,
            remedy="Write " + conversion.clamp_written("DATE '2000-01-01'", "DATE '2030-12-31'") + ".",
        )
    return temporal.whole_number(argument)


def _as_time(statistic: OrderStatistic, kind: Type) -> Derived:
    """Write a number of days or seconds as what the argument is; between two dates are times of day, as in SQL."""
    if describe(kind) == "timestamp":
        return calendar.moment_of(replace(statistic, unit="seconds"))
    days = replace(statistic, unit="days")
    return calendar.midnights(days) if statistic.kind == "continuous" else calendar.date_of(days)


def _distribution(argument: Expression, cells: int | None) -> Distribution:
    """Return the finest tree that is allowed; of private keys nobody knows how many there are."""
    fixed_point(argument)  # or it is always NULL
    low, high = conversion.integers_of(argument)
    leaves = MOST_LEAVES
    while leaves > FEWEST_LEAVES and (cells is None or cells * leaves * 4 // 3 > NODES_BY_CHOICE):
        leaves //= 4
    return Distribution(argument=argument, width=_round_width(high - low + 1, leaves))


def _round_width(steps: int, leaves: int) -> int:
    """Return the least of 1, 2, 5, 10, 20, … in which so many steps are at most so many leaves."""
    unit = 1
    while True:
        for width in (unit, 2 * unit, 5 * unit):
            if -(-steps // width) <= leaves:
                return width
        unit *= 10


def check_nodes(distributions: tuple[Distribution, ...], cells: int | None) -> None:
    """Refuse trees of more nodes than an answer may hold.

    Raises:
        QueryRefused: If the question is not understood or not allowed.
    """
    nodes = sum(sum(measure.sizes) for measure in distributions) * (cells or 1)
    if nodes > MOST_NODES:
        raise QueryRefused(
            f"The quantiles of the query need {nodes:,} noisy counts, more than {MOST_NODES:,}",
            cause=RefusalCause.TOO_MANY_GROUPS,
            remedy="Group by fewer or coarser columns, or ask for fewer quantiles at a time.",
        )

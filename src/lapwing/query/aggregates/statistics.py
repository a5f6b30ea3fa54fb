"""Bind variances, deviations, covariances and correlations: sums, sums of products, and what follows from them.

A unit moves each of these sums by what `stability` says of a sum; the rest is post-processing (`moments`).
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final, Literal, cast

from sqlglot import exp

from lapwing.errors import RefusalCause
from lapwing.query.aggregates.approximate_bounds import within_bounds
from lapwing.query.aggregates.scope import Aggregate, Requests, SelectScope
from lapwing.query.derivation.moments import correlation, covariance, deviation, variance
from lapwing.query.derivation.node import Derived
from lapwing.query.expressions import arithmetic, conversion, logic
from lapwing.query.expressions.calls import bind_expression
from lapwing.query.expressions.casts import truth_as_number
from lapwing.query.expressions.expression import Expression, is_number
from lapwing.query.expressions.naming import as_number, name_of
from lapwing.query.expressions.rows import refused_as
from lapwing.query.expressions.types import Fixed, describe
from lapwing.query.measures.measures import Count, Sum


def _variance(*, sample: bool, root: bool = False) -> Aggregate:
    """Bind VAR_POP, VAR_SAMP, STDDEV_POP or STDDEV_SAMP."""

    def bind(node: exp.Expression, scope: SelectScope, requests: Requests) -> Derived:
        scope.rows.only(node, "this")
        value = _number(node.this, node, scope, requests)
        total = _sum(value, scope.condition)
        squares = _product(value, value, scope.condition)
        count = Count(argument=total.argument) if conversion.nullable(total.argument) else Count()
        return (deviation if root else variance)(total, squares, count, sample=sample)

    return bind


def _joint(kind: Literal["population", "sample", "correlation"]) -> Aggregate:
    """Bind COVAR_POP, COVAR_SAMP or CORR, over the rows where neither argument is NULL."""

    def bind(node: exp.Expression, scope: SelectScope, requests: Requests) -> Derived:
        scope.rows.only(node, "this", "expression")
        first, second = (_number(part, node, scope, requests) for part in (node.this, node.expression))
        present = _all_present([first, second], scope.condition)
        totals = (_sum(first, present), _sum(second, present))
        products = _product(first, second, present)
        count = Count(argument=products.argument) if conversion.nullable(products.argument) else Count()
        if kind == "correlation":
            squares = (_product(first, first, present), _product(second, second, present))
            return correlation(*totals, *squares, products, count)
        return covariance(*totals, products, count, sample=kind == "sample")

    return bind


def _number(argument: exp.Expression, node: exp.Expression, scope: SelectScope, requests: Requests) -> Expression:
    """Bind an argument, inside the bounds that the aggregate says, as whole steps that can be summed."""
    rows = scope.rows
    value = truth_as_number(bind_expression(argument, rows))
    if not is_number(value.type):
        kind = describe(value.type)
        raise rows.refusal(
            node, RefusalCause.WRONG_TYPE, f"{name_of(node)} needs a number, not {kind}", as_number(kind)
        )
    return conversion.summable(within_bounds(value, scope.named(node), scope.condition, requests))


def _all_present(values: Sequence[Expression], condition: Expression | None) -> Expression | None:
    """Return the condition that holds where a FILTER does and no value is NULL."""
    every = condition
    for value in values:
        if conversion.nullable(value):
            present = logic.negation(logic.is_null(value))
            every = present if every is None else logic.both(every, present)
    return every


def _middle(value: Expression) -> int:
    low, high = conversion.integers_of(value)
    return (low + high) // 2


def _sum(value: Expression, condition: Expression | None) -> Sum:
    """Return the sum around the middle of the bounds, where one row changes it least."""
    return Sum(argument=logic.only_where(value, condition), origin=_middle(value))


def _product(first: Expression, second: Expression, condition: Expression | None) -> Sum:
    """Return the sum of the product of two deviations from the middles of their bounds."""
    reason = "The square of the numbers is too fine or too large to be summed"
    with refused_as(lambda refused: refused.pointing_at(None, reason)):
        product = conversion.summable(arithmetic.multiply(_deviation(first), _deviation(second)))
    whole = cast(Fixed, product.type)
    return Sum(argument=logic.only_where(product, condition), origin=((whole.low or 0) + (whole.high or 0)) // 2)


def _deviation(value: Expression) -> Expression:
    step = cast(Fixed, value.type).step
    return arithmetic.subtract(value, conversion.number(Fraction(_middle(value)) * step))


STATISTICS: Final[Mapping[type[exp.Expression], Aggregate]] = {
    exp.VariancePop: _variance(sample=False),
    exp.Variance: _variance(sample=True),
    exp.StddevPop: _variance(sample=False, root=True),
    exp.StddevSamp: _variance(sample=True, root=True),
    exp.Stddev: _variance(sample=True, root=True),
    exp.CovarPop: _joint("population"),
    exp.CovarSamp: _joint("sample"),
    exp.Corr: _joint("correlation"),
}

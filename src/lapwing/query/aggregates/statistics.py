"""Bind variances, deviations, covariances and correlations: sums, sums of products, and what follows from them.

A unit moves each of these sums by what `stability` says of a sum; the rest is post-processing (`moments`).
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import cast

from sqlglot import exp

from lapwing.errors import QueryRefused
from lapwing.query.aggregates.searches import Searching
from lapwing.query.derivation.derived import Derived
from lapwing.query.derivation.moments import correlation, covariance, deviation, variance
from lapwing.query.expressions import arithmetic, conversion, functions
from lapwing.query.expressions.calls import bind_expression
from lapwing.query.expressions.expression import Expression, is_number
from lapwing.query.expressions.naming import as_number, name_of
from lapwing.query.expressions.rows import Rows
from lapwing.query.expressions.types import Fixed, describe
from lapwing.query.measures import Count, Sum
from lapwing.query.relations.per_unit import only_where
from lapwing.query.text.options import NamedArguments


def bind_variance(
    node: exp.Expression,
    rows: Rows,
    condition: Expression | None,
    named: NamedArguments | None,
    searching: Searching,
    *,
    sample: bool,
    root: bool,
) -> Derived:
    """Bind VAR_POP, VAR_SAMP, STDDEV_POP or STDDEV_SAMP."""
    rows.only(node, "this")
    value = conversion.summable(searching.inside(_number(node.this, node, rows), named, condition))
    total = _sum(value, condition)
    squares = _product(value, value, condition)
    count = Count(argument=total.argument) if conversion.nullable(total.argument) else Count()
    return (deviation if root else variance)(total, squares, count, sample=sample)


def bind_covariance(
    node: exp.Expression,
    rows: Rows,
    condition: Expression | None,
    named: NamedArguments | None,
    searching: Searching,
    *,
    kind: str,
) -> Derived:
    """Bind COVAR_POP, COVAR_SAMP or CORR, over the rows where neither argument is NULL."""
    rows.only(node, "this", "expression")
    numbers = [_number(part, node, rows) for part in (node.this, node.expression)]
    first, second = (conversion.summable(searching.inside(number, named, condition)) for number in numbers)
    known = _all_known([first, second], condition)
    totals = (_sum(first, known), _sum(second, known))
    products = _product(first, second, known)
    counted = products.argument
    count = Count(argument=counted) if conversion.nullable(counted) else Count()
    if kind == "correlation":
        squares = (_product(first, first, known), _product(second, second, known))
        return correlation(*totals, *squares, products, count)
    return covariance(*totals, products, count, sample=kind == "sample")


def _number(argument: exp.Expression, node: exp.Expression, rows: Rows) -> Expression:
    value = bind_expression(argument, rows)
    if not is_number(value.type):
        kind = describe(value.type)
        raise rows.refusal(node, f"{name_of(node)} needs a number, not {kind}", as_number(kind))
    return value


def _all_known(values: Sequence[Expression], condition: Expression | None) -> Expression | None:
    """Return the condition that holds where a FILTER does and no value is NULL."""
    known = condition
    for value in values:
        if conversion.nullable(value):
            present = functions.negation(functions.is_null(value))
            known = present if known is None else functions.both(known, present)
    return known


def _middle(value: Expression) -> int:
    low, high = conversion.integers_of(value)
    return (low + high) // 2


def _sum(value: Expression, condition: Expression | None) -> Sum:
    """Return the sum around the middle of the bounds, where one row changes it least."""
    return Sum(argument=only_where(value, condition), origin=_middle(value))


def _product(first: Expression, second: Expression, condition: Expression | None) -> Sum:
    """Return the sum of the product of two deviations from the middles of their bounds."""
    try:
        product = conversion.summable(arithmetic.multiply(_deviation(first), _deviation(second)))
    except QueryRefused as refused:
        raise QueryRefused(
            "The square of the numbers is too fine or too large to be summed", remedy=refused.remedy
        ) from None
    whole = cast(Fixed, product.type)
    return Sum(argument=only_where(product, condition), origin=((whole.low or 0) + (whole.high or 0)) // 2)


def _deviation(value: Expression) -> Expression:
    step = cast(Fixed, value.type).step
    return arithmetic.subtract(value, conversion.number(Fraction(_middle(value)) * step))

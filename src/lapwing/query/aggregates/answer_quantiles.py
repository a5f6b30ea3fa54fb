"""Bind MEDIAN(x), QUANTILE_CONT(x, 0.9) and PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY x) over the rows of a result.

They are computed of released numbers, and cost nothing more. Over the rows of people see `order_statistics`.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Final

from sqlglot import exp

from lapwing.errors import RefusalCause
from lapwing.query.aggregates.order_statistics import share_of
from lapwing.query.derivation.columns import NUMERIC
from lapwing.query.derivation.constant_value import ConstantValue
from lapwing.query.derivation.node import Derived
from lapwing.query.derivation.window_values import WindowValue, over_in
from lapwing.query.expressions.naming import name_of
from lapwing.query.expressions.rows import RowScope
from lapwing.query.text.literals import literal

QUANTILES: Final[Mapping[type[exp.Expression], tuple[str, bool]]] = {
    exp.Median: ("", True),
    exp.PercentileCont: ("expression", True),
    exp.Quantile: ("quantile", False),
    exp.PercentileDisc: ("expression", False),
}
"""The argument that says the share of the rows, and whether a value between two rows may be shown."""


def bind_quantile(
    node: exp.Expression, partition: tuple[Derived, ...], rows: RowScope, derived: Callable[[exp.Expression], Derived]
) -> Derived:
    """Bind a quantile of the rows of a partition.

    Args:
        node: The window, which has no order of its own.
    """
    inner = node.this
    named, between = QUANTILES[type(inner)]
    name = name_of(inner)
    if node.args.get("order") is not None or node.args.get("spec") is not None:
        reason = f"{name} over the result is of all rows of a group"
        raise rows.refusal(node, RefusalCause.WINDOW_NOT_SUPPORTED, reason, "Leave ORDER BY and the frame out.")
    rows.only(inner, "this", *([named] if named else []))
    share = share_of(inner, inner.args.get(named), rows) if named else Fraction(1, 2)
    argument = derived(inner.this)
    if argument.shape not in NUMERIC or isinstance(argument, ConstantValue):
        reason = f"{name} OVER needs a number of the result, not {argument.shape}"
        raise rows.refusal(inner, RefusalCause.WRONG_TYPE, reason, "Write MEDIAN(n), where n is a number.")
    if any(over_in(part) for part in (argument, *partition)):
        reason = "A window function stands inside another"
        raise rows.refusal(node, RefusalCause.TWICE_OVER_ANSWER, reason, "Ask for each by itself.")
    return WindowValue(
        function="quantile",
        argument=argument,
        partition=partition,
        order=(),
        shape="real" if between else argument.shape,
        share=share,
        between=between,
    )


def in_plain_words(node: exp.Expression, rows: RowScope) -> exp.Expression:
    """Return PERCENTILE_CONT(q) WITHIN GROUP (ORDER BY x) as PERCENTILE_CONT(x, q); with DESC the share is 1 − q.

    Raises:
        QueryRefused: If it orders by more than one value.
    """
    rows.only(node, "this", "expression")
    inner, order = node.this, node.expression
    terms = order.expressions if isinstance(order, exp.Order) else []
    if not isinstance(inner, exp.PercentileCont | exp.PercentileDisc) or len(terms) != 1:
        reason = f"{name_of(inner)} is not supported over the rows of the result"
        raise rows.refusal(node, RefusalCause.WINDOW_NOT_SUPPORTED, reason, "Write MEDIAN(n), where n is a number.")
    rows.only(inner, "this")
    rows.only(order, "expressions")
    (term,) = terms
    rows.only(term, "this", "desc", "nulls_first")
    share = share_of(inner, inner.this, rows)
    if term.args.get("desc"):
        if isinstance(inner, exp.PercentileDisc):
            reason = "PERCENTILE_DISC is answered in ascending order"
            raise rows.refusal(term, RefusalCause.CLAUSE_NOT_SUPPORTED, reason, "Order by x, and use 1 - q.")
        share = 1 - share
    kind = exp.PercentileCont if isinstance(inner, exp.PercentileCont) else exp.PercentileDisc
    return kind(this=term.this.copy(), expression=literal(share))

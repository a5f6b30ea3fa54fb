"""Aggregates of no rows, and of the row of NULLs that an outer join makes."""

from typing import Final

from sqlglot import exp

ZERO: Final = (exp.Count, exp.CountIf, exp.ApproxDistinct, exp.RegrCount)
"""Aggregates that are 0 of no rows."""
NULL: Final = (
    exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Median, exp.Quantile, exp.ApproxQuantile, exp.Stddev, exp.StddevPop,
    exp.StddevSamp, exp.Variance, exp.VariancePop,
)  # fmt: skip
"""Aggregates that are NULL of no rows."""
_OF_ANY: Final = (exp.Binary, exp.Unary, exp.Cast, exp.Paren, exp.Between, exp.In)
_OF_ALL: Final = (exp.And, exp.Or, exp.Distinct, exp.Coalesce)


def is_null(node: exp.Expr) -> bool:
    """Tell whether a value is NULL for certain where all columns are."""
    if isinstance(node, exp.Column):
        return True
    if isinstance(node, exp.Is | exp.NullSafeEQ | exp.NullSafeNEQ):
        return False
    parts = list(node.iter_expressions())
    if isinstance(node, _OF_ALL):
        return bool(parts) and all(map(is_null, parts))
    if isinstance(node, exp.Between | exp.In | exp.Cast):
        return is_null(node.this)
    return isinstance(node, _OF_ANY) and any(map(is_null, parts))


def passes_over(node: exp.Expr) -> bool:
    """Tell whether an aggregate passes over a row whose columns are all NULL."""
    inner = node.this if isinstance(node, exp.Filter) else node
    return isinstance(inner, (*ZERO, *NULL)) and isinstance(inner.this, exp.Expression) and is_null(inner.this)

"""Bind window functions over the rows of the answer, such as a share of the total, SUM(COUNT(*)) OVER (), or a rank."""

from collections.abc import Callable, Mapping

from sqlglot import exp

from lapwing.query.derivation.derived import NUMERIC, Derived, Order, Over, OverFunction
from lapwing.query.derivation.over import over_in
from lapwing.query.expressions.rows import Rows, only, refusal

_RANKS: Mapping[type[exp.Expression], OverFunction] = {
    exp.Rank: "rank",
    exp.DenseRank: "dense_rank",
    exp.RowNumber: "row_number",
}


def bind_over(node: exp.Expression, rows: Rows, derived: Callable[[exp.Expression], Derived]) -> Derived:
    """Bind function OVER (PARTITION BY … ORDER BY …) over released rows."""
    only(rows, node, "this", "partition_by", "order", "over")
    inner, clause = node.this, node.args.get("order")
    partition = tuple(derived(part) for part in node.args.get("partition_by") or ())
    order = () if clause is None else tuple(_term(term, rows, derived) for term in clause.expressions)
    function, argument = _function(inner, rows, derived)
    ranks = type(inner) in _RANKS
    if ranks and not order:
        raise refusal(rows, node, f"{inner.key.upper()} needs an order", "Write OVER (ORDER BY COUNT(*) DESC).")
    if order and not ranks:
        raise refusal(rows, node, "A running total is not answered over the answer", "Leave ORDER BY out of OVER.")
    inside = [*partition, *(term.value for term in order), *([] if argument is None else [argument])]
    if any(True for value in inside for _ in over_in(value)):
        raise refusal(rows, node, "A window function stands inside another", "Ask for each by itself.")
    shape = "integer" if argument is None else argument.shape
    return Over(function=function, argument=argument, partition=partition, order=order, shape=shape)


def _function(
    inner: exp.Expression, rows: Rows, derived: Callable[[exp.Expression], Derived]
) -> tuple[OverFunction, Derived | None]:
    if type(inner) in _RANKS:
        only(rows, inner)
        return _RANKS[type(inner)], None
    if type(inner) is exp.Count and type(inner.this) is exp.Star:
        only(rows, inner, "this", "big_int")
        return "rows", None
    if type(inner) is not exp.Sum:
        remedy = "Use SUM(COUNT(*)) OVER (), COUNT(*) OVER (), RANK, DENSE_RANK and ROW_NUMBER."
        raise refusal(rows, inner, f"{inner.key.upper()} OVER is not answered over the answer", remedy)
    only(rows, inner, "this")
    argument = derived(inner.this)
    if argument.shape not in NUMERIC:
        raise refusal(rows, inner, f"SUM needs a number, not {argument.shape}")
    return "sum", argument


def _term(node: exp.Expression, rows: Rows, derived: Callable[[exp.Expression], Derived]) -> Order:
    only(rows, node, "this", "desc", "nulls_first")
    value = derived(node.this)
    return Order(value=value, descending=bool(node.args.get("desc")), nulls_first=bool(node.args.get("nulls_first")))

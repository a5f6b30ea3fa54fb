"""Bind window functions over the rows of the answer: shares of a total, running totals, neighbours, ranks."""

from collections.abc import Callable, Mapping
from fractions import Fraction

from sqlglot import exp

from lapwing.errors import RefusalCause
from lapwing.query.aggregates.answer_quantiles import QUANTILES, bind_quantile
from lapwing.query.aggregates.answer_shares import SHARES, bind_share
from lapwing.query.aggregates.joined_texts import joined_texts
from lapwing.query.aggregates.result_aggregates import in_known_words
from lapwing.query.derivation.columns import NUMERIC
from lapwing.query.derivation.constant_value import ConstantValue
from lapwing.query.derivation.node import Derived, OutputOrder
from lapwing.query.derivation.window_values import OverFunction, RowSpan, WindowValue, over_in
from lapwing.query.expressions.naming import name_of
from lapwing.query.expressions.rows import RowScope
from lapwing.query.from_clause.window_frames import bind_frame

Bind = Callable[[exp.Expression], Derived]

_RANKS: Mapping[type[exp.Expression], OverFunction] = {
    exp.Rank: "rank",
    exp.DenseRank: "dense_rank",
    exp.RowNumber: "row_number",
}
_OF_NUMBERS: Mapping[type[exp.Expression], OverFunction] = {
    exp.Sum: "sum",
    exp.Avg: "average",
    exp.Min: "least",
    exp.Max: "greatest",
}
_NEIGHBOURS: Mapping[type[exp.Expression], int] = {exp.Lag: -1, exp.Lead: 1}
_MOST_ROWS = 10**6
_RUNNING = RowSpan(end=0, peers=True)
_ANSWERED = "Use SUM, AVG, MIN, MAX, MEDIAN, COUNT or STRING_AGG, LAG or LEAD, FIRST_VALUE, ROW_NUMBER, RANK or NTILE."


def bind_over(node: exp.Expression, rows: RowScope, derived: Bind) -> Derived:
    """Bind function OVER (PARTITION BY … ORDER BY … frame) over released rows."""
    rows.only(node, "this", "partition_by", "order", "over", "spec")
    inner, clause = node.this, node.args.get("order")
    if isinstance(inner, SHARES):
        return bind_share(node, rows, lambda other: bind_over(other, rows, derived))
    if (
        isinstance(inner, exp.Filter | exp.CountIf | exp.WithinGroup)
        and (other := in_known_words(inner, rows)) is not None
    ):
        node = node.copy()
        node.set("this", other)
        inner = other
    if type(inner) is exp.LastValue and clause is not None and (spec := node.args.get("spec")) is not None:
        node = _from_the_end(node, spec, clause, rows)
        inner, clause = node.this, node.args["order"]
    if clause is not None:
        rows.only(clause, "expressions")
    partition = tuple(derived(part) for part in node.args.get("partition_by") or ())
    order = () if clause is None else tuple(_term(term, rows, derived) for term in clause.expressions)
    if isinstance(inner, exp.IgnoreNulls | exp.RespectNulls):
        raise rows.refusal(
            node, RefusalCause.WINDOW_NOT_SUPPORTED, "IGNORE NULLS is not supported over the result", "Leave it out."
        )
    if type(inner) in QUANTILES:
        return bind_quantile(node, partition, rows, derived)
    if isinstance(inner, exp.GroupConcat):
        return joined_texts(node, inner, partition, rows, derived)
    function, argument = _function(inner, rows, derived)
    span = _span(node, bool(order), rows)
    inside = [*partition, *(term.value for term in order), *([] if argument is None else [argument])]
    if any(over_in(value) for value in inside):
        reason = "A window function stands inside another"
        raise rows.refusal(node, RefusalCause.TWICE_OVER_ANSWER, reason, "Ask for each by itself.")
    if function == "distinct" and span != RowSpan():
        raise rows.refusal(node, RefusalCause.INVALID_FRAME, "COUNT(DISTINCT …) takes no order here", "Leave it out.")
    counts = function in ("values", "distinct")
    shape = "integer" if argument is None or counts else "real" if function == "average" else argument.shape
    if span == RowSpan():  # all rows, in whatever order
        order = order if function in ("row_at", *_RANKS.values()) else ()
    return WindowValue(function=function, argument=argument, partition=partition, order=order, shape=shape, span=span)


def _from_the_end(node: exp.Expression, spec: exp.Expression, clause: exp.Expression, rows: RowScope) -> exp.Expression:
    """Return the last value of all rows of a part as the first value in the other order."""
    if not _is_whole(spec, rows):
        return node
    other = node.copy()
    other.set("this", exp.FirstValue(this=node.this.this.copy()))
    other.this.meta.update(node.this.meta)
    for term, turned in zip(clause.expressions, other.args["order"].expressions, strict=True):
        turned.set("desc", not term.args.get("desc"))
        turned.set("nulls_first", not term.args.get("nulls_first"))
    return other


def _span(node: exp.Expression, ordered: bool, rows: RowScope) -> RowSpan:
    """Return which rows a function sees, having refused the frames and orders that it does not take."""
    inner, spec = node.this, node.args.get("spec")
    if spec is not None and _is_whole(spec, rows):  # all rows: as without a frame, where there is no order, or a rank
        spec = None if not ordered or type(inner) in _RANKS or type(inner) in _NEIGHBOURS else spec
    name = name_of(inner).split()[-1]
    placed = type(inner) in _RANKS or type(inner) in _NEIGHBOURS
    if not ordered and (placed or spec is not None or type(inner) is exp.FirstValue):
        raise rows.refusal(
            node, RefusalCause.WINDOW_NEEDS_ORDER, f"{name} needs an order", "Write OVER (ORDER BY COUNT(*) DESC)."
        )
    if placed and spec is not None:
        raise rows.refusal(node, RefusalCause.INVALID_FRAME, f"{name} takes no frame", "Leave it out.")
    if type(inner) in _NEIGHBOURS:
        distance = _NEIGHBOURS[type(inner)] * _offset(inner, rows)
        return RowSpan(start=distance, end=distance)
    if placed or not ordered:
        return RowSpan()
    if not isinstance(node, exp.Window):
        raise ValueError("a frame is of a window")
    frame, _ = bind_frame(spec, node, (), _MOST_ROWS, rows)
    span = _RUNNING if frame is None else RowSpan(start=frame.start, end=frame.end, peers=frame.unit == "range")
    if span.start is None and span.end is None:
        span = RowSpan()
    if span.start is not None and type(inner) in (exp.Min, exp.Max, exp.FirstValue):
        raise rows.refusal(
            node, RefusalCause.INVALID_FRAME, f"A frame of {name} starts at the first row", "Write UNBOUNDED PRECEDING."
        )
    return span


def _is_whole(spec: exp.Expression, rows: RowScope) -> bool:
    """Tell whether a frame is ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING."""
    rows.only(spec, "kind", "start", "start_side", "end", "end_side")
    sides = [str(spec.args.get(name)).upper() for name in ("start", "start_side", "end", "end_side")]
    kind = str(spec.args.get("kind")).upper()
    return kind in ("ROWS", "RANGE") and sides == ["UNBOUNDED", "PRECEDING", "UNBOUNDED", "FOLLOWING"]


def _offset(inner: exp.Expression, rows: RowScope) -> int:
    """Return how many rows away LAG and LEAD look."""
    node = inner.args.get("offset")
    if node is None:
        return 1
    text = str(node.this) if isinstance(node, exp.Literal) and not node.is_string else ""
    if not text.isdecimal() or Fraction(text) > _MOST_ROWS:
        raise rows.refusal(
            inner,
            RefusalCause.NOT_CONSTANT,
            f"{name_of(inner)} takes a whole number of rows",
            "Write LAG(COUNT(*), 1).",
        )
    return int(text)


def _function(inner: exp.Expression, rows: RowScope, derived: Bind) -> tuple[OverFunction, Derived | None]:
    if type(inner) in _RANKS:
        rows.only(inner)
        return _RANKS[type(inner)], None
    if type(inner) is exp.Count:
        return _counted(inner, rows, derived)
    function = _OF_NUMBERS.get(type(inner), "row_at" if type(inner) in (*_NEIGHBOURS, exp.FirstValue) else None)
    if function is None:
        raise rows.refusal(
            inner,
            RefusalCause.WINDOW_NOT_SUPPORTED,
            f"{name_of(inner)} is not supported over the rows of the result",
            _ANSWERED,
        )
    rows.only(inner, "this", *(["offset"] if type(inner) in _NEIGHBOURS else []))
    argument = derived(inner.this)
    sorts = function in ("least", "greatest") and argument.shape in ("text", "date", "timestamp")
    if (argument.shape not in NUMERIC and function != "row_at" and not sorts) or isinstance(argument, ConstantValue):
        raise rows.refusal(
            inner,
            RefusalCause.WRONG_TYPE,
            f"{name_of(inner)} OVER needs a number of the result, not {argument.shape}",
            _ANSWERED,
        )
    return function, argument


def _counted(inner: exp.Expression, rows: RowScope, derived: Bind) -> tuple[OverFunction, Derived | None]:
    """Bind COUNT over rows of a result: all of them, those with a value, or the different values."""
    rows.only(inner, "this", "big_int")
    if type(inner.this) is exp.Star:
        rows.only(inner.this)
        return "rows", None
    if not isinstance(inner.this, exp.Distinct):
        return "values", derived(inner.this)
    rows.only(inner.this, "expressions")
    if len(inner.this.expressions) != 1:
        reason = "COUNT(DISTINCT …) over a result takes one column"
        raise rows.refusal(inner, RefusalCause.DISTINCT_NOT_SUPPORTED, reason, "Count each, or DISTINCT rows inside.")
    return "distinct", derived(inner.this.expressions[0])


def _term(node: exp.Expression, rows: RowScope, derived: Bind) -> OutputOrder:
    rows.only(node, "this", "desc", "nulls_first")
    value = derived(node.this)
    return OutputOrder(
        value=value, descending=bool(node.args.get("desc")), nulls_first=bool(node.args.get("nulls_first"))
    )

"""What may stand before OVER: each window function's arguments and type, given the most rows that it sees."""

from collections.abc import Mapping
from fractions import Fraction
from typing import cast

from sqlglot import exp

from lapwing.errors import RefusalCause
from lapwing.query.expressions import conversion, logic
from lapwing.query.expressions.calls import bind_expression
from lapwing.query.expressions.expression import Expression, Literal
from lapwing.query.expressions.rows import RowScope
from lapwing.query.expressions.types import Real
from lapwing.query.from_clause.unit_aggregates import AGGREGATES, BoundCall, Rule, UnitCall, plain_name, without_filter

RANKED = {"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead"}
"""The functions that need an order, and take no frame."""
OF_ONE_ROW = {"first_value", "last_value", "nth_value"}
"""The functions that give the value of one row of the frame."""
_SHIFTED = {"lag", "lead"}


def called_by(window: exp.Window) -> str:
    """Return the name of the function that a window calls, for people."""
    node = window.this
    while isinstance(node, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        node = node.this
    return plain_name(node)


def function_of(window: exp.Window, rows: RowScope) -> tuple[exp.Expression, Expression | None, bool]:
    """Return the function that a window calls, the condition of its FILTER, and whether it passes over NULL."""
    (node, where), ignores = without_filter(window.this, rows), False
    if isinstance(node, exp.IgnoreNulls | exp.RespectNulls):
        rows.only(node, "this")
        node, ignores = node.this, isinstance(node, exp.IgnoreNulls)
    kind = name_in_plan(node)
    if kind is None:
        raise rows.refusal(
            window, RefusalCause.WINDOW_NOT_SUPPORTED, f"{plain_name(node)} is not supported as a window", _ANSWERED
        )
    if where is not None and kind in RANKED | OF_ONE_ROW:
        raise rows.refusal(
            window,
            RefusalCause.FILTER_NOT_SUPPORTED,
            f"{plain_name(node)} takes no FILTER",
            "Filter the rows in a subquery first.",
        )
    if ignores and kind not in OF_ONE_ROW | _SHIFTED:
        raise rows.refusal(
            window, RefusalCause.WINDOW_NOT_SUPPORTED, f"{plain_name(node)} takes no IGNORE NULLS", "Leave it out."
        )
    return node, where, ignores


_ANSWERED = (
    "Use ROW_NUMBER, RANK, DENSE_RANK, PERCENT_RANK, CUME_DIST, NTILE, LAG, LEAD, FIRST_VALUE, LAST_VALUE, NTH_VALUE, "
    "COUNT, COUNT_IF, SUM, AVG, MIN, MAX, BOOL_AND, BOOL_OR."
)


def name_in_plan(node: exp.Expression) -> str | None:
    """Return the name that plans give to a function, None if it is not answered."""
    rule = WINDOW_FUNCTIONS.get(type(node))
    return None if rule is None else rule[0]


# ---- numbers and ranks ----------------------------------------------------------------------------------------------


def _rank(call: UnitCall) -> BoundCall:
    call.rows.only(call.node)
    return "", (), conversion.fixed(Fraction(1), 1, call.most)


def _share(call: UnitCall) -> BoundCall:
    call.rows.only(call.node)
    return "", (), Real(low=Fraction(0), high=Fraction(1))


def _ntile(call: UnitCall) -> BoundCall:
    call.rows.only(call.node, "this")
    if call.node.this is None:
        raise call.rows.refusal(
            call.node, RefusalCause.INVALID_ARGUMENT, "NTILE takes a whole number of tiles", "Write NTILE(4)."
        )
    tiles = _whole(call.node.this, call, "tiles", 1, 10**6)
    return "", (tiles,), conversion.fixed(Fraction(1), 1, min(call.most, int(cast(Fraction, tiles.value))))


def _whole(node: exp.Expression, call: UnitCall, what: str, least: int, most: int) -> Literal:
    expression = bind_expression(node, call.rows)
    number = expression.value if isinstance(expression, Literal) else None
    if not isinstance(number, Fraction) or number.denominator != 1 or not least <= number <= most:
        limit = f"at most {most}" if least == 0 else f"from {least} to {most}"
        raise call.rows.refusal(
            call.node, RefusalCause.INVALID_ARGUMENT, f"{call.name} takes a whole number of {what}, {limit}"
        )
    return cast(Literal, expression)


# ---- values of other rows -------------------------------------------------------------------------------------------


def _shifted(call: UnitCall) -> BoundCall:
    node, rows = call.node, call.rows
    rows.only(node, "this", "offset", "default")
    value = bind_expression(node.this, rows)
    offset = node.args.get("offset")
    step = conversion.number(Fraction(1)) if offset is None else _whole(offset, call, "rows", 0, call.most)
    default = node.args.get("default")
    if default is None:
        return "", (value, step), value.type
    value, other = conversion.alike((value, bind_expression(default, rows)))
    if not isinstance(other, Literal):
        raise rows.refusal(node, RefusalCause.NOT_CONSTANT, f"The default of {call.name} must be a constant")
    return "", (value, step, other), logic.hull((value, other))


def _of_one_row(call: UnitCall) -> BoundCall:
    call.rows.only(call.node, "this")
    value = bind_expression(call.node.this, call.rows)
    return "", (value,), value.type


def _nth(call: UnitCall) -> BoundCall:
    node = call.node
    call.rows.only(node, "this", "offset")
    if node.args.get("offset") is None:
        raise call.rows.refusal(
            node, RefusalCause.INVALID_ARGUMENT, "NTH_VALUE takes the number of a row", "Write NTH_VALUE(x, 2)."
        )
    value = bind_expression(node.this, call.rows)
    return "", (value, _whole(node.args["offset"], call, "rows", 1, call.most)), value.type


WINDOW_FUNCTIONS: Mapping[type[exp.Expression], tuple[str, Rule]] = {
    exp.RowNumber: ("row_number", _rank),
    exp.Rank: ("rank", _rank),
    exp.DenseRank: ("dense_rank", _rank),
    exp.PercentRank: ("percent_rank", _share),
    exp.CumeDist: ("cume_dist", _share),
    exp.Ntile: ("ntile", _ntile),
    exp.Lag: ("lag", _shifted),
    exp.Lead: ("lead", _shifted),
    exp.FirstValue: ("first_value", _of_one_row),
    exp.LastValue: ("last_value", _of_one_row),
    exp.NthValue: ("nth_value", _nth),
    **AGGREGATES,
}

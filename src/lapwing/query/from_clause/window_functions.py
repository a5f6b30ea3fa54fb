"""What may stand before OVER: each window function's arguments and type, given the most rows that it sees.

Sums are of integers and exact, so that they do not depend on the order of the rows; their bounds are those of as many
rows as a frame holds.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import cast

from sqlglot import exp

from lapwing.query.expressions import conversion, functions
from lapwing.query.expressions.calls import bind_expression
from lapwing.query.expressions.expression import Expression, Literal, is_number
from lapwing.query.expressions.naming import name_of
from lapwing.query.expressions.rows import RowScope
from lapwing.query.expressions.types import BOOLEAN, Fixed, Real, Type, describe
from lapwing.query.from_clause.conditions import bound_condition
from lapwing.query.from_clause.groupings import one_where, only_where

Bound = tuple[str, tuple[Expression, ...], Type]

RANKED = {"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead"}
"""The functions that need an order, and take no frame."""
OF_ONE_ROW = {"first_value", "last_value", "nth_value"}
"""The functions that give the value of one row of the frame."""
_SHIFTED = {"lag", "lead"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """The function before OVER.

    Args: where: the condition of its FILTER; most: the most rows that it sees.
    """

    node: exp.Expression
    where: Expression | None
    most: int
    rows: RowScope

    @property
    def name(self) -> str:
        """The name of the function, for people."""
        return _plain(self.node)


def called_by(window: exp.Window) -> str:
    """Return the name of the function that a window calls, for people."""
    node = window.this
    while isinstance(node, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        node = node.this
    return _plain(node)


def _plain(node: exp.Expression) -> str:
    return name_of(node).removeprefix("The function ").removeprefix("The aggregate ")


def function_of(window: exp.Window, rows: RowScope) -> tuple[exp.Expression, Expression | None, bool]:
    """Return the function that a window calls, the condition of its FILTER, and whether it passes over NULL."""
    node, where, ignores = window.this, None, False
    if isinstance(node, exp.Filter):
        rows.only(node, "this", "expression")
        rows.only(node.expression, "this")
        where = bound_condition(node.expression.this, rows, "FILTER")
        node = node.this
    if isinstance(node, exp.IgnoreNulls | exp.RespectNulls):
        rows.only(node, "this")
        node, ignores = node.this, isinstance(node, exp.IgnoreNulls)
    kind = name_in_plan(node)
    if kind is None:
        raise rows.refusal(window, f"{_plain(node)} is not answered as a window", _ANSWERED)
    if where is not None and kind in RANKED | OF_ONE_ROW:
        raise rows.refusal(window, f"{_plain(node)} takes no FILTER", "Filter the rows in a subquery first.")
    if ignores and kind not in OF_ONE_ROW | _SHIFTED:
        raise rows.refusal(window, f"{_plain(node)} takes no IGNORE NULLS", "Leave it out.")
    return node, where, ignores


_ANSWERED = (
    "Use ROW_NUMBER, RANK, DENSE_RANK, PERCENT_RANK, CUME_DIST, NTILE, LAG, LEAD, FIRST_VALUE, LAST_VALUE, NTH_VALUE, "
    "COUNT, COUNT_IF, SUM, AVG, MIN, MAX, BOOL_AND, BOOL_OR."
)


def name_in_plan(node: exp.Expression) -> str | None:
    """Return the name that plans give to a function, None if it is not answered."""
    found = _FUNCTIONS.get(type(node))
    return None if found is None else found[0]


def bind_function(window: exp.Window, called: Called) -> Bound:
    """Bind the function before OVER: its name in plans, its arguments and its type."""
    name, rule = _FUNCTIONS[type(called.node)]
    with called.rows.pointing(window):
        function, arguments, kind = rule(called)
    return function or name, arguments, kind


# ---- numbers and ranks ----------------------------------------------------------------------------------------------


def _rank(called: Called) -> Bound:
    called.rows.only(called.node)
    return "", (), conversion.fixed(Fraction(1), 1, called.most)


def _share(called: Called) -> Bound:
    called.rows.only(called.node)
    return "", (), Real(low=Fraction(0), high=Fraction(1))


def _ntile(called: Called) -> Bound:
    called.rows.only(called.node, "this")
    if called.node.this is None:
        raise called.rows.refusal(called.node, "NTILE takes a whole number of tiles", "Write NTILE(4).")
    tiles = _whole(called.node.this, called, "tiles", 1, 10**6)
    return "", (tiles,), conversion.fixed(Fraction(1), 1, min(called.most, int(cast(Fraction, tiles.value))))


def _whole(node: exp.Expression, called: Called, what: str, least: int, most: int) -> Literal:
    bound = bind_expression(node, called.rows)
    number = bound.value if isinstance(bound, Literal) else None
    if not isinstance(number, Fraction) or number.denominator != 1 or not least <= number <= most:
        limit = f"at most {most}" if least == 0 else f"from {least} to {most}"
        raise called.rows.refusal(called.node, f"{called.name} takes a whole number of {what}, {limit}")
    return cast(Literal, bound)


# ---- values of other rows -------------------------------------------------------------------------------------------


def _shifted(called: Called) -> Bound:
    node, rows = called.node, called.rows
    rows.only(node, "this", "offset", "default")
    value = bind_expression(node.this, rows)
    offset = node.args.get("offset")
    step = conversion.number(Fraction(1)) if offset is None else _whole(offset, called, "rows", 0, called.most)
    default = node.args.get("default")
    if default is None:
        return "", (value, step), value.type
    value, other = conversion.alike((value, bind_expression(default, rows)))
    if not isinstance(other, Literal):
        raise rows.refusal(node, f"The default of {called.name} must be a constant")
    return "", (value, step, other), functions.hull((value, other))


def _of_one_row(called: Called) -> Bound:
    called.rows.only(called.node, "this")
    value = bind_expression(called.node.this, called.rows)
    return "", (value,), value.type


def _nth(called: Called) -> Bound:
    node = called.node
    called.rows.only(node, "this", "offset")
    if node.args.get("offset") is None:
        raise called.rows.refusal(node, "NTH_VALUE takes the number of a row", "Write NTH_VALUE(x, 2).")
    value = bind_expression(node.this, called.rows)
    return "", (value, _whole(node.args["offset"], called, "rows", 1, called.most)), value.type


# ---- aggregates -----------------------------------------------------------------------------------------------------


def _count(called: Called) -> Bound:
    node, rows = called.node, called.rows
    rows.only(node, "this", "big_int")
    kind = conversion.fixed(Fraction(1), 0, called.most)
    if isinstance(node.this, exp.Star):
        rows.only(node.this)
    if isinstance(node.this, exp.Distinct):
        rows.only(node.this, "expressions")
        if len(node.this.expressions) != 1:
            raise rows.refusal(node, "COUNT(DISTINCT …) takes one expression")
        return "count_distinct", (only_where(bind_expression(node.this.expressions[0], rows), called.where),), kind
    argument: Expression | None = None
    if not isinstance(node.this, exp.Star) and not (node.this is not None and rows.is_unit(node.this)):
        argument = bind_expression(node.this, rows)
    if argument is None or not conversion.nullable(argument):
        return "", (one_where(called.where),) if called.where is not None else (), kind
    return "", (only_where(argument, called.where),), kind


def _count_if(called: Called) -> Bound:
    wanted = _condition(called)
    both = wanted if called.where is None else functions.both(called.where, wanted)
    return "", (one_where(both),), conversion.fixed(Fraction(1), 0, called.most)


def _condition(called: Called) -> Expression:
    called.rows.only(called.node, "this")
    condition = bind_expression(called.node.this, called.rows)
    if condition.type != BOOLEAN:
        what = f"{called.name} needs a condition, not {describe(condition.type)}"
        raise called.rows.refusal(called.node, what)
    return condition


def _logical(called: Called) -> Bound:
    return "", (only_where(_condition(called), called.where),), BOOLEAN


def _summed(called: Called) -> Expression:
    called.rows.only(called.node, "this")
    argument = bind_expression(called.node.this, called.rows)
    if not is_number(argument.type):
        what = f"{called.node.key.upper()} needs a number, not {describe(argument.type)}"
        raise called.rows.refusal(called.node, what)
    return conversion.summable(only_where(argument, called.where))


def _sum(called: Called) -> Bound:
    argument, most = _summed(called), called.most
    low, high = conversion.integers_of(argument)
    step = cast(Fixed, argument.type).step
    return "", (argument,), conversion.fixed(step, min(low, low * most), max(high, high * most))


def _average(called: Called) -> Bound:
    argument = _summed(called)
    return "", (argument,), conversion.to_real(argument).type


def _extreme(called: Called) -> Bound:
    called.rows.only(called.node, "this")
    argument = only_where(bind_expression(called.node.this, called.rows), called.where)
    return "", (argument,), argument.type


_FUNCTIONS: Mapping[type[exp.Expression], tuple[str, Callable[[Called], Bound]]] = {
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
    exp.Count: ("count", _count),
    exp.CountIf: ("count", _count_if),
    exp.Sum: ("sum", _sum),
    exp.Avg: ("average", _average),
    exp.Min: ("least", _extreme),
    exp.Max: ("greatest", _extreme),
    exp.LogicalAnd: ("all", _logical),
    exp.LogicalOr: ("any", _logical),
}

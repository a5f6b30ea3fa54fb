"""Aggregates over the rows of one unit, those of a group or of a window's frame: their functions, arguments and types.

Each is a function of a bag of rows: sums are of integers, because a sum of doubles depends on the order of the rows; an
average is such a sum over a count, divided once. Bounds are those of as many rows as there may be.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import cast

from sqlglot import exp

from lapwing.errors import RefusalCause
from lapwing.query.expressions import conversion, logic
from lapwing.query.expressions.calls import bind_expression, counted, looked_at
from lapwing.query.expressions.casts import truth_as_number
from lapwing.query.expressions.expression import Expression, is_number
from lapwing.query.expressions.naming import name_of
from lapwing.query.expressions.rows import RowScope
from lapwing.query.expressions.types import BOOLEAN, Fixed, Type, describe
from lapwing.query.from_clause.conditions import bind_condition


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitCall:
    """A function over rows of one unit, as the question calls it.

    Args:
        where: The condition of its FILTER.
        most: The most rows that it sees.
        windowed: Whether it stands before OVER.
    """

    node: exp.Expression
    where: Expression | None
    most: int
    rows: RowScope
    windowed: bool = False

    @property
    def name(self) -> str:
        """The name of the function, for people."""
        return plain_name(self.node)


def plain_name(node: exp.Expression) -> str:
    """Return the name of a function alone, for people."""
    return name_of(node).removeprefix("The function ").removeprefix("The aggregate ")


def without_filter(node: exp.Expression, rows: RowScope) -> tuple[exp.Expression, Expression | None]:
    """Return an aggregate, and the condition of the FILTER around it if there is one."""
    if not isinstance(node, exp.Filter):
        return node, None
    rows.only(node, "this", "expression")
    rows.only(node.expression, "this")
    return node.this, bind_condition(node.expression.this, rows, "FILTER")


BoundCall = tuple[str, tuple[Expression, ...], Type]
"""A function's name in plans, "" for that of its table, its arguments and its type."""
Rule = Callable[[UnitCall], BoundCall]


def _count(call: UnitCall) -> BoundCall:
    node, rows = call.node, call.rows
    rows.only(node, "this", "big_int")
    kind = conversion.fixed(Fraction(1), 0, call.most)
    if isinstance(node.this, exp.Star):
        rows.only(node.this)
    if isinstance(node.this, exp.Distinct):
        rows.only(node.this, "expressions")
        if len(node.this.expressions) != 1:
            raise rows.refusal(node, RefusalCause.WRONG_ARGUMENT_COUNT, "COUNT(DISTINCT …) takes one expression")
        return "count_distinct", (logic.only_where(looked_at(node.this.expressions[0], rows), call.where),), kind
    argument: Expression | None = None
    if not isinstance(node.this, exp.Star) and not (node.this is not None and rows.is_unit(node.this)):
        argument = counted(node.this, rows)
    # With a FILTER, grouped subqueries keep an argument that is never NULL: stored answers are found by their plans.
    counts_rows = call.windowed or call.where is None
    if argument is None or (counts_rows and not conversion.nullable(argument)):
        return "", (logic.one_where(call.where),) if call.where is not None else (), kind
    return "", (logic.only_where(argument, call.where),), kind


def _count_if(call: UnitCall) -> BoundCall:
    counted = _condition(call)
    both = counted if call.where is None else logic.both(call.where, counted)
    return "", (logic.one_where(both),), conversion.fixed(Fraction(1), 0, call.most)


def _condition(call: UnitCall) -> Expression:
    call.rows.only(call.node, "this")
    condition = bind_expression(call.node.this, call.rows)
    if condition.type != BOOLEAN:
        what = f"{call.name} needs a condition, not {describe(condition.type)}"
        raise call.rows.refusal(call.node, RefusalCause.NOT_A_CONDITION, what)
    return condition


def _logical(call: UnitCall) -> BoundCall:
    return "", (logic.only_where(_condition(call), call.where),), BOOLEAN


def _summed(call: UnitCall) -> Expression:
    call.rows.only(call.node, "this")
    argument = truth_as_number(bind_expression(call.node.this, call.rows))
    if not is_number(argument.type):
        what = f"{call.node.key.upper()} needs a number, not {describe(argument.type)}"
        raise call.rows.refusal(call.node, RefusalCause.WRONG_TYPE, what)
    return conversion.summable(logic.only_where(argument, call.where))


def _sum(call: UnitCall) -> BoundCall:
    argument, most = _summed(call), call.most
    low, high = conversion.integers_of(argument)
    step = cast(Fixed, argument.type).step
    return "", (argument,), conversion.fixed(step, min(low, low * most), max(high, high * most))


def _average(call: UnitCall) -> BoundCall:
    argument = _summed(call)
    return "", (argument,), conversion.to_real(argument).type


def _extreme(call: UnitCall) -> BoundCall:
    call.rows.only(call.node, "this")
    argument = logic.only_where(bind_expression(call.node.this, call.rows), call.where)
    return "", (argument,), argument.type


AGGREGATES: Mapping[type[exp.Expression], tuple[str, Rule]] = {
    exp.Count: ("count", _count),
    exp.CountIf: ("count", _count_if),
    exp.Sum: ("sum", _sum),
    exp.Avg: ("average", _average),
    exp.Min: ("least", _extreme),
    exp.Max: ("greatest", _extreme),
    exp.LogicalAnd: ("all", _logical),
    exp.LogicalOr: ("any", _logical),
}


def bind_call(call: UnitCall, rules: Mapping[type[exp.Expression], tuple[str, Rule]], at: exp.Expression) -> BoundCall:
    """Bind a call by the rule for its node.

    Args:
        at: Where a refusal points that does not know where it belongs.
    """
    name, rule = rules[type(call.node)]
    with call.rows.pointing(at):
        function, arguments, kind = rule(call)
    return function or name, arguments, kind

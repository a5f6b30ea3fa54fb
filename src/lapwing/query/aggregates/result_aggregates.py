"""Aggregates over the rows of a result, in the words of those that are computed: FILTER, COUNT_IF, BOOL_OR, SUM(1).

These aggregates see only released numbers, so that other words for them are spellings. A condition becomes a CASE
inside the aggregate. A group of a result has one row or more, so a sum of ones and zeros equals a count.
"""

from collections.abc import Mapping
from typing import Final

from sqlglot import exp

from lapwing.errors import RefusalCause
from lapwing.query.aggregates.answer_quantiles import in_plain_words
from lapwing.query.expressions.rows import RowScope

_TRUTHS: Final[Mapping[type[exp.Expression], type[exp.AggFunc]]] = {exp.LogicalOr: exp.Max, exp.LogicalAnd: exp.Min}


def in_known_words(node: exp.Expression, rows: RowScope) -> exp.Expression | None:
    """Return an aggregate over released rows in other words; None if it is computed as it stands.

    Raises:
        QueryRefused: If it says more than that.
    """
    if isinstance(node, exp.Filter):
        rows.only(node, "this", "expression")
        rows.only(node.expression, "this")
        return _filtered(node.this, node.expression.this, rows)
    if isinstance(node, exp.WithinGroup):
        return in_plain_words(node, rows)
    if isinstance(node, exp.CountIf):
        rows.only(node, "this")
        return _number(node.this)
    if isinstance(node, exp.Sum) and isinstance(node.this, exp.Literal) and not node.this.is_string:
        rows.only(node, "this")
        number = exp.Nullif(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(0))  # of no rows it is NULL
        return exp.Mul(this=number, expression=node.this.copy())
    outermost = _TRUTHS.get(type(node))
    if outermost is None:
        return None
    rows.only(node, "this")
    one, zero = exp.Literal.number(1), exp.Literal.number(0)
    branches = [
        exp.If(this=node.this.copy(), true=one),
        exp.If(this=exp.Not(this=_in_parentheses(node.this)), true=zero),
    ]
    return exp.Paren(this=exp.EQ(this=outermost(this=exp.Case(ifs=branches)), expression=one.copy()))


def _filtered(aggregate: exp.Expression, condition: exp.Expression, rows: RowScope) -> exp.Expression:
    if isinstance(aggregate, exp.Count) and isinstance(aggregate.this, exp.Star):
        rows.only(aggregate, "this", "big_int")
        return _number(condition)
    if isinstance(aggregate, exp.CountIf):
        rows.only(aggregate, "this")
        return _number(exp.And(this=_in_parentheses(condition), expression=_in_parentheses(aggregate.this)))
    if not isinstance(aggregate, exp.AggFunc) or not isinstance(aggregate.this, exp.Expr):
        raise rows.refusal(aggregate, RefusalCause.FILTER_NOT_SUPPORTED, "FILTER follows an aggregate")
    other = aggregate.copy()
    value = other.this
    while isinstance(value, exp.Order | exp.Distinct):
        value = value.this if isinstance(value, exp.Order) else value.expressions[0]
    value.replace(exp.Case(ifs=[exp.If(this=condition.copy(), true=value.copy())]))
    return other


def _number(condition: exp.Expression) -> exp.Expression:
    """Return the number of rows for which a condition is true."""
    branches = [exp.If(this=condition.copy(), true=exp.Literal.number(1))]
    return exp.Sum(this=exp.Case(ifs=branches, default=exp.Literal.number(0)))


def _in_parentheses(node: exp.Expression) -> exp.Expression:
    return exp.Paren(this=node.copy())

"""An independent reading of the SQL that may be asked: from syntax tree and row to value, in exact rationals.

Written from the documented meaning alone; it shares no code with the binder, the printer or the engine. Numbers are
fractions with a bound on how far a double computed by the same steps may lie from them (zero where the engine computes
in whole steps). Where that decides an outcome, for example which way to round, the row is `Undecided`.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

from sqlglot import exp

ULP = Fraction(1, 2**50)


class Undecided(Exception):
    """The last bits of a double decide; nothing is claimed."""


@dataclass(frozen=True)
class Near:
    """A number, and how far a double may be from it."""

    value: Fraction
    error: Fraction = Fraction(0)

    def rounded(self) -> "Near":
        return Near(self.value, self.error + abs(self.value) * ULP + Fraction(1, 2**1070))


Value = Near | str | bool | date | None
Row = Mapping[str, Value]


# ---- cleaning --------------------------------------------------------------------------------------------------------


def in_steps(value: Any, lower: Fraction, upper: Fraction, step: Fraction) -> Near | None:
    """Clamp, round half up to a multiple of the step, keep inside the bounds; NaN is NULL."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, float) and math.isinf(value):
        clamped = upper if value > 0 else lower
    else:
        clamped = min(max(Fraction(value), lower), upper)
    steps = math.floor(clamped / step + Fraction(1, 2))
    return Near(min(max(steps, math.ceil(lower / step)), math.floor(upper / step)) * step)


# ---- what is a double ------------------------------------------------------------------------------------------------


def is_real(node: exp.Expression) -> bool:
    """Tell whether a numeric expression is a double: it divides, or reads a number from text."""
    match node:
        case exp.Div() | exp.TryCast():
            return True
        case exp.Column() | exp.Literal() | exp.Round() | exp.Floor() | exp.Ceil() | exp.Null() | exp.Boolean():
            return False
        case exp.Cast():
            return False
        case exp.Case():
            default = node.args.get("default")
            parts = [branch.args["true"] for branch in node.args["ifs"]] + ([default] if default else [])
            return any(map(is_real, parts))
        case exp.Paren() | exp.Neg() | exp.Abs():
            return is_real(node.this)
        case exp.Add() | exp.Sub() | exp.Mul():
            return is_real(node.this) or is_real(node.expression)
        case exp.Least() | exp.Greatest() | exp.Coalesce():
            return any(map(is_real, (node.this, *node.expressions)))
    raise NotImplementedError(type(node))


# ---- values ----------------------------------------------------------------------------------------------------------


def evaluate(node: exp.Expression, row: Row) -> Value:
    return EVALUATORS[type(node)](node, row)


def number(node: exp.Expression, row: Row, real: bool = False) -> Near | None:
    value = evaluate(node, row)
    assert value is None or isinstance(value, Near), node
    return value.rounded() if real and value is not None else value


def _column(node: exp.Expression, row: Row) -> Value:
    return row[node.name]


def _literal(node: exp.Expression, row: Row) -> Value:
    return str(node.this) if node.is_string else Near(Fraction(Decimal(str(node.this))))


def _arithmetic(rule: Callable[[Near, Near], Near]) -> Callable[[exp.Expression, Row], Value]:
    def evaluated(node: exp.Expression, row: Row) -> Value:
        real = is_real(node)
        left, right = number(node.this, row, real), number(node.expression, row, real)
        if left is None or right is None:
            return None
        result = rule(left, right)
        return result.rounded() if real else result

    return evaluated


def _divide(node: exp.Expression, row: Row) -> Value:
    left, right = number(node.this, row), number(node.expression, row)
    if left is None or right is None:
        return None
    if right == Near(Fraction(0)):
        return None
    left, right = left.rounded(), right.rounded()
    least = abs(right.value) - right.error
    if least <= 0:
        raise Undecided
    value = left.value / right.value
    return Near(value, (left.error + abs(value) * right.error) / least).rounded()


def _sign(rule: Callable[[Fraction], Fraction]) -> Callable[[exp.Expression, Row], Value]:
    def evaluated(node: exp.Expression, row: Row) -> Value:
        value = number(node.this, row)
        return None if value is None else Near(rule(value.value), value.error)

    return evaluated


def _stepped(value: Near | None, scale: Fraction, offset: Fraction) -> Near | None:
    """Return floor(value·scale + offset)/scale, if the error does not reach a step."""
    if value is None:
        return None
    exact, error = value.value * scale + offset, value.error * scale
    if value.error:
        error += (abs(exact) + 1) * ULP
    if math.floor(exact - error) != math.floor(exact + error):
        raise Undecided
    return Near(math.floor(exact) / scale)


def _round(node: exp.Expression, row: Row) -> Value:
    decimals = node.args.get("decimals")
    digits = int(str(decimals.this)) if decimals is not None else 0
    return _stepped(number(node.this, row), Fraction(10) ** digits, Fraction(1, 2))


def _ceiling(node: exp.Expression, row: Row) -> Value:
    value = number(node.this, row)
    down = _stepped(None if value is None else Near(-value.value, value.error), Fraction(1), Fraction(0))
    return None if down is None else Near(-down.value)


def _extreme(choose: Callable[..., Fraction]) -> Callable[[exp.Expression, Row], Value]:
    def evaluated(node: exp.Expression, row: Row) -> Value:
        real = is_real(node)
        known = [value for part in (node.this, *node.expressions) if (value := number(part, row, real)) is not None]
        if not known:
            return None
        return Near(choose(value.value for value in known), max(value.error for value in known))

    return evaluated


def _coalesce(node: exp.Expression, row: Row) -> Value:
    for part in (node.this, *node.expressions):
        value = evaluate(part, row)
        if value is not None:
            return value.rounded() if isinstance(value, Near) and is_real(node) else value
    return None


def _case(node: exp.Expression, row: Row) -> Value:
    chosen = node.args.get("default")
    for branch in node.args["ifs"]:
        condition = _equal(node.this, branch.this, row) if node.this is not None else evaluate(branch.this, row)
        if condition is True:
            chosen = branch.args["true"]
            break
    value = None if chosen is None else evaluate(chosen, row)
    return value.rounded() if isinstance(value, Near) and is_real(node) else value


def _cast(node: exp.Expression, row: Row) -> Value:
    value = evaluate(node.this, row)
    if isinstance(value, bool):
        return Near(Fraction(int(value)))
    assert value is None or isinstance(value, Near)
    return _stepped(value, Fraction(1), Fraction(1, 2)) if node.args["to"].this == exp.DType.INT else value


def _try_cast(node: exp.Expression, row: Row) -> Value:
    """Read a double from text; the rows of the tests hold no number that is too large for one."""
    value = evaluate(node.this, row)
    assert value is None or isinstance(value, str)
    try:
        found = float(value or "")
    except ValueError:
        return None
    return None if math.isnan(found) or math.isinf(found) else Near(Fraction(found))


# ---- conditions ------------------------------------------------------------------------------------------------------


def _ordered(left: Value, right: Value, test: Callable[[Any, Any], bool]) -> bool:
    if isinstance(left, Near) and isinstance(right, Near):
        if (left.error or right.error) and abs(left.value - right.value) <= (
            left.rounded().error + right.rounded().error
        ):
            raise Undecided
        return test(left.value, right.value)
    if isinstance(left, date) and isinstance(right, str):
        right = date.fromisoformat(right)
    if isinstance(left, str) and isinstance(right, str):
        return test(left.encode(), right.encode())
    return test(left, right)


def _comparison(test: Callable[[Any, Any], bool]) -> Callable[[exp.Expression, Row], Value]:
    def evaluated(node: exp.Expression, row: Row) -> Value:
        left, right = evaluate(node.this, row), evaluate(node.expression, row)
        return None if left is None or right is None else _ordered(left, right, test)

    return evaluated


def _equal(left: exp.Expression, right: exp.Expression, row: Row) -> bool | None:
    one, other = evaluate(left, row), evaluate(right, row)
    return None if one is None or other is None else _ordered(one, other, lambda x, y: bool(x == y))


def _and(left: Value, right: Value) -> Value:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _not(value: Value) -> Value:
    return None if value is None else not value


def _both(node: exp.Expression, row: Row) -> Value:
    return _and(evaluate(node.this, row), evaluate(node.expression, row))


def _either(node: exp.Expression, row: Row) -> Value:
    return _not(_and(_not(evaluate(node.this, row)), _not(evaluate(node.expression, row))))


def _between(node: exp.Expression, row: Row) -> Value:
    value, low, high = (evaluate(node.args[part], row) for part in ("this", "low", "high"))
    above = None if value is None or low is None else _ordered(low, value, lambda x, y: bool(x <= y))
    below = None if value is None or high is None else _ordered(value, high, lambda x, y: bool(x <= y))
    return _and(above, below)


def _member(node: exp.Expression, row: Row) -> Value:
    value = evaluate(node.this, row)
    if value is None:
        return None
    choices = [evaluate(choice, row) for choice in node.expressions]
    return any(_ordered(value, choice, lambda x, y: bool(x == y)) for choice in choices)


def _like(node: exp.Expression, row: Row) -> Value:
    value, pattern = evaluate(node.this, row), str(node.expression.this)
    if value is None:
        return None
    assert isinstance(value, str)
    parts = [".*" if character == "%" else "." if character == "_" else re.escape(character) for character in pattern]
    matched = re.fullmatch("".join(parts), value, re.DOTALL) is not None
    return matched != bool(node.args.get("negate"))


def _is(node: exp.Expression, row: Row) -> Value:
    value = evaluate(node.this, row)
    if isinstance(node.expression, exp.Null):
        return value is None
    return value is bool(node.expression.this)


EVALUATORS: Mapping[type[exp.Expression], Callable[[exp.Expression, Row], Value]] = {
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Boolean: lambda node, _row: bool(node.this),
    exp.Null: lambda _node, _row: None,
    exp.Paren: lambda node, row: evaluate(node.this, row),
    exp.Add: _arithmetic(lambda x, y: Near(x.value + y.value, x.error + y.error)),
    exp.Sub: _arithmetic(lambda x, y: Near(x.value - y.value, x.error + y.error)),
    exp.Mul: _arithmetic(
        lambda x, y: Near(x.value * y.value, abs(x.value) * y.error + abs(y.value) * x.error + x.error * y.error)
    ),
    exp.Div: _divide,
    exp.Neg: _sign(lambda x: -x),
    exp.Abs: _sign(abs),
    exp.Round: _round,
    exp.Floor: lambda node, row: _stepped(number(node.this, row), Fraction(1), Fraction(0)),
    exp.Ceil: _ceiling,
    exp.Least: _extreme(min),
    exp.Greatest: _extreme(max),
    exp.Coalesce: _coalesce,
    exp.Case: _case,
    exp.Cast: _cast,
    exp.TryCast: _try_cast,
    exp.EQ: _comparison(lambda x, y: bool(x == y)),
    exp.NEQ: _comparison(lambda x, y: bool(x != y)),
    exp.LT: _comparison(lambda x, y: bool(x < y)),
    exp.LTE: _comparison(lambda x, y: bool(x <= y)),
    exp.GT: _comparison(lambda x, y: bool(x > y)),
    exp.GTE: _comparison(lambda x, y: bool(x >= y)),
    exp.And: _both,
    exp.Or: _either,
    exp.Not: lambda node, row: _not(evaluate(node.this, row)),
    exp.Between: _between,
    exp.In: _member,
    exp.Like: _like,
    exp.Is: _is,
}

"""Bind what is computed in one row of the answer: arithmetic, comparisons, CASE, casts, dates, ends of intervals."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial, reduce
from typing import Final

from sqlglot import exp

from lapwing.errors import RefusalCause
from lapwing.query.aggregates.scope import shape_of
from lapwing.query.derivation import calendar
from lapwing.query.derivation.columns import NUMERIC, TEMPORAL
from lapwing.query.derivation.constant_value import ConstantValue
from lapwing.query.derivation.derive import FunctionValue, Side, compute
from lapwing.query.derivation.derived import KeyValue
from lapwing.query.derivation.node import Derived
from lapwing.query.derivation.number_texts import as_decimal, as_text
from lapwing.query.expressions import temporal
from lapwing.query.expressions.calls import bind_expression
from lapwing.query.expressions.days import DAY, INDEX, PARTS
from lapwing.query.expressions.expression import Constant
from lapwing.query.expressions.library import LIBRARY
from lapwing.query.expressions.naming import name_of
from lapwing.query.expressions.rows import RowScope
from lapwing.query.expressions.temporal import LONGEST_SHIFT, SHIFTS, instead_of, unit_of
from lapwing.query.expressions.time_calls import spans_of
from lapwing.query.expressions.unknown_names import unknown_function

Bind = Callable[[exp.Expression], Derived]
Formula = Callable[[exp.Expression, RowScope, Bind], Derived]
"""Binds a node, given what binds the parts that it is made of."""

PARTS_OF: Final[Mapping[type[exp.Expression], str]] = {
    kind: signature.rule.args[0]
    for kind, signature in LIBRARY.items()
    if isinstance(signature.rule, partial) and signature.rule.func is temporal.part and signature.rule.args[0] in PARTS
}
"""The functions that take a part of a time, as YEAR does, with that part."""
TEMPORAL_TYPES: Final = (exp.DType.DATE, exp.DType.TIMESTAMP, exp.DType.TIMESTAMPNTZ, exp.DType.TIMESTAMPTZ)
MOST_SHIFTED: Final = {
    "months": LONGEST_SHIFT // 31, "days": LONGEST_SHIFT, "microseconds": LONGEST_SHIFT * DAY,
}  # fmt: skip
_NOTHING = ConstantValue(value="", shape="text")
_ONE = ConstantValue(value=Fraction(1), shape="integer")
_WHOLE = {exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT, exp.DType.INT128}
_REAL = {exp.DType.FLOAT, exp.DType.DOUBLE}
_TEXTS = {exp.DType.TEXT, exp.DType.VARCHAR}
MOST_CHARACTERS: Final = 1_000_000
"""How far a place in a text may be."""
_SIDES: Final[Mapping[str, Side]] = {"DP_INTERVAL_LOW": "low", "DP_INTERVAL_HIGH": "high"}


def _constant(node: exp.Expression, rows: RowScope, _bind: Bind) -> Derived:
    literal = bind_expression(node, rows)
    value: Constant = getattr(literal, "value", None)
    return ConstantValue(value=value, shape=shape_of(literal.type))


def _apply(function: str, *parts: str, ignored: Sequence[str] = ()) -> Formula:
    def handler(node: exp.Expression, rows: RowScope, bind: Bind) -> Derived:
        rows.only(node, *parts, *ignored)
        nodes: list[exp.Expression] = []
        for part in parts:
            value = node.args.get(part)
            nodes.extend(value if isinstance(value, list) else [value] if value is not None else [])
        if not nodes:
            reason = f"{name_of(node)} needs more arguments"
            raise rows.refusal(node, RefusalCause.WRONG_ARGUMENT_COUNT, reason, "See the SQL reference.")
        return compute(function, *(bind(child) for child in nodes))

    return handler


def _round(node: exp.Expression, rows: RowScope, bind: Bind) -> Derived:
    rows.only(node, "this", "decimals")
    digits = node.args.get("decimals")
    if digits is None:
        return compute("round", bind(node.this))
    places = _constant(digits, rows, bind) if isinstance(digits, exp.Literal | exp.Neg) else None
    value = places.value if isinstance(places, ConstantValue) else None
    if not isinstance(value, Fraction) or value.denominator != 1 or abs(value) > 12:
        raise rows.refusal(
            node, RefusalCause.INVALID_ARGUMENT, "ROUND takes a whole number of digits up to 12", "Write ROUND(x, 2)."
        )
    return compute("round", bind(node.this), ConstantValue(value=value, shape="integer"))


def _is(node: exp.Expression, rows: RowScope, bind: Bind) -> Derived:
    rows.only(node, "this", "expression")
    rows.only(node.expression, "this")
    if not isinstance(node.expression, exp.Null):
        raise rows.refusal(node, RefusalCause.INVALID_ARGUMENT, "IS over the result takes NULL", "Write IS NULL.")
    return compute("is_null", bind(node.this))


def _case(node: exp.Expression, rows: RowScope, bind: Bind) -> Derived:
    rows.only(node, "this", "ifs", "default")
    chosen = bind(node.this) if node.this is not None else None
    # It is repeated in every branch, which would let nested ones grow without end.
    if isinstance(chosen, FunctionValue) and any(isinstance(part, FunctionValue) for part in chosen.arguments):
        raise rows.refusal(
            node,
            RefusalCause.QUERY_TOO_COMPLEX,
            "CASE x WHEN repeats a long x too often",
            "Write CASE WHEN condition THEN ….",
        )
    parts: list[Derived] = []
    for branch in node.args["ifs"]:
        rows.only(branch, "this", "true")
        condition = bind(branch.this)
        parts.append(condition if chosen is None else compute("=", chosen, condition))
        parts.append(bind(branch.args["true"]))
    default = node.args.get("default")
    return compute("case", *parts, bind(default) if default else ConstantValue(value=None, shape="null"))


def _if(node: exp.Expression, rows: RowScope, bind: Bind) -> Derived:
    rows.only(node, "this", "true", "false")
    otherwise = node.args.get("false")
    last = ConstantValue(value=None, shape="null") if otherwise is None else bind(otherwise)
    return compute("case", bind(node.this), bind(node.args["true"]), last)


def _joined(node: exp.Expression, rows: RowScope, bind: Bind) -> Derived:
    """Bind CONCAT, which leaves out what is NULL."""
    rows.only(node, "expressions", "safe", "coalesce")
    parts = [as_text(bind(part)) for part in node.expressions]
    return reduce(lambda left, right: compute("concatenate", left, right), map(_present, parts))


def _beside(node: exp.Expression, rows: RowScope, bind: Bind) -> Derived:
    """Bind a || b, of which one is a text; NULL beside anything is NULL."""
    rows.only(node, "this", "expression", "safe")
    left, right = bind(node.this), bind(node.expression)
    if "text" in (left.shape, right.shape):
        left, right = (part if part.shape == "null" else as_text(part) for part in (left, right))
    return compute("concatenate", left, right)


def _cut(function: str, *constants: str) -> Formula:
    """Return what binds SUBSTRING, LEFT and RIGHT, whose places and lengths are constants."""

    def handler(node: exp.Expression, rows: RowScope, bind: Bind) -> Derived:
        rows.only(node, "this", *constants)
        places = [child for name in constants if (child := node.args.get(name)) is not None]
        numbers = [
            _constant(place, rows, bind) if isinstance(place, exp.Literal | exp.Neg) else None for place in places
        ]
        least = [-MOST_CHARACTERS if name == "start" else 0 for name in constants]
        for number, low in zip(numbers, least, strict=False):
            value = number.value if isinstance(number, ConstantValue) else None
            if not isinstance(value, Fraction) or value.denominator != 1 or not low <= value <= MOST_CHARACTERS:
                reason = f"{function.upper()} over the result takes whole constants"
                raise rows.refusal(
                    node,
                    RefusalCause.INVALID_ARGUMENT,
                    reason,
                    f"Write numbers between {low:,} and {MOST_CHARACTERS:,}.",
                )
        return compute(function, bind(node.this), *(number for number in numbers if number is not None))

    return handler


def _present(part: Derived) -> Derived:
    return part if isinstance(part, ConstantValue) and part.value is not None else compute("coalesce", part, _NOTHING)


def _cast(node: exp.Expression, rows: RowScope, bind: Bind) -> Derived:
    """Bind a cast of a number to a real, a whole or a decimal number, half up; true is 1, and false 0."""
    if isinstance(node.this, exp.Literal):  # as DATE '…' and TIMESTAMP '…' are
        return _constant(node, rows, bind)
    rows.only(node, "this", "to", "safe")
    value, target = bind(node.this), node.args["to"]
    rows.only(target, "this", "expressions")
    if value.shape == "boolean" and target.this in _WHOLE | _REAL:
        zero = ConstantValue(value=Fraction(0), shape="integer")
        otherwise = ConstantValue(value=None, shape="null")
        value = compute("case", value, _ONE, compute("not", value), zero, otherwise)
    if target.this in _TEXTS:
        return as_text(value)
    if target.this in TEMPORAL_TYPES and value.shape in TEMPORAL:
        return compute("to_date" if target.this == exp.DType.DATE else "to_timestamp", value)
    if value.shape in NUMERIC and target.this in _REAL:
        return compute("divide", value, _ONE)
    if value.shape in NUMERIC and target.this in _WHOLE:
        return compute("round", value)
    if value.shape in NUMERIC and target.this == exp.DType.DECIMAL:
        listed = target.expressions  # without parameters DuckDB takes (18, 3)
        scale = Fraction(str(listed[1].this.this)) if len(listed) == 2 else Fraction(0 if listed else 3)
        return as_decimal(value, scale)
    reason = f"A cast of {value.shape} to {target.sql()[:40]} is not supported over the result"
    raise rows.refusal(
        node, RefusalCause.CAST_NOT_SUPPORTED, reason, "Cast numbers to DOUBLE, INTEGER, DECIMAL(10, 2) or VARCHAR."
    )


def _added(node: exp.Expression, rows: RowScope, bind: Bind) -> Derived:
    rows.only(node, "this", "expression")
    first, second = node.this, node.expression
    if isinstance(first.unnest(), exp.Interval):
        first, second = second, first
    if isinstance(interval := second.unnest(), exp.Interval):
        return _shifted(bind(first), interval, rows, +1)
    left, right = bind(first), bind(second)
    if left.shape == right.shape == "text":  # as in SQL Server
        return compute("concatenate", left, right)
    if right.shape == "date":
        left, right = right, left
    return calendar.days_later(left, right, +1) if left.shape == "date" else compute("add", left, right)


def _shifted(value: Derived, interval: exp.Expression, rows: RowScope, sign: int) -> Derived:
    """Move a date or timestamp by an INTERVAL; the result is a timestamp."""
    for unit, amount in spans_of(interval, rows):
        base, factor = SHIFTS[unit]
        size = sign * factor * amount
        if size.denominator != 1 and base == "days":
            base, size = "microseconds", size * DAY
        if size.denominator != 1 or abs(size) > MOST_SHIFTED[base]:
            raise rows.refusal(
                interval,
                RefusalCause.INVALID_ARGUMENT,
                "An INTERVAL over the result is up to 1,000 years",
                "Write days.",
            )
        moved_by = ConstantValue(value=size, shape="integer")
        value = compute("shift", value, ConstantValue(value=base, shape="text"), moved_by)
    return value


def _extract(node: exp.Expression, rows: RowScope, bind: Bind) -> Derived:
    rows.only(node, "this", "expression")
    return _taken(node.this.name, node.expression, node, rows, bind)


def _part_of(unit: str) -> Formula:
    def handler(node: exp.Expression, rows: RowScope, bind: Bind) -> Derived:
        rows.only(node, "this")
        return _taken(unit, node.this, node, rows, bind)

    return handler


def _taken(name: str, of: exp.Expression, node: exp.Expression, rows: RowScope, bind: Bind) -> Derived:
    unit, value = unit_of(name), bind(of)
    if unit == "epoch" and value.shape == "timestamp":
        return calendar.seconds_of(value)
    if unit not in PARTS:
        raise rows.refusal(
            node,
            RefusalCause.UNKNOWN_TIME_UNIT,
            f"The part '{name[:40]}' is not supported here",
            instead_of(name, PARTS),
        )
    return compute("part", ConstantValue(value=unit, shape="text"), value)


def _truncated(node: exp.Expression, rows: RowScope, bind: Bind) -> Derived:
    rows.only(node, "this", "unit")
    unit = unit_of(node.args["unit"].name)
    if unit not in INDEX:
        raise rows.refusal(
            node, RefusalCause.UNKNOWN_TIME_UNIT, f"The unit '{unit[:40]}' is not supported", f"Use {', '.join(INDEX)}."
        )
    return compute("truncate", ConstantValue(value=unit, shape="text"), bind(node.this))


def _subtract(node: exp.Expression, rows: RowScope, bind: Bind) -> Derived:
    rows.only(node, "this", "expression")
    if isinstance(interval := node.expression.unnest(), exp.Interval):
        return _shifted(bind(node.this), interval, rows, -1)
    left, right = bind(node.this), bind(node.expression)
    if left.shape == right.shape == "date":
        return calendar.days_between(left, right)
    if left.shape in TEMPORAL and right.shape in TEMPORAL:
        return calendar.seconds_between(left, right)
    if left.shape == "date":
        return calendar.days_later(left, right, -1)
    return compute("subtract", left, right)


def _date_diff(node: exp.Expression, rows: RowScope, bind: Bind) -> Derived:
    rows.only(node, "this", "expression", "unit", "date_part_boundary")
    unit = node.args.get("unit")
    name = unit.name if isinstance(unit, exp.Literal | exp.Var) else ""
    return calendar.difference(name, bind(node.expression), bind(node.this))


def _alike(node: exp.Expression, rows: RowScope, bind: Bind) -> Derived:
    """Bind IS NOT DISTINCT FROM: equal, or both without a value."""
    rows.only(node, "this", "expression")
    left, right = bind(node.this), bind(node.expression)
    equal = compute("coalesce", compute("=", left, right), ConstantValue(value=False, shape="boolean"))
    return compute("or", equal, compute("and", compute("is_null", left), compute("is_null", right)))


def _interval_end(node: exp.Expression, rows: RowScope, bind: Bind) -> Derived:
    """Bind DP_INTERVAL_LOW(x) and DP_INTERVAL_HIGH(x), the ends of the 95 % interval of a column of the answer."""
    rows.only(node, "this", "expressions")
    if len(node.expressions) != 1:
        raise rows.refusal(
            node, RefusalCause.INVALID_ARGUMENT, f"{name_of(node)} takes the name of one column of the result"
        )
    return calendar.end_of(bind(node.expressions[0]), _SIDES[node.name.upper()])


def _anonymous(node: exp.Expression, rows: RowScope, bind: Bind) -> Derived:
    """Bind a function that the parser has no node for."""
    name = node.name.upper()
    if name in _SIDES:
        return _interval_end(node, rows, bind)
    if name in ("DATE_PART", "DATEPART") and len(node.expressions) == 2:
        rows.only(node, "this", "expressions")
        return _taken(node.expressions[0].name, node.expressions[1], node, rows, bind)
    raise unknown_function(node, rows, FORMULAS)


def _grouping(node: exp.Expression, rows: RowScope, bind: Bind) -> Derived:
    """Bind GROUPING(key): 1 in the cells of grouping sets without the key, else 0."""
    rows.only(node, "expressions")
    if len(node.expressions) != 1:
        raise rows.refusal(
            node, RefusalCause.WRONG_ARGUMENT_COUNT, "GROUPING takes one key", "Write GROUPING(a), GROUPING(b)."
        )
    value = bind(node.expressions[0])
    if not isinstance(value, KeyValue):
        raise rows.refusal(node, RefusalCause.INVALID_ARGUMENT, "GROUPING takes a key of GROUP BY")
    one, zero = (ConstantValue(value=Fraction(number), shape="integer") for number in (1, 0))
    return compute("case", compute("is_null", value), one, zero)


FORMULAS: Final[Mapping[type[exp.Expression], Formula]] = {
    exp.Literal: _constant,
    exp.Boolean: _constant,
    exp.Null: _constant,
    exp.Anonymous: _anonymous,
    exp.Grouping: _grouping,
    exp.If: _if,
    exp.Concat: _joined,
    exp.Sqrt: _apply("square_root", "this"),
    exp.Add: _added,
    **{kind: _part_of(unit) for kind, unit in PARTS_OF.items()},
    exp.Extract: _extract,
    exp.DateTrunc: _truncated,
    exp.TimestampTrunc: _truncated,
    exp.Sub: _subtract,
    exp.DateDiff: _date_diff,
    exp.Cast: _cast,
    exp.Mul: _apply("multiply", "this", "expression"),
    exp.Div: _apply("divide", "this", "expression", ignored=("typed", "safe")),
    exp.Neg: _apply("negate", "this"),
    exp.Abs: _apply("absolute", "this"),
    exp.Floor: _apply("floor", "this"),
    exp.Ceil: _apply("ceiling", "this"),
    exp.Round: _round,
    exp.Least: _apply("least", "this", "expressions", ignored=("ignore_nulls",)),
    exp.Greatest: _apply("greatest", "this", "expressions", ignored=("ignore_nulls",)),
    exp.Coalesce: _apply("coalesce", "this", "expressions"),
    exp.Case: _case,
    exp.Nullif: _apply("null_if", "this", "expression"),
    exp.Upper: _apply("upper", "this"),
    exp.Lower: _apply("lower", "this"),
    exp.Length: _apply("length", "this"),
    exp.Substring: _cut("substring", "start", "length"),
    exp.Left: _cut("left", "expression"),
    exp.Right: _cut("right", "expression"),
    exp.DPipe: _beside,
    exp.Mod: _apply("modulo", "this", "expression"),
    exp.Pow: _apply("power", "this", "expression"),
    exp.Exp: _apply("exponential", "this"),
    exp.Ln: _apply("logarithm", "this"),
    exp.Sign: _apply("sign", "this"),
    exp.EQ: _apply("=", "this", "expression"),
    exp.NEQ: _apply("<>", "this", "expression"),
    exp.NullSafeEQ: _alike,
    exp.NullSafeNEQ: lambda node, rows, bind: compute("not", _alike(node, rows, bind)),
    exp.LT: _apply("<", "this", "expression"),
    exp.LTE: _apply("<=", "this", "expression"),
    exp.GT: _apply(">", "this", "expression"),
    exp.GTE: _apply(">=", "this", "expression"),
    exp.In: _apply("in", "this", "expressions"),
    exp.And: _apply("and", "this", "expression"),
    exp.Or: _apply("or", "this", "expression"),
    exp.Not: _apply("not", "this"),
    exp.Between: _apply("between", "this", "low", "high"),
    exp.Is: _is,
}

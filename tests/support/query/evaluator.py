"""An independent reading of the SQL that may be asked: from syntax tree and row to value, in exact rationals.

Written from the documented meaning alone; it shares no code with the binder, the printer or the engine. Numbers are
fractions with a bound on how far a double computed by the same steps may lie from them (zero where the engine computes
in whole steps). Where that decides an outcome, for example which way to round, the row is `Undecided`.
"""

import json
import math
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

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


Value = Near | str | bool | date | datetime | None
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
        case exp.Div() | exp.Sqrt() | exp.Ln() | exp.Log() | exp.Exp() | exp.Pow() | exp.Pi():
            return True
        case exp.TryCast():
            return bool(node.args["to"].this == exp.DType.DOUBLE)
        case exp.Mod() | exp.Nullif():
            return is_real(node.this) or is_real(node.expression)
        case exp.If():
            false = node.args.get("false")
            return is_real(node.args["true"]) or (false is not None and is_real(false))
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
    return False


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


def _extreme(choose: Callable[..., Any]) -> Callable[[exp.Expression, Row], Value]:
    def evaluated(node: exp.Expression, row: Row) -> Value:
        real = is_real(node)
        known = [value for part in (node.this, *node.expressions) if (value := evaluate(part, row)) is not None]
        if not known:
            return None
        numbers = [value.rounded() if real else value for value in known if isinstance(value, Near)]
        if not numbers:
            chosen: Value = choose(known)
            return chosen
        return Near(choose(value.value for value in numbers), max(value.error for value in numbers))

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
    kind = node.args["to"].this
    if kind == exp.DType.TEXT:
        return text_of(value)
    if kind == exp.DType.DATE:
        found: Value = as_date(value)
        return found
    if kind == exp.DType.TIMESTAMPNTZ:
        at: Value = as_moment(value)
        return at
    if isinstance(value, bool):
        return Near(Fraction(int(value)))
    if isinstance(value, str) and isinstance(node.this, exp.Literal):  # a constant, which is read while it is bound
        return value.lower() == "true" if kind == exp.DType.BOOLEAN else Near(Fraction(value))
    assert value is None or isinstance(value, Near)
    return _stepped(value, Fraction(1), Fraction(1, 2)) if node.args["to"].this == exp.DType.INT else value


def _try_cast(node: exp.Expression, row: Row) -> Value:
    """Read from text; the rows of the tests hold no number that is too large for a double or 64 bits."""
    value = evaluate(node.this, row)
    assert value is None or isinstance(value, str)
    if node.args["to"].this == exp.DType.DATE:
        found_date = re.fullmatch(r" *(\d{4}-\d\d-\d\d) *", value or "")
        return calendar_date(found_date[1]) if found_date else None
    if node.args["to"].this in (exp.DType.INT, exp.DType.BIGINT):
        read = re.fullmatch(r" *(-?)(\d+(?:\.\d*)?(?:e\d+)?) *", value or "")
        if read is None:
            return None
        size = math.floor(Fraction(Decimal(read[2])) + Fraction(1, 2))
        return Near(Fraction(-size if read[1] else size))
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
    if isinstance(left, datetime) or isinstance(right, datetime):
        left, right = as_moment(left), as_moment(right)
    if isinstance(left, date) or isinstance(right, date):
        left, right = (date.fromisoformat(value) if isinstance(value, str) else value for value in (left, right))
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


def _capital(value: str) -> str:
    """Return one character for one, as engines do: ẞ, not SS; where there is none, the character stays."""
    found = {character: [c for c in (character.upper(), character.title()) if len(c) == 1] for character in value}
    return "".join("ẞ" if one == "ß" else found[one][0] if found[one] else one for one in value)


def _small(value: str) -> str:
    """Return one character for one: a sigma at the end of a word is one like any other, and İ loses its dot."""
    return "".join(character.lower()[0] for character in value)


def _like(node: exp.Expression, row: Row, escape: str = "") -> Value:
    value, pattern = evaluate(node.this, row), str(node.expression.this)
    if value is None:
        return None
    assert isinstance(value, str)
    parts, rest = [], iter(pattern)
    for character in rest:
        if escape and character == escape:
            parts.append(re.escape(next(rest)))
        else:
            parts.append(".*" if character == "%" else "." if character == "_" else re.escape(character))
    folded = isinstance(node, exp.ILike)
    text, compared = (_small("".join(parts)), _small(value)) if folded else ("".join(parts), value)
    return (re.fullmatch(text, compared, re.DOTALL) is not None) != bool(node.args.get("negate"))


def _is(node: exp.Expression, row: Row) -> Value:
    value = evaluate(node.this, row)
    if isinstance(node.expression, exp.Null):
        return value is None
    return value is bool(node.expression.this)


# ---- functions -------------------------------------------------------------------------------------------------------


def monotone(
    rule: Callable[[float], float], least: float | None = None, *, open_end: bool = False
) -> Callable[[exp.Expression, Row], Value]:
    """Apply a function that rises, NULL where it has no value; how far it moves within the error is the new error."""

    def evaluated(node: exp.Expression, row: Row) -> Value:
        value = number(node.this, row, real=True)
        if value is None:
            return None
        if least is not None:
            if value.error and abs(value.value - Fraction(least)) <= value.error and value.value != Fraction(least):
                raise Undecided
            if value.value < least or (open_end and value.value == least):
                return None
        return rising(rule, value, least)

    return evaluated


def rising(rule: Callable[[float], float], value: Near, least: float | None = None) -> Near:
    middle, error = float(value.value), float(value.error)
    ends = [rule(max(end, middle / 2 if least == 0 else end)) for end in (middle - error, middle + error)]
    found = Fraction(rule(middle))
    return Near(found, Fraction(max(abs(Fraction(end) - found) for end in ends)) + abs(found) / 2**40)


def _log(node: exp.Expression, row: Row) -> Value:
    base, argument = (node.this, node.expression) if node.expression else (None, node.this)
    constant = 10.0 if base is None else float(str(base.this))
    copied = exp.Ln(this=argument)
    return monotone(lambda x: math.log(x) / math.log(constant), 0.0, open_end=True)(copied, row)


def _power(node: exp.Expression, row: Row) -> Value:
    """The tests raise to 2 and to 0.5 alone."""
    if str(node.expression.this) == "0.5":
        return monotone(math.sqrt, 0.0)(node, row)
    value = number(node.this, row, real=True)
    if value is None:
        return None
    return Near(value.value**2, 2 * abs(value.value) * value.error + value.error**2).rounded()


def _remainder(node: exp.Expression, row: Row) -> Value:
    left, right = number(node.this, row), number(node.expression, row)
    if left is None or right is None or right.value == 0:
        return None
    if left.error or right.error:
        raise Undecided
    return Near(abs(left.value) % abs(right.value) * (-1 if left.value < 0 else 1), Fraction(0))


def _quotient(node: exp.Expression, row: Row) -> Value:
    left, right = number(node.this, row), number(node.expression, row)
    if left is None or right is None or right.value == 0:
        return None
    return Near(Fraction(math.trunc(left.value / right.value)))


def _signum(node: exp.Expression, row: Row) -> Value:
    value = number(node.this, row)
    if value is None:
        return None
    if value.error and abs(value.value) <= value.error:
        raise Undecided
    return Near(Fraction((value.value > 0) - (value.value < 0)))


def _truncate(node: exp.Expression, row: Row) -> Value:
    value = number(node.this, row)
    decimals = node.args.get("decimals")
    scale = Fraction(10) ** (int(decimals.sql()) if decimals is not None else 0)
    if value is None:
        return None
    size = _stepped(Near(abs(value.value), value.error), scale, Fraction(0))
    assert size is not None
    return Near(-size.value if value.value < 0 else size.value)


def _bucket(node: exp.Expression, row: Row) -> Value:
    value = number(node.this, row)
    low, high, count = (Fraction(str(node.args[part])) for part in ("min_value", "max_value", "num_buckets"))
    if value is None:
        return None
    edges = [low + (high - low) * i / count for i in range(int(count) + 1)]
    if value.error and any(abs(value.value - edge) <= 4 * value.rounded().error for edge in edges):
        raise Undecided
    return Near(Fraction(sum(1 for edge in edges if edge <= value.value)))


def _null_if(node: exp.Expression, row: Row) -> Value:
    value, other = evaluate(node.this, row), evaluate(node.expression, row)
    if value is not None and other is not None and _ordered(value, other, lambda x, y: bool(x == y)):
        return None
    return value.rounded() if isinstance(value, Near) and is_real(node) else value


def _chosen(node: exp.Expression, row: Row) -> Value:
    chosen = node.args["true"] if evaluate(node.this, row) is True else node.args.get("false")
    value = None if chosen is None else evaluate(chosen, row)
    return value.rounded() if isinstance(value, Near) and is_real(node) else value


def _same(node: exp.Expression, row: Row) -> bool:
    one, other = evaluate(node.this, row), evaluate(node.expression, row)
    if one is None or other is None:
        return one is other
    return _ordered(one, other, lambda x, y: bool(x == y))


def _exclusive(node: exp.Expression, row: Row) -> Value:
    one, other = evaluate(node.this, row), evaluate(node.expression, row)
    return None if one is None or other is None else one is not other


# ---- dates


def calendar_date(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def as_moment(value: Value) -> Any:
    if isinstance(value, str):
        return datetime.fromisoformat(value)
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    return value


def as_date(value: Value) -> Any:
    if isinstance(value, str):
        return date.fromisoformat(value)
    return value.date() if isinstance(value, datetime) else value


def text_of(value: Value) -> str | None:
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case Near():
            return str(value.value)
        case datetime():
            return value.isoformat(sep=" ").rstrip("0") if value.microsecond else value.isoformat(sep=" ")
        case date():
            return value.isoformat()
    return value


PARTS: Mapping[str, Callable[[datetime], int]] = {
    "YEAR": lambda at: at.year,
    "ISOYEAR": lambda at: at.isocalendar().year,
    "QUARTER": lambda at: (at.month + 2) // 3,
    "MONTH": lambda at: at.month,
    "WEEK": lambda at: at.isocalendar().week,
    "DAY": lambda at: at.day,
    "DOY": lambda at: at.timetuple().tm_yday,
    "DOW": lambda at: at.isoweekday() % 7,
    "ISODOW": lambda at: at.isoweekday(),
    "HOUR": lambda at: at.hour,
    "MINUTE": lambda at: at.minute,
    "SECOND": lambda at: at.second,
}


def _part(name: str, node: exp.Expression, row: Row) -> Value:
    value = as_moment(evaluate(node, row))
    if value is None:
        return None
    if name == "EPOCH":
        return Near(Fraction((value - datetime(1970, 1, 1)) // timedelta(microseconds=1), 10**6))
    return Near(Fraction(PARTS[name](value)))


def part(name: str) -> Callable[[exp.Expression, Row], Value]:
    return lambda node, row: _part(name, node.this, row)


def begun(value: Any, unit: str) -> int:
    """Count the units that have begun by a time."""
    whole_days = value.date().toordinal() - 1  # of 0001-01-01, a Monday
    match unit:
        case "YEAR" | "QUARTER" | "MONTH":
            return int((value.year * 12 + value.month - 1) // {"YEAR": 12, "QUARTER": 3, "MONTH": 1}[unit])
        case "WEEK":
            return int(whole_days // 7)
        case "DAY":
            return int(whole_days)
    return int((value - datetime(1, 1, 1)) // {"HOUR": timedelta(hours=1), "SECOND": timedelta(seconds=1)}[unit])


def _difference(node: exp.Expression, row: Row) -> Value:
    start, end = as_moment(evaluate(node.expression, row)), as_moment(evaluate(node.this, row))
    if start is None or end is None:
        return None
    unit = node.args["unit"].name
    return Near(Fraction(begun(end, unit) - begun(start, unit)))


def _beginning(node: exp.Expression, row: Row) -> Value:
    value = as_moment(evaluate(node.this, row))
    if value is None:
        return None
    match node.args["unit"].name:
        case "YEAR":
            return datetime(value.year, 1, 1)
        case "MONTH":
            return datetime(value.year, value.month, 1)
        case "WEEK":
            return datetime(value.year, value.month, value.day) - timedelta(days=value.weekday())
        case _:
            return datetime(value.year, value.month, value.day)


def _last_day(node: exp.Expression, row: Row) -> Value:
    value = as_date(evaluate(node.this, row))
    if value is None:
        return None
    assert isinstance(value, date)
    at = value
    while (at.year, at.month) == (value.year, value.month) and at != date.max:
        at += timedelta(days=1)
    return at if at == date.max else at - timedelta(days=1)


MONTHS = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
SPANS = {"DAY": timedelta(days=1), "HOUR": timedelta(hours=1)}


def _added(sign: int, plain: Callable[[exp.Expression, Row], Value]) -> Callable[[exp.Expression, Row], Value]:
    """Add numbers, days or an interval; beyond the calendar nothing is claimed."""

    def evaluated(node: exp.Expression, row: Row) -> Value:
        if isinstance(node.this, exp.Interval):
            return shifted(node.expression, node.this, sign, row)
        if isinstance(node.expression, exp.Interval):
            return shifted(node.this, node.expression, sign, row)
        left, right = evaluate(node.this, row), evaluate(node.expression, row)
        if isinstance(left, date) and isinstance(right, date):
            return Near(Fraction((as_date(left) - as_date(right)).days))
        if isinstance(left, date) and isinstance(right, Near):
            return moved(left, timedelta(days=sign * int(right.value)))
        if isinstance(left, date) or isinstance(right, date):
            return None
        return plain(node, row)

    return evaluated


def shifted(node: exp.Expression, interval: exp.Expression, sign: int, row: Row) -> Value:
    moment, amount = as_moment(evaluate(node, row)), interval.this
    number_of = Near(Fraction(int(amount.this))) if amount.is_string else evaluate(amount, row)
    if moment is None or number_of is None:
        return None
    assert isinstance(number_of, Near)
    unit, count = interval.args["unit"].name, sign * int(number_of.value)
    if unit in SPANS:
        return moved(moment, count * SPANS[unit])
    months = moment.year * 12 + moment.month - 1 + count * MONTHS[unit]
    if not 12 <= months < 120_000:
        raise Undecided
    for day in range(moment.day, 27, -1):
        if calendar_date(f"{months // 12:04}-{months % 12 + 1:02}-{day:02}"):
            return datetime.combine(date(months // 12, months % 12 + 1, day), moment.time())
    return datetime.combine(date(months // 12, months % 12 + 1, min(moment.day, 28)), moment.time())


def moved(value: date, by: timedelta) -> date:
    try:
        return value + by
    except OverflowError:
        raise Undecided from None


def _made(node: exp.Expression, row: Row) -> Value:
    parts = [number(node.args[part], row) for part in ("year", "month", "day")]
    whole = [int(part.value) for part in parts if part is not None]
    if len(whole) < 3:
        return None
    try:
        return date(*whole)
    except ValueError:
        return None


def _formatted(node: exp.Expression, row: Row) -> Value:
    """The tests use %Y, %m and %d."""
    value = as_moment(evaluate(node.this, row))
    if value is None:
        return None
    text = str(node.args["format"].this)
    return text.replace("%Y", f"{value.year:04}").replace("%m", f"{value.month:02}").replace("%d", f"{value.day:02}")


def named(names: str, index: Callable[[Any], int]) -> Callable[[exp.Expression, Row], Value]:
    def evaluated(node: exp.Expression, row: Row) -> Value:
        value = as_moment(evaluate(node.this, row))
        return None if value is None else names.split()[index(value)]

    return evaluated


# ---- texts


def strict(rule: Callable[..., Value], *names: str) -> Callable[[exp.Expression, Row], Value]:
    """Apply a rule to the values of arguments; NULL if one of them is. An argument that is missing is not passed."""

    def evaluated(node: exp.Expression, row: Row) -> Value:
        given = [evaluate(node.args[name], row) for name in names if node.args.get(name) is not None]
        values = [int(value.value) if isinstance(value, Near) else value for value in given]
        return None if None in values else rule(*values)

    return evaluated


def _substring(value: str, start: int, length: int | None = None) -> str:
    first = start if start > 0 else len(value) + start + 1 if start < 0 else 0
    places = range(first, len(value) + 1 if length is None else first + length)
    return "".join(value[place - 1] for place in places if 1 <= place <= len(value))


def _split(value: str, separator: str, index: int) -> str:
    parts = value.split(separator)
    return parts[index - 1 if index > 0 else index] if abs(index) <= len(parts) else ""


SPACES: Final = "".join(chr(code) for code in range(0x3001) if unicodedata.category(chr(code)) == "Zs")


def _trim(node: exp.Expression, row: Row) -> Value:
    value, characters = evaluate(node.this, row), node.expression.this if node.expression else SPACES
    if value is None:
        return None
    assert isinstance(value, str)
    cut = {"LEADING": value.lstrip, "TRAILING": value.rstrip}.get(str(node.args.get("position")), value.strip)
    return cut(characters)


def _pad(node: exp.Expression, row: Row) -> Value:
    value = evaluate(node.this, row)
    if value is None:
        return None
    assert isinstance(value, str)
    size, fill = int(str(node.expression.this)), str(node.args["fill_pattern"].this)
    filling = (fill * size)[: max(0, size - len(value))]
    return (filling + value[:size]) if node.args["is_left"] else (value[:size] + filling)


def _concat(node: exp.Expression, row: Row) -> Value:
    return "".join(str(value) for part in node.expressions if (value := evaluate(part, row)) is not None)


def _concat_ws(node: exp.Expression, row: Row) -> Value:
    separator, *parts = (evaluate(part, row) for part in node.expressions)
    return str(separator).join(str(part) for part in parts if part is not None)


def expression_of(pattern: str) -> str:
    """Return a pattern as Python writes it: there, $ would also match before the last line's end."""
    return pattern.replace("\\$", "\0").replace("$", r"\Z").replace("\0", "\\$")


def regular(rule: Callable[[Any], Value], method: str = "search") -> Callable[[exp.Expression, Row], Value]:
    def evaluated(node: exp.Expression, row: Row) -> Value:
        value = evaluate(node.this, row)
        if value is None:
            return None
        compiled = re.compile(expression_of(str(node.expression.this)), re.ASCII)
        group = node.args.get("group")
        found = getattr(compiled, method)(value)
        return rule((found, int(str(group.this)) if group is not None else 0))

    return evaluated


def _json_field(node: exp.Expression, row: Row) -> Value:
    """Look up a field of a JSON text; of a name that is there twice, the first."""
    value = evaluate(node.this, row)
    if value is None:
        return None
    try:
        found: Any = json.loads(str(value), object_pairs_hook=lambda pairs: dict(reversed(pairs)))
    except ValueError:
        return None
    for part in node.expression.expressions[1:]:
        if isinstance(part.this, str):
            found = found.get(part.this) if isinstance(found, dict) else None
        else:
            found = found[part.this] if isinstance(found, list) and part.this < len(found) else None
    if found is None or isinstance(found, str):
        return found
    if isinstance(found, dict):
        found = dict(reversed(found.items()))
    return json.dumps(found, separators=(",", ":"), ensure_ascii=False)


def _json_value(node: exp.Expression, row: Row) -> Value:
    """Look up a field of a JSON text that is neither an object nor a list."""
    whole, path = node.this, node.args["path"]
    field = _json_field(exp.JSONExtractScalar(this=whole, expression=path), row)
    nested = isinstance(field, str) and field[:1] in ("{", "[") and json.dumps(field) not in str(evaluate(whole, row))
    return None if nested else field


def _anonymous(node: exp.Expression, row: Row) -> Value:
    name, parts = node.name.upper(), node.expressions
    if name == "DATE_PART":
        return _part(str(parts[0].this).upper(), parts[1], row)
    if name in ("WEEKDAY", "ISOYEAR"):
        return _part("DOW" if name == "WEEKDAY" else name, parts[0], row)
    one, other = (evaluate(part, row) for part in parts)
    if one is None or other is None:
        return None
    return str(one).startswith(str(other)) if name == "PREFIX" else str(one).endswith(str(other))


def simple(rule: Callable[[str], str]) -> Callable[[exp.Expression, Row], Value]:
    return strict(lambda value: "".join(rule(c) if len(rule(c)) == 1 else c for c in value), "this")


EVALUATORS: Mapping[type[exp.Expression], Callable[[exp.Expression, Row], Value]] = {
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Boolean: lambda node, _row: bool(node.this),
    exp.Null: lambda _node, _row: None,
    exp.Paren: lambda node, row: evaluate(node.this, row),
    exp.Add: _added(+1, _arithmetic(lambda x, y: Near(x.value + y.value, x.error + y.error))),
    exp.Sub: _added(-1, _arithmetic(lambda x, y: Near(x.value - y.value, x.error + y.error))),
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
    exp.DateAdd: lambda node, row: shifted(node.this, node.expression, +1, row),
    exp.ILike: _like,
    exp.Escape: lambda node, row: _like(node.this, row, str(node.expression.this)),
    exp.If: _chosen,
    exp.Nullif: _null_if,
    exp.NullSafeEQ: _same,
    exp.NullSafeNEQ: lambda node, row: not _same(node, row),
    exp.BitwiseXor: _exclusive,
    exp.Mod: _remainder,
    exp.IntDiv: _quotient,
    exp.Sign: _signum,
    exp.Trunc: _truncate,
    exp.WidthBucket: _bucket,
    exp.Sqrt: monotone(math.sqrt, 0.0),
    exp.Ln: monotone(math.log, 0.0, open_end=True),
    exp.Exp: monotone(math.exp),
    exp.Log: _log,
    exp.Pow: _power,
    exp.Pi: lambda _node, _row: Near(Fraction(math.pi)),
    exp.Extract: lambda node, row: _part(node.name.upper(), node.expression, row),
    exp.Year: part("YEAR"),
    exp.Quarter: part("QUARTER"),
    exp.Month: part("MONTH"),
    exp.Week: part("WEEK"),
    exp.WeekOfYear: part("WEEK"),
    exp.Day: part("DAY"),
    exp.DayOfMonth: part("DAY"),
    exp.DayOfYear: part("DOY"),
    exp.DayOfWeek: part("DOW"),
    exp.DayOfWeekIso: part("ISODOW"),
    exp.Hour: part("HOUR"),
    exp.Minute: part("MINUTE"),
    exp.Second: part("SECOND"),
    exp.TimeToUnix: part("EPOCH"),
    exp.DateDiff: _difference,
    exp.DateTrunc: _beginning,
    exp.TimestampTrunc: _beginning,
    exp.LastDay: _last_day,
    exp.DateFromParts: _made,
    exp.TimeToStr: _formatted,
    exp.Monthname: named(
        "January February March April May June July August September October November December",
        lambda at: int(at.month) - 1,
    ),
    exp.Dayname: named("Monday Tuesday Wednesday Thursday Friday Saturday Sunday", lambda at: int(at.weekday())),
    exp.Upper: simple(_capital),
    exp.Lower: simple(_small),
    exp.Reverse: strict(lambda value: value[::-1], "this"),
    exp.Length: strict(lambda value: Near(Fraction(len(value))), "this"),
    exp.Trim: _trim,
    exp.Substring: strict(_substring, "this", "start", "length"),
    exp.Left: strict(lambda value, count: value[:count], "this", "expression"),
    exp.Right: strict(lambda value, count: value[len(value) - min(count, len(value)) :], "this", "expression"),
    exp.Pad: _pad,
    exp.Replace: strict(lambda value, old, new: value.replace(old, new), "this", "expression", "replacement"),
    exp.JSONExtractScalar: _json_field,
    exp.JSONValue: _json_value,
    exp.SplitPart: strict(_split, "this", "delimiter", "part_index"),
    exp.DPipe: strict(lambda one, other: one + other, "this", "expression"),
    exp.Concat: _concat,
    exp.ConcatWs: _concat_ws,
    exp.StrPosition: strict(lambda value, part: Near(Fraction(value.find(part) + 1)), "this", "substr"),
    exp.Contains: strict(lambda value, part: part in value, "this", "expression"),
    exp.StartsWith: strict(lambda value, part: value.startswith(part), "this", "expression"),
    exp.EndsWith: strict(lambda value, part: value.endswith(part), "this", "expression"),
    exp.RegexpLike: regular(lambda found: found[0] is not None),
    exp.RegexpFullMatch: regular(lambda found: found[0] is not None, "fullmatch"),
    exp.RegexpExtract: regular(lambda found: (found[0][found[1]] or "") if found[0] else ""),
    exp.Anonymous: _anonymous,
}

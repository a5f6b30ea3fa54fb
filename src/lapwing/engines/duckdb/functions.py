"""The functions of dates, texts and doubles as DuckDB's SQL (see `expressions` for the rules)."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import cast

from lapwing.query.expressions.expression import Literal, Operation
from lapwing.query.expressions.numeric import SMALLEST
from lapwing.query.expressions.types import Plain, double

Printer = Callable[[Operation, Sequence[str]], str]
# One day, and one microsecond, outside the calendar: they stand for everything beyond, and become NULL.
_BEYOND = {
    "date": ("DATE '0001-12-31 (BC)'", "DATE '10000-01-01'"),
    "timestamp": ("TIMESTAMP '0001-12-31 (BC) 23:59:59.999999'", "TIMESTAMP '10000-01-01 00:00:00'"),
}
_PARTS = {"dayofyear": "doy", "dayofweek": "dow"}
_MONDAY = "DATE '0001-01-01'"


def _called(name: str) -> Printer:
    return lambda _node, arguments: f"{name}({', '.join(arguments)})"


def _template(template: str) -> Printer:
    return lambda _node, arguments: template.format(*arguments)


def _word(node: Operation, index: int = 0) -> str:
    return str(cast(Literal, node.arguments[index]).value)


def _whole(node: Operation, index: int) -> str:
    return str(int(cast(Fraction, cast(Literal, node.arguments[index]).value)))


def _in_calendar(node: Operation, arguments: Sequence[str]) -> str:
    """Gather what lies outside at two values next to the calendar, and NULL at the first of them; then drop both."""
    below, above = _BEYOND[cast(Plain, node.type).name]
    return f"NULLIF(NULLIF(LEAST(GREATEST({arguments[0]}, {below}), {above}), {below}), {above})"


def _part(node: Operation, arguments: Sequence[str]) -> str:
    return f"EXTRACT({_PARTS.get(_word(node), _word(node))} FROM {arguments[1]})"


def _difference(node: Operation, arguments: Sequence[str]) -> str:
    _, start, end = arguments
    match _word(node):
        case "day":
            return f"({end} - {start})"
        case "week":  # inside the calendar, no date is before that Monday
            return f"(({end} - {_MONDAY}) // 7 - ({start} - {_MONDAY}) // 7)"
    return f"date_diff('{_word(node)}', {start}, {end})"


def _trim(node: Operation, arguments: Sequence[str]) -> str:
    name = {"both": "trim", "leading": "ltrim", "trailing": "rtrim"}[_word(node)]
    return f"{name}({', '.join(arguments[1:])})"


def _substring(node: Operation, arguments: Sequence[str]) -> str:
    places = [_whole(node, i) for i in range(1, len(arguments))]
    return f"substring({', '.join([arguments[0], *places])})"


def _cut(name: str) -> Printer:
    return lambda node, arguments: f"{name}({', '.join([arguments[0], _whole(node, 1), *arguments[2:]])})"


def _like(symbol: str) -> Printer:
    def show(_node: Operation, arguments: Sequence[str]) -> str:
        escape = f" ESCAPE {arguments[2]}" if len(arguments) > 2 else ""
        return f"({arguments[0]} {symbol} {arguments[1]}{escape})"

    return show


def _try_integer(node: Operation, arguments: Sequence[str]) -> str:
    read = f"TRY_CAST({arguments[0]} AS {_word(node, 1)})"
    return read if _word(node, 1) == "BIGINT" else f"TRY_CAST({read} AS BIGINT)"


def _null_below(value: float) -> Printer:
    """Turn a double at or below a value into NULL; GREATEST gathers them at it, and NULL too."""
    return lambda _node, arguments: f"NULLIF(GREATEST({arguments[0]}, {_double(value)}), {_double(value)})"


def _double(value: float) -> str:
    return double(Fraction(value))


FUNCTION_PRINTERS: Mapping[str, Printer] = {
    "in_calendar": _in_calendar,
    "part": _part,
    "day_number": _template("({} - DATE '1970-01-01')"),
    "microsecond_number": _called("epoch_us"),
    "truncate": lambda node, a: f"date_trunc('{_word(node)}', {a[1]})",
    "last_day": _called("last_day"),
    "to_date": _template("CAST({} AS DATE)"),
    "to_timestamp": _template("CAST({} AS TIMESTAMP)"),
    "difference": _difference,
    "add_months": _template("({} + to_months(TRY_CAST({} AS INTEGER)))"),
    "add_days": _template("({} + to_days(TRY_CAST({} AS INTEGER)))"),
    "add_microseconds": _template("({} + to_microseconds(TRY_CAST({} AS BIGINT)))"),
    "shift_days": _template("({} + TRY_CAST({} AS INTEGER))"),
    "make_date": _template("TRY_CAST(format('{{:04d}}-{{:02d}}-{{:02d}}', {}, {}, {}) AS DATE)"),
    "month_name": _called("monthname"),
    "day_name": _called("dayname"),
    "formatted": _called("strftime"),
    "try_date": _template("TRY_CAST({} AS DATE)"),
    "try_timestamp": _template("TRY_CAST({} AS TIMESTAMP)"),
    "try_integer": _try_integer,
    "written": _template("CAST({} AS VARCHAR)"),
    "upper": _called("upper"),
    "lower": _called("lower"),
    "reverse": _called("reverse"),
    "trim": _trim,
    "substring": _substring,
    "left": _cut("left"),
    "right": _cut("right"),
    "pad_left": _cut("lpad"),
    "pad_right": _cut("rpad"),
    "replace": _called("replace"),
    "split_part": lambda node, a: f"split_part({a[0]}, {a[1]}, {_whole(node, 2)})",
    "concat_strict": _template("({} || {})"),
    "concat": _called("concat"),
    "concat_ws": _called("concat_ws"),
    "length": _called("length"),
    "position": _called("strpos"),
    "contains": _called("contains"),
    "starts_with": _called("starts_with"),
    "ends_with": _called("ends_with"),
    "like": _like("LIKE"),
    "like_any_case": _like("ILIKE"),
    "matches": _called("regexp_matches"),
    "fully_matches": _called("regexp_full_match"),
    "extracted": lambda node, a: f"regexp_extract({a[0]}, {a[1]}, {_whole(node, 2)}, {a[3]})",
    "substituted": _called("regexp_replace"),
    "distinct": _template("({} IS DISTINCT FROM {})"),
    "sign": _template("CAST(sign({}) AS BIGINT)"),
    "steps_of": _template("{}"),
    "not_negative": _null_below(-float(SMALLEST)),
    "above_zero": _null_below(0.0),
    "not_zero": _template("NULLIF({}, 0.0::DOUBLE)"),
    "square_root": _called("sqrt"),
    "logarithm": _called("ln"),
    "logarithm_2": _called("log2"),
    "logarithm_10": _called("log10"),
    "exponential": _called("exp"),
    "power": _called("pow"),
    "sine": _called("sin"),
    "cosine": _called("cos"),
    "arc_tangent": _called("atan"),
}

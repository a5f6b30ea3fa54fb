"""What expressions compute, as DuckDB's SQL: every function printed so that it is total, and each argument once.

DuckDB may evaluate a branch of a CASE for rows that do not take it. So no expression counts on a CASE to keep it from
raising: every narrowing is a TRY_CAST, every quotient has its own guard.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor
from typing import cast

from lapwing.engines.duckdb.literals import double, engine_type, whole, width, width_of
from lapwing.query.expressions.expression import Expression, Literal, Operation
from lapwing.query.expressions.magnitudes import DoublingLadder, magnitudes_in
from lapwing.query.expressions.numeric import SMALLEST
from lapwing.query.expressions.types import Fixed, Plain, Real

Printer = Callable[[Operation, Sequence[str]], str]
# One day, and one microsecond, outside the calendar: they stand for everything beyond, and become NULL.
_BEYOND = {
    "date": ("DATE '0001-12-31 (BC)'", "DATE '10000-01-01'"),
    "timestamp": ("TIMESTAMP '0001-12-31 (BC) 23:59:59.999999'", "TIMESTAMP '10000-01-01 00:00:00'"),
}
_PARTS = {"dayofyear": "doy", "dayofweek": "dow"}
_MONDAY = "DATE '0001-01-01'"


def print_in_steps(value: str, step: Fraction) -> str:
    """Divide a double by a step, in one rounding where the step is 1/n or n."""
    multiplied = value if step.denominator == 1 else f"{value} * {double(Fraction(step.denominator))}"
    return multiplied if step.numerator == 1 else f"{multiplied} / {double(Fraction(step.numerator))}"


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


def _difference(node: Operation, arguments: Sequence[str]) -> str:
    _, start, end = arguments
    match _word(node):
        case "day":
            return f"({end} - {start})"
        case "week":  # inside the calendar, no date is before that Monday
            return f"(({end} - {_MONDAY}) // 7 - ({start} - {_MONDAY}) // 7)"
    return f"date_diff('{_word(node)}', {start}, {end})"


def _bucket(node: Operation, arguments: Sequence[str]) -> str:
    """Count whole spans since one that begins before the calendar does: so what is divided is never negative."""
    size, start = _word(node), _word(node, 1)
    return f"make_timestamp((epoch_us({arguments[2]}) - ({start})) // {size} * {size} + ({start}))"


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


NEAREST = {"less": ceil, "greater_equal": ceil, "less_equal": floor, "greater": floor}
"""What compares with whole numbers as a number between them does: k < 2.5 is k < 3, and k > 2.5 is k > 2."""


def in_own_steps(node: Operation) -> Operation:
    """Return a comparison with a constant in the value's own steps, where it would be brought to finer ones.

    It is the same condition: for whole numbers and m > 0, k·m ≥ c just if k ≥ ⌈c/m⌉. NULL stays NULL.
    """
    if node.function not in NEAREST:
        return node
    left, right = node.arguments  # a constant comes last (`normal_forms`)
    scaled = isinstance(left, Operation) and left.function == "rescale"
    if not scaled or not isinstance(right, Literal) or not isinstance(right.value, Fraction):
        return node
    value = cast(Operation, left).arguments[0]
    step = cast(Fixed, value.type).step
    nearest = Literal(value=NEAREST[node.function](right.value / step) * step, type=value.type)
    return replace(node, arguments=(value, nearest))


_SAME_NAME = (
    "last_day", "upper", "lower", "reverse", "replace", "concat", "concat_ws", "length", "contains", "starts_with",
    "ends_with",
)  # fmt: skip
"""What DuckDB calls as plans do."""

FUNCTION_PRINTERS: Mapping[str, Printer] = {
    **{name: _called(name) for name in _SAME_NAME},
    "in_calendar": _in_calendar,
    # A part of a date that is known to be NULL would be a double, as an epoch is.
    "part": lambda node, a: f"CAST(EXTRACT({_PARTS.get(_word(node), _word(node))} FROM {a[1]}) AS BIGINT)",
    "day_number": _template("({} - DATE '1970-01-01')"),
    "microsecond_number": _called("epoch_us"),
    "truncate": lambda node, a: f"date_trunc('{_word(node)}', {a[1]})",
    "bucket": _bucket,
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
    "trim": _trim,
    "substring": _substring,
    "left": _cut("left"),
    "right": _cut("right"),
    "pad_left": _cut("lpad"),
    "pad_right": _cut("rpad"),
    "split_part": lambda node, a: f"split_part({a[0]}, {a[1]}, {_whole(node, 2)})",
    "concat_strict": _template("({} || {})"),
    "position": _called("strpos"),
    "like": _like("LIKE"),
    "like_any_case": _like("ILIKE"),
    "matches": _called("regexp_matches"),
    "fully_matches": _called("regexp_full_match"),
    "extracted": lambda node, a: f"regexp_extract({a[0]}, {a[1]}, {_whole(node, 2)}, {a[3]})",
    "substituted": _called("regexp_replace"),
    # The function fails on what is no JSON: so it is handed NULL there, in whatever order the engine computes.
    "json_field": _template("json_extract_string(CASE WHEN json_valid({0}) THEN {0} END, {1})"),
    "json_value": _template("json_extract_string(json_value(CASE WHEN json_valid({0}) THEN {0} END, {1}), '$')"),
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


# ---- numbers, conditions, choices ------------------------------------------------------------------------------------


def _arithmetic(template: str) -> Printer:
    """Compute integers in the wider of the widths of arguments and result, then return to the result's own width."""

    def show(node: Operation, arguments: Sequence[str]) -> str:
        if isinstance(node.type, Real):
            return template.format(*arguments)
        widths = [width(cast(Fixed, argument.type)) for argument in node.arguments]
        result = width(cast(Fixed, node.type))
        wide = "HUGEINT" if "HUGEINT" in (*widths, result) else "BIGINT"
        cast_up = [a if w == wide else f"CAST({a} AS {wide})" for a, w in zip(arguments, widths, strict=True)]
        computed = template.format(*cast_up) if "{" in template else f"{template}({', '.join(cast_up)})"
        return computed if result == wide else f"TRY_CAST({computed} AS {result})"

    return show


def _extreme(name: str) -> Printer:
    whole_numbers = _arithmetic(name)

    def show(node: Operation, arguments: Sequence[str]) -> str:
        if isinstance(node.type, Real | Plain):
            return f"{name}({', '.join(arguments)})"
        return whole_numbers(node, arguments)

    return show


def _rescale(node: Operation, arguments: Sequence[str]) -> str:
    kind = cast(Fixed, node.type)
    factor = int(cast(Fixed, node.arguments[0].type).step / kind.step)
    wide = "HUGEINT" if width_of(0, factor) == "HUGEINT" else width(kind)
    # Widened before it is multiplied: the product may not fit the width of the value.
    scaled = f"(CAST({arguments[0]} AS {wide}) * {factor}::{wide})"
    return scaled if wide == width(kind) else f"TRY_CAST({scaled} AS {width(kind)})"


def _step(node: Expression) -> Fraction:
    return cast(Fixed, node.type).step


def _to_multiple(half: bool) -> Printer:
    """Round down, or half up, to multiples of a coarser step.

    Integer division truncates towards zero in some engines and down in others; shifting by a multiple of the step
    below the least value makes the dividend non-negative, where they agree.
    """

    def show(node: Operation, arguments: Sequence[str]) -> str:
        (argument,) = node.arguments
        step = cast(Fixed, node.type).step
        if isinstance(argument.type, Real):
            return f"TRY_CAST(floor({print_in_steps(arguments[0], step)} + {0.5 if half else 0.0}) AS BIGINT)"
        kind = cast(Fixed, argument.type)
        ratio = int(step / kind.step)
        wide = width(kind) if abs(ratio) < 2**60 else "HUGEINT"
        base = floor(Fraction(cast(int, kind.low), ratio))
        shift = (ratio // 2 if half else 0) - base * ratio
        widest = (
            "HUGEINT"
            if wide == "HUGEINT" or width_of(shift, shift + abs(cast(int, kind.high))) == "HUGEINT"
            else "BIGINT"
        )
        quotient = f"(CAST({arguments[0]} AS {widest}) + {shift}::{widest}) // {ratio}::{widest}"
        result = width(cast(Fixed, node.type))
        return f"TRY_CAST({quotient} + {base}::{widest} AS {result})"

    return show


def _joined(symbol: str) -> Printer:
    return lambda _node, arguments: f"({f' {symbol} '.join(arguments)})"


def _choice(show: Printer) -> Printer:
    """Choose among values; integers of two widths become one of the wider, and are brought to the result's own."""

    def chosen(node: Operation, arguments: Sequence[str]) -> str:
        value = show(node, arguments)
        return f"TRY_CAST({value} AS {engine_type(node.type)})" if isinstance(node.type, Fixed) else value

    return chosen


def case(_node: Operation, arguments: Sequence[str]) -> str:
    """Write conditions with their values, and the value of all else."""
    pairs = zip(arguments[:-1:2], arguments[1::2], strict=True)
    branches = " ".join(f"WHEN {condition} THEN {value}" for condition, value in pairs)
    return f"CASE {branches} ELSE {arguments[-1]} END"


def _truncate_to(node: Operation, arguments: Sequence[str]) -> str:
    """Cut to a multiple of a coarser step: DuckDB's integer division cuts towards zero."""
    step, inner = cast(Fixed, node.type).step, node.arguments[0].type
    if isinstance(inner, Real):
        return f"TRY_CAST(trunc({print_in_steps(arguments[0], step)}) AS BIGINT)"
    ratio = int(step / cast(Fixed, inner).step)
    wide = width(cast(Fixed, inner)) if ratio < 2**60 else "HUGEINT"
    return f"TRY_CAST(CAST({arguments[0]} AS {wide}) // {ratio}::{wide} AS {width(cast(Fixed, node.type))})"


def _magnitude(node: Operation, arguments: Sequence[str]) -> str:
    """Find the class of a value by a logarithm: a value within rounding of an edge may count as the edge."""
    magnitudes, value, kind = magnitudes_in(node), arguments[0], node.arguments[0].type
    step = kind.step if isinstance(kind, Fixed) else Fraction(1)
    origin = len(magnitudes.below.rungs)

    def rung(ladder: DoublingLadder, size: str) -> str:
        unit, last = ladder.unit / step, ladder.last / step
        # Brought into the ladder before the logarithm, which raises of 0 and of less.
        doublings = f"ceil(log2(LEAST(GREATEST({size}, {double(unit)}), {double(last)}) * {double(1 / unit)}))"
        return f"TRY_CAST(LEAST({doublings}, {double(Fraction(ladder.doublings))}) AS BIGINT)"

    above = f"WHEN {value} > 0 THEN {whole(origin + 1)} + {rung(magnitudes.above, f'CAST({value} AS DOUBLE)')}"
    below = f"WHEN {value} < 0 THEN {whole(origin - 1)} - {rung(magnitudes.below, f'-CAST({value} AS DOUBLE)')}"
    sides = [side for side, ladder in ((above, magnitudes.above), (below, magnitudes.below)) if ladder.last]
    return f"CASE {' '.join(sides)} WHEN {value} IS NOT NULL THEN {whole(origin)} END"


def _inside(_node: Operation, arguments: Sequence[str]) -> str:
    value, low, high = arguments
    # NULL is asked for first: GREATEST passes over it, and would make a bound of it.
    return f"CASE WHEN {value} IS NOT NULL THEN LEAST(GREATEST({value}, {low}), {high}) END"


def _exact_steps(node: Operation, arguments: Sequence[str]) -> str:
    """Return how many steps a double is, if it is the double nearest to so many, between the bounds; else NULL."""
    kind, value = cast(Fixed, node.type), arguments[0]
    low, high = (double(end * kind.step) for end in cast(tuple[int, int], (kind.low, kind.high)))
    count = f"floor({print_in_steps(value, kind.step)} + 0.5)"
    same = f"{value} BETWEEN {low} AND {high} AND {value} = {print_in_steps(count, 1 / kind.step)}"
    return f"CASE WHEN {same} THEN TRY_CAST({count} AS {width(kind)}) END"


def _whole_double(template: str) -> Printer:
    """Round a double to a multiple of a step, which stays a double."""

    def show(node: Operation, arguments: Sequence[str]) -> str:
        step = cast(Fraction, cast(Literal, node.arguments[1]).value)
        return f"({print_in_steps(template.format(print_in_steps(arguments[0], step)), 1 / step)})"

    return show


PRINTERS: Mapping[str, Printer] = {
    "inside": _inside,
    "exact_steps": _exact_steps,
    "floor_real": _whole_double("floor({})"),
    "round_real": _whole_double("floor({} + 0.5)"),
    "truncate_real": _whole_double("trunc({})"),
    "rescale": _rescale,
    "to_real": lambda node, a: f"({print_in_steps(f'CAST({a[0]} AS DOUBLE)', 1 / _step(node.arguments[0]))})",
    "to_fixed": lambda node, a: f"TRY_CAST(floor({print_in_steps(a[0], _step(node))} + 0.5) AS BIGINT)",
    "try_number": lambda _node, a: f"NULLIF(TRY_CAST({a[0]} AS DOUBLE), 'nan'::DOUBLE)",
    "add": _arithmetic("({} + {})"),
    "subtract": _arithmetic("({} - {})"),
    "multiply": _arithmetic("({} * {})"),
    "divide": _template("({} / NULLIF({}, 0.0::DOUBLE))"),
    "negate": _arithmetic("(-{})"),
    "absolute": _arithmetic("abs({})"),
    "least": _extreme("LEAST"),
    "greatest": _extreme("GREATEST"),
    "round_to": _to_multiple(half=True),
    "floor_to": _to_multiple(half=False),
    "coalesce": _choice(_called("COALESCE")),
    "case": _choice(case),
    "equal": _joined("="),
    "not_equal": _joined("<>"),
    "less": _joined("<"),
    "less_equal": _joined("<="),
    "greater": _joined(">"),
    "greater_equal": _joined(">="),
    "member": lambda _node, a: f"({a[0]} IN ({', '.join(a[1:])}))",
    "between": lambda _node, a: f"({a[0]} BETWEEN {a[1]} AND {a[2]})",
    "from_boolean": lambda _node, a: f"CAST({a[0]} AS BIGINT)",
    "is_null": lambda _node, a: f"({a[0]} IS NULL)",
    "and": _joined("AND"),
    "or": _joined("OR"),
    "not": lambda _node, a: f"(NOT {a[0]})",
    "null_if": _choice(_called("NULLIF")),
    "remainder": _arithmetic("({} % NULLIF({}, 0))"),
    "magnitude": _magnitude,
    "quotient": _arithmetic("({} // NULLIF({}, 0))"),
    "truncate_to": _truncate_to,
    **FUNCTION_PRINTERS,
}

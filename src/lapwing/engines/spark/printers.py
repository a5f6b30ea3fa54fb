"""What expressions compute, as Spark's SQL: every function printed so that it is total, and each argument once.

A function is here if the argument that it is total in Spark, with ANSI mode on, and means what it means in every other
engine, is short enough to stand beside it. All others are refused when a question is bound (`capabilities`): regular
expressions, which are Java's; logarithms and powers, whose last bit is the processor's; texts read as numbers or dates,
where Spark takes 'now' for one.

Totality. In ANSI mode +, −, *, CAST and floor raise beyond the range of their type. So integers are added and
multiplied by the functions that give NULL there (`try_add` and its kin), every narrowing is a TRY_CAST, doubles are
rounded by `literals.floored`, and a quotient has a divisor that is a constant or guarded by NULLIF. None of them counts
on a CASE to be kept from a value. Doubles themselves never raise.

Dates and timestamps. Timestamps are TIMESTAMP_NTZ, which no time zone moves; where a function exists for TIMESTAMP
alone they are cast there and back, which in a session in UTC changes no microsecond. Everything here lies in the years
1 to 9999, or is brought there by `in_calendar` first, as `query.expressions.temporal` has it.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import floor
from typing import Final, cast

from lapwing.engines.duckdb.printers import case
from lapwing.engines.spark import time_texts
from lapwing.engines.spark.letter_case import cased, small
from lapwing.engines.spark.literals import (
    NARROW,
    WIDE,
    day,
    double,
    engine_type,
    floored,
    is_narrow,
    moment,
    print_in_steps,
    text,
    wide,
    width,
)
from lapwing.engines.spark.patterns import like
from lapwing.query.expressions.days import CALENDAR, FIXED
from lapwing.query.expressions.expression import Literal, Operation
from lapwing.query.expressions.magnitudes import DoublingLadder, magnitudes_in
from lapwing.query.expressions.numeric import SMALLEST
from lapwing.query.expressions.types import Fixed, Plain, Real, describe

Printer = Callable[[Operation, Sequence[str]], str]
MONDAY: Final = CALENDAR["date"][0]
"""The first day of the calendar, which is a Monday: no day in it is before."""
_FIRST: Final = CALENDAR["timestamp"][0]
_HALF: Final = 2**45


def _called(name: str) -> Printer:
    return lambda _node, arguments: f"{name}({', '.join(arguments)})"


def _template(template: str) -> Printer:
    return lambda _node, arguments: template.format(*arguments)


def _joined(symbol: str) -> Printer:
    return lambda _node, arguments: f"({f' {symbol} '.join(arguments)})"


def word(node: Operation, index: int = 0) -> str:
    """Return an argument that is a word."""
    return str(cast(Literal, node.arguments[index]).value)


def constant_at(node: Operation, index: int) -> int:
    """Return an argument that is a whole constant."""
    return int(cast(Fraction, cast(Literal, node.arguments[index]).value))


# ---- integers --------------------------------------------------------------------------------------------------------


def _arithmetic(function: str) -> Printer:
    """Compute integers in the wider of the widths of arguments and result, then return to the result's own width."""
    symbols = {"try_add": "+", "try_subtract": "-", "try_multiply": "*"}

    def show(node: Operation, arguments: Sequence[str]) -> str:
        if isinstance(node.type, Real):
            return (
                f"({f' {symbols[function]} '.join(arguments)})"
                if function in symbols
                else _called(function)(node, arguments)
            )
        return _in_width(node, arguments, lambda values: f"{function}({', '.join(values)})")

    return show


def _in_width(node: Operation, arguments: Sequence[str], computed: Callable[[Sequence[str]], str]) -> str:
    result = width(cast(Fixed, node.type))
    widest = WIDE if WIDE in (result, *(width(cast(Fixed, one.type)) for one in node.arguments)) else NARROW
    # Every argument is cast, as a column without bounds is 64 bits wide, and its type says that it may be wider.
    value = computed([f"CAST({argument} AS {widest})" for argument in arguments] if widest == WIDE else arguments)
    return value if result == widest else f"TRY_CAST({value} AS {result})"


def _negate(node: Operation, arguments: Sequence[str]) -> str:
    if isinstance(node.type, Real):
        return f"(-{arguments[0]})"
    return _in_width(node, arguments, lambda values: f"try_subtract(0L, {values[0]})")


def _absolute(node: Operation, arguments: Sequence[str]) -> str:
    """Take the greater of a number and its opposite; `abs` raises at the least integer, which none here can be."""
    if isinstance(node.type, Real):
        return f"abs({arguments[0]})"
    return _in_width(node, arguments, lambda values: f"abs({values[0]})")


def _extreme(name: str) -> Printer:
    def show(node: Operation, arguments: Sequence[str]) -> str:
        if isinstance(node.type, Real | Plain):
            return f"{name}({', '.join(arguments)})"
        return _in_width(node, arguments, lambda values: f"{name}({', '.join(values)})")

    return show


def _rescale(node: Operation, arguments: Sequence[str]) -> str:
    kind = cast(Fixed, node.type)
    factor = int(cast(Fixed, node.arguments[0].type).step / kind.step)
    if width(kind) == NARROW and is_narrow(factor, factor):
        return f"try_multiply({arguments[0]}, {factor}L)"
    scaled = f"try_multiply(CAST({arguments[0]} AS {WIDE}), {wide(factor)})"
    return scaled if width(kind) == WIDE else f"TRY_CAST({scaled} AS {NARROW})"


def step_of(node: Operation) -> Fraction:
    """Return the step of an operation's result."""
    return cast(Fixed, node.type).step


def _to_multiple(half: bool) -> Printer:
    """Round down, or half up, to multiples of a coarser step.

    `div` cuts towards zero. Shifted by a multiple of the step below the least value the dividend is not negative.
    """

    def show(node: Operation, arguments: Sequence[str]) -> str:
        (argument,) = node.arguments
        step = step_of(node)
        if isinstance(argument.type, Real):
            return floored(f"({print_in_steps(arguments[0], step)} + {0.5 if half else 0.0}D)")
        kind = cast(Fixed, argument.type)
        ratio = int(step / kind.step)
        base = floor(Fraction(cast(int, kind.low), ratio))
        shift = (ratio // 2 if half else 0) - base * ratio
        return f"try_add(try_add({arguments[0]}, {shift}L) div {ratio}L, {base}L)"

    return show


def _truncate_to(node: Operation, arguments: Sequence[str]) -> str:
    """Cut to a multiple of a coarser step, towards zero, as `div` does."""
    inner = node.arguments[0].type
    if isinstance(inner, Real):
        return f"TRY_CAST({print_in_steps(arguments[0], step_of(node))} AS BIGINT)"
    return f"({arguments[0]} div {int(step_of(node) / cast(Fixed, inner).step)}L)"


def _exact_steps(node: Operation, arguments: Sequence[str]) -> str:
    """Return how many steps a double is, if it is the double nearest to so many, between the bounds; else NULL."""
    kind, value = cast(Fixed, node.type), arguments[0]
    low, high = (double(end * kind.step) for end in cast(tuple[int, int], (kind.low, kind.high)))
    count = floored(f"({print_in_steps(value, kind.step)} + 0.5D)")
    same = print_in_steps(f"CAST({count} AS DOUBLE)", 1 / kind.step)
    return f"CASE WHEN {value} BETWEEN {low} AND {high} AND {value} = {same} THEN {count} END"


def _whole_double(whole_of: Callable[[str], str]) -> Printer:
    """Round a double to a multiple of a step, which stays a double: beyond 2⁵³ it is a whole number."""

    def show(node: Operation, arguments: Sequence[str]) -> str:
        step = cast(Fraction, cast(Literal, node.arguments[1]).value)
        steps = f"({print_in_steps(arguments[0], step)})"
        rounded = (
            f"CASE WHEN abs{steps} >= {double(Fraction(2**53))} THEN {steps} ELSE CAST({whole_of(steps)} AS DOUBLE) END"
        )
        return f"({print_in_steps(f'({rounded})', 1 / step)})"

    return show


def _magnitude(node: Operation, arguments: Sequence[str]) -> str:
    """Find the class of a value by lengths of binary digits, exactly: no logarithm, whose last bit is the processor's.

    Of k ≥ 1 the least d with 2ᵈ ≥ k is one less than the number of digits of 2(k − 1) + 1. For a unit of 2ᶠ steps it is
    f less, and not below 0.
    """
    magnitudes, value, kind = magnitudes_in(node), arguments[0], node.arguments[0].type
    origin = len(magnitudes.below.rungs)
    if isinstance(kind, Fixed):
        value, rung = value if width(kind) == NARROW else f"CAST({value} AS {WIDE})", _rung_of_steps(kind)
        zero, opposite = "0L", f"try_subtract(0L, {value})"
    else:
        zero, opposite, rung = "0.0D", f"(-{value})", _rung_of_powers
    above = f"WHEN {value} > {zero} THEN {origin + 1}L + {rung(magnitudes.above, value)}"
    below = f"WHEN {value} < {zero} THEN {origin - 1}L - {rung(magnitudes.below, opposite)}"
    sides = [side for side, ladder in ((above, magnitudes.above), (below, magnitudes.below)) if ladder.last]
    return f"CASE {' '.join(sides)} WHEN {value} IS NOT NULL THEN {origin}L END"


def _digits(whole: str) -> str:
    """Return the least d with 2ᵈ ≥ a whole number from 1 to 2⁶²."""
    return f"length(bin(2L * ({whole} - 1L) + 1L)) - 1"


def _rung_of_steps(kind: Fixed) -> Callable[[DoublingLadder, str], str]:
    def rung(ladder: DoublingLadder, size: str) -> str:
        first, last = int(ladder.unit / kind.step).bit_length() - 1, int(ladder.last / kind.step)
        steps = f"LEAST(GREATEST({size}, 1L), {last}L)"
        digits = _digits(steps if width(kind) == NARROW else f"CAST({steps} AS BIGINT)")
        return f"CAST(LEAST(GREATEST({digits} - {first}, 0), {ladder.doublings}) AS BIGINT)"

    return rung


def _rung_of_powers(ladder: DoublingLadder, size: str) -> str:
    """Find a rung of a ladder of powers of two, of at most 90 doublings, in two halves of at most 45.

    Divided by the unit, a power of two, a size loses nothing. Of a number y ≥ 1, and of the whole number above it, the
    least d with 2ᵈ ≥ y is the same; and that of y is that of min(y, 2⁴⁵) plus that of max(y / 2⁴⁵, 1).
    """
    units = f"LEAST(GREATEST({size}, {double(ladder.unit)}), {double(ladder.last)}) * {double(1 / ladder.unit)}"
    halves = (f"LEAST({units}, {double(Fraction(_HALF))})", f"GREATEST({units} * {double(Fraction(1, _HALF))}, 1.0D)")
    return f"CAST({' + '.join(_digits(f'ceil({half})') for half in halves)} AS BIGINT)"


# ---- choices ---------------------------------------------------------------------------------------------------------


def _choice(show: Printer) -> Printer:
    """Choose among values; integers of two widths become one of the wider, and are brought to the result's own."""

    def chosen(node: Operation, arguments: Sequence[str]) -> str:
        value = show(node, arguments)
        return f"TRY_CAST({value} AS {engine_type(node.type)})" if isinstance(node.type, Fixed) else value

    return chosen


def _not_negative(_node: Operation, arguments: Sequence[str]) -> str:
    """Turn a double below 0 into NULL; GREATEST gathers all of them at the first one below, and NULL too."""
    below = double(-SMALLEST)
    return f"NULLIF(GREATEST({arguments[0]}, {below}), {below})"


# ---- dates and timestamps --------------------------------------------------------------------------------------------


def _in_calendar(node: Operation, arguments: Sequence[str]) -> str:
    """Gather what lies outside at two values next to the calendar, and NULL at the first of them; then drop both."""
    name = cast(Plain, node.type).name
    first, last = CALENDAR[name]
    below, above = ((day if name == "date" else moment)(end) for end in (first - 1, last + 1))
    return f"NULLIF(NULLIF(LEAST(GREATEST({arguments[0]}, {below}), {above}), {below}), {above})"


def _microseconds(value: str) -> str:
    return f"unix_micros(CAST({value} AS TIMESTAMP))"


def _at(microseconds: str) -> str:
    return f"CAST(timestamp_micros({microseconds}) AS TIMESTAMP_NTZ)"


_PARTS: Final[Mapping[str, str]] = {
    "year": "year(CAST({} AS DATE))",
    "isoyear": "extract(YEAROFWEEK FROM CAST({} AS DATE))",
    "quarter": "quarter(CAST({} AS DATE))",
    "month": "month(CAST({} AS DATE))",
    "week": "weekofyear(CAST({} AS DATE))",
    "day": "day(CAST({} AS DATE))",
    "dayofyear": "dayofyear(CAST({} AS DATE))",
    "dayofweek": "dayofweek(CAST({} AS DATE)) - 1",  # Sunday is 1 there and 0 here
    "isodow": "weekday(CAST({} AS DATE)) + 1",  # Monday is 0 there and 1 here
    "hour": "hour(CAST({} AS TIMESTAMP_NTZ))",
    "minute": "minute(CAST({} AS TIMESTAMP_NTZ))",
    "second": "second(CAST({} AS TIMESTAMP_NTZ))",
}
TRUNCATED: Final = frozenset({"year", "quarter", "month", "week", "day", "hour", "minute", "second"})
"""What DATE_TRUNC is printed for; of any other unit Spark makes NULL, unseen."""
COUNTED: Final = frozenset({"year", "quarter", "month", *FIXED})
"""What DATE_DIFF is printed for."""


def _difference(node: Operation, arguments: Sequence[str]) -> str:
    """Count how many units begin: the difference of two numbers that say how many had begun."""
    unit, (start, end) = word(node), arguments[1:]

    def index(value: str) -> str:
        match unit:
            case "year":
                return f"year({value})"
            case "quarter":
                return f"(4 * year({value}) + quarter({value}))"
            case "month":
                return f"(12 * year({value}) + month({value}))"
            case "day" | "week":
                return f"((unix_date({value}) - ({MONDAY})) div {1 if unit == 'day' else 7})"
        return f"(({_microseconds(value)} - ({_FIRST}L)) div {FIXED[unit]}L)"

    if unit in ("year", "quarter", "month"):
        start, end = (f"CAST({value} AS DATE)" for value in (start, end))
    return f"CAST({index(end)} - {index(start)} AS BIGINT)"


def _made_date(_node: Operation, arguments: Sequence[str]) -> str:
    """Read a date from its canonical text: `make_date` raises where there is none."""
    year, month, day_ = (f"lpad(CAST({a} AS STRING), {n}, '0')" for a, n in zip(arguments, (4, 2, 2), strict=True))
    return f"TRY_CAST(concat({year}, '-', {month}, '-', {day_}) AS DATE)"


def _bucket(node: Operation, arguments: Sequence[str]) -> str:
    """Count whole spans since one that begins before the calendar does: so what is divided is never negative."""
    size, start = f"{word(node)}L", f"({word(node, 1)}L)"
    return _at(f"((({_microseconds(arguments[2])} - {start}) div {size}) * {size} + {start})")


def _later(microseconds: str) -> Printer:
    """Move a timestamp by a number of something; a shift is at most 12,000 months long, so nothing overflows.

    A number that was made from wide ones is a DECIMAL, of which Spark makes no timestamp.
    """
    return lambda _node, a: _at(f"try_add({_microseconds(a[0])}, {microseconds.format(f'TRY_CAST({a[1]} AS BIGINT)')})")


# ---- texts -----------------------------------------------------------------------------------------------------------
# Texts are compared byte by byte, and counted in code points, by either engine.


def _like(node: Operation, arguments: Sequence[str]) -> str:
    return like(arguments[0], word(node, 1), word(node, 2) if len(node.arguments) > 2 else None)


def _like_any_case(node: Operation, arguments: Sequence[str]) -> str:
    escape = word(node, 2) if len(node.arguments) > 2 else None
    return like(cased("lower", arguments[0]), small(word(node, 1)), escape)


def _written(node: Operation, arguments: Sequence[str]) -> str:
    if describe(node.arguments[0].type) == "timestamp":
        return time_texts.timestamp(arguments[0])
    return f"CAST({arguments[0]} AS STRING)"


def _substring(node: Operation, arguments: Sequence[str]) -> str:
    places = [str(constant_at(node, i)) for i in range(1, len(arguments))]
    return f"substring({', '.join([arguments[0], *places])})"


SPACES: Final = " \u00a0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u202f\u205f\u3000"
"""What Unicode calls a space separator, all of which DuckDB cuts; Spark would cut the first alone."""


def _trim(node: Operation, arguments: Sequence[str]) -> str:
    characters = arguments[2] if len(arguments) > 2 else text(SPACES)
    return f"trim({word(node).upper()} {characters} FROM {arguments[1]})"


def _cut(name: str) -> Printer:
    return lambda node, a: f"{name}({', '.join([a[0], str(constant_at(node, 1)), *a[2:]])})"


PRINTERS: Final[Mapping[str, Printer]] = {
    # numbers
    "rescale": _rescale,
    "to_real": lambda node, a: (
        f"({print_in_steps(f'CAST({a[0]} AS DOUBLE)', 1 / cast(Fixed, node.arguments[0].type).step)})"
    ),
    "inside": lambda _node, a: f"CASE WHEN {a[0]} IS NOT NULL THEN LEAST(GREATEST({a[0]}, {a[1]}), {a[2]}) END",
    "exact_steps": _exact_steps,
    "floor_real": _whole_double(floored),
    "round_real": _whole_double(lambda value: floored(f"({value} + 0.5D)")),
    "truncate_real": _whole_double("TRY_CAST({} AS BIGINT)".format),
    "to_fixed": lambda node, a: floored(f"({print_in_steps(a[0], step_of(node))} + 0.5D)"),
    "add": _arithmetic("try_add"),
    "subtract": _arithmetic("try_subtract"),
    "multiply": _arithmetic("try_multiply"),
    "divide": _template("({} / NULLIF({}, 0.0D))"),
    "negate": _negate,
    "absolute": _absolute,
    "least": _extreme("LEAST"),
    "greatest": _extreme("GREATEST"),
    "round_to": _to_multiple(half=True),
    "floor_to": _to_multiple(half=False),
    "truncate_to": _truncate_to,
    "remainder": _template("try_mod({}, {})"),
    "quotient": _template("({} div NULLIF({}, 0L))"),
    "magnitude": _magnitude,
    "sign": _template("CAST(sign({}) AS BIGINT)"),
    "steps_of": _template("{}"),
    "not_negative": _not_negative,
    "square_root": _called("sqrt"),  # rounded correctly, by IEEE 754 and by Java
    # conditions and choices
    "coalesce": _choice(_called("COALESCE")),
    "case": _choice(case),
    "null_if": _choice(_called("NULLIF")),
    "equal": _joined("="),
    "not_equal": _joined("<>"),
    "less": _joined("<"),
    "less_equal": _joined("<="),
    "greater": _joined(">"),
    "greater_equal": _joined(">="),
    "distinct": _template("(NOT ({} <=> {}))"),
    "member": lambda _node, a: f"({a[0]} IN ({', '.join(a[1:])}))",
    "between": lambda _node, a: f"({a[0]} BETWEEN {a[1]} AND {a[2]})",
    "from_boolean": _template("CAST({} AS BIGINT)"),
    "is_null": _template("({} IS NULL)"),
    "and": _joined("AND"),
    "or": _joined("OR"),
    "not": _template("(NOT {})"),
    # dates and timestamps
    "in_calendar": _in_calendar,
    "part": lambda node, a: f"CAST({_PARTS[word(node)].format(a[1])} AS BIGINT)",
    "day_number": _template("CAST(unix_date({}) AS BIGINT)"),
    "microsecond_number": lambda _node, a: _microseconds(a[0]),
    "truncate": lambda node, a: f"CAST(date_trunc('{word(node)}', CAST({a[1]} AS TIMESTAMP)) AS TIMESTAMP_NTZ)",
    "bucket": _bucket,
    "to_date": _template("CAST({} AS DATE)"),
    "to_timestamp": _template("CAST({} AS TIMESTAMP_NTZ)"),
    "difference": _difference,
    "add_days": _later("try_multiply({}, 86400000000L)"),
    "add_microseconds": _later("{}"),
    "add_months": _template("({} + make_ym_interval(0, TRY_CAST({} AS INT)))"),
    "shift_days": _template("date_add({}, TRY_CAST({} AS INT))"),
    "last_day": _called("last_day"),
    "make_date": _made_date,
    # texts
    "length": _template("CAST(char_length({}) AS BIGINT)"),
    "contains": _called("contains"),
    "starts_with": _called("startswith"),
    "ends_with": _called("endswith"),
    "position": _template("CAST(instr({}, {}) AS BIGINT)"),
    "concat_strict": _template("({} || {})"),
    "concat": lambda _node, a: f"concat_ws('', {', '.join(a)})",  # which leaves NULL out, where concat gives NULL
    "concat_ws": _called("concat_ws"),
    "like": _like,
    "substring": _substring,
    "left": _cut("left"),
    "right": _cut("right"),
    "trim": _trim,
    "pad_left": _cut("lpad"),
    "pad_right": _cut("rpad"),
    "replace": _called("replace"),
    "written": _written,
    "upper": lambda _node, a: cased("upper", a[0]),
    "lower": lambda _node, a: cased("lower", a[0]),
    "like_any_case": _like_any_case,
    "formatted": time_texts.formatted,
    "month_name": lambda _node, a: time_texts.month_name(a[0]),
    "day_name": lambda _node, a: time_texts.day_name(a[0]),
}

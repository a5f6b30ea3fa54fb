"""Expressions as the SQL of an engine: every function printed so that it is total, and each argument once.

An engine may evaluate a branch of a CASE for rows that do not take it. So no expression counts on a CASE to keep it
from raising: every narrowing is a TRY_CAST, every quotient has its own guard.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import floor
from typing import cast

from lapwing.engines.duckdb.functions import FUNCTION_PRINTERS
from lapwing.query.expressions.expression import Column, Expression, Literal, Operation
from lapwing.query.expressions.magnitudes import Ladder, magnitudes_in
from lapwing.query.expressions.types import Fixed, Plain, Real, Type, double, print_in_steps


def identifier(name: str) -> str:
    """Quote a name."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """Quote a text constant."""
    return "'" + value.replace("'", "''") + "'"


def whole(value: int | None) -> str:
    """Write an integer constant in the narrowest of the two integer types used."""
    return f"{value}::{_width_of(value or 0, value or 0)}"


def _width_of(low: int, high: int) -> str:
    return "BIGINT" if low >= -(2**62) and high <= 2**62 else "HUGEINT"


def width(kind: Fixed) -> str:
    """Return the engine's type for a fixed-point value: 64 bits where its bounds allow, else 128."""
    return "HUGEINT" if kind.low is None or kind.high is None else _width_of(kind.low, kind.high)


def clamp(value: str, low: int, high: int) -> str:
    """Keep an integer that is not NULL inside its bounds."""
    return f"LEAST(GREATEST({value}, {whole(low)}), {whole(high)})"


def expression(node: Expression) -> str:
    """Print an expression. Every function prints each argument once, so that the text stays as long as the tree."""
    match node:
        case Column():
            return identifier(node.name)
        case Literal():
            return _literal(node)
        case Operation():
            return PRINTERS[node.function](node, [expression(argument) for argument in node.arguments])


def _literal(node: Literal) -> str:
    value = node.value
    if value is None:
        return f"NULL::{engine_type(node.type)}"
    if isinstance(value, Fraction):
        return double(value) if isinstance(node.type, Real) else whole(int(value / cast(Fixed, node.type).step))
    if isinstance(value, bool):
        return str(value).upper()
    return text(value) if isinstance(value, str) else str(node)


def engine_type(kind: Type) -> str:
    """Return the engine's type for values of a type."""
    if isinstance(kind, Fixed):
        return width(kind)
    names = {"text": "VARCHAR", "date": "DATE", "timestamp": "TIMESTAMP"}
    return "DOUBLE" if isinstance(kind, Real) else names.get(kind.name, "BOOLEAN")


def _arithmetic(template: str) -> Callable[[Operation, Sequence[str]], str]:
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


def _extreme(name: str) -> Callable[[Operation, Sequence[str]], str]:
    whole_numbers = _arithmetic(name)

    def show(node: Operation, arguments: Sequence[str]) -> str:
        if isinstance(node.type, Real | Plain):
            return f"{name}({', '.join(arguments)})"
        return whole_numbers(node, arguments)

    return show


def _rescale(node: Operation, arguments: Sequence[str]) -> str:
    kind = cast(Fixed, node.type)
    factor = int(cast(Fixed, node.arguments[0].type).step / kind.step)
    wide = "HUGEINT" if _width_of(0, factor) == "HUGEINT" else width(kind)
    scaled = f"(CAST({arguments[0]} AS {wide}) * {factor}::{wide})"
    return scaled if wide == width(kind) else f"TRY_CAST({scaled} AS {width(kind)})"


def _to_real(node: Operation, arguments: Sequence[str]) -> str:
    step = cast(Fixed, node.arguments[0].type).step
    return f"({print_in_steps(f'CAST({arguments[0]} AS DOUBLE)', 1 / step)})"


def _to_fixed(node: Operation, arguments: Sequence[str]) -> str:
    return f"TRY_CAST(floor({print_in_steps(arguments[0], cast(Fixed, node.type).step)} + 0.5) AS BIGINT)"


def _to_multiple(half: bool) -> Callable[[Operation, Sequence[str]], str]:
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
            if wide == "HUGEINT" or _width_of(shift, shift + abs(cast(int, kind.high))) == "HUGEINT"
            else "BIGINT"
        )
        quotient = f"(CAST({arguments[0]} AS {widest}) + {shift}::{widest}) // {ratio}::{widest}"
        result = width(cast(Fixed, node.type))
        return f"TRY_CAST({quotient} + {base}::{widest} AS {result})"

    return show


def _joined(symbol: str) -> Callable[[Operation, Sequence[str]], str]:
    return lambda _node, arguments: f"({f' {symbol} '.join(arguments)})"


def _case(node: Operation, arguments: Sequence[str]) -> str:
    pairs = zip(arguments[:-1:2], arguments[1::2], strict=True)
    branches = " ".join(f"WHEN {condition} THEN {value}" for condition, value in pairs)
    chosen = f"CASE {branches} ELSE {arguments[-1]} END"
    return f"TRY_CAST({chosen} AS {engine_type(node.type)})" if isinstance(node.type, Fixed) else chosen


def _coalesce(node: Operation, arguments: Sequence[str]) -> str:
    chosen = f"COALESCE({', '.join(arguments)})"
    return f"TRY_CAST({chosen} AS {engine_type(node.type)})" if isinstance(node.type, Fixed) else chosen


def _null_if(node: Operation, arguments: Sequence[str]) -> str:
    chosen = f"NULLIF({', '.join(arguments)})"
    return f"TRY_CAST({chosen} AS {engine_type(node.type)})" if isinstance(node.type, Fixed) else chosen


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
    found, value, kind = magnitudes_in(node), arguments[0], node.arguments[0].type
    step = kind.step if isinstance(kind, Fixed) else Fraction(1)
    origin = len(found.below.rungs)

    def rung(ladder: Ladder, size: str) -> str:
        unit, last = ladder.unit / step, ladder.last / step
        doublings = f"ceil(log2(LEAST(GREATEST({size}, {double(unit)}), {double(last)}) * {double(1 / unit)}))"
        return f"TRY_CAST(LEAST({doublings}, {double(Fraction(ladder.doublings))}) AS BIGINT)"

    above = f"WHEN {value} > 0 THEN {whole(origin + 1)} + {rung(found.above, f'CAST({value} AS DOUBLE)')}"
    below = f"WHEN {value} < 0 THEN {whole(origin - 1)} - {rung(found.below, f'-CAST({value} AS DOUBLE)')}"
    sides = [side for side, ladder in ((above, found.above), (below, found.below)) if ladder.last]
    return f"CASE {' '.join(sides)} WHEN {value} IS NOT NULL THEN {whole(origin)} END"


def _divide(_node: Operation, arguments: Sequence[str]) -> str:
    return f"({arguments[0]} / NULLIF({arguments[1]}, 0.0::DOUBLE))"


PRINTERS: Mapping[str, Callable[[Operation, Sequence[str]], str]] = {
    "rescale": _rescale,
    "to_real": _to_real,
    "to_fixed": _to_fixed,
    "try_number": lambda _node, a: f"NULLIF(TRY_CAST({a[0]} AS DOUBLE), 'nan'::DOUBLE)",
    "add": _arithmetic("({} + {})"),
    "subtract": _arithmetic("({} - {})"),
    "multiply": _arithmetic("({} * {})"),
    "divide": _divide,
    "negate": _arithmetic("(-{})"),
    "absolute": _arithmetic("abs({})"),
    "least": _extreme("LEAST"),
    "greatest": _extreme("GREATEST"),
    "round_to": _to_multiple(half=True),
    "floor_to": _to_multiple(half=False),
    "coalesce": _coalesce,
    "case": _case,
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
    "null_if": _null_if,
    "remainder": _arithmetic("({} % NULLIF({}, 0))"),
    "magnitude": _magnitude,
    "quotient": _arithmetic("({} // NULLIF({}, 0))"),
    "truncate_to": _truncate_to,
    **FUNCTION_PRINTERS,
}

"""From a question to the SQL that an engine runs: cleaned rows, bounded units, exact integers per cell.

The SQL is printed from the plan alone; no text of an analyst reaches it but constants, quoted here. Three layers, in
this order, carry the privacy argument of `stability`:

cleaned  every declared column, value by value: NaN counts as NULL, numbers are clamped to their bounds, rounded half
         up to whole steps and clamped again. What a row becomes depends on that row alone, and nothing raises.
kept     at most K rows of each unit, the first by a hash of the row's declared values, ties broken by the values
         themselves. Rows that tie in everything are equal in everything that can be asked. So which rows of a unit are
         kept, as a bag of values, is a function of that unit's own rows: no position, no other unit takes part.
         Rows without a unit are dropped.
answer   the filter, then integers summed per cell.

An engine may evaluate a branch of a CASE for rows that do not take it. So no expression counts on a CASE to keep it
from raising: every narrowing is a TRY_CAST, every quotient has its own guard.

A question may be run in several passes, each over the units of one residue of their hash: units are disjoint, so the
passes' cells add up.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import cast

from lapwing.catalog.model import Column as Declared
from lapwing.catalog.model import Table
from lapwing.query.doubles import double, print_in_steps
from lapwing.query.expression import Column, Expression, Literal, Operation
from lapwing.query.plan import Count, CountUnits, Key, Measure, Question
from lapwing.query.rows import column_type
from lapwing.query.types import DATE, TEXT, TIMESTAMP, Fixed, Real, Type

INTEGER_TYPES = {
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "UTINYINT",
    "USMALLINT",
    "UINTEGER",
    "UBIGINT",
    "HUGEINT",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where an engine finds a table: a relation to select from, and the engine's own type of each column."""

    relation: str
    types: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One of `of` disjoint parts of the units."""

    index: int = 0
    of: int = 1


def render(question: Question, source: Source, part: Pass = Pass()) -> str:
    """Return the DuckDB query whose rows are cells: the keys, then one exact integer a measure."""
    unit = unit_name(question.table)
    layers = [f"cleaned AS ({cleaned(question.table, source, part)})", f"kept AS ({kept(question.table, unit)})"]
    keys = [f"{key_value(key)} AS key{i}" for i, key in enumerate(question.keys)]
    measures = [f"{measured(measure, unit)} AS measure{i}" for i, measure in enumerate(question.measures)]
    conditions = [f"({expression(question.where)})"] if question.where is not None else []
    conditions += [listed(key) for key in question.keys if key.other is None]
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    # By position: a column of the table may be called key0 too.
    group = f" GROUP BY {', '.join(str(i + 1) for i in range(len(keys)))}" if keys else ""
    return f"WITH {', '.join(layers)} SELECT {', '.join([*keys, *measures])} FROM kept{where}{group}"


def read_through(table: Table, source: Source) -> str:
    """Return a query that computes every cleaned value of every row, and the number of rows."""
    values = [clean(column, source.types[column.name]) for column in table.columns]
    if table.privacy_unit != "row":
        values.append(unit_value(table, source.types[table.privacy_unit]))
    return f"SELECT COUNT(*), bit_xor(hash({', '.join(values) or '0'})) FROM {source.relation}"


# ---- cleaned --------------------------------------------------------------------------------------------------------


def unit_name(table: Table) -> str:
    """Return a name for the unit that no column has."""
    name = "unit"
    while any(column.name.casefold() == name for column in table.columns):
        name += "_"
    return name


def cleaned(table: Table, source: Source, part: Pass) -> str:
    """Select every declared column, cleaned, and the unit."""
    columns = [f"{clean(column, source.types[column.name])} AS {identifier(column.name)}" for column in table.columns]
    if table.privacy_unit == "row":
        return f"SELECT {', '.join(columns) or 'NULL AS nothing'} FROM {source.relation}"
    unit = unit_value(table, source.types[table.privacy_unit])
    conditions = [f"{unit} IS NOT NULL"]
    if part.of > 1:
        conditions.append(f"hash({unit}) % {part.of} = {part.index}")
    chosen = ", ".join([f"{unit} AS {unit_name(table)}", *columns])
    return f"SELECT {chosen} FROM {source.relation} WHERE {' AND '.join(conditions)}"


def unit_value(table: Table, physical: str) -> str:
    """Return the unit's identity: equality of its value as the declared type, or of its text if it is not declared."""
    name = identifier(table.privacy_unit)
    declared = next((column.type for column in table.columns if column.name == table.privacy_unit), "string")
    if declared == "integer":
        return name if physical in INTEGER_TYPES else f"TRY_CAST({name} AS HUGEINT)"
    if declared in ("date", "timestamp"):
        return f"TRY_CAST({name} AS {declared.upper()})"
    return name if physical in INTEGER_TYPES or physical == "VARCHAR" else f"CAST({name} AS VARCHAR)"


def clean(column: Declared, physical: str) -> str:
    """Return the cleaned value of a declared column."""
    name = identifier(column.name)
    match column.type:
        case "string":
            return name if physical == "VARCHAR" else f"CAST({name} AS VARCHAR)"
        case "boolean":
            return name if physical == "BOOLEAN" else f"TRY_CAST({name} AS BOOLEAN)"
        case "date" | "timestamp":
            return _clean_temporal(column, name)
    kind = column_type(column)
    if isinstance(kind, Fixed) and kind.bounded:
        whole_numbers = physical in INTEGER_TYPES and kind.step == 1
        return _clean_whole(name, kind) if whole_numbers else _clean_fixed(name, kind, physical)
    if column.type == "integer":
        return name if physical == "BIGINT" else f"TRY_CAST({_half_up(name, physical)} AS BIGINT)"
    return f"NULLIF({_double(name, physical)}, 'nan'::DOUBLE)"


def _half_up(name: str, physical: str) -> str:
    return f"floor({_double(name, physical)} + 0.5)" if physical in {"FLOAT", "DOUBLE"} else name


def _clean_whole(name: str, kind: Fixed) -> str:
    """Clamp an integer. A NULL meets no condition and stays NULL."""
    return (
        f"CASE WHEN {name} <= {kind.low} THEN {whole(kind.low)} WHEN {name} >= {kind.high} THEN {whole(kind.high)} "
        f"ELSE TRY_CAST({name} AS BIGINT) END"
    )


def _clean_fixed(name: str, kind: Fixed, physical: str) -> str:
    """Clamp, round half up to whole steps, clamp again: the double nearest to a bound may lie beyond it."""
    value = _double(name, physical)
    low, high = (cast(int, end) for end in (kind.low, kind.high))
    steps = f"TRY_CAST(floor({print_in_steps(value, kind.step)} + 0.5) AS BIGINT)"
    return (
        f"CASE WHEN {value} IS NULL OR isnan({value}) THEN NULL "
        f"WHEN {value} <= {double(low * kind.step)} THEN {whole(low)} "
        f"WHEN {value} >= {double(high * kind.step)} THEN {whole(high)} ELSE {clamp(steps, low, high)} END"
    )


def clamp(value: str, low: int, high: int) -> str:
    """Keep an integer that is not NULL inside its bounds."""
    return f"LEAST(GREATEST({value}, {whole(low)}), {whole(high)})"


def _clean_temporal(column: Declared, name: str) -> str:
    kind = column.type.upper()
    value = f"TRY_CAST({name} AS {kind})"
    if column.lower is None or column.upper is None:
        return value
    low, high = (f"{kind} '{str(end)[:26]}'" for end in (column.lower, column.upper))
    return f"CASE WHEN {value} IS NULL THEN NULL ELSE LEAST(GREATEST({value}, {low}), {high}) END"


def _double(name: str, physical: str) -> str:
    return name if physical == "DOUBLE" else f"TRY_CAST({name} AS DOUBLE)"


# ---- kept -----------------------------------------------------------------------------------------------------------


def kept(table: Table, unit: str) -> str:
    """Keep the first rows of each unit in the order of a salted hash of their values."""
    if table.privacy_unit == "row":
        return "SELECT * FROM cleaned"
    values = [identifier(column.name) for column in table.columns]
    order = ", ".join([f"hash({', '.join([text(table.name), *values])})", *values])
    return (
        f"SELECT * FROM cleaned QUALIFY row_number() OVER (PARTITION BY {unit} ORDER BY {order}) "
        f"<= {table.max_rows_per_unit}"
    )


# ---- answer ---------------------------------------------------------------------------------------------------------


def key_value(key: Key) -> str:
    """Return a key, with everything unlisted gathered under its `other` where it has one."""
    column = expression(key.column)
    if key.other is None:
        return column
    return f"CASE WHEN {listed(key)} THEN {column} ELSE {text(key.other)} END"


def listed(key: Key) -> str:
    """Return the condition that a key is one of its public values."""
    values = ", ".join(expression(_constant(value, key.column.type)) for value in key.values)
    return f"{expression(key.column)} IN ({values})"


def _constant(value: object, kind: Type) -> Literal:
    return Literal(value=value, type=kind)  # type: ignore[arg-type]  # the catalog has checked the values


def measured(measure: Measure, unit: str) -> str:
    """Return the aggregate of a measure: an exact integer, 0 where there are no rows."""
    match measure:
        case CountUnits():
            return f"COUNT(DISTINCT {unit})"
        case Count(argument=None):
            return "COUNT(*)"
        case Count(argument=argument):
            return f"COUNT({expression(cast(Expression, argument))})"
    low, high = (cast(int, end) for end in (measure.type.low, measure.type.high))
    value = expression(measure.argument)
    if not isinstance(measure.argument, Column):  # doubles inside may stray past a proven bound by a rounding
        value = f"CASE WHEN {value} IS NULL THEN NULL ELSE {clamp(value, low, high)} END"
    shifted = value if measure.origin == 0 else f"{value} - {whole(measure.origin)}"
    return f"COALESCE(SUM({shifted}), 0)"


# ---- expressions ----------------------------------------------------------------------------------------------------


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
        return f"NULL::{_engine_type(node.type)}"
    if isinstance(value, Fraction):
        return double(value) if isinstance(node.type, Real) else whole(int(value / cast(Fixed, node.type).step))
    if isinstance(value, bool):
        return str(value).upper()
    return text(value) if isinstance(value, str) else str(node)


def _engine_type(kind: Type) -> str:
    if isinstance(kind, Fixed):
        return width(kind)
    names: dict[Type, str] = {TEXT: "VARCHAR", DATE: "DATE", TIMESTAMP: "TIMESTAMP"}
    return "DOUBLE" if isinstance(kind, Real) else names.get(kind, "BOOLEAN")


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
        if isinstance(node.type, Real):
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
    return f"TRY_CAST({chosen} AS {_engine_type(node.type)})" if isinstance(node.type, Fixed) else chosen


def _coalesce(node: Operation, arguments: Sequence[str]) -> str:
    chosen = f"COALESCE({', '.join(arguments)})"
    return f"TRY_CAST({chosen} AS {_engine_type(node.type)})" if isinstance(node.type, Fixed) else chosen


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
    "like": lambda _node, a: f"({a[0]} LIKE {a[1]})",
    "is_null": lambda _node, a: f"({a[0]} IS NULL)",
    "and": _joined("AND"),
    "or": _joined("OR"),
    "not": lambda _node, a: f"(NOT {a[0]})",
}

"""Values as they are read: what conditions, keys and DISTINCT see of a bounded number, before anything moves it.

Two columns stand for a bounded number x. What is *summed* is x as the catalog bounds it: clamped, rounded half up to
whole steps, clamped again. What is *asked of x* is x as it was read, its `read` column: a double, or the whole number
of an integer column. NaN counts as NULL, and −0.0 as 0.0. So `x <> -99`, `x >= 18` and FLOOR(x) mean what they say.

**It is total.** A read column has bounds too, far out: a whole number beyond ±2⁵⁶ counts as ±2⁵⁶, and a double beyond
±2¹⁵⁰ as ±2¹⁵⁰ (`types`), infinities included. Constants of a question are within ±10⁴⁰, so that no comparison with one
can tell the difference for doubles. All rules of interval arithmetic hold from there on, and what they cannot prove to
be total of such wide values they refuse; a condition then sees the value within bounds and steps instead, and a note
says so (`release.verdicts`). A decimal is compared as a double, and computed with in whole steps, unclamped.

**No sensitivity depends on it.** A read column is a function of its own row, so every relation stays unit-local; what
is summed is still the clamped value, or a condition's 1 and 0, or is rounded and clamped to proven bounds as ever.
Rows of a unit are put in order by a hash of bounded values. Where two hashes are equal, what was read stands in the
place of what is bounded (`engines.duckdb.cleaned.kept`): which rows are kept still depends on that unit alone.

**Public tables.** Their floats are two columns, too (`public_columns_of`). Sums and keys have them in steps, because a
sensitivity and a domain need bounds. Conditions and joins have them as they are read. A public table protects nobody,
so that its exact values may decide. How many public rows one row meets is counted over the column that is compared.
Where the two columns have the same numbers throughout the file, there is one, and the plan is the text that it was.

**Old answers.** Where l ≤ x ≤ u bounds an integer, clamp(x) ≥ c just if x ≥ c, for l < c ≤ u; and so for other
comparisons and functions. There the plan has the bounded column as before, and is the same question (`settled`). So it
is where a key has no value that is a bound, and where NULL alone is asked for. Every other plan that names a read
column has a text that no earlier version printed.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import floor
from typing import Final, cast

from lapwing.catalog.model import Column as Declared
from lapwing.catalog.model import Table
from lapwing.query.expressions import arithmetic, conversion
from lapwing.query.expressions.expression import (
    ColumnReference,
    Constant,
    Expression,
    Literal,
    Operation,
    column_type,
    walk,
)
from lapwing.query.expressions.types import READ_INTEGER, READ_REAL, Fixed, Mode, Real, Type, in_steps, nearest

ROUNDED: Final = frozenset({"floor_real", "round_real", "truncate_real"})
"""Functions of doubles whose values are few: they may be private keys as they are."""
EXACT: Final = 2**52
"""Steps of a decimal that a double holds exactly: values beyond count as these where they are computed with."""


def columns_of(declared: Sequence[Declared], own: Sequence[ColumnReference]) -> tuple[ColumnReference, ...]:
    """Return the columns of a table, then what its bounded numbers are as they are read."""
    suffix = _suffix(declared)
    columns, read = list(own), list[ColumnReference]()
    for place, (column, one) in enumerate(zip(declared, own, strict=True)):
        if column.numeric and column.bounded:
            integer, decimal = column.type == "integer", column.type == "decimal"
            kind, whole = READ_INTEGER if integer else READ_REAL, integer and column.step == 1
            name = column.name + suffix
            read.append(ColumnReference(name=name, type=kind, cleaned=one, decimal=decimal, whole=whole))
            columns[place] = replace(one, read=read[-1])
    return (*columns, *read)


def _suffix(declared: Sequence[Declared]) -> str:
    suffix = " as read"
    while any(column.name.casefold().endswith(suffix) for column in declared):
        suffix += "_"
    return suffix


def read_columns(table: Table) -> list[tuple[Declared, str, Type]]:
    """Return the bounded numbers of a table, with the names and types of what they are as they are read."""
    own = list(map(_own, table.columns))
    pairs = {column.cleaned.name: column for column in columns_of(table.columns, own) if column.cleaned is not None}
    return [(c, pairs[c.name].name, pairs[c.name].type) for c in table.columns if c.name in pairs]


def public_columns_of(declared: Sequence[Declared], apart: Collection[str]) -> tuple[ColumnReference, ...]:
    """Return the columns of a public table, then what its floats are as they are read where that is another number.

    Args:
        declared: Each has the bounds and the step that the catalog or the data give it.
        apart: The names of floats of which some value is no step, or lies beyond the bounds. Of all others both columns
            would be the same numbers, and one is enough.
    """
    own = {column.name: _own(column) for column in declared}
    read = list[ColumnReference]()
    for column, name in public_names_read(declared):
        if column.name in apart:
            one = own[column.name]
            read.append(ColumnReference(name=name, type=READ_REAL, cleaned=one, public=True))
            own[column.name] = replace(one, read=read[-1])
    return (*own.values(), *read)


def public_names_read(declared: Sequence[Declared]) -> list[tuple[Declared, str]]:
    """Return the floats of a public table that have bounds, each with what it is called as it is read.

    A float whose bounds are far out has no second column: what is read would have nearer bounds than it.
    """
    suffix, far = _suffix(declared), cast(Fraction, READ_REAL.high)
    floats = (column for column in declared if column.type == "float" and column.bounded)
    return [(c, c.name + suffix) for c in floats if max(map(abs, conversion.interval_of(_own(c)))) < far]


def is_far(value: Constant) -> bool:
    """Tell whether a number is where all that is read beyond it counts as it, so that it may be an infinity."""
    return isinstance(value, Fraction) and abs(value) >= cast(Fraction, READ_REAL.high)


def _own(column: Declared) -> ColumnReference:
    return ColumnReference(name=column.name, type=column_type(column))


def reads_public(value: Expression) -> bool:
    """Tell whether a value rests on a number of a public table as it is read."""
    return any(isinstance(node, ColumnReference) and node.public for node in walk(value))


def names_read(table: Table) -> dict[str, str]:
    """Return what bounded numbers are called as they are read, by their names."""
    return {own.name: name for own, name, _ in read_columns(table)}


def as_read(value: Expression) -> Expression:
    """Return a value as it is read, a column with what the question calls it."""
    read = value.read
    if isinstance(value, ColumnReference) and isinstance(read, ColumnReference) and value.written is not None:
        return replace(read, written=value.written)
    return value if read is None else read


def in_mode(value: Expression, mode: Mode) -> Expression:
    """Return what a value is in a mode (`RowScope.mode`)."""
    match mode:
        case "read":
            return as_read(value)
        case "computed":
            return _computed(value)
        case "within":
            return _within(value)
    return value


def with_read(value: Expression, read: Expression) -> Expression:
    """Return a value that knows what it is as it is read."""
    return value if read == value or isinstance(value, Literal) else replace(value, read=read)


def _computed(value: Expression) -> Expression:
    """Return a value as it is read, for arithmetic: of a decimal its whole steps, as a sum of such is exact."""
    column = as_read(value)
    if not isinstance(column, ColumnReference) or column.cleaned is None or not column.decimal:
        return column
    step = cast(Fixed, column.cleaned.type).step
    kept = _inside(column, -EXACT * step, EXACT * step)
    return Operation(function="to_fixed", arguments=(kept,), type=conversion.fixed(step, -EXACT, EXACT))


def _within(value: Expression) -> Expression:
    """Return a float within its bounds and not rounded to steps, for what is summed of FLOOR(x) and its like."""
    column = as_read(value)
    if not isinstance(column, ColumnReference) or column.cleaned is None or column.decimal:
        return value
    return _inside(column, *conversion.interval_of(column.cleaned)) if isinstance(column.type, Real) else value


def _inside(column: ColumnReference, low: Fraction, high: Fraction) -> Expression:
    """Clamp a double; the text of the column stands in the SQL three times."""
    kind = conversion.real(low, high)
    ends = (Literal(value=end, type=conversion.real(end, end)) for end in (low, high))
    return Operation(function="inside", arguments=(column, *ends), type=kind)


# ---- comparisons -----------------------------------------------------------------------------------------------------


def settled(function: str, value: Expression, constants: Sequence[Expression]) -> Expression | None:
    """Return a bounded expression in place of a read one, if a comparison with constants is the same of both.

    Let f never fall, or never rise, and l and u bound a whole number x. Then f(x) is f(l) or lies beyond it, wherever
    x < l, and likewise at u. So if c lies between f(l) and f(u), f(x) < c just if f(clamp(x)) < c. Rounding to doubles
    keeps order, so f may be computed in them.
    """
    same = _of_bounded(value)
    if same is None:
        return None
    column, bounded = same
    ends = [_at(bounded, Fraction(end)) for end in conversion.integers_of(column)]
    for constant in constants:
        constant = conversion.folded(constant)
        at = constant.value if isinstance(constant, Literal) else None
        if not isinstance(at, Fraction):
            return None
        if isinstance(bounded.type, Real) or isinstance(constant.type, Real):
            at, *ends = map(nearest, (at, *ends))
        low, high = min(ends), max(ends)
        match function:
            case "<" | ">=":
                same_truth = low < at <= high
            case "<=" | ">":
                same_truth = low <= at < high
            case _:
                same_truth = low < at < high
        if not same_truth:
            return None
    return bounded


def _bounded(column: ColumnReference) -> ColumnReference | None:
    """Return the bounded column of a read one, as the question writes it."""
    return None if column.cleaned is None else replace(column.cleaned, written=column.written)


def _of_bounded(value: Expression) -> tuple[ColumnReference, Expression] | None:
    """Return a whole number within its bounds, and a function of it that never falls or never rises; None if not so."""
    if isinstance(value, ColumnReference):
        same = _bounded(value) if value.whole else None
        return None if same is None else (same, same)
    rule = _RULES.get(value.function) if isinstance(value, Operation) else None
    if rule is None:
        return None
    changing = [place for place, part in enumerate(value.children) if not isinstance(part, Literal)]
    inner = _of_bounded(value.children[changing[0]]) if len(changing) == 1 else None
    others = [part.value for part in value.children if isinstance(part, Literal)]
    by_zero = isinstance(value, Operation) and value.function == "divide" and (changing != [0] or others == [0])
    if inner is None or by_zero or not all(isinstance(other, Fraction) for other in others):
        return None
    parts = list(value.children)
    parts[changing[0]] = inner[1]
    return inner[0], rule(parts, cast(Fixed, value.type))


_RULES: Final[Mapping[str, Callable[[Sequence[Expression], Fixed], Expression]]] = {
    "add": lambda parts, _: arithmetic.add(*parts),
    "subtract": lambda parts, _: arithmetic.subtract(*parts),
    "multiply": lambda parts, _: arithmetic.multiply(*parts),
    "divide": lambda parts, _: arithmetic.divide(*parts),
    "negate": lambda parts, _: arithmetic.negate(*parts),
    "least": lambda parts, _: arithmetic.smallest(*parts),
    "greatest": lambda parts, _: arithmetic.largest(*parts),
    "rescale": lambda parts, kind: conversion.rescale(parts[0], kind.step),
    "to_real": lambda parts, _: conversion.to_real(parts[0]),
    "floor_to": lambda parts, kind: arithmetic.floor_multiple(parts[0], kind.step),
    "floor_real": lambda parts, _: arithmetic.floor_multiple(parts[0], cast(Fraction, cast(Literal, parts[1]).value)),
}
"""Functions of one number and constants that never fall or never rise in it, and how to bind them."""


def _at(value: Expression, x: Fraction) -> Fraction:
    """Compute such a function at a value of its column, as engines do."""
    if isinstance(value, ColumnReference):
        return x
    if isinstance(value, Literal):
        constant = cast(Fraction, value.value)
        return nearest(constant) if isinstance(value.type, Real) else constant
    first, *others = (_at(part, x) for part in value.arguments)
    match value.function:
        case "add":
            first += others[0]
        case "subtract":
            first -= others[0]
        case "multiply":
            first *= others[0]
        case "divide":
            first /= others[0]
        case "negate":
            first = -first
        case "least":
            first = min(first, *others)
        case "greatest":
            first = max(first, *others)
        case "to_real":
            step = cast(Fixed, value.arguments[0].type).step
            first = conversion.as_double(int(first / step), step)
        case "floor_to":
            step = cast(Fixed, value.type).step
            real = isinstance(value.arguments[0].type, Real)
            first = floor(in_steps(first, step) if real else first / step) * step
    return nearest(first) if isinstance(value.type, Real) else first


def as_bounded(symbol: str, left: Expression, right: Expression) -> tuple[Expression, Expression]:
    """Return the sides of a comparison, with bounded columns where it is the same (`settled`)."""
    if left == right and isinstance(left, ColumnReference) and left.cleaned is not None:  # true unless it is NULL
        same = _bounded(left) or left
        return same, same
    one, other = settled(symbol, left, (right,)), settled(_TURNED.get(symbol, symbol), right, (left,))
    return (left if one is None else one, right if other is None else other)


def null_alike(one: Expression, other: Expression) -> bool:
    """Tell whether two forms of an expression, as it is read and within bounds, are NULL in the same rows."""
    return _needed(one) == _needed(other)


def _needed(value: Expression) -> frozenset[object]:
    """Return what must be there, all of it, if a value is to be there: columns, and choices in one form."""
    if isinstance(value, ColumnReference):
        return frozenset({(value.cleaned or value).name})
    if isinstance(value, Literal):
        return frozenset({None} if value.value is None else ())
    parts = [_needed(part) for part in value.arguments]
    divides = value.function == "divide" and isinstance(value.arguments[1], Literal) and value.arguments[1].value != 0
    if value.function in _STRICT or divides:
        return frozenset[object]().union(*parts)
    if value.function == "case":
        conditions = tuple(map(str, value.arguments[:-1:2]))
        return frozenset({(conditions, *parts[1::2], parts[-1])})
    return frozenset({(value.function, *parts) if value.function in _ANY else str(value)})


_ANY: Final = frozenset({"coalesce", "least", "greatest"})
"""Functions that are NULL just where all arguments are."""
_STRICT: Final = frozenset(
    {"add", "subtract", "multiply", "negate", "absolute", "rescale", "to_real", "to_fixed", "inside", "floor_to"}
    | {"round_to", "truncate_to", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", *ROUNDED}
    | {"written"}
)
"""Functions that are NULL just where an argument is."""
_TURNED: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


# ---- keys ------------------------------------------------------------------------------------------------------------


def key_of(value: Expression, values: Sequence[Constant] | None) -> Expression:
    """Return an expression as a key: as it is read, of the type that it has within its bounds.

    A double becomes the number of steps that it is, or NULL if it is none between the bounds: then it is in no group.

    Args:
        values: The key's, if they are public. Of private ones there must be few: they stay within their bounds, which
            limit how many there are, and a double that may lie anywhere between steps is rounded to them.
    """
    read = as_read(value)
    if reads_public(read) and isinstance(read.type, Real):  # its values are listed in steps, as sums have them
        return value
    if read is value or not isinstance(read.type, Real):
        return value if values is None else settled_key(read, values)
    kind, outer = value.type, read
    while isinstance(outer, Operation) and outer.function == "negate":  # CEIL is a floor between two of these
        outer = outer.arguments[0]
    few = values is not None or (isinstance(outer, Operation) and outer.function in ROUNDED)
    if not few or not isinstance(kind, Fixed) or not kind.bounded:
        return value
    return Operation(function="exact_steps", arguments=(read,), type=kind)


def settled_key(key: Expression, values: Sequence[Constant]) -> Expression:
    """Return the bounded column in place of a read one, if no value of the key is a bound: then a clamp makes none."""
    column = _bounded(key) if isinstance(key, ColumnReference) and key.whole else None
    return key if column is None or {*values} & {*conversion.interval_of(column)} else column


def declared(value: Expression) -> Expression:
    """Return the bounded column that an expression is as it was read, or as a key; else the expression.

    A constant that a public float is compared with need not be a step of it: it says nothing of its values in steps.
    """
    if isinstance(value, Operation) and value.function == "exact_steps":
        value = value.arguments[0]
    if not isinstance(value, ColumnReference) or value.cleaned is None or value.public:
        return value
    return value.cleaned

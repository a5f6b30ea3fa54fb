"""Post-processing: values and intervals that follow from released numbers alone.

Nothing here touches data, so nothing here costs anything or can leak. Numbers are exact rationals (`Fraction`), with
`None` for NULL, so that no sum or product overflows or rounds on the way; an interval is a pair of rationals or
infinities that contains the true value whenever the intervals of its parts do.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import product
from math import ceil, floor, inf
from typing import Any

from lapwing.errors import QueryRefused
from lapwing.query.derived import Average, Compute, Derived, Fixture, KeyValue, Released, Shape
from lapwing.query.expression import Constant
from lapwing.query.measures import Measure

Value = Constant
End = Fraction | float
Interval = tuple[End, End]

_SYMBOLS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "negate": "-", "absolute": "ABS"}
NUMERIC: tuple[Shape, ...] = ("integer", "decimal", "real")


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function of derived values: how it is computed, and how intervals pass through it (None: they do not)."""

    value: Callable[..., Value]
    interval: Callable[..., Interval] | None = None
    strict: bool = True  # NULL in, NULL out


# ---- building -------------------------------------------------------------------------------------------------------


def compute(function: str, *arguments: Derived) -> Compute:
    """Apply a function, checking the shapes of its arguments so that nothing can fail once the answer is paid."""
    return Compute(function=function, arguments=arguments, shape=_shape(function, [a.shape for a in arguments]))


def _shape(function: str, shapes: Sequence[Shape]) -> Shape:
    if function in {"add", "subtract", "multiply", "negate", "absolute", "least", "greatest"}:
        return _numeric(function, shapes)
    if function == "divide":
        _numeric(function, shapes)
        return "real"
    if function in {"round", "floor", "ceiling"}:
        _numeric(function, shapes)
        return "decimal" if len(shapes) > 1 else "integer"
    if function == "coalesce":
        return _common(shapes)
    if function == "case":
        _require_conditions(shapes[:-1:2])
        return _common([*shapes[1::2], shapes[-1]])
    if function in {"and", "or", "not"}:
        _require_conditions(shapes)
    elif function != "is_null":
        _common(shapes)
    return "boolean"


def _numeric(function: str, shapes: Sequence[Shape]) -> Shape:
    for shape in shapes:
        if shape not in NUMERIC:
            name = _SYMBOLS.get(function, function.upper())
            raise QueryRefused(f"{name} over the answer needs numbers, not {shape}")
    return NUMERIC[max(NUMERIC.index(shape) for shape in shapes)]


def _common(shapes: Sequence[Shape]) -> Shape:
    known = [shape for shape in shapes if shape != "null"]
    if not known:
        return "null"
    if all(shape in NUMERIC for shape in known):
        return _numeric("", known)
    if len(set(known)) > 1:
        raise QueryRefused(f"{' and '.join(sorted(set(known)))} do not go together in the answer")
    return known[0]


def _require_conditions(shapes: Sequence[Shape]) -> None:
    for shape in shapes:
        if shape not in ("boolean", "null"):
            raise QueryRefused(f"A condition over the answer is needed, not {shape}", remedy="Write a comparison.")


# ---- values ---------------------------------------------------------------------------------------------------------


def evaluate(derived: Derived, measures: Mapping[Measure, Fraction], keys: Mapping[str, Value]) -> Value:
    """Return the value of a derived expression in one cell."""
    match derived:
        case Released():
            return measures[derived.measure]
        case Average():
            return _average(derived, measures[derived.total], measures[derived.count])
        case KeyValue():
            return keys[derived.key.column.name]
        case Fixture():
            return derived.value
        case Compute():
            function = FUNCTIONS[derived.function]
            arguments = [evaluate(argument, measures, keys) for argument in derived.arguments]
            return None if function.strict and None in arguments else function.value(*arguments)


def _average(average: Average, total: Fraction, count: Fraction) -> Fraction | None:
    if count < 1:
        return None
    mean = _origin(average) + total / count
    low, high = _bounds(average)
    return min(max(mean, low), high)


def _origin(average: Average) -> Fraction:
    return average.total.origin * average.total.step


def _bounds(average: Average) -> tuple[Fraction, Fraction]:
    """Return the bounds of the argument, which every summed argument has."""
    low, high = average.total.type.interval()
    if low is None or high is None:
        raise ValueError("a sum is taken over bounded values")
    return low, high


# ---- intervals ------------------------------------------------------------------------------------------------------


def bracket(
    derived: Derived,
    measures: Mapping[Measure, Fraction],
    margins: Mapping[Measure, Fraction],
    keys: Mapping[str, Value],
) -> Interval | None:
    """Return an interval that holds the true value if every measure is within its margin of the released one.

    `None` where no such interval follows (conditions, text).
    """
    match derived:
        case Released():
            return _around(derived.measure, measures, margins)
        case Average():
            return _average_bracket(derived, measures, margins)
        case KeyValue() | Fixture():
            value = derived.value if isinstance(derived, Fixture) else keys[derived.key.column.name]
            return (value, value) if isinstance(value, Fraction) else None
        case Compute():
            function = FUNCTIONS[derived.function]
            parts = [bracket(argument, measures, margins, keys) for argument in derived.arguments]
            known = [part for part in parts if part is not None]
            if function.interval is None or len(known) < len(parts):
                return None
            if not function.strict and not all(map(_is_never_null, derived.arguments)):
                return (min(low for low, _ in known), max(high for _, high in known))
            return function.interval(*known)


def _is_never_null(derived: Derived) -> bool:
    """Tell whether a number has a value in every cell: LEAST and GREATEST skip those that have none."""
    match derived:
        case Released():
            return True
        case Fixture():
            return derived.value is not None
        case Compute():
            return derived.function != "divide" and all(map(_is_never_null, derived.arguments))
        case _:
            return False


def _around(measure: Measure, measures: Mapping[Measure, Fraction], margins: Mapping[Measure, Fraction]) -> Interval:
    return (measures[measure] - margins[measure], measures[measure] + margins[measure])


def _average_bracket(
    average: Average, measures: Mapping[Measure, Fraction], margins: Mapping[Measure, Fraction]
) -> Interval:
    """Divide the sum's interval by the count's, over the counts that are possible (a mean needs at least one row)."""
    fewest, most = _around(average.count, measures, margins)
    low, high = _bounds(average)
    if most < 1:
        return (low, high)
    ratios = _divide(_around(average.total, measures, margins), (max(fewest, Fraction(1)), most))
    first, last = (min(max(_origin(average) + ratio, low), high) for ratio in ratios)
    return (first, last)


# A float among ends is an infinity. It never meets a Fraction in one operation, which would be made a float and may be
# too large or too small for one.


def _plus(x: End, y: End) -> End:
    return x if isinstance(x, float) else y if isinstance(y, float) else x + y


def _times(x: End, y: End) -> End:
    if x == 0 or y == 0:
        return Fraction(0)
    if isinstance(x, float) or isinstance(y, float):
        return inf if (x > 0) == (y > 0) else -inf
    return x * y


def _over(x: End, y: End) -> End:
    return Fraction(0) if isinstance(y, float) else _times(x, 1 / y)


def _add(first: Interval, second: Interval) -> Interval:
    return (_plus(first[0], second[0]), _plus(first[1], second[1]))


def _negate(part: Interval) -> Interval:
    return (-part[1], -part[0])


def _multiply(first: Interval, second: Interval) -> Interval:
    corners = [_times(x, y) for x, y in product(first, second)]
    return (min(corners), max(corners))


def _divide(first: Interval, second: Interval) -> Interval:
    if second[0] <= 0 <= second[1]:
        return (-inf, inf)
    corners = [_over(x, y) for x, y in product(first, second)]
    return (min(corners), max(corners))


def _absolute(part: Interval) -> Interval:
    low, high = part
    largest = -low if -low > high else high
    if low <= 0 <= high:
        return (Fraction(0), largest)
    return (low, largest) if low > 0 else (-high, largest)


def _rounded(
    rule: Callable[[Fraction, Fraction], Fraction], part: Interval, digits: Interval = (Fraction(0), Fraction(0))
) -> Interval:
    """Map ends to ends: rounding never decreases."""
    low, high = (end if isinstance(end, float) else rule(end, Fraction(digits[0])) for end in part)
    return (low, high)


# ---- the table ------------------------------------------------------------------------------------------------------


def _round(value: Fraction, digits: Fraction = Fraction(0)) -> Fraction:
    scale = Fraction(10) ** int(digits)
    return floor(value * scale + Fraction(1, 2)) / scale


def _floor(value: Fraction, _digits: Fraction = Fraction(0)) -> Fraction:
    return Fraction(floor(value))


def _ceiling(value: Fraction, _digits: Fraction = Fraction(0)) -> Fraction:
    return Fraction(ceil(value))


def _known(values: Sequence[Any]) -> list[Any]:
    return [value for value in values if value is not None]


def _and(left: Value, right: Value) -> Value:
    return False if left is False or right is False else None if None in (left, right) else True


def _at_most(left: Any, right: Any) -> Value:
    return None if left is None or right is None else left <= right


def _or(left: Value, right: Value) -> Value:
    return True if left is True or right is True else None if None in (left, right) else False


def _case(*parts: Value) -> Value:
    for condition, value in zip(parts[:-1:2], parts[1::2], strict=True):
        if condition is True:
            return value
    return parts[-1]


FUNCTIONS: Mapping[str, Function] = {
    "add": Function(value=lambda x, y: x + y, interval=_add),
    "subtract": Function(value=lambda x, y: x - y, interval=lambda p, q: _add(p, _negate(q))),
    "multiply": Function(value=lambda x, y: x * y, interval=_multiply),
    "divide": Function(value=lambda x, y: x / y if y else None, interval=_divide),
    "negate": Function(value=lambda x: -x, interval=_negate),
    "absolute": Function(value=abs, interval=_absolute),
    "least": Function(
        value=lambda *v: min(_known(v), default=None),
        interval=lambda *p: (min(x for x, _ in p), min(y for _, y in p)),
        strict=False,
    ),
    "greatest": Function(
        value=lambda *v: max(_known(v), default=None),
        interval=lambda *p: (max(x for x, _ in p), max(y for _, y in p)),
        strict=False,
    ),
    "round": Function(value=_round, interval=partial(_rounded, _round)),
    "floor": Function(value=_floor, interval=partial(_rounded, _floor)),
    "ceiling": Function(value=_ceiling, interval=partial(_rounded, _ceiling)),
    "coalesce": Function(value=lambda *v: next(iter(_known(v)), None), strict=False),
    "case": Function(value=_case, strict=False),
    "is_null": Function(value=lambda x: x is None, strict=False),
    "and": Function(value=_and, strict=False),
    "or": Function(value=_or, strict=False),
    "not": Function(value=lambda x: not x),
    "=": Function(value=lambda x, y: x == y),
    "<>": Function(value=lambda x, y: x != y),
    "<": Function(value=lambda x, y: x < y),
    "<=": Function(value=lambda x, y: x <= y),
    ">": Function(value=lambda x, y: x > y),
    ">=": Function(value=lambda x, y: x >= y),
    "between": Function(value=lambda x, low, high: _and(_at_most(low, x), _at_most(x, high)), strict=False),
    "in": Function(value=lambda x, *choices: x in choices),
}

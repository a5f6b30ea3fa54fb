"""The functions of `derivations`, for many cells at once: each gives exactly what it gives cell by cell.

A form may return None where it does not apply. Whatever has no form here is computed for each distinct label of the one
key it depends on, or cell by cell.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from math import inf

import numpy as np

from lapwing.query.derivation import numbers, roots
from lapwing.query.derivation.columns import Column, Labels, Truths, as_truths, choose, of_values
from lapwing.query.derivation.derivations import FUNCTIONS
from lapwing.query.derivation.derived import Shape
from lapwing.query.derivation.numbers import BoolArray, Numbers, constant, either, mask_of, some

Form = Callable[[Sequence[Column], Shape], Column | None]


def _arithmetic(rule: Callable[..., Numbers]) -> Form:
    def apply(parts: Sequence[Column], _shape: Shape) -> Column | None:
        found = [part for part in parts if isinstance(part, Numbers)]
        return rule(*found) if len(found) == len(parts) else None

    return apply


def single(column: Numbers) -> int:
    """Return the whole number that a constant column holds."""
    (value,) = column.values()
    return 0 if value is None else int(value)


def power(x: Numbers, exponent: Numbers) -> Numbers:
    """Return x^k for a constant k."""
    return numbers.power(x, single(exponent))


def rounded(x: Numbers, digits: Numbers | None = None) -> Numbers:
    """Round half up to a constant number of digits."""
    return numbers.rounded(x, 0 if digits is None else single(digits))


def sign(x: Numbers) -> Numbers:
    """Return −1, 0 or 1."""
    return Numbers(tops=numbers.signs(x), null=x.null)


def at_most(x: Numbers, y: Numbers) -> BoolArray:
    """Return where x ≤ y."""
    return numbers.compared(operator.le, x, y)


def lesser(x: Numbers, y: Numbers) -> Numbers:
    """Return the lesser of two numbers, of which none is NULL."""
    return numbers.choose(at_most(x, y), x, y)


def greater(x: Numbers, y: Numbers) -> Numbers:
    """Return the greater of two numbers, of which none is NULL."""
    return numbers.choose(at_most(y, x), x, y)


def within(x: Numbers, low: Numbers, high: Numbers) -> Numbers:
    """Clamp x; NULL if any of the three is."""
    null = either(either(x.null, low.null), high.null)
    clamped = lesser(greater(x, low), high)
    return Numbers(tops=clamped.tops, bottoms=clamped.bottoms, scale=clamped.scale, null=null)


def _skipping_null(rule: Callable[[Numbers, Numbers], Numbers]) -> Callable[..., Numbers]:
    def one(x: Numbers, y: Numbers) -> Numbers:
        found = rule(x, y)
        for part, other in ((x, y), (y, x)):
            if part.null is not None:
                found = numbers.choose(part.null, other, found)
        return found

    return lambda *parts: reduce(one, parts)


def square_root(x: Numbers) -> Numbers:
    """Return √x as `roots.square_root` does, NULL below 0."""
    near = x.floats()
    regular = (near >= roots.SMALLEST) & (near < inf)
    found = numbers.of_floats(np.sqrt(np.where(regular, near, 0.0)))
    negative = numbers.signs(x) < 0
    odd = ~regular & (numbers.signs(x) > 0)
    if odd.any():
        full = x.expanded(len(near))
        places = np.flatnonzero(odd)
        exact = numbers.of_values(
            [roots.square_root(v) if v is not None else None for v in full.taken(places).values()]
        )
        spread = np.zeros(len(near), dtype=np.int64)
        spread[places] = np.arange(len(places))
        found = numbers.choose(odd, exact.taken(spread), found)
    return Numbers(tops=found.tops, bottoms=found.bottoms, scale=found.scale, null=either(x.null, some(negative)))


def sample_factor(n: Numbers) -> Numbers:
    """Return n/(n − 1), NULL below 2."""
    found = numbers.divide(n, numbers.subtract(n, constant(Fraction(1))))
    few = some(numbers.compared(operator.lt, n, constant(Fraction(2))))
    return Numbers(tops=found.tops, bottoms=found.bottoms, scale=found.scale, null=either(found.null, few))


# ---- conditions ------------------------------------------------------------------------------------------------------


def _comparison(rule: Callable[..., BoolArray]) -> Form:
    """Compare numbers, or conditions."""

    def apply(parts: Sequence[Column], _shape: Shape) -> Column | None:
        x, y = parts
        if isinstance(x, Numbers) and isinstance(y, Numbers):
            return Truths(truths=numbers.compared(rule, x, y), null=either(x.null, y.null))
        if isinstance(x, Truths) and isinstance(y, Truths):
            return Truths(truths=rule(x.truths, y.truths), null=either(x.null, y.null))
        return None

    return apply


def _both(x: Truths, y: Truths) -> Truths:
    unknown = mask_of(x.null) | mask_of(y.null)
    false = (~x.truths & ~mask_of(x.null)) | (~y.truths & ~mask_of(y.null))
    return Truths(truths=x.holds & y.holds, null=some(unknown & ~false))


def _not(x: Truths) -> Truths:
    return Truths(truths=~x.truths, null=x.null)


def _condition(rule: Callable[..., Truths]) -> Form:
    return lambda parts, _shape: rule(*map(as_truths, parts))


def _between(parts: Sequence[Column], shape: Shape) -> Column | None:
    x, low, high = parts
    above, below = COLUMN_FUNCTIONS["<="]([low, x], shape), COLUMN_FUNCTIONS["<="]([x, high], shape)
    return _both(above, below) if isinstance(above, Truths) and isinstance(below, Truths) else None


def _in(parts: Sequence[Column], shape: Shape) -> Column | None:
    x, *choices = parts
    truths: BoolArray = np.zeros(1, dtype=np.bool_)
    null: BoolArray | None = x.null
    for choice in choices:
        equal = COLUMN_FUNCTIONS["="]([x, choice], shape)
        if not isinstance(equal, Truths):
            return None
        truths, null = truths | equal.truths, either(null, equal.null)
    return Truths(truths=truths, null=null)


# ---- choice ----------------------------------------------------------------------------------------------------------


def _case(parts: Sequence[Column], shape: Shape) -> Column:
    found = parts[-1]
    for condition, value in zip(reversed(parts[:-1:2]), reversed(parts[1::2]), strict=True):
        found = choose(as_truths(condition).holds, value, found, shape)
    return found


def _coalesce(parts: Sequence[Column], shape: Shape) -> Column:
    found = parts[-1]
    for part in reversed(parts[:-1]):
        found = choose(~mask_of(part.null), part, found, shape)
    return found


def _null_if(parts: Sequence[Column], shape: Shape) -> Column | None:
    x, y = parts
    equal = COLUMN_FUNCTIONS["="]([x, y], shape)
    if not isinstance(equal, Truths):
        return None
    return choose(equal.holds, Labels(places=np.full(1, -1), labels=()), x, shape)


COLUMN_FUNCTIONS: Mapping[str, Form] = {
    "add": _arithmetic(numbers.add),
    "subtract": _arithmetic(numbers.subtract),
    "multiply": _arithmetic(numbers.multiply),
    "divide": _arithmetic(numbers.divide),
    "negate": _arithmetic(numbers.negate),
    "absolute": _arithmetic(numbers.absolute),
    "sign": _arithmetic(sign),
    "power": _arithmetic(power),
    "square_root": _arithmetic(square_root),
    "within": _arithmetic(within),
    "sample_factor": _arithmetic(sample_factor),
    "least": _arithmetic(_skipping_null(lesser)),
    "greatest": _arithmetic(_skipping_null(greater)),
    "round": _arithmetic(rounded),
    "floor": _arithmetic(numbers.floor),
    "ceiling": _arithmetic(numbers.ceiling),
    "coalesce": _coalesce,
    "null_if": _null_if,
    "case": _case,
    "is_null": lambda parts, _shape: Truths(truths=mask_of(parts[0].null)),
    "and": _condition(_both),
    "or": _condition(lambda x, y: _not(_both(_not(x), _not(y)))),
    "not": _condition(_not),
    "=": _comparison(operator.eq),
    "<>": _comparison(operator.ne),
    "<": _comparison(operator.lt),
    "<=": _comparison(operator.le),
    ">": _comparison(operator.gt),
    ">=": _comparison(operator.ge),
    "between": _between,
    "in": _in,
}


def apply(function: str, parts: Sequence[Column], shape: Shape) -> Column:
    """Apply a function to columns, by its form if it has one that applies."""
    form = COLUMN_FUNCTIONS.get(function)
    found = form(parts, shape) if form is not None else None
    return _one_by_one(function, parts, shape) if found is None else found


def _one_by_one(function: str, parts: Sequence[Column], shape: Shape) -> Column:
    """Compute once for each label of a key, if there is but one column that varies and it is of labels; else a cell."""
    varying = [part for part in parts if part.size != 1]
    only = varying[0] if len(varying) == 1 else None
    if isinstance(only, Labels) and len(only.labels) < only.size:
        places = np.arange(-1, len(only.labels))
        distinct = [Labels(places=places, labels=only.labels) if part is only else part for part in parts]
        return _for_each(function, distinct, shape).taken(only.places + 1)
    return _for_each(function, parts, shape)


def _for_each(function: str, parts: Sequence[Column], shape: Shape) -> Column:
    rule = FUNCTIONS[function]
    size = int(np.broadcast_shapes(*((part.size,) for part in parts))[0])
    cells = zip(*(part.expanded(size).values() for part in parts), strict=True)
    return of_values([None if rule.strict and None in cell else rule.value(*cell) for cell in cells], shape).expanded(
        size
    )

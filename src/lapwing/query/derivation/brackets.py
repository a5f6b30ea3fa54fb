"""Columns of interval ends, and how intervals pass through functions for many cells at once.

Each gives exactly what the rule in `ends` gives cell by cell; what has no form here is computed cell by cell.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial, reduce
from math import inf
from typing import final

import numpy as np
from numpy.typing import NDArray

from lapwing.query.derivation import column_functions, numbers, roots
from lapwing.query.derivation.derivations import FUNCTIONS
from lapwing.query.derivation.ends import End
from lapwing.query.derivation.numbers import BoolArray, FloatArray, Numbers, constant

SignArray = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ends:
    """Numbers, and −∞ or ∞ where `infinite` is −1 or 1 (the number there is 0)."""

    numbers: Numbers
    infinite: SignArray | None = None

    def values(self) -> list[End]:
        """Return every end."""
        size = self.size
        found: list[End] = [value or Fraction(0) for value in self.numbers.expanded(size).values()]
        if self.infinite is None:
            return found
        signs = np.broadcast_to(self.infinite, size).tolist()
        return [value if sign == 0 else inf * sign for value, sign in zip(found, signs, strict=True)]

    def floats(self, size: int) -> FloatArray:
        """Return the nearest double of every end, for so many cells."""
        found = np.array(np.broadcast_to(self.numbers.floats(), size))
        if self.infinite is not None:
            infinite = np.broadcast_to(self.infinite, size)
            found[infinite != 0] = infinite[infinite != 0] * inf
        return found

    @property
    def size(self) -> int:
        """The number of entries."""
        flags = (1,) if self.infinite is None else self.infinite.shape
        return int(np.broadcast_shapes((self.numbers.size,), flags)[0])


Pair = tuple[Ends, Ends]
_ZERO, _ONE = constant(Fraction(0)), constant(Fraction(1))
_EVERYTHING: Pair = (
    Ends(numbers=_ZERO, infinite=np.full(1, -1)),
    Ends(numbers=_ZERO, infinite=np.full(1, 1)),
)


def of_ends(values: Sequence[End]) -> Ends:
    """Return a column of ends."""
    signs = np.array([(v > 0) - (v < 0) if isinstance(v, float) else 0 for v in values], dtype=np.int64)
    found = numbers.of_values([Fraction(0) if isinstance(v, float) else v for v in values])
    return Ends(numbers=found, infinite=signs if signs.any() else None)


# ---- ends ------------------------------------------------------------------------------------------------------------


def _signs(x: Ends) -> SignArray:
    own = numbers.signs(x.numbers)
    return own if x.infinite is None else np.where(x.infinite != 0, x.infinite, own)


def _finite(found: Numbers, infinite: SignArray | None) -> Ends:
    """Return numbers with infinities over them."""
    if infinite is None or not infinite.any():
        return Ends(numbers=found)
    return Ends(numbers=numbers.choose(infinite != 0, _ZERO, found), infinite=infinite)


def _flags(x: Ends) -> SignArray:
    return np.zeros(1, dtype=np.int64) if x.infinite is None else x.infinite


def plus(x: Ends, y: Ends) -> Ends:
    """Add two ends; of two infinities the first wins."""
    found = numbers.add(x.numbers, y.numbers)
    if x.infinite is None and y.infinite is None:
        return Ends(numbers=found)
    return _finite(found, np.where(_flags(x) != 0, _flags(x), _flags(y)))


def negated(x: Ends) -> Ends:
    """Return −x."""
    return Ends(numbers=numbers.negate(x.numbers), infinite=None if x.infinite is None else -x.infinite)


def times(x: Ends, y: Ends) -> Ends:
    """Multiply two ends; 0 times infinity is 0."""
    found = numbers.multiply(x.numbers, y.numbers)
    if x.infinite is None and y.infinite is None:
        return Ends(numbers=found)
    return _finite(found, np.where((_flags(x) != 0) | (_flags(y) != 0), _signs(x) * _signs(y), 0))


def over(x: Ends, y: Ends) -> Ends:
    """Divide two ends; what is divided by 0 is 0, which no caller keeps."""
    if x.infinite is None and y.infinite is None:
        return Ends(numbers=replace(numbers.divide(x.numbers, y.numbers), null=None))
    return times(x, Ends(numbers=replace(numbers.divide(_ONE, y.numbers), null=None)))


def at_most(x: Ends, y: Ends) -> BoolArray:
    """Return where x ≤ y."""
    found = column_functions.at_most(x.numbers, y.numbers)
    if x.infinite is None and y.infinite is None:
        return found
    a, b = _flags(x), _flags(y)
    return np.asarray(np.where((a != 0) | (b != 0), a <= b, found), dtype=np.bool_)


def choose(mask: BoolArray, x: Ends, y: Ends) -> Ends:
    """Return x where the mask says so, else y."""
    found = numbers.choose(mask, x.numbers, y.numbers)
    if x.infinite is None and y.infinite is None:
        return Ends(numbers=found)
    return Ends(numbers=found, infinite=np.where(mask, _flags(x), _flags(y)))


def lesser(*ends: Ends) -> Ends:
    """Return the least of ends."""
    return reduce(lambda x, y: choose(at_most(x, y), x, y), ends)


def greater(*ends: Ends) -> Ends:
    """Return the greatest of ends."""
    return reduce(lambda x, y: choose(at_most(y, x), x, y), ends)


# ---- intervals -------------------------------------------------------------------------------------------------------


def hull(*parts: Pair) -> Pair:
    """Return the least interval that contains all."""
    return (lesser(*(low for low, _ in parts)), greater(*(high for _, high in parts)))


def _add(first: Pair, second: Pair) -> Pair:
    return (plus(first[0], second[0]), plus(first[1], second[1]))


def _negate(part: Pair) -> Pair:
    return (negated(part[1]), negated(part[0]))


def _multiply(first: Pair, second: Pair) -> Pair:
    """Multiply by a number directly, by an interval at its corners."""
    for part, other in ((first, second), (second, first)):
        if part[0] is part[1]:
            low, high = times(other[0], part[0]), times(other[1], part[0])
            turned = _signs(part[0]) < 0
            return (choose(turned, high, low), choose(turned, low, high)) if turned.any() else (low, high)
    if (_signs(first[0]) >= 0).all() and (_signs(second[0]) >= 0).all():
        return (times(first[0], second[0]), times(first[1], second[1]))
    corners = [times(x, y) for x in first for y in second]
    return (lesser(*corners), greater(*corners))


def divide(first: Pair, second: Pair) -> Pair:
    """Divide by an interval of one sign, which is turned to be positive; where it holds 0, anything is possible.

    Proof: for 0 < c ≤ d, the least of a/c and a/d is a/d for a ≥ 0 and a/c for a < 0; the greatest of b/c and b/d is
    b/c for b ≥ 0 and b/d for b < 0.
    """
    zero = (_signs(second[0]) <= 0) & (_signs(second[1]) >= 0)
    turned = _signs(second[1]) < 0
    if turned.any():
        first = _turned(turned, first)
        second = _turned(turned, second)
    (a, b), (c, d) = first, second
    low = over(a, choose(_signs(a) >= 0, d, c))
    high = over(b, choose(_signs(b) >= 0, c, d))
    if zero.any():
        low, high = choose(zero, _EVERYTHING[0], low), choose(zero, _EVERYTHING[1], high)
    return (low, high)


def _turned(mask: BoolArray, part: Pair) -> Pair:
    low, high = _negate(part)
    return (choose(mask, low, part[0]), choose(mask, high, part[1]))


def _absolute(part: Pair) -> Pair:
    low, high = part
    below, above = _signs(low) <= 0, _signs(high) >= 0
    nearest = choose(below, negated(high), low)
    return (choose(below & above, Ends(numbers=_ZERO), nearest), greater(negated(low), high))


def _least(*parts: Pair) -> Pair:
    return (lesser(*(low for low, _ in parts)), lesser(*(high for _, high in parts)))


def _greatest(*parts: Pair) -> Pair:
    return (greater(*(low for low, _ in parts)), greater(*(high for _, high in parts)))


def _within(part: Pair, low: Pair, high: Pair) -> Pair:
    return _least(_greatest(part, low), high)


def _each(rule: Callable[..., Numbers], part: Pair, *constants: Pair) -> Pair:
    """Map ends to ends by a function that never decreases, and keep infinities."""
    more = [low.numbers for low, _ in constants]
    low, high = (_finite(rule(end.numbers, *more), end.infinite) for end in part)
    return (low, high)


def _power(part: Pair, exponent: Pair) -> Pair:
    return _raised(part, column_functions.single(exponent[0].numbers))


def _raised(part: Pair, k: int) -> Pair:
    one = Ends(numbers=_ONE)
    if k < 0:
        return divide((one, one), _raised(part, -k))
    if k == 0:
        return (one, one)
    return _each(lambda x: numbers.power(x, k), _absolute(part) if k % 2 == 0 else part)


def _square_root(part: Pair) -> Pair:
    low, high = _each(lambda x: column_functions.square_root(column_functions.greater(x, _ZERO)), part)
    factors = (constant(1 - roots.OUTWARDS), constant(1 + roots.OUTWARDS))
    ends = (low, high)
    first, last = (
        Ends(numbers=numbers.multiply(end.numbers, factor), infinite=_not_below(end.infinite))
        for end, factor in zip(ends, factors, strict=True)
    )
    return (first, last)


def _not_below(infinite: SignArray | None) -> SignArray | None:
    return None if infinite is None else np.maximum(infinite, 0)


def _sample_factor(part: Pair) -> Pair:
    two = Ends(numbers=constant(Fraction(2)))
    low, high = (greater(end, two) for end in part)
    return (_bessel(high), _bessel(low))


def _bessel(n: Ends) -> Ends:
    """Return n/(n − 1), which is 1 at infinity."""
    found = numbers.divide(n.numbers, numbers.subtract(n.numbers, _ONE))
    return Ends(numbers=found if n.infinite is None else numbers.choose(n.infinite != 0, _ONE, found))


_FORMS: Mapping[str, Callable[..., Pair]] = {
    "add": _add,
    "subtract": lambda first, second: _add(first, _negate(second)),
    "multiply": _multiply,
    "divide": divide,
    "negate": _negate,
    "absolute": _absolute,
    "power": _power,
    "square_root": _square_root,
    "within": _within,
    "sample_factor": _sample_factor,
    "least": _least,
    "greatest": _greatest,
    "round": partial(_each, column_functions.rounded),
    "floor": partial(_each, numbers.floor),
    "ceiling": partial(_each, numbers.ceiling),
    "null_if": lambda part, _other: part,
    "date_at": lambda part: part,
    "moment_at": lambda part: part,
}


def apply(function: str, parts: Sequence[Pair]) -> Pair:
    """Pass intervals through a function that has a rule for them."""
    form = _FORMS.get(function)
    return form(*parts) if form is not None else _one_by_one(function, parts)


def _one_by_one(function: str, parts: Sequence[Pair]) -> Pair:
    rule = FUNCTIONS[function].interval
    if rule is None:
        raise ValueError(f"no interval passes through {function}")
    size = int(np.broadcast_shapes(*((end.size,) for part in parts for end in part))[0])
    columns = [[_full(end, size) for end in part] for part in parts]
    cells = zip(*(zip(*column, strict=True) for column in columns), strict=True)
    found = [rule(*cell) for cell in cells]
    return (of_ends([low for low, _ in found]), of_ends([high for _, high in found]))


def _full(end: Ends, size: int) -> list[End]:
    values = end.values()
    return values * size if len(values) == 1 else values

"""Interval arithmetic on columns: where the true value can be, in every cell, given where its parts can be.

Each function returns an interval that contains its value for all arguments inside the given intervals. An end is a
rational or an infinity; 0 times infinity is 0, as ends of a product are limits of products of finite numbers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from math import inf
from typing import TYPE_CHECKING, Final, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from lapwing.query.derivation import elementary, rationals
from lapwing.query.derivation.columns import BoolArray, Column, FloatArray, Rationals, constant
from lapwing.query.derivation.columns_of_values import of_numbers
from lapwing.query.derivation.elementary import End

if TYPE_CHECKING:
    from lapwing.query.derivation.derived import NoisyCells
    from lapwing.query.derivation.node import Derived

INTERVAL_CONFIDENCE: Final = Fraction(95, 100)
"""The confidence of the intervals whose ends a question may use."""

SignArray = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Endpoints:
    """Numbers, and −∞ or ∞ where `infinite` is −1 or 1 (the number there is 0)."""

    numbers: Rationals
    infinite: SignArray | None = None

    def values(self) -> list[End]:
        """Return every end."""
        size = self.size
        finite: list[End] = [value or Fraction(0) for value in self.numbers.expanded(size).values()]
        if self.infinite is None:
            return finite
        signs = np.broadcast_to(self.infinite, size).tolist()
        return [value if sign == 0 else inf * sign for value, sign in zip(finite, signs, strict=True)]

    def floats(self, size: int) -> FloatArray:
        """Return the nearest double of every end, for so many cells."""
        floats = rationals.floats(self.numbers)
        floats = floats.copy() if floats.size == size else np.full(size, floats[0])
        if self.infinite is not None:
            infinite = np.broadcast_to(self.infinite, size)
            floats[infinite != 0] = infinite[infinite != 0] * inf
        return floats

    @property
    def size(self) -> int:
        """The number of entries."""
        flags = (1,) if self.infinite is None else self.infinite.shape
        return int(np.broadcast_shapes((self.numbers.size,), flags)[0])


Interval = tuple[Endpoints, Endpoints]
Number = TypeVar("Number")


@final
class JointMargins(dict[Number, Fraction]):
    """Margins that are met by some numbers of which the value is made, but not by each true one (`joint_margins`).

    Args:
        mean: Such margins of a mean, apart: margins that true ones are in.
        together: How several margins, each times a weight, make one of the weighted sum; where a variance needs them
            beside.
        known: Of values that are computed from several numbers, the interval itself (`joint_numbers`).
    """

    def __init__(
        self,
        margins: Mapping[Number, Fraction],
        mean: Mapping[Number, Fraction] | None = None,
        apart: Mapping[Number, Fraction] | None = None,
        together: "Callable[[Sequence[Endpoints]], Endpoints] | None" = None,
        known: "Mapping[Derived, Callable[[NoisyCells], Interval]] | None" = None,
    ) -> None:
        super().__init__(margins)
        self.mean: Mapping[Number, Fraction] = {} if mean is None else mean
        self.apart: Mapping[Number, Fraction] = {} if apart is None else apart
        self.together = root_of_squares if together is None else together
        self.known: Mapping[Derived, Callable[[NoisyCells], Interval]] = {} if known is None else known


_ZERO, _ONE = constant(Fraction(0)), constant(Fraction(1))
_EVERYTHING: Interval = (
    Endpoints(numbers=_ZERO, infinite=np.full(1, -1)),
    Endpoints(numbers=_ZERO, infinite=np.full(1, 1)),
)


def point(value: Fraction) -> Interval:
    """Return an interval of one number."""
    return (Endpoints(numbers=constant(value)), Endpoints(numbers=constant(value)))


def exactly(column: Column) -> Interval | None:
    """Return the interval of known numbers, which is themselves; None for what is no number."""
    return (Endpoints(numbers=column), Endpoints(numbers=column)) if isinstance(column, Rationals) else None


def of_ends(values: Sequence[End]) -> Endpoints:
    """Return a column of ends."""
    signs = np.array([(v > 0) - (v < 0) if isinstance(v, float) else 0 for v in values], dtype=np.int64)
    finite = of_numbers([Fraction(0) if isinstance(v, float) else v for v in values])
    return Endpoints(numbers=finite, infinite=signs if signs.any() else None)


# ---- ends ------------------------------------------------------------------------------------------------------------


def _signs(x: Endpoints) -> SignArray:
    own = rationals.signs(x.numbers)
    return own if x.infinite is None else np.where(x.infinite != 0, x.infinite, own)


def _finite(finite: Rationals, infinite: SignArray | None) -> Endpoints:
    """Return numbers with infinities over them."""
    if infinite is None or not infinite.any():
        return Endpoints(numbers=finite)
    return Endpoints(numbers=rationals.choose(infinite != 0, _ZERO, finite), infinite=infinite)


def _flags(x: Endpoints) -> SignArray:
    return np.zeros(1, dtype=np.int64) if x.infinite is None else x.infinite


def plus(x: Endpoints, y: Endpoints) -> Endpoints:
    """Add two ends; of two infinities the first wins."""
    finite = rationals.add(x.numbers, y.numbers)
    if x.infinite is None and y.infinite is None:
        return Endpoints(numbers=finite)
    return _finite(finite, np.where(_flags(x) != 0, _flags(x), _flags(y)))


def negated(x: Endpoints) -> Endpoints:
    """Return −x."""
    return Endpoints(numbers=rationals.negate(x.numbers), infinite=None if x.infinite is None else -x.infinite)


def times(x: Endpoints, y: Endpoints) -> Endpoints:
    """Multiply two ends; 0 times infinity is 0."""
    finite = rationals.multiply(x.numbers, y.numbers)
    if x.infinite is None and y.infinite is None:
        return Endpoints(numbers=finite)
    return _finite(finite, np.where((_flags(x) != 0) | (_flags(y) != 0), _signs(x) * _signs(y), 0))


def over(x: Endpoints, y: Endpoints) -> Endpoints:
    """Divide two ends; what is divided by 0 is 0, which no caller keeps."""
    if x.infinite is None and y.infinite is None:
        ratio = rationals.divide(x.numbers, y.numbers)
        return Endpoints(numbers=Rationals(tops=ratio.tops, bottoms=ratio.bottoms, scale=ratio.scale))
    return times(x, Endpoints(numbers=replace(rationals.divide(_ONE, y.numbers), null=None)))


def at_most(x: Endpoints, y: Endpoints) -> BoolArray:
    """Return where x ≤ y."""
    finite = rationals.at_most(x.numbers, y.numbers)
    if x.infinite is None and y.infinite is None:
        return finite
    a, b = _flags(x), _flags(y)
    return np.asarray(np.where((a != 0) | (b != 0), a <= b, finite), dtype=np.bool_)


def choose(mask: BoolArray, x: Endpoints, y: Endpoints) -> Endpoints:
    """Return x where the mask says so, else y."""
    finite = rationals.choose(mask, x.numbers, y.numbers)
    if x.infinite is None and y.infinite is None:
        return Endpoints(numbers=finite)
    return Endpoints(numbers=finite, infinite=np.where(mask, _flags(x), _flags(y)))


def lesser(*ends: Endpoints) -> Endpoints:
    """Return the least of ends."""
    return reduce(lambda x, y: choose(at_most(x, y), x, y), ends)


def greater(*ends: Endpoints) -> Endpoints:
    """Return the greatest of ends."""
    return reduce(lambda x, y: choose(at_most(y, x), x, y), ends)


# ---- intervals -------------------------------------------------------------------------------------------------------


def hull(*parts: Interval) -> Interval:
    """Return the least interval that contains all."""
    return (lesser(*(low for low, _ in parts)), greater(*(high for _, high in parts)))


def add(first: Interval, second: Interval) -> Interval:
    """Return where x + y can be."""
    return (plus(first[0], second[0]), plus(first[1], second[1]))


def negate(part: Interval) -> Interval:
    """Return where −x can be."""
    return (negated(part[1]), negated(part[0]))


def subtract(first: Interval, second: Interval) -> Interval:
    """Return where x − y can be."""
    return add(first, negate(second))


def multiply(first: Interval, second: Interval) -> Interval:
    """Return where xy can be: a product is linear in each factor, so that it is extreme at corners."""
    for part, other in ((first, second), (second, first)):
        if part[0] is part[1]:
            low, high = times(other[0], part[0]), times(other[1], part[0])
            turned = _signs(part[0]) < 0
            return (choose(turned, high, low), choose(turned, low, high)) if turned.any() else (low, high)
    if (_signs(first[0]) >= 0).all() and (_signs(second[0]) >= 0).all():
        return (times(first[0], second[0]), times(first[1], second[1]))
    corners = [times(x, y) for x in first for y in second]
    return (lesser(*corners), greater(*corners))


def divide(first: Interval, second: Interval) -> Interval:
    """Return where x/y can be: anywhere if y can be 0, else y has one sign, and is turned to be positive.

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


def _turned(mask: BoolArray, part: Interval) -> Interval:
    low, high = negate(part)
    return (choose(mask, low, part[0]), choose(mask, high, part[1]))


def absolute(part: Interval) -> Interval:
    """Return where |x| can be."""
    low, high = part
    below, above = _signs(low) <= 0, _signs(high) >= 0
    nearest = choose(below, negated(high), low)
    return (choose(below & above, Endpoints(numbers=_ZERO), nearest), greater(negated(low), high))


def least(*parts: Interval) -> Interval:
    """Return where the least of numbers can be."""
    return (lesser(*(low for low, _ in parts)), lesser(*(high for _, high in parts)))


def greatest(*parts: Interval) -> Interval:
    """Return where the greatest of numbers can be."""
    return (greater(*(low for low, _ in parts)), greater(*(high for _, high in parts)))


def within(part: Interval, low: Interval, high: Interval) -> Interval:
    """Return where x clamped to [low, high] can be."""
    return least(greatest(part, low), high)


def increasing(rule: Callable[..., Rationals]) -> Callable[..., Interval]:
    """Return how intervals pass through a function that never decreases in its first argument: ends go to ends.

    Its other arguments are constants; infinities stay.
    """

    def interval(part: Interval, *constants: Interval) -> Interval:
        more = [low.numbers for low, _ in constants]
        low, high = (_finite(rule(end.numbers, *more), end.infinite) for end in part)
        return (low, high)

    return interval


def power(part: Interval, exponent: Interval) -> Interval:
    """Return where x^k can be: odd powers increase, even ones are powers of |x|, negative ones divide."""
    return _raised(part, rationals.whole_constant(exponent[0].numbers))


def _raised(part: Interval, k: int) -> Interval:
    one = Endpoints(numbers=_ONE)
    if k < 0:
        return divide((one, one), _raised(part, -k))
    if k == 0:
        return (one, one)
    return increasing(lambda x: rationals.power(x, k))(absolute(part) if k % 2 == 0 else part)


def sign(part: Interval) -> Interval:
    """Return where the sign of x can be."""
    low, high = (Endpoints(numbers=Rationals(tops=_signs(end))) for end in part)
    return (low, high)


def remainder(part: Interval, divisor: Interval) -> Interval:
    """Return where x − y·trunc(x/y) can be: nearer to 0 than x and than y, on the side of x."""
    low, high = part
    zero, largest = Endpoints(numbers=_ZERO), absolute(divisor)[1]
    return (
        choose(_signs(low) >= 0, zero, greater(low, negated(largest))),
        choose(_signs(high) <= 0, zero, lesser(high, largest)),
    )


def square_root(part: Interval) -> Interval:
    """Return where √x can be, for the x ≥ 0 of the part."""
    roots = increasing(lambda x: elementary.square_roots(rationals.greater(x, _ZERO)))(part)
    factors = (constant(1 - elementary.OUTWARDS), constant(1 + elementary.OUTWARDS))
    low, high = (
        Endpoints(
            numbers=rationals.multiply(end.numbers, factor),
            infinite=None if end.infinite is None else np.maximum(end.infinite, 0),  # the root of −∞ is that of 0
        )
        for end, factor in zip(roots, factors, strict=True)
    )
    return (low, high)


def root_of_squares(parts: Sequence[Endpoints]) -> Endpoints:
    """Return the root of the sum of squares, rounded up."""
    squares = reduce(plus, (times(part, part) for part in parts))
    return square_root((squares, squares))[1]


def logarithm(part: Interval) -> Interval:
    """Return where ln x can be, for the x > 0 of the part."""
    return _end_by_end(elementary.logarithm_below, elementary.logarithm_above, part)


def exponential(part: Interval) -> Interval:
    """Return where e^x can be, for the x ≤ 709 of the part."""
    return _end_by_end(elementary.exponential_below, elementary.exponential_above, part)


def _end_by_end(below: Callable[[End], End], above: Callable[[End], End], part: Interval) -> Interval:
    return (of_ends([below(end) for end in part[0].values()]), of_ends([above(end) for end in part[1].values()]))


def sample_factor(part: Interval) -> Interval:
    """Return where n/(n − 1) can be, which decreases: over the n ≥ 2 of the part, as it is NULL elsewhere."""
    two = Endpoints(numbers=constant(Fraction(2)))
    low, high = (greater(end, two) for end in part)
    return (_bessel(high), _bessel(low))


def _bessel(n: Endpoints) -> Endpoints:
    """Return n/(n − 1), which is 1 at infinity."""
    factor = rationals.divide(n.numbers, rationals.subtract(n.numbers, _ONE))
    return Endpoints(numbers=factor if n.infinite is None else rationals.choose(n.infinite != 0, _ONE, factor))

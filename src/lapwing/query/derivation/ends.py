"""How intervals pass through functions: ends that contain the true value whenever the ends of the parts do.

An end is a rational or an infinity. A float among ends is an infinity: it never meets a Fraction in one operation,
which would be made a float and may be too large or too small for one.
"""

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import inf
from typing import Final

End = Fraction | float
Interval = tuple[End, End]

_ONE: Final[Interval] = (Fraction(1), Fraction(1))


def plus(x: End, y: End) -> End:
    """Add two ends; of two infinities the first wins, which never differ among ends of one side."""
    return x if isinstance(x, float) else y if isinstance(y, float) else x + y


def times(x: End, y: End) -> End:
    """Multiply two ends; 0 times infinity is 0, as ends of a product are limits of products of finite numbers."""
    if x == 0 or y == 0:
        return Fraction(0)
    if isinstance(x, float) or isinstance(y, float):
        return inf if (x > 0) == (y > 0) else -inf
    return x * y


def over(x: End, y: End) -> End:
    """Divide two ends, y ≠ 0."""
    return Fraction(0) if isinstance(y, float) else times(x, 1 / y)


def add(first: Interval, second: Interval) -> Interval:
    """Return where x + y can be."""
    return (plus(first[0], second[0]), plus(first[1], second[1]))


def negate(part: Interval) -> Interval:
    """Return where −x can be."""
    return (-part[1], -part[0])


def subtract(first: Interval, second: Interval) -> Interval:
    """Return where x − y can be."""
    return add(first, negate(second))


def multiply(first: Interval, second: Interval) -> Interval:
    """Return where xy can be: a product is linear in each factor, so that it is extreme at corners."""
    corners = [times(x, y) for x, y in product(first, second)]
    return (min(corners), max(corners))


def divide(first: Interval, second: Interval) -> Interval:
    """Return where x/y can be: anywhere if y can be 0, else between corners, as it is monotone in each."""
    if second[0] <= 0 <= second[1]:
        return (-inf, inf)
    corners = [over(x, y) for x, y in product(first, second)]
    return (min(corners), max(corners))


def absolute(part: Interval) -> Interval:
    """Return where |x| can be."""
    low, high = part
    largest = -low if -low > high else high
    if low <= 0 <= high:
        return (Fraction(0), largest)
    return (low, largest) if low > 0 else (-high, largest)


def least(*parts: Interval) -> Interval:
    """Return where the least of numbers can be."""
    return (min(low for low, _ in parts), min(high for _, high in parts))


def greatest(*parts: Interval) -> Interval:
    """Return where the greatest of numbers can be."""
    return (max(low for low, _ in parts), max(high for _, high in parts))


def hull(*parts: Interval) -> Interval:
    """Return the least interval that contains all."""
    return (min(low for low, _ in parts), max(high for _, high in parts))


def within(part: Interval, low: Interval, high: Interval) -> Interval:
    """Return where x clamped to [low, high] can be."""
    return least(greatest(part, low), high)


def power(part: Interval, exponent: Interval) -> Interval:
    """Return where x^k can be: odd powers increase; even ones are powers of |x|; negative ones divide."""
    k = int(exponent[0])
    if k < 0:
        return divide(_ONE, power(part, negate(exponent)))
    if k == 0:
        return _ONE
    low, high = absolute(part) if k % 2 == 0 else part
    return (_raised(low, k), _raised(high, k))


def _raised(end: End, k: int) -> End:
    if isinstance(end, float):
        return end if k % 2 or end > 0 else -end
    return end**k


def sign(part: Interval) -> Interval:
    """Return where the sign of x can be."""
    low, high = (Fraction((end > 0) - (end < 0)) for end in part)
    return (low, high)


def remainder(part: Interval, divisor: Interval) -> Interval:
    """Return where x − y·trunc(x/y) can be: nearer to 0 than x and than y, on the side of x."""
    low, high = part
    largest = absolute(divisor)[1]
    return (
        Fraction(0) if low >= 0 else max(low, -largest),
        Fraction(0) if high <= 0 else min(high, largest),
    )


def sample_factor(part: Interval) -> Interval:
    """Return where n/(n − 1) can be, which decreases: over the n ≥ 2 of the part, as it is NULL elsewhere."""
    low, high = (max(end, Fraction(2)) for end in part)
    return (_bessel(high), _bessel(low))


def _bessel(n: End) -> End:
    return Fraction(1) if isinstance(n, float) else n / (n - 1)


def stepped(rule: Callable[[Fraction, Fraction], Fraction], part: Interval, digits: Interval | None = None) -> Interval:
    """Map ends to ends: rounding never decreases."""
    places = Fraction(0) if digits is None else Fraction(digits[0])
    low, high = (end if isinstance(end, float) else rule(end, places) for end in part)
    return (low, high)

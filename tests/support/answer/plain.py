"""What derived values and their intervals are in one cell, in plain Python: what columns must agree with.

Numbers are fractions, with None for NULL. An end is a fraction or an infinity: a float among ends is an infinity, and
never meets a Fraction in one operation. Nothing of `lapwing` computes here but square roots, logarithms and
exponentials of one number.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import product
from math import ceil, floor, inf, isinf, trunc
from typing import Any, Final

import numpy as np

from lapwing.query.derivation import elementary
from lapwing.query.derivation.average import Average
from lapwing.query.derivation.constant_value import ConstantValue
from lapwing.query.derivation.derive import FunctionValue, IntervalEnd
from lapwing.query.derivation.derived import KeyValue, MeasureValue, NoisyCells
from lapwing.query.derivation.intervals import Endpoints, JointMargins
from lapwing.query.derivation.moments import Variance
from lapwing.query.derivation.node import Derived, Margins
from lapwing.query.expressions import days
from lapwing.query.expressions.expression import Constant
from lapwing.query.measures.measures import Measure

Value = Constant
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


def square_root_ends(part: Interval) -> Interval:
    """Return where √x can be, for the x ≥ 0 of the part."""
    low, high = (_root_of_end(max(end, Fraction(0))) for end in part)
    return (
        low if isinstance(low, float) else low * (1 - elementary.OUTWARDS),
        high if isinf(high) else high * (1 + elementary.OUTWARDS),
    )


def _root_of_end(end: End) -> End:
    return end if isinstance(end, float) else elementary.square_root(end) or Fraction(0)


def logarithm_ends(part: Interval) -> Interval:
    """Return where ln x can be, for the x > 0 of the part."""
    low, high = (None if isinstance(end, float) else elementary.logarithm(end) for end in part)
    return (
        -inf if low is None else low - elementary.OUTWARDS * max(Fraction(1), abs(low)),
        inf if high is None else high + elementary.OUTWARDS * max(Fraction(1), abs(high)),
    )


def exponential_ends(part: Interval) -> Interval:
    """Return where e^x can be, for the x ≤ 709 of the part."""
    low, high = (None if isinstance(end, float) else elementary.exponential(end) for end in part)
    least = Fraction(0) if low is None else low * (1 - elementary.OUTWARDS)
    if part[1] == -inf:
        return (Fraction(0), elementary.OUTWARDS)
    return (least, inf if high is None else max(high * (1 + elementary.OUTWARDS), elementary.OUTWARDS**20))


# ---- functions


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function of derived values: how it is computed, and how intervals pass through it (None: they do not).

    Args:
        strict: NULL in, NULL out.
        skips_null: an argument that is NULL is left out, so that the result may be any of the others.
        partial: NULL for some arguments that are not.
    """

    value: Callable[..., Value]
    interval: Callable[..., Interval] | None = None
    strict: bool = True
    skips_null: bool = False
    partial: bool = False


def rounded(value: Fraction, digits: Fraction = Fraction(0)) -> Fraction:
    """Round half up to a number of decimal places."""
    scale = Fraction(10) ** int(digits)
    return floor(value * scale + Fraction(1, 2)) / scale


def _floor(value: Fraction, _digits: Fraction = Fraction(0)) -> Fraction:
    return Fraction(floor(value))


def _ceiling(value: Fraction, _digits: Fraction = Fraction(0)) -> Fraction:
    return Fraction(ceil(value))


def _power(value: Fraction, exponent: Fraction) -> Fraction | None:
    return None if value == 0 and exponent < 0 else value ** int(exponent)


def _remainder(value: Fraction, divisor: Fraction) -> Fraction | None:
    return value - divisor * trunc(value / divisor) if divisor else None


def _sample_factor(count: Fraction) -> Fraction | None:
    return count / (count - 1) if count >= 2 else None


def _known(values: Sequence[Any]) -> list[Any]:
    return [value for value in values if value is not None]


def _and(left: Value, right: Value) -> Value:
    return False if left is False or right is False else None if None in (left, right) else True


def _or(left: Value, right: Value) -> Value:
    return True if left is True or right is True else None if None in (left, right) else False


def _at_most(left: Any, right: Any) -> Value:
    return None if left is None or right is None else left <= right


def _date_at(number: Fraction) -> Value:
    return days.date_at(int(number))


def _moment_at(seconds: Fraction) -> Value:
    """Return the timestamp so many seconds after 1970-01-01, to the nearest microsecond."""
    return days.moment_at(int(rounded(seconds * 10**6)))


def _case(*parts: Value) -> Value:
    for condition, value in zip(parts[:-1:2], parts[1::2], strict=True):
        if condition is True:
            return value
    return parts[-1]


FUNCTIONS: Mapping[str, Function] = {
    "add": Function(value=lambda x, y: x + y, interval=add),
    "subtract": Function(value=lambda x, y: x - y, interval=subtract),
    "multiply": Function(value=lambda x, y: x * y, interval=multiply),
    "divide": Function(value=lambda x, y: x / y if y else None, interval=divide, partial=True),
    "modulo": Function(value=_remainder, interval=remainder, partial=True),
    "negate": Function(value=lambda x: -x, interval=negate),
    "absolute": Function(value=abs, interval=absolute),
    "sign": Function(value=lambda x: Fraction((x > 0) - (x < 0)), interval=sign),
    "power": Function(value=_power, interval=power, partial=True),
    "square_root": Function(value=elementary.square_root, interval=square_root_ends, partial=True),
    "logarithm": Function(value=elementary.logarithm, interval=logarithm_ends, partial=True),
    "exponential": Function(value=elementary.exponential, interval=exponential_ends, partial=True),
    "within": Function(value=lambda x, low, high: min(max(x, low), high), interval=within),
    "sample_factor": Function(value=_sample_factor, interval=sample_factor, partial=True),
    "least": Function(value=lambda *v: min(_known(v), default=None), interval=least, strict=False, skips_null=True),
    "greatest": Function(
        value=lambda *v: max(_known(v), default=None), interval=greatest, strict=False, skips_null=True
    ),
    "round": Function(value=rounded, interval=partial(stepped, rounded)),
    "floor": Function(value=_floor, interval=partial(stepped, _floor)),
    "ceiling": Function(value=_ceiling, interval=partial(stepped, _ceiling)),
    "coalesce": Function(value=lambda *v: next(iter(_known(v)), None), strict=False),
    "null_if": Function(
        value=lambda x, y: None if x is None or x == y else x, interval=lambda p, _q: p, strict=False, partial=True
    ),
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
    "concatenate": Function(value=lambda x, y: x + y),
    "upper": Function(value=lambda x: x.upper()),
    # What they are of lies in the calendar: a quantile is inside the bounds of its argument. Ends stay numbers.
    "date_at": Function(value=_date_at, interval=lambda part: part),
    "moment_at": Function(value=_moment_at, interval=lambda part: part),
    "day_number": Function(value=lambda x: Fraction(days.count(x))),
    "second_number": Function(value=lambda x: Fraction(days.count(x), 10**6)),
    "lower": Function(value=lambda x: x.lower()),
}


# ---- values in one cell ----------------------------------------------------------------------------------------------


def evaluate(
    derived: Derived,
    measures: Mapping[Measure, Fraction],
    keys: Mapping[str, Value],
    margins: Margins | None = None,
) -> Value:
    """Return the value of a derived expression in one cell, given released numbers and the keys by their texts.

    Order statistics are of vectors; they have no form for one cell (`noisy_trees`).
    """
    match derived:
        case MeasureValue():
            return measures[derived.measure]
        case Average():
            return _average(derived, measures[derived.total], measures[derived.count])
        case Variance():
            return evaluate(derived.formula, measures, keys, margins)
        case KeyValue():
            return keys[str(derived.key)]
        case ConstantValue():
            return derived.value
        case IntervalEnd():
            return _end(derived, measures, keys, margins)
        case FunctionValue():
            function = FUNCTIONS[derived.function]
            arguments = [evaluate(argument, measures, keys, margins) for argument in derived.arguments]
            return None if function.strict and None in arguments else function.value(*arguments)
        case _:
            raise ValueError("order statistics and window functions are computed for all cells at once")


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


def _end(
    derived: IntervalEnd,
    measures: Mapping[Measure, Fraction],
    keys: Mapping[str, Value],
    margins: Margins | None,
) -> Fraction | None:
    if margins is None:
        raise ValueError("ends of intervals need the margins of measures")
    found = bracket(derived.value, measures, margins(derived.value), keys)
    end = None if found is None else found[0 if derived.side == "low" else 1]
    return end if isinstance(end, Fraction) else None


# ---- intervals in one cell -------------------------------------------------------------------------------------------


def bracket(
    derived: Derived,
    measures: Mapping[Measure, Fraction],
    margins: Mapping[Measure, Fraction],
    keys: Mapping[str, Value],
) -> Interval | None:
    """Return an interval that holds the true value if every measure is within its margin of the released one.

    `None` where no such interval follows (conditions, text, ends of intervals).
    """
    if isinstance(margins, JointMargins) and derived in margins.known:  # its law has tests of its own
        return _as_columns_have_it(margins.known[derived], measures)
    match derived:
        case MeasureValue():
            return _around(derived.measure, measures, margins)
        case Average():
            return _average_bracket(derived, measures, margins)
        case Variance():
            if isinstance(margins, JointMargins):
                raise ValueError("what numbers together say of a variance has a test of its own")
            return bracket(derived.formula, measures, margins, keys)
        case KeyValue() | ConstantValue():
            value = derived.value if isinstance(derived, ConstantValue) else keys[str(derived.key)]
            return (value, value) if isinstance(value, Fraction) else None
        case IntervalEnd():
            return None
        case FunctionValue():
            function = FUNCTIONS[derived.function]
            parts = [bracket(argument, measures, margins, keys) for argument in derived.arguments]
            known = [part for part in parts if part is not None]
            if function.interval is None or len(known) < len(parts):
                return None
            if function.skips_null and not all(map(is_never_null, derived.arguments)):
                return hull(*known)
            return function.interval(*known)
        case _:
            raise ValueError("order statistics and window functions are computed for all cells at once")


def _as_columns_have_it(
    of_columns: Callable[[NoisyCells], tuple[Endpoints, Endpoints]], measures: Mapping[Measure, Fraction]
) -> Interval | None:
    """Return the interval of a weighted sum or a quotient, as columns of one cell have it."""
    integers = {m: np.array([int(value / m.step)], dtype=object) for m, value in measures.items()}
    low, high = of_columns(NoisyCells(size=1, measures=integers, keys={}, margins=lambda _: {}))
    (least,), (most,) = low.numbers.values(), high.numbers.values()
    return None if least is None or most is None else (least, most)


def is_never_null(derived: Derived) -> bool:
    """Tell whether a number has a value in every cell: LEAST and GREATEST skip those that have none."""
    match derived:
        case MeasureValue():
            return True
        case ConstantValue():
            return derived.value is not None
        case FunctionValue():
            return not FUNCTIONS[derived.function].partial and all(map(is_never_null, derived.arguments))
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
    if (fewest if isinstance(margins, JointMargins) else most) < 1:
        return (low, high)
    ratios = divide(_around(average.total, measures, margins), (max(fewest, Fraction(1)), most))
    first, last = (min(max(_origin(average) + ratio, low), high) for ratio in ratios)
    return (first, last)

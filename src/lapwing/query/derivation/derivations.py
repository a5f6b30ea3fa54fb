"""The functions of released numbers and keys: how each is computed, and how intervals pass through it.

Numbers are exact rationals (`Fraction`), with `None` for NULL, so that no sum or product overflows or rounds on the
way. This table defines what a function means in one cell; `columns` has faster forms of the common ones.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import ceil, floor, trunc
from typing import Any

from lapwing.query.derivation import ends, roots
from lapwing.query.derivation.ends import Interval
from lapwing.query.expressions import days
from lapwing.query.expressions.expression import Constant

Value = Constant


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
    "add": Function(value=lambda x, y: x + y, interval=ends.add),
    "subtract": Function(value=lambda x, y: x - y, interval=ends.subtract),
    "multiply": Function(value=lambda x, y: x * y, interval=ends.multiply),
    "divide": Function(value=lambda x, y: x / y if y else None, interval=ends.divide, partial=True),
    "modulo": Function(value=_remainder, interval=ends.remainder, partial=True),
    "negate": Function(value=lambda x: -x, interval=ends.negate),
    "absolute": Function(value=abs, interval=ends.absolute),
    "sign": Function(value=lambda x: Fraction((x > 0) - (x < 0)), interval=ends.sign),
    "power": Function(value=_power, interval=ends.power, partial=True),
    "square_root": Function(value=roots.square_root, interval=roots.square_root_ends, partial=True),
    "logarithm": Function(value=roots.logarithm, interval=roots.logarithm_ends, partial=True),
    "exponential": Function(value=roots.exponential, interval=roots.exponential_ends, partial=True),
    "within": Function(value=lambda x, low, high: min(max(x, low), high), interval=ends.within),
    "sample_factor": Function(value=_sample_factor, interval=ends.sample_factor, partial=True),
    "least": Function(
        value=lambda *v: min(_known(v), default=None), interval=ends.least, strict=False, skips_null=True
    ),
    "greatest": Function(
        value=lambda *v: max(_known(v), default=None), interval=ends.greatest, strict=False, skips_null=True
    ),
    "round": Function(value=rounded, interval=partial(ends.stepped, rounded)),
    "floor": Function(value=_floor, interval=partial(ends.stepped, _floor)),
    "ceiling": Function(value=_ceiling, interval=partial(ends.stepped, _ceiling)),
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

"""The functions of released numbers and keys: how a column of values is computed, and how intervals pass through it.

Numbers are exact rationals, so that no sum or product overflows or rounds on the way. A function that is not computed
for whole columns at once is applied cell by cell (`_each`). `derive` says what a function takes, and the type of its
result.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from functools import reduce
from math import floor, trunc
from typing import Any, Final

import numpy as np

from lapwing.query.derivation import elementary, intervals, rationals
from lapwing.query.derivation.columns import (
    BoolArray,
    Column,
    Labels,
    Rationals,
    Shape,
    Truths,
    Value,
    as_numbers,
    as_truths,
    constant,
    mask_of,
    some,
)
from lapwing.query.derivation.columns_of_values import of_values
from lapwing.query.derivation.comparing import choose
from lapwing.query.derivation.intervals import Interval
from lapwing.query.derivation.rationals import either
from lapwing.query.expressions import days

Form = Callable[[Sequence[Column], Shape], Column]
"""Computes the column of a function's values from those of its arguments; the shape is that of the result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function of derived values.

    Args:
        column: how it is computed.
        interval: how intervals pass through it; None: they do not.
        skips_null: an argument that is NULL is left out, so that the result may be any of the others.
        partial: NULL for some arguments that are not.
    """

    column: Form
    interval: Callable[..., Interval] | None = None
    skips_null: bool = False
    partial: bool = False


# ---- numbers ---------------------------------------------------------------------------------------------------------


def _arithmetic(rule: Callable[..., Rationals]) -> Form:
    return lambda parts, _shape: rule(*map(as_numbers, parts))


def _skipping_null(rule: Callable[[Rationals, Rationals], Rationals]) -> Callable[..., Rationals]:
    def one(x: Rationals, y: Rationals) -> Rationals:
        result = rule(x, y)
        for part, other in ((x, y), (y, x)):
            if part.null is not None:
                result = rationals.choose(part.null, other, result)
        return result

    return lambda *parts: reduce(one, parts)


def _sample_factor(n: Rationals) -> Rationals:
    """Return n/(n − 1), NULL below 2."""
    factor = rationals.divide(n, rationals.subtract(n, constant(Fraction(1))))
    few = some(rationals.compared(operator.lt, n, constant(Fraction(2))))
    return Rationals(tops=factor.tops, bottoms=factor.bottoms, scale=factor.scale, null=either(factor.null, few))


# ---- cell by cell ----------------------------------------------------------------------------------------------------


def _each(rule: Callable[..., Value]) -> Form:
    """Apply a function of values in every cell, or once for each label of the one key that it depends on.

    NULL in any argument gives NULL.
    """

    def form(parts: Sequence[Column], shape: Shape) -> Column:
        varying = [part for part in parts if part.size != 1]
        only = varying[0] if len(varying) == 1 else None
        if isinstance(only, Labels) and len(only.labels) < only.size:
            places = np.arange(-1, len(only.labels))  # place −1 is NULL
            distinct = [Labels(places=places, labels=only.labels) if part is only else part for part in parts]
            return by_cell(distinct, shape).taken(only.places + 1)
        return by_cell(parts, shape)

    def by_cell(parts: Sequence[Column], shape: Shape) -> Column:
        size = int(np.broadcast_shapes(*((part.size,) for part in parts))[0])
        cells = zip(*(part.expanded(size).values() for part in parts), strict=True)
        return of_values([None if None in cell else rule(*cell) for cell in cells], shape).expanded(size)

    return form


# ---- conditions ------------------------------------------------------------------------------------------------------


def _compared(rule: Callable[[Any, Any], Any], x: Column, y: Column) -> Truths:
    """Compare numbers and conditions by columns, and texts and dates cell by cell; NULL beside anything is NULL."""
    if isinstance(x, Rationals) and isinstance(y, Rationals):
        return Truths(truths=rationals.compared(rule, x, y), null=either(x.null, y.null))
    if isinstance(x, Truths) and isinstance(y, Truths):
        return Truths(truths=rule(x.truths, y.truths), null=either(x.null, y.null))
    return as_truths(_each(rule)([x, y], "boolean"))


def _comparison(rule: Callable[[Any, Any], Any]) -> Form:
    return lambda parts, _shape: _compared(rule, *parts)


def _both(x: Truths, y: Truths) -> Truths:
    unknown = mask_of(x.null) | mask_of(y.null)
    false = (~x.truths & ~mask_of(x.null)) | (~y.truths & ~mask_of(y.null))
    return Truths(truths=x.holds & y.holds, null=some(unknown & ~false))


def _not(x: Truths) -> Truths:
    return Truths(truths=~x.truths, null=x.null)


def _condition(rule: Callable[..., Truths]) -> Form:
    return lambda parts, _shape: rule(*map(as_truths, parts))


def _between(parts: Sequence[Column], _shape: Shape) -> Column:
    x, low, high = parts
    return _both(_compared(operator.le, low, x), _compared(operator.le, x, high))


def _in(parts: Sequence[Column], _shape: Shape) -> Column:
    x, *choices = parts
    truths: BoolArray = np.zeros(1, dtype=np.bool_)
    null: BoolArray | None = x.null
    for choice in choices:
        equal = _compared(operator.eq, x, choice)
        truths, null = truths | equal.truths, either(null, equal.null)
    return Truths(truths=truths, null=null)


# ---- texts -----------------------------------------------------------------------------------------------------------


def _part(text: str, start: Fraction, length: Fraction | None = None) -> str:
    """Return the characters of a text at places from `start` on, which counts from 1, or from the end if negative."""
    first = int(start) if start >= 0 else len(text) + int(start) + 1
    end = None if length is None else max(1, first + int(length)) - 1
    return text[max(1, first) - 1 : end]


def _last(text: str, number: Fraction) -> str:
    return text[max(0, len(text) - int(number)) :]


def _upper(character: str) -> str:
    """Return one character for one, as engines do for rows: ẞ, not SS."""
    one = [changed for changed in (character.upper(), character.title()) if len(changed) == 1]
    return "ẞ" if character == "ß" else one[0] if one else character


def _written(value: Any) -> str:
    """Write what has one exact text: whole numbers, conditions, dates, and texts themselves."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)  # whole numbers are Fractions, which are written without a denominator; dates are as in ISO


AS_NEEDED: Final = Fraction(-1)
"""For the digits of a decimal's text: as many as it has, and one at least."""


def _decimal_text(value: Fraction, digits: Fraction) -> str:
    """Write a number that was rounded, with so many digits after the point."""
    most = value.denominator.bit_length()  # of 2ᵃ·5ᵇ, so that 10ⁿ is a multiple of it for some n up to here
    shown = int(digits) if digits >= 0 else next(n for n in range(1, most + 1) if 10**n % value.denominator == 0)
    text = str(abs(value.numerator) * 10**shown // value.denominator).rjust(shown + 1, "0")
    sign = "-" if value < 0 else ""
    return f"{sign}{text[:-shown]}.{text[-shown:]}" if shown else sign + text


# ---- choice ----------------------------------------------------------------------------------------------------------


def _case(parts: Sequence[Column], shape: Shape) -> Column:
    result = parts[-1]
    for condition, value in zip(reversed(parts[:-1:2]), reversed(parts[1::2]), strict=True):
        result = choose(as_truths(condition).holds, value, result, shape)
    return result


def _coalesce(parts: Sequence[Column], shape: Shape) -> Column:
    result = parts[-1]
    for part in reversed(parts[:-1]):
        result = choose(~mask_of(part.null), part, result, shape)
    return result


def _null_if(parts: Sequence[Column], shape: Shape) -> Column:
    x, y = parts
    return choose(_compared(operator.eq, x, y).holds, Labels(places=np.full(1, -1), labels=()), x, shape)


def _micros(moment: date) -> int:
    return days.count(moment) * (1 if isinstance(moment, datetime) else days.DAY)


def _same(part: Interval, *_others: Interval) -> Interval:
    return part


FUNCTIONS: Final[Mapping[str, Function]] = {
    "add": Function(column=_arithmetic(rationals.add), interval=intervals.add),
    "subtract": Function(column=_arithmetic(rationals.subtract), interval=intervals.subtract),
    "multiply": Function(column=_arithmetic(rationals.multiply), interval=intervals.multiply),
    "divide": Function(column=_arithmetic(rationals.divide), interval=intervals.divide, partial=True),
    "modulo": Function(
        column=_each(lambda x, y: x - y * trunc(x / y) if y else None), interval=intervals.remainder, partial=True
    ),
    "negate": Function(column=_arithmetic(rationals.negate), interval=intervals.negate),
    "absolute": Function(column=_arithmetic(rationals.absolute), interval=intervals.absolute),
    "sign": Function(column=_arithmetic(rationals.sign), interval=intervals.sign),
    "power": Function(
        column=_arithmetic(lambda x, exponent: rationals.power(x, rationals.whole_constant(exponent))),
        interval=intervals.power,
        partial=True,
    ),
    "square_root": Function(column=_arithmetic(elementary.square_roots), interval=intervals.square_root, partial=True),
    "logarithm": Function(column=_each(elementary.logarithm), interval=intervals.logarithm, partial=True),
    "exponential": Function(column=_each(elementary.exponential), interval=intervals.exponential, partial=True),
    "within": Function(column=_arithmetic(rationals.within), interval=intervals.within),
    "sample_factor": Function(column=_arithmetic(_sample_factor), interval=intervals.sample_factor, partial=True),
    "least": Function(column=_arithmetic(_skipping_null(rationals.lesser)), interval=intervals.least, skips_null=True),
    "greatest": Function(
        column=_arithmetic(_skipping_null(rationals.greater)), interval=intervals.greatest, skips_null=True
    ),
    "round": Function(column=_arithmetic(rationals.rounded), interval=intervals.increasing(rationals.rounded)),
    "floor": Function(column=_arithmetic(rationals.floor), interval=intervals.increasing(rationals.floor)),
    "ceiling": Function(column=_arithmetic(rationals.ceiling), interval=intervals.increasing(rationals.ceiling)),
    "coalesce": Function(column=_coalesce),
    "null_if": Function(column=_null_if, interval=_same, partial=True),
    "case": Function(column=_case),
    "is_null": Function(column=lambda parts, _shape: Truths(truths=mask_of(parts[0].null))),
    "and": Function(column=_condition(_both)),
    "or": Function(column=_condition(lambda x, y: _not(_both(_not(x), _not(y))))),
    "not": Function(column=_condition(_not)),
    "=": Function(column=_comparison(operator.eq)),
    "<>": Function(column=_comparison(operator.ne)),
    "<": Function(column=_comparison(operator.lt)),
    "<=": Function(column=_comparison(operator.le)),
    ">": Function(column=_comparison(operator.gt)),
    ">=": Function(column=_comparison(operator.ge)),
    "between": Function(column=_between),
    "in": Function(column=_in),
    "concatenate": Function(column=_each(operator.add)),
    "upper": Function(column=_each(lambda text: "".join(map(_upper, text)))),
    "lower": Function(column=_each(lambda text: "".join(character.lower()[0] for character in text))),
    "substring": Function(column=_each(_part)),
    "left": Function(column=_each(lambda text, number: text[: int(number)])),
    "right": Function(column=_each(_last)),
    "length": Function(column=_each(lambda text: Fraction(len(text)))),
    "written": Function(column=_each(_written)),
    "written_decimal": Function(column=_each(_decimal_text)),
    # What they are of lies in the calendar: a quantile is inside the bounds of its argument. Ends stay numbers.
    "date_at": Function(column=_each(lambda number: days.date_at(int(number))), interval=_same),
    "moment_at": Function(  # to the nearest microsecond, half up
        column=_each(lambda seconds: days.moment_at(floor(seconds * 10**6 + Fraction(1, 2)))), interval=_same
    ),
    "truncate": Function(column=_each(lambda unit, moment: days.moment_at(days.truncated(_micros(moment), unit)))),
    "part": Function(column=_each(lambda unit, moment: Fraction(days.part(_micros(moment), unit)))),
    "shift": Function(column=_each(lambda moment, unit, amount: days.moved(moment, unit, int(amount))), partial=True),
    "to_date": Function(column=_each(lambda moment: date(moment.year, moment.month, moment.day))),
    "to_timestamp": Function(column=_each(lambda moment: days.moment_at(_micros(moment)))),
    "day_number": Function(column=_each(lambda day: Fraction(days.count(day)))),
    "second_number": Function(column=_each(lambda moment: Fraction(days.count(moment), 10**6))),
}

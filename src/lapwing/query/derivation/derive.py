"""Post-processing: values and intervals that follow from released numbers alone.

Nothing here touches data, so nothing here costs anything or can leak. Numbers are exact rationals (`Fraction`), with
`None` for NULL; an interval is a pair of rationals or infinities that contains the true value whenever the intervals of
its parts do. This module says what a derived value is in one cell; `columns` computes the same for many at once.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Final

from lapwing.errors import QueryRefused
from lapwing.query.derivation import ends
from lapwing.query.derivation.derivations import FUNCTIONS, Value
from lapwing.query.derivation.derived import (
    NUMERIC,
    Average,
    Compute,
    Derived,
    Fixture,
    IntervalEnd,
    KeyValue,
    OrderStatistic,
    Over,
    Part,
    Released,
    Side,
    measures_of,
    parts_of,
)
from lapwing.query.derivation.ends import Interval
from lapwing.query.derivation.shapes import alike, shape_of
from lapwing.query.measures import Measure

Margins = Callable[[Sequence[Part]], Mapping[Measure, Fraction]]
"""Given what an interval rests on, the margins within which all of it is at once with `INTERVAL_CONFIDENCE`.

Of a distribution it is the probability with which the interval of each order statistic may miss.
"""

_COMPARED: Final = frozenset({"=", "<>", "<", "<=", ">", ">=", "between", "in", "null_if", "coalesce", "case"})


def compute(function: str, *arguments: Derived) -> Compute:
    """Apply a function, checking its arguments so that nothing can fail once the answer is paid.

    Raises: QueryRefused if they do not fit.
    """
    parts = alike(arguments) if function in _COMPARED else arguments
    return Compute(function=function, arguments=tuple(parts), shape=shape_of(function, parts))


def interval_end(value: Derived, side: Side) -> IntervalEnd:
    """Take an end of the 95 % interval of a noisy number.

    Raises: QueryRefused if the value is not a noisy number, or no interval follows for it.
    """
    if value.shape not in NUMERIC or not measures_of(value):
        raise QueryRefused("An interval is that of a noisy number", remedy="Name a COUNT, SUM, AVG or a formula.")
    if not has_interval(value):
        raise QueryRefused(
            "No interval follows for this column", remedy="CASE, COALESCE, conditions and ends of intervals have none."
        )
    return IntervalEnd(value=value, side=side)


def has_interval(derived: Derived) -> bool:
    """Tell whether an interval follows for a value: a fact of the question."""
    match derived:
        case Compute():
            return FUNCTIONS[derived.function].interval is not None and all(map(has_interval, derived.arguments))
        case Fixture():
            return isinstance(derived.value, Fraction)
        case KeyValue():
            return derived.shape in NUMERIC
        case _:
            return not isinstance(derived, IntervalEnd | Over)


def rests_on_ends(derived: Derived) -> bool:
    """Tell whether a value is computed from ends of intervals, so that there is no true value that it hides."""
    match derived:
        case IntervalEnd():
            return True
        case Compute():
            return any(map(rests_on_ends, derived.arguments))
        case Over():
            return any(map(rests_on_ends, derived.inside))
        case _:
            return False


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
        case Released():
            return measures[derived.measure]
        case Average():
            return _average(derived, measures[derived.total], measures[derived.count])
        case OrderStatistic() | Over():
            raise ValueError("order statistics and functions over rows are computed for all cells at once")
        case KeyValue():
            return keys[str(derived.key)]
        case Fixture():
            return derived.value
        case IntervalEnd():
            return _end(derived, measures, keys, margins)
        case Compute():
            function = FUNCTIONS[derived.function]
            arguments = [evaluate(argument, measures, keys, margins) for argument in derived.arguments]
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


def _end(
    derived: IntervalEnd,
    measures: Mapping[Measure, Fraction],
    keys: Mapping[str, Value],
    margins: Margins | None,
) -> Fraction | None:
    if margins is None:
        raise ValueError("ends of intervals need the margins of measures")
    found = bracket(derived.value, measures, margins(parts_of(derived.value)), keys)
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
    match derived:
        case Released():
            return _around(derived.measure, measures, margins)
        case Average():
            return _average_bracket(derived, measures, margins)
        case OrderStatistic():
            raise ValueError("order statistics are computed for all cells at once")
        case KeyValue() | Fixture():
            value = derived.value if isinstance(derived, Fixture) else keys[str(derived.key)]
            return (value, value) if isinstance(value, Fraction) else None
        case IntervalEnd() | Over():
            return None
        case Compute():
            function = FUNCTIONS[derived.function]
            parts = [bracket(argument, measures, margins, keys) for argument in derived.arguments]
            known = [part for part in parts if part is not None]
            if function.interval is None or len(known) < len(parts):
                return None
            if function.skips_null and not all(map(is_never_null, derived.arguments)):
                return ends.hull(*known)
            return function.interval(*known)


def is_never_null(derived: Derived) -> bool:
    """Tell whether a number has a value in every cell: LEAST and GREATEST skip those that have none."""
    match derived:
        case Released():
            return True
        case Fixture():
            return derived.value is not None
        case Compute():
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
    if most < 1:
        return (low, high)
    ratios = ends.divide(_around(average.total, measures, margins), (max(fewest, Fraction(1)), most))
    first, last = (min(max(_origin(average) + ratio, low), high) for ratio in ratios)
    return (first, last)

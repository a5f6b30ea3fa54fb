"""The columns of `lapwing` in one cell, held against the plain evaluation there."""

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Any, cast

from lapwing.exact.arrays import integer_array
from lapwing.query.derivation.columns import Value, of_labels
from lapwing.query.derivation.derived import NoisyCells
from lapwing.query.derivation.node import Derived, Margins
from lapwing.query.measures.measures import Measure
from tests.support.answer import plain


def evaluate(
    derived: Derived,
    measures: Mapping[Measure, Fraction],
    keys: Mapping[str, Value],
    margins: Margins | None = None,
) -> Any:
    """Return the value of a derived expression in one cell, given released numbers and the keys by their texts."""
    once = None if margins is None else cast(Margins, cache(margins))
    (value,) = _cell(measures, keys, once).column(derived).values()
    assert value == plain.evaluate(derived, measures, keys, once)
    return value


def bracket(
    derived: Derived,
    measures: Mapping[Measure, Fraction],
    margins: Mapping[Measure, Fraction],
    keys: Mapping[str, Value],
) -> tuple[Any, Any] | None:
    """Return an interval that holds the true value if every measure is within its margin of the released one."""
    interval = interval_of_columns(derived, measures, margins, keys)
    assert interval == plain.bracket(derived, measures, margins, keys)
    return interval


def interval_of_columns(
    derived: Derived,
    measures: Mapping[Measure, Fraction],
    margins: Mapping[Measure, Fraction],
    keys: Mapping[str, Value],
) -> tuple[Any, Any] | None:
    """Return the interval alone, for what breaks it on purpose."""
    interval = derived.interval(_cell(measures, keys, None), margins)
    if interval is None:
        return None
    ((low,), (high,)) = (end.values() for end in interval)
    return (low, high)


def _cell(measures: Mapping[Measure, Fraction], keys: Mapping[str, Value], margins: Margins | None) -> NoisyCells:
    steps = {measure: value / measure.step for measure, value in measures.items()}
    assert all(value.denominator == 1 for value in steps.values())
    return NoisyCells(
        size=1,
        measures={measure: integer_array([int(value)]) for measure, value in steps.items()},
        keys={name: of_labels([value]) for name, value in keys.items()},
        margins=margins if margins is not None else lambda _parts: {},
    )

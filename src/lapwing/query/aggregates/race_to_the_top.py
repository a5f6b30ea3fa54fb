"""Sum what units add to a group without a bound on it, and promise the true sum: the race to the top.

How much one unit adds to a sum of numbers ≥ 0, or to a count, may not be public, but only a generous limit. A bound
that a search finds (`unit_totals`) errs less, but may cut off any amount. A race promises that its answer is at most
the true sum. The question is asked at several truncation thresholds τ: what a unit adds to a group is clamped to [0,
τ], for τ from the limit down by halves. Each clamped sum is a measure of its own, with noise in proportion to τ. The
clamped sums are at most the true one, so that where all of them lie inside their intervals the greatest of their lower
ends is at most the truth: high thresholds have wide noise and lose, low ones cut too much and lose, and the race is won
near the largest contribution there is.

Guarantee:
    Each measure is a sum clamped unit by unit (`stability`), paid for like any measure; taking the greatest lower end
    is post-processing. What is released is at most the true sum with at least 95 % probability, in each cell.

Source:
    Dong, Fang, Yi, Tao and Machanavajjhala 2022 (R2T), for sums without joins; with Gaussian noise in gdp and zcdp
    ledgers, and the intervals of interval arithmetic (`intervals`) in place of the tail bound there.
"""

from dataclasses import replace
from fractions import Fraction
from typing import Final

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.derivation.constant_value import ConstantValue
from lapwing.query.derivation.derive import compute, interval_end
from lapwing.query.derivation.derived import MeasureValue
from lapwing.query.derivation.node import Derived
from lapwing.query.measures.measures import Count, Sum

RACE_WEIGHT: Final = Fraction(2)
"""What all thresholds of a race get of a price together, if another measure gets 1."""
MOST_THRESHOLDS: Final = 12
"""Each threshold takes its part of the price; below a 2048th of the limit a unit's part is not worth finding."""


def at_thresholds(measure: Count | Sum, highest: int, divisor: int) -> list[MeasureValue]:
    """Return a measure at each truncation threshold of a race, from the highest down, each so many times lower."""
    thresholds = [highest]
    while len(thresholds) < MOST_THRESHOLDS and thresholds[-1] > 1:
        thresholds.append(-(-thresholds[-1] // divisor))
    return [MeasureValue(measure=replace(measure, clamp=(0, most))) for most in thresholds]


def race_to_the_top(measure: Count | Sum, rows_per_unit: int) -> Derived:
    """Return what a race over a measure releases.

    Args:
        rows_per_unit: The most rows of a unit, from which the limit follows.

    Raises:
        QueryRefused: If a row may take something away.
    """
    low, high = measure.row_range
    if low < 0:
        raise QueryRefused(
            "contribution_bounds_per_group => RACE takes numbers that are not negative",
            cause=RefusalCause.NEEDS_NONNEGATIVE,
            remedy="Write the bounds, or SUM(GREATEST(x, 0), …) - SUM(GREATEST(-x, 0), …).",
        )
    released = at_thresholds(measure, rows_per_unit * high, 2)
    return interval_end(compute("greatest", ConstantValue(value=Fraction(0), shape="integer"), *released), "low")

"""Bind counts and sums of rows that several units share: truncated at a threshold, or by a race of thresholds.

No bound on what a unit adds is public, as a unit may meet any number of others. So what a unit adds in all, to a group,
is limited to a threshold τ by a packing linear program (`mechanisms.packing`): it leaves out as little of the rows as
it can. `contribution_bounds_per_group => (0, τ)` says the threshold, and with AUTO it is chosen first (`truncation`).
RACE asks at several, from 2²⁰ rows of the greatest value down by quarters, and takes the greatest of their lower ends.
Each truncated sum is at most the true one, so that where all of them lie inside their intervals no lower end exceeds
the truth: high thresholds have wide noise and lose, low ones cut too much and lose.

The lower end at a threshold is that of its interval, at 95 % for all thresholds at once, where the sum two thresholds
below is left behind by the one below: then the sum still grows. Elsewhere it lies two widths of an interval further
down, as an interval that misses the truth by chance costs the more the higher the threshold: noise at the top is wider
than the truth.

Guarantee:
    Each threshold's sum is a measure of its own, moved by a unit as `stability` says, and paid for like any; taking the
    greatest lower end is post-processing. What a race releases is at most the true sum with at least 95 % probability,
    in each cell. There is no premise in the highest threshold: what a unit adds beyond it is cut off.

Source:
    Dong, Fang, Yi, Tao and Machanavajjhala 2022 (R2T), for self-joins and joins of several private tables, with the
    intervals of interval arithmetic (`intervals`) in place of the tail bound there.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import floor
from typing import Final

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.mechanisms.packing import MOST_LEVEL
from lapwing.query.aggregates.race_to_the_top import at_thresholds
from lapwing.query.aggregates.scope import Requests
from lapwing.query.aggregates.truncation import highest, truncated_by_search
from lapwing.query.derivation.constant_value import ConstantValue
from lapwing.query.derivation.derive import compute, interval_end
from lapwing.query.derivation.derived import MeasureValue
from lapwing.query.derivation.node import Derived
from lapwing.query.measures.measures import Count, Key, Measure, Sum
from lapwing.query.text.privacy_options import NamedArguments

BASE: Final = 4
AUTO: Final = "contribution_bounds_per_group => AUTO"


def truncated(measure: Count | Sum, named: NamedArguments, requests: Requests) -> Derived:
    """Return a measure at the threshold that an aggregate says, at the one of a search, or a race of thresholds.

    Raises:
        QueryRefused: If a row may take something away, or the threshold is below a step.
    """
    if measure.row_range[0] < 0:
        raise QueryRefused(
            "SUM over rows that belong to several people takes no negative numbers",
            cause=RefusalCause.NEEDS_NONNEGATIVE,
            remedy="Write SUM(GREATEST(x, 0), …) - SUM(GREATEST(-x, 0), …), or contribution_bounds_per_row => (0, …).",
        )
    bounds = named.contribution_bounds_per_group
    if isinstance(bounds, tuple):
        threshold = floor(bounds[1] / measure.step)
        if bounds[0] > 0 or threshold < 1:
            raise QueryRefused(
                "The limits of what one person adds to shared rows go from 0 to at least one step",
                cause=RefusalCause.INVALID_BOUNDS,
                remedy=f"Write (0, 100), or {AUTO}.",
            )
        return MeasureValue(measure=replace(measure, clamp=(0, min(threshold, MOST_LEVEL))))
    if bounds == "auto":
        return MeasureValue(measure=truncated_by_search(measure, requests))
    return _greatest_end(at_thresholds(measure, highest(measure), BASE)[::-1])


def _greatest_end(released: Sequence[MeasureValue]) -> Derived:
    """Return the greatest lower end of truncated sums, that of the lowest threshold first."""
    zero = ConstantValue(value=Fraction(0), shape="integer")
    nothing = compute("multiply", zero, compute("greatest", *released))  # so that all intervals hold at once
    lows = [interval_end(compute("add", total, nothing), "low") for total in released]
    highs = [interval_end(compute("add", total, nothing), "high") for total in released]
    ends: list[Derived] = list(lows[:2])
    for place in range(2, len(released)):
        further = compute("subtract", lows[place], compute("subtract", highs[place], lows[place]))
        grows = compute(">", lows[place - 1], highs[place - 2])
        ends.append(compute("case", grows, lows[place], further))
    return compute("greatest", zero, *ends)


def check_shared(sets: Sequence[Sequence[Key]], measures: Sequence[Measure], requests: Requests) -> None:
    """Refuse what is not proven of rows that several units share."""
    if len(sets) > 1:
        raise QueryRefused(
            "Rows that belong to several people have one grouping",
            cause=RefusalCause.SHARED_ROWS_NOT_SUPPORTED,
            remedy="Ask for each by itself.",
        )
    (keys,) = sets
    if any(key.private for key in keys):
        names = ", ".join(key.name for key in keys if key.private)
        raise QueryRefused(
            f"The values of {names} are not public, and rows that belong to several people have only public groups",
            cause=RefusalCause.VALUES_NOT_PUBLIC,
            remedy="Join a public table that has the values.",
            curator_remedy="declare the values in the catalog, if they are public",
        )
    if requests.value_searches:
        raise QueryRefused(
            "Lapwing searches no bounds of values in rows that belong to several people",
            cause=RefusalCause.BOUNDS_NOT_SEARCHABLE,
            remedy="Write contribution_bounds_per_row => (0, 100).",
        )
    if any(not isinstance(measure, Count | Sum) or measure.clamp is None for measure in measures):
        raise QueryRefused(
            "Rows that belong to several people are only counted and summed, with a limit on what one person adds",
            cause=RefusalCause.SHARED_ROWS_NOT_SUPPORTED,
            remedy=f"Write COUNT(*, {AUTO}) or SUM(x, {AUTO}), and nothing else beside them.",
        )

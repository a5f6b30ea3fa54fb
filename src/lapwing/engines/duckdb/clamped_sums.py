"""Sums unit by unit and cell by cell first: to clamp what a unit adds to a cell, or to limit in how many it is."""

from collections.abc import Sequence

from lapwing.engines.duckdb.expressions import expression, group_by, have_keys
from lapwing.engines.duckdb.group_limits import aggregated, first_groups
from lapwing.engines.duckdb.literals import clamp, unit_name, whole
from lapwing.engines.duckdb.relations import selected
from lapwing.query.measures.distinct_counts import CountUnits
from lapwing.query.measures.distribution import fixed_point
from lapwing.query.measures.measures import NumberMeasure, OnceEach, Sum
from lapwing.query.plan.plan import Question


def is_limited(question: Question) -> bool:
    """Tell whether the cells of each unit are limited, in a way that takes the rows of a cell as a whole."""
    limit = first_groups(question.selection)
    whole = any(isinstance(measure, OnceEach) for measure in question.numbers)
    return not whole and limit is not None and set(limit.keys) == set(question.keys)


def by_unit(question: Question, keys: Sequence[str], measures: Sequence[str], rows: str) -> str:
    """Aggregate unit by unit and cell by cell, and add up what units add to a cell, clamped.

    Args:
        keys: Items of a SELECT.
        measures: Items of a SELECT.
        rows: The FROM and WHERE clauses.
    """
    unit, limit = unit_name(*question.tables), first_groups(question.selection)
    own = [_once(measure, i) or _mean(measure, i) for i, measure in enumerate(question.numbers)]
    measures = [item or known for item, known in zip(own, measures, strict=True)]
    if limit is not None and is_limited(question):
        places = [f"key{limit.keys.index(key)} AS key{i}" for i, key in enumerate(question.keys)]
        shown = ", ".join([*places, f"{unit} AS holder", *(f"measure{i}" for i in range(len(measures)))])
        below = selected(limit.source, have_keys(limit.keys))
        return added_up(question.numbers, len(keys), f"SELECT {shown} FROM {aggregated(limit, below, unit, measures)}")
    items = ", ".join([*keys, f"{unit} AS holder", *measures])
    return added_up(question.numbers, len(keys), f"SELECT {items} {rows}{group_by(len(keys) + 1)}")


def _once(measure: NumberMeasure, place: int) -> str | None:
    """Return what a unit adds to the number of units: 1 at most."""
    if not isinstance(measure, CountUnits):
        return None
    if measure.where is None:
        return f"1::BIGINT AS measure{place}"
    return f"MAX(CASE WHEN {expression(measure.where)} THEN 1::BIGINT ELSE 0::BIGINT END) AS measure{place}"


def _mean(measure: NumberMeasure, place: int) -> str | None:
    """Return a unit's mean in a cell, rounded half up and clamped; NULL, which adds nothing, of no values.

    It is computed in whole numbers: from its lower end l the mean of n values that add up to s is
    ⌊(2(s − l·n) + n) / 2n⌋ steps away, of a numerator that is not negative.
    """
    if not isinstance(measure, Sum) or not measure.averaged or measure.clamp is None:
        return None
    kind, value = fixed_point(measure.argument), expression(measure.argument)
    kept = f"{clamp(value, kind.low or 0, kind.high or 0)} - {whole(measure.origin)}"
    total, count = f"SUM(CASE WHEN {value} IS NOT NULL THEN {kept} END)", f"COUNT({value})::HUGEINT"
    low, high = map(whole, measure.clamp)
    above = f"(2 * ({total} - {low} * {count}) + {count})"
    mean = f"CASE WHEN {above} < 0 THEN {low} ELSE LEAST({low} + {above} // (2 * {count}), {high}) END"
    return f"CASE WHEN {count} > 0 THEN {mean} END AS measure{place}"


def _added(place: int, measure: NumberMeasure) -> str:
    """Return what a unit adds to a cell; of means, what `_mean` has clamped."""
    if measure.clamp is None or (isinstance(measure, Sum) and measure.averaged):
        return f"measure{place}"
    return clamp(f"measure{place}", *measure.clamp)


def added_up(measures: Sequence[NumberMeasure], keys: int, partials: str) -> str:
    """Return the query that adds up clamped partial sums, a row of which is of one unit and cell."""
    names = [f"key{i}" for i in range(keys)]
    # The part of a unit is clamped before parts are added: that bounds how far one unit can move the sum.
    sums = [f"COALESCE(SUM({_added(i, measure)}), 0) AS measure{i}" for i, measure in enumerate(measures)]
    return f"SELECT {', '.join([*names, *sums])} FROM ({partials}){group_by(keys)}"

"""Sums unit by unit and cell by cell first: to clamp what a unit adds to a cell, or to limit in how many it is."""

from collections.abc import Sequence

from lapwing.engines.duckdb.expressions import expression, group_by, have_keys
from lapwing.engines.duckdb.group_limits import aggregated, first_groups
from lapwing.engines.duckdb.literals import clamp, unit_name
from lapwing.engines.duckdb.relations import selected
from lapwing.query.measures import CountDistinct, CountUnits, NumberMeasure
from lapwing.query.plan import Question


def is_limited(question: Question) -> bool:
    """Tell whether the cells of each unit are limited, in a way that takes the rows of a cell as a whole."""
    limit = first_groups(question.selection)
    whole = any(isinstance(measure, CountDistinct) for measure in question.numbers)
    return not whole and limit is not None and set(limit.keys) == set(question.keys)


def by_unit(question: Question, keys: Sequence[str], measures: Sequence[str], rows: str) -> str:
    """Aggregate unit by unit and cell by cell, and add up what units add to a cell, clamped.

    Args: keys, measures: items of a SELECT. rows: the FROM and WHERE clauses.
    """
    unit, limit = unit_name(*question.tables), first_groups(question.selection)
    measures = [_once(measure, i) or measures[i] for i, measure in enumerate(question.numbers)]
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


def added_up(measures: Sequence[NumberMeasure], keys: int, partials: str) -> str:
    """Return the query that adds up clamped partial sums, a row of which is of one unit and cell."""
    names = [f"key{i}" for i in range(keys)]
    parts = [
        f"measure{i}" if measure.clamp is None else clamp(f"measure{i}", *measure.clamp)
        for i, measure in enumerate(measures)
    ]
    sums = [f"COALESCE(SUM({part}), 0) AS measure{i}" for i, part in enumerate(parts)]
    return f"SELECT {', '.join([*names, *sums])} FROM ({partials}){group_by(keys)}"

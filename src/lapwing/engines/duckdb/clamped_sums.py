"""Sums of which each unit adds no more than its clamp to any cell."""

from collections.abc import Sequence

from lapwing.engines.duckdb.expressions import group_by
from lapwing.engines.duckdb.literals import clamp, unit_name
from lapwing.query.plan import Question


def clamped(question: Question, keys: Sequence[str], measures: Sequence[str], rows: str) -> str:
    """Aggregate unit by unit and cell by cell first, so that what a unit adds to a cell can be clamped.

    Args: keys, measures: items of a SELECT. rows: the FROM and WHERE clauses.
    """
    unit = f"{unit_name(*question.tables)} AS holder"
    partials = f"SELECT {', '.join([*keys, unit, *measures])} {rows}{group_by(len(keys) + 1)}"
    names = [f"key{i}" for i in range(len(keys))]
    parts = [
        f"measure{i}" if measure.clamp is None else clamp(f"measure{i}", *measure.clamp)
        for i, measure in enumerate(question.numbers)
    ]
    sums = [f"COALESCE(SUM({part}), 0) AS measure{i}" for i, part in enumerate(parts)]
    return f"SELECT {', '.join([*names, *sums])} FROM ({partials}){group_by(len(names))}"

"""Values within their bounds, as SQL of DuckDB: the last step of cleaning a value (`cleaned`)."""

from fractions import Fraction
from typing import cast

from lapwing.catalog.model import Column as Declared
from lapwing.engines.duckdb.literals import clamp, double, print_in_steps, whole


def clean_whole(name: str, column: Declared) -> str:
    """Clamp an integer. A NULL meets no condition and stays NULL."""
    low, high = column.low, column.high
    return (
        f"CASE WHEN {name} <= {low} THEN {whole(low)} WHEN {name} >= {high} THEN {whole(high)} "
        f"ELSE TRY_CAST({name} AS BIGINT) END"
    )


def clean_fixed(value: str, column: Declared) -> str:
    """Clamp, round half up to whole steps, clamp again: the double nearest to a bound may lie beyond it."""
    low, high, step = column.low, column.high, cast(Fraction, column.step)
    steps = f"TRY_CAST(floor({print_in_steps(value, step)} + 0.5) AS BIGINT)"
    return (
        f"CASE WHEN {value} IS NULL OR isnan({value}) THEN NULL "
        f"WHEN {value} <= {double(low * step)} THEN {whole(low)} "
        f"WHEN {value} >= {double(high * step)} THEN {whole(high)} ELSE {clamp(steps, low, high)} END"
    )


def clean_temporal(column: Declared, value: str) -> str:
    """Clamp a date or timestamp."""
    kind = column.type.upper()
    if column.lower is None or column.upper is None:
        return value
    low, high = (f"{kind} '{str(end)[:26]}'" for end in (column.lower, column.upper))
    return f"CASE WHEN {value} IS NULL THEN NULL ELSE LEAST(GREATEST({value}, {low}), {high}) END"

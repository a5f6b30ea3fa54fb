"""Bounded values as they are summed, and as they are read: total on every value that a file can hold."""

from collections.abc import Mapping
from fractions import Fraction
from typing import cast

from lapwing.catalog.model import Column as Declared
from lapwing.catalog.model import Table
from lapwing.engines.duckdb.cleaned import is_whole, read
from lapwing.engines.duckdb.literals import clamp, double, identifier, whole
from lapwing.engines.duckdb.printers import print_in_steps
from lapwing.query.expressions.as_read import read_columns
from lapwing.query.expressions.types import Fixed, Real, Type


def clean(column: Declared, physical: str, value: str) -> str:
    """Return a value within its bounds, in whole steps if it is a number."""
    if column.type in ("date", "timestamp"):
        return clean_temporal(column, value)
    return clean_whole(value, column) if is_whole(column, physical) else clean_fixed(value, column)


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
    """Move a date or timestamp to its bounds."""
    kind = column.type.upper()
    low, high = (f"{kind} '{str(end)[:26]}'" for end in (column.lower, column.upper))
    return f"CASE WHEN {value} IS NULL THEN NULL ELSE LEAST(GREATEST({value}, {low}), {high}) END"


def columns_read(table: Table, types: Mapping[str, str]) -> list[str]:
    """Return bounded numbers as they are read, as items of a SELECT.

    Args:
        types: The engine's own of all columns.
    """
    return [f"{as_read(own, types[own.name], kind)} AS {identifier(name)}" for own, name, kind in read_columns(table)]


def as_read(column: Declared, physical: str, kind: Type) -> str:
    """Return a bounded number as it is read, moved nowhere but from far out to the bounds of its type."""
    low, high = cast(tuple[Fraction, Fraction], cast(Fixed | Real, kind).interval())
    integer, as_it_is = column.type == "integer", is_whole(column, physical)
    value = read(column, physical) if as_it_is else f"NULLIF({read(column, physical)}, 'nan'::DOUBLE)"
    limits = (str(int(low)), str(int(high))) if as_it_is else (double(low), double(high))

    def write(end: Fraction) -> str:
        return whole(int(end)) if integer else double(end)

    rounded = value if as_it_is else f"floor({value} + 0.5)"
    shown = f"TRY_CAST({rounded} AS BIGINT)" if integer else f"{value} + 0.0::DOUBLE"
    ends = (write(low), write(high))
    kept = (
        f"CASE WHEN {value} <= {limits[0]} THEN {ends[0]} WHEN {value} >= {limits[1]} THEN {ends[1]} ELSE {shown} END"
    )
    if column.null_counts_as is None:
        return kept
    return f"COALESCE({kept}, {write(cast(Fraction, column.null_counts_as))})"

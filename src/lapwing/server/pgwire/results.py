"""Prepared statements, portals and results, and results in the form that messages have."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, Final, final

from lapwing.answer.python_values import Cell
from lapwing.server.pgwire import messages, values
from lapwing.server.pgwire.refusals import StatementRefused
from lapwing.server.pgwire.statements import ARRAYS, Copy, SqlStatement

EXPLAINED: Final = (("column", values.TEXT_TYPE), ("half_width", values.FLOAT8))
"""The columns of what a query would give."""
MOST_INTEGER: Final = 10**1000
"""Integers of results are below half of it."""
EXAMPLES: Final[Mapping[int, object]] = {
    **dict.fromkeys((values.INT2, values.INT4, values.INT8, values.OID), 0),
    **dict.fromkeys((values.FLOAT4, values.FLOAT8, values.NUMERIC), 0),
    values.BOOL: False,
    **{array: [""] if element in (25, 1043) else [0] for element, array in ARRAYS.items() if element != values.BOOL},
    values.DATE: date(2000, 1, 1),
    **dict.fromkeys((values.TIMESTAMP, values.TIMESTAMPTZ), datetime(2000, 1, 1)),
}
"""Values by which a prepared query is read whose own values are not there yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementResult:
    """The result of a statement: with columns, if it gives rows; of a COPY, as data."""

    tag: str
    columns: Sequence[tuple[str, int]] | None = None
    rows: Sequence[Sequence[values.Shown]] = ()
    notices: Sequence[str] = ()
    copy: Copy | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A prepared statement, None if it is empty, with the types of its parameters."""

    statement: SqlStatement | None
    types: tuple[int, ...] = ()


@final
@dataclass(slots=True, kw_only=True)
class Portal:
    """A prepared statement with values; `result` once it has run, and `sent` counts the rows that were sent."""

    prepared: Prepared
    values: Sequence[object]
    formats: Sequence[int]
    result: StatementResult | None = None
    sent: int = 0


def described(columns: Sequence[tuple[str, int]], formats: Sequence[int]) -> list[messages.FieldDescription]:
    """Return columns as messages have them, in the formats that a client asked for.

    Raises:
        StatementRefused: If there are neither none, nor one, nor one for each.
    """
    if len(formats) not in (0, 1, len(columns)):
        raise StatementRefused("08P01", f"The result has {len(columns)} columns; {len(formats)} formats came.")
    kinds = (
        [messages.TEXT] * len(columns) if not formats else list(formats) * (len(columns) if len(formats) == 1 else 1)
    )
    return [
        messages.FieldDescription(name=name, type=type_, size=values.SIZES.get(type_, -1), format=kind)
        for (name, type_), kind in zip(columns, kinds, strict=True)
    ]


def widened(result: StatementResult) -> StatementResult:
    """Return a result in which a column of integers is `numeric` where `bigint` does not hold one of them.

    This is for a result that is described when it is there. A client that described the query before has seen `bigint`,
    and reads nothing else. Neither does the reader of a binary COPY, which has no types. The type of a column follows
    only from released numbers.
    """
    if result.columns is None or (result.copy is not None and result.copy.form == "binary"):
        return result
    columns = [
        (name, values.NUMERIC if type_ == values.INT8 and _is_wide(result.rows, place) else type_)
        for place, (name, type_) in enumerate(result.columns)
    ]
    return replace(result, columns=columns)


def _is_wide(rows: Sequence[Sequence[values.Shown]], place: int) -> bool:
    """Tell whether integers of a column go beyond `bigint`, and none beyond what is sent at all."""
    sizes = [abs(2 * row[place] + 1) for row in rows if isinstance(row[place], int)]  # type: ignore[operator]
    return 2**64 < max(sizes, default=0) < MOST_INTEGER


def shown(result: StatementResult) -> Sequence[tuple[str, int]] | None:
    """Return the columns that a description of a result has."""
    return None if result.copy is not None else result.columns


def with_ends(
    columns: Sequence[tuple[str, int]], rows: Sequence[list[Cell]], intervals: Mapping[str, Any]
) -> tuple[list[tuple[str, int]], list[list[Cell]]]:
    """Return columns and rows in which each column that has intervals is followed by their ends."""
    wider: list[tuple[str, int]] = []
    shown: list[list[Cell]] = [[] for _ in rows]
    for place, (name, type_) in enumerate(columns):
        wider.append((name, type_))
        for row, more in zip(rows, shown, strict=True):
            more.append(row[place])
        for end in ("low", "high") if name in intervals else ():
            wider.append((f"{name}_{end}", values.FLOAT8))
            for value, more in zip(intervals[name][end], shown, strict=True):
                more.append(None if value is None else float(value))
    return wider, shown

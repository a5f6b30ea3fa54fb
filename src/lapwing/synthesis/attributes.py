"""Columns with finitely many public cells: listed values, or bins between public bounds, and one for what has none.

Theory of operation. Which cell a row falls into depends on that row and on the catalog alone, and every row falls into
one cell of every column: so a table of any columns counts each row once, and nothing of the rows says which cells there
are. A NULL, or a value that is not listed, has the last cell of a column that can have one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, cast, final

import numpy as np
from numpy.typing import NDArray

from lapwing.catalog.model import Column, Table
from lapwing.catalog.spelling import text as spelled
from lapwing.errors import InvalidParameter
from lapwing.exact.entropy import Entropy
from lapwing.exact.samplers import uniform_integers

if TYPE_CHECKING:
    import pyarrow as pa

Integers = NDArray[np.int64]
MOST_CELLS: Final = 1_000
"""Of one column."""
MOST_BINS: Final = 256
_DAY: Final = timedelta(days=1)
_MICROSECOND: Final = timedelta(microseconds=1)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """A column as cells.

    Args:
        sql: The cell of a row, a whole number from 0.
        labels: Of the cells, for people.
        values: Of the cells of a column with listed values.
        bins: Of other columns, of each cell the first value and the last, counted in steps of the column, days or
            microseconds.
        missing: Whether the last cell is that of rows without a value.
    """

    column: Column
    sql: str
    labels: tuple[str, ...]
    values: tuple[Any, ...] = ()
    bins: tuple[tuple[int, int], ...] = ()
    missing: bool = False

    @property
    def name(self) -> str:
        """The column's name."""
        return self.column.name

    @property
    def size(self) -> int:
        """The number of cells."""
        return len(self.labels)

    def draw(self, cells: Integers, entropy: Entropy) -> "pa.Array":
        """Return a value for each cell as Arrow holds the column's type; of a bin any, each equally likely."""
        import pyarrow as pa  # here: it takes longer to load than most of the rest

        empty = cells == self.size - 1 if self.missing else np.zeros(cells.size, dtype=np.bool_)
        if not self.bins:
            kind = {"string": pa.string(), "boolean": pa.bool_(), "integer": pa.int64()}.get(self.column.type)
            held = pa.array([*self.values, *([None] if self.missing else [])], type=kind)
            return held.take(pa.array(cells))
        places = np.zeros(cells.size, dtype=np.int64)
        for cell, (first, last) in enumerate(self.bins):
            here = np.flatnonzero(cells == cell)
            if here.size:
                drawn = uniform_integers(last - first + 1, here.size, entropy)
                places[here] = first + np.asarray(drawn, dtype=np.int64)
        return self._array(places, empty)

    def _array(self, places: Integers, empty: NDArray[np.bool_]) -> "pa.Array":
        """Return values by their number of steps, days or microseconds."""
        import pyarrow as pa

        if self.column.type == "date":
            return pa.array(places.astype(np.int32), mask=empty).cast(pa.date32())
        if self.column.type == "timestamp":
            return pa.array(places, mask=empty).cast(pa.timestamp("us"))
        step = cast(Fraction, self.column.step)
        if self.column.type == "float":
            return pa.array(places.astype(np.float64) * float(step), mask=empty)
        if self.column.type == "integer":
            return pa.array(places * int(step), mask=empty)
        numbers = [Decimal(int(place) * step.numerator) / Decimal(step.denominator) for place in places.tolist()]
        kind = pa.decimal128(38, _places(step))
        shown = [None if gone else number for number, gone in zip(numbers, empty.tolist(), strict=True)]
        return pa.array(shown, type=kind)


def attributes_of(table: Table, names: list[str], bins: int | Mapping[str, int]) -> tuple[Attribute, ...]:
    """Return columns as cells, by the catalog alone.

    Args:
        bins: Into how many bins numbers, dates and times are cut at most, of all of them or by name.

    Raises:
        InvalidParameter: For a column without public cells, or that the table does not have.
    """
    if isinstance(bins, Mapping) and (unknown := set(bins) - set(names)):
        raise InvalidParameter(f"bins names {sorted(unknown)}, which are not columns here. Nothing was charged.")
    found = []
    for name in names:
        column = table.column(name)
        if column is None:
            there = ", ".join(one.name for one in table.columns)
            raise InvalidParameter(
                f"{name!r:.60} is not a column of {table.name}, which has {there}. Nothing was charged."
            )
        count = bins.get(name, DEFAULT_BINS) if isinstance(bins, Mapping) else bins
        if type(count) is not int or not 2 <= count <= MOST_BINS:
            raise InvalidParameter(f"bins is {count!r}; write a whole number from 2 to {MOST_BINS}.")
        found.append(attribute_of(column, count))
    return tuple(found)


DEFAULT_BINS: Final = 16


def attribute_of(column: Column, bins: int) -> Attribute:
    """Return a column as cells.

    Raises:
        InvalidParameter: If its values are private.
    """
    if column.values or column.bounded:
        found = _listed(column) if column.values else _binned(column, bins)
        if found.size > 1:
            return found
        raise InvalidParameter(
            f"Column {spelled(column.name)} can have only one value; leave it out. Nothing was charged."
        )
    raise InvalidParameter(
        f"The values of column {spelled(column.name)} are not public. Leave it out, or ask the curator to declare "
        f"values or bounds in the catalog. Nothing was charged."
    )


def _listed(column: Column) -> Attribute:
    values = tuple(column.values or ())
    if len(values) >= MOST_CELLS:
        raise InvalidParameter(
            f"Column {spelled(column.name)} lists {len(values):,} values; at most {MOST_CELLS - 1:,} are allowed. "
            f"Leave it out, or ask the curator to list fewer, with other. Nothing was charged."
        )
    name = quoted(column.name)
    cases = " ".join(f"WHEN {_equals(name, value)} THEN {place}" for place, value in enumerate(values))
    # What is none of them is `other`; without it, it has no value that a row could be shown with.
    missing = column.other is None and (column.nullable or column.type != "boolean")
    rest = len(values) if missing or column.other is not None else len(values) - 1
    shown = (*values, column.other) if column.other is not None else values
    return Attribute(
        column=column,
        sql=f"CASE {cases} ELSE {rest} END",
        labels=tuple(_shown(value) for value in (*shown, *([None] if missing else []))),
        values=shown,
        missing=missing,
    )


def _binned(column: Column, bins: int) -> Attribute:
    """Cut what lies between bounds into bins of as many values each; the last may have fewer."""
    name = quoted(column.name)
    if column.numeric:
        low, high = column.low, column.high
    else:
        low, high = _moment(column.lower), _moment(column.upper)
    width = -(-(high - low + 1) // bins)
    edges = tuple((first, min(first + width - 1, high)) for first in range(low, high + 1, width))
    if column.numeric:
        step = cast(Fraction, column.step)
        ends = f"{decimal(low * step)}, {decimal((low + width * len(edges)) * step)}"
        cell = f"WIDTH_BUCKET({name}, {ends}, {len(edges)}) - 1" if len(edges) > 1 else "0"
        labels = [_interval(_number(first * step), _number(last * step)) for first, last in edges]
    else:
        inner = " ".join(f"WHEN {name} < {_literal(column, edge[0])} THEN {i}" for i, edge in enumerate(edges[1:]))
        cell = f"CASE {inner} ELSE {len(edges) - 1} END" if inner else "0"
        labels = [_interval(_instant(column, first), _instant(column, last)) for first, last in edges]
    if not column.nullable:
        return Attribute(column=column, sql=cell, labels=tuple(labels), bins=edges)
    sql = f"CASE WHEN {name} IS NULL THEN {len(edges)} ELSE {cell} END"
    return Attribute(column=column, sql=sql, labels=(*labels, _shown(None)), bins=edges, missing=True)


# ---- values as texts -------------------------------------------------------------------------------------------------


def quoted(name: str) -> str:
    """Quote a name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def decimal(value: Fraction) -> str:
    """Write a number in SQL.

    Raises:
        InvalidParameter: For one that is no finite decimal.
    """
    for places in range(61):
        if (value * 10**places).denominator == 1:
            digits = f"{abs(value.numerator) * 10**places // value.denominator:0{places + 1}d}"
            shown = f"{digits[:-places]}.{digits[-places:]}" if places else digits
            return f"(-{shown})" if value < 0 else shown
    raise InvalidParameter(
        f"{value} is not a finite decimal. Ask the curator to give the column a step that is one. Nothing was charged."
    )


def _equals(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return name if value else f"NOT {name}"
    if isinstance(value, datetime):
        return f"{name} = TIMESTAMP '{value:%Y-%m-%d %H:%M:%S.%f}'"
    if isinstance(value, date):
        return f"{name} = DATE '{value:%Y-%m-%d}'"
    return f"{name} = '{value.replace(chr(39), chr(39) * 2)}'" if isinstance(value, str) else f"{name} = {value}"


def _shown(value: Any) -> str:
    return "NULL" if value is None else ("true" if value else "false") if isinstance(value, bool) else str(value)


def _number(value: Fraction) -> str:
    return f"{float(value):.6g}"


def _interval(first: str, last: str) -> str:
    return first if first == last else f"{first} to {last}"


def _moment(bound: Any) -> int:
    """Return days, or microseconds, since 1970."""
    if isinstance(bound, datetime):
        return (bound.replace(tzinfo=None) - datetime(1970, 1, 1)) // _MICROSECOND
    return (cast(date, bound) - date(1970, 1, 1)) // _DAY


def _instant(column: Column, place: int) -> str:
    if column.type == "date":
        return f"{date(1970, 1, 1) + place * _DAY:%Y-%m-%d}"
    return f"{datetime(1970, 1, 1) + place * _MICROSECOND:%Y-%m-%d %H:%M:%S.%f}"


def _literal(column: Column, place: int) -> str:
    return f"{'DATE' if column.type == 'date' else 'TIMESTAMP'} '{_instant(column, place)}'"


def _places(step: Fraction) -> int:
    return next(places for places in range(39) if (step * 10**places).denominator == 1)

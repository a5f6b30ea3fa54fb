"""Columns of answers as Arrow arrays: apart, as Arrow takes longer to load than most questions to answer."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lapwing.answer.decimals import MOST_PLACES, scaled_to_places
from lapwing.answer.presentation import EndArray
from lapwing.answer.python_values import Cell, cells, is_whole
from lapwing.exact.arrays import product
from lapwing.query.derivation import rationals
from lapwing.query.derivation.columns import BoolArray, Column, Labels, Rationals, Shape, Truths
from lapwing.query.derivation.node import Output

_ARROW: Final[Mapping[Shape, pa.DataType]] = {
    "text": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "real": pa.float64(),
    "null": pa.null(),
}
_FEW: Final = 64
"""Rows up to which Python chooses labels sooner than Arrow does."""


def arrow_table(
    outputs: Sequence[Output], columns: Mapping[str, Column], intervals: Mapping[str, tuple[EndArray, EndArray]]
) -> pa.Table:
    """Return the columns of an answer as a table, each with the ends of its intervals after it if there are any."""
    return _with_ends({output.name: arrow(columns[output.name], output.value.shape) for output in outputs}, intervals)


def with_ends(table: pa.Table, intervals: Mapping[str, tuple[EndArray, EndArray]]) -> pa.Table:
    """Return a table in which each column that has intervals is followed by their ends."""
    return _with_ends({name: table[name] for name in table.column_names}, intervals)


def _with_ends(
    columns: "Mapping[str, pa.Array | pa.ChunkedArray]", intervals: Mapping[str, tuple[EndArray, EndArray]]
) -> pa.Table:
    arrays: dict[str, pa.Array | pa.ChunkedArray] = {}
    for name, column in columns.items():
        arrays[name] = column
        for suffix, ends in zip(("low", "high"), intervals.get(name, ()), strict=False):
            known = ends.astype(np.float64) if ends.dtype.kind == "i" else ends
            arrays[f"{name}_{suffix}"] = pa.array(known, from_pandas=True)  # NaN, which is not known, is null
    return pa.table(arrays)


def arrow(column: Column, shape: Shape) -> pa.Array:
    """Return an expanded column as an Arrow array.

    Integers are int64 if all fit, else decimals, as Decimals are; decimals of more than 38 digits are floats.
    """
    match column:
        case Labels() if shape in _ARROW and column.size <= _FEW:
            labels = (*column.labels, None)
            return pa.array([labels[place] for place in column.places.tolist()], type=_ARROW[shape])
        case Labels() if shape in _ARROW:
            labels = pa.array([*column.labels, None], type=_ARROW[shape])
            places = np.where(column.places < 0, len(column.labels), column.places)
            return labels.take(pa.array(places))
        case Truths():
            return pa.array(column.truths, mask=_mask(column.null))
        case Rationals() if shape == "real":
            return pa.array(rationals.floats(column), mask=_mask(column.null))
        case Rationals() if shape == "integer" and is_whole(column):
            values = product(column.tops, np.array([int(column.scale)]))
            return pa.array(values, mask=_mask(column.null))
        case Rationals() if shape == "decimal" and (scaled := scaled_to_places(column)) is not None:
            return _decimals(*scaled, column.null)
        case _:
            return _from_cells(cells(column, shape), shape)


def _mask(null: BoolArray | None) -> NDArray[np.bool_] | None:
    return None if null is None else np.ascontiguousarray(null)


def _decimals(values: NDArray[np.int64], places: int, null: BoolArray | None) -> pa.Array:
    """Return decimals of as few places as all need, laid out as Arrow has them: 128 bits, the low half first."""
    values = values if null is None else np.where(null, 0, values)
    while places and not (values % 10).any():
        values, places = values // 10, places - 1
    halves = np.stack([values, values >> 63], axis=1)
    kind = pa.decimal128(MOST_PLACES, places)
    valid = None if null is None else pa.array(~null).buffers()[1]
    return pa.Array.from_buffers(kind, len(values), [valid, pa.py_buffer(np.ascontiguousarray(halves))])


def _from_cells(values: Sequence[Cell], shape: Shape) -> pa.Array:
    if shape in _ARROW:
        return pa.array(values, type=_ARROW[shape])
    present = [value for value in values if value is not None]
    if shape == "integer" and all(isinstance(v, int) and -(2**63) <= v < 2**63 for v in present):
        return pa.array(values, type=pa.int64())
    decimals = [v if isinstance(v, Decimal) else Decimal(v) for v in present if isinstance(v, int | Decimal)]
    places = max((-int(v.as_tuple().exponent) for v in decimals), default=0)
    digits = max((v.adjusted() + 1 + places for v in decimals), default=1)
    if len(decimals) == len(present) and max(digits, places, 1) <= MOST_PLACES:
        return pa.array(values, type=pa.decimal128(MOST_PLACES, places))
    return pa.array([None if v is None else float(v) for v in values], type=pa.float64())  # type: ignore[arg-type]

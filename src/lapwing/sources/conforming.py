"""Delivered columns as the catalog means them, whatever type a source gives them.

The same rows come as other types through other doors: SQLite knows no dates, a lake stores decimals that a database
sends as text. So a value is stored by what the catalog declares, where nothing is lost by that: of a column's candidate
types the first that holds every one of its values exactly. If none does, the column stays as it was delivered. Then
values that are not of the declared type are still there for `lapwing data check`, and are read as they would be in a
file.

Which candidate is taken is a function of the column's values as a bag, and of nothing else: not of order or batches. So
equal rows give equal columns through every door that can carry them. But one person's row may decide it, and must not
decide how other rows are read. So a candidate takes a value of another type only where questions read both alike: a
number of at most 2⁵³ steps is the same double from digits, from a decimal and from an integer. Larger ones are always
read as they were delivered. Integers that come as integers stay what they are, whatever their size.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lapwing.catalog.column_checks import MOST_BYTES
from lapwing.catalog.table import Column

EXACT: Final = 2**53
"""Integers up to here are exact as doubles."""
INTEGER: Final = r"^-?[0-9]{1,40}$"
_NUMBER: Final = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)$"
_FLOAT: Final = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_DATE: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_TIMESTAMP: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z|[+]00(:?00)?)?$"


def candidates(declared: Column | None) -> Sequence[pa.DataType]:
    """Return the types in which a column may be stored, the one to be preferred first.

    Args:
        declared: None for a privacy unit that the catalog declares no column for. It stays as it comes: as texts, 07
            and 7 are two people. Nor has a column a candidate whose catalog says how stored values are read: which type
            all of them fit would decide how each of them is read.
    """
    if declared is None or declared.reading is not None:
        return []
    if declared.type == "decimal":
        scale = _scale(declared)
        return [] if scale is None else [pa.decimal128(18, scale)]
    return {
        "integer": [pa.int64()],
        "float": [pa.float64()],
        "boolean": [pa.bool_()],
        "string": [pa.large_string()],
        "date": [pa.date32()],
        "timestamp": [pa.timestamp("us")],
    }[declared.type]


def _scale(declared: Column) -> int | None:
    """Return the decimal places of a column's step, if it has few enough."""
    if declared.step is None:
        return None
    return next((places for places in range(18) if (declared.step * 10**places).denominator == 1), None)


def delivered_type(kind: pa.DataType) -> pa.DataType:
    """Return the type in which a column is stored that stays as it was delivered."""
    if pa.types.is_dictionary(kind):
        return delivered_type(kind.value_type)
    if pa.types.is_string(kind) or pa.types.is_string_view(kind) or pa.types.is_large_string(kind):
        return pa.large_string()
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit)
    if pa.types.is_integer(kind) and not pa.types.is_uint64(kind):
        return pa.int64()
    return kind


def plain(array: pa.Array) -> pa.Array:
    """Return a column as it was delivered, in one of few types: texts that are valid, times in UTC, one zero, one NaN.

    Raises:
        UnicodeError: For a text that is not UTF-8.
    """
    kind = array.type
    if pa.types.is_dictionary(kind):
        return plain(array.dictionary_decode())
    if pa.types.is_timestamp(kind) and kind.tz is not None:  # an instant is stored in UTC, whatever zone it is shown in
        return array.view(pa.int64()).view(pa.timestamp(kind.unit))
    if pa.types.is_float64(kind) or pa.types.is_float32(kind):
        return _one_zero(array)
    if delivered_type(kind) == pa.large_string():
        return _text(array.cast(pa.large_string()))
    return array.cast(delivered_type(kind))


def _one_zero(array: pa.Array) -> pa.Array:
    values = np.array(pc.fill_null(array, 0).to_numpy(zero_copy_only=False)) + 0.0  # −0.0 + 0.0 is 0.0
    values[np.isnan(values)] = np.nan
    missing = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    return pa.array(values, array.type, mask=missing, from_pandas=False)


def _text(array: pa.Array) -> pa.Array:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        raise UnicodeError from None
    sizes = pc.binary_length(array)
    if len(array) and (pc.max(sizes).as_py() or 0) > MOST_BYTES + 1:
        # No column may be so long: it counts as NULL, and still does when it is cut, at a whole character, behind that.
        texts = [
            text if text is None or len(text) <= MOST_BYTES else text[: MOST_BYTES + 1] for text in array.to_pylist()
        ]
        return pa.array(texts, pa.large_string())
    return array


def conformed(array: pa.Array, kind: pa.DataType) -> pa.Array | None:
    """Return a plain column as a candidate type, or None if that does not hold each of its values exactly."""
    if array.type == kind:
        return array
    if array.null_count == len(
        array
    ):  # SQLite says of such a column that it holds integers, a lake what it was to hold
        return pa.nulls(len(array), kind)
    convert = next((convert for is_of, convert in _CONVERSIONS if is_of(kind)), None)
    try:
        return None if convert is None else convert(array, kind)
    except pa.ArrowException:  # a value does not fit
        return None


def _integer(array: pa.Array, kind: pa.DataType) -> pa.Array | None:
    if pa.types.is_integer(array.type) or pa.types.is_boolean(array.type):
        return array.cast(kind)
    if pa.types.is_floating(array.type):
        numbers = _without_nan(array)
        return None if _largest(numbers) > EXACT else numbers.cast(kind)
    if not pa.types.is_decimal(array.type) and not all_like(array, INTEGER):
        return None
    integers = array.cast(kind)
    return integers if _largest(integers) <= EXACT else None


def _decimal(array: pa.Array, kind: pa.DataType) -> pa.Array | None:
    decimals = _as_decimal(array, kind)
    most = Decimal(EXACT).scaleb(-kind.scale)
    return decimals if decimals is not None and _largest(decimals) <= most else None


def _as_decimal(array: pa.Array, kind: pa.DataType) -> pa.Array | None:
    if pa.types.is_integer(array.type):
        return array.cast(pa.decimal128(38, 0)).cast(kind)
    if pa.types.is_decimal(array.type):
        return array.cast(kind)
    if pa.types.is_float64(array.type):
        numbers = _without_nan(array)
        if (
            float(_largest(numbers)) * 10**kind.scale > EXACT / 4
        ):  # neighbouring doubles would not be different decimals
            return None
        decimals = numbers.cast(kind)
        return decimals if _as_float(decimals).equals(numbers) else None
    return array.cast(kind) if all_like(array, _NUMBER) else None


def _float(array: pa.Array, kind: pa.DataType) -> pa.Array | None:
    if pa.types.is_integer(array.type) or pa.types.is_float32(array.type):
        return _one_zero(array.cast(kind))
    if pa.types.is_decimal(array.type):
        return _as_float(array)
    return _one_zero(array.cast(kind)) if all_like(array, _FLOAT) else None


def _boolean(array: pa.Array, kind: pa.DataType) -> pa.Array | None:
    if pa.types.is_integer(array.type):
        return (
            array.cast(kind)
            if pc.all(pc.is_in(array.drop_null(), pa.array([0, 1], array.type))).as_py() in (True, None)
            else None
        )
    return array.cast(kind) if all_like(array, "^(true|false)$") else None


def _string(array: pa.Array, kind: pa.DataType) -> pa.Array | None:
    as_it_is_written = (
        pa.types.is_integer(array.type) or pa.types.is_boolean(array.type) or pa.types.is_date(array.type)
    )
    return array.cast(kind) if as_it_is_written else None


def _date(array: pa.Array, kind: pa.DataType) -> pa.Array | None:
    if pa.types.is_date(array.type) or pa.types.is_timestamp(array.type):
        dates = array.cast(kind)
        return dates if dates.cast(array.type).equals(array) else None
    return array.cast(kind) if all_like(array, _DATE) else None


def _timestamp(array: pa.Array, kind: pa.DataType) -> pa.Array | None:
    if pa.types.is_timestamp(array.type) or pa.types.is_date(array.type):
        return array.cast(kind)
    if not all_like(array, _TIMESTAMP):
        return None
    return pc.replace_substring_regex(array, r"(Z|[+]00(:?00)?)$", "").cast(kind)


_CONVERSIONS: Final[
    Sequence[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array, pa.DataType], pa.Array | None]]]
] = (
    (pa.types.is_integer, _integer),
    (pa.types.is_decimal, _decimal),
    (pa.types.is_floating, _float),
    (pa.types.is_boolean, _boolean),
    (pa.types.is_large_string, _string),
    (pa.types.is_date, _date),
    (pa.types.is_timestamp, _timestamp),
)


def all_like(array: pa.Array, pattern: str) -> bool:
    """Tell whether all texts of a column of texts are of a form; NULL is of every form."""
    if array.type != pa.large_string():
        return False
    return pc.all(pc.match_substring_regex(array.drop_null(), pattern)).as_py() is not False


def _without_nan(array: pa.Array) -> pa.Array:
    """Return numbers with NULL for NaN, which counts as that."""
    return pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)


def _largest(array: pa.Array) -> int | float | Decimal:
    """Return the greatest magnitude of numbers, exactly; 0 of none."""
    ends = pc.min_max(array)
    least, greatest = ends["min"].as_py(), ends["max"].as_py()
    return 0 if least is None else max(greatest, -least)


def _as_float(decimals: pa.Array) -> pa.Array:
    """Return the doubles nearest to decimals: by their digits, as Arrow's conversion does not promise the nearest."""
    return _one_zero(decimals.cast(pa.string()).cast(pa.float64()))

"""Round published whole numbers: after the noise, and the ends of their intervals outwards.

Guarantee:
    Post-processing: it sees released numbers and public intervals. An interval around a rounded number contains the
    interval around the released one, so it covers the true value at least as often.
"""

from collections.abc import Callable, Iterable
from math import ceil, floor, isfinite
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def nearest(number: float, to: int) -> int:
    """Return the multiple that is the nearest, and of two the greater.

    >>> [nearest(number, 10) for number in (-15, -4, 5, 14)]
    [-10, 0, 10, 10]
    """
    return (2 * floor(number) + to) // (2 * to) * to


def down(number: float, to: int) -> int:
    """Return the greatest multiple that is at most a number."""
    return floor(number) // to * to


def up(number: float, to: int) -> int:
    """Return the least multiple that is at least a number."""
    return -(-ceil(number) // to) * to


def rounded(rows: "pa.Table", names: Iterable[str], to: int) -> "pa.Table":
    """Return rows with their noisy whole numbers as multiples of `to`, and the ends of intervals outwards.

    Args:
        names: The columns that have intervals. Those of other types stay.
    """
    import pyarrow as pa  # here: a plan needs no Arrow

    for name in names:
        if pa.types.is_integer(rows.schema.field(name).type):
            for column, rule in ((name, nearest), (f"{name}_low", down), (f"{name}_high", up)):
                rows = _with(rows, column, rule, to)
    return rows


def _with(rows: "pa.Table", column: str, rule: Callable[[float, int], int], to: int) -> "pa.Table":
    import pyarrow as pa  # here: a plan needs no Arrow

    place, kind = rows.schema.get_field_index(column), rows.schema.field(column)
    values = [value if value is None or not isfinite(value) else rule(value, to) for value in rows[column].to_pylist()]
    return rows.set_column(place, kind, pa.array(values, kind.type))

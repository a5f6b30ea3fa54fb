"""Which of the delivered rows a table has: those that fulfil the catalog's conditions, whatever a source makes of them.

A source leaves out what it can tell to be none of them, so that it need not be sent; it must leave out no other row.
What a condition means is settled here, for all sources alike: the value is read in the type that is declared for the
column, and compared by number, by bytes, or in UTC. So the same rows are the same table by every door, though databases
compare texts by collations, and SQLite has no types.

Proof that other rows do not decide about a row. A column is read as a whole if each of its values fits the declared
type, and else in halves, down to single values; a value that fits has one meaning, so that the halves give what the
whole would. It remains that a source may deliver one value in two forms, by what else is in the column: SQLite does, as
an integer or as its digits. Both are read alike, whatever their size, as are 1 and '1' where truth is meant. Of a
double that is not so: its digits are not always those of a text that means it. So it fulfils nothing, and SQLite sends
none. ∎
"""

from collections.abc import Sequence
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from lapwing.catalog.condition import Condition
from lapwing.catalog.table import Column
from lapwing.sources.conforming import INTEGER, all_like, candidates, conformed, plain


def fulfilled(column: pa.Array, condition: Condition) -> pa.Array:
    """Return for each value of a column, whatever its type, whether it fulfils a condition; NULL does not."""
    (kind,) = candidates(Column(name="compared", type=condition.type))
    return _fulfilled(plain(column), condition, kind)


def _fulfilled(column: pa.Array, condition: Condition, kind: pa.DataType) -> pa.Array:
    values = _read(column, kind)
    if values is None and len(column) == 1:
        return pa.array([False])
    if values is None:
        middle = len(column) // 2
        halves = (column.slice(0, middle), column.slice(middle))
        return pa.concat_arrays([_fulfilled(half, condition, kind) for half in halves])
    if condition.values is not None:
        return pc.fill_null(pc.is_in(values, pa.array(list(condition.values), kind)), False)
    passes = values.is_valid()
    for end, compare in ((condition.lower, pc.greater_equal), (condition.upper, pc.less_equal)):
        if end is not None:
            passes = pc.and_(passes, pc.fill_null(compare(values, scalar(end, kind)), False))
    return cast(pa.Array, passes)


def _read(column: pa.Array, kind: pa.DataType) -> pa.Array | None:
    """Return a plain column as the declared type, or None if a value of it does not fit."""
    if pa.types.is_floating(column.type):
        return pa.nulls(len(column), kind)
    if not pa.types.is_large_string(column.type):
        return conformed(column, kind)
    try:
        if pa.types.is_integer(kind):
            return column.cast(kind) if all_like(column, INTEGER) else None
        if pa.types.is_boolean(kind):
            return column.cast(kind) if all_like(column, "^(true|false|1|0)$") else None
    except pa.ArrowException:  # an integer of more than 64 bits
        return None
    return conformed(column, kind)


def scalar(value: Any, kind: pa.DataType) -> pa.Scalar:
    """Return a value of a condition as Arrow has it; a time without a zone is in UTC."""
    naive = pa.types.is_timestamp(kind) and kind.tz is None
    return pa.scalar(value.replace(tzinfo=None) if naive else value, kind)


def expression(schema: pa.Schema, where: Sequence[Condition]) -> Any:
    """Return conditions for Arrow's own readers, as far as columns are stored in the type that is declared; or None."""
    found = None
    for condition in where:
        kind, column = schema.field(condition.column).type, pc.field(condition.column)
        if not _is_of(kind, condition.type):
            continue
        try:
            parts = [] if condition.values is None else [column.isin(pa.array(list(condition.values), kind))]
            parts += [] if condition.lower is None else [column >= scalar(condition.lower, kind)]
            parts += [] if condition.upper is None else [column <= scalar(condition.upper, kind)]
        except (pa.ArrowException, OverflowError):  # a value that the column cannot hold
            continue
        for part in parts:
            found = part if found is None else found & part
    return found


def _is_of(kind: pa.DataType, declared: str) -> bool:
    kinds = {
        "boolean": pa.types.is_boolean(kind),
        "integer": pa.types.is_integer(kind),
        "string": pa.types.is_string(kind) or pa.types.is_large_string(kind),
        "date": kind == pa.date32(),
        "timestamp": pa.types.is_timestamp(kind),
    }
    return bool(kinds[declared])

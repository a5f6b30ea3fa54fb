"""Private keys: which units hold which of their values, asked for and put together."""

from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa

from lapwing.catalog.model import Table
from lapwing.engines.base import Cells
from lapwing.engines.duckdb.cleaned import Pass
from lapwing.engines.duckdb.database import ColumnReader
from lapwing.engines.duckdb.expressions import group_by, have_keys, keys_as_columns
from lapwing.engines.duckdb.literals import unit_name
from lapwing.engines.duckdb.relations import selected
from lapwing.engines.holders import UnitCountsByKey, counted
from lapwing.query.plan.plan import Question

BYTES_A_PAIR: Final = 40
"""What counting the holders of keys takes of memory at its height, beside the engine."""


def holders(question: Question) -> str:
    """Return the query for who holds which values of the private keys: a pair of a unit and values for every row.

    Where rows are the units, it is the query for how many rows have each value: so many units, of one value each. That
    is right because a unit has one row of the relation; `calibrate` refuses questions in which it may have more, as
    nothing would tell a unit's rows from others.
    """
    keys, rows = keys_as_columns(question.private_keys), selected(question.selection, have_keys(question.keys))
    if question.table.unit_is_row:
        return f"SELECT {', '.join(keys)}, 1 AS degree, COUNT(*) AS units {rows}{group_by(len(keys))}"
    return f"SELECT {unit_name(*question.tables)} AS holder, {', '.join(keys)} {rows}"


def ask_holders(
    question: Question, rows: Callable[[Pass], str], columns: ColumnReader, parts: Sequence[Pass]
) -> list[pa.Table]:
    """Return who holds which values, part by part of the units, as `UnitCountsByKey.of_parts` takes it."""
    take = pa.RecordBatchReader.read_all if question.table.unit_is_row else counted
    return [columns(f"WITH {rows(part)} {holders(question)}", take) for part in parts]


def parts_in_memory(question: Question, rows: Callable[[Table], int], memory: int) -> list[Pass]:
    """Return parts of the units of which each is counted in the memory that there is.

    Args:
        rows: Returns how many rows a table's file has.
    """
    most = question.selection.rows_per_unit
    pairs = min(rows(table) * max(1, -(-most // table.max_rows_per_unit)) for table in question.tables)
    count = max(1, -(-2 * pairs * BYTES_A_PAIR // memory))
    return [Pass(index=index, of=count) for index in range(count)]


def with_units(cells: Cells, held: UnitCountsByKey, place: int, others: int) -> Cells:
    """Put the numbers of units where they belong among the measures of a cell.

    Args:
        place: Of the units among the measures.
        others: How many measures a cell has besides.
    """
    pairs = zip(held.named(), held.units_at.tolist(), strict=True)
    if not others:
        return {key: (units,) for key, units in pairs}
    zero = (0,) * others
    both = {key: (units, cells.get(key, zero)) for key, units in pairs}
    return {key: (*rest[:place], units, *rest[place:]) for key, (units, rest) in both.items()}

"""Notes on numbers that noise leaves empty in a result.

Guarantee:
    The note is a function of the released numbers and the plan: post-processing, which loses nothing.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lapwing.answer.notes import EMPTY_NUMBER, FEW_ROWS_NULL, code_of
from lapwing.answer.python_values import Note

if TYPE_CHECKING:
    from lapwing.answer.column_facts import ColumnFacts
    from lapwing.privacy.figures import Cell


def notes_on_empty_cells(columns: "Sequence[ColumnFacts]", rows: "Sequence[Mapping[str, Cell]]") -> tuple[Note, ...]:
    """Say in how many rows of an answer an average, or a number computed from averages, is empty because of noise."""
    averaged = [facts.name for facts in columns if FEW_ROWS_NULL in map(code_of, facts.notes)]
    if not averaged:
        return ()
    empty = {name: sum(row[name] is None for row in rows) for name in averaged}
    reason = "because noise leaves too little to compute it from. A larger epsilon helps"
    return tuple(
        Note(f"{name} is empty in {count:,} of {len(rows):,} rows, {reason}", EMPTY_NUMBER)
        for name, count in empty.items()
        if count
    )

"""Notes on numbers that noise leaves empty in a result.

Guarantee:
    The note is a function of the released numbers and the plan: post-processing, which loses nothing.
"""

from typing import TYPE_CHECKING

from lapwing.answer.notes import EMPTY_NUMBER, FEW_ROWS_NULL, code_of
from lapwing.answer.python_values import Note

if TYPE_CHECKING:
    from lapwing.answer.answer import Answer


def notes_on_empty_cells(answer: "Answer") -> tuple[Note, ...]:
    """Say in how many rows an average, or what is computed of averages, is empty because of noise."""
    averaged = [facts.name for facts in answer.describe() if FEW_ROWS_NULL in map(code_of, facts.notes)]
    if not averaged:
        return ()
    rows = answer.rows()
    empty = {name: sum(row[name] is None for row in rows) for name in averaged}
    reason = "because noise leaves too little to compute it from. A larger epsilon helps"
    return tuple(
        Note(f"{name} is empty in {count:,} of {len(rows):,} rows, {reason}", EMPTY_NUMBER)
        for name, count in empty.items()
        if count
    )

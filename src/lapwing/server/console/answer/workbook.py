"""Answers as workbooks for Excel, with a sheet of notes."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from lapwing.answer.workbooks import (
    MOST_COLUMNS,
    MOST_ROWS,
    Sheet,
    can_write_workbooks,
    fits_a_sheet,
    workbook,
)
from lapwing.server.console.inside import ApiRefusal
from lapwing.server.problems import problem

if TYPE_CHECKING:
    import pyarrow as pa

KIND: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
NOISE: Final = "These results contain noise. Columns whose names end in _low and _high are the ends of the intervals."


def workbook_of(table: "pa.Table", document: Mapping[str, Any]) -> bytes:
    """Return a table as a workbook of two sheets: the answer, and its notes.

    Args:
        document: Of the answer, whose notes it has.

    Raises:
        ApiRefusal: If this server or Excel cannot do it.
    """
    if not can_write_workbooks():
        raise ApiRefusal(problem("not_found", 404, "This server cannot make Excel files. Download the result as CSV."))
    if not fits_a_sheet(table):
        text = f"Excel has at most {MOST_ROWS:,} rows and {MOST_COLUMNS:,} columns. Download the result as CSV."
        raise ApiRefusal(problem("not_found", 404, text))
    lines = (NOISE, f"Result {document['id']}, released {document['created']}", *document.get("notes", ()))
    return workbook([Sheet(name="answer", content=table), Sheet(name="notes", content=[[line] for line in lines])])

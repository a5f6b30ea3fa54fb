"""A release as one workbook for Excel: a sheet of notes, and a sheet for each table. Post-processing."""

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from lapwing.answer.workbooks import Sheet, fits_a_sheet, workbook

if TYPE_CHECKING:
    import pyarrow as pa

NAME: Final = "tables.xlsx"
LONGEST_NAME: Final = 31
"""Characters of the name of a sheet."""
TOO_LARGE: Final = 'Excel has no room for this table. Run the release again with formats = ["csv"]. That is free.'
READING: Final = (
    "The numbers contain random noise, which protects the people in the data.",
    "Columns that end in _low and _high are the ends of the 95 % interval.",
    "In 95 of 100 cells, the number without noise is between both ends.",
    "Columns that end in _unreliable mark numbers whose ± is too large a part of them.",
    "Adding up cells adds up their noise. Use the table that has the total.",
)


def workbook_of_release(facts: Mapping[str, Any], tables: Sequence["pa.Table"]) -> bytes:
    """Return a workbook of all tables, the same bytes each time.

    Args:
        facts: The manifest, without its files.
    """
    names = [_sheet_name(place, table["name"]) for place, table in enumerate(facts["tables"])]
    sheets = [Sheet(name="notes", content=_notes(facts, names))]
    for name, rows in zip(names, tables, strict=True):
        sheets.append(Sheet(name=name, content=rows if fits_a_sheet(rows) else [[TOO_LARGE]]))
    return workbook(sheets)


def _notes(facts: Mapping[str, Any], names: Sequence[str]) -> list[list[Any]]:
    delta = float(Fraction(facts["delta"]) + Fraction(facts["delta_keys"]))
    lines: list[list[Any]] = [
        [facts["title"]],
        [],
        *([line] for line in READING),
        [],
        ["Data set", facts["dataset"]],
        ["Protects", facts["unit"]],
        ["Epsilon (ε) of all tables together", float(Fraction(facts["epsilon"]))],
        ["Delta (δ)", delta],
        ["A number is unreliable if its ± is more than this part of it", float(Fraction(facts["unreliable"]))],
        ["Made with", f"Lapwing {facts['lapwing']}"],
        [],
        ["Sheet", "Table", "Number", "±", "Query"],
    ]
    for name, table in zip(names, facts["tables"], strict=True):
        for number, half_width in table["half_widths"].items():
            lines.append([name, table["name"], number, half_width, table["query"]])
    notes = dict.fromkeys(note for table in facts["tables"] for note in table["notes"])
    return [*lines, [], *([note] for note in notes)]


def _sheet_name(place: int, name: str) -> str:
    """Return a name that Excel takes, and that no other table has.

    >>> _sheet_name(0, "years by sex, [plan]")
    '01 years by sex, plan'
    """
    return f"{place + 1:02} {re.sub(r'[^0-9A-Za-z ,._-]+', '', name)}"[:LONGEST_NAME].strip()

"""A release as one workbook for Excel: a sheet of notes, and a sheet for each table. Post-processing."""

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import floor, inf, log10
from typing import TYPE_CHECKING, Any, Final

from lapwing.answer.workbooks import Sheet, fits_a_sheet, workbook
from lapwing.tabulation.incomplete_keys import lacking_in_words

if TYPE_CHECKING:
    import pyarrow as pa

NAME: Final = "tables.xlsx"
LONGEST_NAME: Final = 31
"""Characters of the name of a sheet."""
TOO_LARGE: Final = 'Excel has no room for this table. Run the release again with formats = ["csv"]. That is free.'
HEAD: Final = ("Sheet", "Table", "Number", "±", "Query")
WIDTHS: Final = (32, 32, 16, 12, 80)
NUMBERS: Final = ("low", "high", "adjusted", "coarser", "coarser_low", "coarser_high")
"""The ends of the names of columns with numbers, beside the released one."""
MOST_DIGITS: Final = 6
VARIES: Final = "by cell"
LEFT_OUT: Final = "A cell without a number was left out because it is unreliable. A 0 is a released number."
ADJUSTED: Final = (
    "Columns that end in _adjusted have numbers that add up through all tables of the same rows. The 95 % interval is "
    "of the released number."
)
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
    notes = _notes(facts, names)
    heads = frozenset({0, next(place for place, line in enumerate(notes) if tuple(line) == HEAD)})
    sheets = [Sheet(name="notes", content=notes, widths=WIDTHS, heads=heads)]
    for name, rows, table in zip(names, tables, facts["tables"], strict=True):
        patterns = _number_formats(rows, tuple(table["half_widths"]))
        content = rows if fits_a_sheet(rows) else [[TOO_LARGE]]
        sheets.append(Sheet(name=name, content=content, number_formats=patterns))
    return workbook(sheets)


def _number_formats(rows: "pa.Table", noisy: Sequence[str]) -> dict[str, str]:
    """Return how Excel shows released numbers: whole ones in groups of three digits, others to two digits of their ±.

    Keys stay as they are: a year has no comma.
    """
    import pyarrow as pa  # here: a plan needs no Arrow

    patterns = {}
    for name in noisy:
        of_number = [one for one in rows.column_names if one == name or one.removeprefix(f"{name}_") in NUMBERS]
        digits = _digits(rows, name) if name in rows.column_names and pa.types.is_floating(rows[name].type) else 0
        patterns.update(dict.fromkeys(of_number, f"#,##0{'.' if digits else ''}{'0' * digits}"))
    return patterns


def _digits(rows: "pa.Table", name: str) -> int:
    """Return the decimal places at which the narrowest interval of a released number has two digits."""
    ends = (rows[f"{name}_{end}"].to_pylist() if f"{name}_{end}" in rows.column_names else () for end in NUMBERS[:2])
    widths = [high - low for low, high in zip(*ends, strict=True) if low is not None and high is not None]
    narrowest = min((width for width in widths if 0 < width < inf), default=0.0)
    return min(MOST_DIGITS, max(0, 1 - floor(log10(narrowest / 2)))) if narrowest else MOST_DIGITS


def _notes(facts: Mapping[str, Any], names: Sequence[str]) -> list[list[Any]]:
    delta = float(Fraction(facts["delta"]) + Fraction(facts["delta_keys"]))
    lines: list[list[Any]] = [
        [facts["title"]],
        [],
        *([line] for line in READING),
        *([[LEFT_OUT]] if facts["unreliable_cells"] != "mark" else []),
        *([line] for line in _on_adjusted(facts)),
        [],
        ["Data set", facts["dataset"]],
        ["Protects", facts["unit"]],
        ["Epsilon (ε) of all tables together", float(Fraction(facts["epsilon"]))],
        ["Delta (δ)", delta],
        ["A number is unreliable if its ± is more than this part of it", float(Fraction(facts["unreliable"]))],
        ["Made with", f"Lapwing {facts['lapwing']}"],
        [],
        list(HEAD),
    ]
    for name, table in zip(names, facts["tables"], strict=True):
        for number, half_width in table["half_widths"].items():
            lines.append([name, table["name"], number, VARIES if half_width is None else half_width, table["query"]])
    notes = dict.fromkeys(note for table in facts["tables"] for note in table["notes"])
    return [*lines, [], *([note] for note in notes)]


def _on_adjusted(facts: Mapping[str, Any]) -> list[str]:
    """Return what to know about adjusted numbers, if there are any."""
    has_some = any(table.get("adjusted") for table in facts["tables"])
    return [ADJUSTED, *lacking_in_words(facts)] if has_some else []


def _sheet_name(place: int, name: str) -> str:
    """Return a name that Excel takes, and that no other table has.

    >>> _sheet_name(0, "years by sex, [plan]")
    '01 years by sex, plan'
    """
    return f"{place + 1:02} {re.sub(r'[^0-9A-Za-z ,._-]+', '', name)}"[:LONGEST_NAME].strip()

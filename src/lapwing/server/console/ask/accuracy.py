"""Accuracy relative to a typical result: three levels, and how large an error is beside what a person assumes.

A typical result is an assumption from public bounds and an assumed number of rows; a person may correct it. No data are
read for it, so it may be far off. It chooses a price, and only the price decides the noise.
"""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Final

from lapwing.server.console.acting import decimal_of
from lapwing.server.console.ask.choices import Measure, names_of
from lapwing.server.console.ask.question import QuestionForm
from lapwing.server.console.ask.reading import choices_of
from lapwing.server.console.data.columns import TableText

LEVELS: Final[Mapping[str, Fraction]] = {"rough": Fraction(1, 5), "usable": Fraction(1, 10), "sharp": Fraction(1, 20)}
"""Names of levels, and their 95 % error as a share of a typical result."""
USUAL_ROWS: Final = 500
"""Rows of a group, if nobody says how many."""


def assumed_rows(question: QuestionForm) -> int:
    """Return how many rows a group is assumed to have."""
    return int(question.assuming) if re.fullmatch("[1-9][0-9]{0,14}", question.assuming) else USUAL_ROWS


def typical_results(question: QuestionForm, tables: Sequence[TableText], columns: Sequence[str]) -> dict[str, Fraction]:
    """Return a typical result of each noisy column for which one can be assumed.

    Raises:
        ApiRefusal: For a number that can mean two.
    """
    choices = choices_of(question.sql, tables)
    found = dict[str, Fraction]()
    if choices is not None:
        table = next(table for table in tables if table.name == choices.table)
        names = names_of(choices, table)[len(choices.keys) :]
        for name, measure in zip(names, choices.measures, strict=True):
            found[name] = _typical(measure, table, assumed_rows(question))
    elif columns:
        found[columns[0]] = Fraction(assumed_rows(question))
    typed = decimal_of(question.typical)
    if columns and re.fullmatch(r"[0-9]{1,15}(\.[0-9]{1,15})?", typed) and Fraction(typed) > 0:
        found[columns[0]] = Fraction(typed)
    return {name: value for name, value in found.items() if value > 0}


def _typical(measure: Measure, table: TableText, rows: int) -> Fraction:
    if measure.what == "share":
        return Fraction(1, 2)
    if measure.what not in ("sum", "average", "median"):
        return Fraction(rows)
    facts = next(column.facts for column in table.columns if column.name == measure.column)
    lower, upper = Fraction(str(facts["lower"])), Fraction(str(facts["upper"]))
    middle = abs(lower + upper) / 2 or max(abs(lower), abs(upper)) / 2
    return middle * rows if measure.what == "sum" else middle


def in_decimals(value: Fraction) -> str:
    """Write a number as a field takes it, in at most 12 digits.

    >>> in_decimals(Fraction(50)), in_decimals(Fraction(1, 40))
    ('50', '0.025')
    """
    return f"{Decimal(f'{float(value):.12g}').normalize():f}"

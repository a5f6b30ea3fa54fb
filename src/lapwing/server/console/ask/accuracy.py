"""Accuracy relative to a typical result: three levels, and how large an error is beside what a person assumes.

A typical result is an assumption from public bounds and an assumed number of rows; a person may correct it. No data are
read for it, so it may be far off. It chooses a price, and only the price decides the noise.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, final

from lapwing.server.console.acting import decimal_of
from lapwing.server.console.ask.choices import Measure, names_of
from lapwing.server.console.ask.question import QuestionForm
from lapwing.server.console.ask.reading import choices_of
from lapwing.server.console.data.columns import NUMBERS, TableText
from lapwing.server.console.inside import ApiRefusal
from lapwing.server.problems import problem

LEVELS: Final[Mapping[str, Fraction]] = {"rough": Fraction(1, 5), "usable": Fraction(1, 10), "sharp": Fraction(1, 20)}
"""Names of levels, and their 95 % error as a share of a typical result."""
USUAL_ROWS: Final = 500
"""Rows of a group, if nobody says how many."""


def assumed_rows(question: QuestionForm) -> int:
    """Return how many rows a group is assumed to have.

    Raises:
        ApiRefusal: For a number of rows that is none.
    """
    return question.rows or USUAL_ROWS


def typical_results(question: QuestionForm, tables: Sequence[TableText], columns: Sequence[str]) -> dict[str, Fraction]:
    """Return a typical result of each noisy column for which one can be assumed.

    Raises:
        ApiRefusal: For a number that can mean two, or a typical result that is none.
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
    typed = decimal_of(question.typical, "typical")
    if typed and not (re.fullmatch(r"[0-9]{1,15}(\.[0-9]{1,15})?", typed) and Fraction(typed) > 0):
        text = "A typical result is a number above 0, such as 500 or 2.5, with at most 15 digits before the point."
        raise ApiRefusal(problem("invalid_parameter", 422, text, "typical"))
    if columns and typed:
        found[columns[0]] = Fraction(typed)
    return {name: value for name, value in found.items() if value > 0}


def _typical(measure: Measure, table: TableText, rows: int) -> Fraction:
    if measure.what == "share":
        return Fraction(1, 2)
    if measure.what in ("rows", "people"):
        return Fraction(rows)
    facts = next(column.facts for column in table.columns if column.name == measure.column)
    if measure.what == "distinct":
        return Fraction(min(rows, _different_values(facts) or rows))
    lower, upper = _bounds(facts)
    middle = abs(lower + upper) / 2 or max(abs(lower), abs(upper)) / 2
    return middle * rows if measure.what == "sum" else middle


def _bounds(facts: Mapping[str, Any]) -> tuple[Fraction, Fraction]:
    return Fraction(str(facts["lower"])), Fraction(str(facts["upper"]))


def _different_values(facts: Mapping[str, Any]) -> int | None:
    """Return how many different values a column may have, by what is public of it."""
    if facts["type"] == "boolean":
        return 2
    if "values" in facts:
        return len(facts["values"])
    if "lower" not in facts:
        return None
    if facts["type"] in NUMBERS:
        lower, upper = _bounds(facts)
        return int((upper - lower) / Fraction(str(facts.get("step", 1)))) + 1
    first, last = (date.fromisoformat(str(facts[end])[:10]) for end in ("lower", "upper"))
    return (last - first).days + 1 if facts["type"] == "date" else None


@final
@dataclass(frozen=True, slots=True)
class MedianWidth:
    """About how far a median may be off; `whole` if it can be any value at all."""

    half_width: Fraction
    whole: bool


def widths_of_medians(
    question: QuestionForm, tables: Sequence[TableText], preview: Mapping[str, Any], typical: Mapping[str, Fraction]
) -> dict[str, MedianWidth]:
    """Return about how far each median may be off, if values are spread evenly around the typical result.

    A preview promises an error of the rank. Evenly spread values are that many rows further along.
    """
    choices = choices_of(question.sql, tables)
    if choices is None:
        return {}
    table = next(table for table in tables if table.name == choices.table)
    names, ranks = names_of(choices, table)[len(choices.keys) :], _rank_errors(preview)
    rows, found = assumed_rows(question), dict[str, MedianWidth]()
    for name, measure in zip(names, choices.measures, strict=True):
        if measure.what == "median" and name in ranks and name in typical:
            lower, upper = _bounds(next(column.facts for column in table.columns if column.name == measure.column))
            half = min(typical[name] - lower, upper - typical[name])
            if half > 0:
                width = 2 * half * ranks[name] / rows
                found[name] = MedianWidth(width, width >= half)
    return found


def _rank_errors(preview: Mapping[str, Any]) -> dict[str, Fraction]:
    """Return the error of the rank of each column that rests on one measure."""
    widths = {measure["measure"]: Fraction(str(measure["half_width"])) for measure in preview["measures"]}
    pairs = ((column["name"], column["rests_on"]) for column in preview["columns"])
    return {name: widths[rests[0]] for name, rests in pairs if len(rests) == 1 and rests[0] in widths}


def in_decimals(value: Fraction) -> str:
    """Write a number as a field takes it, in at most 12 digits.

    >>> in_decimals(Fraction(50)), in_decimals(Fraction(1, 40))
    ('50', '0.025')
    """
    return f"{Decimal(f'{float(value):.12g}').normalize():f}"

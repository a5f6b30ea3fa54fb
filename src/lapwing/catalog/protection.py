"""The privacy unit of a data set in words: the one wording of costs, reports, tables, pages and the console.

A promise names the privacy unit ("each person_id"), how many of its rows queries use, and what neighbours are. It says
nothing that the catalog does not, so that it may be shown to everybody.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from lapwing.languages import JoinedTexts, Phrase, say

if TYPE_CHECKING:
    from lapwing.catalog.table import Table

NEIGHBOURS: Final = {
    "add_remove": "present or absent with all its rows",
    "replace_one": "replaced by any other with all its rows",
}
"""The change of one unit that results hide, by the neighbouring relation."""
NOT_THE_SAME_PEOPLE: Final = "the catalog does not say that they protect the same people"
"""Why rows of two tables are neither joined nor united."""


def unit_in_words(name: str | None) -> Phrase:
    """Say whom a table protects.

    Args:
        name: Of the privacy unit; None where each row is one of its own.

    >>> unit_in_words("person_id"), unit_in_words(None)
    ('each person_id', 'each row')
    """
    return say("each row") if name is None else say("each {name}", name=name)


def units_of(tables: "Sequence[Table]") -> JoinedTexts:
    """Say whom tables protect: of each kind of units one after the other."""
    named = dict.fromkeys(unit_in_words(name_of(table)) for table in {t.units: t for t in tables}.values())
    return JoinedTexts(named, say(" and "))


def bound_of(tables: "Sequence[Table]") -> str:
    """Say how many rows of each unit queries use of tables: those of a kind of units together, parents first."""
    kinds = dict.fromkeys(table.units for table in tables)
    return "; ".join(_bound_of([table for table in tables if table.units == kind], len(kinds)) for kind in kinds)


def _bound_of(tables: "Sequence[Table]", kinds: int) -> str:
    first, *others = tables
    bound = first.rows_of_unit
    if first.unit_is_row or (not others and kinds == 1):
        return bound
    return ", ".join(
        (f"{bound} in {first.name}", *(f"{other.max_rows_per_unit:,} in {other.name}" for other in others))
    )


def noun_of(tables: "Sequence[Table]") -> JoinedTexts:
    """Name whom tables protect with a noun: "person_id", or "row"."""
    return JoinedTexts(dict.fromkeys(name_of(table) or say("row") for table in tables), say(" or "))


def rows_of_several(tables: "Sequence[Table]") -> str:
    """Say that rows are of more than one of those whom tables protect: "rows of more than one person_id"."""
    noun = noun_of(tables)
    return "several rows, each protected by itself" if noun == "row" else f"rows of more than one {noun}"


def name_of(table: "Table") -> str | None:
    """Return the name of a table's privacy unit; None where each row is one of its own."""
    return None if table.root.unit_is_row else table.unit_name

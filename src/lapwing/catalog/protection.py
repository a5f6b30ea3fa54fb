"""The privacy unit of a data set in words: the one wording of costs, reports, tables, pages and the console.

A promise names the privacy unit ("each patient", or "each person_id"), how many of its rows queries use, and what
neighbours are. It says nothing that the catalog does not, so that it may be shown to everybody.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from lapwing.catalog.dictionary import EMPTY, Dictionary
from lapwing.languages import JoinedTexts, Phrase, say

if TYPE_CHECKING:
    from lapwing.catalog.table import Table

NEIGHBOURS: Final = {
    "add_remove": "present or absent with all its rows",
    "replace_one": "replaced by any other with all its rows",
}
"""The change of one unit that results hide, by the neighbouring relation."""
UNNAMED: Final = "person or other unit"
"""The noun for one unit on public pages, if the catalog has none. Their readers do not know the columns."""
NOT_THE_SAME_PEOPLE: Final = "the catalog does not say that they protect the same people"
"""Why rows of two tables are neither joined nor united."""


def unit_in_words(name: str | None, noun: str | None = None) -> Phrase:
    """Say whom a table protects.

    Args:
        name: Of the privacy unit; None where each row is one of its own.
        noun: The word for one of them, if the catalog has one.

    >>> unit_in_words("person_id"), unit_in_words("Patient Nr", "patient"), unit_in_words(None)
    ('each person_id', 'each patient (column Patient Nr)', 'each row')
    """
    if name is None:
        return say("each row")
    return say("each {name}", name=name) if noun is None else say("each {noun} (column {name})", noun=noun, name=name)


def units_of(tables: "Sequence[Table]", texts: Dictionary = EMPTY, *, public: bool = False) -> JoinedTexts:
    """Say whom tables protect: of each kind of units one after the other.

    Args:
        texts: Of the catalog, which may have a noun for them.
        public: Whether readers may not know the columns. A unit without a noun is then a "person or other unit".
    """
    kinds = {table.units: table for table in tables}.values()
    named = dict.fromkeys(unit_in_words(name_of(table), _noun(table, texts, public=public)) for table in kinds)
    return JoinedTexts(named, say(" and "))


def bound_of(tables: "Sequence[Table]", texts: Dictionary = EMPTY, *, public: bool = False) -> str:
    """Say how many rows of each unit queries use of tables: those of a kind of units together, parents first."""
    kinds = dict.fromkeys(table.units for table in tables)
    together = ([table for table in tables if table.units == kind] for kind in kinds)
    return "; ".join(_bound_of(some, len(kinds), _noun(some[0], texts, public=public)) for some in together)


def _bound_of(tables: "Sequence[Table]", kinds: int, noun: str | None) -> str:
    first, *others = tables
    bound = first.rows_of_unit if noun is None else first.rows_of_unit.removesuffix(first.unit_name) + noun
    if first.unit_is_row or (not others and kinds == 1):
        return bound
    return ", ".join(
        (f"{bound} in {first.name}", *(f"{other.max_rows_per_unit:,} in {other.name}" for other in others))
    )


def noun_of(tables: "Sequence[Table]", texts: Dictionary = EMPTY, *, public: bool = False) -> JoinedTexts:
    """Name whom tables protect with a noun: "patient", "person_id", or "row"."""
    nouns = (_noun(table, texts, public=public) or name_of(table) or say("row") for table in tables)
    return JoinedTexts(dict.fromkeys(nouns), say(" or "))


def _noun(table: "Table", texts: Dictionary, *, public: bool) -> str | None:
    """Return what one of those is called whom a table protects; None if nobody says it, or each row is protected."""
    name, noun = name_of(table), texts.table(table.root.name).unit_title
    if name is None or (noun is None and not public):
        return None
    return f"{noun or UNNAMED}{name.removeprefix(str(table.root.privacy_unit))}"


def rows_of_several(tables: "Sequence[Table]") -> str:
    """Say that rows are of more than one of those whom tables protect: "rows of more than one person_id"."""
    noun = noun_of(tables)
    return "several rows, each protected by itself" if noun == "row" else f"rows of more than one {noun}"


def name_of(table: "Table") -> str | None:
    """Return the name of a table's privacy unit; None where each row is one of its own."""
    return None if table.root.unit_is_row else table.unit_name

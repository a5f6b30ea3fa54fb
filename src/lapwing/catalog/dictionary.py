"""The data dictionary: names and explanations of tables, columns and values for people.

Guarantee:
    No text of it can move a plan, a price, a digest or the key of a stored answer. Binding reads tables and columns,
    and these have no texts. The catalog has the dictionary next to them, and finds a text by their names. So code that
    has only a table cannot see a text. `tests/catalog/test_dictionary.py` compares plans and digests.

A table's `source` is its file, so where data come from is `provenance`, at every level.
"""

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Self, final

from lapwing.catalog import spelling
from lapwing.catalog.digests import value_text
from lapwing.catalog.place import refuse

if TYPE_CHECKING:
    from lapwing.catalog.table import Column, Value

LONGEST: Final[Mapping[str, int]] = {
    "title": 200, "description": 4000, "unit": 60, "owner": 200, "provenance": 2000, "licence": 300, "contact": 300,
    "unit_title": 60,
}  # fmt: skip
"""Characters of each text."""
LONGEST_LABEL: Final = 100
MOST_LABELS: Final = 10_000
OF_DATASET: Final = ("title", "description", "owner", "provenance", "licence", "contact")
OF_TABLE: Final = (*OF_DATASET, "unit_title")
OF_COLUMN: Final = ("title", "description", "unit", "provenance")
_JOINERS: Final = "\u200c\u200d"
"""Invisible characters that Persian, Indian scripts and emoji need."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """Texts for people about a data set, a table or a column; None where the curator wrote nothing.

    Args:
        title: Its name for people.
        description: May have several lines.
        unit: Of a column's numbers, such as "kg".
        owner: The person or the office that answers for the data.
        provenance: Where the data come from, and how they were collected.
        licence: Under which the results may be used: a name, or an address.
        contact: An address of mail, or of a page.
        unit_title: A word for one of those whom a table's privacy unit names, such as "patient".
        labels: Listed values of a column, with what is shown for each.

    Raises:
        CatalogError: Starting with `.<key>`, for an empty or too long text, or one with characters that nobody sees.
    """

    title: str | None = None
    description: str | None = None
    unit: str | None = None
    owner: str | None = None
    provenance: str | None = None
    licence: str | None = None
    contact: str | None = None
    unit_title: str | None = None
    labels: "tuple[tuple[Value, str], ...]" = ()

    def __post_init__(self) -> None:
        for key, longest in LONGEST.items():
            content = getattr(self, key)
            if content is not None:
                _check(f".{key}", content, longest, "\n" if key == "description" else "")
        if len(self.labels) > MOST_LABELS:
            refuse(".values", f"{len(self.labels):,} labels; at most {MOST_LABELS:,} are allowed, leave the others out")
        for value, label in self.labels:
            _check(f".values: the label of {spelling.value(value)}", label, LONGEST_LABEL)

    @property
    def facts(self) -> dict[str, str]:
        """The texts that there are, by key; labels aside."""
        return {key: content for key in LONGEST if (content := getattr(self, key)) is not None}

    @property
    def document(self) -> dict[str, object]:
        """All texts, for JSON: labels by the text of their value."""
        labels = {value_text(value): label for value, label in self.labels}
        return {**self.facts, "labels": labels} if labels else dict(self.facts)


NONE: Final = Texts()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Dictionary:
    """The texts of a data set.

    Args:
        dataset: Of all of it.
        entries: Texts of tables, by name, and of columns, by table and name. A place without texts has no entry.
    """

    dataset: Texts = NONE
    entries: tuple[tuple[tuple[str, ...], Texts], ...] = ()
    _found: dict[tuple[str, ...], Texts] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_found", dict(self.entries))

    @classmethod
    def of(cls, entries: Mapping[tuple[str, ...], Texts], dataset: Texts = NONE) -> Self:
        """Make a dictionary of texts by place; the order has no meaning."""
        said = sorted((place, texts) for place, texts in entries.items() if texts != NONE)
        return cls(dataset=dataset, entries=tuple(said))

    def table(self, name: str) -> Texts:
        """Return the texts of a table."""
        return self._found.get((name,), NONE)

    def column(self, table: str, name: str) -> Texts:
        """Return the texts of a column."""
        return self._found.get((table, name), NONE)


EMPTY: Final = Dictionary()


def check_labels(column: "Column", labels: "Iterable[tuple[Value, str]]") -> None:
    """Refuse labels that a reader could take for one another, or for another value.

    Raises:
        CatalogError: Starting with `.values`.
    """
    known = {_folded(value_text(value)): value for value in column.values or ()}
    taken: dict[str, Value] = {}
    for value, label in labels:
        if value not in (column.values or ()):
            refuse(".values", f"{spelling.value(value)} has a label, and is not listed; list it, or remove the label")
        folded, named = _folded(label), spelling.text(label)
        if folded in taken:
            both = f"{spelling.value(taken[folded])} and {spelling.value(value)}"
            refuse(".values", f"{both} have the same label {named}; write another for one of them")
        if known.get(folded, value) != value:
            refuse(".values", f"{named} labels {spelling.value(value)}, and is another value; write another label")
        if column.other is not None and folded == _folded(column.other):
            refuse(".values", f"{named} labels {spelling.value(value)}, and stands for all others; write another label")
        taken[folded] = value


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _check(place: str, text: str, longest: int, keep: str = "") -> None:
    if not text.strip() or not spelling.storable(text):
        refuse(place, "is empty, or not valid UTF-8; write a text, or remove it")
    if len(text) > longest:
        refuse(place, f"has {len(text):,} characters; at most {longest:,} are allowed, shorten it")
    for character in text:
        if character not in keep and _is_hidden(character):
            refuse(place, f"has the character U+{ord(character):04X}, which nobody sees; remove it")


def _is_hidden(character: str) -> bool:
    """Tell whether a character is a control, a line end, or changes the direction or the look of others unseen."""
    category = unicodedata.category(character)
    return category in ("Cc", "Cf", "Cs", "Zl", "Zp") and character not in _JOINERS

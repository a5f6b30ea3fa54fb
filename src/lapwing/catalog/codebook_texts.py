"""The texts of a codebook in the data dictionary of a catalog, and labels that fit the values that are listed."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, final

from lapwing.catalog import spelling
from lapwing.catalog.dictionary import Dictionary, Texts, check_labels
from lapwing.catalog.digests import value_text
from lapwing.catalog.model import Catalog
from lapwing.catalog.place import refuse, within
from lapwing.catalog.table import Column
from lapwing.errors import CatalogError


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnTexts:
    """The texts that a codebook has for a column.

    Args:
        texts: By the keys of a catalog.
        labels: By the code as it is written.
    """

    texts: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)


def with_texts(catalog: Catalog, said: Mapping[str, ColumnTexts], *, strict: bool = False) -> Catalog:
    """Return a catalog with the texts of a codebook for the columns of its first table; other texts stay.

    Args:
        strict: Refuse texts of columns, and labels of values, that the catalog does not have. A codebook may have more.

    Raises:
        CatalogError: With the column, for a text that the data dictionary refuses.
    """
    table, entries = catalog.tables[0], dict(catalog.dictionary.entries)
    for name in said if strict else ():
        if table.column(name) is None:
            refuse(f"columns.{spelling.key(name)}", "has texts, but the file has no such column; correct the name")
    for column in table.columns:
        if column.name not in said:
            continue
        entry, place = said[column.name], (table.name, column.name)
        labels = tuple(
            (value, label) for value in column.values or () if (label := _label(value_text(value), entry.labels))
        )
        with within(f"columns.{spelling.key(column.name)}"):
            if strict and len(labels) < len(entry.labels):
                refuse(".values", "there is a label for a value that is not listed; list it, or remove the label")
            check_labels(column, labels)
            changes: dict[str, Any] = {**entry.texts, **({"labels": labels} if labels else {})}
            entries[place] = replace(entries.get(place, Texts()), **changes)
    return replace(catalog, dictionary=Dictionary.of(entries, catalog.dictionary.dataset))


def with_unit_title(catalog: Catalog, word: str) -> Catalog:
    """Return a catalog that has a word for one of those whom its first table protects.

    Raises:
        CatalogError: For a text that the data dictionary refuses.
    """
    entries, place = dict(catalog.dictionary.entries), (catalog.tables[0].name,)
    with within("unit_title"):
        entries[place] = replace(entries.get(place, Texts()), unit_title=word)
    return replace(catalog, dictionary=Dictionary.of(entries, catalog.dictionary.dataset))


def with_fitting_labels(catalog: Catalog) -> Catalog:
    """Return a catalog without the labels of values that it does not list any more."""
    entries = dict(catalog.dictionary.entries)
    for table in catalog.tables:
        for column in table.columns:
            place = (table.name, column.name)
            if place in entries:
                entries[place] = _fitting(column, entries[place])
    return replace(catalog, dictionary=Dictionary.of(entries, catalog.dictionary.dataset))


def _fitting(column: Column, texts: Texts) -> Texts:
    labels = tuple((value, label) for value, label in texts.labels if value in (column.values or ()))
    try:
        check_labels(column, labels)
    except CatalogError:  # a new value is called like the label of another
        labels = ()
    return replace(texts, labels=labels)


def _label(value: str, labels: Mapping[str, str]) -> str | None:
    """Return the label of a value; a codebook may write a number with a sign or with zeros before it."""
    for code, label in labels.items():
        number = code.lstrip("+").lstrip("0") or "0"
        if value == code or (code.lstrip("+").isdecimal() and value == number):
            return label
    return None

"""Texts of the data dictionary about the keys of an answer, and units of its numbers, by their names in the answer."""

from collections.abc import Mapping
from typing import Any, Final, Protocol

LABELS: Final = "labels"
"""Where a document has them: for a column of the answer, the label by the text of the value."""
TEXTS: Final = "texts"
"""Where a document has all texts of the columns of the answer, by their names."""
OF_COLUMN: Final = ("title", "description", "unit", LABELS)


class KeyTexts(Protocol):
    """The texts of a column of the catalog."""

    @property
    def labels(self) -> tuple[tuple[Any, str], ...]:
        """Listed values, each with its label."""

    @property
    def facts(self) -> dict[str, str]:
        """The texts by their keys, such as `title`."""


class KeyDictionary(Protocol):
    """The texts of a data set."""

    def column(self, table: str, name: str, /) -> KeyTexts:
        """Return the texts of a column."""


def texts_of(document: Mapping[str, Any], dataset: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the texts of keys, and the units of numbers, by their names in an answer.

    Args:
        document: Of the answer, for its `key_columns` and `unit_columns`.
        dataset: The document of its data set.
    """
    columns = {table["name"]: table["columns"] for table in dataset["tables"]}
    found = dict[str, dict[str, Any]]()
    parts = ((document.get("key_columns") or {}, OF_COLUMN), (document.get("unit_columns") or {}, ("unit",)))
    for name, place, wanted in ((name, place, wanted) for of, wanted in parts for name, place in of.items()):
        facts = columns.get(place["table"], {}).get(place["column"], {})
        texts = {key: facts[key] for key in wanted if facts.get(key)}
        if texts:
            found[name] = texts
    return found


def labels_in(texts: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, str]]:
    """Return the labels among the texts of columns."""
    return {name: said[LABELS] for name, said in texts.items() if LABELS in said}


def label_of(document: Mapping[str, Any], column: str, value: Any) -> str | None:
    """Return the label of a value in a column of an answer; None without one.

    >>> document = {"labels": {"sex": {"1": "male"}, "paid": {"true": "yes"}}}
    >>> label_of(document, "sex", 1), label_of(document, "paid", True), label_of(document, "sex", 2)
    ('male', 'yes', None)
    """
    labels = document.get(LABELS, {}).get(column)
    if not labels or value is None:
        return None
    label: str | None = labels.get(str(value).lower() if isinstance(value, bool) else str(value))
    return label


def titles_in(texts: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return what stands beside the values of columns that have a title or a unit.

    >>> titles_in({"age": {"title": "Age", "unit": "years"}, "w": {"unit": "kg"}, "sex": {"labels": {"1": "male"}}})
    {'age': 'Age (years)', 'w': 'w (kg)'}
    """
    return {
        name: said.get("title", name) + (f" ({said['unit']})" if "unit" in said else "")
        for name, said in texts.items()
        if "title" in said or "unit" in said
    }

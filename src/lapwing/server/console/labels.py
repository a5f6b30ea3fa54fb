"""Texts of the data dictionary about the keys of a result, such as labels of values.

Pages show the label that the catalog has today, and queries name the value. A kept answer opens byte for byte for ever.
So it says which declared column each of its keys is, and never a label.
"""

from collections.abc import Mapping
from typing import Any, Final

from lapwing.server.console.inside import ApiRefusal
from lapwing.server.console.visits import PageRequest

LABELS: Final = "labels"
"""Where a document has them: for a column of the answer, the label by the text of the value."""
TEXTS: Final = "texts"
"""Where a document has all texts of the columns of the answer, by their names."""
OF_COLUMN: Final = ("title", "description", "unit", LABELS)


async def with_labels(visit: PageRequest, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer's document with the texts that the catalog has for its keys, and labels for their values.

    A reader who may open the answer but not see the data set gets the document without texts.
    """
    declared = document.get("key_columns") or {}
    if not declared:
        return dict(document)
    try:
        dataset = await visit.api.get("datasets", document["dataset"])
    except ApiRefusal:
        return dict(document)
    return {**document, LABELS: labels_of(declared, dataset), TEXTS: texts_of(declared, dataset)}


def labels_of(declared: Mapping[str, Mapping[str, str]], dataset: Mapping[str, Any]) -> dict[str, Mapping[str, str]]:
    """Return the labels of declared columns, by the names that an answer has for these; arguments as `texts_of`."""
    return {name: texts[LABELS] for name, texts in texts_of(declared, dataset).items() if LABELS in texts}


def texts_of(declared: Mapping[str, Mapping[str, str]], dataset: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the title, description, unit and labels of declared columns, by the names that an answer has for these.

    Args:
        declared: `key_columns` of an answer.
        dataset: The document of its data set.
    """
    columns = {table["name"]: table["columns"] for table in dataset["tables"]}
    found = dict[str, dict[str, Any]]()
    for name, place in declared.items():
        facts = columns.get(place["table"], {}).get(place["column"], {})
        texts = {key: facts[key] for key in OF_COLUMN if facts.get(key)}
        if texts:
            found[name] = texts
    return found


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

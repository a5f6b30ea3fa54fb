"""Labels of values in answers: pages show the label that the catalog has today, and queries name the value.

A kept answer opens byte for byte for ever. So it says which declared column each of its keys is, and never a label.
"""

from collections.abc import Mapping
from typing import Any, Final

from lapwing.server.console.inside import ApiRefusal
from lapwing.server.console.visits import PageRequest

LABELS: Final = "labels"
"""Where a document has them: for a column of the answer, the label by the text of the value."""


async def with_labels(visit: PageRequest, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer's document with the labels that the catalog has for the values of its keys.

    A reader who may open the answer but not see the data set gets the document without labels.
    """
    declared = document.get("key_columns") or {}
    if not declared:
        return dict(document)
    try:
        dataset = await visit.api.get("datasets", document["dataset"])
    except ApiRefusal:
        return dict(document)
    return {**document, LABELS: labels_of(declared, dataset)}


def labels_of(declared: Mapping[str, Mapping[str, str]], dataset: Mapping[str, Any]) -> dict[str, Mapping[str, str]]:
    """Return the labels of declared columns, by the names that an answer has for these.

    Args:
        declared: `key_columns` of an answer.
        dataset: The document of its data set.
    """
    columns = {table["name"]: table["columns"] for table in dataset["tables"]}
    found = {
        name: columns.get(place["table"], {}).get(place["column"], {}).get(LABELS) for name, place in declared.items()
    }
    return {name: labels for name, labels in found.items() if labels}


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

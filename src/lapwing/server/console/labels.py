"""Texts of the data dictionary about the columns of a result, such as labels of values and units.

Pages show the label that the catalog has today, and queries name the value. A kept answer opens byte for byte for ever.
So it says which declared column each of its keys is, and never a label.
"""

from collections.abc import Mapping
from typing import Any

from lapwing.answer.key_texts import LABELS, TEXTS, labels_in, texts_of
from lapwing.server.console.inside import ApiRefusal
from lapwing.server.console.visits import PageRequest


async def with_labels(visit: PageRequest, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer's document with the texts that the catalog has for its keys, and labels for their values.

    A reader who may open the answer but not see the data set gets the document without texts.
    """
    if not document.get("key_columns") and not document.get("unit_columns"):
        return dict(document)
    try:
        dataset = await visit.api.get("datasets", document["dataset"])
    except ApiRefusal:
        return dict(document)
    texts = texts_of(document, dataset)
    return {**document, LABELS: labels_in(texts), TEXTS: texts}

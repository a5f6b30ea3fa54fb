"""The query of a stored result, and whether two results are the same release."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from lapwing.server.answer_store import AnswerRecord


def asked_of(record: AnswerRecord) -> Mapping[str, Any]:
    """Return the query of a result: of several that were asked together, its own."""
    request = record.request
    queries: Sequence[Mapping[str, Any]] | None = request.get("questions")
    return request if queries is None else queries[request["place"]]


def label_of(record: AnswerRecord) -> str | None:
    """Return the label that its owner gave a result."""
    label: str | None = asked_of(record).get("label")
    return label


def same_release(one: AnswerRecord, other: AnswerRecord) -> bool:
    """Tell whether two answers show the same released numbers with the same noise; without numbers, the same query.

    >>> def answer(scale):
    ...     fact = {"name": "n", "measures": [{"mechanism": "Laplace", "scale": scale, "price_share": 1.0}]}
    ...     document = {"columns": ["n"], "rows": [{"n": 4}], "facts": [fact]}
    ...     return AnswerRecord(id="1", person="", dataset="", created="", request={}, document=document,
    ...                         arrow=b"", dropped=False)
    >>> same_release(answer(2.0), answer(2.0)), same_release(answer(2.0), answer(3.0))
    (True, False)
    """
    if not (one.document["rows"] or asked_of(one).get("sql") == asked_of(other).get("sql")):
        return False
    return _released(one.document) == _released(other.document)


def _released(document: Mapping[str, Any]) -> str:
    """Return what was released, whatever its columns are named."""
    noise = [[(one["mechanism"], one["scale"]) for one in fact["measures"]] for fact in document.get("facts", ())]
    return json.dumps([[list(row.values()) for row in document["rows"]], noise])

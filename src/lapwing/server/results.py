"""What requests are answered with, as the description has it: documents by their fields, and which request has which.

The routes return documents that other modules write (`lapwing.documents`); here is said what is in them. A test holds
every answer of a running service against it.
"""

from collections.abc import Mapping
from typing import Any, Final

Schema = dict[str, Any]
_TYPES: Final = {"text": "string", "number": "number", "integer": "integer", "boolean": "boolean", "object": "object"}


def _document(about: str, fields: str) -> Schema:
    """Return the schema of a document.

    Args: fields: names with their types, `?` after those that may be null, and in brackets what is in a list.

    >>> _document("A pair.", "n integer?, of [text]")["properties"]
    {'n': {'type': ['integer', 'null']}, 'of': {'type': 'array', 'items': {'type': 'string'}}}
    """
    properties = {name: _field(kind) for name, kind in (field.split() for field in fields.split(", "))}
    return {"type": "object", "description": about, "properties": properties, "required": list(properties)}


def _field(kind: str) -> Schema:
    bare = kind.removesuffix("?")
    schema: Schema = {"type": "array", "items": _field(bare[1:-1])} if bare[0] == "[" else {"type": _TYPES[bare]}
    return schema if bare == kind else {**schema, "type": [schema["type"], "null"]}


QUEUED: Final = (
    "id text, person text, dataset text, created text, request object, status text, stopping boolean, ahead integer?, "
    "answer text?, problem object?"
)
ISSUED: Final = "id text, person text, label text, scopes [text], created text, expires text"
DOCUMENTS: Final[Mapping[str, Schema]] = {
    "Answer": _document(
        "An answer. `intervals` has low and high ends by column, `types` the type of each; `facts`, if the answer was "
        "kept with them, what is public of each.",
        "id text, dataset text, created text, columns [text], rows [object], confidence number, intervals object, cost "
        "object, stored boolean, notes [text], types object",
    ),
    "Answers": _document("Answers, in the order of their questions.", "answers [object]"),
    "BoughtAnswer": _document("An answer, without what it says.", "id text, created text, request object"),
    "Budget": _document(
        "What is granted, spent and left; `allowances` bind the caller, `most` is what one question may cost at most.",
        "total object, spent object, remaining object, share_spent number, guarantee object, spent_epsilon number?, "
        "spent_epsilon_means text, spent_epsilon_whenever number?, spent_epsilon_whenever_means text, "
        "spent_delta text, delta_keys text, delta_keys_spent text, version integer, faults integer, stopped boolean, "
        "stopped_by_curator boolean, closed boolean, lost boolean, allowances [object], most object?, "
        "earlier [object], raised object?, "
        "more_like_the_last integer?, parts [object]?, history [object], readings object, spending object, division "
        "object?",
    ),
    "Charge": _document(
        "A charge. `unanswered` says why it bought nothing, if that is known.",
        "sequence integer, time text, principal text, question text, loss object, delta text, version integer, "
        "answered boolean, unanswered text?, parts [text]?",
    ),
    "Closed": _document("Whether the data set was open before.", "closed boolean, was_open boolean"),
    "Consistent": _document(
        "Rows with numbers that can be true together; `changed` names the columns in which some number is another.",
        "id text, dataset text, created text, columns [text], rows [object], changed [text], types object",
    ),
    "Dataset": _document("What is public about a data set.", "name text, budget object, tables [object], views object"),
    "DatasetName": _document("A data set that one may see.", "name text"),
    "Fault": _document(
        "Questions that ended after their charge.", "sequence integer, time text, cause text, charges [object]"
    ),
    "Grants": _document("The shares of people and of teams, by name.", "people object, teams object"),
    "Guarantee": _document("The page of the guarantee.", "dataset text, date text, sections [object]"),
    "IssuedToken": _document("A token with its secret, which is shown this once.", f"token text, {ISSUED}"),
    "Looked": _document("How many faults were looked at.", "faults integer"),
    "Me": _document("Who the caller is, and what they may do.", "name text, role text, rights [text], token text"),
    "Person": _document("Somebody.", "name text, role text, team text?, active boolean, created text"),
    "Policy": _document("How a budget is shared out.", "division text, most_epsilon text?, stopped boolean"),
    "Preview": _document(
        "A price, and what is left for the caller. `refusal` is what a query would be refused with now.",
        "cost object, price object, epsilon number, epsilon_means text, stored boolean, share_of_remaining number?, "
        "remaining object, fits integer, refusal text?, cells integer?, delta number, unit text, bound text, "
        "neighbouring text, assuming_count integer?, sharpens boolean, selection object?, columns [object], "
        "measures [object], notes [text], parts [object]?",
    ),
    "QueuedQuestion": _document("A question in the queue, or that was there.", QUEUED),
    "Raise": _document(
        "What a budget promises before and after a raise; `raised` says whether it was done by this request.",
        "before object, after object, done boolean, raised boolean",
    ),
    "Token": _document("A token, without its secret.", f"{ISSUED}, revoked boolean"),
    "Version": _document("The current version of the data.", "version integer"),
}
ANSWERED_BY: Final[Mapping[str, str]] = {
    "GET /v1/datasets": "[DatasetName]",
    "POST /v1/datasets": "Dataset",
    "GET /v1/datasets/{dataset}": "Dataset",
    "POST /v1/datasets/{dataset}/explain": "Preview",
    "POST /v1/datasets/{dataset}/query": "Answer",
    "POST /v1/datasets/{dataset}/batch": "Answers",
    "POST /v1/datasets/{dataset}/queries": "QueuedQuestion",
    "GET /v1/datasets/{dataset}/answers": "[BoughtAnswer]",
    "GET /v1/datasets/{dataset}/budget": "Budget",
    "GET /v1/datasets/{dataset}/history": "[Charge]",
    "GET /v1/datasets/{dataset}/guarantee": "Guarantee",
    "PUT /v1/datasets/{dataset}/cap": "Raise",
    "PUT /v1/datasets/{dataset}/closed": "Closed",
    "GET /v1/datasets/{dataset}/grants": "Grants",
    "GET /v1/datasets/{dataset}/policy": "Policy",
    "PUT /v1/datasets/{dataset}/policy": "Policy",
    "PUT /v1/datasets/{dataset}/stop": "Policy",
    "POST /v1/datasets/{dataset}/accept": "Version",
    "GET /v1/datasets/{dataset}/faults": "[Fault]",
    "POST /v1/datasets/{dataset}/resume": "Looked",
    "GET /v1/queries": "[QueuedQuestion]",
    "GET /v1/queries/{query}": "QueuedQuestion",
    "DELETE /v1/queries/{query}": "QueuedQuestion",
    "GET /v1/answers/{answer}": "Answer",
    "GET /v1/answers/{answer}/consistent": "Consistent",
    "POST /v1/login": "IssuedToken",
    "GET /v1/me": "Me",
    "GET /v1/me/tokens": "[Token]",
    "GET /v1/people": "[Person]",
    "POST /v1/people": "Person",
    "PATCH /v1/people/{name}": "Person",
    "GET /v1/people/{name}/tokens": "[Token]",
    "POST /v1/people/{name}/tokens": "IssuedToken",
}


def reference(named: str) -> Schema:
    """Return the schema of a name, or of a list of it."""
    if named.startswith("["):
        return {"type": "array", "items": reference(named[1:-1])}
    return {"$ref": f"#/components/schemas/{named}"}

"""Several questions at one price: all are charged, or none."""

import re
from fractions import Fraction
from typing import Any, Final

from starlette.responses import Response

from lapwing.server.console.ask.question import USUAL_PRICE
from lapwing.server.console.inside import Refusal
from lapwing.server.console.templates import segment
from lapwing.server.console.visits import Page, Visit, go
from lapwing.server.credentials import new_name

PATH: Final = "/console/data/{dataset}/batch"
KEY: Final = "Idempotency-Key"
KEYS: Final = re.compile("[0-9a-f]{32}")
PIECE: Final = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|/\*.*?\*/|;|[^'";/-]+|.""", re.DOTALL)


async def show(visit: Visit) -> Response:
    """Show the form."""
    return await _page(visit, {"sql": visit.asked("sql")}, preview=False)


async def price(visit: Visit) -> Response:
    """Show the form with the price of what it says."""
    return await _page(visit, visit.form, preview=True)


async def buy(visit: Visit) -> Response:
    """Ask all questions, and lead to their answers."""
    dataset, key = visit.part("dataset"), visit.form.get("key", "")
    headers = {KEY: key if KEYS.fullmatch(key) else new_name()}
    try:
        reply = await visit.api.send("POST", "datasets", dataset, "batch", body=_body(visit.form), headers=headers)
    except Refusal as refusal:
        return await _page(visit, visit.form, preview=True, refused=refusal.document)
    first = reply.document["answers"][0]["id"]
    return go(f"/console/data/{segment(dataset)}/batch/{segment(first)}?count={len(reply.document['answers'])}")


async def bought(visit: Visit) -> Response:
    """List the answers of a batch."""
    first, count = visit.part("answer"), visit.asked("count", "1")
    ids = [first] + [f"{first}.{place}" for place in range(1, int(count) if re.fullmatch("[0-9]{1,3}", count) else 1)]
    requests = [(await visit.api.get("answers", id_, "request"))["request"] for id_ in ids]
    texts = [one["questions"][one["place"]]["sql"] if "questions" in one else one.get("sql", "") for one in requests]
    return visit.show(
        "batch/bought.html",
        dataset=visit.part("dataset"),
        answers=list(zip(ids, texts, strict=True)),
        request=requests[0],
    )


async def _page(visit: Visit, fields: Any, *, preview: bool, refused: Any = None) -> Response:
    dataset = visit.part("dataset")
    questions, document, told = divided(fields.get("sql", "")), None, refused
    if preview and questions and refused is None:
        try:
            reply = await visit.api.send("POST", "datasets", dataset, "batch", "explain", body=_body(fields))
            document = reply.document
        except Refusal as refusal:
            told = refusal.document
    return visit.show(
        "batch/page.html",
        refused["status"] if refused else 200,
        dataset=dataset,
        sql=fields.get("sql", ""),
        epsilon=fields.get("epsilon", USUAL_PRICE).strip(),
        label=fields.get("label", "").strip(),
        questions=questions,
        document=document,
        share=None if document is None else _share(document),
        told=told,
        key=new_name(),
    )


def _share(document: Any) -> float:
    left = Fraction(document["remaining"]["amount"])
    return float(Fraction(document["cost"]["amount"]) / left) if left else 1.0


def _body(fields: Any) -> dict[str, Any]:
    label = fields.get("label", "").strip()
    return {
        "questions": [{"sql": text} for text in divided(fields.get("sql", ""))],
        "epsilon": fields.get("epsilon", USUAL_PRICE).strip(),
        **({"label": label} if label else {}),
    }


def divided(text: str) -> list[str]:
    r"""Return the questions of a text, which semicolons divide; those in quotes and comments divide nothing.

    >>> divided("SELECT ';' AS a; SELECT 2 -- ; no\n;")
    ["SELECT ';' AS a", 'SELECT 2 -- ; no']
    """
    parts, part = [], ""
    for piece in PIECE.findall(text):
        if piece == ";":
            parts.append(part.strip())
            part = ""
        else:
            part += piece
    return [one for one in [*parts, part.strip()] if one]


PAGES: Final = (
    Page(method="GET", path=PATH, handle=show, query=("sql",)),
    Page(method="POST", path=PATH, handle=price),
    Page(method="POST", path=f"{PATH}/answers", handle=buy),
    Page(method="GET", path=f"{PATH}/{{answer}}", handle=bought, query=("count",)),
)

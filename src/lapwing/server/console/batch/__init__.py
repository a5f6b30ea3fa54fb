"""Several questions at one price: all are charged, or none."""

import re
from fractions import Fraction
from typing import Any, Final
from urllib.parse import urlencode

from starlette.responses import Response

from lapwing.server.console.acting import decimal_of, number_of
from lapwing.server.console.ask import LONGEST_LINK, groups_delta
from lapwing.server.console.ask.question import USUAL_PRICE, marked, mended
from lapwing.server.console.dashboards.tiles import tile_of
from lapwing.server.console.forms import KEY, KEYS
from lapwing.server.console.inside import ApiRefusal
from lapwing.server.console.templates import segment
from lapwing.server.console.visits import ConsolePage, PageRequest, at_field, redirect
from lapwing.server.credentials import new_name

QUERY: Final = ("sql", "epsilon", "delta", "label")
PATH: Final = "/console/data/{dataset}/batch"
PIECE: Final = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|/\*.*?\*/|;|[^'";/-]+|.""", re.DOTALL)


async def show(visit: PageRequest) -> Response:
    """Show the form."""
    if "epsilon" in visit.request.query_params:
        return await _page(visit, visit.request.query_params, preview=True)
    return await _page(visit, {"sql": visit.asked("sql")}, preview=False)


async def price(visit: PageRequest) -> Response:
    """Lead to the form with the price of what it says; or show it, if that is too long for an address."""
    link = urlencode({name: visit.form.get(name, "") for name in QUERY})
    if len(link) > LONGEST_LINK:
        return await _page(visit, visit.form, preview=True)
    return redirect(f"/console/data/{segment(visit.part('dataset'))}/batch?{link}")


async def buy(visit: PageRequest) -> Response:
    """Ask all questions, and lead to their answers."""
    dataset, key = visit.part("dataset"), visit.form.get("key", "")
    headers = {KEY: key if KEYS.fullmatch(key) else new_name()}
    try:
        reply = await visit.api.send("POST", "datasets", dataset, "batch", body=_body(visit.form), headers=headers)
    except ApiRefusal as refusal:
        return await _page(visit, visit.form, preview=True, refused=refusal.document)
    first = reply.document["answers"][0]["id"]
    return redirect(f"/console/data/{segment(dataset)}/batch/{segment(first)}?count={len(reply.document['answers'])}")


async def bought(visit: PageRequest) -> Response:
    """Show the answers of a batch."""
    first, count = visit.part("answer"), visit.asked("count", "1")
    ids = [first] + [f"{first}.{place}" for place in range(1, int(count) if re.fullmatch("[0-9]{1,3}", count) else 1)]
    dataset, request = visit.part("dataset"), (await visit.api.get("answers", first, "request"))["request"]
    tiles = [await tile_of(visit, dataset, place, {"answer": id_}) for place, id_ in enumerate(ids)]
    texts = [one.get("sql", "") for one in request.get("questions", [request])]
    return visit.show(
        "batch/bought.html", dataset=dataset, tiles=list(zip(tiles, texts, strict=False)), request=request
    )


async def _page(visit: PageRequest, fields: Any, *, preview: bool, refused: Any = None) -> Response:
    dataset = visit.part("dataset")
    questions, document, told, wrong = divided(fields.get("sql", "")), None, refused, None
    budget = await visit.api.get("datasets", dataset, "budget")
    total = budget["total"]
    if preview and questions and refused is None:
        try:
            reply = await visit.api.send("POST", "datasets", dataset, "batch", "explain", body=_body(fields))
            document = reply.document
        except ApiRefusal as refusal:
            told = refusal.document
            wrong = None if told.get("field") else await _wrong(visit, dataset, fields, questions, told)
    faulty = told if told is not None and told.get("field") in ("epsilon", "delta", "label") else None
    page = visit.show(
        "batch/page.html",
        refused["status"] if refused else 200,
        dataset=dataset,
        sql=fields.get("sql", ""),
        epsilon=fields.get("epsilon", USUAL_PRICE).strip(),
        delta=fields.get("delta", "").strip(),
        groups_delta=groups_delta(budget),
        label=fields.get("label", "").strip(),
        questions=questions,
        document=document,
        share=None if document is None else _share(document["cost"], total),
        left=None if document is None else _share(document["remaining"], total),
        told=None if faulty else told,
        wrong=wrong,
        key=new_name(),
    )
    return page if faulty is None else at_field(page, f"/console/data/{segment(dataset)}/batch", faulty)


async def _wrong(
    visit: PageRequest, dataset: str, fields: Any, questions: list[str], told: Any
) -> dict[str, Any] | None:
    """Return which question a refusal is about: its number, its line, and all of them put right if that is proposed."""
    for place, sql in enumerate(questions):
        price = {name: value for name, value in _body(fields).items() if name in ("epsilon", "delta")}
        body = {"sql": sql, **price}
        try:
            await visit.api.send("POST", "datasets", dataset, "explain", body=body)
        except ApiRefusal as refusal:
            if refusal.document["detail"] != told["detail"]:
                return None
            there, suggestion = refusal.document.get("position"), refusal.document.get("suggestion")
            where = None if there is None else (there[0], there[1])
            better = None if where is None else mended(sql, where, suggestion)
            return {
                "place": place,
                "marked": None if where is None else marked(sql, where),
                "mended": better and ";\n".join([*questions[:place], better, *questions[place + 1 :]]) + ";",
            }
    return None


def _share(part: Any, total: Any) -> float:
    """Return a part of the budget."""
    return float(Fraction(part["amount"]) / Fraction(total["amount"]))


def _body(fields: Any) -> dict[str, Any]:
    label, delta = fields.get("label", "").strip(), number_of(fields.get("delta", ""), "delta")
    return {
        "questions": [{"sql": text} for text in divided(fields.get("sql", ""))],
        "epsilon": decimal_of(fields.get("epsilon", USUAL_PRICE), "epsilon"),
        **({"delta": delta} if delta else {}),
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
    ConsolePage(method="GET", path=PATH, handle=show, query=QUERY),
    ConsolePage(method="POST", path=PATH, handle=price),
    ConsolePage(method="POST", path=f"{PATH}/answers", handle=buy),
    ConsolePage(method="GET", path=f"{PATH}/{{answer}}", handle=bought, query=("count",)),
)

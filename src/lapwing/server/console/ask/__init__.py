"""Asking: a question, its price and its errors before it is bought, and the button that buys it.

The button stands in a form of its own, which holds the question that was priced: what is typed meanwhile cannot be
bought unseen. It bears an idempotency key, so that a form which is sent twice is charged once.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from hmac import compare_digest
from hmac import digest as keyed_hash
from typing import Any, Final
from urllib.parse import urlencode

from starlette.responses import HTMLResponse, Response

from lapwing.errors import RefusalCause
from lapwing.server.console.acting import renamed
from lapwing.server.console.ask.accuracy import (
    LEVELS,
    MedianWidth,
    assumed_rows,
    in_decimals,
    typical_results,
    widths_of_medians,
)
from lapwing.server.console.ask.builder import built
from lapwing.server.console.ask.picture import simulated
from lapwing.server.console.ask.question import USUAL_PRICE, QuestionForm, marked, mended
from lapwing.server.console.data.columns import TableText, tables_of
from lapwing.server.console.editing import with_editor
from lapwing.server.console.inside import ApiRefusal
from lapwing.server.console.standing import state_at
from lapwing.server.console.templates import segment
from lapwing.server.console.visits import ConsolePage, PageRequest, redirect
from lapwing.server.credentials import new_name

MOST_STEPS: Final = 5
TOLERANCE: Final = Fraction(97, 100)
EDITED: Final = "edited"
"""The query parameter of an address to which a form of the page led: the reader was in the query, and is again.

Its value is a keyed hash of the query under the secret of the session, which a link from elsewhere does not have. So
only what the reader wrote becomes a draft of theirs.
"""
QUERY: Final = ("sql", "by", "epsilon", "error", "delta", "label", "assuming", "typical", "tab")
LONGEST_LINK: Final = 4000
KEY: Final = "Idempotency-Key"
KEYS: Final = re.compile("[0-9a-f]{32}")


async def show(visit: PageRequest) -> Response:
    """Show the form; with its price, if a link says the question."""
    return await _page(visit, visit.request.query_params, preview="sql" in visit.request.query_params)


async def price(visit: PageRequest) -> Response:
    """Lead to the form with the price of what it says; or show it, if that is too long for an address.

    So Back shows the form, and sends nothing again. An address has only the SQL that the builder writes, so a form of
    the builder is shown at once.
    """
    said = {name: visit.form[name] for name in QUERY if name in visit.form}
    said["tab"] = QuestionForm.read(visit.form).tab
    link = urlencode({**said, EDITED: _mark_of(visit, said).decode()})
    if "write" in visit.form or len(link) > LONGEST_LINK:
        return await _page(visit, visit.form, preview=True)
    return redirect(f"/console/data/{segment(visit.part('dataset'))}/ask?{link}")


async def preview(visit: PageRequest) -> Response:
    """Return the price alone, for a page that shows it while one types."""
    question = QuestionForm.read(visit.form)
    tables = tables_of(await visit.api.get("datasets", visit.part("dataset")))
    facts = await _previewed(visit, question, tables)
    return HTMLResponse(visit.render("ask/preview.html", dataset=visit.part("dataset"), **facts))


async def build(visit: PageRequest) -> Response:
    """Return the query builder alone, with the SQL that it writes, or as far as it can show the SQL of the form."""
    dataset = visit.part("dataset")
    tables = tables_of(await visit.api.get("datasets", dataset))
    builder, _ = built(visit.form, visit.form.get("sql", ""), tables)
    return HTMLResponse(visit.render("ask/builder.html", dataset=dataset, builder=builder))


async def buy(visit: PageRequest) -> Response:
    """Ask the question, and lead to its answer; or to where one sees it wait in the queue."""
    dataset, question, key = visit.part("dataset"), QuestionForm.read(visit.form), visit.form.get("key", "")
    queued = "queue" in visit.form
    try:
        reply = await visit.api.send(
            "POST",
            "datasets",
            dataset,
            "queries" if queued else "query",
            body=question.asked,
            headers={KEY: key if KEYS.fullmatch(key) else new_name()},
        )
    except ApiRefusal as refusal:
        document = refusal.document
        return await _page(visit, visit.form, preview=True, refused=document, status=document["status"])
    id_ = reply.document["id"]
    return redirect(f"/console/questions/{id_}" if queued else f"/console/answers/{id_}?done=asked")


def _mark_of(visit: PageRequest, fields: Mapping[str, str]) -> bytes:
    """Return what shows that a form of this session sent the fields."""
    text = urlencode([(name, fields[name]) for name in QUERY if name in fields])
    return keyed_hash(visit.session.form.encode(), text.encode(), sha256).hex()[:32].encode()


async def _page(
    visit: PageRequest, fields: Mapping[str, str], *, preview: bool, refused: object = None, status: int = 200
) -> Response:
    dataset = visit.part("dataset")
    tables = tables_of(await visit.api.get("datasets", dataset))
    question = QuestionForm.read(fields, usual=_example(tables))
    builder = None
    if question.tab == "build":
        builder, sql = built(fields, question.sql, tables)
        question = replace(question, sql=sql)
    facts: dict[str, Any] = {"question": question}
    if preview and question.sql.strip():
        facts = await _previewed(visit, question, tables)
    edited = visit.request.method == "POST" or compare_digest(_mark_of(visit, fields), visit.asked(EDITED).encode())
    budget = await visit.api.get("datasets", dataset, "budget")
    standing = await state_at(visit.api, visit.caller, dataset, budget)
    shown = {"dataset": dataset, "tables": tables, "builder": builder, "refused": refused, "edited": edited}
    shown["groups_delta"] = groups_delta(budget)
    action = f"/console/data/{segment(dataset)}/ask"
    faulty = facts["refusal"] if facts.get("at_field") else None
    return with_editor(
        visit, "ask/page.html", status, faulty=faulty, action=action, standing=standing, **shown, **facts
    )


async def _previewed(visit: PageRequest, question: QuestionForm, tables: Sequence[TableText]) -> dict[str, Any]:
    """Return what is to be said of a question before it is bought: its price, or why it is refused."""
    dataset = visit.part("dataset")
    budget = await visit.api.get("datasets", dataset, "budget")
    try:
        bought, preview = await _priced(visit, question, tables)
        typical = typical_results(question, tables, _noisy(preview))
    except ApiRefusal as refusal:
        return {"question": question, **_refused(question, refusal, groups_delta(budget))}
    total, left = Fraction(budget["total"]["amount"]), Fraction(preview["remaining"]["amount"])
    medians = widths_of_medians(question, tables, preview, typical)
    cost, columns = Fraction(preview["cost"]["amount"]), _columns(preview, typical, medians)
    means = any(len(column["made_of"]) > 1 and column["half_width"] is None for column in columns)
    return {
        "question": question,
        "bought": bought,
        "preview": preview,
        "picture": None
        if preview["stored"] or preview["refusal"]
        else await simulated(visit, bought, preview, typical, medians),
        "assumed_rows": f"{assumed_rows(question):,}",
        "typical": in_decimals(next(iter(typical.values()))) if typical else "",
        "columns": columns,
        "assumable": means and not question.assuming,
        "left": float(left / total) if total else 0.0,
        "after": float((left - cost) / total) if total else 0.0,
        "cost_share": float(cost / total) if total else 0.0,
        "key": new_name(),
        "now": await state_at(visit.api, visit.caller, dataset, budget),
    }


def groups_delta(budget: Mapping[str, Any]) -> tuple[Fraction, Fraction] | None:
    """Return the δ that is left for finding groups whose values are not listed, and all of it; None if there is none.

    >>> groups_delta({"delta_keys": "0", "delta_keys_spent": "0"})
    """
    whole, spent = (Fraction(budget[name]) for name in ("delta_keys", "delta_keys_spent"))
    return (whole - spent, whole) if whole else None


def _refused(question: QuestionForm, refusal: ApiRefusal, groups_delta: object) -> dict[str, Any]:
    document = renamed(refusal.document, {"assuming_count": "assuming"})
    place = document.get("position")
    where = None if place is None else (place[0], place[1])
    return {
        "refusal": document,
        "at_field": document.get("field") in (question.by, "delta", "typical", "assuming"),
        "needs_delta": groups_delta is not None and document.get("cause") == RefusalCause.NEEDS_DELTA.value,
        "assumable": not question.assuming and document.get("cause") == RefusalCause.ASSUMES_ROWS.value,
        "marked": None if where is None else marked(question.sql, where),
        "mended": None if where is None else mended(question.sql, where, document.get("suggestion")),
        "name": document.get("suggestion"),
    }


async def _priced(
    visit: PageRequest, question: QuestionForm, tables: Sequence[TableText]
) -> tuple[QuestionForm, dict[str, Any]]:
    """Return a question with its price as an ε or an error, and the preview of just that: this is what is bought.

    A level of accuracy is an error of the first noisy column. If there are several, an error would hold for all of
    them, whatever their units: then an ε is found at which that column has the error, within 3 %.
    """

    async def explain(one: QuestionForm) -> dict[str, Any]:
        path = ("datasets", visit.part("dataset"), "explain")
        return dict((await visit.api.send("POST", *path, body=one.priced)).document)

    if question.by not in LEVELS:
        return question, await explain(question)
    assuming = str(assumed_rows(question))
    found = replace(question, by="epsilon", epsilon=USUAL_PRICE, assuming=assuming)
    preview = await explain(found)
    noisy = _noisy(preview)
    typical = typical_results(question, tables, noisy)
    target = LEVELS[question.by] * typical.get(noisy[0], Fraction(0)) if noisy else Fraction(0)
    if not target:
        return found, preview
    if len(noisy) == 1 and _width(preview, noisy[0]) is not None:
        found = replace(found, by="error", error=in_decimals(target))
        return found, await explain(found)
    for _ in range(MOST_STEPS):
        medians = widths_of_medians(found, tables, preview, typical)
        width = medians[noisy[0]].half_width if noisy[0] in medians else _width(preview, noisy[0])
        if width is None or TOLERANCE * target <= width <= target:
            break
        epsilon = Fraction(found.epsilon) * width / target
        found = replace(found, epsilon=f"{Decimal(f'{float(epsilon) * 1.005:.3g}'):f}")
        preview = await explain(found)
    return found, preview


def _width(preview: Mapping[str, Any], name: str) -> Fraction | None:
    width = next(column["half_width"] for column in preview["columns"] if column["name"] == name)
    return None if width is None else Fraction(str(width))


def _noisy(preview: Mapping[str, Any]) -> list[str]:
    return [column["name"] for column in preview["columns"] if column["rests_on"]]


def _columns(
    preview: Mapping[str, Any], typical: Mapping[str, Fraction], medians: Mapping[str, MedianWidth]
) -> list[dict[str, Any]]:
    """Return the columns of an answer that carry noise, each with its ±, or with that of what it is made of.

    `part` is the ± as a share of a typical result, if one is assumed. `median` is about the ± of a median.
    """
    widths = {measure["measure"]: measure["half_width"] for measure in preview["measures"]}
    shown = []
    for column in (column for column in preview["columns"] if column["rests_on"]):
        name, median = column["name"], medians.get(column["name"])
        width = column["half_width"] if median is None else float(median.half_width)
        known = width is not None and name in typical
        shown.append(
            {
                "name": name,
                "half_width": width,
                "part": width / float(typical[name]) if known else None,
                "typical": float(typical.get(name, 0)),
                "made_of": [(name, widths.get(name)) for name in column["rests_on"]],
                "median": median,
            }
        )
    return shown


def _example(tables: list[TableText]) -> str:
    """Return a question to begin with: by the first column whose values are listed, if there is one."""
    for table in tables:
        if table.protected and table.columns:
            keys = [column for column in table.columns if column.public.startswith("one of ")]
            if keys:
                name = keys[0].written
                return f"SELECT {name}, COUNT(*) AS n\nFROM {table.written}\nGROUP BY {name}"
            return f"SELECT COUNT(*) AS n\nFROM {table.written}"
    return ""


PAGES: Final = (
    ConsolePage(method="GET", path="/console/data/{dataset}/ask", handle=show, query=(*QUERY, EDITED)),
    ConsolePage(method="POST", path="/console/data/{dataset}/ask", handle=price),
    ConsolePage(method="POST", path="/console/data/{dataset}/ask/preview", handle=preview),
    ConsolePage(method="POST", path="/console/data/{dataset}/ask/build", handle=build),
    ConsolePage(method="POST", path="/console/data/{dataset}/ask/answer", handle=buy),
)

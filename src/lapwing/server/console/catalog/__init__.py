"""The catalog of a data set that is served: as a form and as text, with what another one would change.

What was shown is what is put into force: the button stands in a form of its own, which holds the text that was looked
at. Figures of a check stand on the page that answers the form, once, in no address and in no field.
"""

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import HTMLResponse, Response

from lapwing.server.console.catalog.differences import differences
from lapwing.server.console.catalog.facts import LABELS, amended, columns_of, field_at_fault
from lapwing.server.console.catalog.positions import position_of
from lapwing.server.console.catalog_words import in_editor, without_path
from lapwing.server.console.editing import with_editor
from lapwing.server.console.inside import ApiRefusal
from lapwing.server.console.templates import segment
from lapwing.server.console.visits import ConsolePage, PageRequest, redirect
from lapwing.server.problems import Problem, problem

HERE: Final = "/console/data/{dataset}/catalog"


async def show(visit: PageRequest) -> Response:
    """Show the catalog in force, or one that was, to be edited."""
    dataset, number = visit.part("dataset"), visit.asked("from")
    if not number:
        return await _page(visit, {})
    text = (await visit.api.send("GET", "datasets", dataset, "versions", number)).content.decode()
    return await _page(visit, {"catalog": text}, looked=True)


async def look_at_facts(visit: PageRequest) -> Response:
    """Show the page with what the facts in the form would change, in the text that they give."""
    await visit.api.get("datasets", visit.part("dataset"), "catalog")  # for curators
    base = visit.form.get("catalog", "")
    try:
        text = amended(base, visit.form)
    except ApiRefusal as refusal:
        return await _page(visit, {"catalog": base}, refused=refusal.document, by_form=True)
    return await _page(visit, {"catalog": text}, looked=True, by_form=True)


async def look(visit: PageRequest) -> Response:
    """Show the page with what the text that was sent would change."""
    return await _page(visit, visit.form, looked=True)


async def preview(visit: PageRequest) -> Response:
    """Return what the text would change alone, for a page that shows it while one types."""
    dataset = visit.part("dataset")
    known = await visit.api.get("datasets", dataset, "catalog")
    facts = await _looked_at(visit, known, visit.form.get("catalog", ""))
    facts["wrong"] = in_editor(facts.get("wrong"))
    return HTMLResponse(visit.render("catalog/result.html", dataset=dataset, known=known, **facts))


async def check(visit: PageRequest) -> Response:
    """Read the data by the catalog that was sent, and show what they are like, this once."""
    body = {"catalog": visit.form.get("catalog", "")}
    try:
        found = await visit.api.send("POST", "datasets", visit.part("dataset"), "catalog", "check", body=body)
    except ApiRefusal as refusal:
        return await _page(visit, visit.form, refused=refusal.document)
    return await _page(visit, visit.form, looked=True, check=found.document)


async def save(visit: PageRequest) -> Response:
    """Put the catalog that was looked at into force."""
    dataset, form = visit.part("dataset"), visit.form
    body = {"catalog": form.get("catalog", ""), "was": form.get("was", "")}
    try:
        made = (await visit.api.send("PUT", "datasets", dataset, "catalog", body=body)).document
    except ApiRefusal as refusal:
        return await _page(visit, form, refused=refusal.document)
    told = "unaccepted" if made["unaccepted"] else "changed"
    return redirect(f"/console/data/{segment(dataset)}/catalog?done={told}")


async def _page(
    visit: PageRequest,
    form: Mapping[str, str],
    *,
    looked: bool = False,
    check: Any = None,
    refused: Problem | None = None,
    by_form: bool = False,
) -> Response:
    """Show the form and the text.

    Args:
        by_form: Whether the facts in the form were sent, so that its fields have the faults.
    """
    dataset = visit.part("dataset")
    known = await visit.api.get("datasets", dataset, "catalog")
    text = form.get("catalog", known["catalog"])
    columns = columns_of(text)
    facts: dict[str, Any] = await _looked_at(visit, known, text) if looked else {}
    if by_form and (wrong := facts.get("wrong")) and (field := field_at_fault(wrong["detail"], columns)):
        column = columns[int(field.rpartition("-")[2])].name
        facts = {}
        refused = problem(wrong["code"], wrong["status"], without_path(wrong["detail"], LABELS, column), field)
    where = position_of(text, refused["detail"]) if refused else None
    if "wrong" in facts:
        facts["wrong"] = in_editor(facts["wrong"])
    return with_editor(
        visit,
        "catalog/page.html",
        refused["status"] if refused else 200,
        dataset=dataset,
        known=known,
        text=text,
        columns=columns,
        before=[column.facts for column in columns_of(known["catalog"])],
        faulty_column=_number(refused) if by_form else None,
        labels=LABELS,
        edited=bool(form) and not by_form,
        check=check,
        refused=in_editor(refused),
        where=where,
        **facts,
    )


def _number(refused: Problem | None) -> int | None:
    """Return the number of the column whose field is at fault."""
    number = refused.get("field", "").rpartition("-")[2] if refused else ""
    return int(number) if number.isdigit() else None


async def _looked_at(visit: PageRequest, known: Any, text: str) -> dict[str, Any]:
    """Return what is to be said of a text before it is put into force."""
    facts: dict[str, Any] = {"seen": text, "lines": differences(known["catalog"], text)}
    if not facts["lines"]:
        return facts
    path = ("datasets", visit.part("dataset"), "catalog", "preview")
    try:
        return {**facts, "found": (await visit.api.send("POST", *path, body={"catalog": text})).document}
    except ApiRefusal as refusal:
        place = position_of(text, refusal.document["detail"])
        return {**facts, "wrong": refusal.document, "place": place}


PAGES: Final = (
    ConsolePage(method="GET", path=HERE, handle=show, query=("done", "from")),
    ConsolePage(method="POST", path=HERE, handle=look),
    ConsolePage(method="POST", path=f"{HERE}/facts", handle=look_at_facts),
    ConsolePage(method="POST", path=f"{HERE}/preview", handle=preview),
    ConsolePage(method="POST", path=f"{HERE}/check", handle=check),
    ConsolePage(method="POST", path=f"{HERE}/save", handle=save),
)

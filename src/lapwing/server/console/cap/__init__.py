"""A larger budget, and the end of a data set: both for ever, so each is shown before it is confirmed. For curators."""

from decimal import Decimal, InvalidOperation
from typing import Any, Final

from starlette.responses import HTMLResponse, Response

from lapwing.server.console.acting import act, guess_shown, number_of
from lapwing.server.console.inside import ApiRefusal
from lapwing.server.console.standing import state_at
from lapwing.server.console.templates import segment
from lapwing.server.console.visits import ConsolePage, PageRequest, redirect
from lapwing.server.problems import Problem, problem

HERE: Final = "/console/data/{dataset}/cap"
UNLIKE: Final = "The text that you typed is not {}. Type it exactly as shown. Nothing was changed."


async def show(visit: PageRequest, refused: Problem | None = None, seen: Any = None) -> Response:
    """Show the budget, and what a larger one would promise."""
    dataset = visit.part("dataset")
    await visit.api.get("datasets", dataset, "listed")  # who may not curate it is told so here
    budget = await visit.api.get("datasets", dataset, "budget")
    typed = visit.form if refused or seen else {}
    status = refused["status"] if refused else 200
    standing = await state_at(visit.api, visit.caller, dataset, budget)
    described = await visit.api.get("datasets", dataset)
    neighbouring = described["budget"]["neighbouring"]
    facts = {"dataset": dataset, "budget": budget, "standing": standing, "refused": refused}
    return visit.show("cap/page.html", status, typed=typed, seen=seen, neighbouring=neighbouring, **facts)


async def preview(visit: PageRequest) -> Response:
    """Show what a larger budget would promise; nothing is changed."""
    try:
        seen = await _sent(visit, confirmed=False)
    except ApiRefusal as refusal:
        return await show(visit, refusal.document)
    return await show(visit, seen=seen)


async def guess(visit: PageRequest) -> Response:
    """Say how often a guess can be right with the figures that are typed; nothing where they are refused."""
    try:
        seen = await _sent(visit, confirmed=False)
    except ApiRefusal as refusal:
        if refusal.document["status"] != 422:
            raise
        return HTMLResponse("")
    described, after = await visit.api.get("datasets", visit.part("dataset")), seen["after"]
    return guess_shown(visit, described["budget"]["neighbouring"], after["times_of_100"], after["delta"])


async def make_larger(visit: PageRequest) -> Response:
    """Make the budget larger, if it was typed again."""
    form = visit.form
    if not _same(form.get("again", ""), form.get("epsilon", "")):
        try:
            seen = await _sent(visit, confirmed=False)
        except ApiRefusal as refusal:
            return await show(visit, refusal.document)
        wrong = problem("invalid_parameter", 422, UNLIKE.format(f"the new ε, {form.get('epsilon', '')[:40]}"), "again")
        return await show(visit, wrong, seen)
    try:
        done = await _sent(visit, confirmed=True)
    except ApiRefusal as refusal:
        return await show(visit, refusal.document)
    told = "raised" if done["catalog"] == "written" else "raised-unwritten"
    return redirect(f"{_path(visit)}?done={told}")


def _same(again: str, epsilon: str) -> bool:
    """Tell whether an epsilon was typed again: the text, or the same number, which the page shows with a point.

    >>> _same("3.5", " 3,5 "), _same("1/3", "1/3"), _same("35", "3,5"), _same("", ""), _same("0.5", "0,500")
    (True, True, False, True, True)
    """
    if again.strip() == epsilon.strip():
        return True
    try:
        return Decimal(number_of(again)) == Decimal(number_of(epsilon))
    except (ApiRefusal, InvalidOperation):
        return False


async def close(visit: PageRequest) -> Response:
    """Close the data set for ever, if its name was typed."""
    dataset = visit.part("dataset")
    if visit.form.get("name", "").strip() != dataset:
        return await show(visit, problem("invalid_parameter", 422, UNLIKE.format("the name of the data set"), "name"))
    closing = visit.api.send("PUT", "datasets", dataset, "closed", body={"closed": True})
    return await act(visit, closing, f"{_path(visit)}?done=closed", show)


async def _sent(visit: PageRequest, *, confirmed: bool) -> Any:
    """Send the figures that were typed.

    Raises:
        ApiRefusal: What the service refused, as it says it.
    """
    form = {name: value.strip() for name, value in visit.form.items()}
    body = {
        "was": {"epsilon": form.get("was_epsilon", ""), "delta": form.get("was_delta", "")},
        "epsilon": number_of(form.get("epsilon", ""), "epsilon"),
        "delta": number_of(form.get("delta", "") or form.get("was_delta", ""), "delta"),
        "confirmed": confirmed,
        "reason": form.get("reason") or None,
    }
    return (await visit.api.send("PUT", "datasets", visit.part("dataset"), "cap", body=body)).document


def _path(visit: PageRequest) -> str:
    return f"/console/data/{segment(visit.part('dataset'))}/cap"


PAGES: Final = (
    ConsolePage(method="GET", path=HERE, handle=show, query=("done",)),
    ConsolePage(method="POST", path=HERE, handle=preview),
    ConsolePage(method="POST", path=f"{HERE}/guess", handle=guess),
    ConsolePage(method="POST", path=f"{HERE}/raise", handle=make_larger),
    ConsolePage(method="POST", path=f"{HERE}/close", handle=close),
)

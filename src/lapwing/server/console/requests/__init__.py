"""Ask for access or a larger limit, see the state of one's requests, and as a curator decide."""

import re
from collections.abc import Sequence
from typing import Any, Final

from starlette.responses import Response

from lapwing.server.console.acting import act, share_of
from lapwing.server.console.inside import Api, ApiRefusal
from lapwing.server.console.templates import segment, typed_share
from lapwing.server.console.toasts import Toast, named
from lapwing.server.console.visits import ConsolePage, PageRequest
from lapwing.server.problems import Problem

HERE: Final = "/console/requests"
ONE: Final = f"{HERE}/{{request}}"
MOST: Final = 200
MOST_LIMITS: Final = 30
"""Data sets whose present limit the form shows: each takes a look into a ledger."""
_SHARE: Final = re.compile(r"[01](\.[0-9]{1,12})?")


async def open_requests_of(api: Api) -> int:
    """Return how many open requests of others somebody decides: none, if they look after no data set."""
    caller = api.caller
    if not caller.may("admin") and "curator" not in dict(caller.datasets).values():
        return 0
    try:
        every = await api.get("requests", state="open", limit=MOST)
    except ApiRefusal:
        return 0
    return sum(one["person"] != caller.name for one in every)


async def show(visit: PageRequest, refused: Problem | None = None) -> Response:
    """Show open requests to decide, one's own requests, and the form for a new one."""
    every = await visit.api.get("requests", limit=MOST)
    name, caller = visit.caller.name, visit.caller
    sets = [one["name"] for one in await visit.api.get("datasets", limit=1000)]
    more = [one for one in sets if caller.at(one).may("ask") and not caller.at(one).may("admin")]
    return visit.show(
        "requests/page.html",
        refused["status"] if refused else 200,
        waiting=[one for one in every if one["state"] == "open" and one["person"] != name],
        decided=[one for one in every if one["state"] != "open" and one["person"] != name][:20],
        own=[one for one in every if one["person"] == name],
        listed=await visit.api.get("listed"),
        more=more,
        limits=await _limits(visit.api, name, more),
        curates=any(caller.at(one).may("admin") for one in sets),
        wanted=visit.form.get("dataset") or visit.asked("dataset"),
        enough=typed_share(visit.asked("share")) if _SHARE.fullmatch(visit.asked("share")) else "",
        refused=refused,
        typed=visit.form if refused else {},
        deciding=visit.request.path_params.get("request") if refused else None,
    )


async def _limits(api: Api, person: str, datasets: Sequence[str]) -> dict[str, str | None]:
    """Return the limit that somebody has now, by data set: a share of the budget, None for none of their own."""
    limits: dict[str, str | None] = {}
    for dataset in datasets[:MOST_LIMITS]:
        held = (await api.get("datasets", dataset, "budget"))["allowances"]
        limits[dataset] = next((one["share"] for one in held if one["holder"] == person), None)
    return limits


async def ask(visit: PageRequest) -> Response:
    """Make a request."""
    form, dataset = visit.form, visit.form.get("dataset", "")
    try:
        body: dict[str, Any] = {"reason": form.get("reason", ""), "share": share_of(form.get("share", ""))}
    except ApiRefusal as refusal:
        return await show(visit, refusal.document)
    toast = Toast(at=HERE, text=f"Sent your request for {named(dataset)}. A curator decides.")
    asking = visit.api.send("POST", "datasets", dataset, "requests", body=body)
    return await act(visit, asking, toast, show, {"not_found": "dataset"})


async def approve(visit: PageRequest) -> Response:
    """Approve a request, with the limit and the reason in the form."""
    try:
        body: dict[str, Any] = {"share": share_of(visit.form.get("share", ""))}
    except ApiRefusal as refusal:
        return await show(visit, refusal.document)
    replace, told = visit.form.get("replace") == "yes", ""
    if reason := visit.form.get("reason", "").strip():
        body["reason"], told = reason, " The person sees your reason."
    return await _decide(visit, "approve", body, f"Approved the request. The grant holds now.{told}", replace=replace)


async def decline(visit: PageRequest) -> Response:
    """Decline a request, with a reason."""
    body = {"reason": visit.form.get("reason", "")}
    return await _decide(visit, "decline", body, "Declined the request. The person sees your reason.")


async def _decide(visit: PageRequest, how: str, body: dict[str, Any], text: str, **query: bool) -> Response:
    path = ("datasets", visit.form.get("dataset", ""), "requests", visit.part("request"), how)
    asking = visit.api.send("POST", *path, body=body, query={name: True for name, said in query.items() if said})
    return await act(visit, asking, Toast(at=HERE, text=text), show)


async def withdraw(visit: PageRequest) -> Response:
    """Withdraw one's own request."""
    path = ("datasets", visit.form.get("dataset", ""), "requests", visit.part("request"))
    return await act(visit, visit.api.send("DELETE", *path), Toast(at=HERE, text="Withdrew your request."), show)


async def set_listed(visit: PageRequest) -> Response:
    """List a data set, or hide it, by the form on its page Access."""
    dataset, listed = visit.part("dataset"), visit.form.get("listed") == "yes"
    text = "People without access now see this data set." if listed else "People without access no longer see it."
    toast = Toast(at=f"/console/data/{segment(dataset)}/access", text=text)
    return await act(visit, visit.api.send("PUT", "datasets", dataset, "listed", body={"listed": listed}), toast, show)


PAGES: Final = (
    ConsolePage(method="GET", path=HERE, handle=show, query=("dataset", "done")),
    ConsolePage(method="POST", path=HERE, handle=ask),
    ConsolePage(method="POST", path=f"{ONE}/approve", handle=approve),
    ConsolePage(method="POST", path=f"{ONE}/decline", handle=decline),
    ConsolePage(method="POST", path=f"{ONE}/withdraw", handle=withdraw),
    ConsolePage(method="POST", path="/console/data/{dataset}/access/listed", handle=set_listed),
)

"""Who may ask a data set and how much, to read for auditors; and for curators the switches: stop, faults, new data."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from lapwing.server.console.acting import act, decimal_of, default_cost_of, share_of
from lapwing.server.console.inside import ApiRefusal
from lapwing.server.console.standing import state_at
from lapwing.server.console.templates import segment, typed_share
from lapwing.server.console.toasts import Toast, named
from lapwing.server.console.visits import ConsolePage, PageRequest
from lapwing.server.problems import Problem

HERE: Final = "/console/data/{dataset}/access"


async def show(visit: PageRequest, refused: Problem | None = None) -> Response:
    """Show grants, policy and state."""
    dataset = visit.part("dataset")
    grants = await visit.api.get("datasets", dataset, "grants")
    policy = await visit.api.get("datasets", dataset, "policy")
    budget = await visit.api.get("datasets", dataset, "budget")
    default_costs = await visit.api.get("datasets", dataset, "default-costs")
    standing = await state_at(visit.api, visit.caller, dataset, budget)
    if not visit.caller.at(dataset).may("admin"):
        if refused:  # a form that this page does not have
            raise ApiRefusal(refused)
        facts = {"grants": grants, "policy": policy, "default_costs": default_costs, "standing": standing}
        return visit.show("access/audited.html", dataset=dataset, **facts)
    faults = await visit.api.get("datasets", dataset, "faults", limit=100)
    listing = await visit.api.get("datasets", dataset, "listed")
    return visit.show(
        "access/page.html",
        refused["status"] if refused else 200,
        dataset=dataset,
        grants=grants,
        policy=policy,
        budget=budget,
        standing=standing,
        faults=faults,
        default_costs=default_costs,
        listed=listing["listed"],
        refused=refused,
        typed=visit.form if refused else _granted(grants, visit.asked("person")),
    )


def _granted(grants: Mapping[str, Any], name: str) -> dict[str, str]:
    """Return the fields of the form with what somebody has, or no fields if they have no access."""
    if name not in grants["people"]:
        return {}
    trusted = {"trusted": "on"} if name in grants["trusted_with_time"] else {}
    return {"holder": "person", "name": name, "share": typed_share(grants["people"][name]), **trusted}


def _back(visit: PageRequest, done: str) -> str:
    return f"/console/data/{segment(visit.part('dataset'))}/access?done={done}"


async def _put(
    visit: PageRequest, done: str, *path: str, body: Any, method: str = "PUT", missing: str = ""
) -> Response:
    """Send a change, and show the page again.

    Args:
        missing: The field that names somebody who may not exist.
    """
    change = visit.api.send(method, "datasets", visit.part("dataset"), *path, body=body)
    return await act(visit, change, _back(visit, done), show, {"not_found": missing} if missing else None)


async def grant(visit: PageRequest) -> Response:
    """Let somebody ask, or a team have a share."""
    form, holder = visit.form, visit.form.get("name", "").strip()
    try:
        share = share_of(form.get("share", ""))
    except ApiRefusal as refusal:
        return await show(visit, refusal.document)
    if form.get("holder") == "team":
        return await _put(visit, "granted", "teams", holder, body={"share": share}, missing="name")
    body = {"share": share, "trusted_with_time": "trusted" in form}
    return await _put(visit, "granted", "grants", holder, body=body, missing="name")


async def withdraw(visit: PageRequest) -> Response:
    """Let somebody ask no more."""
    dataset, name = visit.part("dataset"), visit.form.get("name", "")
    grants = await visit.api.get("datasets", dataset, "grants")
    fields = _granted(grants, name)
    here = f"/console/data/{segment(dataset)}/access"
    text = f"Withdrew the access of {named(name)}. Lapwing accepts no more queries from them."
    toast = Toast(at=here, text=text, action=f"{here}/grant", fields=fields)
    return await act(visit, visit.api.send("DELETE", "datasets", dataset, "grants", name), toast, show)


async def set_default_cost(visit: PageRequest) -> Response:
    """Set what somebody's queries cost that name no cost."""
    try:
        body = default_cost_of(visit.form)
    except ApiRefusal as refusal:
        return await show(visit, refusal.document)
    return await _put(visit, "default", "default-costs", visit.form.get("name", "").strip(), body=body, missing="name")


async def set_policy(visit: PageRequest) -> Response:
    """Say how the budget is shared out."""
    form = visit.form
    try:
        least = share_of(form.get("least_share", ""), "least_share")
        most = decimal_of(form.get("most_epsilon", ""), "most_epsilon") or None
    except ApiRefusal as refusal:
        return await show(visit, refusal.document)
    body = {"division": form.get("division", "share"), "most_epsilon": most, "least_share": least}
    return await _put(visit, "policy", "policy", body=body)


async def stop(visit: PageRequest) -> Response:
    """Stop the data set, or let it go on."""
    stopped = visit.form.get("stopped") == "yes"
    reason = visit.form.get("reason", "").strip() or None
    return await _put(visit, "stopped" if stopped else "resumed", "stop", body={"stopped": stopped, "reason": reason})


async def accept(visit: PageRequest) -> Response:
    """Make the data as they are now the current version."""
    return await _put(visit, "accepted", "accept", body=None, method="POST")


async def resume(visit: PageRequest) -> Response:
    """Say that the faults were looked at."""
    return await _put(visit, "looked", "resume", body=None, method="POST")


PAGES: Final = (
    ConsolePage(method="GET", path=HERE, handle=show, query=("done", "person")),
    ConsolePage(method="POST", path=f"{HERE}/grant", handle=grant),
    ConsolePage(method="POST", path=f"{HERE}/withdraw", handle=withdraw),
    ConsolePage(method="POST", path=f"{HERE}/policy", handle=set_policy),
    ConsolePage(method="POST", path=f"{HERE}/default-cost", handle=set_default_cost),
    ConsolePage(method="POST", path=f"{HERE}/stop", handle=stop),
    ConsolePage(method="POST", path=f"{HERE}/accept", handle=accept),
    ConsolePage(method="POST", path=f"{HERE}/resume", handle=resume),
)

"""People: who there is, their roles and teams, to read for auditors; and for curators the forms, and tokens."""

from datetime import UTC, datetime
from typing import Any, Final

from starlette.responses import Response

from lapwing.server.console.acting import act, renamed, share_of
from lapwing.server.console.inside import ApiRefusal
from lapwing.server.console.rights import RightsForms, names_of_datasets
from lapwing.server.console.searching import SEARCH, listed
from lapwing.server.console.sign_in.invites import INVITE
from lapwing.server.console.templates import segment
from lapwing.server.console.visits import ConsolePage, PageRequest, redirect
from lapwing.server.problems import Problem, problem

HERE: Final = "/console/people"
PERSON: Final = f"{HERE}/{{name}}"
MOST: Final = 200
LISTED: Final = 50


async def show(visit: PageRequest, refused: Problem | None = None) -> Response:
    """List everybody."""
    if not visit.caller.may("admin"):
        return await _show_audited(visit, refused)
    found = await listed(visit, "people", texts=_texts, most=LISTED, key="name")
    teams = [team["name"] for team in await visit.api.get("teams")]
    return visit.show(
        "people/page.html",
        refused["status"] if refused else 200,
        people=found.items,
        found=found,
        refused=refused,
        typed=visit.form,
        teams=teams,
        sets=await names_of_datasets(visit),
    )


async def _show_audited(visit: PageRequest, refused: Problem | None) -> Response:
    """List everybody, and the service accounts, without a form: who has which role."""
    if refused:  # a form that this page does not have
        raise ApiRefusal(refused)
    found = await listed(visit, "people", texts=_texts, most=LISTED, key="name")
    accounts = await visit.api.get("accounts")
    return visit.show("people/audited.html", people=found.items, found=found, accounts=accounts)


def _texts(person: Any) -> tuple[object, ...]:
    """Return the texts of somebody in which words are looked for."""
    state = "active" if person["active"] else "disabled"
    state = "invited" if person["active"] and person["invite_expires"] else state
    return person["name"], person["role"], person["team"], state, *person["datasets"], *person["datasets"].values()


async def add(visit: PageRequest) -> Response:
    """Add somebody, with a grant if a data set is chosen, and an invite if they are to choose a password."""
    form = visit.form
    body: dict[str, Any] = {"name": form.get("name", "").strip(), "role": form.get("role", "analyst")}
    body |= {name: form[name] for name in ("team", "password", "dataset") if form.get(name)}
    try:
        share = share_of(form.get("share", ""))
        if share is not None:
            body["share"] = share
        await visit.api.send("POST", "people", body=body)
    except ApiRefusal as refusal:
        return await show(visit, renamed(refusal.document, {"not_found": "dataset"}))
    if "invite" in form and "password" not in body:
        return await _invited(visit, body["name"])
    return redirect(f"{HERE}/{segment(body['name'])}?done=added")


async def invite(visit: PageRequest) -> Response:
    """Make an invite, and show its link this once."""
    return await _invited(visit, visit.part("name"))


async def _invited(visit: PageRequest, name: str) -> Response:
    try:
        reply = await visit.api.send("POST", "people", name, "invite", body={})
    except ApiRefusal as refusal:
        return await _shown(visit, name, refusal.document)
    made = reply.document
    link = f"{visit.address}{INVITE}#{made['token']}"
    return await _shown(visit, name, link={"address": link, "expires": made["expires"]})


async def withdraw_invite(visit: PageRequest) -> Response:
    """End an invite."""
    name = visit.part("name")
    withdrawing = visit.api.send("DELETE", "people", name, "invite")
    return await act(visit, withdrawing, f"{HERE}/{segment(name)}?done=withdrawn", show_person)


async def show_person(visit: PageRequest, refused: Problem | None = None, issued: Any = None) -> Response:
    """Show somebody, with their tokens; a token that was made just now is shown this once."""
    return await _shown(visit, visit.part("name"), refused, issued)


async def _shown(
    visit: PageRequest, name: str, refused: Problem | None = None, issued: Any = None, link: Any = None
) -> Response:
    tokens = await visit.api.get("people", name, "tokens", limit=MOST)
    person = await _person(visit, name)
    expires = person["invite_expires"]
    facts = {"person": person, "tokens": tokens, "refused": refused, "issued": issued, "link": link}
    facts |= {
        "sets": await names_of_datasets(visit),
        "grants": await visit.api.get("people", name, "grants"),
        "expired": expires is not None and datetime.fromisoformat(expires) <= datetime.now(UTC),
    }
    return visit.show("people/person.html", refused["status"] if refused else 200, **facts)


async def change(visit: PageRequest) -> Response:
    """Change somebody's role, team or password, or let them in or not."""
    name, form = visit.part("name"), visit.form
    body: dict[str, Any] = {"role": form["role"]} if form.get("role") else {}
    if "team" in form:
        body |= {"team": form["team"]} if form["team"] else {"leave_team": True}
    if form.get("password"):
        body["password"] = form["password"]
    if "active" in form:
        body["active"] = form["active"] == "yes"
    changing = visit.api.send("PATCH", "people", name, body=body)
    return await act(visit, changing, f"{HERE}/{segment(name)}?done=changed", show_person)


async def remove_second_factor(visit: PageRequest) -> Response:
    """Switch somebody's second factor off, who cannot."""
    name = visit.part("name")
    removing = visit.api.send("DELETE", "people", name, "second-factor")
    return await act(visit, removing, f"{HERE}/{segment(name)}?done=removed", show_person)


async def _person(visit: PageRequest, name: str) -> Any:
    """Return somebody by name.

    Raises:
        ApiRefusal: What the service refused, as it says it.
    """
    after: str | None = None
    while True:
        reply = await visit.api.send("GET", "people", query={"limit": 1000, "after": after})
        for person in reply.document:
            if person["name"] == name:
                return person
        if not reply.following:
            raise ApiRefusal(problem("not_found", 404, "No person has this name."))
        after = reply.document[-1]["name"]


PAGES: Final = (
    ConsolePage(method="GET", path=HERE, handle=show, query=("after", SEARCH)),
    ConsolePage(method="POST", path=HERE, handle=add),
    ConsolePage(method="GET", path=PERSON, handle=show_person, query=("done",)),
    ConsolePage(method="POST", path=PERSON, handle=change),
    ConsolePage(method="POST", path=f"{PERSON}/invite", handle=invite),
    ConsolePage(method="POST", path=f"{PERSON}/withdraw-invite", handle=withdraw_invite),
    ConsolePage(method="POST", path=f"{PERSON}/second-factor", handle=remove_second_factor),
    *RightsForms(HERE, show_person).pages,
)

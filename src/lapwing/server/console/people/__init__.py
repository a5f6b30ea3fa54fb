"""People, for curators: who there is, their roles and teams, and their tokens, of which each is shown once."""

from typing import Any, Final

from starlette.responses import Response

from lapwing.server.console.acting import act
from lapwing.server.console.inside import ApiRefusal
from lapwing.server.console.rights import RightsForms
from lapwing.server.console.searching import SEARCH, listed
from lapwing.server.console.templates import segment
from lapwing.server.console.visits import ConsolePage, PageRequest
from lapwing.server.problems import Problem, problem

HERE: Final = "/console/people"
PERSON: Final = f"{HERE}/{{name}}"
MOST: Final = 200
LISTED: Final = 50


async def show(visit: PageRequest, refused: Problem | None = None) -> Response:
    """List everybody."""
    found = await listed(visit, "people", texts=_texts, most=LISTED, key="name")
    return visit.show(
        "people/page.html",
        refused["status"] if refused else 200,
        people=found.items,
        found=found,
        refused=refused,
        typed=visit.form,
    )


def _texts(person: Any) -> tuple[object, ...]:
    """Return the texts of somebody in which words are looked for."""
    state = "active" if person["active"] else "disabled"
    return person["name"], person["role"], person["team"], state, *person["datasets"], *person["datasets"].values()


async def add(visit: PageRequest) -> Response:
    """Add somebody."""
    form = visit.form
    body = {"name": form.get("name", ""), "role": form.get("role", "analyst")}
    body |= {name: form[name] for name in ("team", "password") if form.get(name)}
    change = visit.api.send("POST", "people", body=body)
    return await act(visit, change, f"{HERE}/{segment(body['name'])}?done=added", show)


async def show_person(visit: PageRequest, refused: Problem | None = None, issued: Any = None) -> Response:
    """Show somebody, with their tokens; a token that was made just now is shown this once."""
    name = visit.part("name")
    tokens = await visit.api.get("people", name, "tokens", limit=MOST)
    person = await _person(visit, name)
    sets = [one["name"] for one in await visit.api.get("datasets", limit=1000)]
    facts = {"person": person, "tokens": tokens, "refused": refused, "issued": issued, "sets": sets}
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
    ConsolePage(method="POST", path=f"{PERSON}/second-factor", handle=remove_second_factor),
    *RightsForms(HERE, show_person).pages,
)

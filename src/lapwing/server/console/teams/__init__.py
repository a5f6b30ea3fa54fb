"""Teams, for curators: who is in them, what they have of each data set, and what of that is spent."""

from typing import Any, Final

from starlette.responses import Response

from lapwing.server.console.acting import act, share_of
from lapwing.server.console.inside import ApiRefusal
from lapwing.server.console.searching import SEARCH, part_of
from lapwing.server.console.templates import segment
from lapwing.server.console.toasts import Toast, named
from lapwing.server.console.visits import ConsolePage, PageRequest
from lapwing.server.problems import Problem

HERE: Final = "/console/teams"
TEAM: Final = f"{HERE}/{{team}}"
MOST: Final = 50


async def show(visit: PageRequest, refused: Problem | None = None) -> Response:
    """List the teams."""
    found = part_of(visit, await visit.api.get("teams"), _texts, MOST)
    status = refused["status"] if refused else 200
    facts = {"teams": found.items, "found": found, "refused": refused, "typed": visit.form}
    return visit.show("teams/page.html", status, **facts)


def _texts(one: Any) -> tuple[object, ...]:
    """Return the texts of a team in which words are looked for."""
    return one["name"], *one["members"]


async def add(visit: PageRequest) -> Response:
    """Make a team."""
    name = visit.form.get("name", "").strip()
    change = visit.api.send("POST", "teams", body={"name": name})
    return await act(visit, change, f"{HERE}/{segment(name)}?done=made", show)


async def show_team(visit: PageRequest, refused: Problem | None = None) -> Response:
    """Show a team."""
    team = await visit.api.get("teams", visit.part("team"))
    status = refused["status"] if refused else 200
    return visit.show("teams/team.html", status, team=team, refused=refused, typed=visit.form if refused else {})


async def join(visit: PageRequest) -> Response:
    """Let somebody be in the team, and in no other."""
    name = visit.form.get("name", "").strip()
    change = visit.api.send("PATCH", "people", name, body={"team": visit.part("team")})
    return await act(visit, change, _back(visit), show_team, {"not_found": "name"})


async def leave(visit: PageRequest) -> Response:
    """Let somebody be in it no more."""
    here, name = f"{HERE}/{segment(visit.part('team'))}", visit.form.get("name", "")
    change = visit.api.send("PATCH", "people", name, body={"leave_team": True})
    text = f"Removed {named(name)} from the team. Their old charges still count here."
    return await act(visit, change, Toast(at=here, text=text, action=f"{here}/join", fields={"name": name}), show_team)


async def give_share(visit: PageRequest) -> Response:
    """Give the team a share of a data set, or none."""
    team, dataset = visit.part("team"), visit.form.get("dataset", "")
    try:
        body = {"share": share_of(visit.form.get("share", ""))}
    except ApiRefusal as refusal:
        return await show_team(visit, refusal.document)
    change = visit.api.send("PUT", "datasets", dataset, "teams", team, body=body)
    return await act(visit, change, _back(visit), show_team)


def _back(visit: PageRequest) -> str:
    return f"{HERE}/{segment(visit.part('team'))}?done=changed"


PAGES: Final = (
    ConsolePage(method="GET", path=HERE, handle=show, query=("after", SEARCH)),
    ConsolePage(method="POST", path=HERE, handle=add),
    ConsolePage(method="GET", path=TEAM, handle=show_team, query=("done",)),
    ConsolePage(method="POST", path=f"{TEAM}/join", handle=join),
    ConsolePage(method="POST", path=f"{TEAM}/leave", handle=leave),
    ConsolePage(method="POST", path=f"{TEAM}/share", handle=give_share),
)

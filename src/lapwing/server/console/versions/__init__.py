"""The versions of the data and the catalogs that a data set had, what is in force, and what may be accepted next."""

from typing import Any, Final

from starlette.responses import Response

from lapwing.server.console.acting import act
from lapwing.server.console.catalog.differences import differences
from lapwing.server.console.inside import ApiRefusal
from lapwing.server.console.standing import state_at
from lapwing.server.console.templates import segment
from lapwing.server.console.visits import ConsolePage, PageRequest
from lapwing.server.problems import Problem

HERE: Final = "/console/data/{dataset}/versions"


async def show(visit: PageRequest, refused: Problem | None = None, following: Any = None) -> Response:
    """Show what was accepted, what was in force, when and by whom."""
    dataset = visit.part("dataset")
    versions = await visit.api.get("datasets", dataset, "versions")
    status = refused["status"] if refused else 200
    budget = await visit.api.get("datasets", dataset, "budget")
    standing = await state_at(visit.api, visit.caller, dataset, budget)
    facts = {
        "dataset": dataset, "versions": versions, "standing": standing, "refused": refused, "following": following,
    }  # fmt: skip
    return visit.show("versions/page.html", status, **facts)


async def look(visit: PageRequest) -> Response:
    """Read the data, and show what accepting them would do."""
    try:
        found = await visit.api.send("POST", "datasets", visit.part("dataset"), "versions", "next")
    except ApiRefusal as refusal:
        return await show(visit, refusal.document)
    return await show(visit, following=found.document)


async def accept(visit: PageRequest) -> Response:
    """Make the data as they are now the current version."""
    dataset = visit.part("dataset")
    change = visit.api.send("POST", "datasets", dataset, "accept")
    return await act(visit, change, f"/console/data/{segment(dataset)}/versions?done=accepted", show)


async def show_text(visit: PageRequest) -> Response:
    """Show a catalog that was in force, and what is otherwise in it than in the one before."""
    dataset, number = visit.part("dataset"), visit.part("number")
    text = (await visit.api.send("GET", "datasets", dataset, "versions", number)).content.decode()
    versions = await visit.api.get("datasets", dataset, "versions")
    earlier = [one["number"] for one in versions["catalogs"] if one["number"] < int(number)]
    before = None
    if earlier:
        before = (await visit.api.send("GET", "datasets", dataset, "versions", str(earlier[0]))).content.decode()
    changes = await visit.api.get("datasets", dataset, "versions", number, "changes")
    return visit.show(
        "versions/text.html",
        changes=changes,
        dataset=dataset,
        text=text,
        one=next(one for one in versions["catalogs"] if one["number"] == int(number)),
        versions=versions,
        lines=None if before is None else differences(before, text),
    )


PAGES: Final = (
    ConsolePage(method="GET", path=HERE, handle=show, query=("done",)),
    ConsolePage(method="POST", path=f"{HERE}/next", handle=look),
    ConsolePage(method="POST", path=f"{HERE}/accept", handle=accept),
    ConsolePage(method="GET", path=f"{HERE}/{{number}}", handle=show_text),
)

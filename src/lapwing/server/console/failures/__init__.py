"""Queries of a data set that failed after their charge, left late, bought nothing, or ended in the queue.

All of it is what the service lists for auditors: faults, the history of everybody, and the queue of everybody.
"""

from typing import Any, Final

from starlette.responses import Response

from lapwing.documents.audit_words import act_in_words
from lapwing.server.console.searching import FoundItems, listed
from lapwing.server.console.standing import state_at
from lapwing.server.console.visits import ConsolePage, PageRequest

MOST: Final = 50


async def show(visit: PageRequest) -> Response:
    """Show what failed, what was late, what bought nothing, and what the queue refused."""
    dataset = visit.part("dataset")
    faults = await visit.api.get("datasets", dataset, "faults", limit=100)
    budget = await visit.api.get("datasets", dataset, "budget")
    charges = await listed(
        visit,
        "datasets",
        dataset,
        "history",
        texts=_no_texts,
        most=MOST,
        key="sequence",
        belongs=lambda charge: not charge["answered"],
    )
    return visit.show(
        "failures/page.html",
        dataset=dataset,
        standing=await state_at(visit.api, visit.caller, dataset, budget),
        late=budget["late"],
        stops=await _stops(visit, dataset),
        faults=faults,
        charges=charges,
        most=MOST,
        queued=await _refused(visit, dataset),
    )


async def _stops(visit: PageRequest, dataset: str) -> list[dict[str, Any]]:
    """Return who stopped the data set or let it go on, the newest first."""
    lines = await visit.api.get("datasets", dataset, "stops", limit=MOST)
    return [{**line, "done": act_in_words({**line, "details": {}})} for line in lines]


async def _refused(visit: PageRequest, dataset: str) -> FoundItems | None:
    """Return the queries that ended in the queue without a result; None for who may see only a part of the queue.

    An auditor of single data sets sees no queue of everybody.
    """
    if not visit.caller.may("audit"):
        return None
    return await listed(
        visit,
        "queries",
        texts=_no_texts,
        most=MOST,
        start="before",
        query={"everybody": "true"},
        belongs=lambda job: job["dataset"] == dataset and job["status"] in ("failed", "cancelled"),
    )


def _no_texts(_: Any) -> tuple[object, ...]:
    """Return nothing: the page has no search."""
    return ()


PAGES: Final = (
    ConsolePage(method="GET", path="/console/data/{dataset}/failures", handle=show, query=("after", "before")),
)

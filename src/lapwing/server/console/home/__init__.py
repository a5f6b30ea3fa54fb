"""The data sets that one may see, each with what is left of its budget, and notices for curators."""

from datetime import UTC, datetime
from typing import Any, Final

from starlette.responses import Response

from lapwing.server.console.dashboards.monitors import monitors_of
from lapwing.server.console.home.notices import of_accounts, of_dataset, of_monitors, of_requests
from lapwing.server.console.searching import SEARCH, part_of
from lapwing.server.console.standing import left_for, states
from lapwing.server.console.visits import ConsolePage, PageRequest

MOST: Final = 30
"""Data sets on one page: each takes a look into a ledger."""


async def show(visit: PageRequest) -> Response:
    """List the data sets."""
    found = part_of(visit, await visit.api.get("datasets"), _texts, MOST)
    names = [dataset["name"] for dataset in found.items]
    budgets = {name: await visit.api.get("datasets", name, "budget") for name in names}
    standing, caller = await states(visit.api, visit.caller, budgets), visit.caller
    curated = [name for name in budgets if caller.at(name).may("admin")]
    notices = [notice for name in curated for notice in of_dataset(name, budgets[name], standing[name])]
    for name in curated:
        notices += of_monitors(name, await monitors_of(visit, name))
    if curated:
        notices += of_requests(await visit.api.get("requests", state="open", limit=1000), caller.name)
    if caller.may("admin"):
        notices += of_accounts(await visit.api.get("accounts"), datetime.now(UTC))
    return visit.show(
        "home/page.html",
        names=names,
        found=found,
        budgets=budgets,
        standing=standing,
        notices=notices,
        tour=visit.tour,
        access_ended=not names and (await visit.api.get("me"))["access_ended"],
        listed=len(await visit.api.get("listed")),
        yours={name: left_for(one) for name, one in budgets.items()},
    )


def _texts(dataset: Any) -> tuple[object, ...]:
    """Return the texts of a data set in which words are looked for."""
    return dataset["name"], dataset.get("title"), dataset.get("description")


PAGES: Final = (ConsolePage(method="GET", path="/console", handle=show, query=("after", SEARCH)),)

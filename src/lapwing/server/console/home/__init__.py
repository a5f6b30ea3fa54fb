"""The data sets that one may see, each with what is left of its budget, and notices for curators."""

from datetime import UTC, datetime
from typing import Final

from starlette.responses import Response

from lapwing.server.console.home.notices import of_accounts, of_dataset
from lapwing.server.console.standing import left_for, states
from lapwing.server.console.visits import ConsolePage, PageRequest

MOST: Final = 30
"""Data sets of which the budget is shown: each takes a look into a ledger."""


async def show(visit: PageRequest) -> Response:
    """List the data sets."""
    names = [dataset["name"] for dataset in await visit.api.get("datasets")]
    budgets = {name: await visit.api.get("datasets", name, "budget") for name in names[:MOST]}
    standing, caller = await states(visit.api, visit.caller, budgets), visit.caller
    curated = [name for name in budgets if caller.at(name).may("admin")]
    notices = [notice for name in curated for notice in of_dataset(name, budgets[name], standing[name])]
    if caller.may("admin"):
        notices += of_accounts(await visit.api.get("accounts"), datetime.now(UTC))
    return visit.show(
        "home/page.html",
        names=names,
        budgets=budgets,
        standing=standing,
        notices=notices,
        yours={name: left_for(one) for name, one in budgets.items()},
    )


PAGES: Final = (ConsolePage(method="GET", path="/console", handle=show),)

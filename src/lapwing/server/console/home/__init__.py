"""The data sets that one may see, each with what is left of its budget."""

from typing import Final

from starlette.responses import Response

from lapwing.server.console.budget.spending import left_for
from lapwing.server.console.visits import ConsolePage, PageRequest

MOST: Final = 30
"""Data sets of which the budget is shown: each takes a look into a ledger."""


async def show(visit: PageRequest) -> Response:
    """List the data sets."""
    names = [dataset["name"] for dataset in await visit.api.get("datasets")]
    budgets = {name: await visit.api.get("datasets", name, "budget") for name in names[:MOST]}
    return visit.show(
        "home/page.html", names=names, budgets=budgets, yours={name: left_for(one) for name, one in budgets.items()}
    )


PAGES: Final = (ConsolePage(method="GET", path="/console", handle=show),)

"""The tables of a data set: what a question may use, and what of it is public."""

from typing import Final

from starlette.responses import Response

from lapwing.documents.dataset_document import units_protected
from lapwing.server.console.data.columns import background_of, tables_of
from lapwing.server.console.standing import state_at
from lapwing.server.console.visits import ConsolePage, PageRequest


async def show(visit: PageRequest) -> Response:
    """Show what is public about a data set."""
    dataset = visit.part("dataset")
    document = await visit.api.get("datasets", dataset)
    return visit.show(
        "data/page.html",
        dataset=dataset,
        budget=document["budget"],
        standing=await state_at(visit.api, visit.caller, dataset, await visit.api.get("datasets", dataset, "budget")),
        tables=tables_of(document),
        protects=units_protected(document),
        title=document.get("title", ""),
        description=document.get("description", ""),
        background=background_of(document),
    )


PAGES: Final = (ConsolePage(method="GET", path="/console/data/{dataset}", handle=show),)

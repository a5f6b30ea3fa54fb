"""What is promised to the people in the data, to be read and to be printed."""

from typing import Final

from starlette.responses import Response

from lapwing.server.console.visits import ConsolePage, PageRequest


async def show(visit: PageRequest) -> Response:
    """Show the guarantee."""
    dataset = visit.part("dataset")
    accepted = visit.request.headers.get("accept-language", "")[:1000]
    sealed = visit.asked("seal") == "true"
    page = await visit.api.get("datasets", dataset, "guarantee", language=accepted, seal=str(sealed).lower())
    return visit.show("guarantee/page.html", dataset=dataset, page=page, sealed=sealed)


PAGES: Final = (ConsolePage(method="GET", path="/console/data/{dataset}/guarantee", handle=show, query=("seal",)),)

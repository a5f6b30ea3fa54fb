"""The words of the console, each explained in two sentences; other pages lead to them."""

from typing import Final

from starlette.responses import Response

from lapwing.server.console.visits import ConsolePage, PageRequest


async def show(visit: PageRequest) -> Response:
    """Show all words."""
    return visit.show("words/page.html")


PAGES: Final = (ConsolePage(method="GET", path="/console/words", handle=show),)

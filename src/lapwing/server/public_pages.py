"""The pages below `/published` that anybody may read.

No request here is of somebody: no token or cookie is read, none is set, and no form is taken. A page is made of the
snapshot of one row of the store. An address that was never there and one that was withdrawn are answered alike.

`frame-ancestors` names the origins that the curator of the data set allows, for these pages only. Browsers ignore
`X-Frame-Options` where a policy has `frame-ancestors`.
"""

from collections.abc import MutableMapping
from typing import Any, Final, final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route, Router

from lapwing.errors import LapwingError, TooManyRequests
from lapwing.server import problems
from lapwing.server.authentication import TokenBuckets, address_of, network_of
from lapwing.server.published_pages import PublishedPages, ReadablePage
from lapwing.server.service import Service

PREFIX: Final = "/published"
SECONDS: Final = 60
"""For how long a browser may keep a page."""
TIMES: Final = 10
"""Pages that an address may read, for each attempt to sign in: reading costs no hash."""
LONGEST: Final = 200
MISSING: Final = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
    '<meta name="viewport" content="width=device-width, initial-scale=1"><title>No such page</title></head>'
    "<body><main><h1>No such page</h1><p>This address is unknown, or the page was withdrawn.</p></main></body></html>"
)
NO_FRAME: Final = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


@final
class PublicPages:
    """The application below `/published`."""

    def __init__(self, service: Service) -> None:
        self._published: PublishedPages = service.published
        settings = service.settings
        rate = TIMES * settings.strangers / settings.workers
        self._readers = TokenBuckets(rate, max(1.0, 20 * rate))
        self._router = Router(
            [Route(f"{PREFIX}/{{address}}", self._page, methods=["GET"])],
            redirect_slashes=False,
            default=self._nowhere,
        )

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        """Answer one request."""
        await self._router(scope, receive, send)

    async def _page(self, request: Request) -> Response:
        request.scope["route"] = _NAMED  # for the log, which must not have an address
        try:
            self._readers.take(network_of(address_of(request)))
            last = request.path_params["address"]
            page = await run_in_threadpool(self._published.readable, last) if len(last) <= LONGEST else None
            return _missing() if page is None else await run_in_threadpool(_shown, page)
        except TooManyRequests as error:
            return problems.response(problems.problem_of(error), {"Retry-After": "1"})
        except LapwingError as error:
            return problems.response(problems.problem_of(error))

    async def _nowhere(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        await _missing()(scope, receive, send)


_NAMED: Final = Route(f"{PREFIX}/{{address}}", lambda request: _missing())


def _missing() -> Response:
    return HTMLResponse(MISSING, 404, {"Content-Security-Policy": NO_FRAME})


def _shown(page: ReadablePage) -> Response:
    from lapwing.documents.published.page import page_of, policy_of  # here: few services publish

    ancestors = " ".join(page.origins) or "'none'"
    headers = {
        "Content-Security-Policy": f"{policy_of(page.content)}; frame-ancestors {ancestors}",
        "Cache-Control": f"{'public' if page.listed else 'private'}, max-age={SECONDS}",
        "Referrer-Policy": "no-referrer",
    }
    if page.origins:
        headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    if not page.listed:
        headers["X-Robots-Tag"] = "noindex, nofollow"
    return HTMLResponse(page_of(page.content), headers=headers)

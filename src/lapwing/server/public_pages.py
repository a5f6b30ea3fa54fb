"""The pages below `/published` that anybody may read.

No request here is of somebody: no token or cookie is read, none is set, and no form is taken. A page is made of the
snapshot of one row of the store. An address that was never there and one that was withdrawn are answered alike.

`frame-ancestors` names the origins that the curator of the data set allows, for these pages only. Browsers ignore
`X-Frame-Options` where a policy has `frame-ancestors`. Every site may frame the sentence that there is no such page: a
frame of a withdrawn page then says so. It is the same for every address, so it tells nothing, and nothing in it can be
clicked. Which sites a withdrawn page was for is deleted with its address.

A browser asks for a page each time that it shows it (`no-cache`). It gets the bytes only if they have changed.
"""

from collections.abc import MutableMapping
from hashlib import sha256
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
TIMES: Final = 10
"""Pages that an address may read, for each attempt to sign in: reading costs no hash."""
LONGEST: Final = 200
FRAME: Final = "frame"
"""The query of an address with which a frame of another site asks for the shorter view."""
FOR_ANYONE: Final = {"Cross-Origin-Resource-Policy": "cross-origin"}


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
            if page is None:
                return _missing()
            framed = FRAME in request.query_params
            return await run_in_threadpool(_shown, page, request.headers.get("if-none-match", ""), framed=framed)
        except TooManyRequests as error:
            return problems.response(problems.problem_of(error), {"Retry-After": "1"})
        except LapwingError as error:
            return problems.response(problems.problem_of(error))

    async def _nowhere(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        await _missing()(scope, receive, send)


_NAMED: Final = Route(f"{PREFIX}/{{address}}", lambda request: _missing())


def _missing() -> Response:
    from lapwing.documents.published.missing import missing_page  # here: few services publish
    from lapwing.documents.published.page import policy

    return HTMLResponse(
        missing_page(), 404, {"Content-Security-Policy": f"{policy()}; frame-ancestors *", **FOR_ANYONE}
    )


def _shown(page: ReadablePage, held: str, *, framed: bool) -> Response:
    """Return a page, or that what a browser holds is still it.

    Args:
        held: The `If-None-Match` of the request.
        framed: Whether the shorter view is asked for.
    """
    from lapwing.documents.published.page import page_of, policy_of  # here: few services publish

    shown = page_of(page.content, framed=framed)
    ancestors = " ".join(page.origins) or "'none'"
    rules = f"{policy_of(page.content)}; frame-ancestors {ancestors}"
    tag = f'W/"{sha256(f"{rules}{shown}".encode()).hexdigest()[:32]}"'
    headers = {
        "Content-Security-Policy": rules,
        "Cache-Control": f"{'public' if page.listed else 'private'}, no-cache",
        "ETag": tag,
        "Referrer-Policy": "no-referrer",
    }
    if page.origins:
        headers |= FOR_ANYONE
    if not page.listed:
        headers["X-Robots-Tag"] = "noindex, nofollow"
    if tag in (one.strip() for one in held.split(",")):
        return Response(status_code=304, headers=headers)
    return HTMLResponse(shown, headers=headers)

"""A relay over HTTP: the task, the page for whoever answers, and the place for envelopes. Requests are not logged."""

from importlib.resources import files
from pathlib import Path
from typing import Final

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from lapwing.collector.rates import RequestRates
from lapwing.errors import NotFound, TooManyRequests
from lapwing.secure import serving
from lapwing.secure.relay import Relay
from lapwing.secure.replies import Handler, body_of, json_reply, told

MOST_BODY: Final = 1 << 22
FILES: Final = {
    "": ("lapwing.secure", "browser/answer.html", "text/html"),
    "answer.mjs": ("lapwing.secure", "browser/answer.mjs", "text/javascript"),
    "lapwing-secure.mjs": ("lapwing.secure", "browser/lapwing-secure.mjs", "text/javascript"),
    "answer.css": ("lapwing.collector", "pages/survey.css", "text/css"),  # the look of all pages for respondents
}
_MOST_CONNECTIONS: Final = 2000
HEADERS: Final = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


def application(relay: Relay, rate: float = 0) -> Starlette:
    """Return the routes of a relay: below /secure/DIGEST.

    Args:
        rate: Requests with answers a second that one address may make; 0 for no limit.
    """
    rates = RequestRates(rate)
    base = f"/secure/{relay.task.digest}"
    static = {
        name: (files(package).joinpath(path).read_text(encoding="utf-8"), kind)
        for name, (package, path, kind) in FILES.items()
    }

    async def task(_: Request) -> Response:
        return _response(relay.task.to_text(), "application/json")

    async def file(request: Request) -> Response:
        return _response(*static[request.url.path.rpartition("/")[2]])

    async def progress(_: Request) -> Response:
        return json_reply({"waiting": await run_in_threadpool(relay.progress)}, headers=HEADERS)

    async def answers(request: Request) -> Response:
        wait = rates.wait(request.client.host if request.client else "")
        if wait:
            refused = {"code": TooManyRequests.code, "detail": f"Too many requests; wait {wait} s. Nothing was taken."}
            return json_reply(refused, 429, {**HEADERS, "retry-after": str(wait)})
        body = await body_of(request, MOST_BODY)
        return json_reply({"new": await run_in_threadpool(relay.take, body)}, headers=HEADERS)

    return Starlette(
        routes=[
            Route(f"{base}/task", _told(task), methods=["GET"]),
            *(Route(f"{base}/{name}", _told(file), methods=["GET"]) for name in FILES),
            Route(f"{base}/progress", _told(progress), methods=["GET"]),
            Route(f"{base}/answers", _told(answers), methods=["POST"]),
            Route("/{path:path}", _told(_nothing), methods=["GET", "POST"]),
        ]
    )


def configured(
    relay: Relay, *, host: str, port: int, rate: float = 0, certificate: Path | None = None, key: Path | None = None
) -> uvicorn.Config:
    """Return how a relay is served."""
    return serving.configured(
        application(relay, rate),
        host=host,
        port=port,
        most_connections=_MOST_CONNECTIONS,
        idle_seconds=10,
        certificate=certificate,
        key=key,
    )


def _told(handler: Handler) -> Handler:
    return told(handler, "The relay failed; nothing was taken.", HEADERS)


async def _nothing(_: Request) -> Response:
    return json_reply({"code": NotFound.code, "detail": "This relay has no such task."}, 404, HEADERS)


def _response(text: str, kind: str, status: int = 200) -> Response:
    return Response(text, status, HEADERS, media_type=kind)

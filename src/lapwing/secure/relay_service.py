"""A relay over HTTP: the task, the page for whoever answers, and the place for envelopes. Requests are not logged."""

import json
import signal
from collections.abc import Awaitable, Callable
from importlib.resources import files
from pathlib import Path
from typing import Final

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from lapwing.errors import Fault, InvalidParameter, LapwingError, NotFound
from lapwing.secure.relay import Relay

MOST_BODY: Final = 1 << 22
FILES: Final = {
    "": ("lapwing.secure", "browser/answer.html", "text/html"),
    "answer.mjs": ("lapwing.secure", "browser/answer.mjs", "text/javascript"),
    "lapwing-secure.mjs": ("lapwing.secure", "browser/lapwing-secure.mjs", "text/javascript"),
    "answer.css": ("lapwing.collector", "pages/survey.css", "text/css"),  # the look of all pages for respondents
}
_MOST_CONNECTIONS: Final = 2000
_STATUS: Final = {2: 400, 3: 409, 4: 403, 5: 401}
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
Handler = Callable[[Request], Awaitable[Response]]


def application(relay: Relay) -> Starlette:
    """Return the routes of a relay: below /secure/DIGEST."""
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
        return _json({"waiting": await run_in_threadpool(relay.progress)})

    async def answers(request: Request) -> Response:
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > MOST_BODY:
                raise InvalidParameter(f"A body has {MOST_BODY:,} bytes at most; send several.")
        return _json({"new": await run_in_threadpool(relay.take, bytes(body))})

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
    relay: Relay, *, host: str, port: int, certificate: Path | None = None, key: Path | None = None
) -> uvicorn.Config:
    """Return how a relay is served."""
    return uvicorn.Config(
        application(relay),
        host=host,
        port=port,
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=10,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )


def run(config: uvicorn.Config) -> None:
    """Serve until the process is told to end.

    Raises: KeyboardInterrupt when all is closed.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # uvicorn raises it again when all is closed
    uvicorn.Server(config).run()


def _told(handler: Handler) -> Handler:
    async def handle(request: Request) -> Response:
        try:
            return await handler(request)
        except LapwingError as error:
            return _json({"code": error.code, "detail": str(error)}, _STATUS.get(error.exit_status, 500))
        except Exception:
            return _json({"code": Fault.code, "detail": "The relay failed; nothing was taken."}, 500)

    return handle


async def _nothing(_: Request) -> Response:
    return _json({"code": NotFound.code, "detail": "This relay has no such task."}, 404)


def _json(document: object, status: int = 200) -> Response:
    return _response(json.dumps(document), "application/json", status)


def _response(text: str, kind: str, status: int = 200) -> Response:
    return Response(text, status, HEADERS, media_type=kind)

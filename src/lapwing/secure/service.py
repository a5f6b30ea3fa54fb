"""One server over HTTPS: the routes of `adding.AddingServer`, and how they are served.

Nothing that a client sent stands in any log or message: requests are not logged, and messages are those of
`lapwing.errors`, which have public facts only.
"""

from pathlib import Path
from typing import Final

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from lapwing.errors import NotFound
from lapwing.secure import serving
from lapwing.secure.adding import AddingServer
from lapwing.secure.identity import CERTIFICATE, KEY
from lapwing.secure.noise_rounds import SET_BYTES, message_sizes
from lapwing.secure.replies import Handler, body_of, json_reply, require_key, told
from lapwing.secure.wire import ID_BYTES

MOST_BODY: Final = 1 << 24
_MOST_CONNECTIONS: Final = 512
_BYTES: Final = "application/octet-stream"


def application(server: AddingServer, close_key: str) -> Starlette:
    """Return the routes of a server.

    Args:
        close_key: The digest of the key of whoever may close the task.
    """
    task = server.task

    async def parts(request: Request) -> Response:
        body = await body_of(request, MOST_BODY)
        return json_reply({"new": await run_in_threadpool(server.take, body)})

    async def sealed(request: Request) -> Response:
        body = await body_of(request, MOST_BODY)
        new, wrong = await run_in_threadpool(server.take_sealed, body)
        return json_reply({"new": new, "wrong": wrong})

    async def progress(_: Request) -> Response:
        clients, frozen = await run_in_threadpool(server.progress)
        return json_reply({"clients": clients, "closed": frozen})

    async def freeze(request: Request) -> Response:
        require_key(request, close_key)
        return Response(await run_in_threadpool(server.freeze), media_type=_BYTES)

    async def nonce(request: Request) -> Response:
        require_key(request, close_key)
        return Response(await run_in_threadpool(server.nonce), media_type=_BYTES)

    async def test(request: Request) -> Response:
        require_key(request, close_key)
        body = await body_of(request, MOST_BODY + ID_BYTES * task.most_clients)
        return Response(await run_in_threadpool(server.test, body), media_type=_BYTES)

    messages = sum(message_sizes(task)) if task.joint else 0

    async def noise(request: Request) -> Response:
        require_key(request, close_key)
        body = await body_of(request, SET_BYTES + messages)
        return Response(await run_in_threadpool(server.noise, body), media_type=_BYTES)

    async def release(request: Request) -> Response:
        require_key(request, close_key)
        body = await body_of(request, messages + ID_BYTES * task.most_clients)
        released = await run_in_threadpool(server.release, body)
        return Response(released.to_text(), media_type="application/json")

    async def released(_: Request) -> Response:
        found = await run_in_threadpool(server.released)
        if found is None:
            raise NotFound("The task is not closed yet: there is no result.")
        return Response(found.to_text(), media_type="application/json")

    base = f"/v1/{task.digest}"
    return Starlette(
        routes=[
            Route(base, _told(progress), methods=["GET"]),
            Route(f"{base}/parts", _told(parts), methods=["POST"]),
            Route(f"{base}/sealed", _told(sealed), methods=["POST"]),
            Route(f"{base}/freeze", _told(freeze), methods=["POST"]),
            Route(f"{base}/nonce", _told(nonce), methods=["POST"]),
            Route(f"{base}/test", _told(test), methods=["POST"]),
            Route(f"{base}/noise", _told(noise), methods=["POST"]),
            Route(f"{base}/release", _told(release), methods=["POST"]),
            Route(f"{base}/release", _told(released), methods=["GET"]),
            Route("/{path:path}", _told(_no_such_task), methods=["GET", "POST"]),
        ]
    )


def configured(server: AddingServer, folder: Path, name: str, host: str, port: int) -> uvicorn.Config:
    """Return how a server is served.

    Args:
        folder: The server's own, with its key.
        name: Of the server, in the task.
    """
    return served(application(server, server.task.server(name).close_key), folder, host, port)


def served(routes: Starlette, folder: Path, host: str, port: int) -> uvicorn.Config:
    """Return how the routes of a server are served, with the key of its folder."""
    return serving.configured(
        routes,
        host=host,
        port=port,
        most_connections=_MOST_CONNECTIONS,
        idle_seconds=5,
        certificate=folder / CERTIFICATE,
        key=folder / KEY,
    )


def _told(handler: Handler) -> Handler:
    return told(handler, "The server failed; nothing was released.")


async def _no_such_task(_: Request) -> Response:
    return json_reply({"code": NotFound.code, "detail": "This server has no such task."}, 404)

"""One server of a task that repeats, over HTTPS: each day has the routes of a task of its own."""

import json

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from lapwing.errors import NotFound
from lapwing.secure.repeating_server import RepeatingServer
from lapwing.secure.replies import Handler, body_of, json_reply, require_key, told
from lapwing.secure.service import MOST_BODY
from lapwing.secure.wire import ID_BYTES


def application(server: RepeatingServer, close_key: str) -> Starlette:
    """Return the routes of a server.

    Args:
        close_key: The digest of the key of whoever may close days.
    """
    days = {task.digest: day for day, task in server.day_tasks().items()}

    def day_of(request: Request) -> int:
        day = days.get(request.path_params["digest"])
        if day is None:
            raise NotFound("This server has no such task.")
        return day

    async def parts(request: Request) -> Response:
        body = await body_of(request, MOST_BODY)
        return json_reply({"new": await run_in_threadpool(server.take, day_of(request), body)})

    async def progress(request: Request) -> Response:
        clients, frozen = await run_in_threadpool(server.progress, day_of(request))
        return json_reply({"clients": clients, "closed": frozen})

    async def freeze(request: Request) -> Response:
        require_key(request, close_key)
        return Response(await run_in_threadpool(server.freeze, day_of(request)), media_type="application/octet-stream")

    async def release(request: Request) -> Response:
        require_key(request, close_key)
        body = await body_of(request, ID_BYTES * server.task.most_clients)
        released = await run_in_threadpool(server.release, day_of(request), body)
        return Response(released.to_text(), media_type="application/json")

    async def released(request: Request) -> Response:
        found = await run_in_threadpool(server.released, day_of(request))
        if found is None:
            raise NotFound("The day is not closed yet: there is no result.")
        return Response(found.to_text(), media_type="application/json")

    async def releases(_: Request) -> Response:
        texts = await run_in_threadpool(server.releases)
        return json_reply({"days": [json.loads(text) for text in texts]})

    async def no_such_task(_: Request) -> Response:
        raise NotFound("This server has no such task.")

    each = "/v1/{digest}"
    return Starlette(
        routes=[
            Route(f"/v1/{server.task.digest}/days", _told(releases), methods=["GET"]),
            Route(each, _told(progress), methods=["GET"]),
            Route(f"{each}/parts", _told(parts), methods=["POST"]),
            Route(f"{each}/freeze", _told(freeze), methods=["POST"]),
            Route(f"{each}/release", _told(release), methods=["POST"]),
            Route(f"{each}/release", _told(released), methods=["GET"]),
            Route("/{path:path}", _told(no_such_task), methods=["GET", "POST"]),
        ]
    )


def _told(handler: Handler) -> Handler:
    return told(handler, "The server failed; nothing was released.")

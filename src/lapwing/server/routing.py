"""What routes are declared by: a router, the service that a request is for, and who sends it, with which right.

Routes are declared at module level and built when they are first used. FastAPI builds a route when it is declared: it
reads the signature, and makes a validator of every parameter, body and response. Of all 93 that takes 160 ms of a
processor, a twentieth of a start. Most requests go to few of them. See docs/decisions/fastapi.md.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from threading import Lock
from typing import Annotated, Any, Final, final

from fastapi import APIRouter, Depends, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.params import Depends as Dependency
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute, compile_path
from starlette.types import Receive, Scope, Send

from lapwing.documents.people_document import Right
from lapwing.server import problems
from lapwing.server.people import Caller
from lapwing.server.service import Service

PROBLEMS: Final[dict[int | str, dict[str, Any]]] = {"4XX": problems.DESCRIBED, "5XX": problems.DESCRIBED}
_BUILDING: Final = Lock()


def service_of(request: Request) -> Service:
    """Return the service that a request is for: that of the application which answers it."""
    service: Service = request.app.state.service
    return service


async def _of_service(request: Request) -> Service:
    return service_of(request)  # in no thread, as FastAPI runs what is not async


def _demand(*rights: Right) -> Any:
    """Return what a route depends on: who asks, with one of these rights, at the data set of the path if it has one.

    In a thread if the people are in a database, and else at once, which saves two changes of threads.
    """

    async def demanded(request: Request) -> Caller:
        service = service_of(request)
        recognise = service.callers.recognise(*rights)
        return recognise(request) if service.people.is_local else await run_in_threadpool(recognise, request)

    return Depends(demanded)


def _anybody(request: Request) -> Caller:
    return service_of(request).callers.caller(request)


OfService = Annotated[Service, Depends(_of_service)]
ANYBODY: Final[Any] = Depends(_anybody)
READER, ASKER, AUDITOR, CURATOR = (_demand(right) for right in ("read", "ask", "audit", "admin"))
OVERSEER: Final = _demand("audit", "admin")
"""One of two rights: to see what curators decided about people and access."""


@final
class PostponedRoute(APIRoute):
    """A route that knows its path and methods, and all else from its first request on.

    A subclass, as FastAPI takes routes of another kind (`route_class`) in no other way. Whoever reads more of it than
    path and methods calls `build` before.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        self._options, self.is_built = options, False
        self.path, self.endpoint = path, endpoint
        self.methods = set(options["methods"] or ("GET",))
        self.path_regex, self.path_format, self.param_convertors = compile_path(path)

    def build(self) -> None:
        """Build all of it, unless it is; one thread at a time: a half-built route would have no guards."""
        with _BUILDING:
            if not self.is_built:
                super().__init__(self.path, self.endpoint, **self._options)
                self.is_built = True

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        self.build()
        await super().handle(scope, receive, send)


def new_router(prefix: str = "", tags: Sequence[str] = (), dependencies: Sequence[Dependency] = ()) -> APIRouter:
    """Return a router without routes, of which each may answer with a problem."""
    of_fastapi: list[str | Enum] = [*tags]
    return APIRouter(
        prefix=prefix, tags=of_fastapi, dependencies=dependencies, responses=PROBLEMS, route_class=PostponedRoute
    )


def build(routes: Iterable[BaseRoute]) -> None:
    """Build all routes."""
    for route in routes:
        if isinstance(route, PostponedRoute):
            route.build()

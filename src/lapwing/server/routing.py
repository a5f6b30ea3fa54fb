"""Routes that are built when they are first used.

FastAPI builds a route when it is declared: it reads the signature, and makes a validator of every parameter, body and
response. Of eighty routes that takes longer than all the rest of a start, and most requests go to few of them.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from threading import Lock
from typing import Any, Final, final

from fastapi import APIRouter
from fastapi.params import Depends
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute, compile_path
from starlette.types import Receive, Scope, Send

from lapwing.server import problems

PROBLEMS: Final[dict[int | str, dict[str, Any]]] = {"4XX": problems.DESCRIBED, "5XX": problems.DESCRIBED}
_BUILDING: Final = Lock()


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


def new_router(prefix: str = "", tags: Sequence[str] = (), dependencies: Sequence[Depends] = ()) -> APIRouter:
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

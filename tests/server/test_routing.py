"""Routes are built when they are first used, and all of them when they are described."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fastapi import FastAPI, Response

from lapwing.server.application import DividedApplication, application, description
from lapwing.server.routing import OfService, PostponedRoute, new_router
from tests.support.server.world import World


def programs(world: World) -> FastAPI:
    return cast(DividedApplication, application(world.service, world.address)._inner).programs


def status_of(service: OfService) -> Response:
    """Answer with the status that the service is made with."""
    return Response(status_code=service.status)  # type: ignore[attr-defined]


def built(app: FastAPI) -> set[str]:
    """Return the paths of the routes that are built; those of a file are, once for all applications of a process."""
    return {route.path for route in app.routes if isinstance(route, PostponedRoute) and route.is_built}


def asked(app: FastAPI, method: str, path: str) -> int:
    """Return the status of what is answered to a request without a body."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(dict(message))

    scope = {"type": "http", "method": method, "path": path, "query_string": b"", "headers": [], "state": {}}
    asyncio.run(app(scope, receive, send))
    return int(sent[0]["status"])


def test_a_request_builds_its_route_alone() -> None:
    app, router = FastAPI(openapi_url=None, docs_url=None, redoc_url=None), new_router()
    for path in ("/one", "/other"):
        router.add_api_route(path, lambda: None)
    app.router.routes.extend(router.routes)
    assert built(app) == set()
    assert asked(app, "GET", "/one") == 200
    assert asked(app, "GET", "/one") == 200
    assert built(app) == {"/one"}
    assert asked(app, "GET", "/nowhere") == 404
    assert built(app) == {"/one"}


def test_each_application_asks_its_own_service() -> None:
    """Routes are declared once for a process; the service is that of the application which a request came to."""
    router, apps = new_router(), []
    router.add_api_route("/status", status_of, response_class=Response)
    for status in (201, 202):
        app = FastAPI(openapi_url=None)
        app.state.service = SimpleNamespace(status=status)
        app.router.routes.extend(router.routes)
        apps.append(app)
    assert [asked(app, "GET", "/status") for app in apps] == [201, 202]


@pytest.mark.long
def test_the_description_builds_all(shared: World) -> None:
    app = programs(shared)
    described = description(app)["paths"]
    assert len(described) > 50
    assert built(app) >= described.keys()
    assert all(route.is_built for route in app.routes if isinstance(route, PostponedRoute))
    assert {"4XX", "5XX"} <= described["/healthz"]["get"]["responses"].keys()

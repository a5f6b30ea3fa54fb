"""Routes are built when they are first used, and all of them when they are described."""

import asyncio
from typing import Any, cast

import pytest
from fastapi import FastAPI

from lapwing.server.application import DividedApplication, application
from lapwing.server.routing import PostponedRoute
from tests.support.server.world import World


def programs(world: World) -> FastAPI:
    return cast(DividedApplication, application(world.service, world.address)._inner).programs


def built(app: FastAPI) -> set[str]:
    """Return the paths of the routes that are built."""
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


def test_a_request_builds_its_route_alone(shared: World) -> None:
    app = programs(shared)
    assert built(app) == set()
    assert asked(app, "GET", "/healthz") == 200
    assert asked(app, "GET", "/healthz") == 200
    assert built(app) == {"/healthz"}
    assert asked(app, "GET", "/nowhere") == 404
    assert built(app) == {"/healthz"}


@pytest.mark.long
def test_the_description_builds_all(shared: World) -> None:
    app = programs(shared)
    described = app.openapi()["paths"]
    assert len(described) > 50
    assert built(app) >= described.keys()
    assert all(route.is_built for route in app.routes if isinstance(route, PostponedRoute))
    assert {"4XX", "5XX"} <= described["/healthz"]["get"]["responses"].keys()

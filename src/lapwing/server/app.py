"""The application: the routes, their errors, and what is around them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache, partial
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from lapwing import __version__
from lapwing.server import curating, pages, pending_routes, people_routes, problems, questions, results, steward_routes
from lapwing.server.asking import KnownProblem
from lapwing.server.codes import codes
from lapwing.server.envelope import Envelope
from lapwing.server.service import Service

ABOUT: Final = (
    "Ask SQL questions of sensitive tables, and get noisy answers with error bars, a price and a budget. Every request "
    "but the login and `/healthz` takes a token, sent as `Authorization: Bearer`. Errors are problem documents (RFC "
    "9457) with a stable `code`."
)
BEARER: Final = {"bearer": {"type": "http", "scheme": "bearer"}}
OPEN: Final = ("/v1/login", "/healthz")


def application(service: Service, address: str) -> Envelope:
    """Return the application of a service, which it closes when it ends.

    Args: address: at which callers find it, for the page that tells them.
    """

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        service.settling.start()
        yield
        service.close()

    app = FastAPI(
        title="Lapwing",
        version=__version__,
        description=ABOUT,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # its redirects would lead to whatever host the request names
        lifespan=lifespan,
        responses={"4XX": problems.DESCRIBED, "5XX": problems.DESCRIBED},
    )
    problems.install(app)

    @app.exception_handler(KnownProblem)
    async def known(request: Request, error: KnownProblem) -> JSONResponse:
        return problems.response(error.document)

    for routes in (
        questions.routes(service),
        pending_routes.routes(service),
        people_routes.routes(service),
        curating.routes(service),
        steward_routes.routes(service),
    ):
        app.include_router(routes)
    app.include_router(pages.routes(app, service, address))
    # Made when it is first asked for: it takes as long as all the rest of a start.
    app.openapi = cache(partial(_description, app))  # type: ignore[method-assign]
    settings = service.settings
    return Envelope(app, service.metrics, most_bytes=settings.most_bytes, seconds=settings.request_seconds)


def _description(app: FastAPI) -> dict[str, Any]:
    """Return the description, with what FastAPI does not know: tokens, problems with their codes, what is answered."""
    document = FastAPI.openapi(app)
    components = document.setdefault("components", {})
    components["securitySchemes"] = BEARER
    components.setdefault("schemas", {}).update({"Problem": problems.SCHEMA, **results.DOCUMENTS})
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if path not in OPEN:
                operation["security"] = [{"bearer": []}]
            operation["x-codes"] = list(codes(method.upper(), path, operation))
            named = results.ANSWERED_BY.get(f"{method.upper()} {path}")
            if named is not None:
                _answer_of(operation)["application/json"] = {"schema": results.reference(named)}
    return document


def _answer_of(operation: dict[str, Any]) -> dict[str, Any]:
    """Return what a request is answered with if all goes well, by media type."""
    (status,) = (status for status in operation["responses"] if status.startswith("2"))
    content: dict[str, Any] = operation["responses"][status].setdefault("content", {})
    return content

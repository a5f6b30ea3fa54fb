"""The application: the routes, their errors, and what is around them."""

from collections.abc import AsyncIterator, Callable, MutableMapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, final

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from lapwing import __version__
from lapwing.server import (
    access_request_routes,
    account_routes,
    catalog_routes,
    dataset_routes,
    default_cost_routes,
    documentation,
    holdout_routes,
    invite_routes,
    job_routes,
    monitor_routes,
    people_routes,
    preparation_routes,
    problems,
    published_routes,
    question_routes,
    release_routes,
    saved_routes,
    simulation_routes,
    synthesis_routes,
    upload_routes,
)
from lapwing.server.direct_questions import DirectQuestions
from lapwing.server.execution import RepeatedProblem
from lapwing.server.middleware import Application, RequestMiddleware
from lapwing.server.public_pages import PREFIX, PublicPages
from lapwing.server.routing import build
from lapwing.server.service import Service
from lapwing.server.uploads.refused import UploadRefused

if TYPE_CHECKING:
    from lapwing.server.console.app import Console

ABOUT: Final = (
    "Ask SQL questions of sensitive tables, and get noisy results with error bars, a cost and a budget. Every request "
    "but the login, the use of an invite, `/healthz` and `/readyz` takes a token, sent as `Authorization: Bearer`. "
    "Errors are problem documents (RFC 9457) with a stable `code`."
)
BEARER: Final = {"bearer": {"type": "http", "scheme": "bearer"}}
PAGES: Final = "/console"
"""Where the pages for people are; all else is for programs."""
STREAMED: Final = {("PUT", upload_routes.PATH): "", ("POST", f"{PAGES}/register/upload"): "multipart/form-data"}
"""Requests that carry a file and read it in pieces; of a form, only one that can hold a file."""
ROUTES: Final = (
    question_routes,
    job_routes,
    people_routes,
    invite_routes,
    account_routes,
    dataset_routes,
    access_request_routes,
    default_cost_routes,
    catalog_routes,
    preparation_routes,
    monitor_routes,
    holdout_routes,
    saved_routes,
    published_routes,
    release_routes,
    simulation_routes,
    synthesis_routes,
    upload_routes,
)
OPEN: Final = ("/v1/login", "/v1/invites/accept", "/healthz", "/readyz")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DividedApplication:
    """The requests of programs, of which `questions` answers what it can, and the pages for people.

    The console is made with the first request for it. Anybody may read `public`.
    """

    programs: FastAPI
    questions: Application
    people: "Callable[[], Console]"
    public: PublicPages

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        """Serve one request."""
        path = scope.get("path", "")
        inner: Application = self.questions
        if path == PAGES or path.startswith(f"{PAGES}/"):
            inner = self.people()
        elif path.startswith(f"{PREFIX}/"):
            inner = self.public
        await inner(scope, receive, send)


def application(
    service: Service,
    address: str,
    *,
    encrypted: bool = False,
    beside: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
) -> RequestMiddleware:
    """Return the application of a service, which it closes when it ends.

    Args:
        address: At which callers find it, for the pages that tell them.
        encrypted: Whether it speaks TLS itself.
        beside: Opens what is served besides HTTP, for as long as the service runs.
    """

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        service.start()
        async with beside():
            yield
        service.close()

    app = FastAPI(
        title="Lapwing",
        version=__version__,
        description=ABOUT,
        docs_url=None,
        openapi_url=None,  # its route would take whatever query parameters are sent
        redoc_url=None,
        redirect_slashes=False,  # its redirects would lead to whatever host the request names
        lifespan=lifespan,
    )

    @cache
    def described() -> dict[str, Any]:  # when it is first asked for: it takes as long as all the rest of a start
        return description(app)

    problems.install(app, described)

    @app.exception_handler(RepeatedProblem)
    async def known(request: Request, error: RepeatedProblem) -> JSONResponse:
        return problems.response(error.document)

    @app.exception_handler(UploadRefused)
    async def not_stored(request: Request, error: UploadRefused) -> JSONResponse:
        return problems.response(error.document)

    app.state.service = service
    for router in (*(group.router for group in ROUTES), documentation.routes(described, service, address)):
        app.router.routes.extend(router.routes)  # as they are: FastAPI builds those of an included router once more
    settings = service.settings

    @cache
    def console() -> "Console":
        from lapwing.server.console.app import Console  # here: who serves programs alone needs no pages

        return Console(service, app, address, secure=address.startswith("https://"))

    return RequestMiddleware(
        DividedApplication(
            programs=app, questions=DirectQuestions(service, app), people=console, public=PublicPages(service)
        ),
        service.metrics,
        most_bytes=settings.most_bytes,
        seconds=settings.request_seconds,
        encrypted=encrypted,
        streamed=STREAMED,
        hosts=settings.hosts,
    )


def description(app: FastAPI) -> dict[str, Any]:
    """Return the description of an application as OpenAPI, with tokens, and problems with all of their codes."""
    build(app.routes)
    document = app.openapi()
    components = document.setdefault("components", {})
    components["securitySchemes"] = BEARER
    components.setdefault("schemas", {})["Problem"] = problems.SCHEMA
    for path, methods in document["paths"].items():
        for operation in methods.values():
            if path not in OPEN:
                operation["security"] = [{"bearer": []}]
            operation["x-codes"] = problems.codes(path, operation)
    return document

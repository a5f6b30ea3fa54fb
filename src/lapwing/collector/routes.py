"""The collector over HTTP: tasks, reports, estimates, and the page for respondents.

No route sets a cookie or writes an address anywhere. The page takes scripts and styles from here alone, and its policy
says so to the browser.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files
from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from lapwing.collector.collector import Collector
from lapwing.collector.rates import RequestRates
from lapwing.collector.survey_page import survey_page, texts_of
from lapwing.collector.task_list import task_list
from lapwing.errors import Fault, InvalidParameter, LapwingError, NotFound, QueryRefused, TooManyRequests
from lapwing.languages import language_for

MOST_BODY: Final = 1 << 23
SECONDS: Final = 30.0
"""For a request's body to arrive."""
HEADERS: Final = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
}
STATUS: Final[Mapping[type[LapwingError], int]] = {
    InvalidParameter: 422, QueryRefused: 409, NotFound: 404, TooManyRequests: 429, Fault: 503,
}  # fmt: skip
FILES: Final = {
    "survey.mjs": ("lapwing.collector", "pages/survey.mjs", "text/javascript"),
    "survey.css": ("lapwing.collector", "pages/survey.css", "text/css"),
    "lapwing-local.mjs": ("lapwing.local", "browser/lapwing-local.mjs", "text/javascript"),
}
Handler = Callable[[Request], Awaitable[Response]]


def collector_routes(collectors: Mapping[str, Collector], rates: RequestRates, base: str = "/local") -> list[Route]:
    """Return the routes of collectors, by the ids of their tasks."""
    static = {name: (_text(package, path), kind) for name, (package, path, kind) in FILES.items()}
    page, texts = _text("lapwing.collector", "pages/survey.html"), texts_of(static["survey.mjs"][0])
    listing = _text("lapwing.collector", "pages/tasks.html")

    def collector(request: Request) -> Collector:
        found = collectors.get(request.path_params["task"])
        if found is None:
            raise NotFound("There is no such task here.")
        return found

    async def tasks(request: Request) -> Response:
        if "text/html" in request.headers.get("accept", ""):  # a browser; programs that ask for anything get JSON
            language = language_for(request.headers.get("accept-language", ""))
            return _response(task_list(listing, collectors.values(), language), "text/html")
        each = [{"id": one.task.id, "question": one.task.question, "closed": one.closed} for one in collectors.values()]
        return _json({"tasks": each})

    async def survey(request: Request) -> Response:
        collector(request)
        language = language_for(request.headers.get("accept-language", ""))
        return _response(survey_page(page, texts, language), "text/html")

    async def without_slash(request: Request) -> Response:
        return RedirectResponse(f"{base}/{collector(request).task.id}/", headers=HEADERS)

    async def task(request: Request) -> Response:
        return _json(collector(request).task.document)

    async def status(request: Request) -> Response:
        return _json(await asyncio.to_thread(lambda: collector(request).status))

    async def estimate(request: Request) -> Response:
        found, confidence = collector(request), _confidence(request)
        rows = await asyncio.to_thread(found.estimate, confidence)
        whole = await asyncio.to_thread(lambda: found.status)
        return _json({**whole, "whom": "population", "confidence": confidence, "estimates": rows})

    async def reports(request: Request) -> Response:
        found = collector(request)
        wait = rates.wait(request.client.host if request.client else "")
        if wait:
            return _error(
                TooManyRequests(
                    f"Too many requests; wait {wait} s, or send several reports in one. Nothing was taken."
                ),
                {"retry-after": str(wait)},
            )
        found.require_open()
        receipt = await asyncio.wrap_future(found.bring(await _body(request)))
        return _json(receipt.document)

    async def file(request: Request) -> Response:
        return _response(*static[request.url.path.rpartition("/")[2]])

    return [
        Route(f"{base}/", _told(tasks)),
        *(Route(f"{base}/{name}", _told(file)) for name in static),
        Route(base + "/{task:str}", _told(without_slash)),
        Route(base + "/{task:str}/", _told(survey)),
        Route(base + "/{task:str}/task", _told(task)),
        Route(base + "/{task:str}/status", _told(status)),
        Route(base + "/{task:str}/estimate", _told(estimate)),
        Route(base + "/{task:str}/reports", _told(reports), methods=["POST"]),
    ]


def _told(handler: Handler) -> Handler:
    """Return a handler whose errors become messages: ours as they are, any other as one constant text."""

    async def handle(request: Request) -> Response:
        try:
            return await handler(request)
        except LapwingError as error:
            return _error(error, {})
        except Exception:
            return _error(Fault("The collector failed; nothing was taken."), {})

    return handle


async def _body(request: Request) -> bytes:
    """Return a request's body.

    Raises:
        InvalidParameter: As soon as it is too long, or if it is too slow.
    """
    body = bytearray()
    try:
        async with asyncio.timeout(SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MOST_BODY:
                    raise InvalidParameter(f"A request has {MOST_BODY:,} bytes at most; send several.")
    except TimeoutError:
        raise InvalidParameter(f"The request did not arrive within {SECONDS:g} seconds.") from None
    return bytes(body)


def _confidence(request: Request) -> float:
    try:
        confidence = float(request.query_params.get("confidence", "0.95"))
    except ValueError:
        confidence = 0.0
    if not 0 < confidence < 1:
        raise InvalidParameter("confidence must be above 0 and below 1, such as 0.95.")
    return confidence


def _error(error: LapwingError, headers: Mapping[str, str]) -> Response:
    status = next((status for kind, status in STATUS.items() if isinstance(error, kind)), 500)
    document = {"code": error.code, "detail": str(error), "status": status}
    if isinstance(error, QueryRefused):
        document["cause"] = error.cause.value
    return Response(json.dumps(document), status, {**HEADERS, **headers}, media_type="application/problem+json")


def _json(document: object) -> Response:
    return Response(json.dumps(document, ensure_ascii=False), headers=HEADERS, media_type="application/json")


def _response(text: str, kind: str) -> Response:
    return Response(text, headers=HEADERS, media_type=kind)


def _text(package: str, path: str) -> str:
    return files(package).joinpath(path).read_text(encoding="utf-8")

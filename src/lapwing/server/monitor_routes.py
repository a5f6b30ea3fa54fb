"""Routes of monitors: what they have released, as it is released, and events that are sent to them.

A monitor is made and run beside the service, by `lapwing monitor`. Here its file is read, and its inbox written.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic_core import to_json
from typing_extensions import TypedDict

from lapwing.documents.answer_document import AnswerDocument, answer_document
from lapwing.errors import InvalidParameter, NotFound, TooManyRequests
from lapwing.monitors.describing import described
from lapwing.monitors.monitor import Monitor, list_monitors, open_monitor
from lapwing.monitors.tick import Tick
from lapwing.server.people import Caller, missing
from lapwing.server.problems import may_raise
from lapwing.server.responses import LINES, described_by, json_response
from lapwing.server.service import Service

EVENT_STREAM: Final = "text/event-stream"
CONFIDENCE: Final = Fraction(95, 100)
MOST_TICKS: Final = 1_000
STREAMS: Final = 100
"""Streams at once; each holds a file open."""
STREAM_SECONDS: Final = 300.0
"""After which a stream ends, and whoever reads it asks again from where it ended."""
POLL: Final = 1.0
After = Annotated[int, Query(ge=0, le=1 << 30, description="The number of the tick after which the list begins.")]
Most = Annotated[int, Query(ge=1, le=MOST_TICKS, description="Ticks at most.")]
Consistent = Annotated[bool, Query(description="Counts that are not negative, with the same total, for raw ones.")]
EVENTS: Final = {
    "requestBody": {
        "required": True,
        "content": {
            LINES: {"schema": {"type": "string"}, "example": '{"id": "1", "person": 7, "at": "2026-03-02 08:00"}'}
        },
    }
}


class Fact(TypedDict):
    """What is public about a monitor, in words."""

    about: str
    fact: str


class MonitorDocument(TypedDict):
    """A monitor, and how it stands."""

    name: str
    state: str
    question: str
    ticks: int
    released: int
    facts: list[Fact]


class TickDocument(TypedDict):
    """What was released at a tick; its events happened from `begins` to `time`, UTC."""

    number: int
    begins: str
    time: str
    answer: AnswerDocument


class Taken(TypedDict):
    """How many events were taken, be they new or not."""

    events: int


def routes(service: Service) -> APIRouter:
    """Return the routes."""
    router = APIRouter(prefix="/v1/datasets/{dataset}/monitors", tags=["monitors"])
    reader, curator = Depends(service.callers.demand("read")), Depends(service.callers.demand("admin"))
    streams = [0]

    @contextmanager
    def opened(caller: Caller, dataset: str, monitor: str) -> Iterator[Monitor]:
        """Open a monitor of a data set that somebody may see."""
        catalog = service.datasets.visible(caller, dataset).session.catalog
        if monitor not in list_monitors(catalog):
            raise missing("monitor")
        with open_monitor(catalog, monitor) as found:
            yield found

    @router.get("", responses=described_by(list[MonitorDocument]))
    def list_all(dataset: str, caller: Caller = reader) -> Response:
        """List the monitors of a data set."""
        catalog = service.datasets.visible(caller, dataset).session.catalog
        documents = []
        for name in list_monitors(catalog):
            with open_monitor(catalog, name) as found:
                documents.append(_document(found))
        return json_response(documents)

    @router.get("/{monitor}", responses=described_by(MonitorDocument))
    def show(dataset: str, monitor: str, caller: Caller = reader) -> Response:
        """Show what a monitor asks and promises, and how it stands."""
        with opened(caller, dataset, monitor) as found:
            return json_response(_document(found))

    @router.get(
        "/{monitor}/ticks",
        responses=described_by(
            list[TickDocument], "Ticks, as JSON or as a stream, by the Accept header.", EVENT_STREAM
        ),
        openapi_extra=may_raise(TooManyRequests),
    )
    async def ticks(
        request: Request,
        dataset: str,
        monitor: str,
        caller: Caller = reader,
        after: After = 0,
        limit: Most = 100,
        consistent: Consistent = False,
    ) -> Response:
        """List what was released, in order; with `Accept: text/event-stream`, as it is released."""
        if request.headers.get("accept", "") != EVENT_STREAM:
            return await asyncio.to_thread(listed, caller, dataset, monitor, after, limit, consistent)
        last = request.headers.get("last-event-id", "")
        after = int(last) if last.isascii() and last.isdigit() and len(last) < 10 else after
        await asyncio.to_thread(require_there, caller, dataset, monitor)
        if streams[0] >= STREAMS:
            raise TooManyRequests(f"{STREAMS} streams are read already; ask for ticks without a stream, or later.")

        async def stream() -> AsyncIterator[bytes]:
            streams[0] += 1
            try:
                async for part in _streamed(lambda: opened(caller, dataset, monitor), after, consistent=consistent):
                    yield part
            finally:
                streams[0] -= 1

        return StreamingResponse(stream(), media_type=EVENT_STREAM)

    def listed(caller: Caller, dataset: str, monitor: str, after: int, limit: int, consistent: bool) -> Response:
        with opened(caller, dataset, monitor) as found:
            shown = [
                _tick(tick, consistent=consistent) for tick, _ in zip(found.ticks(after), range(limit), strict=False)
            ]
        return json_response(shown)

    def require_there(caller: Caller, dataset: str, monitor: str) -> None:
        with opened(caller, dataset, monitor):
            pass

    @router.post(
        "/{monitor}/events",
        responses=described_by(Taken),
        openapi_extra={**EVENTS, **may_raise(InvalidParameter)},
    )
    async def send(request: Request, dataset: str, monitor: str, caller: Caller = curator) -> Taken:
        """Take events, a JSON object a line, each with an `id`; one that came before of the same unit counts once."""
        body = await request.body()

        def sent() -> Taken:
            with opened(caller, dataset, monitor) as found:
                return {"events": found.send(_events(body)).events}

        return await asyncio.to_thread(sent)

    return router


def _events(body: bytes) -> list[dict[str, Any]]:
    try:
        lines = body.decode("utf-8").split("\n")
        return [json.loads(line) for line in lines if line.strip()]
    except (UnicodeError, ValueError, RecursionError):
        raise InvalidParameter("The body is no NDJSON: a JSON object a line, in UTF-8. Nothing was taken.") from None


def _document(found: Monitor) -> MonitorDocument:
    return {
        "name": found.name,
        "state": found.state(),
        "question": found.definition.text,
        "ticks": found.schedule.ticks,
        "released": found.released,
        "facts": [{"about": about, "fact": fact} for about, fact in described(found)],
    }


def _tick(tick: Tick, *, consistent: bool) -> TickDocument:
    return {
        "number": tick.number,
        "begins": tick.begins.isoformat(),
        "time": tick.time.isoformat(),
        "answer": answer_document(tick.consistent() if consistent else tick.answer, CONFIDENCE),
    }


async def _streamed(opening: Any, after: int, *, consistent: bool) -> AsyncIterator[bytes]:
    """Yield ticks as server-sent events, each with its number as `id`; a comment where there is nothing to be said."""
    seen, over = after, False
    until = asyncio.get_running_loop().time() + STREAM_SECONDS

    def look() -> tuple[list[bytes], int, bool]:
        parts, newest = [], seen
        with opening() as found:
            for tick, _ in zip(found.ticks(seen), range(MOST_TICKS), strict=False):
                newest = tick.number
                data = to_json(_tick(tick, consistent=consistent), inf_nan_mode="null").decode()
                parts.append(f"id: {newest}\nevent: tick\ndata: {data}\n\n".encode())
            return parts, newest, newest >= found.schedule.ticks

    while not over and asyncio.get_running_loop().time() < until:
        before = seen
        try:
            parts, seen, over = await asyncio.to_thread(look)
        except NotFound:
            return
        for part in parts:
            yield part
        if seen == before:
            yield b": nothing new\n\n"
            await asyncio.sleep(POLL)
    if over:
        yield b"event: end\ndata: {}\n\n"

"""Routes of monitors: what they have released, as it is released, and events that are sent to them.

A monitor is made and run beside the service, by `lapwing monitor`. Here its file is read, and its inbox written.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from typing import Annotated, Any, Final, final

from fastapi import Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import Field
from pydantic_core import to_json
from typing_extensions import TypedDict

from lapwing.documents.answer_document import AnswerDocument, answer_document
from lapwing.errors import CatalogMismatch, InvalidParameter, NotFound, QueryRefused, TooManyRequests
from lapwing.monitors.alerts import Alert
from lapwing.monitors.describing import described
from lapwing.monitors.monitor import Monitor, MonitorStatus, list_monitors, open_monitor, system_clock
from lapwing.monitors.tick import Tick
from lapwing.server.bodies import Body
from lapwing.server.dismissed_monitors import ENDED, DismissedMonitors
from lapwing.server.people import Caller, missing
from lapwing.server.problems import may_raise
from lapwing.server.responses import LINES, described_by, json_response
from lapwing.server.routing import CURATOR, READER, OfService, new_router
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
    """A monitor, and how it stands; pages and notices leave out a `dismissed` one."""

    name: str
    state: str
    status: MonitorStatus
    question: str
    ticks: int
    released: int
    facts: list[Fact]
    dismissed: bool


class TickDocument(TypedDict):
    """What was released at a tick; its events happened from `begins` to `time`, UTC."""

    number: int
    begins: str
    time: str
    answer: AnswerDocument


class Taken(TypedDict):
    """How many events were taken, be they new or not."""

    events: int


class AlertDocument(TypedDict):
    """When to say something: a `column` is `above`, or `below`, a number for so many `ticks` in a row."""

    name: str
    column: str
    above: float | None
    below: float | None
    ticks: int
    surely: bool
    webhook: str | None


class AlarmDocument(TypedDict):
    """That an alert begins, or ends, in a row, by its keys; `value` is null where the row is not shown any more."""

    alert: str
    tick: int
    time: str
    keys: dict[str, str]
    value: float | None
    what: str


@final
class AlertRequest(Body):
    """An alert that is to be: either above or below a number."""

    column: Annotated[str, Field(max_length=256, description="Of noisy numbers.")]
    above: Annotated[float | None, Field(description="Say when it is above this.")] = None
    below: Annotated[float | None, Field(description="Or below this.")] = None
    ticks: Annotated[int, Field(ge=1, le=100_000, description="Only after this many ticks in a row.")] = 1
    surely: Annotated[bool, Field(description="Only where all of the interval is.")] = False
    webhook: Annotated[
        str | None, Field(max_length=2048, description="Where `lapwing monitor run` is to send it, as JSON.")
    ] = None

    def alert(self, name: str) -> Alert:
        """Return what is meant."""
        threshold = self.above if self.below is None else self.below
        if threshold is None or (self.above is not None and self.below is not None):
            raise InvalidParameter("An alert needs either above or below.")
        return Alert(
            name=name,
            column=self.column,
            threshold=Fraction(str(threshold)),
            above=self.below is None,
            ticks=self.ticks,
            surely=self.surely,
            webhook=self.webhook,
        )


router: Final = new_router(prefix="/v1/datasets/{dataset}/monitors", tags=["monitors"])
_STREAMS_READ: Final = [0]
"""How many streams this process sends, of `STREAMS`."""


@contextmanager
def opened(service: Service, caller: Caller, dataset: str, monitor: str) -> Iterator[Monitor]:
    """Open a monitor of a data set that somebody may see."""
    catalog = service.datasets.visible(caller, dataset).session.catalog
    if monitor not in list_monitors(catalog):
        raise missing("monitor")
    with open_monitor(catalog, monitor) as found:
        yield found


@router.get("", responses=described_by(list[MonitorDocument]))
def list_all(service: OfService, dataset: str, caller: Caller = READER) -> Response:
    """List the monitors of a data set; not those whose table is another one since the catalog was changed."""
    served = service.datasets.visible(caller, dataset)
    catalog, dismissed = served.session.catalog, DismissedMonitors(service.store).of(served.name)
    documents = []
    for name in list_monitors(catalog):
        with suppress(CatalogMismatch), open_monitor(catalog, name) as found:
            documents.append(_document(found, dismissed))
    return json_response(documents)


@router.get("/{monitor}", responses=described_by(MonitorDocument))
def show(service: OfService, dataset: str, monitor: str, caller: Caller = READER) -> Response:
    """Show what a monitor asks and promises, and how it stands."""
    return json_response(_shown(service, caller, dataset, monitor))


@router.put("/{monitor}/dismissal", responses=described_by(MonitorDocument), openapi_extra=may_raise(InvalidParameter))
def dismiss(service: OfService, dataset: str, monitor: str, caller: Caller = CURATOR) -> Response:
    """Put a finished monitor out of sight. Its results stay, and pages show it no more until it is restored."""
    shown = _shown(service, caller, dataset, monitor)
    if shown["status"] not in ENDED:
        raise InvalidParameter("This monitor has not finished. You can dismiss it after its last tick.")
    DismissedMonitors(service.store).dismiss(service.datasets.visible(caller, dataset).name, monitor, by=caller.name)
    return json_response({**shown, "dismissed": True})


@router.delete("/{monitor}/dismissal", status_code=204)
def restore(service: OfService, dataset: str, monitor: str, caller: Caller = CURATOR) -> None:
    """Bring a dismissed monitor back into sight."""
    _shown(service, caller, dataset, monitor)
    DismissedMonitors(service.store).restore(service.datasets.visible(caller, dataset).name, monitor, by=caller.name)


@router.get(
    "/{monitor}/ticks",
    responses=described_by(list[TickDocument], "Ticks, as JSON or as a stream, by the Accept header.", EVENT_STREAM),
    openapi_extra=may_raise(TooManyRequests),
)
async def ticks(
    service: OfService,
    request: Request,
    dataset: str,
    monitor: str,
    caller: Caller = READER,
    after: After = 0,
    limit: Most = 100,
    consistent: Consistent = False,
) -> Response:
    """List what was released, in order; with `Accept: text/event-stream`, as it is released."""
    if request.headers.get("accept", "") != EVENT_STREAM:
        return await asyncio.to_thread(_listed, service, caller, dataset, monitor, after, limit, consistent)
    last = request.headers.get("last-event-id", "")
    after = int(last) if last.isascii() and last.isdigit() and len(last) < 10 else after
    await asyncio.to_thread(_require_there, service, caller, dataset, monitor)
    if _STREAMS_READ[0] >= STREAMS:
        raise TooManyRequests(
            f"{STREAMS} streams are already open. Request ticks without a stream, or try again later."
        )

    async def stream() -> AsyncIterator[bytes]:
        _STREAMS_READ[0] += 1
        try:
            async for part in _streamed(
                lambda: opened(service, caller, dataset, monitor), after, consistent=consistent
            ):
                yield part
        finally:
            _STREAMS_READ[0] -= 1

    return StreamingResponse(stream(), media_type=EVENT_STREAM)


def _listed(
    service: Service, caller: Caller, dataset: str, monitor: str, after: int, limit: int, consistent: bool
) -> Response:
    with opened(service, caller, dataset, monitor) as found:
        shown = [_tick(tick, consistent=consistent) for tick, _ in zip(found.ticks(after), range(limit), strict=False)]
    return json_response(shown)


def _require_there(service: Service, caller: Caller, dataset: str, monitor: str) -> None:
    with opened(service, caller, dataset, monitor):
        pass


@router.post(
    "/{monitor}/events",
    responses=described_by(Taken),
    openapi_extra={**EVENTS, **may_raise(InvalidParameter)},
)
async def send(service: OfService, request: Request, dataset: str, monitor: str, caller: Caller = CURATOR) -> Taken:
    """Take events, a JSON object a line, each with an `id`; one that came before of the same unit counts once."""
    body = await request.body()

    def sent() -> Taken:
        with opened(service, caller, dataset, monitor) as found:
            return {"events": found.send(_events(body)).events}

    return await asyncio.to_thread(sent)


@router.get("/{monitor}/alerts", responses=described_by(list[AlertDocument]))
def alerts(service: OfService, dataset: str, monitor: str, caller: Caller = READER) -> Response:
    """List when something is said; who may not change alerts sees no webhooks."""
    with opened(service, caller, dataset, monitor) as found:
        return json_response([_alert(alert, webhook=caller.may("admin")) for alert in found.alerts()])


@router.put(
    "/{monitor}/alerts/{alert}",
    responses=described_by(AlertDocument),
    openapi_extra=may_raise(InvalidParameter, QueryRefused),
)
def alert(
    service: OfService, dataset: str, monitor: str, alert: str, wanted: AlertRequest, caller: Caller = CURATOR
) -> Response:
    """Say something from now on when a number passes a threshold: free, as the number is released anyway."""
    made = wanted.alert(alert)
    with opened(service, caller, dataset, monitor) as found:
        found.add_alert(made)
    return json_response(_alert(made, webhook=True))


@router.delete("/{monitor}/alerts/{alert}", status_code=204)
def remove(service: OfService, dataset: str, monitor: str, alert: str, caller: Caller = CURATOR) -> None:
    """Say nothing more, and forget what was said."""
    with opened(service, caller, dataset, monitor) as found:
        if not found.remove_alert(alert):
            raise missing("alert")


@router.get("/{monitor}/alarms", responses=described_by(list[AlarmDocument]))
def alarms(
    service: OfService, dataset: str, monitor: str, caller: Caller = READER, after: After = 0, limit: Most = 100
) -> Response:
    """List when alerts began and ended, by ticks."""
    with opened(service, caller, dataset, monitor) as found:
        return json_response([alarm.to_record() for alarm, _ in zip(found.alarms(after), range(limit), strict=False)])


def _alert(alert: Alert, *, webhook: bool) -> AlertDocument:
    threshold = float(alert.threshold)
    return {
        "name": alert.name,
        "column": alert.column,
        "above": threshold if alert.above else None,
        "below": None if alert.above else threshold,
        "ticks": alert.ticks,
        "surely": alert.surely,
        "webhook": alert.webhook if webhook else None,
    }


def _events(body: bytes) -> list[dict[str, Any]]:
    try:
        lines = body.decode("utf-8").split("\n")
        return [json.loads(line) for line in lines if line.strip()]
    except (UnicodeError, ValueError, RecursionError):
        raise InvalidParameter(
            "The body is not NDJSON: write one JSON object per line, in UTF-8. Nothing was accepted."
        ) from None


def _shown(service: Service, caller: Caller, dataset: str, monitor: str) -> MonitorDocument:
    dismissed = DismissedMonitors(service.store).of(service.datasets.visible(caller, dataset).name)
    with opened(service, caller, dataset, monitor) as found:
        return _document(found, dismissed)


def _document(found: Monitor, dismissed: frozenset[str]) -> MonitorDocument:
    now = system_clock()
    status = found.status(now)
    return {
        "name": found.name,
        "state": found.state(now),
        "status": status,
        "question": found.definition.text,
        "ticks": found.schedule.ticks,
        "released": found.released,
        "facts": [{"about": about, "fact": fact} for about, fact in described(found)],
        "dismissed": found.name in dismissed and status in ENDED,
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
            said = found.alarms(seen) if newest > seen and found.alerts() else ()
            for alarm in said:
                if alarm.tick <= newest:
                    parts.append(f"event: alarm\ndata: {to_json(alarm.to_record()).decode()}\n\n".encode())
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

"""What is around every request: its size and time, the headers of its answer, its line in the log.

The body is read before the application sees the request, at most so many bytes in at most so many seconds; then the
application reads it from memory. So a slow or endless sender holds a connection for a short time, and no thread.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, final

from lapwing.server import problems
from lapwing.server.credentials import new_name
from lapwing.server.journal import Metrics, log

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

HEADERS: Final = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'"),
)
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_DIGITS: Final = re.compile(rb"[0-9]{1,15}")


@final
class Envelope:
    """An application with limits, headers and a log around it.

    Args: most_bytes: of a body; seconds: until it has arrived.
    """

    def __init__(self, inner: Application, metrics: Metrics, *, most_bytes: int, seconds: float) -> None:
        self._inner, self._metrics = inner, metrics
        self._most_bytes, self._seconds = most_bytes, seconds

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return await self._inner(scope, receive, send)
        name, status = new_name(), [0]
        scope.setdefault("state", {})

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                status[0] = message["status"]
                message["headers"] = [*message.get("headers", ()), *HEADERS, (b"x-request-id", name.encode())]
            await send(message)

        try:
            await self._serve(scope, receive, sending)
        except Exception as error:
            log("bug", request=name, kind=type(error).__name__, place=problems.place_of(error))
            if not status[0]:
                await problems.response(problems.internal())(scope, receive, sending)
        route = getattr(scope.get("route"), "path", "unmatched")
        caller = scope["state"].get("caller")
        method = scope["method"] if scope["method"] in METHODS else "other"
        self._metrics.requested(method, route, status[0])
        who = None if caller is None else caller.name
        log("request", request=name, method=method, route=route, status=status[0], person=who)
        return None

    async def _serve(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        try:
            async with asyncio.timeout(self._seconds):
                body = await self._body(scope, receive)
        except TimeoutError:
            detail = f"The request did not arrive within {self._seconds:g} seconds. Nothing was charged."
            return await problems.response(problems.problem("request_timeout", 408, detail))(scope, receive, send)
        if body is None:
            detail = f"A request may have at most {self._most_bytes:,} bytes. Nothing was charged."
            return await problems.response(problems.problem("request_too_large", 413, detail))(scope, receive, send)
        read = False

        async def reading() -> Message:
            nonlocal read
            if read:
                return await receive()
            read = True
            return {"type": "http.request", "body": body, "more_body": False}

        return await self._inner(scope, reading, send)

    async def _body(self, scope: MutableMapping[str, Any], receive: Receive) -> bytes | None:
        """Return the body, or None if it is too large."""
        for header, value in scope["headers"]:
            if header == b"content-length" and (not _DIGITS.fullmatch(value) or int(value) > self._most_bytes):
                return None
        parts, size = [], 0
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise ConnectionError("the caller has gone")
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self._most_bytes:
                return None
            if not message.get("more_body", False):
                return b"".join(parts)

"""What is around every request: its size and time, the headers of its answer, its line in the log.

The body is read before the application sees the request, at most so many bytes in at most so many seconds; then the
application reads it from memory. So a slow or endless sender holds a connection for a short time, and no thread.

A request that a proxy and this process could read differently is refused: one with a header of `ONCE` twice, with both
a length and a transfer coding, or with an object of JSON that gives a field twice. For the first two the connection
ends, as nobody knows whose request the rest of it would be.

So is one that holds a NUL, U+0000, wherever it is: PostgreSQL keeps no text with it, and C ends a text there. Here is
the one place that all which is sent passes, so that both kinds of store are told the same texts.
"""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, Sequence
from types import MappingProxyType
from typing import Any, Final, final

from lapwing.guarantee.rendering import OWN_STYLE
from lapwing.server import problems
from lapwing.server.compression import GzipSender, Message, Send
from lapwing.server.credentials import new_name
from lapwing.server.log import log
from lapwing.server.metrics import Metrics

Receive = Callable[[], Awaitable[Message]]
Application = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

HEADERS: Final = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (
        b"content-security-policy",
        f"default-src 'none'; style-src 'self' {OWN_STYLE}; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'".encode(),
    ),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
)
ONCE: Final = (b"authorization", b"content-length", b"content-type", b"host", b"idempotency-key", b"transfer-encoding")
ENCRYPTED_ONLY: Final = ((b"strict-transport-security", b"max-age=31536000"),)
"""What a service that speaks TLS itself adds: a browser that has seen this asks it over TLS alone, for a year."""
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
GZIP: Final = b"\x1f\x8b"
"""The first bytes of what gzip wrote."""
_PORT: Final = re.compile(rb":[0-9]*\Z")
_DIGITS: Final = re.compile(rb"[0-9]{1,15}")
_ESCAPED_NUL: Final = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
"""As JSON writes it: after an even number of backslashes, which stand for themselves."""


@final
class RequestMiddleware:
    """An application with limits, headers and a log around it.

    Args:
        most_bytes: Of a body.
        seconds: Until it has arrived.
        encrypted: Whether this process speaks TLS.
        streamed: Methods and paths of requests whose bodies the application reads itself, within limits of its own.
            Each has the one media type of which that is true, or none if it is true of all.
        hosts: Names of hosts that a request may be for; any if there are none. A page of another site may give its own
            name the address of this machine (DNS rebinding). Its requests are for that name, and are refused.
    """

    def __init__(
        self,
        inner: Application,
        metrics: Metrics,
        *,
        most_bytes: int,
        seconds: float,
        encrypted: bool = False,
        streamed: Mapping[tuple[str, str], str] = MappingProxyType({}),
        hosts: frozenset[str] = frozenset(),
    ) -> None:
        self._inner, self._metrics, self._hosts = inner, metrics, hosts
        self._more_headers = ENCRYPTED_ONLY if encrypted else ()
        self._most_bytes, self._seconds, self._streamed = most_bytes, seconds, streamed

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return await self._inner(scope, receive, send)
        name, status, method = new_name(), [0], scope["method"]
        # HEAD is answered as GET; the server knows what was sent, and leaves out the body.
        scope = {**scope, "method": "GET" if method == "HEAD" else method, "state": scope.get("state", {})}

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                status[0] = message["status"]
                said = [*message.get("headers", ())]
                own = (*HEADERS, *self._more_headers, (b"x-request-id", name.encode()))
                names = {header for header, _ in said}  # the console says some of them itself
                message["headers"] = [*said, *((header, value) for header, value in own if header not in names)]
            await send(message)

        try:
            await self._serve(scope, receive, GzipSender(scope, sending))
        except _Gone:
            pass  # there is nobody to answer
        except Exception as error:
            log("bug", request=name, kind=type(error).__name__, place=problems.place_of(error))
            if not status[0]:
                await problems.response(problems.internal())(scope, receive, sending)
        route = getattr(scope.get("route"), "path", "unmatched")
        caller = scope["state"].get("caller")
        method = method if method in METHODS else "other"
        self._metrics.count_request(method, route, status[0])
        who = None if caller is None else caller.name
        log("request", request=name, method=method, route=route, status=status[0], person=who)
        return None

    async def _serve(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        async def refused(code: str, status: int, detail: str, **headers: str) -> None:
            document = problems.problem(code, status, f"{detail} Nothing was charged.")
            await problems.response(document, headers)(scope, receive, send)

        ambiguous = _ambiguous([name for name, _ in scope["headers"]])
        if ambiguous:
            detail = f"The request can be read in two ways, by its {ambiguous}."
            return await refused("invalid_request", 400, detail, Connection="close")
        if self._hosts and _host_of(scope["headers"]) not in self._hosts:
            detail = f"This service is at {' and '.join(sorted(self._hosts))}, and the request is for another host."
            return await refused("invalid_request", 421, detail, Connection="close")
        kind = self._streamed.get((scope["method"], scope["path"]))
        if kind is not None and kind in ("", media_type_of(scope["headers"])):
            return await self._serve_streamed(scope, receive, send, refused)
        try:
            async with asyncio.timeout(self._seconds):
                body = await self._body(scope, receive)
        except TimeoutError:
            detail = f"The request did not arrive within {self._seconds:g} seconds."
            return await refused("request_timeout", 408, detail, Connection="close")
        coding = _coding(scope["headers"], body or b"")
        if coding:
            detail = f"The body is in {coding}, which Lapwing does not decode. Send it without a Content-Encoding."
            return await refused("invalid_request", 415, detail)
        if body is None:
            return await refused("request_too_large", 413, f"A request may have at most {self._most_bytes:,} bytes.")
        if _has_nul(scope["path"], scope["query_string"], body):
            detail = "The request holds the character NUL (U+0000), which no text may have. Send it without."
            return await refused("invalid_request", 400, detail)
        if (twice := _name_given_twice(body)) is not None:
            detail = f"The body has the field {twice[:60]!r} twice in one object. Send it once."
            return await refused("invalid_request", 400, detail)
        read = False

        async def reading() -> Message:
            nonlocal read
            if read:
                return await receive()
            read = True
            return {"type": "http.request", "body": body, "more_body": False}

        return await self._inner(scope, reading, send)

    async def _serve_streamed(
        self,
        scope: MutableMapping[str, Any],
        receive: Receive,
        send: Send,
        refused: Callable[..., Awaitable[None]],
    ) -> None:
        """Let the application read the body itself, within limits of its own."""
        if _coding(scope["headers"], b""):
            detail = "The body has a Content-Encoding, which Lapwing does not decode. Send the file as it is."
            return await refused("invalid_request", 415, detail, Connection="close")
        if _has_nul(scope["path"], scope["query_string"], b""):
            detail = "The request holds the character NUL (U+0000), which no text may have. Send it without."
            return await refused("invalid_request", 400, detail, Connection="close")
        return await self._inner(scope, receive, send)

    async def _body(self, scope: MutableMapping[str, Any], receive: Receive) -> bytes | None:
        """Return the body, or None if it is too large."""
        for header, value in scope["headers"]:
            if header == b"content-length" and (not _DIGITS.fullmatch(value) or int(value) > self._most_bytes):
                return None
        parts, size = [], 0
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise _Gone
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self._most_bytes:
                return None
            if not message.get("more_body", False):
                return b"".join(parts)


@final
class _Gone(Exception):
    """The caller closed the connection before the request had arrived."""


def _ambiguous(names: Sequence[bytes]) -> str:
    """Return the headers by which a request can be read in two ways, as text; empty if it cannot."""
    twice = [name.decode() for name in ONCE if names.count(name) > 1]
    if b"content-length" in names and b"transfer-encoding" in names:
        twice.append("length and transfer coding")
    return ", ".join(twice)


def _host_of(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """Return the host that a request is for, without its port; empty if there is none.

    >>> _host_of([(b"host", b"LOCALHOST:8000")]), _host_of([(b"host", b"127.0.0.1.evil.example")]), _host_of([])
    ('localhost', '127.0.0.1.evil.example', '')
    """
    said = next((value for name, value in headers if name == b"host"), b"")
    return _PORT.sub(b"", said).decode("latin-1").lower()


def size_of(headers: Iterable[tuple[bytes, bytes]]) -> int | None:
    """Return how many bytes a body has by its header; None if there is no such header."""
    said = next((value for name, value in headers if name == b"content-length"), b"")
    return int(said) if _DIGITS.fullmatch(said) else None


def media_type_of(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """Return the media type of a body by its header, without parameters; empty if there is no such header."""
    said = next((value for name, value in headers if name == b"content-type"), b"")
    return said.decode("latin-1").partition(";")[0].strip().lower()


def _coding(headers: Iterable[tuple[bytes, bytes]], body: bytes) -> str:
    """Return in which coding a body is sent, by its header or its first bytes; empty if in none."""
    said = next((value for name, value in headers if name == b"content-encoding"), b"identity").strip().lower()
    if said not in (b"", b"identity"):
        return "gzip" if said in (b"gzip", b"x-gzip") else "a coding that this service does not read"
    return "gzip" if body.startswith(GZIP) else ""


def _name_given_twice(body: bytes) -> str | None:
    """Return a field that an object of a JSON body gives twice, as ASCII; None if there is none, or it is no JSON.

    >>> _name_given_twice(b'{"a": [{"b": 1, "b": 2}]}'), _name_given_twice(b'{"a": {"b": 1}, "b": 2}')
    ('b', None)
    """
    if body.lstrip()[:1] not in (b"{", b"["):
        return None
    twice: list[str] = []

    def note(pairs: list[tuple[str, object]]) -> None:
        if len(dict(pairs)) < len(pairs):
            names = Counter(name for name, _ in pairs)
            twice.append(max(names, key=lambda name: names[name]))

    try:
        json.loads(body, object_pairs_hook=note)
    except (ValueError, RecursionError):  # the route says what is wrong with it
        return None
    return twice[0].encode("ascii", "replace").decode() if twice else None


def _has_nul(path: str, query: bytes, body: bytes) -> bool:
    r"""Tell whether a request holds the character NUL, written in whatever way.

    >>> _has_nul("/", b"", rb'{"a": "\u0000"}'), _has_nul("/", b"", rb'{"a": "\\u0000"}'), _has_nul("/", b"x=%00", b"")
    (True, False, True)
    """
    if "\0" in path or b"%00" in query or b"\0" in body:
        return True
    return rb"\u0000" in body and _ESCAPED_NUL.search(body) is not None

"""Large replies in gzip, for callers who accept it, where their length can give nothing away.

Whoever listens to an encrypted connection sees how long a reply is. If it was compressed, and holds a text that the
listener chose beside one that is secret, the length tells whether they are alike: guess by guess, the secret comes out
(BREACH). So only replies of these routes are compressed. In each, all text was chosen by whoever bought the answer, by
the curator, or by this program, and none holds a token or a password: nobody else can put a guess into it. An answer's
numbers are what was released to them; nothing that is not released is in the reply at all. What holds the texts of
several people stays as it is: histories, lists of people and tokens, the audit log with the names that strangers tried,
the ledger.
"""

import asyncio
import gzip
import re
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, Final, final

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]

ROUTES: Final = frozenset({
    "/", "/docs", "/openapi.json", "/style.css", "/v1/datasets/{dataset}", "/v1/datasets/{dataset}/query",
    "/v1/datasets/{dataset}/batch", "/v1/datasets/{dataset}/answers", "/v1/answers/{answer}",
    "/v1/answers/{answer}/consistent",
})  # fmt: skip
SHORTEST: Final = 1_400
"""Bytes that fit into one packet: of less, nothing is won."""
LARGE: Final = 1 << 16
"""Bytes of which compressing takes long enough for a thread of its own."""
LEVEL: Final = 5
_GZIP: Final = re.compile(r"\s*(?:x-)?gzip\s*(?:;\s*q\s*=\s*(?!0(?:\.0*)?\s*$)[0-9.]+\s*)?", re.IGNORECASE)


@final
class GzipSender:
    """Sends a reply, compressed if its route and its caller let it be."""

    def __init__(self, scope: MutableMapping[str, Any], send: Send) -> None:
        self._scope, self._send = scope, send
        self._start: Message | None = None

    async def __call__(self, message: Message) -> None:
        """Send a part of the reply; its beginning waits for the first part of its body."""
        if message["type"] == "http.response.start":
            self._start = message
            return
        start, self._start = self._start, None
        if start is not None:
            if getattr(self._scope.get("route"), "path", "") in ROUTES:
                start["headers"] = [*start["headers"], (b"vary", b"Accept-Encoding")]
                if (
                    not message.get("more_body")
                    and len(message["body"]) >= SHORTEST
                    and accepts(self._scope["headers"])
                ):
                    await _compress(start, message)
            await self._send(start)
        await self._send(message)


def accepts(headers: Sequence[tuple[bytes, bytes]]) -> bool:
    """Tell whether a caller says that gzip may be sent.

    >>> [accepts([(b"accept-encoding", value)]) for value in (b"br, gzip", b"gzip;q=0.5", b"gzip;q=0", b"identity")]
    [True, True, False, False]
    """
    said = ",".join(value.decode("latin-1") for name, value in headers if name == b"accept-encoding")
    return any(_GZIP.fullmatch(coding) for coding in said.split(","))


async def _compress(start: Message, message: Message) -> None:
    body = message["body"]
    packed = await asyncio.to_thread(packed_body, body) if len(body) > LARGE else packed_body(body)
    kept = [(name, value) for name, value in start["headers"] if name != b"content-length"]
    start["headers"] = [*kept, (b"content-encoding", b"gzip"), (b"content-length", str(len(packed)).encode())]
    message["body"] = packed


def packed_body(body: bytes) -> bytes:
    """Return a body as gzip, the same each time."""
    return gzip.compress(body, LEVEL, mtime=0)

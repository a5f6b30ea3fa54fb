"""Limits of one connection: time to send its request, time to read its answer, and one of a fixed number of places.

Theory of operation. Each connection holds a descriptor, and a process has only so many, which the ledger and the data
need too. So there are `room` places, fewer than descriptors. When all are taken, the connection that has been idle the
longest makes room for a new one: whoever holds many silent ones loses these first. A connection whose request has
arrived is never closed for another. One that has not sent its headers in time is closed, and so is one that does not
read its answer; `middleware` limits bodies.

A subclass, as uvicorn takes a protocol of another kind (`http`) in no other way, and its settings do none of this:
`timeout_keep_alive` begins after an answer, and not with the connection; `limit_concurrency` refuses whoever comes
last; nothing ends an answer that nobody reads, or refuses a length that is a list. See docs/decisions/fastapi.md.
"""

import asyncio
import re
import resource
import socket
from contextlib import suppress
from typing import Any, Final, Protocol

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST: Final = 4096
KEPT: Final = 512
"""Descriptors that are not for connections."""
BACKLOG: Final = 256
"""How many are accepted at a time, before any of them is counted."""
UNREAD_SECONDS: Final = 300.0
_SEVERAL_LENGTHS: Final = re.compile(rb"\A(?:[^\r\n]+\r?\n)*?content-length[ \t]*:[^\r\n,]*,", re.IGNORECASE)
"""A list of lengths among the headers of a request, which end with the first empty line."""


class _Idle(Protocol):
    def give_up(self) -> None: ...


def room() -> int:
    """Take as many descriptors as are wanted and allowed, and return how many connections there may be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MOST
    target = MOST + KEPT if hard == resource.RLIM_INFINITY else min(MOST + KEPT, hard)
    if soft < target:
        with suppress(OSError, ValueError):  # it stays as it is
            resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
            soft = target
    return min(MOST, max(soft - KEPT, soft // 4))


def protocol(seconds: float, most: int) -> type[asyncio.Protocol]:
    """Return uvicorn's protocol with limits.

    Args:
        seconds: Until the headers of a request have arrived.
        most: Connections at once.
    """
    idle: dict[_Idle, None] = {}  # in the order in which they became so

    class TimeLimitedProtocol(H11Protocol):
        """HTTP/1.1 with limits on time and number."""

        _due: asyncio.TimerHandle | None = None
        _unread: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            # Head and body are written apart; without this the body waits for the head's acknowledgement, up to 40 ms.
            # asyncio sees to it by itself only where it made the listening socket.
            transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if len(self.connections) > most:
                next(iter(idle), self).give_up()
            if not transport.is_closing():
                idle[self] = None
                self._wait()

        def data_received(self, data: bytes) -> None:
            before = self.cycle
            super().data_received(data)
            if self.cycle is not before:
                self._stop_waiting()
                idle.pop(self, None)
            elif self._due is None and (self.cycle is None or self.cycle.response_complete):
                self._wait()

        def handle_events(self) -> None:
            # h11 reads a length that is given twice, `5, 5`, as one; a proxy before us may not.
            if self.conn.their_state is h11.IDLE and _SEVERAL_LENGTHS.search(self.conn.trailing_data[0]):
                self.send_400_response("The request has several lengths.")
                return
            super().handle_events()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if self.cycle.response_complete and not self.transport.is_closing():
                idle[self] = None

        def pause_writing(self) -> None:
            super().pause_writing()
            self._unread = asyncio.get_running_loop().call_later(UNREAD_SECONDS, self.give_up)

        def resume_writing(self) -> None:
            super().resume_writing()
            self._stop_unread()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            self._stop_unread()
            idle.pop(self, None)
            super().connection_lost(exc)

        def give_up(self) -> None:
            """Close, whatever is still unread."""
            idle.pop(self, None)
            self.transport.abort()

        def _wait(self) -> None:
            self._due = asyncio.get_running_loop().call_later(seconds, self.transport.close)

        def _stop_waiting(self) -> None:
            if self._due is not None:
                self._due.cancel()
                self._due = None

        def _stop_unread(self) -> None:
            if self._unread is not None:
                self._unread.cancel()
                self._unread = None

    return TimeLimitedProtocol

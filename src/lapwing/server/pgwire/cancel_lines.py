"""Cancel requests among workers: a pipe to each of them, into which the others write.

Theory of operation. A client cancels by a connection of its own, which any worker may take. So the number of a
connection says which worker has it, and a worker passes on what is not for it. It does not know whether the key is
right: only the worker of the connection does, and tells nobody.

The parent makes the pipes and keeps both ends, so a worker that replaces a dead one has its pipe. All requests have one
length, of 37 bytes. POSIX promises that up to 512 bytes are written whole. A pipe is full only if its worker has not
read for more than a thousand requests. Then a request is lost, as PostgreSQL allows. The query goes on, and its result
is stored.
"""

import asyncio
import os
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Final, final

from lapwing.server.pgwire.protocol import Cancel

_FORM: Final = struct.Struct(">IB32s")
"""The number of a connection, the length of the key, and the key."""
_LONGEST_KEY: Final = 32
_AT_ONCE: Final = 64
MOST_NUMBER: Final = 2**31 - 1


@final
@dataclass(frozen=True, slots=True)
class CancelLines:
    """The pipes of one of several workers; a worker that is alone has none.

    Args:
        place: Which of them it is, from 0.
        doors: The ends for reading of all workers, in order, and the ends for writing.
    """

    place: int = 0
    doors: tuple[tuple[Connection, Connection], ...] = ()

    def number(self, count: int) -> int:
        """Return the number of a new connection; count: the connections of this worker before it."""
        workers = max(len(self.doors), 1)
        return (count % (MOST_NUMBER // workers - 1) + 1) * workers + self.place

    def start(self, stop: Callable[[Cancel], None]) -> None:
        """Hear from now on, in the event loop, what others pass on."""
        if self.doors:
            asyncio.get_running_loop().add_reader(self._own.fileno(), self._hear, stop)

    def close(self) -> None:
        """Hear no more."""
        if self.doors:
            asyncio.get_running_loop().remove_reader(self._own.fileno())

    def pass_on(self, request: Cancel) -> bool:
        """Pass a request on to the worker that it is for; False if that is this one."""
        place = request.process % max(len(self.doors), 1)
        if place == self.place:
            return False
        if len(request.key) <= _LONGEST_KEY:  # no connection has a longer one
            data = _FORM.pack(request.process, len(request.key), request.key)
            with suppress(BlockingIOError):  # the pipe is full
                os.write(self.doors[place][1].fileno(), data)
        return True

    @property
    def _own(self) -> Connection:
        return self.doors[self.place][0]

    def _hear(self, stop: Callable[[Cancel], None]) -> None:
        try:
            data = os.read(self._own.fileno(), _AT_ONCE * _FORM.size)
        except BlockingIOError:  # the worker before this one has read it
            return
        for process, length, key in _FORM.iter_unpack(data):
            stop(Cancel(process, key[:length]))


def cancel_lines(workers: int) -> list[CancelLines]:
    """Make pipes to several workers, and return for each worker its ends."""
    doors = tuple(Pipe(duplex=False) for _ in range(workers))
    for end in (end for pair in doors for end in pair):
        os.set_blocking(end.fileno(), False)
    return [CancelLines(place, doors) for place in range(workers)]

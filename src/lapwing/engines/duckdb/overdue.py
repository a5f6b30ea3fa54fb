"""Queries that nobody stops but the clock: they run in the thread that asks, and are interrupted when their time is up.

Theory of operation. A query in a thread of its own can be stopped by whoever waits for it, which takes two changes of
threads for each. Where neither Ctrl-C nor a switch can be heard, as in the threads of a service, and nobody watches how
far it is, only its time limit stops it. For that one thread looks after all running queries a few times a second, and
ends when there are none. It interrupts only what is registered, and a query is taken off before its thread goes on: so
no other query is ever hit.
"""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from typing import Final

import duckdb

PAUSE: Final = 0.25
"""Seconds between two looks."""

_lock = threading.Lock()
_running: Final[dict[int, tuple[duckdb.DuckDBPyConnection, float]]] = {}
_numbers: Final = count()
_looking: list[threading.Thread] = []


def _begin_anew() -> None:
    """Forget what runs in the parent of this process, whose threads are not here."""
    global _lock
    _lock = threading.Lock()  # it may have been held
    _running.clear()
    _looking.clear()


os.register_at_fork(after_in_child=_begin_anew)


@contextmanager
def interrupted_after(seconds: float, cursor: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Interrupt what a cursor runs inside if it takes longer; it raises duckdb.InterruptException then."""
    number = next(_numbers)
    with _lock:
        _running[number] = cursor, time.monotonic() + seconds
        if not _looking:
            _looking[:] = [threading.Thread(target=_look, name="overdue", daemon=True)]
            _looking[0].start()
    try:
        yield
    finally:
        with _lock:
            del _running[number]


def _look() -> None:
    while True:
        time.sleep(PAUSE)
        with _lock:
            if not _running:
                _looking.clear()
                return
            now = time.monotonic()
            for cursor, deadline in _running.values():
                if now > deadline:
                    with suppress(duckdb.Error):  # somebody has closed it
                        cursor.interrupt()

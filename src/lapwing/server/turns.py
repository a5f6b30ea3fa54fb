"""Locks by name, for threads that must not do the same thing at the same time."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import final


@final
class Turns:
    """Locks by name, each of which is there only while somebody wants it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[object, tuple[threading.Lock, int]] = {}

    @contextmanager
    def of(self, name: object) -> Iterator[None]:
        """Hold the lock of a name."""
        with self._lock:
            turn, waiting = self._held.get(name, (threading.Lock(), 0))
            self._held[name] = turn, waiting + 1
        try:
            with turn:
                yield
        finally:
            with self._lock:
                turn, waiting = self._held.pop(name)
                if waiting > 1:
                    self._held[name] = turn, waiting - 1

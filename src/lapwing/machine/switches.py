"""A switch that stops the work of one thread, as Ctrl-C stops that of the main thread."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, final


@final
class Switch:
    """Ctrl-C for the work of one thread, pressed by any other; heard around `deferred` blocks, and nowhere else.

    A press raises KeyboardInterrupt in the working thread once, where the next such block begins or ends.
    """

    def __init__(self) -> None:
        self._presses: list[int] = []
        self.pressed = False

    def press(self) -> None:
        """Tell the work to stop; told twice, it stops once."""
        if not self.pressed:
            self.pressed = True
            self._presses.append(signal.SIGINT)

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Let the work inside hear it."""
        token = current.set(self)
        try:
            yield
        finally:
            current.reset(token)

    @contextmanager
    def deferred(self) -> Iterator[list[int]]:
        """Let a press through before the block begins, or when it has ended."""
        self._let_through()
        try:
            yield self._presses
        finally:
            self._let_through()

    def _let_through(self) -> None:
        if self._presses:
            self._presses.clear()
            raise KeyboardInterrupt


current: Final[ContextVar[Switch | None]] = ContextVar("switch", default=None)
"""The switch that the work of this thread hears, if it has one."""

"""Threads that look after something again and again, for as long as the service runs."""

import threading
from collections.abc import Callable
from typing import final


@final
class Rounds:
    """One such thread, which is there once it was started.

    Args: name: of the thread; pause: seconds until the first round; round: looks, and returns the seconds until the
        next one.
    """

    def __init__(self, name: str, pause: float, round: Callable[[], float]) -> None:
        self._name, self._pause, self._round = name, pause, round
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin."""
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._thread.start()

    def close(self) -> bool:
        """End, and wait until it has; return whether it had begun."""
        self._ending.set()
        begun, self._thread = self._thread, None
        if begun is not None:
            begun.join()
        return begun is not None

    def end_within(self, seconds: float) -> bool:
        """Wait; tell whether it is to end."""
        return self._ending.wait(seconds)

    def _run(self) -> None:
        pause = self._pause
        while not self.end_within(pause):
            pause = self._round()

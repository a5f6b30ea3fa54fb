"""Threads that look after something again and again, for as long as the service runs.

Theory of operation. What a round calls may raise: a database restarts, a disk is full, or there is a bug. None of that
ends the thread, as then nobody would look any more and nobody would know. The log says once that rounds fail, with the
kind and the place of the error and never its message, and once that they go on. While they fail, the pause grows from
`SHORTEST` to `LONGEST`, and `failing` is true, which `/metrics` shows.
"""

import threading
from collections.abc import Callable
from typing import Final, final

from lapwing.errors import LapwingError
from lapwing.server.log import log
from lapwing.server.problems import place_of

SHORTEST, LONGEST = 1.0, 60.0
"""Seconds until the round after one that failed: at first, and at most."""
STOPPED: Final = "background task failed"
GOES_ON: Final = "background task goes on"


@final
class Rounds:
    """One such thread, which is there once it was started.

    Args:
        name: Of the thread.
        pause: Seconds until the first round.
        round: Looks, and returns the seconds until the next one. Whatever it raises is logged, and it is called again.
    """

    def __init__(self, name: str, pause: float, round: Callable[[], float]) -> None:
        self.name = name
        self._pause, self.round = pause, round
        self._failed: str | None = None
        self._ending, self._next = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def failing(self) -> bool:
        """Whether the last round raised something."""
        return self._failed is not None

    def start(self) -> None:
        """Begin."""
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self._thread.start()

    def close(self) -> bool:
        """End, and wait until it has; return whether it had begun."""
        self._ending.set()
        self._next.set()
        begun, self._thread = self._thread, None
        if begun is not None:
            begun.join()
        return begun is not None

    def hurry(self) -> None:
        """Let the next round begin at once; if one is under way, when it has ended."""
        self._next.set()

    def end_within(self, seconds: float) -> bool:
        """Wait; tell whether it is to end."""
        return self._ending.wait(seconds)

    def _run(self) -> None:
        pause, after_failure = self._pause, SHORTEST
        while not self._ends(pause):
            try:
                pause = self.round()
            except Exception as error:
                self._note_failure(error)
                pause, after_failure = after_failure, min(2 * after_failure, LONGEST)
            else:
                after_failure = SHORTEST
                if self._failed is not None:
                    self._failed = None
                    log(GOES_ON, task=self.name)

    def _ends(self, pause: float) -> bool:
        """Wait until the next round; tell whether there is none."""
        self._next.wait(pause)
        self._next.clear()
        return self._ending.is_set()

    def _note_failure(self, error: Exception) -> None:
        """Log an error, unless the round before failed alike."""
        what = error.code if isinstance(error, LapwingError) else type(error).__name__
        if what != self._failed:
            self._failed = what
            log(STOPPED, task=self.name, reason=what, place=place_of(error))

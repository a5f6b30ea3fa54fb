"""A line on standard error that says how far long work has come.

It is for a person who waits: it appears only on a terminal and after a second, and goes when the work has ended. A wait
for workers of a cluster gets a line without a terminal, too.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TextIO, final

from lapwing.machine import progress, waiting

PATIENCE: Final = 1.0
"""Seconds of work that need no explanation."""
PAUSE: Final = 0.5
"""Seconds after which what begins is other work: one command may do several things, none of which takes a second."""
REFRESH: Final = 0.1
WAITS: Final = {
    "workers": "Waiting for workers of the cluster",
    "lost workers": "The cluster lost all workers; waiting for others",
}
"""The text for each wait."""
BLANK: Final = "\r\x1b[K"


@contextmanager
def shown() -> Iterator[None]:
    """Show the progress of all work inside, if a person reads standard error, and what it waits for."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        with waiting.heard(_say):
            yield
        return
    line = ProgressLine(sys.stderr)
    with progress.watched(line), waiting.heard(line.wait):
        yield


def _say(what: waiting.WaitsFor | None) -> None:
    """Write what is waited for, as a line of its own."""
    if what is not None:
        print(f"lapwing: {WAITS[what]}.", file=sys.stderr, flush=True)


@final
class ProgressLine:
    """One line that is written again and again.

    Args:
        stream: A terminal.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._begun = 0.0
        self._ended: float | None = float("-inf")  # when work last ended, if none has begun since
        self._last = float("-inf")

    def show(self, what: str, fraction: float) -> None:
        """Write what is done and how much of it, if the work takes long and the line was not written just now."""
        now = time.monotonic()
        if self._ended is not None and now - self._ended > PAUSE:
            self._begun = now
        self._ended = None
        if now - self._begun < PATIENCE or now - self._last < REFRESH:
            return
        self._last = now
        self._stream.write(f"{BLANK}{_fitting(what)} … {100 * fraction:3.0f} %")
        self._stream.flush()

    def wait(self, what: waiting.WaitsFor | None) -> None:
        """Write what is waited for, or leave the line as it was before."""
        self._stream.write(BLANK if what is None else f"{BLANK}{WAITS[what]} …")
        self._stream.flush()

    def clear(self) -> None:
        """Leave the line as if nothing had been written."""
        if self._last > 0:
            self._stream.write(BLANK)
            self._stream.flush()
        self._ended, self._last = time.monotonic(), float("-inf")


def _fitting(what: str, most: int = 60) -> str:
    """Return a text of printable characters that leaves room on a line of eighty."""
    from rich.cells import cell_len  # here: only a line that is shown needs it

    clean = "".join(character if character.isprintable() else "?" for character in what)
    while cell_len(clean) > most:
        clean = clean[:-1]
    return clean

"""Ctrl-C at a moment of our choosing: what must not be cut off in the middle is finished first.

Only the main thread hears the signal. A thread that works on behalf of somebody else, who may tell it to stop, has a
`switches.Switch` instead, which any thread may press.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, final

from lapwing.machine import switches


@contextmanager
def deferred() -> Iterator[list[int]]:
    """Hold Ctrl-C back until the block has ended, and then let it through.

    Python raises KeyboardInterrupt between any two instructions of the main thread. This may be while it takes a lock
    or hands over the result of a finished action. Inside the block a press is only noted, in the list that it is given.
    Other threads never see the signal, but that of their `Switch`; and what ignores it goes on ignoring it.
    """
    switch = switches.current.get()
    if switch is not None:
        with switch.deferred() as pressed:
            yield pressed
        return
    pressed = []
    handler = _handler()
    if handler is None:
        yield pressed
        return
    signal.signal(signal.SIGINT, lambda number, _frame: pressed.append(number))
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, handler)
        if pressed:
            handler(signal.SIGINT, None)


def may_be_stopped() -> bool:
    """Tell whether anything can stop the work of this thread: Ctrl-C, or a switch."""
    return switches.current.get() is not None or _handler() is not None


@final
class Ending:
    """Ctrl-C while something ends that may be stopped: from `hold` on a press is dropped, until `let_through`.

    A `with deferred()` that opens in an `except` clause opens too late: a press before it leaves the clause at once,
    with nothing of it done. So `hold` is called in a `finally` inside of the `try`: a press before that is caught by
    the clauses, and one after it does nothing.
    """

    def __init__(self) -> None:
        self._handler = _handler()

    def hold(self) -> None:
        """Drop presses from here on."""
        if self._handler is not None:
            signal.signal(signal.SIGINT, lambda _number, _frame: None)

    def let_through(self) -> None:
        """Let presses do what they did when this was made."""
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)


def _handler() -> Callable[[int, Any], Any] | None:
    """Return what a press does in this thread; None if it does nothing here."""
    handler = signal.getsignal(signal.SIGINT) if threading.current_thread() is threading.main_thread() else None
    return handler if callable(handler) else None

"""Ctrl-C at a moment of our choosing: what must not be cut off in the middle is finished first."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def deferred() -> Iterator[list[int]]:
    """Hold Ctrl-C back until the block has ended, and then let it through.

    Python raises KeyboardInterrupt between any two instructions of the main thread, also while a lock is being taken or
    the result of a finished action handed over. Inside the block a press is only noted, in the list that it is given.
    Other threads never see the signal, and what ignores it goes on ignoring it.
    """
    pressed: list[int] = []
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield pressed
        return
    signal.signal(signal.SIGINT, lambda number, _frame: pressed.append(number))
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, handler)
        if pressed:
            handler(signal.SIGINT, None)

"""Tell a listener that work waits: a person who sees nothing happen wants to know why.

A listener is set around a call and hears of the waits of that call, in the same thread. It hears what is waited for, in
one word, and None when that has come.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Literal

WaitsFor = Literal["workers", "lost workers"]
"""Workers of a cluster: before the charge of a query, or after a cluster lost them in the middle."""
Listener = Callable[[WaitsFor | None], None]
_listener: Final[ContextVar[Listener | None]] = ContextVar("listener", default=None)


@contextmanager
def heard(by: Listener) -> Iterator[None]:
    """Let a listener hear of all waits inside."""
    token = _listener.set(by)
    try:
        yield
    finally:
        _listener.reset(token)


def say(what: WaitsFor | None) -> None:
    """Tell the listener, if there is one, what is waited for, or that it has come."""
    listener = _listener.get()
    if listener is not None:
        listener(what)

"""How far long work has come, for whoever wants to show it.

A watcher is set around a call and hears of the work that the call does, in the same thread. What it hears is a name of
what is being done, which is public, and a fraction, which like all time depends on the data and is for those who run
the engine themselves.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Final, Protocol


class ProgressWatcher(Protocol):
    """Shows how far work has come."""

    def show(self, what: str, fraction: float) -> None:
        """Show what is being done and how much of it is done, between 0 and 1; called again and again."""
        ...

    def clear(self) -> None:
        """Stop showing it: the work has ended, well or not."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    what: str
    begin: float = 0.0
    width: float = 1.0


watcher: Final[ContextVar[ProgressWatcher | None]] = ContextVar("watcher", default=None)
"""Who watches, if anybody does; a caller that finds nobody need not name its work."""
_work: Final[ContextVar[_Work | None]] = ContextVar("work", default=None)


@contextmanager
def watched(by: ProgressWatcher) -> Iterator[None]:
    """Let a watcher hear of all work inside."""
    token = watcher.set(by)
    try:
        yield
    finally:
        watcher.reset(token)


@contextmanager
def work(what: str) -> Iterator[None]:
    """Name the work inside."""
    token = _work.set(_Work(what=what))
    try:
        yield
    finally:
        _work.reset(token)
        shown = watcher.get()
        if shown is not None:
            shown.clear()


@contextmanager
def step(index: int, of: int) -> Iterator[None]:
    """Count the work inside as one of several equal steps of the work around it."""
    around = _work.get()
    if around is None:
        yield
        return
    token = _work.set(replace(around, begin=around.begin + around.width * index / of, width=around.width / of))
    try:
        yield
    finally:
        _work.reset(token)


def report(done: float) -> None:
    """Tell the watcher, if there is one, how much of the current step is done."""
    shown, current = watcher.get(), _work.get()
    if shown is not None and current is not None:
        shown.show(current.what, current.begin + current.width * min(max(done, 0.0), 1.0))

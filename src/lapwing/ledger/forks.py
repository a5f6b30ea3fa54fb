"""Forks: what holds locks and connections rests while the process is copied.

A child inherits every lock as it was, and every connection as a second handle on the same socket. So before a fork each
of these objects comes to rest: it waits until no thread is inside it, and gives up what must not be shared. Afterwards
the parent goes on, and the child forgets what is its parent's.
"""

import os
import threading
from typing import Final, Protocol
from weakref import WeakSet


class Resting(Protocol):
    """Something that rests while the process is copied."""

    def rest(self) -> None:
        """Wait until no thread is inside, and let none in."""
        ...

    def resume(self, *, in_child: bool) -> None:
        """Let threads in again."""
        ...


_REGISTRY: Final = threading.Lock()
# In this order: who holds a ledger may ask who lives, and never the other way round.
_CHAINS: Final[WeakSet[Resting]] = WeakSet()
_PRESENCES: Final[WeakSet[Resting]] = WeakSet()
_RESTING: Final[list[Resting]] = []


def rests_first(chain: Resting) -> None:
    """Let a chain rest during forks, before those that it may wait for."""
    with _REGISTRY:
        _CHAINS.add(chain)


def rests_last(presence: Resting) -> None:
    """Let something that chains may wait for rest during forks."""
    with _REGISTRY:
        _PRESENCES.add(presence)


def _rest() -> None:
    _REGISTRY.acquire()
    for resting in (*_CHAINS, *_PRESENCES):
        resting.rest()
        _RESTING.append(resting)


def _resume(*, in_child: bool) -> None:
    for resting in _RESTING:
        resting.resume(in_child=in_child)
    _RESTING.clear()
    _REGISTRY.release()


os.register_at_fork(
    before=_rest, after_in_parent=lambda: _resume(in_child=False), after_in_child=lambda: _resume(in_child=True)
)

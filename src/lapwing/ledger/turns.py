"""The threads of one open ledger, one at a time."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import final

from lapwing.errors import LedgerFault


@final
class Turn:
    """The turn of one thread; others wait for it.

    Args: name: of the ledger, for people; patience: seconds that a thread waits before that is a fault.
    """

    def __init__(self, name: str, patience: float) -> None:
        self._name = name
        self._patience = patience
        self._lock = threading.RLock()  # one that knows its owner: see `taken`

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Hold the turn through the block.

        Raises: LedgerFault if others held it for too long.
        """
        # Ctrl-C may come after the lock was taken and before Python knows that it was, so it is released in any case.
        # Releasing a lock that this thread does not own is an error without effect.
        try:
            if not self._lock.acquire(timeout=self._patience):
                raise LedgerFault(
                    f"Other threads held the ledger {self._name} for more than {self._patience:g} seconds. "
                    "Nothing was charged. Ask again later."
                )
            yield
        finally:
            try:  # noqa: SIM105 - `suppress` is a call, and Ctrl-C could come after it instead
                self._lock.release()
            except RuntimeError:
                pass

    @contextmanager
    def waited(self) -> Iterator[None]:
        """Hold the turn through the block, however long it takes to come."""
        with self._lock:
            yield

    def wait(self) -> None:
        """Take the turn, however long it takes."""
        self._lock.acquire()

    def end(self) -> None:
        """Give up the turn that `wait` took."""
        self._lock.release()

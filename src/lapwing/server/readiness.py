"""Whether a service can answer questions: that it reads its store and every ledger.

Anybody may ask, and as often as they like, so it is looked up once a second at most, and nothing is said but yes or no.
"""

import threading
import time
from collections.abc import Callable
from typing import Final, final

from lapwing.errors import LapwingError
from lapwing.server.datasets import Datasets
from lapwing.server.log import log
from lapwing.server.store import Store

FRESH: Final = 1.0
"""Seconds for which what was found holds."""


@final
class Readiness:
    """Looks whether questions can be answered."""

    def __init__(self, store: Store, datasets: Datasets, clock: Callable[[], float] = time.monotonic) -> None:
        self._store, self._datasets, self._clock = store, datasets, clock
        self._lock = threading.Lock()
        self._looked, self._ready = -FRESH, False

    def is_ready(self) -> bool:
        """Tell whether the store and all ledgers can be read; the log says when that begins and ends."""
        if self._clock() - self._looked < FRESH or not self._lock.acquire(blocking=False):
            return self._ready  # while somebody looks, which may take long, nobody else waits
        try:
            ready = self._look()
            if ready != self._ready:
                log("ready" if ready else "not ready")
            self._looked, self._ready = self._clock(), ready
        finally:
            self._lock.release()
        return ready

    def _look(self) -> bool:
        try:
            with self._store.reading() as connection:
                connection.execute("SELECT 1")
            for served in self._datasets.everything():
                served.session.budget(history=False)
        except LapwingError:
            return False
        return True

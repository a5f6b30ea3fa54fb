"""Failed logins, in the log and in the audit log: from which address, and with which name.

Theory of operation. Each is a line of the log, as every request is one, and a count in the metrics. The audit log is
for good and lies beside the ledger, so strangers must not be able to fill it: of failed logins it takes a line each
only while a bucket has room, of `AT_ONCE` and then one a `PAUSE`. Those in between are counted, and the next line that
finds room says how many they were, and of the most frequent from where and with which names. So a flood leaves at most
1,440 lines a day, of some hundred bytes each, and does not hide that somebody in particular was aimed at.

The name that was tried may be a password, typed into the wrong field. So a name is shown if somebody has it, or if it
is too short to be a password here; of any other, only how long it is.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, final

from lapwing.errors import TooManyRequests
from lapwing.server.audit_log import note
from lapwing.server.authentication import TokenBuckets
from lapwing.server.log import log
from lapwing.server.metrics import Metrics
from lapwing.server.passwords import SHORTEST
from lapwing.server.store import ServiceStore

AT_ONCE: Final = 50
PAUSE: Final = 60.0
"""Seconds in which one line more may be written, at length."""
MOST_KINDS: Final = 500
"""Addresses and names that are counted while there is no room for a line."""
MOST_SHOWN: Final = 5
STRANGER: Final = "(nobody)"
"""In the place of who did it, where no person can have this name."""


@final
class FailedLogins:
    """Writes down failed logins.

    Args:
        workers: Processes of the service, among which the lines of the audit log are divided.
    """

    def __init__(
        self, store: ServiceStore, metrics: Metrics, workers: int = 1, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store, self._metrics = store, metrics
        self._room = TokenBuckets(1 / PAUSE / workers, max(1.0, AT_ONCE / workers), clock)
        self._lock = threading.Lock()
        self._untold: Counter[tuple[str, str]] = Counter()

    def note(self, name: str, address: str, by: str = STRANGER) -> None:
        """Write down that somebody gave a name and not its password.

        Args:
            by: Who, if they are known by a token.
        """
        shown = self._shown(name)
        self._metrics.count_failed_login()
        log("login failed", person=shown, address=address)
        try:
            self._room.take("")
        except TooManyRequests:
            self._count((address, shown))
            return
        with self._lock:
            untold, self._untold = self._untold, Counter()
        more = {"more": sum(untold.values()), "most": _most(untold)} if untold else {}
        with self._store.transaction() as connection:
            note(connection, by, "login failed", shown, address=address, **more)

    def _count(self, kind: tuple[str, str]) -> None:
        with self._lock:
            known = kind in self._untold or len(self._untold) < MOST_KINDS
            self._untold[kind if known else ("", "(others)")] += 1

    def _shown(self, name: str) -> str:
        if len(name) < SHORTEST:
            return name
        with self._store.reading() as connection:
            known = connection.execute("SELECT 1 FROM people WHERE name = ?", (name,)).fetchone()
        return name if known else f"(a name of nobody, {len(name)} characters long)"


def _most(untold: Counter[tuple[str, str]]) -> Sequence[Sequence[object]]:
    """Return the addresses and names that were tried the most, with how often."""
    return [[address, name, times] for (address, name), times in untold.most_common(MOST_SHOWN)]

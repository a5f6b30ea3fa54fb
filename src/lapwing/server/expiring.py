"""Find service accounts that expire soon, for the metrics, the log and the webhook.

The name of an account and the date of its end are facts of the operator, not of the data. The log names each account
and date once in a process.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, final

from lapwing.server.log import log
from lapwing.server.people import DAY
from lapwing.server.store import ServiceStore

SOON: Final = 14 * DAY
"""The time before the end of an account at which Lapwing warns operators and curators."""
_ENDING: Final = "SELECT name, expires FROM people WHERE owner IS NOT NULL AND active = 1 AND expires < ? ORDER BY name"


@final
class ExpiringAccounts:
    """Count active accounts that expire soon or have expired, and log each once."""

    def __init__(self, store: ServiceStore, clock: Callable[[], float] = time.time) -> None:
        self._store, self._clock = store, clock
        self._logged = frozenset[tuple[str, float]]()

    def look(self) -> int:
        """Return the number of these accounts; the log names new ones."""
        ending = frozenset((name, expires) for name, expires in self._store.look(_ENDING, (self._clock() + SOON,)))
        for name, expires in sorted(ending - self._logged):
            log("service account expires", account=name, on=str(datetime.fromtimestamp(expires, UTC).date()))
        self._logged = ending
        return len(ending)

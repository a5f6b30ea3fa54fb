"""Dismissed monitors: finished ones that curators have put out of sight, and can bring back.

A dismissal changes what lists and notices show. The monitor's results, its file and what it cost stay as they are.
"""

import time
from collections.abc import Callable
from typing import Final, final

from lapwing.server.audit_log import note
from lapwing.server.store import ServiceStore

ENDED: Final = frozenset({"over", "stopped"})
"""Statuses in which a monitor releases nothing more. Only such a monitor can be dismissed."""


@final
class DismissedMonitors:
    """The dismissed monitors of all data sets.

    Args:
        clock: Seconds since 1970.
    """

    def __init__(self, store: ServiceStore, clock: Callable[[], float] = time.time) -> None:
        self._store, self._clock = store, clock

    def of(self, dataset: str) -> frozenset[str]:
        """Return the names of the dismissed monitors of a data set."""
        rows = self._store.look("SELECT monitor FROM dismissed_monitors WHERE dataset = ?", (dataset,))
        return frozenset(name for (name,) in rows)

    def dismiss(self, dataset: str, monitor: str, *, by: str) -> None:
        """Put a monitor out of sight; once more changes nothing."""
        with self._store.transaction() as connection:
            added = connection.execute(
                "INSERT INTO dismissed_monitors (dataset, monitor, dismissed) VALUES (?, ?, ?)"
                " ON CONFLICT (dataset, monitor) DO NOTHING",
                (dataset, monitor, self._clock()),
            )
            if added.rowcount == 1:
                note(connection, by, "monitor dismissed", monitor, dataset=dataset)

    def restore(self, dataset: str, monitor: str, *, by: str) -> None:
        """Bring a monitor back into sight; once more changes nothing."""
        with self._store.transaction() as connection:
            where = "DELETE FROM dismissed_monitors WHERE dataset = ? AND monitor = ?"
            if connection.execute(where, (dataset, monitor)).rowcount == 1:
                note(connection, by, "monitor restored", monitor, dataset=dataset)

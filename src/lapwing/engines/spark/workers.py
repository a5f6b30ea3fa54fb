"""Wait for executors of a cluster: for a limited time, and not in silence.

Theory of operation. Spark queues a job for which there is no executor, says nothing, and waits for ever. So before a
query is charged (`Engine.prepare`), a cluster without executors is asked for one row that is in no table. Spark asks
for executors where it starts them on demand. If none has answered after `BEFORE` seconds, the query ends uncharged.

Executors may also be lost while a query runs. Spark starts its tasks again when others come, with the same integers.
The price is paid by then, so it is worth a longer wait, `MEANWHILE`. Then the query ends as any other that failed, and
stays charged.

Guarantee:
    Lapwing reads no row before the charge, so that no row decides about the wait, or about the words for it. After
    the charge a row could, in theory: a heavy one might end an executor. So a wait that is too long ends in the one
    message of all faults, and a service tells nobody of that wait (`server.job_runner`).
"""

import time
from collections.abc import Callable
from typing import Final, final

from lapwing.errors import Fault
from lapwing.machine import waiting

SILENCE: Final = 5.0
"""Seconds without executors that need no explanation."""
BEFORE: Final = 60.0
"""Seconds without executors after which a query is not charged, and ends."""
MEANWHILE: Final = 300.0
"""Seconds without executors after which a query that runs is given up."""
PAUSE: Final = 1.0
"""Seconds between two looks: a query that takes less is not looked after."""
PROBE: Final = "SELECT COUNT(*) FROM range(0, 1, 1, 1)"
"""A query of one task, about no table."""


@final
class ExecutorWatch:
    """Looks whether there are executors while a query runs, and says if it waits for some.

    Args:
        executors: Return how many there are; None where nobody knows.
        patience: Seconds without any.
        what: the wait, for listeners.
        clock: Seconds of a clock that never goes back.
    """

    def __init__(
        self,
        executors: Callable[[], int | None],
        patience: float,
        what: waiting.WaitsFor,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._executors, self._patience, self._what, self._clock = executors, patience, what, clock
        self._began = clock()
        self._looked = self._began
        self._without: float | None = None
        self._said = False

    def gave_up(self) -> bool:
        """Tell whether there have been no executors for too long; called again and again while a query runs."""
        now = self._clock()
        if now - self._looked >= PAUSE:
            if self._executors() != 0:
                self._without = None
            elif self._without is None:
                self._without = self._looked
            self._looked = now
        waited = 0.0 if self._without is None else now - self._without
        if self._said != (waited >= SILENCE):
            self._said = not self._said
            waiting.say(self._what if self._said else None)
        return waited >= self._patience

    def end(self) -> None:
        """Say that nothing is waited for any more."""
        if self._said:
            self._said = False
            waiting.say(None)


def executors_of(context: object) -> int | None:
    """Return how many executors an application has beside its driver; None if it does not tell."""
    try:
        return int(context._jsc.sc().getExecutorMemoryStatus().size()) - 1  # type: ignore[attr-defined]
    except Exception:
        return None


def no_workers() -> Fault:
    """Return what is raised where no executor came before a query."""
    return Fault(
        f"The Spark cluster has no workers for this query, and none came within {BEFORE:g} seconds.",
        curator_remedy="look whether workers of the cluster are up, and whether another application has all their "
        "cores or memory",
    )

"""What stands in the service at the moment, for the metrics: budgets, queue, processes, and the wait for a ledger.

What a budget has left is told to all who may ask, and a ledger is held while a charge is decided and written, before
any row is read. How many questions wait and run is as public as the time for which each has its place in the queue.

The metrics may be asked of any worker. Each counts its own questions; a thread sees to it that what a worker says of
itself is never much older than `PAUSE`, and it takes the time until this process could hold each ledger, as a charge
has to. Nobody who asks for the metrics waits for a ledger.

The same thread asks whether data sets are ready (`server.readiness`), so that a full disk or a stopped data set is
logged and sent (`server.webhook`) within `PAUSE` though nobody asks.
"""

import time
from collections.abc import Callable, Sequence
from typing import Final, final

from lapwing import __version__
from lapwing.errors import LapwingError
from lapwing.machine.build import build_id
from lapwing.server.datasets import Datasets
from lapwing.server.execution import QuestionExecutor
from lapwing.server.expiring import ExpiringAccounts
from lapwing.server.metrics import Metrics
from lapwing.server.readiness import STOPPED, Readiness
from lapwing.server.rounds import Rounds

PAUSE: Final = 5.0
"""Seconds between two looks."""


@final
class Gauges:
    """Sets the gauges of a process."""

    def __init__(
        self,
        metrics: Metrics,
        datasets: Datasets,
        executor: QuestionExecutor,
        clock: Callable[[], float] = time.perf_counter,
        readiness: Readiness | None = None,
        tasks: Sequence[Rounds] = (),
        accounts: ExpiringAccounts | None = None,
    ) -> None:
        self._metrics, self._datasets, self._executor, self._clock = metrics, datasets, executor, clock
        self._readiness, self._tasks, self._accounts = readiness, tasks, accounts
        metrics.set_build(__version__, build_id())
        self.rounds = Rounds("gauges", PAUSE, self._round)

    def look(self) -> None:
        """Set what can be seen without waiting: the queue of this process, and what the budgets have left."""
        self._metrics.set_queue(*self._executor.depth())
        self._metrics.set_tasks_failing(sum(task.failing for task in (*self._tasks, self.rounds)))
        self._set_standings()
        if self._accounts is not None:
            self._metrics.set_accounts_expiring(self._accounts.look())
        for served in self._datasets.everything():
            try:
                view = served.session.budget(history=False)
            except LapwingError:  # it is said where it is asked for
                continue
            self._metrics.set_budget(served.name, float(view.remaining.amount / view.total.amount))
            if view.delta_keys:
                self._metrics.set_delta_keys(served.name, float(view.delta_room() / view.delta_keys))

    def _set_standings(self) -> None:
        if self._readiness is None:
            return
        self._metrics.set_ready(ready=self._readiness.is_ready())
        for name, standing in self._readiness.standings().items():
            self._metrics.set_standing(
                name,
                ready=standing.reason is None,
                stopped=standing.reason in STOPPED,
                changed=standing.changed,
                faults=standing.faults,
                late=standing.late,
                free=standing.free,
            )

    def wait_for_ledgers(self) -> None:
        """Take the time until each ledger could be held."""
        for served in self._datasets.everything():
            start = self._clock()
            try:
                served.session.await_charges()
            except LapwingError:
                continue
            self._metrics.set_ledger_wait(served.name, self._clock() - start)

    def _round(self) -> float:
        self.look()
        self.wait_for_ledgers()
        return PAUSE

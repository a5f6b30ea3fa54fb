"""Whether a service can charge new queries: which data sets are stopped, and whether store and ledgers can be written.

Theory of operation. `look` asks the store and every ledger for what a charge needs: that it can be read, that the disk
takes a write, and that the process that asks queries is there. It is called at most once in `FRESH` seconds, however
often anybody asks, and by a thread every few seconds though nobody does (`server.gauges`). A charge that fails for its
ledger makes the next call look at once (`suspect`). What changes is logged, by data set, with a reason:

- `unreadable`, `unwritable`: its ledger, as of a full disk or a database that does not answer. `unwritable` is found by
  writing `store.PROBE` bytes to a file beside the ledger that has no name.
- `faults`: so many charged queries failed that the curator has to look (`ledger.faults`).
- `late`: so many failed or were late that only people who are trusted with time are served (`ledger.events`).
- `stopped`, `closed`: a curator has said so.
- `engine`: the process that asks queries at deadlines is not there, so only those who are trusted with time are served.

That a curator has looked is logged, too. All of these are public: they follow from the ledger's entries, the policies
and the machine. Strangers are told whether the service works and how many data sets take no new query, and no names, as
those are for people who may see them.

A data set that is stopped leaves the service ready: all other data sets are served, and what was bought stays free.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, final

from lapwing.budget import BudgetView
from lapwing.errors import LapwingError
from lapwing.ledger.events import EVENTS_ALLOWED
from lapwing.server.data_watch import Change
from lapwing.server.datasets import Datasets, ServedDataset
from lapwing.server.log import log
from lapwing.server.policies import Policies
from lapwing.server.store import ServiceStore, write_probe

FRESH: Final = 1.0
"""Seconds for which what was found holds."""
WRITTEN: Final = 5.0
"""Seconds for which a disk that took a write counts as writable."""
Reason = Literal[
    "unreadable", "unwritable", "faults", "late", "stopped", "closed", "engine", "changed", "public_changed"
]
BROKEN: Final[tuple[Reason | None, ...]] = ("unreadable", "unwritable", "engine")
"""With which the service is not ready: these are of the machine, and not of a data set alone."""

NEARLY: Final = Fraction(4, 5)
"""The spent share of a budget at which Lapwing warns operators and curators."""

STOPPED: Final[tuple[Reason | None, ...]] = ("faults", "late", "stopped", "closed")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a data set stands.

    Args:
        reason: Why it takes no new query, None if it does.
        faults: Since the curator last looked.
        late: How often answers were late since then.
        changed: Whether the data of a table differ from the current version.
        nearly_spent: Whether at least `NEARLY` of the budget is spent.
        free: Bytes that the disk of its ledger has left, None if nobody knows.
    """

    reason: Reason | None = None
    faults: int = 0
    late: int = 0
    changed: bool = False
    nearly_spent: bool = False
    free: int | None = None


@final
class Readiness:
    """Looks whether queries can be charged.

    Args:
        is_up: Tells whether the process that asks queries at deadlines is there, or none is needed.
        timed: Whether answers are held until a deadline, so that late ones are counted.
        change: Tells whether the data of a data set differ from a version, and how (`server.data_watch`).
    """

    def __init__(
        self,
        store: ServiceStore,
        datasets: Datasets,
        policies: Policies | None = None,
        clock: Callable[[], float] = time.monotonic,
        is_up: Callable[[], bool] = lambda: True,
        *,
        timed: bool = False,
        change: Callable[[str, int], Change | None] = lambda name, version: None,
    ) -> None:
        self._store, self._datasets, self._clock, self._is_up = store, datasets, clock, is_up
        self._timed, self._change = timed, change
        self._policies = policies or Policies(store)
        self._lock = threading.Lock()
        self._looked, self._ready = -FRESH, False
        self._suspected = -FRESH
        self._standings: Mapping[str, Standing] = {}
        self._writable: dict[Path, tuple[float, bool]] = {}

    def is_ready(self) -> bool:
        """Tell whether store and ledgers can be read and written; the log says when that begins and ends."""
        if self._clock() - self._looked < FRESH or not self._lock.acquire(blocking=False):
            return self._ready  # while somebody looks, which may take long, nobody else waits
        try:
            began = self._clock()
            ready = self._look()
            if ready != self._ready:
                log("ready" if ready else "not ready")
            self._looked = self._clock() if self._suspected <= began else -FRESH  # something failed meanwhile
            self._ready = ready
        finally:
            self._lock.release()
        return ready

    def standings(self) -> Mapping[str, Standing]:
        """Return how each data set stands, by name, as it was found last."""
        return MappingProxyType(self._standings)

    def suspect(self) -> bool:
        """Say that something failed just now: the next call looks again, at the disks too; False if it was just said.

        So a flood of failures makes it look once in `FRESH` seconds.
        """
        if self._clock() - self._suspected < FRESH:
            return False
        self._suspected = self._clock()
        self._writable, self._looked = {}, -FRESH
        return True

    def look_again(self) -> None:
        """Say that a curator changed something: the next call looks."""
        self._looked = -FRESH

    def _look(self) -> bool:
        found = {served.name: self._standing(served) for served in self._datasets.everything()}
        before, self._standings = self._standings, found
        for name, standing in found.items():
            was = before.get(name, Standing())
            if standing.faults < was.faults or standing.late < was.late:
                log("data set resumed", dataset=name, faults=was.faults, late=was.late)
            if standing.reason is not None and standing.reason != was.reason:
                counted = {"faults": standing.faults, "late": standing.late}
                log("data set not ready", dataset=name, reason=standing.reason, **counted)
            elif standing.reason is None and was.reason is not None:
                log("data set ready", dataset=name)
            elif standing.faults > was.faults:
                log("charged query failed", dataset=name, faults=standing.faults)
            if standing.nearly_spent and not was.nearly_spent:
                log("budget nearly spent", dataset=name, share=float(NEARLY))
        return self._store_is_ready() and not any(standing.reason in BROKEN for standing in found.values())

    def _store_is_ready(self) -> bool:
        try:
            with self._store.reading() as connection:
                connection.execute("SELECT 1")
            self._store.require_writable()
        except LapwingError:
            return False
        return True

    def _standing(self, served: ServedDataset) -> Standing:
        beside = served.session.catalog.ledger_path
        try:
            view = served.session.budget(history=False)
            stopped = self._policies.policy(served.name).stopped
        except LapwingError:
            return Standing(reason="unreadable", free=free_bytes(beside.parent))
        changed = self._change(served.name, view.version)
        reason: Reason | None = _reason(view, stopped=stopped, timed=self._timed)
        if not self._takes_a_write(beside.parent):
            reason = "unwritable"
        elif reason is None and not self._is_up():
            reason = "engine"
        elif reason is None:
            reason = changed
        nearly = view.spent.amount >= NEARLY * view.total.amount
        free = free_bytes(beside.parent)
        counted = {"faults": view.faults, "late": view.late}
        return Standing(reason=reason, changed=changed is not None, nearly_spent=nearly, free=free, **counted)

    def _takes_a_write(self, folder: Path) -> bool:
        looked, writable = self._writable.get(folder, (-WRITTEN, False))
        if not writable or self._clock() - looked >= WRITTEN:
            writable = takes_a_write(folder)
            self._writable[folder] = self._clock(), writable
        return writable


def takes_a_write(folder: Path) -> bool:
    """Tell whether a folder's disk takes some more bytes, durably; nothing is left of them."""
    try:
        write_probe(folder)
    except OSError:
        return False
    return True


def free_bytes(folder: Path) -> int | None:
    """Return how many bytes a folder's disk has left for this user; None if nobody knows."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return None
    return disk.f_bavail * disk.f_frsize


def _reason(view: BudgetView, *, stopped: bool, timed: bool) -> Reason | None:
    if view.closed:
        return "closed"
    if stopped:
        return "stopped"
    if view.stopped:
        return "faults"
    return "late" if timed and view.faults + view.late >= EVENTS_ALLOWED else None

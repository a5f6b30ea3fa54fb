"""One server of a task that repeats every day: it takes parts of each day, and releases each day once, in order.

Theory of operation. Each day has a task and a file of parts of its own (`TaskDays.on`, `ShareStore`). The horizon is
charged once, before the first day is released, with the task's whole ε. It stays paid if the task ends early. A day is
released after the one before it, for one set of clients. If there are too few, the organiser names the empty set, and
the day has noise only. The release and the noise that later days need are stored together before the release leaves
(`horizon_store`). When a day was released its parts are of no more use, and are deleted.
"""

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final, final

import numpy as np

from lapwing.errors import BudgetExhausted, Fault, InvalidParameter, QueryRefused, RefusalCause
from lapwing.exact.arrays import IntArray
from lapwing.exact.entropy import SYSTEM, Entropy, read_exactly
from lapwing.ledger.entries import Charge
from lapwing.ledger.opening import open_ledger
from lapwing.ledger.registration import Registration
from lapwing.mechanisms.continual.tree import ContinualLaplace
from lapwing.privacy.measures import Loss
from lapwing.secure.adding import LEDGER
from lapwing.secure.charging import LOCK, charge_once, locked
from lapwing.secure.horizon_store import HorizonStore
from lapwing.secure.noisy_totals import noisy_total
from lapwing.secure.part_sums import CellSums
from lapwing.secure.repetition import TaskDays
from lapwing.secure.share_store import ShareStore
from lapwing.secure.task import Task
from lapwing.secure.wire import ServerRelease, clients_in, records_in, set_digest, set_of

MOST_AHEAD: Final = 60
"""Days after the last released one for which parts are taken: each has a file of its own that is open."""
_ANY: Final = 0
"""The place of a server: answers are not checked, so parts are alike at all servers."""


@final
class HorizonNoise:
    """The noise of one server from day to day, as `AddsNoise`: each release is the next day's.

    Args:
        kept: The bytes of the day before (`to_bytes`); empty before the first.
    """

    def __init__(self, mechanism: ContinualLaplace, cells: int, kept: bytes) -> None:
        head, _, rest = kept.partition(b"\n")
        self._sums = mechanism.restored(rest) if kept else mechanism.start(cells)
        self._so_far = np.array(json.loads(head) if kept else [0] * cells, dtype=object)

    def release(self, values: IntArray, entropy: Entropy) -> IntArray:
        """Return the values with n_t − n_{t−1}, n_t the noise of the tree in the count up to the day."""
        nothing = np.zeros(len(self._so_far), dtype=np.int64)
        so_far = self._sums.advance(nothing, entropy).astype(object)
        step, self._so_far = so_far - self._so_far, so_far
        released: IntArray = values + step
        return released

    def to_bytes(self) -> bytes:
        """Return all that later days need; as secret as the parts."""
        return json.dumps([int(each) for each in self._so_far]).encode() + b"\n" + self._sums.to_bytes()


@final
class RepeatingServer:
    """One server of a task that repeats, in a folder of its own that no other process may use at the time.

    Guarantee:
        The ledger charges the horizon before its first release. All releases of all days together lose no more than
        that charge. This holds for each client that answers once a day, on no more days than the task allows.

    Args:
        budget: The most that the answers of a client lose at this server, in all tasks of this folder.

    Raises:
        InvalidParameter: If the task does not repeat.
        CatalogMismatch: If the folder's ledger was begun with another budget.
        Fault: If another process uses it, or its file of days is not the newest.
    """

    def __init__(self, folder: Path, task: Task, budget: Registration, entropy: Entropy = SYSTEM) -> None:
        self.task, self._repeats = task, repetition_of(task)
        self._folder, self._entropy = folder, entropy
        self._mechanism = self._repeats.mechanism(task.epsilon, task.asked.sensitivity)
        self._mechanism.loss(budget.budget.kind)  # refused if this noise has none in that measure
        self._tasks: Mapping[int, Task] = {day: task.on(day) for day in range(1, self._repeats.days + 1)}
        self._parts = dict[int, ShareStore]()
        self._opening, self._releasing = threading.Lock(), threading.Lock()
        self._lock = locked(folder / LOCK)
        try:
            identity = read_exactly(entropy, 16).hex()
            self._store = HorizonStore(folder / f"horizon-{task.digest[:16]}.db", task.digest, identity)
            self._ledger = open_ledger(f"sqlite:{LEDGER}", folder, budget)
            if self._ledger.state().version == 0:
                self._ledger.accept({"answers": "as clients send them"}, "server")
            self._require_store_of_charge()
        except BaseException:
            self._lock.close()
            raise
        for day in range(1, self._store.count() + 1):
            self._forget(day)

    def day_tasks(self) -> Mapping[int, Task]:
        """Return the task of each day, by its number."""
        return self._tasks

    def take(self, day: int, body: bytes) -> int:
        """Keep the records of a body durably, and return how many were new.

        Raises:
            InvalidParameter: If it is no body of records, or the day is too far ahead.
            QueryRefused: If the day is closed.
        """
        records = records_in(body, self.task.part_bytes(_ANY), lambda part: self.task.is_part(part, _ANY))
        return self._of(day).take(records)

    def progress(self, day: int) -> tuple[int, bool]:
        """Return how many clients a day has, and whether it takes no more."""
        released = self.released(day)
        if released is not None:
            return released.clients, True
        store = self._of(day)
        return store.count(), store.is_frozen()

    def freeze(self, day: int) -> bytes:
        """Take nothing for a day from now on, and return its set of clients.

        A day that was released has the set of its release. All servers froze with all of this set, so those that did
        not release the day yet can.
        """
        clients = self._store.clients(day)
        return self._of(day).freeze() if clients is None else clients

    def released(self, day: int) -> ServerRelease | None:
        """Return what was released of a day, if it was."""
        text = self._store.release(day)
        if text is None:
            return None
        return ServerRelease.from_text(text, task=self._tasks[day].digest, width=self.task.asked.width)

    def releases(self) -> list[str]:
        """Return what was released of all days so far, as texts."""
        return self._store.releases()

    def release(self, day: int, clients: bytes) -> ServerRelease:
        """Return the noisy part of the totals of a day; the same for the same set of clients, and refused for another.

        Args:
            clients: The set; empty if too few answered.

        Raises:
            InvalidParameter: If the set is none, or not held, or an earlier day is not released yet.
            QueryRefused: If it is too small, or the day was released for another set.
            BudgetExhausted: If the budget does not bear the horizon.
        """
        members, digest = clients_in(clients), set_digest(self._tasks[day].digest, clients)
        if 0 < len(members) < self.task.least_clients:
            raise QueryRefused(
                f"The set has {len(members)} clients and the task needs {self.task.least_clients}, or none at all",
                cause=RefusalCause.TOO_FEW_CLIENTS,
                remedy="Nothing was released.",
            )
        with self._releasing:
            stored = self.released(day)
            if stored is not None and stored.clients_digest != digest:
                raise QueryRefused(
                    f"Day {day} was released already, for another set of clients",
                    cause=RefusalCause.TASK_CLOSED,
                    remedy="A day is released once. Read its result.",
                )
            return stored or self._new_release(day, members, digest)

    def require_affordable(self) -> None:
        """Refuse a task that could never be released, before anybody answers it.

        Raises:
            BudgetExhausted: If nothing was charged for it yet and its loss is beyond what is left of the budget.
        """
        account = self._ledger.seen().account
        begun = bool(self._ledger.answers(self._key())) or bool(self._ledger.seen().under_way)
        loss = self._loss()
        if not begun and not loss.rounded_up() <= account.remaining:
            raise BudgetExhausted(
                f"The {self._repeats.days} days together cost {loss}, and {account.spent} of this folder's budget of "
                f"{account.budget} is already spent. Use a new folder, or start one with a larger --epsilon."
            )

    def spent(self) -> tuple[Loss, Loss]:
        """Return what was charged so far, and the budget."""
        account = self._ledger.seen().account
        return account.spent, account.budget

    def close(self) -> None:
        """Close the files and let others use the folder."""
        with self._opening:
            for store in self._parts.values():
                store.close()
            self._parts.clear()
        self._store.close()
        self._ledger.close()
        self._lock.close()

    def _of(self, day: int) -> ShareStore:
        """Return where the parts of a day are, unless it was released."""
        with self._opening:
            done = self._store.count()
            if day <= done:
                raise QueryRefused(
                    f"Day {day} is closed", cause=RefusalCause.TASK_CLOSED, remedy="It was released; nothing was taken."
                )
            if day > done + MOST_AHEAD:
                raise InvalidParameter(f"Day {day} is more than {MOST_AHEAD} days ahead of the last released one.")
            if day not in self._parts:
                task = self._tasks[day]
                self._parts[day] = ShareStore(self._path(day), task.digest, task.width, task.most_clients)
            return self._parts[day]

    def _new_release(self, day: int, members: list[bytes], digest: str) -> ServerRelease:
        """Charge the horizon if it is not, draw a day, and store it; the order of the lines is the safety argument."""
        if day != self._store.count() + 1:
            raise InvalidParameter(f"Days are released in order: the next one is {self._store.count() + 1}.")
        held = self._of(day)
        if not members:
            held.freeze()
        parts = held.parts(members)  # a wrong set costs nothing; who sent is no secret here
        self._charge()
        noise = HorizonNoise(self._mechanism, self.task.asked.width, self._store.noise())
        cells = noisy_total(CellSums(self.task, _ANY).totals(parts), noise, self._entropy)
        release = ServerRelease(task=self._tasks[day].digest, clients=len(members), clients_digest=digest, cells=cells)
        self._store.add(day, set_of(members), release.to_text(), noise.to_bytes())
        self._forget(day)
        return release

    def _forget(self, day: int) -> None:
        """Delete the parts of a day that was released."""
        with self._opening:
            if day in self._parts:
                self._parts.pop(day).close()
            for ending in ("", "-wal", "-shm"):
                Path(f"{self._path(day)}{ending}").unlink(missing_ok=True)

    def _path(self, day: int) -> Path:
        return self._folder / f"parts-{self._tasks[day].digest[:16]}.db"

    def _loss(self) -> Loss:
        return self._mechanism.loss(self._ledger.seen().account.budget.kind)

    def _key(self) -> str:
        return json.dumps(["secure horizon", self.task.digest])

    def _charge(self) -> None:
        """Charge the horizon once; the answer that is stored with the charge names the file of days."""
        if self._ledger.answers(self._key()):
            return
        charge = Charge(
            key=self._key(),
            question=f"the totals of {self._repeats.days} days: {self.task.question}",
            loss=self._loss(),
            catalog_digest=self.task.digest,
            principal="organiser",
            version=self._ledger.seen().version,
        )
        outcome = charge_once(self._ledger, charge)
        if not isinstance(outcome, int):
            account = self._ledger.seen().account
            raise BudgetExhausted(
                f"The days together cost {charge.loss} and the server's budget is {account.budget}, of which "
                f"{account.spent} is spent. Nothing was released."
            )
        self._ledger.record_answer(outcome, json.dumps({"horizon": self._store.identity}))

    def _require_store_of_charge(self) -> None:
        """Refuse a file of days that was begun after the horizon was charged: it would draw the noise again."""
        answers = self._ledger.answers(self._key())
        if answers and json.loads(answers[0].payload).get("horizon") != self._store.identity:
            raise Fault(
                "The server's file of days is missing, or it is another one, and days were released from it. Put it "
                "back with its mark. Nothing more is released without it."
            )


def repetition_of(task: Task) -> TaskDays:
    """Return the days of a task that repeats.

    Raises:
        InvalidParameter: If it does not, or is the task of one day.
    """
    if task.repeats is None or task.repeats.day is not None:
        raise InvalidParameter("The task does not repeat, or it is the task of a single day.")
    return task.repeats

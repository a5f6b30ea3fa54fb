"""One server: takes parts, freezes the set of clients, and releases its noisy part of the totals of one closed set.

Theory of operation. A release is charged to the server's own ledger before the parts are read, and kept there before it
leaves; asked again for the same set, the server gives the same release. Between charge and release the server may die.
Then no release has left, so the same charge pays for drawing the noise anew. A release of another set is another
question, with its own charge: whoever names sets, the ledger bounds what all of them together lose.

What the server is told is not trusted: the organiser may name any set of clients it holds (docs/theory/secure.md, where
the proof gives the adversary that choice), and other clients and servers may have sent anything.
"""

import json
import threading
from fractions import Fraction
from pathlib import Path
from typing import Final, final

from lapwing.errors import BudgetExhausted, InvalidParameter, QueryRefused, RefusalCause
from lapwing.exact.entropy import SYSTEM, Entropy, read_exactly
from lapwing.ledger.entries import Charge
from lapwing.ledger.opening import open_ledger
from lapwing.ledger.registration import Registration
from lapwing.privacy.amount_texts import short
from lapwing.privacy.calibration import loss_for
from lapwing.privacy.measures import Loss, PureDP
from lapwing.secure import wire
from lapwing.secure.charging import LOCK, charge_once, locked
from lapwing.secure.checking import challenge_of, range_label, release_label, require_ranges
from lapwing.secure.identity import place_of
from lapwing.secure.noise_rounds import SET_BYTES, message_sizes, take_part
from lapwing.secure.noisy_totals import AddsNoise, NoiseParts, noisy_total
from lapwing.secure.pair_keys import pair_keys_of
from lapwing.secure.part_sums import CellSums, GridSums
from lapwing.secure.sealing import Opener, sealed_bytes
from lapwing.secure.share_store import ShareStore
from lapwing.secure.task import NEIGHBOURING, Task
from lapwing.secure.wire import ID_BYTES, ServerRelease, clients_in, records_in, set_digest

LEDGER: Final = "sums.lapwing.db"
_UNIT: Final = "the answers of one client"


@final
class AddingServer:
    """One server of a task, in a folder of its own that no other process may use at the time.

    Guarantee:
        Whatever was released to anybody is in the ledger, charged; all releases together are within its budget.

    Args:
        budget: What the answers of a client may lose at this server, in all tasks that it keeps in this folder.

    Raises:
        InvalidParameter: If the task repeats (`repeating_server`).
        CatalogMismatch: If the folder's ledger was begun with another budget.
        Fault: If another process uses it.
    """

    def __init__(self, folder: Path, task: Task, budget: Registration, entropy: Entropy = SYSTEM) -> None:
        if task.repeats:
            raise InvalidParameter("The task repeats: `RepeatingServer` serves it.")
        self.task = task
        self._entropy = entropy
        self._releasing = threading.Lock()
        self._folder = folder
        self._opener: Opener | None = None
        self._keys = pair_keys_of(folder, task) if task.checked or task.joint else None
        self._place = self._keys.place if self._keys else 0  # without keys the parts of all servers are alike
        self._sums = (GridSums if task.grid else CellSums)(task, self._place)
        self._tested: tuple[tuple[str, int], list[list[int]]] | None = None
        task.noise.loss(task.asked.sensitivity, budget.budget.kind)  # refused if this noise has none in that measure
        self._lock = locked(folder / LOCK)
        try:
            path = folder / f"parts-{task.digest[:16]}.db"
            self._store = ShareStore(path, task.digest, task.width, task.most_clients)
            self._ledger = open_ledger(f"sqlite:{LEDGER}", folder, budget)
            if self._ledger.state().version == 0:  # every release is a question about the same answers
                self._ledger.accept({"answers": "as clients send them"}, "server")
        except BaseException:
            self._lock.close()
            raise

    def take(self, body: bytes) -> int:
        """Keep the records of a body durably, and return how many were new.

        Raises:
            InvalidParameter: If it is no body of records.
            QueryRefused: If the task is closed.
        """
        task, place = self.task, self._place
        return self._store.take(records_in(body, task.part_bytes(place), lambda part: task.is_part(part, place)))

    def take_sealed(self, body: bytes) -> tuple[int, int]:
        """Keep what was sealed for this server, durably; return how many records were new, and how many wrong.

        Those that do not open, are no record of the task, or are not what is held of their client are left out alone:
        whoever relays them could not tell.

        Raises:
            InvalidParameter: If the body is not made of whole sealed records, or the folder has no key for them.
            QueryRefused: If the task is closed.
        """
        size, records, wrong = ID_BYTES + sealed_bytes(self.task, self._place), dict[bytes, bytes](), 0
        if not body or len(body) % size:
            raise InvalidParameter(f"A body has {len(body)} bytes; it must hold whole records of {size} bytes each.")
        if self._opener is None:
            name = self.task.servers[place_of(self._folder, self.task)].name
            self._opener = Opener(self._folder, self.task, name)
        for at in range(0, len(body), size):
            client = body[at : at + ID_BYTES]
            cells = self._opener.opened(client, body[at + ID_BYTES : at + size])
            if cells is None or not self.task.is_part(cells, self._place) or records.setdefault(client, cells) != cells:
                wrong += 1
        new, conflicts = self._store.take_each(records)
        return new, wrong + conflicts

    def freeze(self) -> bytes:
        """Take nothing from now on, and return the set of clients."""
        return self._store.freeze()

    def progress(self) -> tuple[int, bool]:
        """Return how many clients there are, and whether the set is frozen."""
        return self._store.count(), self._store.is_frozen()

    def released(self) -> ServerRelease | None:
        """Return what was released last, if anything was."""
        digest = self._store.released()
        return None if digest is None else self._stored(self._key(digest))

    def nonce(self) -> bytes:
        """Return what this server adds to the challenge of a test: drawn once the set of clients is frozen.

        Raises:
            InvalidParameter: Before that.
        """
        return self._store.nonce(read_exactly(self._entropy, wire.NONCE_BYTES))

    def test(self, body: bytes) -> bytes:
        """Return this server's masked summand of z for ranges of a set of clients, 8 bytes each.

        Guarantee:
            With the summands of the other servers it gives z, which is 0 whatever honest clients answered; without them
            it is uniform (`secure.checking`).

        Raises:
            InvalidParameter: If the request is none, is of clients that are not held, or of another challenge.
        """
        if self._keys is None or not self.task.checked:
            raise InvalidParameter("The task has no checked answers, so there is nothing to test.")
        nonces, ranges, clients = wire.opening_in(body)
        if nonces[self._keys.place] != self.nonce():
            raise InvalidParameter("The challenge does not use this server's nonce; nothing was opened.")
        digest = set_digest(self.task.digest, clients)
        challenge = challenge_of(digest, nonces)
        with self._releasing:
            tests = self._running(clients, digest, challenge)
        require_ranges(ranges, len(tests[0]) - 1)
        opened, modulus = [], self.task.modulus
        for low, high in ranges:
            masks = self._keys.masks(range_label(digest, challenge, (low, high)), len(tests), modulus)
            opened += [(sums[high] - sums[low] + mask) % modulus for sums, mask in zip(tests, masks, strict=True)]
        return b"".join(each.to_bytes(wire.CELL_BYTES, "little") for each in opened)

    def noise(self, body: bytes) -> bytes:
        """Return this server's next message of drawing one noise together for a set of clients.

        Args:
            body: The set's digest, and the messages that this server got so far (`noise_rounds`).

        Raises:
            InvalidParameter: If it is none, or no message is missing.
        """
        message = self._taken_part(body[:SET_BYTES], body[SET_BYTES:])
        if isinstance(message, list):
            raise InvalidParameter("The noise has been drawn; no message is missing.")
        return message

    def release(self, body: bytes) -> ServerRelease:
        """Return the noisy part of the totals of a set of clients; the same for the same set.

        Args:
            body: The set; before it, if the noise is joint, the messages of drawing it that this server got.

        Raises:
            InvalidParameter: If the set is none, or not held, or the messages are none.
            QueryRefused: If it is too small.
            BudgetExhausted: If the budget does not bear the loss.
        """
        size = sum(message_sizes(self.task)) if self.task.joint else 0
        messages, clients = body[:size], body[size:]
        members = clients_in(clients)
        if len(members) < self.task.least_clients:
            raise QueryRefused(
                f"The set has {len(members)} clients and the task needs {self.task.least_clients}",
                cause=RefusalCause.TOO_FEW_CLIENTS,
                remedy="Nothing was released.",
            )
        digest = set_digest(self.task.digest, clients)
        with self._releasing:
            release = self._stored(self._key(digest)) or self._new_release(members, digest, messages)
            self._store.note_released(digest)
        return release

    def require_affordable(self) -> None:
        """Refuse a task that could never be released, before anybody answers it.

        Raises:
            BudgetExhausted: If nothing was charged for it yet and its loss is beyond what is left of the budget.
        """
        account = self._ledger.seen().account
        loss = self._loss(account.budget)
        begun = self.released() is not None or bool(self._ledger.seen().under_way)
        if not begun and self._delta() > self._ledger.seen().delta_remaining:
            raise BudgetExhausted(self._short_of_delta())
        if not begun and not loss.rounded_up() <= account.remaining:
            raise BudgetExhausted(
                f"A total costs {loss}, and {account.spent} of this folder's budget of {account.budget} is already "
                f"spent. "
                "For a task with other people, use a new folder. For several tasks with the same people, start a "
                "folder with a larger --epsilon."
            )

    def spent(self) -> tuple[Loss, Loss]:
        """Return what was charged so far, and the budget; `delta_spent` is of the same charges."""
        account = self._ledger.seen().account
        return account.spent, account.budget

    def delta_spent(self) -> tuple[Fraction, Fraction]:
        """Return what releases took of the delta that is set aside for joint noise, and that delta."""
        state = self._ledger.seen()
        return state.delta_spent, state.registration.delta_keys

    def close(self) -> None:
        """Close the files and let others use the folder."""
        self._store.close()
        self._ledger.close()
        self._lock.close()

    def _running(self, clients: bytes, digest: str, challenge: int) -> list[list[int]]:
        """Return the running sums of what the clients of a set contribute; those of the last set are kept."""
        if self._tested is None or self._tested[0] != (digest, challenge):
            parts = self._store.parts(clients_in(clients))
            self._tested = (digest, challenge), self._sums.tested(parts, digest, challenge)
        return self._tested[1]

    def _taken_part(self, digest: bytes, received: bytes) -> bytes | list[int]:
        if self._keys is None or not self.task.joint or len(digest) != SET_BYTES:
            raise InvalidParameter("The task has no joint noise, or the request names no set of clients.")
        return take_part(self.task, self._keys, digest, received, self._store.hold_to)

    def _noise(self, digest: str, messages: bytes) -> AddsNoise:
        """Return what adds the noise to this server's sums: its own, or its parts of the joint one."""
        if not self.task.joint:
            return self.task.noise
        parts = self._taken_part(bytes.fromhex(digest), messages)
        if isinstance(parts, bytes):
            raise InvalidParameter("The noise of this set has not been drawn yet; nothing was released.")
        return NoiseParts(parts)

    def _new_release(self, members: list[bytes], digest: str, messages: bytes) -> ServerRelease:
        """Charge a release, draw it, and keep it; the order of the lines is the safety argument."""
        self._require_held(members)  # before the charge, so that a wrong set costs nothing; who sent is no secret here
        noise = self._noise(digest, messages)
        sequence = self._charge(digest, len(members))
        totals, modulus = self._sums.totals(self._store.parts(members)), self.task.modulus
        cells = noisy_total(totals, noise, self._entropy, modulus)
        if self._keys is not None:
            masks = self._keys.masks(release_label(digest), len(cells), modulus)
            cells = tuple((cell + mask) % modulus for cell, mask in zip(cells, masks, strict=True))
        release = ServerRelease(task=self.task.digest, clients=len(members), clients_digest=digest, cells=cells)
        self._ledger.record_answer(sequence, release.to_text())
        return release

    def _require_held(self, members: list[bytes]) -> None:
        held = self._store.freeze()
        known = {held[at : at + ID_BYTES] for at in range(0, len(held), ID_BYTES)}
        missing = sum(member not in known for member in members)
        if missing:
            raise InvalidParameter(f"{missing} clients of the set sent nothing here; nothing was released.")

    def _loss(self, budget: Loss) -> Loss:
        return self.task.noise.loss(self.task.asked.sensitivity, budget.kind)

    def _delta(self) -> Fraction:
        """Return what a release takes of the ledger's delta for what may go wrong: only a joint noise does."""
        return self.task.delta if self.task.joint else Fraction(0)

    def _short_of_delta(self) -> str:
        kept = self._ledger.seen().delta_remaining
        return (
            f"A total with joint noise takes a delta of {short(self._delta())}, and this folder's budget has "
            f"{short(kept, down=True)} left for that. Serve it from a new folder, with a larger --delta for several "
            "tasks. A budget of Gaussian noise keeps none. Nothing was released."
        )

    def _key(self, digest: str) -> str:
        return json.dumps(["secure total", self.task.digest, digest])

    def _stored(self, key: str) -> ServerRelease | None:
        answers = self._ledger.answers(key)
        if not answers:
            return None
        task = self.task
        return ServerRelease.from_text(
            answers[0].payload, task=task.digest, width=task.asked.width, modulus=task.modulus
        )

    def _charge(self, digest: str, clients: int) -> int:
        """Charge a release, and return the number of the charge (`charge_once`)."""
        budget = self._ledger.seen().account.budget
        charge = Charge(
            key=self._key(digest),
            question=f"the total of {clients} clients: {self.task.question}",
            loss=self._loss(budget),
            delta=self._delta(),
            catalog_digest=self.task.digest,
            principal="organiser",
            version=self._ledger.seen().version,
        )
        outcome = charge_once(self._ledger, charge)
        if isinstance(outcome, int):
            return outcome
        if self._delta() > self._ledger.seen().delta_remaining:
            raise BudgetExhausted(self._short_of_delta())
        raise BudgetExhausted(
            f"A total costs {charge.loss} and the server's budget is {budget}, of which "
            f"{self._ledger.seen().account.spent} is spent. Nothing was released."
        )


def budget_of(measure: str, epsilon: Fraction, delta: Fraction) -> Registration:
    """Return what a server's ledger is opened for: the most that one client's answers may lose at it."""
    return Registration(
        dataset="secure sums",
        privacy_unit=_UNIT,
        neighbouring=NEIGHBOURING,
        budget=loss_for(measure, epsilon, delta),
        epsilon=epsilon,
        delta=delta,
        delta_keys=delta if measure == PureDP.kind else Fraction(0),  # for what may go wrong: a joint noise
    )

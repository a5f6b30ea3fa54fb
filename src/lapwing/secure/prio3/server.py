"""One server of a Prio3 task: it verifies each report once, and releases its noisy share of the totals of a set.

Theory of operation. A file in the server's folder has the digest of each report that it began to verify. So no nonce is
verified with other shares, which could tell something; the same report gives the same verifier share again. An accepted
report's output share is on the disk before the server says so.

A release is charged to the server's ledger before the shares are read. The ledger has it before it leaves. Asked again
for the same set, the server gives the same release. If it died in between, nothing left, and the charge pays for a new
draw.
"""

import json
import threading
from hashlib import sha256
from pathlib import Path
from typing import Final, final

import numpy as np

from lapwing.errors import BudgetExhausted, InvalidParameter, QueryRefused, RefusalCause
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.ledger.entries import Charge
from lapwing.ledger.opening import open_ledger
from lapwing.ledger.registration import Registration
from lapwing.secure.adding import LEDGER
from lapwing.secure.charging import LOCK, charge_once, locked
from lapwing.secure.prio3.prio3 import NONCE_BYTES, Verification
from lapwing.secure.prio3.task import Prio3Task
from lapwing.secure.share_store import ShareStore
from lapwing.secure.wire import clients_in, set_digest

_ROUND: Final = 0


@final
class Prio3Server:
    """One server of a task, in a folder of its own that no other process may use at the time.

    Guarantee:
        Every release is in the ledger, charged. All releases together are within its budget.

    Args:
        place: The server's number, 0 for the leader.
        key: 32 random bytes that all servers have, and no client. It cannot change.
        budget: The most that one client's reports may lose at this server, in all tasks of this folder.

    Raises:
        CatalogMismatch: If the folder's ledger has another budget.
        Fault: If another process uses the folder, or the task had another key.
    """

    def __init__(
        self, folder: Path, task: Prio3Task, place: int, key: bytes, budget: Registration, entropy: Entropy = SYSTEM
    ) -> None:
        task.noise.loss(task.sensitivity, budget.budget.kind)  # refused if this noise has none in that measure
        self.task, self._place, self._key, self._entropy = task, place, key, entropy
        self._releasing = threading.Lock()
        self._lock = locked(folder / LOCK)
        try:
            name = sha256(bytes.fromhex(task.digest) + bytes([place]) + key).hexdigest()
            self._store = ShareStore(
                folder / f"prio3-{task.digest[:16]}.db", name, task.circuit.output_length, task.most_reports
            )
            self._ledger = open_ledger(f"sqlite:{LEDGER}", folder, budget)
            if self._ledger.state().version == 0:
                self._ledger.accept({"answers": "as clients send them"}, "server")
        except BaseException:
            self._lock.close()
            raise

    def begin_verifying(self, nonce: bytes, public_share: bytes, input_share: bytes) -> tuple[Verification, bytes]:
        """Return the server's state of a report, and its verifier share.

        Raises:
            InvalidParameter: If the report is malformed, or its nonce came with another report before.
        """
        if len(nonce) != NONCE_BYTES:
            raise InvalidParameter(f"A nonce has {NONCE_BYTES} bytes; the report is rejected.")
        try:
            self._store.hold_to(nonce, _ROUND, len(public_share).to_bytes(8, "big") + public_share + input_share)
        except InvalidParameter:
            raise InvalidParameter("Another report had this nonce before; the report is rejected.") from None
        return self.task.prio3.begin_verifying(self._key, self._place, nonce, public_share, input_share)

    def accept(self, nonce: bytes, kept: Verification, message: bytes) -> int:
        """Store the output share of a valid report, and return how many reports are new: 1, or 0 for one sent again.

        Raises:
            InvalidParameter: If the report is invalid.
            QueryRefused: If the task is closed.
        """
        output = self.task.prio3.verified(kept, message)
        return self._store.take({nonce: self.task.circuit.field.encode(output)})

    def freeze(self) -> bytes:
        """Accept nothing from now on, and return the nonces of all accepted reports, ascending."""
        return self._store.freeze()

    def release(self, reports: bytes) -> bytes:
        """Return the noisy share of the totals of a set of reports; the same for the same set.

        Args:
            reports: Their nonces, ascending.

        Raises:
            InvalidParameter: If it is no set, or a report of it was not accepted here.
            QueryRefused: If it is too small.
            BudgetExhausted: If the rest of the budget is too small.
        """
        members = clients_in(reports)
        if len(members) < self.task.least_reports:
            raise QueryRefused(
                f"The set has {len(members)} reports and the task needs {self.task.least_reports}",
                cause=RefusalCause.TOO_FEW_CLIENTS,
                remedy="Nothing was released.",
            )
        key = json.dumps(["prio3 total", self.task.digest, set_digest(self.task.digest, reports)])
        with self._releasing:
            stored = self._ledger.answers(key)
            if stored:
                return bytes.fromhex(json.loads(stored[0].payload)["share"])
            outputs = self._store.parts(members)  # before the charge, so that a set that is not held costs nothing
            sequence = self._charge(key, len(members))
            share = noisy_share(outputs, self.task, self._entropy)
            self._ledger.record_answer(sequence, json.dumps({"share": share.hex()}))
        return share

    def close(self) -> None:
        """Close the files and let others use the folder."""
        self._store.close()
        self._ledger.close()
        self._lock.close()

    def _charge(self, key: str, reports: int) -> int:
        state = self._ledger.seen()
        loss = self.task.noise.loss(self.task.sensitivity, state.account.budget.kind)
        charge = Charge(
            key=key,
            question=f"the total of {reports} reports: {self.task.question}",
            loss=loss,
            catalog_digest=self.task.digest,
            principal="collector",
            version=state.version,
        )
        outcome = charge_once(self._ledger, charge)
        if isinstance(outcome, int):
            return outcome
        raise BudgetExhausted(
            f"A total costs {loss} and the server's budget is {state.account.budget}, of which {state.account.spent} "
            "is spent. Nothing was released."
        )


def noisy_share(outputs: bytes, task: Prio3Task, entropy: Entropy = SYSTEM) -> bytes:
    """Return the sum of encoded output shares, element by element, with independent noise modulo the field's prime.

    Guarantee:
        To a reader who knows the shares of all other servers, this is the task's noise added to the totals. Reduction
        modulo the prime is post-processing.
    """
    field, width = task.circuit.field, task.circuit.output_length
    elements = field.decode(outputs)
    sums = [sum(elements[at::width]) for at in range(width)]
    drawn = task.noise.release(np.zeros(width, dtype=np.int64), entropy)
    return field.encode([(total + int(each)) % field.modulus for total, each in zip(sums, drawn.tolist(), strict=True)])

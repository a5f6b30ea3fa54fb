"""The durable ledger in a SQLite file: what a session asks of it.

Each method is one transaction of `ledger.chain`, where the crash argument stands; what may be appended is decided by
the pure functions of `ledger.entries`. Here the two meet: look up, decide, commit, return.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Final, Self, final

from lapwing.errors import InvalidParameter
from lapwing.ledger import database
from lapwing.ledger.chain import Chain
from lapwing.ledger.entries import (
    Entry,
    State,
    accepting,
    answering,
    broken,
    charging,
    dividing,
    fold,
    opening,
    subject_of,
)
from lapwing.ledger.parts import Parts
from lapwing.ledger.records import Charge, Charged, HistoryRow, Registration, StoredAnswer, require_same
from lapwing.privacy.filters import Refused
from lapwing.privacy.measures import Loss

PATIENCE: Final = 10.0
"""Seconds to wait for other users of the ledger before that is a fault."""


@final
class SqliteLedger:
    """A durable account of privacy loss, for any number of threads and processes.

    Guarantee: whatever was reported as `Charged` is in the file, and the losses in the file never exceed the budget.
    Raises: in every method, LedgerFault if the file or its mark is missing, damaged, rolled back, locked for too long,
        read-only or full; nothing is reported as charged then.
    """

    def __init__(self, chain: Chain) -> None:
        self._chain = chain

    @classmethod
    def open(
        cls, path: Path, registration: Registration, *, parts: Parts | None = None, patience: float = PATIENCE
    ) -> Self:
        """Open the ledger at a path, creating and registering it if there is none.

        Args: parts: into which the data are to be divided, if they are not yet; patience: seconds to wait for other
            users of the ledger.
        Raises: CatalogMismatch if it was registered, or the data were divided, otherwise; nothing is changed then.
        """
        chain = Chain(database.followed(path), patience)
        chain.prepare()
        try:
            with chain.transaction() as transaction:
                state, entries = transaction.newest, []
                if state is None:
                    entries.append(opening(registration, _now()))
                    state = fold(state, entries[0])
                require_same(registration, state.registration, chain.name)
                divided = dividing(state, parts, _now())
                entries += [] if divided is None else [divided]
                if entries:
                    transaction.commit(*entries)
        except BaseException:
            chain.close()
            raise
        return cls(chain)

    def state(self) -> State:
        """Return what all entries so far add up to."""
        with self._chain.transaction() as transaction:
            return transaction.state

    def accept(self, digests: Mapping[str, str], principal: str) -> int:
        """Make these data the current version, and return its number; the first is 1.

        Data that are the current version already keep their number, so that two sessions may accept the same data.
        """
        with self._chain.transaction() as transaction:
            entry = accepting(transaction.state, digests, principal, _now())
            if entry is not None:
                transaction.commit(entry)
            return transaction.state.version

    def answers(self, key: str) -> tuple[StoredAnswer, ...]:
        """Return the answers to this key about the current data, the dearest first.

        Of equally dear ones the first bought comes first, so that the same question always gets the same answer.
        """
        with self._chain.transaction() as transaction:
            found = []
            for entry in database.answered_charges(transaction.connection, subject_of(key)):
                charge = Charge.from_record(entry.contents())
                if charge.key == key and charge.version == transaction.state.version:
                    payload = _payload(transaction.connection, entry.sequence)
                    found.append(StoredAnswer(sequence=entry.sequence, loss=charge.loss, payload=payload))
            return tuple(sorted(found, key=lambda answer: (-answer.loss.amount, answer.sequence)))

    def charge(
        self,
        *,
        key: str,
        question: str,
        loss: Loss,
        catalog_digest: str,
        principal: str,
        version: int | None = None,
        delta: Fraction = Fraction(0),
        parts: tuple[str, ...] | None = None,
    ) -> Charged | Refused:
        """Charge a loss durably if the budget holds it; only then may private data be touched.

        Args: key: names the question up to what cannot change its answer; question: for people; version: of the data
            that the asker has in hand (default: the current one); delta: for private keys, from `delta_keys`; parts:
            those that it reads, if it reads no others (default: all).
        Raises: DataChanged if no version was accepted yet or `version` is not the current one; InvalidParameter if the
            loss is not of the budget's measure, or a part is unknown. Nothing is charged then.
        """
        request = Charge(
            key=key,
            question=question,
            loss=loss,
            catalog_digest=catalog_digest,
            principal=principal,
            version=self.state().version if version is None else version,
            delta=delta,
            parts=parts,
        )
        outcome = self.charge_all([request])
        return outcome if isinstance(outcome, Refused) else outcome[0]

    def charge_all(self, requests: Sequence[Charge]) -> tuple[Charged, ...] | Refused:
        """Charge several losses durably, all of them or, if the budget does not hold them together, none.

        Raises: as `charge`.
        """
        with self._chain.transaction() as transaction:
            state, entries, charged = transaction.state, [], []
            for request in requests:
                entry = charging(state, request, _now())
                if isinstance(entry, Refused):
                    return entry
                state = fold(state, entry)
                entries.append(entry)
                charged.append(Charged(sequence=entry.sequence, account=state.account))
            if entries:
                transaction.commit(*entries)
            return tuple(charged)

    def record_answer(self, sequence: int, payload: str) -> None:
        """Keep the answer that the charge `sequence` bought.

        Raises: InvalidParameter if there is no such charge, or it has another answer; answers never change.
        """
        with self._chain.transaction() as transaction:
            charge = database.entry(transaction.connection, sequence)
            if charge is None:
                raise InvalidParameter(f"The ledger has no entry {sequence}. Give the sequence that a charge returned.")
            entry = answering(transaction.state, charge, payload, _now())
            if database.answer(transaction.connection, sequence) is None:
                transaction.commit(entry)
            elif _payload(transaction.connection, sequence) != payload:
                raise InvalidParameter(f"Charge {sequence} has another answer already, and answers never change.")

    def history(self) -> tuple[HistoryRow, ...]:
        """Return all charges, in the order in which they were made."""
        with self._chain.transaction() as transaction:
            answered = database.answered(transaction.connection)
            charges = database.charges(transaction.connection)
            return tuple(_history_row(entry, str(entry.sequence) in answered) for entry in charges)

    def verify(self) -> int:
        """Walk the whole chain anew, check the file page by page, and return the number of entries.

        Raises: LedgerFault, naming the first entry that cannot be what Lapwing wrote.
        """
        with self._chain.transaction() as transaction:
            state: State | None = None
            unanswered: set[str] = set()
            for entry in database.entries(transaction.connection, since=1):
                state = fold(state, entry)
                if entry.kind == "charge":
                    unanswered.add(str(entry.sequence))
                if entry.kind == "answer":
                    if entry.subject not in unanswered:
                        raise broken(entry.sequence, "answers no charge, or one that has an answer")
                    unanswered.remove(entry.subject)
            if state is None or state.hash != transaction.state.hash:
                raise broken(transaction.state.sequence, "is not the one that was read before")
            database.require_sound(transaction.connection, self._chain.name)
            return state.sequence

    def close(self) -> None:
        """Close the file. A later operation opens it again."""
        self._chain.close()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _payload(connection: sqlite3.Connection, charge: int) -> str:
    answer = database.answer(connection, charge)
    if answer is None:
        raise broken(charge, "has lost its answer")
    return str(answer.contents()["payload"])


def _history_row(entry: Entry, answered: bool) -> HistoryRow:
    charge = Charge.from_record(entry.contents())
    return HistoryRow(
        sequence=entry.sequence,
        time=entry.time,
        principal=charge.principal,
        question=charge.question,
        loss=charge.loss,
        version=charge.version,
        answered=answered,
        delta=charge.delta,
        parts=charge.parts,
    )

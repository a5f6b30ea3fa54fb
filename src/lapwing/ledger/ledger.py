"""The durable ledger that a session uses, with any store.

Each method is decided in a transaction of the store's chain (`ledger.store`), where the crash argument stands, and kept
by one commit with what other threads ask at the time (`ledger.group_commit`); what may be appended is decided by the
pure functions of `ledger.transitions` and `ledger.curating`. Here the two meet for questions: look up, decide, commit,
return. For what the curator does they meet in `ledger.administration`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from types import MappingProxyType
from typing import Final, Self, final
from weakref import WeakValueDictionary

from lapwing.errors import AllowanceExhausted, DataStopped, LedgerFault, QueryRefused
from lapwing.ledger import administration, reading
from lapwing.ledger.allowances import LimitsNow, require_chargeable
from lapwing.ledger.curating import resumed
from lapwing.ledger.entries import Charge, Charged, Entry, StoredAnswer
from lapwing.ledger.events import noted
from lapwing.ledger.faults import Cause
from lapwing.ledger.group_commit import GroupCommit
from lapwing.ledger.owners import Owners
from lapwing.ledger.parts import Parts
from lapwing.ledger.reading import FaultRow, History, HistoryRow
from lapwing.ledger.registration import Registration
from lapwing.ledger.settling import PendingWrite, Settled, settled
from lapwing.ledger.snapshots import LedgerSnapshots
from lapwing.ledger.state import LedgerState
from lapwing.ledger.store import Chain, Presence
from lapwing.ledger.transaction import Transaction
from lapwing.ledger.transitions import answering, charging, fold
from lapwing.ledger.unanswered import leaving
from lapwing.ledger.waiting import UnderWay, under_way
from lapwing.privacy.filters import Refused

NOBODY: Final[Owners] = MappingProxyType({})
"""Nothing is said about whose rows tables have."""


@final
class Ledger:
    """A durable account of privacy loss, for any number of threads and processes.

    Guarantee:
        Whatever was reported as `Charged` is in the store, and the losses in it never exceed the budget.

    Raises:
        LedgerFault: In every method, if the store or its mark is missing, damaged, rolled back, held for too long, out
            of reach, read-only or full; nothing is reported as charged then.
    """

    def __init__(self, chain: Chain, presence: Presence, snapshots: LedgerSnapshots | None = None) -> None:
        self._chain = chain
        self._group = GroupCommit(chain)
        self._presence = presence
        self._snapshots = snapshots if snapshots is not None else LedgerSnapshots(chain)
        # What could not be written when it happened: paid from the front, with the ledger held.
        self._pending_writes: list[PendingWrite] = []
        # Charges that were handed out here and have not ended. Of any other one under our name, nobody was told.
        self._issued_charges: set[int] = set()
        # Whether a commit ended in a fault, so that a charge may be there of which nobody was told.
        self._commit_uncertain = False
        self._unread = WeakValueDictionary[int, History]()

    @classmethod
    def opened(
        cls,
        chain: Chain,
        presence: Presence,
        registration: Registration,
        *,
        parts: Parts | None = None,
        owners: Owners = NOBODY,
        snapshots: LedgerSnapshots | None = None,
    ) -> Self:
        """Open the ledger that a store keeps, registering it if it has no entry yet.

        Raises:
            CatalogMismatch: As `administration.register`; nothing is changed then.
        """
        try:
            administration.register(chain, registration, parts, owners, now)
        except BaseException:
            chain.close()
            raise
        return cls(chain, presence, snapshots)

    def state(self) -> LedgerState:
        """Return what all entries so far add up to, holding the ledger: every charge that was being made is in it."""
        with self._chain.transaction() as transaction:
            return transaction.state

    def seen(self) -> LedgerState:
        """Return what all entries so far add up to, without holding anybody up."""
        return self._snapshots.state()

    def accept(self, digests: Mapping[str, str], principal: str, owners: Owners = NOBODY) -> int:
        """Make these data the current version, and return its number (`administration.accept`)."""
        return administration.accept(self._chain, digests, principal, owners, now)

    def look_up(self, keys: Sequence[str]) -> tuple[LedgerState, list[tuple[StoredAnswer, ...]]]:
        """Return the state, and for each key the answers to it about the current data, the dearest first.

        Of equally dear ones the first bought comes first, so that the same question always gets the same answer. The
        state is that in which the answers were looked for: those recorded later have higher sequences.
        """

        def found(transaction: Transaction) -> tuple[LedgerState, list[tuple[StoredAnswer, ...]]]:
            return transaction.state, [transaction.answers(key) for key in keys]

        return self._group.carry_out(found)

    def answers(self, key: str) -> tuple[StoredAnswer, ...]:
        """Return the answers to one key, as `look_up`."""
        return self.look_up([key])[1][0]

    def charge_all(
        self, requests: Sequence[Charge], limits: LimitsNow | None = None, since: int | None = None
    ) -> tuple[Charged, ...] | Refused | UnderWay:
        """Charge losses durably, all of them or, if the budget does not hold them together, none.

        Only then may private data be touched. None is charged while one of them is under way for others (`waiting`).

        Args:
            limits: What they must keep to beside the budget; asked for, and decided, in the same transaction.
            since: The newest entry when answers were looked for: none is charged if one came after it.

        Raises:
            DataStopped: If too many questions failed since the curator looked.
            DataChanged: If no version was accepted yet or a request is about another than the current one.
            InvalidParameter: If a loss is not of the budget's measure, or a part is unknown.
            AllowanceExhausted: If they are beyond these limits. Nothing is charged then.
        """
        if not requests:
            return ()

        def decide(transaction: Transaction) -> tuple[Charged, ...] | Refused | UnderWay:
            settled = self._settled(transaction)
            # Nothing is to be waited for if nobody asks at the moment, and no entry came since answers were looked for.
            if settled.state.under_way or since != transaction.state.sequence:
                awaited = under_way(settled.state, requests, transaction.log, since)
                if awaited is not None:
                    self._append(transaction, settled)
                    return awaited
            return self._charged(transaction, settled, requests, limits)

        return self._group.carry_out(decide)

    def under_way(self, requests: Sequence[Charge], since: int | None = None) -> UnderWay | None:
        """Return a charge whose answer may serve one of these requests, if there is one; since: as in `charge_all`."""
        return self._group.carry_out(lambda transaction: under_way(transaction.state, requests, transaction.log, since))

    def is_under_way(self, sequence: int) -> bool:
        """Tell whether a charge is under way; that its asker died is written down."""
        return sequence in self._group.carry_out(self._settle).under_way

    def _charged(
        self, transaction: Transaction, settled: Settled, requests: Sequence[Charge], limits: LimitsNow | None
    ) -> tuple[Charged, ...] | Refused:
        """Charge, after what has to be settled first."""
        try:
            if settled.missing:
                settled.require_counted()
            if limits is not None:
                require_chargeable(limits(), settled.state, requests)
            entries = self._decided(settled.state, requests)
        except (DataStopped, AllowanceExhausted, QueryRefused, LedgerFault):
            self._append(transaction, settled)
            raise
        if isinstance(entries, Refused):
            return entries
        states = self._append(transaction, settled, *entries)[-len(entries) :]
        transaction.once_kept(lambda: self._issued_charges.update(state.sequence for state in states))
        return tuple(Charged(sequence=state.sequence, account=state.account) for state in states)

    def record_answer(self, sequence: int, payload: str) -> None:
        """Keep the answer that the charge `sequence` bought.

        Raises:
            InvalidParameter: If there is no such charge, or it has another answer; answers never change.
            EngineFault: If the question was given up or the data set is stopped: then the answer must not be released
                either.
        """
        try:
            self._record(sequence, payload)
        except LedgerFault:  # once more: it may be kept already, or the database have come back
            self._record(sequence, payload)
        # Last: one that is neither in this set nor answered looks as if nobody was told of it, and is ended.
        self._issued_charges.discard(sequence)

    def _record(self, sequence: int, payload: str) -> None:
        def decide(transaction: Transaction) -> None:
            state = transaction.state  # what is under way in it is a charge, and has no answer
            if sequence in state.under_way or not reading.is_answered(transaction.log, sequence, payload):
                transaction.append(answering(state, sequence, payload, now()))

        self._group.carry_out(decide)

    def record_unanswered(self, sequences: Sequence[int], cause: Cause) -> bool:
        """Note that charges ended without an answer, the first of them for this cause, those after it with it.

        Returns:
            Whether nothing may be told of what came of them, as they had ended otherwise, or the data set was stopped:
            then raise `faults.given_up`. If the ledger cannot be written, the next charge does it first.
        """
        if not sequences:
            self.settle()  # what went wrong may have been the commit of a charge
            return False

        def decide(transaction: Transaction) -> bool:
            entry = leaving(transaction.state, sequences, cause, now())
            taken = entry is None and transaction.log.answer(sequences[0]) is None
            stopped = transaction.state.stopped
            if entry is not None:
                transaction.append(entry)
            return stopped or taken

        try:
            silent = self._group.carry_out(decide)
        except (LedgerFault, MemoryError):
            self._pending_writes.append((tuple(sequences), cause))
            silent = False
        self._issued_charges.difference_update(sequences)
        return silent

    def settle(self) -> bool:
        """Write down what ended and is not written down yet; return whether nothing of it is left.

        The next charge does it too. Until then others who ask the same wait (`waiting`), so call it now and then.
        It does not raise, and asks the store for nothing unless there is something to be written.
        """
        if not (self._pending_writes or self._commit_uncertain):
            return True
        try:
            self._group.carry_out(self._settle)
        except (LedgerFault, MemoryError):
            return False
        return True

    def faults(self) -> tuple[FaultRow, ...]:
        """Return the faults since the curator last looked, including deaths that nobody has noted yet."""

        def decide(transaction: Transaction) -> tuple[FaultRow, ...]:
            self._settle(transaction)
            return reading.faults(transaction.log)

        return self._group.carry_out(decide)

    def note_late(self, tick: str, principal: str) -> tuple[str, ...]:
        """Note durably that answers are late (`ledger.events`), and return the ticks of all such notes that stand."""
        return self._group.carry_out(lambda held: noted(held, tick, principal, now()))

    def resume(self, principal: str) -> int:
        """Note that the curator has looked at faults and late answers, and return how many; nothing is refunded."""
        return self._group.carry_out(lambda held: resumed(held, self._settle(held), principal, now()))

    def raise_budget(
        self, *, was: tuple[Fraction, Fraction], epsilon: Fraction, delta: Fraction, principal: str
    ) -> Registration:
        """Raise the budget, if it is `was` before; return what is registered then (`administration.raise_budget`)."""
        return administration.raise_budget(self._chain, was, (epsilon, delta), principal, now)

    def close_for_ever(self, principal: str) -> bool:
        """Close the data set: nothing is charged once this returns. Return whether it was open."""
        return administration.close_for_ever(self._chain, principal, now)

    def entries(self) -> Iterator[Entry]:
        """Yield the entries that there are now, in order; others go on meanwhile (`reading.entries`)."""
        return reading.entries(self._chain)

    def history(
        self, *, after: int = 0, most: int | None = None, principal: str | None = None
    ) -> tuple[HistoryRow, ...]:
        """Return charges, in the order in which they were made, without holding anybody up (`reading.history`)."""
        return reading.history(self._snapshots, after=after, most=most, principal=principal)

    def history_until(self, sequence: int) -> History:
        """Return the charges up to an entry, which are read when somebody looks at them, or the ledger is closed."""
        lazy = reading.history_until(self._snapshots, sequence)
        self._unread[id(lazy)] = lazy
        return lazy

    def number_of_charges(self) -> int:
        """Return how many charges there are, without holding anybody up."""
        with self._snapshots.taken() as snapshot:
            return snapshot.log.number_of_charges()

    def verify(self) -> int:
        """Walk the whole chain anew, check the store page by page, and return the number of entries.

        Raises:
            LedgerFault: Naming the first entry that cannot be what Lapwing wrote.
        """
        return reading.verify(self._chain)

    def close(self) -> None:
        """Close the store, and let go of the name unless questions are under way. A later operation opens it again."""
        self.settle()  # while it can: once the name is gone, what is under way by it looks like a death
        reading.read_all(tuple(self._unread.values()))  # whoever still has them reads them later
        self._snapshots.close()
        with self._chain.closed() as askers:  # no charge begins in between, which would bear a name that is dropped
            self._presence.drop(unless=askers)

    def _decided(self, state: LedgerState, requests: Sequence[Charge]) -> list[Entry] | Refused:
        """Return the entries of several charges, or the refusal of the first that does not fit after the others."""
        entries: list[Entry] = []
        for request in requests:
            state = fold(state, entries[-1]) if entries else state
            entry = charging(state, replace(request, asker=self._presence.name()), now())
            if isinstance(entry, Refused):
                return entry
            entries.append(entry)
        return entries

    def _append(self, transaction: Transaction, settled: Settled, *entries: Entry) -> list[LedgerState]:
        """Append what is settled, and more after it; once that is kept, it is no longer owed.

        What other threads come to owe meanwhile is appended, and stays.
        """
        # Until it is known to be done; what was doubtful before is settled by the same commit.
        self._commit_uncertain = True
        paid = self._pending_writes[: settled.debts]
        transaction.once_kept(lambda: self._noted(paid))
        return transaction.append(*settled.entries, *entries)

    def _noted(self, paid: Sequence[PendingWrite]) -> None:
        self._commit_uncertain = False
        for debt in paid:
            if debt in self._pending_writes:  # not paid by another request of the same commit
                self._pending_writes.remove(debt)

    def _settle(self, transaction: Transaction) -> LedgerState:
        """Append what ended and is not written down yet, and return the state after it."""
        settled = self._settled(transaction)
        self._append(transaction, settled)
        return settled.state

    def _settled(self, transaction: Transaction) -> Settled:
        """Return what is to be written before anything is charged.

        Mostly that is nothing: no charge is under way, for anybody, that could have ended without being written down.
        """
        # `_issued_charges` is read before `_pending_writes`: a question that fails meanwhile in another thread enters
        # `_pending_writes` before it leaves `_issued_charges` (`record_unanswered`). So it is in one of the two, and
        # not taken for one nobody was told of. Charges that were appended in this transaction will be told once it is
        # kept.
        state, told = transaction.state, self._issued_charges.union(entry.sequence for entry in transaction.appended)
        owed = tuple(self._pending_writes)
        if not state.under_way:
            return Settled(state, (), len(owed), 0)  # what is owed has been ended otherwise
        return settled(state, owed, told, self._presence, now())


def now() -> str:
    """Return the time that an entry bears which is made now, in UTC."""
    return datetime.now(UTC).isoformat(timespec="microseconds")

"""What people read in a ledger: its history, the faults that stand, and whether every entry is what Lapwing wrote."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from threading import Lock
from typing import Final, final, overload

from lapwing.errors import InvalidParameter, LedgerFault
from lapwing.ledger.entries import Charge, Entry, broken
from lapwing.ledger.faults import COUNTED, Cause, given_up
from lapwing.ledger.snapshots import LedgerSnapshot, LedgerSnapshots
from lapwing.ledger.state import LedgerState
from lapwing.ledger.store import Chain, Log
from lapwing.ledger.transaction import payload
from lapwing.ledger.transitions import fold
from lapwing.ledger.wording import Wording
from lapwing.privacy.measures import Loss

PAGE: Final = 500
"""Entries that are read while nobody else has the ledger."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRow:
    """One charge, for people to read.

    Args:
        question: The canonical plan.
        wording: What was typed, unless an earlier version of Lapwing made the charge, or the question was made
            otherwise.
        unanswered: Why it bought nothing, once that is known.
    """

    sequence: int
    time: str
    principal: str
    question: str
    loss: Loss
    version: int
    answered: bool
    delta: Fraction = Fraction(0)
    parts: tuple[str, ...] | None = None
    unanswered: Cause | None = None
    wording: Wording | None = None

    @property
    def asked(self) -> str:
        """The question in one line: as it was typed, with its label and parameters, or else the canonical plan."""
        return self.question if self.wording is None else str(self.wording)


@final
class History(Sequence[HistoryRow]):
    """Charges in order, read when somebody first looks at them; what was read stays as it is. Thread-safe.

    Args:
        read: Returns the charges.
        count: Returns how many there are, where that takes less than to read them.
    """

    def __init__(self, read: Callable[[], tuple[HistoryRow, ...]], count: Callable[[], int] | None = None) -> None:
        self._read, self._count = read, count
        self._lock = Lock()
        self._rows: tuple[HistoryRow, ...] | None = None

    def rows(self) -> tuple[HistoryRow, ...]:
        """Return the charges as a tuple."""
        with self._lock:
            if self._rows is None:
                self._rows = self._read()
            return self._rows

    def __len__(self) -> int:
        return len(self.rows()) if self._count is None or self._rows is not None else self._count()

    @overload
    def __getitem__(self, place: int) -> HistoryRow: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[HistoryRow, ...]: ...
    def __getitem__(self, place: int | slice) -> HistoryRow | tuple[HistoryRow, ...]:
        return self.rows()[place]

    def __iter__(self) -> Iterator[HistoryRow]:
        return iter(self.rows())

    def __add__(self, others: tuple[HistoryRow, ...]) -> tuple[HistoryRow, ...]:
        return self.rows() + tuple(others)

    def __eq__(self, other: object) -> bool:
        return self.rows() == tuple(other) if isinstance(other, History | tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.rows())

    def __repr__(self) -> str:
        return repr(self.rows())

    def __reduce__(self) -> tuple[object, ...]:
        """Be copied, and sent to another process, as what was read."""
        return tuple, (self.rows(),)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRow:
    """One fault that stands, for the curator: when it was noticed, why, and the charges that ended by it.

    The question of the first of them is the one that failed, where the cause is a fault; after a death it may have been
    any.
    """

    sequence: int
    time: str
    cause: Cause
    charges: tuple[HistoryRow, ...]


def entries(chain: Chain) -> Iterator[Entry]:
    """Yield the entries that there are now, in order; others go on meanwhile, as no entry ever changes.

    Raises:
        LedgerFault: If the ledger is another one on the way.
    """
    with chain.transaction() as transaction:
        since, last = 1, transaction.state.sequence
    while since <= last:
        with chain.transaction() as transaction:
            page = tuple(islice(transaction.log.entries(since=since), min(PAGE, last + 1 - since)))
        yield from page
        since += len(page)


def history(
    snapshots: LedgerSnapshots,
    *,
    after: int = 0,
    most: int | None = None,
    principal: str | None = None,
    until: int | None = None,
) -> tuple[HistoryRow, ...]:
    """Return charges, in the order in which they were made; others go on meanwhile.

    Args:
        after: A sequence, only those that come after it.
        most: At most so many.
        principal: Those of one name alone.
        until: A sequence, none that comes after it. A negative `most` asks for the last charges, so many, as a slice
            does.
    """
    if most is not None and most < 0:
        return _last(snapshots, -most, principal)
    rows: list[HistoryRow] = []
    last = until
    while most is None or len(rows) < most:
        room = PAGE if most is None else min(PAGE, most - len(rows))
        with snapshots.taken() as snapshot:
            last = snapshot.state.sequence if last is None else last  # what is charged meanwhile is not waited for
            charges = list(islice(_charges_by(principal, snapshot.log.of_kind("charge", since=after + 1)), room))
            rows += _rows([entry for entry in charges if entry.sequence <= last], snapshot)
        if len(charges) < room or charges[-1].sequence > last:
            break
        after = charges[-1].sequence
    return tuple(rows)


def _last(snapshots: LedgerSnapshots, number: int, principal: str | None) -> tuple[HistoryRow, ...]:
    """Return the last charges, so many, of one name alone if it is given; older entries are not read."""
    with snapshots.taken() as snapshot:
        back, until, found = 4 * number, snapshot.state.sequence, list[Entry]()
        while True:
            since = max(1, until + 1 - back)
            found = list(_charges_by(principal, snapshot.log.of_kind("charge", since=since)))[-number:]
            if len(found) == number or since == 1:
                return tuple(_rows(found, snapshot))
            back *= 4


def history_until(snapshots: LedgerSnapshots, until: int) -> History:
    """Return the charges up to a sequence, which are read when somebody looks at them."""
    return History(lambda: history(snapshots, until=until), lambda: number_until(snapshots, until))


def read_all(histories: Sequence[History]) -> None:
    """Read histories while the ledger is there; one that cannot be read fails when somebody looks at it."""
    for lazy in histories:
        with suppress(LedgerFault):
            lazy.rows()


def number_until(snapshots: LedgerSnapshots, until: int) -> int:
    """Return how many charges there are, up to a sequence."""
    with snapshots.taken() as snapshot:
        return snapshot.log.number_of_charges() - sum(1 for _ in snapshot.log.of_kind("charge", since=until + 1))


def _charges_by(principal: str | None, charges: Iterator[Entry]) -> Iterator[Entry]:
    if principal is None:
        return charges
    # Looking for a text in an entry takes a tenth of the time that reading it does, and most are somebody else's.
    named = json.dumps(principal)
    return (entry for entry in charges if named in entry.body and entry.contents()["principal"] == principal)


def _rows(entries: Sequence[Entry], snapshot: LedgerSnapshot) -> Iterator[HistoryRow]:
    """Yield charges with what became of them."""
    charges = {entry.sequence: entry.charge() for entry in entries}
    answered = snapshot.log.answered(charges)
    # Of a charge that bears no asker's name nobody ever wrote down why it has no answer: only old ledgers have such.
    named = (sequence for sequence, charge in charges.items() if charge.asker is not None)
    ended = [charge for charge in named if charge not in answered and charge not in snapshot.state.under_way]
    causes = _causes(ended, snapshot.log)
    for entry in entries:
        sequence = entry.sequence
        yield _row(entry, charges[sequence], answered=sequence in answered, unanswered=causes.get(sequence))


def _causes(ended: Sequence[int], log: Log) -> dict[int, Cause]:
    """Return why charges ended without an answer, as far as that is known."""
    causes: dict[int, Cause] = {}
    left = set(ended)
    for entry in log.of_kind("unanswered", since=min(ended)) if ended else ():
        causes.update({charge: entry.contents()["cause"] for charge in _charges_of(entry)})
        left.difference_update(_charges_of(entry))
        if not left:  # mostly it comes soon after the charge
            break
    return causes


def is_answered(log: Log, sequence: int, text: str) -> bool:
    """Tell whether a charge that is not under way has this answer; if not, it may be given it.

    Raises:
        InvalidParameter: If there is no such charge, or it has another answer.
        EngineFault: If it was given up: then nothing of it may be released.
    """
    charge = log.entry(sequence)
    if charge is None:
        raise InvalidParameter(f"The ledger has no entry {sequence}. Give the sequence that a charge returned.")
    if log.answer(sequence) is not None:
        if payload(log, sequence) != text:
            raise InvalidParameter(f"Charge {sequence} has another answer already, and answers never change.")
        return True
    if charge.kind != "charge":
        raise InvalidParameter(f"Entry {sequence} of the ledger is not a charge, so it has no answer.")
    if charge.charge().asker is not None:  # of those without one nobody knows who is under way
        raise given_up()
    return False


def faults(log: Log) -> tuple[FaultRow, ...]:
    """Return the faults since the curator last looked, in order."""
    looked = max((entry.sequence for entry in log.of_kind("resume")), default=0)
    counted = [
        entry for entry in log.of_kind("unanswered") if entry.sequence > looked and COUNTED[entry.contents()["cause"]]
    ]
    return tuple(_fault(entry, log) for entry in counted)


def verify(chain: Chain) -> int:
    """Walk the whole chain anew, check the store page by page, and return the number of entries.

    Raises:
        LedgerFault: Naming the first entry that cannot be what Lapwing wrote.
    """
    with chain.transaction() as transaction:
        state = verified(transaction.log.entries(since=1))
        if state != transaction.state:  # which may rest on a kept state
            raise broken(transaction.state.sequence, "is not the one that was read before")
        transaction.log.require_sound()
        return state.sequence


def verified(entries: Iterable[Entry]) -> LedgerState | None:
    """Fold a whole chain anew, and hold against it what a state of constant size cannot tell.

    Raises:
        LedgerFault: Naming the first entry that cannot be what Lapwing wrote.
    """
    state: LedgerState | None = None
    open_charges: set[int] = set()
    for entry in entries:
        state = fold(state, entry)
        if entry.kind == "charge":
            open_charges.add(entry.sequence)
        if entry.kind == "answer" and int(entry.subject) not in open_charges:
            raise broken(entry.sequence, "answers no charge, or one that has an answer or was given up")
        if entry.kind in ("answer", "unanswered"):
            open_charges.difference_update(_charges_of(entry))
    return state


def _charges_of(entry: Entry) -> tuple[int, ...]:
    """Return the charges that an entry ends."""
    return (int(entry.subject), *entry.contents().get("also", ()))


def _fault(entry: Entry, log: Log) -> FaultRow:
    cause: Cause = entry.contents()["cause"]
    ended = (log.entry(charge) for charge in _charges_of(entry))
    rows = (
        _row(charged, charged.charge(), answered=False, unanswered=cause) for charged in ended if charged is not None
    )
    return FaultRow(sequence=entry.sequence, time=entry.time, cause=cause, charges=tuple(rows))


def _row(entry: Entry, charge: Charge, *, answered: bool, unanswered: Cause | None) -> HistoryRow:
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
        unanswered=unanswered,
        wording=None if charge.wording is None else Wording.from_record(charge.wording),
    )

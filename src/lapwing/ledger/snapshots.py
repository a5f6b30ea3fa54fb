"""A ledger as it was at one moment, read without holding it up: for budgets, histories and pages that people look at.

What decides about a charge holds the ledger alone (`Chain.transaction`). What is merely shown need not: every entry is
sealed over the one before and none ever changes, so the entries that a store has at one moment are a true past of it,
and whoever reads them keeps nobody from charging.

A snapshot has whatever was committed before it was asked for, as it begins after that. It must not be of an older copy
either. So the mark of this host is read first: the entry that it names was committed by then, and has to be in the
snapshot, as has the newest entry that was seen before. If it is not, or the mark is not understood (somebody may be
writing it at this moment), nothing is shown: the ledger is held after all, and the transaction says what is wrong.

Who asks for the state alone, as each request for a stored answer does, mostly finds nothing new. So if the mark still
names the newest entry that was seen, and the store's files are as they were then (`LedgerReader.stamp`), that state is
given again. An entry that was committed meanwhile and moved neither has been told to nobody: the mark moves before.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import final

from lapwing.errors import LedgerFault
from lapwing.ledger.mark import Mark, path_of, read_text
from lapwing.ledger.state import LedgerState
from lapwing.ledger.store import Chain, LedgerReader, Log
from lapwing.ledger.transaction import caught_up, head_of, rolled_back


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerSnapshot:
    """What the entries of a ledger added up to, and the log to look them up in; it ends with its block."""

    state: LedgerState
    log: Log


@final
class LedgerSnapshots:
    """Looks at a ledger.

    Args:
        mark: Where the file lies that the mark is named after.
        reader: None if the store has none, so that every look holds the ledger.
    """

    def __init__(self, chain: Chain, mark: Path | None = None, reader: LedgerReader | None = None) -> None:
        self._chain = chain
        self._mark = mark
        self._reader = reader
        self._seen: LedgerState | None = None
        self._last: tuple[object, LedgerState] | None = None  # with the stamp from before it was read

    def state(self) -> LedgerState:
        """Return what the entries add up to of which anybody was told before the call.

        Raises:
            LapwingError: As `taken`.
        """
        stamp, last = None if self._reader is None else self._reader.stamp(), self._last
        as_it_was = stamp is not None and last is not None and last[0] == stamp
        if self._mark is not None and last is not None and as_it_was and _mark_at(self._mark) == head_of(last[1]):
            return last[1]
        with self.taken() as snapshot:
            self._last = stamp, snapshot.state
            return snapshot.state

    @contextmanager
    def taken(self) -> Iterator[LedgerSnapshot]:
        """Give the ledger as it was at one moment since the call.

        Raises:
            LedgerFault: As `Chain.transaction` does.
        """
        with ExitStack() as stack:
            snapshot = None
            with suppress(LedgerFault):
                snapshot = self.without_holding(stack)
            if snapshot is None:
                stack.close()
                transaction = stack.enter_context(self._chain.transaction())
                self._seen = transaction.state
                snapshot = LedgerSnapshot(state=transaction.state, log=transaction.log)
            yield snapshot

    def close(self) -> None:
        """Let go of file or connection; a later look opens it again."""
        if self._reader is not None:
            self._reader.close()

    def without_holding(self, stack: ExitStack) -> LedgerSnapshot | None:
        """Return a snapshot that lasts as long as the stack, None if there is a doubt.

        Raises:
            LedgerFault: If the store cannot be read.
        """
        if self._reader is None or self._mark is None or self._seen is None:  # the first look holds the ledger
            return None
        mark = _mark_at(self._mark)  # before the snapshot begins
        if mark is None:
            return None
        log = stack.enter_context(self._reader.log())
        state = caught_up(self._seen, log, self._chain.name)
        if state is None or state.sequence < mark.sequence:
            raise rolled_back(self._chain.name, mark.sequence)
        marked = None if mark.sequence == 0 else log.entry(mark.sequence)
        if marked is None or marked.hash != mark.hash:
            return None
        self._seen = state  # a state is a value: of two threads that set it, either may be the last
        return LedgerSnapshot(state=state, log=log)


def _mark_at(ledger: Path) -> Mark | None:
    """Return the mark as it stands, None if it cannot be read."""
    try:
        return read_text(path_of(ledger).read_bytes())
    except OSError:
        return None

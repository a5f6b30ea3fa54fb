"""Group commit: what many threads ask of a ledger at a time is decided one after another, and committed once.

Theory of operation
-------------------
A commit waits for a disk or a database, for many entries as long as for one. So who asks something of the ledger puts a
*request* into a line, and waits for the turn. Whoever has the turn takes all that stand in the line into one
transaction of the chain, where each is decided on the state after those before it, as if it were alone: what it
appends is in the transaction, so those after it find it. Then all is committed, and only then is anybody told what came
of it. So whatever is told is durable, as in a transaction of its own (`ledger.sqlite.chain`, `ledger.postgres.chain`),
and a crash at any moment leaves entries of which nobody was told, or none.

- *A decision that raises what Lapwing raises* has that for its outcome, after what it appended: a refusal counts deaths
  first (`Ledger.charge_all`). The others are not touched by it.
- *One that raises anything else* (the store cannot be read, memory ran out) has it too, but first the transaction is
  rolled back, and the others are decided anew: nothing was told of it, and nothing is left of it.
- *The commit fails*: nobody knows whether it was made, so all have the fault, also those who appended nothing: what
  they found may be what others appended. Nobody acts on it, and the ledger ends what is there of it
  (`ledger.settling`).

Who waits too long for the turn leaves the line, if nobody has taken the request; else the outcome is waited for. A
child that is forked inherits the line, and passes over the requests of its parent's threads.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, final

from lapwing.errors import LapwingError, LedgerFault
from lapwing.ledger.store import Chain
from lapwing.ledger.transaction import Transaction

T = TypeVar("T")


@final
class Turn:
    """The turn of one thread; others wait for it.

    Args:
        name: Of the ledger, for people.
        patience: Seconds that a thread waits before that is a fault.
    """

    def __init__(self, name: str, patience: float) -> None:
        self._name = name
        self.patience = patience
        self._lock = threading.RLock()  # one that knows its owner: see `taken`

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Hold the turn through the block.

        Raises:
            LedgerFault: If others held it for too long.
        """
        # Ctrl-C may come after the lock was taken and before Python knows that it was, so it is released in any case.
        # Releasing a lock that this thread does not own is an error without effect.
        try:
            if not self._lock.acquire(timeout=self.patience):
                raise LedgerFault(
                    f"Other threads held the ledger {self._name} for more than {self.patience:g} seconds. "
                    "Nothing was charged. Run the query again later."
                )
            yield
        finally:
            try:  # noqa: SIM105 - `suppress` is a call, and Ctrl-C could come after it instead
                self._lock.release()
            except RuntimeError:
                pass

    @contextmanager
    def waited(self) -> Iterator[None]:
        """Hold the turn through the block, however long it takes to come."""
        with self._lock:
            yield

    def wait(self) -> None:
        """Take the turn, however long it takes."""
        self._lock.acquire()

    def end(self) -> None:
        """Give up the turn that `wait` took."""
        self._lock.release()


@final
class CommitRequest:
    """The request of a thread, and its outcome once it has `ended`."""

    def __init__(self, decide: Callable[[Transaction], Any]) -> None:
        self.decide = decide
        self.process = os.getpid()
        self.result: Any = None
        self.error: Exception | None = None
        self.ended = False

    def decide_in(self, transaction: Transaction) -> None:
        """Decide, and append to the transaction; it is not committed yet."""
        self.error = None
        try:
            self.result = self.decide(transaction)
        except LapwingError as error:
            self.error = error

    def fail(self, error: Exception) -> None:
        """End without an outcome."""
        self.error, self.ended = error, True

    def outcome(self) -> Any:
        """Return what was decided, or raise why it was not."""
        if self.error is not None:
            raise self.error
        return self.result


@final
class GroupCommit:
    """Carries out what threads ask of a chain, those that wait at one time together."""

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._line: deque[CommitRequest] = deque()

    def carry_out(self, decide: Callable[[Transaction], T]) -> T:
        """Decide something with the ledger held alone, at its newest state; return what came of it once that is kept.

        Args:
            decide: Appends what is to be kept, once or again, in any thread; the rest is for `Transaction.once_kept`.

        Raises:
            LapwingError: What it raises.
            LedgerFault: As `Chain.transaction` does, and if nobody knows what became of it.
        """
        request = CommitRequest(decide)
        self._line.append(request)
        try:
            with self._chain.turn.taken():
                while not request.ended:
                    self._carry_out_all(request)
        except LedgerFault:
            if self._withdrawn(request):
                raise
        except BaseException:
            self._withdrawn(request)
            raise
        outcome: T = request.outcome()
        return outcome

    def _carry_out_all(self, own: CommitRequest) -> None:
        """Give what stands in the line its outcome, or let it stand there; raise what only this thread is to know."""
        if own not in self._line:  # it was taken by a thread that Ctrl-C has stopped
            raise _unknown()
        taken: list[CommitRequest] = []
        deciding: CommitRequest | None = None
        try:
            with self._chain.transaction() as transaction:
                # Only now that the ledger is held: where that fails, all stay in the line.
                taken = [self._line.popleft() for _ in range(len(self._line))]
                taken = [request for request in taken if request.process == os.getpid()]
                for deciding in taken:
                    deciding.decide_in(transaction)
                deciding = None  # before the commit: what is raised from here on is the fault of all
                transaction.commit()
        except BaseException as error:
            if not taken:
                raise
            if deciding is None:  # and the commit was begun
                for request in taken:
                    request.fail(error if len(taken) == 1 and isinstance(error, LedgerFault) else _unknown(error))
            elif isinstance(error, Exception):
                deciding.fail(error)
            self._line.extendleft(request for request in reversed(taken) if not request.ended)
            if not isinstance(error, Exception):
                raise
        else:
            for request in taken:
                request.ended = True

    def _withdrawn(self, request: CommitRequest) -> bool:
        """Take a request out of the line, or return False once it has an outcome."""
        while not request.ended:
            try:
                self._line.remove(request)
            except ValueError:  # somebody has taken it: it ends, or comes back to the line, with this turn
                with self._chain.turn.waited():
                    if request not in self._line and not request.ended:
                        return True  # lost by a thread that Ctrl-C has stopped
            else:
                return True
        return False


def _unknown(error: BaseException | None = None) -> LedgerFault:
    """Return the fault of a request of whose commit nobody knows what became."""
    known = "The thread that should write this to the ledger was stopped. Nobody knows whether it was charged."
    return LedgerFault(str(error) if isinstance(error, LedgerFault) else f"{known} Nothing was answered.")

"""A chain of entries made durable in PostgreSQL: head row, mark and commit, in the order that survives a crash.

Theory of operation
-------------------
One database holds the entries of any number of ledgers, each under its name, and one *head row* a ledger: sequence and
hash of its newest entry. Each host keeps a *mark* of its own beside the catalog (`ledger.mark`), and each open ledger
the state that it has folded so far. An operation takes the host's mark, begins a transaction, locks the head row (`FOR
UPDATE`), reads and folds the entries after its state, holds the head row and the mark against the chain, and decides. A
decision that adds entries then goes: **insert, move the head row, commit, advance the mark, return**.

Serialisation. Whoever appends holds the lock of the head row from before its first look at the entries until its commit
is visible: PostgreSQL releases row locks after that. In READ COMMITTED every statement after the lock sees all that was
committed before the statement began, hence all entries of all earlier holders. So decisions are made one after another,
each on all entries before it. The chain says so a second time: two entries of one sequence break its primary key.

Durability. Every transaction sets `synchronous_commit = on` for itself, whatever server, role or address say, so COMMIT
returns after its log was synced (and has arrived at the standbys that the server is set to wait for); servers with
`fsync = off` are refused. What nobody has synced is not visible, so nobody can act on it. If

- *this process, or the connection, dies before COMMIT was sent*: PostgreSQL rolls back; nobody was told anything.
- *the connection is lost while COMMIT is under way*, or PostgreSQL warns that it did not wait for its standbys: nobody
  knows whether the entries are there, and the fault says so. A charge is not used then, so its question is never asked:
  charged without answer is possible, answered without charge is not. If it is there, it is ended by the next charge.
- *this process dies after the commit, before the mark moves*: the mark is behind, but in the chain: it is caught up.
- *PostgreSQL or its machine dies*: it recovers what was committed; what was reported is in it.

A connection that is found cut is opened anew, before anything was done in it. No order of deaths shows a charge as made
that is not in the database, or moves a mark beyond it.

Older copies. A database that was restored from an older copy, or a standby that took over without the newest entries,
is a prefix of the chain, and looks whole. The mark of every host that has seen more disowns it. A host without mark
trusts what it finds at first.

Locks are taken in one order, mark, head row, askers; a transaction never waits for another host while it holds an
asker. Threads take turns. Before a fork the connection is closed, so a child opens its own.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, final

import psycopg
from psycopg import errors
from psycopg.pq import TransactionStatus

from lapwing.errors import LedgerFault
from lapwing.ledger import mark as marks
from lapwing.ledger import new_mark
from lapwing.ledger.entries import RESTORE
from lapwing.ledger.forks import rests_first
from lapwing.ledger.group_commit import Turn
from lapwing.ledger.kept_state import StateFile
from lapwing.ledger.mark import Mark
from lapwing.ledger.postgres import tables
from lapwing.ledger.postgres.connection import Connection, connect, faults
from lapwing.ledger.postgres.log import PostgresLog
from lapwing.ledger.state import LedgerState
from lapwing.ledger.transaction import Transaction, advance, caught_up, head_of, rolled_back

_RETRY_SECONDS: Final = 0.1


def begin(connection: Connection, patience: float) -> None:
    """Begin a transaction that syncs, whatever server, role and address say."""
    limit = max(1, int(1000 * patience))
    connection.execute(
        "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL synchronous_commit = on; "
        f"SET LOCAL lock_timeout = {limit}; SET LOCAL statement_timeout = {2 * limit}".encode()
    )


def commit(connection: Connection, name: str) -> None:
    """Commit, and insist that it was said to be done.

    Raises:
        LedgerFault: Which leaves open whether it was done, unless PostgreSQL said that it was and had no doubt.
    """
    warnings: list[errors.Diagnostic] = []
    # Listens before it commits: that a standby did not answer is said by a warning of the COMMIT itself.
    connection.add_notice_handler(warnings.append)
    try:
        done = connection.execute("COMMIT").statusmessage
    except psycopg.Error as error:
        raise _unknown(name) from error
    finally:
        connection.remove_notice_handler(warnings.append)
    if done != "COMMIT" or warnings:
        raise _unknown(name)


def _unknown(name: str) -> LedgerFault:
    return LedgerFault(
        f"PostgreSQL did not confirm the last entry of the ledger {name}. The connection was lost during the commit, "
        "or a standby did not answer. Nobody knows yet whether it was charged. Nothing was answered. "
        "Once the server is back, the history of the budget shows whether the entry is there."
    )


def is_begun(address: str, name: str, seconds: float) -> bool:
    """Tell whether a database has a ledger of this name."""
    with faults(name):
        connection = connect(address, name, seconds)
        try:
            return tables.exist(connection) and PostgresLog(connection, name).is_begun()
        finally:
            connection.close()


@final
class PostgresChain:
    """The durable chain of one ledger, for any number of threads, processes and hosts.

    Args:
        address: Of the database.
        name: Of the ledger in it.
        host_file: What the mark of this host is named after.
        patience: Seconds to wait for other users, or for a server that restarts, before that is a fault.
    """

    def __init__(self, address: str, name: str, host_file: Path, patience: float) -> None:
        self.name = name
        self._address = address
        self._host_file = host_file
        self.patience = patience
        self.turn = Turn(name, patience)
        self._connection: Connection | None = None
        self._was_connected = False
        self._state: LedgerState | None = None
        self._kept = StateFile(self._host_file)
        rests_first(self)

    def prepare(self) -> None:
        """Create the mark of a host that has none: it trusts the ledger as it finds it."""
        with faults(self.name):
            if not marks.path_of(self._host_file).exists():
                new_mark.create(self._host_file)

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Hold the ledger alone, at its newest state; what is not committed inside is rolled back."""
        with self.turn.taken(), faults(self.name), marks.hold(self._host_file, self.patience) as mark:
            high = mark.read()
            connection = self._begun()
            try:
                log = PostgresLog(connection, self.name)
                # Locked before anything is read: from here on no other host adds an entry to what is read.
                head = self._locked_head(log, high)
                if self._state is None:
                    self._state = self._kept.read(log)
                state = self._state
                if state is None or head != head_of(state):  # else nobody has moved it, and there is nothing to read
                    state = caught_up(state, log, self.name)
                    if head != head_of(state):
                        raise rolled_back(self.name, head.sequence)
                advance(mark, high, state, log, self.name)
                self._state = state
                if state is not None and state.sequence >= self._kept.due:
                    self._kept.keep(state)

                def keep(newest: Mark) -> None:
                    # In the same transaction as the entries: moved later, the head would be behind them for others.
                    log.move(newest)
                    commit(connection, self.name)

                transaction = Transaction(log, mark, state, self.name, log.insert, keep)
                yield transaction
                self._state = transaction.newest
            finally:
                self._end(connection)

    def close(self) -> None:
        """Close the connection. A later operation opens another."""
        with self.closed():
            pass

    @contextmanager
    def closed(self) -> Iterator[frozenset[str]]:
        """Close the connection, and let no other thread begin before the block has ended.

        Gives who has a charge under way, as far as this object knows: so of its own ones, all.
        """
        with self.turn.waited():
            self._disconnect()
            yield frozenset() if self._state is None else frozenset(self._state.under_way.values())

    def rest(self) -> None:
        """Wait until no operation is under way, and close the connection: a child opens its own."""
        self.turn.wait()
        self._disconnect()

    def resume(self, *, in_child: bool) -> None:
        """Let threads in again."""
        self.turn.end()

    def _locked_head(self, log: PostgresLog, high: Mark) -> Mark:
        """Lock the head row; one that is missing is made, unless the mark knows better."""
        head = log.locked_head()
        if head is None and high.sequence > 0:
            raise LedgerFault(
                f"The ledger {self.name} is not in the database, and its mark says that it had {high.sequence} "
                f"entries. {RESTORE}"
            )
        if head is None:
            log.begin(head_of(None))
            head = log.locked_head()
        if head is None:
            raise rolled_back(self.name, 1)
        return head

    def _begun(self) -> Connection:
        """Return a connection in which a transaction has begun, waiting for a server that restarts."""
        deadline = time.monotonic() + self.patience
        while True:
            try:
                if self._connection is None:
                    self._connection = connect(self._address, self.name, self.patience)
                    tables.prepare(self._connection, self.name)
                    self._was_connected = True
                begin(self._connection, self.patience)
            except psycopg.OperationalError:
                self._disconnect()
                if not self._was_connected or time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY_SECONDS)
            except BaseException:
                self._disconnect()
                raise
            else:
                return self._connection

    def _end(self, connection: Connection) -> None:
        """Roll back what was not committed; a connection that is not at rest then is given up."""
        status = connection.info.transaction_status
        if status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
            with suppress(psycopg.Error):
                connection.execute("ROLLBACK")
        if connection.info.transaction_status is not TransactionStatus.IDLE:
            self._disconnect()

    def _disconnect(self) -> None:
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()
            self._connection = None

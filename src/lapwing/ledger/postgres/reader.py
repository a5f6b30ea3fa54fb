"""Looking at a ledger in PostgreSQL without holding it up: a transaction that only reads, and sees one moment.

The connection is one of its own, and closed before a fork like the chain's. Threads take turns, a page or a sum at a
time. A connection that is found cut is opened anew by the next look.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import final

import psycopg
from psycopg.pq import TransactionStatus

from lapwing.ledger.forks import rests_first
from lapwing.ledger.group_commit import Turn
from lapwing.ledger.postgres.connection import Connection, connect, faults
from lapwing.ledger.postgres.log import PostgresLog


@final
class PostgresReader:
    """A connection that looks.

    Args:
        address: Of the database.
        name: Of the ledger in it.
        patience: Seconds to wait for other threads, or for the server, before that is a fault.
    """

    def __init__(self, address: str, name: str, patience: float) -> None:
        self._address = address
        self._name = name
        self._patience = patience
        self._turn = Turn(name, patience)
        self._connection: Connection | None = None
        rests_first(self)

    @contextmanager
    def log(self) -> Iterator[PostgresLog]:
        """Give the entries as they are when the first of them is read."""
        with self._turn.taken(), faults(self._name):
            connection = self._begun()
            try:
                yield PostgresLog(connection, self._name)
            finally:
                with suppress(psycopg.Error):
                    connection.execute("ROLLBACK")
                if connection.info.transaction_status is not TransactionStatus.IDLE:
                    self._disconnect()

    def stamp(self) -> None:
        """Return None: what other hosts have written only the server knows."""

    def close(self) -> None:
        """Close the connection."""
        with self._turn.waited():
            self._disconnect()

    def rest(self) -> None:
        """Wait until no thread looks, and close the connection: a child opens its own."""
        self._turn.wait()
        self._disconnect()

    def resume(self, *, in_child: bool) -> None:
        """Let threads in again."""
        self._turn.end()

    def _begun(self) -> Connection:
        limit = max(1, int(2000 * self._patience))
        begin = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = {limit}".encode()
        if self._connection is None:
            self._connection = connect(self._address, self._name, self._patience)
        try:
            self._connection.execute(begin)
        except BaseException:
            self._disconnect()
            raise
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()
            self._connection = None

"""Who is asking a ledger in PostgreSQL: a lock that the server drops when the connection that holds it ends.

Theory of operation
-------------------
An asker has a row in `lapwing.askers`, and while it has questions under way it holds an advisory lock (a number made of
its random name) in a session of its own. When its process dies the kernel closes the connection, and PostgreSQL drops
the lock; when its host dies the server finds out by keep-alive packets. So who holds the lock lives, however long it
is stopped or busy.

The opposite does not follow: a restart of PostgreSQL, or a network that is cut, drops the locks of the living. So who
has no lock is *missing*: the first who looks writes down when, by the server's clock, and only GRACE_SECONDS later it
is dead. A thread of the asker's own, the keeper, looks after the session every PULSE_SECONDS, opens another if it was
cut, takes the lock again and clears the note. So a restart kills nobody, however long it takes: while the server is
down nobody looks, and once it is back there is time for several pulses. A clock that jumps can at worst call a death
too early. While somebody is missing it counts like a fault where a charge is decided (`ledger.store`), so grace gives
nobody more failures to learn from.

Whoever is called dead stays dead. The row is removed, so the keeper finds that it was given up; the next question is
asked by another name, and an answer to an old one is refused by the ledger itself, in the transaction that would record
it: so no question is answered after it was given up, whoever was wrong about its asker.

The row and the lock are there before the first charge that bears the name is committed. Looking and being looked at go
by the presence's session, apart from the ledger's transactions, and hold no lock between statements, so nothing waits
in a circle. A forked child closes its copy of the parent's socket without a word, and takes a name of its own.
"""

import os
import threading
import weakref
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Final, TypeVar, final

import psycopg

from lapwing.errors import LedgerFault
from lapwing.ledger.entries import new_asker
from lapwing.ledger.forks import rests_last
from lapwing.ledger.postgres.connection import Connection, connect, faults
from lapwing.ledger.store import Fate

Answer = TypeVar("Answer")

GRACE_SECONDS: Final = 60.0
"""How long who has lost its lock may take to come back."""
PULSE_SECONDS: Final = 5.0
"""How often the keeper looks after its session."""

_LOCKED: Final = """
SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1 AND classid = %s::oid AND objid = %s::oid
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
_MISSED: Final = """
UPDATE lapwing.askers SET missed = coalesce(missed, clock_timestamp()) WHERE ledger = %s AND asker = %s
    RETURNING clock_timestamp() - missed >= make_interval(secs => %s)
"""
_FOUND: Final = "UPDATE lapwing.askers SET missed = NULL WHERE ledger = %s AND asker = %s AND missed IS NOT NULL"


@final
class PostgresPresence:
    """The name under which an open ledger asks, and its lock.

    Args:
        address: Of the database.
        ledger: Its name in it.
        seconds: To wait for a connection.
    """

    def __init__(self, address: str, ledger: str, seconds: float) -> None:
        self._address = address
        self._ledger = ledger
        self._seconds = seconds
        self._lock = threading.RLock()
        self._held: list[Connection] = []  # one, or none; a list, so that it can be closed when this object is gone
        self._name: str | None = None
        self._ended = threading.Event()
        weakref.finalize(self, _close, self._held)
        rests_last(self)

    @property
    def current(self) -> str | None:
        """The name, if there is one."""
        return self._name

    def name(self) -> str:
        """Return the name, taking one if there is none, or if that was given up."""
        with self._lock, faults(self._ledger):
            if self._name is None or not self._is_kept(self._name):
                self._forget()
                self._take(new_asker())
            if self._name is None:
                raise psycopg.OperationalError("the name was not taken")
            return self._name

    def drop(self, *, unless: Collection[str] = ()) -> None:
        """Let go of the name, unless it is one of these: what is under way by it would be lost."""
        with self._lock:
            if self._name in unless:
                return
            if self._name is not None:
                with suppress(psycopg.Error, LedgerFault):
                    session = self._session()
                    # The row before the lock: left without a lock, it would look like a death.
                    self._remove(session, self._name)
                    session.execute("SELECT pg_advisory_unlock_all()")
            self._forget()
            _close(self._held)

    def fate(self, name: str) -> Fate:
        """Return what became of who asks by this name; who is missing is written down, and who is dead removed."""
        if name == self._name:
            return "present"
        with self._lock, faults(self._ledger):
            return self._asked(lambda session: self._fate(session, name))

    def rest(self) -> None:
        """Wait until no thread is inside, and let none in."""
        self._lock.acquire()

    def resume(self, *, in_child: bool) -> None:
        """Let threads in again; a child leaves name and session to its parent."""
        if in_child:
            _leave(self._held)
            self._name, self._ended = None, threading.Event()
        self._lock.release()

    def _session(self) -> Connection:
        """Return the session, another if it was cut."""
        for connection in self._held:
            if not connection.closed:
                return connection
        _close(self._held)
        connection = connect(self._address, self._ledger, self._seconds)
        self._held.append(connection)
        connection.execute(
            "SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'idle_session_timeout'; "
            "SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3; "
            "SET synchronous_commit = on; SET lock_timeout = '10s'; SET statement_timeout = '20s'"
        )
        return connection

    def _take(self, name: str) -> None:
        session = self._asked(self._clear)
        # The lock before the row: a row without a lock looks like a death.
        if not _locks(session, name):
            raise psycopg.OperationalError("another process holds the lock of a new name")
        session.execute("INSERT INTO lapwing.askers VALUES (%s, %s)", (self._ledger, name))
        self._name, self._ended = name, threading.Event()
        keeper = threading.Thread(target=_keep, args=(weakref.ref(self), name, self._ended), daemon=True)
        keeper.start()

    def _asked(self, ask: Callable[[Connection], Answer]) -> Answer:
        """Ask the server something, by another session if this one was cut unnoticed."""
        try:
            return ask(self._session())
        except psycopg.OperationalError:
            _close(self._held)
            return ask(self._session())

    def _fate(self, session: Connection, name: str) -> Fate:
        known = (self._ledger, name)
        if session.execute(_LOCKED, _halves(name)).fetchone() is not None:
            session.execute(_FOUND, known)
            return "present"
        missed = session.execute(_MISSED, (*known, GRACE_SECONDS)).fetchone()
        if missed == (False,):
            return "missing"
        self._remove(session, name)
        return "dead"

    def _is_kept(self, name: str) -> bool:
        """Make sure of the lock, and tell whether the name is still ours, so that nobody has declared it dead."""
        return self._asked(lambda session: self._is_held(session, name))

    def _is_held(self, session: Connection, name: str) -> bool:
        """Take the lock in this session if it is not there; the session before may hold it for a while."""
        locked = session.execute(f"{_LOCKED} AND pid = pg_backend_pid()".encode(), _halves(name)).fetchone()
        # The lock, and then the row: it tells whether somebody declared the name dead while the lock was free.
        if locked is None and _locks(session, name):
            session.execute(_FOUND, (self._ledger, name))
        statement = "SELECT FROM lapwing.askers WHERE ledger = %s AND asker = %s"
        return session.execute(statement, (self._ledger, name)).fetchone() is not None

    def _remove(self, session: Connection, name: str) -> None:
        session.execute("DELETE FROM lapwing.askers WHERE ledger = %s AND asker = %s", (self._ledger, name))

    def _clear(self, session: Connection) -> Connection:
        """Remove the rows of those that died with nothing under way, and return the session."""
        found = session.execute("SELECT asker FROM lapwing.askers WHERE ledger = %s", (self._ledger,)).fetchall()
        for (name,) in found:
            self._fate(session, name)
        return session

    def _forget(self) -> None:
        """End the keeper; the session goes on, without the lock."""
        self._ended.set()
        if self._name is not None:
            self._name = None
            _close(self._held)  # and with it the lock

    def pulse(self, name: str) -> None:
        """Look after the session, for as long as the name is ours."""
        with self._lock, suppress(psycopg.Error):
            if self._name == name and not self._is_kept(name):
                self._ended.set()


def _keep(presence: "weakref.ref[PostgresPresence]", name: str, ended: threading.Event) -> None:
    while not ended.wait(PULSE_SECONDS):
        kept = presence()
        if kept is None:
            return
        with suppress(Exception):  # the server is away, or the process is ending: the next pulse tries again
            kept.pulse(name)
        del kept


def _locks(session: Connection, name: str) -> bool:
    number = int.from_bytes(bytes.fromhex(name[:16]), "big", signed=True)
    return session.execute("SELECT pg_try_advisory_lock(%s)", (number,)).fetchone() == (True,)


def _halves(name: str) -> tuple[int, int]:
    """Return the two numbers under which PostgreSQL shows the lock of a name."""
    return int(name[:8], 16), int(name[8:16], 16)


def _close(held: list[Connection]) -> None:
    while held:
        with suppress(psycopg.Error):
            held.pop().close()


def _leave(held: list[Connection]) -> None:
    """Close connections that are a parent's, without a word, which the server would take for the parent's own."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for connection in held:
        os.dup2(nowhere, connection.fileno(), inheritable=False)
    os.close(nowhere)
    _close(held)

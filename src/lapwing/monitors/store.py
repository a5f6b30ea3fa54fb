"""The file of one monitor: what it was told, what it keeps of each unit, and what it has released. It is private.

Theory of operation. One SQLite file, for its owner alone (mode 0600), beside the ledger; and `<file>.mark`, which holds
the number and the hash of the newest tick. All that happens for a tick happens in one transaction: the events that
arrived for it are used up, what is kept of units changes, the mechanism's state moves on, and what is released is
written. It is durable before anybody sees it (write-ahead log, full sync). So if the machine dies at any moment, a tick
has either been released, with all that follows, or nothing of it has happened, and it is made anew with noise that
nobody has seen. No tick is released twice, and none is left out.

Each tick is sealed by a hash over the one before. The mark moves after the commit; a file whose newest tick is behind
its mark, or another one, was put there from a copy. Going on from it would release ticks again with other noise: it is
a fault. Who puts back file and mark together is not noticed.

What is kept of units, and of mechanisms, is sealed by checksums (`seals`), which whoever is to run the monitor compares
first. If anything of it is lost the monitor is stopped. It cannot be made anew from the events, as what arrived for
which tick is not known any more, and to go on without would let units do more than their limits.

The mark is also how a monitor is held by one process alone, with a lock that the kernel drops when it dies.
"""

import fcntl
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple, Self, final

from lapwing.errors import Fault, InvalidParameter
from lapwing.ledger import new_mark
from lapwing.ledger.entries import GENESIS
from lapwing.ledger.mark import Mark, path_of, read_text, text_of
from lapwing.machine.drafts import sync_folder
from lapwing.monitors.counting import KeptUnit
from lapwing.monitors.seals import KeptSeal, Seal, hash_of_row

SUFFIX: Final = ".db"
_SCHEMA: Final = (
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE sources (name TEXT PRIMARY KEY, place TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE people (number INTEGER PRIMARY KEY, unit TEXT NOT NULL)",
    "CREATE TABLE kept (counting INTEGER, unit INTEGER, cell INTEGER, used INTEGER, place INTEGER, seen INTEGER,"
    " time INTEGER, PRIMARY KEY (counting, unit, cell)) WITHOUT ROWID",
    "CREATE TABLE arrived (number INTEGER PRIMARY KEY, tick INTEGER NOT NULL, events BLOB NOT NULL)",
    "CREATE INDEX arrived_tick ON arrived (tick)",
    "CREATE TABLE states (stream INTEGER PRIMARY KEY, state BLOB NOT NULL)",
    "CREATE TABLE ticks (number INTEGER PRIMARY KEY, released BLOB NOT NULL, hash TEXT NOT NULL, shown BLOB NOT NULL)",
    "CREATE TABLE seals (name TEXT PRIMARY KEY, total TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE inbox (number INTEGER PRIMARY KEY AUTOINCREMENT, event TEXT NOT NULL)",
    "CREATE TABLE sent (unit TEXT, id TEXT, PRIMARY KEY (unit, id)) WITHOUT ROWID",
    "CREATE TABLE alerts (name TEXT PRIMARY KEY, definition TEXT NOT NULL, state TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE alarms (number INTEGER PRIMARY KEY, tick INTEGER NOT NULL, alert TEXT NOT NULL, alarm TEXT NOT NULL)",
    "CREATE INDEX alarms_tick ON alarms (tick)",
)
_VERSION: Final = 2
_PATIENCE: Final = 30.0


class ReleasedTick(NamedTuple):
    """What was released of a tick: public.

    Args:
        released: As mechanisms released it.
        shown: The estimates that follow from this tick and those before it.
    """

    number: int
    released: bytes
    hash: str
    shown: bytes


@final
class MonitorStore:
    """The file of a monitor, open for reading; for writing while it is `held`."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._seals: dict[str, Seal] = {}
        self._kept: dict[int, KeptSeal] = {}
        self._states: dict[int, int] = {}

    @classmethod
    def created(cls, path: Path, facts: Mapping[str, str]) -> Self:
        """Make the file of a monitor that there is not yet, and its mark before it.

        Raises:
            InvalidParameter: If there is one.
        """
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.exists() or path_of(path).exists():
            raise InvalidParameter(
                f"There is already a monitor {path.stem}. Nothing was charged. Choose another name, or stop that "
                f"monitor and remove its files."
            )
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        try:
            connection = sqlite3.connect(draft, isolation_level=None)
            connection.execute("BEGIN IMMEDIATE")
            for statement in _SCHEMA:
                connection.execute(statement)
            connection.executemany("INSERT INTO facts VALUES (?, ?)", facts.items())
            connection.execute(f"PRAGMA user_version = {_VERSION}")
            connection.execute("COMMIT")
            connection.close()
            new_mark.create(path)
            os.link(draft, path)
        finally:
            os.unlink(draft)
        sync_folder(path.parent)
        return cls.opened(path)

    @classmethod
    def opened(cls, path: Path) -> Self:
        """Open the file of a monitor.

        Raises:
            InvalidParameter: If there is none.
            Fault: If it is damaged, or older than its mark.
        """
        if not path.exists():
            if path_of(path).exists() and _marked(path).sequence:
                raise Fault(
                    f"The file {path.name} of a monitor is missing, and its mark says that it has released ticks. "
                    f"Lapwing stopped the monitor, because it would release them again with other noise. Restore the "
                    f"file."
                )
            raise InvalidParameter(f"There is no monitor {path.stem} in {path.parent.name}.")
        connection = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
        try:
            with _faults(path):
                connection.execute("PRAGMA trusted_schema = OFF")
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = FULL")
                if connection.execute("PRAGMA user_version").fetchone()[0] != _VERSION:
                    raise Fault(f"The file {path.name} was not written by a monitor of this version of Lapwing.")
            store = cls(path, connection)
            store._require_newest()
        except BaseException:
            connection.close()
            raise
        return store

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    # ---- reading -----------------------------------------------------------------------------------------------------

    def facts(self) -> dict[str, str]:
        """Return what was written when the monitor was made, and since."""
        return dict(self._connection.execute("SELECT name, value FROM facts").fetchall())

    def newest(self) -> Mark:
        """Return the number and the hash of the newest tick; 0 before the first."""
        row = self._connection.execute("SELECT number, hash FROM ticks ORDER BY number DESC LIMIT 1").fetchone()
        return Mark(0, GENESIS) if row is None else Mark(*row)

    def ticks(self, after: int = 0) -> Iterator[ReleasedTick]:
        """Yield what was released after a tick, in order; it is read a thousand ticks at a time."""
        while rows := self._connection.execute(
            "SELECT number, released, hash, shown FROM ticks WHERE number > ? ORDER BY number LIMIT 1000", (after,)
        ).fetchall():
            yield from (ReleasedTick(*row) for row in rows)
            after = rows[-1][0]

    def sources(self) -> dict[str, str]:
        """Return up to where each source was read."""
        return dict(self._connection.execute("SELECT name, place FROM sources").fetchall())

    def people(self) -> list[str]:
        """Return the identities of units, by their numbers."""
        return [unit for (unit,) in self._connection.execute("SELECT unit FROM people ORDER BY number")]

    def kept(self, counting: int) -> list[KeptUnit]:
        """Return what is kept of units by a way of counting."""
        rows = self._connection.execute(
            "SELECT unit, cell, used, place, seen, time FROM kept WHERE counting = ?", (counting,)
        )
        return [KeptUnit(*row) for row in rows]

    def states(self) -> dict[int, bytes]:
        """Return the state of each stream's mechanism."""
        return dict(self._connection.execute("SELECT stream, state FROM states").fetchall())

    def arrived(self, tick: int) -> list[bytes]:
        """Return the events that arrived for a tick, in pieces."""
        rows = self._connection.execute("SELECT events FROM arrived WHERE tick = ? ORDER BY number", (tick,))
        return [events for (events,) in rows]

    def inbox(self) -> list[tuple[int, str]]:
        """Return events that were sent and are not read yet."""
        return self._connection.execute("SELECT number, event FROM inbox ORDER BY number").fetchall()

    def alerts(self) -> list[tuple[str, str, str]]:
        """Return name, definition and state of each alert."""
        return self._connection.execute("SELECT name, definition, state FROM alerts ORDER BY name").fetchall()

    def alarms(self, after: int) -> list[str]:
        """Return what alerts said of ticks after one, by ticks, alerts and rows."""
        query = "SELECT alarm FROM alarms WHERE tick > ? ORDER BY tick, alert, number"
        return [alarm for (alarm,) in self._connection.execute(query, (after,))]

    # ---- writing -----------------------------------------------------------------------------------------------------

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the monitor alone: only one process runs it.

        Raises:
            InvalidParameter: If another one does.
        """
        with open(path_of(self.path), "r+b", buffering=0) as mark:
            try:
                fcntl.flock(mark.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InvalidParameter(f"The monitor {self.path.stem} is run by another process.") from None
            self._require_newest()
            self._seal()
            if not self._is_whole():
                raise Fault(
                    f"The file {self.path.name} of a monitor has lost a part of its units and events, or has a part "
                    "from a copy. Lapwing stopped the monitor, because it could count more of a unit than its limit. "
                    "Restore the file with its mark."
                )
            yield

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write all that is written inside, durably, or nothing of it."""
        with _faults(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            before = self._totals()
            try:
                yield
                changed = {name: total for name, total in self._totals().items() if before.get(name) != total}
                if changed:
                    self._connection.executemany("INSERT OR REPLACE INTO seals VALUES (?, ?)", changed.items())
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def set_fact(self, name: str, value: str) -> None:
        """Write a fact."""
        self._connection.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    def set_source(self, name: str, place: str) -> None:
        """Write up to where a source was read."""
        self._connection.execute("INSERT OR REPLACE INTO sources VALUES (?, ?)", (name, place))

    def add_people(self, first: int, units: Sequence[str]) -> None:
        """Give units numbers, from `first` on."""
        self._connection.executemany("INSERT INTO people VALUES (?, ?)", enumerate(units, first))
        for number, unit in enumerate(units, first):
            self._seals["people"].add(hash_of_row(number, unit.encode()))

    def add_arrived(self, pieces: Iterable[tuple[int, bytes]]) -> None:
        """Put events by for their ticks."""
        for tick, events in pieces:
            self._connection.execute("INSERT INTO arrived (tick, events) VALUES (?, ?)", (tick, events))
            self._seals["arrived"].add(hash_of_row(tick, events))

    def use_up(self, first: int, last: int) -> None:
        """Remove the events of ticks that are released."""
        query = "SELECT tick, events FROM arrived WHERE tick BETWEEN ? AND ?"
        for row in self._connection.execute(query, (first, last)):
            self._seals["arrived"].remove(hash_of_row(*row))
        self._connection.execute("DELETE FROM arrived WHERE tick BETWEEN ? AND ?", (first, last))

    def forget(self) -> None:
        """Remove what is kept of units."""
        self._connection.execute("DELETE FROM kept")
        self._kept = {counting: KeptSeal(counting) for counting in self._kept}

    def keep(self, counting: int, rows: Iterable[KeptUnit]) -> None:
        """Write what is kept of units."""
        statement, rows = "INSERT OR REPLACE INTO kept VALUES (?, ?, ?, ?, ?, ?, ?)", list(rows)
        self._connection.executemany(statement, ((counting, *row) for row in rows))
        self._kept.setdefault(counting, KeptSeal(counting)).replace(rows)

    def set_state(self, stream: int, state: bytes) -> None:
        """Write the state of a mechanism."""
        self._connection.execute("INSERT OR REPLACE INTO states VALUES (?, ?)", (stream, state))
        self._states[stream] = hash_of_row(stream, state)

    def add_tick(self, number: int, released: bytes, shown: bytes, previous: str) -> ReleasedTick:
        """Write what is released, with the estimates that follow from it, and return it."""
        tick = ReleasedTick(number, released, hash_of(number, released, previous), shown)
        self._connection.execute("INSERT INTO ticks VALUES (?, ?, ?, ?)", tick)
        return tick

    def add_sent(self, unit: str, name: str) -> bool:
        """Note that a unit's event of this name came; tell whether it is the first of it."""
        cursor = self._connection.execute("INSERT OR IGNORE INTO sent VALUES (?, ?)", (unit, name))
        return cursor.rowcount == 1

    def add_to_inbox(self, events: Iterable[str]) -> None:
        """Put events by that were sent."""
        self._connection.executemany("INSERT INTO inbox (event) VALUES (?)", ((event,) for event in events))

    def empty_inbox(self, last: int) -> None:
        """Remove events up to one of them, which were read."""
        self._connection.execute("DELETE FROM inbox WHERE number <= ?", (last,))

    def set_alert(self, name: str, definition: str, state: str) -> None:
        """Write an alert."""
        self._connection.execute("INSERT OR REPLACE INTO alerts VALUES (?, ?, ?)", (name, definition, state))

    def add_alarms(self, alert: str, alarms: Iterable[tuple[int, str]]) -> None:
        """Write what an alert says, with its ticks."""
        statement = "INSERT INTO alarms (tick, alert, alarm) VALUES (?, ?, ?)"
        self._connection.executemany(statement, ((tick, alert, alarm) for tick, alarm in alarms))

    def remove_alert(self, name: str) -> bool:
        """Remove an alert and what it said; tell whether there was one."""
        self._connection.execute("DELETE FROM alarms WHERE alert = ?", (name,))
        return self._connection.execute("DELETE FROM alerts WHERE name = ?", (name,)).rowcount == 1

    def advance_mark(self) -> None:
        """Move the mark to the newest tick, which is durable; who calls this holds the monitor."""
        with open(path_of(self.path), "r+b", buffering=0) as mark:
            os.pwrite(mark.fileno(), text_of(self.newest()), 0)

    # ---- seals -------------------------------------------------------------------------------------------------------

    def _seal(self) -> None:
        """Make the checksums of what is there."""
        self._seals = {"people": Seal(), "arrived": Seal()}
        for number, unit in self._connection.execute("SELECT number, unit FROM people"):
            self._seals["people"].add(hash_of_row(number, unit.encode()))
        for row in self._connection.execute("SELECT tick, events FROM arrived"):
            self._seals["arrived"].add(hash_of_row(*row))
        self._states = {stream: hash_of_row(stream, state) for stream, state in self.states().items()}
        self._kept = {}
        for (counting,) in self._connection.execute("SELECT DISTINCT counting FROM kept").fetchall():
            self._kept[counting] = KeptSeal(counting)
            self._kept[counting].replace(self.kept(counting))

    def _totals(self) -> dict[str, str]:
        """Return the checksums of the tables."""
        totals = {name: seal.total for name, seal in self._seals.items()}
        if totals:
            totals |= {"kept": sum(seal.total for seal in self._kept.values()), "states": sum(self._states.values())}
        return {name: str(total % (1 << 64)) for name, total in totals.items()}

    def _is_whole(self) -> bool:
        """Tell whether the checksums are those that were written, and no tick is missing."""
        (ticks,) = self._connection.execute("SELECT COUNT(*) FROM ticks").fetchone()
        written = dict(self._connection.execute("SELECT name, total FROM seals").fetchall())
        same = all(total == written.get(name, "0") for name, total in self._totals().items())
        return same and ticks == self.newest().sequence and (not ticks or "states" in written)

    def _require_newest(self) -> None:
        mark, newest = _marked(self.path), self.newest()
        row = self._connection.execute("SELECT hash FROM ticks WHERE number = ?", (mark.sequence,)).fetchone()
        if mark.sequence > newest.sequence or (mark.sequence and (row is None or row[0] != mark.hash)):
            raise Fault(
                f"The file {self.path.name} of a monitor is older than its mark: a copy replaced it. Lapwing stopped "
                "the monitor, because it would release ticks again with other noise. Restore the newest with its mark."
            )


def hash_of(number: int, released: bytes, previous: str) -> str:
    """Return the hash that seals a tick, and all ticks before it."""
    return sha256(f"lapwing tick 1 {number} {previous}\n".encode() + released).hexdigest()


def _marked(path: Path) -> Mark:
    try:
        mark = read_text(path_of(path).read_bytes())
    except FileNotFoundError:
        mark = None
    if mark is None:
        raise Fault(
            f"The mark {path_of(path).name} of a monitor is missing or damaged, so its file may be an old copy. "
            f"Lapwing stopped the monitor. Restore the newest file with its mark."
        )
    return mark


@contextmanager
def _faults(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "SQLITE_CORRUPT")
        raise Fault(f"The file {path.name} of a monitor cannot be used ({name}). No tick was released.") from error

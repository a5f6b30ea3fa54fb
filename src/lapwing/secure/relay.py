"""A relay: it takes sealed parts from clients and passes them on to the servers, and can read none of them.

Theory of operation. An envelope has a client's id and a sealed part for each server. It is on the relay's disk before
it is acknowledged; a client's first envelope stays, so that one that is sent again counts once. A thread for each
server passes on what that server does not have yet, in the order of arrival, and notes durably how far it came. So a
relay, or a server, may be stopped at any time: what was acknowledged arrives, and servers count it once. What all
servers have is deleted, but for the ids.

A relay is trusted with nothing that is private: it sees who sends, and when. It can withhold envelopes, and spoil them;
servers count those that do not open. They see no client's address: it is the relay that they talk to.
"""

import threading
from pathlib import Path
from typing import Final, final

from lapwing.errors import Fault, InvalidParameter, LapwingError, QueryRefused, RefusalCause, ServiceFault
from lapwing.secure.durable_file import DurableFile
from lapwing.secure.sealing import envelope_bytes, sealed_bytes, sealing_key_of
from lapwing.secure.servers import Server
from lapwing.secure.task import Task
from lapwing.secure.transport import SECONDS, TaskServerConnection
from lapwing.secure.wire import ID_BYTES

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS task (digest TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS envelope (number INTEGER PRIMARY KEY, client BLOB UNIQUE NOT NULL, parts BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS passed (server TEXT PRIMARY KEY, last INTEGER NOT NULL, closed INTEGER NOT NULL)
    WITHOUT ROWID;
"""
_BATCH: Final = 1 << 20
"""Bytes that are passed on together, about."""
PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 30.0
"""Seconds until a server that was missing is tried again: more each time, up to these."""


@final
class Relay:
    """The relay of one task, for any number of threads of one process.

    Raises:
        Fault: If its file is another task's or cannot be used.
        InvalidParameter: If a server has no sealing key, or the task repeats.
    """

    def __init__(self, folder: Path, task: Task, seconds: float = SECONDS) -> None:
        if task.repeats:
            raise InvalidParameter("A task that repeats has no relay: clients send to its servers themselves.")
        for server in task.servers:
            sealing_key_of(server)
        self.task, self._seconds = task, seconds
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / f"relay-{task.digest[:16]}.db"
        self._ended = threading.Event()
        self._come = {server.name: threading.Event() for server in task.servers}
        self._file = DurableFile(path, _SCHEMA, _fault, forgets=True)
        with self._file.transaction() as cursor:
            row = cursor.execute("SELECT digest FROM task").fetchone()
            if row is None:
                cursor.execute("INSERT INTO task VALUES (?)", (task.digest,))
            elif row != (task.digest,):
                raise Fault(f"The file {path} is of another task; nothing was taken.")
            for server in task.servers:
                cursor.execute("INSERT OR IGNORE INTO passed VALUES (?, 0, 0)", (server.name,))
        self._threads = [
            threading.Thread(target=self._pass_on, args=(server,), name=f"relay {server.name}", daemon=True)
            for server in task.servers
        ]
        for thread in self._threads:
            thread.start()

    def take(self, body: bytes) -> int:
        """Keep the envelopes of a body durably, and return how many are of new clients.

        Raises:
            InvalidParameter: If it is no body of envelopes.
            QueryRefused: If the task is closed, or full.
        """
        size = envelope_bytes(self.task)
        if not body or len(body) % size:
            raise InvalidParameter(f"A body has {len(body)} bytes; it must hold whole envelopes of {size} bytes each.")
        with self._file.transaction() as cursor:
            if cursor.execute("SELECT MAX(closed) FROM passed").fetchone()[0]:
                raise QueryRefused("The task is closed", cause=RefusalCause.TASK_CLOSED, remedy="Nothing was taken.")
            new = 0
            for at in range(0, len(body), size):
                client, parts = body[at : at + ID_BYTES], body[at + ID_BYTES : at + size]
                statement = "INSERT OR IGNORE INTO envelope (client, parts) VALUES (?, ?)"
                new += cursor.execute(statement, (client, parts)).rowcount
            if new and cursor.execute("SELECT COUNT(*) FROM envelope").fetchone()[0] > self.task.most_clients:
                raise QueryRefused(
                    "The task has no room for more clients", cause=RefusalCause.TASK_FULL, remedy="Nothing was taken."
                )
        for event in self._come.values():
            event.set()
        return new

    def progress(self) -> dict[str, int]:
        """Return how many envelopes each server does not have yet, by its name."""
        with self._file.transaction() as cursor:
            rows = cursor.execute(
                "SELECT server, (SELECT COUNT(*) FROM envelope WHERE number > last) FROM passed WHERE NOT closed"
            )
            return dict(rows.fetchall())

    def close(self) -> None:
        """End the threads and close the file. What was not passed on is when the relay is begun again."""
        self._ended.set()
        for event in self._come.values():
            event.set()
        for thread in self._threads:
            thread.join()
        self._file.close()

    def _pass_on(self, server: Server) -> None:
        place, come, pause = self.task.servers.index(server), self._come[server.name], PAUSE
        with TaskServerConnection(self.task, server, self._seconds) as line:
            while not self._ended.is_set():
                come.clear()
                try:
                    more = self._pass_batch(line, place)
                except LapwingError:
                    self._ended.wait(pause)
                    pause = min(2 * pause, LONGEST_PAUSE)
                    continue
                pause = PAUSE
                if more is None:
                    return
                if not more:
                    come.wait()

    def _pass_batch(self, line: TaskServerConnection, place: int) -> bool | None:
        """Pass on what a server does not have, as much as goes together; return whether there was any.

        Returns:
            None once the server takes nothing any more.

        Raises:
            LapwingError: If it is missing, or fails.
        """
        size, name = sealed_bytes(self.task, place), line.server.name
        begins = sum(sealed_bytes(self.task, before) for before in range(place))
        with self._file.transaction() as cursor:
            last, closed = cursor.execute("SELECT last, closed FROM passed WHERE server = ?", (name,)).fetchone()
            rows = cursor.execute(
                "SELECT number, client, parts FROM envelope WHERE number > ? ORDER BY number LIMIT ?",
                (last, max(1, _BATCH // (ID_BYTES + size))),
            ).fetchall()
        if closed:
            return None
        if not rows:
            return False
        try:
            line.send_sealed(b"".join(client + parts[begins : begins + size] for _, client, parts in rows))
        except QueryRefused:  # closed: what comes now would count nowhere
            with self._file.transaction() as cursor:
                cursor.execute("UPDATE passed SET closed = 1 WHERE server = ?", (name,))
            return None
        with self._file.transaction() as cursor:
            cursor.execute("UPDATE passed SET last = ? WHERE server = ?", (rows[-1][0], name))
            statement = (
                "UPDATE envelope SET parts = x'' WHERE number <= (SELECT MIN(last) FROM passed) AND parts != x''"
            )
            cursor.execute(statement)
        return True


def _fault() -> LapwingError:
    return ServiceFault("The relay's file cannot be read or written; nothing was taken.")

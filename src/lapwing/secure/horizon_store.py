"""One server's file of days: each day's release, and the noise that later days need.

Theory of operation. A day's release, and the noise that it leaves for later days, are one transaction. It is durable
before anybody sees the release. If the process dies before, nobody has seen that draw, and another one takes its place.
If it dies after, the release is in the file, and the server gives it again. So nobody sees two draws of a node. A small
file beside it, the mark, has the number of released days. It shows if this file is an older copy. Such a copy would
draw noise again for days that people have seen. The identity distinguishes the file from one that was begun anew
(`repeating_server`). The noise is as secret as the parts: without it the totals are known.
"""

import os
from pathlib import Path
from typing import Final, final

from lapwing.errors import Fault, LapwingError
from lapwing.secure.durable_file import DurableFile

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS horizon (task TEXT NOT NULL, identity TEXT NOT NULL, noise BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS day (number INTEGER PRIMARY KEY, clients BLOB NOT NULL, release TEXT NOT NULL);
"""


@final
class HorizonStore:
    """The days of one task at one server.

    Args:
        path: Of the file, begun if there is none.
        task: The task's digest.
        identity: A random name for the file, if it is begun.

    Raises:
        Fault: If the file is of another task, older than its mark, or cannot be used.
    """

    def __init__(self, path: Path, task: str, identity: str) -> None:
        self._mark = path.with_suffix(".mark")
        self._file = DurableFile(path, _SCHEMA, _fault, forgets=True)
        try:
            with self._file.transaction() as cursor:
                row = cursor.execute("SELECT task, identity FROM horizon").fetchone()
                if row is None:
                    cursor.execute("INSERT INTO horizon VALUES (?, ?, ?)", (task, identity, b""))
                    row = (task, identity)
            if row[0] != task:
                raise Fault(f"The file {path} is of another task; nothing was released.")
            self.identity = str(row[1])
            self._require_newest(path)
        except BaseException:
            self._file.close()
            raise

    def count(self) -> int:
        """Return how many days were released."""
        with self._file.transaction() as cursor:
            return int(cursor.execute("SELECT COUNT(*) FROM day").fetchone()[0])

    def noise(self) -> bytes:
        """Return the stored noise that later days need; empty before the first day."""
        with self._file.transaction() as cursor:
            return bytes(cursor.execute("SELECT noise FROM horizon").fetchone()[0])

    def release(self, day: int) -> str | None:
        """Return a day's release, if there is one."""
        with self._file.transaction() as cursor:
            row = cursor.execute("SELECT release FROM day WHERE number = ?", (day,)).fetchone()
        return None if row is None else str(row[0])

    def clients(self, day: int) -> bytes | None:
        """Return the set of clients of a day's release, if there is one."""
        with self._file.transaction() as cursor:
            row = cursor.execute("SELECT clients FROM day WHERE number = ?", (day,)).fetchone()
        return None if row is None else bytes(row[0])

    def releases(self) -> list[str]:
        """Return the releases of all days so far."""
        with self._file.transaction() as cursor:
            return [str(text) for (text,) in cursor.execute("SELECT release FROM day ORDER BY number")]

    def add(self, day: int, clients: bytes, release: str, noise: bytes) -> None:
        """Store the next day's release with the noise that it leaves, durably; only then may anybody see it.

        Raises:
            Fault: If it is not the next day: nothing is stored then.
        """
        with self._file.transaction() as cursor:
            if cursor.execute("SELECT COUNT(*) FROM day").fetchone()[0] + 1 != day:
                raise Fault("Another day was released meanwhile; nothing was released now.")
            cursor.execute("INSERT INTO day VALUES (?, ?, ?)", (day, clients, release))
            cursor.execute("UPDATE horizon SET noise = ?", (noise,))
        self._write_mark(day)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _require_newest(self, path: Path) -> None:
        """Refuse a file with fewer days than the mark says; a crash may leave the mark one day behind."""
        days = self.count()
        try:
            marked = int(self._mark.read_text(encoding="ascii"))
        except FileNotFoundError:
            marked = days if days == 0 else -1
        except (OSError, ValueError):
            marked = -1
        if not 0 <= days - marked <= 1:
            raise Fault(
                f"The file {path.name} has {days} days and its mark does not fit: it is an older copy, or one of the "
                "two is missing. It would draw noise again for days that were released. Put the newest of both back."
            )
        self._write_mark(days)

    def _write_mark(self, days: int) -> None:
        """Replace the mark whole, and have it on the disk."""
        fresh = self._mark.with_suffix(".new")
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as file:
            file.write(str(days))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._mark)
        folder = os.open(self._mark.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _fault() -> LapwingError:
    return Fault("The server's file of days cannot be read or written; nothing was released.")

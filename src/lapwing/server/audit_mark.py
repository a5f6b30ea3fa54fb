"""The mark of the audit log: how far it had come, so that lines which are taken from its end are noticed.

Theory of operation. Each line is sealed over the one before, so a line that was edited or taken from the middle shows.
Lines taken from the end do not: what is left is a chain. So a small file beside the store, or, if that is a database,
beside the first catalog, remembers the newest line that this host has seen, in the form of a ledger's mark
(`ledger.mark`). A thread moves it on once a second. It moves only forwards, and only if the line that it remembers is
still there and is the same; if it is not, that is logged, and the mark stays as it is until the operator has looked
(`lapwing audit-log accept`). Who can write store and mark can write both anew: fetch the log, and keep it elsewhere.
"""

from pathlib import Path
from typing import Final, final

from lapwing.catalog.ledger import POSTGRES
from lapwing.errors import Fault, LapwingError
from lapwing.ledger import new_mark
from lapwing.ledger.mark import Mark, hold, path_of
from lapwing.server import audit_log
from lapwing.server.log import log
from lapwing.server.rounds import Rounds
from lapwing.server.store import ServiceStore, StoreConnection

PAUSE: Final = 1.0
"""Seconds between two looks."""
PATIENCE: Final = 10.0
"""Seconds to wait for other processes that hold the mark."""
SHARED: Final = "lapwing.people"
"""The name of the mark of a log that is in a database."""


def base_of(place: str | Path, folder: Path) -> Path:
    """Return beside which file the mark of a store lies, as `AuditMark` takes it.

    Args:
        folder: Of the first catalog, for a store in a database.
    """
    return folder / SHARED if str(place).startswith(POSTGRES) else Path(place)


@final
class AuditMark:
    """The mark of a store's audit log.

    Args:
        base: Beside which it lies, by the same name and `.mark`.
    """

    def __init__(self, store: ServiceStore, base: Path) -> None:
        self._store, self._base = store, base
        self._seen: Mark | None = None
        self._told = self._failing = False
        self.rounds = Rounds("audit", PAUSE, self._round)

    def close(self) -> None:
        """Stop looking, after a last look."""
        if self.rounds.close():
            self.look()

    def look(self) -> None:
        """Move the mark on to the newest line; log it if lines are missing."""
        try:
            newest = self._newest()
            if newest == self._seen:
                return
            missing = self._advance(newest)
        except (LapwingError, OSError) as error:
            if not self._failing:
                log("audit mark not written", kind=type(error).__name__)
            self._failing = True
            return
        self._seen, self._failing = newest, False
        if missing is not None and not self._told:
            log("audit log lacks lines", had=missing.sequence, has=newest.sequence)
        self._told = missing is not None

    def verify(self) -> Mark:
        """Check every line of the log, and that it comes as far as its mark; return its newest line.

        Raises:
            Fault: If it does not, or a line cannot follow the one before.
        """
        with self._store.reading() as connection:
            place = audit_log.first_broken(audit_log.lines(connection))
            newest = _newest(connection)
        if place is not None:
            raise Fault(
                f"The audit log is broken: line {place:,} was changed, or a line before it is missing. Restore a copy."
            )
        missing = self._advance(newest)
        if missing is not None:
            raise Fault(
                f"The audit log lacks lines: line {missing.sequence:,}, {missing.hash}, is missing or differs; the "
                f"newest is line {newest.sequence:,}. If you restored people from a copy, run "
                "`lapwing audit-log accept`. If not, somebody has removed lines."
            )
        return newest

    def accept(self, by: str) -> Mark | None:
        """Take the log as it is, though lines are missing, and write that down.

        Returns:
            The mark that it had come to, None if nothing is missing.

        Raises:
            Fault: If something outside fails.
        """
        missing = self._advance(self._newest())
        if missing is not None:
            with self._store.transaction() as connection:
                had = {"had": missing.sequence, "hash": missing.hash}
                audit_log.note(connection, by, "audit log put back", "audit log", **had)
            with hold(self._base, PATIENCE) as held:
                held.advance(self._newest())
        return missing

    def _newest(self) -> Mark:
        with self._store.reading() as connection:
            return _newest(connection)

    def _advance(self, newest: Mark) -> Mark | None:
        """Move the mark on to a line; return it, and leave it where it is, if the line that it remembers is missing."""
        if not path_of(self._base).exists():
            new_mark.create(self._base)
        with hold(self._base, PATIENCE) as held:
            mark = held.read()
            with self._store.reading() as connection:
                if mark.sequence and audit_log.hash_of(connection, mark.sequence) != mark.hash:
                    return mark
            if newest.sequence > mark.sequence:
                held.advance(newest)
        return None

    def _round(self) -> float:
        self.look()
        return PAUSE


def _newest(connection: StoreConnection) -> Mark:
    return Mark(*audit_log.newest(connection))

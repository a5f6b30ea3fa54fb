"""Data sets whose tables come from sources, fetched and accepted by a service, on a schedule or as a curator says.

One worker of a host does it at a time, and the others find that it was done: they hold no snapshot of their own. What
fails is logged with what the curator would read, the version before goes on answering, and the next round tries again.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final, final

from lapwing.catalog.model import Catalog
from lapwing.catalog.source_address import is_address
from lapwing.errors import DataFault, InvalidParameter, LapwingError
from lapwing.server.datasets import Datasets
from lapwing.server.log import log
from lapwing.server.rounds import Rounds
from lapwing.session import Session

TURN: Final = ".refreshing"


@final
class SourceRefresher:
    """A thread that refreshes what comes from sources.

    Args:
        every: Seconds between two rounds; None never begins one.
    """

    def __init__(self, datasets: Datasets, every: float | None) -> None:
        self._datasets, self._every = datasets, every
        self.rounds = Rounds("refreshing", every or 0.0, self._round)

    def start(self) -> None:
        """Begin, if there is a schedule."""
        if self._every is not None:
            self.rounds.start()

    def look(self) -> None:
        """Refresh every data set that was not refreshed for the time of most of a round."""
        from lapwing.sources import SourceSnapshots, fetch  # here: with it come the clients of databases

        for served in self._datasets.everything():
            catalog = served.session.catalog
            if not any(is_address(table.source) for table in catalog.tables):
                continue
            snapshots = SourceSnapshots.of(catalog)
            with _turn(catalog) as ours:
                if not ours or snapshots.is_younger(0.5 * (self._every or 0.0), datetime.now(UTC)):
                    continue
                try:
                    before = served.session.budget(history=False).version
                    if catalog.from_sources:
                        fetch(catalog)
                    version = served.session.accept_data()
                except LapwingError as error:
                    log("data not refreshed", dataset=served.name, problem=str(error))
                    continue
                log(
                    "data refreshed" if version != before else "data are the same", dataset=served.name, version=version
                )

    def _round(self) -> float:
        self.look()
        return self._every or 0.0


def refresh(session: Session, *, whole: bool) -> int:
    """Fetch what the sources of a data set hold now, and make it the current version; return its number.

    It stays if the rows are the same, or only public tables come from sources. On any error the version before answers.

    Args:
        session: Acts for the curator who says so.
        whole: Read all rows, also where a source knows what came since.

    Raises:
        InvalidParameter: If no table comes from a source.
        DataFault: If one does not deliver, if what it delivers is not accepted, or while another process of this host
            fetches the same.
    """
    from lapwing.sources import fetch  # here: with it come the clients of databases

    catalog = session.catalog
    if not catalog.at_addresses:
        raise InvalidParameter(
            "No table of this data set comes from a source: Lapwing reads files where they are. `lapwing data accept` "
            "accepts changed files as a new version."
        )
    with _turn(catalog) as ours:
        if not ours:
            raise DataFault("Lapwing is already fetching the data; nothing was done. Try again when that has ended")
        if catalog.from_sources:  # Spark reads protected tables where they are
            fetch(catalog, whole=whole)
        if not any(is_address(table.source) for table in catalog.tables):
            return session.budget(history=False).version
        return session.accept_data()


@contextmanager
def _turn(catalog: Catalog) -> Iterator[bool]:
    """Tell whether it is this process's turn; if so, it is nobody else's inside."""
    lock = os.open(catalog.folder / f"{TURN}-{catalog.digest[:16]}", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(lock)

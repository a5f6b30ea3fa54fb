"""Compare the data of each data set with its version again and again, before somebody submits a query.

Theory of operation. A thread compares the digests of the files with the digests in the ledger, like each charge does
(`release.versions`). An engine remembers a digest until the size or time of a file changes, so a look is cheap. After
a change the engine reads the whole file again, which may take long. So the pause before the next look at this data set
is `IDLE` times the duration of the last look.

The watch reports one fact: a digest differs from the version. A missing or unreadable file counts as different too, so
no row of the new files decides what the watch reports. The refusal of a query reports the same fact to analysts. The
watch skips data sets with graphs, because their files have digests of another kind.
"""

import time
from collections.abc import Callable
from typing import Final, final

from lapwing.errors import DataChanged, DataFault, LapwingError
from lapwing.release.versions import current_digests
from lapwing.server.datasets import Datasets, ServedDataset
from lapwing.server.rounds import Rounds
from lapwing.session import access_of

PAUSE: Final = 5.0
"""Seconds between two looks."""
IDLE: Final = 20
"""The pause after a look is this multiple of its duration. A file that changes all the time keeps no processor busy."""


@final
class DataWatch:
    """Remembers which data sets have changed data."""

    def __init__(self, datasets: Datasets, clock: Callable[[], float] = time.monotonic) -> None:
        self._datasets, self._clock = datasets, clock
        self._changed: dict[str, int] = {}
        self._due: dict[str, float] = {}
        self.rounds = Rounds("data", PAUSE, self._round)

    def has_changed(self, name: str, version: int) -> bool:
        """Tell whether the data differ from this version, by the last look."""
        return self._changed.get(name) == version

    def look(self) -> None:
        """Look at all data sets that are due."""
        for served in self._datasets.everything():
            began = self._clock()
            if began >= self._due.get(served.name, began):
                self._look_at(served)
                ended = self._clock()
                self._due[served.name] = ended + IDLE * (ended - began)

    def _look_at(self, served: ServedDataset) -> None:
        access = access_of(served.session)
        if access.catalog.graphs:
            return
        try:
            state = access.ledger.seen()
            try:
                current_digests(access.catalog.tables, access.engine, state)
            except (DataChanged, DataFault):
                self._changed[served.name] = state.version
            else:
                self._changed.pop(served.name, None)
        except LapwingError:  # the ledger or the engine failed: `readiness` reports it
            return

    def _round(self) -> float:
        self.look()
        return PAUSE

"""Compare the data of each data set with its version again and again, before somebody submits a query.

Theory of operation. A thread compares the digests of the files with the digests in the ledger, like each charge does
(`release.versions`). An engine remembers a digest until the size or time of a file changes, so a look is cheap. After
a change the engine reads the whole file again, which may take long. So the pause before the next look at this data set
is `IDLE` times the duration of the last look.

The watch reports one fact: a digest differs from the version. A missing or unreadable file counts as different too, so
no row of the new files decides what the watch reports. The refusal of a query reports the same fact to analysts.

The edge tables of a graph have digests of another kind, which the reader of the graph computes. The watch compares them
from the first query about the graph on, which opens the reader. The version of a graph of edges is in a ledger of its
own. Public tables have no version. Queries refuse a file that is not the one that was read first. So the watch compares
each public table that was read with that file.
"""

import time
from collections.abc import Callable, Sequence
from typing import Final, Literal, final

from lapwing.errors import DataChanged, DataFault, LapwingError
from lapwing.graphs.opened import OpenGraph
from lapwing.ledger.state import LedgerState
from lapwing.release.request import Access
from lapwing.release.versions import current_digests
from lapwing.server.datasets import Datasets, ServedDataset
from lapwing.server.rounds import Rounds
from lapwing.session import access_of

Change = Literal["changed", "public_changed"]
"""The kinds of change: data that a ledger has a version of, or only the file of a public table."""
PAUSE: Final = 5.0
"""Seconds between two looks."""
IDLE: Final = 20
"""The pause after a look is this multiple of its duration. A file that changes all the time keeps no processor busy."""


@final
class DataWatch:
    """Remembers which data sets have changed data."""

    def __init__(self, datasets: Datasets, clock: Callable[[], float] = time.monotonic) -> None:
        self._datasets, self._clock = datasets, clock
        self._changed: dict[str, tuple[int, Change]] = {}
        self._due: dict[str, float] = {}
        self.rounds = Rounds("data", PAUSE, self._round)

    def change(self, name: str, version: int) -> Change | None:
        """Return what differs from this version by the last look, if anything does."""
        seen, change = self._changed.get(name, (None, None))
        return change if seen == version else None

    def look(self) -> None:
        """Look at all data sets that are due."""
        for served in self._datasets.everything():
            began = self._clock()
            if began >= self._due.get(served.name, began):
                self._look_at(served)
                ended = self._clock()
                self._due[served.name] = ended + IDLE * (ended - began)

    def _look_at(self, served: ServedDataset) -> None:
        session = served.session
        access = access_of(session)
        try:
            state = access.ledger.seen()
            change = _change_of(access, state, list(session._graphs.values()))
        except LapwingError:  # the ledger or the engine failed: `readiness` reports it
            return
        if change is None:
            self._changed.pop(served.name, None)
        else:
            self._changed[served.name] = state.version, change

    def _round(self) -> float:
        self.look()
        return PAUSE


def _change_of(access: Access, state: LedgerState, graphs: Sequence[OpenGraph]) -> Change | None:
    try:
        of_graphs = {table.name for graph in access.catalog.graphs for table in access.catalog.of_graph(graph).tables}
        current_digests([one for one in access.catalog.tables if one.name not in of_graphs], access.engine, state)
        for graph in graphs:
            accepted = graph.account.ledger.seen().digests
            if any(accepted.get(name) != digest for name, digest in graph.reader.digests().items()):
                return "changed"
    except (DataChanged, DataFault):
        return "changed"
    try:
        access.public.require_unchanged()
    except DataFault:
        return "public_changed"
    return None

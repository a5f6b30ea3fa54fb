"""Questions over sources: an engine over snapshots, which are files, and so the one proven path.

Theory of operation. For every snapshot that is asked there is an engine of its own over its files (`duckdb`), which
compares their bytes with what the manifest says of them, reads them through, and keeps an index beside them, as it does
with any file. A table's digest is that of its content; the engine below knows the digests of files, and they are
exchanged here, for tables that come from sources and for no others.

Which snapshot answers is the ledger's to say: it is the one of its current version's digests. If this host does not
have it, the newest takes its place, whose digests are others, so that every question is refused and none is charged. A
question that has begun is answered from the snapshot whose digests it began with, whatever is fetched or accepted
meanwhile: an engine is closed, and its snapshot let go, only when it has not been asked for a while.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import RLock
from typing import Final, final

from lapwing.catalog.model import Catalog, Table
from lapwing.engines.base import FAILED, NOTHING, Exact, IndexState
from lapwing.engines.data_check import TableCheck
from lapwing.engines.duckdb.engine import CAPABILITIES, DuckDB
from lapwing.engines.duckdb.public_data import PublicSources
from lapwing.engines.duckdb.queries import prepare
from lapwing.errors import DataFault, EngineFault
from lapwing.query.plan.capabilities import Capabilities
from lapwing.query.plan.plan import Question
from lapwing.sources.snapshots import Hold, SourceSnapshots, tables_of

IDLE: Final = 900.0
"""Seconds after which a snapshot that is of the current version no more is let go: no question begins as slowly."""


@final
@dataclass(slots=True, kw_only=True, eq=False)
class _OpenSnapshot:
    """A snapshot in use, and the engine over its files."""

    hold: Hold
    engine: DuckDB
    digests: Mapping[str, str]
    asked: float = 0.0
    running: int = 0
    served: bool = False

    def digest(self, table: Table) -> str:
        """Return the digest of a table, whose file is what the manifest says, with the rows that the catalog means."""
        found = self.engine.digest(table)
        fetched = self.hold.snapshot.tables.get(table.name)
        if table.name not in self.digests or fetched is None:
            return found
        fetched.require_conditions(table)
        if found != fetched.file_digest:
            raise DataFault(
                f"The snapshot of table {table.name} is not what was fetched; somebody wrote to it, or its disk fails.",
                curator_remedy="fetch the data again",
                command="`lapwing data refresh`",
            )
        return fetched.digest

    def close(self) -> None:
        self.engine.close()
        self.hold.let_go()


@final
class SnapshotEngine:
    """An engine over the snapshots of a catalog's sources, and its files. See `engines.base.Engine`. Thread-safe."""

    def __init__(self, catalog: Catalog, *, public: PublicSources | None = None) -> None:
        self._catalog = catalog
        self._public = public
        self._snapshots = SourceSnapshots.of(catalog)
        self._sources = [table.name for table in tables_of(catalog)]
        self._opened: list[_OpenSnapshot] = []  # the one that was asked last comes first
        self._lock = RLock()

    @property
    def capabilities(self) -> Capabilities:
        """Everything that a plan can have."""
        return CAPABILITIES

    def digest(self, table: Table, accepted: Mapping[str, str] = NOTHING) -> str:
        """Return the digest of a table's content: of the accepted version if it is here, and else of the newest."""
        wanted = {name: accepted[name] for name in self._sources if name in accepted}
        found = self._found(wanted)
        if found is None:
            found = self._newest()
            if not accepted:  # whoever asks so is about to accept it
                self._snapshots.keep(found.hold)
        return found.digest(table)

    def rows(self, table: Table) -> int:
        """Return how many rows a table has, as it was fetched last."""
        return self._newest().engine.rows(table)

    def unfit_columns(self, table: Table) -> Sequence[str]:
        """Return the columns that hold values which are not what the declared type says, as they were fetched last."""
        return self._newest().engine.unfit_columns(table)

    def check(self, table: Table) -> TableCheck:
        """Return what the data of a table are like, as they were fetched last. The curator's act."""
        return self._newest().engine.check(table)

    def prepare(self, question: Question) -> None:
        """Load the code that a question takes."""
        prepare(question)

    def run(self, question: Question, digests: Mapping[str, str]) -> Exact:
        """Run a question over the snapshot that has these digests."""
        lineage = [table.name for table in question.lineage]
        wanted = {name: digests[name] for name in lineage if name in self._sources}
        with self._lock:
            found = next((one for one in self._opened if wanted.items() <= one.digests.items()), None)
            if found is not None:
                found.running += 1
        if found is None:
            raise EngineFault(FAILED)
        try:
            files = {name: found.hold.snapshot.tables[name].file_digest for name in wanted}
            return found.engine.run(question, {**digests, **files})
        finally:
            with self._lock:
                found.running -= 1
                found.asked = time.monotonic()

    def build_index(self, table: Table) -> bool:
        """Write the index of a table beside its newest snapshot. The curator's act."""
        return self._newest().engine.build_index(table)

    def drop_index(self, table: Table) -> bool:
        """Remove the index of a table; return whether there was one."""
        return self._newest().engine.drop_index(table)

    def index_state(self, table: Table) -> IndexState:
        """Return whether a table has an index, and whether it is of these data, this catalog and this engine."""
        return self._newest().engine.index_state(table)

    def close(self) -> None:
        """Close all engines, and let go of the snapshots."""
        with self._lock:
            for one in self._opened:
                one.close()
            self._opened.clear()

    # ---- which snapshot ----------------------------------------------------------------------------------------------

    def _found(self, wanted: Mapping[str, str]) -> _OpenSnapshot | None:
        """Return the snapshot whose tables have these digests, if it is here."""
        if len(wanted) < len(self._sources):
            return None
        with self._lock:
            found = next((one for one in self._opened if one.digests == wanted), None)
            if found is None:
                hold = self._snapshots.find(wanted)
                found = None if hold is None else self._open(hold)
            if found is not None and not found.served:
                found.served = True
                self._snapshots.serve(found.hold)
            return None if found is None else self._asked(found)

    def _newest(self) -> _OpenSnapshot:
        """Return the snapshot that was fetched last.

        Raises:
            DataFault: If nothing was fetched.
        """
        with self._lock:
            hold = self._snapshots.newest()
            if hold is None:
                raise DataFault(
                    f"The data of {', '.join(self._sources)} come from a source, and were not fetched yet.",
                    curator_remedy="look at them, and fetch and accept them",
                    command="`lapwing data check`, and `lapwing data refresh`",
                )
            known = next((one for one in self._opened if one.hold.snapshot.folder == hold.snapshot.folder), None)
            if known is None:
                return self._open(hold)
            hold.let_go()
            return self._asked(known)

    def _open(self, hold: Hold) -> _OpenSnapshot:
        try:
            engine = DuckDB(hold.snapshot.located(self._catalog), public=self._public)
        except BaseException:
            hold.let_go()
            raise
        return self._asked(_OpenSnapshot(hold=hold, engine=engine, digests=hold.snapshot.digests))

    def _asked(self, one: _OpenSnapshot) -> _OpenSnapshot:
        """Put a snapshot first, and let go of those that nobody has asked for long."""
        now = one.asked = time.monotonic()
        idle = [old for old in self._opened if old is not one and not old.running and now - old.asked > IDLE]
        self._opened = [one, *(old for old in self._opened if old is not one and old not in idle)]
        for old in idle:
            old.close()
        return one

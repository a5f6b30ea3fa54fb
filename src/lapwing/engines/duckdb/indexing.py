"""Make an index, or tell whether one can be used: for the curator, or before a question that should have one.

An index is written only from files that were read through and whose keys are unique. When it is complete, and before it
takes its name, the files are compared again. Parents' rows are taken from their own indexes where these can be read to
their end.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import final

import duckdb

from lapwing.catalog.model import Catalog, Table
from lapwing.engines.base import IndexState
from lapwing.engines.duckdb import index, stamps
from lapwing.engines.duckdb.cleaned import Location, Pass, from_files
from lapwing.engines.duckdb.database import Database
from lapwing.engines.duckdb.link_keys import keys_of
from lapwing.engines.duckdb.stored_rows import Layers
from lapwing.errors import Fault
from lapwing.machine import progress


@final
class IndexIdentities:
    """The identities that the indexes of a catalog's tables must have, by the digests of their data. Thread-safe.

    All else that an identity follows from (catalog, SQL, engine) stays the same while an engine is open.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._identities: dict[tuple[str, ...], str] = {}
        self._lock = Lock()

    def of(self, table: Table, digests: Mapping[str, str], anywhere: Callable[[Table], Location]) -> str:
        """Return the identity that an index of these data must have, wherever they are.

        Args:
            anywhere: Returns a table's source as it would be in any folder.
        """
        mark = stamps.mark(table, digests)
        with self._lock:
            identity = self._identities.get(mark)
        if identity is not None:
            return identity
        lineage = [
            index.Ingredient(table=above, source=anywhere(above), digest=digests[above.name]) for above in table.lineage
        ]
        identity = index.identity_of(lineage, keys_of(table, self._catalog))
        with self._lock:
            self._identities[mark] = identity
        return identity


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Indexing:
    """The indexes of one engine's tables, as its curator sees them.

    Args:
        paths: where the indexes are, by the table's name.
        stored: the index of these data that there is, if there is one to be trusted.
        identity: what a table's index must be of.
        passes: in how many passes the rows of tables are bounded.
        unchanged: whether tables still have these digests.
    """

    database: Database
    indexes: index.Indexes
    layers: Layers
    paths: Mapping[str, Path]
    stored: Callable[[Table, Mapping[str, str]], index.IndexedRows | None]
    identity: Callable[[Table, Mapping[str, str]], str]
    passes: Callable[[list[Table]], int]
    unchanged: Callable[[tuple[Table, ...], Mapping[str, str]], bool]

    def ensure(self, table: Table, digests: Mapping[str, str]) -> bool:
        """Write the index of a table, unless there is one; return whether it was written.

        Raises:
            Fault: If it cannot be written.
        """
        if self.sound(table, digests) is not None:
            return False
        try:
            written = self.build(table, digests)
        except (duckdb.Error, OSError):
            written = False
        if not written:
            raise Fault(
                f"The index of table {table.name} could not be written next to {table.source}. Check the folder's "
                "rights, the space on its disk, and whether the data are being written. Queries need no index."
            )
        return True

    def state(self, table: Table, digests: Mapping[str, str]) -> IndexState:
        """Return whether a table has an index, and whether it is of these data, this catalog and this engine."""
        if self.sound(table, digests) is not None:
            return IndexState.current
        path = self.paths[table.name]
        return IndexState.unusable if path.exists() or path.is_symlink() else IndexState.absent

    def sound(self, table: Table, digests: Mapping[str, str]) -> index.IndexedRows | None:
        """Return the index of a table if it can be read to its end."""
        stored = self.stored(table, digests)
        sound = stored is not None and self.indexes.is_sound(self.database, self.paths[table.name], stored)
        return stored if sound else None

    def build(self, table: Table, digests: Mapping[str, str]) -> bool:
        """Write the index of a table; return whether it was written.

        Raises:
            OSError: If it cannot be written; nothing is left behind then.
            duckdb.Error: Likewise.
        """
        sound = {above.name: self.sound(above, digests) for above in table.lineage[1:]}
        relations = {name: stored.relation() for name, stored in sound.items() if stored is not None}
        passes = self.passes(from_files((table,), relations))
        parts = [Pass(index=part, of=passes) for part in range(passes)]
        rows = index.IndexRows(
            parts=lambda types: [self.layers.rows(table, relations, part, types) for part in parts],
            words=index.words(table, self.layers.source(table)),
        )
        with progress.work(f"Writing the index of {table.name}"):
            return self.indexes.build(
                self.database,
                self.paths[table.name],
                self.identity(table, digests),
                rows,
                lambda: self.unchanged(table.lineage, digests),
            )

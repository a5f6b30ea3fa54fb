"""Where the rows that exist in tables are taken from: files, or relations that hold them already.

The rows of a linked table are taken from those of its parent, and so on up to a table with a unit of its own: so a
question about one table may stand on several files. Where a table's rows are stored, nothing above it is needed.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import final

from lapwing.catalog.model import Table
from lapwing.engines.duckdb.cleaned import WHOLE, Pass, kept_rows, layer, stored
from lapwing.engines.duckdb.files import File

Relations = Mapping[str, str]
"""Relations that hold the rows of tables that exist, by the table's name."""


def needed(tables: Iterable[Table], relations: Relations) -> list[Table]:
    """Return these tables, and what their rows are taken from unless they are stored: parents first, each once."""
    found: dict[str, Table] = {}
    for table in tables:
        if table.name not in relations and table.link is not None:
            found |= {above.name: above for above in needed((table.link.parent,), relations)}
        found.setdefault(table.name, table)
    return list(found.values())


def from_files(tables: Iterable[Table], relations: Relations) -> list[Table]:
    """Return those of the tables that are needed which have to be cleaned and bounded."""
    return [table for table in needed(tables, relations) if table.name not in relations]


def passes_for(rows: Mapping[Table, int], memory: int) -> int:
    """Return how many passes keep the bounding sorts of tables with so many rows inside a memory limit, all at once."""
    size = sum(count * (24 + 16 * len(table.columns)) for table, count in rows.items() if not table.unit_is_row)
    return max(1, -(-size * 10 // (memory * 6)))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """Common table expressions over files as they are described when they are asked for."""

    describe: Callable[[Table], File]

    def of(self, tables: Iterable[Table], relations: Relations, part: Pass) -> list[str]:
        """Return the layers of tables, parents first, of the units of a pass."""
        return [
            stored(table, relations[table.name], part)
            if table.name in relations
            else layer(table, self.describe(table).source, part)
            for table in tables
        ]

    def above(self, table: Table, relations: Relations, part: Pass) -> list[str]:
        """Return the layers from which the rows of a linked table are taken; none for another."""
        parents = () if table.link is None else (table.link.parent,)
        return self.of(needed(parents, relations), relations, part)

    def rows(self, table: Table, relations: Relations, part: Pass, types: Mapping[str, str] | None = None) -> str:
        """Return the query for the rows of a table that exist, made from its file."""
        return kept_rows(table, self.describe(table).source, part, self.above(table, relations, part), types)


def held(tables: Iterable[Table], relations: Relations, part: Pass = WHOLE, within: Pass = WHOLE) -> list[str]:
    """Return the layers of tables whose rows are all stored, of the units of a pass and of a part of these."""
    return [stored(table, relations[table.name], part, within) for table in tables]

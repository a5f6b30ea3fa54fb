"""Public tables as earlier versions saw them: every float is rounded to its steps, also in conditions and joins.

Counts of these tables rest on the columns that a plan names. So with only the columns in steps, bounds on matches are
those that the plans had then. Nothing is asked with them: plans are bound to look up answers under their
keys (`release.earlier_meanings`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

from lapwing.catalog.public import PublicTable
from lapwing.engines.base import PublicTables
from lapwing.query.expressions.expression import ColumnReference, Constant
from lapwing.query.relations.public_rows import Combinations, ComparedRange


@final
@dataclass(frozen=True, slots=True)
class InSteps:
    """The facts of public tables, of which no float is there as it is read."""

    now: PublicTables

    def columns(self, table: PublicTable) -> tuple[ColumnReference, ...]:
        """Return a table's columns, floats in steps."""
        return tuple(replace(column, read=None) for column in self.now.columns(table) if column.cleaned is None)

    def values(self, table: PublicTable, column: str, limit: int) -> tuple[Constant, ...] | None:
        """Return the distinct values of a column."""
        return self.now.values(table, column, limit)

    def multiplicity(self, table: PublicTable, columns: Sequence[str]) -> int:
        """Return the most rows that share one combination of values."""
        return self.now.multiplicity(table, columns)

    def overlap(self, wanted: ComparedRange) -> int:
        """Return the most public rows in whose intervals one value is."""
        return self.now.overlap(wanted)

    def combinations(self, wanted: Combinations, limit: int) -> tuple[tuple[Constant, ...], ...] | None:
        """Return combinations in order."""
        return self.now.combinations(wanted, limit)

    def rows(self, wanted: Combinations, limit: int) -> tuple[tuple[Constant, ...], ...] | None:
        """Return what every row shows."""
        return self.now.rows(wanted, limit)

    def digest(self, table: PublicTable) -> str:
        """Return a fingerprint of a table's data."""
        return self.now.digest(table)

    def require_unchanged(self) -> None:
        """Refuse if the file of a table is another one now."""
        self.now.require_unchanged()

    def close(self) -> None:
        """Let go of connections and temporary files."""
        self.now.close()

"""What a source owes: the columns of one consistent state, as Arrow batches.

A source that cannot promise one state for a table is none. Whoever delivers rows beside which others were already gone,
or twice what was moved meanwhile, shows a table that never was, and people in it who never had such rows.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from lapwing.catalog.condition import Condition
from lapwing.catalog.source_address import SourceAddress

if TYPE_CHECKING:
    import pyarrow as pa

    from lapwing.catalog.file_columns import FileColumn

Names = tuple[str, ...]
"""The names that lead to a table, as schema and table."""
Where = Sequence[Condition]
"""What the rows of a table fulfil that are wanted; none wants all of them. Columns are named as in the source."""


class SourceState(Protocol):
    """One consistent state of a source, while it is open: all that is asked, in whatever order, is of this state.

    Of rows that are wanted by conditions, more may be delivered and counted, the same for both, and none fewer: which
    they are is settled in `restricting`. Values are handed over beside statements and never become a part of them.
    """

    @property
    def version(self) -> str | None:
        """What the source calls this state, if it has a name for it by which it can be asked for again."""
        ...

    @property
    def holds_several(self) -> bool:
        """Whether several tables are read in the same state, and not each in one of its own."""
        ...

    def columns(self, table: Names) -> "Sequence[FileColumn]":
        """Return the columns of a table, with the types that the source declares: no row is read for this.

        Raises:
            DataFault: If there is no such table.
        """
        ...

    def mark(self, table: Names) -> str | None:
        """Return what `added` is told later, so as to deliver what came after this state; None if it cannot."""
        ...

    def added(
        self, table: Names, columns: Sequence[str], mark: str, where: Where = ()
    ) -> "pa.RecordBatchReader | None":
        """Return the rows of this state that a former one, which had this mark, lacks; None if that is not known.

        Whoever returns rows says that all rows of the former state are still there, and unchanged.
        """
        ...

    def rows(self, table: Names, where: Where = ()) -> int | None:
        """Return how many rows `batches` will deliver, as the source counts them; None if it does not in this state."""
        ...

    def batches(self, table: Names, columns: Sequence[str], where: Where = ()) -> "pa.RecordBatchReader":
        """Return these columns of a table's rows, in any order; what cannot be delivered to its end raises."""
        ...


class Growing(SourceState, Protocol):
    """A state of a table to which rows are only added, with a key of integers which only grow."""

    def keys(self, table: Names, key: str, where: str, most: int) -> Sequence[int]:
        """Return the least keys of the rows that meet a condition, in order, and no more than so many.

        Raises:
            DataFault: If the source cannot say which rows are still to come (`writers`).
        """
        ...

    def selected(self, table: Names, columns: Sequence[str], where: str) -> "pa.RecordBatchReader":
        """Return these columns of the rows that meet a condition."""
        ...

    def writers(self, table: Names) -> frozenset[str]:
        """Return who may still add rows with smaller keys than rows of this state have: transactions under way.

        Guarantee:
            A row with a smaller key that is not in the states that are opened from now on is of one of them.
        """
        ...


Door = Callable[[SourceAddress, Path], AbstractContextManager[SourceState]]
"""Opens a state of what an address leads to; paths in it start from a folder.

Raises:
    DataFault: If it cannot be reached, or does not let this user in.
"""

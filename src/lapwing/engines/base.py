"""What a release needs of an engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from lapwing.catalog.model import Catalog, Table
from lapwing.catalog.unreadable import is_accepted
from lapwing.errors import DataFault, InvalidParameter
from lapwing.query.expressions.expression import Constant
from lapwing.query.measures.distribution import Distribution
from lapwing.query.plan.capabilities import Capabilities
from lapwing.query.plan.plan import Question
from lapwing.query.relations.public_rows import PublicFacts

if TYPE_CHECKING:
    from lapwing.engines.holders import UnitCountsByKey

NOTHING: Final[Mapping[str, str]] = {}

FAILED: Final = (
    "The engine could not finish the query. The cost is charged; ask the curator to look at memory, disk and data."
)
"""What an engine says that failed, whatever went wrong: more could tell something about the data."""

# The cells that hold rows, by the values of their keys in the question's order; one exact integer a measure.
Cells = Mapping[tuple[Constant, ...], tuple[int, ...]]


# The leaves that hold rows and how many rows each holds, in any order, cell by cell; what a leaf has may be in pieces.
Leaves = Mapping[tuple[Constant, ...], tuple[NDArray[np.int64], NDArray[np.int64]]]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Exact:
    """What an engine found: private data, to which noise is still to be added.

    `holders` is None unless the question has private keys; then it has every value of them that any unit holds, as does
    `cells` if there is a measure of one integer. `leaves` are those of the question's distributions.
    """

    cells: Cells
    holders: "UnitCountsByKey | None" = None
    leaves: Mapping[Distribution, Leaves] = field(default_factory=dict)


class PublicTables(PublicFacts, Protocol):
    """Facts of the public tables of one catalog, read from where an engine finds them."""

    def require_unchanged(self) -> None:
        """Refuse if the file of a table that was read is another one now, or cannot be read.

        Raises:
            DataFault: As queries of this table do.
        """
        ...

    def close(self) -> None:
        """Let go of connections and temporary files."""
        ...


class Engine(Protocol):
    """Runs questions over the tables of one catalog."""

    @property
    def capabilities(self) -> Capabilities:
        """What it can run. Questions that need more are refused when they are bound."""
        ...

    def digest(self, table: Table, accepted: Mapping[str, str] = NOTHING) -> str:
        """Return a fingerprint of a table's data (SHA-256, hexadecimal).

        Args:
            accepted: The digests of the version that is asked about, by table. Of data that are at hand in several
                versions it is that one which answers, if it is there, and else the newest; without it, always the
                newest.

        It decides only whether a question is served or refused, and is never shown to an analyst.

        Raises:
            DataFault: If the data are missing or unreadable, or their columns are not those of the catalog; or if a key
                that a link leads to is not unique among the rows. For a linked table, also if its parents have none.
        """
        ...

    def rows(self, table: Table) -> int:
        """Return how many rows a table's data have: a private number, for the curator and `rows_at_most` alone.

        Raises:
            DataFault: As `digest` does.
        """
        ...

    def unfit_columns(self, table: Table) -> Sequence[str]:
        """Return the columns that hold values which are not what their declared type says: private, for the curator.

        Raises:
            DataFault: As `digest` does.
        """
        ...

    def prepare(self, question: Question) -> None:
        """Load whatever running a question takes, without reading data: a failure to must come before the charge."""
        ...

    def run(self, question: Question, digests: Mapping[str, str]) -> Exact:
        """Return the exact measures of every cell that holds rows, of the data with these digests and no other.

        Args:
            digests: Of all tables of the question's `lineage`, by name.

        Raises:
            EngineFault: With one constant message, whatever went wrong.
            KeyboardInterrupt: If the user stopped it.
        """
        ...

    def close(self) -> None:
        """Let go of connections and temporary files."""
        ...


class IndexState(StrEnum):
    """What is beside a table's data."""

    current = "current"
    unusable = "unusable"
    absent = "absent"


class IndexedEngine(Engine, Protocol):
    """An engine that can keep the rows that questions stand on ready beside the data: the curator's acts."""

    def build_index(self, table: Table) -> bool:
        """Write the index of a table, unless there is one; return whether it was written.

        Raises:
            DataFault: If the data cannot be read.
            Fault: If the index cannot be written.
        """
        ...

    def drop_index(self, table: Table) -> bool:
        """Remove the index of a table; return whether there was one."""
        ...

    def index_state(self, table: Table) -> IndexState:
        """Return whether a table has an index, and whether it is of these data, this catalog and this engine."""
        ...


def refused_columns(table: Table, engine: Engine, unreadable: str | None) -> list[str]:
    """Return the columns whose values keep a version of a table from being accepted. Reads nothing if none can.

    Args:
        unreadable: "null" as if the table said so. A column that has the key overrides it.
    """
    owners = () if table.link is not None or table.unit_is_row else (table.unit_column,)
    names = {*(column.name for column in table.columns), *owners}
    if all(is_accepted(table, name, unreadable) for name in names):
        return []
    return [name for name in engine.unfit_columns(table) if not is_accepted(table, name, unreadable)]


def digests(catalog: Catalog, engine: Engine, *, unreadable: str | None = None) -> dict[str, str]:
    """Return the digest of every table's data, for a version that is to be accepted.

    Args:
        unreadable: "null" accepts values that are not of their type in any table, as `Table.unreadable` does in one.

    Raises:
        DataFault: Also if a table has more rows than its `rows_at_most`, or values that cannot be read as their type,
            or are not whole in an integer column: they would become NULL, or be rounded, and nobody would know.
        InvalidParameter: For another `unreadable`.
    """
    if unreadable not in (None, "null"):
        raise InvalidParameter(f'unreadable is {unreadable!r:.60}; it must be "null", or left out.')
    digests = {table.name: engine.digest(table) for table in catalog.tables}
    for table in catalog.tables:
        if table.rows_at_most is not None and engine.rows(table) > table.rows_at_most:
            raise DataFault(
                f"{table.source} has more rows than the {table.rows_at_most:,} that rows_at_most of table {table.name} "
                "promises. Raise it in the catalog, to a figure that may be public, or take rows out of the data"
            )
        unfit = refused_columns(table, engine, unreadable)
        if unfit:
            raise DataFault(
                f"{table.source} has values that are not of the declared type in {', '.join(unfit)}. They would count "
                "as NULL, or be rounded, and no result would show it. `lapwing data check` lists them. Correct them, "
                "or the types in the catalog. Or accept them: once by `lapwing data accept --unreadable null`, or for "
                f'good by the line unreadable = "null" in table {table.name} of the catalog, or in those columns'
            )
    return digests

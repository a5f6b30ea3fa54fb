"""What every relation states of itself, and what its columns are made of (`relation`)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self

from lapwing.catalog.model import Catalog
from lapwing.query.expressions.expression import ColumnReference, Expression
from lapwing.query.relations.public_rows import PublicRows
from lapwing.query.relations.row_numbers import Admitted

if TYPE_CHECKING:
    from lapwing.query.relations.relation import FilteredRows


class Relation(Protocol):
    """A node: rows made from the rows of its sources."""

    @property
    def sources(self) -> "tuple[FilteredRows, ...]":
        """What it is made from; the text begins with the first."""
        ...

    @property
    def construct(self) -> str:
        """What an engine must have for it (`capabilities`)."""
        ...

    @property
    def uses(self) -> tuple[str, ...]:
        """What of its construct an engine must have too: functions, frames, the kind of a join, as plans call them."""
        ...

    @property
    def columns(self) -> tuple[ColumnReference, ...]:
        """Its columns, each under a name of its own."""
        ...

    @property
    def rows_per_unit(self) -> int:
        """The most rows of one unit."""
        ...

    @property
    def row_by_row(self) -> bool:
        """Whether it looks at one row of its first source at a time, which may then belong to several units."""
        ...

    @property
    def meets(self) -> bool:
        """Whether a row of it belongs to one more unit than a row of its first source."""
        ...

    @property
    def hands_on(self) -> bool:
        """Whether its rows have all columns of its first source, as they are there."""
        ...

    @property
    def reads_whole_rows(self) -> bool:
        """Whether what it does depends on every column of its source, as ties are broken by all of them."""
        ...

    def rows_within(self, numbers: Admitted) -> int:
        """Return the most rows of one unit in whose columns, of those that are named, no other numbers stand."""
        ...

    @property
    def public(self) -> PublicRows | None:
        """The public rows that it reads itself."""
        ...

    @property
    def computed(self) -> tuple[tuple[Expression, ...], ...]:
        """The expressions that it computes over each of its sources."""
        ...

    def rebuilt(self, sources: "Sequence[FilteredRows]") -> Self:
        """Return the same node made from other sources."""
        ...

    def narrowed(self, read: frozenset[str]) -> Self:
        """Return the node without those columns of its second source that are not read of it."""
        ...

    def definitions(self, column: ColumnReference) -> "tuple[ColumnDefinition, ...]":
        """Return what a column of it is made of; nothing if its values are new, or those of the table."""
        ...

    def tells_apart(self, values: frozenset[Expression], catalog: Catalog) -> bool:
        """Tell whether no two rows of a unit are equal in these expressions, none of which is NULL (`identity`)."""
        ...


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """What a column is made of: an expression over a source.

    Args:
        exact: whether the column has the value of the very row that its own row was made from; else that of some row of
            the same unit.
        way: which side of a join between rows of one unit it comes from.
        unmatched: whether the column is NULL instead in the rows of a LEFT JOIN that match nothing.
    """

    value: Expression
    relation: Relation | PublicRows
    exact: bool = True
    way: tuple[int, ...] = ()
    unmatched: bool = False

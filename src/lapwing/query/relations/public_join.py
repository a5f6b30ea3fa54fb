"""Rows joined to public rows, on equalities and comparisons.

Such a join is unit-local and works row by row: what a row is joined with depends on that row and on public data alone.
The bound on a unit's rows is multiplied by the most public rows that one row can meet, and by at least 1. Of equalities
these are the most public rows that share the joined values; of comparisons see `from_clause.range_joins`.
"""

from dataclasses import dataclass
from typing import Literal as Choice

from lapwing.catalog.model import Catalog
from lapwing.query.expressions.expression import ColumnReference, Expression, columns_of
from lapwing.query.relations.fresh_columns import named
from lapwing.query.relations.identity import at_most_one
from lapwing.query.relations.inputs import OneSource
from lapwing.query.relations.node import ColumnDefinition
from lapwing.query.relations.public_rows import PublicRows
from lapwing.query.relations.row_numbers import Admitted

JoinKind = Choice["inner", "left", "semi", "anti", "not_in"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicJoin(OneSource):
    """A selection's rows joined to public rows on equalities, where a condition on the pair is true.

    A semi-join keeps the rows that match, an anti-join those that do not; `not_in` is SQL's NOT IN, which holds where
    the value equals no public one for certain: neither it nor any of them is NULL, or there are none.

    Args:
        on: Pairs of an expression over the selection and one over the public rows.
        multiplicity: The most public rows that one row can meet.
        added: The public columns under names of their own, for inner and left.
        condition: Over the source's columns and the added ones, where it is not a condition on the result.
        compared: Without an equality that finds them, the public rows that a row is compared with.
    """

    kind: JoinKind
    other: PublicRows
    on: tuple[tuple[Expression, Expression], ...]
    multiplicity: int
    added: tuple[ColumnReference, ...]
    condition: Expression | None = None
    compared: int = 0

    construct = "joins to public tables"
    row_by_row = True
    hands_on = True

    def __str__(self) -> str:
        pairs = [f"{left} = {right}" for left, right in self.on]
        seen = columns_of(self.condition)  # what nothing looks at as it is read is as in earlier versions
        places = [place for place, one in enumerate(self.added) if not one.public or one.name in seen]
        columns = named([self.added[place] for place in places], [self.other.columns[place] for place in places])
        condition = [] if self.condition is None else [f"{columns}: {self.condition}"]
        return f"({self.source} {self.kind.upper()} JOIN {self.other} ON {' AND '.join([*pairs, *condition])})"

    @property
    def public(self) -> PublicRows:
        """The public rows."""
        return self.other

    @property
    def uses(self) -> tuple[str, ...]:
        """The kind of the join."""
        return (self.kind,)

    @property
    def columns(self) -> tuple[ColumnReference, ...]:
        """The source's columns, then the public table's."""
        return (*self.source.relation.columns, *self.added)

    @property
    def rows_per_unit(self) -> int:
        """The most rows of one unit."""
        return self.rows_within({})

    def rows_within(self, numbers: Admitted) -> int:
        """Return the most rows of one unit: so many for each row of the source, which has the same numbers."""
        # At least 1 for an inner join to no rows too: then bounds that follow from it are in order.
        return self.source.rows_within(numbers) * (max(1, self.multiplicity) if self.kind in ("inner", "left") else 1)

    @property
    def computed(self) -> tuple[tuple[Expression, ...], ...]:
        """What the public rows are compared with, and the condition on the pair."""
        condition = () if self.condition is None else (self.condition,)
        return ((*(left for left, _ in self.on), *condition),)

    def definitions(self, column: ColumnReference) -> tuple[ColumnDefinition, ...]:
        """Return the public column, or the source's."""
        if column in self.added:
            return (ColumnDefinition(self.other.columns[self.added.index(column)], self.other),)
        return (ColumnDefinition(column, self.source.relation),)

    def tells_apart(self, values: frozenset[Expression], catalog: Catalog) -> bool:
        """Tell it of the source: a join to at most one public row makes no two rows of one."""
        multiplies = self.kind in ("inner", "left") and self.multiplicity > 1
        return not multiplies and at_most_one(self.source, values, catalog)

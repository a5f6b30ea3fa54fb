"""Rows of different units that meet: each row belongs to the units of both sides.

This node alone is not unit-local. What may be made of its rows goes row by row: a filter, a projection, a join to a
public table, a further meeting. Then R(D) has a row of units S if and only if all of S are there, and it is the same
row whoever else is: that is what `mechanisms.packing` asks for. By induction: what meets is unit-local, hence a row of
either side is there, the same, as long as its units are; a pair is there if both its rows are; and what goes row by row
looks at nothing else. Every other relation looks at several rows at once, and cannot be made of shared ones; nor is
there a `rows_per_unit` of them, as a unit may meet any number of others.
"""

from dataclasses import dataclass

from lapwing.catalog.model import Catalog
from lapwing.query.expressions.expression import ColumnReference, Expression
from lapwing.query.relations.fresh_columns import named
from lapwing.query.relations.inputs import TwoSources
from lapwing.query.relations.node import ColumnDefinition, Relation
from lapwing.query.relations.relation import of_several_units, table_of
from lapwing.query.relations.row_numbers import Admitted


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedJoin(TwoSources):
    """A selection's rows joined with rows of whatever unit, on equalities: each belongs to the units of both.

    The source may be of shared rows in its turn.

    Args:
        apart: The places of units of the source's rows that the other row's unit must differ from.
    """

    apart: tuple[int, ...] = ()

    construct = "joins of different units' rows"
    uses = ()
    row_by_row = True
    meets = True

    def __str__(self) -> str:
        pairs = " AND ".join(f"{left} = {right}" for left, right in self.on)
        apart = "".join(f" APART FROM {place}" for place in self.apart)
        other = f"{named(self.added, self.shown)} FROM {self.other}"
        return f"({self.source} MEETING ({other}) ON {pairs}{apart})"

    @property
    def columns(self) -> tuple[ColumnReference, ...]:
        """The source's columns, then what is shown of the other rows."""
        return (*self.source.relation.columns, *self.added)

    @property
    def rows_per_unit(self) -> int:
        """There is no bound: who asks for one would rest a proof on it.

        Raises:
            QueryRefused: If the question is not understood or not allowed.
        """
        raise of_several_units()

    def rows_within(self, numbers: Admitted) -> int:
        """There is no bound, as of `rows_per_unit`.

        Raises:
            QueryRefused: If the question is not understood or not allowed.
        """
        raise of_several_units()

    def definitions(self, column: ColumnReference) -> tuple[ColumnDefinition, ...]:
        """Return what is shown of the other side, or the source's column."""
        if column in self.added:
            return (ColumnDefinition(self.shown[self.added.index(column)], self.other.relation),)
        return (ColumnDefinition(column, self.source.relation),)

    def tells_apart(self, values: frozenset[Expression], catalog: Catalog) -> bool:
        """Return False: a row may meet any number of others."""
        return False


def kinds_of_units(relation: Relation) -> tuple[str, ...]:
    """Return of what kind each unit is that a row belongs to, in their places (`Table.units`)."""
    if not relation.row_by_row:
        return (table_of(relation).units,)
    first, *others = (kinds_of_units(source.relation) for source in relation.sources)
    return (*first, *(kind for kinds in others for kind in kinds))

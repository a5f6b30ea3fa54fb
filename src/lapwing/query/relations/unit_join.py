"""Rows joined with others of their unit.

Unit-local: it pairs rows of one unit with each other, and both sides are unit-local, whichever tables they rest on:
R(D) = ⋃_u (R₁(D_u) ⋈ R₂(D_u)), where D_u are the unit's rows in all of them. A unit with k₁ and k₂ rows has at most
k₁·k₂ of them, in a LEFT JOIN k₁·max(k₂, 1), and in a semi- or anti-join, which keeps or leaves out rows of the left
side, k₁; so it has in a mark join, which says of each row of the left side whether it would be kept. Where no two rows
of a side agree in what the join compares (`identity.at_most_one`), each row of the other side meets one of it at most:
then there are no more rows than the other side has, and in a LEFT JOIN no more than both sides have together. If there
is a pair, one row of the left side is not alone: so a LEFT JOIN has one row less than both sides have. If there is no
pair, it has the rows of the left side. Which pairs match is a function of their values, so that the bag of them does
not depend on any order.
"""

from dataclasses import dataclass
from typing import Literal as Choice

from lapwing.catalog.model import Catalog
from lapwing.query.expressions.expression import ColumnReference, Expression
from lapwing.query.relations.fresh_columns import named
from lapwing.query.relations.identity import at_most_one
from lapwing.query.relations.inputs import TwoSources
from lapwing.query.relations.node import ColumnDefinition
from lapwing.query.relations.row_numbers import Admitted, named_in

UnitJoinKind = Choice["inner", "left", "semi", "anti", "mark"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitJoin(TwoSources):
    """A selection's rows joined with others of their unit, on equalities, where a condition on the pair is true.

    Args:
        condition: Over the source's columns and the added ones, for the kinds in which it is not a condition on the
            result.
        matches: The most rows of the other side that a row of the source equals, matched: the most rows of the source
            that one of the other side equals, both within a unit.
        mark: Of a mark join, the column that is TRUE in rows with a match and FALSE in others.
        tells_pairs: Whether the conditions of a selection are asked how many pairs they leave (`ordered_rows`), and
            it is looked at how many rows of a LEFT JOIN can be alone.
    """

    kind: UnitJoinKind
    matches: int
    matched: int
    condition: Expression | None = None
    mark: ColumnReference | None = None
    tells_pairs: bool = False

    construct = "joins of a unit's rows"

    def __str__(self) -> str:
        pairs = "".join(f" AND {left} = {right}" for left, right in self.on)
        condition = f" AND {self.condition}" if self.condition is not None else ""
        other = f"{named(self.added, self.shown)} FROM {self.other}"
        other += "" if self.mark is None else f" AS {self.mark}"
        return f"({self.source} {self.kind.upper()} JOIN ({other}) ON unit{pairs}{condition})"

    @property
    def uses(self) -> tuple[str, ...]:
        """The kind of the join."""
        return (self.kind,)

    @property
    def columns(self) -> tuple[ColumnReference, ...]:
        """The source's columns, then what is shown of the other rows."""
        own = self.source.relation.columns
        further = self.added if self.kind in ("inner", "left") else ()
        return (*own, *further, *(() if self.mark is None else (self.mark,)))

    @property
    def rows_per_unit(self) -> int:
        """The most rows of one unit."""
        return self.rows_within({})

    def rows_within(self, numbers: Admitted) -> int:
        """Return the most rows of one unit, of rows of either side in which the same numbers stand.

        A row of the left side is in at most as many pairs as there are such rows of the other side, or alone, with
        NULLs. In a LEFT JOIN it is no number that stands in a row that is alone, so that such rows count as all are.
        """
        own = self.source.rows_within(numbers)
        if self.kind not in ("inner", "left"):
            return own
        other = self.other.rows_within(named_in(self.shown, self.added, numbers))
        unmatched = own if self.kind == "left" else 0
        both = other * self.matched + unmatched
        if self.tells_pairs and self.kind == "left":
            both = max(own, both - 1)
        return min(own * max(1, min(self.matches, other)), both)

    def definitions(self, column: ColumnReference) -> tuple[ColumnDefinition, ...]:
        """Return what is shown of the other side, or the source's column."""
        if column == self.mark:
            return ()
        if column not in self.added:
            return (ColumnDefinition(column, self.source.relation, way=(0,)),)
        value = self.shown[self.added.index(column)]
        return (ColumnDefinition(value, self.other.relation, way=(1,), unmatched=self.kind == "left"),)

    def tells_apart(self, values: frozenset[Expression], catalog: Catalog) -> bool:
        """Tell whether a side is settled that meets no other row: the right one of a LEFT JOIN only where it is there.

        Rows of a LEFT JOIN that match nothing are told from the others by a column of the other side alone, which is
        not NULL.
        """
        if self.kind not in ("inner", "left"):
            return at_most_one(self.source, values, catalog)
        if self.matches <= 1 and at_most_one(self.source, values, catalog):
            return True
        there = dict(zip(self.added, self.shown, strict=True))
        theirs = frozenset(there[value] for value in values if isinstance(value, ColumnReference) and value in there)
        matched = self.kind == "inner" or bool(theirs)
        return matched and self.matched <= 1 and at_most_one(self.other, theirs, catalog)

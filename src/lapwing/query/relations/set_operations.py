"""Rows made one: the distinct values of a unit's rows, and the rows of several relations united.

Both are unit-local: `DistinctRows` merges equal rows within one unit alone, and `Union` unites unit-local relations of
one unit. DISTINCT does not raise the number of a unit's rows, and UNION ALL adds those of its parts.

A FULL JOIN is a union of a LEFT JOIN and of the rows of the right side that match nothing. Claim. A unit with at most
k₁ and k₂ rows in the two sides has at most max(k₁·k₂, k₁ + k₂) rows. If each row of one side matches one of the other
at most, it has at most k₁ + k₂.

Proof. Let the unit have K₁ and K₂ rows, of which l and r match nothing. There are P pairs of the others, and P + l + r
rows. P ≤ (K₁ − l)·(K₂ − r). So the rows are at most a number that is linear in l, and linear in r. It is largest where
l is 0 or K₁ and r is 0 or K₂: there it is K₁·K₂, K₁ or K₂, or K₁ + K₂. If each row of the left side matches one at
most, P ≤ K₁ − l, and the rows are at most K₁ + r ≤ K₁ + K₂. The other side is alike. All these grow with K₁ and K₂. ∎
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from lapwing.catalog.model import Catalog
from lapwing.query.expressions.expression import ColumnReference, Expression, Operation
from lapwing.query.relations.fresh_columns import named, telling
from lapwing.query.relations.inputs import OneSource
from lapwing.query.relations.node import ColumnDefinition
from lapwing.query.relations.relation import FilteredRows, pruned
from lapwing.query.relations.row_numbers import Admitted, named_in
from lapwing.query.relations.unit_join import UnitJoin


@dataclass(frozen=True, slots=True, kw_only=True)
class DistinctRows(OneSource):
    """The distinct values of expressions, unit by unit: none may be left out, as other rows would be equal."""

    columns: tuple[ColumnReference, ...]
    expressions: tuple[Expression, ...]

    construct = "DISTINCT"

    def __str__(self) -> str:
        return f"(DISTINCT {named(self.columns, self.expressions)} FROM {self.source})"

    @property
    def rows_per_unit(self) -> int:
        """The most rows of one unit."""
        return self.rows_within({})

    def rows_within(self, numbers: Admitted) -> int:
        """Return the most rows of one unit: each is made of a row of the source that has its values."""
        below = named_in(self.expressions, self.columns, numbers)
        return self.source.rows_within(below) if self.expressions else 1

    @property
    def computed(self) -> tuple[tuple[Expression, ...], ...]:
        """The expressions whose values are made distinct."""
        return (self.expressions,)

    def definitions(self, column: ColumnReference) -> tuple[ColumnDefinition, ...]:
        """Return the column's expression."""
        pairs = zip(self.columns, self.expressions, strict=True)
        return tuple(ColumnDefinition(value, self.source.relation) for own, value in pairs if own == column)

    def tells_apart(self, values: frozenset[Expression], catalog: Catalog) -> bool:
        """Tell whether all columns are among the expressions: a distinct row is there once."""
        return set(telling(self.columns)) <= values


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of a union: rows, and what each column is in them."""

    source: FilteredRows
    expressions: tuple[Expression, ...]

    def __post_init__(self) -> None:
        self.source.require_one_unit()

    def __str__(self) -> str:
        return f"{', '.join(map(str, self.expressions))} FROM {self.source}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Union:
    """The rows of several parts, all of the same table's units.

    Args:
        full: Whether it is a FULL JOIN: the second part is the rows that match nothing in the LEFT JOIN of the first.
        tells_full: Whether that is looked at for how many rows a unit has.
    """

    parts: tuple[Part, ...]
    columns: tuple[ColumnReference, ...]
    full: bool = False
    tells_full: bool = False

    construct = "UNION"
    uses = ()
    row_by_row = False
    meets = False
    hands_on = False
    reads_whole_rows = False
    public = None

    def __str__(self) -> str:
        return f"({' UNION ALL '.join(map(str, self.parts))} AS {', '.join(map(str, self.columns))})"

    @property
    def sources(self) -> tuple[FilteredRows, ...]:
        """The rows of the parts."""
        return tuple(part.source for part in self.parts)

    @property
    def rows_per_unit(self) -> int:
        """The most rows of one unit."""
        return self.rows_within({})

    def rows_within(self, numbers: Admitted) -> int:
        """Return the most rows of one unit: those of all parts, each with what the columns are in it."""
        pairs = ((part.source, named_in(part.expressions, self.columns, numbers)) for part in self.parts)
        most = sum(source.rows_within(below) for source, below in pairs)
        joined = self._rows_of_full_join() if self.full and self.tells_full else None
        return most if joined is None else min(most, joined)

    def _rows_of_full_join(self) -> int | None:
        """Return the most rows of one unit in a FULL JOIN; None if it is not seen that both parts have its sides."""
        left, alone = (part.source for part in self.parts)
        join, anti = left.relation, alone.relation
        if not (isinstance(join, UnitJoin) and isinstance(anti, UnitJoin)) or left.where is not None:
            return None
        # Conditions of ON that are about one side stand with it where rows of it may be left out, and there alone.
        if not (_is_part_of(join.other, anti.source) and _is_part_of(anti.other, join.source)):
            return None
        one, other = join.source.rows_per_unit, anti.source.rows_per_unit
        return one + other if min(join.matches, join.matched) <= 1 else max(one * other, one + other)

    @property
    def computed(self) -> tuple[tuple[Expression, ...], ...]:
        """What the columns are in each part."""
        return tuple(part.expressions for part in self.parts)

    def rebuilt(self, sources: Sequence[FilteredRows]) -> Self:
        """Return the union of the same of other rows."""
        pairs = zip(self.parts, sources, strict=True)
        return replace(self, parts=tuple(replace(part, source=source) for part, source in pairs))

    def narrowed(self, read: frozenset[str]) -> Self:
        """Return the union without what columns are as they are read, where nobody looks at that."""
        kept = [place for place, column in enumerate(self.columns) if column.cleaned is None or column.name in read]
        parts = tuple(replace(part, expressions=tuple(part.expressions[i] for i in kept)) for part in self.parts)
        return replace(self, parts=parts, columns=tuple(self.columns[i] for i in kept))

    def definitions(self, column: ColumnReference) -> tuple[ColumnDefinition, ...]:
        """Return what the column is in each part."""
        if column not in self.columns:
            return ()
        place = self.columns.index(column)
        return tuple(ColumnDefinition(part.expressions[place], part.source.relation) for part in self.parts)

    def tells_apart(self, values: frozenset[Expression], catalog: Catalog) -> bool:
        """Return False: two parts may have the same row."""
        return False


def _is_part_of(some: FilteredRows, every: FilteredRows) -> bool:
    """Tell whether rows are those of a selection for which more is true, whatever columns are read of either."""
    below = (pruned(FilteredRows(relation=one.relation), frozenset()) for one in (some, every))
    return len(set(below)) == 1 and _parts(every.where) <= _parts(some.where)


def _parts(condition: Expression | None) -> frozenset[Expression]:
    if condition is None:
        return frozenset()
    both = isinstance(condition, Operation) and condition.function == "and"
    return frozenset(condition.children if both else (condition,))

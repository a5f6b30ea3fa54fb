"""Rows per unit: what is aggregated of each unit's rows, and which of them are left where a question limits them.

All three nodes are unit-local: they group the rows of one unit, or choose among them by a hash of the unit and of the
rows' own values. Equal rows have equal hashes, so it does not matter which of them is chosen.

After GROUP BY the unit alone a unit has one row. After GROUP BY the unit and further keys it has at most as many rows
as before, since every group has a row; and at most as many as `FirstGroups` leaves groups, if the keys are among its
own. `FirstRows` leaves as many rows as it says.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal as Choice
from typing import Self

from lapwing.catalog.model import Catalog
from lapwing.query.expressions import logic
from lapwing.query.expressions.expression import ColumnReference, Expression, Literal
from lapwing.query.expressions.types import Type
from lapwing.query.measures.measures import Key
from lapwing.query.relations.fresh_columns import named, telling
from lapwing.query.relations.identity import at_most_one
from lapwing.query.relations.inputs import OneSource
from lapwing.query.relations.node import ColumnDefinition
from lapwing.query.relations.row_numbers import Admitted

UnitFunction = Choice["count", "count_distinct", "sum", "average", "least", "greatest", "all", "any"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitAggregate:
    """An exact aggregate over the rows of one unit (and group); a count without an argument is of rows."""

    function: UnitFunction
    argument: Expression | None
    type: Type

    def __str__(self) -> str:
        return f"{self.function}({'*' if self.argument is None else self.argument})"


PASSING = frozenset({"least", "greatest"})
"""The functions whose value is one that their argument has in some row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PerUnit(OneSource):
    """One row for each unit, or for each unit and group: the group, and aggregates over it.

    Args:
        whole: The same of more aggregates, where others are asked for soon: an engine may compute all of them at once
            (`engines.duckdb.held_totals`). It is no part of what the rows are.
        once: Whether they are the unit, once (`once_a_unit`): no aggregate is left out then, as none was of the
            distinct rows of earlier versions.
    """

    groups: tuple[Expression, ...]
    aggregates: tuple[UnitAggregate, ...]
    columns: tuple[ColumnReference, ...]
    whole: "PerUnit | None" = field(default=None, compare=False, repr=False)
    once: bool = field(default=False, compare=False, repr=False)

    construct = "GROUP BY the privacy unit"

    def __str__(self) -> str:
        shown = named(self.columns, (*self.groups, *self.aggregates))
        return f"({shown} FROM {self.source} GROUP BY unit{''.join(f', {group}' for group in self.groups)})"

    @property
    def uses(self) -> tuple[str, ...]:
        """The aggregates."""
        return tuple(part.function for part in self.aggregates)

    @property
    def rows_per_unit(self) -> int:
        """The most rows of one unit: one for each group, of which there may be a limit."""
        if not self.groups:
            return 1
        rows, source = self.source.rows_per_unit, self.source.relation
        return min(rows, source.most) if isinstance(source, FirstGroups) and source.has(self.groups) else rows

    def rows_within(self, numbers: Admitted) -> int:
        """Return the most rows of one unit, whatever the numbers: none of its own columns numbers them."""
        return self.rows_per_unit

    @property
    def computed(self) -> tuple[tuple[Expression, ...], ...]:
        """The groups, and what is aggregated."""
        return ((*self.groups, *(part.argument for part in self.aggregates if part.argument is not None)),)

    def definitions(self, column: ColumnReference) -> tuple[ColumnDefinition, ...]:
        """Return the group that a column is, or the argument of an aggregate that passes a value on."""
        if column not in self.columns:
            return ()
        place, below = self.columns.index(column), self.source.relation
        if place < len(self.groups):
            return (ColumnDefinition(self.groups[place], below),)
        part = self.aggregates[place - len(self.groups)]
        passing = part.function in PASSING and part.argument is not None
        return (ColumnDefinition(part.argument, below, exact=False),) if passing and part.argument is not None else ()

    def tells_apart(self, values: frozenset[Expression], catalog: Catalog) -> bool:
        """Tell whether the groups are among the expressions: a group is there once."""
        return set(telling(self.columns[: len(self.groups)])) <= values

    def narrowed(self, read: frozenset[str]) -> Self:
        """Return the node without aggregates of values as they are read, where nobody looks at them."""
        count = len(self.groups)
        pairs = zip(self.columns[count:], self.aggregates, strict=True)
        kept = [(column, part) for column, part in pairs if column.cleaned is None or column.name in read]
        if self.once or len(kept) == len(self.aggregates):
            return self
        columns = (*self.columns[:count], *(column for column, _ in kept))
        return replace(self, columns=columns, aggregates=tuple(part for _, part in kept))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenRows(OneSource):
    """Some rows of each unit, as they are. Abstract."""

    hands_on = True

    @property
    def columns(self) -> tuple[ColumnReference, ...]:
        """The source's columns."""
        return self.source.relation.columns

    def definitions(self, column: ColumnReference) -> tuple[ColumnDefinition, ...]:
        """Return the source's column, which it hands on."""
        return (ColumnDefinition(column, self.source.relation),)

    def tells_apart(self, values: frozenset[Expression], catalog: Catalog) -> bool:
        """Tell it of the source: a choice of rows makes no two of one."""
        return at_most_one(self.source, values, catalog)


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRows(ChosenRows):
    """At most `most` rows of each unit: the first by a hash of the unit and their values."""

    most: int

    construct = "limits of rows"
    reads_whole_rows = True

    def __str__(self) -> str:
        return f"(FIRST {self.most} ROWS OF {self.source})"

    @property
    def rows_per_unit(self) -> int:
        """The most rows of one unit."""
        return self.rows_within({})

    def rows_within(self, numbers: Admitted) -> int:
        """Return the most rows of one unit."""
        return min(self.most, self.source.rows_within(numbers))

    @property
    def computed(self) -> tuple[tuple[Expression, ...], ...]:
        """Nothing."""
        return ((),)


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstGroups(ChosenRows):
    """The rows of each unit in at most `most` of its groups: the first by a hash of their keys."""

    keys: tuple[Key, ...]
    most: int

    construct = "limits of groups"

    def __str__(self) -> str:
        return f"(FIRST {self.most} GROUPS BY {', '.join(map(str, self.keys))} OF {self.source})"

    def has(self, expressions: Sequence[Expression]) -> bool:
        """Tell whether all rows of a group agree in these expressions: each is a key without unlisted values."""
        return set(expressions) <= {key.expression for key in self.keys if key.other is None}

    @property
    def rows_per_unit(self) -> int:
        """The most rows of one unit."""
        return self.rows_within({})

    def rows_within(self, numbers: Admitted) -> int:
        """Return the most rows of one unit."""
        return self.source.rows_within(numbers)

    @property
    def computed(self) -> tuple[tuple[Expression, ...], ...]:
        """The keys."""
        return (tuple(key.expression for key in self.keys),)


def is_listed(key: Key) -> Expression:
    """Return the condition that a public key is one of its values."""
    kind = key.expression.type
    return logic.member(key.expression, [Literal(value=value, type=kind) for value in key.values or ()])

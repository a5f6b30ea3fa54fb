"""Relations over the rows of one protected table: what stands between the table and what is measured.

Guarantee: every relation here is unit-local. Its rows carry the unit, and the rows of a unit are a function of that
unit's own kept rows and of public data: R(D) = ⋃_u R(D_u). By induction over the nodes: `Kept` is so by `cleaned`; a
filter, a projection and a join to a public table work row by row; `PerUnit`, `Distinct` and `Windowed` group,
deduplicate and look around within the rows of one unit alone; `FirstRows` and `FirstGroups` choose among them by values
of their own; `Union` unites unit-local relations of one unit, and `UnitJoin` pairs rows of one unit with each other.

So a unit's rows can be counted: `rows_per_unit` is a bound on how many there are of one unit, from public facts. It is
K for `Kept`; a filter and DISTINCT do not raise it; a join to a public table multiplies it by the most public rows that
share the joined values (at least 1 for a LEFT join), and a join to other rows of the unit by their number; UNION ALL
adds; GROUP BY the unit alone makes it 1, and GROUP BY the unit and more leaves it, as every group has a row, or makes
it the number of groups that `FirstGroups` leaves, if it groups by keys of that.
ROW_NUMBER() OVER (PARTITION BY unit …) <= n leaves at most n, as no two rows of a unit have the same number;
`FirstRows` leaves as many as it says.

`SharedJoin` alone is not unit-local: it lets rows of different units meet, and a row of it belongs to all of them. What
may be made of such rows goes row by row: a filter, a projection, a join to a public table, a further meeting. Then
R(D) has a row of units S if and only if all of S are there, and it is the same row whoever else is: that is what
`mechanisms.packing` asks for. By induction: what meets is unit-local, hence a row of either side is there, the same, as
long as its units are; a pair is there if both its rows are; and what goes row by row looks at nothing else. Every other
relation looks at several rows at once, and cannot be made of shared ones; nor is there a `rows_per_unit` of them, as a
unit may meet any number of others.

Columns have names of their own here, not those of the question, so that two questions which differ only in aliases are
the same plan. Filters and projections are folded into the expressions above them for the same reason.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal as Choice

from lapwing.catalog.model import Table
from lapwing.catalog.public import PublicTable
from lapwing.errors import QueryRefused
from lapwing.query.expressions.expression import Column, Constant, Expression, column_type
from lapwing.query.expressions.types import Type
from lapwing.query.keys import Key
from lapwing.query.relations.frames import Window
from lapwing.query.relations.row_numbers import limits_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """The public values of a column, in order; `other` stands for every value not listed, NULL included."""

    listed: tuple[Constant, ...]
    other: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The rows of a protected table that exist for questions: cleaned, and bounded unit by unit."""

    table: Table

    def __str__(self) -> str:
        return json.dumps(self.table.name)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The declared columns."""
        return tuple(Column(name=column.name, type=column_type(column)) for column in self.table.columns)

    @property
    def rows_per_unit(self) -> int:
        """The most rows of one unit."""
        return self.table.max_rows_per_unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The rows of a relation for which a condition is true."""

    relation: "Relation"
    where: Expression | None = None

    def __str__(self) -> str:
        return f"{self.relation}{f' WHERE {self.where}' if self.where is not None else ''}"

    @property
    def rows_per_unit(self) -> int:
        """The most rows of one unit: fewer where a condition keeps rows by their number within the unit."""
        numbers = self.relation.numbers if isinstance(self.relation, Windowed) else frozenset[str]()
        return min([self.relation.rows_per_unit, *limits_of(self.where, numbers)])


class _OfOneUnit:
    """A relation that looks at several rows of its sources at once, which must be of one unit."""

    __slots__ = ()

    def __post_init__(self) -> None:
        for name in ("source", "other"):
            source = getattr(self, name, None)
            if isinstance(source, Selection):
                require_one_unit(source.relation)


@dataclass(frozen=True, slots=True, kw_only=True)
class Distinct(_OfOneUnit):
    """The distinct values of expressions, unit by unit."""

    source: Selection
    columns: tuple[Column, ...]
    expressions: tuple[Expression, ...]

    def __str__(self) -> str:
        return f"(DISTINCT {_named(self.columns, self.expressions)} FROM {self.source})"

    @property
    def rows_per_unit(self) -> int:
        """The most rows of one unit."""
        return self.source.rows_per_unit if self.expressions else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Part(_OfOneUnit):
    """One part of a union: rows, and what each column is in them."""

    source: Selection
    expressions: tuple[Expression, ...]

    def __str__(self) -> str:
        return f"{', '.join(map(str, self.expressions))} FROM {self.source}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Union:
    """The rows of several parts, all of the same table's units."""

    parts: tuple[Part, ...]
    columns: tuple[Column, ...]

    def __str__(self) -> str:
        return f"({' UNION ALL '.join(map(str, self.parts))} AS {', '.join(map(str, self.columns))})"

    @property
    def rows_per_unit(self) -> int:
        """The most rows of one unit."""
        return sum(part.source.rows_per_unit for part in self.parts)


UnitFunction = Choice["count", "count_distinct", "sum", "average", "least", "greatest", "all", "any"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitAggregate:
    """An exact aggregate over the rows of one unit (and group); a count without an argument is of rows."""

    function: UnitFunction
    argument: Expression | None
    type: Type

    def __str__(self) -> str:
        return f"{self.function}({'*' if self.argument is None else self.argument})"


@dataclass(frozen=True, slots=True, kw_only=True)
class PerUnit(_OfOneUnit):
    """One row for each unit, or for each unit and group: the group, and aggregates over it."""

    source: Selection
    groups: tuple[Expression, ...]
    aggregates: tuple[UnitAggregate, ...]
    columns: tuple[Column, ...]

    def __str__(self) -> str:
        shown = _named(self.columns, (*self.groups, *self.aggregates))
        return f"({shown} FROM {self.source} GROUP BY unit{''.join(f', {group}' for group in self.groups)})"

    @property
    def rows_per_unit(self) -> int:
        """The most rows of one unit: one for each group, of which there may be a limit."""
        if not self.groups:
            return 1
        rows, source = self.source.rows_per_unit, self.source.relation
        return min(rows, source.most) if isinstance(source, FirstGroups) and source.has(self.groups) else rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Windowed(_OfOneUnit):
    """A selection's rows with window functions as further columns."""

    source: Selection
    windows: tuple[Window, ...]
    added: tuple[Column, ...]

    def __str__(self) -> str:
        return f"({_named(self.added, self.windows)} OVER {self.source})"

    @property
    def columns(self) -> tuple[Column, ...]:
        """The source's columns, then the window functions."""
        return (*self.source.relation.columns, *self.added)

    @property
    def numbers(self) -> frozenset[str]:
        """The names of the columns in which the rows of a unit have the numbers 1, 2, 3 and so on, each once."""
        pairs = zip(self.windows, self.added, strict=True)
        return frozenset(c.name for window, c in pairs if window.function == "row_number" and not window.partition)

    @property
    def rows_per_unit(self) -> int:
        """The most rows of one unit."""
        return self.source.rows_per_unit


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicRows:
    """Rows of a public table for which a condition over its columns is true; distinct in their columns, if so asked.

    Args: digest: the fingerprint of its data, on which bounds and multiplicities rest.
    """

    table: PublicTable
    digest: str
    columns: tuple[Column, ...]
    where: Expression | None = None
    distinct: bool = False

    def __str__(self) -> str:
        rows = f"PUBLIC {json.dumps(self.table.name)}{f' WHERE {self.where}' if self.where is not None else ''}"
        return f"(DISTINCT {', '.join(map(str, self.columns))} FROM {rows})" if self.distinct else rows


JoinKind = Choice["inner", "left", "semi", "anti", "not_in"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicJoin:
    """A selection's rows joined to public rows on equalities.

    A semi-join keeps the rows that match, an anti-join those that do not; `not_in` is SQL's NOT IN, which holds where
    the value equals no public one for certain: neither it nor any of them is NULL, or there are none.

    Args: on: pairs of an expression over the selection and one over the public rows; multiplicity: the most public
        rows that share the joined values; added: the public columns under names of their own, for inner and left.
    """

    kind: JoinKind
    source: Selection
    public: PublicRows
    on: tuple[tuple[Expression, Expression], ...]
    multiplicity: int
    added: tuple[Column, ...]

    def __str__(self) -> str:
        pairs = " AND ".join(f"{left} = {right}" for left, right in self.on)
        return f"({self.source} {self.kind.upper()} JOIN {self.public} ON {pairs})"

    @property
    def columns(self) -> tuple[Column, ...]:
        """The source's columns, then the public table's."""
        return (*self.source.relation.columns, *self.added)

    @property
    def rows_per_unit(self) -> int:
        """The most rows of one unit."""
        # At least 1 for an inner join to no rows too: then bounds that follow from it are in order.
        return self.source.rows_per_unit * (max(1, self.multiplicity) if self.kind in ("inner", "left") else 1)


UnitJoinKind = Choice["inner", "left", "semi", "anti"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitJoin(_OfOneUnit):
    """A selection's rows joined with others of their unit, on equalities, where a condition on the pair is true.

    Args: shown: what is taken of the other rows; added: that, under names of its own; on: pairs of an expression over
        the source and one over the other side; where: over the source's columns and the added ones, for the kinds in
        which it is not a condition on the result; matches: the most rows of the other side that a row of the source
        equals, matched: the most rows of the source that one of the other side equals, both within a unit.
    """

    kind: UnitJoinKind
    source: Selection
    other: Selection
    shown: tuple[Expression, ...]
    added: tuple[Column, ...]
    on: tuple[tuple[Expression, Expression], ...]
    matches: int
    matched: int
    where: Expression | None = None

    def __str__(self) -> str:
        pairs = "".join(f" AND {left} = {right}" for left, right in self.on)
        where = f" AND {self.where}" if self.where is not None else ""
        other = f"{_named(self.added, self.shown)} FROM {self.other}"
        return f"({self.source} {self.kind.upper()} JOIN ({other}) ON unit{pairs}{where})"

    @property
    def columns(self) -> tuple[Column, ...]:
        """The source's columns, then what is shown of the other rows."""
        own = self.source.relation.columns
        return (*own, *self.added) if self.kind in ("inner", "left") else own

    @property
    def rows_per_unit(self) -> int:
        """The most rows of one unit."""
        own, other = self.source.rows_per_unit, self.other.rows_per_unit
        if self.kind not in ("inner", "left"):
            return own
        unmatched = own if self.kind == "left" else 0
        return min(own * max(1, self.matches), other * self.matched + unmatched)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedJoin:
    """A selection's rows joined with rows of whatever unit, on equalities: each belongs to the units of both.

    Args: source: it may be of shared rows in its turn; shown: what is taken of the other rows; added: that, under names
        of its own; on: pairs of an expression over the source and one over the other side; apart: the places of units
        of the source's rows that the other row's unit must differ from.
    """

    source: Selection
    other: Selection
    shown: tuple[Expression, ...]
    added: tuple[Column, ...]
    on: tuple[tuple[Expression, Expression], ...]
    apart: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        require_one_unit(self.other.relation)

    def __str__(self) -> str:
        pairs = " AND ".join(f"{left} = {right}" for left, right in self.on)
        apart = "".join(f" APART FROM {place}" for place in self.apart)
        other = f"{_named(self.added, self.shown)} FROM {self.other}"
        return f"({self.source} MEETING ({other}) ON {pairs}{apart})"

    @property
    def columns(self) -> tuple[Column, ...]:
        """The source's columns, then what is shown of the other rows."""
        return (*self.source.relation.columns, *self.added)

    @property
    def rows_per_unit(self) -> int:
        """There is no bound: who asks for one would rest a proof on it.

        Raises: QueryRefused.
        """
        raise of_several_units()


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRows(_OfOneUnit):
    """At most `most` rows of each unit: the first by a hash of the unit and their values."""

    source: Selection
    most: int

    def __str__(self) -> str:
        return f"(FIRST {self.most} ROWS OF {self.source})"

    @property
    def columns(self) -> tuple[Column, ...]:
        """The source's columns."""
        return self.source.relation.columns

    @property
    def rows_per_unit(self) -> int:
        """The most rows of one unit."""
        return min(self.most, self.source.rows_per_unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstGroups(_OfOneUnit):
    """The rows of each unit in at most `most` of its groups: the first by a hash of their keys."""

    source: Selection
    keys: tuple[Key, ...]
    most: int

    def __str__(self) -> str:
        return f"(FIRST {self.most} GROUPS BY {', '.join(map(str, self.keys))} OF {self.source})"

    def has(self, expressions: Sequence[Expression]) -> bool:
        """Tell whether rows of one group have the same values of expressions: each is a key that gathers no others."""
        return set(expressions) <= {key.expression for key in self.keys if key.other is None}

    @property
    def columns(self) -> tuple[Column, ...]:
        """The source's columns."""
        return self.source.relation.columns

    @property
    def rows_per_unit(self) -> int:
        """The most rows of one unit."""
        return self.source.rows_per_unit


Relation = Kept | Distinct | Union | PerUnit | Windowed | PublicJoin | UnitJoin | SharedJoin | FirstRows | FirstGroups


def units_of_row(relation: Relation) -> int:
    """Return how many units a row may belong to."""
    if isinstance(relation, SharedJoin):
        return units_of_row(relation.source.relation) + 1
    return units_of_row(relation.source.relation) if isinstance(relation, PublicJoin) else 1


def require_one_unit(relation: Relation) -> None:
    """Refuse rows that belong to several units."""
    if units_of_row(relation) > 1:
        raise of_several_units()


def of_several_units() -> QueryRefused:
    """Return the refusal to do more with rows that several units share than goes row by row."""
    return QueryRefused(
        "Rows in which different units meet are filtered, joined to public tables, counted and summed, and no more",
        remedy="Do this in a subquery over the rows of one unit, before they meet others.",
    )


def _named(columns: Sequence[Column], values: Sequence[object]) -> str:
    return ", ".join(f"{value} AS {column}" for column, value in zip(columns, values, strict=True))

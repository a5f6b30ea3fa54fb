"""What is done to rows, as a tree: each step is one verb, and knows the names of the columns that it leaves."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from lapwing.builder.nodes import ColumnNode, Node

JoinWord = Literal["JOIN", "LEFT JOIN", "SEMI JOIN", "ANTI JOIN"]


@dataclass(frozen=True, slots=True)
class Item:
    """A column that is shown: its name, and what it is."""

    name: str
    node: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A table or view of the catalog, and the name of its privacy unit, if it has that column."""

    name: str
    names: tuple[str, ...]
    unit: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Rows for which a condition is true."""

    source: "Relation"
    condition: Node

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns."""
        return self.source.names


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Columns computed row by row."""

    source: "Relation"
    items: tuple[Item, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns."""
        return _names(self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Distinct:
    """Rows without those that are equal to one before."""

    source: "Relation"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns."""
        return self.source.names


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """Rows with those of another table that match.

    Args: on: pairs of what is equal; using: their names, if both sides have the same;
        left, right: columns that are kept of each side, with the names that they get.
    """

    word: JoinWord
    source: "Relation"
    other: "Relation"
    on: tuple[tuple[Node, Node], ...]
    using: tuple[str, ...]
    left: tuple[tuple[str, str], ...]
    right: tuple[tuple[str, str], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(name for _, name in (*self.left, *self.right))


@dataclass(frozen=True, slots=True, kw_only=True)
class United:
    """The rows of several tables with the same columns."""

    parts: tuple["Relation", ...]
    distinct: bool

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns."""
        return self.parts[0].names


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """An item of GROUP BY: keys, alone or as the lists of a ROLLUP, CUBE or GROUPING SETS."""

    word: str
    sets: tuple[tuple[Node, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregated:
    """One row for each combination of keys, with aggregates of the rows that have it.

    Args: options: what is said of the privacy of the whole question, as pairs of a name and a written value.
    """

    source: "Relation"
    groups: tuple[Group, ...]
    keys: tuple[Item, ...]
    measures: tuple[Item, ...]
    options: tuple[tuple[str, str], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns."""
        return _names((*self.keys, *self.measures))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordered:
    """Rows in an order: pairs of a value and the words after it."""

    source: "Relation"
    terms: tuple[tuple[Node, str], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns."""
        return self.source.names


@dataclass(frozen=True, slots=True, kw_only=True)
class Limited:
    """The first rows after some."""

    source: "Relation"
    count: int | None
    offset: int

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns."""
        return self.source.names


Relation = Named | Where | Shown | Distinct | Joined | United | Aggregated | Ordered | Limited


def _names(items: Iterable[Item]) -> tuple[str, ...]:
    return tuple(item.name for item in items)


def sources_of(relation: Relation) -> Sequence[Relation]:
    """Return what a step begins with."""
    match relation:
        case Named():
            return ()
        case Joined(source=source, other=other):
            return (source, other)
        case United(parts=parts):
            return parts
        case _:
            return (relation.source,)


def unit_of(relation: Relation) -> str | None:
    """Return the name of the column that is the privacy unit, if there is one."""
    match relation:
        case Named(unit=unit):
            return unit
        case Joined(source=source):
            return unit_of(source)
        case United(parts=parts):
            return unit_of(parts[0])
        case Shown(source=source, items=items) | Aggregated(source=source, keys=items):
            unit = unit_of(source)
            return next((item.name for item in items if unit and item.node == ColumnNode(unit)), None)
        case _:
            return unit_of(relation.source)


def is_answer(relation: Relation) -> bool:
    """Tell whether what is left is an answer: aggregates, and what is done to them alone."""
    while isinstance(relation, Where | Shown | Ordered | Limited | Distinct):
        relation = relation.source
    return isinstance(relation, Aggregated)

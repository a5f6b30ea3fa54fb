"""Relations over the rows of one protected table: what stands between the table and what is measured.

Guarantee:
    Every relation is unit-local. Its rows carry the unit, and the rows of a unit are a function of that unit's own kept
    rows and of public data: R(D) = ⋃_u R(D_u). By induction over the nodes: `ProtectedRows` is so by `cleaned`, and a
    filter works row by row; each other node's file proves its own step. `shared_join.SharedJoin` alone is not
    unit-local; its file says what holds of it instead.

So a unit's rows can be counted: `rows_per_unit` is a bound on how many there are of one unit, from public facts. It is
K for `ProtectedRows`, and a filter does not raise it; each node says how it follows from its sources'.

Columns have names of their own here, not those of the question, so that two questions which differ only in aliases are
the same plan. Filters and projections are folded into the expressions above them for the same reason.

A node states its facts itself; what follows from the facts of all nodes beneath is a function here. So another node is
another file beside this one, and whatever binds and prints it. What a node prints (`str`) identifies stored answers.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Self

from lapwing.catalog.model import Catalog, Table
from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.expressions import as_read
from lapwing.query.expressions.expression import ColumnReference, Expression, Operation, column_type, columns_of
from lapwing.query.relations.node import ColumnDefinition, Relation
from lapwing.query.relations.row_numbers import Admitted, admitted, both

Declared = frozenset[tuple[str, str]]
"""Declared columns: names of tables, each with the name of a column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectedRows:
    """The rows of a table that exist for questions; `reads` tells whether bounded numbers are looked at as read."""

    table: Table
    reads: bool = True

    construct = "tables"
    uses = ()
    sources = ()
    computed = ()
    row_by_row = False
    meets = False
    hands_on = False
    reads_whole_rows = False
    public = None

    def __str__(self) -> str:
        return json.dumps(self.table.name)

    @property
    def columns(self) -> tuple[ColumnReference, ...]:
        """The declared columns, and bounded numbers as they are read."""
        return _declared(self.table, self.reads)

    @property
    def rows_per_unit(self) -> int:
        """The most rows of one unit."""
        return self.table.max_rows_per_unit

    def rows_within(self, numbers: Admitted) -> int:
        """Return the most rows of one unit: none of its columns numbers them."""
        return self.table.max_rows_per_unit

    def rebuilt(self, sources: "Sequence[FilteredRows]") -> Self:
        """Return the table: it is made from nothing."""
        return self

    def narrowed(self, read: frozenset[str]) -> Self:
        """Return the table."""
        return self

    def definitions(self, column: ColumnReference) -> tuple[ColumnDefinition, ...]:
        """Return nothing: its columns are declared."""
        return ()

    def tells_apart(self, values: frozenset[Expression], catalog: Catalog) -> bool:
        """Tell whether a key of the table is among the expressions: no two of its rows share one."""
        columns = (value for value in map(unscaled, values) if isinstance(value, ColumnReference))
        named = {(column.cleaned or column).name for column in columns}
        return any(named.issuperset(key) for key in catalog.leading_to(self.table))


@lru_cache(maxsize=256)  # every question about a table asks for them several times
def _declared(table: Table, reads: bool) -> tuple[ColumnReference, ...]:
    own = tuple(ColumnReference(name=c.name, type=column_type(c), listed=c.all_texts) for c in table.columns)
    bounded = reads and any(column.numeric and column.bounded for column in table.columns)
    return as_read.columns_of(table.columns, own) if bounded else own


@dataclass(frozen=True, slots=True, kw_only=True)
class FilteredRows:
    """The rows of a relation for which a condition is true."""

    relation: Relation
    where: Expression | None = None

    def __str__(self) -> str:
        return f"{self.relation}{f' WHERE {self.where}' if self.where is not None else ''}"

    @property
    def rows_per_unit(self) -> int:
        """The most rows of one unit: fewer where a condition keeps rows by their number within the unit."""
        return self.rows_within({})

    def rows_within(self, numbers: Admitted) -> int:
        """Return the most rows of one unit in whose columns no other numbers stand (`row_numbers`)."""
        if isinstance(self.relation, ProtectedRows):
            return self.relation.rows_per_unit
        return _rows_within(self, numbers)

    def require_one_unit(self) -> None:
        """Refuse rows that belong to several units, as what is made of them looks at several rows of a unit."""
        require_one_unit(self.relation)


def _rows_within(selection: FilteredRows, numbers: Admitted) -> int:
    most = selection.relation.rows_within(both(numbers, admitted(selection.where)))
    if selection.where is None or len(selection.relation.sources) == 1:
        return most
    from lapwing.query.relations.ordered_rows import most_tuples  # here: it is about joins, which rest on this file

    tuples = most_tuples(selection)
    return most if tuples is None else min(most, tuples)


# ---- units, tables --------------------------------------------------------------------------------------------------


def units_of_row(relation: Relation) -> int:
    """Return how many units a row may belong to."""
    return units_of_row(relation.sources[0].relation) + relation.meets if relation.row_by_row else 1


def require_one_unit(relation: Relation) -> None:
    """Refuse rows that belong to several units."""
    if units_of_row(relation) > 1:
        raise of_several_units()


def of_several_units() -> QueryRefused:
    """Return the refusal to do more with rows that several units share than goes row by row."""
    return QueryRefused(
        "Rows that belong to several people are only filtered, joined to public tables, counted and summed",
        cause=RefusalCause.SHARED_ROWS_NOT_SUPPORTED,
        remedy="Do this in a subquery over the rows of each person, before the join.",
    )


def table_of(relation: Relation) -> Table:
    """Return the protected table that a relation rests on: of several, the one that the text begins with."""
    return relation.table if isinstance(relation, ProtectedRows) else table_of(relation.sources[0].relation)


def tables_of(relation: Relation) -> tuple[Table, ...]:
    """Return the protected tables that a relation rests on, each once, in the order of their names."""
    found = _tables(relation)
    return tuple(found.values()) if len(found) == 1 else tuple(table for _, table in sorted(found.items()))


def _tables(relation: Relation) -> dict[str, Table]:
    # By name, of which a catalog has each once: to hash a table, with the bounds of its columns, takes far longer.
    if isinstance(relation, ProtectedRows):
        return {relation.table.name: relation.table}
    return {name: table for source in relation.sources for name, table in _tables(source.relation).items()}


def reads(relation: Relation) -> bool:
    """Tell whether anything looks at bounded numbers of its tables as they are read."""
    return (isinstance(relation, ProtectedRows) and relation.reads) or any(reads(s.relation) for s in relation.sources)


def public_tables_of(relation: Relation) -> frozenset[tuple[str, str]]:
    """Return the names of the public tables that a relation reads, each with the digest of its data."""
    public = relation.public
    own = frozenset[tuple[str, str]]() if public is None else frozenset({(public.table.name, public.digest)})
    return own.union(*(public_tables_of(source.relation) for source in relation.sources))


def unit_of(table: Table) -> str | None:
    """Return the column of a table whose value is the unit's: its own, or a linked one that equals the parent's."""
    if table.link is None:
        return None if table.unit_is_row else table.privacy_unit
    above = unit_of(table.link.parent)
    return next((here for here, there in table.link.on if there == above), None) if len(table.link.on) == 1 else None


# ---- columns --------------------------------------------------------------------------------------------------------


def unscaled(value: Expression) -> Expression:
    """Return an expression in the units of measure in which it is stored."""
    return value.arguments[0] if isinstance(value, Operation) and value.function == "rescale" else value


def declared_columns_of(selection: FilteredRows, read: frozenset[str]) -> Declared:
    """Return the declared columns on which a selection, and the columns read of it, rest."""
    relation, read = selection.relation, read | columns_of(selection.where)
    if isinstance(relation, ProtectedRows):
        return frozenset((relation.table.name, (c.cleaned or c).name) for c in relation.columns if c.name in read)
    pairs = zip(relation.sources, _read_below(relation, read), strict=True)
    return Declared().union(*(declared_columns_of(source, below) for source, below in pairs))


def pruned(selection: FilteredRows, read: frozenset[str]) -> FilteredRows:
    """Return a selection whose joins show only what is read, of which its own condition is a part.

    There is less to carry then, and one plan however much a subquery shows. What is left out is no part of any row that
    is looked at afterwards: a choice of rows by all their values, and windows that break ties by them, read all
    columns.
    """
    read |= columns_of(selection.where)
    if isinstance(selection.relation, ProtectedRows):
        reads = any(column.cleaned is not None and column.name in read for column in selection.relation.columns)
        return replace(selection, relation=replace(selection.relation, reads=reads))
    relation = selection.relation.narrowed(read)
    below = _read_below(relation, read)
    if relation.reads_whole_rows:
        sides = zip(relation.sources, below, strict=True)  # what is as it was read only if it is looked at
        below = [frozenset(c.name for c in s.relation.columns if not c.cleaned or c.name in own) for s, own in sides]
    sources = [pruned(source, columns) for source, columns in zip(relation.sources, below, strict=True)]
    return replace(selection, relation=relation.rebuilt(sources))


def _read_below(relation: Relation, read: frozenset[str]) -> list[frozenset[str]]:
    """Return the columns that a relation reads of each of its sources, if these are read of it."""
    below = [_columns(values) for values in relation.computed]
    return [below[0] | read, *below[1:]] if relation.hands_on else below


def _columns(expressions: Iterable[Expression]) -> frozenset[str]:
    return frozenset[str]().union(*map(columns_of, expressions))

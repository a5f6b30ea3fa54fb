"""What a relation is made from: the tables and public tables beneath it, its size, its names, the columns it reads."""

from collections.abc import Sequence
from itertools import count

from lapwing.catalog.model import Table
from lapwing.query.expressions.expression import Column, Expression, columns_of
from lapwing.query.expressions.types import Type
from lapwing.query.relations.relation import (
    Distinct,
    FirstGroups,
    FirstRows,
    Kept,
    PerUnit,
    PublicJoin,
    Relation,
    Selection,
    SharedJoin,
    Union,
    UnitJoin,
    Windowed,
)

Declared = frozenset[tuple[str, str]]
"""Declared columns: names of tables, each with the name of a column."""


def sources_of(relation: Relation) -> tuple[Selection, ...]:
    """Return the selections that a relation is made from."""
    match relation:
        case Kept():
            return ()
        case Union():
            return tuple(part.source for part in relation.parts)
        case UnitJoin() | SharedJoin():
            return (relation.source, relation.other)
        case _:
            return (relation.source,)


def table_of(relation: Relation) -> Table:
    """Return the protected table that a relation rests on: of several, the one that the text begins with."""
    match relation:
        case Kept():
            return relation.table
        case _:
            return table_of(sources_of(relation)[0].relation)


def tables_of(relation: Relation) -> tuple[Table, ...]:
    """Return the protected tables that a relation rests on, each once, in the order of their names."""
    return tuple(sorted(_tables(relation), key=lambda table: table.name))


def _tables(relation: Relation) -> frozenset[Table]:
    if isinstance(relation, Kept):
        return frozenset({relation.table})
    return frozenset[Table]().union(*(_tables(source.relation) for source in sources_of(relation)))


def kinds_of_units(relation: Relation) -> tuple[str, ...]:
    """Return of what kind each unit is that a row belongs to, in their places (`Table.units`)."""
    if isinstance(relation, SharedJoin):
        return (*kinds_of_units(relation.source.relation), *kinds_of_units(relation.other.relation))
    return kinds_of_units(relation.source.relation) if isinstance(relation, PublicJoin) else (table_of(relation).units,)


def public_tables_of(relation: Relation) -> frozenset[tuple[str, str]]:
    """Return the names of the public tables that a relation reads, each with the digest of its data."""
    own = frozenset[tuple[str, str]]()
    if isinstance(relation, PublicJoin):
        own = frozenset({(relation.public.table.name, relation.public.digest)})
    return own.union(*(public_tables_of(source.relation) for source in sources_of(relation)))


def size_of(relation: Relation) -> int:
    """Return of how many relations a relation is made, itself included."""
    return 1 + sum(size_of(source.relation) for source in sources_of(relation))


def nesting_of(relation: Relation) -> int:
    """Return how many relations deep a relation is nested, itself included."""
    return 1 + max((nesting_of(source.relation) for source in sources_of(relation)), default=0)


def fresh(prefix: str, types: Sequence[Type], *relations: Relation) -> tuple[Column, ...]:
    """Return columns with names that no relation, nor a table beneath, has, whatever their case."""
    taken = {name for relation in relations for name in names_in(relation)}
    free = (name for name in (f"{prefix}{number}" for number in count()) if name not in taken)
    return tuple(Column(name=next(free), type=kind) for kind in types)


def names_in(relation: Relation) -> frozenset[str]:
    """Return the names, without regard to case, of the columns of a relation and of the tables beneath."""
    declared = (column.name.casefold() for table in tables_of(relation) for column in table.columns)
    return frozenset(declared) | {column.name.casefold() for column in relation.columns}


def declared_columns_of(selection: Selection, read: frozenset[str]) -> Declared:
    """Return the declared columns on which a selection, and the columns read of it, rest."""
    relation = selection.relation
    wanted = read | columns_of(selection.where)
    match relation:
        case Kept():
            return frozenset((relation.table.name, column.name) for column in relation.columns if column.name in wanted)
        case Union():
            return Declared().union(
                *(declared_columns_of(part.source, _columns(part.expressions)) for part in relation.parts)
            )
        case Distinct():
            return declared_columns_of(relation.source, _columns(relation.expressions))
        case PerUnit():
            arguments = [aggregate.argument for aggregate in relation.aggregates if aggregate.argument is not None]
            return declared_columns_of(relation.source, _columns((*relation.groups, *arguments)))
        case Windowed():
            parts = [(*w.arguments, *w.partition, *(term.value for term in w.order)) for w in relation.windows]
            return declared_columns_of(relation.source, wanted.union(*map(_columns, parts)))
        case UnitJoin():
            ours = wanted | columns_of(relation.where) | _columns([left for left, _ in relation.on])
            theirs = _columns([*relation.shown, *(right for _, right in relation.on)])
            return declared_columns_of(relation.source, ours) | declared_columns_of(relation.other, theirs)
        case SharedJoin():
            ours = wanted | _columns([left for left, _ in relation.on])
            theirs = _columns([*relation.shown, *(right for _, right in relation.on)])
            return declared_columns_of(relation.source, ours) | declared_columns_of(relation.other, theirs)
        case FirstRows():
            return declared_columns_of(relation.source, wanted)
        case FirstGroups():
            return declared_columns_of(
                relation.source, wanted.union(_columns([key.expression for key in relation.keys]))
            )
        case PublicJoin():
            return declared_columns_of(relation.source, wanted.union(_columns([left for left, _ in relation.on])))


def _columns(expressions: Sequence[Expression]) -> frozenset[str]:
    return frozenset().union(*map(columns_of, expressions))

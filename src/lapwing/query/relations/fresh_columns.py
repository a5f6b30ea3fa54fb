"""Names for the columns of relations, which no table beneath them has."""

from collections.abc import Sequence
from itertools import count

from lapwing.query.expressions.expression import ColumnReference
from lapwing.query.expressions.types import Type
from lapwing.query.relations.node import Relation
from lapwing.query.relations.relation import tables_of


def fresh(prefix: str, types: Sequence[Type], *relations: Relation) -> tuple[ColumnReference, ...]:
    """Return columns with names that no relation, nor a table beneath, has, whatever their case."""
    taken = {name for relation in relations for name in names_in(relation)}
    free = (name for name in (f"{prefix}{number}" for number in count()) if name not in taken)
    return tuple(ColumnReference(name=next(free), type=kind) for kind in types)


def names_in(relation: Relation) -> frozenset[str]:
    """Return the names, without regard to case, of the columns of a relation and of the tables beneath."""
    declared = (column.name.casefold() for table in tables_of(relation) for column in table.columns)
    return frozenset(declared) | {column.name.casefold() for column in relation.columns}


def named(columns: Sequence[ColumnReference], values: Sequence[object]) -> str:
    """Write what columns are."""
    return ", ".join(f"{value} AS {column}" for column, value in zip(columns, values, strict=True))

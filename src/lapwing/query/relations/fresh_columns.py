"""Names for the columns of relations, which no table beneath them has."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

from lapwing.query.expressions.as_read import reads_public
from lapwing.query.expressions.expression import ColumnReference, Expression
from lapwing.query.expressions.types import Type
from lapwing.query.relations.node import Relation
from lapwing.query.relations.relation import tables_of


def fresh(prefix: str, types: Sequence[Type], *relations: Relation) -> tuple[ColumnReference, ...]:
    """Return columns with names that no relation, nor a table beneath, has, whatever their case."""
    taken = {name for relation in relations for name in names_in(relation)}
    free = (name for name in (f"{prefix}{number}" for number in count()) if name not in taken)
    return tuple(ColumnReference(name=next(free), type=kind) for kind in types)


def with_read(
    columns: Sequence[ColumnReference], values: Sequence[Expression | None]
) -> tuple[tuple[ColumnReference, ...], dict[ColumnReference, Expression]]:
    """Return columns that know what they are as they are read, and further ones that are that, with their values.

    Args:
        values: Of columns whose value is one of them, in some row; None where it is none.
    """
    own, further = list[ColumnReference](), dict[ColumnReference, Expression]()
    for column, value in zip(columns, values, strict=True):
        if value is None or value.read is None:
            own.append(column)
            continue
        passed = value.read if isinstance(value, ColumnReference) and isinstance(value.read, ColumnReference) else None
        read = ColumnReference(
            name=f"{column.name} as read",
            type=value.read.type,
            cleaned=column,
            decimal=passed is not None and passed.decimal,
            whole=passed is not None and passed.whole and column.type == value.type,
            public=reads_public(value.read),
        )
        further[read] = value.read
        own.append(replace(column, read=read))
    return tuple(own), further


def telling(columns: Sequence[ColumnReference]) -> tuple[ColumnReference, ...]:
    """Return columns without those that are a function of another: of what they are as they are read."""
    return tuple(column for column in columns if column.read not in columns)


def names_in(relation: Relation) -> frozenset[str]:
    """Return the names, without regard to case, of the columns of a relation and of the tables beneath."""
    declared = (column.name.casefold() for table in tables_of(relation) for column in table.columns)
    return frozenset(declared) | {column.name.casefold() for column in relation.columns}


def named(columns: Sequence[ColumnReference], values: Sequence[object]) -> str:
    """Write what columns are."""
    return ", ".join(f"{value} AS {column}" for column, value in zip(columns, values, strict=True))

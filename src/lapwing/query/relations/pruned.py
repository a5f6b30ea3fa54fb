"""Joins without the columns that nothing reads: less to carry, and one plan however much a subquery shows.

What is left out is no part of any row that is looked at afterwards. A choice of rows by all their values, and windows
that break ties by them, read all columns.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from lapwing.query.expressions.expression import Column, Expression, columns_of
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

Joined = TypeVar("Joined", UnitJoin, SharedJoin)


def pruned(selection: Selection, read: frozenset[str]) -> Selection:
    """Return a selection whose joins show only what is read, of which its own condition is a part."""
    return replace(selection, relation=_pruned(selection.relation, read | columns_of(selection.where)))


def _pruned(relation: Relation, read: frozenset[str]) -> Relation:
    match relation:
        case Kept():
            return relation
        case Distinct():
            return replace(relation, source=pruned(relation.source, _read(relation.expressions)))
        case Union():
            parts = tuple(replace(part, source=pruned(part.source, _read(part.expressions))) for part in relation.parts)
            return replace(relation, parts=parts)
        case PerUnit():
            arguments = (part.argument for part in relation.aggregates if part.argument is not None)
            return replace(relation, source=pruned(relation.source, _read((*relation.groups, *arguments))))
        case UnitJoin():
            return _joined(relation, read | columns_of(relation.where))
        case SharedJoin():
            return _joined(relation, read)
        case PublicJoin():
            below = read | _read(left for left, _ in relation.on)
            return replace(relation, source=pruned(relation.source, below))
        case FirstGroups():
            below = read | _read(key.expression for key in relation.keys)
            return replace(relation, source=pruned(relation.source, below))
        case Windowed() | FirstRows():
            every = frozenset(column.name for column in relation.source.relation.columns)
            return replace(relation, source=pruned(relation.source, every))


def _joined(relation: Joined, wanted: frozenset[str]) -> Joined:
    taken = [pair for pair in zip(relation.shown, relation.added, strict=True) if pair[1].name in wanted]
    shown: tuple[Expression, ...] = tuple(value for value, _ in taken)
    added: tuple[Column, ...] = tuple(column for _, column in taken)
    ours, theirs = _read(left for left, _ in relation.on), _read(right for _, right in relation.on)
    return replace(
        relation,
        source=pruned(relation.source, wanted | ours),
        other=pruned(relation.other, theirs | _read(shown)),
        shown=shown,
        added=added,
    )


def _read(expressions: Iterable[Expression]) -> frozenset[str]:
    return frozenset[str]().union(*map(columns_of, expressions))

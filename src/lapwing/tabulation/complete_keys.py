"""Which keys have a cell for every row of their table: then its cells add up exactly to the table without the key.

A row without a cell has NULL, or a value that nobody listed. That there is no such row is a fact of the query, the
catalog and public tables, or it is not known. A key is complete in one of these cases:

- `answer.exhaustive_keys` proves it: `other` takes all the rest, or everything that the key can be is listed.
- WHERE keeps no other rows. A condition of NULL is not true.
- It is a level of a public table, and WHERE keeps only rows with values that have a row there. `PublicPlaces.of`
  requires a value of every level in each row of that table.
- It is such a level with a value for missing ones: COALESCE is NULL nowhere, and all of its values are listed.
- It is a part of a date that is never NULL. The date is within its bounds for every purpose.

Adjusted numbers use this, and not the noise of tables: `release.workloads` takes the first case only. So a wider proof
changes no released number and no price.

Guarantee:
    A function of the query, the catalog and public tables. No protected row is read.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import ceil, floor
from typing import Final

from lapwing.answer.exhaustive_keys import is_exhaustive, kept_below, may_be_null
from lapwing.query.expressions.as_read import declared
from lapwing.query.expressions.expression import ColumnReference, Constant, Expression, Literal, Operation, walk
from lapwing.query.expressions.types import Fixed, Plain
from lapwing.query.measures.measures import Key
from lapwing.query.relations.images import image, range_of
from lapwing.query.relations.node import Relation
from lapwing.query.relations.public_join import PublicJoin
from lapwing.query.relations.relation import FilteredRows
from lapwing.release.nested_keys import NestedKeys

MOST_VALUES: Final = 1_000_000
PARTS_OF_DATES: Final = frozenset({"part", "truncate", "to_date", "to_timestamp"})


def is_complete(key: Key, selection: FilteredRows, nestings: Sequence[NestedKeys] = ()) -> bool:
    """Tell whether every row of a selection is in a cell of a key, for any data."""
    if is_exhaustive(key, selection.relation):
        return True
    if key.values is None:
        return False
    possible = kept_by_where(selection, key.expression)
    if possible is None:
        possible = _of_date(key.expression, selection.relation)
    if possible is not None:
        return possible <= frozenset(key.values)
    return any(_is_complete_level(key, selection, one) for one in nestings if key.expression in one.levels)


def _is_complete_level(key: Key, selection: FilteredRows, nested: NestedKeys) -> bool:
    """Tell whether every row has a value of a level of places."""
    place = nested.levels.index(key.expression)
    values = set(nested.parents[place - 1]) if place else set(nested.parents[0].values())
    if not values <= set(key.values or ()):
        return False
    match key.expression:
        case Operation(function="coalesce", arguments=(*_, Literal(value=value))):
            return value is not None
        case ColumnReference():
            return any(
                is_complete(Key(expression=own, values=tuple(nested.parents[-1])), selection)
                for own in _joined_on(key.expression, selection)
            )
    return False


def _joined_on(level: ColumnReference, selection: FilteredRows) -> Iterator[Expression]:
    """Yield what rows are joined by to the public table with a level, if an equal value there is all that they need."""
    while isinstance(join := selection.relation, PublicJoin):
        is_plain = join.condition is None and join.other.where is None and len(join.on) == 1
        if is_plain and join.kind in ("left", "inner") and level in join.added:
            yield join.on[0][0]
        selection = join.source


def _of_date(expression: Expression, relation: Relation) -> frozenset[Constant] | None:
    """Return all that a part of a date can be, if the date is never NULL; None if that is not known.

    A part of a date within the calendar is NULL only if the date is.
    """
    columns = [part for part in walk(expression) if isinstance(part, ColumnReference)]
    days = _days(columns[0]) if len(columns) == 1 else None
    if days is None or may_be_null(columns[0], relation):
        return None
    if any(isinstance(part, Operation) and part.function not in PARTS_OF_DATES for part in walk(expression)):
        return None
    kind = expression.type
    if isinstance(kind, Fixed) and kind.low is not None and kind.high is not None:
        return frozenset(kind.step * many for many in range(kind.low, kind.high + 1))
    listed = image(expression, lambda _: days) if isinstance(expression, Operation) else days
    return None if listed is None else frozenset(listed)


def _days(column: ColumnReference) -> tuple[Constant, ...] | None:
    return range_of(column.type) if isinstance(column.type, Plain) else None


def kept_by_where(selection: FilteredRows, expression: Expression) -> frozenset[Constant] | None:
    """Return the values of an expression in the rows that conditions keep; None if these are not known to be few.

    Conditions of the query, and of what it selects from, count. Each keeps rows for which it is true.
    """
    listed, low, high = None, None, None
    asked = declared(expression)
    for condition in _conditions(selection):
        first, *others = condition.arguments
        if declared(first) != asked or not all(isinstance(part, Literal) for part in others):
            continue
        values = frozenset(part.value for part in others if isinstance(part, Literal) and part.value is not None)
        bound = next((value for value in values if isinstance(value, Fraction)), None)
        if condition.function in ("equal", "member"):
            listed = values if listed is None else listed & values
        elif condition.function == "greater_equal" and bound is not None:
            low = bound if low is None else max(low, bound)
        elif condition.function == "less_equal" and bound is not None:
            high = bound if high is None else min(high, bound)
    if listed is not None or low is None or high is None or not _is_whole(asked, selection.relation):
        return listed
    return frozenset(map(Fraction, range(ceil(low), floor(high) + 1))) if high - low < MOST_VALUES else None


def _is_whole(expression: Expression, relation: Relation) -> bool:
    """Tell whether an expression is a column that is read as whole numbers."""
    kept = kept_below(relation)
    declared_columns = () if kept is None else kept.table.columns
    return isinstance(expression, ColumnReference) and any(
        one.name == expression.name and one.type == "integer" and one.step == 1 for one in declared_columns
    )


def _conditions(selection: FilteredRows) -> Iterator[Operation]:
    """Yield conditions that are all true for each row of a selection."""
    waiting = [selection.where]
    while waiting:
        match waiting.pop():
            case Operation(function="and", arguments=arguments):
                waiting += arguments
            case Operation(arguments=(_, *_)) as condition:
                yield condition
    if isinstance(selection.relation, PublicJoin):
        yield from _conditions(selection.relation.source)

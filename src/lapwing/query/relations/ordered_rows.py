"""How many rows joins of a table with itself have within a unit where a condition tells the rows of a pair apart.

Setting. Inner joins of rows of one unit have a row for some of the tuples (r₁, …, rₘ) of rows of their sides, and for
each at most once, whatever the conditions are. Let sides i and j be rows of one table T, each a part of those k that a
unit has at most, and let f be an expression over a row of T.

Claim. Of all tuples of rows of n sides of T for which f(r₁) < f(r₂) < … < f(rₙ) is true there are at most C(k, n).
For two sides with f(r₁) <> f(r₂) there are at most k·(k − 1).

Proof. f(r) < f(s) is not true of a row and itself, nor of both (r, s) and (s, r), and it is transitive. So a tuple that
fulfils it has n different rows of T, and of all orders of these rows it is the only one that does: there are no more
such tuples than sets of n rows. What is not equal are two different rows. A condition with NULL is not true. ∎

The numbers multiply: a row of the join is one tuple of each chain of sides, and one row of each other side. How many
rows a unit has at most is part of what a stored answer is found by. Earlier versions took all pairs for possible:
`with_all_pairs` returns the rows of a query as they took them, so that what was bought then is found.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, permutations
from math import comb

from lapwing.query.expressions.expression import ColumnReference, Expression, Operation, columns_of
from lapwing.query.relations.relation import FilteredRows, ProtectedRows
from lapwing.query.relations.set_operations import Union
from lapwing.query.relations.unit_join import UnitJoin

ORDERS = {"less": (0, 1), "greater": (1, 0)}
_MOST_SIDES = 5


@dataclass(frozen=True, slots=True)
class _Side:
    """One side of nested inner joins, and what its rows' columns are called in the join."""

    selection: FilteredRows
    columns: Mapping[str, Expression]


def most_tuples(selection: FilteredRows) -> int | None:
    """Return the most rows of a unit that conditions on pairs leave; None where they say nothing."""
    if not (isinstance(selection.relation, UnitJoin) and selection.relation.tells_pairs):
        return None
    sides = list(_sides(selection))
    if len(sides) > _MOST_SIDES:
        return None
    below: dict[Expression, set[tuple[int, int]]] = {}
    apart: list[tuple[int, int]] = []
    for condition in _conditions(selection):
        if condition.function not in (*ORDERS, "not_equal"):
            continue
        first, second = (_of_side(argument, sides) for argument in condition.arguments)
        if first is None or second is None or first[1] != second[1]:
            continue
        (one, value), (other, _) = first, second
        if one == other or _table(sides[one]) is None or _table(sides[one]) != _table(sides[other]):
            continue
        if condition.function == "not_equal":
            apart.append((one, other))
        else:
            least, greatest = ((one, other)[place] for place in ORDERS[condition.function])
            below.setdefault(value, set()).add((least, greatest))
    left, most = set(range(len(sides))), 1
    while (chain := _longest(left, below.values())) is not None:
        left -= set(chain)
        most *= comb(_rows(sides[chain[0]]), len(chain))
    for one, other in apart:
        if {one, other} <= left:
            left -= {one, other}
            most *= _rows(sides[one]) * (_rows(sides[one]) - 1)
    if len(left) == len(sides):
        return None
    for place in left:
        most *= sides[place].selection.rows_per_unit
    return max(1, most)


def told_apart(selection: FilteredRows) -> FilteredRows:
    """Return the rows of a query, of which a unit has only those that conditions on pairs, and outer joins, leave.

    The rows of a subquery stay as they are, because the text of a plan may depend on their number.
    """
    return _told(selection, tells=True)


def with_all_pairs(selection: FilteredRows) -> FilteredRows:
    """Return the rows of a query as earlier versions took them: of a unit as many as there are pairs."""
    return _told(selection, tells=False)


def _told(selection: FilteredRows, *, tells: bool) -> FilteredRows:
    match selection.relation:
        case UnitJoin() as join:
            return replace(selection, relation=replace(join, tells_pairs=tells))
        case Union(full=True) as union:
            return replace(selection, relation=replace(union, tells_full=tells))
    return selection


def _sides(selection: FilteredRows) -> Iterator[_Side]:
    """Yield the sides of nested inner joins."""
    relation = selection.relation
    if not (isinstance(relation, UnitJoin) and relation.kind == "inner"):
        yield _Side(selection, {column.name: column for column in relation.columns})
        return
    yield from _sides(relation.source)
    shown = zip(relation.added, relation.shown, strict=True)
    yield _Side(relation.other, {column.name: value for column, value in shown})


def _conditions(selection: FilteredRows) -> Iterator[Operation]:
    """Yield what is true of every row of nested inner joins: the parts of their conditions."""
    relation, waiting = selection.relation, [selection.where]
    if not (isinstance(relation, UnitJoin) and relation.kind == "inner"):
        return
    yield from _conditions(relation.source)
    while waiting:
        condition = waiting.pop()
        if isinstance(condition, Operation) and condition.function == "and":
            waiting += condition.arguments
        elif isinstance(condition, Operation):
            yield condition


def _of_side(value: Expression, sides: Sequence[_Side]) -> tuple[int, Expression] | None:
    """Return the one side that a value is of, and the value as an expression over it."""
    read = columns_of(value)
    for place, side in enumerate(sides):
        if read and read <= side.columns.keys():
            return place, _written(value, side.columns)
    return None


def _written(value: Expression, columns: Mapping[str, Expression]) -> Expression:
    if isinstance(value, ColumnReference):
        return columns[value.name]
    if isinstance(value, Operation):
        return replace(value, arguments=tuple(_written(argument, columns) for argument in value.arguments))
    return value


def _table(side: _Side) -> str | None:
    relation = side.selection.relation
    return relation.table.name if isinstance(relation, ProtectedRows) else None


def _rows(side: _Side) -> int:
    return side.selection.relation.rows_per_unit


def _longest(left: set[int], orders: Collection[set[tuple[int, int]]]) -> tuple[int, ...] | None:
    """Return the longest chain of sides of which each is below the next, by one expression."""
    found: tuple[int, ...] | None = None
    for pairs in orders:
        for length in range(len(left), 1, -1):
            if found is not None and length <= len(found):
                break
            chains = permutations(sorted(left), length)
            found = next((c for c in chains if all(p in pairs for p in pairwise(c))), found)
    return found

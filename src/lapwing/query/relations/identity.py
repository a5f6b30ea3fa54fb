"""Which columns say whose row it is, and which columns tell the rows of one unit apart.

Setting. Column c of relation R *comes from* column k of table T if wherever c is not NULL, its value is that of k in a
row of T that exists and belongs to the row's unit. A declared column comes from itself. What is handed on unchanged,
and what a join shows of its other side, comes from where it came from before: those rows are of the same unit.

A *name of the unit* is a list of columns of a table whose values, where none is NULL, occur together in the existing
rows of one unit alone: the privacy unit of a root; the columns that a link leads to, which are unique among the
parent's rows, by the catalog's premise, so that their values are in one row, of one unit; and the columns that a link
starts from, as a linked row belongs to the unit of the parent's row that has the same values. The two ends of a link,
and of all links that lead to the same columns, are one name: equal values mean one unit, whichever they come from.

So rows of two relations that are equal in columns from one name are rows of one unit, and a condition that compares
these columns implies that the units are equal. The engine's join compares the units all the same. If the catalog's
premise is broken, answers go wrong, but rows of different units still never meet.

A *reference* names a row of another table without saying that it is the same unit's. The catalog allows joins by it all
the same: as the units are compared, they keep what is.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from lapwing.catalog.model import Catalog, Table
from lapwing.catalog.reference import Reference
from lapwing.query.expressions.expression import ColumnReference, Expression
from lapwing.query.relations.node import ColumnDefinition, Relation
from lapwing.query.relations.public_rows import PublicRows
from lapwing.query.relations.relation import FilteredRows, ProtectedRows, unscaled


@dataclass(frozen=True, slots=True)
class Origin:
    """A declared column, and on which way through joins its row was taken: columns of one way are of one row."""

    table: Table
    column: str
    way: tuple[int, ...] = ()
    unmatched: bool = False  # NULL in rows of a LEFT JOIN that match nothing


Name = tuple[str, ...]
"""What names the unit, and last of its columns which one this is."""


def origin(value: Expression, relation: Relation) -> Origin | None:
    """Return the declared column that an expression over a relation comes from, if it comes from one."""
    if unscaled(value) is not value:  # other units of measure, the same value
        return origin(unscaled(value), relation)
    if not isinstance(value, ColumnReference):
        return None
    if isinstance(relation, ProtectedRows):
        return Origin(relation.table, (value.cleaned or value).name)  # equal as read, so equal within bounds
    if relation.meets:  # a row has several units: no column says which is meant
        return None
    origins = {_below(definition) for definition in relation.definitions(value)}
    return origins.pop() if len(origins) == 1 else None


def _below(definition: ColumnDefinition) -> Origin | None:
    if not definition.exact or isinstance(definition.relation, PublicRows):
        return None
    below = origin(definition.value, definition.relation)
    if below is None:
        return None
    return replace(below, way=(*definition.way, *below.way), unmatched=definition.unmatched or below.unmatched)


# ---- names of the unit ----------------------------------------------------------------------------------------------


def _up(table: Table, column: str) -> Iterator[tuple[Name, int]]:
    """Return the names of the unit that a column is a part of by the links upwards, and how many columns each has."""
    if table.link is None:
        if not table.unit_is_row and column == table.unit_column:
            yield ("the unit", table.units, ""), 1
    else:
        on = dict(table.link.on)
        if column in on:
            yield from _ends(table.link.parent, on[column], frozenset(on.values()))


def _ends(parent: Table, column: str, key: frozenset[str]) -> Iterator[tuple[Name, int]]:
    yield (parent.name, *sorted(key), column), len(key)
    if len(key) == 1:  # what is a key by itself may be a name by other links too
        yield from _up(parent, column)


def _names(declared: Origin, catalog: Catalog) -> dict[Name, int]:
    """Return the names of the unit that a column is a part of, and how many columns each has."""
    names = dict(_up(declared.table, declared.column))
    for key in catalog.leading_to(declared.table):
        if declared.column in key:
            names |= dict(_ends(declared.table, declared.column, frozenset(key)))
    return names


def same_unit(pairs: Iterable[tuple[Origin | None, Origin | None]], catalog: Catalog) -> bool:
    """Tell whether equality of columns that come from these implies that two rows are of one unit."""
    shared: dict[tuple[Name, tuple[int, ...], tuple[int, ...]], set[Name]] = {}
    for left, right in pairs:
        if left is None or right is None:
            continue
        ours, theirs = _names(left, catalog), _names(right, catalog)
        for name in ours.keys() & theirs.keys():
            columns = shared.setdefault((name[:-1], left.way, right.way), set())
            columns.add(name)
            if len(columns) == ours[name]:
                return True
    return False


def refers(pairs: Iterable[tuple[Origin | None, Origin | None]], catalog: Catalog) -> bool:
    """Tell whether columns that come from these are those of a reference, and the columns that it leads to.

    Of a table that refers to itself, as items do by their order, those columns alone are as good: a row that refers to
    an item refers to all of its order.
    """
    compared: dict[tuple[str, str, tuple[int, ...], tuple[int, ...]], set[tuple[str, str]]] = {}
    for left, right in pairs:
        if left is not None and right is not None:
            for one, other in ((left, right), (right, left)):
                rows = (one.table.name, other.table.name, one.way, other.way)
                compared.setdefault(rows, set()).add((one.column, other.column))
    allowed = [
        (reference.table, reference.to, on) for reference in catalog.references for on in _ways_of(reference, catalog)
    ]
    return any(
        (table, to) == (here, there) and columns.issuperset(on)
        for (table, to, _, _), columns in compared.items()
        for here, there, on in allowed
    )


def _ways_of(reference: Reference, catalog: Catalog) -> Iterator[Sequence[tuple[str, str]]]:
    """Yield the pairs of columns by which a reference may be compared."""
    yield reference.on
    for other in catalog.references:
        if other.to_itself and other.to == reference.to:
            alike = {there for _, there in other.on}
            part = [pair for pair in reference.on if pair[1] in alike]
            if len(part) == len(alike):
                yield part


def names_unit(origins: Iterable[Origin | None], catalog: Catalog) -> bool:
    """Tell whether the values of columns that come from these settle whose row it is, in every row."""
    settled = [origin for origin in origins if origin is not None and not origin.unmatched]
    return same_unit([(one, one) for one in settled], catalog)


# ---- rows of a unit -------------------------------------------------------------------------------------------------


def at_most_one(selection: FilteredRows, values: frozenset[Expression], catalog: Catalog) -> bool:
    """Tell whether no two rows of a unit are equal in these expressions, none of which is NULL.

    By induction: the rows of a table differ in its key; a group and a distinct row are there once, and a row number
    once in its part of the unit; a filter, a choice of rows and a join to at most one public row make no two of one. A
    pair of rows is settled by the one of them that meets no other, if that one is settled; of a LEFT JOIN by the right
    one only where it is there, which a column of it that is not NULL says.
    """
    return selection.rows_per_unit == 1 or selection.relation.tells_apart(values, catalog)

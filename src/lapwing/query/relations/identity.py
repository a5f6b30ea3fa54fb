"""What tells rows of a unit apart: columns that settle whose row it is, and columns that no two of its rows share.

Setting. Column c of relation R *comes from* column k of table T if wherever c is not NULL, its value is that of k in a
row of T that exists and belongs to the row's unit. A declared column comes from itself. What is handed on unchanged,
and what a join shows of its other side, comes from where it came from before: those rows are of the same unit.

A *name of the unit* is a list of columns of a table whose values, where none is NULL, occur together in the existing
rows of one unit alone: the privacy unit of a root; the columns that a link leads to, which are unique among the
parent's rows, by the catalog's premise, so that their values are in one row, of one unit; and the columns that a link
starts from, as a linked row belongs to the unit of the parent's row that has the same values. The two ends of a link,
and of all links that lead to the same columns, are one name: equal values mean one unit, whichever they come from.

So where rows of two relations are equal in columns that come from one name, they are rows of one unit, and a condition
that says so says nothing beyond equality of the units. The join asks for that as well (`sql.relations`): if the premise
is broken, it is an answer that goes wrong, and nobody's row meets another's.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from lapwing.catalog.model import Catalog, Table
from lapwing.query.expressions.expression import Column, Expression, Operation
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
    if isinstance(value, Operation) and value.function == "rescale":  # other units of measure, the same value
        return origin(value.arguments[0], relation)
    if not isinstance(value, Column):
        return None
    match relation:
        case Kept():
            return Origin(relation.table, value.name)
        case Distinct():
            return _shown(value, relation.columns, relation.expressions, relation.source)
        case PerUnit():
            return _shown(value, relation.columns, relation.groups, relation.source)
        case Union():
            found = {_shown(value, relation.columns, part.expressions, part.source) for part in relation.parts}
            return found.pop() if len(found) == 1 else None
        case UnitJoin() if value in relation.added:
            there = _shown(value, relation.added, relation.shown, relation.other)
            unmatched = relation.kind == "left"
            return (
                None if there is None else replace(there, way=(1, *there.way), unmatched=unmatched or there.unmatched)
            )
        case UnitJoin():
            here = origin(value, relation.source.relation)
            return None if here is None else replace(here, way=(0, *here.way))
        case Windowed() | PublicJoin() if value in relation.added:
            return None
        case SharedJoin():  # a row has several units: no column says which is meant
            return None
        case Windowed() | PublicJoin() | FirstRows() | FirstGroups():
            return origin(value, relation.source.relation)


def _shown(
    value: Column, columns: Sequence[Column], expressions: Sequence[Expression], source: Selection
) -> Origin | None:
    places = dict(zip(columns, expressions, strict=False))
    return origin(places[value], source.relation) if value in places else None


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


def unit_of(table: Table) -> str | None:
    """Return the column of a table whose value is the unit's: its own, or a linked one that equals the parent's."""
    if table.link is None:
        return None if table.unit_is_row else table.privacy_unit
    above = unit_of(table.link.parent)
    return next((here for here, there in table.link.on if there == above), None) if len(table.link.on) == 1 else None


def keys_of(table: Table, catalog: Catalog) -> Iterator[frozenset[str]]:
    """Return the sets of columns that are unique among the rows of a table, by the catalog's premise."""
    for other in catalog.tables:
        if other.link is not None and other.link.parent.name == table.name:
            yield frozenset(there for _, there in other.link.on)


def _names(found: Origin, catalog: Catalog) -> dict[Name, int]:
    """Return the names of the unit that a column is a part of, and how many columns each has."""
    names = dict(_up(found.table, found.column))
    for key in keys_of(found.table, catalog):
        if found.column in key:
            names |= dict(_ends(found.table, found.column, key))
    return names


def same_unit(pairs: Iterable[tuple[Origin | None, Origin | None]], catalog: Catalog) -> bool:
    """Tell whether equality of columns that come from these implies that two rows are of one unit."""
    shared: dict[tuple[Name, tuple[int, ...], tuple[int, ...]], set[Name]] = {}
    for left, right in pairs:
        if left is None or right is None:
            continue
        ours, theirs = _names(left, catalog), _names(right, catalog)
        for name in ours.keys() & theirs.keys():
            found = shared.setdefault((name[:-1], left.way, right.way), set())
            found.add(name)
            if len(found) == ours[name]:
                return True
    return False


def names_unit(origins: Iterable[Origin | None], catalog: Catalog) -> bool:
    """Tell whether the values of columns that come from these settle whose row it is, in every row."""
    found = [one for one in origins if one is not None and not one.unmatched]
    return same_unit([(one, one) for one in found], catalog)


# ---- rows of a unit -------------------------------------------------------------------------------------------------


def at_most_one(selection: Selection, values: frozenset[Expression], catalog: Catalog) -> bool:
    """Tell whether no two rows of a unit are equal in these expressions, none of which is NULL.

    By induction: the rows of a table differ in its key; a group and a distinct row are there once; a filter, a choice
    of rows and a join to at most one public row make no two of one. A pair of rows is settled by the one of them that
    meets no other, if that one is settled; of a LEFT JOIN by the right one only where it is there, which a column of it
    that is not NULL says.
    """
    relation = selection.relation
    if selection.rows_per_unit == 1:
        return True
    match relation:
        case Kept():
            named = {value.name for value in map(_unscaled, values) if isinstance(value, Column)}
            return any(key <= named for key in keys_of(relation.table, catalog))
        case PerUnit():
            return set(relation.columns[: len(relation.groups)]) <= values
        case Distinct():
            return set(relation.columns) <= values
        case PublicJoin() if relation.kind in ("inner", "left") and relation.multiplicity > 1:
            return False
        case UnitJoin() if relation.kind in ("inner", "left"):
            there = dict(zip(relation.added, relation.shown, strict=True))
            theirs = frozenset(there[value] for value in values if value in there)
            if relation.matches <= 1 and at_most_one(relation.source, values, catalog):
                return True
            # Rows of a LEFT JOIN that match nothing are told from the others by a column of the other side alone.
            matched = relation.kind == "inner" or bool(theirs)
            return matched and relation.matched <= 1 and at_most_one(relation.other, theirs, catalog)
        case Union() | SharedJoin():
            return False
        case Windowed() | PublicJoin() | UnitJoin() | FirstRows() | FirstGroups():
            return at_most_one(relation.source, values, catalog)


def _unscaled(value: Expression) -> Expression:
    if isinstance(value, Operation) and value.function == "rescale":
        return value.arguments[0]
    return value

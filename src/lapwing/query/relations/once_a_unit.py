"""The units themselves: DISTINCT of nothing but the unit's key is one row for each unit that has any.

SELECT DISTINCT person, UNION of such rows, and what INTERSECT and EXCEPT leave of them, have one row a unit, if the
key's declared column says the same in all rows of a unit. It does where it is read as the unit is; but a declared value
may be rounded or converted otherwise than the unit, on one engine or another, and then a unit has two. So that is not
taken for granted: rows are grouped by the unit alone, and the column shows the least of its values. `PerUnit` proves
that a unit has one row then, whatever the column holds. A count of these rows moves by 1 if a unit comes or goes or
takes another's place, as COUNT(DISTINCT person) does.

Earlier versions made the values of the column distinct within a unit, and took it to have as many rows as before. What
was bought so is found under the plan of then (`rows_of_then`): it counts the same units with more noise.
"""

from dataclasses import replace

from lapwing.query.relations.per_unit import PerUnit, UnitAggregate
from lapwing.query.relations.relation import FilteredRows, ProtectedRows
from lapwing.query.relations.set_operations import DistinctRows


def once_a_unit(rows: DistinctRows) -> PerUnit:
    """Return one row a unit for the distinct rows of values that are functions of the unit."""
    parts = tuple(UnitAggregate(function="least", argument=value, type=value.type) for value in rows.expressions)
    return PerUnit(source=rows.source, groups=(), aggregates=parts, columns=rows.columns, once=True)


def rows_of_then(selection: FilteredRows) -> FilteredRows | None:
    """Return a selection as earlier versions planned it; None if they planned it as it is."""
    relation = selection.relation
    if isinstance(relation, ProtectedRows):
        return None
    below = [rows_of_then(source) for source in relation.sources]
    if any(source is not None for source in below):
        pairs = zip(below, relation.sources, strict=True)
        relation = relation.rebuilt([now if then is None else then for then, now in pairs])
    elif not (isinstance(relation, PerUnit) and relation.once):
        return None
    if isinstance(relation, PerUnit) and relation.once:
        values = tuple(part.argument for part in relation.aggregates if part.argument is not None)
        relation = DistinctRows(source=relation.source, columns=relation.columns, expressions=values)
    return replace(selection, relation=relation)

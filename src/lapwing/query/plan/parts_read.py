"""Which parts of the data a question can read, if its table is in parts.

A condition confines a relation to some parts if it compares the part's column with a constant, or by IN with a list of
constants; if it is the part's column itself or its denial, where that is boolean; if it is an AND and one of its
conditions confines; or an OR all of whose conditions confine, to the parts of any of them. The part's column is
followed upwards where a relation hands it on unchanged, and a relation reads no more parts than its sources. A
condition that is not understood does not confine: the question then reads all parts.

Guarantee:
    The answer is a function of the rows of these parts, and of public data. Proof. Every row of a unit has the unit's
    part in the part's column, as its other rows do not exist (`cleaned`), and it still has it in every column that
    hands it on: `Windowed`, `PublicJoin`, `UnitJoin`, `FirstRows` and `FirstGroups` keep their source's columns as they
    are, `DistinctRows` shows the column itself, `PerUnit` groups by it, and in a `Union` every part does. Every
    relation is unit-local (`relations`): R(D) = ⋃_u R(D_u). Let a condition that confines to P stand above such a
    relation. For a row of a unit whose part is not in P the equalities are false, so an AND is not true and an OR of
    such is false: no row of the unit is left. So what is selected is ⋃ R(D_u) over the units of P. By induction over
    the relations above, each made unit by unit of what is below it, rows of other units never come back: a relation
    made of one selection reads the parts of it, a union or a join of a unit's rows those of all of its selections.
    Keys, measures, the selection of private keys and the noise are functions of what is selected, as the question's
    selection is all that an engine computes with. ∎

A whole number as it was read is c where the part is c moved to the bounds: so a condition on it confines to that part.

A FILTER of one aggregate is an argument of a measure, not a condition on the selection, and does not confine.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction

from lapwing.catalog.digests import value_text
from lapwing.query.expressions.expression import ColumnReference, Constant, Expression, Literal, Operation
from lapwing.query.expressions.normal_forms import FALSE, TRUE
from lapwing.query.expressions.types import Fixed
from lapwing.query.measures.measures import constant
from lapwing.query.plan.plan import Question
from lapwing.query.relations.node import ColumnDefinition, Relation
from lapwing.query.relations.public_rows import PublicRows
from lapwing.query.relations.relation import FilteredRows, ProtectedRows

Names = Mapping[Constant, str]


def parts_read(question: Question) -> frozenset[str] | None:
    """Return the names of the parts that a question can read; None for all of them.

    A question about values that no part has could read none; it is charged to all, as nobody needs to ask it.
    """
    column = question.table.part_column
    if column is None or column.values is None:
        return None
    names = {constant(value): value_text(value) for value in column.values}
    parts = _of_selection(question.selection, names)
    return parts if parts and len(parts) < len(names) else None


def _of_selection(selection: FilteredRows, names: Names) -> frozenset[str] | None:
    below = [_of_selection(source, names) for source in selection.relation.sources]
    own = None
    if selection.where is not None:
        own = _confined(selection.where, _part_columns(selection.relation), names)
    return _both([own, _either(below) if below else None])


def _part_columns(relation: Relation) -> frozenset[str]:
    """Return the names of the columns of a relation that hold the part of each row's unit."""
    if isinstance(relation, ProtectedRows):
        part = relation.table.part
        read = {c.name for c in relation.columns if c.whole and c.cleaned is not None and c.cleaned.name == part}
        return frozenset() if part is None else frozenset({part, *read})
    if relation.meets:  # of data in parts there are none
        return frozenset()
    if relation.hands_on:
        return _part_columns(relation.sources[0].relation)
    # Found once for each source: asked for anew at every column, it would double with every nested subquery.
    below = {id(source.relation): _part_columns(source.relation) for source in relation.sources}
    return frozenset(column.name for column in relation.columns if _is_part(relation.definitions(column), below))


def _is_part(definitions: Sequence[ColumnDefinition], below: Mapping[int, frozenset[str]]) -> bool:
    """Tell whether a column is a part's column in all that it is made of.

    Args:
        below: The part's columns of each source, by its identity.
    """
    return bool(definitions) and all(
        definition.exact
        and isinstance(definition.value, ColumnReference)
        and not isinstance(definition.relation, PublicRows)
        and definition.value.name in below[id(definition.relation)]
        for definition in definitions
    )


def _confined(condition: Expression, columns: frozenset[str], names: Names) -> frozenset[str] | None:
    """Return the parts whose rows can meet a condition; None if it is not known to confine."""
    if isinstance(condition, ColumnReference):  # the normal form of an equality with TRUE
        return _listed((condition, TRUE), columns, names)
    if not isinstance(condition, Operation):
        return None
    match condition.function:
        case "not":
            return _listed((*condition.arguments, FALSE), columns, names)
        case "and":
            return _both([_confined(part, columns, names) for part in condition.arguments])
        case "or":
            return _either([_confined(part, columns, names) for part in condition.arguments])
        case "equal":
            return _both([_listed(sides, columns, names) for sides in (condition.arguments, condition.arguments[::-1])])
        case "member":
            return _listed(condition.arguments, columns, names)
    return None


def _listed(arguments: Sequence[Expression], columns: frozenset[str], names: Names) -> frozenset[str] | None:
    """Return the parts among the constants that a part's column is compared with."""
    column, *constants = arguments
    if not isinstance(column, ColumnReference) or column.name not in columns:
        return None
    if not all(isinstance(value, Literal) for value in constants):
        return None
    values = [_within(value.value, column) for value in constants if isinstance(value, Literal)]
    return frozenset(names[value] for value in values if value in names)


def _within(value: Constant, column: ColumnReference) -> Constant:
    """Return the part of rows that were read to have a value: it is moved to the bounds (`as_read`)."""
    kind = (column.cleaned or column).type
    if not isinstance(kind, Fixed) or not isinstance(value, Fraction) or kind.low is None or kind.high is None:
        return value
    return min(max(value, kind.low * kind.step), kind.high * kind.step)


def _both(each: Sequence[frozenset[str] | None]) -> frozenset[str] | None:
    confining = [parts for parts in each if parts is not None]
    return frozenset.intersection(*confining) if confining else None


def _either(each: Sequence[frozenset[str] | None]) -> frozenset[str] | None:
    confining = [parts for parts in each if parts is not None]
    return frozenset[str]().union(*confining) if len(confining) == len(each) else None

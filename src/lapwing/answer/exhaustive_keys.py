"""Which keys have a cell for every row: only over those do the parts of an answer add up to their whole.

Rows whose key is NULL or not listed are in no cell of that key, but in the cells of the grouping sets without it. That
there are no such rows is a fact of the catalog and the question, or it is not known; nothing here looks at an answer.

A key is exhaustive if it declares `other`, which takes all the rest; if it is the column that a table in parts is
divided by, as rows without a part do not exist; or if everything it can be is listed. That is so of a condition or a
whole number inside bounds that is never NULL, and of a CASE whose branches are constants, if there is an ELSE. A column
is never NULL if the catalog says `nullable = false`: a NULL counts as a value then, before anything else.
"""

from collections.abc import Iterable
from fractions import Fraction

from lapwing.query.expressions.conversion import nullable
from lapwing.query.expressions.expression import ColumnReference, Constant, Expression, Literal, Operation
from lapwing.query.expressions.types import BOOLEAN, Fixed
from lapwing.query.measures.measures import Key
from lapwing.query.relations.node import Relation
from lapwing.query.relations.relation import ProtectedRows

_MOST_VALUES = 1_000_000
_NULL_ONLY_OF_NULL = frozenset(
    {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "between", "member", "and", "or", "not"}
)


def is_exhaustive(key: Key, relation: Relation) -> bool:
    """Tell whether every row of a relation is in a cell of a key, whatever the data."""
    if key.values is None:
        return False
    if key.other is not None or _divides(key.expression, relation):
        return True
    possible = _possible(key.expression, relation)
    return possible is not None and possible <= frozenset(key.values)


def _divides(expression: Expression, relation: Relation) -> bool:
    """Tell whether an expression is the column of a table in parts that says a row's part."""
    kept = kept_below(relation)
    part = None if kept is None else kept.table.part_column
    return isinstance(expression, ColumnReference) and part is not None and expression.name == part.name


def kept_below(relation: Relation) -> ProtectedRows | None:
    """Return the table whose rows a relation has, if it still has the table's columns under their own names."""
    if isinstance(relation, ProtectedRows):
        return relation
    alone = relation.hands_on and len(relation.sources) == 1
    return kept_below(relation.sources[0].relation) if alone else None


def _possible(expression: Expression, relation: Relation) -> frozenset[Constant] | None:
    """Return what an expression can be, NULL included; None if that is not known."""
    match expression:
        case Literal():
            return frozenset({expression.value})
        case Operation(function="case"):
            return _union((*expression.arguments[1::2], expression.arguments[-1]), relation)
        case Operation(function="rescale"):
            return _possible(expression.arguments[0], relation)
    if may_be_null(expression, relation):
        return None
    kind = expression.type
    if kind == BOOLEAN:
        return frozenset({False, True})
    if isinstance(kind, Fixed) and kind.low is not None and kind.high is not None:
        few = kind.high - kind.low < _MOST_VALUES
        return frozenset(k * kind.step for k in range(kind.low, kind.high + 1)) if few else None
    return None


def _union(chosen: Iterable[Expression], relation: Relation) -> frozenset[Constant] | None:
    found = [_possible(part, relation) for part in chosen]
    known = [values for values in found if values is not None]
    return frozenset[Constant]().union(*known) if len(known) == len(found) else None


def may_be_null(expression: Expression, relation: Relation) -> bool:
    """Tell whether an expression may be NULL in a row of a relation, as far as the catalog and the query say."""
    match expression:
        case ColumnReference():
            return not _is_promised(expression, relation)
        case Operation(function=function) if function in _NULL_ONLY_OF_NULL:
            return any(may_be_null(argument, relation) for argument in expression.arguments)
        case Operation():
            return nullable(_with_promises(expression, relation))
        case _:
            return nullable(expression)


def _is_promised(column: ColumnReference, relation: Relation) -> bool:
    """Tell whether a column is one of the table's own, which the catalog says is never NULL."""
    kept = kept_below(relation)
    declared = () if kept is None else kept.table.columns
    return any(d.name == column.name and not d.nullable for d in declared)


def _with_promises(expression: Operation, relation: Relation) -> Expression:
    """Return an expression with a constant in the place of each argument that is never NULL, for `nullable`."""
    arguments = tuple(
        argument if may_be_null(argument, relation) else Literal(value=Fraction(0), type=argument.type)
        for argument in expression.arguments
    )
    return Operation(function=expression.function, arguments=arguments, type=expression.type)

"""Which values a grouping expression can take, where that is public.

A key's values must be known without looking at private rows: every one of them appears in the answer, whether any row
has it or not. They are known of a column that declares them, of a public column, of a condition, of a bounded whole
number or date, of a choice among constants, and of some functions of these (`images`).
"""

from collections.abc import Sequence

from lapwing.query.expressions.as_read import declared
from lapwing.query.expressions.expression import ColumnReference, Constant, Expression, Literal, Operation, columns_of
from lapwing.query.expressions.types import BOOLEAN, Fixed, Plain, Real, Type
from lapwing.query.measures.measures import Domain, declared_values
from lapwing.query.relations.images import MAX_VALUES, image, range_of
from lapwing.query.relations.node import ColumnDefinition, Relation
from lapwing.query.relations.public_rows import PublicFacts, PublicRows
from lapwing.query.relations.relation import FilteredRows, ProtectedRows


def values_of(expression: Expression, relation: Relation, facts: PublicFacts) -> Domain | None:
    """Return the public values of an expression over a relation, without NULL; None if they are not public, or none."""
    if isinstance(expression.type, Real):  # doubles have no text that is theirs alone
        return None
    found = _known(expression, relation, facts)
    if found is None and expression.type == BOOLEAN:
        found = Domain(listed=(False, True))
    if found is None:
        found = _range(expression.type)
    return found if found is not None and found.listed else None


def listed_by(selection: FilteredRows, expression: Expression) -> Domain | None:
    """Return the constants among which an expression is in all rows of a selection, as the text says; None if not.

    Rows for which it is another value are not selected, so that no cell but these has any.
    """
    expression = declared(expression)
    found = _listed_by(selection.where, expression)
    relation = selection.relation
    if found is not None or not relation.hands_on:
        return found
    source = relation.sources[0]
    below = {column.name for column in source.relation.columns}
    return listed_by(source, expression) if columns_of(expression) <= below else None


def _listed_by(condition: Expression | None, expression: Expression) -> Domain | None:
    if not isinstance(condition, Operation):
        return None
    if condition.function == "and":
        found = (_listed_by(part, expression) for part in condition.arguments)
        return next((values for values in found if values is not None), None)
    sides = condition.arguments
    if condition.function == "equal" and declared(sides[1]) == expression:
        sides = sides[::-1]
    if condition.function not in ("member", "equal") or declared(sides[0]) != expression:
        return None
    listed = [side.value for side in sides[1:] if isinstance(side, Literal) and side.value is not None]
    if len(listed) < len(sides) - 1:
        return None
    return Domain(listed=tuple(sorted(dict.fromkeys(listed), key=_order)))


def _range(kind: Type) -> Domain | None:
    """Return the values of a bounded number or date."""
    listed = range_of(kind) if isinstance(kind, Plain) else None
    if listed is not None:
        return Domain(listed=listed)
    if not isinstance(kind, Fixed) or kind.low is None or kind.high is None or kind.high - kind.low >= MAX_VALUES:
        return None
    return Domain(listed=tuple(k * kind.step for k in range(kind.low, kind.high + 1)))


def _known(expression: Expression, relation: Relation, facts: PublicFacts) -> Domain | None:
    """Return the values of a column that somebody listed, or of a choice among such columns and constants."""
    if isinstance(expression, ColumnReference):
        return _of_column(expression, relation, facts)
    if isinstance(expression, Literal):
        return Domain(listed=() if expression.value is None else (expression.value,))
    if expression.function == "rescale":
        return _known(expression.arguments[0], relation, facts)
    if expression.function == "case":
        return _any_of((*expression.arguments[1::2], expression.arguments[-1]), relation, facts)
    if expression.function == "coalesce":
        return _any_of(expression.arguments, relation, facts)
    listed = image(expression, lambda part: _listed(part, relation, facts))
    return None if listed is None else Domain(listed=listed)


def _listed(expression: Expression, relation: Relation, facts: PublicFacts) -> tuple[Constant, ...] | None:
    """Return the values of an expression that has no others."""
    if isinstance(expression, Literal):
        return None if expression.value is None else (expression.value,)
    found = values_of(expression, relation, facts)
    return None if found is None or found.other is not None else found.listed


def _any_of(chosen: Sequence[Expression], relation: Relation, facts: PublicFacts) -> Domain | None:
    """Return the values of any of several expressions: those of the first first, and constants in order."""
    found = [_known(part, relation, facts) for part in chosen]
    known = [values for values in found if values is not None]
    if len(known) < len(found):
        return None
    listed = dict.fromkeys(value for values in known for value in values.listed)
    constants = all(isinstance(part, Literal) for part in chosen)
    return Domain(listed=tuple(sorted(listed, key=_order) if constants else listed))


def _of_column(column: ColumnReference, relation: Relation, facts: PublicFacts) -> Domain | None:
    """Follow a column down to where it is declared or made."""
    if isinstance(relation, ProtectedRows):
        return declared_values(column, relation.table)
    parts = [_defined(definition, facts) for definition in relation.definitions(column)]
    return parts[0] if len(parts) == 1 else _of_parts(parts) if parts else None


def _defined(definition: ColumnDefinition, facts: PublicFacts) -> Domain | None:
    """Return the values of what a column is made of."""
    if not isinstance(definition.relation, PublicRows):
        return _known(definition.value, definition.relation, facts)
    if not isinstance(definition.value, ColumnReference):
        return None
    listed = facts.values(definition.relation.table, definition.value.name, MAX_VALUES)
    return None if listed is None else Domain(listed=listed)


def _of_parts(found: Sequence[Domain | None]) -> Domain | None:
    known = [values for values in found if values is not None]
    if len(known) < len(found):
        return None
    others = {values.other for values in known}
    listed = dict.fromkeys(value for values in known for value in values.listed)
    return Domain(listed=tuple(listed), other=others.pop() if len(others) == 1 else None)


def _order(value: Constant) -> tuple[str, object]:
    return (type(value).__name__, value)

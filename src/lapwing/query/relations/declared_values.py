"""The values that a grouping column can take, where the catalog declares them: what most questions group by.

Other expressions whose values are public are found in `domains`.
"""

from dataclasses import dataclass
from fractions import Fraction

from lapwing.query.expressions.expression import ColumnReference, Constant, Expression
from lapwing.query.relations.relation import ProtectedRows, Relation


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """The public values of an expression, in order; `other` stands for every value not listed, NULL included."""

    listed: tuple[Constant, ...]
    other: str | None = None


def declared_values(expression: Expression, relation: Relation) -> Domain | None:
    """Return the values that the catalog declares for a column of a protected table; None if there are none."""
    if not isinstance(expression, ColumnReference) or not isinstance(relation, ProtectedRows):
        return None
    column = relation.table.column(expression.name)
    if column is None or not column.values:
        return None
    return Domain(listed=tuple(map(constant, column.values)), other=column.other)


def constant(value: object) -> Constant:
    """Return a declared value as plans hold it: numbers are fractions."""
    if isinstance(value, int) and not isinstance(value, bool):
        return Fraction(value)
    return value  # type: ignore[return-value]  # the catalog has checked it

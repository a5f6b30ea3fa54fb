"""Conditions that compare a row of one side of a join with a row of the other."""

from collections.abc import Sequence

from sqlglot import exp

from lapwing.errors import QueryRefused
from lapwing.query.expressions import functions
from lapwing.query.expressions.calls import bind_expression
from lapwing.query.expressions.conversion import alike
from lapwing.query.expressions.expression import Expression
from lapwing.query.expressions.rows import RowScope

Pairs = list[tuple[Expression, Expression]]
"""Expressions over one side, each with one over the other that it equals."""


def equal(left: Expression, right: Expression) -> tuple[Expression, Expression]:
    """Return two expressions as they are compared, or refuse to compare them."""
    functions.compare("=", left, right)
    left, right = alike((left, right))
    return left, right


def sides_of(node: exp.Expression, ours: RowScope, theirs: RowScope) -> tuple[Expression, Expression] | None:
    """Return both sides of an equality if each is of one side alone."""
    if type(node) is not exp.EQ:
        return None
    for left, right in ((node.this, node.expression), (node.expression, node.this)):
        if binds(left, ours) and not binds(left, theirs) and binds(right, theirs) and not binds(right, ours):
            return bind_expression(left, ours), bind_expression(right, theirs)
    return None


def binds(node: exp.Expression, rows: RowScope) -> bool:
    """Tell whether a node names nothing but columns of these rows, and is understood."""
    try:
        bind_expression(node, rows)
    except QueryRefused:
        return False
    return True


def separated(
    conditions: Sequence[exp.Expression], ours: RowScope, theirs: RowScope
) -> tuple[Pairs, list[exp.Expression]]:
    """Separate the equalities between a row of either side from other conditions."""
    pairs: Pairs = []
    rest: list[exp.Expression] = []
    for node in conditions:
        sides = sides_of(node, ours, theirs)
        if sides is None:
            rest.append(node)
            continue
        with ours.pointing(node):
            pairs.append(equal(*sides))
    return pairs, rest


def column_called(name: exp.Expression) -> exp.Column:
    """Return the column that a name in USING stands for, at its place in the text."""
    column = exp.Column(this=name)
    column.meta.update(name.meta)
    return column

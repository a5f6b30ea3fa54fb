"""Conditions that compare a row of one side of a join with a row of the other."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from sqlglot import exp

from lapwing.errors import QueryRefused
from lapwing.query.expressions import logic
from lapwing.query.expressions.attempts import FORMS, NOT_THEIRS
from lapwing.query.expressions.calls import bind_expression, looked_at
from lapwing.query.expressions.conversion import alike
from lapwing.query.expressions.expression import Expression
from lapwing.query.expressions.rows import RowScope, attempted, is_column, same_name
from lapwing.query.from_clause.conditions import bind_condition, conjunction, filtered
from lapwing.query.from_clause.scope import Input
from lapwing.query.text.trees import has

Pairs = list[tuple[Expression, Expression]]
"""Expressions over one side, each with one over the other that it equals."""
_NAME: Final = frozenset({"this", "table"})
_IDENTIFIER: Final = frozenset({"this", "quoted"})


def equal(left: Expression, right: Expression) -> tuple[Expression, Expression]:
    """Return two expressions as they are compared, or refuse to compare them."""
    logic.compare("=", left, right)
    left, right = alike((left, right))
    return left, right


def sides_of(node: exp.Expression, ours: RowScope, theirs: RowScope) -> tuple[Expression, Expression] | None:
    """Return both sides of an equality if each is of one side alone."""
    if type(node) is not exp.EQ:
        return None
    ours.only(node, "this", "expression")
    for left, right in ((node.this, node.expression), (node.expression, node.this)):
        if binds(left, ours) and not binds(left, theirs) and binds(right, theirs) and not binds(right, ours):
            return looked_at(left, ours), looked_at(right, theirs)
    return None


def sides_alike(node: exp.Expression, rows: RowScope) -> tuple[exp.Expression, exp.Expression] | None:
    """Return both sides of a = b, of a = b OR (a IS NULL AND b IS NULL), or of a IS NOT DISTINCT FROM b."""
    inner = node.unnest()
    if type(inner) is exp.Or:
        parts = [inner.this.unnest(), inner.expression.unnest()]
        equality, missing = parts if type(parts[0]) is exp.EQ else parts[::-1]
        sides = sides_alike(equality, rows) if type(equality) is exp.EQ else None
        others = None if sides is None else _both_missing(missing, rows)
        return sides if others is not None and sides in (others, others[::-1]) else None
    if not isinstance(inner, exp.EQ | exp.NullSafeEQ):
        return None
    rows.only(inner, "this", "expression")
    return inner.this, inner.expression


def _both_missing(node: exp.Expression, rows: RowScope) -> tuple[exp.Expression, exp.Expression] | None:
    """Return both sides of a IS NULL AND b IS NULL."""
    parts = [node.this.unnest(), node.expression.unnest()] if type(node) is exp.And else []
    if not parts or not all(type(part) is exp.Is and type(part.expression) is exp.Null for part in parts):
        return None
    for part in (node, *parts):
        rows.only(part, "this", "expression")
    return parts[0].this, parts[1].this


def binds(node: exp.Expression, rows: RowScope) -> bool:
    """Tell whether a node names nothing but columns of these rows."""
    if _is_no_column_of(node, rows):
        return False
    unbound = FORMS if has(node, exp.Query) else frozenset()  # subqueries are bound elsewhere
    return not isinstance(attempted(NOT_THEIRS | unbound, bind_expression, node, rows), QueryRefused)


def _is_no_column_of(node: exp.Expression, rows: RowScope) -> bool:
    """Tell of the name of a column alone that no column is called so: binding would look for what resembles it."""
    if not is_column(node) or not _NAME.issuperset(node.args) or rows.lost or rows.ready(node) is not None:
        return False
    qualifier, wanted = node.args.get("table"), node.name.casefold()
    if not all(part is None or _IDENTIFIER.issuperset(part.args) for part in (node.this, qualifier)):
        return False
    sources = [each for each in rows.sources if qualifier is None or same_name(qualifier, each.name)]
    return all(name.casefold() != wanted for each in sources for name in each.columns)


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


def pairs_in_order(pairs: Pairs) -> tuple[tuple[Expression, Expression], ...]:
    """Return pairs in the order of their texts, each once, as joins hold them."""
    return tuple(sorted(dict.fromkeys(pairs), key=lambda pair: (str(pair[0]), str(pair[1]))))


def filtered_by_own(
    other: Input, conditions: Sequence[exp.Expression], ours: RowScope, theirs: RowScope
) -> tuple[Input, list[exp.Expression]]:
    """Ask the conditions that name the other side alone of its rows; return these, and the conditions that are left."""
    rest = []
    for part in conditions:
        if binds(part, theirs) and not binds(part, ours):
            other = replace(other, selection=filtered(other.selection, bind_condition(part, theirs, "ON")))
        else:
            rest.append(part)
    return other, rest


def all_of(conditions: Sequence[exp.Expression], rows: RowScope) -> Expression | None:
    """Bind conditions on a pair of rows, as one; None if there are none."""
    where: Expression | None = None
    for part in conditions:
        where = conjunction(where, bind_condition(part, rows, "ON"))
    return where


def shown_of(other: Input) -> tuple[Expression, ...]:
    """Return all values that rows show, in one order."""
    return tuple(sorted({value for source in other.sources for value in source.columns.values()}, key=str))


def column_called(name: exp.Expression) -> exp.Column:
    """Return the column that a name in USING stands for, at its place in the text."""
    column = exp.Column(this=name)
    column.meta.update(name.meta)
    return column

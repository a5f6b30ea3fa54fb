"""Subqueries of public tables that are constants: `month = (SELECT month FROM months WHERE …)`, and IN under OR.

What a public table holds is no secret, so that such a subquery is a constant of the question, or a list of constants.
They are written into the question, which is bound, named and priced as if its author had looked them up; should the
public table change, the question is another one.

SQL's IN is NULL and not false where the list holds NULL and not the value. Which rows WHERE keeps does not depend on
that as long as only AND and OR stand around it, and there alone it is read so: under an OR, and in subqueries.
"""

from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from lapwing.errors import RefusalCause
from lapwing.query.classify.kinds import Kinds, RelationKind, stands_in_from, visible_in
from lapwing.query.expressions.as_read import as_read
from lapwing.query.expressions.attempts import NO_PUBLIC_ROWS
from lapwing.query.expressions.expression import Constant
from lapwing.query.expressions.rows import attempted
from lapwing.query.expressions.types import Plain, Type
from lapwing.query.from_clause.common_tables import with_named
from lapwing.query.from_clause.scope import PublicInput, Scope
from lapwing.query.from_clause.subqueries import unnamed
from lapwing.query.relations.public_rows import Combinations, JoinedRows
from lapwing.query.text.literals import is_readable, literal, null_of
from lapwing.query.text.trees import copied, depth_first, nodes_of

MOST_VALUES: Final = 1_000
"""How many constants a subquery becomes at most."""


def with_public_constants(select: exp.Select, within: Scope, *, joins: bool = False) -> exp.Select | None:
    """Return a SELECT with constants in the place of subqueries of public tables; None if it has none.

    Args:
        joins: Whether IN of rows of units inside a subquery becomes a list, too. Where it stands for itself it is a
            join, which binding knows; there it stays otherwise.

    Raises:
        QueryRefused: If one that stands for a value has several, or a value is too large or too small for a constant.
    """
    if all(map(stands_in_from, nodes_of(select, exp.Query))):
        return None
    new, changed, kinds = copied(select), False, None if joins else Kinds(within)
    for node in reversed(depth_first(new, exp.Subquery, exp.In)):  # inner ones before outer ones
        other = _member(node, within, kinds) if isinstance(node, exp.In) else _value(node, within)
        if other is not None:
            node.replace(other)
            changed = True
    return new if changed else None


def _member(node: exp.In, within: Scope, kinds: Kinds | None) -> exp.Expression | None:
    """Return x IN (SELECT …) as x IN (1, 2), or as false if there are none."""
    query = node.args.get("query")
    if query is None or not _is_alternative(node, kinds):
        return None
    within.nowhere.only(node, "this", "query")
    values = public_values(query, visible_in(node), within, joins=kinds is None)
    if values is None:
        return None
    if not values:
        return exp.Boolean(this=False)
    return exp.In(this=copied(node.this), expressions=[literal(value) for value in values])


def _is_alternative(node: exp.Expression, kinds: Kinds | None) -> bool:
    """Tell whether a condition in WHERE stands under OR, or is one of a subquery; with OR and AND alone around it.

    Args:
        kinds: Tell where it is a join of rows of units, as it is outermost: in a subquery that FROM names, or IN.
    """
    around, under_or = node.parent, False
    while isinstance(around, exp.And | exp.Or | exp.Paren):
        under_or = under_or or isinstance(around, exp.Or)
        around = around.parent
    if not isinstance(around, exp.Where) or around.parent is None:
        return False
    select = around.parent
    if under_or or select.parent is None:
        return under_or
    if kinds is None or not isinstance(select, exp.Select) or isinstance(select.parent, exp.Exists):
        return True
    return RelationKind.PROTECTED not in kinds.in_from(select, visible_in(select))


def _value(node: exp.Expression, within: Scope) -> exp.Expression | None:
    """Return (SELECT x …) in the place of a value as that value."""
    if isinstance(node.parent, exp.In | exp.Exists | exp.From | exp.Join | exp.SetOperation | exp.CTE | exp.Subquery):
        return None
    found = _public_column(node, visible_in(node), within, joins=False)
    if found is None:
        return None
    values, kind = found
    if not values:
        return null_of(kind)
    if len(values) > 1:
        reason = f"A subquery in the place of a value has {len(values):,} values"
        raise within.nowhere.refusal(
            node, RefusalCause.SUBQUERY_NOT_ONE_ROW, reason, "Choose one with WHERE, or write IN."
        )
    return literal(values[0])


def public_values(
    query: exp.Expression, visible: Sequence[exp.Expression], within: Scope, *, joins: bool = False
) -> Sequence[Constant] | None:
    """Return the different values of a subquery of one column of a public table, without NULL; None if it is none.

    Args:
        visible: The common table expressions that it may name.
        joins: Whether it can stay as it is, so that it is none if a value cannot be written.
    """
    found = _public_column(query, visible, within, joins=joins)
    return None if found is None else found[0]


def _public_column(
    query: exp.Expression, visible: Sequence[exp.Expression], within: Scope, *, joins: bool
) -> tuple[Sequence[Constant], str] | None:
    """Return these values, and what their type is called."""
    if isinstance(query, exp.Subquery):
        within.nowhere.only(query, "this")
        return _public_column(query.this, visible, within, joins=joins)
    if isinstance(query, exp.Select) and query.args.get("distinct") is not None:  # values are different anyway
        within.nowhere.only(query.args["distinct"])
        query = copied(query)
        query.set("distinct", None)
    found = attempted(NO_PUBLIC_ROWS, unnamed, with_named(query, visible), within)
    if not isinstance(found, PublicInput) or len(found.source.columns) != 1:
        return None
    (shown,) = found.source.columns.values()
    rows = JoinedRows(rows=found.rows, variables=found.rows.columns)
    wanted = Combinations(tables=(rows,), lists=(), conditions=(), shown=(as_read(shown),))
    combinations = within.facts.combinations(wanted, MOST_VALUES)
    if combinations is None:
        return None
    values = [value for (value,) in combinations]
    if all(map(is_readable, values)):
        return values, type_name(shown.type)
    if joins:
        return None  # it stays a join, which needs no constants
    reason = f"A number of {found.rows.table.name} is infinite here, or its size is beyond 1e40 or below 1e-40"
    remedy = "Leave it out in the subquery: WHERE x < 1e30."
    raise within.nowhere.refusal(query, RefusalCause.UNUSABLE_VALUE, reason, remedy)


def type_name(kind: Type) -> str:
    """Return what a type is called that is no number."""
    return kind.name if isinstance(kind, Plain) else "number"

"""A list that an answer shows, in a condition on rows: WHERE plan IN (SELECT plan FROM visits … HAVING COUNT(*) > 9).

The question inside is asked first, as one for a number is (`constants`), and what it showed is written in its place.
From then on it is a list of constants, so that the guarantee is the one that is proven there. How long it may become is
known before: the keys of the answer are public, and the list is a part of them.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final, cast

from sqlglot import exp

from lapwing.errors import RefusalCause
from lapwing.query.bind.no_cells import require_possible
from lapwing.query.derivation.derived import KeyValue
from lapwing.query.expressions.rows import RowScope
from lapwing.query.from_clause.common_tables import bare, common_tables, with_named
from lapwing.query.plan.plan import Plan

MOST_LISTED: Final = 1_000
"""Values that such a list has at most."""
Reading = Callable[[exp.Select], Plan]
"""Binds a SELECT as a question."""


def plan_of_list(node: exp.In, select: exp.Select, asked: Reading, rows: RowScope) -> Plan:
    """Return the plan of the question whose answer is the list of a condition.

    Raises:
        QueryRefused: If the answer is no list of public values.
    """
    query = cast(exp.Select, bare(node.args["query"]))
    plan = asked(with_named(query, common_tables(select)))
    rows.only(node, "this", "query")
    require_possible(plan, query, rows)
    if plan.constants or plan.searches or plan.composition is not None or not plan.question.measures:
        raise rows.refusal(
            query,
            RefusalCause.SUBQUERY_NOT_SUPPORTED,
            "A list in a condition must come from a single query",
            "Ask for it by itself first.",
        )
    shown = plan.outputs[0].value
    if len(plan.outputs) > 1 or not isinstance(shown, KeyValue):
        reason = "A list in a condition shows the values of one key"
        raise rows.refusal(
            query, RefusalCause.SUBQUERY_NOT_SUPPORTED, reason, "Write IN (SELECT plan FROM … GROUP BY plan HAVING …)."
        )
    if shown.key.private or shown.key.other is not None or len(shown.key.domain) > MOST_LISTED:
        reason = f"A list in a condition is of a key with at most {MOST_LISTED:,} public values, and no other"
        raise rows.refusal(
            query,
            RefusalCause.VALUES_NOT_PUBLIC,
            reason,
            "Ask for the list first.",
            "declare the values in the catalog, if they are public",
        )
    return replace(
        plan, price_request=replace(plan.price_request, numbers=True)
    )  # what is chosen instead shows no list


def likely(plan: Plan) -> list[tuple[object, ...]]:
    """Return all that the answer may show, by which work and price are known before it is there."""
    value = plan.outputs[0].value
    return [(one,) for one in value.key.domain] if isinstance(value, KeyValue) else []


def written(node: exp.In, values: list[exp.Expression], *, has_null: bool) -> exp.Expression:
    """Return the condition with a list in the place of the question.

    Of a list with NULL, SQL says NULL where it would say false.
    """
    found: exp.Expression = exp.Boolean(this=False)
    if values:
        found = exp.In(this=node.this.copy(), expressions=values)
    if not has_null:
        return found
    nothing = exp.Case(ifs=[exp.If(this=exp.Boolean(this=False), true=exp.Boolean(this=True))])
    return exp.Paren(this=exp.Or(this=found, expression=nothing))

"""Columns of a result that rows are joined to, as constants: WHERE e.salary > d.a, with one a for each group.

    employees AS e JOIN (SELECT department, AVG(salary) AS a … GROUP BY department) AS d USING (department)

The result is asked for first. Then each of its columns is a CASE over the values of its key.
These are constants, so that the guarantee is the one of `constants`. An inner join is a list of the values of the key.
They are public, and the result shows all of them, so that the list is a fact of the text. A row meets one group or none
(`classify.released_joins`), so that each row stands there as often as the join has it. NULL is equal to nothing: such a
row meets no group, and a group whose key is NULL meets no row.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from sqlglot import exp

from lapwing.errors import RefusalCause
from lapwing.query.bind.no_cells import require_possible
from lapwing.query.classify.released_joins import ReleasedJoin
from lapwing.query.derivation.columns import NUMERIC, TEMPORAL, Shape
from lapwing.query.derivation.derived import KeyValue
from lapwing.query.derivation.node import Derived
from lapwing.query.expressions.rows import RowScope, same_name
from lapwing.query.plan.plan import Plan
from lapwing.query.text.literals import literal

MOST_GROUPS: Final = 1_000
"""Rows that such a result has at most."""
Rows = Sequence[tuple[object, ...]]


def plan_of_join(joined: ReleasedJoin, asked: Callable[[exp.Select], Plan], rows: RowScope) -> Plan:
    """Return the plan of the result that rows are joined to.

    Raises:
        QueryRefused: If its groups are not public, or it is made of several.
    """
    plan = asked(joined.query)
    require_possible(plan, joined.query, rows)
    if plan.composition is not None or plan.constants or plan.searches or not plan.question.measures:
        reason = "A result that rows are joined to must come from a single query"
        raise rows.refusal(joined.query, RefusalCause.SUBQUERY_NOT_SUPPORTED, reason, "Ask for it by itself first.")
    some = plan.having is not None or plan.qualify is not None or plan.limit is not None or plan.offset
    if some or plan.question.fewest_units > 1:  # else noise would decide which keys the second query has
        reason = "A result that rows are joined to, and that is read, shows all of its groups"
        remedy = "Write the condition after the join: WHERE d.n > 9."
        raise rows.refusal(joined.query, RefusalCause.SUBQUERY_NOT_SUPPORTED, reason, remedy)
    shown = plan.outputs[_key(plan, joined)].value
    keys = plan.question.keys
    is_key = isinstance(shown, KeyValue) and keys == (shown.key,) and not shown.key.private and shown.key.other is None
    if not is_key or not isinstance(shown, KeyValue) or len(shown.key.domain) > MOST_GROUPS:
        reason = f"Rows are joined to a result by a key with at most {MOST_GROUPS:,} public values, and no other"
        declared = "declare the values in the catalog, if they are public"
        raise rows.refusal(joined.query, RefusalCause.VALUES_NOT_PUBLIC, reason, "Join the results.", declared)
    return replace(plan, price_request=replace(plan.price_request, numbers=True))


def likely_of_join(plan: Plan, middle: Callable[[Derived], object]) -> Rows:
    """Return all rows that the result may have, with values that might be theirs."""
    (key,) = plan.question.keys
    values = [output.value for output in plan.outputs]
    return [tuple(one if isinstance(value, KeyValue) else middle(value) for value in values) for one in key.domain]


def replace_join(
    joined: ReleasedJoin,
    plan: Plan,
    found: Rows,
    select: exp.Select,
    rows: RowScope,
    written: Callable[[Rows, exp.Expression, Shape], exp.Expression],
) -> None:
    """Write constants in the place of a join, in a SELECT.

    Args:
        found: The rows of the result.
        written: Writes pairs of a key and a number as one number for each key.
    """
    place = _key(plan, joined)
    for column in joined.columns:
        number = next((i for i, output in enumerate(plan.outputs) if same_name(column.this, output.name)), None)
        if number is None:
            reason = f"The result has no column '{column.name}'"
            raise rows.refusal(column, RefusalCause.UNKNOWN_COLUMN, reason)
        shape = plan.outputs[number].value.shape
        if shape not in NUMERIC + TEMPORAL:
            reason = "Only numbers and dates of a result are compared with rows"
            raise rows.refusal(column, RefusalCause.WRONG_TYPE, reason, "Join the results.")
        column.replace(written([(row[place], row[number]) for row in found], joined.outer, shape))
    for column in joined.keys:
        other = joined.outer.copy()
        shown = column.parent is select and column.arg_key == "expressions"
        column.replace(exp.alias_(other, joined.key, quoted=True) if shown else other)
    select.args["joins"].remove(joined.join)
    if joined.is_left:
        return
    (key,) = plan.question.keys
    values = [literal(value) for value in key.domain if value is not None]
    member = exp.In(this=joined.outer.copy(), expressions=values)
    where = select.args.get("where")
    both = member if where is None else exp.And(this=exp.Paren(this=where.this), expression=member)
    select.set("where", exp.Where(this=both))


def _key(plan: Plan, joined: ReleasedJoin) -> int:
    return next(i for i, output in enumerate(plan.outputs) if output.name.casefold() == joined.key.casefold())

"""A noisy number in a condition on rows: WHERE age > (SELECT AVG(age) FROM visits), also one for each group, or a list.

The number is a question of its own. It is asked first; what was released is then written in its place, as the constant
that it is from then on, and the question with that constant is asked as any other is.

Guarantee:
    Both are charged what they lose, and the price of both is fixed before the first is asked. The second is chosen in
    the light of the first, which is what the ledger's filters allow: its noise is made for what the constant makes of
    it, at the loss that was fixed. Intervals are about the question with that constant.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import partial
from math import isfinite
from typing import Final
from typing import Literal as Choice

from sqlglot import exp

from lapwing.errors import RefusalCause
from lapwing.query.bind.constant_lists import likely, plan_of_list, written
from lapwing.query.bind.no_cells import require_possible
from lapwing.query.bind.released_columns import likely_of_join, plan_of_join, replace_join
from lapwing.query.classify.asked_constants import members_in, numbers_in
from lapwing.query.classify.kinds import Kinds, RelationKind
from lapwing.query.classify.outer_keys import compared_with_outer, restricted
from lapwing.query.classify.released_joins import ReleasedJoin, released_joins
from lapwing.query.classify.scalar_subqueries import without_fixed_groups
from lapwing.query.derivation.average import Average
from lapwing.query.derivation.columns import NUMERIC, TEMPORAL, Shape
from lapwing.query.derivation.derived import KeyValue
from lapwing.query.derivation.node import Derived
from lapwing.query.expressions.rows import RowScope
from lapwing.query.from_clause.common_tables import bare, common_tables, with_named
from lapwing.query.from_clause.conditions import conjuncts
from lapwing.query.from_clause.groupings import is_aggregated
from lapwing.query.from_clause.scope import Scope
from lapwing.query.plan.composition import impossible_in, plans_asked
from lapwing.query.plan.plan import Plan
from lapwing.query.text.literals import literal
from lapwing.query.text.parse import Parsed
from lapwing.query.text.plain import of_query
from lapwing.query.text.trees import copied

Rows = Sequence[tuple[object, ...]]
"""What an answer shows: its values, row by row, as Python has them."""
Constants = Sequence[tuple[Plan, Rows]]
"""The answers to questions for constants."""
MOST_GROUPS: Final = 1_000
"""Groups of each of which a condition may have a constant of its own."""
_TYPICAL: Final[Mapping[Shape, object]] = {"date": date(2000, 1, 1), "timestamp": datetime(2000, 1, 1)}


@dataclass(frozen=True, slots=True)
class _Guess:
    """What stands in the place of constants until they are asked for.

    Args:
        place: Where numbers and dates are between the ends that they may have.
        all_listed: Whether lists are whole, or empty.
    """

    place: Choice["low", "middle", "high"] = "middle"
    all_listed: bool = True

    def number(self, value: Derived) -> object:
        """Return a number or a date."""
        if self.place == "middle" and value.shape in _TYPICAL:
            return _TYPICAL[value.shape]
        if value.shape in _TYPICAL:
            year = 1800 if self.place == "low" else 2200
            return datetime(year, 1, 1) if value.shape == "timestamp" else date(year, 1, 1)
        low, high = value.total.type.interval() if isinstance(value, Average) else (None, None)
        if low is None or high is None:
            return {"low": 0, "middle": 1, "high": 10**9}[self.place]
        return float({"low": low, "middle": (low + high) / 2, "high": high}[self.place])


_GUESSES: Final = (_Guess(), _Guess(all_listed=False), _Guess(place="low"), _Guess(place="high"))
"""In this order, until one leaves the query a cell: by that its work and price are known."""


@dataclass(frozen=True, slots=True)
class _Number:
    """A subquery that stands for a number.

    Args:
        query: What is asked.
        key: The column of the outer rows by whose values there are numbers, if there is one.
        narrower: The same for those values alone that the outer rows can have, if a public table says which.
    """

    query: exp.Select
    key: exp.Expression | None
    narrower: exp.Select | None = None


def with_constants(
    parsed: Parsed, whole: Callable[[Parsed], Plan], within: Scope, known: Constants, kinds: Kinds
) -> Plan:
    """Bind a question with numbers or lists in its conditions that are to be asked for first.

    Args:
        whole: Binds a question.
        known: The answers to those that were asked for. Others get a number in their place that might be theirs, or all
            values that the list may have, and are the plan's `constants`.

    Raises:
        QueryRefused: If one of them is no question for a number.
    """
    for guess in _GUESSES:
        node, asked, outer = _bind_with_constants(parsed, whole, within, known, kinds, guess)
        if outer.composition is None or not (asked or plans_asked(outer)):  # what was asked may leave no cell
            return replace(outer, constants=(*asked, *outer.constants))
        if not impossible_in(outer):
            break
    reason = "A query over results takes no number in a condition on rows"
    raise within.nowhere.refusal(node, RefusalCause.SUBQUERY_NOT_SUPPORTED, reason, "Ask for it first.")


def _bind_with_constants(
    parsed: Parsed, whole: Callable[[Parsed], Plan], within: Scope, known: Constants, kinds: Kinds, guess: _Guess
) -> tuple[exp.Expression, Sequence[Plan], Plan]:
    """Return a question with constants, what is asked for first that is not known, and where the first stands."""
    select, rows = copied(parsed.select), RowScope(text=within.text)
    alone = replace(parsed, options=replace(parsed.options, epsilon=None, delta=None), explain=False)

    def asked_alone(query: exp.Select) -> Plan:
        return whole(of_query(alone, query, rows.text))

    asked = list[Plan]()

    def answered(plan: Plan, likely_rows: Callable[[], Rows]) -> Rows:
        found = next((answer for other, answer in known if other == plan), None)
        if found is None:
            asked.append(plan)
        return likely_rows() if found is None else found

    joins = list[ReleasedJoin]()
    while after := released_joins(select, kinds, within):  # what one equals may be named by the next
        joined = after[0]
        joins.append(joined)
        plan = plan_of_join(joined, asked_alone, rows)
        found = answered(plan, partial(likely_of_join, plan, guess.number))
        replace_join(joined, plan, found, select, rows, _written)
    # All of them are bound before any is written: what is asked first never reads a guess at another.
    members = [(node, plan_of_list(node, select, asked_alone, rows)) for node in members_in(select, kinds)]
    numbers = [(node, *_plan_of_number(node, select, asked_alone, within, kinds)) for node in numbers_in(select)]
    for member, plan in members:
        found = answered(plan, partial(likely, plan) if guess.all_listed else list)
        values = [literal(value) for (value,) in found if value is not None]
        member.replace(written(member, values, has_null=len(values) < len(found)))
    for node, key, plan in numbers:
        of_no_rows = key is not None and any(impossible_in(plan))  # no row outside has a value to compare it with
        found = [] if of_no_rows else answered(plan, partial(_likely, plan, rows, node, guess))
        node.replace(_written(found, key, plan.outputs[-1].value.shape))
    if members or joins:  # what only the lists and joins named is named no more
        before = common_tables(select)
        select.set("with_", None)
        select = with_named(select, before)
    first = numbers[0][0] if numbers else members[0][0] if members else select
    return first, asked, whole(of_query(parsed, select, rows.text))


def _plan_of_number(
    node: exp.Subquery, select: exp.Select, asked: Callable[[exp.Select], Plan], within: Scope, kinds: Kinds
) -> tuple[exp.Expression | None, Plan]:
    """Return the column by whose values there are numbers, if there is one, and the plan that gives them.

    Raises:
        QueryRefused: If it is no single query for a number.
    """
    rows = RowScope(text=within.text)
    rows.only(node, "this")
    number = _number(node, select, within)
    if kinds.of(number.query) is RelationKind.PROTECTED:
        reason = "A subquery that has a number for each person is not supported here"
        remedy = "Join a subquery that groups by the column that says whose row it is, and compare the columns."
        raise rows.refusal(node, RefusalCause.MIXES_UNITS, reason, remedy)
    plan = asked(number.query)
    require_possible(plan, node, rows)
    if number.narrower is not None and _groups(plan) is None:
        plan = asked(number.narrower)
        if any(impossible_in(plan)):
            return number.key, plan
    if plan.composition is not None or plan.constants or plan.searches or not plan.question.measures:
        raise rows.refusal(
            node,
            RefusalCause.SUBQUERY_NOT_SUPPORTED,
            "A number in a condition must come from a single query",
            "Ask for it by itself first.",
        )
    if len(plan.outputs) != 1 + (number.key is not None) or plan.outputs[-1].value.shape not in NUMERIC + TEMPORAL:
        raise rows.refusal(
            node,
            RefusalCause.SUBQUERY_NOT_ONE_COLUMN,
            "A subquery in the place of a number has one column",
            "Show one number or date.",
        )
    return number.key, plan


def _number(node: exp.Subquery, select: exp.Select, within: Scope) -> _Number:
    """Take a subquery apart: what it asks, and the column of the outer rows that it is compared with."""
    query, rows = bare(node.this).copy(), RowScope(text=within.text)
    if isinstance(query, exp.Select):
        query = without_fixed_groups(query, rows)
    if not isinstance(query, exp.Select) or not is_aggregated(query) or query.args.get("group") is not None:
        reason = "A subquery in the place of a number is not surely one row"
        raise rows.refusal(
            node,
            RefusalCause.SUBQUERY_NOT_ONE_ROW,
            reason,
            "Write an aggregate without GROUP BY: (SELECT AVG(age) FROM visits).",
        )
    where = query.args.get("where")
    conditions = [] if where is None else conjuncts(where.this, rows)
    compared = [(each, *pair) for each in conditions if (pair := compared_with_outer(each, query, select, within))]
    if not compared:
        return _Number(with_named(query, common_tables(select)), None)
    if len(compared) > 1:
        raise rows.refusal(
            node,
            RefusalCause.SUBQUERY_NOT_SUPPORTED,
            "A number for each group is by one column",
            "Compare one column with the outer rows.",
        )
    (condition, inner, outer) = compared[0]
    kept = [other for other in conditions if other is not condition]
    query.set("where", exp.Where(this=exp.and_(*kept, copy=True)) if kept else None)
    query.set("expressions", [exp.alias_(copied(inner), "key", quoted=True), *query.expressions])
    query.set("group", exp.Group(expressions=[copied(inner)]))
    narrower = restricted(query, inner, outer, select, within)
    before = common_tables(select)
    return _Number(with_named(query, before), outer, None if narrower is None else with_named(narrower, before))


# ---- what stands in their place -------------------------------------------------------------------------------------


def _likely(plan: Plan, rows: RowScope, node: exp.Expression, guess: _Guess) -> Rows:
    """Return numbers as the answer might have them, by which work and price are known before it is there."""
    number = guess.number(plan.outputs[-1].value)
    if len(plan.outputs) == 1:
        return [(number,)]
    values = _groups(plan)
    if values is None:
        reason = f"A number for each group is by a column with at most {MOST_GROUPS:,} public values, and no other"
        declared = "declare the values in the catalog, if they are public"
        raise rows.refusal(node, RefusalCause.VALUES_NOT_PUBLIC, reason, "Join the results.", declared)
    return [(value, number) for value in values]


def _groups(plan: Plan) -> Sequence[object] | None:
    """Return the values for each of which a plan shows a number; None if they are not public, or too many."""
    keys = plan.question.keys
    if len(keys) != 1 or not isinstance(plan.outputs[0].value, KeyValue):
        return None
    (key,) = keys
    return None if key.private or key.other is not None or len(key.domain) > MOST_GROUPS else key.domain


def _written(found: Rows, key: exp.Expression | None, shape: Shape) -> exp.Expression:
    """Return numbers as a constant of SQL, or as one for each value of a key."""
    nothing = exp.Case(ifs=[exp.If(this=exp.Boolean(this=False), true=literal(_TYPICAL.get(shape, 1)))])  # a typed NULL
    if key is None:
        return literal(found[0][-1]) if found and _is_there(found[0][-1]) else nothing
    known = [(value, number) for value, number in found if value is not None and _is_there(number)]
    branches = [exp.If(this=literal(value), true=literal(number)) for value, number in known]
    return exp.Case(this=copied(key), ifs=branches) if branches else nothing


def _is_there(number: object) -> bool:
    return number is not None and (not isinstance(number, float) or isfinite(number))

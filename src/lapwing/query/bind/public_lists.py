"""Subqueries that compute something of public rows, beside rows of units: they are lists of constants.

    visits AS v JOIN (SELECT region, AVG(rate) AS a FROM places GROUP BY region) AS q ON v.region = q.region

Such a subquery, common table expression or view groups, counts, ranks or limits public rows. It is a query of only
public rows, which is exact and free. So its rows are computed when the query is bound, and written into it as VALUES.
Then it is a join to a list (`listed_joins`, `listed_values`). Where IN, EXISTS or a number names it, it is a list in a
condition, or a number. The plan holds the constants: should the public table change, the query is another one.

EXISTS with one equality is `x IS NOT NULL AND x IN (…)`. Both are true for the same rows, and false for all others. So
NOT may stand before it. A GROUP BY inside must be by what is equal. Then the rows that are equal to x are a group, or
none.
"""

from collections.abc import Callable, Sequence
from math import isfinite
from typing import Final, Protocol, runtime_checkable

from sqlglot import exp

from lapwing.errors import RefusalCause
from lapwing.query.bind.constant_lists import written
from lapwing.query.bind.free_work import MOST_FREE_NUMBERS, numbers_of
from lapwing.query.bind.public_answers import public_rows
from lapwing.query.classify.kinds import Kinds, RelationKind, items_of, visible_in
from lapwing.query.classify.outer_keys import compared_with_outer
from lapwing.query.expressions.rows import same_name
from lapwing.query.from_clause.comma_joins import is_inner
from lapwing.query.from_clause.common_tables import all_of, bare, queries_inside, tables_in, with_named
from lapwing.query.from_clause.conditions import conjuncts
from lapwing.query.from_clause.groupings import is_aggregated
from lapwing.query.from_clause.listed_values import MOST_KEYS, has_only
from lapwing.query.from_clause.scope import Scope, public_table
from lapwing.query.plan.composition import plans_asked
from lapwing.query.plan.plan import Plan
from lapwing.query.text.literals import is_readable, literal, null_of
from lapwing.query.text.parse import Parsed
from lapwing.query.text.plain import of_query
from lapwing.query.text.trees import copied, depth_first, has, nodes_of

MOST_VALUES: Final = 1_000
"""A condition has at most as many constants as this."""
Rows = Sequence[tuple[object, ...]]
_COMPUTING: Final = (
    exp.Group,
    exp.AggFunc,
    exp.Window,
    exp.Limit,
    exp.Offset,
    exp.Fetch,
    exp.Qualify,
    exp.SetOperation,
)

_WITH_ROWS: Final = (exp.In, exp.Exists, exp.From, exp.Join, exp.SetOperation, exp.CTE, exp.Subquery)


@runtime_checkable
class PublicAnswers(Protocol):
    """Facts of public tables that can also say what a query over them shows."""

    def shown(self, plan: Plan) -> Rows:
        """Return the rows of a plan that asks nothing."""
        ...


def with_public_lists(parsed: Parsed, whole: Callable[[Parsed], Plan], within: Scope) -> Parsed:
    """Return a query with constants in the place of what is computed of public rows and meets rows of units.

    Args:
        whole: Binds a query.

    Raises:
        QueryRefused: If such a list is too long, or needs too much work.
    """
    if not isinstance(within.facts, PublicAnswers) or not _may_have_some(parsed.select, within):
        return parsed
    return _PublicLists(parsed, whole, within, within.facts).written()


def _may_have_some(select: exp.Select, within: Scope) -> bool:
    """Tell from the names of tables whether a query may compute something of public rows inside: most do not."""
    catalog = within.catalog
    if not catalog.public_tables:
        return False
    public = {each.name.casefold() for each in catalog.public_tables}
    public |= {view.name.casefold() for view in catalog.views}
    for table in depth_first(select, exp.CTE):
        if _names(table) <= public:
            public.add(table.alias.casefold())
    views = any(view.name.casefold() in _names(select) for view in catalog.views)
    others = queries_inside(select)
    computing = (query for query in others if has(query, *_COMPUTING))
    return views or any(_names(query) and _names(query) <= public for query in computing)


def _names(query: exp.Expr) -> set[str]:
    return {str(table.name).casefold() for table in tables_in(query)}


class _PublicLists:
    def __init__(self, parsed: Parsed, whole: Callable[[Parsed], Plan], within: Scope, facts: PublicAnswers) -> None:
        self._parsed, self._whole, self._within, self._facts = parsed, whole, within, facts
        self._select, self._kinds = copied(parsed.select), Kinds(within)
        self._computed, self._changed = 0, False

    def written(self) -> Parsed:
        """Return the query with the constants."""
        for select in nodes_of(self._select, exp.Select):
            if RelationKind.PROTECTED not in self._kinds.in_from(select, visible_in(select)):
                continue
            for item in items_of(select):
                self._in_from(item, select)
            nodes = nodes_of(select, exp.In, exp.Exists, exp.Subquery)
            for node in [node for node in nodes if node.parent_select is select]:
                if isinstance(node, exp.Subquery):
                    self._as_number(node, select)
                elif isinstance(node, exp.In | exp.Exists):
                    self._in_condition(node, select)
        if not self._changed:
            return self._parsed
        self._leave_out_unnamed()
        return of_query(self._parsed, self._select, self._within.text)

    def _in_from(self, node: exp.Expression, select: exp.Select) -> None:
        found = self._query_of(node, select)
        if found is None:
            return
        plan, rows = found
        if not 0 < len(rows) <= MOST_KEYS:
            reason = f"A subquery over public tables has {len(rows):,} rows, and rows join 1 to {MOST_KEYS:,}"
            raise self._within.nowhere.refusal(
                node, RefusalCause.RESULT_TOO_LARGE, reason, "Choose among them in the subquery: HAVING, or LIMIT."
            )
        names = self._renamed(node, select) or [exp.to_identifier(output.name, quoted=True) for output in plan.outputs]
        if len(names) != len(plan.outputs):
            return
        lists = [exp.Tuple(expressions=list(map(_literal, row))) for row in rows]
        called = exp.to_identifier(node.alias_or_name, quoted=True)
        self._move_equality(node, select)
        self._replace(node, exp.Values(expressions=lists, alias=exp.TableAlias(this=called, columns=names)))

    def _renamed(self, node: exp.Expression, select: exp.Select) -> list[exp.Expression]:
        """Return the names that an alias, or a common table expression, gives to its columns; none if it gives none."""
        tables = [] if isinstance(node, exp.Subquery) else [*visible_in(select), *_own(select)]
        named = [table for table in tables if same_name(node.this, str(table.alias))]
        aliases = [node.args.get("alias"), *(table.args["alias"] for table in named[:1])]
        lists = (list(alias.args.get("columns") or ()) for alias in aliases if alias is not None)
        return next(filter(None, lists), [])

    def _move_equality(self, node: exp.Expression, select: exp.Select) -> None:
        """Write `FROM v, q WHERE v.k = q.k` as `FROM v JOIN q ON v.k = q.k`, which are the same of inner joins."""
        join, where, joins = node.parent, select.args.get("where"), select.args.get("joins") or []
        if not isinstance(join, exp.Join) or where is None or not all(map(is_inner, joins)):
            return
        if not has_only(join, "this", "kind") or len(joins) > 1:
            return
        parts, called = conjuncts(where.this, self._within.nowhere), node.alias_or_name.casefold()
        found = next((part for part in parts if isinstance(part, exp.EQ) and _names_once(part, called)), None)
        if found is not None:
            kept = [copied(part) for part in parts if part is not found]
            select.set("where", exp.Where(this=exp.and_(*kept, copy=False)) if kept else None)
            join.set("kind", None)
            join.set("on", copied(found))

    def _query_of(self, node: exp.Expression, select: exp.Select) -> tuple[Plan, Rows] | None:
        """Return what something in FROM shows, if it is computed of public rows."""
        visible: Sequence[exp.Expression] = visible_in(select)
        if not node.alias_or_name or not has_only(node, "this", "alias"):
            return None
        if isinstance(node, exp.Subquery):
            query: exp.Expression = bare(node.this)
            visible = [*visible, *_own(select)]
        elif isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            visible = [*visible, *_own(select)]
            place = next((i for i, table in enumerate(visible) if same_name(node.this, str(table.alias))), None)
            if place is None and public_table(node.this, self._within) is not None:
                return None
            query = bare(visible[place].this) if place is not None else all_of(exp.Table(this=copied(node.this)))
            visible = visible[:place] if place is not None else []
        else:
            return None
        return self._shown(query, visible)

    def _shown(self, query: exp.Expression, visible: Sequence[exp.Expression]) -> tuple[Plan, Rows] | None:
        """Return what a query shows, if it computes something of only public rows."""
        if self._kinds.of(query, visible) is not RelationKind.PUBLIC:
            return None
        whole = with_named(copied(query), visible)
        if not has(whole, exp.Values, exp.Unnest) and public_rows(whole, self._within) is not None:
            return None  # rows that binding knows
        select = whole if isinstance(whole, exp.Select) else all_of(exp.Subquery(this=whole, alias=_alias("public")))
        plan = self._whole(of_query(self._parsed, select, self._within.text))
        if plan.composition is None or plans_asked(plan):
            return None
        self._computed += numbers_of(plan)
        if self._computed > MOST_FREE_NUMBERS:
            reason = f"The subqueries over public tables need more than {MOST_FREE_NUMBERS:,} values"
            raise self._within.nowhere.refusal(
                query, RefusalCause.RESULT_TOO_LARGE, reason, "Keep fewer rows with WHERE, or show fewer columns."
            )
        rows = self._facts.shown(plan)
        known = all(value is None or _is_constant(value) for row in rows for value in row)
        return (plan, rows) if known else None

    # ---- conditions -------------------------------------------------------------------------------------------------

    def _in_condition(self, node: exp.Expression, select: exp.Select) -> None:
        member = node if isinstance(node, exp.In) else self._as_member(node, select)
        query = None if member is None else member.args.get("query")
        if member is None or not isinstance(query, exp.Expression) or not has_only(member, "this", "query"):
            return
        inside, visible = bare(query), [*visible_in(select), *_own(select)]
        if not has(with_named(copied(inside), visible), *_COMPUTING):
            return
        found = self._shown(inside, visible)
        if found is None or len(found[0].outputs) != 1:
            return
        values = dict.fromkeys(value for (value,) in found[1])
        if len(values) > MOST_VALUES:
            reason = f"A list in a condition has {len(values):,} values, of at most {MOST_VALUES:,}"
            raise self._within.nowhere.refusal(node, RefusalCause.RESULT_TOO_LARGE, reason, "Choose among them.")
        known = [literal(value) for value in values if value is not None]
        if isinstance(node, exp.In):
            self._replace(node, written(node, known, has_null=None in values))
            return
        there = exp.Not(this=exp.Is(this=copied(member.this), expression=exp.Null()))
        listed = exp.In(this=copied(member.this), expressions=known)
        self._replace(node, exp.Paren(this=exp.And(this=there, expression=listed)) if known else exp.false())

    def _as_number(self, node: exp.Subquery, select: exp.Select) -> None:
        """Write a subquery in the place of a value as that value, if it computes something of what is computed."""
        query, visible = bare(node), [*visible_in(select), *_own(select)]
        if isinstance(node.parent, (*_WITH_ROWS, exp.Select)) or not isinstance(query, exp.Select):
            return
        below = [other for other in nodes_of(query, exp.Query) if other is not query]
        named = with_named(copied(query), visible)
        below += [table.this for table in nodes_of(named, exp.CTE) if isinstance(table.this, exp.Query)]
        if not any(query.args.get(name) for name in ("group", "limit")) and not any(o.find(*_COMPUTING) for o in below):
            return  # an aggregate of rows (`public_numbers`), or rows (`public_constants`)
        found = self._shown(query, visible)
        if found is None or len(found[0].outputs) != 1:
            return
        plan, rows = found
        if len(rows) > 1:
            reason = f"A subquery in the place of a value has {len(rows):,} values"
            raise self._within.nowhere.refusal(
                node, RefusalCause.SUBQUERY_NOT_ONE_ROW, reason, "Choose one with WHERE, or write IN."
            )
        value = rows[0][0] if rows else None
        self._replace(node, null_of(plan.outputs[0].value.shape) if value is None else literal(value))

    def _as_member(self, node: exp.Expression, select: exp.Select) -> exp.In | None:
        """Return EXISTS with one equality as the IN that has the same values; None for any other."""
        query = bare(node.this)
        if not isinstance(query, exp.Select) or not has_only(
            query, "expressions", "from_", "joins", "where", "group", "having", "distinct"
        ):
            return None
        where, group = query.args.get("where"), query.args.get("group")
        parts = [] if where is None else conjuncts(where.this, self._within.nowhere)
        compared = [(part, *pair) for part in parts if (pair := compared_with_outer(part, query, select, self._within))]
        if len(compared) != 1 or (group is None and is_aggregated(query)):
            return None
        condition, inner, outer = compared[0]
        if group is not None and (not has_only(group, "expressions") or list(group.expressions) != [inner]):
            return None
        other = copied(query)
        kept = [copied(part) for part in parts if part is not condition]
        other.set("expressions", [exp.alias_(copied(inner), "member", quoted=True)])
        other.set("where", exp.Where(this=exp.and_(*kept, copy=False)) if kept else None)
        return exp.In(this=copied(outer), query=exp.Subquery(this=other))

    # ---- the tree ---------------------------------------------------------------------------------------------------

    def _replace(self, node: exp.Expression, other: exp.Expression) -> None:
        starts = [part.meta["start"] for part in nodes_of(node) if "start" in part.meta]
        other.meta.update({"start": min(starts)} if starts else {})  # where refusals point
        node.replace(other)
        self._changed = True

    def _leave_out_unnamed(self) -> None:
        """Leave out common table expressions of public rows that nothing names any more."""
        for clause in nodes_of(self._select, exp.With):
            for table in reversed(list(clause.expressions)):
                named = any(same_name(node.this, str(table.alias)) for node in nodes_of(self._select, exp.Table))
                if not named and self._kinds.of(table.this, visible_in(table.this)) is RelationKind.PUBLIC:
                    clause.expressions.remove(table)
            if not clause.expressions:
                clause.pop()


def _names_once(part: exp.Expression, called: str) -> bool:
    """Tell whether one side of an equality is a column of what is called so, and the other one of anything else."""
    sides = (part.this, part.expression)
    columns = all(isinstance(side, exp.Column) and side.table for side in sides)
    return columns and sum(side.table.casefold() == called for side in sides) == 1


def _own(select: exp.Select) -> list[exp.Expression]:
    clause = select.args.get("with_")
    return [] if clause is None else list(clause.expressions)


def _alias(name: str) -> exp.TableAlias:
    return exp.TableAlias(this=exp.to_identifier(name))


def _is_constant(value: object) -> bool:
    return not (isinstance(value, float) and not isfinite(value)) and is_readable(value)


def _literal(value: object) -> exp.Expression:
    return exp.Null() if value is None else literal(value)

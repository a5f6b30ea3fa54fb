"""FROM a, b, c WHERE …: tables that are listed, and joined by what WHERE compares.

SQL pairs every row of one with every row of the others and keeps the pairs for which WHERE is true. The same pairs are
kept by joining one table after the other on those conditions of WHERE that name both sides, and filtering by the rest:
inner joins may be made in any order, and a condition of a conjunction may be asked wherever its columns are there.

So the tables are joined in an order that works: the first protected one, then, again and again, the first of the others
that is connected to those already joined. A public table is connected by equality of columns, or if none is, by a
comparison (`range_joins`). A protected one is connected by a condition that says that the rows are of one unit.
A table without a connection would be paired with everybody's rows, and is refused.

Where rows of different units may meet (`shared_joins`), tables connected in this way form a cluster, each row of which
is of one unit. A table without a connection begins a cluster of its own; IN and EXISTS are asked of the first cluster
that has the columns for it. Then the clusters meet on the equalities between them. So a row belongs to as few units as
possible, and what looks at several rows of a unit is computed before they meet others. INNER JOIN … ON says the same as
a list of tables and WHERE, and is read like that.

FROM public JOIN public ON … JOIN protected ON … is read in this way, too, if all its joins are inner. In every order,
the joins keep the triples of rows for which both conditions are true. The list has the same plan and key.
"""

from collections.abc import Callable, Sequence
from itertools import takewhile

from sqlglot import exp

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.expressions.attempts import MEETINGS, NAMES
from lapwing.query.expressions.rows import RowScope, attempted
from lapwing.query.from_clause.conditions import conjuncts
from lapwing.query.from_clause.equalities import sides_of
from lapwing.query.from_clause.public_joins import bind_join
from lapwing.query.from_clause.range_joins import ranges
from lapwing.query.from_clause.scope import Binder, Input, PublicInput, Scope, rows_of
from lapwing.query.from_clause.shared_joins import bind_shared_join, meet
from lapwing.query.from_clause.unit_joins import compares_units, connects, not_of_one_unit
from lapwing.query.text.trees import has

Joined = tuple[exp.Join, Input | PublicInput]
ConditionBinder = Callable[[exp.Expression, Input], Input]
"""Asks a condition of WHERE of rows."""


def is_listed(join: exp.Expression) -> bool:
    """Tell whether a table stands after a comma, or CROSS JOIN, with nothing said about what it is joined on."""
    kind = str(join.args.get("kind") or "").upper()
    said = any(join.args.get(name) for name in ("on", "using", "side", "method"))
    return not said and kind in ("", "CROSS")


def bind_listed(
    select: exp.Select,
    first: Input | PublicInput,
    joins: Sequence[exp.Expression],
    where: Sequence[exp.Expression],
    scope: Scope,
    item: Binder,
    asked: ConditionBinder,
) -> tuple[Input, list[exp.Expression]]:
    """Join what FROM lists; return the rows, and the conditions of WHERE that are still to be asked."""
    begin = exp.Join(this=select.args["from_"].this)
    inputs = [item(join.this, scope) for join in joins]
    if scope.sharing or (all(map(is_inner, joins)) and not _has_protected(first, joins, inputs)):
        joins, where = _opened(joins, where, scope)
    opened = [join for join in joins if isinstance(join, exp.Join)]
    items: list[Joined] = [(begin, first), *zip(opened, inputs, strict=True)]
    for join, _ in items:
        scope.nowhere.only(join, "this", "on", "using", "side", "kind")
    input_, items = _begun(select, items, scope)
    conditions = [*where, *(common for part in where for common in _in_all_branches(part, scope.nowhere))]
    input_, items, conditions = _connected(input_, items, conditions, scope)
    if scope.sharing and any(isinstance(other, Input) for _, other in items):
        input_, items, conditions = _met(input_, items, conditions, scope, asked)
    if items:
        raise _unconnected(*items[0], input_, conditions, scope)
    return input_, [part for part in conditions if part in where]


def _unconnected(
    join: exp.Join, other: Input | PublicInput, input_: Input, conditions: Sequence[exp.Expression], scope: Scope
) -> QueryRefused:
    """Return the refusal of a table that is compared with nothing, or with nothing that names the unit."""
    if isinstance(other, Input):
        ours, theirs = rows_of(input_, scope), rows_of(other, scope)
        if any(sides_of(part, ours, theirs) is not None for part in conditions):
            return not_of_one_unit(join.this, "inner", input_, other, scope)
    name = (other.source if isinstance(other, PublicInput) else other.sources[0]).name
    reason = f"Nothing says what rows of '{name}' are joined with"
    return scope.nowhere.refusal(
        join.this, RefusalCause.JOIN_CONDITION_MISSING, reason, "Compare its columns with columns of the other tables."
    )


def _connected(
    input_: Input, items: list[Joined], conditions: list[exp.Expression], scope: Scope
) -> tuple[Input, list[Joined], list[exp.Expression]]:
    """Join what is connected to rows, one after the other; return also the tables and conditions that are left."""
    items = list(items)
    while items:
        place, on = _next(items, input_, conditions, scope)
        if place is None:
            break
        join, other = items.pop(place)
        if on:
            join = exp.Join(this=join.this, on=exp.and_(*on, copy=False, wrap=False))
        input_ = bind_join(join, input_, other, scope)
        conditions = [part for part in conditions if part not in on]
    return input_, items, conditions


def _met(
    input_: Input, items: list[Joined], conditions: list[exp.Expression], scope: Scope, asked: ConditionBinder
) -> tuple[Input, list[Joined], list[exp.Expression]]:
    """Let clusters meet; return also the tables that are connected to none, and the conditions that are left."""
    clusters = [(items[0][0], input_)]
    while (place := next((i for i, (_, other) in enumerate(items) if isinstance(other, Input)), None)) is not None:
        join, first = items.pop(place)
        if isinstance(first, Input):
            cluster, items, conditions = _connected(first, items, conditions, scope)
            clusters.append((join, cluster))
    clusters, conditions = _asked_of_clusters(clusters, conditions, asked)
    input_ = clusters.pop(0)[1]
    while clusters:
        ways = [meet(input_, cluster, conditions, scope) for _, cluster in clusters]
        place = next((i for i, way in enumerate(ways) if way), 0)
        join, cluster = clusters.pop(place)
        input_ = bind_shared_join(join, input_, cluster, ways[place], scope)
        conditions = [part for part in conditions if part not in ways[place]]
    return _connected(input_, items, conditions, scope)


def _asked_of_clusters(
    clusters: list[tuple[exp.Join, Input]], conditions: list[exp.Expression], asked: ConditionBinder
) -> tuple[list[tuple[exp.Join, Input]], list[exp.Expression]]:
    """Ask each condition with a subquery of the first cluster that has the columns for it."""
    rest = []
    for part in conditions:
        inner = has(part, exp.Select)
        for place, (join, cluster) in enumerate(clusters if inner else []):
            found = attempted(NAMES | MEETINGS, asked, part, cluster)
            if not isinstance(found, QueryRefused):
                clusters[place] = (join, found)
                break
        else:
            rest.append(part)
    return clusters, rest


def _opened(
    joins: Sequence[exp.Expression], where: Sequence[exp.Expression], scope: Scope
) -> tuple[list[exp.Expression], list[exp.Expression]]:
    """Return inner joins as a list, and what they are on as conditions; others stay as they are."""
    opened: list[exp.Expression] = []
    conditions = list(where)
    for join in joins:
        scope.nowhere.only(join, "this", "on", "using", "side", "kind")
        if is_inner(join) and join.args.get("on") is not None:
            conditions += conjuncts(join.args["on"], scope.nowhere)
            join = exp.Join(this=join.this)
        opened.append(join)
    return opened, conditions


def is_inner(join: exp.Expression) -> bool:
    """Tell whether a join is inner and says what it is on, if it does, by ON."""
    kind = str(join.args.get("kind") or "").upper()
    return not any(join.args.get(name) for name in ("using", "side", "method")) and kind in ("", "INNER", "CROSS")


def _has_protected(
    first: Input | PublicInput, joins: Sequence[exp.Expression], inputs: Sequence[Input | PublicInput]
) -> bool:
    """Tell whether a protected table stands in the list before the first join that says what it is on."""
    listed = takewhile(lambda each: is_listed(each[0]), zip(joins, inputs, strict=True))
    return isinstance(first, Input) or any(isinstance(one, Input) for _, one in listed)


def _begun(select: exp.Select, items: list[Joined], scope: Scope) -> tuple[Input, list[Joined]]:
    """Return the first protected table of the list, and the others."""
    for place, (join, item) in enumerate(items):
        if place and not is_listed(join):
            break
        if isinstance(item, Input):
            return item, [*items[:place], *items[place + 1 :]]
    reason = "FROM lists public tables alone: no answer about them needs protection"
    raise scope.nowhere.refusal(
        select.args["from_"].this, RefusalCause.ONLY_PUBLIC_TABLES, reason, "Begin with a protected table."
    )


def _next(
    items: Sequence[Joined], input_: Input, conditions: Sequence[exp.Expression], scope: Scope
) -> tuple[int | None, list[exp.Expression]]:
    """Return which table comes next, and what it is joined on; of joins that say it, only the first in the list.

    Tables that are joined by comparisons alone come after all others.
    """
    for ranged in (False, True):
        for place, (join, other) in enumerate(items):
            if not is_listed(join):
                if place == 0:
                    return place, []
                break
            on = _connecting(input_, other, conditions, scope, ranged=ranged)
            if on:
                return place, on
    return None, []


def _connecting(
    input_: Input, other: Input | PublicInput, conditions: Sequence[exp.Expression], scope: Scope, *, ranged: bool
) -> list[exp.Expression]:
    """Return the conditions that compare two inputs, if they are enough to join them; none otherwise.

    Args:
        ranged: Whether comparisons with a public table are looked for, and not equalities.
    """
    ours, theirs = rows_of(input_, scope), rows_of(other, scope)
    equal = [part for part in conditions if sides_of(part, ours, theirs) is not None]
    if isinstance(other, PublicInput):
        return [part for part in conditions if ranges([part], ours, theirs)[0]] if ranged else equal
    units = [part for part in conditions if part not in equal and compares_units(part, ours, theirs)]
    on = [*equal, *units]
    return on if on and connects(input_, other, on, scope) else []


def _in_all_branches(node: exp.Expression, rows: RowScope) -> list[exp.Expression]:
    """Return the conditions that all branches of an OR have in common: they are true where the OR is."""
    first, *others = (conjuncts(branch, rows) for branch in _branches(node))
    return [part for part in first if others and all(part in branch for branch in others)]


def _branches(node: exp.Expression) -> list[exp.Expression]:
    while type(node) is exp.Paren:
        node = node.this
    if type(node) is not exp.Or:
        return [node]
    return [*_branches(node.this), *_branches(node.expression)]

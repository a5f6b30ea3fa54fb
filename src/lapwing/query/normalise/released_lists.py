"""Rows that are joined to the groups of a result, and look at nothing else of it.

    JOIN (SELECT k, SUM(y) AS s FROM … GROUP BY k ORDER BY s DESC LIMIT 10) AS t ON x = t.k

So tools choose the largest groups. This is read as `x IN (SELECT k FROM (… GROUP BY k … LIMIT 10))`: constants that are
asked for first (`bind.constants`; the proof is in `docs/theory/relations.md`). Both keep the same rows, each once. The
result is grouped by only k. So at most one row of it has a value of k, and a row meets that one or none. NULL is equal
to nothing, and IN is not true for it. Other joins may be inner or LEFT. A condition on the rows of their left side may
come before or after them.
"""

from sqlglot import exp

from lapwing.query.classify.kinds import Kinds, RelationKind, tables_of_with
from lapwing.query.classify.released_joins import commutes, compared, only_key
from lapwing.query.from_clause.listed_values import has_only
from lapwing.query.from_clause.scope import Scope
from lapwing.query.text.trees import copied, nodes_of


def with_released_lists(select: exp.Select, within: Scope) -> exp.Select | None:
    """Return a SELECT with IN in the place of joins to the groups of results; None if it has none."""
    joins = select.args.get("joins") or ()
    if not any(isinstance(join.this, exp.Subquery) for join in joins) or not all(map(commutes, joins)):
        return None
    kinds, new = Kinds(within), copied(select)
    if RelationKind.PROTECTED not in kinds.in_from(select):  # a join of results is read as it stands
        return None
    for join in list(new.args["joins"]):
        member = _member(join, new, kinds)
        if member is not None:
            new.args["joins"].remove(join)
            where = new.args.get("where")
            both = member if where is None else exp.And(this=exp.Paren(this=where.this), expression=member)
            new.set("where", exp.Where(this=both))
    return None if len(new.args["joins"]) == len(select.args["joins"]) else new


def _member(join: exp.Join, select: exp.Select, kinds: Kinds) -> exp.In | None:
    """Return an inner join to the groups of a result as a condition."""
    item = join.this
    if not isinstance(item, exp.Subquery) or not item.alias or join.args.get("side"):
        return None
    if not has_only(item, "this", "alias") or not has_only(item.args["alias"], "this"):  # TABLESAMPLE, t(x)
        return None
    query, key = item.this, only_key(item.this)
    if key is None or kinds.of(query, tables_of_with(select)) is not RelationKind.RELEASED:
        return None
    outer = compared(join, item.alias, key)
    if outer is None or not _is_unread(item, join, select, key if join.args.get("using") else ""):
        return None
    column = exp.Column(this=exp.to_identifier(key, quoted=True))
    groups = exp.Subquery(this=copied(query), alias=item.args["alias"].copy())
    listed = exp.Select(expressions=[column], from_=exp.From(this=groups))
    return exp.In(this=copied(outer), query=exp.Subquery(this=listed))


def _is_unread(item: exp.Subquery, join: exp.Join, select: exp.Select, shared: str) -> bool:
    """Tell whether a SELECT names nothing of a result but where it is joined, and has no star that would show it.

    Args:
        shared: The name that is that of both by USING.
    """
    names = {column.alias_or_name.casefold() for column in item.this.expressions} - {shared.casefold()}
    for column in nodes_of(select, exp.Column):
        if column.find_ancestor(exp.Join) is join:
            continue
        if column.table.casefold() == item.alias.casefold():
            return False
        if not column.table and column.name.casefold() in names:
            return False
    return not any(shown.is_star for shown in select.expressions)

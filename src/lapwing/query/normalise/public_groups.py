"""GoogleSQL's public groups: `visits RIGHT JOIN (SELECT DISTINCT plan FROM plans) USING (plan)`, and what they count.

In SQL such a join has a row for every public group that nobody is in, and COUNT(*) counts it. Where the question says
`group_selection_strategy = PUBLIC_GROUPS`, GoogleSQL counts what units contribute, and that row is nobody's: the group
is in the answer, with noise around 0. So the join is read as JOIN, which shows all public groups too. A list of
constants in the place of a public table is what WHERE lists: `plan IN ('a', 'b')`.

A row has the same matches in both joins, so that the relation is that of an inner join (`outer_joins`).
"""

from sqlglot import exp

from lapwing.catalog.model import Catalog
from lapwing.query.expressions.rows import is_column, same_name
from lapwing.query.from_clause.listed_values import has_only, list_of


def with_public_groups(select: exp.Select, catalog: Catalog) -> exp.Select | None:
    """Return a question whose joins to public groups are inner ones; None if it has none."""
    new, changed = select.copy(), False
    kept: list[exp.Expression] = []
    for join in new.args.get("joins") or []:
        listed = _listed(join) if _side(join) == "RIGHT" else None
        if listed is not None:
            _also(new, listed)
            changed = True
            continue
        if _side(join) == "RIGHT" and _is_public(join.this, catalog):
            join.set("side", None)
            join.set("kind", None)
            changed = True
        kept.append(join)
    first = getattr(new.args.get("from_"), "this", None)
    if kept and first is not None and _side(kept[0]) == "LEFT" and _is_public(first, catalog):
        kept[0].set("side", None)
        kept[0].set("kind", None)
        changed = True
    new.set("joins", kept)
    return new if changed else None


def _side(join: exp.Expression) -> str:
    side, kind = (str(join.args.get(name) or "").upper() for name in ("side", "kind"))
    return side if kind in ("", "OUTER") else ""


def _is_public(item: exp.Expression | None, catalog: Catalog) -> bool:
    """Tell whether an item of FROM is a public table, or a SELECT from one."""
    while isinstance(item, exp.Subquery | exp.Select):
        if item.args.get("joins"):
            return False
        item = item.this if isinstance(item, exp.Subquery) else getattr(item.args.get("from_"), "this", None)
    if not isinstance(item, exp.Table) or not isinstance(item.this, exp.Identifier) or item.args.get("joins"):
        return False
    return any(same_name(item.this, table.name) for table in catalog.public_tables)


def _listed(join: exp.Expression) -> exp.Expression | None:
    """Return the condition that a value is in the list that it is joined with by USING; None if it is no list."""
    using, item = join.args.get("using") or [], join.this
    if len(using) != 1 or not has_only(join, "this", "side", "kind", "using"):
        return None
    shown: list[exp.Expression] = list(using)
    if isinstance(item, exp.Subquery) and isinstance(item.this, exp.Select) and has_only(item, "this", "alias"):
        select = item.this
        clause = select.args.get("from_")
        if clause is None or not has_only(select, "expressions", "from_", "distinct") or not has_only(clause, "this"):
            return None
        if not has_only(select.args.get("distinct") or exp.Distinct()):
            return None
        shown += [column.this for column in select.expressions if is_column(column)]
        if len(shown) != 1 + len(select.expressions):
            return None
        item = clause.this
    listed = list_of(item)
    if listed is None or len(listed[1]) != 1 or not all(same_name(name, listed[1][0]) for name in shown):
        return None
    return exp.In(this=exp.Column(this=using[0].copy()), expressions=[row[0].copy() for row in listed[2]])


def _also(select: exp.Select, condition: exp.Expression) -> None:
    where = select.args.get("where")
    if where is not None:
        condition = exp.And(this=exp.Paren(this=where.this), expression=condition)
    select.set("where", exp.Where(this=condition))

"""Other spellings of clauses: FROM (a JOIN b) JOIN c, FETCH FIRST 3 ROWS ONLY, GROUP BY a WITH ROLLUP, main.visits.

Each is the same clause in the words that binding knows; see `other_spellings`.
"""

from collections.abc import Collection

from sqlglot import exp

from lapwing.query.from_clause.listed_values import has_only


def without_schema(node: exp.Expression, schemas: Collection[str]) -> exp.Expression | None:
    """Leave out the names of the schema and of the database before the name of a table."""
    before = [node.args[part] for part in ("catalog", "db") if node.args.get(part) is not None]
    if not before or not all(isinstance(name, exp.Identifier) and name.name.lower() in schemas for name in before):
        return None
    for part in ("catalog", "db"):
        node.args.pop(part, None)
    return node


def without_parentheses(node: exp.Expression) -> exp.Expression | None:
    """Write FROM (a JOIN b) JOIN c as FROM a JOIN b JOIN c, which is what it means."""
    select, inner = node.parent, node.this
    if type(inner) is exp.Table:
        return None
    while type(inner) is exp.Subquery and has_only(inner, "this"):
        inner = inner.this
    if type(inner) is not exp.Table or not inner.args.get("joins") or not isinstance(select, exp.Select):
        return None
    table = inner.copy()
    joins, others = table.args.pop("joins"), select.args.get("joins") or []
    if not isinstance(joins, list) or not isinstance(others, list):
        return None
    select.set("joins", [*joins, *others])
    node.set("this", table)
    return node


def with_named_parentheses(node: exp.Expression) -> exp.Expression | None:
    """Write (SELECT * FROM a JOIN b …) AS c for (a JOIN b …) AS c, and a AS c for (a) AS c."""
    table, alias = node.this, node.args.get("alias")
    if type(table) is not exp.Table or alias is None or not has_only(node, "this", "alias"):
        return None
    new = table.copy()
    joins = new.args.pop("joins", None)
    if joins:
        return exp.Subquery(
            this=exp.Select(expressions=[exp.Star()], from_=exp.From(this=new), joins=joins), alias=alias
        )
    if new.args.get("alias") is not None:
        return None
    new.set("alias", alias)
    return new


def as_limit(node: exp.Expression) -> exp.Expression | None:
    """Write LIMIT 3 for FETCH FIRST 3 ROWS ONLY."""
    options = node.args.get("limit_options")
    plain = has_only(node, "direction", "count", "limit_options") and (options is None or has_only(options, "rows"))
    return exp.Limit(expression=node.args["count"].copy()) if plain and node.args.get("count") is not None else None


def grouped(node: exp.Expression) -> exp.Expression | None:
    """Write GROUP BY ROLLUP (a, b) for GROUP BY a, b WITH ROLLUP, and GROUP BY a for GROUP BY 1, a of a constant."""
    kept = [key for key in node.expressions if not _is_constant_key(key, node.parent)]
    if kept and len(kept) < len(node.expressions) and has_only(node, "expressions"):
        return exp.Group(expressions=[key.copy() for key in kept])
    for name in ("rollup", "cube"):
        written = node.args.get(name)
        if isinstance(written, list) and len(written) == 1 and has_only(written[0]) and node.expressions:
            if not has_only(node, "expressions", name):
                return None
            keys = [key.copy() for key in node.expressions]
            return exp.Group(expressions=[type(written[0])(expressions=keys)])
    return None


def _is_constant_key(key: exp.Expression, select: exp.Expr | None) -> bool:
    """Tell whether a key is the place of a constant in the SELECT list: all rows have it, so that it parts no group."""
    if (
        not isinstance(key, exp.Literal)
        or key.is_string
        or not key.this.isdecimal()
        or not isinstance(select, exp.Select)
    ):
        return False
    place = int(key.this)
    item = select.expressions[place - 1] if 1 <= place <= len(select.expressions) else None
    value = item.this if type(item) is exp.Alias else item
    return isinstance(value, exp.Literal | exp.Boolean | exp.Null)


def with_items_for_star(select: exp.Expression) -> exp.Expression | None:
    """Write the columns of the one subquery in FROM for * in a SELECT list, where rows are grouped."""
    source, group = select.args.get("from_"), select.args.get("group")
    stars = [place for place, item in enumerate(select.expressions) if is_star(item)]
    if len(stars) != 1 or group is None or source is None or select.args.get("joins") or select.args.get("laterals"):
        return None
    inner = (
        source.this.this if isinstance(source.this, exp.Subquery) and has_only(source.this, "this", "alias") else None
    )
    named = None if inner is None else source.this.args.get("alias")
    if not isinstance(inner, exp.Select) or (named is not None and named.args.get("columns")):
        return None
    names = [item.args["alias"] if isinstance(item, exp.Alias) else item.this for item in inner.expressions]
    if not all(isinstance(name, exp.Identifier) for name in names):
        return None
    columns = [exp.Column(this=name.copy()) for name in names]
    items, place = select.expressions, stars[0]
    select.set("expressions", [*items[:place], *columns, *items[place + 1 :]])
    return select


def is_star(node: exp.Expr) -> bool:
    """Tell whether an item of a SELECT list is a plain *."""
    return isinstance(node, exp.Star) and has_only(node) and isinstance(node.parent, exp.Select)

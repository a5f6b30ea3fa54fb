"""A subquery that only joins rows to a result, written as the join itself.

    SELECT SUM(x) AS s FROM (SELECT r.x AS x, d.a AS a FROM r LEFT JOIN (SELECT k, AVG(y) AS a … GROUP BY k) AS d
    ON r.k = d.k) AS q WHERE a > 2

Such a subquery chooses and computes columns, row by row. So its expressions may stand where its columns are named. The
join is one of the SELECT itself then, whose conditions and aggregates say what they read of it
(`classify.released_joins`).
"""

from sqlglot import exp

from lapwing.query.classify.kinds import Kinds, RelationKind, visible_in
from lapwing.query.expressions.rows import is_column
from lapwing.query.from_clause.groupings import is_aggregated
from lapwing.query.from_clause.listed_values import has_only
from lapwing.query.from_clause.scope import Scope

_CLAUSES = ("expressions", "from_", "where", "group", "having", "order", "limit", "offset", "with_")


def with_joins_of_subquery(select: exp.Select, within: Scope) -> exp.Select | None:
    """Return an aggregate over a subquery that joins rows to a result as one over the join; None if it is none."""
    clause = select.args.get("from_")
    item = None if clause is None else clause.this
    if not isinstance(item, exp.Subquery) or not has_only(item, "this", "alias") or not has_only(select, *_CLAUSES):
        return None
    inner, alias = item.this, item.args.get("alias")
    if not isinstance(inner, exp.Select) or alias is None or not has_only(alias, "this") or not is_aggregated(select):
        return None
    values = _values(inner)
    if values is None or not inner.args.get("joins"):
        return None
    kinds = Kinds(within).in_from(inner, visible_in(inner))
    if RelationKind.PROTECTED not in kinds or RelationKind.RELEASED not in kinds:
        return None
    return _merged(select, str(item.alias).casefold(), values)


def _values(inner: exp.Select) -> dict[str, exp.Expression] | None:
    """Return the columns of a SELECT that computes each row by itself; None of any other."""
    if not has_only(inner, "expressions", "from_", "joins", "where") or is_aggregated(inner):
        return None
    values = dict[str, exp.Expression]()
    for shown in inner.expressions:
        value = shown.this if type(shown) is exp.Alias else shown
        named = type(shown) is exp.Alias or is_column(value)
        if not named or value.find(exp.Query, exp.Window, exp.Star, exp.Subquery) is not None:
            return None
        if values.setdefault(shown.alias_or_name.casefold(), value) is not value:
            return None
    return values


def _merged(select: exp.Select, name: str, values: dict[str, exp.Expression]) -> exp.Select | None:
    new = select.copy()
    inner = new.args["from_"].this.this
    clauses = [new.args.get(part) for part in ("where", "group", "having", "order")]
    parts = [*new.expressions, *(part for part in clauses if part is not None)]
    called = {item.alias.casefold() for item in new.expressions if type(item) is exp.Alias}
    for part in parts:
        if part.find(exp.Query) is not None or any(star.parent.key != "count" for star in part.find_all(exp.Star)):
            return None
        for column in list(part.find_all(exp.Column)):
            if not is_column(column) or column.table.casefold() not in ("", name):
                return None
            value = values.get(column.name.casefold())
            if value is None:
                if not column.table and column.name.casefold() in called:
                    continue  # what the SELECT list calls so
                return None
            other: exp.Expression = exp.Paren(this=value.copy())
            if column.parent is new and column.arg_key == "expressions":
                other = exp.Alias(this=value.copy(), alias=exp.to_identifier(column.name, quoted=True))
            elif isinstance(column.parent, exp.Group) or is_column(value):
                other = value.copy()
            column.replace(other)
    wheres = [where.this for where in (inner.args.get("where"), new.args.get("where")) if where is not None]
    new.set("where", exp.Where(this=exp.and_(*wheres)) if wheres else None)
    new.set("joins", inner.args["joins"])
    new.set("from_", inner.args["from_"])
    return new

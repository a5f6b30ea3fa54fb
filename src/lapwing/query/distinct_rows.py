"""The number of distinct rows: SELECT COUNT(*) FROM (SELECT DISTINCT a, b FROM t), written as COUNT(DISTINCT …).

DISTINCT without the privacy unit merges rows of different units, which no relation here does; how many there are left
is a count of distinct values all the same. A row with a NULL is one of them, so that each value is counted as a text
which begins with 'v', and NULL as 'n'.
"""

from sqlglot import exp

from lapwing.query.listed_values import has_only


def with_distinct_rows(select: exp.Expression) -> exp.Expression | None:
    """Return a SELECT that counts distinct rows as one of distinct values; None if it does nothing of that kind."""
    if not has_only(select, "expressions", "from_") or len(select.expressions) != 1:
        return None
    (item,) = select.expressions
    count = item.this if type(item) is exp.Alias else item
    plain = isinstance(count, exp.Count) and isinstance(count.this, exp.Star) and has_only(count, "this", "big_int")
    clause = select.args.get("from_")
    if not plain or not isinstance(clause, exp.From) or not isinstance(clause.this, exp.Subquery):
        return None
    if not has_only(clause.this, "this", "alias") or (clause.this.args.get("alias") or exp.TableAlias()).columns:
        return None
    inner = clause.this.this
    if not isinstance(inner, exp.Select) or not has_only(inner, "expressions", "distinct", "from_", "joins", "where"):
        return None
    distinct, values = inner.args.get("distinct"), [_value(value) for value in inner.expressions]
    if not isinstance(distinct, exp.Distinct) or not has_only(distinct) or not values:
        return None
    if any(isinstance(value, exp.Star) or value.find(exp.Star, exp.AggFunc, exp.Window) for value in values):
        return None
    counted: exp.Expression = exp.Count(this=exp.Distinct(expressions=[_told_apart(value) for value in values]))
    named = exp.Alias(this=counted, alias=item.args["alias"].copy()) if type(item) is exp.Alias else counted
    select.set("expressions", [named])
    for part in ("from_", "joins", "where"):
        select.set(part, inner.args.get(part))
    return select


def _value(item: exp.Expression) -> exp.Expression:
    inner = item.this if type(item) is exp.Alias else item
    return inner if isinstance(inner, exp.Expression) else item


def _told_apart(value: exp.Expression) -> exp.Expression:
    """Return a text that differs where values do, and is never NULL."""
    text = exp.Cast(this=value.copy(), to=exp.DataType(this=exp.DType.TEXT))
    nothing = exp.If(this=exp.Is(this=value.copy(), expression=exp.Null()), true=exp.Literal.string("n"))
    return exp.Case(ifs=[nothing], default=exp.DPipe(this=exp.Literal.string("v"), expression=text))

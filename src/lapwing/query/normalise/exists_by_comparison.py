"""EXISTS over a public table by one comparison: EXISTS (SELECT 1 FROM codes AS c WHERE v.age > c.factor).

Some factor is below v.age if and only if the least is. So it is a comparison with a public number, which is a constant:

    v.age > (SELECT MIN(c.factor) FROM codes AS c)

MIN and MAX pass over NULL, which compares with nothing. If the table has no factor, EXISTS is false. NOT EXISTS is the
other comparison, and holds where v.age is NULL. It is a condition on the same rows, so a unit has no more of them.
"""

from typing import Final

from sqlglot import exp

from lapwing.catalog.public import PublicTable
from lapwing.query.classify.kinds import visible_in
from lapwing.query.expressions.rows import is_column
from lapwing.query.from_clause.conditions import conjuncts
from lapwing.query.from_clause.scope import Scope, public_table
from lapwing.query.normalise.public_constants import public_values
from lapwing.query.normalise.public_rows_with_matches import existence_test, only_table
from lapwing.query.text.trees import has, nodes_of

_TURNED: Final[dict[type[exp.Expr], type[exp.Expression]]] = {
    exp.GT: exp.LT, exp.GTE: exp.LTE, exp.LT: exp.GT, exp.LTE: exp.GTE,
}  # fmt: skip
_OPPOSITE: Final[dict[type[exp.Expr], type[exp.Expression]]] = {
    exp.GT: exp.LTE, exp.GTE: exp.LT, exp.LT: exp.GTE, exp.LTE: exp.GT,
}  # fmt: skip


def with_compared_extremes(select: exp.Select, within: Scope) -> exp.Select | None:
    """Return a SELECT with comparisons in the place of such EXISTS; None if it has none."""
    if not within.catalog.public_tables or not has(select, exp.Exists):
        return None
    new, changed = select.copy(), False
    for where in nodes_of(new, exp.Where):
        for part in conjuncts(where.this, within.nowhere):
            other = _compared(part, within)
            if other is not None:
                part.replace(other)
                changed = True
    return new if changed else None


def _compared(test: exp.Expression, within: Scope) -> exp.Expression | None:
    """Return the comparison in the place of such a test; None of any other condition."""
    found = existence_test(test)
    if found is None:
        return None
    inner, tested, kept = found
    item, where = only_table(inner, [str(table.alias) for table in visible_in(inner)]), inner.args.get("where")
    public = None if item is None else public_table(item.this, within)
    if tested is not None or item is None or public is None or where is None or has(where, exp.Query):
        return None
    name, parts = item.alias_or_name, conjuncts(where.this, within.nowhere)
    outside = [part for part in parts if not all(_is_own(c, name, public) for c in nodes_of(part, exp.Column))]
    if len(outside) != 1 or type(outside[0]) not in _TURNED:
        return None
    comparison = outside[0]
    value, own, kind = comparison.args["this"], comparison.args["expression"], type(comparison)
    if is_column(value) and _is_own(value, name, public):
        value, own, kind = own, value, _TURNED[kind]
    if not (is_column(own) and _is_own(own, name, public)):
        return None
    if any(_is_own(column, name, public) for column in nodes_of(value, exp.Column)):
        return None
    extreme = exp.Min(this=own.copy()) if kind in (exp.GT, exp.GTE) else exp.Max(this=own.copy())
    query = exp.Select(expressions=[extreme], from_=exp.From(this=item.copy()))
    rest = [part.copy() for part in parts if part is not comparison]
    if rest:
        query.set("where", exp.Where(this=exp.and_(*rest, copy=False)))
    number, shown = exp.Subquery(this=query), query.copy()
    shown.set("expressions", [own.copy()])
    if public_values(shown, visible_in(inner), within) == []:
        return exp.Boolean(this=not kept)
    if kept:
        return kind(this=value.copy(), expression=number)
    other = _OPPOSITE[kind](this=value.copy(), expression=number)
    return exp.Paren(this=exp.Or(this=other, expression=exp.Is(this=value.copy(), expression=exp.Null())))


def _is_own(column: exp.Expression, name: str, public: PublicTable) -> bool:
    """Tell whether a column in a subquery is of its own table: a name without a table is, if there is such a column."""
    table = column.text("table")
    if table:
        return table.casefold() == name.casefold()
    return any(column.name.casefold() == own.name.casefold() for own in public.columns)

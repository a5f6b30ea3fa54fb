"""c CROSS JOIN LATERAL (SELECT SUM(o.x) AS t FROM o WHERE o.id = c.id) s, written as a join with grouped rows.

It becomes c LEFT JOIN (SELECT o.id AS k, SUM(o.x) AS t FROM o GROUP BY o.id) s ON s.k = c.id.

Aggregates without GROUP BY have one row for every row beside them. So the join is a LEFT JOIN. A count is 0 where
nothing matches. Row numbers keep the first n rows of each key where the subquery has ORDER BY and LIMIT n. Nothing
new is proven: what is bound is the join, and the key must be such that it is answered.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from sqlglot import exp

from lapwing.query.expressions.rows import is_star
from lapwing.query.from_clause.conditions import conjuncts
from lapwing.query.from_clause.listed_values import has_only, is_unconditional
from lapwing.query.normalise.without_rows import NULL, ZERO
from lapwing.query.text.trees import nodes_of

_KEY: Final = "lateral key {}"
_PLAIN: Final = ("expressions", "from_", "joins", "where", "order", "limit")


def with_grouped_laterals(select: exp.Expression) -> exp.Expression | None:
    """Return a SELECT without its first LATERAL subquery; None if there is none that is understood."""
    joins = select.args.get("joins") or []
    place = next((i for i, join in enumerate(joins) if isinstance(join.this, exp.Lateral)), None)
    if place is None or any(map(is_star, select.expressions)):
        return None
    join, lateral = joins[place], joins[place].this
    inner = lateral.this.this if isinstance(lateral.this, exp.Subquery) and has_only(lateral.this, "this") else None
    alias = lateral.args.get("alias")
    if not isinstance(inner, exp.Select) or not has_only(inner, *_PLAIN) or not is_unconditional(lateral, join):
        return None
    if alias is None or not has_only(alias, "this") or inner.args.get("from_") is None:
        return None
    inside = {item.alias_or_name.casefold() for item in _tables(inner)}
    before = [getattr(select.args.get("from_"), "this", None), *(other.this for other in joins[:place])]
    outside = {item.alias_or_name.casefold() for item in before if item is not None}
    found = _keys(inner, inside, outside - inside)
    if found is None:
        return None
    keys, rest = found
    aggregates = [isinstance(_value(item), (*ZERO, *NULL)) for item in inner.expressions]
    if all(aggregates) and not inner.args.get("order") and not inner.args.get("limit"):
        counts = _grouped(inner, keys, rest)
        if counts is None or not _with_zeros(select, alias.name, counts, lateral):
            return None
        side = "LEFT"
    elif not any(item.find(exp.AggFunc) for item in inner.expressions) and _first_rows(inner, keys, rest):
        side = str(join.args.get("side") or "")
    else:
        return None
    equal = [
        exp.EQ(this=exp.column(_KEY.format(i), alias.name, quoted=True), expression=outer)
        for i, (_, outer) in enumerate(keys)
    ]
    subquery = exp.Subquery(this=inner, alias=alias.copy())
    joins[place] = exp.Join(this=subquery, on=exp.and_(*equal, copy=False), **({"side": side} if side else {}))
    select.set("joins", joins)
    return select


def _tables(select: exp.Expression) -> Iterable[exp.Expression]:
    yield select.args["from_"].this
    yield from (join.this for join in select.args.get("joins") or [])


def _value(item: exp.Expression) -> exp.Expression:
    return item.this if type(item) is exp.Alias else item


def _keys(
    inner: exp.Expression, inside: set[str], outside: set[str]
) -> tuple[list[tuple[exp.Expression, exp.Expression]], list[exp.Expression]] | None:
    """Return the columns inside that equal some outside, and what else WHERE says; None if other things look outside.

    Every column that looks outside must say so by the name of its table.
    """
    where = inner.args.get("where")
    conditions = [] if where is None else conjuncts(where.this)
    keys, rest = list[tuple[exp.Expression, exp.Expression]](), list[exp.Expression]()
    for node in conditions:
        sides = _sides(node, inside, outside)
        if sides is None:
            rest.append(node)
        else:
            keys.append(sides)
    others = [*inner.expressions, *rest, *(join.args.get("on") for join in inner.args.get("joins") or [])]
    order = inner.args.get("order")
    columns = (c for node in (*others, order) if node is not None for c in nodes_of(node, exp.Column))
    return (keys, rest) if keys and not any(c.table.casefold() in outside for c in columns) else None


def _sides(node: exp.Expression, inside: set[str], outside: set[str]) -> tuple[exp.Expression, exp.Expression] | None:
    if not isinstance(node, exp.EQ) or not has_only(node, "this", "expression"):
        return None
    for own, other in ((node.this, node.expression), (node.expression, node.this)):
        if isinstance(own, exp.Column) and isinstance(other, exp.Column):
            named = own.table.casefold() in inside or (not own.table and len(inside) == 1)
            if named and other.table.casefold() in outside:
                return own.copy(), other.copy()
    return None


def _shown(inner: exp.Expression, keys: Sequence[tuple[exp.Expression, exp.Expression]]) -> None:
    named = [
        exp.Alias(this=own.copy(), alias=exp.to_identifier(_KEY.format(i), quoted=True))
        for i, (own, _) in enumerate(keys)
    ]
    inner.set("expressions", [*named, *inner.expressions])


def _where(inner: exp.Expression, rest: Sequence[exp.Expression]) -> None:
    inner.set("where", exp.Where(this=exp.and_(*(node.copy() for node in rest), copy=False)) if rest else None)


def _grouped(
    inner: exp.Expression, keys: Sequence[tuple[exp.Expression, exp.Expression]], rest: Sequence[exp.Expression]
) -> set[str] | None:
    """Group a SELECT of aggregates by keys, and return the names of its counts; None if one has no name."""
    if not all(type(item) is exp.Alias for item in inner.expressions):
        return None
    counts = {item.alias.casefold() for item in inner.expressions if isinstance(item.this, ZERO)}
    _shown(inner, keys)
    _where(inner, rest)
    inner.set("group", exp.Group(expressions=[own.copy() for own, _ in keys]))
    return counts


def _first_rows(
    inner: exp.Expression, keys: Sequence[tuple[exp.Expression, exp.Expression]], rest: Sequence[exp.Expression]
) -> bool:
    """Let a SELECT of rows keep the first of each key, as LIMIT says; tell whether it could."""
    order, limit = inner.args.get("order"), inner.args.get("limit")
    if (order is None) != (limit is None):
        return False
    if limit is not None and order is not None:
        if not has_only(limit, "expression") or not isinstance(limit.expression, exp.Literal):
            return False
        partition = [own.copy() for own, _ in keys]
        number = exp.Window(this=exp.RowNumber(), partition_by=partition, order=order.copy())
        inner.set("qualify", exp.Qualify(this=exp.LTE(this=number, expression=limit.expression.copy())))
    _shown(inner, keys)
    _where(inner, rest)
    inner.set("order", None)
    inner.set("limit", None)
    return True


def _with_zeros(select: exp.Expression, name: str, counts: set[str], lateral: exp.Expression) -> bool:
    """Write 0 for the counts of no rows, which the join leaves without a value; tell whether all could be found.

    A count that is named without its table is found where no alias of the SELECT list has its name. In a subquery it
    could be a column of the subquery.
    """
    aliases = {item.alias.casefold() for item in select.expressions if type(item) is exp.Alias}
    for column in nodes_of(select, exp.Column):
        if column.name.casefold() not in counts or column.table.casefold() not in ("", name.casefold()):
            continue
        if column.find_ancestor(exp.Lateral) is lateral:
            continue
        if not column.table:
            clause = column.find_ancestor(exp.Order, exp.Having, exp.Group, exp.Qualify)
            if column.find_ancestor(exp.Select, exp.Lateral) is not select:
                return False
            if clause is not None and clause.parent is select and column.name.casefold() in aliases:
                continue
        zero: exp.Expression = exp.Coalesce(this=column.copy(), expressions=[exp.Literal.number(0)])
        if column.parent is select and column.arg_key == "expressions":
            zero = exp.Alias(this=zero, alias=column.this.copy())
        column.replace(zero)
    return True

"""The most common value: MODE(x), APPROX_TOP_COUNT(x, 3), written as counts by value of which the largest are shown.

The counts are what is asked, charged and stored; which of them is the largest is read off their noisy values. So values
that are not public are chosen as other private keys are, and who has the answer also has that to SELECT x, COUNT(*) ….
"""

from typing import Final

from sqlglot import exp

from lapwing.query.expressions.rows import is_column
from lapwing.query.from_clause.listed_values import has_only

_LISTS: Final = ("APPROX_TOP_COUNT", "APPROX_TOP_K")


def with_most_common(select: exp.Expression) -> exp.Expression | None:
    """Return a SELECT with counts in the place of its most common value; None if it has none that is understood."""
    if any(select.args.get(name) is not None for name in ("having", "qualify", "distinct")):
        return None
    values = [item.this if type(item) is exp.Alias else item for item in select.expressions]
    places = [place for place, value in enumerate(values) if _counted(value) is not None]
    if len(places) != 1 or any(value.find(exp.AggFunc) for i, value in enumerate(values) if i != places[0]):
        return None
    (place,) = places
    counted, most = _counted(values[place]) or (None, None)
    if counted is None:
        return None
    return _of_list(select, counted, most) if most is not None else _of_mode(select, values, place, counted)


def _counted(value: exp.Expression) -> tuple[exp.Expression, exp.Expression | None] | None:
    """Return what is counted, and how many are to be shown; None for the one that a mode is."""
    if isinstance(value, exp.Mode) and value.this is not None and has_only(value, "this"):
        return value.this, None
    if isinstance(value, exp.WithinGroup) and isinstance(value.this, exp.Mode) and has_only(value.this):
        order = value.expression
        plain = isinstance(order, exp.Order) and has_only(order, "expressions") and len(order.expressions) == 1
        ordered = order.expressions[0] if plain and has_only(value, "this", "expression") else None
        if not isinstance(ordered, exp.Ordered) or not has_only(ordered, "this", "desc", "nulls_first"):
            return None
        return ordered.this, None
    if isinstance(value, exp.ApproxTopK) and has_only(value, "this", "expression"):
        return value.this, value.expression
    if (
        isinstance(value, exp.Anonymous)
        and str(value.this).upper() in _LISTS
        and has_only(value, "this", "expressions")
    ):
        return (value.expressions[0], value.expressions[1]) if len(value.expressions) == 2 else None
    return None


def _of_list(select: exp.Expression, counted: exp.Expression, most: exp.Expression) -> exp.Expression | None:
    """Return rows of a value and its count each."""
    if len(select.expressions) != 1 or any(select.args.get(name) for name in ("group", "order", "limit", "offset")):
        return None
    count = exp.Count(this=exp.Star())
    select.set("expressions", [_alias(counted.copy(), "value"), _alias(count, "count")])
    select.set("group", exp.Group(expressions=[counted.copy()]))
    select.set("order", _descending(count))
    select.set("limit", exp.Limit(expression=most.copy()))
    return select


def _of_mode(
    select: exp.Expression, values: list[exp.Expression], place: int, counted: exp.Expression
) -> exp.Expression | None:
    """Return one row, or one for each group, of those of the counts by group and value."""
    clause, count = select.args.get("group"), exp.Count(this=exp.Star())
    keys = [value for i, value in enumerate(values) if i != place]
    groups = [] if clause is None else clause.expressions
    if len(groups) != len(keys) or (clause is not None and not has_only(clause, "expressions")):
        return None
    item = select.expressions[place]
    name = item.alias if type(item) is exp.Alias else f"mode_{counted.name}" if is_column(counted) else "mode"
    item.replace(_alias(counted.copy(), name))
    known = exp.Not(this=exp.Is(this=counted.copy(), expression=exp.Null()))
    where = select.args.get("where")
    both = known if where is None else exp.And(this=exp.Paren(this=where.this.copy()), expression=known)
    select.set("where", exp.Where(this=both))
    select.set("group", exp.Group(expressions=[*(group.copy() for group in groups), counted.copy()]))
    if keys:
        rank = exp.Window(this=exp.RowNumber(), partition_by=[key.copy() for key in keys], order=_descending(count))
        select.set("qualify", exp.Qualify(this=exp.EQ(this=rank, expression=exp.Literal.number(1))))
        return select
    if select.args.get("order") is not None or select.args.get("limit") is not None:
        return None
    select.set("order", _descending(count))
    select.set("limit", exp.Limit(expression=exp.Literal.number(1)))
    return select


def _descending(count: exp.Expression) -> exp.Order:
    return exp.Order(expressions=[exp.Ordered(this=count.copy(), desc=True)])


def _alias(node: exp.Expression, name: str) -> exp.Expression:
    return exp.Alias(this=node, alias=exp.Identifier(this=name, quoted=True))

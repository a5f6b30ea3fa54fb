"""The number of distinct rows: SELECT COUNT(*) FROM (SELECT DISTINCT a, b FROM t), written as COUNT(DISTINCT …).

DISTINCT without the privacy unit merges rows of different units, which no relation here does; how many there are left
is a count of distinct values all the same. A row with a NULL is one of them, so that each value is counted as a text
which begins with 'v', and NULL as 'n'.

UNION, INTERSECT and EXCEPT of such rows are counted over the rows of all sides, each of which says in which sides it
is: those of UNION as distinct values, the others as the values that are in some sides and not in others, COUNT(DISTINCT
ON formula …), which no text of a question can say (`set_counts`). Sides that show the same of the same table and differ
in WHERE alone are read once, as a row then moves one value.
"""

from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from lapwing.query.classify.kinds import Kinds, RelationKind, Tables, visible_in
from lapwing.query.from_clause.listed_values import has_only
from lapwing.query.text.trees import has

MOST_SIDES: Final = 4
_SIDE: Final = "in side"


def with_distinct_rows(select: exp.Expression, kinds: Kinds) -> exp.Expression | None:
    """Return a SELECT that counts distinct rows as one of distinct values; None if it does nothing of that kind.

    Distinct rows that say whose they are, are rows of units, and those of an answer are counted as they were released.
    """
    if not has_only(select, "expressions", "from_", "limit") or len(select.expressions) != 1:  # LIMIT is over one row
        return None
    (item,) = select.expressions
    count = item.this if type(item) is exp.Alias else item
    plain = isinstance(count, exp.Count) and isinstance(count.this, exp.Star) and has_only(count, "this", "big_int")
    clause = select.args.get("from_")
    if not plain or not isinstance(clause, exp.From) or not isinstance(clause.this, exp.Subquery):
        return None
    if not has_only(clause.this, "this", "alias") or (clause.this.args.get("alias") or exp.TableAlias()).columns:
        return None
    inner, visible = _bare(clause.this.this), visible_in(select)
    if isinstance(inner, exp.SetOperation):
        return _of_sides(select, item, inner, kinds)
    values = _values(inner)
    if values is None or inner.args.get("distinct") is None or not _mixes_units(inner, kinds, visible):
        return None
    select.set("expressions", [_named(item, _distinct(values))])
    for part in ("from_", "joins", "where"):
        select.set(part, inner.args.get(part))
    return select


def _bare(node: exp.Expression) -> exp.Expression:
    """Return what stands in parentheses."""
    while isinstance(node, exp.Subquery) and has_only(node, "this"):
        node = node.this
    return node


def _named(item: exp.Expression, value: exp.Expression) -> exp.Expression:
    return exp.Alias(this=value, alias=item.args["alias"].copy()) if type(item) is exp.Alias else value


def _values(select: exp.Expression) -> list[exp.Expression] | None:
    """Return what a SELECT shows of each row; None if it is more than columns of rows."""
    if not isinstance(select, exp.Select) or not has_only(select, "expressions", "distinct", "from_", "joins", "where"):
        return None
    distinct = select.args.get("distinct")
    if distinct is not None and (not isinstance(distinct, exp.Distinct) or not has_only(distinct)):
        return None
    values = [value.this if type(value) is exp.Alias else value for value in select.expressions]
    if not values or any(isinstance(v, exp.Star) or v.find(exp.Star, exp.AggFunc, exp.Window) for v in values):
        return None
    return values


def _distinct(values: Sequence[exp.Expression]) -> exp.Expression:
    return exp.Count(this=exp.Distinct(expressions=[_told_apart(value) for value in values]))


def _told_apart(value: exp.Expression) -> exp.Expression:
    """Return a text that differs where values do, and is never NULL."""
    text = exp.Cast(this=value.copy(), to=exp.DataType(this=exp.DType.TEXT))
    nothing = exp.If(this=exp.Is(this=value.copy(), expression=exp.Null()), true=exp.Literal.string("n"))
    return exp.Case(ifs=[nothing], default=exp.DPipe(this=exp.Literal.string("v"), expression=text))


# ---- UNION, INTERSECT and EXCEPT -------------------------------------------------------------------------------------


def _mixes_units(select: exp.Expression, kinds: Kinds, visible: Tables) -> bool:
    """Tell whether a SELECT shows rows of units and does not say whose they are."""
    if not isinstance(select, exp.Select) or kinds.of(select, visible) is not RelationKind.PROTECTED:
        return False
    return not kinds.shows_unit(select, visible)


def _of_sides(
    select: exp.Expression, item: exp.Expression, inner: exp.SetOperation, kinds: Kinds
) -> exp.Expression | None:
    """Count the rows of a set operation over the rows of all of its sides, each of which says in which sides it is."""
    if _has_more_sides(inner):
        return None
    sides: list[exp.Select] = []
    formula = _formula(inner, sides)
    values = [_values(side) for side in sides]
    if not all(_mixes_units(side, kinds, visible_in(select)) for side in sides):
        return None
    if formula is None or None in values or len({len(shown or ()) for shown in values}) > 1:
        return None
    named = [exp.to_identifier(f"value {place}", quoted=True) for place, _ in enumerate(values[0] or ())]
    parts: dict[object, list[int]] = {}
    for number, side in enumerate(sides):
        parts.setdefault(_read(side, values[number] or ()) or number, []).append(number)
    united = not has(formula, exp.And)  # then every row is in one of the sides that count
    rows: exp.Select | exp.SetOperation | None = None
    for together in parts.values():
        part = _part(sides, together)
        shown = zip(values[together[0]] or (), named, strict=True)
        texts = [exp.Alias(this=_told_apart(value), alias=name.copy()) for value, name in shown]
        part.set("expressions", [*texts, *([] if united else part.expressions)])
        rows = part if rows is None else exp.Union(this=rows, expression=part, distinct=False)
    counted = exp.Distinct(expressions=[exp.column(name.copy()) for name in named], on=None if united else formula)
    select.set("expressions", [_named(item, exp.Count(this=counted))])
    alias = select.args["from_"].this.args.get("alias")
    select.set("from_", exp.From(this=exp.Subquery(this=rows, alias=alias)))
    return select


def _read(side: exp.Select, values: Sequence[exp.Expression]) -> tuple[object, ...] | None:
    """Return what a side reads and shows; None if its condition is not one on a row alone."""
    where = side.args.get("where")
    if where is not None and where.find(exp.Query):
        return None
    return (side.args.get("from_"), *(side.args.get("joins") or ()), "shown", *values)


def _part(sides: Sequence[exp.Select], together: Sequence[int]) -> exp.Select:
    """Return the rows of the sides that are read together, with a column for each side: whether a row is in it."""
    part = sides[together[0]].copy()
    part.set("distinct", None)
    if len(together) == 1:
        held: dict[int, exp.Expression] = {together[0]: exp.true()}
    else:
        conditions = [sides[number].args.get("where") for number in together]
        held = {n: exp.true() if c is None else c.this.copy() for n, c in zip(together, conditions, strict=True)}
        known = [exp.paren(condition.this.copy()) for condition in conditions if condition is not None]
        part.set("where", exp.Where(this=exp.or_(*known)) if len(known) == len(together) else None)
    columns = [(held.get(number, exp.false()), _side(number)) for number, _ in enumerate(sides)]
    part.set("expressions", [exp.Alias(this=is_in.copy(), alias=name) for is_in, name in columns])
    return part


def _side(number: int) -> exp.Identifier:
    return exp.to_identifier(f"{_SIDE} {number}", quoted=True)


def _has_more_sides(node: exp.Expression) -> bool:
    """Tell whether a set operation has more sides than are told apart: the sets that they are in double with each."""
    pending, sides = [node], 0
    while pending and sides + len(pending) <= MOST_SIDES:
        inner = _bare(pending.pop())
        if isinstance(inner, exp.SetOperation):
            pending += [inner.this, inner.expression]
        else:
            sides += 1
    return bool(pending)


def _formula(node: exp.Expression, sides: list[exp.Select]) -> exp.Expression | None:
    """Return what holds of the rows of a set operation, of their sides, and put its sides into a list."""
    node = _bare(node)
    if isinstance(node, exp.Select):
        sides.append(node)
        return exp.column(_side(len(sides) - 1))
    if not isinstance(node, exp.SetOperation) or not node.args.get("distinct"):
        return None
    if not has_only(node, "this", "expression", "distinct"):
        return None
    one, other = _formula(node.this, sides), _formula(node.expression, sides)
    if one is None or other is None:
        return None
    if isinstance(node, exp.Union):
        return exp.Or(this=one, expression=other)
    return exp.And(this=one, expression=exp.Not(this=other) if isinstance(node, exp.Except) else other)

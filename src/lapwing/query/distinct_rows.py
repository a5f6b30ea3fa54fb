"""The number of distinct rows: SELECT COUNT(*) FROM (SELECT DISTINCT a, b FROM t), written as COUNT(DISTINCT …).

DISTINCT without the privacy unit merges rows of different units, which no relation here does; how many there are left
is a count of distinct values all the same. A row with a NULL is one of them, so that each value is counted as a text
which begins with 'v', and NULL as 'n'.

UNION, INTERSECT and EXCEPT of such rows are counted by the distinct rows of unions. Write yᵢ for "not in side i": a
product of y over sides S is "in none of S", 1 − u_S. So what holds of a row is a polynomial Σ c_S·(1 − u_S) in whole
numbers, which is 0 for a row in no side, hence −Σ c_S·u_S, and the rows for which it holds are −Σ c_S·|⋃ S|: as
|A ∩ B| = |A| + |B| − |A ∪ B| and |A ∖ B| = |A ∪ B| − |B|.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from lapwing.query.listed_values import has_only

Polynomial = Counter[frozenset[int]]
"""The coefficient of each product of y over sides."""
MOST_SIDES: Final = 4
_SIDE: Final = "side of the set"


def with_distinct_rows(select: exp.Expression) -> exp.Expression | None:
    """Return a SELECT that counts distinct rows as one of distinct values; None if it does nothing of that kind."""
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
    inner = _bare(clause.this.this)
    if isinstance(inner, exp.SetOperation):
        return _of_sides(select, item, inner)
    values = _values(inner)
    if values is None or inner.args.get("distinct") is None:
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


def _of_sides(select: exp.Expression, item: exp.Expression, inner: exp.SetOperation) -> exp.Expression | None:
    """Count the rows of a set operation over the rows of all of its sides, each of which says which side it is of."""
    if _has_more_sides(inner):
        return None
    sides: list[exp.Select] = []
    held = _held(inner, sides)
    values = [_values(side) for side in sides]
    if held is None or None in values or len({len(shown or ()) for shown in values}) > 1:
        return None
    named = [exp.to_identifier(f"value {place}", quoted=True) for place, _ in enumerate(values[0] or ())]
    parts: list[exp.Select] = []
    for number, (side, shown) in enumerate(zip(sides, values, strict=True)):
        part = side.copy()
        part.set("distinct", None)
        texts = [exp.Alias(this=_told_apart(v), alias=name.copy()) for v, name in zip(shown or (), named, strict=True)]
        which = exp.Alias(this=exp.Literal.number(number), alias=exp.to_identifier(_SIDE, quoted=True))
        part.set("expressions", [*texts, which])
        parts.append(part)
    rows: exp.Select | exp.SetOperation = parts[0]
    for part in parts[1:]:
        rows = exp.Union(this=rows, expression=part, distinct=False)
    total = _total({sides_: -factor for sides_, factor in held.items() if sides_ and factor}, named)
    select.set("expressions", [_named(item, total)])
    alias = select.args["from_"].this.args.get("alias")
    select.set("from_", exp.From(this=exp.Subquery(this=rows, alias=alias)))
    return select


def _has_more_sides(node: exp.Expression) -> bool:
    """Tell whether a set operation has more sides than are told apart: polynomials double with each."""
    pending, sides = [node], 0
    while pending and sides + len(pending) <= MOST_SIDES:
        inner = _bare(pending.pop())
        if isinstance(inner, exp.SetOperation):
            pending += [inner.this, inner.expression]
        else:
            sides += 1
    return bool(pending)


def _held(node: exp.Expression, sides: list[exp.Select]) -> Polynomial | None:
    """Return what holds of the rows of a set operation, and put its sides into a list."""
    node = _bare(node)
    if isinstance(node, exp.Select):
        sides.append(node)
        return Polynomial({frozenset(): 1, frozenset({len(sides) - 1}): -1})
    if not isinstance(node, exp.SetOperation) or not node.args.get("distinct"):
        return None
    if not has_only(node, "this", "expression", "distinct"):
        return None
    one, other = _held(node.this, sides), _held(node.expression, sides)
    if one is None or other is None:
        return None
    if isinstance(node, exp.Intersect):
        return _product(one, other)
    if isinstance(node, exp.Except):
        return _product(one, _denied(other))
    return _denied(_product(_denied(one), _denied(other)))


def _product(one: Polynomial, other: Polynomial) -> Polynomial:
    """Multiply: a y twice is that y."""
    result = Polynomial()
    for left, factor in one.items():
        for right, times in other.items():
            result[left | right] += factor * times
    return result


def _denied(one: Polynomial) -> Polynomial:
    result = Polynomial({sides: -factor for sides, factor in one.items()})
    result[frozenset()] += 1
    return result


def _total(factors: dict[frozenset[int], int], named: Sequence[exp.Identifier]) -> exp.Expression:
    """Return the sum of counts of distinct rows of several sides, each times its factor."""
    total: exp.Expression | None = None
    for sides, factor in sorted(factors.items(), key=lambda pair: (-pair[1], sorted(pair[0]))):
        which = exp.column(exp.to_identifier(_SIDE, quoted=True))
        inside = exp.In(this=which, expressions=[exp.Literal.number(side) for side in sorted(sides)])
        chosen = [exp.Case(ifs=[exp.If(this=inside.copy(), true=exp.column(name.copy()))]) for name in named]
        count: exp.Expression = exp.Count(this=exp.Distinct(expressions=chosen))
        if abs(factor) != 1:
            count = exp.Mul(this=exp.Literal.number(abs(factor)), expression=count)
        if total is None:
            total = count if factor > 0 else exp.Neg(this=count)
        else:
            total = exp.Add(this=total, expression=count) if factor > 0 else exp.Sub(this=total, expression=count)
    return total if total is not None else exp.Literal.number(0)

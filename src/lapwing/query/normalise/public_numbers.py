"""Aggregates of public tables in conditions: price > 1.2 * (SELECT AVG(j.price) FROM items AS j WHERE j.kind = i.kind).

A public table is no secret. So such a number is a constant, or one for each value of a column of the rows outside:
CASE i.kind WHEN 'a' THEN 3 WHEN 'b' THEN 5 END. The constants are written into the query, which is bound, named and
priced as if its author had looked them up. Should the public table change, the query is another one.

A value that no row inside has meets no rows there: of these COUNT is 0, and every other aggregate NULL.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final

from sqlglot import exp

from lapwing.query.classify.asked_constants import numbers_in
from lapwing.query.classify.kinds import Kinds, RelationKind, visible_in
from lapwing.query.classify.outer_keys import compared_with_outer
from lapwing.query.classify.scalar_subqueries import scalars_in
from lapwing.query.expressions.as_read import as_read, is_far
from lapwing.query.expressions.attempts import NO_PUBLIC_ROWS
from lapwing.query.expressions.expression import ColumnReference, Constant
from lapwing.query.expressions.rows import attempted
from lapwing.query.from_clause.common_tables import bare, with_named
from lapwing.query.from_clause.conditions import conjuncts
from lapwing.query.from_clause.groupings import is_aggregated
from lapwing.query.from_clause.listed_values import has_only
from lapwing.query.from_clause.scope import PublicInput, Scope
from lapwing.query.from_clause.subqueries import unnamed
from lapwing.query.normalise.public_constants import type_name
from lapwing.query.relations.public_rows import Combinations, JoinedRows, as_stored
from lapwing.query.text.literals import literal, null_of
from lapwing.query.text.trees import copied, depth_first

MOST_ROWS: Final = 20_000
"""Rows of a public table that are aggregated here."""
MOST_VALUES: Final = 1_000
"""Values for each of which there is a constant."""
Rows = Sequence[tuple[Constant, ...]]
_STRICT: Final = (exp.Paren, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Literal)
"""These may stand around the aggregates: each is NULL where one of them is."""


def with_public_numbers(select: exp.Select, within: Scope) -> exp.Select | None:
    """Return a SELECT with constants in the place of aggregates of public tables that its rows are compared with.

    Numbers that are the same for all rows are constants where rows of units are. Beside results and public rows they
    are results of their own (`bind.compositions`), unless they follow a column of the rows outside.
    """
    if not any(isinstance(query, exp.Select) and is_aggregated(query) for query in map(bare, _subqueries(select))):
        return None
    new, changed = copied(select), False
    of_rows: dict[int, frozenset[int]] = {}  # found once for each SELECT, as one may have hundreds
    for node in reversed(_subqueries(new)):  # inner ones before outer ones
        outer = node.find_ancestor(exp.Select)
        kinds = {*Kinds(within).in_from(outer, visible_in(outer))} if isinstance(outer, exp.Select) else set()
        protected = RelationKind.PROTECTED in kinds
        if not isinstance(outer, exp.Select) or not (protected or kinds == {RelationKind.PUBLIC}):
            continue
        if id(outer) not in of_rows:
            of_rows[id(outer)] = frozenset(map(id, _of_rows(outer)))
        if id(node) not in of_rows[id(outer)]:
            continue
        other = _written(node, outer, within, alike=protected)
        if other is not None:
            node.replace(other)
            changed = True
    return new if changed else None


def _subqueries(select: exp.Select) -> list[exp.Subquery]:
    return depth_first(select, exp.Subquery)


def _of_rows(select: exp.Select) -> Iterator[exp.Subquery]:
    """Yield the subqueries that are values in the rows of a SELECT, and stand beside no aggregate of them."""
    yield from numbers_in(select)
    if not is_aggregated(select):
        for item in select.expressions:
            yield from scalars_in(exp.Paren(this=item) if isinstance(item, exp.Subquery) else item)


def _written(node: exp.Subquery, outer: exp.Select, within: Scope, *, alike: bool) -> exp.Expression | None:
    """Return what is written in the place of a subquery; None if it is no aggregate of public rows.

    Args:
        alike: Whether it may be the same for all rows outside.
    """
    query = bare(node)
    if not has_only(node, "this") or not isinstance(query, exp.Select) or not is_aggregated(query):
        return None
    if not has_only(query, "expressions", "from_", "joins", "where") or len(query.expressions) != 1:
        return None
    item = query.expressions[0]
    item = item.this if isinstance(item, exp.Alias) else item
    aggregates = _aggregates(item)
    where = query.args.get("where")
    conditions = [] if where is None else _conditions(where.this, within)
    compared = [(each, *pair) for each in conditions if (pair := compared_with_outer(each, query, outer, within))]
    if not aggregates or len(compared) > 1 or not (compared or alike):
        return None
    kept = [each for each in conditions if not any(each is other for other, *_ in compared)]
    key = compared[0][1] if compared else exp.Literal.number(1)
    found = _rows(query, [key, *(aggregate.this for aggregate in aggregates)], kept, visible_in(node), within)
    if found is None:
        return None
    rows, kinds = found
    unknown = null_of(kinds[1] if type(item) in (exp.Min, exp.Max) else "number")
    groups: dict[Constant, list[tuple[Constant, ...]]] = {}
    for value, *values in rows:
        groups.setdefault(value, []).append(tuple(values))
    if not compared:
        return _computed(item, aggregates, groups.get(Fraction(1), [])) or unknown
    groups.pop(None, None)  # what is NULL equals nothing
    branches = {value: _computed(item, aggregates, groups[value]) for value in groups}
    known = {value: other for value, other in branches.items() if other is not None}
    nothing = _computed(item, aggregates, [])
    if len(known) > MOST_VALUES:
        return None
    if not known:
        return nothing or unknown
    ifs = [exp.If(this=literal(value), true=other) for value, other in known.items()]
    return exp.Case(this=compared[0][2].copy(), ifs=ifs, default=nothing)


def _conditions(where: exp.Expression, within: Scope) -> list[exp.Expression]:
    """Return what a condition says, one by one; of an OR first what all of its branches say, and then the rest."""
    found: list[exp.Expression] = []
    for condition in conjuncts(where, within.nowhere):
        branches = [conjuncts(branch, within.nowhere) for branch in _branches(condition)]
        shared = [node for node in branches[0] if all(node in other for other in branches[1:])]
        rest = [[node for node in branch if node not in shared] for branch in branches]
        if len(branches) == 1 or not shared:
            found.append(condition)
            continue
        found += shared
        if all(rest):
            found.append(exp.Paren(this=exp.or_(*(exp.and_(*each, copy=True) for each in rest), copy=False)))
    return found


def _branches(node: exp.Expression) -> list[exp.Expression]:
    while isinstance(node, exp.Paren):
        node = node.this
    return [*_branches(node.this), *_branches(node.expression)] if isinstance(node, exp.Or) else [node]


def _rows(
    query: exp.Select,
    shown: Sequence[exp.Expression],
    conditions: Sequence[exp.Expression],
    visible: Sequence[exp.Expression],
    within: Scope,
) -> tuple[Rows, Sequence[str]] | None:
    """Return what public rows of a subquery show, with the names of the types; None if there are none, or too many."""
    other = copied(query)
    items = [exp.Literal.number(1) if isinstance(node, exp.Star) else node for node in shown]
    named = [exp.alias_(copied(node), f"value{place}", quoted=True) for place, node in enumerate(items)]
    other.set("expressions", named)
    other.set("where", exp.Where(this=exp.and_(*conditions, copy=True)) if conditions else None)
    found = attempted(NO_PUBLIC_ROWS, unnamed, with_named(other, visible), within)
    if not isinstance(found, PublicInput):
        return None
    floats = as_stored(found.rows.table)
    columns = found.source.columns.values()
    values = tuple(floats.get(c.name) or as_read(c) if isinstance(c, ColumnReference) else as_read(c) for c in columns)
    every = replace(found.rows, columns=(*found.rows.columns, *floats.values()))
    joined = JoinedRows(rows=every, variables=every.columns)
    rows = within.facts.rows(Combinations(tables=(joined,), lists=(), conditions=(), shown=values), MOST_ROWS)
    if rows is None or any(is_far(value) for row in rows for value in row):
        return None
    return rows, [type_name(value.type) for value in values]


# ---- the aggregates --------------------------------------------------------------------------------------------------


def _aggregates(item: exp.Expression) -> list[exp.Expression]:
    """Return the aggregates of an expression; none if there is anything in it that is not known."""
    if type(item) in _AGGREGATES:
        plain = has_only(item, "this", "big_int") and not isinstance(item.this, exp.Distinct)
        return [item] if plain and item.this is not None else []
    if isinstance(item, exp.Literal):
        return []
    parts = list(item.iter_expressions())
    found = [_aggregates(part) for part in parts]
    known = isinstance(item, _STRICT) and all(
        inner or isinstance(part, exp.Literal) for inner, part in zip(found, parts, strict=True)
    )
    return [aggregate for inner in found for aggregate in inner] if known else []


def _computed(item: exp.Expression, aggregates: Sequence[exp.Expression], rows: Rows) -> exp.Expression | None:
    """Return an expression with the values of its aggregates over rows; None where it is NULL."""
    values = []
    for place, aggregate in enumerate(aggregates):
        known = [row[place] for row in rows if row[place] is not None]
        value = _AGGREGATES[type(aggregate)](known)
        if value is None:
            return None
        values.append(value)
    each = iter(values)

    def with_value(node: exp.Expr) -> exp.Expr:
        return exp.Paren(this=literal(next(each))) if type(node) in _AGGREGATES else node

    return exp.Paren(this=copied(item).transform(with_value))


def _sum(values: Sequence[Constant]) -> Fraction | None:
    numbers = [value for value in values if isinstance(value, Fraction | int) and not isinstance(value, bool)]
    return sum(numbers, Fraction(0)) if numbers and len(numbers) == len(values) else None


def _mean(values: Sequence[Constant]) -> float | None:
    """Return a mean as the double that SQL has of it."""
    total = _sum(values)
    return None if total is None else float(total / len(values))


def _end(choose: Callable[..., Constant]) -> Callable[[Sequence[Constant]], object]:
    return lambda values: choose(values) if values else None


_AGGREGATES: Final[Mapping[type[exp.Expr], Callable[[Sequence[Constant]], object]]] = {
    exp.Count: lambda values: len(values),
    exp.Sum: _sum,
    exp.Avg: _mean,
    exp.Min: _end(min),
    exp.Max: _end(max),
}
"""Each over the values that are not NULL."""

"""Numbers of rows beside public rows: SELECT code, (SELECT COUNT(*) FROM visits v WHERE v.code = c.code) FROM codes c.

Such a number is asked for each value of a column. So it is one column of a result by groups, which is joined:

    SELECT c.code, COALESCE(q.n, 0) FROM codes c LEFT JOIN (
        SELECT code, COUNT(*) AS n FROM visits WHERE code IN (SELECT code FROM codes) GROUP BY code
    ) AS q ON q.code = c.code

The result is a query of its own, with a price, and the join is post-processing (`docs/theory/relations.md`, 2). WHERE
leaves the groups that the public rows can ask for, so that the values of its keys are public. A value without a group
is one that no row can have, or NULL. There COUNT is 0, and every other aggregate NULL, as SQL says of no rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from lapwing.query.classify.kinds import Kinds, RelationKind, items_of, visible_in
from lapwing.query.classify.outer_keys import compared_with_outer, restricted
from lapwing.query.classify.scalar_subqueries import scalars_in
from lapwing.query.expressions.rows import is_star
from lapwing.query.from_clause.common_tables import bare
from lapwing.query.from_clause.conditions import conjuncts
from lapwing.query.from_clause.groupings import is_aggregated
from lapwing.query.from_clause.listed_values import has_only
from lapwing.query.from_clause.scope import Scope
from lapwing.query.text.trees import copied

_AGGREGATES: Final = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Median)
_CLAUSES: Final = ("expressions", "from_", "joins", "where")
_KEY, _VALUE = "key of subquery", "value of subquery"


def with_joined_results(select: exp.Select, within: Scope) -> exp.Select | None:
    """Return a SELECT over public rows with joins in the place of numbers of rows; None if it has none.

    Of a SELECT that aggregates the public rows it is None.
    """
    if is_aggregated(select) or not any(_subqueries(select)):
        return None
    if set(Kinds(within).in_from(select)) != {RelationKind.PUBLIC}:
        return None
    new, joined = copied(select), list[_Result]()
    for node in list(_subqueries(new)):
        found = _Result.of(node, new, within)
        if found is None:
            continue
        place = joined.index(found) if found in joined else len(joined)
        joined += [found] if place == len(joined) else []
        other, shown = found.value(place), node.parent is new and node.arg_key == "expressions"
        node.replace(exp.alias_(other, "count" if found.counts else "value") if shown else other)
    if not joined or not _shows_its_own(new):
        return None
    for place, result in enumerate(joined):
        new.append("joins", result.join(place))
    return new


def _subqueries(select: exp.Select) -> Iterator[exp.Subquery]:
    """Yield the subqueries that stand for a value in the SELECT list, WHERE or ORDER BY."""
    for part in [*select.expressions, select.args.get("where"), select.args.get("order")]:
        if isinstance(part, exp.Subquery):
            yield part
        elif part is not None:
            yield from scalars_in(part)


def _shows_its_own(select: exp.Select) -> bool:
    """Write the stars of a SELECT as those of its one table; tell whether each star is of a table then."""
    items = items_of(select)
    for node in [node for node in select.expressions if is_star(node) and isinstance(node, exp.Star)]:
        if len(items) > 1 or not has_only(node) or not items[0].alias_or_name:
            return False
        node.replace(exp.Column(this=copied(node), table=_quoted(items[0].alias_or_name)))
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Result:
    """A number for each value of a column.

    Args:
        query: What is asked, by groups: it shows the key and the number.
        outer: The column of the public rows that a key is equal to.
        counts: Whether the number is 0 where there are no rows.
    """

    query: exp.Select
    outer: exp.Expression
    counts: bool

    @classmethod
    def of(cls, node: exp.Subquery, select: exp.Select, within: Scope) -> "_Result | None":
        """Return what a subquery asks for each value; None if it is no aggregate of rows of units."""
        query = bare(node)
        if not has_only(node, "this") or not isinstance(query, exp.Select) or len(query.expressions) != 1:
            return None
        where, item = query.args.get("where"), query.expressions[0].unalias()
        if where is None or not isinstance(item, _AGGREGATES) or not has_only(query, *_CLAUSES):
            return None
        kinds = set(Kinds(within).in_from(query, visible_in(query)))
        if RelationKind.PROTECTED not in kinds or RelationKind.RELEASED in kinds:
            return None
        conditions = conjuncts(where.this, within.nowhere)
        compared = [(c, pair) for c in conditions if (pair := compared_with_outer(c, query, select, within))]
        if len(compared) != 1:
            return None
        (condition, (inner, outer)) = compared[0]
        kept = [copied(other) for other in conditions if other is not condition]
        grouped = copied(query)
        grouped.set("expressions", [exp.alias_(copied(inner), _KEY), exp.alias_(copied(item), _VALUE)])
        grouped.set("where", exp.Where(this=exp.and_(*kept, copy=False)) if kept else None)
        grouped.set("group", exp.Group(expressions=[copied(inner)]))
        narrower = restricted(grouped, inner, outer, select, within)
        return None if narrower is None else cls(query=narrower, outer=outer, counts=isinstance(item, exp.Count))

    def value(self, place: int) -> exp.Expression:
        """Return what stands in the place of the subquery."""
        column = exp.column(_VALUE, table=_quoted(f"subquery {place}"))
        return exp.Coalesce(this=column, expressions=[exp.Literal.number(0)]) if self.counts else column

    def join(self, place: int) -> exp.Join:
        """Return the join that gives the value."""
        name = _quoted(f"subquery {place}")
        on = exp.EQ(this=exp.column(_KEY, table=copied(name)), expression=copied(self.outer))
        item = exp.Subquery(this=self.query, alias=exp.TableAlias(this=name))
        return exp.Join(this=item, side="LEFT", on=on)


def _quoted(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)

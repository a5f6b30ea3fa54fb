"""GROUP BY with ROLLUP, CUBE and GROUPING SETS over an answer: the answers of each set, below each other.

    SELECT channel, id, SUM(sales) FROM a GROUP BY ROLLUP (channel, id)

is `SELECT channel, id, SUM(sales) FROM a GROUP BY channel, id`, UNION ALL the same with NULL in the place of `id`, and
so on: as SQL defines it. Released rows are added up in several ways, which stays post-processing.
"""

from collections.abc import Collection
from typing import Final

from sqlglot import exp

from lapwing.errors import RefusalCause
from lapwing.query.aggregates.group_by import grouping_sets
from lapwing.query.expressions.rows import RowScope, is_column, same_name
from lapwing.query.from_clause.common_tables import all_of
from lapwing.query.from_clause.groupings import is_aggregated
from lapwing.query.from_clause.select_list import chosen
from lapwing.query.text.trees import nodes_of

_SETS: Final = (exp.GroupingSets, exp.Rollup, exp.Cube)
_AFTERWARDS: Final = ("order", "limit", "offset")
"""Clauses about the rows of all sets together."""


def below_each_other(select: exp.Select, rows: RowScope) -> exp.Select | None:
    """Return a SELECT with grouping sets as one over the UNION ALL of a SELECT for each; None if it has none.

    Raises:
        QueryRefused: Where it has window functions beside them, or is ordered by what it does not show.
    """
    clause = select.args.get("group")
    if clause is None or not any(isinstance(node, _SETS) for node in clause.expressions):
        return None
    rows.only(clause, "expressions")
    for window in nodes_of(select, exp.Window):
        raise rows.refusal(
            window,
            RefusalCause.GROUPING_SETS_NOT_SUPPORTED,
            "Window functions beside grouping sets are not supported",
            "Compute them outside.",
        )
    sets = grouping_sets(clause.expressions, lambda node: chosen(node, select, rows).copy(), rows)
    every = {key for keys in sets for key in keys}
    named = select.copy()
    named.set("expressions", [_named(item, place) for place, item in enumerate(named.expressions)])
    legs = [_of_set(named, keys, every) for keys in sets]
    union: exp.Query = legs[0]
    for leg in legs[1:]:
        union = exp.Union(this=union, expression=leg, distinct=False)
    outer = all_of(exp.Subquery(this=union, alias=exp.TableAlias(this=exp.to_identifier("sets"))))
    for name in ("with_", *_AFTERWARDS):
        outer.set(name, named.args.get(name))
    for term in outer.args["order"].expressions if outer.args.get("order") is not None else ():
        _place(term, named.expressions, rows)
    return outer


def _named(item: exp.Expression, place: int) -> exp.Expression:
    if isinstance(item, exp.Alias):
        return item
    return exp.Alias(this=item, alias=exp.to_identifier(item.name if is_column(item) else f"column{place}"))


def _of_set(select: exp.Select, keys: Collection[exp.Expression], every: Collection[exp.Expression]) -> exp.Select:
    """Return the SELECT of one set, without what is about all rows."""
    leg = select.copy()
    for name in ("with_", *_AFTERWARDS):
        leg.set(name, None)
    having = leg.args.get("having")
    for node in [*leg.expressions, *([] if having is None else [having])]:
        _without(node, keys, every)
    leg.set("group", exp.Group(expressions=[key.copy() for key in keys]) if keys else None)
    if not is_aggregated(leg):  # it is one row all the same
        leg.set("having", exp.Having(this=exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(0))))
    return leg


def _without(node: exp.Expression, keys: Collection[exp.Expression], every: Collection[exp.Expression]) -> None:
    """Write NULL for keys that a set does not have, and what GROUPING is of it."""
    for child in list(node.iter_expressions()):
        if isinstance(child, exp.Grouping) and len(child.expressions) == 1 and child.expressions[0] in every:
            child.replace(exp.Literal.number(int(child.expressions[0] not in keys)))
        elif child in every and child not in keys:
            child.replace(exp.Null())
        elif not isinstance(child, exp.AggFunc | exp.Filter):
            _without(child, keys, every)


def _place(term: exp.Expression, items: Collection[exp.Expression], rows: RowScope) -> None:
    """Write the position of a column that rows are ordered by."""
    node = term.this
    if isinstance(node, exp.Literal) and not node.is_string:
        return
    for place, item in enumerate(items, start=1):
        if node == item.this or (is_column(node) and same_name(node.this, item.alias)):
            term.set("this", exp.Literal.number(place))
            return
    raise rows.refusal(
        node,
        RefusalCause.GROUPING_SETS_NOT_SUPPORTED,
        "ORDER BY beside grouping sets takes columns that are shown",
        "Show it.",
    )

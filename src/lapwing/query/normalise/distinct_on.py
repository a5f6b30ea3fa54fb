"""SELECT DISTINCT ON (a) … ORDER BY a, b, written as QUALIFY ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) = 1.

PostgreSQL shows the first row of each group in the order of ORDER BY. The rule of QUALIFY applies: over rows `a`
must be the unit, and over a result it may be any key. Without an order any row could come first. So that is not written
anew. As in PostgreSQL, a name that is a name of the SELECT list and nothing else means its value.
"""

from sqlglot import exp

from lapwing.query.expressions.rows import is_column
from lapwing.query.from_clause.listed_values import has_only
from lapwing.query.from_clause.select_list import placed


def with_first_rows(select: exp.Expression) -> exp.Expression | None:
    """Return a SELECT without DISTINCT ON; None if it has none that is understood."""
    distinct, order = select.args.get("distinct"), select.args.get("order")
    keys = distinct.args.get("on") if isinstance(distinct, exp.Distinct) and has_only(distinct, "on") else None
    if not isinstance(keys, exp.Tuple) or not has_only(keys, "expressions") or not keys.expressions:
        return None
    if not isinstance(order, exp.Order) or not has_only(order, "expressions") or select.args.get("qualify"):
        return None
    groups = [_meant(key, select) for key in keys.expressions]
    terms = [(_meant(term.this, select), term) for term in order.expressions if isinstance(term, exp.Ordered)]
    ordered = [_ordered(value, term) for value, term in terms if value is not None and value not in groups]
    if None in groups or any(value is None for value, _ in terms) or not ordered:
        return None
    partition = [group.copy() for group in groups if group is not None]
    number = exp.Window(this=exp.RowNumber(), partition_by=partition, order=exp.Order(expressions=ordered))
    select.set("qualify", exp.Qualify(this=exp.EQ(this=number, expression=exp.Literal.number(1))))
    select.set("distinct", None)
    # An order inside says which rows come first, and that alone where no LIMIT chooses of them.
    if select.parent is not None and not select.args.get("limit") and not select.args.get("offset"):
        select.set("order", None)
    return select


def _meant(node: exp.Expression, select: exp.Expression) -> exp.Expression | None:
    """Return what a key or a term of the order means: a place in the SELECT list, the name of an item, or itself."""
    items = select.expressions
    if isinstance(node, exp.Literal):
        item = placed(node, items)
        return item.this if type(item) is exp.Alias else None if isinstance(item, exp.Star) else item
    if is_column(node) and node.args.get("table") is None:
        named = [
            item.this for item in items if type(item) is exp.Alias and item.alias.casefold() == node.name.casefold()
        ]
        return named[0] if len(named) == 1 else node
    return node


def _ordered(value: exp.Expression, term: exp.Expression) -> exp.Expression:
    other = term.copy()
    other.set("this", value.copy())
    return other

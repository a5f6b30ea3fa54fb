"""Bind GROUP BY: the keys of each part of the answer, be it one, or several by ROLLUP, CUBE and GROUPING SETS."""

from collections.abc import Callable, Hashable, Sequence
from itertools import combinations, product
from typing import TypeVar

from sqlglot import exp

from lapwing.errors import RefusalCause
from lapwing.query.aggregates.scope import has_aggregate
from lapwing.query.expressions.as_read import key_of
from lapwing.query.expressions.calls import bind_both
from lapwing.query.expressions.expression import ColumnReference, Expression, Literal, columns_of
from lapwing.query.expressions.rows import RowScope, is_column, same_name
from lapwing.query.expressions.types import Real
from lapwing.query.measures.measures import Key, declared_values
from lapwing.query.relations.domains import listed_by, values_of
from lapwing.query.relations.public_rows import PublicFacts
from lapwing.query.relations.relation import FilteredRows, ProtectedRows

MOST_SETS = 64
_GROUPED = (exp.GroupingSets, exp.Rollup, exp.Cube, exp.Tuple, exp.Paren)

Sets = tuple[tuple[Key, ...], ...]
Named = TypeVar("Named", bound=Hashable)


def bind_keys(select: exp.Select, rows: RowScope, selection: FilteredRows, facts: PublicFacts) -> Sets:
    """Return the keys of every grouping set, in the order of the text."""
    clause, alone = select.args.get("group"), not any(map(has_aggregate, select.expressions))
    if clause is None and (select.args.get("distinct") is None or not alone):
        return ((),)
    clause = clause or exp.Group(all=True)  # SELECT DISTINCT k: each value once
    rows.only(clause, "expressions", "all")

    def key(node: exp.Expression) -> Key:
        return _key(_aliased(node, select, rows), rows, selection, facts)

    if clause.args.get("all"):
        items = [item.this if type(item) is exp.Alias else item for item in select.expressions]
        return (tuple(dict.fromkeys(key(item) for item in items if not has_aggregate(item))),)
    if not any(isinstance(item, _GROUPED) for item in clause.expressions):
        return (tuple(dict.fromkeys(map(key, clause.expressions))),)
    return grouping_sets(clause.expressions, key, rows)


def _aliased(node: exp.Expression, select: exp.Select, rows: RowScope) -> exp.Expression:
    """Resolve GROUP BY 1 and GROUP BY alias to what the SELECT list says there."""
    if is_column(node) and any(same_name(node.this, name) for source in rows.sources for name in source.columns):
        return node
    from lapwing.query.from_clause.select_list import chosen  # here: most keys are columns

    return chosen(node, select, rows)


def _key(node: exp.Expression, rows: RowScope, selection: FilteredRows, facts: PublicFacts) -> Key:
    if rows.is_unit(node):
        remedy = "Group by another column, or by this one in a subquery, and aggregate what comes out."
        reason = f"'{node.name}' says whose row each is (the privacy unit), so no result has a group for each"
        raise rows.refusal(node, RefusalCause.SHOWS_UNITS, reason, remedy)
    if has_aggregate(node):
        reason, remedy = "GROUP BY takes columns, not aggregates", "Aggregate in a subquery first."
        raise rows.refusal(node, RefusalCause.INVALID_GROUP_KEY, reason, remedy)
    # Most keys are names of columns; other expressions need the whole of `calls`.
    value = rows.column(node) if is_column(node) else bind_both(node, rows)
    if isinstance(value, Literal):
        reason = "GROUP BY takes columns, not constants"
        raise rows.refusal(node, RefusalCause.INVALID_GROUP_KEY, reason, "Leave it out.")
    relation = selection.relation
    domain = declared_values(value, relation.table) if isinstance(relation, ProtectedRows) else None
    if domain is None:
        domain = values_of(value, relation, facts)
    expression: Expression = value
    if value.read is not None:
        among = None if domain is None else listed_by(selection, value) or domain
        expression = key_of(value, None if among is None else among.listed)
    if domain is not None:
        return Key(expression=expression, values=domain.listed, other=domain.other)
    if isinstance(expression.type, Real):
        from lapwing.query.aggregates.scaled_keys import unscaled  # here: few keys are fractions

        return _key(unscaled(node, rows), rows, selection, facts)
    return Key(expression=expression, values=None)


def has_all_values(sets: Sets, selection: FilteredRows) -> bool:
    """Tell whether a table's rows are grouped by a column, of which WHERE says nothing: it can have all its values."""
    column = sets[0][0].expression if len(sets[0]) == 1 and isinstance(selection.relation, ProtectedRows) else None
    names = {column.name, (column.cleaned or column).name} if isinstance(column, ColumnReference) else set[str]()
    return bool(names) and names.isdisjoint(columns_of(selection.where))


# ---- several sets ----------------------------------------------------------------------------------------------------


def grouping_sets(
    nodes: Sequence[exp.Expression], key: Callable[[exp.Expression], Named], rows: RowScope
) -> tuple[tuple[Named, ...], ...]:
    """Return the grouping sets of a GROUP BY list, each once: one of every item, in all combinations.

    Raises:
        QueryRefused: If there are too many.
    """
    choices = [_sets(node, key, rows) for node in nodes]
    count = 1
    for sets in choices:
        count *= len(sets)
        if count > MOST_SETS:
            reason = f"GROUP BY has more than {MOST_SETS} grouping sets"
            raise rows.refusal(nodes[0], RefusalCause.TOO_MANY_GROUPING_SETS, reason, "Ask for fewer at a time.")
    distinct: dict[frozenset[Named], tuple[Named, ...]] = {}
    for parts in product(*choices):
        keys = tuple(dict.fromkeys(key for part in parts for key in part))
        distinct.setdefault(frozenset(keys), keys)
    return tuple(distinct.values())


def _sets(
    node: exp.Expression, key: Callable[[exp.Expression], Named], rows: RowScope
) -> tuple[tuple[Named, ...], ...]:
    """Return the grouping sets of one item of the list."""
    match node:
        case exp.GroupingSets():
            rows.only(node, "expressions")
            return tuple(keys for part in node.expressions for keys in _sets(part, key, rows))
        case exp.Rollup():
            rows.only(node, "expressions")
            items = [_item(part, key, rows) for part in node.expressions]
            return tuple(_joined(items[:end]) for end in range(len(items), -1, -1))
        case exp.Cube():
            rows.only(node, "expressions")
            if 2 ** len(node.expressions) > MOST_SETS:
                reason = f"CUBE has more than {MOST_SETS} grouping sets"
                raise rows.refusal(node, RefusalCause.TOO_MANY_GROUPING_SETS, reason, "Ask for fewer at a time.")
            items = [_item(part, key, rows) for part in node.expressions]
            sizes = range(len(items), -1, -1)
            return tuple(_joined(chosen) for size in sizes for chosen in combinations(items, size))
        case _:
            return (_item(node, key, rows),)


def _item(node: exp.Expression, key: Callable[[exp.Expression], Named], rows: RowScope) -> tuple[Named, ...]:
    """Return the keys of an expression, or of several in parentheses."""
    if isinstance(node, exp.Tuple):
        rows.only(node, "expressions")
        return tuple(key(part) for part in node.expressions)
    if type(node) is exp.Paren:
        rows.only(node, "this")
        return (key(node.this),)
    return (key(node),)


def _joined(items: Sequence[tuple[Named, ...]]) -> tuple[Named, ...]:
    return tuple(dict.fromkeys(key for item in items for key in item))

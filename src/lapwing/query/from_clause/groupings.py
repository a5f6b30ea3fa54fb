"""Bind GROUP BY the privacy unit in a subquery: exact aggregates over the rows of one unit.

Guarantee: what a unit's group is worth depends on that unit's own rows alone, as a bag. So every aggregate here is a
function of a bag: sums are of integers, because a sum of doubles depends on their order; an average is such a sum over
a count, divided once. Bounds follow from the most rows a unit has.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import cast

from sqlglot import exp

from lapwing.catalog.model import Catalog
from lapwing.errors import QueryRefused
from lapwing.query.expressions import conversion, functions
from lapwing.query.expressions.calls import bind_expression
from lapwing.query.expressions.expression import ColumnReference, Expression, Literal, is_number, require_few
from lapwing.query.expressions.naming import name_of
from lapwing.query.expressions.rows import RowScope
from lapwing.query.expressions.types import BOOLEAN, Fixed, Real, describe
from lapwing.query.from_clause.conditions import bound_condition
from lapwing.query.from_clause.select_list import chosen, named
from lapwing.query.relations.fresh_columns import fresh
from lapwing.query.relations.identity import names_unit, origin
from lapwing.query.relations.per_unit import PerUnit, UnitAggregate, UnitFunction
from lapwing.query.relations.relation import Selection
from lapwing.query.relations.size import MOST_COLUMNS

Rule = Callable[[exp.Expression, Expression | None, int, RowScope], UnitAggregate]
AGGREGATES = (exp.AggFunc, exp.Filter)


def is_aggregated(select: exp.Select) -> bool:
    """Tell whether a SELECT groups rows or aggregates them."""
    parts = [*select.expressions, select.args.get("having")]
    return select.args.get("group") is not None or any(part is not None and _has_aggregate(part) for part in parts)


def _has_aggregate(node: exp.Expression) -> bool:
    if isinstance(node, exp.Window | exp.Subquery | exp.Select):
        return False
    return isinstance(node, AGGREGATES) or any(_has_aggregate(child) for child in node.iter_expressions())


@dataclass(slots=True)
class _Found:
    """The nodes that become columns: aggregates and group expressions, by identity."""

    aggregates: dict[UnitAggregate, list[int]] = field(default_factory=dict)
    groups: dict[Expression, list[int]] = field(default_factory=dict)


def bind_aggregates(
    select: exp.Select, selection: Selection, rows: RowScope, catalog: Catalog
) -> tuple[Selection, RowScope]:
    """Return one row a unit (and group), and the rows that the SELECT list and HAVING may name afterwards.

    Raises: QueryRefused if the groups would hold rows of several units.
    """
    groups = _groups(select, selection, rows, catalog)
    found = _Found()
    parts = [*select.expressions, *([select.args["having"].this] if select.args.get("having") is not None else [])]
    for part in parts:
        _collect(part.this if type(part) is exp.Alias else part, groups, selection, rows, found)
    if len(groups) + len(found.aggregates) > MOST_COLUMNS:
        raise rows.refusal(select, f"A subquery has more than {MOST_COLUMNS} groups and aggregates", "Use fewer.")
    with rows.pointing(select):
        require_few([*groups, *(part.argument for part in found.aggregates if part.argument is not None)])
    aggregates = tuple(sorted(found.aggregates, key=str))
    columns = fresh("g", [part.type for part in (*groups, *aggregates)], selection.relation)
    relation = PerUnit(source=selection, groups=groups, aggregates=aggregates, columns=columns)
    places: Mapping[object, ColumnReference] = dict(zip((*groups, *aggregates), columns, strict=True))
    prepared = {
        node: places[value]
        for kind in (found.groups, found.aggregates)
        for value, nodes in kind.items()
        for node in nodes
    }
    units = tuple(replace(source, columns={}) for source in rows.sources)
    return Selection(relation=relation), RowScope(text=rows.text, sources=units, prepared=prepared, lost=rows.sources)


def _groups(select: exp.Select, selection: Selection, rows: RowScope, catalog: Catalog) -> tuple[Expression, ...]:
    """Bind GROUP BY: the unit, or columns that name it, are among the groups, so that each is of one unit."""
    clause = select.args.get("group")
    nodes: list[exp.Expression] = []
    if clause is not None:
        rows.only(clause, "expressions", "all")
        nodes = [chosen(node, select, rows) for node in clause.expressions]
        if clause.args.get("all"):
            items = [named(item, rows)[0] for item in select.expressions]
            nodes = [item for item in items if not _has_aggregate(item)]
    groups = tuple(sorted(dict.fromkeys(_group(node, rows) for node in nodes if not rows.is_unit(node)), key=str))
    by_unit = any(rows.is_unit(node) for node in nodes)
    if not by_unit and not names_unit((origin(group, selection.relation) for group in groups), catalog):
        unit = rows.unit
        raise rows.refusal(
            clause or select,
            "A subquery that aggregates over the rows of different units is not answered",
            f"Group by the privacy unit too: GROUP BY {unit}."
            if unit
            else "Group by a key that the catalog links, or join the table that has the unit.",
        )
    return groups


def _group(node: exp.Expression, rows: RowScope) -> Expression:
    bound = bind_expression(node, rows)
    if isinstance(bound, Literal):
        raise rows.refusal(node, "GROUP BY takes columns, not constants", "Leave it out.")
    return bound


def _collect(
    node: exp.Expression, groups: tuple[Expression, ...], selection: Selection, rows: RowScope, found: _Found
) -> None:
    """Find the aggregates and group expressions inside a node."""
    if isinstance(node, exp.Window):
        raise rows.refusal(node, "A window over grouped rows is not answered", "Group in a subquery of its own.")
    if isinstance(node, AGGREGATES):
        aggregate = _aggregate(node, selection, rows)
        found.aggregates.setdefault(aggregate, []).append(id(node))
        return
    if not isinstance(node, exp.Literal) and not _has_aggregate(node):
        try:
            bound = bind_expression(node, rows)
        except QueryRefused:
            bound = None
        if bound is not None and bound in groups:
            found.groups.setdefault(bound, []).append(id(node))
            return
    for child in node.iter_expressions():
        _collect(child, groups, selection, rows, found)


# ---- aggregates -----------------------------------------------------------------------------------------------------


def _aggregate(node: exp.Expression, selection: Selection, rows: RowScope) -> UnitAggregate:
    condition = None
    if isinstance(node, exp.Filter):
        rows.only(node, "this", "expression")
        rows.only(node.expression, "this")
        condition = bound_condition(node.expression.this, rows, "FILTER")
        node = node.this
    rule = _RULES.get(type(node))
    if rule is None:
        raise rows.refusal(
            node,
            f"{name_of(node)} is not answered over the rows of a unit",
            "Use COUNT, SUM, AVG, MIN, MAX, BOOL_AND, BOOL_OR.",
        )
    with rows.pointing(node):
        return rule(node, condition, selection.rows_per_unit, rows)


def only_where(argument: Expression, condition: Expression | None) -> Expression:
    """Return an argument that is NULL for the rows that a FILTER leaves out."""
    if condition is None:
        return argument
    return functions.case([condition], [argument], functions.NULL_LITERAL)


def one_where(condition: Expression) -> Expression:
    """Return 1 for the rows of a FILTER and NULL for others."""
    return only_where(conversion.number(Fraction(1)), condition)


def _count(node: exp.Expression, condition: Expression | None, most: int, rows: RowScope) -> UnitAggregate:
    rows.only(node, "this", "big_int")
    inner = node.this
    function: UnitFunction = "count"
    argument: Expression | None
    if isinstance(inner, exp.Distinct):
        rows.only(inner, "expressions")
        if len(inner.expressions) != 1:
            raise rows.refusal(node, "COUNT(DISTINCT …) takes one expression")
        function, inner = "count_distinct", inner.expressions[0]
    if function == "count" and (isinstance(inner, exp.Star) or rows.is_unit(inner)):
        if isinstance(inner, exp.Star):
            rows.only(inner)
        argument = one_where(condition) if condition is not None else None
    else:
        argument = only_where(bind_expression(inner, rows), condition)
        if function == "count" and not conversion.nullable(argument):
            argument = None
    least = 1 if argument is None else 0
    return UnitAggregate(function=function, argument=argument, type=conversion.fixed(Fraction(1), least, most))


def _number(node: exp.Expression, condition: Expression | None, rows: RowScope) -> Expression:
    rows.only(node, "this")
    if isinstance(node.this, exp.Distinct):
        raise rows.refusal(node, f"{node.key.upper()}(DISTINCT …) is not answered")
    argument = bind_expression(node.this, rows)
    if not is_number(argument.type):
        raise rows.refusal(node, f"{node.key.upper()} needs a number, not {describe(argument.type)}")
    return conversion.summable(only_where(argument, condition))


def _sum(node: exp.Expression, condition: Expression | None, most: int, rows: RowScope) -> UnitAggregate:
    argument = _number(node, condition, rows)
    low, high = conversion.integers_of(argument)
    kind = conversion.fixed(cast(Fixed, argument.type).step, min(low, low * most), max(high, high * most))
    return UnitAggregate(function="sum", argument=argument, type=kind)


def _average(node: exp.Expression, condition: Expression | None, _most: int, rows: RowScope) -> UnitAggregate:
    argument = _number(node, condition, rows)
    kind = cast(Real, conversion.to_real(argument).type)
    return UnitAggregate(function="average", argument=argument, type=kind)


def _extreme(function: UnitFunction) -> Rule:
    def rule(node: exp.Expression, condition: Expression | None, _most: int, rows: RowScope) -> UnitAggregate:
        rows.only(node, "this")
        argument = only_where(bind_expression(node.this, rows), condition)
        return UnitAggregate(function=function, argument=argument, type=argument.type)

    return rule


def _logical(function: UnitFunction) -> Rule:
    def rule(node: exp.Expression, condition: Expression | None, _most: int, rows: RowScope) -> UnitAggregate:
        rows.only(node, "this")
        argument = bind_expression(node.this, rows)
        if argument.type != BOOLEAN:
            raise rows.refusal(node, f"{node.key.upper()} needs a condition, not {describe(argument.type)}")
        return UnitAggregate(function=function, argument=only_where(argument, condition), type=BOOLEAN)

    return rule


def _count_if(node: exp.Expression, condition: Expression | None, most: int, rows: RowScope) -> UnitAggregate:
    rows.only(node, "this")
    wanted = bind_expression(node.this, rows)
    if wanted.type != BOOLEAN:
        raise rows.refusal(node, f"COUNT_IF needs a condition, not {describe(wanted.type)}")
    both = wanted if condition is None else functions.both(condition, wanted)
    return UnitAggregate(function="count", argument=one_where(both), type=conversion.fixed(Fraction(1), 0, most))


_RULES: Mapping[type[exp.Expression], Rule] = {
    exp.Count: _count,
    exp.CountIf: _count_if,
    exp.Sum: _sum,
    exp.Avg: _average,
    exp.Min: _extreme("least"),
    exp.Max: _extreme("greatest"),
    exp.LogicalAnd: _logical("all"),
    exp.LogicalOr: _logical("any"),
}

"""Bind GROUP BY the privacy unit in a subquery: exact aggregates over the rows of one unit.

Guarantee:
    What a unit's group is worth depends on that unit's own rows alone, as a bag (`unit_aggregates`). Bounds follow from
    the most rows a unit has.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TypeVar, cast

from sqlglot import exp

from lapwing.catalog.model import Catalog
from lapwing.catalog.protection import noun_of, rows_of_several
from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.expressions import conversion
from lapwing.query.expressions.attempts import FORMS, NOT_THEIRS, VALUES
from lapwing.query.expressions.calls import bind_both, bind_expression
from lapwing.query.expressions.expression import ColumnReference, Expression, Literal
from lapwing.query.expressions.naming import name_of
from lapwing.query.expressions.rows import RowScope, attempted
from lapwing.query.expressions.weight import require_few
from lapwing.query.from_clause.select_list import chosen, named
from lapwing.query.from_clause.unit_aggregates import AGGREGATES, UnitCall, bind_call, without_filter
from lapwing.query.relations.fresh_columns import fresh, with_read
from lapwing.query.relations.identity import names_unit, origin
from lapwing.query.relations.per_unit import PASSING, PerUnit, UnitAggregate, UnitFunction
from lapwing.query.relations.relation import FilteredRows, tables_of
from lapwing.query.relations.size import MOST_COLUMNS
from lapwing.query.relations.windowed import Window

Part = TypeVar("Part", UnitAggregate, Window)


def is_aggregated(select: exp.Select) -> bool:
    """Tell whether a SELECT groups rows or aggregates them."""
    parts = [*select.expressions, select.args.get("having")]
    return select.args.get("group") is not None or any(part is not None and _has_aggregate(part) for part in parts)


def _has_aggregate(node: exp.Expression) -> bool:
    if isinstance(node, exp.Window | exp.Subquery | exp.Select):
        return False
    return isinstance(node, exp.AggFunc | exp.Filter) or any(_has_aggregate(child) for child in node.iter_expressions())


@dataclass(slots=True)
class _Collected:
    """The nodes that become columns, by identity: aggregates and group expressions.

    Args:
        read: The same aggregate of values as they are read, where it passes one on.
    """

    aggregates: dict[UnitAggregate, list[int]] = field(default_factory=dict)
    groups: dict[Expression, list[int]] = field(default_factory=dict)
    read: dict[UnitAggregate, UnitAggregate] = field(default_factory=dict)


def bind_aggregates(
    select: exp.Select, selection: FilteredRows, rows: RowScope, catalog: Catalog
) -> tuple[FilteredRows, RowScope]:
    """Return one row a unit (and group), and the rows that the SELECT list and HAVING may name afterwards.

    Raises:
        QueryRefused: If the groups would hold rows of several units.
    """
    groups = _groups(select, selection, rows, catalog)
    collected = _Collected()
    parts = [*select.expressions, *([select.args["having"].this] if select.args.get("having") is not None else [])]
    for part in parts:
        _collect(part.this if type(part) is exp.Alias else part, groups, selection, rows, collected)
    if len(groups) + len(collected.aggregates) > MOST_COLUMNS:
        raise rows.refusal(
            select,
            RefusalCause.TOO_MANY_COLUMNS,
            f"A subquery has more than {MOST_COLUMNS} groups and aggregates",
            "Use fewer.",
        )
    with rows.pointing(select):
        require_few([*groups, *(part.argument for part in collected.aggregates if part.argument is not None)])
    aggregates = tuple(sorted(collected.aggregates, key=str))
    named = fresh("g", [part.type for part in (*groups, *aggregates)], selection.relation)
    by, further = with_read(named[: len(groups)], groups)
    shown, read = read_too(named[len(groups) :], aggregates, collected.read)
    relation = PerUnit(
        source=selection,
        groups=(*groups, *further.values()),
        aggregates=(*aggregates, *read.values()),
        columns=(*by, *further, *shown, *read),
    )
    places: Mapping[object, ColumnReference] = dict(zip((*groups, *aggregates), (*by, *shown), strict=True))
    prepared = {
        node: places[value]
        for kind in (collected.groups, collected.aggregates)
        for value, nodes in kind.items()
        for node in nodes
    }
    units = tuple(replace(source, columns={}) for source in rows.sources)
    return FilteredRows(relation=relation), RowScope(
        text=rows.text, sources=units, prepared=prepared, lost=rows.sources
    )


def _groups(select: exp.Select, selection: FilteredRows, rows: RowScope, catalog: Catalog) -> tuple[Expression, ...]:
    """Bind GROUP BY: the unit, or columns that name it, are among the groups, so that each is of one unit."""
    nodes = _nodes(select, rows)
    groups = tuple(sorted(dict.fromkeys(_group(node, rows) for node in nodes if not rows.is_unit(node)), key=str))
    if not _is_settled(nodes, lambda: groups, selection, rows, catalog):
        tables = tables_of(selection.relation)
        unit, noun = rows.unit, rows.unit or noun_of(tables)
        each = f"group by it too: GROUP BY {unit}." if unit else "group by a key that the catalog links."
        raise rows.refusal(
            select.args.get("group") or select,
            RefusalCause.MIXES_UNITS,
            f"A subquery that aggregates over {rows_of_several(tables)} is not supported",
            "Ask for it by itself, and write what it shows into this query."
            + (f" For one number per {noun}, {each}" if noun != "row" else ""),
        )
    return groups


def settles_unit(select: exp.Select, selection: FilteredRows, rows: RowScope, catalog: Catalog) -> bool:
    """Tell whether each group of a SELECT is of one unit."""
    nodes = _nodes(select, rows)
    return _is_settled(nodes, lambda: [_group(node, rows) for node in nodes], selection, rows, catalog)


def _nodes(select: exp.Select, rows: RowScope) -> list[exp.Expression]:
    """Return what a SELECT groups by."""
    clause = select.args.get("group")
    if clause is None:
        return []
    rows.only(clause, "expressions", "all")
    if clause.args.get("all"):
        return [item for item in (named(item, rows)[0] for item in select.expressions) if not _has_aggregate(item)]
    return [chosen(node, select, rows) for node in clause.expressions]


def _is_settled(
    nodes: Sequence[exp.Expression],
    groups: Callable[[], Sequence[Expression]],
    selection: FilteredRows,
    rows: RowScope,
    catalog: Catalog,
) -> bool:
    by_unit = any(rows.is_unit(node) for node in nodes)
    return by_unit or names_unit((origin(group, selection.relation) for group in groups()), catalog)


def _group(node: exp.Expression, rows: RowScope) -> Expression:
    expression = bind_both(node, rows)
    if isinstance(expression, Literal):
        raise rows.refusal(
            node, RefusalCause.INVALID_GROUP_KEY, "GROUP BY takes columns, not constants", "Leave it out."
        )
    return expression


def _collect(
    node: exp.Expression, groups: tuple[Expression, ...], selection: FilteredRows, rows: RowScope, collected: _Collected
) -> None:
    """Find the aggregates and group expressions inside a node."""
    if isinstance(node, exp.Window):
        raise rows.refusal(
            node,
            RefusalCause.WINDOW_NOT_SUPPORTED,
            "A window over grouped rows is not supported",
            "Group in a subquery of its own.",
        )
    if isinstance(node, exp.AggFunc | exp.Filter):
        aggregate = _aggregate(node, selection, rows)
        collected.aggregates.setdefault(aggregate, []).append(id(node))
        read = _read(node, aggregate, selection, rows)
        if read is not None and read != aggregate:
            collected.read[aggregate] = read
        return
    if not isinstance(node, exp.Literal) and not _has_aggregate(node):
        expression = attempted(NOT_THEIRS | FORMS, bind_expression, node, rows)
        if not isinstance(expression, QueryRefused) and expression in groups:
            collected.groups.setdefault(expression, []).append(id(node))
            return
    for child in node.iter_expressions():
        _collect(child, groups, selection, rows, collected)


def _read(
    node: exp.Expression, aggregate: UnitAggregate, selection: FilteredRows, rows: RowScope
) -> UnitAggregate | None:
    """Return the least or the greatest value as it is read; None of another aggregate, or if there is none."""
    if aggregate.function not in PASSING:
        return None
    read = attempted(VALUES, _aggregate, node, selection, rows.seen("read"))
    return None if isinstance(read, QueryRefused) else read


def read_too(
    columns: Sequence[ColumnReference], parts: Sequence[Part], read: Mapping[Part, Part]
) -> tuple[tuple[ColumnReference, ...], dict[ColumnReference, Part]]:
    """Return columns that know what they are as they are read, and further ones that are that, with what they are of.

    Args:
        parts: What the columns are.
        read: The same as it is read, of some.
    """
    own, further = list[ColumnReference](), dict[ColumnReference, Part]()
    for column, part in zip(columns, parts, strict=True):
        if part in read:
            twin = ColumnReference(
                name=f"{column.name} as read",
                type=read[part].type,
                cleaned=column,
                whole=_is_clamp_of(part, read[part]),
            )
            further[twin] = read[part]
            column = replace(column, read=twin)
        own.append(column)
    return tuple(own), further


def _is_clamp_of(part: UnitAggregate | Window, read: UnitAggregate | Window) -> bool:
    """Tell whether an aggregate differs by a clamp alone: the greatest of clamped values is the greatest, clamped."""
    if not isinstance(part, UnitAggregate) or not isinstance(read, UnitAggregate):
        return False
    argument = read.argument
    return isinstance(argument, ColumnReference) and argument.whole and argument.cleaned == part.argument


# ---- aggregates -----------------------------------------------------------------------------------------------------


def _aggregate(node: exp.Expression, selection: FilteredRows, rows: RowScope) -> UnitAggregate:
    node, condition = without_filter(node, rows)
    if type(node) not in AGGREGATES:
        raise rows.refusal(
            node,
            RefusalCause.FUNCTION_NOT_SUPPORTED,
            f"{name_of(node)} is not supported over the rows of one {noun_of(tables_of(selection.relation))}",
            "Use COUNT, SUM, AVG, MIN, MAX, BOOL_AND, BOOL_OR.",
        )
    if isinstance(node, exp.Sum | exp.Avg) and isinstance(node.this, exp.Distinct):
        raise rows.refusal(
            node, RefusalCause.DISTINCT_NOT_SUPPORTED, f"{node.key.upper()}(DISTINCT …) is not supported"
        )
    call = UnitCall(node=node, where=condition, most=selection.rows_per_unit, rows=rows)
    function, arguments, kind = bind_call(call, AGGREGATES, node)
    if function == "count" and not arguments:  # a group has a row
        kind = conversion.fixed(Fraction(1), 1, call.most)
    return UnitAggregate(function=cast(UnitFunction, function), argument=arguments[0] if arguments else None, type=kind)

"""Relations as Spark's SQL over the rows that exist: every one carries the unit beside its columns.

What makes each unit-local is proven at its node (`query.relations`) and printed as in `engines.duckdb.relations`: rows
and groups of a unit are taken in the order of a hash of their own values, ties broken by these, and every column is
inside its bounds.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from lapwing.engines.spark.cleaned import hashed, unit_name
from lapwing.engines.spark.expressions import expression, have_keys, key_value, where_clause
from lapwing.engines.spark.literals import engine_type, identifier, kept_name
from lapwing.engines.spark.unit_values import aggregate, column_of
from lapwing.engines.spark.windows import numbered, positions, window
from lapwing.query.expressions.expression import ColumnReference
from lapwing.query.relations.node import Relation
from lapwing.query.relations.per_unit import FirstGroups, FirstRows, PerUnit
from lapwing.query.relations.public_join import PublicJoin
from lapwing.query.relations.relation import FilteredRows, ProtectedRows, table_of, tables_of
from lapwing.query.relations.set_operations import DistinctRows, Union
from lapwing.query.relations.unit_join import UnitJoin
from lapwing.query.relations.windowed import Windowed


def selected(selection: FilteredRows, further: Sequence[str] = ()) -> str:
    """Return the FROM and WHERE clauses of a selection, with further conditions."""
    return f"FROM {relation(selection.relation)}{where_clause(selection.where, further)}"


def relation(node: Relation) -> str:
    """Return a relation as an item of a FROM clause."""
    match node:
        case ProtectedRows():
            return kept_name(node.table)
        case DistinctRows():
            shown = [*carried(node), *_named(map(column_of, node.expressions), node.columns)]
            return f"(SELECT DISTINCT {_items(shown)} {selected(node.source)})"
        case Union():
            return f"({' UNION ALL '.join(_parts(node))})"
        case PerUnit():
            return _per_unit(node)
        case Windowed():
            return _windowed(node)
        case PublicJoin():
            return _joined(node)
        case UnitJoin():
            return _joined_by_unit(node)
        case FirstRows():
            columns = [identifier(column.name) for column in node.columns]
            of = [identifier(column.name) for column in node.columns if column.cleaned is None]
            order = [hashed(table_of(node), carried(node)[0], of), *columns]
            return _first(node, "row_number", order, selected(node.source))
        case FirstGroups():
            return _first(node, "dense_rank", _group_order(node), selected(node.source, have_keys(node.keys)))
    raise TypeError(f"Spark has no SQL for {type(node).__name__}")


def carried(node: Relation) -> list[str]:
    """Return the column that says whose a relation's rows are: none if a row is its own unit."""
    return [] if table_of(node).unit_is_row else [unit_name(*tables_of(node))]


def _first(node: FirstRows | FirstGroups, function: str, order: Sequence[str], rows: str) -> str:
    """Keep of each unit the rows whose place in an order is among the first."""
    unit, columns = carried(node)[0], [identifier(column.name) for column in node.columns]
    place = _free("place", [*columns, unit])
    numbered = f"{function}() OVER (PARTITION BY {unit} ORDER BY {', '.join(order)}) AS {place}"
    return f"(SELECT {_items([unit, *columns])} FROM (SELECT *, {numbered} {rows}) WHERE {place} <= {node.most})"


def _group_order(node: FirstGroups) -> list[str]:
    """Return the order in which the groups of a unit are taken: by a hash of their keys, then by these.

    Units that prefer the same groups meet there, which private keys need, and public ones suffer from.
    """
    keys = [key_value(key) for key in node.keys]
    unit = None if any(key.private for key in node.keys) else carried(node)[0]
    return [hashed(table_of(node), unit, keys), *keys]


def _items(items: Sequence[str]) -> str:
    return ", ".join(items) or "NULL AS nothing"


def _named(values: Iterable[str], columns: Iterable[ColumnReference]) -> list[str]:
    return [f"{value} AS {identifier(column.name)}" for value, column in zip(values, columns, strict=True)]


def _parts(node: Union) -> list[str]:
    parts = []
    for part in node.parts:
        pairs = zip(part.expressions, node.columns, strict=True)
        items = _named(
            (f"TRY_CAST({column_of(value)} AS {engine_type(column.type)})" for value, column in pairs), node.columns
        )
        unit = [
            f"{theirs} AS {ours}" for theirs, ours in zip(carried(part.source.relation), carried(node), strict=True)
        ]
        parts.append(f"SELECT {_items([*unit, *items])} {selected(part.source)}")
    return parts


# ---- per unit --------------------------------------------------------------------------------------------------------


def _per_unit(node: PerUnit) -> str:
    unit, groups = carried(node)[0], [column_of(group) for group in node.groups]
    aggregates = [aggregate(one.function, one.argument, one.type) for one in node.aggregates]
    items = _named([*groups, *aggregates], node.columns)
    by = ", ".join(str(place + 1) for place in range(1 + len(groups)))
    return f"(SELECT {_items([unit, *items])} {selected(node.source)} GROUP BY {by})"


# ---- windows ---------------------------------------------------------------------------------------------------------


def _windowed(node: Windowed) -> str:
    """Add windows to rows; where several count rows one by one, all break ties by one numbering of the unit's rows."""
    unit, columns = carried(node)[0], [identifier(column.name) for column in node.source.relation.columns]
    source, shown, ties = selected(node.source), ["*"], [f"{column} NULLS LAST" for column in columns]
    if sum(map(positions, node.windows)) > 1:
        place = identifier(_free("place", [*map(identifier, (c.name for c in node.columns)), unit]))
        source = f"FROM (SELECT *, {numbered(unit, ties)} AS {place} {source})"
        shown, ties = [unit, *columns], [place]
    windows = _named((window(one, ties, unit) for one in node.windows), node.added)
    return f"(SELECT {_items([*shown, *windows])} {source})"


# ---- joins -----------------------------------------------------------------------------------------------------------


def public_name(name: str) -> str:
    """Return the name of the layer that holds a public table's cleaned rows."""
    return identifier(f"public {name}")


def _joined(node: PublicJoin) -> str:
    """Join on values computed on either side, so that no name can be taken for the other side's."""
    own = [*carried(node), *(identifier(column.name) for column in node.source.relation.columns)]
    shared = _free("on", [*own, *(identifier(column.name) for column in node.public.columns)])
    left = [f"{column_of(pair[0])} AS {shared}{i}" for i, pair in enumerate(node.on)]
    right = [f"{column_of(pair[1])} AS {shared}{i}" for i, pair in enumerate(node.on)]
    added = _named((identifier(column.name) for column in node.public.columns), node.added) if node.added else []
    ours = f"(SELECT {_items([*own, *left])} {selected(node.source)}) AS ours"
    theirs = f"(SELECT {_items([*right, *added])} {_public_rows(node)}) AS theirs"
    shown = [f"ours.{name}" for name in own] + [f"theirs.{identifier(column.name)}" for column in node.added]
    if node.kind == "not_in":
        return f"(SELECT {_items(shown)} FROM {ours} WHERE {shared}0 NOT IN (SELECT {shared}0 FROM {theirs}))"
    on = [f"ours.{shared}{i} = theirs.{shared}{i}" for i in range(len(node.on))]
    on += [] if node.condition is None else [f"({expression(node.condition)})"]
    kind = _KINDS.get(node.kind, node.kind.upper())
    return f"(SELECT {_items(shown)} FROM {ours} {kind} JOIN {theirs} ON {' AND '.join(on) or 'TRUE'})"


_KINDS: Final = {"semi": "LEFT SEMI", "anti": "LEFT ANTI"}


def _joined_by_unit(node: UnitJoin) -> str:
    """Join rows of a unit with each other: every row with those of its own unit alone, whatever else they equal.

    No two columns of the sides have one name.
    """
    (unit,), columns = carried(node), [identifier(column.name) for column in node.source.relation.columns]
    (ours_unit,), (theirs_unit,) = (carried(side.relation) for side in (node.source, node.other))
    names = [unit, *columns, *(identifier(column.name) for column in node.added)]
    holder, shared = _free("holder", names), _free("on", names)
    left = [f"{column_of(pair[0])} AS {shared}{i}" for i, pair in enumerate(node.on)]
    right = [f"{column_of(pair[1])} AS {shared}{i}" for i, pair in enumerate(node.on)]
    ours = f"(SELECT {_items([f'{ours_unit} AS {unit}', *columns, *left])} {selected(node.source)}) AS ours"
    added = _named(map(column_of, node.shown), node.added)
    theirs = f"(SELECT {_items([f'{theirs_unit} AS {holder}', *added, *right])} {selected(node.other)}) AS theirs"
    equal = "".join(f" AND ours.{shared}{i} = theirs.{shared}{i}" for i in range(len(node.on)))
    condition = "" if node.condition is None else f" AND ({expression(node.condition)})"
    further = [identifier(column.name) for column in node.added] if node.kind in ("inner", "left") else []
    shown = [*(f"ours.{name}" for name in (unit, *columns)), *(f"theirs.{name}" for name in further)]
    kind = _KINDS.get(node.kind, node.kind.upper())
    return (
        f"(SELECT {_items(shown)} FROM {ours} {kind} JOIN {theirs} ON ours.{unit} = theirs.{holder}{equal}{condition})"
    )


def _public_rows(node: PublicJoin) -> str:
    """Return the FROM and WHERE clauses of the public rows."""
    public = node.public
    rows = f"FROM {public_name(public.table.name)}{where_clause(public.where)}"
    if not public.distinct:
        return rows
    return f"FROM (SELECT DISTINCT {_items([identifier(column.name) for column in public.columns])} {rows})"


def _free(prefix: str, taken: Sequence[str]) -> str:
    """Return a name that begins like none of these, which are quoted."""
    while any(name.strip("`").casefold().startswith(prefix) for name in taken):
        prefix += "_"
    return prefix

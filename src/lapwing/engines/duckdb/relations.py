"""Relations as SQL over `kept`: every one carries the unit beside its columns.

What an engine runs is printed so that a unit's rows come out the same whatever order the engine reads them in: windows
that number rows break ties by all columns. And every column of a relation is inside its bounds: what is computed with
doubles is clamped before it becomes one, because it may stray past a proven bound by a rounding.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, cast

from lapwing.catalog.model import PublicTable
from lapwing.engines.duckdb import expressions, group_limits
from lapwing.engines.duckdb.bounded_values import as_read
from lapwing.engines.duckdb.cleaned import Location, clean
from lapwing.engines.duckdb.expressions import expression, where_clause
from lapwing.engines.duckdb.literals import (
    clamp,
    double,
    engine_type,
    identifier,
    kept_name,
    unit_name,
    whole,
    width,
)
from lapwing.engines.duckdb.printers import print_in_steps
from lapwing.query.expressions.as_read import public_names_read
from lapwing.query.expressions.expression import ColumnReference, Expression, Literal, Operation
from lapwing.query.expressions.types import READ_REAL, Fixed, Real, Type
from lapwing.query.relations.node import Relation
from lapwing.query.relations.per_unit import FirstGroups, FirstRows, PerUnit, UnitAggregate
from lapwing.query.relations.relation import FilteredRows, ProtectedRows, table_of, tables_of, units_of_row

if TYPE_CHECKING:
    from lapwing.query.relations.public_join import PublicJoin
    from lapwing.query.relations.set_operations import Union
    from lapwing.query.relations.shared_join import SharedJoin
    from lapwing.query.relations.unit_join import UnitJoin
    from lapwing.query.relations.windowed import SortTerm, Window, Windowed, WindowFrame


def selected(selection: FilteredRows, further: Sequence[str] = ()) -> str:
    """Return the FROM and WHERE clauses of a selection, with further conditions."""
    return f"FROM {relation(selection.relation)}{where_clause(selection.where, further)}"


def relation(node: Relation) -> str:
    """Return a relation as an item of a FROM clause."""
    if isinstance(node, ProtectedRows):
        return kept_name(node.table)
    # Here: most questions are about the rows of one table, and these take a fiftieth of a start.
    from lapwing.query.relations.public_join import PublicJoin
    from lapwing.query.relations.set_operations import DistinctRows, Union
    from lapwing.query.relations.shared_join import SharedJoin
    from lapwing.query.relations.unit_join import UnitJoin
    from lapwing.query.relations.windowed import Windowed

    carried = unit_names(node)
    match node:
        case DistinctRows():
            shown = [*carried, *_named(map(_column, node.expressions), node.columns)]
            return f"(SELECT DISTINCT {_items(shown)} {selected(node.source)})"
        case Union():
            return f"({' UNION ALL '.join(_parts(node, carried))})"
        case PerUnit():
            return _per_unit(node, carried[0])
        case Windowed():
            return _windowed(node, carried[0])
        case PublicJoin():
            return _joined(node, carried)
        case UnitJoin():
            return _joined_by_unit(node, carried[0])
        case SharedJoin():
            return _meeting(node)
        case FirstRows():
            columns = [identifier(column.name) for column in node.columns]
            hashed = [identifier(column.name) for column in node.columns if column.cleaned is None]
            order = ", ".join([group_limits.hashed(node, [carried[0], *hashed]), *columns])
            chosen = group_limits.numbered("row_number", carried[0], order, node.most)
            return f"(SELECT * {selected(node.source)} QUALIFY {chosen})"
        case FirstGroups():
            keys = [expressions.key_value(key) for key in node.keys]
            order = group_limits.order_of(node, carried[0], keys)
            chosen = group_limits.numbered("dense_rank", carried[0], order, node.most)
            return f"(SELECT * {selected(node.source, expressions.have_keys(node.keys))} QUALIFY {chosen})"
    raise TypeError(f"DuckDB has no SQL for {type(node).__name__}")


def unit_names(node: Relation) -> list[str]:
    """Return the columns that say whose a relation's rows are: none if a row is its own unit, several if shared."""
    tables, units = tables_of(node), units_of_row(node)
    if units == 1:
        return [] if table_of(node).unit_is_row else [unit_name(*tables)]
    prefix = _free("unit", {column.name.casefold() for table in tables for column in table.columns})
    return [f"{prefix}{place}" for place in range(units)]


def _items(items: Sequence[str]) -> str:
    return ", ".join(items) or "NULL AS nothing"


def _named(values: Iterable[str], columns: Iterable[ColumnReference]) -> list[str]:
    return [f"{value} AS {identifier(column.name)}" for value, column in zip(values, columns, strict=True)]


def _parts(node: "Union", carried: Sequence[str]) -> list[str]:
    parts = []
    for part in node.parts:
        # The parts are brought to one engine type: 64 bits in one and 128 in the other would be united unseen.
        pairs = zip(part.expressions, node.columns, strict=True)
        items = _named((_of_type(_column(value), column.type) for value, column in pairs), node.columns)
        unit = [f"{unit_name(*tables_of(part.source.relation))} AS {name}" for name in carried]
        parts.append(f"SELECT {_items([*unit, *items])} {selected(part.source)}")
    return parts


def _of_type(value: str, kind: Type) -> str:
    return f"TRY_CAST({value} AS {engine_type(kind)})"


def _column(value: Expression) -> str:
    """Return an expression as it becomes a column: inside its bounds, and zero without a sign.

    What is summed of a column is not clamped again. So a bound is enforced here even where it is proven: a mistake in a
    proof then costs accuracy and not privacy.

    Rows that are equal are merged, and of 0.0 and -0.0 the one would be taken that happens to come first.
    """
    printed, kind = expression(value), value.type
    if isinstance(kind, Real) and not isinstance(value, Literal):
        return f"CASE WHEN {printed} = 0.0::DOUBLE THEN 0.0::DOUBLE ELSE {printed} END"
    return _inside_column(printed, value)


def _inside_column(printed: str, value: Expression) -> str:
    """Return a printed value, but a real one, inside the bounds of its expression."""
    kind = value.type
    if not isinstance(value, Operation) or not isinstance(kind, Fixed) or not kind.bounded:
        return printed
    return _inside(printed, kind)


# ---- per unit -------------------------------------------------------------------------------------------------------


def _per_unit(node: PerUnit, unit: str) -> str:
    limit = group_limits.first_groups(node.source)
    if limit is not None and len(limit.keys) == len(node.groups) and limit.has(node.groups):
        return _per_unit_of_first(node, limit, unit)
    groups = [_column(group) for group in node.groups]
    items = _named([*groups, *map(_aggregate, node.aggregates)], node.columns)
    return f"(SELECT {_items([unit, *items])} {selected(node.source)} GROUP BY {', '.join([unit, *groups])})"


def _per_unit_of_first(node: PerUnit, limit: FirstGroups, unit: str) -> str:
    """Return the rows where groups are limited by the same keys: aggregated first, then limited."""
    names = [f"total{place}" for place in range(len(node.aggregates))]
    totals = [f"{_aggregate(part)} AS {name}" for part, name in zip(node.aggregates, names, strict=True)]
    rows = selected(limit.source, expressions.have_keys(limit.keys))
    places = {key.expression: f"key{place}" for place, key in enumerate(limit.keys)}
    groups = [_inside_column(places[group], group) for group in node.groups]
    items = _named([*groups, *names], node.columns)
    return f"(SELECT {_items([unit, *items])} FROM {group_limits.aggregated(limit, rows, unit, totals)})"


def _aggregate(aggregate: UnitAggregate) -> str:
    argument = "*" if aggregate.argument is None else _column(aggregate.argument)
    match aggregate.function:
        case "sum" | "average":
            if aggregate.function == "sum":
                return f"TRY_CAST(SUM({argument}) AS {width(cast(Fixed, aggregate.type))})"
            step = cast(Fixed, cast(Expression, aggregate.argument).type).step
            return _averaged(f"SUM({argument})", f"COUNT({argument})", cast(Real, aggregate.type), step)
        case function:
            return _FUNCTIONS[function](argument)


def _inside(value: str, kind: Fixed) -> str:
    """Clamp an integer to its bounds."""
    low, high = cast(tuple[int, int], (kind.low, kind.high))
    return f"CASE WHEN {value} IS NULL THEN NULL ELSE {clamp(value, low, high)} END"


def _averaged(total: str, count: str, kind: Real, step: Fraction) -> str:
    """Divide a sum of steps by a count: a double, which a rounding could take past the bounds."""
    mean = print_in_steps(f"CAST({total} AS DOUBLE) / CAST({count} AS DOUBLE)", 1 / step)
    low, high = (double(cast(Fraction, end)) for end in (kind.low, kind.high))
    return f"CASE WHEN {count} = 0 THEN NULL ELSE LEAST(GREATEST({mean}, {low}), {high}) END"


_FUNCTIONS: Mapping[str, Callable[[str], str]] = {
    "count": "COUNT({})".format,
    "count_distinct": "COUNT(DISTINCT {})".format,
    "least": "MIN({})".format,
    "greatest": "MAX({})".format,
    "all": "BOOL_AND({})".format,
    "any": "BOOL_OR({})".format,
}


# ---- windows --------------------------------------------------------------------------------------------------------


def _windowed(node: "Windowed", unit: str) -> str:
    """Add windows to rows; where several count rows one by one, all break ties by one numbering of the unit's rows."""
    columns = [identifier(column.name) for column in node.source.relation.columns]
    ties = [f"{column} NULLS LAST" for column in columns]
    source, shown = selected(node.source), ["*"]
    if sum(_positions(window) for window in node.windows) > 1:
        place = identifier(_free("place", {column.name.casefold() for column in node.columns}))
        numbered = f"row_number() OVER (PARTITION BY {unit} ORDER BY {', '.join(ties)}) AS {place}"
        source, shown, ties = f"FROM (SELECT {_items(['*', numbered])} {source})", [unit, *columns], [place]
    windows = _named((_window(window, ties, unit) for window in node.windows), node.added)
    return f"(SELECT {_items([*shown, *windows])} {source})"


def _positions(window: "Window") -> int:
    """Return how often a window's text counts rows one by one: an average is a sum over a count."""
    return (2 if window.function == "average" else 1) if window.positional else 0


def _window(window: "Window", ties: Sequence[str], unit: str) -> str:
    arguments = [_column(argument) for argument in window.arguments]
    over = _over(window, ties, unit)
    nulls = " IGNORE NULLS" if window.ignores_nulls else ""
    match window.function:
        case "sum":
            return f"TRY_CAST(SUM({arguments[0]}) {over} AS {width(cast(Fixed, window.type))})"
        case "average":
            step = cast(Fixed, window.arguments[0].type).step
            total, count = f"SUM({arguments[0]}) {over}", f"COUNT({arguments[0]}) {over}"
            return _averaged(total, count, cast(Real, window.type), step)
        case "lag" | "lead":
            # Value and default are brought to one engine type: the default is cast to the value's where it is taken.
            value, offset, *default = arguments
            given = ", ".join([_of_type(value, window.type), offset, *(_of_type(d, window.type) for d in default)])
            return f"{window.function}({given}{nulls}) {over}"
        case "percent_rank" | "cume_dist":
            return f"LEAST(GREATEST({window.function}() {over}, 0.0::DOUBLE), 1.0::DOUBLE)"
        case function if function in _FUNCTIONS:
            return f"{_FUNCTIONS[function](arguments[0] if arguments else '*')} {over}"
        case function:
            return f"{function}({', '.join(arguments)}{nulls}) {over}"


def _over(window: "Window", ties: Sequence[str], unit: str) -> str:
    partition = ", ".join([unit, *map(expression, window.partition)])
    terms = [_sorted(term) for term in window.order]
    if window.positional:
        terms += ties
    order = f" ORDER BY {', '.join(terms)}" if terms else ""
    return f"OVER (PARTITION BY {partition}{order}{_framed(window.frame)})"


def _framed(frame: "WindowFrame | None") -> str:
    if frame is None:
        return ""
    start = "UNBOUNDED PRECEDING" if frame.start is None else _distance(frame.start)
    end = "UNBOUNDED FOLLOWING" if frame.end is None else _distance(frame.end)
    return f" {frame.unit.upper()} BETWEEN {start} AND {end}"


def _distance(rows: int) -> str:
    if rows == 0:
        return "CURRENT ROW"
    return f"{whole(abs(rows))} {'PRECEDING' if rows < 0 else 'FOLLOWING'}"


def _sorted(term: "SortTerm") -> str:
    direction = " DESC" if term.descending else ""
    return f"{_column(term.value)}{direction} NULLS {'FIRST' if term.nulls_first else 'LAST'}"


# ---- joins ----------------------------------------------------------------------------------------------------------


def _joined(node: "PublicJoin", carried: Sequence[str]) -> str:
    """Join on values computed on either side, so that no name can be taken for the other side's."""
    own = [*carried, *(identifier(column.name) for column in node.source.relation.columns)]
    names = [*own, *(identifier(column.name) for column in node.public.columns)]
    shared = _free("on", {name.strip('"').casefold() for name in names})
    left = [f"{_column(pair[0])} AS {shared}{i}" for i, pair in enumerate(node.on)]
    right = [f"{_column(pair[1])} AS {shared}{i}" for i, pair in enumerate(node.on)]
    added = _named((identifier(column.name) for column in node.public.columns), node.added) if node.added else []
    ours = f"(SELECT {_items([*own, *left])} {selected(node.source)}) AS ours"
    theirs = f"(SELECT {_items([*right, *added])} {_public_rows(node)}) AS theirs"
    shown = [f"ours.{name}" for name in own] + [f"theirs.{identifier(column.name)}" for column in node.added]
    if node.kind == "not_in":
        return f"(SELECT {_items(shown)} FROM {ours} WHERE {shared}0 NOT IN (SELECT {shared}0 FROM {theirs}))"
    on = [f"ours.{shared}{i} = theirs.{shared}{i}" for i in range(len(node.on))]
    on += [] if node.condition is None else [f"({expression(node.condition)})"]
    return f"(SELECT {_items(shown)} FROM {ours} {node.kind.upper()} JOIN {theirs} ON {' AND '.join(on)})"


def _joined_by_unit(node: "UnitJoin", unit: str) -> str:
    """Join rows of a unit with each other; no two columns of the sides have one name.

    An engine that finds one side empty does not read the other, which may be all rows of everybody and dear: so one
    unit, alone on its side, would switch their work on. Therefore either side has a row more, of no unit. It meets the
    other side's row of no unit alone, and is left out above: units are never NULL, so that of all other rows the same
    pairs meet as by equality.
    """
    columns = [identifier(column.name) for column in node.source.relation.columns]
    ours_unit, theirs_unit = (unit_name(*tables_of(side.relation)) for side in (node.source, node.other))
    names = (unit, *columns, *(column.name for column in node.added))
    taken = {name.strip('"').casefold() for name in names}
    holder, shared = identifier(_free("holder", taken)), _free("on", taken)
    left = [f"{_column(pair[0])} AS {shared}{i}" for i, pair in enumerate(node.on)]
    right = [f"{_column(pair[1])} AS {shared}{i}" for i, pair in enumerate(node.on)]
    # NULL would be left out of what is looked up. What it is instead is cast as the column is, by the union.
    keys = [_SOMETHING.get(engine_type(pair[1].type), "0") for pair in node.on]
    own = [f"{ours_unit} AS {unit}" if ours_unit != unit else unit, *columns, *left]
    added = _named(map(_column, node.shown), node.added)
    others = [f"{theirs_unit} AS {holder}", *added, *right]
    ours = f"(SELECT {_items(own)} {selected(node.source)}{_and_nobodys(1 + len(columns), keys)}) AS ours"
    theirs = f"(SELECT {_items(others)} {selected(node.other)}{_and_nobodys(1 + len(added), keys)}) AS theirs"
    equal = "".join(f" AND ours.{shared}{i} = theirs.{shared}{i}" for i in range(len(node.on)))
    condition = "" if node.condition is None else f" AND ({expression(node.condition)})"
    further = [identifier(column.name) for column in node.added] if node.kind in ("inner", "left") else []
    shown = [*(f"ours.{name}" for name in (unit, *columns)), *(f"theirs.{name}" for name in further)]
    on, some = f"ours.{unit} IS NOT DISTINCT FROM theirs.{holder}{equal}{condition}", f"WHERE ours.{unit} IS NOT NULL"
    if node.mark is not None:
        found = f"EXISTS (SELECT 1 FROM {theirs} WHERE {on}) AS {identifier(node.mark.name)}"
        # Above, as it would be asked before EXISTS in the same SELECT.
        return f"(SELECT * FROM (SELECT {_items([*shown, found])} FROM {ours}) AS ours {some})"
    return f"(SELECT {_items(shown)} FROM {ours} {node.kind.upper()} JOIN {theirs} ON {on} {some})"


def _and_nobodys(nulls: int, keys: Sequence[str]) -> str:
    """Return what adds a row of no unit: so many columns are NULL, and then come values that are not."""
    return f" UNION ALL SELECT {_items([*['NULL'] * nulls, *keys])}"


_SOMETHING = {
    "VARCHAR": "''", "DATE": "DATE '2000-01-01'", "TIMESTAMP": "TIMESTAMP '2000-01-01'", "BOOLEAN": "FALSE",
    "DOUBLE": "0.0::DOUBLE",
}  # fmt: skip
"""A value of each type but whole numbers."""


def _meeting(node: "SharedJoin") -> str:
    """Join rows of whatever unit; each carries the units of both."""
    columns = [identifier(column.name) for column in node.source.relation.columns]
    further = [identifier(column.name) for column in node.added]
    *ours_units, last = unit_names(node)
    shared = _free("on", {name.strip('"').casefold() for name in (*columns, *further, *ours_units, last)})
    left = [f"{_column(pair[0])} AS {shared}{i}" for i, pair in enumerate(node.on)]
    right = [f"{_column(pair[1])} AS {shared}{i}" for i, pair in enumerate(node.on)]
    below = unit_names(node.source.relation)
    units = [f"{old} AS {new}" for old, new in zip(below, ours_units, strict=True)]
    theirs_unit = f"{unit_names(node.other.relation)[0]} AS {last}"
    added = _named(map(_column, node.shown), node.added)
    ours = f"(SELECT {_items([*units, *columns, *left])} {selected(node.source)}) AS ours"
    theirs = f"(SELECT {_items([theirs_unit, *added, *right])} {selected(node.other)}) AS theirs"
    equal = [f"ours.{shared}{i} = theirs.{shared}{i}" for i in range(len(node.on))]
    apart = [f"ours.{ours_units[place]} <> theirs.{last}" for place in node.apart]
    shown = [*(f"ours.{name}" for name in (*ours_units, *columns)), *(f"theirs.{name}" for name in (last, *further))]
    return f"(SELECT {_items(shown)} FROM {ours} JOIN {theirs} ON {' AND '.join([*equal, *apart])})"


def public_layer(table: PublicTable, source: Location, stored: Mapping[str, str] | None = None) -> str:
    """Return the common table expression of a public table's cleaned rows; its numbers have bounds (`described`).

    Its floats stand there as they are read, too: for conditions and joins.

    Args:
        stored: Numbers that stand there without any bounds, as well, and what they are called so.
    """
    columns = [f"{clean(column, source.types[column.name])} AS {identifier(column.name)}" for column in table.columns]
    for own, name in public_names_read(table.columns):
        columns.append(f"{as_read(own, source.types[own.name], READ_REAL)} AS {identifier(name)}")
    for own in (column for column in table.columns if stored and column.name in stored):
        unbounded = clean(replace(own, lower=None, upper=None, step=None), source.types[own.name])
        columns.append(f"{unbounded} AS {identifier((stored or {})[own.name])}")
    return f"{public_name(table)} AS (SELECT {', '.join(columns) or 'NULL AS nothing'} FROM {source.relation})"


def public_name(table: PublicTable) -> str:
    """Return the name of the layer that holds a public table's cleaned rows."""
    return identifier(f"public {table.name}")


def _public_rows(node: "PublicJoin") -> str:
    """Return the FROM and WHERE clauses of the public rows."""
    public = node.public
    where = f" WHERE ({expression(public.where)})" if public.where is not None else ""
    rows = f"FROM {public_name(public.table)}{where}"
    if not public.distinct:
        return rows
    return f"FROM (SELECT DISTINCT {_items([identifier(column.name) for column in public.columns])} {rows})"


def _free(prefix: str, taken: set[str]) -> str:
    while any(name.startswith(prefix) for name in taken):
        prefix += "_"
    return prefix

"""Relations as SQL over `kept`: every one carries the unit beside its columns.

What an engine runs is printed so that a unit's rows come out the same whatever order the engine reads them in: windows
that number rows break ties by all columns. And every column of a relation is inside its bounds: what is computed with
doubles is clamped before it becomes one, because it may stray past a proven bound by a rounding.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import cast

from lapwing.query import render_keys
from lapwing.query.cleaned import public_name, unit_name
from lapwing.query.doubles import double, print_in_steps
from lapwing.query.expression import Expression, Literal, Operation
from lapwing.query.printers import clamp, engine_type, expression, identifier, text, width
from lapwing.query.relations import (
    Distinct,
    FirstGroups,
    FirstRows,
    Kept,
    PerUnit,
    PublicJoin,
    Relation,
    Selection,
    SortTerm,
    Union,
    UnitAggregate,
    Window,
    Windowed,
    table_of,
)
from lapwing.query.types import Fixed, Real, Type
from lapwing.query.windows import NEEDS_TOTAL_ORDER


def selected(selection: Selection, further: Sequence[str] = ()) -> str:
    """Return the FROM and WHERE clauses of a selection, with further conditions."""
    conditions = [*([f"({expression(selection.where)})"] if selection.where is not None else []), *further]
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"FROM {relation(selection.relation)}{where}"


def relation(node: Relation) -> str:
    """Return a relation as an item of a FROM clause."""
    if isinstance(node, Kept):
        return "kept"
    carried = [] if table_of(node).unit_is_row else [unit_name(table_of(node))]
    match node:
        case Distinct():
            return f"(SELECT DISTINCT {_items([*carried, *_columns(node)])} {selected(node.source)})"
        case Union():
            return f"({' UNION ALL '.join(_parts(node, carried))})"
        case PerUnit():
            return _per_unit(node, carried[0])
        case Windowed():
            windows = [
                f"{_window(window, node, carried[0])} AS {identifier(column.name)}"
                for window, column in zip(node.windows, node.added, strict=True)
            ]
            return f"(SELECT {_items(['*', *windows])} {selected(node.source)})"
        case PublicJoin():
            return _joined(node, carried)
        case FirstRows():
            columns = [identifier(column.name) for column in node.columns]
            order = ", ".join([_hash(node, [carried[0], *columns]), *columns])
            return f"(SELECT * {selected(node.source)} QUALIFY {_numbered('row_number', carried[0], order, node.most)})"
        case FirstGroups():
            keys = [render_keys.key_value(key) for key in node.keys]
            listed = [render_keys.listed(key) for key in node.keys if key.other is None]
            # Units that prefer the same groups meet there, which private keys need, and public ones suffer from.
            preferred = keys if any(key.private for key in node.keys) else [carried[0], *keys]
            order = ", ".join([_hash(node, preferred), *keys])
            chosen = _numbered("dense_rank", carried[0], order, node.most)
            return f"(SELECT * {selected(node.source, listed)} QUALIFY {chosen})"


def _hash(node: Relation, values: Sequence[str]) -> str:
    """Return the order in which the rows or groups of a unit are taken: a function of these values alone."""
    return f"hash({', '.join([text(table_of(node).name), *values])})"


def _numbered(function: str, unit: str, order: str, most: int) -> str:
    return f"{function}() OVER (PARTITION BY {unit} ORDER BY {order}) <= {most}"


def _items(items: Sequence[str]) -> str:
    return ", ".join(items) or "NULL AS nothing"


def _columns(node: Distinct) -> list[str]:
    pairs = zip(node.expressions, node.columns, strict=True)
    return [f"{_column(value)} AS {identifier(column.name)}" for value, column in pairs]


def _parts(node: Union, carried: Sequence[str]) -> list[str]:
    parts = []
    for part in node.parts:
        pairs = zip(part.expressions, node.columns, strict=True)
        # The parts are brought to one engine type: 64 bits in one and 128 in the other would be united unseen.
        items = [f"{_of_type(_column(value), column.type)} AS {identifier(column.name)}" for value, column in pairs]
        parts.append(f"SELECT {_items([*carried, *items])} {selected(part.source)}")
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
    if not isinstance(value, Operation) or not isinstance(kind, Fixed) or not kind.bounded:
        return printed
    return _inside(printed, kind)


# ---- per unit -------------------------------------------------------------------------------------------------------


def _per_unit(node: PerUnit, unit: str) -> str:
    groups = [_column(group) for group in node.groups]
    values = [*groups, *map(_aggregate, node.aggregates)]
    items = [f"{value} AS {identifier(column.name)}" for value, column in zip(values, node.columns, strict=True)]
    return f"(SELECT {_items([unit, *items])} {selected(node.source)} GROUP BY {', '.join([unit, *groups])})"


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


def _window(window: Window, node: Windowed, unit: str) -> str:
    arguments = [_column(argument) for argument in window.arguments]
    partition = ", ".join([unit, *map(expression, window.partition)])
    terms = [_sorted(term) for term in window.order]
    if window.function in NEEDS_TOTAL_ORDER:
        terms += [f"{identifier(column.name)} NULLS LAST" for column in node.source.relation.columns]
    order = f" ORDER BY {', '.join(terms)}" if terms else ""
    over = f"OVER (PARTITION BY {partition}{order})"
    match window.function:
        case "sum":
            return f"TRY_CAST(SUM({arguments[0]}) {over} AS {width(cast(Fixed, window.type))})"
        case "average":
            step = cast(Fixed, window.arguments[0].type).step
            total, count = f"SUM({arguments[0]}) {over}", f"COUNT({arguments[0]}) {over}"
            return _averaged(total, count, cast(Real, window.type), step)
        case "count":
            return f"COUNT({arguments[0] if arguments else '*'}) {over}"
        case "least" | "greatest":
            return f"{'MIN' if window.function == 'least' else 'MAX'}({arguments[0]}) {over}"
        case "lag" | "lead":
            # Value and default are brought to one engine type: the default is cast to the value's where it is taken.
            value, offset, *default = arguments
            given = ", ".join([_of_type(value, window.type), offset, *(_of_type(d, window.type) for d in default)])
            return f"{window.function}({given}) {over}"
        case function:
            return f"{function}() {over}"


def _sorted(term: SortTerm) -> str:
    direction = " DESC" if term.descending else ""
    return f"{expression(term.value)}{direction} NULLS {'FIRST' if term.nulls_first else 'LAST'}"


# ---- joins ----------------------------------------------------------------------------------------------------------


def _joined(node: PublicJoin, carried: Sequence[str]) -> str:
    """Join on values computed on either side, so that no name can be taken for the other side's."""
    own = [*carried, *(identifier(column.name) for column in node.source.relation.columns)]
    names = [*own, *(identifier(column.name) for column in node.public.columns)]
    shared = _free("on", {name.strip('"').casefold() for name in names})
    left = [f"{_column(pair[0])} AS {shared}{i}" for i, pair in enumerate(node.on)]
    right = [f"{_column(pair[1])} AS {shared}{i}" for i, pair in enumerate(node.on)]
    pairs = zip(node.public.columns, node.added, strict=True) if node.added else ()
    added = [f"{identifier(public.name)} AS {identifier(column.name)}" for public, column in pairs]
    ours = f"(SELECT {_items([*own, *left])} {selected(node.source)}) AS ours"
    theirs = f"(SELECT {_items([*right, *added])} {_public_rows(node)}) AS theirs"
    shown = [f"ours.{name}" for name in own] + [f"theirs.{identifier(column.name)}" for column in node.added]
    if node.kind == "not_in":
        return f"(SELECT {_items(shown)} FROM {ours} WHERE {shared}0 NOT IN (SELECT {shared}0 FROM {theirs}))"
    on = " AND ".join(f"ours.{shared}{i} = theirs.{shared}{i}" for i in range(len(node.on)))
    return f"(SELECT {_items(shown)} FROM {ours} {node.kind.upper()} JOIN {theirs} ON {on})"


def _public_rows(node: PublicJoin) -> str:
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

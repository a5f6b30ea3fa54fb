"""Bind window functions over the rows of one unit.

Guarantee:
    A window is partitioned by the privacy unit, so that what it adds to a row depends on rows of the same unit alone.
    It must also not depend on the order in which an engine happens to hold them: the law and its proof are in
    `relations.windowed`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlglot import exp

from lapwing.catalog.protection import noun_of, rows_of_several
from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.expressions.attempts import VALUES
from lapwing.query.expressions.calls import bind_expression, looked_at, ordered_by
from lapwing.query.expressions.expression import Literal
from lapwing.query.expressions.rows import RowScope, attempted, same_name
from lapwing.query.expressions.weight import require_few
from lapwing.query.from_clause.groupings import read_too
from lapwing.query.from_clause.unit_aggregates import UnitCall, bind_call
from lapwing.query.from_clause.window_frames import bind_frame, settled
from lapwing.query.from_clause.window_functions import WINDOW_FUNCTIONS, function_of, name_in_plan
from lapwing.query.relations.fresh_columns import fresh
from lapwing.query.relations.relation import FilteredRows, tables_of
from lapwing.query.relations.windowed import PASSING, SortTerm, Window, Windowed

Definitions = Mapping[str, "WindowText"]


def windows_in(select: exp.Select) -> list[exp.Window]:
    """Return the window functions of a SELECT list and QUALIFY, outermost first."""
    parts = [*select.expressions, *([select.args["qualify"]] if select.args.get("qualify") is not None else [])]
    windows: list[exp.Window] = []
    for part in parts:
        _find(part, windows)
    return windows


def _find(node: exp.Expression, windows: list[exp.Window]) -> None:
    if isinstance(node, exp.Window):
        windows.append(node)
    elif not isinstance(node, exp.Subquery | exp.Select):
        for child in node.iter_expressions():
            _find(child, windows)


_FRAMES: Final = VALUES | {RefusalCause.INVALID_FRAME}


def bind_windows(
    nodes: Sequence[exp.Window], definitions: Definitions, selection: FilteredRows, rows: RowScope
) -> tuple[FilteredRows, RowScope]:
    """Return a selection's rows with the windows as further columns, and the rows that may be named afterwards.

    Args:
        definitions: The windows of the WINDOW clause by name.
    """
    bound = [_window(node, _written(node, definitions, rows), selection, rows) for node in nodes]
    parts = [part for w in bound for part in (*w.arguments, *w.partition, *(term.value for term in w.order))]
    with rows.pointing(nodes[0]):
        require_few(parts)
    windows = tuple(sorted(dict.fromkeys(bound), key=str))
    added = fresh("w", [window.type for window in windows], selection.relation)
    read: dict[Window, Window] = {}
    for node, window in zip(nodes, bound, strict=True):
        if window.function in PASSING:
            written = _written(node, definitions, rows)
            same = attempted(VALUES, _window, node, written, selection, rows.seen("read"))
            read |= {} if isinstance(same, QueryRefused) or same == window else {window: same}
    added, further = read_too(added, windows, read)
    places = dict(zip(windows, added, strict=True))
    prepared = {**rows.prepared, **{id(node): places[window] for node, window in zip(nodes, bound, strict=True)}}
    relation = Windowed(source=selection, windows=(*windows, *further.values()), added=(*added, *further))
    return FilteredRows(relation=relation), RowScope(
        text=rows.text, sources=rows.sources, prepared=prepared, lost=rows.lost
    )


# ---- WINDOW w AS (…) ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowText:
    """What is written of a window in parentheses, after OVER or in the WINDOW clause."""

    partition: Sequence[exp.Expression] = ()
    order: exp.Expression | None = None
    spec: exp.Expression | None = None


def definitions_in(select: exp.Select, rows: RowScope) -> Definitions:
    """Return the windows of the WINDOW clause by name; each may build on those before it."""
    definitions: dict[str, WindowText] = {}
    for node in select.args.get("windows") or []:
        rows.only(node, "this", "partition_by", "order", "spec", "alias")
        name = node.this
        rows.only(name, "this", "quoted")
        if any(name.name.casefold() == other.casefold() for other in definitions):
            raise rows.refusal(
                node, RefusalCause.DUPLICATE_NAME, f"Two windows are called '{name.name}'", "Rename one."
            )
        definitions[name.name] = _written(node, definitions, rows)
    return definitions


def _written(node: exp.Window, definitions: Definitions, rows: RowScope) -> WindowText:
    """Return what a window says, together with the one that it names; SQL lets it add an order and a frame."""
    own = WindowText(
        partition=node.args.get("partition_by") or (), order=node.args.get("order"), spec=node.args.get("spec")
    )
    alias = node.args.get("alias")
    if alias is None:
        return own
    rows.only(alias, "this", "quoted")
    base = next((written for name, written in definitions.items() if same_name(alias, name)), None)
    if base is None:
        names = ", ".join(definitions) or "none"
        raise rows.refusal(
            node, RefusalCause.UNKNOWN_WINDOW, f"There is no window '{alias.name}'", f"Windows: {names}."
        )
    changes = own.partition or (own.order and base.order) or ((own.order or own.spec) and base.spec)
    if changes:
        reason = f"OVER ({alias.name} …) changes what the window '{alias.name}' says"
        raise rows.refusal(node, RefusalCause.WINDOW_NOT_SUPPORTED, reason, "Write the window out.")
    return WindowText(partition=base.partition, order=own.order or base.order, spec=own.spec or base.spec)


def _require_one_unit(node: exp.Window, written: WindowText, selection: FilteredRows, rows: RowScope) -> None:
    """Refuse a window whose rows are not of one unit."""
    if any(rows.is_unit(part) for part in written.partition):
        return
    tables = tables_of(selection.relation)
    several, unit = rows_of_several(tables), rows.unit
    if isinstance(node.this, exp.Ntile):
        reason = f"NTILE would compare {several}"
        remedy = "Ask for APPROX_QUANTILES(x, 4) first, then count by CASE WHEN x < … THEN 1 …."
        raise rows.refusal(node, RefusalCause.MIXES_UNITS, reason, remedy)
    hidden = "Leave it out." if noun_of(tables) == "row" else f"Select {noun_of(tables)} in the subquery, too."
    raise rows.refusal(
        node,
        RefusalCause.MIXES_UNITS,
        f"A window over {several} is not supported",
        f"Write OVER (PARTITION BY {unit} …)." if unit else hidden,
    )


# ---- a window -------------------------------------------------------------------------------------------------------


def _window(node: exp.Window, written: WindowText, selection: FilteredRows, rows: RowScope) -> Window:
    rows.only(node, "this", "partition_by", "order", "over", "spec", "alias")
    if node.args.get("over") not in (None, "OVER"):
        raise rows.refusal(
            node,
            RefusalCause.WINDOW_NOT_SUPPORTED,
            f"{node.args['over']} is not supported here",
            "Write OVER (PARTITION BY …).",
        )
    _require_one_unit(node, written, selection, rows)
    most = selection.rows_per_unit
    plain = replace(rows, mode="value")
    groups = {looked_at(part, rows) for part in written.partition if not rows.is_unit(part)}
    called, where, ignores_nulls = function_of(node, rows)
    framed = attempted(_FRAMES, lambda: bind_frame(written.spec, node, _order(written.order, plain), most, rows))
    if isinstance(framed, QueryRefused):  # RANGE takes bounds
        framed = bind_frame(written.spec, node, _order(written.order, rows.seen("bounded")), most, rows)
    frame, order = framed
    frame, order = settled(str(name_in_plan(called)), node, order, frame, ignores_nulls, rows)
    seen = most if frame is None else frame.most(most)
    call = UnitCall(node=called, where=where, most=seen, rows=rows, windowed=True)
    function, arguments, kind = bind_call(call, WINDOW_FUNCTIONS, node)
    return Window(
        function=function,
        arguments=arguments,
        partition=tuple(sorted(groups, key=str)),
        order=order,
        type=kind,
        frame=frame,
        ignores_nulls=ignores_nulls,
    )


def _order(clause: exp.Expression | None, rows: RowScope) -> tuple[SortTerm, ...]:
    if clause is None:
        return ()
    rows.only(clause, "expressions")
    terms = []
    for part in clause.expressions:
        rows.only(part, "this", "desc", "nulls_first")
        value = ordered_by(part.this, rows) if rows.mode == "value" else bind_expression(part.this, rows)
        if isinstance(value, Literal):
            raise rows.refusal(part, RefusalCause.NOT_CONSTANT, "ORDER BY in a window takes columns, not constants")
        terms.append(
            SortTerm(
                value=value, descending=bool(part.args.get("desc")), nulls_first=bool(part.args.get("nulls_first"))
            )
        )
    return tuple(terms)

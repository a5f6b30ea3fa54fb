"""Bind joins to public tables: a row is joined with the public rows that equal it in what ON or USING compares.

What a row is joined with depends on that row and on public data alone. How many rows it becomes is bounded by how often
the compared values repeat in the public table: for a given row every compared value is one, so that at most as many
public rows match as share one combination of the columns compared. Without an equality see `range_joins`.
A float of a public table is compared as it is read, and its repetitions are counted so (`as_read.public_columns_of`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.expressions import logic
from lapwing.query.expressions.as_read import as_read
from lapwing.query.expressions.expression import ColumnReference, Expression, Operation
from lapwing.query.expressions.rows import RowScope, TableReference
from lapwing.query.expressions.types import Fixed, Type
from lapwing.query.from_clause.conditions import bind_condition, conjunction, conjuncts, filtered
from lapwing.query.from_clause.equalities import Pairs, all_of, binds, column_called, equal, pairs_in_order, separated
from lapwing.query.from_clause.full_joins import bind_full_join, bind_right_join
from lapwing.query.from_clause.range_joins import Comparison, most_met, ranges
from lapwing.query.from_clause.scope import Input, PublicInput, Scope, rows_of
from lapwing.query.from_clause.shared_joins import bind_shared_join
from lapwing.query.from_clause.unit_joins import bind_unit_join, connects, join_using
from lapwing.query.relations.fresh_columns import names_in, telling
from lapwing.query.relations.node import Relation
from lapwing.query.relations.public_join import JoinKind, PublicJoin
from lapwing.query.relations.public_rows import ComparedRange, PublicRows
from lapwing.query.relations.relation import FilteredRows, unscaled

# Rows without a unit do not exist, so that a RIGHT JOIN to a public table keeps what an inner one keeps: `outer_joins`.
KINDS: Mapping[tuple[str, str], JoinKind] = {
    ("", ""): "inner",
    ("", "INNER"): "inner",
    ("LEFT", ""): "left",
    ("LEFT", "OUTER"): "left",
    ("RIGHT", ""): "inner",
    ("RIGHT", "OUTER"): "inner",
    ("", "SEMI"): "semi",
    ("LEFT", "SEMI"): "semi",
    ("", "ANTI"): "anti",
    ("LEFT", "ANTI"): "anti",
}


_MIRRORED = {"LEFT": "RIGHT", "RIGHT": "LEFT", "": ""}


def bind_join(
    node: exp.Expression, input_: Input, public: Input | PublicInput, scope: Scope, *, mirrored: bool = False
) -> Input:
    """Bind JOIN … ON and JOIN … USING.

    Args:
        mirrored: Whether the public table stands before the join, and the protected one after it.
    """
    result = _bind_join(node, input_, public, scope, mirrored)
    side = _side(node, mirrored) if isinstance(public, PublicInput) else ""
    own = frozenset(column.name for column in input_.selection.relation.columns)
    dark = input_.dark if side != "RIGHT" else own if input_.dark is None else own & input_.dark
    sources = (result.sources[-1], *result.sources[:-1]) if mirrored else result.sources
    kept = input_.kept
    if side == "RIGHT" and isinstance(public, PublicInput) and isinstance(result.selection.relation, PublicJoin):
        kept = {**kept, result.selection.relation.added[0].name: public.rows}
    return replace(result, sources=sources, dark=dark, kept=kept)


def _side(node: exp.Expression, mirrored: bool) -> str:
    """Return the side of a join as if the protected table stood before it; none if it has no mirror image."""
    side = str(node.args.get("side") or "").upper()
    return _MIRRORED.get(side, side) if mirrored else side


def _bind_join(node: exp.Expression, input_: Input, public: Input | PublicInput, scope: Scope, mirrored: bool) -> Input:
    rows = rows_of(input_, scope)
    rows.only(node, "this", "on", "using", "side", "kind")
    if isinstance(public, Input):
        return _of_units(node, input_, public, scope)
    check_name(node, input_, public, rows)
    side, kind = _side(node, mirrored), str(node.args.get("kind") or "").upper()
    join = KINDS.get((side, kind))
    if join is None or (mirrored and join in ("semi", "anti")):
        asked = f"{node.args.get('side') or ''} {kind}".strip().upper()
        remedy = "Begin FROM with the protected table." if mirrored else "Use JOIN, LEFT or RIGHT JOIN."
        raise rows.refusal(node, RefusalCause.JOIN_NOT_SUPPORTED, f"{asked} JOIN is not supported", remedy)
    if node.args.get("using"):
        pairs = _shared(node.args["using"], rows, rows_of(public, scope))
        return _without_shared(node, joined(input_, public, join, pairs, scope), public)
    if node.args.get("on") is None:
        raise rows.refusal(
            node,
            RefusalCause.JOIN_CONDITION_MISSING,
            "A join without ON would pair every row with every public row",
            "Write ON or USING.",
        )
    pairs, conditions = separated(conjuncts(node.args["on"], rows), rows, rows_of(public, scope))
    outside, public = split(conditions, input_, public, scope)
    compared = list[Comparison]()
    if not pairs:
        compared, outside = ranges(outside, rows, rows_of(public, scope))
        _require(pairs or compared, node.args["on"], rows)
    if (outside or compared) and join not in ("inner", "left"):
        reason = f"{join.upper()} JOIN takes equalities and conditions on the public table"
        raise rows.refusal(node.args["on"], RefusalCause.JOIN_CONDITION_NOT_SUPPORTED, reason, "Use JOIN or LEFT JOIN.")
    result = joined(input_, public, join, pairs, scope, compared)
    where = all_of(outside, rows_of(result, scope))
    if where is None or join == "inner":
        return replace(result, selection=filtered(result.selection, where))
    return replace(result, selection=_matching(result.selection, where))


def _of_units(node: exp.Expression, input_: Input, other: Input, scope: Scope) -> Input:
    """Bind a join with rows of the same protected table."""
    side, kind = (str(node.args.get(part) or "").upper() for part in ("side", "kind"))
    join = KINDS.get((side, kind))
    if side in ("RIGHT", "FULL") and kind in ("", "OUTER") and input_.dark is None:
        return (bind_right_join if side == "RIGHT" else bind_full_join)(node, input_, other, scope)
    if join is None or join == "not_in":
        reason = f"{side} {kind}".strip() + " JOIN of a protected table is not supported"
        raise rows_of(input_, scope).refusal(
            node, RefusalCause.JOIN_NOT_SUPPORTED, reason, "Use JOIN, LEFT, RIGHT or FULL JOIN."
        )
    if node.args.get("using"):
        return join_using(node, join, input_, other, node.args["using"], scope)
    on = node.args.get("on")
    conditions = conjuncts(on, scope.nowhere) if on is not None else []
    if scope.sharing and join == "inner" and not connects(input_, other, conditions, scope):
        return bind_shared_join(node, input_, other, conditions, scope)
    return bind_unit_join(node, join, input_, other, conditions, scope)


def check_name(node: exp.Expression, input_: Input, public: PublicInput, rows: RowScope) -> None:
    """Refuse a public table that has the name of another table of the question."""
    if any(source.name.casefold() == public.source.name.casefold() for source in input_.sources):
        raise rows.refusal(
            node, RefusalCause.DUPLICATE_NAME, f"Two tables are called '{public.source.name}'", "Rename one with AS."
        )


def _shared(using: Sequence[exp.Expression], private: RowScope, public: RowScope) -> Pairs:
    pairs = []
    for name in using:
        column = column_called(name)
        with private.pointing(name):
            pairs.append(equal(as_read(private.column(column)), as_read(public.column(column))))
    return pairs


def _without_shared(node: exp.Expression, result: Input, public: PublicInput) -> Input:
    """Show each column of USING once.

    In an inner join that is the public one, as its values are known; but the privacy unit stays the protected table's.
    """
    names = {name.name.casefold() for name in node.args["using"]}
    units = {source.unit.casefold() for source in result.sources if source.unit is not None}
    inner = isinstance(result.selection.relation, PublicJoin) and result.selection.relation.kind == "inner"

    def remaining(source: TableReference) -> TableReference:
        of_public = source.name == public.source.name
        gone = names & units if of_public and inner else names if of_public else names - units if inner else set()
        return replace(source, columns={n: e for n, e in source.columns.items() if n.casefold() not in gone})

    return replace(result, sources=tuple(map(remaining, result.sources)))


# ---- conditions -----------------------------------------------------------------------------------------------------


def equalities(
    conditions: Sequence[exp.Expression], input_: Input, public: PublicInput, scope: Scope
) -> tuple[Pairs, list[exp.Expression]]:
    """Separate the equalities between a row and a public row from other conditions."""
    private_rows = rows_of(input_, scope)
    pairs, rest = separated(conditions, private_rows, rows_of(public, scope))
    _require(pairs, conditions[0], private_rows)
    return pairs, rest


def _require(found: Sequence[object], node: exp.Expression, rows: RowScope) -> None:
    """Refuse a join that pairs every row with every public row."""
    if not found:
        reason = "A join needs an equality with a column of the public table, or a comparison by <, <=, > or >="
        raise rows.refusal(node, RefusalCause.JOIN_CONDITION_MISSING, reason)


def split(
    conditions: Sequence[exp.Expression], input_: Input, public: PublicInput, scope: Scope
) -> tuple[list[exp.Expression], PublicInput]:
    """Put conditions on the public table alone into its rows; return the others."""
    rows = rows_of(public, scope)
    outside: list[exp.Expression] = []
    for node in conditions:
        if binds(node, rows) and not binds(node, rows_of(input_, scope)):
            where = conjunction(public.rows.where, bind_condition(node, rows, "ON"))
            public = replace(public, rows=replace(public.rows, where=where))
        else:
            outside.append(node)
    return outside, public


# ---- the relation ---------------------------------------------------------------------------------------------------


def joined(
    input_: Input,
    public: PublicInput,
    kind: JoinKind,
    pairs: Pairs,
    scope: Scope,
    compared: Sequence[Comparison] = (),
) -> Input:
    """Return rows joined on pairs of equal values; without such, on comparisons."""
    keys = [_injective(right) for _, right in pairs]
    names = sorted({key.name for key in keys if key is not None})
    multiplicity = (
        most_met(compared, public.rows, scope.facts) if compared else _multiplicity(public.rows, names, scope)
    )
    for (left, right), key in zip(pairs, keys, strict=True):
        if key is None and multiplicity > 1:  # values that are computed repeat as often as there are equal ones
            same = ComparedRange(rows=public.rows, value=left.type, ends=((">=", right), ("<=", right)))
            multiplicity = min(multiplicity, scope.facts.overlap(same))
    shows = kind in ("inner", "left")
    added = _added(public.rows, input_.selection.relation) if shows else ()
    relation = PublicJoin(
        kind=kind,
        source=input_.selection,
        other=public.rows,
        on=pairs_in_order(pairs),
        multiplicity=multiplicity,
        added=added,
        compared=scope.facts.multiplicity(public.rows.table, ()) if compared else 0,
    )
    if not shows:
        return replace(input_, selection=FilteredRows(relation=relation))
    places = dict(zip(public.rows.columns, added, strict=True))
    for one in compared:
        condition = logic.compare(one.symbol, one.row, _in_places(one.public, places))
        relation = replace(relation, condition=conjunction(relation.condition, condition))
    if kind == "left" and not all(isinstance(column, ColumnReference) for column in public.source.columns.values()):
        reason = f"'{public.source.name}' computes columns, which are NULL where no row of it matches"
        raise QueryRefused(
            f"{reason}: not answered in a LEFT JOIN",
            cause=RefusalCause.JOIN_NOT_SUPPORTED,
            remedy="Compute them outside of the subquery.",
        )
    named = {name: _in_places(column, places) for name, column in public.source.columns.items()}
    return Input(
        selection=FilteredRows(relation=relation),
        sources=(*input_.sources, TableReference(name=public.source.name, columns=named)),
    )


def _matching(selection: FilteredRows, where: Expression) -> FilteredRows:
    """Return a join in which a row meets only public rows for which a condition is true of both."""
    relation = selection.relation
    if not isinstance(relation, PublicJoin):
        raise TypeError(f"{relation.construct} is no join to public rows")
    return replace(selection, relation=replace(relation, condition=conjunction(relation.condition, where)))


def _in_places(expression: Expression, places: Mapping[ColumnReference, ColumnReference]) -> Expression:
    """Return what is computed of public columns as one of these columns among joined rows: types are the same."""
    if isinstance(expression, ColumnReference):
        return places[expression]
    if isinstance(expression, Operation):
        read = None if expression.read is None else _in_places(expression.read, places)
        arguments = tuple(_in_places(part, places) for part in expression.arguments)
        return replace(expression, arguments=arguments, read=read)
    return expression


def _multiplicity(rows: PublicRows, compared: Sequence[str], scope: Scope) -> int:
    """Return the most public rows that share one combination of values; of distinct rows, one of whole rows."""
    if rows.distinct and {column.name for column in telling(rows.columns)} <= set(compared):
        return 1
    return scope.facts.multiplicity(rows.table, compared)


def _added(rows: PublicRows, relation: Relation) -> tuple[ColumnReference, ...]:
    """Name the public columns after where they come from, as the relation has no such name yet."""
    taken = names_in(relation)
    suffix, number = "", 1
    while any(f"{rows.table.name}.{column.name}{suffix}".casefold() in taken for column in rows.columns):
        number += 1
        suffix = f" {number}"
    added = {c: ColumnReference(name=f"{rows.table.name}.{c.name}{suffix}", type=c.type) for c in rows.columns}
    read = {c: replace(added[c], cleaned=added[c.cleaned], public=True) for c in rows.columns if c.cleaned is not None}
    back = {c.cleaned: one for c, one in read.items()}
    return tuple(read.get(c) or replace(added[c], read=back.get(c)) for c in rows.columns)


def _is_narrow(kind: Type) -> bool:
    """Tell whether different numbers of steps are different doubles: up to 2⁵⁰ are a last bit apart and more."""
    return isinstance(kind, Fixed) and kind.bounded and max(abs(kind.low or 0), abs(kind.high or 0)) <= 2**50


def _injective(expression: Expression) -> ColumnReference | None:
    """Return the column that a joined value is, up to a change of units that keeps different values different."""
    column = unscaled(expression)
    if isinstance(column, Operation) and column.function == "to_real" and _is_narrow(column.arguments[0].type):
        column = unscaled(column.arguments[0])
    return column if isinstance(column, ColumnReference) else None

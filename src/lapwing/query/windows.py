"""Bind window functions over the rows of one unit.

Guarantee: a window is partitioned by the privacy unit, so that what it adds to a row depends on rows of the same unit
alone. It must also not depend on the order in which an engine happens to hold them. RANK, and sums over peers, do not.
ROW_NUMBER, LAG and LEAD do where the ORDER BY leaves ties; printed SQL breaks ties by all columns of the relation, and
rows that are equal in all of them are interchangeable.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import cast

from sqlglot import exp

from lapwing.query import conversion, functions
from lapwing.query.calls import bind_expression, name_of
from lapwing.query.expression import Expression, Literal, is_number
from lapwing.query.limits import require_few
from lapwing.query.relations import Selection, SortTerm, Window, Windowed, fresh
from lapwing.query.rows import Rows, only, refusal
from lapwing.query.scope import pointing
from lapwing.query.types import Fixed, Type, describe

NEEDS_TOTAL_ORDER = {"row_number", "lag", "lead"}
"""The functions whose ties are broken by all columns."""


def windows_in(select: exp.Select) -> list[exp.Window]:
    """Return the window functions of a SELECT list and QUALIFY, outermost first."""
    parts = [*select.expressions, *([select.args["qualify"]] if select.args.get("qualify") is not None else [])]
    found: list[exp.Window] = []
    for part in parts:
        _find(part, found)
    return found


def _find(node: exp.Expression, found: list[exp.Window]) -> None:
    if isinstance(node, exp.Window):
        found.append(node)
    elif not isinstance(node, exp.Subquery | exp.Select):
        for child in node.iter_expressions():
            _find(child, found)


def bind_windows(nodes: Sequence[exp.Window], selection: Selection, rows: Rows) -> tuple[Selection, Rows]:
    """Return a selection's rows with the windows as further columns, and the rows that may be named afterwards."""
    bound = [_window(node, selection.rows_per_unit, rows) for node in nodes]
    parts = [part for w in bound for part in (*w.arguments, *w.partition, *(term.value for term in w.order))]
    require_few(parts, nodes[0], rows)
    windows = tuple(sorted(dict.fromkeys(bound), key=str))
    added = fresh("w", [window.type for window in windows], selection.relation)
    places = dict(zip(windows, added, strict=True))
    prepared = {**rows.prepared, **{id(node): places[window] for node, window in zip(nodes, bound, strict=True)}}
    relation = Windowed(source=selection, windows=windows, added=added)
    return Selection(relation=relation), Rows(text=rows.text, sources=rows.sources, prepared=prepared, lost=rows.lost)


def _window(node: exp.Window, most: int, rows: Rows) -> Window:
    only(rows, node, "this", "partition_by", "order", "over")
    partition = node.args.get("partition_by") or []
    if not any(rows.is_unit(part) for part in partition):
        unit = rows.unit
        raise refusal(
            rows,
            node,
            "A window over the rows of different units is not answered",
            f"Write OVER (PARTITION BY {unit} …)." if unit else "The privacy unit is not at hand here.",
        )
    groups = {bind_expression(part, rows) for part in partition if not rows.is_unit(part)}
    order = _order(node, rows)
    rule = _RULES.get(type(node.this))
    if rule is None:
        raise refusal(
            rows,
            node,
            f"{name_of(node.this)} is not answered as a window",
            "Use ROW_NUMBER, RANK, DENSE_RANK, LAG, LEAD, COUNT, SUM, AVG, MIN, MAX.",
        )
    with pointing(rows, node):
        function, arguments, kind = rule(node.this, most, rows)
    if function in _RANKED and not order:
        raise refusal(rows, node, f"{name_of(node.this)} needs an order", "Write OVER (PARTITION BY … ORDER BY …).")
    return Window(
        function=function,
        arguments=arguments,
        partition=tuple(sorted(groups, key=str)),
        order=order,
        type=kind,
    )


_RANKED = {"row_number", "rank", "dense_rank", "lag", "lead"}


def _order(node: exp.Window, rows: Rows) -> tuple[SortTerm, ...]:
    clause = node.args.get("order")
    if clause is None:
        return ()
    only(rows, clause, "expressions")
    terms = []
    for part in clause.expressions:
        only(rows, part, "this", "desc", "nulls_first")
        value = bind_expression(part.this, rows)
        if isinstance(value, Literal):
            raise refusal(rows, part, "ORDER BY in a window takes columns, not constants")
        terms.append(
            SortTerm(
                value=value, descending=bool(part.args.get("desc")), nulls_first=bool(part.args.get("nulls_first"))
            )
        )
    return tuple(terms)


Bound = tuple[str, tuple[Expression, ...], Type]
Rule = Callable[[exp.Expression, int, Rows], Bound]


def _rank(function: str) -> Rule:
    def rule(node: exp.Expression, most: int, rows: Rows) -> Bound:
        only(rows, node)
        return function, (), conversion.fixed(Fraction(1), 1, most)

    return rule


def _shifted(function: str) -> Rule:
    def rule(node: exp.Expression, most: int, rows: Rows) -> Bound:
        only(rows, node, "this", "offset", "default")
        value = bind_expression(node.this, rows)
        offset = node.args.get("offset")
        step = bind_expression(offset, rows) if offset is not None else conversion.number(Fraction(1))
        number = step.value if isinstance(step, Literal) else None
        if not isinstance(number, Fraction) or number.denominator != 1 or not 0 <= number <= most:
            raise refusal(rows, node, f"{function.upper()} takes a whole number of rows, at most {most}")
        default = node.args.get("default")
        if default is None:
            return function, (value, step), value.type
        value, other = conversion.alike((value, bind_expression(default, rows)))
        if not isinstance(other, Literal):
            raise refusal(rows, node, f"The default of {function.upper()} must be a constant")
        return function, (value, step, other), functions.hull((value, other))

    return rule


def _count(node: exp.Expression, most: int, rows: Rows) -> Bound:
    only(rows, node, "this", "big_int")
    kind = conversion.fixed(Fraction(1), 0, most)
    if isinstance(node.this, exp.Star):
        only(rows, node.this)
        return "count", (), kind
    if node.this is not None and rows.is_unit(node.this):
        return "count", (), kind
    argument = bind_expression(node.this, rows)
    return "count", (argument,) if conversion.nullable(argument) else (), kind


def _summed(node: exp.Expression, rows: Rows) -> Expression:
    only(rows, node, "this")
    argument = bind_expression(node.this, rows)
    if not is_number(argument.type):
        raise refusal(rows, node, f"{node.key.upper()} needs a number, not {describe(argument.type)}")
    return conversion.summable(argument)


def _sum(node: exp.Expression, most: int, rows: Rows) -> Bound:
    argument = _summed(node, rows)
    low, high = conversion.integers_of(argument)
    step = cast(Fixed, argument.type).step
    return "sum", (argument,), conversion.fixed(step, min(low, low * most), max(high, high * most))


def _average(node: exp.Expression, _most: int, rows: Rows) -> Bound:
    argument = _summed(node, rows)
    return "average", (argument,), conversion.to_real(argument).type


def _extreme(function: str) -> Rule:
    def rule(node: exp.Expression, _most: int, rows: Rows) -> Bound:
        only(rows, node, "this")
        argument = bind_expression(node.this, rows)
        return function, (argument,), argument.type

    return rule


_RULES: Mapping[type[exp.Expression], Rule] = {
    exp.RowNumber: _rank("row_number"),
    exp.Rank: _rank("rank"),
    exp.DenseRank: _rank("dense_rank"),
    exp.Lag: _shifted("lag"),
    exp.Lead: _shifted("lead"),
    exp.Count: _count,
    exp.Sum: _sum,
    exp.Avg: _average,
    exp.Min: _extreme("least"),
    exp.Max: _extreme("greatest"),
}

"""GEN_RANDOM_UUID() of rows, and windows over the privacy unit itself: what only tells rows and units apart.

Tools write `GEN_RANDOM_UUID() AS id` to partition by a row, or to remove duplicates that are none. Every row has an
identifier of its own, and nothing else is known of it. Where it only tells rows apart, the number of the row within its
unit is as good. For a window is partitioned by the unit too, and DISTINCT in a subquery shows it (`subqueries`). So no
two rows that are compared have the same unit and the same number.

It is one only if every mention of its name in the statement is in PARTITION BY, or hands it on under that name. Nothing
may read columns that it does not name. Elsewhere, such as in COUNT(DISTINCT id), rows of different units would be taken
for the same one: the function is refused. So it is in a view, which does not see the statement around it.

Guarantee:
    A row number is a window function within a unit, of which `relations.windowed` has the proof.

FIRST_VALUE(u) OVER (PARTITION BY u …) is u, where u is the privacy unit, because all rows of a part are of one unit.
"""

from typing import Final

from sqlglot import exp

from lapwing.query.expressions.rows import RowScope, is_column
from lapwing.query.from_clause.groupings import is_aggregated
from lapwing.query.from_clause.listed_values import has_only
from lapwing.query.text.trees import nodes_of

_PICKING: Final = (exp.FirstValue, exp.LastValue, exp.Min, exp.Max)
_APART: Final = "only_tells_rows_apart"


def with_row_numbers(select: exp.Select, rows: RowScope) -> exp.Select:
    """Return a SELECT over rows of units with numbers in the place of identifiers that only tell rows apart."""
    places = [place for place, item in enumerate(select.expressions) if _is_identifier(item)]
    source = next((source for source in rows.sources if source.unit is not None and source.columns), None)
    if not places or source is None or source.unit is None or select.args.get("distinct") or is_aggregated(select):
        return select
    select, some = select.copy(), next(iter(source.columns))  # ties are broken by all columns
    for place in places:
        unit, column = (exp.column(name, source.name, quoted=True) for name in (source.unit, some))
        order = exp.Order(expressions=[exp.Ordered(this=column)])
        number = exp.Window(this=exp.RowNumber(), partition_by=[unit], order=order, over="OVER")
        select.expressions[place].set("this", number)
    return select


def with_units_as_they_are(select: exp.Select, rows: RowScope) -> exp.Select:
    """Return a SELECT with the unit in the place of windows that pick it from rows of one unit."""
    places = [place for place, item in enumerate(select.expressions) if _picks_unit(item, rows)]
    if not places:
        return select
    select = select.copy()
    for place in places:
        item = select.expressions[place]
        item.set("this", item.this.this.this)
    return select


def mark_identifiers(statement: exp.Select) -> None:
    """Mark the random identifiers that only tell rows apart, while every mention of them is in sight."""
    items = [item for item in nodes_of(statement, exp.Alias) if isinstance(item.this, exp.Uuid)]
    if not items or any(_reads_what_it_does_not_name(node, statement) for node in nodes_of(statement)):
        return
    for item in items:
        named = [node for node in nodes_of(statement, exp.Identifier) if node.name.casefold() == item.alias.casefold()]
        if all(_only_tells_apart(name, statement) for name in named):
            item.this.meta[_APART] = True


def _is_identifier(item: exp.Expression) -> bool:
    return type(item) is exp.Alias and _APART in item.this.meta and has_only(item.this, "is_string")


def _reads_what_it_does_not_name(node: exp.Expr, statement: exp.Select) -> bool:
    """Tell whether a node may rename, compare or show columns without their names, but by a star in FROM."""
    if isinstance(node, exp.Star):
        item = node.parent if isinstance(node.parent, exp.Column) else node
        counted = item is node and isinstance(node.parent, exp.Count)
        return not counted and not _is_handed_on(item, statement)
    if isinstance(node, exp.Select):
        around = node.parent.parent if isinstance(node.parent, exp.Subquery) else node.parent
        return node is not statement and not isinstance(around, exp.From | exp.Join | exp.CTE)
    if isinstance(node, exp.Join):
        return node.args.get("method") is not None
    columns = isinstance(node, exp.TableAlias) and node.args.get("columns")
    return bool(columns) or isinstance(node, exp.SetOperation | exp.Pivot | exp.Lateral)


def _is_handed_on(item: exp.Expr, statement: exp.Select) -> bool:
    """Tell whether an item is shown by a SELECT inside another, without GROUP BY, which may name it by its place."""
    select = item.parent
    shown = item.arg_key == "expressions" and isinstance(select, exp.Select)
    return shown and select is not statement and select is not None and select.args.get("group") is None


def _only_tells_apart(name: exp.Identifier, statement: exp.Select) -> bool:
    node = name.parent
    if isinstance(node, exp.Alias):  # of the identifier itself, or of a column that hands it on
        inner = node.this
        handed_on = isinstance(inner, exp.Column) and inner.name.casefold() == name.name.casefold()
        return handed_on or isinstance(inner, exp.Uuid)
    if not isinstance(node, exp.Column) or name.arg_key != "this":
        return False
    around = node.parent
    item = around if isinstance(around, exp.Alias) and around.alias.casefold() == name.name.casefold() else node
    return node.arg_key == "partition_by" or _is_handed_on(item, statement)


def _picks_unit(item: exp.Expression, rows: RowScope) -> bool:
    window = item.this if type(item) is exp.Alias else None
    if not isinstance(window, exp.Window) or not has_only(window, "this", "partition_by", "order", "over", "spec"):
        return False
    picked = window.this
    if not isinstance(picked, _PICKING) or not has_only(picked, "this") or not is_column(picked.this):
        return False
    parts = window.args.get("partition_by") or ()
    return _is_whole(window.args.get("spec")) and rows.is_unit(picked.this) and any(map(rows.is_unit, parts))


def _is_whole(spec: exp.Expression | None) -> bool:
    """Tell whether a frame surely has a row: it begins with the first of the part, and reaches the row itself."""
    if spec is None:
        return True
    begins = (str(spec.args.get("start")), str(spec.args.get("start_side"))) == ("UNBOUNDED", "PRECEDING")
    reaches = spec.args.get("end") in (None, "CURRENT ROW", "UNBOUNDED") and spec.args.get("end_side") != "PRECEDING"
    return begins and reaches and not spec.args.get("exclude")

"""GEN_RANDOM_UUID() of rows, and windows over the privacy unit itself: what only tells rows and units apart.

Tools write `GEN_RANDOM_UUID() AS id` to partition by a row, or to remove duplicates that are none. Every row has an
identifier of its own, and nothing else is known of it. Where it only tells rows apart, the number of the row within its
unit is as good. For a window is partitioned by the unit too, and DISTINCT in a subquery shows it (`subqueries`). So no
two rows that are compared have the same unit and the same number.

It is one only if every mention of its name is in PARTITION BY, or hands it on under that name. No UNION may be there.
Elsewhere, such as in COUNT(DISTINCT id), rows of different units would be taken for the same one: the function is
refused.

Guarantee:
    A row number is a window function within a unit, of which `relations.windowed` has the proof.

FIRST_VALUE(u) OVER (PARTITION BY u …) is u, where u is the privacy unit, because all rows of a part are of one unit.
"""

from typing import Final

from sqlglot import exp

from lapwing.query.expressions.rows import RowScope, is_column
from lapwing.query.from_clause.groupings import is_aggregated
from lapwing.query.from_clause.listed_values import has_only

_PICKING: Final = (exp.FirstValue, exp.LastValue, exp.Min, exp.Max)


def with_row_numbers(select: exp.Select, rows: RowScope) -> exp.Select:
    """Return a SELECT over rows of units with numbers in the place of identifiers that only tell rows apart."""
    places = [place for place, item in enumerate(select.expressions) if _is_identifier(item, select)]
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


def _is_identifier(item: exp.Expression, select: exp.Select) -> bool:
    """Tell whether an item is a random identifier with a name, and nothing else is done with it than to tell rows."""
    if type(item) is not exp.Alias or not isinstance(item.this, exp.Uuid) or not has_only(item.this, "is_string"):
        return False
    whole = select.root()
    if whole.find(exp.SetOperation) is not None:  # which may bring rows together that were numbered apart
        return False
    named = [node for node in whole.find_all(exp.Identifier) if node.name.casefold() == item.alias.casefold()]
    return all(map(_only_tells_apart, named))


def _only_tells_apart(name: exp.Identifier) -> bool:
    node = name.parent
    if isinstance(node, exp.Alias):  # of the identifier itself, or of a column that hands it on
        inner = node.this
        handed_on = isinstance(inner, exp.Column) and inner.name.casefold() == name.name.casefold()
        return handed_on or isinstance(inner, exp.Uuid)
    if not isinstance(node, exp.Column):
        return False
    if node.arg_key == "partition_by":
        return True
    around = node.parent
    item = around if isinstance(around, exp.Alias) and around.alias.casefold() == name.name.casefold() else node
    select = item.parent
    shown = item.arg_key == "expressions" and isinstance(select, exp.Select)
    return shown and select is not None and select.args.get("group") is None  # which may name it by its place


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

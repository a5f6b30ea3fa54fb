"""Bind the SELECT list of a subquery: its columns, their names, and whether it shows the privacy unit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from lapwing.errors import RefusalCause
from lapwing.query.expressions.calls import bind_both
from lapwing.query.expressions.expression import Expression
from lapwing.query.expressions.rows import RowScope, is_column, is_star, same_name
from lapwing.query.expressions.weight import require_few
from lapwing.query.relations.size import MOST_COLUMNS
from lapwing.query.text.trees import nodes_of


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectItem:
    """A column of a subquery. The privacy unit has a value only where the catalog declares its column."""

    name: str
    value: Expression | None
    unit: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectList:
    """The columns of a subquery by name, and the name of the unit, if it is shown.

    Args:
        unit_place: Where the unit is among the columns, if that is known: it is declared, or all columns are listed.
    """

    columns: Mapping[str, Expression]
    unit: str | None = None
    unit_place: int | None = None


def bind_list(select: exp.Select, rows: RowScope) -> SelectList:
    """Bind a SELECT list, in which no two columns have the same name."""
    items: list[SelectItem] = []
    for node in select.expressions:
        items += _of_star(node, rows) if is_star(node) else [_item(node, rows, len(items))]
    names = [item.name.casefold() for item in items]
    twice = next((item.name for item in items if names.count(item.name.casefold()) > 1), None)
    if twice is not None:
        raise rows.refusal(
            select,
            RefusalCause.DUPLICATE_NAME,
            f"Two columns of a subquery are called '{twice}'",
            "Rename one with AS.",
        )
    places = [place for place, item in enumerate(items) if item.unit]
    if any(items[place].value is None for place in places[1:]):  # further ones are columns like others
        raise rows.refusal(
            select, RefusalCause.DUPLICATE_NAME, "A subquery shows the privacy unit twice", "Name it once."
        )
    if len(items) > MOST_COLUMNS:
        raise rows.refusal(
            select, RefusalCause.TOO_MANY_COLUMNS, f"A subquery has more than {MOST_COLUMNS} columns", "Use fewer."
        )
    columns = {item.name: item.value for item in items if item.value is not None}
    with rows.pointing(select):
        require_few(columns.values())
    fixed = bool(places) and (items[places[0]].value is not None or not any(map(is_star, select.expressions)))
    return SelectList(
        columns=columns,
        unit=items[places[0]].name if places else None,
        unit_place=places[0] if fixed else None,
    )


def _of_star(node: exp.Expression, rows: RowScope) -> list[SelectItem]:
    star = node if isinstance(node, exp.Star) else node.this
    if rows.lost:
        raise rows.refusal(node, RefusalCause.STAR_NOT_SUPPORTED, "SELECT * after GROUP BY", "Name the columns.")
    items: list[SelectItem] = []
    for source in rows.sources if star is node else rows.qualified(node):
        unit = source.unit
        if unit is not None and not any(name.casefold() == unit.casefold() for name in source.columns):
            items.append(SelectItem(name=unit, value=None, unit=True))
        for name, value in source.columns.items():
            items.append(
                SelectItem(name=name, value=value, unit=unit is not None and name.casefold() == unit.casefold())
            )
    kept = starred(star, [item.name for item in items], rows)
    others = {
        name: SelectItem(name=name, value=bind_both(value, rows)) for name, value in replaced(star, kept, rows).items()
    }
    return [others.get(item.name, item) for item in items if item.name in kept]


def replaced(star: exp.Expression, names: Sequence[str], rows: RowScope) -> dict[str, exp.Expression]:
    """Return the columns of a * that have another value there, as in * REPLACE (age / 10 AS age), with that value."""
    others = dict[str, exp.Expression]()
    for node in star.args.get("replace") or ():
        value, called = named(node, rows)
        meant = [name for name in names if type(node) is exp.Alias and same_name(node.args["alias"], name)]
        if len(meant) != 1 or meant[0] in others:
            reason = f"* REPLACE takes each column of the list once, and not '{called}'"
            remedy = f"Write * REPLACE (x AS y), where y is one of {', '.join(names)}."
            raise rows.refusal(node, RefusalCause.UNKNOWN_COLUMN, reason, remedy)
        others[meant[0]] = value
    return others


def starred(star: exp.Expression, names: Sequence[str], rows: RowScope) -> list[str]:
    """Return the names that a * shows: all of them but those that it leaves out, as in * EXCLUDE (age)."""
    left_out, kept = star.args.get("except_"), list(names)
    rows.only(star, *(name for name in ("except_", "replace") if isinstance(star.args.get(name), list)))
    for column in left_out or ():
        rows.only(column, "this")
        if not any(same_name(column.this, name) for name in kept):
            raise rows.refusal(
                column,
                RefusalCause.UNKNOWN_COLUMN,
                f"There is no column '{column.name}' to leave out",
                f"It has {', '.join(kept)}.",
            )
        kept = [name for name in kept if not same_name(column.this, name)]
    if not kept:
        raise rows.refusal(star, RefusalCause.STAR_NOT_SUPPORTED, "* leaves out all columns there are", "Keep one.")
    return kept


def _item(node: exp.Expression, rows: RowScope, place: int) -> SelectItem:
    inner, name = named(node, rows)
    name = name or f"column{place + 1}"
    unit = rows.is_unit(inner)
    # Where the unit is declared it is also a column that questions may read.
    declared = not unit or any(same_name(inner.this, column) for source in rows.sources for column in source.columns)
    value = bind_both(inner, rows) if declared else None
    return SelectItem(name=name, value=value, unit=unit)


def named(node: exp.Expression, rows: RowScope) -> tuple[exp.Expression, str | None]:
    """Return what an item of a SELECT list is of, and its name if it has one."""
    if type(node) is exp.Alias:
        rows.only(node, "this", "alias")
        rows.only(node.args["alias"], "this", "quoted")
        return node.this, str(node.alias)
    return node, str(node.this.name) if is_column(node) else None


# ---- aliases --------------------------------------------------------------------------------------------------------


def placed(node: exp.Expression | None, items: Sequence[exp.Expression]) -> exp.Expression | None:
    """Return the item of a SELECT list of which a node gives the place, as in GROUP BY 1; None if there is none."""
    if not isinstance(node, exp.Literal) or node.is_string or not str(node.this).isdecimal():
        return None
    place = int(node.this)
    return items[place - 1] if 1 <= place <= len(items) else None


def chosen(node: exp.Expression, select: exp.Select, rows: RowScope) -> exp.Expression:
    """Resolve GROUP BY 1 and GROUP BY alias to what the SELECT list says there; columns come before aliases."""
    items = select.expressions
    if isinstance(node, exp.Literal) and not node.is_string:
        rows.only(node, "this")
        item = placed(node, items)
        if item is None:
            raise rows.refusal(node, RefusalCause.UNKNOWN_COLUMN, f"There is no column {node.this} in the SELECT list")
        return named(item, rows)[0]
    return _aliased(node, items, rows) or node


def _aliased(node: exp.Expression, items: Sequence[exp.Expression], rows: RowScope) -> exp.Expression | None:
    if not is_column(node) or node.args.get("table") is not None:
        return None
    sources = (*rows.sources, *rows.lost)
    if any(same_name(node.this, name) for source in sources for name in (*source.columns, source.unit or "")):
        return None
    aliased = [named(item, rows)[0] for item in items if type(item) is exp.Alias and same_name(node.this, item.alias)]
    if aliased:
        rows.only(node, "this")
        rows.only(node.this, "this", "quoted")
    if len(aliased) > 1:
        raise rows.refusal(
            node, RefusalCause.AMBIGUOUS_COLUMN, f"'{node.name}' is the name of several columns", "Rename one."
        )
    return aliased[0] if aliased else None


def with_aliases(clause: exp.Expression | None, select: exp.Select, rows: RowScope) -> RowScope:
    """Return rows in which a clause after GROUP BY or a window may name the columns of the SELECT list."""
    prepared = dict(rows.prepared)
    for node in nodes_of(clause, exp.Column) if clause is not None else ():
        aliased = _aliased(node, select.expressions, rows)
        if aliased is not None:
            prepared[id(node)] = bind_both(aliased, rows)
    return RowScope(text=rows.text, sources=rows.sources, prepared=prepared, lost=rows.lost)

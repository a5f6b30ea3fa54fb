"""Joins of rows to lists of constants: visits v JOIN (VALUES ('a', 2), ('b', 3)) AS f (plan, w) ON v.plan = f.plan.

A row meets at most one row of the list, where the list's keys differ. So the other columns of the list are functions of
the row, f.w is CASE v.plan WHEN 'a' THEN 2 WHEN 'b' THEN 3 END, and the join keeps the rows whose plan is listed.
A LEFT JOIN keeps all of them. So a unit has no more rows than before, and nothing else is to prove. A row of the list
whose key is NULL meets none.

Any other condition is written as `visits AS v, (VALUES …) AS f WHERE …`: the same rows, where all joins are inner.
A list that stands first is joined second: inner joins may be made in any order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, DecimalException
from typing import Final

from sqlglot import exp

from lapwing.catalog.public import PublicTable
from lapwing.catalog.table import Table
from lapwing.errors import RefusalCause
from lapwing.query.classify.kinds import Kinds, RelationKind, items_of, visible_in
from lapwing.query.expressions.rows import is_column, is_star, same_name
from lapwing.query.from_clause.comma_joins import is_inner, is_listed
from lapwing.query.from_clause.conditions import conjuncts
from lapwing.query.from_clause.listed_values import MOST_KEYS, MOST_LISTED, Row, has_only, list_of
from lapwing.query.from_clause.scope import Scope, protected_table, public_table
from lapwing.query.text.trees import nodes_of

_NUMBERS: Final = ("integer", "decimal", "float")
Tables = Mapping[str, Table | PublicTable]
_COMPARED: Final = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
"""Comparisons that are NULL where a side is."""


def with_listed_joins(select: exp.Expression, within: Scope) -> exp.Expression | None:
    """Return a SELECT over rows without ON and USING of its first list of constants; None if there is none."""
    clause, joins = select.args.get("from_"), select.args.get("joins") or []
    if not isinstance(select, exp.Select) or clause is None or not joins or not has_only(clause, "this"):
        return None
    items = [clause.this, *(join.this for join in joins)]
    if not any(isinstance(item, exp.Values | exp.Unnest) for item in items):
        return None
    kinds = Kinds(within).in_from(select, visible_in(select))
    if RelationKind.PROTECTED not in kinds or RelationKind.RELEASED in kinds:
        return None
    if list_of(items[0], nulls=True, most=MOST_KEYS) is not None:
        return _second(select, joins)
    listed = [list_of(join.this, nulls=True, most=MOST_KEYS) is not None for join in joins]
    place = next((i for i, join in enumerate(joins) if listed[i] and not is_listed(join)), None)
    if place is None or not has_only(joins[place], "this", "on", "using", "side", "kind"):
        return None
    join = joins[place]
    _require_clear_names(select, join, within)
    on = _condition(join, clause.this, alone=place == 0)
    if on is None or str(join.args.get("kind") or "").upper() not in ("", "INNER", "OUTER"):
        return None
    on = _with_tables(on, select, join, within)
    _leave_out_nulls(join.this, on)
    lookup = _Lookup.of(join, on, select, within)
    if lookup is not None and lookup.names_are_clear(select):
        select.set("joins", [other for other in joins if other is not join])
        return lookup.written(select)
    if len(join.this.expressions) > MOST_LISTED:
        reason = f"Rows join a list of at most {MOST_LISTED} rows, or of {MOST_KEYS:,} with one row for each key"
        raise within.nowhere.refusal(join.this, RefusalCause.RESULT_TOO_LARGE, reason, "Join one row for each key.")
    if (
        join.args.get("side")
        or not all(is_inner(other) for other in joins if other is not join)
        or any(map(is_star, select.expressions))
    ):
        return None
    if kinds[:2] == [RelationKind.PUBLIC, RelationKind.PROTECTED] and not joins[0].args.get("using"):
        first, second = clause.this.copy(), joins[0].this.copy()  # copies are of rows that carry the unit
        clause.set("this", second)
        joins[0].set("this", first)
    select.where(on, copy=False)
    join.replace(exp.Join(this=_with_names_of_its_own(select, join.this, within), kind="CROSS"))
    return select


def _require_clear_names(select: exp.Select, join: exp.Expression, within: Scope) -> None:
    """Refuse a name without its table that a table and the list have both, unless USING makes one column of them."""
    listed, items = list_of(join.this, nulls=True, most=MOST_KEYS), items_of(select)
    names = set() if listed is None else set(map(str.casefold, listed[1]))
    names -= {name.name.casefold() for name in join.args.get("using") or []}
    renamed = {item.alias.casefold() for item in select.expressions if isinstance(item, exp.Alias)}
    for called, table in _tables_in(items, select, within).items():
        both = names.intersection(column.name.casefold() for column in table.columns)
        for clause in ("expressions", "where", "joins", "group", "having", "qualify", "order"):
            unclear = both if clause in ("expressions", "where", "joins") else both - renamed
            found = select.args.get(clause) or []
            for node in (
                node for part in (found if isinstance(found, list) else [found]) for node in nodes_of(part, exp.Column)
            ):
                if not node.table and node.name.casefold() in unclear and node.parent_select is select:
                    reason = f"'{node.name}' is a column of '{called}' and of '{join.this.alias}'"
                    raise within.nowhere.refusal(node, RefusalCause.AMBIGUOUS_COLUMN, reason, "Write table.column.")


def _leave_out_nulls(item: exp.Expression, on: exp.Expression) -> None:
    """Leave out rows of a list that have NULL where ON compares: they meet no row, neither in a LEFT JOIN."""
    listed = list_of(item, nulls=True, most=MOST_KEYS)
    if listed is None or not isinstance(item, exp.Values):
        return
    called, names, rows = listed
    sides = [side for part in conjuncts(on) if type(part) in _COMPARED for side in (part.this, part.expression)]
    places = {_key(side, called, names) for side in sides} - {None}
    left = [any(isinstance(row[place], exp.Null) for place in places if place is not None) for row in rows]
    if not all(left):
        item.set("expressions", [row for row, out in zip(item.expressions, left, strict=True) if not out])


def _with_names_of_its_own(select: exp.Select, item: exp.Expression, within: Scope) -> exp.Expression:
    """Return a list whose columns have no name of a column of the table before it; what names them is changed too."""
    alias = item.args["alias"]
    tables = _tables_in(items_of(select), select, within)
    taken = {column.name.casefold() for table in tables.values() for column in table.columns}
    for name in [column for column in alias.args.get("columns") or [] if column.name.casefold() in taken]:
        known, renamed = name.name.casefold(), exp.to_identifier(f"{name.name} of {alias.name}", quoted=True)
        for node in nodes_of(select, exp.Column):
            if (node.table.casefold(), node.name.casefold()) == (alias.name.casefold(), known):
                other = exp.Column(this=renamed.copy(), table=node.args["table"].copy())
                shown = node.parent is select and node.arg_key == "expressions"
                node.replace(exp.alias_(other, node.name, quoted=True) if shown else other)
        name.replace(renamed)
    return item


def _second(select: exp.Select, joins: Sequence[exp.Expression]) -> exp.Expression | None:
    """Return a SELECT in which a list of constants stands after the table that it is joined with."""
    first, join = select.args["from_"].this, joins[0]
    if not is_inner(join) or join.args.get("using") or list_of(join.this) is not None:
        return None
    after = exp.Join(this=first.copy(), on=join.args.get("on"), kind=join.args.get("kind"))
    select.set("from_", exp.From(this=join.this.copy()))
    select.set("joins", [after, *joins[1:]])
    return select


def _condition(join: exp.Expression, first: exp.Expression, *, alone: bool) -> exp.Expression | None:
    """Return what ON or USING says."""
    shared = join.args.get("using") or []
    if not shared:
        return join.args.get("on")
    if not alone or len(shared) != 1 or not first.alias_or_name:
        return None
    ours, theirs = (exp.column(shared[0].copy(), table=item.alias_or_name) for item in (first, join.this))
    return exp.EQ(this=ours, expression=theirs)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lookup:
    """A list that is joined on one column of a table, of which the list's values all differ.

    Args:
        rest: What ON says beside this.
        shared: Whether USING says it. Then the name by itself is the table's column, in a LEFT JOIN as well.
    """

    called: str
    names: tuple[str, ...]
    rows: Sequence[Row]
    place: int
    column: exp.Expression
    rest: Sequence[exp.Expression]
    outer: bool
    shared: bool

    @classmethod
    def of(cls, join: exp.Expression, on: exp.Expression, select: exp.Select, within: Scope) -> "_Lookup | None":
        listed, tables = list_of(join.this, nulls=True, most=MOST_KEYS), _tables_in(items_of(select), select, within)
        if listed is None or not tables:
            return None
        called, names, rows = listed
        parts, outer = conjuncts(on), str(join.args.get("side") or "").upper() == "LEFT"
        if (outer and len(parts) > 1) or (not outer and join.args.get("side")):
            return None
        for part in parts:
            if type(part) is not exp.EQ:
                continue
            left, right = part.this.unnest(), part.expression.unnest()
            for column, key in ((left, right), (right, left)):
                place = _key(key, called, names)
                if place is not None and _differ([row[place] for row in rows], _type_of(column, tables)):
                    rest = [other for other in parts if other is not part]
                    return cls(
                        called=called,
                        names=names,
                        rows=rows,
                        place=place,
                        column=column,
                        rest=rest,
                        outer=outer,
                        shared=bool(join.args.get("using")),
                    )
        return None

    def names_are_clear(self, select: exp.Select) -> bool:
        """Tell whether the names of the list's columns mean nothing else, and none is shown by a star."""
        aliases = {item.alias.casefold() for item in select.expressions if isinstance(item, exp.Alias)}
        both = aliases.intersection(name.casefold() for name in self.names)
        clauses = [select.args.get(name) for name in ("group", "having", "qualify", "order")] if both else []
        named = [column for clause in clauses if clause is not None for column in nodes_of(clause, exp.Column)]
        return not any(map(is_star, select.expressions)) and not any(
            not column.table and column.name.casefold() in both for column in named
        )

    def written(self, select: exp.Select) -> exp.Select:
        """Return the SELECT with a function of the column in the place of the list's columns."""
        known = [name.casefold() for name in self.names]
        keys = [row[self.place].copy() for row in self.rows]
        kept = exp.In(this=self.column.copy(), expressions=keys)
        if not self.outer:
            for part in (kept, *self.rest):
                select.where(part, copy=False)
        for node in nodes_of(select, exp.Column):
            owned = node.table.casefold() in (self.called.casefold(), "") and node.name.casefold() in known
            if not owned or (node.parent_select is not select and (not node.table or _is_hidden(node, select))):
                continue
            place = known.index(node.name.casefold())
            own = self.shared and not node.table and place == self.place
            value = self.column.copy() if own else self._value(place, kept)
            shown = node.parent is select and node.arg_key == "expressions"
            node.replace(exp.alias_(value, node.name, quoted=True) if shown else value)
        return select

    def _value(self, place: int, kept: exp.Expression) -> exp.Expression:
        if place == self.place:
            matched = exp.If(this=kept.copy(), true=self.column.copy())
            return exp.Case(ifs=[matched]) if self.outer else self.column.copy()
        pairs = [(row[self.place], row[place]) for row in self.rows]
        cases = [exp.If(this=exp.EQ(this=self.column.copy(), expression=k.copy()), true=v.copy()) for k, v in pairs]
        return exp.Case(ifs=cases)


def _is_hidden(node: exp.Column, select: exp.Select) -> bool:
    """Tell whether a SELECT inside another has a table of the name that stands before a column."""
    inner = node.parent_select
    while inner is not None and inner is not select:
        clause = inner.args.get("from_")
        items = [*([] if clause is None else [clause]), *(inner.args.get("joins") or [])]
        if any(item.this.alias_or_name.casefold() == node.table.casefold() for item in items):
            return True
        inner = inner.parent_select
    return False


def _tables_in(items: Sequence[exp.Expression], select: exp.Select, within: Scope) -> Tables:
    """Return the tables of the catalog that FROM names, by their names there in lower case."""
    found: dict[str, Table | PublicTable] = {}
    named = [str(table.alias) for table in visible_in(select)]
    for item in items:
        if not isinstance(item, exp.Table) or any(same_name(item.this, name) for name in named):
            continue
        table = protected_table(item.this, within) or public_table(item.this, within)
        if table is not None and item.alias_or_name:
            found[item.alias_or_name.casefold()] = table
    return found


def _with_tables(on: exp.Expression, select: exp.Select, join: exp.Expression, within: Scope) -> exp.Expression:
    """Return ON with the name of the table, or of the list, before each column that only one of them has."""
    items = items_of(select)
    tables, listed = _tables_in(items, select, within), list_of(join.this, nulls=True, most=MOST_KEYS)
    if listed is None or len(tables) < len(items) - 1:
        return on
    columns = {name: [column.name for column in table.columns] for name, table in tables.items()}
    columns[listed[0]] = list(listed[1])
    clear = on.copy()
    for node in nodes_of(clear, exp.Column):
        owners = [name for name, named in columns.items() if any(same_name(node.this, one) for one in named)]
        if not node.table and node.find_ancestor(exp.Query) is None and len(owners) == 1:
            node.set("table", exp.to_identifier(owners[0], quoted=True))
    return clear


def _key(node: exp.Expression | None, called: str, names: Sequence[str]) -> int | None:
    """Return which column of the list a node is."""
    known = [name.casefold() for name in names]
    if not isinstance(node, exp.Column) or not is_column(node) or node.table.casefold() != called.casefold():
        return None
    return known.index(node.name.casefold()) if node.name.casefold() in known else None


def _type_of(node: exp.Expression, tables: Tables) -> str:
    """Return the type of a column of a table; none if it is anything else."""
    table = tables.get(node.text("table").casefold()) if is_column(node) else None
    columns = () if table is None else table.columns
    return next((column.type for column in columns if same_name(node.this, column.name)), "")


def _differ(keys: Sequence[exp.Expression], kind: str) -> bool:
    """Tell whether values that are compared with a column of a type are different for certain."""
    values = [_value_of(key, kind) for key in keys]
    return None not in values and len(set(values)) == len(values)


def _value_of(node: exp.Expression, kind: str) -> Decimal | str | None:
    literal, sign = (node.this, -1) if isinstance(node, exp.Neg) else (node, 1)
    if not isinstance(literal, exp.Literal) or literal.is_string != (kind == "string"):
        return None
    if kind == "string":
        return str(literal.this) if sign > 0 else None
    if kind not in _NUMBERS:
        return None
    try:
        return sign * Decimal(literal.this)
    except DecimalException:  # such a number is refused where it is read
        return None

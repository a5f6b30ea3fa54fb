"""A list of constants beside rows: every day with its number of orders, also those without any.

    days d LEFT JOIN orders o ON CAST(o.day AS DATE) = d.day … GROUP BY d.day, with COUNT(o.id)

A query of its own groups the rows by the value that equals the list's column. Only that query touches rows, with its
own sensitivity. Its answer is joined to the list, which is post-processing.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction
from typing import Final

from sqlglot import exp

from lapwing.query.classify.kinds import Kinds, RelationKind, visible_in
from lapwing.query.from_clause.conditions import conjuncts
from lapwing.query.from_clause.listed_values import has_only
from lapwing.query.from_clause.select_list import placed
from lapwing.query.normalise.without_rows import ZERO, is_null, passes_over
from lapwing.query.text.parse import Parsed

_KEY: Final = "key of the list"
_NAME: Final = "rows beside the list"
_CLAUSES: Final = ("expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "with_")


def with_spine(parsed: Parsed, kinds: Kinds) -> Parsed:
    """Return a query over a list and rows as one over the list and an answer, if it is that."""
    select = parsed.select
    clause, joins = select.args.get("from_"), select.args.get("joins") or []
    if clause is None or len(joins) != 1 or not has_only(select, *_CLAUSES):
        return parsed
    sides = [clause.this, joins[0].this]
    listed = [isinstance(side, exp.Values) for side in sides]
    if sum(listed) != 1 or sides[listed.index(True)].args.get("alias") is None:
        return parsed
    if not _is_plain(joins[0], list_first=listed[0]):
        return parsed
    if kinds.in_from(select, visible_in(select))[listed.index(False)] is not RelationKind.PROTECTED:
        return parsed
    other = _SplitSelect(select.copy(), listed[0]).written()
    return parsed if other is None else replace(parsed, select=other)


def _is_plain(join: exp.Expression, *, list_first: bool) -> bool:
    side, kind = (str(join.args.get(name) or "").upper() for name in ("side", "kind"))
    kept = ("", "LEFT") if list_first else ("", "RIGHT")
    on = join.args.get("on") is not None and has_only(join, "this", "on", "side", "kind")
    return on and side in kept and kind in ("", "INNER", "OUTER")


class _SplitSelect:
    """A SELECT of which the parts about rows go into a SELECT inside."""

    def __init__(self, select: exp.Select, list_first: bool) -> None:
        self._select = select
        join = select.args["joins"][0]
        sides = [select.args["from_"].this, join.this]
        self._list, self._rows = sides if list_first else sides[::-1]
        self._join = join
        alias = self._list.args["alias"]
        self._name = str(alias.name).casefold()
        self._columns = {column.name.casefold() for column in alias.args.get("columns") or ()}
        self._aggregates: list[exp.Expression] = []

    def written(self) -> exp.Select | None:
        """Return the SELECT over the list and an answer; None if its parts are not of one side each."""
        select, side = self._select, "LEFT" if self._join.args.get("side") else ""
        found = self._on()
        groups = [] if (group := select.args.get("group")) is None else self._groups(group)
        if found is None or not groups:
            return None
        key, column, inside = found
        if column.name.casefold() not in groups or not self._tells_apart(column):
            return None
        where = select.args.get("where")
        outside, kept = list[exp.Expression](), side
        for node in [] if where is None else conjuncts(where.this):
            if self._is_of_list(node):
                outside.append(node)
            elif self._is_of_rows(node) and (not side or is_null(node)):
                inside.append(node)
                kept = ""  # a row without others fails the condition
            else:
                return None
        side = kept
        if not self._replaced(side == "LEFT"):
            return None
        having = select.args.get("having")
        outside += [] if having is None else [exp.Paren(this=having.this)]
        self._compose(key, column, inside, outside, side)
        return select

    def _compose(
        self,
        key: exp.Expression,
        column: exp.Expression,
        inside: Sequence[exp.Expression],
        outside: Sequence[exp.Expression],
        side: str,
    ) -> None:
        items = [exp.Alias(this=key.copy(), alias=exp.to_identifier(_KEY, quoted=True))]
        for place, aggregate in enumerate(self._aggregates):
            items.append(exp.Alias(this=aggregate, alias=exp.to_identifier(_number(place), quoted=True)))
        inner = exp.Select(expressions=items, from_=exp.From(this=self._rows.copy()))
        if inside:
            inner.set("where", exp.Where(this=exp.and_(*(node.copy() for node in inside), copy=False)))
        inner.set("group", exp.Group(expressions=[key.copy()]))
        select, name = self._select, exp.TableAlias(this=exp.to_identifier(_NAME, quoted=True))
        on = exp.EQ(this=exp.column(_KEY, _NAME, quoted=True), expression=column.copy())
        join = exp.Join(this=exp.Subquery(this=inner, alias=name), on=on, **({"side": side} if side else {}))
        select.set("from_", exp.From(this=self._list.copy()))
        select.set("joins", [join])
        select.set("where", exp.Where(this=exp.and_(*outside, copy=False)) if outside else None)
        for clause in ("group", "having"):
            select.set(clause, None)

    def _on(self) -> tuple[exp.Expression, exp.Expression, list[exp.Expression]] | None:
        """Return what of the rows equals a column of the list, that column, and other conditions on the rows."""
        found, inside = None, list[exp.Expression]()
        for node in conjuncts(self._join.args["on"]):
            sides = [node.this, node.expression] if isinstance(node, exp.EQ) else []
            pair = (
                next(((a, b) for a, b in (sides, sides[::-1]) if self._is_list_column(b) and self._is_of_rows(a)), None)
                if sides
                else None
            )
            if pair is not None and found is None:
                found = pair
            elif self._is_of_rows(node):
                inside.append(node)
            else:
                return None
        return None if found is None else (*found, inside)

    def _groups(self, group: exp.Expression) -> list[str]:
        """Return the columns of the list that are grouped by; none if anything else is."""
        names = list[str]()
        for node in group.expressions if has_only(group, "expressions") else ():
            items, key = self._select.expressions, placed(node, self._select.expressions) or node
            if isinstance(node, exp.Column) and not node.table and not self._is_list_column(node):
                key = next((item for item in items if type(item) is exp.Alias and item.alias == node.name), node)
            key = key.this if type(key) is exp.Alias else key
            if not self._is_list_column(key):
                return []
            names.append(key.name.casefold())
        return names

    def _tells_apart(self, column: exp.Expression) -> bool:
        place = [name.name.casefold() for name in self._list.args["alias"].columns].index(column.name.casefold())
        values = [_plain(row.expressions[place]) for row in self._list.expressions]
        return None not in values and len({type(value) for value in values}) == 1 and len(set(values)) == len(values)

    def _replaced(self, outer: bool) -> bool:
        """Write columns of the answer in the place of aggregates; tell whether all of them read only the rows."""
        select = self._select
        clauses = [*select.expressions, select.args.get("having"), select.args.get("order")]
        for clause in clauses:
            for node in [] if clause is None else list(clause.find_all(exp.AggFunc, exp.Filter)):
                if node.find_ancestor(exp.AggFunc, exp.Filter, exp.Window) is not None:
                    continue
                if (outer and not passes_over(node)) or not self._is_of_rows(node) or node.find(exp.Subquery):
                    return False
                self._replace(node)
        rest = [
            *select.expressions,
            *(c for c in (select.args.get("having"), select.args.get("order")) if c is not None),
        ]
        aliases = {item.alias.casefold() for item in select.expressions if type(item) is exp.Alias}
        columns = [column for node in rest for column in node.find_all(exp.Column)]
        return bool(self._aggregates) and all(
            self._is_list_column(column)
            or column.table == _NAME
            or (not column.table and column.name.casefold() in aliases)
            for column in columns
        )

    def _replace(self, node: exp.Expression) -> None:
        if node not in self._aggregates:
            self._aggregates.append(node.copy())
        other: exp.Expression = exp.column(_number(self._aggregates.index(node)), _NAME, quoted=True)
        inner = node.this if isinstance(node, exp.Filter) else node
        if isinstance(inner, ZERO):
            other = exp.Coalesce(this=other, expressions=[exp.Literal.number(0)])
        if node.parent is self._select and node.arg_key == "expressions":
            other = exp.Alias(this=other, alias=exp.to_identifier(_called(inner), quoted=True))
        node.replace(other)

    def _is_list_column(self, node: exp.Expression) -> bool:
        if not isinstance(node, exp.Column) or node.name.casefold() not in self._columns:
            return False
        return not node.table or node.table.casefold() == self._name

    def _is_of_list(self, node: exp.Expression) -> bool:
        return all(map(self._is_list_column, node.find_all(exp.Column))) and node.find(exp.Subquery) is None

    def _is_of_rows(self, node: exp.Expression) -> bool:
        return not any(map(self._is_list_column, node.find_all(exp.Column))) and node.find(exp.Query) is None


def _plain(node: exp.Expression) -> Fraction | str | date | None:
    """Return the value of a number, a text, a date or a timestamp, so that equal ones are equal; None of others."""
    if isinstance(node, exp.Neg):
        inner = _plain(node.this)
        return -inner if isinstance(inner, Fraction) else None
    if isinstance(node, exp.Literal):
        return str(node.this) if node.is_string else Fraction(node.this)
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and node.to.is_type("date", "timestamp"):
        read = date.fromisoformat if node.to.is_type("date") else datetime.fromisoformat
        with suppress(ValueError):
            return read(node.this.name)
    return None


def _called(aggregate: exp.Expression) -> str:
    """Return the name of a column without one."""
    if isinstance(aggregate, exp.Count | exp.CountIf):
        return "count"
    return aggregate.sql_name().lower() if isinstance(aggregate, exp.Func) else "value"


def _number(place: int) -> str:
    return f"number {place}"

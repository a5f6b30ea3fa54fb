"""Subqueries that stand for one number beside the aggregates of a question: they and its own answer are sources."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from lapwing.query.expressions.rows import RowScope, is_column
from lapwing.query.from_clause.conditions import conjuncts
from lapwing.query.from_clause.groupings import is_aggregated
from lapwing.query.from_clause.listed_values import has_only
from lapwing.query.from_clause.select_list import chosen

_AFTER = ("having", "qualify", "order")


@dataclass(frozen=True, slots=True)
class AroundAnswer:
    """A SELECT in two: what is asked of rows, None if it has no FROM, and what is computed from its answer."""

    inner: exp.Select | None
    outer: exp.Select


def scalars_in(node: exp.Expression, *, beside: bool = False) -> Iterator[exp.Subquery]:
    """Yield the subqueries that stand for a value, outermost first; those alone that stand beside aggregates, if so."""
    for child in node.iter_expressions():
        if isinstance(child, exp.Subquery) and not isinstance(node, exp.In | exp.Exists | exp.SetOperation):
            yield child
        elif not isinstance(child, exp.With | exp.From | exp.Join) and not (beside and _is_over_rows(child)):
            yield from scalars_in(child, beside=beside)


def without_fixed_groups(query: exp.Select, rows: RowScope) -> exp.Select:
    """Return a query of one group as one without GROUP BY: WHERE says which value each of its keys has.

    Here a cell is there whether or not any row is in it, so that both have one row.
    """
    clause, where = query.args.get("group"), query.args.get("where")
    keys = [] if clause is None else list(clause.expressions)
    if clause is None or where is None or not keys or not has_only(clause, "expressions"):
        return query
    equal = [node for node in conjuncts(where.this, rows) if isinstance(node, exp.EQ)]
    sides = [(node.args["this"], node.args["expression"]) for node in equal]
    fixed = [column for pair in sides for column, value in (pair, pair[::-1]) if isinstance(value, exp.Literal)]
    if not all(is_column(key) and key in fixed for key in keys):
        return query
    query = query.copy()
    query.set("group", None)
    return query


def _is_over_rows(node: exp.Expression) -> bool:
    """Tell whether what stands in a node is of rows: it is inside an aggregate that is no window over an answer."""
    return isinstance(node, exp.AggFunc | exp.Filter) and not isinstance(node.parent, exp.Window)


def around_answer(select: exp.Select, rows: RowScope) -> AroundAnswer | None:
    """Take a question apart that has subqueries beside its aggregates: None if it has none, or has them elsewhere too.

    Its keys and aggregates become columns of a question of its own; what is computed from them stays outside.
    """
    after = [*select.expressions, *(node for name in _AFTER if (node := select.args.get(name)) is not None)]
    holders = [exp.Paren(this=node.copy()) for node in after]  # as an item may be such a subquery itself
    if not any(any(scalars_in(holder, beside=True)) for holder in holders):
        return None
    if select.args.get("from_") is None and not is_aggregated(select):
        return AroundAnswer(None, select)
    return apart(select, rows) if is_aggregated(select) else None


def apart(select: exp.Select, rows: RowScope) -> AroundAnswer:
    """Take a SELECT with aggregates apart: one shows keys and aggregates, the other what is computed from these."""
    inner, outer, taken = select.copy(), select.copy(), dict[str, exp.Expression]()
    clause = select.args.get("group")
    groups: list[exp.Expression] = []
    if clause is not None:
        rows.only(clause, "expressions")
        groups = [chosen(node, select, rows).copy() for node in clause.expressions]
    said = outer.args.get("having")
    if said is not None:  # which becomes WHERE, where names of the SELECT list are unknown
        aliases = {item.alias.casefold(): item.this for item in outer.expressions if type(item) is exp.Alias}
        _write_out(said, aliases, groups)
    for node in [*outer.expressions, *(part for name in _AFTER if (part := outer.args.get(name)) is not None)]:
        _take(node, groups, taken, outer)
    for name in (*_AFTER, "limit", "offset", "distinct"):
        inner.set(name, None)
    inner.set("expressions", [_alias(node.copy(), name) for name, node in taken.items()])
    inner.set("group", exp.Group(expressions=[node.copy() for node in groups]) if groups else None)
    having = outer.args.get("having")
    for name in ("group", "having", "joins"):
        outer.set(name, None)
    outer.set("where", None if having is None else exp.Where(this=having.this))
    return AroundAnswer(inner, outer)


def _write_out(node: exp.Expression, aliases: Mapping[str, exp.Expression], groups: Sequence[exp.Expression]) -> None:
    """Write what the SELECT list calls by a name in the place of the name; a key of that name is the key."""
    for child in list(node.iter_expressions()):
        named = is_column(child) and not child.args.get("table") and child not in groups
        if named and (meant := aliases.get(child.name.casefold())) is not None:
            child.replace(exp.Paren(this=meant.copy()))
        elif not isinstance(child, exp.Subquery | exp.AggFunc):
            _write_out(child, aliases, groups)


def _take(
    node: exp.Expression, groups: Sequence[exp.Expression], taken: dict[str, exp.Expression], select: exp.Select
) -> None:
    """Write names in the place of keys and aggregates, and note what they stand for."""
    if isinstance(node, exp.Subquery):
        return
    inner: exp.Expr = node
    while isinstance(inner, exp.Filter | exp.WithinGroup):
        inner = inner.this
    aggregate = isinstance(inner, exp.AggFunc)
    over = isinstance(node.parent, exp.Window) and node.arg_key == "this"
    if (aggregate and not over) or node in groups:
        name = node.sql(comments=False)
        taken[name] = node.copy()
        column: exp.Expression = exp.Column(this=exp.Identifier(this=name, quoted=True))
        if node.parent is select:
            column = _alias(column, _name(node, groups))
        node.replace(column)
        return
    for child in list(node.iter_expressions()):
        _take(child, groups, taken, select)


def _name(node: exp.Expression, groups: Sequence[exp.Expression]) -> str:
    if is_column(node):
        return str(node.name)
    return "key" if node in groups else "count" if isinstance(node, exp.Count) else "value"


def _alias(node: exp.Expression, name: str) -> exp.Expression:
    return exp.Alias(this=node, alias=exp.Identifier(this=name, quoted=True))

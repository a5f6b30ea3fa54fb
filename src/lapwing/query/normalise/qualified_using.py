"""JOIN … USING (plan) beside v.plan: the same join with ON v.plan = p.plan.

USING makes one column of two, with a name that needs no table. SQL also lets both be named with their tables. Binding
shows only one of them. So where a SELECT names the other, USING is written as ON. A name without a table is then the
first table's column in a LEFT JOIN, and the second table's in a RIGHT JOIN. In an inner join both are equal in every
row. There it is the public one, as its values are known. In a FULL JOIN it is COALESCE of both. Nothing else is to
prove: it is the join that ON says.
"""

from collections.abc import Sequence

from sqlglot import exp

from lapwing.query.classify.kinds import Kinds, RelationKind, items_of, visible_in
from lapwing.query.expressions.rows import is_star
from lapwing.query.from_clause.listed_values import has_only
from lapwing.query.from_clause.scope import Scope
from lapwing.query.text.trees import copied, nodes_of

_SIDES = (("", ""), ("", "INNER"), ("LEFT", ""), ("LEFT", "OUTER"), ("RIGHT", ""), ("RIGHT", "OUTER"))
_FULL = (("FULL", ""), ("FULL", "OUTER"))


def with_qualified_using(select: exp.Select, within: Scope) -> exp.Select | None:
    """Return a SELECT with ON for each USING of which it names the column that binding hides; None if there is none."""
    if not any(join.args.get("using") for join in nodes_of(select, exp.Join)):
        return None
    new, changed = copied(select), False
    for one in nodes_of(new, exp.Select):
        for place, join in enumerate(one.args.get("joins") or ()):
            if join.args.get("using") and _is_written(one, join, place, within):
                changed = True
    return new if changed else None


def _is_written(select: exp.Select, join: exp.Join, place: int, within: Scope) -> bool:
    """Write a USING as ON, if it must be, and if it is certain what its columns are; tell whether it was."""
    items, shared = items_of(select), {name.name.casefold() for name in join.args["using"]}
    side = str(join.args.get("side") or "").upper(), str(join.args.get("kind") or "").upper()
    plain = place == 0 and side in (*_SIDES, *_FULL) and has_only(join, "this", "using", "side", "kind")
    if not plain or any(map(is_star, select.expressions)):
        return False
    if any(shared & {name.name.casefold() for name in other.args.get("using") or ()} for other in _others(select)):
        return False
    columns = [node for node in select.find_all(exp.Column) if node.name.casefold() in shared]
    first, second = (str(item.alias_or_name) for item in items[:2])
    qualified = {node.table.casefold() for node in columns}.intersection((first.casefold(), second.casefold()))
    if not first or not second or not qualified:
        return False
    kinds = Kinds(within).in_from(select, visible_in(select))
    if RelationKind.PROTECTED not in kinds[:2] or RelationKind.RELEASED in kinds:
        return False
    public = [name for name, kind in zip((first, second), kinds, strict=False) if kind is RelationKind.PUBLIC]
    shown = {"LEFT": first, "RIGHT": second}.get(side[0], public[0] if public else first)
    units = {str(table.privacy_unit).casefold() for table in within.catalog.tables}
    if qualified == {shown.casefold()} and side not in _FULL:
        return False
    if public and shared & units:  # of the unit, binding shows the protected one
        return False
    _name_alone(select, columns, [first, second] if side in _FULL else [shown])
    names = [name.copy() for name in join.args["using"]]
    equal = [exp.EQ(this=_of(first, name), expression=_of(second, name)) for name in names]
    join.set("using", None)
    join.set("on", exp.and_(*equal, copy=False))
    return True


def _others(select: exp.Select) -> Sequence[exp.Expression]:
    return list(select.args["joins"])[1:]


def _name_alone(select: exp.Select, columns: Sequence[exp.Column], tables: Sequence[str]) -> None:
    """Write the column of USING with its tables, where it stands for itself and is no name of the SELECT list."""
    aliases = {item.alias.casefold() for item in select.expressions if isinstance(item, exp.Alias)}
    for node in columns:
        clause = node.find_ancestor(exp.Order, exp.Having, exp.Qualify, exp.Select)
        is_alias = not isinstance(clause, exp.Select) and node.name.casefold() in aliases
        if node.table or node.parent_select is not select or is_alias:
            continue
        value, *others = (_of(table, node.this) for table in tables)
        if others:
            both = exp.Coalesce(this=value, expressions=others)
            shown = node.parent is select and node.arg_key == "expressions"
            node.replace(exp.alias_(both, node.name, quoted=True) if shown else both)
        else:
            node.set("table", value.args["table"])


def _of(table: str, name: exp.Expression) -> exp.Column:
    return exp.column(name.copy(), table=exp.to_identifier(table, quoted=True))

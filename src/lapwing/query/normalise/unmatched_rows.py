"""Public rows that no protected row matches: cars AS c LEFT JOIN sales AS s ON s.car = c.id WHERE s.car IS NULL.

Rows of people decide which public rows match nobody. So noisy numbers choose them, as HAVING does:

    FROM (SELECT c.id … FROM cars AS c LEFT JOIN sales AS s ON s.car = c.id GROUP BY c.id
          HAVING COUNT(DISTINCT s.person) < 1) AS c

Both are the same without noise. A public row has no match if and only if its group has no unit. The column that is
compared with NULL is the unit, or in an equality of ON. So it is never NULL in a match. The public columns of these
equalities are unique, and never NULL. So a group is one public row, and all its columns are known (`determined_keys`).
Where a column that is shown may be NULL, it is no key of groups. Then the public table is joined to the groups, each of
which has one row of it. Nothing else of the SELECT looks at protected rows.

    FROM cars AS c WHERE EXISTS (SELECT 1 FROM sales AS s WHERE s.car = c.id AND s.price > 9)

EXISTS and IN are written with the same join. There is a match if and only if the group has a unit: HAVING says >= 1,
and < 1 for NOT EXISTS. The condition of the subquery becomes ON: both are true of the same pairs.
"""

from collections.abc import Callable, Sequence

from sqlglot import exp

from lapwing.errors import RefusalCause
from lapwing.query.classify.kinds import visible_in
from lapwing.query.expressions.rows import RowScope, is_column, same_name
from lapwing.query.from_clause.conditions import conjuncts
from lapwing.query.from_clause.groupings import is_aggregated
from lapwing.query.from_clause.listed_values import has_only
from lapwing.query.from_clause.scope import Scope, protected_table, public_table
from lapwing.query.normalise.determined_keys import are_unique
from lapwing.query.normalise.public_rows_with_matches import joined_for_exists
from lapwing.query.relations.relation import unit_of
from lapwing.query.text.trees import copied, depth_first, has, nodes_of

Owner = Callable[[exp.Expression], str | None]
"""Tells of which table a column is, by the name of that; None if it is not certain."""


def with_unmatched_rows(select: exp.Select, within: Scope) -> exp.Select | None:
    """Return a SELECT with groups in the place of public rows without a match; None if it has none."""
    if not within.catalog.public_tables:
        return None
    left = any(str(join.args.get("side") or "").upper() == "LEFT" for join in nodes_of(select, exp.Join))
    tests = nodes_of(select, exp.Exists, exp.In)
    if not left and not any(type(node) is exp.Exists or node.args.get("query") for node in tests):
        return None
    new, changed = copied(select), False
    for one in reversed(depth_first(new, exp.Select)):  # inner ones before outer ones
        joined = joined_for_exists(one, within)
        other = _by_groups(one if joined is None else joined.select, within, exists=joined is not None and joined.kept)
        if other is not None:
            changed = True
            new = other if one is new else new
            one.replace(other)
    return new if changed else None


def _by_groups(select: exp.Select, within: Scope, *, exists: bool) -> exp.Select | None:
    """Return a SELECT over the groups without a unit, or over those that have one."""
    joins, clause = select.args.get("joins") or [], select.args.get("from_")
    if len(joins) != 1 or clause is None:
        return None
    first = clause.this
    join, where = joins[0], select.args.get("where")
    kind = str(join.args.get("side") or "").upper(), str(join.args.get("kind") or "").upper()
    if kind not in (("LEFT", ""), ("LEFT", "OUTER")) or not has_only(join, "this", "on", "side", "kind"):
        return None
    named = [str(table.alias) for table in visible_in(select)]
    if where is None or join.args.get("on") is None or not all(_is_table(item, named) for item in (first, join.this)):
        return None
    public = public_table(first.this, within)
    table = protected_table(join.this.this, within)
    if public is None or table is None or unit_of(table) is None:
        return None
    unit, names = str(unit_of(table)), (first.alias_or_name, join.this.alias_or_name)
    columns = {
        names[0]: [column.name for column in public.columns],
        names[1]: [*(column.name for column in table.columns), unit],
    }
    owner = _owner(columns)
    pairs = _equalities(join.args["on"], names, owner, within.nowhere)
    compared = {unit.casefold(), *(own.name.casefold() for _, own in pairs)}
    tests, others = list[exp.Expression](), list[exp.Expression]()
    for node in conjuncts(where.this, within.nowhere):
        tested = _tested(node)
        own = tested is not None and owner(tested) == names[1] and tested.name.casefold() in compared
        (tests if own else others).append(node)
    keys = {key.name.casefold(): key for key, _ in pairs}
    read = _columns(select, join, tests)
    if not tests or not keys or read is None:
        return None
    lacking = [column for column in read if owner(column) == names[1]]
    if lacking and not is_aggregated(select):
        reason = f"'{lacking[0].name}' has no value in public rows that no row of {table.name} matches"
        raise within.nowhere.refusal(
            lacking[0], RefusalCause.JOIN_NOT_SUPPORTED, reason, "Leave it out: it is NULL in each of them."
        )
    if any(owner(column) != names[0] for column in read):
        return None
    if any(has(node, exp.Query) for node in others) or not are_unique(public, keys, keys, within):
        return None
    people = exp.Count(this=exp.Distinct(expressions=[exp.column(unit, names[1], quoted=True)]), big_int=True)
    shown = {**keys, **{column.name.casefold(): column for column in read}}
    inner = exp.Select(
        expressions=[copied(column) for column in shown.values()],
        from_=exp.From(this=copied(first)),
        joins=[copied(join)],
        group=exp.Group(expressions=[copied(key) for key in keys.values()]),
        having=exp.Having(this=(exp.GTE if exists else exp.LT)(this=people, expression=exp.Literal.number(1))),
    )
    if others:
        inner.set("where", exp.Where(this=exp.and_(*(copied(node) for node in others), copy=False)))
    if not are_unique(public, keys, shown, within):
        return _beside_groups(select, inner, list(keys.values()), first)
    new = copied(select)
    for clause in ("joins", "where"):
        new.set(clause, None)
    alias = exp.TableAlias(this=exp.to_identifier(names[0], quoted=True))
    new.set("from_", exp.From(this=exp.Subquery(this=inner, alias=alias)))
    return new


def _beside_groups(
    select: exp.Select, inner: exp.Select, keys: Sequence[exp.Expression], public: exp.Expression
) -> exp.Select:
    """Return a SELECT over the public table and the groups, which show their keys alone, joined by these."""
    name = f"unmatched {public.alias_or_name}"
    called = {f"{name} {place}": key for place, key in enumerate(keys)}
    inner.set("expressions", [exp.alias_(copied(key), column, quoted=True) for column, key in called.items()])
    own = public.alias_or_name
    pairs = [
        exp.EQ(this=exp.column(column, name, quoted=True), expression=exp.column(key.name, own, quoted=True))
        for column, key in called.items()
    ]
    new = copied(select)
    new.set("where", None)
    alias = exp.TableAlias(this=exp.to_identifier(name, quoted=True))
    new.set("from_", exp.From(this=exp.Subquery(this=inner, alias=alias)))
    new.set("joins", [exp.Join(this=copied(public), on=exp.and_(*pairs, copy=False))])
    return new


def _columns(select: exp.Select, join: exp.Expression, tests: Sequence[exp.Expression]) -> list[exp.Expression] | None:
    """Return the columns that a SELECT names but in ON and in some conditions; None if it may read all, or others."""
    apart = {id(column) for node in (join, *tests) for column in nodes_of(node, exp.Column)}
    if any(item.is_star for item in select.expressions):
        return None
    clauses = [clause for name, clause in select.args.items() if name != "with_"]
    parts = [part for clause in clauses for part in (clause if isinstance(clause, list) else [clause])]
    nodes = [part for part in parts if isinstance(part, exp.Expr)]
    read = [column for node in nodes for column in nodes_of(node, exp.Column) if id(column) not in apart]
    aliases = {item.alias.casefold() for item in select.expressions if type(item) is exp.Alias}
    return [column for column in read if column.args.get("table") is not None or column.name.casefold() not in aliases]


def _is_table(node: exp.Expression | None, named: Sequence[str]) -> bool:
    """Tell whether an item of FROM is a table of the catalog, and none of the queries that are named so."""
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        return False
    identifier = node.this
    return has_only(node, "this", "alias") and not any(same_name(identifier, name) for name in named)


def _owner(columns: dict[str, list[str]]) -> Owner:
    def owner(node: exp.Expression) -> str | None:
        if not is_column(node):
            return None
        qualifier = node.args.get("table")
        found = [
            name
            for name, own in columns.items()
            if (qualifier is None or same_name(qualifier, name)) and any(same_name(node.this, column) for column in own)
        ]
        return found[0] if len(found) == 1 else None

    return owner


def _equalities(
    on: exp.Expression, names: tuple[str, str], owner: Owner, rows: RowScope
) -> list[tuple[exp.Expression, exp.Expression]]:
    """Return the columns of the public table, and those of the protected one, that ON says are equal."""
    pairs = []
    for node in conjuncts(on, rows):
        if isinstance(node, exp.EQ) and has_only(node, "this", "expression"):
            sides = {owner(side): side for side in (node.this, node.expression)}
            if sides.keys() == set(names):
                pairs.append((sides[names[0]], sides[names[1]]))
    return pairs


def _tested(node: exp.Expression) -> exp.Expression | None:
    """Return the column of which a condition says that it is NULL."""
    plain = isinstance(node, exp.Is) and has_only(node, "this", "expression") and isinstance(node.expression, exp.Null)
    return node.this if plain and is_column(node.this) else None

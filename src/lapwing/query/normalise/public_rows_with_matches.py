"""EXISTS and IN of protected rows, asked of public rows: they are written with LEFT JOIN, for `unmatched_rows`.

    FROM cars AS c WHERE EXISTS (SELECT 1 FROM sales AS s WHERE s.car = c.id)

It is the negation of a test that `unmatched_rows` knows:

    FROM cars AS c LEFT JOIN sales AS s ON s.car = c.id WHERE s.person IS NULL

A name in the subquery is a column of its own table, if that has one. Else it is of the table outside. ON sees both
alike, so each name is written with its table. NOT IN is not read: one NULL in the subquery would leave no row at all.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from lapwing.catalog.table import Table
from lapwing.query.classify.kinds import visible_in
from lapwing.query.expressions.rows import is_column, same_name
from lapwing.query.from_clause.common_tables import bare
from lapwing.query.from_clause.conditions import conjuncts
from lapwing.query.from_clause.groupings import is_aggregated
from lapwing.query.from_clause.listed_values import has_only
from lapwing.query.from_clause.scope import Scope, protected_table, public_table
from lapwing.query.relations.relation import unit_of
from lapwing.query.text.trees import has, nodes_of


@dataclass(frozen=True, slots=True)
class JoinedForExists:
    """A SELECT over public rows without a match, and whether those with one are meant."""

    select: exp.Select
    kept: bool


def joined_for_exists(select: exp.Select, within: Scope) -> JoinedForExists | None:
    """Return a SELECT with a LEFT JOIN in the place of its only EXISTS or IN of protected rows; None if it has none."""
    clause, where = select.args.get("from_"), select.args.get("where")
    if clause is None or where is None or select.args.get("joins") or not isinstance(clause.this, exp.Table):
        return None
    named = [str(table.alias) for table in visible_in(select)]
    outside = clause.this
    public = public_table(outside.this, within)
    if public is None or any(same_name(outside.this, name) for name in named):
        return None
    parts = list(conjuncts(where.this, within.nowhere))
    tests = [part for part in parts if has(part, exp.Query)]
    found = existence_test(tests[0]) if len(tests) == 1 else None
    if found is None:
        return None
    inner, value, kept = found
    node = only_table(inner, named)
    table = None if node is None else protected_table(node.this, within)
    if node is None or table is None or unit_of(table) is None:
        return None
    if node.alias_or_name.casefold() == outside.alias_or_name.casefold():
        return None
    names = (outside.alias_or_name, node.alias_or_name)
    on = _matching(inner, value, names, table, {column.name.casefold() for column in public.columns})
    if on is None:
        return None
    new = select.copy()
    test = exp.Is(this=exp.column(str(unit_of(table)), names[1], quoted=True), expression=exp.Null())
    if any(type(item) is exp.Star and not any(item.args.values()) for item in new.expressions):
        shown = [exp.column(column.name, names[0], quoted=True) for column in public.columns]
        items = [shown if isinstance(item, exp.Star) else [item] for item in new.expressions]
        new.set("expressions", [one for item in items for one in item])
    others = [part.copy() for part in parts if part is not tests[0]]
    new.set("where", exp.Where(this=exp.and_(test, *others, copy=False)))
    new.set("joins", [exp.Join(this=node.copy(), on=on, side="LEFT")])
    return JoinedForExists(new, kept)


def _matching(
    inner: exp.Select, value: exp.Expression | None, names: tuple[str, str], table: Table, public: set[str]
) -> exp.Condition | None:
    """Return what is true of a pair of rows that match; None if it is not certain whose a column is."""
    where, parts = inner.args.get("where"), list[exp.Expression | None]()
    if value is not None:
        left = _qualified(value, (names[0], names[0]), table, public)
        right = _qualified(inner.expressions[0].unalias(), names, table, public)
        parts.append(None if left is None or right is None else exp.EQ(this=left, expression=right))
    if where is not None:
        parts.append(_qualified(where.this, names, table, public))
    return None if None in parts or not parts else exp.and_(*parts, copy=False)


def existence_test(node: exp.Expression) -> tuple[exp.Select, exp.Expression | None, bool] | None:
    """Return the SELECT of EXISTS or IN, the value of IN, and whether a match keeps a row."""
    kept = True
    while isinstance(node, exp.Not | exp.Paren):
        kept, node = kept != isinstance(node, exp.Not), node.this
    inner = node.args.get("query") if isinstance(node, exp.In) else node.this if isinstance(node, exp.Exists) else None
    inner = None if inner is None else bare(inner)
    if not isinstance(inner, exp.Select) or not has_only(inner, "expressions", "from_", "where", "distinct"):
        return None
    if is_aggregated(inner) or (isinstance(node, exp.In) and not (kept and len(inner.expressions) == 1)):
        return None
    return inner, node.this if isinstance(node, exp.In) else None, kept


def only_table(inner: exp.Select, named: Sequence[str]) -> exp.Table | None:
    """Return the table of the catalog that is all that a subquery is of, if none of these common tables hides it."""
    clause = inner.args.get("from_")
    node = None if clause is None else clause.this
    if not isinstance(node, exp.Table) or not has_only(node, "this", "alias"):
        return None
    return None if any(same_name(node.this, name) for name in named) else node


def _qualified(
    condition: exp.Expression, names: tuple[str, str], table: Table, public: set[str]
) -> exp.Expression | None:
    """Return a condition with the table of each column written out; None where one is of neither."""
    own = {name.casefold() for name in _columns(table)} if names[0] != names[1] else set()
    new: exp.Expression = exp.Paren(this=condition.copy())
    for column in nodes_of(new, exp.Column):
        qualifier, name = column.args.get("table"), column.name.casefold()
        if not is_column(column) or (qualifier is not None and not any(same_name(qualifier, one) for one in names)):
            return None
        if qualifier is None:
            if name not in own and name not in public:
                return None
            column.set("table", exp.to_identifier(names[1] if name in own else names[0], quoted=True))
    inside: exp.Expression = new.args["this"]
    return inside


def _columns(table: Table) -> Iterator[str]:
    yield str(unit_of(table))
    yield from (column.name for column in table.columns)

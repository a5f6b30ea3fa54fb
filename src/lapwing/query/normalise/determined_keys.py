"""Columns that a key determines: GROUP BY p.id, which shows p.name of a public table, groups by both.

SQL lets a SELECT show columns that are not grouped by, if the keys determine them. Where they hold the primary key of a
table, each group has one row of it. Here a public table's own data tell what is unique and never NULL. A column
that equals a key in every row stands for it: in `visits v JOIN sites s ON v.site = s.site`, v.site determines all of s.

MIN(p.name) and MAX(p.name) of a text that the keys determine are that text: all rows of a group have it.

Lapwing binds the longer GROUP BY, which has a sensitivity of its own. It makes the same groups: rows that agree in the
keys agree in what these determine.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from sqlglot import exp

from lapwing.catalog.public import PublicTable
from lapwing.query.classify.kinds import Kinds, RelationKind, items_of, tables_of_with, visible_in
from lapwing.query.expressions.conversion import fixed
from lapwing.query.expressions.expression import Literal
from lapwing.query.expressions.rows import is_column, same_name
from lapwing.query.from_clause.conditions import conjuncts
from lapwing.query.from_clause.listed_values import has_only
from lapwing.query.from_clause.scope import PublicInput, Scope, protected_table, public_table
from lapwing.query.from_clause.subqueries import unnamed
from lapwing.query.relations.public_rows import Combinations, JoinedRows
from lapwing.query.text.trees import copied, nodes_of

Name = tuple[str, str]
"""A column: what its table is called in FROM, and its own name, in lower case."""
_ENDS: Final = (exp.Min, exp.Max)
_ONE = Literal(value=Fraction(1), type=fixed(Fraction(1), 1, 1))


def with_determined_keys(select: exp.Select, within: Scope) -> exp.Select | None:
    """Return a SELECT that is also grouped by what its keys determine and it shows; None if there is nothing."""
    if not any(_determine_some(one, within) for one in _by_columns(select)):
        return None
    new = copied(select)
    for one in _by_columns(new):
        group, grouped = one.args["group"], _Grouped(one, within)
        ends = list(grouped.ends_of_texts())
        for end in ends:
            column = copied(end.this)
            named = end.parent is one and end.arg_key == "expressions"
            end.replace(exp.alias_(column, f"{end.key}_{column.name}", quoted=True) if named else column)
        group.set("expressions", [*group.expressions, *grouped.determined()])
    return new


def _by_columns(select: exp.Select) -> list[exp.Select]:
    """Return the SELECTs in one that are grouped by columns alone."""
    groups = [(one, one.args.get("group")) for one in nodes_of(select, exp.Select)]
    plain = [(one, group) for one, group in groups if group is not None and has_only(group, "expressions")]
    return [one for one, group in plain if all(map(is_column, group.expressions))]


def _determine_some(select: exp.Select, within: Scope) -> bool:
    """Tell whether the keys of a SELECT determine columns of a public table that it shows."""
    grouped = _Grouped(select, within)
    return grouped.has_public and (any(grouped.ends_of_texts()) or bool(grouped.determined()))


@dataclass(frozen=True, slots=True)
class _NamedRelation:
    """One relation of FROM: its name there, its columns if the catalog knows them, and its public table."""

    name: str
    columns: frozenset[str] | None
    table: PublicTable | None
    join: exp.Join | None


class _Grouped:
    def __init__(self, select: exp.Select, within: Scope) -> None:
        self._select, self._within = select, within
        visible = [*visible_in(select), *tables_of_with(select)]
        joins = [None, *(select.args.get("joins") or ())]
        named = zip(items_of(select), joins, strict=True)
        self._items = [_item(node, join, visible, within) for node, join in named]
        self.has_public = any(item.table is not None for item in self._items)

    def determined(self) -> list[exp.Expression]:
        """Return the columns of public tables that the SELECT shows, and its keys determine, but are not among."""
        keys = self._keys()
        named = [(self._named(column), column) for column in self._shown()]
        return self._of_keys({name: column for name, column in named if name is not None and name not in keys})

    def ends_of_texts(self) -> Iterator[exp.Expression]:
        """Yield MIN and MAX of texts that the keys determine, or that are keys."""
        keys = self._keys()
        clauses = filter(None, (self._select.args.get(name) for name in ("having", "order")))
        for item in (*self._select.expressions, *clauses):
            for end in _in_select(item):
                name = self._named(end.this) if type(end) in _ENDS and is_column(end.this) else None
                if name is None or not has_only(end, "this") or isinstance(end.parent, exp.Window | exp.Filter):
                    continue
                if self._is_text(name) and (name in keys or self._of_keys({name: end.this})):
                    yield end

    def _is_text(self, name: Name) -> bool:
        """Tell whether a column is a text of a public table."""
        table = next(item.table for item in self._items if item.name == name[0])
        columns = () if table is None else table.columns
        return any(column.name.casefold() == name[1] and column.type == "string" for column in columns)

    def _keys(self) -> list[Name | None]:
        return [self._named(key) for key in self._select.args["group"].expressions]

    def _of_keys(self, shown: dict[Name, exp.Expression]) -> list[exp.Expression]:
        """Return those of some columns that the keys determine."""
        names, keys = [item.name for item in self._items], self._keys()
        if not shown or len(set(names)) < len(names) or not all(self._is_plain(item.join) for item in self._items):
            return []
        known = self._equal({key for key in keys if key is not None}, self._inner())
        more: list[exp.Expression] = []
        # Groups of rows of units whose key is NULL are in no answer: what may be NULL is no key that nobody wrote.
        drops_null = RelationKind.PROTECTED in Kinds(self._within).in_from(self._select, visible_in(self._select))
        for item in self._items:
            columns = {column: node for (table, column), node in shown.items() if table == item.name}
            own = {column for table, column in known if table == item.name}
            never = columns if drops_null else ()
            if columns and own and item.table is not None and are_unique(item.table, own, {*own, *never}, self._within):
                more += [copied(node) for node in columns.values()]
        return more

    # ---- names ------------------------------------------------------------------------------------------------------

    def _named(self, node: exp.Expression) -> Name | None:
        """Return the table and the name of a column; None if that is not certain."""
        column = node.name.casefold()
        if node.text("table"):
            owners = [item for item in self._items if item.name == node.text("table").casefold()]
        elif any(item.columns is None for item in self._items):
            return None
        else:
            owners = [item for item in self._items if column in (item.columns or ())]
            if any(column in _shared_by(item.join) for item in owners):  # USING: the one column of both
                owners = owners[:1]
        return (owners[0].name, column) if len(owners) == 1 else None

    def _shown(self) -> Iterator[exp.Expression]:
        """Yield the columns outside of aggregates that the answer needs, but for names of its own columns."""
        select = self._select
        aliases = {item.alias.casefold() for item in select.expressions if isinstance(item, exp.Alias)}
        for item in select.expressions:
            yield from _outside_aggregates(item)
        for clause in filter(None, (select.args.get(name) for name in ("having", "qualify", "order"))):
            for column in _outside_aggregates(clause):
                if column.text("table") or column.name.casefold() not in aliases:
                    yield column

    # ---- what equals what --------------------------------------------------------------------------------------------

    def _is_plain(self, join: exp.Join | None) -> bool:
        if join is None:
            return True
        side, kind = (str(join.args.get(name) or "").upper() for name in ("side", "kind"))
        return not join.args.get("method") and side in ("", "LEFT", "RIGHT") and kind in ("", "INNER", "OUTER", "CROSS")

    def _inner(self) -> list[tuple[Name, Name]]:
        """Return the columns that are equal in every row: by WHERE, and by ON of inner joins."""
        where = self._select.args.get("where")
        inner = [item.join for item in self._items if item.join is not None and not item.join.args.get("side")]
        pairs = [pair for join in inner for pair in self._pairs_of(join)]
        return pairs if where is None else [*pairs, *self._pairs(conjuncts(where.this, self._within.nowhere))]

    def _pairs_of(self, join: exp.Join) -> list[tuple[Name, Name]]:
        """Return what ON or USING says is equal."""
        on = join.args.get("on")
        pairs = [] if on is None else self._pairs(conjuncts(on, self._within.nowhere))
        own = next(item for item in self._items if item.join is join)
        for name in _shared_by(join):  # the first table that has it is the one before
            first = next((item for item in self._items if name in (item.columns or ())), own)
            pairs.append(((first.name, name), (own.name, name)))
        return pairs

    def _pairs(self, conditions: Sequence[exp.Expression]) -> list[tuple[Name, Name]]:
        sides = [(node.this, node.expression) for node in conditions if isinstance(node, exp.EQ)]
        named = [(self._named(a), self._named(b)) for a, b in sides if is_column(a) and is_column(b)]
        return [(a, b) for a, b in named if a is not None and b is not None]

    def _equal(self, known: set[Name], pairs: Sequence[tuple[Name, Name]]) -> set[Name]:
        """Return columns with those that equal them."""
        found = set(known)
        for _ in pairs:
            found |= {name for pair in pairs if not found.isdisjoint(pair) for name in pair}
        return found


def _item(
    node: exp.Expression, join: exp.Join | None, visible: Sequence[exp.Expression], within: Scope
) -> _NamedRelation:
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        return _NamedRelation(node.alias.casefold(), None, None, join)
    name, identifier = node.alias_or_name.casefold(), node.this
    if any(same_name(identifier, str(table.alias)) for table in visible):
        return _NamedRelation(name, None, None, join)
    protected = protected_table(identifier, within)
    public = public_table(identifier, within)
    table = protected or public
    columns = None if table is None else frozenset(column.name.casefold() for column in table.columns)
    return _NamedRelation(name, columns, None if protected is not None else public, join)


def _shared_by(join: exp.Join | None) -> list[str]:
    """Return the names in USING, in lower case."""
    return [] if join is None else [name.name.casefold() for name in join.args.get("using") or ()]


def _outside_aggregates(node: exp.Expr) -> Iterator[exp.Expression]:
    """Yield columns outside of aggregates; of a window, what is computed over the answer is outside."""
    if isinstance(node, exp.Query | exp.Filter | exp.WithinGroup):
        return
    if isinstance(node, exp.Column):
        yield node
        return
    if isinstance(node, exp.AggFunc) and not isinstance(node.parent, exp.Window):
        return
    for child in node.iter_expressions():
        yield from _outside_aggregates(child)


def _in_select(node: exp.Expr) -> Iterator[exp.Expression]:
    """Yield the nodes of a part of a SELECT, but for those of subqueries."""
    if isinstance(node, exp.Expression) and not isinstance(node, exp.Query):
        yield node
        for child in node.iter_expressions():
            yield from _in_select(child)


def are_unique(table: PublicTable, keys: Collection[str], known: Collection[str], within: Scope) -> bool:
    """Tell whether no two rows of a public table are equal in its keys, and all of some columns are never NULL.

    Args:
        known: These columns, in lower case.
    """
    names = [column.name for column in table.columns]
    if within.facts.multiplicity(table, [name for name in names if name.casefold() in keys]) > 1:
        return False
    named = [name for name in names if name.casefold() in known]
    unknown = [exp.Is(this=exp.column(name, quoted=True), expression=exp.Null()) for name in named]
    select = exp.Select(
        expressions=[exp.Star()],
        from_=exp.From(this=exp.Table(this=exp.to_identifier(table.name, quoted=True))),
        where=exp.Where(this=exp.or_(*unknown, copy=False)),
    )
    found = unnamed(select, within)
    if not isinstance(found, PublicInput):
        return False
    rows = JoinedRows(rows=found.rows, variables=found.rows.columns)
    return within.facts.combinations(Combinations(tables=(rows,), lists=(), conditions=(), shown=(_ONE,)), 1) == ()

"""FROM: what it may name, what it gives (rows that carry the unit, or public rows), and how it is bound.

Most questions are about one protected table, and some of its rows. What is made of several tables, or of subqueries, is
bound in `subqueries`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from lapwing.catalog.model import Catalog, Table
from lapwing.catalog.public import PublicTable
from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.expressions.expression import Expression
from lapwing.query.expressions.rows import RowScope, TableReference, same_name
from lapwing.query.from_clause.conditions import bind_condition, conjuncts, filtered
from lapwing.query.relations.public_rows import PublicFacts, PublicRows
from lapwing.query.relations.relation import FilteredRows, ProtectedRows, unit_of
from lapwing.query.relations.size import require_bounded_size


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What a FROM clause may name: the text at hand, the catalog, and the common table expressions before it.

    Args:
        within: The views that are being opened, so that none opens itself.
        sharing: Whether rows of different units may meet, as aggregates limit what a unit adds (`shared_joins`).
        reads: Whether numbers are seen as read.
        known: The SELECTs inside that were bound for this question (`subqueries`).
    """

    text: str
    catalog: Catalog
    facts: PublicFacts
    named: Mapping[str, "Input | PublicInput"] = field(default_factory=dict)
    within: tuple[str, ...] = ()
    sharing: bool = False
    reads: bool = True
    known: "dict[object, KnownSelect]" = field(default_factory=dict, compare=False, repr=False)

    @property
    def nowhere(self) -> RowScope:
        """Rows without columns, to point at places of the text."""
        return RowScope(text=self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """Rows that carry the unit, and the names under which their columns are known.

    Args:
        unit_place: Of a subquery that lists its columns, where the unit is among them.
        dark: Where a join keeps public rows that match nobody, the columns that are NULL in them (`outer_joins`).
        kept: These rows, by the name that the first of their columns has in the relation.
    """

    selection: FilteredRows
    sources: tuple[TableReference, ...]
    unit_place: int | None = None
    dark: frozenset[str] | None = None
    kept: Mapping[str, PublicRows] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicInput:
    """Rows of a public table, and the name under which their columns are known."""

    rows: PublicRows
    source: TableReference


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KnownSelect:
    """A SELECT inside another that was bound, and the common table expressions that it names."""

    node: exp.Expression
    digest: int
    named: "Mapping[str, Input | PublicInput]"
    bound: "Input | PublicInput"

    def is_of(self, node: exp.Expression, named: "Mapping[str, Input | PublicInput]") -> bool:
        """Tell whether a node would be bound to the same: nobody changed it, and its names mean this."""
        same = self.named.keys() == named.keys() and all(self.named[name] is input_ for name, input_ in named.items())
        return same and self.node is node and self.digest == hash(node)


Binder = Callable[[exp.Expression, Scope], Input | PublicInput]
"""Binds what FROM names, or a subquery."""
RowsBinder = Callable[[exp.Select, Sequence[exp.Expression], Scope], Input]
"""Binds WITH, FROM and JOIN of a SELECT, and conditions in the place of its WHERE."""


def rows_of(input_: Input | PublicInput, scope: Scope) -> RowScope:
    """Return the names that expressions over bound rows may use."""
    return RowScope(text=scope.text, sources=input_.sources if isinstance(input_, Input) else (input_.source,))


def renamed(input_: Input | PublicInput, name: str) -> Input | PublicInput:
    """Return rows under another name."""
    if isinstance(input_, PublicInput):
        return replace(input_, source=replace(input_.source, name=name))
    return replace(input_, sources=tuple(replace(source, name=name) for source in input_.sources))


# ---- tables ---------------------------------------------------------------------------------------------------------


def protected_table(name: exp.Identifier, scope: Scope) -> Table | None:
    """Return the protected table of a name, if there is one."""
    return next((table for table in scope.catalog.tables if same_name(name, table.name)), None)


def public_table(name: exp.Identifier, scope: Scope) -> PublicTable | None:
    """Return the public table of a name, if there is one."""
    return next((table for table in scope.catalog.public_tables if same_name(name, table.name)), None)


def kept(table: Table, name: str, scope: Scope) -> Input:
    """Return the rows of a protected table that exist, under a name."""
    if table.unit_day is not None:
        raise QueryRefused(
            f"Queries do not support {table.name}, whose privacy unit is {table.unit_name}",
            cause=RefusalCause.TABLE_NOT_QUERIED,
            remedy="Watch it with a monitor.",
        )
    relation = ProtectedRows(table=table, reads=scope.reads)
    columns: dict[str, Expression] = {c.name: c for c in relation.columns if c.cleaned is None}
    sources = (TableReference(name=name, columns=columns, unit=unit_of(table)),)
    return Input(selection=FilteredRows(relation=relation), sources=sources)


# ---- the clause ------------------------------------------------------------------------------------------------------


def bind_from(select: exp.Select, scope: Scope, *, sharing: bool = False) -> tuple[Input, Scope]:
    """Bind the WITH, FROM, JOIN and WHERE clauses of a question.

    Args:
        sharing: Whether rows of different units may meet where they cannot be kept apart.
    """
    alone = _one_table(select, scope)
    if alone is not None:
        return alone, scope
    # Here: joins, unions and subqueries are a twentieth of a start, and most questions have none.
    from lapwing.query.from_clause.subqueries import bind_composed

    return bind_composed(select, scope, sharing=sharing)


def _one_table(select: exp.Select, scope: Scope) -> Input | None:
    """Bind FROM one protected table WHERE a condition on its rows; None if there is more to it."""
    item = getattr(select.args.get("from_"), "this", None)
    where = select.args.get("where")
    if not isinstance(item, exp.Table) or not isinstance(item.this, exp.Identifier):
        return None
    nested = where is not None and where.find(exp.Select, exp.Exists)
    if select.args.get("with_") or select.args.get("joins") or nested:
        return None
    table = protected_table(item.this, scope)
    if table is None:
        return None
    input_ = kept(table, item.alias or table.name, scope)
    scope.nowhere.only(select.args["from_"], "this")
    scope.nowhere.only(item, "this", "alias")
    scope.nowhere.only(item.this, "this", "quoted")
    scope.nowhere.alias_of(item)
    if where is None:
        return input_
    scope.nowhere.only(where, "this")
    rows = rows_of(input_, scope)
    for node in conjuncts(where.this, scope.nowhere):
        input_ = replace(input_, selection=filtered(input_.selection, bind_condition(node, rows, "WHERE")))
    require_bounded_size(input_.selection, select, scope.nowhere)
    return input_

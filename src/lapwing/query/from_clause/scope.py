"""What a FROM clause may name, and what it gives: rows that carry the unit, or public rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from lapwing.catalog.model import Catalog, Table
from lapwing.query.expressions import functions
from lapwing.query.expressions.calls import bind_expression
from lapwing.query.expressions.expression import Expression
from lapwing.query.expressions.normal_forms import TRUE
from lapwing.query.expressions.rows import RowScope, TableReference, same_name
from lapwing.query.expressions.types import BOOLEAN, describe
from lapwing.query.relations.public import PublicFacts, PublicRows
from lapwing.query.relations.relation import ProtectedRows, Selection, unit_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What a FROM clause may name: the text at hand, the catalog, and the common table expressions before it.

    Args: within: the views that are being opened, so that none opens itself; sharing: whether rows of different units
        may meet, as aggregates limit what a unit adds (`shared_joins`).
    """

    text: str
    catalog: Catalog
    facts: PublicFacts
    named: Mapping[str, "Input | PublicInput"] = field(default_factory=dict)
    within: tuple[str, ...] = ()
    sharing: bool = False

    @property
    def nowhere(self) -> RowScope:
        """Rows without columns, to point at places of the text."""
        return RowScope(text=self.text)

    @property
    def tables(self) -> str:
        """What FROM may name, for people."""
        tables = [table.name for table in self.catalog.tables]
        public = [table.name for table in self.catalog.public_tables]
        return f"Tables: {', '.join([*tables, *public, *(view.name for view in self.catalog.views), *self.named])}."


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """Rows that carry the unit, and the names under which their columns are known.

    Args: unit_place: of a subquery that lists its columns, where the unit is among them; dark: where a join keeps
        public rows that match nobody, the columns that are NULL in them (`outer_joins`).
    """

    selection: Selection
    sources: tuple[TableReference, ...]
    unit_place: int | None = None
    dark: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicInput:
    """Rows of a public table, and the name under which their columns are known."""

    rows: PublicRows
    source: TableReference


Binder = Callable[[exp.Expression, Scope], Input | PublicInput]
"""Binds what FROM names, or a subquery."""


def rows_of(bound: Input | PublicInput, scope: Scope) -> RowScope:
    """Return the names that expressions over bound rows may use."""
    return RowScope(text=scope.text, sources=bound.sources if isinstance(bound, Input) else (bound.source,))


def renamed(bound: Input | PublicInput, name: str) -> Input | PublicInput:
    """Return rows under another name."""
    if isinstance(bound, PublicInput):
        return replace(bound, source=replace(bound.source, name=name))
    return replace(bound, sources=tuple(replace(source, name=name) for source in bound.sources))


# ---- tables ---------------------------------------------------------------------------------------------------------


def alias_of(node: exp.Expression, scope: Scope, *further: str) -> str | None:
    """Return the name that AS gives to an item of a FROM clause."""
    alias = node.args.get("alias")
    if alias is None:
        return None
    scope.nowhere.only(alias, "this", *further)
    scope.nowhere.only(alias.this, "this", "quoted")
    return str(alias.name)


def protected_table(name: exp.Identifier, scope: Scope) -> Table | None:
    """Return the protected table of a name, if there is one."""
    return next((table for table in scope.catalog.tables if same_name(name, table.name)), None)


def kept(table: Table, name: str) -> Input:
    """Return the rows of a protected table that exist, under a name."""
    relation = ProtectedRows(table=table)
    columns: dict[str, Expression] = {column.name: column for column in relation.columns}
    return Input(
        selection=Selection(relation=relation),
        sources=(TableReference(name=name, columns=columns, unit=unit_of(table)),),
    )


# ---- conditions -----------------------------------------------------------------------------------------------------


def condition(clause: exp.Expression | None, rows: RowScope, name: str) -> Expression | None:
    """Bind what stands after WHERE, HAVING or QUALIFY."""
    if clause is None:
        return None
    rows.only(clause, "this")
    return bound_condition(clause.this, rows, name)


def bound_condition(node: exp.Expression, rows: RowScope, name: str) -> Expression:
    """Bind a condition on a row."""
    bound = bind_expression(node, rows)
    if bound.type != BOOLEAN:
        raise rows.refusal(node, f"{name} needs a condition, not {describe(bound.type)}", "Write a comparison.")
    return bound


def conjunction(first: Expression | None, second: Expression | None) -> Expression | None:
    """Return what holds where both conditions do; None is no condition, and neither is TRUE."""
    if second is None or second == TRUE:
        return first
    if first is None:
        return second
    return functions.both(first, second)


def filtered(selection: Selection, where: Expression | None) -> Selection:
    """Return the rows of a selection for which a condition is true too."""
    return replace(selection, where=conjunction(selection.where, where))


def conjuncts(node: exp.Expression, rows: RowScope) -> Sequence[exp.Expression]:
    """Return the conditions that a chain of ANDs joins."""
    found: list[exp.Expression] = []
    pending = [node]
    while pending:
        part = pending.pop()
        if type(part) is exp.And:
            rows.only(part, "this", "expression")
            pending += [part.expression, part.this]
        elif type(part) is exp.Paren:
            rows.only(part, "this")
            pending.append(part.this)
        else:
            found.append(part)
    return found

"""What kind of relation a table, a subquery or a common table expression gives: known before anything is bound as such.

A SELECT that groups the rows of a protected table by the privacy unit, or by columns that settle whose row it is, gives
rows again, of one unit each. One that aggregates rows of several units gives what is released: an answer. So which of
the SELECTs in one another is the question follows from what they are.

What FROM takes beside each other, and why:

protected  protected   rows of one unit meet (`unit_joins`), or of several, where aggregates limit each (`shared_joins`)
protected  public      every row meets rows that everybody may see (`public_joins`), or a list that is computed of them
                       (`public_lists`)
protected  released    constants of a query that is asked first, if a row meets one group or none (`released_joins`)
released   released    post-processing (`compositions`)
released   public      post-processing (`public_answers`)
public     public      exact and free: no question is asked (`compositions`), as are lists of constants
protected  constants   functions of the row, where it meets one row of a list or none (`listed_joins`)
any        constants   as many copies of the rows as the list has (`listed_values`)

The proofs are in `docs/theory/relations.md`.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum
from typing import Final

from sqlglot import exp

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.expressions.attempts import FORMS, MEETINGS, NAMES, VALUES
from lapwing.query.expressions.rows import RowScope, attempted, same_name
from lapwing.query.from_clause.common_tables import tables_in
from lapwing.query.from_clause.conditions import conjuncts
from lapwing.query.from_clause.groupings import is_aggregated, settles_unit
from lapwing.query.from_clause.scope import Input, Scope, protected_table, rows_of
from lapwing.query.from_clause.subqueries import query_of_view, rows_in_from

MOST_DEPTH: Final = 64
"""SELECTs in one another that are looked at."""
_ELSEWHERE: Final = NAMES | FORMS | VALUES | MEETINGS | {RefusalCause.MIXES_UNITS}
"""Binding may know better: there units may meet, names belong to a SELECT around it, and WHERE state bounds."""
Tables = Sequence[exp.Expression]
"""Common table expressions, in the order of the text: each may name those before it."""


class RelationKind(Enum):
    """What stands in FROM."""

    PROTECTED = "rows that carry the privacy unit"
    PUBLIC = "rows that everybody may see"
    RELEASED = "the answer to a question"
    CONSTANTS = "a list of constants"


class Kinds:
    """The kinds of what a question names: of each SELECT looked up once, however often it is named."""

    def __init__(self, within: Scope) -> None:
        self._within = within
        self._known: dict[int, tuple[exp.Expression, RelationKind]] = {}
        self._depth = 0

    def of(self, query: exp.Expression, visible: Tables = ()) -> RelationKind:
        """Return what a query gives.

        Args:
            visible: The common table expressions that it may name beside its own.
        """
        while isinstance(query, exp.Subquery):
            query = query.this
        known = self._known.get(id(query))
        if known is None:
            if self._depth > MOST_DEPTH:
                return RelationKind.PROTECTED  # whoever binds it refuses it
            self._depth += 1
            known = self._known[id(query)] = query, self._of(query, (*visible, *tables_of_with(query)))
            self._depth -= 1
        return known[1]

    def in_from(self, select: exp.Select, visible: Tables = ()) -> list[RelationKind]:
        """Return the kinds of what FROM names, in order."""
        visible = (*visible, *tables_of_with(select))
        return [self._of_item(node, visible) for node in items_of(select)]

    def _of(self, query: exp.Expression, visible: Tables) -> RelationKind:
        if isinstance(query, exp.SetOperation):
            return _together([self.of(side, visible) for side in (query.this, query.expression)])
        if not isinstance(query, exp.Select):
            return RelationKind.PROTECTED  # it is refused wherever it stands
        kind = _together([self._of_item(node, visible) for node in items_of(query)])
        if query.args.get("from_") is None:  # of nothing, or of numbers that are asked for
            return RelationKind.RELEASED if query.find(exp.Subquery) is not None else RelationKind.CONSTANTS
        if kind is RelationKind.PROTECTED and is_aggregated(query):
            grouped = query.args.get("group") is not None
            return RelationKind.PROTECTED if grouped and self._settles_unit(query, visible) else RelationKind.RELEASED
        return kind

    def _of_item(self, node: exp.Expression, visible: Tables) -> RelationKind:
        if isinstance(node, exp.Subquery):
            return self.of(node.this, visible)
        if isinstance(node, exp.Values | exp.Unnest):
            return RelationKind.CONSTANTS
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            return RelationKind.PROTECTED
        place = next((i for i, table in enumerate(visible) if same_name(node.this, str(table.alias))), None)
        if place is not None:
            return self.of(visible[place].this, visible[:place])
        catalog = self._within.catalog
        if protected_table(node.this, self._within) is not None:
            return RelationKind.PROTECTED
        if any(same_name(node.this, table.name) for table in catalog.public_tables):
            return RelationKind.PUBLIC
        view = next((view for view in catalog.views if same_name(node.this, view.name)), None)
        return RelationKind.PROTECTED if view is None else self._of_view(view.name, view.sql)

    def _of_view(self, name: str, sql: str) -> RelationKind:
        """Return what a view gives: rows, of whatever it is made."""
        if name in self._within.within:
            return RelationKind.PROTECTED
        inner = replace(self._within, text=sql, within=(*self._within.within, name))
        return (
            RelationKind.PUBLIC
            if Kinds(inner).of(query_of_view(sql, inner)) is RelationKind.PUBLIC
            else RelationKind.PROTECTED
        )

    # ---- rows ---------------------------------------------------------------------------------------------------

    def _settles_unit(self, select: exp.Select, visible: Tables) -> bool:
        """Tell whether each group of a SELECT over rows is of one unit."""

        def settles(input_: Input, rows: RowScope) -> bool:
            return settles_unit(select, input_.selection, rows, self._within.catalog)

        return self._is_so(select, visible, settles, if_refused=False)

    def shows_unit(self, select: exp.Select, visible: Tables = ()) -> bool:
        """Tell whether a SELECT over rows shows whose they are, or is not understood."""

        def shows(_bound: Input, rows: RowScope) -> bool:
            return any(rows.is_unit(item.this if type(item) is exp.Alias else item) for item in select.expressions)

        return self._is_so(select, visible, shows, if_refused=True)

    def _is_so(
        self, select: exp.Select, visible: Tables, asked: Callable[[Input, RowScope], bool], *, if_refused: bool
    ) -> bool:
        """Tell something of the rows that FROM gives; what it names inside is bound now, and not again.

        WHERE matters to that where it says how tables are joined.

        Args:
            if_refused: What is told where they are refused, as whoever binds the SELECT says why.
        """
        where = select.args.get("where") if select.args.get("joins") else None
        conditions = [] if where is None else conjuncts(where.this, self._within.nowhere)
        plain = [node for node in conditions if node.find(exp.Query) is None]

        def answer() -> bool:
            input_ = rows_in_from(select, needed_by(select, visible), plain, self._within)
            return isinstance(input_, Input) and asked(input_, rows_of(input_, self._within))

        told = attempted(_ELSEWHERE, answer)
        return if_refused if isinstance(told, QueryRefused) else told


def _together(kinds: Sequence[RelationKind]) -> RelationKind:
    """Return the kind of rows that are made of several relations."""
    for kind in (RelationKind.RELEASED, RelationKind.PROTECTED, RelationKind.PUBLIC):
        if kind in kinds:
            return kind
    return RelationKind.CONSTANTS if kinds else RelationKind.PROTECTED


def items_of(select: exp.Select) -> list[exp.Expression]:
    """Return what stands in FROM."""
    clause = select.args.get("from_")
    return [] if clause is None else [clause.this, *(join.this for join in select.args.get("joins") or ())]


def stands_in_from(query: exp.Query) -> bool:
    """Tell whether a query is one whole, or stands in FROM or WITH: then not in a condition, nor for a value."""
    around = query.parent
    return around is None or isinstance(around, exp.From | exp.Join | exp.CTE | exp.SetOperation | exp.Subquery)


def tables_of_with(query: exp.Expr) -> list[exp.Expression]:
    """Return the common table expressions of a query."""
    clause = query.args.get("with_")
    return list(clause.expressions) if isinstance(clause, exp.With) else []


def needed_by(select: exp.Expression, visible: Tables) -> list[exp.Expression]:
    """Return those of common table expressions that FROM of a SELECT names, or that these name, in order."""
    needed: list[exp.Expression] = []
    for table in reversed(visible):
        parts: list[exp.Expression] = [*(items_of(select) if isinstance(select, exp.Select) else [select]), *needed]
        named = [node for part in parts for node in tables_in(part)]
        if any(isinstance(node.this, exp.Identifier) and same_name(node.this, str(table.alias)) for node in named):
            needed.insert(0, table)
    return needed


def visible_in(query: exp.Expr) -> list[exp.Expression]:
    """Return the common table expressions of the queries around one, which it may name beside its own."""
    tables: list[exp.Expression] = []
    inside, around = query, query.parent
    while around is not None:
        if isinstance(around, exp.With):  # of those in one list, each may name those before it
            tables = [*around.expressions[: _place_of(inside, around)], *tables]
            inside, around = around.parent or around, around.parent.parent if around.parent else None
            continue
        if isinstance(around, exp.Query):
            tables = [*tables_of_with(around), *tables]
        inside, around = around, around.parent
    return tables


def _place_of(table: exp.Expr, clause: exp.With) -> int:
    return next(place for place, other in enumerate(clause.expressions) if other is table)

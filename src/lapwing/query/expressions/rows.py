"""The names that a question may use in one row: columns by SQL's rules, and refusals that know where they point."""

from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import ParamSpec, TypeVar

from sqlglot import exp

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.expressions.expression import ColumnReference, Expression
from lapwing.query.expressions.types import Mode
from lapwing.query.expressions.unknown_names import part_refused, unknown_column, unknown_source
from lapwing.query.text.positions import position_of

Bound = TypeVar("Bound")
Given = ParamSpec("Given")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableReference:
    """A table or subquery of a FROM clause, and what its columns are in terms of the relation beneath.

    Args:
        name: Its alias or name.
        columns: By the names that a question may use.
        unit: The name under which the privacy unit may be named, if it may.
        place: Of rows that several units share, which of these it is.
    """

    name: str
    columns: Mapping[str, Expression]
    unit: str | None = None
    place: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RowScope:
    """The columns that an expression may name, and the text that positions refer to.

    Args:
        prepared: Nodes of the tree that were bound before (window functions; after GROUP BY, keys and aggregates), by
            identity.
        lost: The columns that existed before GROUP BY, to explain why one is not there any more.
        mode: What a bounded number is here (`as_read.in_mode`); in "bounded" no comparison looks at what was read.
    """

    text: str
    sources: tuple[TableReference, ...] = ()
    prepared: Mapping[int, Expression] = field(default_factory=dict)
    lost: tuple[TableReference, ...] = ()
    mode: Mode = "value"

    def refusal(
        self, node: exp.Expression, cause: RefusalCause, reason: str, remedy: str = "", curator_remedy: str = ""
    ) -> QueryRefused:
        """Return a refusal that points at where a node stands in the text."""
        return self.refused_at(node, QueryRefused(reason, cause=cause, remedy=remedy, curator_remedy=curator_remedy))

    def refused_at(self, node: exp.Expression, refused: QueryRefused, reason: str = "") -> QueryRefused:
        """Return a refusal as one that points at a node."""
        return refused.pointing_at(position_of(node, self.text) if isinstance(node, exp.Expr) else None, reason)

    def pointing(
        self, node: exp.Expression, reworded: Callable[[str], str] | None = None
    ) -> AbstractContextManager[None]:
        """Let a refusal that does not know where it belongs point at a node; if its reason is reworded, any refusal."""
        if reworded is not None:
            return refused_as(lambda refused: self.refused_at(node, refused, reworded(refused.reason)))
        return refused_as(lambda refused: refused if refused.position is not None else self.refused_at(node, refused))

    def only(self, node: exp.Expression, *allowed: str) -> None:
        """Refuse a node that carries any argument outside an allow-list, and what is no node at all."""
        if not isinstance(node, exp.Expr):
            reason, remedy = "A part of the query is missing", "Write what a clause or operator applies to."
            raise QueryRefused(reason, cause=RefusalCause.SYNTAX_ERROR, remedy=remedy)
        for name, value in node.args.items():
            if name not in allowed and value not in (None, False, [], ""):
                part = value[0] if isinstance(value, list) else value
                known = isinstance(part, exp.Expression) and position_of(part, self.text) is not None
                raise part_refused(name, part if known else node, self)

    def alias_of(self, node: exp.Expression, *further: str) -> str | None:
        """Return the name that AS gives to an item of a FROM clause."""
        alias = node.args.get("alias")
        if alias is None:
            return None
        self.only(alias, "this", *further)
        self.only(alias.this, "this", "quoted")
        return str(alias.name)

    def ready(self, node: exp.Expression) -> Expression | None:
        """Return what a node was bound to before, if it was."""
        ready = self.prepared.get(id(node))
        return ready if ready is None or self.mode == "value" else self._as_asked(ready)

    def seen(self, mode: Mode) -> "RowScope":
        """Return the same names with values in another mode; from "bounded" no way leads back."""
        return self if self.mode in ("bounded", mode) else replace(self, mode=mode)

    def _as_asked(self, value: Expression) -> Expression:
        from lapwing.query.expressions.as_read import in_mode  # here: most questions read no bounded number

        return in_mode(value, self.mode)

    def column(self, node: exp.Expression) -> Expression:
        """Find a column by its name, without regard to case."""
        self.only(node, "this", "table")
        identifier = node.this
        if not is_column(node):
            reason = "SELECT * and column patterns are not supported here"
            raise self.refusal(node, RefusalCause.STAR_NOT_SUPPORTED, reason, "Name the columns.")
        self.only(identifier, "this", "quoted")
        found = [
            expression
            for source in self.qualified(node)
            for name, expression in source.columns.items()
            if same_name(identifier, name)
        ]
        unit = self.is_unit(node)
        if len(found) > 1:
            raise self._ambiguous(node)
        if found:
            other = isinstance(found[0], ColumnReference) and found[0].name != identifier.name
            value = replace(found[0], written=identifier.name) if other else found[0]
            return value if self.mode == "value" else self._as_asked(value)
        if unit:
            reason = f"'{node.name}' says whose row each is (the privacy unit) and is not a column of the catalog"
            raise self.refusal(node, RefusalCause.PRIVACY_UNIT_AS_VALUE, reason, f"Use COUNT(DISTINCT {node.this}).")
        raise unknown_column(node, self)

    def has(self, node: exp.Expression) -> bool:
        """Tell whether exactly one column has this name."""
        qualifier = node.args.get("table")
        sources = [source for source in self.sources if qualifier is None or same_name(qualifier, source.name)]
        return sum(same_name(node.this, name) for source in sources for name in source.columns) == 1

    def is_unit(self, node: exp.Expression) -> bool:
        """Tell whether a node names the privacy unit."""
        if not is_column(node):
            return False
        self.only(node, "this", "table")
        self.only(node.this, "this", "quoted")
        sources = self.qualified(node)
        units = [source for source in sources if source.unit is not None and same_name(node.this, source.unit)]
        others = (name for source in sources if source not in units for name in source.columns)
        if units and any(same_name(node.this, name) for name in others):
            raise self._ambiguous(node)
        return bool(units)

    def _ambiguous(self, node: exp.Expression) -> QueryRefused:
        reason = f"'{node.name}' is in several tables"
        return self.refusal(node, RefusalCause.AMBIGUOUS_COLUMN, reason, "Write table.column.")

    @property
    def unit(self) -> str | None:
        """The name under which the privacy unit may be named, if it may."""
        return next((source.unit for source in self.sources if source.unit is not None), None)

    def qualified(self, node: exp.Expression) -> tuple[TableReference, ...]:
        """Return the sources that a name may belong to: the one it is qualified with, or all."""
        qualifier = node.args.get("table")
        if qualifier is None:
            return self.sources
        self.only(qualifier, "this", "quoted")
        chosen = tuple(source for source in self.sources if same_name(qualifier, source.name))
        if not chosen:
            raise unknown_source(node, qualifier.name, self)
        return chosen


@contextmanager
def refused_as(change: Callable[[QueryRefused], QueryRefused]) -> Iterator[None]:
    """Let a refusal be raised as another one, which says more of it; no other code adds to a refusal on its way out."""
    try:
        yield
    except QueryRefused as refused:
        raise change(refused) from None


def attempted(
    causes: Set[RefusalCause], bind: Callable[Given, Bound], *args: Given.args, **options: Given.kwargs
) -> Bound | QueryRefused:
    """Return what is bound, or its refusal if that is an answer by its cause (`attempts`); any other is raised."""
    try:
        return bind(*args, **options)
    except QueryRefused as refused:
        if refused.cause in causes:
            return refused
        raise


def is_column(node: exp.Expression) -> bool:
    """Tell whether a node is the name of a column, and nothing that resembles one."""
    return type(node) is exp.Column and type(node.this) is exp.Identifier


def is_star(node: exp.Expression) -> bool:
    """Tell whether an item of a SELECT is a star, also of one table."""
    return isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star))


def same_name(identifier: exp.Expression, name: str) -> bool:
    """Compare an identifier with a declared name as DuckDB does: quoted or not, without regard to case.

    No catalog has two names in one place that differ in case alone.
    """
    return identifier.name.casefold() == name.casefold()


def require_present(node: object) -> None:
    """Refuse what the parser let pass though something is missing, as after a NOT at the end."""
    if not isinstance(node, exp.Expression):
        reason, remedy = "A part of the query is missing", "Write what an operator or function applies to."
        raise QueryRefused(reason, cause=RefusalCause.SYNTAX_ERROR, remedy=remedy)

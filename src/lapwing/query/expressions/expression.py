"""Total expressions over one row: columns, literals and operations that have a value, or NULL, on every input.

An expression is checked and typed when it is built (`logic` and its neighbours), so that what exists is well-typed,
never raises on data, and carries proven bounds. Its text is canonical: two expressions are equal if and only if their
texts are.

What is written once in a subquery is put wherever its column is named. A plan shares such expressions, but its text and
its SQL repeat them, and functions that walk it take a frame of Python's stack for every level. So sizes and depths are
bounded where expressions are made (`weight`), and at the end.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from fractions import Fraction
from typing import ClassVar

from lapwing.catalog.table import Column as DeclaredColumn
from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.expressions.days import bounded_temporal
from lapwing.query.expressions.types import BOOLEAN, TEXT, UNBOUNDED_INTEGER, UNBOUNDED_REAL, Fixed, Real, Type

Constant = bool | Fraction | str | date | datetime | None
_STEPPING = frozenset({"rescale", "to_fixed", "floor_to", "round_to", "truncate_to", "exact_steps"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnReference:
    """A column of the protected table, as the catalog declares it, or of a relation made from it.

    `written` is what the question calls it, and `listed` has the texts that the catalog lists, if there are no others:
    for people, no part of the plan, and of no comparison. `read` is the same value as it was read, if that differs.
    `cleaned` leads back from it: of a `decimal`, of a `whole` number that only a clamp moves, of a `public` one
    (`as_read`).
    """

    name: str
    type: Type = field(hash=False)  # here and below: equal names have equal hashes, and that is all it takes
    written: str | None = field(default=None, compare=False, repr=False)
    listed: tuple[str, ...] = field(default=(), compare=False, repr=False)
    read: "Expression | None" = field(default=None, compare=False, repr=False)
    cleaned: "ColumnReference | None" = field(default=None, compare=False, repr=False)
    decimal: bool = field(default=False, compare=False, repr=False)
    whole: bool = field(default=False, compare=False, repr=False)
    public: bool = field(default=False, compare=False, repr=False)

    children: ClassVar[tuple["Expression", ...]] = ()

    def __str__(self) -> str:
        return '"' + self.name.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal:
    """A constant of the question. A number is exact: its type is a `Fixed` of one value."""

    value: Constant
    type: Type = field(hash=False)  # as above: hashing its bounds takes longer than the value

    children: ClassVar[tuple["Expression", ...]] = ()
    read: ClassVar[None] = None

    def __str__(self) -> str:
        match self.value:
            case None:
                return "NULL"
            case bool(value):
                return str(value).upper()
            case str(value):
                return "'" + value.replace("'", "''") + "'"
            case Fraction() as value:
                return str(value)
            case datetime() as value:
                return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
            case value:
                return f"DATE '{value.isoformat()}'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A function by its name in plans, applied to checked arguments; `nodes` and `depth` measure its whole text."""

    function: str
    arguments: tuple["Expression", ...]
    type: Type = field(hash=False)
    read: "Expression | None" = field(default=None, compare=False, repr=False)
    nodes: int = field(init=False, repr=False, compare=False)
    depth: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", 1 + sum(map(nodes_of, self.arguments)))
        object.__setattr__(self, "depth", 1 + max(map(depth_of, self.arguments), default=0))

    def __str__(self) -> str:
        suffix = f"; {self.type.step}" if isinstance(self.type, Fixed) and self.function in _STEPPING else ""
        return f"{self.function}({', '.join(map(str, self.arguments))}{suffix})"

    @property
    def children(self) -> tuple["Expression", ...]:
        """The arguments."""
        return self.arguments


Expression = ColumnReference | Literal | Operation


def nodes_of(expression: Expression) -> int:
    """Return of how many columns, constants and functions the text of an expression is made."""
    return expression.nodes if isinstance(expression, Operation) else 1


def depth_of(expression: Expression) -> int:
    """Return how many functions deep an expression is nested."""
    return expression.depth if isinstance(expression, Operation) else 0


def walk(expression: Expression | None) -> Iterator[Expression]:
    """Yield an expression and all that it is made of, each as often as its text has it."""
    pending = [] if expression is None else [expression]
    while pending:
        node = pending.pop()
        yield node
        pending += node.children


def columns_of(expression: Expression | None) -> frozenset[str]:
    """Return the names of the columns that an expression reads."""
    return frozenset(node.name for node in walk(expression) if isinstance(node, ColumnReference))


def written_in(expression: Expression | None) -> frozenset[str]:
    """Return the names of the columns that an expression reads, as the question writes them."""
    return frozenset(n.written or (n.cleaned or n).name for n in walk(expression) if isinstance(n, ColumnReference))


def is_number(kind: Type) -> bool:
    """Tell whether a type is numeric."""
    return isinstance(kind, Fixed | Real)


def column_type(declared: DeclaredColumn) -> Type:
    """Return the type of a declared column's value."""
    match declared.type:
        case "boolean":
            return BOOLEAN
        case "string":
            return TEXT
        case "date" | "timestamp":
            return bounded_temporal(declared.type, declared.lower, declared.upper)
    if not declared.bounded or declared.step is None:
        return UNBOUNDED_INTEGER if declared.type == "integer" else UNBOUNDED_REAL
    return Fixed(step=declared.step, low=declared.low, high=declared.high)


# ---- limits ----------------------------------------------------------------------------------------------------------

MOST_NODES_IN_ALL = 100_000
"""The most columns, constants and functions in all aggregates of a question; for one expression see `weight`."""


def require_bounded(expressions: Iterable[Expression]) -> None:
    """Refuse a question whose aggregates are too large together."""
    if sum(map(nodes_of, expressions)) > MOST_NODES_IN_ALL:
        reason = "The aggregates of the query grow too large when Lapwing replaces the columns of subqueries"
        raise QueryRefused(reason, cause=RefusalCause.QUERY_TOO_COMPLEX, remedy="Ask for fewer at a time.")

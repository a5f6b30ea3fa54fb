"""Total expressions over one row: columns, literals and operations that have a value, or NULL, on every input.

An expression is checked and typed when it is built (`functions.py`), so that what exists is well-typed, never raises
on data, and carries proven bounds. Its text is canonical: two expressions are equal if and only if their texts are.
"""

from dataclasses import dataclass, field
from datetime import date, datetime
from fractions import Fraction

from lapwing.query.expressions.types import Fixed, Real, Type

Constant = bool | Fraction | str | date | datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of the protected table, as the catalog declares it, or of a relation made from it.

    `written` is what the question calls it, for people: it is no part of the plan, and of no comparison.
    """

    name: str
    type: Type
    written: str | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return '"' + self.name.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal:
    """A constant of the question. A number is exact: its type is a `Fixed` of one value."""

    value: Constant
    type: Type

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
    """A function of `functions.FUNCTIONS` applied to checked arguments.

    `nodes` and `depth` measure its text, in which what several functions share stands several times.
    """

    function: str
    arguments: tuple["Expression", ...]
    type: Type
    nodes: int = field(init=False, repr=False, compare=False)
    depth: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", 1 + sum(map(nodes_of, self.arguments)))
        object.__setattr__(self, "depth", 1 + max(map(depth_of, self.arguments), default=0))

    def __str__(self) -> str:
        suffix = ""
        if self.function in {"rescale", "to_fixed", "floor_to", "round_to", "truncate_to"} and isinstance(
            self.type, Fixed
        ):
            suffix = f"; {self.type.step}"
        return f"{self.function}({', '.join(map(str, self.arguments))}{suffix})"


Expression = Column | Literal | Operation


def nodes_of(expression: Expression) -> int:
    """Return of how many columns, constants and functions the text of an expression is made."""
    return expression.nodes if isinstance(expression, Operation) else 1


def depth_of(expression: Expression) -> int:
    """Return how many functions deep an expression is nested."""
    return expression.depth if isinstance(expression, Operation) else 0


def columns_of(expression: Expression | None) -> frozenset[str]:
    """Return the names of the columns that an expression reads."""
    if isinstance(expression, Column):
        return frozenset({expression.name})
    if isinstance(expression, Operation):
        return frozenset().union(*(columns_of(argument) for argument in expression.arguments))
    return frozenset()


def written_in(expression: Expression | None) -> frozenset[str]:
    """Return the names of the columns that an expression reads, as the question writes them."""
    if isinstance(expression, Column):
        return frozenset({expression.written or expression.name})
    if isinstance(expression, Operation):
        return frozenset().union(*(written_in(argument) for argument in expression.arguments))
    return frozenset()


def is_number(kind: Type) -> bool:
    """Tell whether a type is numeric."""
    return isinstance(kind, Fixed | Real)


def unbounded_columns(expression: Expression) -> frozenset[str]:
    """Return the numeric columns in an expression whose bounds are not known, as the question writes them."""
    if isinstance(expression, Column):
        kind = expression.type
        return written_in(expression) if isinstance(kind, Fixed | Real) and not kind.bounded else frozenset()
    if isinstance(expression, Operation):
        return frozenset().union(*(unbounded_columns(argument) for argument in expression.arguments))
    return frozenset()

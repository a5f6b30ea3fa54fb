"""Expressions as trees of written pieces: columns, constants, and formulas with holes for other expressions.

A formula's pieces are words of SQL that stand in this package, never a user's. An expression in a hole is put into
parentheses if it binds less tightly than the hole asks for, so that the text means the tree, whatever the parser's own
rules for chains are; nothing gets parentheses it does not need, as questions may nest only so deep.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from lapwing.builder.literals import Constant, printed, quoted
from lapwing.errors import InvalidParameter

# How tightly an expression binds.
OR: Final = 1
AND: Final = 2
NOT: Final = 3
COMPARE: Final = 4
ADD: Final = 5
MULTIPLY: Final = 6
SIGN: Final = 7
ATOM: Final = 8

DEEPEST: Final = 150
"""How deep a question's tree may be."""
LARGEST: Final = 10_000
"""How many words a question may have."""


@dataclass(frozen=True, slots=True)
class ColumnNode:
    """A column by its name, and by that of its table where a join has several."""

    name: str
    table: str | None = None


@dataclass(frozen=True, slots=True)
class ConstantNode:
    """A value."""

    value: Constant


@dataclass(frozen=True, slots=True)
class Hole:
    """An expression in a formula, and how tightly it must bind there to stand without parentheses."""

    node: "Node"
    binds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Formula:
    """Pieces of SQL around other expressions.

    Args: aggregates: whether it is one number of many rows, or has a part that is; windows: whether it has a part that
        looks around among rows; size, depth: of its tree.
    """

    pieces: tuple[str | Hole, ...]
    binds: int
    kind: str
    aggregates: bool
    windows: bool
    size: int
    depth: int


Node = ColumnNode | ConstantNode | Formula


def formula(*pieces: str | Hole, binds: int = ATOM, kind: str = "plain") -> Formula:
    """Make a formula: "plain", an "aggregate", or a "window" around an aggregate.

    Raises: InvalidParameter if it is larger or deeper than a question may be.
    """
    inside = [piece.node for piece in pieces if isinstance(piece, Hole)]
    size = 1 + sum(map(size_of, inside))
    depth = 1 + max(map(depth_of, inside), default=0)
    if size > LARGEST or depth > DEEPEST:
        what = f"has more than {LARGEST:,} parts" if size > LARGEST else f"is more than {DEEPEST} operators deep"
        raise InvalidParameter(f"An expression {what}. Write it flatter, for example with isin instead of many |.")
    within = any(map(aggregates, inside))
    return Formula(
        pieces=pieces,
        binds=binds,
        kind=kind,
        aggregates=kind == "aggregate" or (within and kind != "window"),
        windows=kind == "window" or any(map(windows, inside)),
        size=size,
        depth=depth,
    )


def listed(nodes: Iterable[Node], binds: int = OR) -> Iterator[str | Hole]:
    """Yield expressions with commas between them."""
    for place, node in enumerate(nodes):
        if place:
            yield ", "
        yield Hole(node, binds)


def call(name: str, *arguments: Node) -> Formula:
    """Make the call of a function."""
    return formula(f"{name}(", *listed(arguments), ")")


def infix(operator: str, left: Node, right: Node, binds: int, *, chains: bool = False) -> Formula:
    """Put an operator between two expressions; `chains` if a op b op c means the same without parentheses."""
    least = binds if chains else binds + 1
    return formula(Hole(left, least), f" {operator} ", Hole(right, binds + 1), binds=binds)


def conjunction(nodes: Iterable[Node]) -> Node:
    """Join conditions by AND."""
    first, *others = nodes
    for node in others:
        first = infix("AND", first, node, AND, chains=True)
    return first


# ---- what a tree is --------------------------------------------------------------------------------------------------


def aggregates(node: Node) -> bool:
    """Tell whether an expression is made of aggregates."""
    return isinstance(node, Formula) and node.aggregates


def windows(node: Node) -> bool:
    """Tell whether an expression holds a window function."""
    return isinstance(node, Formula) and node.windows


def size_of(node: Node) -> int:
    """Return how many parts an expression has."""
    return node.size if isinstance(node, Formula) else 1


def depth_of(node: Node) -> int:
    """Return how deep an expression is."""
    return node.depth if isinstance(node, Formula) else 1


def columns_of(node: Node) -> Iterator[str]:
    """Yield the names of the columns that an expression reads."""
    match node:
        case ColumnNode(name=name):
            yield name
        case Formula():
            for piece in node.pieces:
                if isinstance(piece, Hole):
                    yield from columns_of(piece.node)


def substituted(node: Node, columns: Mapping[str, Node]) -> Node:
    """Put expressions in the place of columns."""
    match node:
        case ColumnNode(name=name):
            return columns.get(name, node)
        case Formula():
            pieces = (
                Hole(substituted(piece.node, columns), piece.binds) if isinstance(piece, Hole) else piece
                for piece in node.pieces
            )
            return formula(*pieces, binds=node.binds, kind=node.kind)
        case _:
            return node


def qualified(node: Node, table: str) -> Node:
    """Say of every column whose it is."""
    return substituted(node, {name: ColumnNode(name, table) for name in columns_of(node)})


def sql(node: Node, binds: int = OR) -> str:
    """Write an expression, in parentheses if it binds less tightly than it must."""
    match node:
        case ColumnNode(name=name, table=table):
            return quoted(name) if table is None else f"{quoted(table)}.{quoted(name)}"
        case ConstantNode(value):
            written = printed(value)
            return f"({written})" if written.startswith("-") and binds > SIGN else written
        case Formula():
            text = "".join(sql(piece.node, piece.binds) if isinstance(piece, Hole) else piece for piece in node.pieces)
            return f"({text})" if node.binds < binds else text

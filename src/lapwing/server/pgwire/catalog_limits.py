"""Limits of statements about the catalog, because the database that answers them would not keep to any of itself."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, final

import duckdb
from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

MOST_TEXT: Final = 20_000
"""Characters of a statement about the catalog."""
MOST_NESTED: Final = 10
"""How deep parentheses and brackets may be nested; the statements of ODBC need 10."""
MOST_WEIGHT: Final = 4_000
"""The weight of a statement: one bracket weighs 2 to the power of its depth. The parser reads the text inside a
bracket again and again, so its time grows like this. The statements of ODBC weigh up to 3,200."""
MOST_ROWS: Final = 100_000
MOST_CELLS: Final = 8 << 20
"""Characters of the texts of a result."""
MOST_GROWN: Final = 4_000
"""Characters of a text that a statement puts together. DuckDB does not count texts as memory, so they stay short."""
MOST_OPERANDS: Final = 32
"""The number of values that are no constants and become one text."""
MOST_JOINED: Final = 100
MOST_WIDENED: Final = 1_000
"""By which factor arrays, rows and objects of columns may make values larger, all of a statement together."""
MOST_WITHS: Final = 4
MOST_TABLES: Final = 32
MOST_STARS: Final = 2
"""Each of these names all columns, so several of them on top of each other would multiply columns."""
MOST_SERIES: Final = 10_000
MOST_COLUMNS: Final = 1_664
"""As in PostgreSQL."""
_OPENING: Final = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSING: Final = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)


@final
class NotAnswered(Exception):
    """A statement about the catalog that is refused; `state` is its SQLSTATE."""

    def __init__(self, reason: str, state: str = "0A000") -> None:
        self.state = state
        super().__init__(reason)


def require_flat(tokens: Sequence[Token]) -> None:
    """Refuse what the parser would take too long to read, before it does."""
    depth = weight = 0
    for token in tokens:
        if token.token_type in _OPENING:
            depth += 1
            weight += 2 ** min(depth, MOST_NESTED)
        elif token.token_type in _CLOSING:
            depth -= 1
        if depth > MOST_NESTED or weight > MOST_WEIGHT:
            raise NotAnswered(f"A statement about the catalog is nested at most {MOST_NESTED} deep.", "54000")


def require_small(tree: exp.Expr) -> None:
    """Refuse a statement whose values or columns could grow without bound: DuckDB would not count them as memory."""
    stars = sum(not isinstance(one.parent, exp.Count) for one in tree.find_all(exp.Star))
    counts = sum(1 for _ in tree.find_all(exp.CTE)), sum(1 for _ in tree.find_all(exp.Table)), stars
    if any(count > most for count, most in zip(counts, (MOST_WITHS, MOST_TABLES, MOST_STARS), strict=True)):
        raise NotAnswered("The statement names too many tables, or has too many stars or queries of a WITH.", "54000")
    if sum(1 for _ in tree.find_all(exp.DPipe)) > MOST_JOINED:
        raise NotAnswered(f"A statement about the catalog has || at most {MOST_JOINED} times.", "54000")
    names = {one.alias_or_name.lower() for one in tree.find_all(exp.Table, exp.Subquery, exp.CTE)
             if not isinstance(one.this, exp.Func)}  # fmt: skip
    widened = 1
    for node in tree.walk():
        if isinstance(node, exp.Column) and not node.table and node.name.lower() in names:
            raise NotAnswered("A whole row as one value is not answered here.")
        named = isinstance(node, exp.Anonymous) and node.name.lower() == "json_build_object"
        if named or isinstance(node, exp.Array | exp.Tuple | exp.JSONObject):
            widened *= _growing(node.iter_expressions()) + 1
        elif isinstance(node, exp.DPipe) and (is_array(node.this) or is_array(node.expression)):
            widened *= 1 + bool(_growing([node.expression]))
        joined = isinstance(node, exp.DPipe) and not isinstance(node.parent, exp.DPipe)
        parts = node.flatten() if joined else node.iter_expressions()
        if (joined or isinstance(node, exp.Concat | exp.ConcatWs)) and _growing(parts) > MOST_OPERANDS:
            raise NotAnswered(f"At most {MOST_OPERANDS} values become one text.", "54000")
        if widened > MOST_WIDENED:
            raise NotAnswered("The arrays and rows of the statement are too large.", "54000")


def _growing(parts: Iterable[exp.Expr]) -> int:
    """Return how many of some values are no constants."""
    return sum(part.find(exp.Column, exp.Parameter) is not None for part in parts)


def is_array(node: exp.Expr) -> bool:
    """Tell whether an expression is an array for certain."""
    while isinstance(node, exp.Paren | exp.DPipe):
        node = node.this
    return isinstance(node, exp.Array) or (isinstance(node, exp.Cast) and node.to.is_type(exp.DataType.Type.ARRAY))


def short(node: exp.Expr) -> exp.Expr:
    """Return an expression for a text, cut off where it becomes too long."""
    return exp.Left(this=node, expression=exp.Literal.number(MOST_GROWN))


def fetched(cursor: duckdb.DuckDBPyConnection) -> list[Any]:
    """Return the rows of a result, and stop where they are too many or too large."""
    rows: list[Any] = []
    size = 0
    while (part := cursor.fetchmany(256)) and len(rows) <= MOST_ROWS:
        rows += part
        size += sum(len(cell) if isinstance(cell, str) else len(str(cell)) if isinstance(cell, list) else 8
                    for row in part for cell in row)  # fmt: skip
        if size > MOST_CELLS:
            raise NotAnswered(f"The result has more than {MOST_CELLS:,} characters.", "54000")
    return rows

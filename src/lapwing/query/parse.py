"""From text to one SELECT: the only place that hands an analyst's text to a parser.

The text is measured before it is parsed (bytes, tokens, nesting), so that no question can exhaust the parser; what the
parser returns is never trusted for meaning and never printed back as SQL: `bind` copies what it understands into a
plan of our own.
"""

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from lapwing.errors import QueryRefused

MAX_BYTES = 64 * 1024
MAX_TOKENS = 10_000
MAX_NESTING = 50
MAX_TREE_DEPTH = 150

_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
_PREFIX = {TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE}
_ALLOWED = "Ask one SELECT with COUNT, SUM or AVG over one table."


def parse(text: str) -> exp.Select:
    """Return the syntax tree of a question.

    Raises: QueryRefused if the text is too long or too deep, is not SQL, holds more than one statement, or is not a
    plain SELECT.
    """
    if not isinstance(text, str):
        raise QueryRefused(f"A question is a text, not {type(text).__name__}", remedy=_ALLOWED)
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise QueryRefused(f"The question is longer than {MAX_BYTES:,} bytes", remedy="Shorten it.")
    if "\0" in text:
        raise QueryRefused("The question holds a NUL character", remedy="Remove it.")
    dialect = DuckDB()
    try:
        tokens = dialect.tokenize(text)
        _measure(tokens, text)
        statements = [statement for statement in dialect.parser().parse(tokens, text) if statement is not None]
    except (SqlglotError, RecursionError) as error:
        raise _syntax_refusal(error, text) from None
    if len(statements) != 1:
        count = len(statements) or "no"
        raise QueryRefused(f"The text holds {count} statements", remedy="Ask exactly one SELECT at a time.")
    (statement,) = statements
    if not isinstance(statement, exp.Select):
        what = "A set operation" if isinstance(statement, exp.SetOperation) else type(statement).__name__.upper()
        raise QueryRefused(f"{what} is not a question", remedy=_ALLOWED)
    _measure_depth(statement)
    return statement


def _measure_depth(statement: exp.Expression) -> None:
    """Refuse long chains of operators too: they nest in the tree without a parenthesis in the text."""
    pending = [(statement, 1)]
    while pending:
        node, depth = pending.pop()
        if depth > MAX_TREE_DEPTH:
            raise QueryRefused("A chain of operators is too long", remedy="Use IN for many alternatives.")
        pending.extend((child, depth + 1) for child in node.iter_expressions())


def _measure(tokens: list[Token], text: str) -> None:
    if len(tokens) > MAX_TOKENS:
        raise QueryRefused(f"The question has more than {MAX_TOKENS:,} words", remedy="Shorten it.")
    depth = run = 0
    for token in tokens:
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        run = run + 1 if token.token_type in _PREFIX else 0
        if max(depth, run) > MAX_NESTING:
            raise QueryRefused(
                f"The question is nested more than {MAX_NESTING} deep",
                remedy="Write it flatter, for example with IN instead of many ORs.",
                position=place(text, token.start),
            )


def _syntax_refusal(error: Exception, text: str) -> QueryRefused:
    details = getattr(error, "errors", None)
    if details and details[0].get("line"):
        first = details[0]
        near = first.get("highlight") or "the end"
        position = (int(first["line"]), max(1, int(first["col"]) - len(near) + 1))
        return QueryRefused(f"The question is not understood at '{near[:40]}'", remedy=_ALLOWED, position=position)
    return QueryRefused("The question is not understood", remedy=_ALLOWED)


def place(text: str, offset: int) -> tuple[int, int]:
    """Return the (line, column), both from 1, of a character offset."""
    before = text[:offset]
    return (before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1)


def position_of(node: exp.Expression, text: str) -> tuple[int, int] | None:
    """Return where a node, or the first part of it that knows, stands in the text."""
    for part in node.walk(bfs=False):
        start = part.meta.get("start")
        if isinstance(start, int):
            return place(text, start)
    return None

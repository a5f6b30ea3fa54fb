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
# The parser takes up to 34 of Python's 1,000 stack frames for a level; this leaves 300 to whoever calls.
MAX_NESTING = 20
MAX_TREE_DEPTH = 150

_OPENING = {TokenType.L_PAREN, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.END}
_FOREIGN = {TokenType.L_BRACKET, TokenType.L_BRACE}
_PREFIX = {TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE}
_BEGINS_A_LIST = {TokenType.SELECT, TokenType.L_PAREN, TokenType.GROUP_BY, TokenType.ORDER_BY, TokenType.COMMA}
_ENDS_A_LIST = {
    None, TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY, TokenType.LIMIT,
    TokenType.OFFSET, TokenType.R_PAREN, TokenType.SEMICOLON, TokenType.COMMA,
}  # fmt: skip
_FLATTER = "Write it flatter, for example with IN instead of many ORs."
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
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise QueryRefused("The question holds a character that is not text", remedy="Remove NUL and broken Unicode.")
    dialect = DuckDB()
    try:
        tokens = dialect.tokenize(text)
        _measure(tokens, text)
        _require_one_select(tokens, text)
        statement = dialect.parser().parse(tokens, text)[0]
    except (SqlglotError, RecursionError) as error:
        raise _syntax_refusal(error, text) from None
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
        if token.token_type in _FOREIGN:
            raise QueryRefused(
                f"{token.text} is not answered", remedy="Lists go into (…).", position=place(text, token.start)
            )
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        run = run + 1 if token.token_type in _PREFIX else 0
        if max(depth, run) > MAX_NESTING:
            raise QueryRefused(
                f"The question is nested more than {MAX_NESTING} deep",
                remedy=_FLATTER,
                position=place(text, token.start),
            )


def _require_one_select(tokens: list[Token], text: str) -> None:
    """Refuse what is not one SELECT before it is parsed, and numbers that the parser would read in two pieces."""
    if not tokens:
        raise QueryRefused("The text holds no question", remedy=_ALLOWED)
    first, *others = tokens
    if first.token_type != TokenType.SELECT:
        raise QueryRefused(
            f"{first.text[:40].upper()} is not a question", remedy=_ALLOWED, position=place(text, first.start)
        )
    previous = first
    for token in others:
        if previous.token_type == TokenType.SEMICOLON and token.token_type != TokenType.SEMICOLON:
            raise QueryRefused(
                "The text holds more than one statement",
                remedy="Ask exactly one SELECT at a time.",
                position=place(text, token.start),
            )
        if previous.token_type == TokenType.NUMBER and token.start == previous.end + 1 and token.text[:1].isalnum():
            number = previous.text + token.text
            raise QueryRefused(
                f"'{number[:40]}' is not a number", remedy="Write decimal digits.", position=place(text, previous.start)
            )
        previous = token
    _require_items(tokens, text)


def _require_items(tokens: list[Token], text: str) -> None:
    """Refuse a comma with nothing before or after it, which the parser would leave out without a word."""
    kinds = [None, *(token.token_type for token in tokens), None]
    for token, before, after in zip(tokens, kinds, kinds[2:], strict=False):
        if token.token_type == TokenType.COMMA and (before in _BEGINS_A_LIST or after in _ENDS_A_LIST):
            raise QueryRefused(
                "A comma has nothing on one side", remedy="Leave it out.", position=place(text, token.start)
            )


def _syntax_refusal(error: Exception, text: str) -> QueryRefused:
    if isinstance(error, RecursionError):
        return QueryRefused("The question is nested too deep", remedy=_FLATTER)
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

"""From text to one SELECT: the only place that hands an analyst's text to a parser.

The text is measured before it is parsed (bytes, tokens, nesting), so that no question can exhaust the parser; what is
said about privacy is cut out of its tokens (`dialect`), and parameters come in as constants (`parameters`). What the
parser returns is never trusted for meaning and never printed back as SQL: `bind` copies what it understands into a
plan of our own.
"""

import logging
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.text import parameters as values
from lapwing.query.text.converted import with_casts
from lapwing.query.text.declared import with_constants
from lapwing.query.text.dialect import WORDS, cut, placed
from lapwing.query.text.explained import explained
from lapwing.query.text.lost_arguments import require_all_arguments
from lapwing.query.text.parameters import Parameters
from lapwing.query.text.positions import WRITTEN, refused_at
from lapwing.query.text.privacy_options import NamedArguments, PrivacyOptions
from lapwing.query.text.syntax_refusals import (
    ALLOWED,
    FLATTER,
    not_a_question,
    not_a_table_expression,
    not_understood,
    one_select,
    several_statements,
)  # fmt: skip
from lapwing.query.text.word_order import is_list, top_as_limit, with_bracketed_names

MAX_BYTES = 64 * 1024
MAX_TOKENS = 10_000
# The parser takes up to 34 of Python's 1,000 stack frames for a level; this leaves 300 to whoever calls.
MAX_NESTING = 20
MAX_TREE_DEPTH = 150

_READ_TWICE = DuckDB.Parser.TYPE_TOKENS
"""Words behind which the parser reads what is in brackets twice, and so 2ⁿ times where n of them are nested."""
_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.END}
_FOREIGN, _SETS = {TokenType.L_BRACKET, TokenType.L_BRACE}, {TokenType.UNION, TokenType.INTERSECT, TokenType.EXCEPT}
_PLACEHOLDERS = {TokenType.PLACEHOLDER, TokenType.PARAMETER, TokenType.COLON, TokenType.QDCOLON}
_STAR = (TokenType.L_PAREN, TokenType.STAR, TokenType.R_PAREN)
_BEGINS = {TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.VALUES, TokenType.L_PAREN, TokenType.PIVOT,
           TokenType.UNPIVOT}  # fmt: skip
_PREFIX = {TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE}
_BEGINS_A_LIST = {TokenType.SELECT, TokenType.L_PAREN, TokenType.GROUP_BY, TokenType.ORDER_BY, TokenType.COMMA}
_ENDS_A_LIST = {
    None, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY, TokenType.LIMIT,
    TokenType.OFFSET, TokenType.R_PAREN, TokenType.SEMICOLON, TokenType.COMMA,
}  # fmt: skip
_LISTS = "Lists go into (…), as in x IN ('a', 'b'); SPLIT_PART(x, '-', 1) takes one part of a text."

# The parser warns of some texts and quotes them; whoever asks is told by the refusal, and no log is.
_PARSING: ContextVar[bool] = ContextVar("parsing", default=False)
logging.getLogger("sqlglot").addFilter(lambda _record: not _PARSING.get())
_PLAIN = {
    exp.Select, exp.From, exp.Table, exp.TableAlias, exp.Identifier, exp.Column, exp.Star, exp.Alias, exp.Literal,
    exp.Count, exp.Boolean, exp.Null, exp.Sum, exp.Avg, exp.Where, exp.And, exp.Or, exp.Not, exp.Paren, exp.EQ, exp.NEQ,
    exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.Is, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Group,
    exp.Having, exp.Order, exp.Ordered, exp.Limit, exp.Offset,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """A question as it is written.

    Args:
        select: the syntax tree, with parameters as constants, without what is said about privacy.
        options: what it says about its own privacy.
        arguments: what its aggregates say about theirs, by the offset of an aggregate's name: `meta["start"]` of its
            node.
        explain: whether only its price and errors are asked for.
        moment: what its looks at the clock stand for, if it has any (`clock`).
    """

    select: exp.Select
    options: PrivacyOptions = field(default_factory=PrivacyOptions)
    arguments: Mapping[int, NamedArguments] = field(default_factory=dict)
    explain: bool = False
    moment: datetime | None = None


def parse(text: str, parameters: Parameters = ()) -> Parsed:
    """Return what a question says, with the values of its parameters.

    Args:
        parameters: A list with the value of every `?`, or a mapping with those of every `$name` or `:name`.

    Raises:
        QueryRefused: If the text is too long or too deep, is not SQL, holds more than one statement, or is not a plain
            SELECT, and at the position of an option, a named argument or a parameter that is not understood.
        InvalidParameter: For a value that is not allowed, or that no parameter takes.
    """
    if not isinstance(text, str):
        reason = f"A query is a text, not {type(text).__name__}"
        raise QueryRefused(reason, cause=RefusalCause.NOT_A_QUERY, remedy=ALLOWED)
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        reason = f"The query is longer than {MAX_BYTES:,} bytes"
        raise QueryRefused(reason, cause=RefusalCause.QUERY_TOO_LONG, remedy="Shorten it.")
    if "\0" in text or not (text.isascii() or text.encode("utf-8", "ignore").decode() == text):
        raise QueryRefused(
            "The query holds a character that is not text",
            cause=RefusalCause.INVALID_CHARACTER,
            remedy="Remove NUL and broken Unicode.",
        )
    tokens = _tokens(text, text)
    if explain := bool(tokens) and tokens[0].token_type == TokenType.COMMAND and tokens[0].text.upper() == "EXPLAIN":
        tokens = explained(tokens[0], text, _tokens)
    if tokens and tokens[0].text.upper() == "DECLARE":
        _measure(tokens := with_constants(tokens, text, MAX_BYTES), text)
    _require_one_select(tokens, text)
    plain = isinstance(parameters, tuple | list | dict) and not parameters
    if plain and not _has_placeholders(tokens) and not _speaks_of_privacy(tokens):
        return Parsed(select=_tree(tokens, text), explain=explain)
    without = cut(tokens, text)
    kept, placeholders = values.placeholders(without.tokens, text)
    nodes = values.bind_parameters(placeholders, parameters, text)
    select = _tree(kept, text)
    values.fill(select, placeholders, nodes, text)
    arguments = placed(select, without.calls, text)
    return Parsed(select=select, options=without.options, arguments=arguments, explain=explain)


def is_in_plain_words(select: exp.Select) -> bool:
    """Tell whether a SELECT aggregates one table, in words that no rule of `normalise` writes otherwise: as most do."""
    keys = () if (group := select.args.get("group")) is None else group.expressions
    plain = all(type(n) in _PLAIN and not n.args.get("db") for n in _nodes(select)[0]) and select.find(exp.AggFunc)
    return bool(plain) and exp.Literal not in map(type, keys) and exp.EQ not in map(type, select.expressions)


def _has_placeholders(tokens: list[Token]) -> bool:
    """Tell whether any token can be a part of `?`, `$name` or `:name`."""
    return not _PLACEHOLDERS.isdisjoint([token.token_type for token in tokens])


def _speaks_of_privacy(tokens: list[Token]) -> bool:
    """Tell whether there may be an option clause, in its place or not, or a named argument (`dialect`)."""
    kinds = [token.token_type for token in tokens]
    clause = (TokenType.SELECT, TokenType.WITH) in pairwise(kinds)
    return clause or TokenType.FARROW in kinds or not WORDS.isdisjoint([token.text.upper() for token in tokens])


def _tokens(shown: str, text: str) -> list[Token]:
    """Return the tokens of what is shown of a text, having measured them."""
    try:
        characters, dollar = values.marked(shown) if "$" in shown else (shown, "")
        tokens = DuckDB().tokenize(characters)
    except SqlglotError as error:
        raise not_understood(error) from None
    tokens = values.restored(tokens, dollar) if dollar else tokens
    tokens = with_bracketed_names(tokens, text) if "[" in shown else tokens
    _measure(tokens, text)  # before CONVERT, because each looks for the end of its parentheses
    return with_casts(tokens) if "convert" in shown.lower() else tokens


def _tree(tokens: list[Token], text: str) -> exp.Select:
    _require_items(tokens, text)
    quiet = _PARSING.set(True)
    try:
        statement = DuckDB().parser().parse(tokens, text)[0]
    except (SqlglotError, RuntimeError, AttributeError, TypeError, LookupError, ValueError) as error:  # of bad texts
        raise not_understood(error) from None
    finally:
        _PARSING.reset(quiet)
    statement = statement if isinstance(statement, exp.Select) else one_select(statement)
    nodes, depth = _nodes(statement)
    for node in nodes:
        if isinstance(node, exp.CTE) and not isinstance(node.this, exp.Query):
            raise not_a_table_expression(node, text)
    if depth > MAX_TREE_DEPTH:
        raise QueryRefused(
            "A chain of operators is too long",
            cause=RefusalCause.QUERY_TOO_LONG,
            remedy="Use IN for many alternatives.",
        )
    if _holds_arguments(tokens):
        require_all_arguments(nodes, tokens, text)
    for node in nodes:  # the parser gives names of its own to several functions
        if isinstance(node, exp.Func | exp.IgnoreNulls) and "start" in node.meta:
            node.meta[WRITTEN] = text[node.meta["start"] : node.meta["end"] + 1]
    return statement


def _holds_arguments(tokens: list[Token]) -> bool:
    """Tell whether any parenthesis holds more than the star of COUNT(*)."""
    kinds = [token.token_type for token in tokens]
    return kinds.count(TokenType.L_PAREN) > list(zip(kinds, kinds[1:], kinds[2:], strict=False)).count(_STAR)


def _nodes(statement: exp.Expression) -> tuple[list[exp.Expression], int]:
    """Return all nodes of a tree, and its depth: long chains of operators nest without a parenthesis in the text."""
    nodes, level, depth = list[exp.Expression](), [statement], 0
    while level:
        nodes += level
        depth += 1
        level = [child for node in level for child in node.iter_expressions()]
    return nodes, depth


def _measure(tokens: list[Token], text: str) -> None:
    if len(tokens) > MAX_TOKENS:
        raise QueryRefused(
            f"The query has more than {MAX_TOKENS:,} words", cause=RefusalCause.QUERY_TOO_LONG, remedy="Shorten it."
        )
    if sum(token.token_type in _SETS for token in tokens) > 2 * MAX_TREE_DEPTH:  # of several chains
        raise QueryRefused(
            "A chain of UNION, INTERSECT or EXCEPT is too long",
            cause=RefusalCause.QUERY_TOO_LONG,
            remedy="Use IN for many alternatives.",
        )
    depth = run = weight = 0
    typed = [False]  # of the brackets that are open: whether one is behind the name of a type
    for place, token in enumerate(tokens):
        if token.token_type in _FOREIGN and not is_list(tokens, place):
            raise refused_at(token, text, RefusalCause.CLAUSE_NOT_SUPPORTED, f"{token.text} is not supported", _LISTS)
        if token.token_type in _OPENING:
            depth += 1
            typed.append(tokens[place - 1].token_type in _READ_TWICE)
        elif token.token_type in _CLOSING:
            depth -= 1
            del typed[max(len(typed) - 1, 1) :]
        weight += 2 ** sum(typed) - 1
        run = run + 1 if token.token_type in _PREFIX else 0
        if max(depth, run) > MAX_NESTING or weight > MAX_TOKENS:
            reason = f"The query is nested more than {MAX_NESTING} deep, or types are nested in types"
            raise refused_at(token, text, RefusalCause.QUERY_TOO_LONG, reason, FLATTER)


def _require_one_select(tokens: list[Token], text: str) -> None:
    """Refuse what is not one SELECT before it is parsed, and numbers that the parser would read in two pieces."""
    if not tokens:
        raise QueryRefused("The text has no query", cause=RefusalCause.NOT_A_QUERY, remedy=ALLOWED)
    first, *others = tokens
    if first.token_type not in _BEGINS:
        raise not_a_question(first, text)
    if any(token.text.upper() == "TOP" for token in others):
        top_as_limit(tokens, text)
    previous = first
    for token in others:
        if previous.token_type == TokenType.SEMICOLON and token.token_type != TokenType.SEMICOLON:
            raise several_statements(token, text)
        if previous.token_type == TokenType.NUMBER and token.start == previous.end + 1 and token.text[:1].isalnum():
            number = (previous.text + token.text)[:40]
            raise refused_at(
                previous, text, RefusalCause.INVALID_NUMBER, f"'{number}' is not a number", "Write decimal digits."
            )
        previous = token
    _require_items(tokens, text)


def _require_items(tokens: list[Token], text: str) -> None:
    """Refuse a comma with nothing before or after it, which the parser would leave out without a word."""
    kinds = [None, *[token.token_type for token in tokens], None]
    for token, before, after in zip(tokens, kinds, kinds[2:], strict=False):
        if token.token_type == TokenType.COMMA and (before in _BEGINS_A_LIST or after in _ENDS_A_LIST):
            raise refused_at(token, text, RefusalCause.SYNTAX_ERROR, "A comma has nothing on one side", "Leave it out.")

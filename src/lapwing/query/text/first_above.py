"""Several counting questions of the same rows as one: which is the first whose number passes a threshold.

`SELECT COUNT(*) FROM visits WHERE age > 70` and `SELECT COUNT(DISTINCT person) FROM visits` with the threshold 500 are
put together, word for word, as

    SELECT ABOVE_THRESHOLD(COUNT(*) FILTER (WHERE age > 70) >= 500, COUNT(DISTINCT person) >= 500) FROM visits

which is asked, priced and shown as any other text. What a question has besides one aggregate, FROM and WHERE is refused
here, as it would change what is counted.
"""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from lapwing.errors import InvalidParameter
from lapwing.privacy.amounts import Number, exact

_ONE = "Each question is SELECT one aggregate FROM … [WHERE …], such as SELECT COUNT(*) FROM visits WHERE age > 70"
_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)
_ENDS = frozenset(
    {
        *(TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY, TokenType.LIMIT, TokenType.OFFSET),
        *(TokenType.QUALIFY, TokenType.UNION, TokenType.INTERSECT, TokenType.EXCEPT, TokenType.WITH),
        *(TokenType.SEMICOLON, TokenType.FETCH, TokenType.WINDOW, TokenType.COMMA, TokenType.PLACEHOLDER),
    }
)


class _AboveAggregate(NamedTuple):
    """An aggregate, the text after FROM with the words it is made of, and the condition of WHERE."""

    aggregate: str
    rows: str
    words: tuple[str, ...]
    where: str


def first_above_text(questions: Sequence[str], threshold: Number | list[Number] | tuple[Number, ...]) -> str:
    """Return the question for the first of several that passes a threshold.

    Args:
        threshold: Of all of them, or one of each.

    Raises:
        InvalidParameter: For questions that cannot be put together.
    """
    if isinstance(questions, str) or len(questions) < 1:
        raise InvalidParameter(f"first_above takes a list of questions. {_ONE}.")
    read = [_read(text) for text in questions]
    for other in read[1:]:
        if other.words != read[0].words:
            raise InvalidParameter(
                f"The questions are of other rows: FROM {read[0].rows} and FROM {other.rows}; ask of the same FROM "
                "at one time, and choose among its rows by WHERE."
            )
    many = list(threshold) if isinstance(threshold, list | tuple) else [threshold] * len(read)
    if len(many) != len(read):
        raise InvalidParameter(f"There are {len(read)} questions and {len(many)} thresholds; give one, or one of each.")
    conditions = (
        f"{each.aggregate}{f' FILTER (WHERE {each.where})' if each.where else ''} >= {_number(bound)}"
        for each, bound in zip(read, many, strict=True)
    )
    return f"SELECT ABOVE_THRESHOLD({', '.join(conditions)}) AS first FROM {read[0].rows}"


def _number(bound: Number) -> str:
    """Write a number exactly, as a decimal.

    Raises:
        InvalidParameter: If it is none, or has no end.
    """
    value = exact(bound, "The threshold")
    written = Decimal(value.numerator) / Decimal(value.denominator)
    if Fraction(written) != value:
        raise InvalidParameter(f"The threshold {bound} has no end as a decimal number; round it.")
    return f"{written:f}"


def _read(text: str) -> _AboveAggregate:
    try:
        tokens = DuckDB().tokenize(text.rstrip().rstrip(";")) if isinstance(text, str) else []
    except SqlglotError:
        tokens = []
    outer = list(_outermost(tokens))
    kinds = [tokens[place].token_type for place in outer]
    if not kinds or kinds[0] is not TokenType.SELECT or kinds.count(TokenType.FROM) != 1 or _ENDS & {*kinds}:
        raise InvalidParameter(f"'{text}' is not such a question. {_ONE}.")
    start = outer[kinds.index(TokenType.FROM)]
    wheres = [place for place in outer if tokens[place].token_type is TokenType.WHERE]
    stop = wheres[0] if wheres else len(tokens)
    aggregate = _without_name(tokens[1:start])
    # One call, to which FILTER can be put: a name, and parentheses that end with it.
    if len(aggregate) < 3 or [*_outermost(aggregate)] != [0, 1] or aggregate[-1].token_type is not TokenType.R_PAREN:
        raise InvalidParameter(f"'{text}' does not ask for one aggregate alone. {_ONE}.")
    rows, where = tokens[start + 1 : stop], tokens[stop + 1 :]
    if not rows or (wheres and not where):
        raise InvalidParameter(f"'{text}' is not such a question. {_ONE}.")
    words = tuple(token.text.casefold() for token in rows)
    return _AboveAggregate(_slice(text, aggregate), _slice(text, rows), words, _slice(text, where) if where else "")


def _without_name(tokens: Sequence[Token]) -> Sequence[Token]:
    names = [place for place in _outermost(tokens) if tokens[place].token_type is TokenType.ALIAS]
    return tokens[: names[0]] if names else tokens


def _outermost(tokens: Sequence[Token]) -> Iterator[int]:
    """Yield the places of tokens that are in no parentheses, with the opening ones."""
    depth = 0
    for place, token in enumerate(tokens):
        depth -= token.token_type in _CLOSING
        if depth == 0 and token.token_type not in _CLOSING:
            yield place
        depth += token.token_type in _OPENING


def _slice(text: str, tokens: Sequence[Token]) -> str:
    return text[tokens[0].start : tokens[-1].end + 1]

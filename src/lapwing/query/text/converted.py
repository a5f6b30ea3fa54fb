"""CONVERT(type, x) of SQL Server: its words become CAST(x AS type) before they are parsed.

The parser reads CONVERT as other dialects write it, with the value first. A first part that is only a type, before a
second that is none, can be meant in one way. CONVERT(VARCHAR(7), day, 120) has a style as its third part. It becomes a
function of the value, the style and the type's name (`expressions.date_styles`).
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from sqlglot.dialects.duckdb import DuckDB
from sqlglot.tokenizer_core import Token, TokenType

CASTS: Final[Mapping[str, str]] = {"CONVERT": "CAST", "TRY_CONVERT": "TRY_CAST"}
STYLED: Final = "CONVERT WITH STYLE"
"""The name in the tree of a CONVERT with a style; no word of a text has blanks."""


def with_casts(tokens: list[Token]) -> list[Token]:
    """Return tokens with CAST(x AS type) in the place of each CONVERT(type, x)."""
    tokens = list(tokens)
    for place in range(len(tokens) - 1, -1, -1):  # inner ones before outer ones
        name = CASTS.get(tokens[place].text.upper()) if tokens[place].token_type == TokenType.VAR else None
        parts = None if name is None else _parts(tokens, place + 1)
        if name is None or parts is None:
            continue
        kind, value, comma, style = parts
        if style:
            end = place + 4 + len(kind) + len(value) + len(style)
            written = _said(TokenType.STRING, "".join(token.text.upper() for token in kind), kind[0])
            tokens[place : end + 1] = [
                _said(TokenType.VAR, STYLED, tokens[place]), tokens[place + 1], *value, comma, *style, comma, written,
                tokens[end],
            ]  # fmt: skip
            continue
        end = place + 3 + len(kind) + len(value)
        between = [_said(TokenType.ALIAS, "AS", comma), *kind]
        tokens[place : end + 1] = [
            _said(TokenType.VAR, name, tokens[place]), tokens[place + 1], *value, *between, tokens[end],
        ]  # fmt: skip
    return tokens


def _said(kind: TokenType, word: str, at: Token) -> Token:
    return Token(kind, word, at.line, at.col, at.start, at.end)


def _parts(
    tokens: Sequence[Token], opening: int
) -> tuple[Sequence[Token], Sequence[Token], Token, Sequence[Token]] | None:
    """Return a type, what is converted to it, a comma, and the style if there is one; None if it is anything else."""
    if opening >= len(tokens) or tokens[opening].token_type != TokenType.L_PAREN:
        return None
    depth, commas, place = 1, list[int](), opening
    while depth:
        place += 1
        if place == len(tokens):
            return None
        kind = tokens[place].token_type
        depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
        if kind == TokenType.COMMA and depth == 1:
            commas.append(place)
    if len(commas) not in (1, 2):
        return None
    first, second, third = (tokens[begin + 1 : end] for begin, end in pairwise([opening, *commas, place, place][:4]))
    is_style = len(third) == 1 and third[0].token_type == TokenType.NUMBER
    if not _is_type(first) or not second or _is_type(second) or is_style is not (len(commas) == 2):
        return None
    return first, second, tokens[commas[0]], third


def _is_type(tokens: Sequence[Token]) -> bool:
    """Tell whether words are a type and nothing else: INT, NVARCHAR(10), DECIMAL(10, 2)."""
    if not tokens or tokens[0].token_type not in DuckDB.Parser.TYPE_TOKENS - {TokenType.IDENTIFIER}:
        return False
    sizes = (TokenType.L_PAREN, TokenType.R_PAREN, TokenType.NUMBER, TokenType.COMMA)
    return tokens[0].token_type != TokenType.VAR and all(token.token_type in sizes for token in tokens[1:])

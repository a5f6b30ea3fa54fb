"""CONVERT(type, x) of SQL Server: its words become CAST(x AS type) before they are parsed.

The parser reads CONVERT as other dialects write it, with the value first. A first part that is only a type, before a
second that is none, can be meant in one way. A style as a third part stays, to be refused: it is how a date is written.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from sqlglot.dialects.duckdb import DuckDB
from sqlglot.tokenizer_core import Token, TokenType

CASTS: Final[Mapping[str, str]] = {"CONVERT": "CAST", "TRY_CONVERT": "TRY_CAST"}


def with_casts(tokens: list[Token]) -> list[Token]:
    """Return tokens with CAST(x AS type) in the place of each CONVERT(type, x)."""
    tokens = list(tokens)
    for place in range(len(tokens) - 1, -1, -1):  # inner ones before outer ones
        name = CASTS.get(tokens[place].text.upper()) if tokens[place].token_type == TokenType.VAR else None
        parts = None if name is None else _parts(tokens, place + 1)
        if name is None or parts is None:
            continue
        kind, value, comma = parts
        end = place + 3 + len(kind) + len(value)
        between = [_said(TokenType.ALIAS, "AS", comma), *kind]
        tokens[place : end + 1] = [
            _said(TokenType.VAR, name, tokens[place]), tokens[place + 1], *value, *between, tokens[end],
        ]  # fmt: skip
    return tokens


def _said(kind: TokenType, word: str, at: Token) -> Token:
    return Token(kind, word, at.line, at.col, at.start, at.end)


def _parts(tokens: Sequence[Token], opening: int) -> tuple[Sequence[Token], Sequence[Token], Token] | None:
    """Return a type, what is converted to it, and the comma between them; None if it is anything else."""
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
    if len(commas) != 1:
        return None
    first, second = tokens[opening + 1 : commas[0]], tokens[commas[0] + 1 : place]
    return (first, second, tokens[commas[0]]) if _is_type(first) and second and not _is_type(second) else None


def _is_type(tokens: Sequence[Token]) -> bool:
    """Tell whether words are a type and nothing else: INT, NVARCHAR(10), DECIMAL(10, 2)."""
    if not tokens or tokens[0].token_type not in DuckDB.Parser.TYPE_TOKENS - {TokenType.IDENTIFIER}:
        return False
    sizes = (TokenType.L_PAREN, TokenType.R_PAREN, TokenType.NUMBER, TokenType.COMMA)
    return tokens[0].token_type != TokenType.VAR and all(token.token_type in sizes for token in tokens[1:])

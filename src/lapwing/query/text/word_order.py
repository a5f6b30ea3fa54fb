"""What other dialects write in another place, or in brackets, moved or let through before the parser sees it."""

from collections.abc import Sequence
from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

from lapwing.query.text.syntax_refusals import top_refused

_PLACES: Final = ("OFFSET", "SAFE_OFFSET", "ORDINAL", "SAFE_ORDINAL")


def is_list(tokens: Sequence[Token], place: int) -> bool:
    """Tell whether a bracket is one of UNNEST([1, 2]), or chooses from a list as x[OFFSET(2)] does."""
    kinds = [token.token_type for token in tokens]
    if kinds[place] == TokenType.R_BRACKET:  # of an opening one that was let through
        return True
    if kinds[place] != TokenType.L_BRACKET:
        return False
    after = tokens[place + 1].text.upper() if place + 1 < len(tokens) else ""
    of_unnest = place > 1 and kinds[place - 1] == TokenType.L_PAREN and tokens[place - 2].text.upper() == "UNNEST"
    return of_unnest or after in _PLACES


def top_as_limit(tokens: list[Token], text: str) -> None:
    """Write LIMIT 3 at the end of a question for TOP 3 at its beginning.

    Raises:
        QueryRefused: For TOP 3 PERCENT and TOP 3 WITH TIES.
    """
    _, top, number, *others = tokens
    if others and (others[0].text.upper() == "PERCENT" or others[0].token_type == TokenType.WITH):
        raise top_refused(top, number, text)
    limit = Token(TokenType.LIMIT, top.text, top.line, top.col, top.start, top.end)
    end = len(others) - 1 if others and others[-1].token_type == TokenType.SEMICOLON else len(others)
    tokens[1:] = [*others[:end], limit, number, *others[end:]]

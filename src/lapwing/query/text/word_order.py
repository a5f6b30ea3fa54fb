"""What other dialects write in another place, or in brackets, moved or let through before the parser sees it.

`[order date]` is a name in SQL Server. It becomes `"order date"` before it is parsed. A list begins with a number or a
text. Brackets right behind a name choose from a list.
"""

import re
from collections.abc import Sequence
from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

from lapwing.errors import RefusalCause
from lapwing.query.text.positions import refused_at
from lapwing.query.text.syntax_refusals import top_refused

_NAME: Final = re.compile(r"(?:[^\W\d]|[$#@%])[\w $#@.:%&/+<>=()?!*-]{0,127}")
_ALIAS: Final = re.compile(r"[\w $#@.:%&/+<>=()?!*,-]{1,128}")
_BEFORE_PLACE: Final = frozenset({TokenType.VAR, TokenType.IDENTIFIER, TokenType.R_PAREN, TokenType.R_BRACKET})
_PLACES: Final = ("OFFSET", "SAFE_OFFSET", "ORDINAL", "SAFE_ORDINAL")
_MOST_TOPS: Final = 100

_UNITES: Final = frozenset({TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT})


def is_list(tokens: Sequence[Token], place: int) -> bool:
    """Tell whether a bracket is one of UNNEST([1, 2]), or chooses from a list as x[OFFSET(2)] does."""
    kind = tokens[place].token_type  # that of this word: to list all would take long for a text of many brackets
    if kind != TokenType.L_BRACKET:
        return kind == TokenType.R_BRACKET  # of an opening one that was let through
    after = tokens[place + 1].text.upper() if place + 1 < len(tokens) else ""
    of_call = place > 1 and tokens[place - 1].token_type == TokenType.L_PAREN
    of_unnest = of_call and tokens[place - 2].text.upper() == "UNNEST"
    return of_unnest or after in _PLACES


def with_bracketed_names(tokens: list[Token], text: str) -> list[Token]:
    """Return tokens with one name in the place of each name in brackets."""
    kept, place = list[Token](), 0
    while place < len(tokens):
        end = _end_of_name(tokens, place, text)
        if end is None:
            kept.append(tokens[place])
        else:
            first, last = tokens[place], tokens[end]
            name = text[first.start + 1 : last.start]
            kept.append(Token(TokenType.IDENTIFIER, name, first.line, first.col, first.start, last.end))
        place = place + 1 if end is None else end + 1
    return kept


def _end_of_name(tokens: Sequence[Token], place: int, text: str) -> int | None:
    """Return where a name in brackets ends that begins here; None if none begins."""
    opening, previous = tokens[place], tokens[place - 1] if place else None
    if opening.token_type != TokenType.L_BRACKET or is_list(tokens, place):
        return None
    if previous is not None and previous.token_type in _BEFORE_PLACE and previous.end + 1 == opening.start:
        return None
    end = place + 1
    while end < len(tokens) and tokens[end].token_type not in (TokenType.L_BRACKET, TokenType.R_BRACKET):
        end += 1
    if end >= len(tokens) or tokens[end].token_type != TokenType.R_BRACKET:
        return None
    names = _ALIAS if previous is not None and previous.token_type == TokenType.ALIAS else _NAME  # AS [Share, %]
    return end if names.fullmatch(text[opening.start + 1 : tokens[end].start]) else None


def top_as_limit(tokens: list[Token], text: str) -> None:
    """Write LIMIT 3 at the end of a SELECT for TOP 3, or TOP (3), at its beginning.

    Raises:
        QueryRefused: For TOP 3 PERCENT and TOP 3 WITH TIES, and for more of them than a query needs. Each looks for the
            end of its SELECT in all words behind it.
    """
    kinds = [token.token_type for token in tokens]
    tops = [
        i for i in range(1, len(tokens) - 1) if kinds[i - 1] == TokenType.SELECT and tokens[i].text.upper() == "TOP"
    ]
    if len(tops) > _MOST_TOPS:
        reason = f"The query has more than {_MOST_TOPS} TOP"
        raise refused_at(tokens[tops[-1]], text, RefusalCause.QUERY_TOO_LONG, reason, "Write LIMIT at the end.")
    for place in reversed(tops):  # inner ones first
        _move_top(tokens, place, text)


def _move_top(tokens: list[Token], place: int, text: str) -> None:
    kinds = [token.token_type for token in tokens[place + 1 : place + 4]]
    if kinds == [TokenType.L_PAREN, TokenType.NUMBER, TokenType.R_PAREN]:
        tokens[place + 1 : place + 4] = [tokens[place + 2]]
    elif kinds[:1] != [TokenType.NUMBER]:
        return
    top, number, *others = tokens[place:]
    if others and (others[0].text.upper() == "PERCENT" or others[0].token_type == TokenType.WITH):
        raise top_refused(top, number, text)
    limit = Token(TokenType.LIMIT, top.text, top.line, top.col, top.start, top.end)
    end = _end_of_select(others, outermost=place == 1)
    tokens[place:] = [*others[:end], limit, number, *others[end:]]


def _end_of_select(tokens: Sequence[Token], *, outermost: bool) -> int:
    """Return where a SELECT ends: before the parenthesis around it, or what it is united with."""
    depth = 0
    for end, token in enumerate(tokens):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        united = not outermost and not depth and token.token_type in _UNITES
        if depth < 0 or united or (token.token_type == TokenType.SEMICOLON and not depth):
            return end
    return len(tokens)

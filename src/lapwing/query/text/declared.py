"""DECLARE @score INT = 5 of SQL Server: its constants are written in the place of @score before the text is parsed.

A variable here has one value, a constant that its type holds as it stands. So the query means what it means with the
constant in it, and has the same price, noise and name.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.text.positions import refused_at

_REMEDY: Final = "Write DECLARE @x INT = 5, @d DATE = '2026-03-31', @t NVARCHAR(20) = 'abc' before the SELECT."
_TEXTS: Final = (TokenType.STRING, TokenType.NATIONAL_STRING)
_MAX: Final = 1 << 16
_LEFT, _RIGHT = TokenType.L_PAREN, TokenType.R_PAREN
_LISTS: Final = (TokenType.GROUP_BY, TokenType.ORDER_BY)
_ENDS: Final = {
    TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER, *_TEXTS, TokenType.R_PAREN, TokenType.DOT, TokenType.ALIAS,
    *_LISTS,
}  # fmt: skip
"""Behind these a constant would be a name, a place of a list, a part of a number, or the argument of a function."""
_COUNTS: Final = ("TOP", "NEXT", "FIRST")
"""Words behind which a number of rows stands."""


def _below(bits: int) -> Callable[[str, Sequence[int]], bool]:
    return lambda word, _: word.isdecimal() and len(word) < 20 and int(word) < 1 << bits


def _has_digits(word: str, sizes: Sequence[int]) -> bool:
    """Tell whether a number has no more digits than NUMERIC(p, s) keeps: (18, 0) if it says none."""
    before, _, after = word.partition(".")
    digits, decimals = [*sizes, *(18, 0)[len(sizes) :]][:2]
    return len(before) <= digits - decimals and len(after) <= decimals and (before + after).isdecimal()


def _is_short(word: str, sizes: Sequence[int]) -> bool:
    return len(word) <= (sizes[0] if sizes else 1)


_KINDS: Final[Mapping[str, tuple[TokenType | None, Callable[[str, Sequence[int]], bool]]]] = {
    **dict.fromkeys(("INT", "INTEGER"), (None, _below(31))),
    "BIGINT": (None, _below(63)),
    "SMALLINT": (None, _below(15)),
    **dict.fromkeys(("FLOAT", "REAL"), (None, lambda word, _: word.replace(".", "", 1).isdecimal())),
    **dict.fromkeys(("DECIMAL", "NUMERIC"), (None, _has_digits)),
    "VARCHAR": (TokenType.STRING, lambda word, sizes: word.isascii() and _is_short(word, sizes)),
    "NVARCHAR": (TokenType.STRING, _is_short),
    "DATE": (TokenType.DATE, lambda _, sizes: not sizes),
    **dict.fromkeys(
        ("DATETIME", "DATETIME2"), (TokenType.TIMESTAMP, lambda word, sizes: not sizes and "." not in word)
    ),
}
"""By the name of a type: the words before a text constant, none before a number, and which words it holds unchanged."""


def with_constants(tokens: list[Token], text: str, most: int) -> list[Token]:
    """Return the tokens of a query with the constants of its DECLAREs in the places of their names.

    Args:
        most: How many characters constants may have together, each counted as often as it is written.

    Raises:
        QueryRefused: If a DECLARE says anything but a constant, or the constants are too long together.
    """
    known: dict[str, list[Token]] = {}
    place = 0
    while place < len(tokens) and tokens[place].text.upper() == "DECLARE":
        place = _declared(tokens, place, text, known)
    if not known:
        return tokens
    kept, size, depth, lists = list[Token](), 0, 0, set[int]()
    while place < len(tokens):
        name, token = _name(tokens, place), tokens[place]
        if name is None:
            if _is_sign(token):  # would be ABS(x), as in DuckDB
                raise _refused(token, text, f"'{text[token.start : token.start + 40]}' is no name of a constant")
            depth += (token.token_type == _LEFT) - (token.token_type == _RIGHT)
            lists = {one for one in lists if one <= depth and token.token_type != TokenType.SELECT}
            lists |= {depth} if token.token_type in _LISTS else set()
            kept.append(token)
            place += 1
            continue
        if name not in known:
            raise _refused(token, text, f"'@{name[:40]}' is not declared")
        if not _may_stand(kept, tokens[place + 2 : place + 3], in_list=depth in lists):
            reason = f"'@{name[:40]}' stands where no constant can"
            remedy = "Name constants in expressions, as in WHERE age > @x."
            raise refused_at(token, text, RefusalCause.NOT_CONSTANT, reason, remedy)
        constant = known[name]
        kept += [_at(tokens[place], part) for part in constant]
        size += sum(len(part.text) for part in constant)
        if size > most:
            remedy = "Shorten the constants, or name them less often."
            reason = f"The constants of the query are longer than {most:,} characters"
            raise refused_at(tokens[place], text, RefusalCause.QUERY_TOO_LONG, reason, remedy)
        place += 2
    return kept


def _may_stand(before: Sequence[Token], after: Sequence[Token], *, in_list: bool) -> bool:
    """Tell whether a constant stands where an expression can, and is no name, no place of a list and no assignment."""
    previous = before[-1] if before else None
    following = after[0].token_type if after else None
    if previous is None or (previous.token_type in _ENDS and previous.text.upper() not in _COUNTS):
        return False
    begins = previous.token_type in (TokenType.SELECT, TokenType.COMMA)
    if following in (TokenType.DOT, TokenType.COLON) or (begins and following == TokenType.EQ):
        return False
    return not (in_list and previous.token_type == TokenType.COMMA)


def _declared(tokens: Sequence[Token], place: int, text: str, known: dict[str, list[Token]]) -> int:
    """Write down the constants of one DECLARE; return the place after it."""
    end = Token(TokenType.SEMICOLON, "", 1, 1, len(text), len(text))
    while True:
        place += 1  # past DECLARE, or a comma
        name = _name(tokens, place)
        place += 2
        if name is None or name in known:
            reason = "A DECLARE has no name of its own" if name is None else f"'@{name[:40]}' is declared twice"
            raise _refused(tokens[min(place - 2 + (name is None), len(tokens)) - 1], text, reason)
        rest = [*tokens[place : place + 12], end]
        used, known[name] = _constant(rest, name, text)
        place += used
        following = tokens[place] if place < len(tokens) else end
        if following.token_type != TokenType.COMMA:
            return place + (following.token_type == TokenType.SEMICOLON)


def _constant(rest: Sequence[Token], name: str, text: str) -> tuple[int, list[Token]]:
    """Return how many tokens say the type and the value of a variable, and what is written for it."""
    at = int(rest[0].token_type == TokenType.ALIAS)
    kind, at = rest[at], at + 1
    sizes = list[int]()
    if at < len(rest) and rest[at].token_type == _LEFT:
        closing = next((n for n, token in enumerate(rest) if token.token_type == _RIGHT), at)
        words = [token.text for token in rest[at + 1 : closing] if token.token_type != TokenType.COMMA]
        sizes = [int(word) if word.isdecimal() and len(word) < 5 else _MAX for word in words]
        at = closing + 1
    before, holds = _KINDS.get(kind.text.upper(), (None, lambda *_: False))
    value = list(rest[at + 1 : at + 3])
    if at >= len(rest) or rest[at].token_type != TokenType.EQ or not value:
        raise _refused(rest[0], text, f"'@{name[:40]}' has no value")
    sign = value[0].token_type == TokenType.DASH and len(value) == 2
    constant = value[int(sign)]
    fits = constant.token_type == TokenType.NUMBER if before is None else constant.token_type in _TEXTS and not sign
    if not fits or not holds(constant.text, sizes):
        reason = f"The value of '@{name[:40]}' is no constant that {kind.text[:40].upper()} holds as it stands"
        raise _refused(constant, text, reason)
    said = Token(TokenType.NUMBER if before is None else TokenType.STRING, constant.text, 1, 1, 0, 0)
    if sign:
        written = [_word(_LEFT, "("), _word(TokenType.DASH, "-"), said, _word(_RIGHT, ")")]
    elif before in (TokenType.DATE, TokenType.TIMESTAMP):
        written = [_word(_LEFT, "("), _word(before, before.name), said, _word(_RIGHT, ")")]
    else:
        written = [said]
    return at + 2 + sign, written


def _name(tokens: Sequence[Token], place: int) -> str | None:
    """Return the name of the variable @name that stands there, in small letters; None if there is none."""
    if place + 1 >= len(tokens) or not _is_sign(tokens[place]):
        return None
    sign, word = tokens[place], tokens[place + 1]
    named = word.start == sign.end + 1 and word.text.isidentifier() and word.token_type not in _TEXTS
    return word.text.casefold() if named else None


def _is_sign(token: Token) -> bool:
    return token.token_type == TokenType.PARAMETER and token.text == "@"


def _word(kind: TokenType, text: str) -> Token:
    return Token(kind, text, 1, 1, 0, 0)


def _at(place: Token, part: Token) -> Token:
    return Token(part.token_type, part.text, place.line, place.col, place.start, place.end)


def _refused(token: Token, text: str, reason: str) -> QueryRefused:
    return refused_at(token, text, RefusalCause.NOT_CONSTANT, reason, _REMEDY)

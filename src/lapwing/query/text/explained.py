"""What EXPLAIN PRIVACY explains: a question whose price is wanted, and not its answer."""

from collections.abc import Callable
from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

from lapwing.errors import RefusalCause
from lapwing.query.text.positions import refused_at

_EXPLAIN: Final = "EXPLAIN PRIVACY SELECT … shows for free what a query would cost, and how exact its result would be."


def explained(command: Token, text: str, tokens_of: Callable[[str, str], list[Token]]) -> list[Token]:
    """Return the tokens after EXPLAIN PRIVACY.

    The tokenizer does not look into what an EXPLAIN explains, so the word is blanked out; all else keeps its place.
    """
    blanks = " " * len(command.text)
    tokens = tokens_of(text[: command.start] + blanks + text[command.end + 1 :], text)
    if not tokens or tokens[0].token_type != TokenType.VAR or tokens[0].text.upper() != "PRIVACY":
        raise refused_at(command, text, RefusalCause.NOT_A_QUERY, "EXPLAIN is not a query", _EXPLAIN)
    return tokens[1:]

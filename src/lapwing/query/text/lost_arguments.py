"""Refuse arguments that the parser leaves out without a word, as the last of LPAD('x', 3, 'a', 'b').

Several of its functions take the arguments that they know by their places, and forget the others. So what stands
between the commas of a parenthesis must be found in the tree again: by its place in the text, or, for the few words
that lose their place on the way (units of time, formats), by what they say.
"""

from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Final

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.tokenizer_core import Token, TokenType

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.text.positions import refused_at
from lapwing.query.text.syntax_refusals import FIELD, FUNCTIONS

_WORDS: Final = {
    TokenType.NUMBER, TokenType.STRING, TokenType.VAR, TokenType.IDENTIFIER, TokenType.NULL, TokenType.TRUE,
    TokenType.FALSE,
}  # fmt: skip
_KEPT: Final = {TokenType.INTERVAL, TokenType.ROWS, TokenType.RANGE}
"""An interval, or the frame of a window, is in the tree whole: `bind` reads its parts."""
_TEXTS: Final = {TokenType.VARCHAR, TokenType.NVARCHAR, TokenType.CHAR, TokenType.NCHAR, TokenType.TEXT}
_TAKE_FEWER: Final = frozenset(
    {"APPROX_QUANTILE", "CEIL", "CHARINDEX", "DATEDIFF", "DATETRUNC", "DATE_DIFF", "DATE_TRUNC", "FLOOR", "LEFTPAD",
     "LOCATE", "LOG10", "LOG2", "LPAD", "LTRIM", "MAKE_TIMESTAMP", "MOD", "POSITION", "QUANTILE", "QUANTILE_CONT",
     "QUANTILE_DISC", "REGEXP_EXTRACT", "REGEXP_REPLACE", "RIGHTPAD", "RPAD", "RTRIM", "STRFTIME", "STRPTIME", "XOR"}
)  # fmt: skip
"""Functions that a question may use, and of which the parser leaves out arguments."""
_CAST: Final = "Write TRY_CAST(x AS INTEGER), with the type that you need."
_CASTS: Final = frozenset({"CONVERT", "TRY_CONVERT"})
"""Casts of other dialects, with the type first."""
_WITHOUT_PLACE: Final = _CASTS | {"ARGMAX", "ARGMIN", "ARG_MAX", "ARG_MIN", "INITCAP", "MAP", "MAX_BY", "MIN_BY"}
"""Functions that no question may use, and whose place the parser does not keep."""
_FUNCTIONS: Final = DuckDB.Parser.FUNCTIONS.keys() | DuckDB.Parser.FUNCTION_PARSERS.keys()
_SAID: Final = (exp.Literal, exp.Identifier, exp.Var, exp.Placeholder)


@dataclass(slots=True)
class _ArgumentText:
    """What stands between two commas: its words, whose argument it is, and what that is an argument of.

    Args:
        kept: Whether it is certainly in the tree.
    """

    name: Token | None
    around: Token | None
    words: list[Token]
    kept: bool = False


def require_all_arguments(nodes: Sequence[exp.Expr], tokens: Sequence[Token], text: str) -> None:
    """Refuse a question of which a part in parentheses is not in its tree, which is made of `nodes`.

    Raises:
        QueryRefused: At the part.
    """
    places = {node.meta["start"] for node in nodes if "start" in node.meta}
    missing = [item for item in _items(tokens) if not any(word.start in places for word in item.words)]
    if not missing:
        return
    loose = Counter(word for node in nodes if (word := _loose(node)) is not None)
    unknown = []
    for item in missing:
        word = next((word.text.casefold() for word in item.words if loose[word.text.casefold()] > 0), None)
        if word is None:
            unknown.append(item)
        else:
            loose[word] -= 1
    units = sum(
        loose[node.name.casefold()] > 0 for node in nodes if isinstance(node, exp.Var) and "start" not in node.meta
    )
    for item in unknown[units:]:  # units of time are kept in words of the parser's own: 'd' as DAY
        raise _refused(item, places, text)


def _refused(item: _ArgumentText, places: Set[int], text: str) -> QueryRefused:
    """Return the refusal of what is not in the tree: because of the function around it, or as one argument too many."""
    for around in (item.name, item.around):
        name = around.text.upper() if around is not None else ""
        if around is None or name not in _FUNCTIONS or name in _TAKE_FEWER:
            continue
        if around.start in places or name in _WITHOUT_PLACE:  # a function that is itself left out is not to blame
            remedy = _CAST if name in _CASTS else FIELD if name.startswith("JSON_") else FUNCTIONS
            reason = f"The function {name} is not answered here"
            return refused_at(around, text, RefusalCause.FUNCTION_NOT_SUPPORTED, reason, remedy)
    called = item.name if item.name is not None and item.name.start in places else item.around or item.name
    name = called.text[:40].upper() if called is not None else "This"
    cause = RefusalCause.WRONG_ARGUMENT_COUNT
    return refused_at(item.words[0], text, cause, f"{name} takes fewer arguments", "Leave this one out.")


def _loose(node: exp.Expr) -> str | None:
    """Return what a node without a place says, if it is a word."""
    if "start" in node.meta:
        return None
    if isinstance(node, exp.Null | exp.Boolean):
        return node.sql(comments=False).casefold()
    if isinstance(node, exp.JSONPath):  # '$.a[0]' of a JSON text
        parts = [(part.args.get("this"), isinstance(part, exp.JSONPathSubscript)) for part in node.expressions[1:]]
        return "$" + "".join(f"[{name}]" if is_place else f".{name}".casefold() for name, is_place in parts)
    return str(node.this).casefold() if isinstance(node, _SAID) else None


def _items(tokens: Sequence[Token]) -> list[_ArgumentText]:
    """Return the items of all parentheses that hold words, but for those that hold other parentheses or an INTERVAL."""
    found: list[_ArgumentText] = []
    opened: list[_ArgumentText] = []
    previous: Token | None = None
    for token in tokens:
        if token.token_type == TokenType.L_PAREN:
            around = opened[-1].name if opened else None
            opened.append(_ArgumentText(name=previous if _is_call(previous) else None, around=around, words=[]))
        elif opened and token.token_type in (TokenType.COMMA, TokenType.R_PAREN):
            item = opened.pop()
            if item.words and not item.kept and not (_is_length(item) and token.token_type == TokenType.R_PAREN):
                found.append(item)
            if token.token_type == TokenType.COMMA:
                opened.append(_ArgumentText(name=item.name, around=item.around, words=[]))
            elif opened and (item.words or item.kept):
                opened[-1].kept = True
        elif opened and token.token_type in _WORDS:
            opened[-1].words.append(token)
        elif opened and token.token_type in _KEPT:
            opened[-1].kept = True
        previous = token
    return found


def _is_length(item: _ArgumentText) -> bool:
    """Tell whether it is the 10 of VARCHAR(10), which means nothing, in DuckDB as here."""
    return item.name is not None and item.name.token_type in _TEXTS and item.words[0].token_type == TokenType.NUMBER


def _is_call(token: Token | None) -> bool:
    return token is not None and token.text[:1].isalpha()

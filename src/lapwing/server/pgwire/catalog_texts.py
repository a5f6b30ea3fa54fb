"""Functions of PostgreSQL that make texts or take them apart, for statements about its catalog."""

import re
from collections.abc import Sequence
from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from lapwing.server.pgwire.catalog_limits import NotAnswered, short

MOST_PIECES: Final = 16
"""Values that `format` puts into one text."""
_PIECE: Final = re.compile(r"%(?:(\d)\$)?(.)|[^%]+|%", re.DOTALL)
_ELEMENTS: Final = {"oid": "int8", "regclass": "int8", "regtype": "int8", "name": "text"}
_PART: Final = re.compile(r'\s*(?:"((?:[^"]|"")+)"|([^\W\d][\w$]*))\s*(\.|$)')


def readable(text: str, tokens: Sequence[Token]) -> str:
    """Return a statement in words that the parser knows.

    PostgreSQL lets any word stand after AS, such as `AS select`. The parser takes it for the begin of a query, unless
    it is quoted. It also knows no arrays of `oid` and `name`, which here are arrays of numbers and of texts.

    >>> text = "SELECT 1 AS select FROM (SELECT $1::oid[]) AS t"
    >>> readable(text, sqlglot.tokenize(text, read="postgres"))
    'SELECT 1 AS "select" FROM (SELECT $1::int8[]) AS t'
    """
    for place in reversed(range(len(tokens))):
        token, after = tokens[place], tokens[place + 1 : place + 3]
        named = place > 0 and tokens[place - 1].token_type == TokenType.ALIAS
        other = _ELEMENTS.get(token.text.lower())
        if named and token.token_type in (TokenType.SELECT, TokenType.NOT):
            other = f'"{token.text.lower()}"'
        elif [one.token_type for one in after] != [TokenType.L_BRACKET, TokenType.R_BRACKET]:
            continue
        if other is not None:
            text = f"{text[: token.start]}{other}{text[token.end + 1 :]}"
    return text


def parts_of(node: exp.Expr, separator: exp.Expr | None) -> exp.Expr:
    """Return the parts of a constant text, as `string_to_array` does."""
    if not all(isinstance(one, exp.Literal) and one.is_string for one in (node, separator)) or separator is None:
        raise NotAnswered("string_to_array takes constants here.")
    text, between = node.name, separator.name
    return exp.array(*(exp.Literal.string(one) for one in (text.split(between) if between else [text])))


def names_of(text: str) -> exp.Expr:
    """Return the names of a qualified name, as `parse_ident` does.

    >>> names_of('Public."Odd"').sql("duckdb")
    "['public', 'Odd']"
    """
    names, place = [], 0
    while (match := _PART.match(text, place)) is not None:
        names.append(match[2].lower() if match[1] is None else match[1].replace('""', '"'))
        place = match.end()
        if match[3] != ".":
            break
    if match is None or place != len(text):
        raise NotAnswered("The text is not a name.", "22023")
    return exp.array(*(exp.Literal.string(name) for name in names))


def formatted(node: exp.Format) -> exp.Expr:
    """Return what `format` makes of a constant text with `%s` and `%I`."""
    pattern, given = node.this, node.expressions
    if not isinstance(pattern, exp.Literal) or not pattern.is_string or len(given) > MOST_PIECES:
        raise NotAnswered(f"format takes a constant text and at most {MOST_PIECES} values here.")
    pieces: list[exp.Expr] = [exp.Literal.string("")]
    taken = 0
    for match in _PIECE.finditer(pattern.name):
        kind = match[2]
        if kind is None and match[0] != "%":
            pieces.append(exp.Literal.string(match[0]))
            continue
        if kind == "%" and match[1] is None:
            pieces.append(exp.Literal.string("%"))
            continue
        taken = taken + 1 if match[1] is None else int(match[1])
        if kind not in ("s", "I") or not 0 < taken <= len(given) or len(pieces) > 2 * MOST_PIECES:
            raise NotAnswered("format takes %s and %I here, with a value for each.")
        pieces.append(_shown(given[taken - 1].copy(), kind))
    whole = pieces[0]
    for piece in pieces[1:]:
        whole = exp.DPipe(this=whole, expression=piece)
    return short(whole)


def _shown(value: exp.Expr, kind: str) -> exp.Expr:
    text = exp.cast(value, "VARCHAR", dialect="duckdb")
    if kind == "I":
        return exp.Anonymous(this="pgf_quote_ident", expressions=[text])
    return exp.Coalesce(this=text, expressions=[exp.Literal.string("")])

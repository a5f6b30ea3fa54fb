"""Statements: where one ends and the next begins, and which of them a connection answers by itself.

The words of a statement decide about its kind. It may be about the connection (`SET`, `BEGIN`), or about how a result
is sent (`COPY`). Any other is a query, whose text goes to the service as it is. A text is never changed, and nothing is
pasted into it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, final

_TOKEN: Final = re.compile(
    r"""
    (?P<gap>\s+|--[^\n]*)
    |(?P<comment>/\*)
    |(?P<quoted>[eE]'(?:[^'\\]|''|\\.)*+(?:'|\Z)|'(?:[^']|'')*+(?:'|\Z)|"(?:[^"]|"")*+(?:"|\Z))
    |(?P<dollar>\$(?:[^\W\d]\w*)?\$)
    |(?P<word>[^\W\d][\w$]*)
    |(?P<number>[0-9][0-9.]*)
    |(?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT: Final = re.compile(r"/\*|\*/")
_CATALOG: Final = ("PG_", "INFORMATION_SCHEMA")
MOST_WORDS: Final = 40
"""The number of tokens that decide about the kind of a statement."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SqlToken:
    """A word, a quoted text or a sign; `text` has a word in capitals, and a quoted text without its quotes."""

    text: str
    kind: str
    start: int
    end: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SqlStatement:
    """One statement: its text, its first tokens, and where it begins in the text that was sent.

    Args:
        of_catalog: Whether a word of it may be a table or a function of the catalog of PostgreSQL.
        reads: Whether it has a FROM.
        is_empty: Whether it ends with LIMIT 0, which holds for all of it, so it has no rows.
    """

    text: str
    start: int
    tokens: tuple[SqlToken, ...]
    of_catalog: bool = False
    reads: bool = False
    is_empty: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """The texts of its first tokens."""
        return tuple(token.text for token in self.tokens)


def split(text: str) -> list[SqlStatement]:
    """Return the statements of a text, without those that are empty."""
    found: list[SqlStatement] = []
    tokens: list[SqlToken] = []
    last, of_catalog, reads, ends = 0, False, False, ("", "")
    for token in (*_tokens(text), SqlToken(text=";", kind="other", start=len(text), end=len(text))):
        if token.kind == "other" and token.text == ";":
            if tokens:
                start = tokens[0].start
                whole = text[start:last]
                kept = tuple(tokens)
                empty = ends == ("LIMIT", "0")
                facts = {"of_catalog": of_catalog, "reads": reads, "is_empty": empty}
                found.append(SqlStatement(text=whole, start=start, tokens=kept, **facts))
            tokens, of_catalog, reads, ends = [], False, False, ("", "")
            continue
        if len(tokens) < MOST_WORDS:
            tokens.append(token)
        last = token.end
        ends = (ends[1], token.text)
        if token.kind == "quoted" and text[token.start] == '"':  # a name
            of_catalog = of_catalog or token.text.upper().startswith(_CATALOG)
        if token.kind == "word":
            of_catalog = of_catalog or token.text.startswith(_CATALOG)
            reads = reads or token.text in ("FROM", "TABLE")
    return found


def _tokens(text: str) -> Iterator[SqlToken]:
    at = 0
    while (match := _TOKEN.match(text, at)) is not None:
        start, at, kind = at, match.end(), match.lastgroup or "other"
        if kind == "gap":
            continue
        if kind == "comment":
            at = _after_comment(text, at)
            continue
        if kind == "dollar":
            end = text.find(match[0], at)
            at = len(text) if end < 0 else end + len(match[0])
            yield SqlToken(text=text[match.end() : at].removesuffix(match[0]), kind="quoted", start=start, end=at)
            continue
        yield SqlToken(text=_plain(match[0], kind), kind=kind, start=start, end=at)


def _after_comment(text: str, at: int) -> int:
    """Return where a comment ends; comments may be nested."""
    depth = 1
    while depth and (match := _COMMENT.search(text, at)) is not None:
        depth += 1 if match[0] == "/*" else -1
        at = match.end()
    return len(text) if depth else at


def _plain(text: str, kind: str) -> str:
    if kind == "word":
        return text.upper()
    if kind != "quoted":
        return text
    body = text[1:] if text[0] in "eE" else text
    quote = body[0]
    return body[1:].removesuffix(quote).replace(quote * 2, quote)


# ---- COPY ------------------------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """A query whose result is sent as data: in which form, and whether with the names of the columns."""

    query: SqlStatement
    form: str = "text"
    header: bool = False


def copy_of(statement: SqlStatement) -> Copy | None:
    """Return what `COPY (query) TO STDOUT` asks for; None for any other COPY."""
    tokens = [*_tokens(statement.text)]
    if len(tokens) < 6 or tokens[1].text != "(":
        return None
    depth, place = 1, 1
    while depth and place < len(tokens) - 1:
        place += 1
        if tokens[place].kind == "other":
            depth += {"(": 1, ")": -1}.get(tokens[place].text, 0)
    rest = [token.text.upper() for token in tokens[place + 1 :]]
    if depth or rest[:2] != ["TO", "STDOUT"]:
        return None
    options = _copy_options([word for word in rest[2:] if word not in ("WITH", "(", ")", ",")])
    inner = statement.text[tokens[1].end : tokens[place].start]
    queries = split(inner)
    if options is None or len(queries) != 1:
        return None
    (query,) = queries
    moved = replace(query, start=statement.start + tokens[1].end + query.start)
    return Copy(query=moved, form=options[0], header=options[1])


def _copy_options(words: list[str]) -> tuple[str, bool] | None:
    """Read the options of a COPY; None if one of them is not known here."""
    form, header, rest = "text", False, iter(words)
    for word in rest:
        if word == "FORMAT":
            form = next(rest, "").lower()
        elif word in ("CSV", "BINARY", "TEXT"):
            form = word.lower()
        elif word == "HEADER":
            header = True
        elif word in ("FALSE", "OFF", "0"):
            header = False
        elif word not in ("TRUE", "ON", "1"):
            return None
    return (form, header) if form in ("text", "csv", "binary") and not (header and form == "binary") else None


# ---- parameters ------------------------------------------------------------------------------------------------------

_CASTS: Final = {
    "SMALLINT": 21, "INT": 23, "INTEGER": 23, "INT4": 23, "BIGINT": 20, "INT8": 20, "REAL": 700, "FLOAT": 701,
    "DOUBLE": 701, "NUMERIC": 1700, "DECIMAL": 1700, "TEXT": 25, "VARCHAR": 1043, "BOOLEAN": 16, "BOOL": 16,
    "DATE": 1082, "TIMESTAMP": 1114, "TIMESTAMPTZ": 1184, "OID": 26, "NAME": 19,
}  # fmt: skip
_ANY: Final = ["ANY", "(", ")"]
ARRAYS: Final = {16: 1000, 20: 1016, 21: 1005, 23: 1007, 25: 1009, 26: 1028, 1043: 1015}
"""The types of arrays, by the types of their elements."""


def parameter_types(text: str, declared: tuple[int, ...]) -> tuple[int, ...]:
    """Return the types of the parameters `$1`, `$2` … of a text, by number.

    The client declares a type, or a cast stands right after the parameter; any other parameter has the type 0. In a
    statement about the catalog, `ANY($1)` takes an array: of numbers beside an oid, and else of texts.
    """
    tokens = [*_tokens(text)]
    types = dict(enumerate(declared, 1))
    of_catalog = any(token.text.upper().startswith(_CATALOG) for token in tokens)
    for place, (sign, number) in enumerate(pairwise(tokens)):
        if sign.text != "$" or sign.kind != "other" or number.start != sign.end or not number.text.isdecimal():
            continue
        cast = [token.text for token in tokens[place + 2 : place + 7]]
        known = _CASTS.get(cast[2], 0) if len(cast) >= 3 and cast[:2] == [":", ":"] else 0
        known = ARRAYS.get(known, 0) if cast[3:5] == ["[", "]"] else known
        if of_catalog and [one.text for one in (*tokens[max(place - 2, 0) : place], *tokens[place + 2 :][:1])] == _ANY:
            known = ARRAYS[26 if "OID" in tokens[max(place - 4, 0)].text.upper() else 25]
        key = int(number.text[:6])
        types[key] = types.get(key) or known
    most = max(types, default=0)
    return tuple(types.get(place) or 0 for place in range(1, min(most, 70_000) + 1))

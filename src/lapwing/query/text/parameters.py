"""Values given besides the text of a question: `?` by order, `$1` by number, `$name` and `:name` by name.

A parameter never passes through the text. Its token is exchanged for a placeholder whose name tells where it stands,
the parser puts that into the tree, and there it is exchanged for a typed constant: so whatever a value holds, it is
one value in one place. A value appears in no error, only its type, its number or its name.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from numbers import Integral
from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from lapwing.errors import InvalidParameter, QueryRefused, RefusalCause
from lapwing.query.text.positions import refused_at

Parameters = Sequence[object] | Mapping[str, object]
"""Values of `?` in their order or of `$1` by number, or values by the names of `$name` and `:name`."""

MAX_TEXT: Final = 64 * 1024
"""The most bytes that the texts among the values may take, each counted as often as it is used."""

_MOST_DIGITS: Final = 100
_DECIMALS: Final = 18
_LARGEST: Final = 10**30
_NAME: Final = re.compile(r"[^\W\d]\w*")
_DOLLAR: Final = re.compile(r"(?<!\$)\$(?=\w)")
_NUMBERED: Final = re.compile(r"\$[1-9][0-9]{0,4}", re.ASCII)
_TYPES: Final = "Give bool, int, float, Decimal, Fraction, str, date, datetime or None."
_GIVE: Final = "Give a list with one value for every ?, or a mapping of names to values."
_SPELLING: Final = "Write ? or $1 for the values of a list, or $name for the values of a mapping."
# A colon right after one of these ends `name:`, and begins no `:name`.
_ENDINGS: Final = re.compile(r"[\w)\"'$?]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Placeholder:
    """A parameter in the text: its first token, and its name, or its number from 1 if it is a `?`."""

    token: Token
    key: str | int

    def __str__(self) -> str:
        return f"? number {self.key}" if self.token.text == "?" else f"${self.key}"

    @property
    def mark(self) -> str:
        """The name that its placeholder has in the tree."""
        return f"p{self.token.start}"


# ---- from the text to placeholders ----------------------------------------------------------------------------------


def marked(text: str) -> tuple[str, str]:
    """Return the text with another character for the `$` of every `$name`, and that character, which the text lacks.

    The tokenizer would take the `$a,$` of `($a,$b)` for the beginning of a quoted text. With a character that may be
    part of a word it finds words instead, of the same length and in the same places. There is always such a character:
    this range has more characters, of four bytes each, than a text may have.
    """
    used = set(text)
    character = next(character for character in map(chr, range(0xF0000, 0xFFFFE)) if character not in used)
    return _DOLLAR.sub(character, text), character


def restored(tokens: Sequence[Token], character: str) -> list[Token]:
    """Return the tokens of a marked text with every `$` as it was; `$name` is one token."""
    return [_restored(token, character) if character in token.text else token for token in tokens]


def _restored(token: Token, character: str) -> Token:
    text = token.text.replace(character, "$")
    named = token.token_type == TokenType.VAR and text.startswith("$")
    return _token(token, TokenType.PARAMETER if named else token.token_type, text, token.start, token.end)


def _token(at: Token, kind: TokenType, text: str, start: int, end: int) -> Token:
    return Token(kind, text, at.line, at.col, start, end, at.comments)


def placeholders(tokens: Sequence[Token], text: str) -> tuple[list[Token], tuple[Placeholder, ...]]:
    """Find the parameters of a question; in the tokens that are returned, each is a placeholder that bears its mark.

    Raises:
        QueryRefused: For what resembles a parameter and is none, and for `?` beside names.
    """
    kept: list[Token] = []
    parameters: list[Placeholder] = []
    for token in _joined(tokens, text):
        if token.token_type != TokenType.PLACEHOLDER:
            kept.append(token)
            continue
        placeholder = Placeholder(token=token, key=_key(token, len(parameters) + 1))
        if isinstance(placeholder.key, str) and not _NAME.fullmatch(placeholder.key):
            raise refused_at(
                token, text, RefusalCause.INVALID_PLACEHOLDER, f"'{token.text[:40]}' is not a parameter", _SPELLING
            )
        if parameters and _kind(parameters[0]) != _kind(placeholder):
            raise refused_at(
                token, text, RefusalCause.INVALID_PLACEHOLDER, "The query has parameters of several kinds", _SPELLING
            )
        parameters.append(placeholder)
        kept.append(_token(token, TokenType.PARAMETER, "$", token.start, token.start))
        kept.append(_token(token, TokenType.VAR, placeholder.mark, token.start, token.end))
    return kept, tuple(parameters)


def _key(token: Token, next_: int) -> str | int:
    """Return the number or the name of a parameter; `next_`: the number of the next `?`."""
    if token.text == "?":
        return next_
    return int(token.text[1:]) if _NUMBERED.fullmatch(token.text) else token.text[1:]


def _kind(placeholder: Placeholder) -> str:
    """Return whether a parameter is a `?`, a number or a name."""
    return "?" if placeholder.token.text == "?" else "$1" if isinstance(placeholder.key, int) else "$name"


def _joined(tokens: Sequence[Token], text: str) -> Iterator[Token]:
    """Yield the tokens, each parameter as one of the kind PLACEHOLDER: `?`, `$name` or `:name`."""
    before: Token | None = None
    for token, after in zip(tokens, (*tokens[1:], None), strict=True):
        if before is not None and before.token_type == TokenType.COLON and _begins_name(before, token, text):
            yield _token(before, TokenType.PLACEHOLDER, f":{token.text}", before.start, token.end)
        elif token.token_type == TokenType.COLON and after is not None and _begins_name(token, after, text):
            pass  # it comes with its name
        elif token.token_type == TokenType.QDCOLON:  # ?::DATE
            yield _token(token, TokenType.PLACEHOLDER, "?", token.start, token.start)
            yield _token(token, TokenType.DCOLON, "::", token.start + 1, token.end)
        elif after is not None and _is_numbered(token, after, text):
            raise refused_at(
                token,
                text,
                RefusalCause.INVALID_PLACEHOLDER,
                "Parameters by number are written as $1",
                _SPELLING,
            )
        elif token.token_type == TokenType.PARAMETER and token.text.startswith("$"):
            yield _token(token, TokenType.PLACEHOLDER, token.text, token.start, token.end)
        else:
            yield token
        before = token


def _is_numbered(sign: Token, number: Token, text: str) -> bool:
    begins = sign.token_type == TokenType.COLON and not _ends_name(sign, text)
    marks = sign.token_type in (TokenType.PARAMETER, TokenType.PLACEHOLDER) and sign.text in ("$", "?")
    return (begins or marks) and number.token_type == TokenType.NUMBER and number.start == sign.end + 1


def _begins_name(colon: Token, name: Token, text: str) -> bool:
    unquoted = name.end - name.start + 1 == len(name.text)
    return name.start == colon.end + 1 and unquoted and name.text.isidentifier() and not _ends_name(colon, text)


def _ends_name(colon: Token, text: str) -> bool:
    return _ENDINGS.match(text[colon.start - 1 : colon.start]) is not None


# ---- from values to the tree ----------------------------------------------------------------------------------------


def bind_parameters(
    placeholders: Sequence[Placeholder], parameters: Parameters, text: str
) -> dict[str, exp.Expression]:
    """Return the constant that belongs in the place of every mark.

    Raises:
        QueryRefused: At a parameter without a value.
        InvalidParameter: For values that no parameter takes, and for a value that is no constant of SQL.
    """
    if isinstance(parameters, Mapping):
        odd = next((key for key in parameters if not isinstance(key, str)), "")
        if odd != "":
            raise InvalidParameter(f"The name of a parameter is of the type {_type(odd)}; it must be a str.")
        values: dict[str | int, object] = dict(parameters.items())
    elif isinstance(parameters, Sequence) and not isinstance(parameters, str | bytes | bytearray | memoryview):
        values = dict(enumerate(parameters, start=1))
    else:
        raise InvalidParameter(f"The parameters are of the type {_type(parameters)}. {_GIVE}")
    _require_match(placeholders, values, isinstance(parameters, Mapping), text)
    constants = {key: _constant(value, _label(key)) for key, value in values.items()}
    texts = [used for placeholder in placeholders if isinstance(used := constants[placeholder.key], str)]
    if sum(len(used.encode()) for used in texts) > MAX_TEXT:
        raise InvalidParameter(f"The texts among the parameters are longer than {MAX_TEXT:,} bytes. Shorten them.")
    return {placeholder.mark: _node(constants[placeholder.key], placeholder) for placeholder in placeholders}


def _require_match(
    placeholders: Sequence[Placeholder], values: Mapping[str | int, object], named: bool, text: str
) -> None:
    for placeholder in placeholders:
        if values and isinstance(placeholder.key, str) is not named:
            raise refused_at(
                placeholder.token,
                text,
                RefusalCause.MISSING_PARAMETER,
                f"{placeholder} does not go with the values that are given",
                _SPELLING,
            )
        if placeholder.key not in values:
            raise refused_at(
                placeholder.token, text, RefusalCause.MISSING_PARAMETER, f"{placeholder} has no value", _GIVE
            )
    used = {placeholder.key for placeholder in placeholders}
    unused = next((key for key in values if key not in used), None)
    if unused is not None and named:
        raise InvalidParameter(f"{_label(unused)} is not in the query. Leave it out, or write it there with a $.")
    if unused is not None:
        raise InvalidParameter(f"The values are {len(values)} and the ? in the query {len(placeholders)}. {_GIVE}")


def fill(
    select: exp.Select, placeholders: Sequence[Placeholder], nodes: Mapping[str, exp.Expression], text: str
) -> None:
    """Put the constants into the tree.

    Raises:
        QueryRefused: For a parameter that the parser did not understand as a value.
    """
    waiting = {placeholder.mark: placeholder for placeholder in placeholders}
    found_at: list[tuple[exp.Placeholder, exp.Expression]] = []
    for node in select.find_all(exp.Placeholder):
        placeholder = waiting.pop(node.name, None)
        if placeholder is None:
            raise QueryRefused(
                "A parameter is not understood", cause=RefusalCause.INVALID_PLACEHOLDER, remedy=_SPELLING
            )
        if isinstance(node.parent, _NAMES) or (type(node.parent), node.arg_key) in _NAMED:
            raise refused_at(
                placeholder.token,
                text,
                RefusalCause.INVALID_PLACEHOLDER,
                f"{placeholder} stands for a name",
                "Only values can be parameters.",
            )
        if _orders(node):
            raise refused_at(
                placeholder.token,
                text,
                RefusalCause.INVALID_PLACEHOLDER,
                f"{placeholder} stands for a key",
                "Write a column, or its position.",
            )
        found_at.append((node, nodes[placeholder.mark]))
    for placeholder in waiting.values():
        raise refused_at(
            placeholder.token,
            text,
            RefusalCause.INVALID_PLACEHOLDER,
            f"{placeholder} stands where no value may",
            "Only values can be parameters.",
        )
    _exchange(found_at)


def _exchange(pairs: Sequence[tuple[exp.Placeholder, exp.Expression]]) -> None:
    """Put the second of each pair into the place of the first; a list is set once, however many of its nodes change."""
    changed: dict[int, tuple[exp.Expr, str]] = {}
    for node, constant in pairs:
        parent, part = node.parent, node.arg_key
        if parent is None or part is None:
            continue
        siblings = parent.args[part]
        if node.index is None:
            parent.set(part, constant)
        else:
            siblings[node.index] = constant
            changed[id(siblings)] = (parent, part)
    for parent, part in changed.values():
        parent.set(part, parent.args[part])


_NAMES: Final = (exp.Table, exp.TableAlias, exp.Aliases, exp.Column, exp.Dot, exp.Star)
_NAMED: Final = {(exp.Alias, "alias"), (exp.Join, "using"), (exp.Window, "this")}


def _orders(node: exp.Expression) -> bool:
    """Tell whether a node is all of a key of GROUP BY or ORDER BY, where a written number would be a position."""
    parent, part = node.parent, node.arg_key
    while isinstance(parent, exp.Paren | exp.Tuple):
        part, parent = parent.arg_key, parent.parent
    if isinstance(parent, exp.Distinct):  # DISTINCT ON (1)
        return part == "on"
    return isinstance(parent, exp.Group | exp.GroupingSets | exp.Rollup | exp.Cube | exp.Ordered)


# ---- values ---------------------------------------------------------------------------------------------------------

_Constant = None | bool | Fraction | str | date


def _constant(value: object, label: str) -> _Constant:
    match value:
        case None | bool():
            return value
        case float() | Decimal() | Fraction() | Integral():
            return _number(value, label)
        case str():
            return _text(value, label)
    if type(value) is datetime:
        return _moment(value, label)
    if type(value) is date:
        return value
    raise InvalidParameter(f"{label} is of the type {_type(value)}. {_TYPES}")


def _number(value: float | Decimal | Fraction | Integral, label: str) -> Fraction:
    """Return a number as a question may hold one: a float as its shortest decimal, anything else exactly."""
    finite = value.is_finite() if isinstance(value, Decimal) else not isinstance(value, float) or isfinite(value)
    if not finite:
        raise InvalidParameter(f"{label} is not finite. Give a number, or None for NULL.")
    if isinstance(value, Decimal):
        short = abs(value.adjusted()) <= _MOST_DIGITS and len(value.as_tuple().digits) <= _MOST_DIGITS
        number = Fraction(value) if short else None
    elif isinstance(value, float):
        number = Fraction(repr(float(value)))
    else:
        number = Fraction(value) if isinstance(value, Fraction) else Fraction(int(value))
    if number is None or abs(number) > _LARGEST or 10**_DECIMALS % number.denominator:
        raise InvalidParameter(
            f"{label} ({_type(value)}) has more than {_DECIMALS} decimals or is above 1e30. Round it to fewer digits."
        )
    return number


def _text(value: str, label: str) -> str:
    plain = str.__str__(value)
    if len(plain) > MAX_TEXT or len(plain.encode("utf-8", "surrogatepass")) > MAX_TEXT:
        raise InvalidParameter(f"{label} is longer than {MAX_TEXT:,} bytes. Shorten it.")
    if "\0" in plain or any("\ud800" <= character <= "\udfff" for character in plain):
        raise InvalidParameter(f"{label} holds a character that is not text. Remove NUL and broken Unicode.")
    return plain


def _moment(value: datetime, label: str) -> datetime:
    """Return a moment in UTC, which one without a zone is taken to be."""
    try:
        aware = value.utcoffset() is not None
        return (value.astimezone(UTC) if aware else value).replace(tzinfo=None, fold=0)
    except (OverflowError, ValueError):
        raise InvalidParameter(
            f"{label} is a datetime that UTC has no year for. Give one of the years 1 to 9999."
        ) from None


def _node(constant: _Constant, placeholder: Placeholder) -> exp.Expression:
    """Return a constant as a typed node that stands where the parameter stood, and says that it was one."""
    node: exp.Expression
    match constant:
        case None:
            node = exp.Null()
        case bool():
            node = exp.Boolean(this=constant)
        case Fraction():
            node = exp.Literal(this=_digits(constant), is_string=False)
        case str():
            node = exp.Literal(this=constant, is_string=True)
        case datetime():
            node = _cast(constant.isoformat(sep=" "), exp.DType.TIMESTAMP)
        case date():
            node = _cast(constant.isoformat(), exp.DType.DATE)
    for part in (node, *node.iter_expressions()):
        part.update_positions(placeholder.token)
        part.meta["parameter"] = str(placeholder)
    return node


def _cast(text: str, kind: exp.DType) -> exp.Expression:
    return exp.Cast(this=exp.Literal(this=text, is_string=True), to=exp.DataType(this=kind))


def _digits(number: Fraction) -> str:
    """Write a number of at most 18 decimals."""
    whole, part = divmod(abs(number) * 10**_DECIMALS, 10**_DECIMALS)
    written = f"{whole}.{int(part):0{_DECIMALS}d}".rstrip("0").rstrip(".")
    return f"-{written}" if number < 0 else written


def _type(value: object) -> str:
    kind = type(value)
    return kind.__name__[:40] if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"[:60]


def _label(key: str | int) -> str:
    if isinstance(key, int):
        return f"Parameter {key}"
    return f"Parameter '{key}'" if len(key) <= 40 and _NAME.fullmatch(key) else "A parameter of another name"

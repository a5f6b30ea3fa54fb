"""What a question may say about its own privacy: the options of a statement, the named arguments of an aggregate.

Names and spelling are GoogleSQL's. Each is read from tokens and checked by itself, exactly: a number is a `Fraction`,
never a float. What they mean together with the catalog is decided where the question is bound and priced.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, Literal

from sqlglot.tokenizer_core import Token, TokenType

from lapwing.catalog.suggestions import meant, only_one_meant
from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.text.positions import Position, position_at, refused_at

Strategy = Literal["LAPLACE_THRESHOLD", "PUBLIC_GROUPS"]
STRATEGIES: Final[tuple[Strategy, ...]] = ("LAPLACE_THRESHOLD", "PUBLIC_GROUPS")

FORMATS: Final = ("JSON", "PROTO")
"""Of the reports that GoogleSQL makes of an aggregate with its interval."""

MOST = 10**9
"""The largest whole number that an option takes."""

LARGEST = Fraction(10**30)
SMALLEST = Fraction(1, 10**30)
"""The sizes that a number other than 0 may have."""

_LONGEST_NUMBER = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """A name as the text spells it; a quoted one is compared exactly."""

    text: str
    quoted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyOptions:
    """What follows `SELECT WITH DIFFERENTIAL_PRIVACY`; None where nothing is said.

    Args:
        written: whether the question says `WITH DIFFERENTIAL_PRIVACY` at all.
        epsilon: the price, > 0. group_selection_epsilon: the part of it that finds the groups, > 0.
        delta: the chance that the groups may take from the budget's, from 0 to below 1.
        max_groups_contributed: how much of a unit may count, 1 to 10⁹.
        max_rows_contributed: As `max_groups_contributed`.
        privacy_unit_column: a name, or a name after the name of a table.
        min_privacy_units_per_group: the least size of a group that is shown, 1 to 10⁹.
        inside: where each clause ends that stands at another SELECT than the first; several say the same.
        alone: whether there is one clause at most.
        positions: where the name of each given option stands.
    """

    written: bool = False
    inside: tuple[int, ...] = ()
    alone: bool = True
    epsilon: Fraction | None = None
    delta: Fraction | None = None
    max_groups_contributed: int | None = None
    max_rows_contributed: int | None = None
    privacy_unit_column: tuple[Name, ...] | None = None
    group_selection_strategy: Strategy | None = None
    min_privacy_units_per_group: int | None = None
    group_selection_epsilon: Fraction | None = None
    positions: Mapping[str, Position] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedArguments:
    """What an aggregate says about its own privacy; None where nothing is said.

    Args:
        contribution_bounds_per_group: what a unit may add to a group in all, (lower, upper), "auto" to have it
            found, or "race" to have it not limited, and a sum that is at most the true one.
        contribution_bounds_per_row: the range that each value is clamped to, (lower, upper), or "auto" to have it
            found; "wide", which nobody writes, for one so wide that what the group allows alone matters.
        epsilon: the aggregate's own part of the price, > 0.
        position: where the aggregate stands. positions: where the name of each given argument stands.
    """

    position: Position
    contribution_bounds_per_group: tuple[Fraction, Fraction] | Literal["auto", "race"] | None = None
    contribution_bounds_per_row: tuple[Fraction, Fraction] | Literal["auto", "wide"] | None = None
    epsilon: Fraction | None = None
    positions: Mapping[str, Position] = field(default_factory=dict)


Item = Sequence[Token]
"""The tokens between two commas."""


def read_options(items: Sequence[Item], text: str) -> PrivacyOptions:
    """Read the items of `OPTIONS (…)`.

    Raises:
        QueryRefused: At the position of what is no pair, of an unknown or repeated name, or of a value that is not
            allowed.
    """
    pairs = _that_say_something([_pair(item, text, TokenType.EQ) for item in items], _OPTIONS)
    values = _read(pairs, _OPTIONS, "option")
    return PrivacyOptions(written=True, positions=_positions(pairs), **values)


def read_named_arguments(items: Sequence[Item], text: str, position: Position) -> NamedArguments:
    """Read the named arguments of an aggregate that stands at a position.

    Raises:
        QueryRefused: As `read_options`.
    """
    pairs = _that_say_something([_pair(item, text, TokenType.FARROW) for item in items], _ARGUMENTS)
    values = _read(pairs, _ARGUMENTS, "named argument")
    values.pop("report_format", None)  # every answer has its intervals, in whatever format it is taken
    return NamedArguments(position=position, positions=_positions(pairs), **values)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    """A name, a sign (`=` or `=>`), and the tokens of a value."""

    first: Token
    sign: Token
    value: Item
    text: str

    @property
    def name(self) -> str:
        return self.first.text.casefold()

    def refused_whole(self, cause: RefusalCause, reason: str, remedy: str) -> QueryRefused:
        return refused_at(self.first, self.text, cause, reason, remedy)

    def refused(self, takes: str, example: str) -> QueryRefused:
        at = self.value[0] if self.value else self.first
        remedy = f"Write {self.name} {self.sign.text} {example}."
        return refused_at(at, self.text, RefusalCause.INVALID_OPTION, f"{self.name} takes {takes}", remedy)


def _pair(item: Item, text: str, sign: TokenType) -> _Pair:
    kinds = [token.token_type for token in item[:2]]
    if kinds != [TokenType.VAR, sign]:
        shape = "name = value" if sign == TokenType.EQ else "name => value"
        raise refused_at(
            item[0], text, RefusalCause.SYNTAX_ERROR, f"'{item[0].text[:40]}' does not begin a pair", f"Write {shape}."
        )
    return _Pair(first=item[0], sign=item[1], value=item[2:], text=text)


Reader = Callable[[_Pair], Any]


def _that_say_something(pairs: Sequence[_Pair], readers: Mapping[str, Reader]) -> list[_Pair]:
    """Leave out what is said to be NULL, which is as if it was not said."""
    kinds = [[token.token_type for token in pair.value] for pair in pairs]
    nothing = [kind == [TokenType.NULL] and pair.name in readers for pair, kind in zip(pairs, kinds, strict=True)]
    return [pair for pair, null in zip(pairs, nothing, strict=True) if not null]


def _read(pairs: Sequence[_Pair], readers: Mapping[str, Reader], kind: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for pair in pairs:
        if pair.name not in readers:
            written = pair.first.text
            refused = pair.refused_whole(
                RefusalCause.UNKNOWN_OPTION, f"There is no {kind} '{written[:40]}'", meant("Allowed", written, readers)
            )
            refused.suggestion = only_one_meant(written, readers)
            raise refused
        if pair.name in values:
            raise pair.refused_whole(
                RefusalCause.DUPLICATE_OPTION, f"The {kind} {pair.name} is given twice", "Leave one of them out."
            )
        values[pair.name] = readers[pair.name](pair)
    return values


def _positions(pairs: Sequence[_Pair]) -> dict[str, Position]:
    return {pair.name: position_at(pair.text, pair.first.start) for pair in pairs}


# ---- values ---------------------------------------------------------------------------------------------------------


def _number(tokens: Item, exponents: int = _LONGEST_NUMBER) -> Fraction | None:
    """Return the number that the tokens spell, digits with an optional sign; None if they spell anything else.

    Args:
        exponents: How many powers of ten it may be away from 1.
    """
    kinds = [token.token_type for token in tokens]
    signs = int(kinds[:1] in ([TokenType.DASH], [TokenType.PLUS]))
    digits = tokens[signs:]
    if kinds[signs:] not in ([TokenType.NUMBER], [TokenType.DOT, TokenType.NUMBER]):
        return None
    written = "".join(token.text for token in digits)
    if digits[0].end < digits[-1].start - 1 or len(written) > _LONGEST_NUMBER:
        return None
    try:
        value = Decimal(written)
    except ArithmeticError:
        return None
    if not value.is_finite() or abs(value.adjusted()) > exponents:
        return None
    return -Fraction(value) if kinds[0] == TokenType.DASH else Fraction(value)


def _positive(pair: _Pair) -> Fraction:
    number = _number(pair.value)
    if number is None or not SMALLEST <= number <= LARGEST:
        raise pair.refused("a number above 0, from 1e-30 to 1e30", "0.5")
    return number


def _chance(pair: _Pair) -> Fraction:
    number = _number(pair.value, exponents=1_000)
    if number is None or not 0 <= number < 1:
        raise pair.refused("a number from 0 to below 1", "1e-6")
    return number if number >= SMALLEST else Fraction(0)  # which promises more


def _whole(pair: _Pair) -> int:
    number = _number(pair.value)
    if number is None or number.denominator != 1 or not 1 <= number <= MOST:
        raise pair.refused(f"a whole number from 1 to {MOST:,}", "3")
    return int(number)


def _strategy(pair: _Pair) -> Strategy:
    spelled = pair.value[0].text.upper() if [token.token_type for token in pair.value] == [TokenType.VAR] else None
    for strategy in STRATEGIES:
        if strategy == spelled:
            return strategy
    raise pair.refused(" or ".join(STRATEGIES), STRATEGIES[0])


def _format(pair: _Pair) -> str:
    word = pair.value[0].text.upper() if len(pair.value) == 1 else ""
    if word not in FORMATS:
        raise pair.refused(" or ".join(FORMATS), FORMATS[0])
    return word


def _path(pair: _Pair) -> tuple[Name, ...]:
    """Read a column's name, or a table's and a column's."""
    names, points = pair.value[::2], pair.value[1::2]
    if (
        len(pair.value) not in (1, 3)
        or any(point.token_type != TokenType.DOT for point in points)
        or any(part.token_type != TokenType.IDENTIFIER and not _is_word(part) for part in names)
    ):
        raise pair.refused("the name of a column, without '…'", "person_id")
    return tuple(Name(text=part.text, quoted=part.token_type == TokenType.IDENTIFIER) for part in names)


def _is_word(token: Token) -> bool:
    """Tell whether a token is a plain name; a keyword may be one too, such as `date`."""
    quoted = token.end - token.start + 1 != len(token.text)
    return not quoted and token.text.isidentifier()


def _bounds(pair: _Pair) -> tuple[Fraction, Fraction]:
    kinds = [token.token_type for token in pair.value]
    ends: list[Fraction | None] = []
    if kinds[:1] == [TokenType.L_PAREN] and kinds[-1:] == [TokenType.R_PAREN] and kinds.count(TokenType.COMMA) == 1:
        comma = kinds.index(TokenType.COMMA)
        ends = [_number(pair.value[1:comma]), _number(pair.value[comma + 1 : -1])]
    match ends:
        case [Fraction() as low, Fraction() as high] if low <= high and _is_constant(low) and _is_constant(high):
            return (low, high)
    raise pair.refused("two numbers, the lower one first, of at most 18 decimals and a size up to 1e30", "(0, 100)")


def _bounds_or(*words: str) -> Reader:
    """Return what reads bounds, or one of some words in their place."""

    def read(pair: _Pair) -> tuple[Fraction, Fraction] | str:
        word = pair.value[0].text.lower() if len(pair.value) == 1 else ""
        return word if word in words else _bounds(pair)

    return read


def _is_constant(value: Fraction) -> bool:
    """Tell whether a bound is a number that a question may hold as a constant."""
    return abs(value) <= LARGEST and value.denominator <= 10**18


_OPTIONS: Final[Mapping[str, Reader]] = {
    "epsilon": _positive,
    "delta": _chance,
    "max_groups_contributed": _whole,
    "max_rows_contributed": _whole,
    "privacy_unit_column": _path,
    "group_selection_strategy": _strategy,
    "min_privacy_units_per_group": _whole,
    "group_selection_epsilon": _positive,
}
_ARGUMENTS: Final[Mapping[str, Reader]] = {
    "contribution_bounds_per_group": _bounds_or("auto", "race"),
    "contribution_bounds_per_row": _bounds_or("auto"),
    "epsilon": _positive,
    "report_format": _format,
}

"""Texts: cut, joined, searched, with a bound on how long each may become.

Guarantee:
    What these rules let through is total and stays small. Lengths count characters (code points). The length of every
    text is at most `constant + factor·L`, where L is the length of the longest text in the row (`length_of`); what
    could outgrow `LONGEST` and `MOST_TIMES` is refused, so no constant of a question can exhaust the engine's memory.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import cast

from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.expressions import patterns
from lapwing.query.expressions.conversion import fixed, folded, in_calendar, rescale
from lapwing.query.expressions.expression import Expression, Literal, Operation
from lapwing.query.expressions.temporal import length_of_format, word
from lapwing.query.expressions.types import BOOLEAN, NULL, TEXT, UNBOUNDED_INTEGER, Fixed, Type, describe, is_temporal

ONE = Fraction(1)
LONGEST = 10_000  # characters that constants of a question may add to a text
MOST_TIMES = 100  # times the longest text of a row
LONGEST_PAD = 1000
GROWTH_OF_JSON = 6  # times a JSON text: a number in it may be written with more digits (`9e20`)


@dataclass(frozen=True, slots=True)
class Length:
    """A text has at most `constant + factor·L` characters, where L is the length of the longest one in its row."""

    constant: int
    factor: int = 0

    def __add__(self, other: "Length") -> "Length":
        return Length(self.constant + other.constant, self.factor + other.factor)

    def times(self, factor: int) -> "Length":
        """Return the length of so many texts."""
        return Length(self.constant * factor, self.factor * factor)

    def either(self, other: "Length") -> "Length":
        """Return a bound on the longer of two texts."""
        return Length(max(self.constant, other.constant), max(self.factor, other.factor))


def length_of(node: Expression) -> Length:
    """Return a bound on how long a text is."""
    if isinstance(node, Literal):
        return Length(len(node.value) if isinstance(node.value, str) else 0)
    if not isinstance(node, Operation):
        return Length(0, 1)
    texts = [length_of(argument) for argument in node.arguments if argument.type == TEXT]
    match node.function:
        case "upper" | "lower" | "reverse" | "trim" | "split_part" | "extracted" | "null_if":
            return texts[1] if node.function == "trim" else texts[0]
        case "substring" | "left" | "right" | "pad_left" | "pad_right":
            cut = node.arguments[-1 if node.function not in ("pad_left", "pad_right") else 1]
            if node.function == "substring" and len(node.arguments) < 3:
                return texts[0]
            longest = int(cast(Fraction, cast(Literal, cut).value))
            exact = node.function.startswith("pad") or texts[0].factor
            return Length(longest if exact else min(longest, texts[0].constant))
        case "json_field" | "json_value":
            return texts[0].times(GROWTH_OF_JSON)
        case "concat" | "concat_strict":
            return sum(texts, Length(0))
        case "concat_ws":
            return sum(texts[1:], texts[0].times(max(0, len(texts) - 2)))
        case "replace":
            searched, by = texts[1].constant, texts[2].constant
            return texts[0].times(max(1, -(-by // searched)))
        case "substituted":
            by = texts[2].constant
            if cast(Literal, node.arguments[3]).value == "g":  # an empty match may lie before and after every character
                return texts[0].times(by + 1) + Length(by)
            return texts[0] + Length(by)
        case "case":
            texts = [length_of(part) for part in (*node.arguments[1::2], node.arguments[-1])]
        case "coalesce":
            pass
        case "month_name" | "day_name":
            return Length(9)
        case "formatted":
            return Length(length_of_format(str(cast(Literal, node.arguments[1]).value)))
        case "written":
            return Length(60)
        case _:
            return Length(0, 1)
    longest_of_all = texts[0]
    for other in texts[1:]:
        longest_of_all = longest_of_all.either(other)
    return longest_of_all


def _measured(node: Operation) -> Operation:
    length = length_of(node)
    if length.constant > LONGEST or length.factor > MOST_TIMES:
        raise QueryRefused(
            "A text may grow too long",
            cause=RefusalCause.TEXT_TOO_LONG,
            remedy=f"Join less: at most {MOST_TIMES} texts and {LONGEST:,} characters.",
        )
    return node


def _text(name: str, argument: Expression) -> Expression:
    if argument.type == NULL:
        return Literal(value=None, type=TEXT)
    if argument.type != TEXT:
        raise QueryRefused(
            f"{name} needs a text, not {describe(argument.type)}",
            cause=RefusalCause.WRONG_TYPE,
            remedy="Write CAST(x AS VARCHAR) where it can be.",
        )
    return argument


def _written(name: str, argument: Expression) -> Expression:
    return _text(name, argument) if argument.type == NULL else to_text(argument)


def _constant_text(name: str, what: str, argument: Expression, longest: int = 1000) -> Literal:
    if not isinstance(argument, Literal) or not isinstance(argument.value, str) or not argument.value:
        raise QueryRefused(
            f"{name} takes {what} as a constant text",
            cause=RefusalCause.NOT_CONSTANT,
            remedy="Write it in '…', not empty.",
        )
    if len(argument.value) > longest:
        raise QueryRefused(
            f"{name} takes at most {longest:,} characters", cause=RefusalCause.TEXT_TOO_LONG, remedy="Shorten it."
        )
    return argument


def _constant_whole(name: str, argument: Expression, least: int, most: int) -> Literal:
    argument = folded(argument)
    value = argument.value if isinstance(argument, Literal) else None
    if not isinstance(value, Fraction) or value.denominator != 1 or not least <= value <= most:
        raise QueryRefused(
            f"{name} takes a whole constant",
            cause=RefusalCause.NOT_CONSTANT,
            remedy=f"Write a number between {least:,} and {most:,}.",
        )
    return Literal(value=value, type=fixed(ONE, int(value), int(value)))


def _operation(function: str, *arguments: Expression, kind: Type = TEXT) -> Operation:
    return Operation(function=function, arguments=arguments, type=kind)


# ---- one text from another -------------------------------------------------------------------------------------------


def changed(function: str, argument: Expression) -> Expression:
    """Write a text in capitals ("upper"), in small letters ("lower"), or turned around ("reverse").

    Case is changed character by character; turned around, an accent stays on its letter.
    """
    return _operation(function, _text(function.upper(), argument))


def trim(side: str, argument: Expression, characters: Expression | None = None) -> Expression:
    """Cut spaces, or given characters, from both ends or one."""
    further = () if characters is None else (_constant_text("TRIM", "the characters", characters, 100),)
    return _operation("trim", word(side), _text("TRIM", argument), *further)


def substring(argument: Expression, start: Expression, length: Expression | None = None) -> Expression:
    """Take a part of a text, from a position counted from 1, or from the end if it is negative."""
    first = _constant_whole("SUBSTRING", start, -1_000_000, 1_000_000)
    further = () if length is None else (_constant_whole("SUBSTRING", length, 0, 1_000_000),)
    return _operation("substring", _text("SUBSTRING", argument), first, *further)


def end_of(side: str, argument: Expression, length: Expression) -> Expression:
    """Take the first characters ("left") or the last ("right")."""
    name = side.upper()
    return _operation(side, _text(name, argument), _constant_whole(name, length, 0, 1_000_000))


def pad(side: str, argument: Expression, length: Expression, fill: Expression) -> Expression:
    """Fill up or cut a text to a length."""
    size = _constant_whole("Padding", length, 0, LONGEST_PAD)
    filling = _constant_text("Padding", "the filling", fill, 100)
    return _operation(f"pad_{side}", _text("Padding", argument), size, filling)


def replace(argument: Expression, searched: Expression, by: Expression) -> Expression:
    """Replace every occurrence of a constant text by another."""
    if isinstance(by, Literal) and by.value == "":
        replacement: Literal = by
    else:
        replacement = _constant_text("REPLACE", "the replacement", by)
    constant = _constant_text("REPLACE", "the searched text", searched)
    return _measured(_operation("replace", _text("REPLACE", argument), constant, replacement))


def split_part(argument: Expression, separator: Expression, index: Expression) -> Expression:
    """Take one part of a separated list; '' where there is none. Negative indices count from the end."""
    place = _constant_whole("SPLIT_PART", index, -1_000_000, 1_000_000)
    if place.value == 0:
        raise QueryRefused(
            "SPLIT_PART counts from 1", cause=RefusalCause.INVALID_ARGUMENT, remedy="Write SPLIT_PART(x, '-', 1)."
        )
    return _operation(
        "split_part", _text("SPLIT_PART", argument), _constant_text("SPLIT_PART", "the separator", separator), place
    )


def to_text(argument: Expression) -> Expression:
    """Write what has one exact text: whole numbers, booleans, dates and timestamps."""
    kind = argument.type
    if kind == TEXT:
        return argument
    if is_temporal(kind):
        return _operation("written", in_calendar(argument))
    if kind == BOOLEAN:
        return _operation("written", argument)
    if isinstance(kind, Fixed) and kind.step.denominator == 1:
        return _operation("written", rescale(argument, ONE))
    raise QueryRefused(
        f"A cast of {describe(kind)} to text works only for whole numbers",
        cause=RefusalCause.CAST_NOT_SUPPORTED,
        remedy="Write CAST(FLOOR(x) AS VARCHAR).",
    )


def json_field(argument: Expression, path: str, *, simple: bool = False) -> Expression:
    """Take a field of a JSON text as a text; NULL where there is none, and of a text that is no JSON.

    Args:
        path: As the engine reads it, `$."a"[0]`.
        simple: Whether it is also NULL of an object or a list.
    """
    return _measured(_operation("json_value" if simple else "json_field", _text("->>", argument), word(path)))


# ---- texts together --------------------------------------------------------------------------------------------------


def join(left_text: Expression, right_text: Expression) -> Expression:
    """Join two texts; NULL if one of them is. What has one exact text is written as that."""
    return _measured(_operation("concat_strict", _written("||", left_text), _written("||", right_text)))


def concat(*arguments: Expression) -> Expression:
    """Join texts, leaving out NULLs; never NULL."""
    return _measured(_operation("concat", *(_written("CONCAT", argument) for argument in arguments)))


def concat_ws(*arguments: Expression) -> Expression:
    """Join texts with a constant separator between them, leaving out NULLs."""
    if len(arguments) < 2:
        raise QueryRefused(
            "CONCAT_WS needs a separator and texts",
            cause=RefusalCause.WRONG_ARGUMENT_COUNT,
            remedy="Write CONCAT_WS('-', x, y).",
        )
    separator = _constant_text("CONCAT_WS", "the separator", arguments[0], 100)
    return _measured(_operation("concat_ws", separator, *(_written("CONCAT_WS", part) for part in arguments[1:])))


# ---- what is in a text -----------------------------------------------------------------------------------------------


def length(argument: Expression) -> Expression:
    """Count the characters."""
    text = _text("LENGTH", argument)
    bound = length_of(text)
    kind = Fixed(step=ONE, low=0, high=None) if bound.factor else fixed(ONE, 0, bound.constant)
    return _operation("length", text, kind=kind)


def position(argument: Expression, searched: Expression) -> Expression:
    """Return where a text first occurs, counted from 1; 0 where it does not."""
    text = _text("POSITION", argument)
    bound = length_of(text)
    kind = Fixed(step=ONE, low=0, high=None) if bound.factor else fixed(ONE, 0, max(1, bound.constant))
    return _operation("position", text, _text("POSITION", searched), kind=kind)


def has(function: str, argument: Expression, searched: Expression) -> Expression:
    """Tell whether a text occurs in another ("contains"), begins it ("starts_with") or ends it ("ends_with")."""
    name = function.upper()
    return _operation(function, _text(name, argument), _text(name, searched), kind=BOOLEAN)


# ---- patterns --------------------------------------------------------------------------------------------------------


def _joined(pattern: Expression) -> Expression:
    """Return '%' || 'a' || '%', also in LOWER or UPPER, as the constant that it is; any other pattern as it stands."""
    if not isinstance(pattern, Operation) or pattern.function not in ("concat_strict", "lower", "upper"):
        return pattern
    texts = [part.value for part in map(_joined, pattern.arguments) if isinstance(part, Literal)]
    known = [text for text in texts if isinstance(text, str) and text.isascii()]
    if len(known) < len(pattern.arguments):
        return pattern
    text = "".join(known)
    cased = {"lower": text.lower(), "upper": text.upper()}
    return Literal(value=cased.get(pattern.function, text), type=TEXT)


def like(
    argument: Expression, pattern: Expression, escape: Expression | None = None, *, case: bool = True
) -> Expression:
    """Match a text against a constant pattern of % and _, minding upper and lower case or not."""
    name = "LIKE" if case else "ILIKE"
    pattern = _joined(pattern)
    if argument.type != TEXT or not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        raise QueryRefused(
            f"{name} takes a text and a constant pattern",
            cause=RefusalCause.NOT_CONSTANT,
            remedy=f"Write name {name} 'A%'.",
        )
    if len(pattern.value) > 1000 or pattern.value.count("%") > 10:
        raise QueryRefused(
            "A pattern is too long",
            cause=RefusalCause.PATTERN_TOO_LARGE,
            remedy="Use at most 1,000 characters and ten %.",
        )
    function = "like" if case else "like_any_case"
    if escape is None:
        return _operation(function, argument, pattern, kind=BOOLEAN)
    mark = escape.value if isinstance(escape, Literal) else None
    if not isinstance(mark, str) or len(mark) != 1 or not mark.isascii() or mark in "%_":
        raise QueryRefused(
            "ESCAPE takes one ASCII character",
            cause=RefusalCause.INVALID_ARGUMENT,
            remedy="Write LIKE '50!%' ESCAPE '!'.",
        )
    if not case and mark.isalpha():  # the engine folds the pattern's case, and not that of the character
        raise QueryRefused(
            "ESCAPE of ILIKE takes no letter",
            cause=RefusalCause.INVALID_ARGUMENT,
            remedy="Write ILIKE '50!%' ESCAPE '!'.",
        )
    if (len(pattern.value) - len(pattern.value.rstrip(mark))) % 2:
        raise QueryRefused(
            "The pattern ends with its escape character",
            cause=RefusalCause.INVALID_PATTERN,
            remedy="Write it twice to mean itself.",
        )
    return _operation(function, argument, pattern, escape, kind=BOOLEAN)


def _flags(argument: Expression | None, allowed: str) -> Literal:
    if argument is None:
        return word("")
    if not isinstance(argument, Literal) or not isinstance(argument.value, str) or argument.value not in {"", *allowed}:
        raise QueryRefused(
            "The options of a pattern are a constant",
            cause=RefusalCause.NOT_CONSTANT,
            remedy=f"Use {' or '.join(map(repr, allowed))}, or none.",
        )
    return argument


def _pattern(name: str, argument: Expression) -> tuple[Literal, patterns.Pattern]:
    if not isinstance(argument, Literal) or not isinstance(argument.value, str):
        raise QueryRefused(
            f"{name} takes a constant pattern", cause=RefusalCause.NOT_CONSTANT, remedy=f"Write {name}(x, '^A[0-9]+')."
        )
    return argument, patterns.check(argument.value)


def matches(
    argument: Expression, pattern: Expression, flags: Expression | None = None, *, fully: bool = False
) -> Expression:
    """Tell whether a regular expression occurs in a text, or describes all of it."""
    name = "REGEXP_FULL_MATCH" if fully else "REGEXP_MATCHES"
    text, (checked, _) = _text(name, argument), _pattern(name, pattern)
    return _operation("fully_matches" if fully else "matches", text, checked, _flags(flags, "i"), kind=BOOLEAN)


def extract(
    argument: Expression, pattern: Expression, group: Expression | None = None, flags: Expression | None = None
) -> Expression:
    """Take the first part of a text that a regular expression describes, or a group of it; '' where there is none."""
    text, (checked, about) = _text("REGEXP_EXTRACT", argument), _pattern("REGEXP_EXTRACT", pattern)
    chosen = _constant_whole(
        "REGEXP_EXTRACT", group or Literal(value=Fraction(0), type=UNBOUNDED_INTEGER), 0, about.groups
    )
    return _operation("extracted", text, checked, chosen, _flags(flags, "i"))


def substitute(
    argument: Expression, pattern: Expression, by: Expression, flags: Expression | None = None
) -> Expression:
    """Replace the first part that a regular expression describes, or with 'g' every one, by a constant text."""
    text, (checked, _) = _text("REGEXP_REPLACE", argument), _pattern("REGEXP_REPLACE", pattern)
    if not isinstance(by, Literal) or not isinstance(by.value, str) or "\\" in by.value or len(by.value) > 1000:
        raise QueryRefused(
            "REGEXP_REPLACE takes a constant replacement",
            cause=RefusalCause.NOT_CONSTANT,
            remedy="Write it without \\.",
        )
    return _measured(_operation("substituted", text, checked, by, _flags(flags, "ig")))

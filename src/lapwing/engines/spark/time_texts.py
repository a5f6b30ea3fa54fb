"""Dates and timestamps as texts, printed from their parts: no pattern and no name of Java's, which may be a locale's.

They are total. Every part is a whole number of a date in the years 1 to 9999, or NULL. Its digits are padded by `lpad`,
and names are constants. An argument is printed once a part. So that what is printed stays short, no argument has a time
as text in it, nor more than `MOST_NODES` nodes (`is_short`). Others are refused.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast

from lapwing.engines.spark.literals import text
from lapwing.query.expressions.expression import Expression, Literal, Operation, walk

MOST_NODES: Final = 30
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November"),
    "December",
)
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_WRITTEN: Final = frozenset({"formatted", "written"})


def is_short(value: Expression) -> bool:
    """Tell whether a time may be printed once a part."""
    nodes = list(walk(value))
    return len(nodes) <= MOST_NODES and not any(
        isinstance(node, Operation) and node.function in _WRITTEN for node in nodes
    )


def _digits(count: int, number: str) -> str:
    return f"lpad(CAST({number} AS STRING), {count}, '0')"


def _name(number: str, names: Sequence[str]) -> str:
    cases = " ".join(f"WHEN {place} THEN '{name}'" for place, name in enumerate(names, 1))
    return f"CASE {number} {cases} END"


def _micros(value: str) -> str:
    return f"pmod(unix_micros(CAST({value} AS TIMESTAMP)), 1000000L)"


def month_name(value: str) -> str:
    """Print the English name of a month."""
    return _name(f"month(CAST({value} AS DATE))", _MONTHS)


def day_name(value: str) -> str:
    """Print the English name of a weekday."""
    return _name(f"(weekday(CAST({value} AS DATE)) + 1)", _DAYS)


def _short(names: Sequence[str]) -> Sequence[str]:
    return [name[:3] for name in names]


def _of_day(count: int, function: str) -> Callable[[str], str]:
    return lambda value: _digits(count, function.format(f"CAST({value} AS DATE)"))


def _of_time(function: str) -> Callable[[str], str]:
    return lambda value: _digits(2, function.format(f"CAST({value} AS TIMESTAMP_NTZ)"))


_DIRECTIVES: Final[Mapping[str, Callable[[str], str]]] = {
    "Y": _of_day(4, "year({})"),
    "y": _of_day(2, "(year({}) % 100)"),
    "G": _of_day(4, "extract(YEAROFWEEK FROM {})"),
    "m": _of_day(2, "month({})"),
    "d": _of_day(2, "day({})"),
    "j": _of_day(3, "dayofyear({})"),
    "V": _of_day(2, "weekofyear({})"),
    "u": _of_day(1, "(weekday({}) + 1)"),  # Monday is 1
    "w": _of_day(1, "(dayofweek({}) - 1)"),  # Sunday is 0
    "H": _of_time("hour({})"),
    "I": _of_time("((hour({}) + 11) % 12 + 1)"),
    "M": _of_time("minute({})"),
    "S": _of_time("second({})"),
    "f": lambda value: _digits(6, _micros(value)),
    "p": lambda value: f"CASE WHEN hour(CAST({value} AS TIMESTAMP_NTZ)) < 12 THEN 'AM' ELSE 'PM' END",
    "B": month_name,
    "b": lambda value: _name(f"month(CAST({value} AS DATE))", _short(_MONTHS)),
    "A": day_name,
    "a": lambda value: _name(f"(weekday(CAST({value} AS DATE)) + 1)", _short(_DAYS)),
}


def formatted(node: Operation, arguments: Sequence[str]) -> str:
    """Print a time by a constant format."""
    value, parts, plain = arguments[0], list[str](), ""
    rest = iter(str(cast(Literal, node.arguments[1]).value))
    for character in rest:
        directive = next(rest) if character == "%" else character
        if character != "%" or directive == "%":
            plain += directive
            continue
        parts += [*([text(plain)] if plain else []), _DIRECTIVES[directive](value)]
        plain = ""
    parts += [text(plain)] if plain or not parts else []
    return f"CASE WHEN {value} IS NOT NULL THEN concat({', '.join(parts)}) END"


def timestamp(value: str) -> str:
    """Print a timestamp as a text, with the digits of its second that are needed."""
    parts = [f"CAST(CAST({value} AS DATE) AS STRING)", "' '", _DIRECTIVES["H"](value), "':'", _DIRECTIVES["M"](value)]
    fraction = f"trim(TRAILING '0' FROM concat('.', {_DIRECTIVES['f'](value)}))"
    parts += ["':'", _DIRECTIVES["S"](value), f"CASE WHEN {_micros(value)} > 0L THEN {fraction} ELSE '' END"]
    return f"concat({', '.join(parts)})"

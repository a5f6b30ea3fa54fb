"""A task read from TOML or JSON, strictly: anything unknown is refused."""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Final

from .answers import Answers, Number, Text, Values
from .rules import ALL, UNCHANGED, TaskRefused
from .task import EPSILON, VERSION, Asked, Attributes, Task

MOST_TASK: Final = 1 << 24
_EVERY: Final = ("version", "question", "mechanism", EPSILON, "unit", "opens", "closes", "retention_days")
_MORE: Final = (UNCHANGED, ALL)
_KINDS: Final = (Values.kind, Number.kind, Text.kind, Attributes.kind)
_DIGITS: Final = re.compile(r"0|[1-9][0-9]{0,19}")
MOST_PLACES: Final = 60
"""Characters of a decimal number; no true one has half as many."""
MOST_BITS: Final = 128
"""Of an integer that stands for a decimal: longer ones take long to be written in tens."""
_TEXTS: Final = re.compile(
    r"""
    \"{3} (?: [^"\\]++ | \\.? | "(?!"") )*+ (?: "{3,5} )?   # these end with up to two quotation marks of their own
    | '{3} (?: [^']++ | '(?!'') )*+ (?: '{3,5} )?
    | " (?: [^"\\\n] | \\[^\n] )*+ "?
    | ' [^'\n]*+ '?
    | \# [^\n]*+
    """,
    re.VERBOSE | re.DOTALL,
)
"""The texts and comments of TOML, from left to right; one that does not end goes on to where TOML is refused."""
_THREE_PARTS: Final = re.compile(r"\.[ \t]*+[A-Za-z0-9_\"-]++[ \t]*+\.")


def read_task(text: str) -> Task:
    """Read a task, in TOML or JSON.

    Raises:
        TaskRefused: If it is not a task, has anything unknown in it, or states another ε than it has.
    """
    if len(text) > MOST_TASK:
        raise TaskRefused(f"A task has {MOST_TASK:,} characters at most.")
    is_json = text.lstrip().startswith("{")
    if not is_json and has_long_keys(text):
        raise TaskRefused("A task in TOML has no keys of three parts, such as a.b.c.")
    try:
        document: object = (
            json.loads(text, parse_float=Decimal, object_pairs_hook=unrepeated)
            if is_json
            else tomllib.loads(text, parse_float=Decimal)
        )
    except (ValueError, ArithmeticError, RecursionError):
        raise TaskRefused("The task is neither TOML nor JSON, or has a key twice.") from None
    return task_of(document)


def unrepeated(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    """Return a JSON object's pairs as a dictionary; ValueError if a key stands there twice."""
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key stands there twice")
    return dict(pairs)


def has_long_keys(text: str) -> bool:
    """Return whether a text in TOML has a key of three parts or more; dots in texts and comments are none.

    No task has one, and of n parts a reader takes n² steps.
    """
    bare = _TEXTS.sub(lambda match: "" if match[0].startswith("#") else '""', text)
    return _THREE_PARTS.search(bare) is not None


def task_of(document: object) -> Task:
    """Read a task from the object that TOML or JSON holds."""
    if not isinstance(document, dict) or set(document) - {*_MORE, *_KINDS} != set(_EVERY):
        raise TaskRefused(f"A task has the keys {', '.join(_EVERY)}, and one of {', '.join(_KINDS)}.")
    if _integer("version", document["version"]) != VERSION:
        raise TaskRefused(f"A task has the version {VERSION}.")
    days = document["retention_days"]
    if isinstance(days, bool) or not isinstance(days, int):
        raise TaskRefused("retention_days must be a whole number.")
    return Task(
        question=_text("question", document["question"]),
        asked=_attributes(document) if Attributes.kind in document else _asked(document),
        epsilons=tuple((name, _epsilon(name, document[name])) for name in (EPSILON, *_MORE) if name in document),
        unit=_text("unit", document["unit"]),
        opens=_date("opens", document["opens"]),
        closes=_date("closes", document["closes"]),
        retention_days=days,
    )


def _attributes(document: Mapping[str, object]) -> Attributes:
    each, mechanism = document[Attributes.kind], document["mechanism"]
    name = mechanism["name"] if isinstance(mechanism, dict) and mechanism.keys() == {"name"} else None
    if any(kind in document for kind in _KINDS[:-1]) or not isinstance(name, str):
        raise TaskRefused("A task of attributes has a mechanism with only a name, and no other answers.")
    if not isinstance(each, list):
        raise TaskRefused("attributes must be a list of tables.")
    return Attributes(tuple(_attribute(attribute) for attribute in each), name)


def _attribute(document: object) -> tuple[str, Asked]:
    if not isinstance(document, dict) or set(document) - set(_KINDS[:-1]) != {"question", "mechanism"}:
        raise TaskRefused(f"An attribute has a question, a mechanism, and one of {', '.join(_KINDS[:-1])}.")
    return _text("question", document["question"]), _asked(document)


def _asked(document: Mapping[str, object]) -> Asked:
    mechanism = document["mechanism"]
    if not isinstance(mechanism, dict) or not isinstance(mechanism.get("name"), str):
        raise TaskRefused("mechanism must be a table with a name.")
    answers = _answers(document)
    rule = answers.rules.get(mechanism["name"])
    order = [*rule.ranges(answers.size)] if rule else []
    named = {str(name): _integer(name, value) for name, value in mechanism.items() if name != "name"}
    parameters = sorted(named.items(), key=lambda item: order.index(item[0]) if item[0] in order else -1)
    return Asked(answers, mechanism["name"], tuple(parameters))


def _answers(document: Mapping[str, object]) -> Answers:
    kinds = [kind for kind in _KINDS[:-1] if kind in document]
    if len(kinds) != 1:
        raise TaskRefused(f"Of {', '.join(_KINDS)}, there must be exactly one.")
    held = document[kinds[0]]
    if kinds == [Values.kind]:
        if not isinstance(held, list):
            raise TaskRefused("values must be a list.")
        if set(map(type, held)) != {str}:  # of 100,000 values much faster than one by one
            raise TaskRefused("A value must be a text.")
        return Values(tuple(held))
    if kinds == [Number.kind]:
        table = _table(Number.kind, held, ("lower", "upper", "steps"))
        lower, upper = (_decimal(bound, table[bound]) for bound in ("lower", "upper"))
        return Number(lower, upper, _integer("steps", table["steps"]))
    return Text(_integer("most_bytes", _table(Text.kind, held, ("most_bytes",))["most_bytes"]))


def _table(name: str, value: object, keys: tuple[str, ...]) -> Mapping[str, object]:
    if not isinstance(value, dict) or set(value) != set(keys):
        raise TaskRefused(f"{name} must be a table of {', '.join(keys)}.")
    return value


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise TaskRefused(f"A {name} must be a text.")
    return value


def _integer(name: object, value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        return int(value)
    raise TaskRefused(f"{name} must be a whole number, or the digits of one as a text.")


def _decimal(name: str, value: object) -> Decimal:
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,12}(\.[0-9]{1,30})?", value):
        return Decimal(value)
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() <= MOST_BITS:
        value = Decimal(value)
    if (
        isinstance(value, Decimal)
        and value.is_finite()
        and abs(value.adjusted()) < 30
        and len(str(value)) <= MOST_PLACES
    ):
        return value
    raise TaskRefused(f"{name} must be a decimal number, such as 0.5.")


def _epsilon(name: str, value: object) -> Decimal:
    number = _decimal(name, value)
    if number.is_signed():
        raise TaskRefused(f"{name} must not be negative.")
    return number


def _date(name: str, value: object) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    if isinstance(value, str) and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    raise TaskRefused(f"{name} must be a day, such as 2027-01-31.")

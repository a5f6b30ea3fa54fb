"""What is asked, and exactly how an answer is made noisy: read from TOML or JSON, and refused if it lies."""

import hashlib
import json
import re
import tomllib
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Final, final

from .rules import RULES, epsilon_up

VERSION: Final = 1
MOST_VALUES: Final = 100_000
MOST_TEXT: Final = 500
MOST_TASK: Final = 1 << 24

_KEYS: Final = (
    "version", "question", "values", "mechanism", "epsilon", "unit", "opens", "closes", "retention_days",
)  # fmt: skip
_DIGITS: Final = re.compile(r"0|[1-9][0-9]{0,19}")


class TaskRefused(ValueError):
    """A task cannot be meant, or states an ε that is not that of its thresholds; nothing was sent."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is asked, and exactly how an answer is made noisy; all of it is public.

    Args: values: what may be answered, in order. mechanism: a name of `RULES`. parameters: its integers, by name.
        epsilon: of one report. unit: whose answer is hidden. opens, closes: the days on which reports are taken.
        retention_days: for how long after that they are kept.
    Raises: TaskRefused if that cannot be meant, or the ε is not that of the thresholds.
    """

    question: str
    values: tuple[str, ...]
    mechanism: str
    parameters: tuple[tuple[str, int], ...]
    epsilon: Decimal
    unit: str
    opens: date
    closes: date
    retention_days: int

    def __post_init__(self) -> None:
        _check(self)
        true = epsilon_up(self.ratio)
        if self.epsilon != true:
            raise TaskRefused(
                f"The task states epsilon {self.epsilon}, but its thresholds have epsilon {_written(true)}; "
                "send nothing."
            )

    @property
    def ratio(self) -> Fraction:
        """The most by which a report can be likelier for one answer than for another."""
        return RULES[self.mechanism].ratio(dict(self.parameters), len(self.values))

    @property
    def document(self) -> dict[str, object]:
        """The task as JSON holds it; integers that may have 64 bits, and ε, are texts."""
        return {
            "version": VERSION,
            "question": self.question,
            "values": list(self.values),
            "mechanism": {"name": self.mechanism, **{name: str(value) for name, value in self.parameters}},
            "epsilon": _written(self.epsilon),
            "unit": self.unit,
            "opens": self.opens.isoformat(),
            "closes": self.closes.isoformat(),
            "retention_days": self.retention_days,
        }

    @property
    def digest(self) -> str:
        """SHA-256 of the document in JSON with sorted keys, without spaces, in UTF-8."""
        text = json.dumps(self.document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode("utf-8")).hexdigest()

    @property
    def id(self) -> str:
        """The first 128 bits of the digest, which every report names."""
        return self.digest[:32]

    @property
    def promise(self) -> str:
        """What a report can tell at most, in words; the percentage is rounded up."""
        sure = -(-1000 * self.ratio.numerator // (self.ratio.numerator + self.ratio.denominator)) / 10
        return (
            f"epsilon {_written(self.epsilon)}: whoever held two answers for equally likely can, after any report, "
            f"hold one of them for {sure:g} % likely at most"
        )


def _written(number: Decimal) -> str:
    """Return a decimal without an exponent and without zeros at its end."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _check(task: Task) -> None:
    for name, text in (("question", task.question), ("unit", task.unit), *(("value", value) for value in task.values)):
        if not (0 < len(text) <= MOST_TEXT and text.isprintable() and unicodedata.is_normalized("NFC", text)):
            raise TaskRefused(f"A {name} must be 1 to {MOST_TEXT} printable characters, in Unicode's form NFC.")
    count = len(task.values)
    if not 2 <= count <= MOST_VALUES or len(set(task.values)) != count:
        raise TaskRefused(f"There must be 2 to {MOST_VALUES:,} values, no two the same.")
    if task.mechanism not in RULES:
        raise TaskRefused(f"The mechanism must be one of {', '.join(RULES)}.")
    if task.mechanism == "binary" and count != 2:
        raise TaskRefused(f"The mechanism binary is for two values; there are {count}.")
    ranges = RULES[task.mechanism].ranges(count)
    if [name for name, _ in task.parameters] != list(ranges):
        raise TaskRefused(f"The mechanism {task.mechanism} has the parameters {', '.join(ranges)}, in this order.")
    for name, value in task.parameters:
        if value not in ranges[name]:
            raise TaskRefused(f"{name} must be from {ranges[name].start} to {ranges[name].stop - 1}.")
    if task.opens > task.closes or not 0 <= task.retention_days <= 36_500:
        raise TaskRefused("A task opens before it closes, and keeps its reports for 0 to 36500 days after that.")


def read_task(text: str) -> Task:
    """Read a task, in TOML or JSON.

    Raises: TaskRefused if it is none, has something that is not known, or lies.
    """
    if len(text) > MOST_TASK:
        raise TaskRefused(f"A task has {MOST_TASK:,} characters at most.")
    try:
        given: object = (
            json.loads(text, parse_float=Decimal, object_pairs_hook=_once)
            if text.lstrip().startswith("{")
            else tomllib.loads(text, parse_float=Decimal)
        )
    except (ValueError, ArithmeticError, RecursionError):
        raise TaskRefused("The task is neither TOML nor JSON, or says something twice.") from None
    return task_of(given)


def _once(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key stands there twice")
    return dict(pairs)


def task_of(given: object) -> Task:
    """Read a task from the object that TOML or JSON holds."""
    if not isinstance(given, dict) or set(given) != set(_KEYS) or _integer("version", given["version"]) != VERSION:
        raise TaskRefused(f"A task of version {VERSION} has the keys {', '.join(_KEYS)}.")
    mechanism, values = given["mechanism"], given["values"]
    if not isinstance(mechanism, dict) or not isinstance(mechanism.get("name"), str) or not isinstance(values, list):
        raise TaskRefused("mechanism must be a table with a name, and values a list.")
    days = given["retention_days"]
    if isinstance(days, bool) or not isinstance(days, int):
        raise TaskRefused("retention_days must be a whole number.")
    rule = RULES.get(mechanism["name"])
    order = [*rule.ranges(len(values))] if rule else []
    named = {str(name): _integer(name, value) for name, value in mechanism.items() if name != "name"}
    return Task(
        question=_text("question", given["question"]),
        values=tuple(_text("value", value) for value in values),
        mechanism=mechanism["name"],
        parameters=tuple(sorted(named.items(), key=lambda item: order.index(item[0]) if item[0] in order else -1)),
        epsilon=_decimal(given["epsilon"]),
        unit=_text("unit", given["unit"]),
        opens=_date("opens", given["opens"]),
        closes=_date("closes", given["closes"]),
        retention_days=days,
    )


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


def _decimal(value: object) -> Decimal:
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,30})?", value):
        return Decimal(value)
    if isinstance(value, Decimal | int) and not isinstance(value, bool):
        number = Decimal(value)
        if number.is_finite() and not number.is_signed():
            return number
    raise TaskRefused("epsilon must be a decimal number, such as 0.5.")


def _date(name: str, value: object) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    if isinstance(value, str) and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    raise TaskRefused(f"{name} must be a day, such as 2027-01-31.")

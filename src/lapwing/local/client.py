"""What a respondent's device runs: read a task, refuse it if it lies, and turn an answer into a noisy report.

It needs the standard library and nothing else, so that a respondent can read all of it, and copy it to a device.

Theory of operation. A task states integer thresholds T of 64 bits and an ε. A coin falls for T of the 2^64 words of 8
random bytes, so each report has an exact rational probability, and ε is the logarithm of the greatest ratio of such
probabilities between two answers. The client computes that itself, and refuses a task that states another. Whoever
collects the reports is not trusted with anything: the guarantee rests on this file and on the random bytes alone.

Bytes are read in this order: 16 for the report's identity, then 8 for each word, least significant byte first.
"""

import hashlib
import json
import re
import tomllib
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Final, final

VERSION: Final = 1
WHOLE: Final = 1 << 64
"""How many words there are: a coin of threshold T falls with probability T / WHOLE."""
PRIME: Final = (1 << 31) - 1
"""The field in which answers are hashed: h(v) = ((a·v + b) mod PRIME) mod range."""
MOST_VALUES: Final = 100_000
MOST_TEXT: Final = 500
MOST_TASK: Final = 1 << 24
PLACES: Final = Decimal("1e-12")
"""The ε of a task is rounded up to a multiple of this."""

_KEYS: Final = (
    "version", "question", "values", "mechanism", "epsilon", "unit", "opens", "closes", "retention_days",
)  # fmt: skip
_DIGITS: Final = re.compile(r"0|[1-9][0-9]{0,19}")

Read = Callable[[int], bytes]
"""A source of so many random bytes, such as `os.urandom`."""
Said = int | str | list[int]
"""What a report says."""


class TaskRefused(ValueError):
    """A task cannot be meant, or states an ε that is not that of its thresholds; nothing was sent."""


class AnswerRefused(ValueError):
    """An answer is none of the task's values; nothing was sent."""


class NoRandomness(OSError):
    """The source of randomness gave too few bytes; nothing was sent."""


# Words


def _exactly(read: Read, size: int) -> bytes:
    data = read(size)
    if len(data) != size:
        raise NoRandomness(f"The source of randomness gave {len(data)} of {size} bytes; nothing was sent.")
    return data


def coin(threshold: int, read: Read) -> bool:
    """Return True with probability threshold / 2^64, exactly."""
    return int.from_bytes(_exactly(read, 8), "little") < threshold


def below(bound: int, read: Read) -> int:
    """Return a uniform integer below a bound: words beyond the last whole multiple of it are dropped."""
    limit = WHOLE - WHOLE % bound
    while True:
        word = int.from_bytes(_exactly(read, 8), "little")
        if word < limit:
            return word % bound


def others(count: int, bound: int, true: int, read: Read) -> list[int]:
    """Return a uniform set of integers below a bound, none of which is `true` (Floyd's sampling)."""
    chosen: set[int] = set()
    for last in range(bound - 1 - count, bound - 1):
        pick = below(last + 1, read)
        chosen.add(last if pick in chosen else pick)
    return [index + (index >= true) for index in chosen]


# Mechanisms

Parameters = Mapping[str, int]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One mechanism: its parameters with their ranges, given the number of values; its worst ratio; its reports."""

    ranges: Callable[[int], Mapping[str, range]]
    ratio: Callable[[Parameters, int], Fraction]
    draw: Callable[[Parameters, int, int, Read], Said]


_THRESHOLDS: Final = range(1, WHOLE)


def _either(ratio: Fraction) -> Fraction:
    return max(ratio, 1 / ratio)


def _binary_ratio(given: Parameters, count: int) -> Fraction:
    """Compare both reports: the one may tell more than the other."""
    yes, no = given["threshold_yes"], given["threshold_no"]
    return max(_either(Fraction(yes, no)), _either(Fraction(WHOLE - yes, WHOLE - no)))


def _draw_binary(given: Parameters, count: int, true: int, read: Read) -> int:
    return int(coin(given["threshold_yes"] if true else given["threshold_no"], read))


def _shown(threshold: int, bound: int, true: int, read: Read) -> int:
    """Return the true face with the threshold's probability, else one of the others."""
    kept = coin(threshold, read)
    other = below(bound - 1, read)
    return true if kept else other + (other >= true)


def _face_ratio(threshold: int, bound: int) -> Fraction:
    return _either(Fraction(threshold * (bound - 1), WHOLE - threshold))


def _draw_subset(given: Parameters, count: int, true: int, read: Read) -> list[int]:
    kept = coin(given["threshold"], read)
    chosen = others(given["size"] - kept, count, true, read)
    return sorted([*chosen, true] if kept else chosen)


def _subset_ratio(given: Parameters, count: int) -> Fraction:
    """Divide P(S | a value in S) = (T/2^64)/C(k−1, w−1) by P(S | one outside) = (1 − T/2^64)/C(k−1, w)."""
    threshold, size = given["threshold"], given["size"]
    return _either(Fraction(threshold * (count - size), (WHOLE - threshold) * size))


def _draw_unary(given: Parameters, count: int, true: int, read: Read) -> str:
    bits = bytearray(-(-count // 8))
    for value in range(count):
        threshold = given["threshold_own" if value == true else "threshold_other"]
        bits[value // 8] |= coin(threshold, read) << value % 8
    return bits.hex()


def _unary_ratio(given: Parameters, count: int) -> Fraction:
    """Compare the bits of the two answers, which alone differ: both tell, so their ratios multiply."""
    own, other = given["threshold_own"], given["threshold_other"]
    return _either(Fraction(own * (WHOLE - other), other * (WHOLE - own)))


def _draw_hash(given: Parameters, count: int, true: int, read: Read) -> list[int]:
    a, b = below(PRIME, read), below(PRIME, read)
    return [a, b, _shown(given["threshold"], given["range"], (a * true + b) % PRIME % given["range"], read)]


RULES: Final[Mapping[str, Rule]] = {
    "binary": Rule(
        ranges=lambda count: {"threshold_yes": _THRESHOLDS, "threshold_no": _THRESHOLDS},
        ratio=_binary_ratio,
        draw=_draw_binary,
    ),
    "k-ary": Rule(
        ranges=lambda count: {"threshold": _THRESHOLDS},
        ratio=lambda given, count: _face_ratio(given["threshold"], count),
        draw=lambda given, count, true, read: _shown(given["threshold"], count, true, read),
    ),
    "subset": Rule(
        ranges=lambda count: {"threshold": _THRESHOLDS, "size": range(1, count)},
        ratio=_subset_ratio,
        draw=_draw_subset,
    ),
    "unary": Rule(
        ranges=lambda count: {"threshold_own": _THRESHOLDS, "threshold_other": _THRESHOLDS},
        ratio=_unary_ratio,
        draw=_draw_unary,
    ),
    "hashing": Rule(
        ranges=lambda count: {"threshold": _THRESHOLDS, "range": range(2, PRIME)},
        ratio=lambda given, count: _face_ratio(given["threshold"], given["range"]),
        draw=_draw_hash,
    ),
}


def epsilon_up(ratio: Fraction) -> Decimal:
    """Return ln(ratio), for a ratio ≥ 1, rounded up to 12 decimal places.

    Python's decimal logarithm is correctly rounded, so with 60 digits the difference errs by less than 1e-55.
    """
    if ratio == 1:
        return Decimal(0)
    context = Context(prec=60)
    logarithm = context.subtract(context.ln(Decimal(ratio.numerator)), context.ln(Decimal(ratio.denominator)))
    return context.add(logarithm, Decimal("1e-50")).quantize(PLACES, rounding=ROUND_CEILING, context=context)


# Tasks


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


# Reports


def report(task: Task, answer: str, read: Read) -> bytes:
    """Return the report of an answer, as the bytes that are sent: JSON on one line.

    Guarantee: for any two answers of one respondent, each report is at most e^ε times as likely for one as for the
        other, with the task's ε, if `read` gives independent uniform bytes. A second report costs as much again.
    Args: read: the source of randomness: `os.urandom`, and nothing that a seed decides.
    Raises: AnswerRefused if the task has no such value.
    """
    if answer not in task.values:
        raise AnswerRefused(f"The answer must be one of {', '.join(task.values[:20])}; nothing was sent.")
    identity = _exactly(read, 16).hex()
    said = RULES[task.mechanism].draw(dict(task.parameters), len(task.values), task.values.index(answer), read)
    whole = {"v": VERSION, "task": task.id, "id": identity, "m": task.mechanism, "r": said}
    return json.dumps(whole, separators=(",", ":")).encode("ascii")

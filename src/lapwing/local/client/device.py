"""What this device has revealed so far, and what it keeps between reports, in one small private file.

Theory of operation. The file has every task that was reported to, how many reports left on each day, and what the
task's mechanism keeps. A new version replaces the old one, durably, *before* a report is returned: so whatever crashes,
no report leaves uncounted, and none is drawn from a memory that is lost. A crash in between counts a report that never
left. Whoever writes holds a lock, so that two processes add up. Nothing is appended: what is no longer needed, such as
the answer of an earlier period, is no longer in the file. `private_file` says how it is written.

What the device sent into secure sums (`lapwing.secure`) is added to it, under the same limits: of that this file knows
ε, δ and the day, and keeps unread what the client of such sums needs. Reports have no δ; some sums do.

The file is as secret as the answers. A device that loses it starts from zero, though what it said before stays said.
Nor does a device notice that its file was replaced by an older copy: then it counts too little, and what its mechanisms
kept since then is drawn again. This file and `private_file` are for POSIX systems; the others of this folder are for
all.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Final, final

from .answers import plain
from .private_file import DeviceRefused, held, put, whole
from .rules import AnswerRefused, Memory, Read, TaskRefused, epsilon_up
from .task import Answer, Task, report_with_memory
from .task_text import task_of, unrepeated

__all__ = [
    "FORMAT", "MOST_DELTA", "MOST_REPORTS", "Device", "DeviceRefused", "LimitReached", "Reported", "Summed",
    "delta_up", "held_device", "period_of", "read_device", "report_from_device", "require_within", "set_delta_limit",
    "set_limit",
]  # fmt: skip

FORMAT: Final = 1
MOST_REPORTS: Final = 10_000
"""To one task; the exact loss of more of them takes long to compute."""
MOST_DELTA: Final = Decimal("0.00001")
"""δ of all that a device reveals, where its owner has set a limit of ε and none of δ."""
_LIMIT: Final = re.compile(r"[0-9]{1,12}(\.[0-9]{1,12})?")
_DELTA: Final = re.compile(r"0(\.[0-9]{1,24})?|1")
_EXACT: Final = re.compile(r"[0-9]{1,40}(\.[0-9]{1,40}|/[1-9][0-9]{0,40})?")
_DELTA_PLACES: Final = 24
_SUM: Final = Context(prec=60, rounding=ROUND_CEILING)
"""So that the caller's own decimal context does not matter."""


class LimitReached(ValueError):
    """The device would reveal more than its owner wants; nothing was sent."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """What was reported to one task: how many reports on each day, and what the device keeps for the next one."""

    task: Task
    days: Mapping[date, int] = field(default_factory=dict)
    memory: Memory = field(default_factory=dict, repr=False)

    def until(self, day: date | None = None) -> int:
        """Return how many reports left, up to and with a day."""
        return sum(count for when, count in self.days.items() if day is None or when <= day)

    def epsilon(self, reports: int) -> Decimal | None:
        """Return ε of so many reports together, rounded up, whatever the answers were; None if there is no bound.

        That of fresh noise is the logarithm of the exact product; the tree's is one for all its reports.
        """
        _, whole = self.task.asked.together(reports)
        return None if whole is None else epsilon_up(whole)

    def epsilon_unchanged(self, reports: int) -> Decimal:
        """Return the same, which holds **only if the answer never changed**."""
        return epsilon_up(self.task.asked.together(reports)[0])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Summed:
    """What was answered to a secure sum: the question, ε and δ, rounded up, the day, and what its own client keeps."""

    question: str
    epsilon: Decimal
    delta: Decimal
    day: date
    kept: Mapping[str, object] = field(default_factory=dict, repr=False)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """What a device has revealed since its file was begun.

    All of it together is (epsilon, delta)-DP for any two lives of its owner: the ε of all add up, and so do the δ.

    Args:
        began: The day.
        limit: An ε and a δ that its owner does not want to exceed, or None.
        delta_limit: As `limit`.
        reported: By the task's digest, since whoever writes tasks can find two that share the 128 bits of an id.
        summed: To secure sums, by digest.
    """

    began: date
    limit: Decimal | None = None
    delta_limit: Decimal | None = None
    reported: Mapping[str, Reported] = field(default_factory=dict)
    summed: Mapping[str, Summed] = field(default_factory=dict)

    def epsilon(self, day: date | None = None) -> Decimal | None:
        """Return ε of all that left up to a day together, whatever the answers were; None if there is no bound.

        It holds with `delta`. The ε of tasks add up, whatever they ask: neighbours are any two lives of the respondent.
        """
        each = [one.epsilon(one.until(day)) for one in self.reported.values()]
        bounded = [epsilon for epsilon in each if epsilon is not None]
        return _sum([*bounded, *self._sums(day)]) if len(bounded) == len(each) else None

    def epsilon_unchanged(self, day: date | None = None) -> Decimal:
        """Return the same, which holds **only if no answer that a task keeps noisy ever changed**."""
        each = (one.epsilon_unchanged(one.until(day)) for one in self.reported.values())
        return _sum([*each, *self._sums(day)])

    def delta(self, day: date | None = None) -> Decimal:
        """Return δ of all that left up to a day together, which both `epsilon` and `epsilon_unchanged` hold with."""
        return _sum(one.delta for one in self._until(day))

    @property
    def most_delta(self) -> Decimal | None:
        """The δ that all may have together: the owner's limit, or `MOST_DELTA` if ε alone has one; None for any."""
        return MOST_DELTA if self.delta_limit is None and self.limit is not None else self.delta_limit

    def days(self) -> list[date]:
        """Return the days on which something left, in order."""
        reports = {day for one in self.reported.values() for day in one.days}
        return sorted(reports | {one.day for one in self.summed.values()})

    def of(self, task: Task) -> Reported:
        """Return what was reported to a task."""
        return self.reported.get(task.digest, Reported(task=task))

    def _sums(self, day: date | None) -> list[Decimal]:
        return [one.epsilon for one in self._until(day)]

    def _until(self, day: date | None) -> list[Summed]:
        return [one for one in self.summed.values() if day is None or one.day <= day]


def period_of(task: Task, today: date) -> int:
    """Return the number of a task's period on a day, from 1; a task without periods has one only."""
    days = dict(task.parameters).get("days")
    return 1 if days is None else (today - task.opens).days // days + 1


def report_from_device(path: str, task: Task, answer: Answer, read: Read, today: date) -> bytes | None:
    """Return the report of an answer once the file has it: what it costs, and what is to be kept. None if none is due.

    Guarantee:
        As of `report_with_memory`. Whether the limit is reached depends on the numbers of reports alone, never on
        answers: so the bound for answers that may change is compared with it.

    Args:
        path: Of the device's file, which is begun if there is none.

    Raises:
        DeviceRefused: If the file cannot be used.
        LimitReached: If it would reveal too much.
        AnswerRefused: As `report`, and on a day on which the task is not open.
    """
    if not task.opens <= today <= task.closes:
        raise AnswerRefused(f"The task is open from {task.opens} to {task.closes}; nothing was sent.")
    with held_device(path, today) as (device, write):
        before = device.of(task)
        _check_limit(device, before)
        line, memory = report_with_memory(task, answer, read, before.memory, period_of(task, today))
        days = before.days if line is None else {**before.days, today: before.days.get(today, 0) + 1}
        after = replace(before, days=days, memory=memory)
        write(replace(device, reported={**device.reported, task.digest: after}))
    return line


@contextmanager
def held_device(path: str, today: date) -> Iterator[tuple[Device, Callable[[Device], None]]]:
    """Hold a device's file, which is begun if there is none, and give what it says and how it is replaced.

    Raises:
        DeviceRefused: If the file cannot be used.
    """
    with held(path, _content(Device(began=today))) as content:
        yield _read(content), lambda device: _write(path, device)


def read_device(path: str) -> Device:
    """Read a device's file.

    Raises:
        DeviceRefused: If there is none, it is damaged, or others may read it.
    """
    return _read(whole(path))


def set_limit(path: str, limit: Decimal | None, today: date) -> Device:
    """Set the most that a device may reveal, or None for no limit; what has left stays said.

    Raises:
        DeviceRefused: If the file cannot be used, or the limit is none.
    """
    if limit is not None and not _LIMIT.fullmatch(plain(limit)):
        raise DeviceRefused(
            "A limit is a number such as 1.5, with 12 digits and 12 places at most; nothing was changed."
        )
    with held_device(path, today) as (device, write):
        device = replace(device, limit=limit)
        write(device)
    return device


def set_delta_limit(path: str, limit: Decimal | None, today: date) -> Device:
    """Set the largest δ that all that a device reveals may have together, or None for none of its own.

    Raises:
        DeviceRefused: If the file cannot be used, or the limit is none.
    """
    if limit is not None and not _DELTA.fullmatch(plain(limit)):
        raise DeviceRefused(
            "A limit of delta is a number such as 0.000001, from 0 to 1 with 24 places at most; nothing was changed."
        )
    with held_device(path, today) as (device, write):
        device = replace(device, delta_limit=limit)
        write(device)
    return device


def delta_up(delta: Fraction) -> Decimal:
    """Return a δ with the places that the file has, rounded up."""
    return Decimal(-(-delta.numerator * 10**_DELTA_PLACES // delta.denominator)).scaleb(-_DELTA_PLACES, _SUM)


def _sum(each: Iterable[Decimal]) -> Decimal:
    total = Decimal(0)
    for epsilon in each:
        total = _SUM.add(total, epsilon)
    return total


def _check_limit(device: Device, before: Reported) -> None:
    """Refuse a report if all tasks together, with one report more of this one, exceed the limit or have no bound."""
    if before.until() >= MOST_REPORTS:
        raise LimitReached(
            f"The device has already sent {MOST_REPORTS:,} reports to this task, the maximum; nothing was sent."
        )
    digest = before.task.digest
    others = replace(device, reported={key: each for key, each in device.reported.items() if key != digest})
    require_within(others, before.epsilon(before.until() + 1))


def require_within(others: Device, more: Decimal | None, delta: Decimal = Decimal(0)) -> None:
    """Refuse what would exceed a device's limit of ε or of δ, beside what it has revealed.

    Args:
        more: ε of what is to leave, None if there is no bound.
        delta: Its δ. What has none is not refused for δ, as it adds nothing.

    Raises:
        LimitReached: The device would reveal more than its owner wants; nothing was sent.
    """
    most = others.most_delta
    if delta and most is not None and (together := _sum((others.delta(), delta))) > most:
        raise LimitReached(
            f"With this report the device would have revealed delta {plain(together)} in all, above its limit of "
            f"{plain(most)}; nothing was sent."
        )
    if others.limit is None:
        return
    total = others.epsilon()
    whole = None if total is None or more is None else _sum((total, more))
    if whole is None or whole > others.limit:
        then = "no bound" if whole is None else f"epsilon {plain(whole)}"
        raise LimitReached(
            f"With this report the device would have revealed {then} in all, above its limit of {plain(others.limit)}; "
            "nothing was sent."
        )


def _write(path: str, device: Device) -> None:
    put(path, _content(device))


def _content(device: Device) -> bytes:
    return json.dumps(_document(device)).encode("ascii")  # with an indent it takes 20 times as long


def _document(device: Device) -> dict[str, object]:
    summed = [
        {
            "task": digest,
            "question": each.question,
            "epsilon": plain(each.epsilon),
            "delta": plain(each.delta),
            "day": each.day.isoformat(),
            "kept": each.kept,
        }
        for digest, each in device.summed.items()
    ]
    return {
        "format": FORMAT,
        "began": device.began.isoformat(),
        "limit": None if device.limit is None else plain(device.limit),
        **({} if device.delta_limit is None else {"delta_limit": plain(device.delta_limit)}),
        "reported": [
            {
                "task": each.task.document,
                "days": {day.isoformat(): count for day, count in each.days.items()},
                "memory": each.memory,
            }
            for each in device.reported.values()
        ],
        **({"summed": summed} if summed else {}),
    }


def _read(content: bytes) -> Device:
    """Read what `_document` makes: a file that says anything else is damaged, and never begun anew in silence."""
    try:
        document = json.loads(content, object_pairs_hook=unrepeated)
        if document["format"] != FORMAT:
            raise ValueError
        reported = [_reported(each) for each in document["reported"]]
        by_task = {each.task.digest: each for each in reported}
        if len(by_task) != len(reported):
            raise ValueError
        summed = {each["task"]: _summed(each) for each in document.get("summed", [])}
        if len(summed) != len(document.get("summed", [])):
            raise ValueError
        return Device(
            began=date.fromisoformat(document["began"]),
            limit=_limit(document["limit"], _LIMIT),
            delta_limit=_limit(document.get("delta_limit"), _DELTA),
            reported=by_task,
            summed=summed,
        )
    except (TaskRefused, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise DeviceRefused(
            f"The device's file is damaged, empty, or not of format {FORMAT}, so nobody knows how much this device "
            f"has revealed. "
            "Nothing was sent. Do not use an older copy or a new file: it counts too little, and draws remembered "
            "answers again, which reveals more."
        ) from None


def _reported(part: Mapping[str, Mapping[str, object]]) -> Reported:
    """Read one task's part; a task that remembers never leaves its memory empty, for it would draw again."""
    if not all(isinstance(part[name], dict) for name in ("task", "days", "memory")):
        raise ValueError
    days = {date.fromisoformat(day): _count(count) for day, count in part["days"].items()}
    one = Reported(task=task_of(dict(part["task"])), days=days, memory=dict(part["memory"]))
    if len(days) != len(part["days"]):  # a day that is written in two ways
        raise ValueError
    if one.task.asked.remembers != bool(one.memory) or one.until() > MOST_REPORTS:
        raise ValueError
    return one


def _summed(part: Mapping[str, object]) -> Summed:
    question, epsilon, kept = part["question"], part["epsilon"], part["kept"]
    if not isinstance(question, str) or not isinstance(epsilon, str) or not isinstance(kept, dict):
        raise ValueError
    if not _LIMIT.fullmatch(epsilon):
        raise ValueError
    day = date.fromisoformat(str(part["day"]))
    return Summed(question=question, epsilon=Decimal(epsilon), delta=_delta(part, kept), day=day, kept=kept)


def _delta(part: Mapping[str, object], kept: Mapping[str, object]) -> Decimal:
    """Read the δ of a sum; earlier versions left it to what the client of sums keeps, as an exact text such as 1/3."""
    text = part.get("delta", kept.get("delta"))
    if not isinstance(text, str) or not _EXACT.fullmatch(text):
        raise ValueError
    delta = Fraction(text)
    if delta > 1:
        raise ValueError
    return delta_up(delta)


def _limit(text: object, pattern: re.Pattern[str]) -> Decimal | None:
    if text is None:
        return None
    if not isinstance(text, str) or not pattern.fullmatch(text):
        raise ValueError
    return Decimal(text)


def _count(number: object) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise ValueError
    return number

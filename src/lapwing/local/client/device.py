"""What this device has revealed so far, and what it keeps between reports: one small file, for its owner alone.

Theory of operation. The file has every task that was reported to, how many reports left on each day, and what the
task's mechanism keeps. It is written anew and put in the place of the old one (fsync, rename, fsync of the folder)
*before* a report is returned: whatever crashes, no report leaves that is not counted, and none is drawn from a memory
that is not kept. A crash in between counts a report that never left. Whoever writes holds a lock, so that two processes
add up. Nothing is appended: what is needed no more, such as the answer of the period before, is in the file no more.

The file is as secret as the answers (mode 0600). Without it a device is new: it counts from zero, though what it said
before stays said. It is for POSIX systems; the other files of this folder are for all.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Final, final

from .answers import plain
from .asked import Answer
from .reading import task_of
from .refusals import TaskRefused
from .reports import report_with_memory
from .rules import Memory, epsilon_up
from .tasks import Task
from .words import Read

FORMAT: Final = 1
_OTHERS: Final = 0o077


class DeviceRefused(ValueError):
    """The device's file cannot be used; nothing was sent."""


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
class Device:
    """What a device has revealed since its file was begun.

    Args: began: the day. limit: an ε that its owner does not want to exceed, or None. reported: by the task's id.
    """

    began: date
    limit: Decimal | None = None
    reported: Mapping[str, Reported] = field(default_factory=dict)

    def epsilon(self, day: date | None = None) -> Decimal | None:
        """Return ε of all that left up to a day together, whatever the answers were; None if there is no bound.

        The ε of tasks add up, whatever they ask: neighbours are any two lives of the respondent.
        """
        each = [one.epsilon(one.until(day)) for one in self.reported.values()]
        known = [epsilon for epsilon in each if epsilon is not None]
        return sum(known, Decimal(0)) if len(known) == len(each) else None

    def epsilon_unchanged(self, day: date | None = None) -> Decimal:
        """Return the same, which holds **only if no answer that a task keeps noisy ever changed**."""
        each = (one.epsilon_unchanged(one.until(day)) for one in self.reported.values())
        return sum(each, Decimal(0))

    def days(self) -> list[date]:
        """Return the days on which reports left, in order."""
        return sorted({day for one in self.reported.values() for day in one.days})

    def of(self, task: Task) -> Reported:
        """Return what was reported to a task."""
        return self.reported.get(task.id, Reported(task=task))


def period_of(task: Task, today: date) -> int:
    """Return the number of a task's period on a day, from 1; a task without periods has one only."""
    days = dict(task.parameters).get("days")
    return 1 if days is None else (today - task.opens).days // days + 1


def report_from_device(path: str, task: Task, answer: Answer, read: Read, today: date) -> bytes | None:
    """Return the report of an answer once the file has it: what it costs, and what is to be kept. None if none is due.

    Guarantee: as of `report_with_memory`. Whether the limit is reached depends on the numbers of reports alone, never
        on answers: so the bound for answers that may change is compared with it.
    Args: path: of the device's file, which is begun if there is none.
    Raises: DeviceRefused if the file cannot be used. LimitReached if it would reveal too much. AnswerRefused as
        `report`.
    """
    with _held(path) as given:
        device = _read(given) if given else Device(began=today)
        before = device.of(task)
        _check_limit(device, before)
        line, memory = report_with_memory(task, answer, read, before.memory, period_of(task, today))
        days = before.days if line is None else {**before.days, today: before.days.get(today, 0) + 1}
        after = replace(before, days=days, memory=memory)
        _write(path, replace(device, reported={**device.reported, task.id: after}))
    return line


def read_device(path: str) -> Device:
    """Read a device's file.

    Raises: DeviceRefused if there is none, it is damaged, or others may read it.
    """
    given = b""
    with suppress(FileNotFoundError), open(path, "rb") as file:
        _check_mode(file.fileno())
        given = file.read()
    if not given:  # as a first report that was refused leaves it
        raise DeviceRefused("There is no such file, or nothing in it: this device knows of no report.")
    return _read(given)


def set_limit(path: str, limit: Decimal | None, today: date) -> Device:
    """Set the most that a device may reveal, or None for no limit; what has left stays said."""
    with _held(path) as given:
        device = replace(_read(given) if given else Device(began=today), limit=limit)
        _write(path, device)
    return device


def _check_limit(device: Device, before: Reported) -> None:
    """Refuse a report if all tasks together, with one report more of this one, exceed the limit or have no bound."""
    if device.limit is None:
        return
    others = replace(device, reported={key: each for key, each in device.reported.items() if key != before.task.id})
    total, more = others.epsilon(), before.epsilon(before.until() + 1)
    if total is None or more is None or total + more > device.limit:
        then = "no bound" if total is None or more is None else f"epsilon {plain(total + more)}"
        raise LimitReached(
            f"With this report the device would have revealed {then} in all, above its limit of {plain(device.limit)}; "
            "nothing was sent."
        )


@contextmanager
def _held(path: str) -> Iterator[bytes]:
    """Hold a file's lock and give its content, empty for a new one.

    The file may have been replaced while this waited for the lock; then it waits for the lock of the new one.
    """
    real = os.path.realpath(path)
    while True:
        handle = os.open(real, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if _is_at(file.fileno(), real):
                _check_mode(file.fileno())
                yield file.read()
                return


def _is_at(handle: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def _check_mode(handle: int) -> None:
    if os.fstat(handle).st_mode & _OTHERS:
        raise DeviceRefused("Others may read the device's file; take that from them (chmod 600). Nothing was sent.")


def _write(path: str, device: Device) -> None:
    """Put a new file in the place of the old one, durably; the caller holds the lock."""
    real = os.path.realpath(path)
    new = f"{real}.new"
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(json.dumps(_document(device), indent=1).encode("ascii"))
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, real)
    folder = os.open(os.path.dirname(real), os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _document(device: Device) -> dict[str, object]:
    return {
        "format": FORMAT,
        "began": device.began.isoformat(),
        "limit": None if device.limit is None else str(device.limit),
        "reported": [
            {
                "task": each.task.document,
                "days": {day.isoformat(): count for day, count in each.days.items()},
                "memory": each.memory,
            }
            for each in device.reported.values()
        ],
    }


def _read(given: bytes) -> Device:
    """Read what `_document` makes: a file that says anything else is damaged, and never begun anew in silence."""
    try:
        document = json.loads(given)
        if document["format"] != FORMAT:
            raise ValueError
        reported = [_reported(each) for each in document["reported"]]
        return Device(
            began=date.fromisoformat(document["began"]),
            limit=None if document["limit"] is None else Decimal(document["limit"]),
            reported={each.task.id: each for each in reported},
        )
    except (TaskRefused, ValueError, TypeError, KeyError, AttributeError, InvalidOperation, RecursionError):
        raise DeviceRefused(
            f"The device's file is damaged, or not of format {FORMAT}: what it revealed is not known. "
            "Nothing was sent; put a copy of it there, or remove it and begin anew."
        ) from None


def _reported(given: Mapping[str, Mapping[str, object]]) -> Reported:
    if not all(isinstance(given[part], dict) for part in ("task", "days", "memory")):
        raise ValueError
    days = {date.fromisoformat(day): _count(count) for day, count in given["days"].items()}
    return Reported(task=task_of(dict(given["task"])), days=days, memory=dict(given["memory"]))


def _count(number: object) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise ValueError
    return number

"""Collecting reports: each line is taken, or rejected with a reason, whatever the others are."""

import json
import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Self, TypeVar, final

from lapwing.errors import InvalidParameter
from lapwing.local import client
from lapwing.local.client.task_text import unrepeated
from lapwing.local.frequencies.randomizer import Randomizer
from lapwing.local.mechanism import Mechanism
from lapwing.local.registry import mechanism_of, randomizer_of

KEYS: Final = ("v", "task", "id", "m", "r")
_KEYS: Final = frozenset(KEYS)
Kind = TypeVar("Kind", bound=Mechanism)
MOST_LINE: Final = 1 << 17
"""Bytes of a report whose length does not follow from the number of values."""
_READER: Final = json.JSONDecoder(object_pairs_hook=unrepeated)
_IDENTITY: Final = re.compile(r"[0-9a-f]{32}")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A line that is no report of the task: its number, from 1, and why."""

    line: int
    reason: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Collected(Generic[Kind]):
    """The reports of a task: what they say, as its mechanism gathers it, and the lines that were rejected."""

    task: client.Task
    mechanism: Kind
    reports: Any = field(repr=False)
    rejected: tuple[Rejected, ...]


def collect(task: client.Task, lines: Iterable[bytes]) -> Collected[Randomizer]:
    """Read the reports of a task that asks for one of a list of values.

    Raises:
        InvalidParameter: For another task: `collect_for` is for all.
    """
    return collect_for(randomizer_of(task), task, lines)


def collect_for(mechanism: Kind, task: client.Task, lines: Iterable[bytes]) -> Collected[Kind]:
    """Read reports of the mechanism of a task, one a line, as `client.report` writes them; empty lines are passed over.

    Anybody may have written a line, so no line can spoil the others. If a line is no report of this task, or repeats
    the identity of an earlier one, only this line is rejected. Identities are dropped.

    Raises:
        InvalidParameter: If the mechanism is not the task's, or a line is not bytes.
    """
    if mechanism_of(task.asked) != mechanism:
        raise InvalidParameter(f"The task has the mechanism {task.mechanism} with other parameters or other answers.")
    said: list[Hashable] = []
    rejected: list[Rejected] = []
    seen: set[str] = set()
    expected = Expected.of(task)
    for number, line in enumerate(lines, 1):
        if not isinstance(line, bytes):
            raise InvalidParameter(
                f"Line {number} is a {type(line).__name__}; reports are bytes, as `client.report` returns them. Open "
                f"files with mode 'rb', or use .encode()."
            )
        if not line.strip():
            continue
        try:
            identity, what = parse_report(line, expected)
            value = mechanism.read(what)
            if identity in seen:
                raise ValueError("the id was seen before")
        except ValueError as wrong:
            rejected.append(Rejected(line=number, reason=str(wrong)))
        else:
            seen.add(identity)
            said.append(value)
    return Collected(task=task, mechanism=mechanism, reports=mechanism.gather(said), rejected=tuple(rejected))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What every report of a task has: the task's id, the mechanism's name, and no more than so many bytes."""

    task: str
    mechanism: str
    most: int

    @classmethod
    def of(cls, task: client.Task) -> Self:
        """Return what reports of a task have; computed once, as the id is a digest of the whole task."""
        most = 400 + 20 * len(task.values) if task.values else MOST_LINE
        return cls(task=task.id, mechanism=task.mechanism, most=most)


def parse_report(line: bytes, expected: Expected) -> tuple[str, object]:
    """Return the identity of a report of a task, and what it says, which its mechanism has yet to check.

    Raises:
        ValueError: With one of a few constant reasons.
    """
    if len(line) > expected.most:
        raise ValueError(f"the line has more than {expected.most} bytes")
    report = _object(line)
    if report.keys() != _KEYS:
        raise ValueError(f"the keys must be {', '.join(KEYS)}")
    if isinstance(report["v"], bool) or report["v"] != client.VERSION or not isinstance(report["v"], int):
        raise ValueError(f"v must be {client.VERSION}")
    if report["task"] != expected.task:
        raise ValueError("the report is of another task")
    if report["m"] != expected.mechanism:
        raise ValueError(f"m must be {expected.mechanism}")
    identity = report["id"]
    if not isinstance(identity, str) or not _IDENTITY.fullmatch(identity):
        raise ValueError("id must be 32 digits 0-9, a-f")
    return identity, report["r"]


def _object(line: bytes) -> dict[str, object]:
    try:
        report = _READER.decode(line.decode("utf-8"))
    except (ValueError, RecursionError):
        report = None
    if not isinstance(report, dict):
        raise ValueError("the line is not a JSON object in UTF-8")
    return report

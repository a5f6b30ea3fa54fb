"""Collecting reports: each line is taken, or rejected with a reason, whatever the others are."""

import json
import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar, final

from lapwing.errors import InvalidParameter
from lapwing.local import client
from lapwing.local.client.task_text import unrepeated
from lapwing.local.frequencies.randomizer import Randomizer
from lapwing.local.mechanism import Mechanism
from lapwing.local.registry import mechanism_of, randomizer_of

KEYS: Final = ("v", "task", "id", "m", "r")
Kind = TypeVar("Kind", bound=Mechanism)
MOST_LINE: Final = 1 << 17
"""Bytes of a report whose length does not follow from the number of values."""
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

    Raises: InvalidParameter for another task: `collect_for` is for all.
    """
    return collect_for(randomizer_of(task), task, lines)


def collect_for(mechanism: Kind, task: client.Task, lines: Iterable[bytes]) -> Collected[Kind]:
    """Read reports of the mechanism of a task, one a line, as `client.report` writes them; empty lines are passed over.

    Anybody may have written a line, so no line can spoil the others: one that is no report of this task, or repeats the
    identity of an earlier one, is rejected alone. Identities are dropped.

    Raises: InvalidParameter if the mechanism is not the task's.
    """
    if mechanism_of(task.asked) != mechanism:
        raise InvalidParameter(
            f"The task has the mechanism {task.mechanism} with other parameters, or for other answers."
        )
    said: list[Hashable] = []
    rejected: list[Rejected] = []
    seen: set[str] = set()
    most = 400 + 20 * len(task.values) if task.values else MOST_LINE
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            identity, value = _read(line, most, task, mechanism)
            if identity in seen:
                raise ValueError("the id was seen before")
        except ValueError as wrong:
            rejected.append(Rejected(line=number, reason=str(wrong)))
        else:
            seen.add(identity)
            said.append(value)
    return Collected(task=task, mechanism=mechanism, reports=mechanism.gather(said), rejected=tuple(rejected))


def _read(line: bytes, most: int, task: client.Task, mechanism: Mechanism) -> tuple[str, Hashable]:
    if len(line) > most:
        raise ValueError(f"the line has more than {most} bytes")
    report = _object(line)
    if sorted(report) != sorted(KEYS):
        raise ValueError(f"the keys must be {', '.join(KEYS)}")
    if isinstance(report["v"], bool) or report["v"] != client.VERSION or not isinstance(report["v"], int):
        raise ValueError(f"v must be {client.VERSION}")
    if report["task"] != task.id:
        raise ValueError("the report is of another task")
    if report["m"] != task.mechanism:
        raise ValueError(f"m must be {task.mechanism}")
    identity = report["id"]
    if not isinstance(identity, str) or not _IDENTITY.fullmatch(identity):
        raise ValueError("id must be 32 digits 0-9, a-f")
    return identity, mechanism.read(report["r"])


def _object(line: bytes) -> dict[str, object]:
    try:
        report = json.loads(line.decode("utf-8"), object_pairs_hook=unrepeated)
    except (ValueError, RecursionError):
        report = None
    if not isinstance(report, dict):
        raise ValueError("the line is not a JSON object in UTF-8")
    return report

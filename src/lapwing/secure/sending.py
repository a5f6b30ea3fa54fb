"""Send an answer to all servers of a task: each gets its own part, once, whatever fails in between."""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Final

from lapwing.errors import InvalidParameter, ServiceFault
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.secure.device import acknowledged_on_device, answer_on_device, records_of, waiting_on_device
from lapwing.secure.task import Task
from lapwing.secure.transport import SECONDS, Line, lines

_BODY: Final = 1 << 20
"""Bytes of a body, about; servers take sixteen times as many, and one record in any case."""


def send(
    task: Task,
    answer: str | None,
    device: Path,
    *,
    limit: Fraction | None = None,
    entropy: Entropy = SYSTEM,
    seconds: float = SECONDS,
) -> None:
    """Answer a task from a device; or, without an answer, go on sending the one that some server did not get.

    Args: device: its file, which is written before anything is sent; limit: the ε that it is not to exceed.
    Raises: ServiceFault if a server is missing, after all others got their parts: send again then. QueryRefused if the
        device answered already, or may not reveal so much. InvalidParameter if that may not be answered.
    """
    if answer is not None:
        waiting = answer_on_device(device, task, answer, limit=limit, entropy=entropy)
    else:
        found = waiting_on_device(device, task)
        if found is None:
            raise InvalidParameter("This device has not answered the task yet; give an answer.")
        waiting = found
    missing: list[ServiceFault] = []
    with lines(task, seconds) as each:
        for line in each:
            if line.server.name in waiting:
                try:
                    line.send(waiting[line.server.name])
                except ServiceFault as fault:
                    missing.append(fault)
                else:
                    acknowledged_on_device(device, task, line.server.name)
    if missing:
        raise missing[0]


def send_all(task: Task, answers: Sequence[str], *, entropy: Entropy = SYSTEM, seconds: float = SECONDS) -> None:
    """Send the answers of many people, each under an id of its own: for tests and simulations.

    Nothing is kept of them: after a fault, sending again would send other people.
    """
    people = [records_of(task, answer, entropy) for answer in answers]
    with lines(task, seconds) as each:
        for line in each:
            _send_records(line, [records[line.server.name] for records in people])


def _send_records(line: Line, records: Sequence[bytes]) -> None:
    batch = max(1, _BODY // max(map(len, records), default=1))
    for at in range(0, len(records), batch):
        line.send(b"".join(records[at : at + batch]))

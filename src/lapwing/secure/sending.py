"""Send an answer to all servers of a task, or through a relay: each gets its own part, once, whatever fails."""

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from lapwing.errors import InvalidParameter, QueryRefused, RefusalCause, ServiceFault
from lapwing.exact.entropy import SYSTEM, Entropy
from lapwing.machine.one_address import opened
from lapwing.secure.device import acknowledged_on_device, answer_on_device, records_of, waiting_on_device
from lapwing.secure.repeating_device import acknowledged_day, answer_today, waiting_days
from lapwing.secure.sealing import envelope_of
from lapwing.secure.task import Task
from lapwing.secure.transport import SECONDS, TaskServerConnection, lines, refused

_BODY: Final = 1 << 20
"""Bytes of a body, about; servers take sixteen times as many, and one record in any case."""


def send(
    task: Task,
    answer: str | None,
    device: Path,
    *,
    limit: Fraction | None = None,
    delta_limit: Fraction | None = None,
    accept_delta: Fraction | None = None,
    relay: str | None = None,
    entropy: Entropy = SYSTEM,
    seconds: float = SECONDS,
) -> None:
    """Answer a task from a device; or, without an answer, go on sending the one that some server did not get.

    If the task repeats, the answer is today's (`send_today`).

    Args:
        device: Its file, which is written before anything is sent.
        limit: The ε and the δ that it is not to exceed.
        delta_limit: The ε and the δ that it is not to exceed.
        accept_delta: The δ that its owner accepts for this task (`Task.require_small_delta`).
        relay: The address of one, which gets a sealed part for each server in their stead.

    Raises:
        ServiceFault: If a server, or the relay, is missing, after all others got their parts: send again then.
        QueryRefused: If the device answered already, or may not reveal this much.
        InvalidParameter: If that may not be answered, or the relay's address is none.
    """
    if relay is not None:
        require_relay(relay)
    if task.repeats:
        if relay is not None:
            raise InvalidParameter("A task that repeats has no relay: leave it out.")
        send_today(task, answer, device, limit=limit, delta_limit=delta_limit, entropy=entropy, seconds=seconds)
        return
    if answer is not None:
        waiting = answer_on_device(
            device, task, answer, limit=limit, delta_limit=delta_limit, accept_delta=accept_delta, entropy=entropy
        )
    else:
        found = waiting_on_device(device, task)
        if found is None:
            raise InvalidParameter("This device has not answered the task yet; give an answer.")
        waiting = found
    if relay is not None:
        if waiting:
            whole = len(waiting) == len(task.servers)
            if not whole:
                raise InvalidParameter("Some servers already have their parts; send the others theirs without a relay.")
            post(task, relay, envelope_of(task, dict(waiting)), seconds)
            for name in waiting:
                acknowledged_on_device(device, task, name)
        return
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


def send_today(
    task: Task,
    answer: str | None,
    device: Path,
    *,
    limit: Fraction | None = None,
    delta_limit: Fraction | None = None,
    entropy: Entropy = SYSTEM,
    seconds: float = SECONDS,
) -> None:
    """Answer a task that repeats for today, and send what some server did not get of the days before.

    Raises:
        ServiceFault: If a server is missing, after all others got their parts.
        QueryRefused: If today's answer is given already, or the device answered on as many days as the task allows.
    """
    if answer is not None:
        answer_today(device, task, answer, limit=limit, delta_limit=delta_limit, entropy=entropy)
    missing: list[ServiceFault] = []
    for day, waiting in waiting_days(device, task).items():
        with lines(task.on(day), seconds) as each:
            for line in each:
                if line.server.name not in waiting:
                    continue
                try:
                    line.send(waiting[line.server.name])
                except ServiceFault as fault:
                    missing.append(fault)
                    continue
                except QueryRefused as refused:  # the day was closed without this device: it comes too late
                    if refused.cause is not RefusalCause.TASK_CLOSED:
                        raise
                acknowledged_day(device, task, day, line.server.name)
    if missing:
        raise missing[0]


def require_relay(relay: str) -> None:
    """Refuse what is no address of a relay: over TLS, unless it is on this machine.

    Without TLS whoever listens learns what the relay does, who sends and when, and no more.
    """
    parts = urlsplit(relay)
    near = parts.hostname in ("127.0.0.1", "::1", "localhost")
    if parts.scheme not in ("https", "http") or not parts.hostname or (parts.scheme == "http" and not near):
        raise InvalidParameter("A relay's address begins with https://, like https://relay.example.org.")


def post(task: Task, relay: str, envelopes: bytes, seconds: float = SECONDS) -> int:
    """Bring envelopes to a relay, and return how many were new once it holds them durably. Follows no redirect.

    Raises:
        ServiceFault: If it cannot be reached.
        LapwingError: What it refuses.
    """
    address = f"{relay.rstrip('/')}/secure/{task.digest}/answers"
    require_relay(relay)  # so that no other scheme is opened
    headers = {"Content-Type": "application/octet-stream"}
    request = urllib.request.Request(address, envelopes, headers, method="POST")  # noqa: S310
    try:
        with opened(request, seconds) as response:
            return int(json.loads(response.read(1 << 16))["new"])
    except urllib.error.HTTPError as error:
        with error:
            raise refused("the relay", error.read(1 << 16)) from None
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        raise ServiceFault("The relay cannot be reached. Try again later: nothing is counted twice.") from None


def send_all(task: Task, answers: Sequence[str], *, entropy: Entropy = SYSTEM, seconds: float = SECONDS) -> None:
    """Send the answers of many people, each under an id of its own: for tests and simulations.

    Nothing of them is stored: after a fault, sending again would send other people.
    """
    people = [records_of(task, answer, entropy) for answer in answers]
    with lines(task, seconds) as each:
        for line in each:
            _send_records(line, [records[line.server.name] for records in people])


def _send_records(line: TaskServerConnection, records: Sequence[bytes]) -> None:
    batch = max(1, _BODY // max(map(len, records), default=1))
    for at in range(0, len(records), batch):
        line.send(b"".join(records[at : at + batch]))

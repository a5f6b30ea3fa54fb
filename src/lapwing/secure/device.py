"""What a client's device keeps: for each task its id and its parts, until all servers have them, and what it cost.

Theory of operation. The file is written before anything is sent. So whatever crashes, an answer is split once: sent
again it is the same parts under the same id, which servers count once; and no second answer to a task leaves the
device. When every server has acknowledged its part, the parts are forgotten. What all tasks together reveal is added up
and held against the owner's limit before a new answer is taken. Like any file, it may be lost or replaced by an older
copy: then the device counts too little.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Final, final

from lapwing.errors import Fault, InvalidParameter, QueryRefused
from lapwing.exact.entropy import SYSTEM, Entropy, read_exactly
from lapwing.local.client.private_file import DeviceRefused, held, put
from lapwing.privacy.amounts import read, written
from lapwing.secure.field import on_lines, split
from lapwing.secure.task import Task
from lapwing.secure.wire import ID_BYTES, record_of

FORMAT: Final = "lapwing secure device 1"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What was answered to one task: its cost, and the records that some server does not have yet, by server."""

    epsilon: Fraction
    delta: Fraction
    waiting: Mapping[str, bytes] = field(default_factory=dict, repr=False)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """What a device has answered, by the task's digest. Args: limit: the ε that its owner does not want to exceed."""

    limit: Fraction | None = None
    sent: Mapping[str, Sent] = field(default_factory=dict)

    @property
    def epsilon(self) -> Fraction:
        """ε of all answers together: those of tasks add up, as neighbours are any two lives of the owner."""
        return sum((each.epsilon for each in self.sent.values()), Fraction(0))

    @property
    def delta(self) -> Fraction:
        """δ of all answers together."""
        return sum((each.delta for each in self.sent.values()), Fraction(0))


def records_of(task: Task, answer: str, entropy: Entropy = SYSTEM) -> dict[str, bytes]:
    """Return a fresh client's record for each server, by the server's name.

    Raises: InvalidParameter if that may not be answered.
    """
    cells = task.encode(answer)
    client = read_exactly(entropy, ID_BYTES)
    parts = on_lines(cells, entropy) if task.checked else split(cells, len(task.servers), entropy)
    return {server.name: record_of(client, part) for server, part in zip(task.servers, parts, strict=True)}


def answer_on_device(
    path: Path, task: Task, answer: str, *, limit: Fraction | None = None, entropy: Entropy = SYSTEM
) -> Mapping[str, bytes]:
    """Return the records to be sent, by server, once the device's file has them.

    Args: limit: to be set, None to keep the one that there is.
    Raises: QueryRefused if the task was answered already, or the limit would be exceeded: then nothing is sent.
        InvalidParameter if that may not be answered. Fault if the file cannot be used.
    """
    with _device(path) as (device, write):
        if task.digest in device.sent:
            raise QueryRefused(
                "This device answered the task already",
                remedy="Nothing was sent. `lapwing secure send --again` sends what a server did not get.",
            )
        device = replace(device, limit=device.limit if limit is None else limit)
        after = device.epsilon + task.epsilon
        if device.limit is not None and after > device.limit:
            raise QueryRefused(
                f"With this answer the device would have revealed epsilon {written(after)} in all, above its limit of "
                f"{written(device.limit)}",
                remedy="Nothing was sent.",
            )
        records = records_of(task, answer, entropy)
        sent = Sent(epsilon=task.epsilon, delta=task.delta, waiting=records)
        write(replace(device, sent={**device.sent, task.digest: sent}))
    return records


def waiting_on_device(path: Path, task: Task) -> Mapping[str, bytes] | None:
    """Return the records that some server does not have yet, by server; None if the task was not answered."""
    with _device(path) as (device, _):
        sent = device.sent.get(task.digest)
    return None if sent is None else sent.waiting


def acknowledged_on_device(path: Path, task: Task, server: str) -> None:
    """Forget the record that a server has."""
    with _device(path) as (device, write):
        sent = device.sent[task.digest]
        waiting = {name: record for name, record in sent.waiting.items() if name != server}
        write(replace(device, sent={**device.sent, task.digest: replace(sent, waiting=waiting)}))


def read_device(path: Path) -> Device:
    """Return what a device has answered.

    Raises: Fault if its file cannot be used.
    """
    with _device(path) as (device, _):
        return device


@contextmanager
def _device(path: Path) -> Iterator[tuple[Device, Callable[[Device], None]]]:
    """Hold a device's file, which is begun if there is none, and give what it says and how it is replaced."""
    try:
        with held(str(path), _content(Device())) as content:
            yield _read(content), lambda device: put(str(path), _content(device))
    except DeviceRefused as error:
        raise Fault(str(error)) from None


def _content(device: Device) -> bytes:
    document = {
        "format": FORMAT,
        "limit": None if device.limit is None else written(device.limit),
        "sent": {
            task: {
                "epsilon": written(sent.epsilon),
                "delta": written(sent.delta),
                "waiting": {name: record.hex() for name, record in sent.waiting.items()},
            }
            for task, sent in device.sent.items()
        },
    }
    return json.dumps(document, indent=1).encode("ascii")


def _read(content: bytes) -> Device:
    """Read what `_content` makes; a file that says anything else is damaged, and never begun anew in silence."""
    try:
        document = json.loads(content)
        if document["format"] != FORMAT:
            raise ValueError
        sent = {
            task: Sent(
                epsilon=read(each["epsilon"], "epsilon"),
                delta=read(each["delta"], "delta"),
                waiting={name: bytes.fromhex(record) for name, record in each["waiting"].items()},
            )
            for task, each in document["sent"].items()
        }
        limit = document["limit"]
        return Device(limit=None if limit is None else read(limit, "limit"), sent=sent)
    except (InvalidParameter, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise Fault(
            "The device's file is damaged, or of another version: what it answered is not known. Nothing was sent."
        ) from None

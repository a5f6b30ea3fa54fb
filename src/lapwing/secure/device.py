"""What a client's device keeps: for each task its id and its parts, until all servers have them, and what it cost.

Theory of operation. The file is that of local reports (`local.client.device`): a person has one limit for all that
leaves the device, whichever road it takes. It is written before anything is sent. So whatever crashes, an answer is
split once: sent again it is the same parts under the same id, which servers count once; and no second answer to a task
leaves the device. When every server has acknowledged its part, the parts are forgotten. Like any file, it may be lost
or replaced by an older copy: then the device counts too little.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Final, final

from lapwing.errors import Fault, InvalidParameter, QueryRefused, RefusalCause
from lapwing.exact.entropy import SYSTEM, Entropy, read_exactly
from lapwing.local.client import device as devices
from lapwing.local.client.device import Device as Ledger
from lapwing.local.client.device import Summed
from lapwing.privacy.amounts import read, written
from lapwing.secure.field import on_lines, split
from lapwing.secure.grid import grid_parts
from lapwing.secure.task import Task
from lapwing.secure.wire import ID_BYTES, record_of

_PLACES: Final = 12
"""Of the ε in the file, rounded up."""
DELTA_PLACES: Final = 24
"""Of its limit of δ, rounded down."""


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
    """The answers of a device, by the task's digest.

    Args:
        limit: The ε and the δ that its owner does not want to exceed.
        delta_limit: The ε and the δ that its owner does not want to exceed.
        epsilon: Of all answers together, local reports among them, as neighbours are any two lives of the owner; None
            if these have no bound.
    """

    limit: Fraction | None = None
    delta_limit: Fraction | None = None
    epsilon: Fraction | None = Fraction(0)
    sent: Mapping[str, Sent] = field(default_factory=dict)

    @property
    def delta(self) -> Fraction:
        """δ of all answers together; local reports have none."""
        return sum((each.delta for each in self.sent.values()), Fraction(0))


def records_of(task: Task, answer: str, entropy: Entropy = SYSTEM) -> dict[str, bytes]:
    """Return a fresh client's record for each server, by the server's name.

    Raises:
        InvalidParameter: If that may not be answered.
    """
    cells = task.encode(answer)
    client = read_exactly(entropy, ID_BYTES)
    if task.grid:
        pieces = grid_parts(cells, entropy)
        return {server.name: client + piece for server, piece in zip(task.servers, pieces, strict=True)}
    parts = on_lines(cells, entropy) if task.checked else split(cells, len(task.servers), entropy)
    return {server.name: record_of(client, part) for server, part in zip(task.servers, parts, strict=True)}


def answer_on_device(
    path: Path,
    task: Task,
    answer: str,
    *,
    limit: Fraction | None = None,
    delta_limit: Fraction | None = None,
    accept_delta: Fraction | None = None,
    entropy: Entropy = SYSTEM,
) -> Mapping[str, bytes]:
    """Return the records to be sent, by server, once the device's file has them.

    Args:
        limit: To be set, None to keep those that there are; with 12 and 24 decimals at most.
        delta_limit: As `limit`.
        accept_delta: See `Task.require_small_delta`.

    Raises:
        QueryRefused: If the task was answered already, its δ is too large, or a limit would be exceeded: nothing is
            sent then.
        InvalidParameter: If that may not be answered, or the task repeats (`repeating_device`).
        Fault: If the file cannot be used.
    """
    if task.repeats:
        raise InvalidParameter("The task repeats: `answer_today` answers it. Nothing was sent.")
    task.require_small_delta(accept_delta)
    with held_ledger(path) as (ledger, write):
        if task.digest in ledger.summed:
            raise QueryRefused(
                "This device answered the task already",
                cause=RefusalCause.ALREADY_REPORTED,
                remedy="Nothing was sent. `lapwing secure send --again` sends what a server did not get.",
            )
        ledger = with_limits(ledger, limit, delta_limit)
        epsilon, delta = affordable(ledger, task)
        records = records_of(task, answer, entropy)
        today, kept = datetime.now(UTC).date(), _kept(task.delta, records)
        summed = Summed(question=task.question, epsilon=epsilon, delta=delta, day=today, kept=kept)
        write(replace(ledger, summed={**ledger.summed, task.digest: summed}))
    return records


def waiting_on_device(path: Path, task: Task) -> Mapping[str, bytes] | None:
    """Return the records that some server does not have yet, by server; None if the task was not answered."""
    sent = read_device(path).sent.get(task.digest)
    return None if sent is None else sent.waiting


def acknowledged_on_device(path: Path, task: Task, server: str) -> None:
    """Forget the record that a server has."""
    with held_ledger(path) as (ledger, write):
        summed = ledger.summed[task.digest]
        sent = _sent(summed)
        kept = _kept(sent.delta, {name: record for name, record in sent.waiting.items() if name != server})
        write(replace(ledger, summed={**ledger.summed, task.digest: replace(summed, kept=kept)}))


def read_device(path: Path) -> Device:
    """Return what a device has answered.

    Raises:
        Fault: If its file cannot be used.
    """
    with held_ledger(path) as (ledger, _):
        epsilon, limit, delta_limit = ledger.epsilon(), ledger.limit, ledger.delta_limit
        return Device(
            limit=None if limit is None else Fraction(limit),
            delta_limit=None if delta_limit is None else Fraction(delta_limit),
            epsilon=None if epsilon is None else Fraction(epsilon),
            sent={digest: _sent(summed) for digest, summed in ledger.summed.items()},
        )


def with_limits(ledger: Ledger, limit: Fraction | None, delta_limit: Fraction | None) -> Ledger:
    """Return a device's ledger with the limits that its owner sets now; None keeps the old one."""
    return replace(
        ledger,
        limit=ledger.limit if limit is None else decimal_down(limit),
        delta_limit=ledger.delta_limit if delta_limit is None else decimal_down(delta_limit, DELTA_PLACES),
    )


def affordable(ledger: Ledger, task: Task) -> tuple[Decimal, Decimal]:
    """Return ε and δ of a task as the file has them, rounded up.

    Raises:
        QueryRefused: If they are beyond the owner's limits.
    """
    epsilon, delta = -decimal_down(-task.epsilon), devices.delta_up(task.delta)
    try:
        devices.require_within(ledger, epsilon, delta)
    except devices.LimitReached as refused:
        raise QueryRefused(
            str(refused).removesuffix("; nothing was sent."),
            cause=RefusalCause.REPORT_REFUSED,
            remedy="Nothing was sent.",
        ) from None
    return epsilon, delta


@contextmanager
def held_ledger(path: Path) -> Iterator[tuple[Ledger, Callable[[Ledger], None]]]:
    """Hold a device's file, which is begun if there is none, and give what it says and how it is replaced."""
    try:
        with devices.held_device(str(path), datetime.now(UTC).date()) as held:
            yield held
    except devices.DeviceRefused as error:
        raise Fault(str(error)) from None


def decimal_down(number: Fraction, places: int = _PLACES) -> Decimal:
    """Return a number with the decimals that the file has, rounded down."""
    return Decimal(number.numerator * 10**places // number.denominator).scaleb(-places)


def _kept(delta: Fraction, waiting: Mapping[str, bytes]) -> dict[str, object]:
    return {"delta": written(delta), "waiting": {name: record.hex() for name, record in waiting.items()}}


def _sent(summed: Summed) -> Sent:
    """Read what `_kept` makes."""
    try:
        delta, waiting = summed.kept["delta"], summed.kept["waiting"]
        if not isinstance(delta, str) or not isinstance(waiting, dict):
            raise ValueError
        records = {name: bytes.fromhex(record) for name, record in waiting.items()}
        return Sent(epsilon=Fraction(summed.epsilon), delta=read(delta, "delta"), waiting=records)
    except (InvalidParameter, ValueError, TypeError, KeyError):
        raise Fault(
            "The device's file is damaged, so Lapwing does not know what it sent to a secure sum. Nothing was sent."
        ) from None

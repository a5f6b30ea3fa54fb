"""What the organiser does: write the task, close it, and read the result. The organiser is trusted with none of it.

Closing has two rounds. In the first every server stops taking answers, for good, and tells its set of clients; those
that all servers have make the closed set, which is the same whenever it is worked out. In the second each server is
told that set, and releases its part. Between them, if the noise is joint, the servers draw it, through the organiser
(`noise_rounds`). Either round may be done again: what is done is not done twice.
"""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import sha256
from typing import final

from lapwing.errors import InvalidParameter, QueryRefused, RefusalCause
from lapwing.exact.entropy import SYSTEM, Entropy, read_exactly
from lapwing.privacy.amount_texts import short
from lapwing.secure.asked import Asked
from lapwing.secure.checking import liars, require_opened
from lapwing.secure.field import joined
from lapwing.secure.identity import read_identity
from lapwing.secure.noise_rounds import drawn_together
from lapwing.secure.repetition import TaskDays
from lapwing.secure.servers import Server
from lapwing.secure.task import Task, joint_delta
from lapwing.secure.transport import SECONDS, TaskServerConnection, at_once, lines
from lapwing.secure.wire import ID_BYTES, ServerRelease, clients_in, opening_of, set_of

_KEY_BYTES = 32


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """The joint release of all servers: noisy totals of one set of clients, in steps.

    Args:
        dropped: How many clients failed the test, known to who closes a task whose answers are checked.
    """

    task: Task
    clients: int
    clients_digest: str
    cells: tuple[int, ...]
    dropped: int | None = None


def new_task(
    *,
    question: str,
    asked: Asked,
    epsilon: Fraction,
    delta: Fraction,
    least_clients: int,
    certificates: Sequence[str],
    checked: bool = False,
    joint: bool = False,
    grid: bool = False,
    repeats: TaskDays | None = None,
    entropy: Entropy = SYSTEM,
) -> tuple[Task, str]:
    """Return a task and the organiser's key, which closes it.

    Args:
        certificates: Of the servers, as `identity.make_identity` makes them.
        delta: 0 if the noise is joint, whose delta follows; no client accepts more than one over `least_clients`.
        repeats: The days of a task that is asked every day.

    Raises:
        InvalidParameter: If no client would answer, or a part is out of its range.
    """
    if delta * least_clients > 1:
        raise InvalidParameter(
            f"The delta is {short(delta)}, and no client accepts a delta above 1/{least_clients}, one over the least "
            f"number of clients. A larger delta could publish somebody's exact answer. Give a smaller delta."
        )
    key = read_exactly(entropy, _KEY_BYTES).hex()
    servers = []
    for certificate in certificates:
        name, address = read_identity(certificate)
        digest = sha256(close_key(key, name).encode()).hexdigest()
        servers.append(Server(name=name, address=address, certificate=certificate, close_key=digest))
    task = Task(
        question=question,
        asked=asked,
        epsilon=epsilon,
        delta=joint_delta(asked) if joint and not delta else delta,
        least_clients=least_clients,
        servers=tuple(servers),
        checked=checked,
        joint=joint,
        grid=grid,
        repeats=repeats,
    )
    return task, key


def close_key(key: str, server: str) -> str:
    """Return the key that one server is shown: with it, that server could not close another one."""
    return hmac.new(key.encode(), f"lapwing secure close 1 {server}".encode(), sha256).hexdigest()


def close(task: Task, key: str, seconds: float = SECONDS) -> Totals:
    """Close a task at all servers, and return its totals. A server that was missing is named; close again then.

    Raises:
        ServiceFault: If a server is missing: nothing more is released then.
        QueryRefused: If too few clients are at all servers.
        NotAuthorised: If who asks may not do this.
        BudgetExhausted: If the budget does not bear the loss.
    """
    with lines(task, seconds) as each:
        for line in each:
            line.progress()  # so that a missing server is noticed before any other stops taking answers
        sets = [set(clients_in(line.freeze(close_key(key, line.server.name)))) for line in each]
        held = set_of(set.intersection(*sets))
        _require_enough(task, held, "are at all servers")
        clients = _passing(task, each, key, held) if task.checked else held
        _require_enough(task, clients, "passed the test")
        keys = [close_key(key, line.server.name) for line in each]
        messages = drawn_together(task, each, keys, clients) if task.joint else [b""] * len(each)
        bodies = {line: (got + clients, shown) for line, got, shown in zip(each, messages, keys, strict=True)}
        found = add_up(task, at_once(each, lambda line: line.release(*bodies[line])))
        return replace(found, dropped=(len(held) - len(clients)) // ID_BYTES) if task.checked else found


def _require_enough(task: Task, clients: bytes, which: str) -> None:
    count = len(clients) // ID_BYTES
    if count < task.least_clients:
        raise QueryRefused(
            f"{count} clients {which}, and the task needs {task.least_clients}",
            cause=RefusalCause.TOO_FEW_CLIENTS,
            remedy="Nothing was released, and nothing will be.",
        )


def _passing(task: Task, each: Sequence[TaskServerConnection], key: str, clients: bytes) -> bytes:
    """Return those clients of a set whose parts are parts of an answer."""
    nonces = [line.nonce(close_key(key, line.server.name)) for line in each]

    def opened(ranges: Sequence[tuple[int, int]]) -> list[int]:
        body = opening_of(nonces, ranges, clients)
        sums = at_once(each, lambda line: line.test(body, close_key(key, line.server.name)))
        return require_opened(sums, task.tests, task.modulus)

    members = clients_in(clients)
    failed = set(liars(len(members), opened))
    return set_of(member for place, member in enumerate(members) if place not in failed)


def totals(task: Task, seconds: float = SECONDS) -> Totals:
    """Return the totals of a closed task, as anybody may read them.

    Raises:
        NotFound: If a server released nothing yet.
        ServiceFault: If one is missing.
    """
    with lines(task, seconds) as each:
        return add_up(task, [line.released() for line in each])


def add_up(task: Task, releases: Sequence[ServerRelease]) -> Totals:
    """Add up what the servers released of one set of clients.

    Raises:
        InvalidParameter: If they are not of one set: then they add up to nothing that means anything.
    """
    first = releases[0]
    for server, release in zip(task.servers, releases, strict=True):
        if (release.clients_digest, release.clients) != (first.clients_digest, first.clients):
            raise InvalidParameter(
                f"The servers {task.servers[0].name} and {server.name} released totals of different sets of clients, "
                "which do not add up. Close the task again."
            )
    cells = tuple(joined([release.cells for release in releases], task.modulus))
    return Totals(task=task, clients=first.clients, clients_digest=first.clients_digest, cells=cells)

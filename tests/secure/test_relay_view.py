"""The exact law of what a relay sees, alone and with servers, where sealing hides all but who opens and how long it is.

Shares and envelopes are made by the shipped code, with every outcome of its randomness over a field of five. A sealed
part that the coalition cannot open is replaced by what an ideal seal shows: for whom it is, bound to what, how long.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from itertools import combinations, product
from pathlib import Path
from typing import Any, Final

import pytest

from lapwing.exact.entropy import Entropy, read_exactly
from lapwing.secure import device, sealing
from lapwing.secure.field import split
from lapwing.secure.numbers import number_between
from lapwing.secure.task import Task
from lapwing.secure.wire import CELL_BYTES, ID_BYTES, cells_of
from tests.secure.conftest import write_task
from tests.secure.test_views import FIELD, Law, Recorded

IDENTITY: Final = bytes(range(ID_BYTES))
SEAL: Final = b"sealed:"
SERVERS: Final = range(3)
COALITIONS: Final = [each for size in range(3) for each in combinations(SERVERS, size)]


@dataclass(frozen=True)
class Ideal:
    """Seals so that who has one of some keys sees all, and nobody else more than the length."""

    opened: frozenset[bytes]
    telling: bool = False  # a planted bug: what is sealed is made shorter if it can be

    def encrypt(self, plain: bytes, key: Any, *, info: bytes) -> bytes:
        if _name(key) in self.opened:
            return plain
        size = len(plain.rstrip(b"\x00")) if self.telling else len(plain)
        return SEAL + sha256(info).digest()[:8] + size.to_bytes(4, "little")


def _name(key: Any) -> bytes:
    return bytes(key.public_numbers().x.to_bytes(32, "big"))


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    return write_task(tmp_path_factory.mktemp("relay"), number_between("0:1", 1))[0]


def view(
    monkeypatch: pytest.MonkeyPatch, task: Task, answer: str, coalition: Sequence[int], *, telling: bool = False
) -> Law:
    """Return the law of a client's envelope, as it is to a relay with a coalition of servers."""
    keys = [_name(sealing.sealing_key_of(server)) for server in task.servers]
    ideal = Ideal(frozenset(keys[server] for server in coalition), telling)
    law: dict[object, Fraction] = defaultdict(Fraction)
    with monkeypatch.context() as patched:
        patched.setattr(sealing, "_suite", lambda: ideal)
        patched.setattr(device, "split", lambda values, servers, entropy: split(values, servers, entropy, FIELD))
        for coins in product(range(FIELD), repeat=len(SERVERS) - 1):
            records = device.records_of(task, answer, Recorded(IDENTITY + bytes(coins)))
            law[sealing.envelope_of(task, records)] += Fraction(1, FIELD ** len(coins))
    return law


def simulated(task: Task, coalition: Sequence[int]) -> Law:
    """Return the law of an envelope that is made without any answer: uniform parts, and seals of nothing."""
    law: dict[object, Fraction] = defaultdict(Fraction)
    for parts in product(range(FIELD), repeat=len(coalition)):
        envelope = IDENTITY
        for place, server in enumerate(task.servers):
            if place in coalition:
                envelope += parts[coalition.index(place)].to_bytes(CELL_BYTES, "little")
            else:
                info = sealing._info(task, IDENTITY, server.name)
                envelope += SEAL + sha256(info).digest()[:8] + CELL_BYTES.to_bytes(4, "little")
        law[envelope] += Fraction(1, FIELD ** len(parts))
    return law


@pytest.mark.parametrize("coalition", COALITIONS)
def test_a_relay_with_all_but_one_server_sees_what_is_made_without_an_answer(
    monkeypatch: pytest.MonkeyPatch, task: Task, coalition: tuple[int, ...]
) -> None:
    for answer in ("0", "1"):
        assert view(monkeypatch, task, answer, coalition) == simulated(task, coalition)


def test_a_relay_with_all_servers_sees_the_answer(monkeypatch: pytest.MonkeyPatch, task: Task) -> None:
    for answer in ("0", "1"):
        for envelope in view(monkeypatch, task, answer, SERVERS):
            assert isinstance(envelope, bytes)
            assert sum(cells_of(envelope[ID_BYTES:])) % FIELD == int(answer)


def test_a_length_that_tells_is_noticed(monkeypatch: pytest.MonkeyPatch, task: Task) -> None:
    """The planted bug: a part of 0 is shorter than others."""
    one, other = (view(monkeypatch, task, answer, (0, 1), telling=True) for answer in ("0", "1"))
    assert one != other


def test_an_id_that_tells_is_noticed(monkeypatch: pytest.MonkeyPatch, task: Task) -> None:
    """The planted bug: the id is made of what is split."""
    cells: list[int] = []

    def encode(self: Task, answer: str) -> tuple[int, ...]:
        cells[:] = self.asked.encode(answer)
        return tuple(cells)

    def telling(entropy: Entropy, size: int) -> bytes:
        drawn = read_exactly(entropy, size)
        return sha256(drawn + bytes(cells)).digest()[:size]

    monkeypatch.setattr(Task, "encode", encode)
    monkeypatch.setattr(device, "read_exactly", telling)
    assert view(monkeypatch, task, "0", ()) != view(monkeypatch, task, "1", ())


def test_parts_that_are_sealed_for_one_server_are_noticed(monkeypatch: pytest.MonkeyPatch, task: Task) -> None:
    """The planted bug: every part is sealed with the first server's key, who then sees all of them."""
    first = sealing.sealing_key_of(task.servers[0])
    monkeypatch.setattr(sealing, "sealing_key_of", lambda server: first)
    assert view(monkeypatch, task, "0", (0,)) != view(monkeypatch, task, "1", (0,))


def test_a_relay_keeps_an_id_and_sealed_parts_and_no_more(tmp_path: Path, task: Task) -> None:
    """What is on its disk is a function of the envelope, and of the order in which it came."""
    import sqlite3

    from lapwing.secure.relay import Relay

    relay = Relay(tmp_path, task)
    try:
        envelope = sealing.envelope_of(task, device.records_of(task, "1"))
        relay.take(envelope)
        with sqlite3.connect(next(tmp_path.glob("relay-*.db"))) as file:
            rows = file.execute("SELECT * FROM envelope").fetchall()
        file.close()
    finally:
        relay.close()
    assert rows == [(1, envelope[:ID_BYTES], envelope[ID_BYTES:])]

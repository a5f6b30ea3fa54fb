"""Sealed parts through a relay: what it holds tells nothing, arrives once whatever stops, opens for one server only."""

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from lapwing import secure
from lapwing.errors import Fault, InvalidParameter, QueryRefused, ServiceFault, TooManyRequests
from lapwing.secure import relay as relays
from lapwing.secure.adding import AddingServer, budget_of
from lapwing.secure.device import records_of
from lapwing.secure.relay import Relay
from lapwing.secure.relay_service import configured
from lapwing.secure.sealing import Opener, envelope_bytes, envelope_of, sealed_bytes
from lapwing.secure.sending import post
from lapwing.secure.task import Task
from lapwing.secure.wire import ID_BYTES, cells_of
from tests.secure.conftest import NAMES, Begin, write_task
from tests.secure.test_road import free_ports, serving
from tests.support.cli.command import Run, run
from tests.support.refusals import refused_as

__all__ = ["run"]
Made = Callable[[], Relay]


@pytest.fixture
def made(tmp_path: Path) -> tuple[Task, str]:
    return write_task(tmp_path, ports=free_ports(), least=2)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relays, "PAUSE", 0.02)
    monkeypatch.setattr(relays, "LONGEST_PAUSE", 0.05)


@pytest.fixture
def begun(tmp_path: Path, made: tuple[Task, str]) -> Iterator[Made]:
    """Begins the relay of the task, again and again in the same folder; what is left ends with the test."""
    each: list[Relay] = []

    def begin() -> Relay:
        each.append(Relay(tmp_path / "relay", made[0]))
        return each[-1]

    yield begin
    for one in each:
        with suppress(Exception):
            one.close()


@contextmanager
def relaying(relay: Relay, rate: float = 0) -> Iterator[str]:
    """Serve a relay from a thread, and give its address."""
    server = uvicorn.Server(configured(relay, host="127.0.0.1", port=0, rate=rate))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


def test_an_address_makes_so_many_requests(begun: Made, made: tuple[Task, str], tmp_path: Path) -> None:
    """What comes beyond the rate is refused, and stays on the device to be sent later."""
    task, _ = made
    passing = begun()
    with relaying(passing, rate=0.001) as url:  # one at once, then one in a thousand seconds
        secure.send(task, "walk", tmp_path / "first.json", relay=url)
        with pytest.raises(TooManyRequests, match="Nothing was taken"):
            secure.send(task, "bus", tmp_path / "second.json", relay=url)
    assert len(secure.read_device(tmp_path / "second.json").sent[task.digest].waiting) == 3
    with relaying(passing) as url:
        secure.send(task, None, tmp_path / "second.json", relay=url)
    assert secure.read_device(tmp_path / "second.json").sent[task.digest].waiting == {}


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def envelopes(task: Task, answers: list[str]) -> list[bytes]:
    return [envelope_of(task, records_of(task, answer)) for answer in answers]


def test_a_grid_through_a_relay(tmp_path: Path, made: tuple[Task, str]) -> None:
    """Sealed parts are not equally long: the first server has seeds, and the others have points."""
    task, key = secure.new_task(
        question="Which?", asked=made[0].asked, epsilon=Fraction(1), delta=Fraction(0), least_clients=2,
        certificates=[server.certificate for server in made[0].servers], checked=True, grid=True,
    )  # fmt: skip
    with contextlib.ExitStack() as servers:
        for server in task.servers:
            servers.enter_context(serving(tmp_path, task, server.name))
        relay = Relay(tmp_path / "relay", task)
        servers.callback(relay.close)
        assert relay.take(b"".join(envelopes(task, ["walk"] * 20 + ["bus"] * 5))) == 25
        wait_until(lambda: not any(relay.progress().values()))
        found = secure.close(task, key)
    assert (found.clients, found.dropped) == (25, 0)
    assert all(abs(cell - count) < 200 for cell, count in zip(found.cells, (20, 5), strict=True))


def test_the_road_through_a_relay(tmp_path: Path, made: tuple[Task, str], begun: Made) -> None:
    """One server is away, the relay is stopped in between, an envelope comes twice: all count once in the end."""
    task, key = made
    device, many = tmp_path / "device.json", envelopes(task, ["walk"] * 300 + ["bus"] * 99)
    with contextlib.ExitStack() as servers:
        servers.enter_context(serving(tmp_path, task, "north"))
        servers.enter_context(serving(tmp_path, task, "south"))
        relay = begun()
        with relaying(relay) as address:
            secure.send(task, "bus", device, relay=address)
            assert 'waiting": {}' in device.read_text()
            with refused_as("already_reported"):
                secure.send(task, "walk", device, relay=address)
            assert post(task, address, b"".join(many[:200])) == 200
            assert post(task, address, b"".join(many)) == 199
        wait_until(lambda: relay.progress() == {"north": 0, "south": 0, "west": 400})
        relay.close()
        west = servers.enter_context(serving(tmp_path, task, "west"))
        again = begun()
        wait_until(lambda: again.progress() == {"north": 0, "south": 0, "west": 0})
        assert west.progress() == (400, False)
        assert again.take(many[0]) == 0  # known, though its parts are deleted
        found = secure.close(task, key)
        assert found.clients == 400
        assert abs(found.cells[0] - 300) < 200
        # After that a relay finds out, and says so.
        again.take(envelopes(task, ["walk"])[0])
        wait_until(lambda: refused(again, task))


def refused(relay: Relay, task: Task) -> bool:
    try:
        relay.take(envelopes(task, ["walk"])[0])
    except QueryRefused:
        return True
    return False


def test_what_all_servers_have_is_deleted(tmp_path: Path, made: tuple[Task, str], begun: Made) -> None:
    task, sealed = made[0], envelopes(made[0], ["walk"] * 5)
    with ExitStack() as servers:
        for name in NAMES:
            servers.enter_context(serving(tmp_path, task, name))
        relay = begun()
        relay.take(b"".join(sealed))
        wait_until(lambda: not any(relay.progress().values()))
        relay.close()
    kept = b"".join(file.read_bytes() for file in (tmp_path / "relay").iterdir())
    assert not any(each[ID_BYTES : ID_BYTES + 60] in kept for each in sealed)


def openers(folder: Path, task: Task) -> list[Opener]:
    return [Opener(folder / name, task, name) for name in NAMES]


def test_a_part_opens_for_its_server_its_client_and_its_task_alone(tmp_path: Path, made: tuple[Task, str]) -> None:
    task, size = made[0], sealed_bytes(made[0])
    records = records_of(task, "walk")
    envelope = envelope_of(task, records)
    assert len(envelope) == envelope_bytes(task)
    client, parts = envelope[:ID_BYTES], [envelope[ID_BYTES + i * size :][:size] for i in range(3)]
    for i, opener in enumerate(openers(tmp_path, task)):
        for j, part in enumerate(parts):
            opened = opener.opened(client, part)
            assert (opened == records[NAMES[i]][ID_BYTES:]) == (i == j)
            assert opener.opened(bytes(ID_BYTES), part) is None
            assert opener.opened(client, part[:-1] + bytes([part[-1] ^ 1])) is None
            assert opener.opened(client, part[1:]) is None
            assert opener.opened(client, bytes(len(part))) is None
    other = write_task(tmp_path / "other", ports=free_ports())[0]
    (tmp_path / "other" / "north" / "sealing.key").write_bytes((tmp_path / "north" / "sealing.key").read_bytes())
    assert Opener(tmp_path / "other" / "north", other, "north").opened(client, parts[0]) is None


def test_what_was_sealed_when_the_format_was_fixed_opens(tmp_path: Path) -> None:
    recorded = json.loads((Path(__file__).parents[1] / "fixtures" / "secure" / "sealed.json").read_text("utf-8"))
    task, envelope = Task.from_text(recorded["task"]), bytes.fromhex(recorded["envelope"])
    assert task.to_text() == recorded["task"]
    size = sealed_bytes(task)
    for i, (name, key) in enumerate(recorded["keys"].items()):
        (tmp_path / name).mkdir()
        (tmp_path / name / "sealing.key").write_text(key)
        part = envelope[ID_BYTES + i * size :][:size]
        opened = Opener(tmp_path / name, task, name).opened(envelope[:ID_BYTES], part)
        assert envelope[:ID_BYTES] + (opened or b"") == bytes.fromhex(recorded["records"][name])


def test_the_same_answer_is_never_sealed_alike(made: tuple[Task, str]) -> None:
    records = records_of(made[0], "walk")
    one, two = envelope_of(made[0], records), envelope_of(made[0], records)
    assert one != two
    assert (
        len({one[at : at + 32] for at in range(0, len(one) - 32, 8)} & {two[at : at + 32] for at in range(0, 99)}) == 0
    )


def test_a_hostile_relay_can_spoil_and_nothing_else(tmp_path: Path, begin: Begin, task: Task) -> None:
    """What does not open, is none, or is another part of a client that is held, is counted and left out alone."""
    server, size = begin("north"), sealed_bytes(task)
    own = [envelope[: ID_BYTES + size] for envelope in envelopes(task, ["walk"] * 3)]
    swapped = own[0][:ID_BYTES] + own[1][ID_BYTES:]
    turned = own[2][:-1] + bytes([own[2][-1] ^ 1])
    assert server.take_sealed(own[0] + swapped + turned + own[0]) == (1, 2)
    records = records_of(task, "bus")
    forged = {name: own[0][:ID_BYTES] + record[ID_BYTES:] for name, record in records.items()}
    assert server.take_sealed(envelope_of(task, forged)[: ID_BYTES + size] + own[1]) == (1, 1)
    beyond = {name: bytes(ID_BYTES) + b"\xff" * (8 * task.width) for name in NAMES}
    assert server.take_sealed(envelope_of(task, beyond)[: ID_BYTES + size]) == (0, 1)
    assert server.progress() == (2, False)
    for wrong in (b"", own[0][1:], own[0] + b"x"):
        with pytest.raises(InvalidParameter, match="whole records"):
            server.take_sealed(wrong)
    server.freeze()
    with pytest.raises(QueryRefused):
        server.take_sealed(own[2])


def test_what_is_held_is_what_was_split(tmp_path: Path, begin: Begin, task: Task) -> None:
    servers = [begin(name) for name in NAMES]
    records, size = records_of(task, "walk"), sealed_bytes(task)
    envelope = envelope_of(task, records)
    for i, server in enumerate(servers):
        server.take_sealed(envelope[:ID_BYTES] + envelope[ID_BYTES + i * size :][:size])
        server.freeze()
    held = [cells_of(server._store.parts([envelope[:ID_BYTES]])) for server in servers]
    assert secure.joined(held) == [1, 0]


def test_what_cannot_be_relayed_is_refused(tmp_path: Path, made: tuple[Task, str], begun: Made) -> None:
    task = made[0]
    for address in ("http://relay.example.org", "relay.example.org", "ftp://localhost", ""):
        with pytest.raises(InvalidParameter, match="begins with https"):
            secure.send(task, "walk", tmp_path / "device.json", relay=address)
    assert not (tmp_path / "device.json").exists()
    with pytest.raises(ServiceFault, match="Try again later"):
        secure.send(task, "walk", tmp_path / "device.json", relay="http://127.0.0.1:1")
    relay = begun()
    with relaying(relay) as address:
        secure.send(task, None, tmp_path / "device.json", relay=address)  # kept, and sent now
    for wrong in (b"", b"x", bytes(envelope_bytes(task) + 1)):
        with pytest.raises(InvalidParameter, match="whole envelopes"):
            relay.take(wrong)
    (tmp_path / "north" / "sealing.key").unlink()
    server = AddingServer(tmp_path / "north", task, budget_of("pure", Fraction(1), Fraction(0)))
    with pytest.raises(Fault, match="no readable key for sealed parts"):
        server.take_sealed(bytes(ID_BYTES + sealed_bytes(task)))
    server.close()


def test_an_older_certificate_has_no_sealing_key(tmp_path: Path) -> None:
    recorded = Task.from_text((Path(__file__).parents[1] / "fixtures" / "secure" / "task.json").read_text("utf-8"))
    with pytest.raises(InvalidParameter, match="secure join` again"):
        Relay(tmp_path, recorded)
    assert secure.records_of(recorded, "bus")  # without a relay all is as it was


def test_the_routes_say_no_more_than_they_should(tmp_path: Path, made: tuple[Task, str], begun: Made) -> None:
    import urllib.error
    import urllib.request

    task, relay = made[0], begun()
    with relaying(relay) as address:
        base = f"{address}/secure/{task.digest}"
        with urllib.request.urlopen(f"{base}/task") as found:
            assert Task.from_text(found.read().decode()) == task
            assert found.headers["content-security-policy"].startswith("default-src 'none'")
        with urllib.request.urlopen(f"{base}/lapwing-secure.mjs") as found:
            assert found.headers["content-type"].startswith("text/javascript")
        with urllib.request.urlopen(f"{base}/progress") as found:
            waiting: Any = json.load(found)
        assert set(waiting["waiting"]) == set(NAMES)
        for path in ("/", "/secure/0/task", f"/secure/{task.digest}/other"):
            with pytest.raises(urllib.error.HTTPError) as missing:
                urllib.request.urlopen(address + path)
            missing.value.close()
            assert missing.value.code == 404


def test_the_command_line(tmp_path: Path, made: tuple[Task, str], run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("task.json").write_text(made[0].to_text())
    relay = Relay(tmp_path / "relay", made[0])
    with relaying(relay) as address:
        outcome = run("secure", "send", "task.json", "--relay", address, stdin=b"walk\n")
        assert (outcome.status, "sealed part" in outcome.err) == (0, True)
        assert relay.progress() == {"north": 1, "south": 1, "west": 1}
    relay.close()
    for arguments in (("--listen", "0.0.0.0:8480"), ("--listen", "nowhere"), ("--tls-cert", "x.pem")):
        assert run("secure", "relay", "task.json", *arguments).status == 2

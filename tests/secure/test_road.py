"""From an answer on a device to the result, over TLS: retries, missing servers, strangers, hostile texts, commands."""

import io
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Final, cast

import pytest
import uvicorn
from starlette.applications import Starlette

from lapwing import secure
from lapwing.cli.demo import secure_sums
from lapwing.errors import Fault, InvalidParameter, NotAuthorised, NotFound, ServiceFault
from lapwing.exact.entropy import SYSTEM
from lapwing.local.client import device as devices
from lapwing.secure.adding import AddingServer, budget_of
from lapwing.secure.asked import Asked
from lapwing.secure.field import on_lines
from lapwing.secure.identity import CERTIFICATE, KEY, make_identity
from lapwing.secure.numbers import number_between
from lapwing.secure.service import application
from lapwing.secure.task import Task
from lapwing.secure.transport import TaskServerConnection
from lapwing.secure.values import Values
from lapwing.secure.vectors import Vector
from lapwing.secure.wire import ServerRelease, record_of
from tests.collector.tasks import COIN
from tests.secure.conftest import NAMES, write_task
from tests.support.cli.command import Run, run
from tests.support.effort import only
from tests.support.refusals import refused_as

__all__ = ["run"]
Starter = Callable[[str], ExitStack]


@contextmanager
def serving(folder: Path, task: Task, name: str) -> Iterator[AddingServer]:
    """Serve from a thread; a process of its own is what the demo has."""
    server = AddingServer(folder / name, task, budget_of("pure", Fraction(1), Fraction(0)))
    try:
        with listening(application(server, task.server(name).close_key), folder / name, task.server(name).port):
            yield server
    finally:
        server.close()


@contextmanager
def listening(routes: Starlette, folder: Path, port: int) -> Iterator[None]:
    """Serve routes from a thread, with the certificate and the key of a folder."""
    config = uvicorn.Config(
        routes, host="127.0.0.1", port=port,
        lifespan="off", log_config=None, ssl_certfile=folder / CERTIFICATE, ssl_keyfile=folder / KEY,
    )  # fmt: skip
    listener = uvicorn.Server(config)
    thread = threading.Thread(target=listener.run)
    thread.start()
    while not listener.started:
        time.sleep(0.005)
    try:
        yield
    finally:
        listener.should_exit = True
        thread.join()


def free_ports() -> tuple[int, ...]:
    doors = [socket.create_server(("127.0.0.1", 0)) for _ in NAMES]
    ports = tuple(door.getsockname()[1] for door in doors)
    for door in doors:
        door.close()
    return ports


@pytest.fixture
def made(tmp_path: Path) -> tuple[Task, str]:
    return write_task(tmp_path, ports=free_ports(), least=2)


@pytest.fixture
def task(made: tuple[Task, str]) -> Task:
    return made[0]


@pytest.fixture
def running(tmp_path: Path, task: Task) -> Iterator[dict[str, ExitStack]]:
    """All three servers, each to be closed and begun again by itself."""
    each = {name: ExitStack() for name in NAMES}
    for name, stack in each.items():
        stack.enter_context(serving(tmp_path, task, name))
    yield each
    for stack in each.values():
        stack.close()


def test_the_whole_road(
    tmp_path: Path, made: tuple[Task, str], running: dict[str, ExitStack], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, key = made
    with pytest.raises(NotFound, match="not closed yet"):
        secure.totals(task)
    secure.send_all(task, ["walk"] * 400 + ["bus"] * 100)
    device = tmp_path / "device.json"

    running["south"].close()
    with pytest.raises(ServiceFault, match="south at 127"):
        secure.send(task, "bus", device)
    with pytest.raises(ServiceFault, match="south at 127"):
        secure.close(task, key)
    with TaskServerConnection(task, task.server("north")) as north:
        assert north.progress() == (501, False)  # the part came, and a close that failed stops nobody
    running["south"].enter_context(serving(tmp_path, task, "south"))
    with refused_as("already_reported"):
        secure.send(task, "walk", device)
    assert secure.read_device(device).epsilon == 1
    secure.send(task, None, device)
    secure.send(task, None, device)  # nothing is left to be sent
    assert 'waiting": {}' in device.read_text()

    with pytest.raises(NotAuthorised):
        secure.close(task, "0" * 64)
    found = secure.close(task, key)
    assert found.clients == 501
    assert secure.close(task, key) == found == secure.totals(task)
    walk, bus = found.cells
    assert abs(walk - 400) < 200
    assert abs(bus - 101) < 200
    with refused_as("task_closed"):
        secure.send(task, "walk", tmp_path / "late.json")

    monkeypatch.chdir(tmp_path)
    Path("task.json").write_text(task.to_text())
    Path("task.key").write_text(key)
    for command in ("close", "result"):
        outcome = run("secure", command, "task.json", "--format", "json")
        assert (outcome.status, json.loads(outcome.out)["clients"]) == (0, 501)
    shown = run("secure", "result", "task.json").out
    assert f"{walk:,}" in shown
    assert "unless all of north, south, west" in shown


def test_a_client_at_two_of_three_servers_is_not_counted(
    tmp_path: Path, made: tuple[Task, str], running: dict[str, ExitStack]
) -> None:
    task, key = made
    secure.send_all(task, ["walk"] * 3)
    for name in ("north", "south"):
        with TaskServerConnection(task, task.server(name)) as line:
            line.send(secure.records_of(task, "walk")[name])
    assert secure.close(task, key).clients == 3


HOURS: Final = Vector(("sleep", "work"), Fraction(24), 24, "l1", 24)
EACH: Final = [
    (None, ("walk", "bus"), 400),
    (number_between("0:5", 5), ("5", "0"), 2000),
    (HOURS, ("8,10", "6,0"), 3800),
]


@pytest.mark.long
@pytest.mark.parametrize(("asked", "honest", "total"), only([2], EACH, many=True), ids=["values", "number", "vector"])
def test_three_liars_are_dropped_and_counted(
    tmp_path: Path, run: Run, asked: Asked | None, honest: tuple[str, str], total: int
) -> None:
    """Each sends a thousand to a cell, on lines as they should be; one more sends points of no line."""
    task, key = write_task(tmp_path, asked, free_ports(), least=2, checked=True)
    with ExitStack() as stack:
        for name in NAMES:
            stack.enter_context(serving(tmp_path, task, name))
        secure.send_all(task, [honest[place % 5 == 0] for place in range(500)])
        for _ in range(3):
            send_cells(task, on_lines([1000, *[0] * (task.width - 1)]))
        send_cells(task, [[point, *[0] * (task.width - 1)] for point in (1, 1, 7)])
        found = secure.close(task, key)
        assert (found.clients, found.dropped) == (500, 4)
        assert abs(found.cells[0] - total) < 50 * secure.standard_deviation(task)
        assert secure.close(task, key) == found
        assert secure.totals(task).cells == found.cells
        Path(tmp_path / "task.json").write_text(task.to_text())
        Path(tmp_path / "task.key").write_text(key)
        shown = " ".join(run("secure", "close", str(tmp_path / "task.json")).out.split())
        assert (
            "dropped 4, whose parts add up to no valid answer; one more invalid answer remains with a probability below"
            in shown
        )


@pytest.mark.long
def test_unchecked_liars_move_a_count_by_thousands(
    tmp_path: Path, made: tuple[Task, str], running: dict[str, ExitStack]
) -> None:
    """What the test is for."""
    task, key = made
    secure.send_all(task, ["walk"] * 10)
    for _ in range(3):
        send_cells(task, secure.split([1000, 0], 3))
    assert secure.close(task, key).cells[0] > 2500


def send_cells(task: Task, parts: Sequence[Sequence[int]]) -> None:
    client = SYSTEM.read(16)
    for server, part in zip(task.servers, parts, strict=True):
        with TaskServerConnection(task, server) as line:
            line.send(record_of(client, part))


def test_a_server_with_another_certificate_gets_nothing(tmp_path: Path, task: Task) -> None:
    """Somebody else listens where a server is said to be."""
    make_identity(tmp_path / "else", "north", task.server("north").address)
    (tmp_path / "north" / CERTIFICATE).write_bytes((tmp_path / "else" / CERTIFICATE).read_bytes())
    (tmp_path / "north" / KEY).write_bytes((tmp_path / "else" / KEY).read_bytes())
    with serving(tmp_path, task, "north") as server:
        with pytest.raises(ServiceFault, match="certificate"):
            secure.send(task, "walk", tmp_path / "device.json")
        assert server.progress() == (0, False)


def test_other_tasks_and_hostile_bodies(tmp_path: Path, task: Task, running: dict[str, ExitStack]) -> None:
    other = replace(task, question="Another?")
    with pytest.raises(NotFound, match="no such task"), TaskServerConnection(other, task.server("north")) as line:
        line.send(secure.records_of(other, "walk")["north"])
    with TaskServerConnection(task, task.server("north")) as line:
        for body in (b"", b"x" * 31, b"\xff" * 32, b"\xff" * (1 << 24) + b"x"):
            with pytest.raises(InvalidParameter):
                line.send(body)
        assert line.progress() == (0, False)


def test_releases_of_different_sets_do_not_add_up(
    task: Task, monkeypatch: pytest.MonkeyPatch, running: dict[str, ExitStack]
) -> None:
    """A lying server, or one that was told another set by a lying organiser, spoils the result and is noticed."""

    def released(self: TaskServerConnection) -> ServerRelease:
        return ServerRelease(task=task.digest, clients=3, clients_digest=self.server.name * 12, cells=(1, 2))

    monkeypatch.setattr(TaskServerConnection, "released", released)
    with pytest.raises(InvalidParameter, match="north and south"):
        secure.totals(task)


def test_the_limit_of_a_device(tmp_path: Path, task: Task) -> None:
    device = tmp_path / "device.json"
    with refused_as("report_refused", saying=r"0\.5"):
        secure.answer_on_device(device, task, "walk", limit=Fraction(1, 2))
    assert secure.read_device(device).sent == {}
    secure.answer_on_device(device, task, "walk", limit=Fraction(3, 2))
    with refused_as("report_refused", saying=r"1\.5"):
        secure.answer_on_device(device, replace(task, question="Another?"), "bus")
    device.chmod(0o644)
    with pytest.raises(Fault, match="Other users can read"):
        secure.read_device(device)
    device.chmod(0o600)
    device.write_text("{}")
    with pytest.raises(Fault, match="damaged"):
        secure.answer_on_device(device, replace(task, question="Another?"), "bus")


def test_one_limit_for_local_reports_and_secure_sums(tmp_path: Path, task: Task, run: Run) -> None:
    """One file, whichever road an answer takes: each counts what left on the other, and neither forgets it."""
    file, today = tmp_path / "device.json", COIN.opens
    answered = secure.answer_on_device(file, task, "walk", limit=Fraction("2.2"))
    assert devices.report_from_device(str(file), COIN, "yes", SYSTEM.read, today)
    both = Fraction(COIN.epsilon) + 1
    assert secure.read_device(file).epsilon == both < Fraction("2.2")
    with pytest.raises(devices.LimitReached, match=r"above its limit of 2\.2"):
        devices.report_from_device(str(file), COIN, "yes", SYSTEM.read, today)
    with refused_as("report_refused", saying=r"2\.2"):
        secure.answer_on_device(file, replace(task, question="Another?"), "bus")
    assert secure.read_device(file).sent[task.digest].waiting == answered
    assert devices.read_device(str(file)).of(COIN).until() == 1
    shown = json.loads(run("local", "device", str(file), "--format", "json").out)
    assert Fraction(shown["epsilon"]) == both
    assert [row["mechanism"] for row in shown["reported"]] == ["binary", "secure sum"]
    with refused_as("already_reported"):
        secure.answer_on_device(file, task, "walk")


def test_a_ledger_of_one_road_only_is_noticed(
    tmp_path: Path, task: Task, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted bug: local reports do not count what went into sums."""
    monkeypatch.setattr(devices.Device, "_sums", lambda self, day: [])
    with pytest.raises(AssertionError):
        test_one_limit_for_local_reports_and_secure_sums(tmp_path, task, run)


def test_a_crash_before_sending_loses_nothing(tmp_path: Path, task: Task) -> None:
    """What was to be sent is in the file: sent again, it is the same parts under the same id."""
    device = tmp_path / "device.json"
    records = secure.answer_on_device(device, task, "walk")
    assert secure.read_device(device).sent[task.digest].waiting == records
    assert "walk" not in device.read_text()


@pytest.mark.long
def test_records_of_many_cells_are_sent_in_bodies_that_are_taken(tmp_path: Path) -> None:
    task, _ = write_task(tmp_path, Values(tuple(map(str, range(5000)))), free_ports())
    with ExitStack() as stack:
        servers = [stack.enter_context(serving(tmp_path, task, name)) for name in NAMES]
        secure.send_all(task, [str(place) for place in range(60)])
        assert [server.progress() for server in servers] == [(60, False)] * 3


def test_a_vector_is_asked_for(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    write_task(tmp_path)
    monkeypatch.chdir(tmp_path)
    servers = [part for name in NAMES for part in ("--server", f"{name}/server.crt")]
    asked = ("secure", "init", "--question", "Hours?", "--epsilon", "1", "--checked", *servers)
    parts = ("--part", "sleep", "--part", "work", "--upper", "24", "--steps", "24")
    assert run(*asked, *parts, "--l1", "24").status == 0
    task = Task.from_text((tmp_path / "task.json").read_text())
    assert task.asked == HOURS
    assert Task.from_text(task.to_text()) == task
    for wrong in (parts, (*parts, "--l1", "24", "--l2", "9"), ("--value", "a", "--value", "b", "--l1", "2")):
        assert "Several --part need" in run(*asked, *wrong, "--output", "other.json").err.replace("\n", " ")


def test_commands(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for port, name in enumerate(NAMES, start=1):
        assert run("secure", "join", name, "--address", f"127.0.0.1:{port}").status == 0
    assert (tmp_path / "north" / KEY).stat().st_mode & 0o077 == 0
    assert run("secure", "join", "north", "--address", "127.0.0.1:1").status == 2
    servers = [part for name in NAMES for part in ("--server", f"{name}/server.crt")]
    asked = ("secure", "init", "--question", "Yes?", "--epsilon", "1", *servers)
    assert "Give --value" in run(*asked).err
    made = run(*asked, "--number", "0:1", "--steps", "1")
    assert (made.status, made.out) == (0, "")
    assert "standard deviation of 2.35" in " ".join(made.err.split())
    assert (tmp_path / "task.key").stat().st_mode & 0o077 == 0
    assert "already exists" in run(*asked, "--number", "0:1").err
    monkeypatch.setattr("sys.stdin", io.StringIO("perhaps\n"))
    refused = run("secure", "send", "task.json")
    assert (refused.status, "perhaps" in refused.err) == (2, False)
    monkeypatch.setattr("sys.stdin", io.StringIO("1\n"))
    assert "cannot be reached" in run("secure", "send", "task.json").err
    make_identity(tmp_path / "else", "north", "127.0.0.1:1")
    assert "another certificate" in run("secure", "serve", "else", "task.json").err


def test_values_come_from_a_file(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than fit a command line, with the line ends of any editor; what is no text in UTF-8 is refused as that."""
    (tmp_path / "task.json").write_text(write_task(tmp_path)[0].to_text())
    monkeypatch.chdir(tmp_path)
    servers = [part for name in NAMES for part in ("--server", f"{name}/server.crt")]
    asked = ("secure", "init", "--question", "Which?", "--epsilon", "1", "--checked", "--grid", *servers)
    values, file = [f"value {number}" for number in range(20_000)], tmp_path / "values.txt"
    file.write_bytes(b"\xef\xbb\xbf" + "\r\n".join([*values, "", ""]).encode())
    made = run(*asked, "--values", "values.txt", "--output", "many.json")
    assert made.status == 0, made.err
    assert Task.from_text((tmp_path / "many.json").read_text()).asked == Values(tuple(values))
    for content in (b"one", b"a\na", b"\xff\nb", b""):
        file.write_bytes(content)
        assert run(*asked, "--values", "values.txt", "--output", "none.json").status == 2
    file.write_bytes(b"\xff\n")
    assert run("secure", "send", "task.json", "--people", "values.txt").status == 2
    assert run("secure", "close", "task.json", "--key", "values.txt").status == 6
    (tmp_path / "north" / CERTIFICATE).write_bytes(b"\xff")
    assert run("secure", "serve", "north", "task.json").status == 2


@pytest.mark.long
def test_the_demo(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three processes, one of them killed: what people see of it, and that its truth is the true one."""
    monkeypatch.chdir(tmp_path)
    outcome = run("demo", "secure")
    assert (outcome.status, outcome.err) == (0, "")
    assert "1,001 people" in outcome.out
    assert "give the same numbers" in outcome.out
    assert f"{secure_sums.ANSWERS['never']}\n" in outcome.out
    assert max(map(len, outcome.out.splitlines())) <= 100
    logs = "".join((tmp_path / "demo" / f"{name}.log").read_text() for name in secure_sums.NAMES)
    assert not [line for line in logs.splitlines() if "parts" in line]


class Beginning:
    """A process that begins to listen only once somebody found that it does not, however slow the machine is."""

    def __init__(self, begin: Callable[[], object]) -> None:
        self._begin, self.asked = begin, 0

    def poll(self) -> None:
        self.asked += 1
        if self.asked == 1:
            self._begin()


def test_the_demo_waits_for_a_server_that_is_slow_to_listen(tmp_path: Path, task: Task) -> None:
    with ExitStack() as stack:
        slow = {name: Beginning(partial(stack.enter_context, serving(tmp_path, task, name))) for name in NAMES}
        secure_sums._await(task, cast("dict[str, subprocess.Popen[bytes]]", slow))
        assert [each.asked for each in slow.values()] == [1, 1, 1]
        assert secure_sums.PATIENCE >= 600


def test_the_demo_names_a_server_that_ended_and_waits_no_longer(tmp_path: Path, task: Task) -> None:
    ended = {name: subprocess.Popen([sys.executable, "-S", "-c", ""]) for name in NAMES}
    for process in ended.values():
        process.wait()
    with serving(tmp_path, task, "north"), pytest.raises(Fault, match=r"south ended.*south\.log"):
        secure_sums._await(task, ended)

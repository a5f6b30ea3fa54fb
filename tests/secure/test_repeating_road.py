"""A task that repeats, over TLS: devices answer, days are closed although a server was missing, anybody reads."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest

from lapwing import secure
from lapwing.cli.demo import secure_sums as demo
from lapwing.errors import NotAuthorised, NotFound, ServiceFault
from lapwing.secure.adding import budget_of
from lapwing.secure.device import records_of
from lapwing.secure.organising import close_key
from lapwing.secure.repeating_device import waiting_days
from lapwing.secure.repeating_organiser import close_day, due_days, released_days
from lapwing.secure.repeating_server import RepeatingServer
from lapwing.secure.repeating_service import application
from lapwing.secure.repetition import TaskDays
from lapwing.secure.sending import send_all
from lapwing.secure.task import Task
from lapwing.secure.transport import TaskServerConnection
from tests.secure.conftest import NAMES, write_task
from tests.secure.test_road import free_ports, listening
from tests.support.cli.command import Run, run
from tests.support.refusals import refused_as

__all__ = ["run"]
TODAY = datetime.now(UTC).date()
"""The first of ten days is two days ago, so that two days are over; a run over midnight has one more."""
REPEATS = TaskDays(first=TODAY - timedelta(days=2), days=10, most_days=3)


@contextmanager
def serving(folder: Path, task: Task, name: str) -> Iterator[None]:
    """Serve from a thread."""
    server = RepeatingServer(folder / name, task, budget_of("pure", Fraction(1), Fraction(0)))
    try:
        with listening(application(server, task.server(name).close_key), folder / name, task.server(name).port):
            yield
    finally:
        server.close()


@pytest.fixture
def made(tmp_path: Path) -> tuple[Task, str]:
    task, key = write_task(tmp_path, ports=free_ports(), least=2)
    return replace(task, repeats=REPEATS), key


@pytest.fixture
def running(tmp_path: Path, made: tuple[Task, str]) -> Iterator[dict[str, ExitStack]]:
    """All three servers, each to be closed and begun again by itself."""
    each = {name: ExitStack() for name in NAMES}
    for name, stack in each.items():
        stack.enter_context(serving(tmp_path, made[0], name))
    yield each
    for stack in each.values():
        stack.close()


def test_the_whole_road(
    tmp_path: Path, made: tuple[Task, str], running: dict[str, ExitStack], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, key = made
    assert list(due_days(task, 0, TODAY)) == [1, 2]
    send_all(task.on(1), ["walk"] * 300 + ["bus"] * 100)
    with pytest.raises(NotAuthorised):
        close_day(task, "wrong", 1)
    first = close_day(task, key, 1)
    assert first.clients == 400

    device = tmp_path / "device.json"
    running["south"].close()
    with pytest.raises(ServiceFault):
        secure.send(task, "bus", device)
    with pytest.raises(ServiceFault):
        close_day(task, key, 2)
    running["south"].enter_context(serving(tmp_path, task, "south"))
    assert set(waiting_days(device, task)[3]) == {"south"}
    secure.send(task, None, device)
    assert waiting_days(device, task) == {}
    with refused_as("already_reported"):
        secure.send(task, "walk", device)

    folder = tmp_path / "organiser"
    folder.mkdir()
    (folder / "task.json").write_text(task.to_text())
    (folder / "task.key").write_text(key)
    monkeypatch.chdir(folder)
    closed = run("secure", "close", "task.json", "--format", "json")
    assert closed.status == 0, closed.err
    days = json.loads(closed.out)["days"]
    assert [(day["day"], day["answers"]) for day in days] == [(1, 400), (2, 400)]  # nobody answered on the second day
    assert run("secure", "result", "task.json").status == 0
    assert released_days(task).totals[0].cells == first.cells
    assert close_day(task, key, 1) == first
    with TaskServerConnection(task.on(3), task.server("west")) as west:
        assert west.progress() == (1, False)
        with pytest.raises(NotFound):
            west.released()
    with TaskServerConnection(replace(task, question="Other?"), task.server("west")) as west, pytest.raises(NotFound):
        west.progress()


def test_a_day_that_only_some_servers_released(
    tmp_path: Path, made: tuple[Task, str], running: dict[str, ExitStack]
) -> None:
    """North released and deleted its parts before south was asked: closed again, the day has the same clients."""
    task, key = made
    send_all(task.on(1), ["walk"] * 5)
    late = records_of(task.on(1), "bus")
    north, south = (TaskServerConnection(task.on(1), task.server(name)) for name in ("north", "south"))
    with north, south:
        south.send(late["south"])
        shown = close_key(key, "north")
        released = north.release(north.freeze(shown), shown)
    again = close_day(task, key, 1)
    assert again.clients == 5 == released.clients
    assert abs(again.cells[0] - 5) < 1000


def test_commands_write_and_send_days(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    write_task(tmp_path, ports=free_ports())
    monkeypatch.chdir(tmp_path)
    servers = [part for name in NAMES for part in ("--server", f"{name}/server.crt")]
    begin = ["secure", "init", "--question", "Did it crash?", "--number", "0:1", "--steps", "1", "--epsilon", "1"]
    assert run(*begin, *servers, "--most-days", "3").status == 2
    assert run(*begin, *servers, "--days", "90", "--most-days", "3", "--first", "soon").status == 2
    written = run(*begin, *servers, "--days", "90", "--most-days", "3", "--first", "2020-01-01")
    assert written.status == 0, written.err
    task = Task.from_text((tmp_path / "task.json").read_text())
    assert task.repeats is not None
    assert (task.repeats.days, task.repeats.most_days, task.repeats.window) == (90, 3, None)
    (tmp_path / "people.txt").write_text("1\n")
    assert run("secure", "send", "task.json", "--people", "people.txt").status == 2  # it is over
    assert run("secure", "send", "task.json", stdin=b"1\n").status == 3


@pytest.mark.long
def test_servers_that_are_killed_release_each_day_once(tmp_path: Path) -> None:
    """`kill -9` of a server after it was asked for a day; the day is released once, and the next ones follow."""
    ports = tuple(demo._free_ports().values())
    task, key = write_task(tmp_path, ports=ports, least=2)
    task = replace(task, repeats=REPEATS)
    file = tmp_path / "task.json"
    file.write_text(task.to_text())
    seen: dict[int, tuple[int, ...]] = {}
    with demo._servers(tmp_path, file) as servers:
        for day in range(1, 6):
            demo._await(task.on(day), servers)
            send_all(task.on(day), ["walk"] * 20)
            servers["north"].kill()
            servers["north"].wait()
            with pytest.raises(ServiceFault):
                close_day(task, key, day)
            servers["north"] = demo._start(tmp_path, file, "north")
            demo._await(task.on(day), servers)
            seen[day] = close_day(task, key, day).cells
            assert close_day(task, key, day).cells == seen[day]
        found = released_days(task)
    assert [each.cells for each in found.totals] == list(seen.values())
    walk, _ = found.estimates(5, None, Fraction(999_999, 10**6))
    assert walk.low <= 100 <= walk.high

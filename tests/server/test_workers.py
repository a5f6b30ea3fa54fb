"""Several workers: one cap, one meaning of a key, and an end of their own whatever happens to parent or worker."""

import os
import re
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from fractions import Fraction
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, cast

import pytest

import lapwing as lw
from lapwing.server.listener import Endpoint
from lapwing.server.service import ServiceSettings
from lapwing.server.workers import LONGEST_PAUSE, Doors, ProcessConfig, _Crew, _Worker, pause
from tests.support.postgres import Postgres
from tests.support.server.crew import (
    CATALOG,
    PATIENCE,
    Crew,
    Reply,
    ask,
    crew,
    persistently,
    prepared,
    question,
    scrape,
    together,
)

CLIENTS = 64
FIT = {"alice": 15, "bob": 35}


def raced(folder: Path, ledger: str | None = None, planted: str = "", workers: int = 2) -> str:
    """Spend one budget by 64 clients at some workers, and check that it comes out even; return the metrics.

    Each client asks for alice before it asks for bob. So where her allowance does not hold, she has at least as many
    answers as he, which is never what fits.
    """
    tokens = prepared(folder, ledger)
    with crew(folder, planted=planted, number=workers) as running:
        port = running.port
        same = together([partial(ask, port, tokens["bob"], question(1), "one key")] * CLIENTS, CLIENTS)
        assert Counter(reply.status for reply in same) == {200: CLIENTS}
        assert len({reply.content for reply in same}) == 1
        who = ["alice"] * CLIENTS + ["bob"] * CLIENTS
        work = [partial(ask, port, tokens[name], question(2 + number)) for number, name in enumerate(who)]
        replies = together(work, CLIENTS)
        counted = scrape(port, tokens["carol"])
    answered = {2 + number for number, reply in enumerate(replies) if reply.status == 200} | {1}
    assert {reply.code for reply in replies} <= {"", "budget_exhausted", "allowance_exhausted"}
    with lw.connect(folder / CATALOG) as session:
        history = session.budget().history
        session._ledger.verify()
    assert {int(re.findall(r"\d+", row.question)[-1]) for row in history} == answered
    assert len(history) == len(answered)
    assert all(row.answered for row in history)
    assert Counter(row.principal for row in history) == FIT
    assert sum((row.loss.amount for row in history), Fraction(0)) == 1
    return counted


@pytest.mark.parametrize("workers", [2, pytest.param(4, marks=pytest.mark.long)])
def test_one_budget_is_spent_exactly(tmp_path: Path, workers: int) -> None:
    counted = raced(tmp_path, workers=workers)
    (charged,) = re.findall(r'lapwing_questions_total{dataset="visits",outcome="charged"} (\d+)', counted)
    assert int(charged) == sum(FIT.values())
    (asked,) = re.findall(r'method="POST",route="/v1/datasets/{dataset}/query",status="200"} (\d+)', counted)
    assert int(asked) == sum(FIT.values()) + CLIENTS - 1


@pytest.mark.long
def test_one_budget_is_spent_exactly_in_postgres(tmp_path: Path, postgres: str) -> None:
    raced(tmp_path, ledger=f"{postgres}&ledger=visits", workers=4)


@pytest.mark.long
def test_an_allowance_that_is_decided_before_the_charge_is_found(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        raced(tmp_path, planted="decide before charging")


@contextmanager
def disturbed(folder: Path, ledger: str | None, disturb: Callable[[Crew], None], *, after: int = 12) -> Iterator[Crew]:
    """Let something happen while clients ask, who ask again until they are answered; then check what was charged."""
    tokens = prepared(folder, ledger)
    with crew(folder, planted="believe deaths soon", number=2) as running:
        port, replies = running.port, dict[int, Reply]()

        def asking(number: int) -> Reply:
            replies[number] = persistently(port, tokens["bob"], question(number), f"key {number}")
            if len(replies) == after:
                disturb(running)
            return replies[number]

        together([partial(asking, number) for number in range(1, 41)], 16)
        yield running
        again = {number: persistently(port, tokens["bob"], question(number), f"key {number}") for number in replies}
    check_keys(folder, replies, again)


def check_keys(folder: Path, replies: dict[int, Reply], again: dict[int, Reply]) -> None:
    """Check that each key was charged at most once, and that whatever was answered was charged and stays so."""
    with lw.connect(folder / CATALOG) as session:
        history = session.budget().history
        session._ledger.verify()
    charged = Counter(int(re.findall(r"\d+", row.question)[-1]) for row in history)
    assert max(charged.values()) == 1
    for number, reply in replies.items():
        assert reply.status == 200 or reply.code == "key_conflict", reply.content
        if reply.status == 200:
            assert charged[number] == 1
            assert again[number].content == reply.content
    lost = {number for number, reply in replies.items() if reply.status != 200}
    assert len(lost) <= 8  # what two workers may have under way
    assert all(not row.answered for row in history if int(re.findall(r"\d+", row.question)[-1]) in lost)


def kill_one(running: Crew) -> None:
    os.kill(running.workers[0], signal.SIGKILL)


def check_killed(folder: Path, ledger: str | None = None) -> None:
    with disturbed(folder, ledger, kill_one) as running:
        (died,) = running.wait_for("worker died")
        assert died["status"] == -signal.SIGKILL
        assert len(running.wait_for("worker started", 3)) == 3


@pytest.mark.long
def test_a_worker_that_is_killed_is_replaced_and_charges_no_key_twice(tmp_path: Path) -> None:
    check_killed(tmp_path)


@pytest.mark.long
def test_a_worker_that_is_killed_is_replaced_in_postgres(tmp_path: Path, postgres: str) -> None:
    check_killed(tmp_path, f"{postgres}&ledger=visits")


@pytest.mark.long
def test_a_database_that_crashes_under_load_comes_back(tmp_path: Path, own_postgres: Postgres) -> None:
    """The service goes on by itself."""
    with own_postgres.database() as address:
        restart = partial(own_postgres.restart, immediate=True)
        with disturbed(tmp_path, f"{address}&ledger=visits", lambda _: restart()) as running:
            assert running.told("worker died") == []


@pytest.mark.long
def test_a_worker_that_dies_at_once_again_and_again_ends_the_service(tmp_path: Path) -> None:
    prepared(tmp_path)
    with crew(tmp_path, planted="die at once", number=2) as running:
        assert running.parent.wait(PATIENCE) == 6
        assert {line["status"] for line in running.told("worker died")} == {7}
        assert re.search("Worker [12] died 2 times in a row", running.log.read_text())


def test_the_address_is_said_once_and_when_all_workers_listen(tmp_path: Path) -> None:
    said: list[str] = []
    config = ProcessConfig(catalogs=(), people=None, settings=ServiceSettings(), endpoint=Endpoint(port=0))
    doors = Doors(http=socket.socket(), wire=None, lines=())
    try:
        parent = _Crew(config, doors, cast(Any, None), lambda: said.append("here"))
        parent._workers = [_Worker(number=number, starts=0.0) for number in (1, 2)]
        for worker, expected in zip(parent._workers, ([], ["here"]), strict=True):
            worker.ready = True
            parent._say_listening()
            assert said == expected
        parent._say_listening()
        assert said == ["here"]
    finally:
        doors.http.close()


def test_pauses_grow_and_are_bounded() -> None:
    pauses = [pause(soon) for soon in range(10)]
    assert pauses[0] == 0  # it had been up for a while
    assert pauses == sorted(pauses)
    assert pauses[-1] == LONGEST_PAUSE


def is_gone(process: int) -> bool:
    """Tell whether a process ends soon, or has."""
    for _ in range(6000):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False


@pytest.mark.long
@pytest.mark.parametrize("how", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)])
def test_the_parent_passes_on_that_it_is_to_end(tmp_path: Path, how: signal.Signals) -> None:
    """What is under way is answered first."""
    tokens = prepared(tmp_path)
    with crew(tmp_path, planted="take a second", number=2) as running, ThreadPoolExecutor(1) as thread:
        asked = thread.submit(ask, running.port, tokens["bob"], question(1))
        running.wait_for("a question is under way")
        running.parent.send_signal(how)
        assert running.parent.wait(PATIENCE) == 0
        assert asked.result().status == 200
        assert len(running.told("worker died")) == 0
        assert all(map(is_gone, running.workers))


def check_page(port: int) -> None:
    """Its pages name the port that the system chose."""
    with closing(HTTPConnection("127.0.0.1", port)) as connection:
        connection.request("GET", "/")
        assert f"http://127.0.0.1:{port}" in connection.getresponse().read().decode()


@pytest.mark.long
def test_pages_name_the_port_and_workers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    prepared(tmp_path)
    with crew(tmp_path, number=2) as running:
        port = running.port
        check_page(port)
        running.parent.kill()
        assert all(map(is_gone, running.workers))
        with pytest.raises(ConnectionRefusedError):
            ask(port, "", {})

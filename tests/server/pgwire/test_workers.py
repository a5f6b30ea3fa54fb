"""Several workers at one socket for PostgreSQL clients: cancel requests, sign-ins, and one budget."""

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

import lapwing as lw
from lapwing.server.authentication import PATIENT
from lapwing.server.pgwire.cancel_lines import MOST_NUMBER, CancelLines, cancel_lines
from lapwing.server.pgwire.protocol import Cancel
from tests.support.server.crew import CATALOG, PATIENCE, Crew, ask, crew, prepared, question

Connection = psycopg.Connection[Any]
KEY: Final = bytes(range(32))
HOLD: Final = "hold queries of the wire"


# ---- the lines alone -------------------------------------------------------------------------------------------------


@contextmanager
def lines_of(workers: int) -> Iterator[list[CancelLines]]:
    made = cancel_lines(workers)
    with ExitStack() as stack:
        for end in (end for pair in made[0].doors for end in pair):
            stack.enter_context(closing(end))
        yield made


def heard(workers: int, requests: list[tuple[int, Cancel]]) -> list[list[Cancel]]:
    """Let workers get requests, and return what each of them hears or has of its own."""

    async def hear(lines: list[CancelLines]) -> list[list[Cancel]]:
        found: list[list[Cancel]] = [[] for _ in lines]
        for line, stopped in zip(lines, found, strict=True):
            line.start(stopped.append)
        for place, request in requests:
            if not lines[place].pass_on(request):
                found[place].append(request)
        while sum(map(len, found)) < len(requests):
            await asyncio.sleep(0)
        for line in lines:
            line.close()
        return found

    with lines_of(workers) as lines:
        return asyncio.run(hear(lines))


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_request_reaches_the_worker_whose_connection_it_is_for_whoever_got_it(workers: int) -> None:
    with lines_of(workers) as lines:
        numbers = [[line.number(count) for count in (0, 1, 2**31, 2**40)] for line in lines]
    assert len({one for own in numbers for one in own[:2]}) == 2 * workers
    assert all(0 < one <= MOST_NUMBER for own in numbers for one in own)
    keys = (KEY, KEY[:4])
    wanted = [[Cancel(one, key) for one in own for key in keys] for own in numbers]
    requests = [(getter, request) for own in wanted for request in own for getter in range(workers)]
    for own, found in zip(wanted, heard(workers, requests), strict=True):
        assert Counter(found) == Counter(own * workers)


def test_one_worker_without_lines_stops_its_own() -> None:
    alone = CancelLines()
    assert [alone.number(count) for count in range(3)] == [1, 2, 3]
    assert not alone.pass_on(Cancel(7, KEY))


def test_a_flood_of_requests_and_long_keys_are_dropped_and_nobody_waits() -> None:
    with lines_of(2) as lines:
        for _ in range(10_000):
            assert lines[0].pass_on(Cancel(3, KEY))
        assert lines[0].pass_on(Cancel(2**32 - 1, bytes(256)))
        data = os.read(lines[1].doors[1][0].fileno(), 1 << 20)
        assert len(data) % 37 == 0
        assert data.count(KEY) == len(data) // 37


# ---- real workers ----------------------------------------------------------------------------------------------------


def connected(running: Crew, who: str, token: str, **more: Any) -> Connection:
    given = {"options": "-c lapwing.epsilon=0.02", "sslmode": "disable", "autocommit": True, **more}
    return psycopg.connect(host="127.0.0.1", port=running.wire_port, user=who, password=token, dbname="visits", **given)


def asked(connection: Connection, number: int) -> str:
    try:
        (row,) = connection.execute(question(number)["sql"]).fetchall()
    except psycopg.Error as error:
        return error.sqlstate or ""
    assert isinstance(row[0], int)
    return "answered"


def cancelled(folder: Path, planted: str, *, replaced: bool = False) -> Counter[str]:
    """Cancel a query of each of many connections by one request, whichever worker gets it; return what came of them.

    Args: replaced: whether a worker is killed before, and another takes its place.
    """
    tokens = prepared(folder, epsilon=10)
    with crew(folder, "--postgres", "0", planted=planted, number=2) as running, ExitStack() as stack:
        connections: list[Connection] = []
        running.wait_for("listening")
        if replaced:
            os.kill(running.workers[0], signal.SIGKILL)
            running.wait_for("listening for PostgreSQL clients", 3)
        while min(Counter(one["worker"] for one in running.told("PostgreSQL client")).values(), default=0) < 8 or (
            len(running.told("PostgreSQL client")) < 16
        ):
            connections.append(stack.enter_context(connected(running, "bob", tokens["bob"])))
            assert len(connections) < 100
        threads = stack.enter_context(ThreadPoolExecutor(len(connections)))
        waiting = [threads.submit(asked, one, number) for number, one in enumerate(connections)]
        running.wait_for("a query arrived", len(connections))
        for connection in connections:
            connection.cancel_safe()
        done = [one.result(PATIENCE) for one in waiting] if planted == HOLD else []
        (folder / "go").touch()
        return Counter(done or [one.result(PATIENCE) for one in waiting])


@pytest.mark.long
@pytest.mark.parametrize("replaced", [False, True])
def test_cancel_requests_reach_the_right_worker(tmp_path: Path, *, replaced: bool) -> None:
    assert set(cancelled(tmp_path, HOLD, replaced=replaced)) == {"57014"}


@pytest.mark.long
def test_twin_a_worker_that_keeps_requests_for_another_is_found(tmp_path: Path) -> None:
    assert set(cancelled(tmp_path, "keep cancel requests")) == {"57014", "answered"}


@pytest.mark.long
def test_one_budget_and_one_meaning_of_a_query_at_all_workers(tmp_path: Path) -> None:
    """Of 60 connections at once, by HTTP and over the wire, all are let in, and each question is charged once."""
    tokens = prepared(tmp_path)
    with crew(tmp_path, "--postgres", "0", number=2) as running, ThreadPoolExecutor(60) as threads:
        running.wait_for("listening")

        def over_the_wire(number: int) -> str:
            with connected(running, "bob", tokens["bob"]) as connection:
                return asked(connection, number % 60)

        def over_http(number: int) -> str:
            reply = ask(running.port, tokens["bob"], question(number % 60))
            return {"": "answered", "budget_exhausted": "53400"}[reply.code]

        work = [threads.submit(over_the_wire if place % 3 else over_http, place) for place in range(180)]
        came = Counter(one.result(PATIENCE) for one in work)
    with lw.connect(tmp_path / CATALOG) as session:
        history = session.budget().history
        session._ledger.verify()
    assert len(history) == len({row.question for row in history}) == 50  # each costs a fiftieth
    assert all(row.answered for row in history)
    assert set(came) == {"answered", "53400"}
    assert len({one["worker"] for one in running.told("PostgreSQL client")}) == 2


@pytest.mark.long
def test_wrong_sign_ins_are_limited_among_all_workers(tmp_path: Path) -> None:
    """As over HTTP: 20 at once of an address and one a second, however many workers there are."""
    prepared(tmp_path)
    with crew(tmp_path, "--postgres", "0", number=2) as running, ThreadPoolExecutor(60) as threads:
        running.wait_for("listening")

        def attempt(_: int) -> str:
            with pytest.raises(psycopg.OperationalError) as refused:
                connected(running, "bob", "lapwing_wrong")
            return "tried" if "is wrong" in str(refused.value) else "limited"

        began = time.monotonic()
        came = Counter(threads.map(attempt, range(120)))
        took = time.monotonic() - began
    assert 0 < came["tried"] <= PATIENT + took + 2  # of each worker one more, which was nearly there
    assert came["limited"] > 0

"""The collector: each report once, durable before it is acknowledged, whatever is brought and whatever crashes."""

import itertools
import json
import random
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import date, timedelta
from fractions import Fraction
from http.client import HTTPException
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq
import pytest

from lapwing.collector import collector as collectors
from lapwing.collector import identities
from lapwing.collector.collector import Collector, Shuffling
from lapwing.collector.identities import IdentitySet
from lapwing.collector.inbox import ReportInbox
from lapwing.collector.postgres_inbox import PostgresInbox
from lapwing.collector.released import uniform_order
from lapwing.errors import Fault, InvalidParameter
from lapwing.local import (
    amplified_epsilon,
    client,
    collect_for,
    decode,
    estimate,
    estimate_mean,
    estimate_sketch,
    mechanism_of,
)
from tests.collector.tasks import (
    BITS,
    CLOSED,
    COIN,
    FOUND,
    GONE,
    IN_TIME,
    MINUTES,
    PERIODS,
    RECORD,
    SKETCH,
    WAYS,
    body,
    reports,
)
from tests.support.effort import one_in, only
from tests.support.fixed_entropy import StreamEntropy
from tests.support.postgres import Postgres
from tests.support.refusals import refused_as

Made = Callable[..., Collector]


@pytest.fixture(params=["file", "database"])
def database(request: pytest.FixtureRequest) -> str | None:
    """Where reports are kept: an empty database, or the folder of the test."""
    return request.getfixturevalue("postgres") if request.param == "database" else None


@pytest.fixture
def make(tmp_path: Path, database: str | None) -> Iterator[Made]:
    """Makes collectors in one place, and closes those that are left."""
    made: list[Collector] = []

    def new(task: client.Task, **options: Any) -> Collector:
        made.append(Collector(tmp_path, task, database=database, **options))
        return made[-1]

    yield new
    for one in made:
        with suppress(Fault, ValueError):
            one.close()


def bring(collector: Collector, lines: list[bytes]) -> collectors.Receipt:
    return collector.bring(body(lines)).result(30)


# Each once


def test_a_report_counts_once(make: Made) -> None:
    """In one request, in another one, and after a restart."""
    lines = reports(WAYS, "aabbc")
    one = make(WAYS)
    assert bring(one, [*lines, lines[0]]) == collectors.Receipt(taken=5, repeated=1, rejected=0, reasons=())
    assert bring(one, lines[2:]) == collectors.Receipt(taken=0, repeated=3, rejected=0, reasons=())
    one.close()
    again = make(WAYS)
    assert again.status["reports"] == 5
    assert bring(again, lines).repeated == 5
    assert again.status["reports"] == 5
    assert again.status["rejected"] == {collectors.REPEATED: 9}


def check_repeats_of_many_at_once(collector: Collector) -> None:
    lines = reports(COIN, ["no", "yes"] * 100)
    with ThreadPoolExecutor(16) as pool:
        receipts = list(pool.map(lambda line: bring(collector, [line]), lines * 3))
    assert sum(receipt.taken for receipt in receipts) == collector.status["reports"] == 200
    assert sum(receipt.repeated for receipt in receipts) == 400


def test_many_at_once_count_once(make: Made) -> None:
    check_repeats_of_many_at_once(make(COIN))


def test_a_collector_that_does_not_look_is_caught(make: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(IdentitySet, "known", lambda self, each: [False] * len(each))
    with pytest.raises(AssertionError):
        check_repeats_of_many_at_once(make(COIN))


def test_what_is_no_report_is_rejected_by_itself(make: Made) -> None:
    good, other = reports(WAYS, "ab"), reports(COIN, ["no"])
    beyond = json.dumps({**json.loads(reports(WAYS, "a")[0]), "r": 5}).encode()
    collector = make(WAYS)
    receipt = bring(collector, [good[0], b"{", b"", other[0], b"[" * 400, beyond, b"x" * 5000, good[1]])
    assert (receipt.taken, receipt.rejected) == (2, 5)
    assert receipt.reasons[1] == (4, "the report is of another task")
    collector.close()
    counted: Any = make(WAYS).status["rejected"]  # by kind, and for good
    assert counted["the report is of another task"] == 1
    assert sum(counted.values()) == 5


def test_identities_are_a_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against Python's own; those with zero bytes at their ends, too, which arrays of bytes pad."""
    monkeypatch.setattr(identities, "RECENT", 7)
    draw, ours, theirs = random.Random("identities"), IdentitySet(), set[bytes]()
    for _ in range(300):
        some = {
            draw.randbytes(2) + bytes(draw.choice([0, 1, 255]) for _ in range(14)) for _ in range(draw.randint(0, 9))
        }
        some |= {bytes(16), bytes([*[0] * 14, 1, 0])} if draw.random() < 0.1 else set()
        asked = list(some)
        assert ours.known(asked) == [one in theirs for one in asked]
        new = [one for one in asked if one not in theirs]
        ours.add(new)
        theirs |= some
        assert len(ours) == len(theirs)
    assert len(ours._runs) < 12


# What it says


@pytest.mark.parametrize("task", one_in(4, [COIN, WAYS]), ids=["coin", "k-ary"])
def test_running_estimates_are_those_of_all_reports(task: client.Task, make: Made) -> None:
    lines = reports(task, [task.values[i % 2] for i in range(500)])
    collector = make(task)
    for at in range(0, 500, 100):
        bring(collector, lines[at : at + 100])
    gathered = collect_for(mechanism_of(task.asked), task, lines)
    expected = estimate(gathered.mechanism, gathered.reports, task.values).rows(whom="population")  # type: ignore[arg-type]
    assert [{key: row[key] for key in expected[0]} for row in collector.estimate()] == expected
    collector.close()
    assert make(task).estimate() == collector.estimate()


def test_running_means_periods_and_records(make: Made) -> None:
    lines = reports(MINUTES, ["30", "60"] * 100)
    collector = make(MINUTES)
    bring(collector, lines)
    gathered = collect_for(mechanism_of(MINUTES.asked), MINUTES, lines)
    (row,) = collector.estimate()
    assert row == pytest.approx(estimate_mean(gathered.mechanism, gathered.reports).rows(whom="population")[0])  # type: ignore[arg-type]
    tree = make(PERIODS)
    bring(tree, reports(PERIODS, ["yes"] * 200))
    assert tree.estimate()[0]["period"] == 1
    record = make(RECORD)
    bring(record, reports(RECORD, [{"How do you come?": "bus", "How long?": "20"}] * 200))
    assert [(row["question"], row.get("value")) for row in record.estimate()] == [
        ("How do you come?", "walk"), ("How do you come?", "bus"), ("How do you come?", "car"), ("How long?", None),
    ]  # fmt: skip


@pytest.mark.parametrize("task", only([0], [SKETCH, BITS]), ids=["sketch", "bits"])
def test_running_estimates_of_words(task: client.Task, make: Made) -> None:
    """Of the candidates, as the command computes them from the files; without candidates it says what to do."""
    answers = [["bread", "salad", "soup"][i % 3] for i in range(600)]
    lines, candidates = reports(task, answers), ["soup", "bread", "rice"]
    collector = make(task, candidates=candidates)
    bring(collector, lines[:200])
    collector._tally._next = 0.0  # type: ignore[union-attr]  # it rests after each computation
    bring(collector, lines[200:])
    gathered: Any = collect_for(mechanism_of(task.asked), task, lines)
    if task is SKETCH:
        expected: Any = estimate_sketch(gathered.mechanism, gathered.reports, candidates).rows(whom="population")
    else:
        expected = decode(gathered.mechanism, gathered.reports, candidates).rows()
    assert [row["value"] for row in collector.estimate()] == candidates
    assert [row["share"] for row in collector.estimate()] == pytest.approx([row["share"] for row in expected])
    collector.close()
    blind = make(task)
    with refused_as("needs_candidates"):
        blind.estimate()
    assert len(blind.release()) == 1
    with pytest.raises(InvalidParameter, match="no use for candidates"):
        make(WAYS, candidates=candidates)


def test_words_that_nobody_listed_are_found(make: Made) -> None:
    collector = make(FOUND)
    assert collector.estimate() == []
    bring(collector, reports(FOUND, ["ab", "cd"] * 4000))
    found = [row["value"] for row in collector.estimate()]
    # Words that nobody has are found in at most 5 % of estimates, and three of them hardly once in 50,000.
    assert {"ab", "cd"} == set(found[:2])
    assert len(found) < 5


def test_an_estimate_of_words_rests(make: Made) -> None:
    """Who asks all the time gets what was computed before, and does not fill a processor."""
    collector = make(SKETCH, candidates=["soup"])
    bring(collector, reports(SKETCH, ["soup"] * 10))
    assert collector.estimate()[0]["reports"] == 10
    tally: Any = collector._tally
    tally._next = time.monotonic() + 3600
    bring(collector, reports(SKETCH, ["soup"] * 10))
    assert collector.estimate()[0]["reports"] == 10
    tally._next = 0.0
    assert collector.estimate(0.5)[0]["reports"] == 20


# Batches and release


def test_estimates_move_by_whole_batches(make: Made) -> None:
    """And after a restart they are where they were."""
    lines = reports(WAYS, "abcde" * 10)
    collector = make(WAYS, batch=20)
    counted = []
    for line in lines:
        bring(collector, [line])
        counted.append(collector.status["reports"])
    assert counted == [*[0] * 19, *[20] * 20, *[40] * 11]
    assert len(collector.release()) == 1
    collector.close()
    again = make(WAYS, batch=20)
    assert again.status["reports"] == 40
    assert again.estimate() == collector.estimate()
    assert again.release() == []
    bring(again, reports(WAYS, "a" * 10))
    assert len(again.release()) == 1
    again.close()
    with pytest.raises(Fault, match="batches of 20"):
        make(WAYS, batch=10)


def test_what_is_released_has_what_reports_say_and_nothing_else(
    make: Made, tmp_path: Path, database: str | None
) -> None:
    lines = reports(WAYS, "abcde" * 20)
    collector = make(WAYS)
    bring(collector, lines)
    (place,) = collector.release()
    if database is None:
        table = pq.read_table(place)
        assert table.column_names == ["r"]
        said = [json.loads(one) for one in table["r"].to_pylist()]
        assert {key.decode() for key in table.schema.metadata} == {"task", "until", "reports", "least"}
        data = Path(place).read_bytes()
        for line in lines:
            identity = json.loads(line)["id"]
            assert identity.encode() not in data
            assert bytes.fromhex(identity) not in data
    else:
        with psycopg.connect(database) as connection:
            found = connection.execute("SELECT * FROM lapwing_reports.released_reports").fetchall()
        assert {row[:2] for row in found} == {(WAYS.digest, 1)}
        said = [row[2] for row in found]
    assert Counter(said) == Counter(json.loads(line)["r"] for line in lines)
    assert said != [json.loads(line)["r"] for line in lines]


def test_every_order_is_as_likely() -> None:
    entropy, draws = StreamEntropy("orders"), 6000
    counts = Counter(tuple(uniform_order(3, entropy)) for _ in range(draws))
    assert set(counts) == set(itertools.permutations(range(3)))
    assert all(abs(count - draws / 6) < 5 * (draws * 5 / 36) ** 0.5 for count in counts.values())


def test_when_a_task_is_closed_nothing_comes_and_identities_go(
    make: Made, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, database: str | None
) -> None:
    lines = reports(CLOSED, "abc")
    monkeypatch.setattr(collectors, "today_in_utc", lambda: IN_TIME)
    collector = make(CLOSED)
    bring(collector, lines[:2])
    monkeypatch.setattr(collectors, "today_in_utc", lambda: date(2026, 2, 2))
    with refused_as("task_closed"):
        collector.bring(body(lines))
    collector.release()
    collector.close()
    assert not any(bytes.fromhex(json.loads(line)["id"]) in held(tmp_path, database) for line in lines)
    assert make(CLOSED).status["reports"] == 2


def held(folder: Path, database: str | None) -> bytes:
    """Return all that is kept."""
    if database is None:
        return b"".join(file.read_bytes() for file in folder.iterdir())
    found: list[Any] = []
    with psycopg.connect(database) as connection:
        for table in ("tasks", "taken", "rejected", "releases", "released_reports", "kept"):
            found += connection.execute(f"SELECT * FROM lapwing_reports.{table}".encode()).fetchall()
    return b"".join(value if isinstance(value, bytes) else str(value).encode() for row in found for value in row)


def test_reports_are_deleted_when_their_days_are_over(
    make: Made, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, database: str | None
) -> None:
    """By the thread that writes, without anybody asking; what they added up to stays, also after a restart."""
    lines = reports(GONE, "aabbc" * 40)
    monkeypatch.setattr(collectors, "LOOK", 0.02)
    monkeypatch.setattr(collectors, "today_in_utc", lambda: IN_TIME)
    collector = make(GONE)
    bring(collector, lines)
    collector.release()
    before = collector.estimate()
    marks = [json.loads(line)["id"] for line in lines[:3]]
    assert all(bytes.fromhex(mark) in held(tmp_path, database) for mark in marks)
    monkeypatch.setattr(collectors, "today_in_utc", lambda: GONE.closes + timedelta(days=7))
    time.sleep(0.1)
    assert (collector.status["deleted"], collector.status["reports"]) == (None, 200)  # on the last day they are there
    monkeypatch.setattr(collectors, "today_in_utc", lambda: GONE.closes + timedelta(days=8))
    until = time.monotonic() + 120
    while collector.status["deleted"] is None and time.monotonic() < until:
        time.sleep(0.02)
    for one in (collector, None):
        if one is None:
            collector.close()
            one = make(GONE)
        assert (one.status["deleted"], one.status["reports"]) == ("2026-02-09", 200)
        assert one.estimate() == before
        with refused_as("reports_deleted", saying="2026-02-09"):
            one.estimate(0.9)
        assert one.release() == []
    assert not any(bytes.fromhex(mark) in held(tmp_path, database) for mark in marks)
    assert list(tmp_path.glob("*.parquet")) == []
    if database is not None:
        with psycopg.connect(database) as connection:
            for table in ("taken", "released_reports"):
                assert connection.execute(f"SELECT * FROM lapwing_reports.{table}".encode()).fetchall() == []


@pytest.mark.long
def test_what_shuffling_promises_counts_honest_reports_of_a_batch(make: Made) -> None:
    collector = make(WAYS, batch=1000, shuffling=Shuffling(delta=Fraction(1, 10**6), forged=100))
    shuffled: Any = collector.shuffled
    certified = amplified_epsilon(mechanism_of(WAYS.asked), 1000, Fraction(1, 10**6), forged=100)  # type: ignore[arg-type]
    assert certified.upper <= float(shuffled["epsilon"]) < certified.upper + 2e-6
    assert amplified_epsilon(mechanism_of(WAYS.asked), 1000, Fraction(1, 10**6)).upper < certified.upper  # type: ignore[arg-type]
    assert "at least 900 reports" in shuffled["trust"]
    with pytest.raises(InvalidParameter, match="independent"):
        make(PERIODS, shuffling=Shuffling(delta=Fraction(1, 10**6)))


# Faults


def test_one_process_holds_the_file(make: Made) -> None:
    make(WAYS)
    with pytest.raises(Fault, match="another collector"):
        make(WAYS)


def test_nothing_is_acknowledged_that_is_not_on_the_disk(
    make: Made, monkeypatch: pytest.MonkeyPatch, database: str | None
) -> None:
    """A commit that fails tells everybody who waits; what they bring again is new."""
    store = ReportInbox if database is None else PostgresInbox
    collector, lines, real = make(WAYS), reports(WAYS, "abc"), store.append

    def fail(*_: Any) -> int:
        raise Fault("The disk is full.")

    monkeypatch.setattr(store, "append", fail)
    with pytest.raises(Fault, match="disk is full"):
        bring(collector, lines)
    monkeypatch.setattr(store, "append", real)
    assert bring(collector, lines).taken == 3


def check_lost_answers(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bring reports whose commit is done and not told, and bring them again."""
    lines, store = reports(WAYS, "abc"), type(collector._inbox)
    real = store.append

    def cut_off(self: Any, *rest: Any) -> int:
        real(self, *rest)
        raise Fault("The connection was lost.")

    with monkeypatch.context() as lost:
        lost.setattr(store, "append", cut_off)
        with pytest.raises(Fault):
            bring(collector, lines[:2])
    receipt = bring(collector, lines)
    assert (receipt.taken, receipt.repeated, collector.status["reports"]) == (1, 2, 3)


def test_a_commit_that_was_done_and_not_told_counts_once(make: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    check_lost_answers(make(WAYS), monkeypatch)


def test_a_collector_that_does_not_look_again_is_caught(make: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    collector = make(WAYS)
    monkeypatch.setattr(Collector, "_catch_up", lambda self: None)
    with pytest.raises(AssertionError):
        check_lost_answers(collector, monkeypatch)


@pytest.mark.long
def test_a_database_that_is_restarted_is_a_fault_and_then_goes_on(own_postgres: Postgres, tmp_path: Path) -> None:
    with own_postgres.database() as address:
        collector = Collector(tmp_path, WAYS, database=address)
        lines = reports(WAYS, "abcd")
        assert bring(collector, lines[:1]).taken == 1
        own_postgres.stop(immediate=True)
        with pytest.raises(Fault, match="look after the server"):
            bring(collector, lines[1:2])
        own_postgres.start()
        assert bring(collector, lines).taken == 3
        collector.close()
        again = Collector(tmp_path, WAYS, database=address)
        assert again.status["reports"] == 4
        again.close()


def test_addresses_with_passwords_and_others_are_refused(tmp_path: Path) -> None:
    for address in ("postgres://a:secret@host/db", "mysql://host/db", "postgres://host/db?nothing=1"):
        with pytest.raises(InvalidParameter) as refused:
            Collector(tmp_path, WAYS, database=address)
        assert "secret" not in str(refused.value)


SERVE = """
import sys
from pathlib import Path
from lapwing.cli import main
sys.exit(main(["local", "collect", "task.json", "--listen", "127.0.0.1:" + sys.argv[1], "--rate", "0"]))
"""


def free_port() -> int:
    import socket

    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


def post(address: str, data: bytes) -> dict[str, Any]:
    with urllib.request.urlopen(urllib.request.Request(address, data, method="POST"), timeout=30) as response:
        found: dict[str, Any] = json.load(response)
        return found


def started(folder: Path, port: int) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE, str(port)], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    for _ in range(2400):
        with suppress(OSError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/local/", timeout=5).close()
            return process
        time.sleep(0.05)
    raise AssertionError("the collector does not start")


@pytest.mark.long
def test_kill_9_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """Four who bring reports one by one, until the process is killed in the middle; then all of theirs are known."""
    (tmp_path / "task.json").write_text(json.dumps(WAYS.document))
    port = free_port()
    address = f"http://127.0.0.1:{port}/local/{WAYS.id}/reports"
    process = started(tmp_path, port)
    acknowledged: list[bytes] = []
    brought = [reports(WAYS, "abcde" * 60) for _ in range(4)]

    def bring_all(lines: list[bytes]) -> None:
        with suppress(OSError, HTTPException):
            for line in lines:
                assert post(address, line)["taken"] == 1
                acknowledged.append(line)

    threads = [threading.Thread(target=bring_all, args=(lines,)) for lines in brought]
    for thread in threads:
        thread.start()
    while len(acknowledged) < 50:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    for thread in threads:
        thread.join()
    assert 50 <= len(acknowledged) < 1200
    process = started(tmp_path, port)
    try:
        receipt = post(address, body(acknowledged))
        assert (receipt["taken"], receipt["repeated"]) == (0, len(acknowledged))
    finally:
        process.terminate()
        process.wait()


def test_a_user_who_may_make_no_schemas_collects_into_what_is_there(postgres: str, tmp_path: Path) -> None:
    Collector(tmp_path, WAYS, database=postgres).close()
    name = f"collecting_{Path(tmp_path).parent.name.replace('-', '_')}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN".encode())
        try:
            connection.execute(f"GRANT USAGE ON SCHEMA lapwing_reports TO {name}".encode())
            connection.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA lapwing_reports TO {name}".encode())
            address = postgres.replace("postgres://lapwing@", f"postgres://{name}@")
            collector = Collector(tmp_path, WAYS, database=address)
            assert bring(collector, reports(WAYS, "ab")).taken == 2
            collector.close()
        finally:
            connection.execute(f"DROP OWNED BY {name}; DROP ROLE {name}".encode())

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
from datetime import date
from fractions import Fraction
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from lapwing.collector import collector as collectors
from lapwing.collector import identities
from lapwing.collector.collector import Collector, Shuffling
from lapwing.collector.identities import Identities
from lapwing.collector.inbox import Inbox
from lapwing.collector.released import uniform_order
from lapwing.errors import Fault, InvalidParameter, QueryRefused
from lapwing.local import amplified_epsilon, client, collect_for, estimate, estimate_mean, mechanism_of
from tests.collector.tasks import CLOSED, COIN, IN_TIME, MINUTES, PERIODS, RECORD, WAYS, WORDS, body, reports
from tests.support.fixed_entropy import StreamEntropy

Made = Callable[..., Collector]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Made]:
    """Makes collectors in one folder, and closes those that are left."""
    made: list[Collector] = []

    def new(task: client.Task, **options: Any) -> Collector:
        made.append(Collector(tmp_path, task, **options))
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
    monkeypatch.setattr(Identities, "known", lambda self, each: [False] * len(each))
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
    draw, ours, theirs = random.Random("identities"), Identities(), set[bytes]()
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


@pytest.mark.parametrize("task", [COIN, WAYS], ids=["coin", "k-ary"])
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


def test_words_are_estimated_from_the_files(make: Made) -> None:
    collector = make(WORDS)
    bring(collector, reports(WORDS, ["salad"] * 5))
    with pytest.raises(QueryRefused, match="released files"):
        collector.estimate()
    assert len(collector.release()) == 1


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


def test_released_files_have_what_reports_say_and_nothing_else(make: Made, tmp_path: Path) -> None:
    lines = reports(WAYS, "abcde" * 20)
    collector = make(WAYS)
    bring(collector, lines)
    (path,) = collector.release()
    table = pq.read_table(path)
    assert table.column_names == ["r"]
    said = [json.loads(one) for one in table["r"].to_pylist()]
    assert Counter(said) == Counter(json.loads(line)["r"] for line in lines)
    assert said != [json.loads(line)["r"] for line in lines]
    data = path.read_bytes()
    for line in lines:
        identity = json.loads(line)["id"]
        assert identity.encode() not in data
        assert bytes.fromhex(identity) not in data
    assert {key.decode() for key in table.schema.metadata} == {"task", "until", "reports", "least"}


def test_every_order_is_as_likely() -> None:
    entropy, draws = StreamEntropy("orders"), 6000
    counts = Counter(tuple(uniform_order(3, entropy)) for _ in range(draws))
    assert set(counts) == set(itertools.permutations(range(3)))
    assert all(abs(count - draws / 6) < 5 * (draws * 5 / 36) ** 0.5 for count in counts.values())


def test_when_a_task_is_closed_nothing_comes_and_identities_go(
    make: Made, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lines = reports(CLOSED, "abc")
    monkeypatch.setattr(collectors, "today_in_utc", lambda: IN_TIME)
    collector = make(CLOSED)
    bring(collector, lines[:2])
    monkeypatch.setattr(collectors, "today_in_utc", lambda: date(2026, 2, 2))
    with pytest.raises(QueryRefused, match="takes no reports today"):
        collector.bring(body(lines))
    collector.release()
    collector.close()
    held = b"".join(file.read_bytes() for file in tmp_path.glob("*.db*"))
    assert not any(bytes.fromhex(json.loads(line)["id"]) in held for line in lines)
    assert make(CLOSED).status["reports"] == 2


def test_what_shuffling_promises_counts_honest_reports_of_a_batch(make: Made) -> None:
    collector = make(WAYS, batch=1000, shuffling=Shuffling(delta=Fraction(1, 10**6), forged=100))
    shuffled: Any = collector.shuffled
    certified = amplified_epsilon(mechanism_of(WAYS.asked), 1000, Fraction(1, 10**6), forged=100)  # type: ignore[arg-type]
    assert certified.upper <= float(shuffled["epsilon"]) < certified.upper + 2e-6
    assert amplified_epsilon(mechanism_of(WAYS.asked), 1000, Fraction(1, 10**6)).upper < certified.upper  # type: ignore[arg-type]
    assert "900 reports or more" in shuffled["trust"]
    with pytest.raises(InvalidParameter, match="independent"):
        make(PERIODS, shuffling=Shuffling(delta=Fraction(1, 10**6)))


# Faults


def test_one_process_holds_the_file(make: Made, tmp_path: Path) -> None:
    make(WAYS)
    with pytest.raises(Fault, match="another collector"):
        Collector(tmp_path, WAYS)


def test_nothing_is_acknowledged_that_is_not_on_the_disk(make: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit that fails tells everybody who waits; what they bring again is new."""
    collector, lines, real = make(WAYS), reports(WAYS, "abc"), Inbox.append

    def fail(*_: Any) -> int:
        raise Fault("The disk is full.")

    monkeypatch.setattr(Inbox, "append", fail)
    with pytest.raises(Fault, match="disk is full"):
        bring(collector, lines)
    monkeypatch.setattr(Inbox, "append", real)
    assert bring(collector, lines).taken == 3


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
    for _ in range(400):
        with suppress(OSError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/local/", timeout=5).close()
            return process
        time.sleep(0.05)
    raise AssertionError("the collector does not start")


def test_kill_9_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """Four who bring reports one by one, until the process is killed in the middle; then all of theirs are known."""
    (tmp_path / "task.json").write_text(json.dumps(WAYS.document))
    port = free_port()
    address = f"http://127.0.0.1:{port}/local/{WAYS.id}/reports"
    process = started(tmp_path, port)
    acknowledged: list[bytes] = []
    brought = [reports(WAYS, "abcde" * 200) for _ in range(4)]

    def bring_all(lines: list[bytes]) -> None:
        with suppress(OSError, HTTPException):
            for line in lines:
                assert post(address, line)["taken"] == 1
                acknowledged.append(line)

    threads = [threading.Thread(target=bring_all, args=(lines,)) for lines in brought]
    for thread in threads:
        thread.start()
    while len(acknowledged) < 100:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    for thread in threads:
        thread.join()
    assert 100 <= len(acknowledged) < 4000
    process = started(tmp_path, port)
    try:
        receipt = post(address, body(acknowledged))
        assert (receipt["taken"], receipt["repeated"]) == (0, len(acknowledged))
    finally:
        process.terminate()
        process.wait()

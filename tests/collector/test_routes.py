"""The collector over HTTP: what it takes, what it refuses, and what it says in its headers."""

import html
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import pytest

from lapwing.collector import routes
from lapwing.collector.collector import MOST_LINES, Collector
from lapwing.collector.rates import RequestRates
from lapwing.collector.task_list import task_list
from lapwing.languages import language_for
from lapwing.local import client
from tests.collector.tasks import COIN, SKETCH, WAYS, body, reports
from tests.support.browser.collectors import collecting

Answer = tuple[int, dict[str, str], Any]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("collector")
    collectors = {task.id: Collector(folder, task) for task in (COIN, WAYS, SKETCH)}
    with collecting(collectors) as found:
        yield f"{found}/local"
    for collector in collectors.values():
        collector.close()


def ask(url: str, data: bytes | None = None, method: str | None = None) -> Answer:
    request = urllib.request.Request(url, data, method=method or ("GET" if data is None else "POST"))
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            status, headers, text = response.status, response.headers, response.read()
    except urllib.error.HTTPError as error:
        with error:
            status, headers, text = error.code, error.headers, error.read()
    kind = headers.get("content-type", "")
    return status, {key.lower(): value for key, value in headers.items()}, json.loads(text) if "json" in kind else text


def test_a_client_needs_the_task_and_no_more(address: str) -> None:
    """From the list of tasks to an estimate."""
    status, _, listed = ask(f"{address}/")
    assert status == 200
    assert {each["question"] for each in listed["tasks"]} == {COIN.question, WAYS.question, SKETCH.question}
    _, _, document = ask(f"{address}/{WAYS.id}/task")
    assert client.task_of(document) == WAYS
    lines = reports(WAYS, "aabbc" * 20)
    assert ask(f"{address}/{WAYS.id}/reports", lines[0])[2] == {
        "taken": 1, "repeated": 0, "rejected": 0, "reasons": [],
    }  # fmt: skip
    _, _, receipt = ask(f"{address}/{WAYS.id}/reports", body([*lines, b"nonsense"]))
    assert (receipt["taken"], receipt["repeated"], receipt["rejected"]) == (99, 1, 1)
    status, _, found = ask(f"{address}/{WAYS.id}/estimate?confidence=0.9")
    assert (status, found["reports"], found["confidence"], found["whom"]) == (200, 100, 0.9, "population")
    assert [row["value"] for row in found["estimates"]] == list("abcde")
    assert ask(f"{address}/{WAYS.id}/status")[2]["rejected"]["the id was seen before"] == 1


def test_a_browser_gets_the_list_of_questions_as_a_page(address: str) -> None:
    request = urllib.request.Request(f"{address}/", headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
    with urllib.request.urlopen(request, timeout=30) as response:
        policy, page = response.headers["content-security-policy"], response.read().decode()
    assert "default-src 'none'" in policy
    assert "<script" not in page
    for task in (COIN, WAYS, SKETCH):
        assert f'<a href="{task.id}/">{html.escape(task.question)}</a>' in page
        percent = float(task.promise.partition("at most ")[2].partition(" %")[0])
        assert f"at most {percent:g} % sure" in page
        assert task.ratio <= Fraction(str(percent)) / (100 - Fraction(str(percent)))  # rounded up, never down
    assert "ε = 1." in page
    assert ask(f"{address}/")[2]["tasks"]  # programs get JSON


def test_a_hostile_question_stays_a_text() -> None:
    class Asked:
        task, closed = replace(COIN, question="<script>alert(1)</script>{x}"), False

    page = task_list("{tasks}", [cast(Collector, Asked)], language_for("en"))
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;{x}" in page


def test_what_is_wrong_is_refused_with_a_reason(address: str) -> None:
    assert ask(f"{address}/{'0' * 32}/task")[0] == 404
    assert ask(f"{address}/{'0' * 32}/reports", b"x")[0] == 404
    assert ask(f"{address}/{COIN.id}/reports", method="GET")[0] == 405
    for data in (b"x" * (routes.MOST_BODY + 1), b"\n" * (MOST_LINES + 1), b"\n" * MOST_LINES + b"x"):
        status, _, told = ask(f"{address}/{COIN.id}/reports", data)
        assert (status, told["code"]) == (422, "invalid_parameter")
    for wrong in ("0", "1", "nan", "x", "-1", "inf"):
        assert ask(f"{address}/{COIN.id}/estimate?confidence={wrong}")[0] == 422
    assert ask(f"{address}/{SKETCH.id}/estimate")[0] == 409
    assert ask(f"{address}/{COIN.id}/../../../etc/passwd")[0] == 404
    assert ask(f"{address}/pages/survey.html")[0] == 404


@pytest.mark.parametrize("path", ["", "TASK/", "TASK/task", "TASK/status", "TASK/estimate", "survey.mjs", "none/task"])
def test_every_answer_has_strict_headers_and_no_cookie(address: str, path: str) -> None:
    _, headers, _ = ask(f"{address}/{path.replace('TASK', COIN.id)}")
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy and "http" not in policy and "*" not in policy  # noqa: PT018
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "set-cookie" not in headers
    assert "server" not in headers


def test_too_many_requests_of_one_address_wait(tmp_path: Path) -> None:
    collector = Collector(tmp_path, COIN)
    with collecting({COIN.id: collector}, rate=0.1) as found:
        url = f"{found}/local/{COIN.id}/reports"
        first, second = (ask(url, line) for line in reports(COIN, ["no", "no"]))
    collector.close()
    assert first[0] == 200
    assert (second[0], second[2]["code"]) == (429, "too_many_requests")
    assert 1 <= int(second[1]["retry-after"]) <= 10


def test_rates_fill_again_and_are_of_networks() -> None:
    rates = RequestRates(1)
    assert [rates.wait("192.0.2.1", 0.0) for _ in range(11)] == [0] * 10 + [1]
    assert rates.wait("192.0.2.2", 0.0) == 0
    assert [rates.wait("192.0.2.1", 1.0) for _ in range(2)] == [0, 1]
    assert [rates.wait(f"2001:db8::{i}", 0.0) for i in range(11)] == [0] * 10 + [1]
    assert not any(RequestRates(0).wait("192.0.2.1", 0.0) for _ in range(1000))


def test_no_address_is_kept(address: str, tmp_path: Path) -> None:
    collector = Collector(tmp_path, COIN)
    with collecting({COIN.id: collector}) as found:
        ask(f"{found}/local/{COIN.id}/reports", reports(COIN, ["no"])[0])
    collector.release()
    collector.close()
    files = [file for file in tmp_path.iterdir() if file.is_file()]
    assert len(files) >= 2
    for file in files:
        assert b"127.0.0.1" not in file.read_bytes()

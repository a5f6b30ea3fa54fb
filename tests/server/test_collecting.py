"""`lapwing serve --task`: tasks for respondents beside data sets, at one address, each with rules of its own."""

import http.client
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.collector.tasks import COIN, body, reports
from tests.server.test_serving import PROTECT, served, token
from tests.support.cli.command import Run, write_visits
from tests.support.effort import only


def ask(port: int, method: str, path: str, data: bytes | None = None) -> tuple[int, dict[str, str], bytes]:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request(method, path, data)
        answer = connection.getresponse()
        headers = [(name.lower(), value) for name, value in answer.getheaders()]
        assert len(headers) == len(dict(headers)), "a second policy beside a page's own would stop its scripts"
        return answer.status, dict(headers), answer.read()


@pytest.mark.long
def test_a_page_its_reports_and_their_estimate_beside_questions(tmp_path: Path) -> None:
    write_visits(tmp_path)
    (tmp_path / "task.json").write_text(json.dumps(COIN.document))
    lines = reports(COIN, ["yes", "no"] * 300)
    at = f"/local/{COIN.id}/"
    options = ("--task", "task.json", "--batch", "500", "--shuffle-delta", "1e-6", "--forged", "50")
    with served(tmp_path, "visits.parquet", *PROTECT, *options) as (process, port):
        status, headers, page = ask(port, "GET", at)
        assert (status, b"survey.mjs" in page) == (200, True)
        assert "script-src 'self'" in headers["content-security-policy"]
        for brought, counts, counted in ((400, (400, 0), 0), (600, (200, 400), 600), (600, (0, 600), 600)):
            receipt = json.loads(ask(port, "POST", at + "reports", body(lines[:brought]))[2])
            assert (receipt["taken"], receipt["repeated"]) == counts
            stated: Any = json.loads(ask(port, "GET", at + "status")[2])
            assert stated["reports"] == counted  # in whole batches
        promise = stated["shuffled"]
        assert (promise["batch"], promise["forged"], promise["delta"]) == (500, 50, "1e-6")
        assert 0 < float(promise["epsilon"]) < float(COIN.epsilon)
        # Reports have a limit of their own: a megabyte is what a question may have at most.
        assert ask(port, "POST", at + "reports", b" " * (2 << 20))[0] == 200
        found: Any = json.loads(ask(port, "GET", at + "estimate")[2])
        assert found["reports"] == 600
        assert ask(port, "GET", "/local/nothing/task")[0] == 404
        # The service is as it was.
        assert token(port)
        assert ask(port, "GET", "/v1/datasets")[0] == 401
        assert "script-src" not in ask(port, "GET", "/")[1]["content-security-policy"]
        process.terminate()
        assert process.stderr is not None
        logged = [json.loads(line) for line in process.stderr]
        process.wait(30)
    assert [line["place"] for line in logged if line["event"] == "reports released"] == [
        f"reports/{COIN.id}-000001.parquet"
    ]
    assert "/local" not in json.dumps(logged)
    assert (tmp_path / "reports" / f"{COIN.id}-000001.parquet").is_file()


@pytest.mark.parametrize(
    "option", only([0], [("--batch", "5"), ("--shuffle-delta", "1e-6"), ("--candidates", "words.txt")])
)
def test_what_is_of_reports_takes_a_task(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, option: tuple[str, str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_visits(tmp_path)
    refused = run("serve", "visits.parquet", *PROTECT, *option)
    assert refused.status == 2
    assert "--task" in refused.err


def test_one_process_takes_reports(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_visits(tmp_path)
    (tmp_path / "task.json").write_text(json.dumps(COIN.document))
    refused = run("serve", "visits.parquet", *PROTECT, "--task", "task.json", "--workers", "2")
    assert refused.status == 2
    assert "lapwing local collect" in refused.err

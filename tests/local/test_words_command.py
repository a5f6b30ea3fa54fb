"""`lapwing local` for texts: from a task to shares of candidates, and to words that nobody listed."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from lapwing.cli.local.task_mechanisms import TEXT_MAKERS
from lapwing.local import client, mechanism_of
from tests.support.cli.command import Outcome, Run, run
from tests.support.effort import one_in, only
from tests.support.fixed_entropy import StreamEntropy

__all__ = ["run"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def task(run: Run, epsilon: str, *more: str) -> client.Task:
    days = ("--opens", "2026-01-01", "--closes", "2099-12-31")
    made = run("local", "task", "--question", "Which?", "--epsilon", epsilon, *days, *more, "-o", "task.toml")
    assert made.status == 0, made.err
    return client.read_task(Path("task.toml").read_text())


def answer(asked: client.Task, answers: dict[str, int]) -> None:
    entropy = StreamEntropy("words")
    lines = [client.report(asked, word, entropy.read) for word, count in answers.items() for _ in range(count)]
    Path("reports.ndjson").write_bytes(b"\n".join([*lines, b"nonsense"]))


def estimated(run: Run, *more: str) -> tuple[list[dict[str, Any]], str]:
    outcome = run("local", "estimate", "task.toml", "reports.ndjson", *more)
    assert outcome.status == 0, outcome.err
    return list(csv.DictReader(io.StringIO(outcome.out))), outcome.err


@pytest.mark.parametrize("kind", one_in(3, TEXT_MAKERS))
def test_every_mechanism_for_texts_can_be_asked_for(run: Run, kind: str) -> None:
    asked = task(run, "1", "--text", "9", "--mechanism", kind)
    assert asked.mechanism == kind
    assert isinstance(asked.asked, client.Asked)
    assert mechanism_of(asked.asked).name == kind
    assert run("local", "report", "task.toml", stdin="été\n".encode()).status == 0
    assert run("local", "report", "task.toml", stdin=b"too long a word").status == 2


def test_errors_name_the_option(run: Run) -> None:
    days = ("--opens", "2026-01-01", "--closes", "2099-12-31")
    for size in ("0", "1001"):
        outcome = run("local", "task", "--question", "Which?", "--epsilon", "1", *days, "--text", size)
        assert (outcome.status, outcome.out) == (2, "")
        assert f"--text is {int(size):,}; it must be from 1 to 1,000" in outcome.err


@pytest.mark.long
def test_words_that_nobody_listed_are_found(run: Run) -> None:
    asked = task(run, "6", "--text", "2")
    assert asked.mechanism == "prefixes"
    answer(asked, {"no": 800, "é": 1200})
    rows, said = estimated(run, "--confidence", "0.99999999", "--plot", "chart.json")
    assert {row["value"] for row in rows} == {"no", "é"}
    for row in rows:
        truth = {"no": 0.4, "é": 0.6}[row["value"]]
        assert abs(float(row["share"]) - truth) <= 7 * float(row["standard_error"])
    assert "line 2001 rejected" in said
    assert "2 words of" in said
    assert "among other respondents than found the words" in said
    assert json.loads(Path("chart.json").read_text())["title"]["text"] == "Which?"
    assert run("local", "estimate", "task.toml", "reports.ndjson", "--candidates", "task.toml").status == 2


def test_no_words_are_no_failure(run: Run) -> None:
    asked = task(run, "0.1", "--text", "1")
    answer(asked, {chr(33 + i): 2 for i in range(90)})
    rows, said = estimated(run, "--confidence", "0.99999999")
    assert rows == []
    assert "0 words of" in said


@pytest.mark.long
@pytest.mark.parametrize("kind", only([0], ["sketch", "hadamard"]))
def test_candidates_are_counted(run: Run, kind: str) -> None:
    asked = task(run, "6", "--text", "4", "--mechanism", kind)
    answer(asked, {"🐦": 60, "no": 20})
    Path("words.txt").write_bytes("🐦\r\n\nno\nnone\n".encode())
    rows, said = estimated(run, "--candidates", "words.txt", "--forged", "3")
    assert [row["value"] for row in rows] == ["🐦", "no", "none"]
    for row, truth in zip(rows, (0.75, 0.25, 0), strict=True):
        assert abs(float(row["share"]) - truth) <= 7 * float(row["standard_error"])
    assert "3 forged reports" in said
    document = json.loads(
        run("local", "estimate", "task.toml", "reports.ndjson", "--candidates", "words.txt", "--format", "json").out
    )
    assert document["reports"] == 80
    assert document["task"]["text"] == {"most_bytes": 4}

    Path("bad.txt").write_bytes(b"\xff")
    Path("twice.txt").write_text("no\nno\n")
    for wrong in ((), ("--candidates", "bad.txt"), ("--candidates", "twice.txt")):
        assert run("local", "estimate", "task.toml", "reports.ndjson", *wrong).status == 2


def test_candidates_are_for_texts(run: Run) -> None:
    asked = task(run, "1", "--value", "no", "--value", "yes")
    answer(asked, {"no": 3})
    Path("words.txt").write_text("no\n")
    assert estimated(run)[0]
    assert run("local", "estimate", "task.toml", "reports.ndjson", "--candidates", "words.txt").status == 2


@pytest.mark.parametrize(
    "given",
    [
        (),
        ("--text", "5", "--value", "no", "--value", "yes"),
        ("--text", "0"),
        ("--text", "5000"),
        ("--text", "5", "--mechanism", "k-ary"),
        ("--value", "no", "--value", "yes", "--mechanism", "sketch"),
    ],
)
def test_tasks_that_mean_nothing_are_refused(run: Run, given: tuple[str, ...]) -> None:
    days = ("--opens", "2026-01-01", "--closes", "2099-12-31")
    assert run("local", "task", "--question", "Which?", "--epsilon", "1", *days, *given).status == 2


def test_reports_of_chosen_groups_are_named_and_refused(run: Run, folder: Path) -> None:
    """A tenth of the reports were moved into the last group, as somebody does who wants to win the shares."""
    asked = task(run, "2", "--text", "2")
    answer(asked, {"no": 300})
    lines = [json.loads(line) for line in Path("reports.ndjson").read_bytes().splitlines()[:-1]]
    assert "uneven" not in written(run, lines, "--format", "json").err
    last = max(line["r"][0] for line in lines)
    for line in lines[:60]:
        line["r"][0] = last
    outcome = written(run, lines, "--format", "json")
    (group, *_) = json.loads(outcome.out)["draws"]
    assert (group["name"], group["crowded"][0]["last"]) == ("group", last)
    assert group["p_value"] < 1e-3
    assert "uneven" in outcome.err
    assert "p = " in outcome.err
    assert written(run, lines, "--refuse-uneven").status == 2


def written(run: Run, lines: list[Any], *more: str) -> Outcome:
    """The estimate of reports as they were changed."""
    Path("reports.ndjson").write_text("\n".join(map(json.dumps, lines)))
    return run("local", "estimate", "task.toml", "reports.ndjson", *more)

"""What the command line says of parts: explain, query, budget."""

import json
from pathlib import Path

import pytest

from tests.release.test_parts_charged import about, write, write_visits
from tests.support.cli.command import Run


@pytest.fixture
def wards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_visits(tmp_path)
    write(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.long
def test_explain_says_what_is_charged_and_left(wards: Path, run: Run) -> None:
    run("query", about(2), "--epsilon", "0.6")
    said = run("explain", about(1, 2), "--epsilon", "0.3", "--verbose").out
    assert "charged to  parts 1 (ε 0 spent, ε 1 left), 2 (ε 0.6 spent, ε 0.4 left) of the data, no others" in said
    assert "30 % of the budget" in said
    document = json.loads(run("explain", about(1, 2), "--epsilon", "0.3", "--format", "json").out)
    assert [(part["part"], part["remaining"]["amount"]) for part in document["parts"]] == [("1", "1"), ("2", "0.4")]
    whole = run("explain", about(), "--epsilon", "0.3")
    assert "charged to" not in whole.out
    assert json.loads(run("explain", about(), "--epsilon", "0.3", "--format", "json").out)["parts"] is None


def test_query_says_what_is_left_for_its_parts(wards: Path, run: Run) -> None:
    run("query", about(2), "--epsilon", "0.6")
    assert "70 % left for part 1: 2 more like it" in run("query", about(1), "--epsilon", "0.3").err
    assert "10 % left: 0 more" in run("query", about(), "--epsilon", "0.3").err
    refused = run("query", about(2, 3), "--epsilon", "0.5")
    assert refused.status == 4
    assert "too little in part 2." in refused.err


def test_budget_shows_every_part(wards: Path, run: Run) -> None:
    run("query", about(2), "--epsilon", "0.6")
    run("query", about(1, 3), "--epsilon", "0.3")
    said = run("budget").out
    lines = [line.split() for line in said.splitlines()]
    assert ["2", "60", "%", "40", "%"] in lines
    assert "40 % of the budget for a query about all parts" in said
    assert "(part 2)" in said
    assert "2 more queries at the cost of the last would fit" in said
    document = json.loads(run("budget", "--format", "json").out)
    assert [part["spent"]["amount"] for part in document["parts"]] == ["0.3", "0.6", "0.3"]
    assert [part["spent_delta_keys"] for part in document["parts"]] == ["0", "0", "0"]
    assert [row["parts"] for row in document["history"]] == [["2"], ["1", "3"]]
    assert document["spent"]["amount"] == "0.6"
    assert document["more_like_the_last"] == 2


@pytest.mark.long
def test_many_parts_are_not_all_in_the_table(wards: Path, run: Run) -> None:
    sites = ", ".join(map(str, range(1, 31)))
    (wards / "lapwing.toml").write_text((wards / "lapwing.toml").read_text().replace("[1, 2, 3]", f"[{sites}]"))
    run("query", about(27), "--epsilon", "0.6")
    said = run("budget").out
    assert "10 more, each with a lower or the same cost" in said
    assert ["27", "60", "%", "40", "%"] in [line.split() for line in said.splitlines()]
    assert "and 24 more of the data" in " ".join(run("explain", about(*range(1, 30)), "--epsilon", "0.3").out.split())


@pytest.mark.long
def test_without_parts_nothing_is_said_of_them(wards: Path, run: Run) -> None:
    write(wards, part="")
    run("query", about(2), "--epsilon", "0.6")
    said = run("budget").out
    assert "part" not in said
    assert json.loads(run("budget", "--format", "json").out)["parts"] is None

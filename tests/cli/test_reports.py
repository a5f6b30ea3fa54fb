"""`lapwing explain`, `budget`, `data` and `ledger`: what they say, and that they cost nothing."""

import json
import sqlite3
from pathlib import Path

import pytest

import lapwing as lw
from lapwing.cli.figures import size
from tests.support.cli.command import BY_PLAN, INIT, Run, write_visits
from tests.support.effort import one_in

COUNT = "SELECT COUNT(*) AS n FROM visits"


def test_explain_shows_the_whole_promise(visits: Path, run: Run) -> None:
    said = run("explain", BY_PLAN, "--epsilon", "0.5").out
    expected = (
        "each person_id",
        "at most 3 rows",
        "epsilon 0.5 for this query",
        "27 such queries fit",
        "rounded Gaussian",
    )
    for words in (*expected, "sensitivity", "scale", "depends on the data", "sum of cost"):
        assert words in said, words


def test_explain_costs_nothing(visits: Path, run: Run) -> None:
    run("explain", BY_PLAN, "--epsilon", "0.5")
    with lw.connect() as session:
        assert session.budget().spent.amount == 0
        assert session.budget().history == ()


def test_explain_at_an_assumed_count_and_at_an_error(visits: Path, run: Run) -> None:
    said = run("explain", BY_PLAN, "--epsilon", "0.5", "--assuming-count", "2000").out
    assert "depends on the data" not in said
    document = json.loads(run("explain", COUNT, "--error", "20", "--format", "json").out)
    assert document["columns"][0]["half_width"] <= 20
    assert document["measures"][0]["mechanism"] == "rounded Gaussian"


@pytest.mark.long
def test_explain_says_when_it_would_be_free_or_refused(visits: Path, run: Run) -> None:
    run("query", COUNT, "--epsilon", "2")
    bought = run("explain", COUNT, "--epsilon", "1").out  # a ± of this cost, not of the better result that opens
    assert "it was bought before" in bought
    assert "may be more exact" in " ".join(bought.split())
    assert "may be more exact" not in " ".join(run("explain", BY_PLAN, "--epsilon", "0.5").out.split())
    assert "would be refused" in run("explain", BY_PLAN, "--epsilon", "2.9").out
    assert json.loads(run("explain", BY_PLAN, "--epsilon", "2.9", "--format", "json").out)["share_of_remaining"] > 1


def test_explain_of_an_empty_budget_is_json_too(visits: Path, run: Run) -> None:
    run("query", COUNT, "--epsilon", "3")
    document = json.loads(run("explain", BY_PLAN, "--epsilon", "1", "--format", "json").out)
    assert document["share_of_remaining"] is None


def test_budget_shows_what_is_left(visits: Path, run: Run) -> None:
    fresh = run("budget")
    assert (fresh.status, fresh.err) == (0, "")
    assert "epsilon 3, delta 1e-6 for all queries ever" in fresh.out.replace("\n", " ")
    assert "0 % spent, 100 % left" in fresh.out
    run("query", COUNT, "--epsilon", "0.5")
    said = run("budget").out
    assert "3.7 % spent, 96.3 % left" in said
    assert "26 more queries at the cost of the last" in said
    assert "if you stop for any reason, all results together count as at most epsilon" in " ".join(said.split())
    assert "COUNT(*)" in said


def test_budget_for_programs(visits: Path, run: Run) -> None:
    run("query", COUNT, "--epsilon", "0.5")
    document = json.loads(run("budget", "--format", "json").out)
    assert document["guarantee"] == {"epsilon": "3", "delta": "0.000001"}
    assert document["more_like_the_last"] == 26
    (row,) = document["history"]
    assert row["answered"] is True
    assert row["loss"] == document["spent"]


def test_the_catalog_from_the_environment(visits: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    (visits / "lapwing.toml").rename(visits / "other.toml")
    assert run("budget").status == 2
    monkeypatch.setenv("LAPWING_CATALOG", "other.toml")
    assert run("budget").status == 0
    monkeypatch.delenv("LAPWING_CATALOG")
    assert run("budget", "--catalog", "other.toml").status == 0


def test_changed_data_wait_for_the_curator(visits: Path, run: Run) -> None:
    run("query", COUNT, "--epsilon", "0.5")
    assert "Nothing was changed" in run("data", "accept").out
    write_visits(visits, people=61)
    refused = run("query", COUNT, "--epsilon", "0.5")
    assert refused.status == 3
    assert "lapwing data accept" in refused.err
    assert "Version 2" in run("data", "accept").out
    assert run("query", COUNT, "--epsilon", "0.5").status == 0
    assert "7.3 % spent" in run("budget").out


def test_verify_walks_the_chain(visits: Path, run: Run) -> None:
    missing = run("ledger", "verify")
    assert (missing.status, (visits / "visits.lapwing.db").exists()) == (6, False)
    run("query", COUNT, "--epsilon", "0.5")
    assert "4 entries" in run("ledger", "verify").out
    (visits / "visits.parquet").unlink()
    assert run("ledger", "verify").status == 0


def test_verify_finds_a_tampered_entry(visits: Path, run: Run) -> None:
    run("query", COUNT, "--epsilon", "0.5")
    with sqlite3.connect(visits / "visits.lapwing.db") as connection:
        (table,) = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")][:1]
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        content = next(name for name in columns if name in ("content", "body"))
        connection.execute(f"UPDATE {table} SET {content} = replace({content}, '0.0', '0.00') WHERE sequence = 3")
    connection.close()
    outcome = run("ledger", "verify")
    assert outcome.status == 6
    assert "Traceback" not in outcome.err


def test_a_ledger_of_another_registration(visits: Path, run: Run) -> None:
    run("budget")
    assert run(*INIT[:5], "4", *INIT[6:], "--force").status == 0
    assert run("ledger", "verify").status == 2
    assert run("budget").status == 2


def test_verify_misses_a_ledger_whose_mark_is_left(visits: Path, run: Run) -> None:
    run("query", COUNT, "--epsilon", "0.5")
    (visits / "visits.lapwing.db").unlink()
    outcome = run("ledger", "verify")
    assert outcome.status == 6
    assert "yet" not in outcome.err
    assert not (visits / "visits.lapwing.db").exists()


@pytest.mark.parametrize("columns", one_in(4, [40, 60, 80, 100]))
def test_explain_cuts_no_number(visits: Path, run: Run, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    wide = "SELECT plan, COUNT(*) AS n, SUM(1000000 * cost) AS turnover_in_cents FROM visits GROUP BY plan"
    document = json.loads(run("explain", wide, "--epsilon", "1", "--format", "json").out)
    monkeypatch.setenv("COLUMNS", str(columns))
    said = run("explain", wide, "--epsilon", "1").out
    assert max(map(len, said.splitlines())) <= columns
    for measure in document["measures"]:
        assert f"±{size(measure['half_width'])}" in said
        assert size(measure["scale"]) in said

"""Questions that fail after their charge, on the command line: what stops, who is told what, and what goes on."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

import lapwing as lw
from lapwing.engines import FAILED, DuckDB
from tests.cli.test_interrupt import MOST_SECONDS, wait_for
from tests.support.cli.command import Run, write_visits
from tests.support.processes import started

COUNT = "SELECT COUNT(*) AS n FROM visits"
ASK = ("query", f"{COUNT} WHERE cost < 50", "--epsilon", "0.1")


def fail(run: Run, times: int, patch: pytest.MonkeyPatch) -> None:
    def failing(_self: DuckDB, _question: object, _digest: str) -> Any:
        raise lw.EngineFault(FAILED)

    with patch.context() as once:
        once.setattr(DuckDB, "run", failing)
        for _ in range(times):
            assert run(*ASK).status == 6


def kill(folder: Path) -> None:
    """Kill a question while it runs, as a system does that is short of memory."""
    (folder / "reached").unlink(missing_ok=True)
    process = started("tests.support.cli.stopped", "running", *ASK, cwd=folder, env={"LANG": "C.UTF-8"})
    try:
        wait_for(folder / "reached", process)
    finally:
        process.kill()
        process.communicate(timeout=MOST_SECONDS)
    assert process.returncode == -signal.SIGKILL


@pytest.mark.long
def test_three_faults_stop_until_the_curator_resumes(visits: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("query", COUNT, "--epsilon", "0.1").status == 0
    assert "faults" not in run("budget").out
    assert run("data", "faults").out == run("data", "faults", "--catalog", "lapwing.toml").out
    assert "No query has failed" in run("data", "faults").out
    fail(run, 1, monkeypatch)
    assert "2 more stop the data set" in run("data", "faults").out
    assert "faults     1 of 3 that stop the data set; the curator may look: `lapwing data faults`" in run("budget").out
    fail(run, 2, monkeypatch)
    refused = run(*ASK)
    assert (refused.status, refused.out) == (3, "")
    assert "Nothing was charged" in refused.err
    assert "`lapwing data faults`, and then `lapwing data resume`" in " ".join(refused.err.split())
    assert run("query", COUNT, "--epsilon", "0.1").status == 0, "what was bought stays free"
    shown = run("data", "faults").out
    assert shown.count("failed") == 3
    assert "The data set is stopped" in shown
    assert "it would be refused: 3 queries failed" in " ".join(run("explain", *ASK[1:]).out.split())
    before = json.loads(run("budget", "--format", "json").out)
    assert (before["faults"], before["stopped"]) == (3, True)
    assert [row["unanswered"] for row in before["history"]] == [None, "fault", "fault", "fault"]
    assert "3 faults count no more" in run("data", "resume").out
    assert json.loads(run("budget", "--format", "json").out)["spent"] == before["spent"]
    assert "nothing was changed" in run("data", "resume").out
    assert run(*ASK).status == 0
    assert "an unbroken chain" in run("ledger", "verify").out


@pytest.mark.long
def test_new_data_do_not_resume(visits: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    fail(run, 3, monkeypatch)
    write_visits(visits, people=61)
    accepted = run("data", "accept").out
    assert "Version 2" in accepted
    assert "stays stopped" in accepted
    assert run(*ASK).status == 3
    assert "3 faults count no more" in run("data", "resume").out
    assert "stays stopped" not in run("data", "accept").out


@pytest.mark.long
def test_killed_processes_stop_the_data_set(visits: Path, run: Run) -> None:
    for _ in range(3):
        kill(visits)
    assert run(*ASK).status == 3
    document = json.loads(run("data", "faults", "--format", "json").out)
    assert (document["stopped"], [fault["cause"] for fault in document["faults"]]) == (True, ["death"] * 3)
    assert {len(fault["charges"]) for fault in document["faults"]} == {1}
    assert "process died" in run("data", "faults").out
    assert run("data", "resume").status == run(*ASK).status == 0
    assert list(visits.glob("*asker*")) == []


@pytest.mark.long
def test_late_answers_of_a_service_are_shown_and_looked_at(visits: Path, run: Run) -> None:
    with lw.connect(visits / "lapwing.toml") as session:
        for who in ("alice", "bob"):
            session.note_late("2026-11-02T12:00:00.000+00:00", who)
        assert session.budget().late_at == ("2026-11-02T12:00:00.000+00:00",) * 2
    assert json.loads(run("budget", "--format", "json").out)["late"] == 2
    assert json.loads(run("data", "faults", "--format", "json").out) == {"faults": [], "late": 2, "stopped": False}
    assert "2 times" in run("data", "faults").out
    assert "2 results left later than planned" in run("budget").out
    assert run("data", "resume").status == 0
    assert json.loads(run("budget", "--format", "json").out)["late"] == 0
    assert run("ledger", "verify").status == 0

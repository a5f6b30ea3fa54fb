"""The curator's commands around a data set: a larger budget, the guarantee, the end, copies of the ledger."""

import io
import json
import re
import stat
import sys
from pathlib import Path

import pytest

import lapwing as lw
from lapwing import raising
from lapwing.catalog import amending
from tests.support.cli.command import BY_PLAN, Run
from tests.support.effort import only

COUNT = "SELECT COUNT(*) AS n FROM visits"
LEDGER = "visits.lapwing.db"


class Terminal(io.StringIO):
    """Standard input on which somebody types."""

    def isatty(self) -> bool:
        return True


def typed(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(text + "\n"))


def epsilon() -> str:
    with lw.connect() as session:
        return str(session.budget().epsilon)


# ---- A larger budget -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "after"), only([0], [("4", "4"), ("4.0", "4"), ("5", "3"), ("y", "3"), ("", "3")], many=True)
)
def test_the_new_epsilon_is_repeated(
    visits: Path, run: Run, monkeypatch: pytest.MonkeyPatch, answer: str, after: str
) -> None:
    run("query", COUNT, "--epsilon", "0.5")
    typed(monkeypatch, answer)
    outcome = run("budget", "raise", "--epsilon", "4")
    assert "epsilon 3, delta 1e-6 epsilon 4, delta 1e-6" in " ".join(outcome.err.split())
    assert "or in doubt, publish epsilon 4.82, delta 2e-6" in outcome.err
    assert (outcome.status, epsilon()) == (0 if after == "4" else 2, after)


@pytest.mark.long
def test_without_a_terminal_it_takes_yes(visits: Path, run: Run) -> None:
    run("query", COUNT, "--epsilon", "0.5")
    refused = run("budget", "raise", "--epsilon", "4")
    assert refused.status == 2
    assert "Repeat the command with --yes" in refused.err
    assert epsilon() == "3"
    done = run("budget", "raise", "--epsilon", "4", "--delta", "2e-6", "--yes")
    assert (done.status, done.out) == (0, "The budget is epsilon 4, delta 2e-6 from now on.\n")
    assert "it was epsilon 3" in run("budget").out
    assert run("ledger", "verify").status == 0
    assert run("budget", "raise", "--epsilon", "4", "--delta", "2e-6").status == 0  # it is that already


@pytest.mark.long
def test_a_death_between_ledger_and_catalog_is_told_and_mended(
    visits: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("query", COUNT, "--epsilon", "0.5")

    class Death(BaseException):
        pass

    def die(*_: object) -> None:
        raise Death

    with monkeypatch.context() as dying:
        dying.setattr(raising, "write_budget", die)
        with pytest.raises(Death):
            run("budget", "raise", "--epsilon", "4", "--yes")
    told = run("query", COUNT, "--epsilon", "0.5")
    assert told.status == 2
    assert "lapwing budget raise --epsilon 4 --delta 0.000001" in told.err
    assert run("budget", "raise", "--epsilon", "4", "--delta", "0.000001").status == 0
    assert epsilon() == "4"


def test_a_catalog_that_cannot_be_written_is_said(visits: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run("query", COUNT, "--epsilon", "0.5")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(amending, "draft_of", full)
    outcome = run("budget", "raise", "--epsilon", "4", "--yes")
    assert outcome.status == 2
    assert "write epsilon = 4 and delta = 1e-6 into its section [budget]" in outcome.err


def test_a_smaller_budget_is_refused(visits: Path, run: Run) -> None:
    run("query", COUNT, "--epsilon", "0.5")
    outcome = run("budget", "raise", "--epsilon", "2", "--yes")
    assert outcome.status == 2
    assert "never becomes smaller" in outcome.err


def test_before_the_first_use_the_catalog_is_changed_instead(visits: Path, run: Run) -> None:
    outcome = run("budget", "raise", "--epsilon", "4", "--yes")
    assert outcome.status == 2
    assert "change the budget in its catalog" in outcome.err
    assert not (visits / LEDGER).exists()


# ---- The guarantee ---------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_the_guarantee_is_text_html_or_json(visits: Path, run: Run) -> None:
    run("query", BY_PLAN, "--epsilon", "0.5")
    text = run("guarantee")
    assert (text.status, text.err) == (0, "")
    for said in ("What visits promises", "ε = 3, δ = 1e-6", "each person_id", 'listed: "a", "b"', "4       15.2"):
        assert said in text.out
    assert "seal of the newest entry   " not in text.out
    document = json.loads(run("guarantee", "--format", "json").out)
    assert document["sections"][0]["title"] == "The promise"
    assert run("guarantee", "--output", "page.html").status == 0
    assert (visits / "page.html").read_text().startswith("<!doctype html>")
    with lw.connect() as session:
        assert session._ledger.state().hash in run("guarantee", "--seal").out


# ---- The end ---------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_data_set_is_closed_for_ever(visits: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run("query", COUNT, "--epsilon", "0.5")
    assert run("data", "close").status == 2
    typed(monkeypatch, "other")
    assert run("data", "close").status == 2
    typed(monkeypatch, "visits")
    assert run("data", "close").out == "The data set is closed.\n"
    assert run("query", BY_PLAN, "--epsilon", "0.5").status == 3
    assert run("query", COUNT, "--epsilon", "0.5").status == 0
    assert "already closed" in run("data", "close", "--yes").out
    assert "Lapwing charges nothing any more" in run("budget").out


# ---- Copies ----------------------------------------------------------------------------------------------------------


def test_a_ledger_is_copied_lost_and_restored(visits: Path, run: Run) -> None:
    run("query", COUNT, "--epsilon", "0.5")
    exported = run("ledger", "export")
    assert len(exported.out.splitlines()) == 4
    assert run("ledger", "backup", "copy.jsonl").status == 0
    assert (visits / "copy.jsonl").read_text() == exported.out
    assert stat.S_IMODE((visits / "copy.jsonl").stat().st_mode) == 0o600
    checked = run("ledger", "verify", "--file", "copy.jsonl")
    assert checked.status == 0
    assert "4 entries of visits, an unbroken chain" in checked.out
    (seal,) = re.findall(r"[0-9a-f]{64}", checked.out)
    assert seal in run("ledger", "verify").out  # of the ledger itself the same
    assert run("ledger", "export", "copy.jsonl").status == 2
    run("query", BY_PLAN, "--epsilon", "0.5")
    assert run("ledger", "restore", "copy.jsonl").status == 6  # it is there
    (visits / LEDGER).unlink()
    behind = run("ledger", "restore", "copy.jsonl")
    assert behind.status == 6
    assert "give spent budget back" in behind.err
    assert run("ledger", "restore", "copy.jsonl", "--newest", "--lost").status == 2
    lost = run("ledger", "restore", "copy.jsonl", "--lost")
    assert lost.status == 0
    assert "nothing of the budget is left" in lost.out
    assert "lost before a restore" in run("budget").out
    assert "Entries of the ledger were lost" in " ".join(run("guarantee").out.split())
    assert run("query", BY_PLAN, "--epsilon", "0.5").status == 4
    assert run("query", COUNT, "--epsilon", "0.5").status == 0  # what was bought
    assert run("ledger", "verify").status == 0


def test_an_altered_copy_does_not_verify(visits: Path, run: Run) -> None:
    run("query", COUNT, "--epsilon", "0.5")
    run("ledger", "backup", "copy.jsonl")
    path = visits / "copy.jsonl"
    path.write_text(path.read_text().replace("COUNT(*)", "COUNT(1)", 1))
    outcome = run("ledger", "verify", "--file", "copy.jsonl")
    assert outcome.status == 6
    assert "does not match its own seal" in outcome.err

"""A ledger whose process is killed at each fault point: what was reported is charged, and nothing is refunded."""

import signal
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from lapwing.errors import LedgerFault
from tests.ledger.ledgers import NAME, charged, opened, survey
from tests.ledger.worker import CREATION_POINTS, FAULT_POINTS

ROOT = Path(__file__).parents[2]
TENTH = Fraction(1, 10)
SPENT = {  # in tenths; three were bought and answered before
    "before insert": 3,
    "after insert, before commit": 3,
    "after commit, before mark": 4,
    "after mark": 4,
    "between charge and answer": 4,
    "during answer, before commit": 4,
}


def killed(what: str, path: Path, *more: str) -> set[int]:
    """Run a worker that kills itself, and return the charges that it reported."""
    worker = subprocess.run(
        [sys.executable, "-m", "tests.ledger.worker", what, str(path), *more],
        cwd=ROOT,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert worker.returncode == -signal.SIGKILL, worker.stderr.decode()
    return {int(line) for line in worker.stdout.split()}


@pytest.mark.parametrize("point", FAULT_POINTS)
def test_a_death_while_charging_wastes_at_most_one_charge(tmp_path: Path, point: str) -> None:
    path = tmp_path / NAME
    reported = killed("die", path, point)
    assert len(reported) in (3, 4)
    assert survey(path, reported) == SPENT[point] * TENTH
    with opened(path) as ledger:
        assert sum(row.answered for row in ledger.history()) == 3
        ledger.record_answer(charged(ledger, TENTH), "42")
    assert survey(path, reported) == (SPENT[point] + 1) * TENTH


def test_a_mark_that_moves_before_the_commit_is_caught(tmp_path: Path) -> None:
    """The twin: the same death leaves a ledger that its mark disowns."""
    path = tmp_path / NAME
    reported = killed("die with the mark too early", path, "after insert, before commit")
    with pytest.raises(LedgerFault, match="no longer holds its entry"):
        survey(path, reported)


@pytest.mark.parametrize("point", CREATION_POINTS)
def test_a_death_while_creating_is_continued(tmp_path: Path, point: str) -> None:
    path = tmp_path / NAME
    killed("die creating", path, point)
    assert survey(path, set()) == 0
    with opened(path) as ledger:
        sequence = charged(ledger, TENTH)
        assert ledger.verify() == sequence == 3
    assert survey(path, {sequence}) == TENTH

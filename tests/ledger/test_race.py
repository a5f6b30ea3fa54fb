"""Many threads and processes on one ledger."""

import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from lapwing.errors import LedgerFault
from tests.support.ledger.ledgers import opened, survey
from tests.support.ledger.places import Place
from tests.support.ledger.worker import PATIENCE, PRICES

ROOT = Path(__file__).parents[2]
PROCESSES = 4


def race(what: str, place: Place, processes: int = PROCESSES) -> list[int]:
    """Let workers use the ledger at once, and return the charges that were reported, in any order."""
    command = [sys.executable, "-m", "tests.support.ledger.worker", what, str(place), str(processes)]
    workers = [
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(processes)
    ]
    try:
        outputs = [worker.communicate(timeout=PATIENCE) for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    assert [worker.returncode for worker in workers] == [0] * processes, outputs
    assert all(output for output, _ in outputs), "all of them took part"
    return [int(line) for output, _ in outputs for line in output.split()]


def test_all_spend_to_the_limit_and_not_beyond(place: Place) -> None:
    """Nobody creates the ledger beforehand: creation races too."""
    reported = race("spend", place)
    marks = (int(mark.read_bytes().split()[3]) for mark in place.folder.rglob(place.mark.name))
    assert max(marks) == 2 * len(reported) + 2, "the mark is at the newest entry"
    price = Fraction(-(-PRICES[place.at.store] * 10**24 // 1), 10**24)
    assert len(reported) == len(set(reported)) == 1 // price
    assert survey(place, set(reported)) == len(reported) * price
    with opened(place) as ledger:
        assert {row.sequence for row in ledger.history()} == set(reported)


def test_checking_in_one_transaction_and_charging_in_another_overspends(place: Place) -> None:
    """The twin: the same race on a ledger that checks, then acts."""
    with opened(place):
        pass
    reported = race("check then act", place)
    with pytest.raises(LedgerFault, match="spends more than the budget had left"):
        survey(place, set(reported))


def test_a_fork_in_the_middle_of_charging_is_safe(place: Place) -> None:
    reported = race("fork", place, processes=1)
    price = Fraction(-(-PRICES[place.at.store] * 10**24 // 1), 10**24)
    assert len(reported) == len(set(reported)) == 1 // price
    assert survey(place, set(reported)) == len(reported) * price

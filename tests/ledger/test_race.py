"""Many threads and processes on one ledger."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from lapwing.errors import LedgerFault
from tests.support.effort import is_long
from tests.support.ledger.ledgers import opened, survey
from tests.support.ledger.places import IN_A_FILE, Place
from tests.support.ledger.worker import CHARGES, PATIENCE
from tests.support.processes import started

ROOT = Path(__file__).parents[2]
PROCESSES = 4 if is_long() else 2
"""Each has eight threads. Starting a process costs more than the charges of a short race."""


AT_LENGTHS = pytest.mark.parametrize(
    "charges",
    [{"sqlite": 120, "postgres": 40}, pytest.param({"sqlite": 1000, "postgres": 150}, marks=pytest.mark.long)],
)
"""How many charges a race is about: in each, all threads of all workers meet again, and once more at the limit."""


def interpreter(program: str, *arguments: str, env: Mapping[str, str]) -> "subprocess.Popen[str]":
    """Start an interpreter of its own: a copy has more locks that a fork among threads may leave held."""
    command = [sys.executable, "-m", program, *arguments]
    return subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def race(
    what: str,
    place: Place,
    charges: Mapping[str, int],
    processes: int = PROCESSES,
    start: Callable[..., Any] = started,
) -> list[int]:
    """Let workers use the ledger at once, and return the charges that were reported, in any order."""
    command = ("tests.support.ledger.worker", what, str(place), str(processes))
    env = os.environ | {CHARGES: str(charges[place.at.store])}
    workers = [start(*command, env=env) for _ in range(processes)]
    try:
        outputs = [worker.communicate(timeout=PATIENCE) for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    assert [worker.returncode for worker in workers] == [0] * processes, outputs
    assert all(output for output, _ in outputs), "all of them took part"
    return [int(line) for output, _ in outputs for line in output.split()]


@AT_LENGTHS
def test_all_spend_to_the_limit_and_not_beyond(place: Place, charges: Mapping[str, int]) -> None:
    """Nobody creates the ledger beforehand: creation races too."""
    reported = race("spend", place, charges)
    marks = (int(mark.read_bytes().split()[3]) for mark in place.folder.rglob(place.mark.name))
    assert max(marks) == 2 * len(reported) + 2, "the mark is at the newest entry"
    price = Fraction(-(-(10**24) // charges[place.at.store]), 10**24)
    assert len(reported) == len(set(reported)) == 1 // price
    assert survey(place, set(reported)) == len(reported) * price
    with opened(place) as ledger:
        assert {row.sequence for row in ledger.history()} == set(reported)


@IN_A_FILE
@AT_LENGTHS
def test_checking_in_one_transaction_and_charging_in_another_overspends(
    place: Place, charges: Mapping[str, int]
) -> None:
    """The twin: the same race on a ledger that checks, then acts."""
    with opened(place):
        pass
    reported = race("check then act", place, charges)
    with pytest.raises(LedgerFault, match="spends more than the budget had left"):
        survey(place, set(reported))


@IN_A_FILE
@AT_LENGTHS
def test_a_fork_in_the_middle_of_charging_is_safe(place: Place, charges: Mapping[str, int]) -> None:
    reported = race("fork", place, charges, processes=1, start=interpreter)
    price = Fraction(-(-(10**24) // charges[place.at.store]), 10**24)
    assert len(reported) == len(set(reported)) == 1 // price
    assert survey(place, set(reported)) == len(reported) * price

"""A ledger whose process is killed at each fault point: what was reported is charged, and nothing is refunded."""

import signal
from fractions import Fraction

import pytest

from lapwing.errors import DataStopped, LedgerFault
from tests.support.effort import one_in, only
from tests.support.ledger.ledgers import charged, opened, survey
from tests.support.ledger.places import IN_A_DATABASE, IN_A_FILE, Place
from tests.support.ledger.worker import CREATION_POINTS
from tests.support.processes import ended

TENTH = Fraction(1, 10)
SPENT = {  # in tenths; three were bought and answered before
    "before insert": 3,
    "after insert, before commit": 3,
    "after commit, before mark": 4,
    "after mark": 4,
    "between charge and answer": 4,
    "during answer, before commit": 4,
}


def killed(what: str, place: Place, *more: str) -> set[int]:
    """Run a worker that kills itself, and return the charges that it reported."""
    status, out, err = ended("tests.support.ledger.worker", what, str(place), *more)
    assert status == -signal.SIGKILL, err
    place.bury()
    return {int(line) for line in out.split()}


@pytest.mark.parametrize("point", only([1], SPENT))
def test_a_death_while_charging_wastes_at_most_one_charge(place: Place, point: str) -> None:
    reported = killed("die", place, point)
    assert len(reported) in (3, 4)
    assert survey(place, reported) == SPENT[point] * TENTH
    with opened(place) as ledger:
        assert sum(row.answered for row in ledger.history()) == 3
        ledger.record_answer(charged(ledger, TENTH), "42")
    assert survey(place, reported) == (SPENT[point] + 1) * TENTH


def test_a_mark_that_moves_before_the_commit_is_caught(place: Place) -> None:
    """The twin: the same death leaves a ledger that its mark disowns."""
    reported = killed("die with the mark too early", place, "after insert, before commit")
    with pytest.raises(LedgerFault, match="no longer holds its entry"):
        survey(place, reported)


@pytest.mark.parametrize("point", one_in(4, CREATION_POINTS["sqlite"]))
def test_a_death_while_creating_is_continued(place: Place, point: str) -> None:
    killed("die creating", place, point)
    assert survey(place, set()) == 0
    with opened(place) as ledger:
        sequence = charged(ledger, TENTH)
        assert ledger.verify() == sequence == 3
    assert survey(place, {sequence}) == TENTH


@pytest.mark.parametrize("point", only([2, 5], SPENT))
def test_a_death_with_a_question_under_way_is_one_fault(place: Place, point: str) -> None:
    """The kernel's kill of a process that took too much memory looks like this."""
    killed("die", place, point)
    check_deaths(place, SPENT[point] - 3)


def check_deaths(place: Place, deaths: int) -> None:
    """The next charge counts them, and nothing stays behind of the dead."""
    with opened(place) as ledger:
        ledger.record_unanswered([charged(ledger, TENTH)], "interrupt")
        assert ledger.state().faults == deaths
        assert [row.unanswered for row in ledger.history()] == [None] * 3 + ["death"] * deaths + ["interrupt"]
        ledger.verify()
    assert place.askers() == []


@IN_A_FILE
def test_three_deaths_stop_the_data_set(place: Place) -> None:
    for death in range(3):
        with opened(place) as ledger:
            assert len(ledger.faults()) == death
        killed("die with one under way", place)
    with opened(place) as ledger:
        with pytest.raises(DataStopped):
            charged(ledger, TENTH)
        assert ledger.resume("curator") == 3
        assert ledger.state().account.spent.amount == 3 * TENTH


@IN_A_FILE
def test_twin_a_death_that_nobody_looks_for_is_not_counted(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    killed("die", place, "between charge and answer")
    monkeypatch.setattr(place.presences, "fate", lambda _self, _name: "present")
    with pytest.raises(AssertionError):
        check_deaths(place, 1)


@IN_A_DATABASE
def test_a_child_asks_under_a_name_of_its_own(place: Place) -> None:
    """A child that dies is noticed while its parent lives, and the other way round."""
    killed("die as a parent", place)
    with opened(place) as ledger:
        faults = ledger.faults()
        assert [[row.question for row in fault.charges] for fault in faults] == [["SELECT child"], ["SELECT parent"]]
        assert {fault.cause for fault in faults} == {"death"}
    (place.folder / "looked").touch()
    assert place.askers() == []

"""Identical questions at the same moment, of several processes: one pays, and the others have its answer free."""

import fcntl
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.errors import LedgerFault
from lapwing.ledger.entries import Charge, Charged
from lapwing.ledger.ledger import Ledger
from lapwing.ledger.sqlite import presence
from lapwing.ledger.waiting import UnderWay
from lapwing.privacy.measures import PureDP
from lapwing.release import waiting
from tests.support.effort import one_in
from tests.support.ledger.ledgers import opened
from tests.support.ledger.places import IN_A_FILE, Place
from tests.support.processes import started

ASKERS: Final = 3
CATALOG: Final = """
[dataset]
name = "visits"
ledger = "{ledger}"
[budget]
epsilon = 1
[tables.visits]
source = "visits.parquet"
privacy_unit = "person"
max_rows_per_unit = 1
[tables.visits.columns]
person = {{ type = "integer" }}
plan = {{ type = "string", values = ["a", "b"] }}
"""
ASK: Final = """
import sys, time
from pathlib import Path
import lapwing as lw
from lapwing.engines import DuckDB
from lapwing.ledger import ledger

folder, askers, bug = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
if bug == "no look-up":
    ledger.under_way = lambda *_: None
run = DuckDB.run

def slowly(self, *given):  # until all the others have asked, or wait
    (folder / "running").touch()
    deadline = time.monotonic() + (300 if bug == "no look-up" else 2)
    while len(list(folder.glob("asked.*"))) < askers and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.2)
    return run(self, *given)

DuckDB.run = slowly
charge_all = ledger.Ledger.charge_all

def noted(self, *given):
    outcome = charge_all(self, *given)
    (folder / f"asked.{sys.argv[4]}").touch()
    return outcome

ledger.Ledger.charge_all = noted
with lw.connect(folder / "lapwing.toml") as session:
    (folder / f"here.{sys.argv[4]}").touch()
    while len(list(folder.glob("here.*"))) < askers:
        time.sleep(0.01)
    answer = session.sql("SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan", epsilon=0.3)
    print(answer.stored, [row["n"] for row in answer.rows()])
"""


def request(key: str = "count", loss: float = 0.1, **changes: Any) -> Charge:
    charge = Charge(
        key=key, question="q", loss=PureDP(loss), catalog_digest="c", principal="p", version=1, delta=Fraction(0)
    )
    return replace(charge, **changes)


def paid(ledger: Ledger, *requests: Charge) -> tuple[int, ...]:
    outcome = ledger.charge_all(requests)
    assert isinstance(outcome, tuple)
    return tuple(charge.sequence for charge in outcome)


def test_one_that_is_under_way_is_waited_for(place: Place) -> None:
    with opened(place) as one, opened(place) as other:
        (first,) = paid(one, request())
        for asker in (one, other):
            before = asker.state()
            assert asker.charge_all([request()]) == UnderWay(sequence=first)
            assert asker.charge_all([request("sum"), request()]) == UnderWay(sequence=first)
            assert asker.charge_all([request(loss=0.05)]) == UnderWay(sequence=first)
            assert asker.state() == before, "nothing is charged meanwhile"
            assert asker.is_under_way(first)
        one.record_answer(first, "42")
        assert not other.is_under_way(first)
        (second,) = paid(other, request())
        assert other.charge_all([]) == ()
        other.record_unanswered([second], "interrupt")
        (third,) = paid(one, request())
        one.record_answer(third, "42")


@pytest.mark.parametrize(
    "wanted", one_in(2, [request("sum"), request(loss=0.2), request(delta=Fraction(1, 10**9)), request(version=2)])
)
def test_another_question_is_not_waited_for(place: Place, wanted: Charge) -> None:
    """Of other rows, sharper, or with more delta: what is under way may not be as accurate."""
    with opened(place) as ledger:
        (first,) = paid(ledger, request())
        try:
            assert not isinstance(ledger.charge_all([wanted]), UnderWay)
        except lw.LapwingError:
            assert wanted.version == 2
        ledger.record_answer(first, "42")


def test_a_dead_asker_is_not_waited_for(place: Place) -> None:
    with opened(place) as one, opened(place) as other:
        (first,) = paid(one, request())
        place.forget_askers()
        assert not other.is_under_way(first), "whoever waits finds out"
        assert other.state().faults == 1
        (second,) = paid(other, request())
        other.record_answer(second, "42")


def test_nobody_waits_while_the_data_set_is_stopped(place: Place) -> None:
    with opened(place) as ledger:
        paid(ledger, request())
        for number in range(3):
            ledger.record_unanswered(paid(ledger, request(f"{number}")), "fault")
        with pytest.raises(lw.LapwingError, match="new query until the curator has looked"):
            ledger.charge_all([request()])


def test_two_batches_do_not_wait_for_each_other(place: Place) -> None:
    """Each has what the other wants; one is charged for both, the other for neither, and waits."""
    with opened(place) as one, opened(place) as other, ThreadPoolExecutor(2) as pool:
        both = [request("a"), request("b")]
        outcomes = list(pool.map(lambda pair: pair[0].charge_all(pair[1]), [(one, both), (other, both[::-1])]))
        waiting_ = [outcome for outcome in outcomes if isinstance(outcome, UnderWay)]
        (granted,) = (outcome for outcome in outcomes if isinstance(outcome, tuple))
        assert len(waiting_) == 1
        for charge in granted:
            assert isinstance(charge, Charged)
            one.record_answer(charge.sequence, "42")
        assert one.state().account.spent == PureDP(0.2)


# Sessions of several processes.


def ask_at_once(place: Place, bug: str = "none") -> list[str]:
    """Let processes ask the same at once, and return what each was told."""
    folder = place.folder
    pq.write_table(pa.table({"person": [1, 2, 3, 4], "plan": ["a", "b", "a", "a"]}), folder / "visits.parquet")
    (folder / "lapwing.toml").write_text(CATALOG.format(ledger=place.name), encoding="utf-8")
    processes = [started(ASK, str(folder), str(ASKERS), bug, str(number)) for number in range(ASKERS)]
    try:
        told = [process.communicate(timeout=600) for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0] * ASKERS, told
    return [output.strip() for output, _ in told]


def check_paid_once(place: Place, told: list[str]) -> None:
    with lw.connect(place.folder / "lapwing.toml") as session:
        assert len(session.budget().history) == 1
        assert session.budget().spent == session.price(0.3)
    assert len({answer.removeprefix("True").removeprefix("False") for answer in told}) == 1
    assert sorted(answer.split()[0] for answer in told) == ["False"] + ["True"] * (ASKERS - 1)


@IN_A_FILE
def test_the_same_question_of_several_processes_is_paid_once(place: Place) -> None:
    check_paid_once(place, ask_at_once(place))


@IN_A_FILE
def test_twin_who_does_not_look_pays_again(place: Place) -> None:
    told = ask_at_once(place, "no look-up")
    with pytest.raises(AssertionError):
        check_paid_once(place, told)


# A session that waits.


@pytest.fixture
def protected(tmp_path: Path) -> Path:
    pq.write_table(pa.table({"person": [1, 2, 3]}), tmp_path / "visits.parquet")
    return tmp_path / "visits.parquet"


def key_of_count(session: lw.Session) -> Charge:
    """Return what the session's own question would be charged, by asking it once for a crumb."""
    session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=0.001)
    ledger = session._ledger
    with ledger._chain.transaction() as transaction:
        entry = next(iter(transaction.log.of_kind("charge")))
    return replace(Charge.from_record(entry.contents()), loss=session.price(0.5), asker=None)


def test_a_session_waits_no_longer_than_it_should(protected: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "WAIT_SECONDS", 0.05)
    with lw.protect(protected, privacy_unit="person", epsilon=1, max_rows_per_unit=1) as session:
        wanted = key_of_count(session)
        (first,) = paid(session._ledger, wanted)
        spent = session.budget().spent
        with pytest.raises(LedgerFault, match=r"Somebody else is running the same.*it is then free"):
            session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=0.4)
        assert session.budget().spent == spent
        session._ledger.record_unanswered([first], "interrupt")
        assert not session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=0.4).stored


def test_a_session_pays_once_the_other_gave_up(protected: Path) -> None:
    with (
        lw.protect(protected, privacy_unit="person", epsilon=1, max_rows_per_unit=1) as session,
        ThreadPoolExecutor(1) as pool,
    ):
        (first,) = paid(session._ledger, key_of_count(session))
        asked = pool.submit(session.sql, "SELECT COUNT(*) AS n FROM visits", epsilon=0.4)
        time.sleep(0.05)  # so that it most often waits already; the outcome is the same if not
        assert not asked.done()
        session._ledger.record_unanswered([first], "interrupt")
        assert not asked.result().stored


def test_two_who_look_after_a_dead_one_do_not_hinder_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its file may go, by its owner or another who looks, after it was opened."""
    ledger, name = tmp_path / "ledger.db", "b" * 32
    path = presence.path_of(ledger, name)
    path.touch()
    lock = fcntl.flock

    def removed_meanwhile(descriptor: int, how: int) -> None:
        lock(descriptor, how)
        path.unlink()

    monkeypatch.setattr("lapwing.ledger.sqlite.presence.fcntl.flock", removed_meanwhile)
    assert presence.FilePresence(ledger).fate(name) == "dead"

"""What a ledger could not write when it happened is written as soon as it can be, so that nobody waits for it."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.errors import LedgerFault
from lapwing.ledger import ledger as ledgers
from lapwing.ledger import settling
from lapwing.ledger.ledger import Ledger
from lapwing.ledger.postgres.chain import PostgresChain
from lapwing.ledger.sqlite.chain import SqliteChain
from lapwing.ledger.transaction import Transaction
from lapwing.ledger.waiting import UnderWay
from lapwing.release import waiting
from tests.ledger.test_waiting import CATALOG, paid, request
from tests.support.ledger.ledgers import opened
from tests.support.ledger.places import IN_A_DATABASE, Place
from tests.support.processes import started

COUNT: Final = "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan"
IDLE: Final = """
import sys
from pathlib import Path
import lapwing as lw
from lapwing.ledger.ledger import Ledger
from tests.support.ledger.places import IN_A_DATABASE, Place
from tests.ledger.test_settling import COUNT, unheard

folder, place = Path(sys.argv[1]), Place.read(sys.argv[2])
if sys.argv[3] == "idle":
    Ledger.settle = lambda self: True
with lw.connect(folder / "lapwing.toml") as session:
    session.budget()
    with unheard():
        try:
            session.sql(COUNT, epsilon=0.3)
        except lw.LedgerFault:
            print("fault", flush=True)
    sys.stdin.read()
"""


@contextmanager
def unheard() -> Iterator[None]:
    """Lose the word of the first commit that makes a charge: it is done, and nobody is told so."""
    whole, lost = Transaction.commit, list[int]()

    def commit(self: Any, *entries: Any) -> None:
        keep = self._keep

        def keep_silently(newest: Any) -> None:
            keep(newest)
            lost.append(1)
            raise LedgerFault("planted: nobody knows")

        if not lost and any(entry.kind == "charge" for entry in (*self.appended, *entries)):
            self._keep = keep_silently
        whole(self, *entries)

    Transaction.commit = commit  # type: ignore[method-assign]
    try:
        yield
    finally:
        Transaction.commit = whole  # type: ignore[method-assign]
    assert lost


@contextmanager
def unwritable() -> Iterator[None]:
    """Let nothing be written to a ledger."""
    whole = Transaction.commit

    def commit(self: Any, *entries: Any) -> None:
        if self.appended or entries:
            raise LedgerFault("planted: it cannot be written")

    Transaction.commit = commit  # type: ignore[method-assign]
    try:
        yield
    finally:
        Transaction.commit = whole  # type: ignore[method-assign]


def test_a_charge_that_nobody_was_told_of_is_ended(place: Place) -> None:
    with opened(place) as one, opened(place) as other:
        with unheard(), pytest.raises(LedgerFault):
            one.charge_all([request()])
        (sequence,) = other.state().under_way
        assert other.charge_all([request()]) == UnderWay(sequence=sequence)
        assert one.settle()
        assert not other.state().under_way
        assert other.state().faults == 0
        paid(other, request())
        assert one.settle()
        assert other.state().under_way, "what was told of goes on"


def test_what_is_owed_is_paid_when_it_can_be(place: Place) -> None:
    with opened(place) as one, opened(place) as other:
        charges = paid(one, request())
        with unwritable():
            assert not one.record_unanswered(charges, "fault")
            assert not one.settle()
        assert other.charge_all([request()]) == UnderWay(sequence=charges[0])
        assert one.settle()
        assert (dict(other.state().under_way), other.state().faults) == ({}, 1)
        before = other.state().sequence
        assert one.settle()
        assert other.state().sequence == before, "once"


def test_settling_asks_for_nothing_where_nothing_is_owed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(place) as ledger:
        ledger.record_answer(paid(ledger, request())[0], "42")
        with monkeypatch.context() as patched:
            for chain in (SqliteChain, PostgresChain):
                patched.setattr(chain, "transaction", None)
            assert ledger.settle()
            assert not ledger.record_unanswered([], "fault")


def test_who_closes_leaves_no_death(place: Place) -> None:
    with opened(place) as other:
        with opened(place) as one:
            charges = paid(one, request())
            with unwritable():
                one.record_unanswered(charges, "interrupt")
        assert not other.state().under_way
        paid(other, request())
        assert other.state().faults == 0


def faults_after_closing(place: Place) -> int:
    """Return the faults that are counted after an unheard charge and the end of who made it."""
    with opened(place) as other:
        with opened(place) as one, unheard(), pytest.raises(LedgerFault):
            one.charge_all([request()])
        paid(other, request("sum"))
        return other.state().faults


def test_an_unheard_charge_of_who_closes_is_no_fault(place: Place) -> None:
    assert faults_after_closing(place) == 0


def test_twin_who_closes_and_owes_counts_as_dead(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ledger, "settle", lambda self: True)
    assert faults_after_closing(place) == 1


def faults_of_a_question_that_fails_while_others_settle(place: Place, monkeypatch: pytest.MonkeyPatch) -> int:
    """Let a question fail while another thread holds the ledger and has begun to look at what is owed."""
    with opened(place, patience=0.2) as ledger, ThreadPoolExecutor() as pool:
        charges = paid(ledger, request())
        fate, failing = place.presences.fate, list[Future[bool]]()

        def slow(self: Any, name: str) -> Any:
            if not failing:
                failing.append(pool.submit(ledger.record_unanswered, charges, "fault"))
                failing[0].result(timeout=600)  # it has waited long enough for the ledger, and owes
            return fate(self, name)

        with monkeypatch.context() as patched:
            patched.setattr(place.presences, "fate", slow)
            other = paid(ledger, request("sum"))
        ledger.record_answer(other[0], "42")
        assert ledger.settle()
        assert not ledger.state().under_way
        return ledger.state().faults


def test_a_fault_is_counted_though_others_settle_meanwhile(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    assert faults_of_a_question_that_fails_while_others_settle(place, monkeypatch) == 1


def test_twin_who_looks_at_what_was_told_later(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def settled(self: Ledger, transaction: Transaction) -> settling.Settled:
        return settling.settled(
            transaction.state, tuple(self._pending_writes), self._issued_charges, self._presence, ledgers.now()
        )

    monkeypatch.setattr(Ledger, "_settled", settled)
    assert faults_of_a_question_that_fails_while_others_settle(place, monkeypatch) == 0


# Two processes.


def asked_elsewhere(place: Place, bug: str = "none") -> lw.Answer:
    """Ask what an idle process has asked, whose charge was made and never told of."""
    folder = place.folder
    pq.write_table(pa.table({"person": [1, 2, 3, 4], "plan": ["a", "b", "a", "a"]}), folder / "visits.parquet")
    (folder / "lapwing.toml").write_text(CATALOG.format(ledger=place.name), encoding="utf-8")
    idle = started(IDLE, str(folder), str(place), bug)
    try:
        assert idle.stdout.readline() == "fault\n"
        with lw.connect(Path(folder) / "lapwing.toml") as session:
            answer = session.sql(COUNT, epsilon=0.3)
            assert [row.unanswered for row in session.budget().history] == ["interrupt", None]
            assert session.budget().faults == 0
            return answer
    finally:
        idle.communicate(timeout=600)


@IN_A_DATABASE
def test_the_same_question_elsewhere_is_answered_at_once(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "WAIT_SECONDS", 0.0)
    assert not asked_elsewhere(place).stored


@IN_A_DATABASE
def test_twin_who_does_not_settle_blocks_the_question(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "WAIT_SECONDS", 0.2)
    with pytest.raises(LedgerFault, match="Somebody else is running the same"):
        asked_elsewhere(place, "idle")


def test_twin_a_doubt_that_is_forgotten(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Ledger, "_commit_uncertain", property(lambda self: False, lambda self, value: None), raising=False
    )
    with pytest.raises(AssertionError):
        test_a_charge_that_nobody_was_told_of_is_ended(place)

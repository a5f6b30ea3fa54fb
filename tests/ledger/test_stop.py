"""Questions that bought nothing: what is counted, when that stops the data set, and what starts it again."""

import json
import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.errors import DataStopped, EngineFault, InvalidParameter, LedgerFault
from lapwing.ledger import curating, transitions, unanswered
from lapwing.ledger import state as states
from lapwing.ledger.curating import accepting, opening, resuming
from lapwing.ledger.entries import Charge, Entry
from lapwing.ledger.faults import COUNTED, Cause
from lapwing.ledger.ledger import Ledger
from lapwing.ledger.state import LedgerState
from lapwing.ledger.store import Presence
from lapwing.ledger.transaction import Transaction
from lapwing.ledger.transitions import answering, charging, fold
from lapwing.ledger.unanswered import leaving
from lapwing.privacy.filters import Refused
from lapwing.privacy.measures import PureDP
from tests.ledger.test_entries import TIME, ready, request, resealed
from tests.support.effort import examples
from tests.support.ledger.ledgers import charged, opened, registration, spend
from tests.support.ledger.places import Place

ALICE, BOB = "a" * 32, "b" * 32
PRICE = Fraction(1, 1000)
CAUSES = get_args(Cause)


def asked(state: LedgerState, asker: str | None = ALICE) -> LedgerState:
    entry = charging(state, request(PureDP(PRICE), asker=asker), TIME)
    assert isinstance(entry, Entry)
    return fold(state, entry)


def left(state: LedgerState, cause: Cause, *charges: int) -> LedgerState:
    entry = leaving(state, charges or tuple(state.under_way), cause, TIME)
    return state if entry is None else fold(state, entry)


def failing(state: LedgerState, times: int) -> LedgerState:
    for _ in range(times):
        state = asked(state)
        state = left(state, "fault", state.sequence)
    return state


# ---- the law, over any order of events -------------------------------------------------------------------------------

EVENTS = st.lists(st.sampled_from(["ask", "answer", "resume", "accept", *CAUSES[:3]]), max_size=40)


def check_any_order(events: list[str]) -> None:
    """Hold the ledger against a count on fingers: after three faults nothing is charged, until the curator looks."""
    state, faults, spent, waiting = ready(1), 0, Fraction(0), list[Entry]()
    for number, event in enumerate(events):
        if event == "ask" and faults >= 3:
            with pytest.raises(DataStopped):
                charging(state, request(PureDP(PRICE), version=state.version, asker=ALICE), TIME)
        elif event == "ask":
            entry = charging(state, request(PureDP(PRICE), version=state.version, asker=ALICE), TIME)
            assert isinstance(entry, Entry)
            state, spent = fold(state, entry), spent + PRICE
            waiting.append(entry)
        elif event == "resume":
            seen = resuming(state, "curator", TIME)
            assert (seen is not None) == (faults > 0)
            state, faults = (state if seen is None else fold(state, seen)), 0
        elif event == "accept":
            data = accepting(state, {"visits": f"{number}"}, "curator", TIME)
            assert data is not None
            state = fold(state, data)
        elif waiting:
            charge = waiting.pop(0)
            if event != "answer":
                before = faults
                state = left(state, event, charge.sequence)  # type: ignore[arg-type]
                faults += event in ("fault", "death") and before < 3
            elif faults >= 3:
                with pytest.raises(EngineFault):
                    answering(state, charge.sequence, "42", TIME)
                state = left(state, "fault", charge.sequence)
            else:
                state = fold(state, answering(state, charge.sequence, "42", TIME))
        assert (state.faults, state.stopped) == (faults, faults >= 3)
        assert set(state.under_way) == {entry.sequence for entry in waiting}
        assert state.account.spent.amount == spent, "nothing is refunded"


@examples(150)
@given(EVENTS)
def test_three_faults_stop_whatever_comes_between(events: list[str]) -> None:
    check_any_order(events)


def refunding(state: LedgerState, _entry: Entry, _body: object) -> LedgerState:
    return replace(state, faults=0, account=ready(1).account)


def clearing(state: LedgerState, entry: Entry, body: Any) -> LedgerState:
    return replace(curating._fold_data(state, entry, body), faults=0)


TWINS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "a fault too many": lambda patch: patch.setattr(states, "FAULTS_ALLOWED", 4),
    "a fault too few": lambda patch: patch.setattr(states, "FAULTS_ALLOWED", 2),
    "faults are not counted": lambda patch: patch.setattr(unanswered, "COUNTED", dict.fromkeys(CAUSES, 0)),
    "Ctrl-C is counted": lambda patch: patch.setattr(unanswered, "COUNTED", {**COUNTED, "interrupt": 1}),
    "resuming refunds": lambda patch: patch.setitem(transitions.FOLDS, "resume", refunding),
    "accepting resumes": lambda patch: patch.setitem(transitions.FOLDS, "data", clearing),
    "a fault stays under way": lambda patch: patch.setattr(states.LedgerState, "ended", lambda state, *_charges: state),
}
ORDERS = (
    ["ask", "fault"] * 3 + ["ask", "resume", "ask", "fault"],
    ["ask", "interrupt"] * 3 + ["ask"],
    ["ask", "death", "accept", "ask"],
)


def check_orders() -> None:
    for events in ORDERS:
        check_any_order(events)


@pytest.mark.parametrize("twin", TWINS)
def test_twins_are_caught(twin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check_orders()
    TWINS[twin](monkeypatch)
    with pytest.raises((AssertionError, LedgerFault, DataStopped, pytest.fail.Exception)):
        check_orders()


# ---- entries ---------------------------------------------------------------------------------------------------------


def test_a_batch_that_fails_and_an_asker_that_dies_are_one_fault_each() -> None:
    state = asked(asked(asked(ready())))
    assert left(state, "fault").faults == 1
    assert left(state, "death").under_way == {}


def test_how_a_late_question_ended_does_not_show() -> None:
    """One that would have been answered and one that failed leave the same entries, once the data set is stopped."""
    state = asked(asked(ready()))
    first, second = state.under_way
    state = failing(left(state, "fault", first), 2)
    entries = [leaving(state, [second], cause, TIME) for cause in CAUSES]
    assert len({entry.hash for entry in entries if entry is not None}) == 1


def test_twin_a_late_question_that_keeps_its_cause_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LedgerState, "stopped", property(lambda _state: False))
    with pytest.raises(AssertionError):
        test_how_a_late_question_ended_does_not_show()


@pytest.mark.parametrize(
    "changes",
    [
        {"subject": "2"},
        {"subject": "4"},
        {"subject": "none"},
        {"body": '{"also":[3],"cause":"fault"}'},
        {"body": '{"also":[9],"cause":"fault"}'},
        {"body": '{"also":["4"],"cause":"fault"}'},
        {"body": '{"also":[],"cause":"lunch"}'},
        {"body": '{"also":[],"cause":["fault"]}'},
        {"body": '{"also":[],"cause":"stop"}'},
        {"body": '{"cause":"interrupt"}'},
        {"kind": "resume", "subject": "", "body": '{"faults":1,"principal":"p"}'},
        {"kind": "resume", "subject": "", "body": '{"faults":"0","principal":"p"}'},
    ],
)
def test_a_sealed_ending_that_makes_no_sense_is_a_fault(changes: dict[str, str]) -> None:
    state = asked(ready())
    entry = leaving(state, [3], "fault", TIME)
    assert entry is not None
    fold(state, entry)
    with pytest.raises(LedgerFault):
        fold(state, resealed(entry, **changes))


def test_a_charge_of_a_stopped_data_set_is_tampering() -> None:
    state = failing(ready(), 2)
    entry = charging(state, request(PureDP(PRICE)), TIME)
    assert isinstance(entry, Entry)
    fold(state, entry)
    stopped = failing(state, 1)
    with pytest.raises(LedgerFault, match="charges while the data set was stopped"):
        fold(stopped, resealed(entry, sequence=stopped.sequence + 1, previous=stopped.hash))


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "A" * 32, "a" * 31, "a" * 32 + "\n", "a" * 33, "a/" * 16])
def test_the_name_of_an_asker_leads_nowhere_else(name: str) -> None:
    """It becomes a part of a path, and who can edit the file can write any."""
    entry = charging(ready(), request(PureDP(PRICE), asker=name), TIME)
    assert isinstance(entry, Entry)
    with pytest.raises(LedgerFault):
        fold(ready(), entry)


# ---- files -----------------------------------------------------------------------------------------------------------


def fails(ledger: Ledger, key: str = "count") -> None:
    assert ledger.record_unanswered([charged(ledger, PRICE, key)], "fault") is False


def test_faults_stop_and_the_curator_resumes(place: Place) -> None:
    with opened(place) as ledger:
        ledger.record_answer(charged(ledger, PRICE, "bought"), "42")
        for _ in range(3):
            fails(ledger)
    with opened(place) as ledger:
        before = ledger.state()
        for _ in range(2):
            with pytest.raises(DataStopped) as refused:
                spend(ledger, PRICE)
            assert (refused.value.charged, refused.value.curator_remedy != "") == (False, True)
        assert ledger.state() == before
        assert [answer.payload for answer in ledger.answers("bought")] == ["42"]
        assert ledger.charge_all([]) == (), "what needs no charge is served"
        assert ledger.accept({"visits": "b" * 64}, "curator") == 2
        with pytest.raises(DataStopped):
            spend(ledger, PRICE)
        assert [(row.cause, len(row.charges)) for row in ledger.faults()] == [("fault", 1)] * 3
        assert ledger.resume("curator") == 3
        assert (ledger.faults(), ledger.state().account.spent) == ((), before.account.spent)
        entries = ledger.verify()
        assert ledger.resume("curator") == 0
        assert ledger.verify() == entries
        fails(ledger)
        assert len(ledger.faults()) == 1
        assert [row.unanswered for row in ledger.history()] == [None, "fault", "fault", "fault", "fault"]


def test_who_is_under_way_or_interrupted_stops_nobody(place: Place) -> None:
    with opened(place) as one, opened(place) as other:
        for number in range(20):
            charged(other, PRICE, f"under way {number}")
            one.record_unanswered([charged(one, PRICE)], "interrupt")
        assert one.state().faults == 0
        assert one.faults() == ()
        assert len(one.state().under_way) == 20


def test_who_has_let_go_is_one_fault(place: Place) -> None:
    with opened(place) as one:
        with opened(place) as other:
            charged(other, PRICE, "one")
            charged(other, PRICE, "two")
        other._presence.drop()
        assert one.state().faults == 0, "nobody has looked"
        charged(one, PRICE)
        assert one.state().faults == 1
        (fault,) = one.faults()
        assert (fault.cause, [row.question for row in fault.charges]) == ("death", ["SELECT one", "SELECT two"])
        assert place.askers() == [one._presence.name()]
    one._presence.drop()


def test_a_name_is_let_go_when_nothing_is_under_way(place: Place) -> None:
    with opened(place) as ledger:
        ledger.record_answer(charged(ledger, PRICE), "42")
        fails(ledger)
        first = ledger._presence.name()
    assert place.askers() == []
    with closing(ledger):
        ledger.record_answer(charged(ledger, PRICE), "42")
        assert ledger._presence.name() != first


def test_a_question_that_was_taken_for_dead_gets_no_answer(place: Place) -> None:
    with opened(place) as one, opened(place) as other:
        late = charged(one, PRICE)
        place.forget_askers()
        charged(other, PRICE)
        with pytest.raises(EngineFault, match="gave up the query as lost"):
            one.record_answer(late, "42")
        assert one.record_unanswered([late], "fault") is True
        one.verify()
        other._presence.drop()


def test_late_answers_are_not_released(place: Place) -> None:
    with opened(place) as slow, opened(place) as ledger:
        good, bad, stopped = (charged(slow, PRICE, key) for key in ("good", "bad", "stopped"))
        for _ in range(3):
            fails(ledger)
        with pytest.raises(EngineFault, match="The cost is charged and nothing is released"):
            slow.record_answer(good, "42")
        assert [slow.record_unanswered([charge], "fault") for charge in (good, bad)] == [True, True]
        assert slow.record_unanswered([stopped], "interrupt") is True
        assert [row.unanswered for row in slow.history()][:3] == ["stop"] * 3
        assert slow.answers("good") == ()
        assert (slow.state().faults, slow.resume("curator")) == (3, 3)
        with pytest.raises(EngineFault):
            slow.record_answer(good, "42")
        slow.verify()


def test_a_fault_that_could_not_be_written_is_told_with_the_next_charge(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with opened(place) as ledger:
        for _ in range(3):
            charge = charged(ledger, PRICE)
            with monkeypatch.context() as patch:
                patch.setattr(Transaction, "commit", full)
                assert ledger.record_unanswered([charge], "fault") is False
        assert ledger.state().faults == 2
        with pytest.raises(DataStopped):
            spend(ledger, PRICE)
        assert ledger.state().faults == 3
        assert ledger.resume("curator") == 3
        charged(ledger, PRICE)
        assert ledger.state().faults == 0, "it is told once"
    ledger._presence.drop()


def test_an_answer_that_was_recorded_is_no_fault(place: Place) -> None:
    """Ctrl-C between the record and the caller: the answer is there, and free."""
    with opened(place) as ledger:
        charge = charged(ledger, PRICE)
        ledger.record_answer(charge, "42")
        entries = ledger.verify()
        assert ledger.record_unanswered([charge], "fault") is False
        assert ledger.verify() == entries


def test_a_refusal_notes_nothing(place: Place) -> None:
    with opened(place) as ledger:
        entries = ledger.verify()
        assert isinstance(spend(ledger, 2), Refused)
        assert ledger.verify() == entries
        assert ledger.record_unanswered([], "fault") is False


def test_ledgers_from_before_there_were_askers_count_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their unanswered charges may be anything, and are nobody's."""
    with monkeypatch.context() as patch:
        patch.setattr(Charge, "to_record", lambda self, write=Charge.to_record: before(write(self)))
        with opened(place) as ledger:
            old = [charged(ledger, PRICE, f"{number}") for number in range(5)]
    with opened(place) as ledger:
        assert (ledger.state().under_way, ledger.faults()) == ({}, ())
        ledger.record_answer(old[0], "42")
        ledger.record_answer(charged(ledger, PRICE), "42")
        ledger.verify()
        assert [row.unanswered for row in ledger.history()] == [None] * 6
        with pytest.raises(InvalidParameter):
            ledger.record_answer(old[0], "43")


def before(record: dict[str, object]) -> dict[str, object]:
    return json.loads(json.dumps({name: value for name, value in record.items() if name != "asker"}))  # type: ignore[no-any-return]


def test_an_answer_after_an_ending_is_tampering(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(place) as ledger:
        charge = charged(ledger, PRICE)
        ledger.record_unanswered([charge], "fault")
        with monkeypatch.context() as patch:
            patch.setattr(Charge, "from_record", lambda record: request(PureDP(0)))
            ledger.record_answer(charge, "42")
        with pytest.raises(LedgerFault, match="was given up"):
            ledger.verify()


def test_opening_a_ledger_counts_nothing() -> None:
    state = fold(None, opening(registration(1), TIME))
    assert (state.faults, state.stopped, state.under_way) == (0, False, {})


# ---- at the same time ------------------------------------------------------------------------------------------------


def owing_beside_a_charge(place: Place, patch: pytest.MonkeyPatch) -> Ledger:
    """Return a ledger in which a question failed while another thread's charge was being written for too long."""
    ledger = place.open(registration(10), patience=0.2)
    failed = charged(ledger, 0.1, "failed")
    begun, go_on, commit = threading.Event(), threading.Event(), Transaction.commit

    def slowly(self: Transaction, *entries: Entry) -> None:
        if any(entry.kind == "charge" for entry in self.appended):
            begun.set()
            assert go_on.wait(300)
        commit(self, *entries)

    with patch.context() as once, ThreadPoolExecutor(1) as pool:
        once.setattr(Transaction, "commit", slowly)
        beside = pool.submit(spend, ledger, 0.1, "beside")
        assert begun.wait(300)
        assert not ledger.record_unanswered([failed], "fault"), "the ledger is held, so this is owed"
        go_on.set()
        beside.result()
    return ledger


def check_that_what_is_owed_is_paid(place: Place, patch: pytest.MonkeyPatch) -> None:
    with closing(owing_beside_a_charge(place, patch)) as ledger:
        charged(ledger, 0.1, "next")
        assert ledger.state().faults == 1
        assert ledger._pending_writes == []


def test_what_is_owed_beside_a_charge_is_counted_with_the_next(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(place, 10):
        check_that_what_is_owed_is_paid(place, monkeypatch)


def test_twin_a_charge_that_takes_all_debts_for_paid(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def forgiving(self: Ledger, transaction: Transaction, settled: Any, *entries: Entry) -> list[LedgerState]:
        transaction.once_kept(self._pending_writes.clear)
        return transaction.append(*settled.entries, *entries)

    monkeypatch.setattr(Ledger, "_append", forgiving)
    with opened(place, 10), pytest.raises(AssertionError):
        check_that_what_is_owed_is_paid(place, monkeypatch)


def test_memory_that_runs_out_while_a_fault_is_written_leaves_it_owed(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def short_of_memory(*_: object) -> None:
        raise MemoryError

    with opened(place, 10) as ledger:
        failed = charged(ledger, 0.1)
        with monkeypatch.context() as patch:
            patch.setattr("lapwing.ledger.ledger.leaving", short_of_memory)
            assert not ledger.record_unanswered([failed], "fault")
        charged(ledger, 0.1)
        assert ledger.state().faults == 1


def test_closing_beside_a_charge_is_no_death(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(place, 10) as ledger, opened(place, 10) as other:
        ledger.record_answer(charged(ledger, 0.1, "first"), "1")
        dropping, drop = threading.Event(), place.presences.drop

        def slowly(self: Presence, *, unless: Collection[str] = ()) -> None:
            dropping.set()
            time.sleep(0.3)  # between the look at who asks and the drop of the name
            drop(self, unless=unless)

        with monkeypatch.context() as patch, ThreadPoolExecutor(1) as pool:
            patch.setattr(place.presences, "drop", slowly)
            closed = pool.submit(ledger.close)
            assert dropping.wait(300)
            under_way = charged(ledger, 0.1, "second")
            closed.result()
        charged(other, 0.1, "third")
        assert other.faults() == ()
        ledger.record_answer(under_way, "2")

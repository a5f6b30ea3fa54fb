"""What threads ask of a ledger at one time is committed once, and each is told its own outcome after that."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import pytest

from lapwing.errors import DataChanged, LedgerFault
from lapwing.ledger.allowances import Limits
from lapwing.ledger.entries import Charge, Charged
from lapwing.ledger.group_commit import CommitRequest, GroupCommit
from lapwing.ledger.ledger import Ledger
from lapwing.ledger.transaction import Transaction
from lapwing.ledger.waiting import UnderWay
from lapwing.privacy.filters import Refused
from lapwing.privacy.measures import PureDP
from tests.support.ledger.ledgers import opened
from tests.support.ledger.places import Place

MANY = 6


def request(key: str, loss: float = 0.1, version: int = 1) -> Charge:
    return Charge(
        key=key,
        question=f"SELECT {key}",
        loss=PureDP(Fraction(str(loss))),
        catalog_digest="c" * 64,
        principal="analyst",
        version=version,
    )


def together(ledger: Ledger, works: Sequence[Callable[[], Any]]) -> list[Future[Any]]:
    """Let threads ask while the ledger is held, and let go of it when all of them stand in the line."""
    with ThreadPoolExecutor(len(works)) as pool:
        with ledger._chain.turn.taken():
            futures = []
            for place, work in enumerate(works, 1):
                futures.append(pool.submit(work))
                deadline = time.monotonic() + 60
                while len(ledger._group._line) < place:
                    assert time.monotonic() < deadline
                    time.sleep(0.001)
        return futures


def charges(ledger: Ledger, *requests: Charge) -> list[Future[Any]]:
    return together(ledger, [lambda one=one: ledger.charge_all([one]) for one in requests])  # type: ignore[misc]


def kept(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count what each commit keeps."""
    commits, whole = list[int](), Transaction.commit

    def commit(self: Transaction, *entries: Any) -> None:
        commits.append(len(self.appended))
        whole(self, *entries)

    monkeypatch.setattr(Transaction, "commit", commit)
    return commits


def failing_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the first commit of charges fail, with nothing kept."""
    whole, failed = Transaction.commit, list[bool]()

    def commit(self: Transaction, *entries: Any) -> None:
        if not failed:
            failed.append(True)
            raise LedgerFault("planted: the disk is full")
        whole(self, *entries)

    monkeypatch.setattr(Transaction, "commit", commit)


def check_a_failed_commit(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(place) as ledger:
        failing_once(monkeypatch)
        futures = charges(ledger, *(request(f"q{number}") for number in range(MANY)))
        assert [type(future.exception()) for future in futures] == [LedgerFault] * MANY
        assert ledger.state().account.spent == PureDP(0)
        assert isinstance(ledger.charge_all([request("q0")]), tuple)
        assert ledger.state().account.spent == PureDP(Fraction(1, 10))


def test_many_are_charged_by_one_commit(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(place) as ledger:
        commits = kept(monkeypatch)
        outcomes = [future.result() for future in charges(ledger, *(request(f"q{place}") for place in range(MANY)))]
        assert commits == [MANY]
        sequences = [charged.sequence for (charged,) in outcomes]
        assert sequences == list(range(sequences[0], sequences[0] + MANY))
        spent = [charged.account.spent for (charged,) in outcomes]
        assert spent == [PureDP(Fraction(place, 10)) for place in range(1, MANY + 1)]
        commits.clear()
        answers = together(ledger, [lambda one=one: ledger.record_answer(one, "[1]") for one in sequences])  # type: ignore[misc]
        assert [future.result() for future in answers] == [None] * MANY
        assert commits == [MANY]
        assert not ledger.state().under_way
        ledger.verify()


def test_a_failed_commit_is_told_to_all(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    check_a_failed_commit(place, monkeypatch)


def test_twin_who_is_told_of_a_charge_though_its_commit_failed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = CommitRequest.fail

    def fail(self: CommitRequest, error: Exception) -> None:
        whole(self, error)
        self.error = None if self.result is not None and isinstance(error, LedgerFault) else error

    monkeypatch.setattr(CommitRequest, "fail", fail)
    with pytest.raises(AssertionError):
        check_a_failed_commit(place, monkeypatch)


def check_told_after_the_commit(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, ended = Transaction.commit, list[bool]()

    with opened(place) as ledger:
        taken: list[CommitRequest] = []
        decide = CommitRequest.decide_in

        def noted(self: CommitRequest, transaction: Transaction) -> None:
            taken.append(self)
            decide(self, transaction)

        def commit(self: Transaction, *entries: Any) -> None:
            ended.extend(one.ended for one in taken)
            whole(self, *entries)

        monkeypatch.setattr(CommitRequest, "decide_in", noted)
        monkeypatch.setattr(Transaction, "commit", commit)
        charges(ledger, request("a"), request("b"))
        assert ended == [False, False]


def test_nobody_is_told_before_the_commit(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    check_told_after_the_commit(place, monkeypatch)


def test_twin_who_is_told_before_the_commit(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    decide = CommitRequest.decide_in

    def told(self: CommitRequest, transaction: Transaction) -> None:
        decide(self, transaction)
        self.ended = True

    monkeypatch.setattr(CommitRequest, "decide_in", told)
    with pytest.raises(AssertionError):
        check_told_after_the_commit(place, monkeypatch)


def test_a_refusal_is_told_to_its_asker_alone(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(place) as ledger:
        commits = kept(monkeypatch)
        first, refused, last = charges(ledger, request("a"), request("b", version=9), request("c"))
        assert isinstance(refused.exception(), DataChanged)
        assert first.result()[0].sequence + 1 == last.result()[0].sequence
        assert commits == [2]


def test_a_bug_in_one_decision_is_raised_there_and_others_are_decided_anew(place: Place) -> None:
    def broken() -> Limits:
        raise ZeroDivisionError

    with opened(place) as ledger:
        works = [
            lambda: ledger.charge_all([request("a")]),
            lambda: ledger.charge_all([request("b")], broken),
            lambda: ledger.charge_all([request("c")]),
        ]
        first, bug, last = together(ledger, works)
        assert isinstance(bug.exception(), ZeroDivisionError)
        assert len({*(charged.sequence for one in (first, last) for charged in one.result())}) == 2
        assert ledger.state().account.spent == PureDP(Fraction(2, 10))
        assert len(ledger.state().under_way) == 2
        ledger.verify()


def test_of_identical_questions_one_is_charged_and_the_others_wait(place: Place) -> None:
    with opened(place) as ledger:
        outcomes = [future.result() for future in charges(ledger, *[request("same")] * MANY)]
        ((charged,),) = [outcome for outcome in outcomes if isinstance(outcome, tuple)]
        assert outcomes.count(UnderWay(sequence=charged.sequence)) == MANY - 1


def test_together_they_do_not_overspend(place: Place) -> None:
    with opened(place) as ledger:
        outcomes = [future.result() for future in charges(ledger, *(request(f"q{n}", 0.3) for n in range(MANY)))]
        assert sum(isinstance(outcome, tuple) for outcome in outcomes) == 3
        assert sum(isinstance(outcome, Refused) for outcome in outcomes) == MANY - 3


def test_a_charge_of_the_same_commit_is_no_charge_that_nobody_was_told_of(place: Place) -> None:
    """Each decision first ends the charges of its own asker of which nobody was told."""
    with opened(place) as ledger:
        futures = charges(ledger, *(request(f"q{number}") for number in range(MANY)))
        sequences = {charged.sequence for future in futures for charged in future.result()}
        assert set(ledger.state().under_way) == sequences


def test_who_waits_too_long_leaves_the_line(place: Place) -> None:
    with opened(place, patience=0.05) as ledger, ThreadPoolExecutor(1) as pool:
        with ledger._chain.turn.taken():
            future = pool.submit(ledger.charge_all, [request("a")])
            assert isinstance(future.exception(), LedgerFault)
        assert not ledger._group._line
        assert ledger.state().account.spent == PureDP(0)


def test_a_child_passes_over_the_requests_of_its_parent(place: Place) -> None:
    with opened(place) as ledger:
        inherited = CommitRequest(lambda _: pytest.fail("a thread of another process asked this"))
        inherited.process = -1
        ledger._group._line.append(inherited)
        (charged,) = ledger.charge_all([request("a")])  # type: ignore[misc]
        assert isinstance(charged, Charged)
        assert not inherited.ended


def test_a_request_that_was_lost_is_a_fault(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C may stop a thread while it has taken what others asked."""
    with opened(place) as ledger:
        whole = GroupCommit._carry_out_all

        def losing(self: GroupCommit, own: CommitRequest) -> None:
            self._line.clear()
            whole(self, own)

        monkeypatch.setattr(GroupCommit, "_carry_out_all", losing)
        with pytest.raises(LedgerFault, match="Nobody knows whether it was charged"):
            ledger.charge_all([request("a")])

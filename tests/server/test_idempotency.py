"""What is sent twice is charged once: one after the other, at the same time, and after a death."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import pytest

from lapwing.engines import DuckDB
from lapwing.errors import BudgetExhausted, EngineFault, LapwingError, LedgerFault
from lapwing.ledger.allowances import LimitsNow
from lapwing.ledger.entries import Charge, Charged
from lapwing.ledger.ledger import Ledger
from lapwing.ledger.waiting import UnderWay
from lapwing.privacy.filters import Refused
from lapwing.server.datasets import ServedDataset
from lapwing.server.execution import NamedLocks
from tests.support.effort import one_in
from tests.support.server.world import QUESTION, Reply, World, on_both

KEY = {"Idempotency-Key": "the first"}
THREADS = 16
pytestmark = on_both


def query(world: World, body: object = QUESTION, key: str | None = "the first") -> Reply:
    return world.query("alice", body, **({} if key is None else {"Idempotency-Key": key}))


def together(work: Callable[[], Reply]) -> list[Reply]:
    with ThreadPoolExecutor(THREADS) as threads:
        return [future.result() for future in [threads.submit(work) for _ in range(THREADS)]]


def test_a_key_is_answered_with_the_same_bytes(world: World) -> None:
    first, second = query(world), query(world)
    assert first.status == second.status == 200
    assert first.content == second.content
    assert not second.document["stored"]  # as it was told the first time
    assert world.charges() == 1


def test_a_key_of_another_request_is_refused(world: World) -> None:
    query(world)
    other = query(world, {**QUESTION, "epsilon": 0.6})
    assert (other.status, other.document["code"]) == (409, "key_conflict")
    assert world.charges() == 1


@pytest.mark.long
def test_keys_of_two_people_are_two(world: World) -> None:
    service = world.service
    service.policies.grant("open", "bob", None, {}, world.session().budget().total, by="carol")
    query(world)
    assert world.query("bob", {**QUESTION, "epsilon": 0.6}, **KEY).status == 200


def test_what_was_refused_may_be_asked_again(world: World) -> None:
    refused = query(world, {"sql": "SELECT nothing", "epsilon": 1})
    assert refused.status == 422
    assert query(world).status == 200


@contextmanager
def meeting(monkeypatch: pytest.MonkeyPatch, seconds: float) -> Iterator[None]:
    """Let the first two charges meet before either is made, if a second comes within some seconds."""
    barrier, charge_all = threading.Barrier(2), Ledger.charge_all

    def met(
        self: Ledger, requests: Sequence[Charge], limits: LimitsNow | None = None, since: int | None = None
    ) -> tuple[Charged, ...] | Refused | UnderWay:
        with suppress(threading.BrokenBarrierError):
            barrier.wait(seconds)
            barrier.abort()  # later ones need not meet
        return charge_all(self, requests, limits, since)

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "charge_all", met)
        yield


@pytest.mark.parametrize("key", one_in(2, ["the first", None]))
def test_requests_at_the_same_time_are_charged_once(
    world: World, monkeypatch: pytest.MonkeyPatch, key: str | None
) -> None:
    with meeting(monkeypatch, 1):
        replies = together(lambda: query(world, key=key))
    assert {reply.status for reply in replies} == {200}
    assert len({str(reply.document["rows"]) for reply in replies}) == 1
    assert world.charges() == 1


def test_without_turns_they_are_charged_twice(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: nobody waits for a turn, and the ledger does not see what is under way."""

    @contextmanager
    def nobody(self: NamedLocks, *_: object) -> Iterator[None]:
        yield

    monkeypatch.setattr(NamedLocks, "hold", nobody)
    monkeypatch.setattr("lapwing.ledger.ledger.under_way", lambda *_: None)
    with meeting(monkeypatch, 50):
        together(lambda: query(world, key=None))
    assert world.charges() > 1


def test_a_charged_failure_is_told_again_and_not_charged_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> object:
        raise EngineFault("The question failed after the charge.")

    with monkeypatch.context() as patched:
        patched.setattr(DuckDB, "run", failing)
        first = query(world)
    second = query(world)
    assert first.status == second.status == 500
    assert first.document == second.document
    assert first.document["code"] == "engine_fault"
    assert world.charges() == 1


def begun(world: World) -> None:
    """Leave the key as a process that died before its request ended leaves it."""
    with world.service.store.transaction() as connection:
        connection.execute("UPDATE requests SET answer = NULL")


AUTO = {"sql": "SELECT SUM(code, contribution_bounds_per_row => AUTO) AS total FROM visits", "epsilon": 0.5}


def overtaken(world: World, monkeypatch: pytest.MonkeyPatch) -> tuple[Reply, Reply]:
    """Ask with a key what is refused after its search was charged; and again, with the same key, about newer data."""

    def refusing(*_: object) -> object:
        raise BudgetExhausted("Somebody else spent the rest.")

    with monkeypatch.context() as patched:
        patched.setattr("lapwing.release.searches.findings", refusing)
        first = query(world, AUTO)
    session = world.session()
    session._ledger.accept({**session._ledger.state().digests, "codes": "0" * 64}, "carol")
    return first, query(world, AUTO)


def test_a_refusal_after_a_charged_search_is_told_again_and_not_charged_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = overtaken(world, monkeypatch)
    assert (first.status, first.document["code"]) == (409, "budget_exhausted")
    assert "The bounds were found and charged" in first.document["detail"]
    assert second.content == first.content
    assert world.charges() == 1
    assert query(world, AUTO, key="another").status == 200
    assert world.charges() == 3  # the search about the newer data, and the question


@pytest.mark.long
def test_a_search_that_does_not_pay_for_its_key_is_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: what is refused after a search counts as uncharged."""
    monkeypatch.setattr(LapwingError, "searches_charged", property(lambda self: False, lambda self, value: None))
    _, second = overtaken(world, monkeypatch)
    assert (second.status, world.charges()) == (200, 3)


def test_after_a_death_the_answer_in_the_ledger_is_served(world: World) -> None:
    first = query(world)
    begun(world)
    second = query(world)
    assert second.status == 200
    assert second.document["rows"] == first.document["rows"]
    assert world.charges() == 1


def test_after_a_death_without_answer_nothing_is_charged_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def dying(*_: object) -> None:
        raise LedgerFault("The ledger is gone.")

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "record_answer", dying)
        assert query(world).status == 503  # charged, and nobody wrote down what came of it
    assert world.charges() == 1
    second = query(world)
    assert (second.status, second.document["code"]) == (409, "key_conflict")
    assert "history" in second.document["detail"]
    assert query(world).status == 409
    assert world.charges() == 1


@pytest.mark.long
def test_asking_such_a_key_again_is_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a key that began and did not end is asked as if it were new."""
    query(world)
    session = world.session()
    session._ledger.accept({**session._ledger.state().digests, "other": "0" * 64}, "carol")  # the answer is of before
    begun(world)
    assert query(world).status == 409
    monkeypatch.setattr(ServedDataset, "for_nothing", lambda self, person: self.session.acting_for(person))
    assert query(world).status == 200
    assert world.charges() == 2


def test_after_a_death_a_question_that_no_longer_fits_is_not_told_that_nothing_was_charged(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its bounds were to be found first, and the budget would not bear both any more."""
    found = {"sql": "SELECT SUM(cost, contribution_bounds_per_group => AUTO) AS s FROM visits", "epsilon": 1}
    with monkeypatch.context() as patched:
        patched.setattr("lapwing.server.bodies.QueryBody.bought", lambda *_: 1 / 0)
        assert query(world, found).status == 500
    assert query(world, {**QUESTION, "epsilon": 99.99}, key=None).status == 200
    second = query(world, found)
    assert (second.status, second.document["code"]) == (409, "key_conflict")
    assert world.charges() == 1


@pytest.mark.long
def test_an_answer_is_opened_again_for_nothing(world: World) -> None:
    first = query(world).document
    again = world.ask("GET", f"/v1/answers/{first['id']}", "alice")
    assert again.document == first
    wider = world.ask("GET", f"/v1/answers/{first['id']}?confidence=0.99", "alice").document
    assert wider["rows"] == first["rows"]
    assert wider["intervals"]["n"]["low"][0] < first["intervals"]["n"]["low"][0]
    assert world.charges() == 1
    assert [row["id"] for row in world.ask("GET", "/v1/datasets/open/answers", "alice").document] == [first["id"]]


@pytest.mark.long
def test_an_answer_about_older_data_stays_as_it_was(world: World) -> None:
    first = query(world).document
    session = world.session()
    digests = {**session._ledger.state().digests, "visits": "0" * 64}
    session._ledger.accept(digests, "carol")
    assert world.ask("GET", f"/v1/answers/{first['id']}", "alice").document == first
    wider = world.ask("GET", f"/v1/answers/{first['id']}?confidence=0.99", "alice")
    assert (wider.status, wider.document["code"]) == (409, "data_changed")
    assert world.charges() == 1


@pytest.mark.long
def test_arrow_holds_the_same_answer(world: World) -> None:
    import pyarrow as pa

    first = query(world).document
    arrow = world.ask(
        "GET", f"/v1/answers/{first['id']}", "alice", headers={"Accept": "application/vnd.apache.arrow.stream"}
    )
    table = pa.ipc.open_stream(arrow.content).read_all()
    assert table.column("n").to_pylist() == [row["n"] for row in first["rows"]]
    assert table.column("n_low").to_pylist() == first["intervals"]["n"]["low"]

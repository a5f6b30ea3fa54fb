"""The same free question again: the same answer, of the same id, as long as it is the same."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from lapwing.answer import Answer
from lapwing.server import execution, recent_answers
from lapwing.server.bodies import QueryBody
from lapwing.server.recent_answers import RecentAnswer
from lapwing.session import Session
from tests.support.release import small
from tests.support.server.world import QUESTION, World


def asked(world: World, who: str = "alice", **more: object) -> Any:
    reply = world.query(who, {**QUESTION, **more})
    assert reply.status == 200
    return reply.document


def change_the_data(world: World) -> None:
    session = world.session()
    small.write(session.catalog.folder, [small.row(n, plan="b") for n in range(7)])
    session.accept_data()


def test_the_third_asking_is_the_second_again(world: World) -> None:
    first, second, third = (asked(world) for _ in range(3))
    assert not first["stored"]
    assert second["stored"]
    assert second["id"] != first["id"]
    assert third == second
    assert world.charges() == 1


@pytest.mark.long
def test_every_person_and_request_has_its_own(world: World) -> None:
    ids = [asked(world)["id"], asked(world)["id"], asked(world, confidence=0.9)["id"], asked(world)["id"]]
    assert len(set(ids)) == 3
    assert asked(world, "carol")["id"] not in ids
    assert world.ask("GET", f"/v1/answers/{ids[1]}", "bob").status == 404


@pytest.mark.long
def test_other_data_have_another_answer(world: World) -> None:
    before = [asked(world) for _ in range(3)][-1]
    change_the_data(world)
    bought, again = asked(world), asked(world)
    assert not bought["stored"]
    assert again["stored"]
    assert again["rows"] == bought["rows"] != before["rows"]
    assert world.charges() == 2


@pytest.mark.long
def test_an_answer_that_is_not_compared_is_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: what the answer rests on is not looked at."""
    monkeypatch.setattr(RecentAnswer, "says_what", lambda *_: True)
    before = [asked(world) for _ in range(3)][-1]
    change_the_data(world)
    assert asked(world)["rows"] == before["rows"]


def test_a_data_set_that_is_stopped_still_serves_it(world: World) -> None:
    second = [asked(world) for _ in range(2)][-1]
    world.service.policies.stop("open", stopped=True, by="carol")
    assert asked(world) == second


# ---- without looking again -------------------------------------------------------------------------------------------


def standing(world: World, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return an answer that stands: it is served though nothing could be looked up."""
    session = world.session()
    session.catalog = replace(session.catalog, public_tables=())
    asked(world), asked(world)
    kept = asked(world)
    with monkeypatch.context() as patch:
        patch.setattr(QueryBody, "bought", not_to_be_called)
        assert asked(world) == kept
    return kept


def not_to_be_called(*_: object) -> None:
    raise AssertionError


def test_new_data_are_seen_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    before = standing(world, monkeypatch)
    change_the_data(world)
    now = asked(world)
    assert not now["stored"]
    assert now["rows"] != before["rows"]


@pytest.mark.long
def test_a_seal_that_does_not_change_serves_old_data(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a stale entry, as the ledger is not read again."""
    before = standing(world, monkeypatch)
    seal = world.session()._ledger.seen().hash
    monkeypatch.setattr(execution, "seal_of", lambda *_: seal)
    change_the_data(world)
    assert asked(world) == before


LATELY = "SELECT plan, COUNT(*) AS n FROM visits WHERE day < CURRENT_DATE GROUP BY plan"
TODAY = "SELECT COUNT(*) AS n, CURRENT_DATE AS today FROM visits"


FREE_TODAY = "SELECT tier, CURRENT_DATE AS today FROM codes"


def on_day(day: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Session, "moment", lambda _: datetime(2026, 1, day))


def test_another_day_is_seen_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    session = world.session()
    session.catalog = replace(session.catalog, public_tables=())
    on_day(2, monkeypatch)
    kept = [asked(world, sql=LATELY) for _ in range(3)][-1]
    assert kept["stored"]
    assert asked(world, sql=LATELY) == kept
    on_day(3, monkeypatch)
    assert not asked(world, sql=LATELY)["stored"]
    assert world.charges() == 2


@pytest.mark.parametrize(("text", "charges"), [(TODAY, 1), (FREE_TODAY, 0)])
def test_a_free_answer_shows_the_day_on_which_it_is_asked(
    world: World, monkeypatch: pytest.MonkeyPatch, text: str, charges: int
) -> None:
    """The clock stands beside the numbers alone: they are the same on both days, and the day is not."""
    on_day(2, monkeypatch)
    first = [asked(world, sql=text) for _ in range(3)][-1]
    on_day(3, monkeypatch)
    second = [asked(world, sql=text) for _ in range(3)]
    assert {row["today"] for row in first["rows"]} == {"2026-01-02"}
    assert {row["today"] for answer in second for row in answer["rows"]} == {"2026-01-03"}
    assert world.charges() == charges


def test_data_that_were_not_accepted_are_seen_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    standing(world, monkeypatch)
    small.write(world.session().catalog.folder, [small.row(n, plan="b") for n in range(9)])
    assert world.query("alice").document["code"] == "data_changed"


def test_a_sharper_answer_of_somebody_else_is_seen_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    before = standing(world, monkeypatch)
    sharper = asked(world, "carol", epsilon=1)
    assert asked(world)["rows"] == sharper["rows"] != before["rows"]


def test_another_catalog_is_seen_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    standing(world, monkeypatch)
    session = world.session()
    session.catalog = replace(session.catalog)
    looked: list[object] = []
    bought = QueryBody.bought

    def noted(body: QueryBody, session: Session) -> tuple[Answer, ...]:
        looked.append(body)
        return bought(body, session)

    monkeypatch.setattr(QueryBody, "bought", noted)
    asked(world)
    assert looked


def test_rights_are_looked_at_each_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    standing(world, monkeypatch)
    world.service.policies.withdraw("open", "alice", by="carol")
    assert world.query("alice").document["code"] == "not_found"
    (token,) = world.service.people.tokens("alice")
    world.service.people.revoke(token.id, of="alice", by="carol")
    assert world.query("alice").status == 401


@pytest.mark.long
def test_a_dropped_answer_stands_no_more(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    before = standing(world, monkeypatch)
    monkeypatch.setattr(world.service.answers, "is_kept", lambda _: False)
    assert asked(world)["id"] != before["id"]


def test_nothing_stands_beside_public_tables(world: World) -> None:
    for _ in range(3):
        asked(world)
    (recent,) = world.service.executor._recent._recent.values()
    assert world.session().catalog.public_tables
    assert recent.seal is None


@pytest.mark.long
def test_it_is_counted_as_stored(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    standing(world, monkeypatch)
    assert 'lapwing_questions_total{dataset="open",outcome="stored"} 3.0' in world.service.metrics.text()


@pytest.mark.long
def test_only_the_latest_are_remembered(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent_answers, "MOST", 1)
    before = standing(world, monkeypatch)
    for _ in range(2):
        asked(world, confidence=0.9)
    assert asked(world)["id"] != before["id"]
    assert len(world.service.executor._recent._recent) == 1


# ---- free, as all of it is public ------------------------------------------------------------------------------------

PUBLIC = "SELECT tier, COUNT(*) AS n FROM codes GROUP BY tier"


def test_a_free_result_is_stored_once(world: World) -> None:
    first = asked(world, sql=PUBLIC)
    assert [asked(world, sql=PUBLIC) for _ in range(2)] == [first, first]
    assert world.ask("GET", f"/v1/answers/{first['id']}", "alice").document["rows"] == first["rows"]
    assert asked(world, sql=PUBLIC, confidence=0.9)["id"] != first["id"]
    assert asked(world, "carol", sql=PUBLIC)["id"] != first["id"]
    assert len(world.ask("GET", "/v1/datasets/open/answers", "alice").document) == 2
    assert world.charges() == 0

"""The same free question again: the same answer, of the same id, as long as it is the same."""

from typing import Any

import pytest

from lapwing.server.answer_store import RecentAnswers
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


def test_every_person_and_request_has_its_own(world: World) -> None:
    ids = [asked(world)["id"], asked(world)["id"], asked(world, confidence=0.9)["id"], asked(world)["id"]]
    assert len(set(ids)) == 3
    assert asked(world, "carol")["id"] not in ids
    assert world.ask("GET", f"/v1/answers/{ids[1]}", "bob").status == 404


def test_other_data_have_another_answer(world: World) -> None:
    before = [asked(world) for _ in range(3)][-1]
    change_the_data(world)
    bought, again = asked(world), asked(world)
    assert not bought["stored"]
    assert again["stored"]
    assert again["rows"] == bought["rows"] != before["rows"]
    assert world.charges() == 2


def test_an_answer_that_is_not_compared_is_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: what the answer rests on is not looked at."""
    monkeypatch.setattr(
        RecentAnswers, "find", lambda self, *place: next((recent.record for recent in self._recent.values()), None)
    )
    before = [asked(world) for _ in range(3)][-1]
    change_the_data(world)
    assert asked(world)["rows"] == before["rows"]


def test_a_data_set_that_is_stopped_still_serves_it(world: World) -> None:
    second = [asked(world) for _ in range(2)][-1]
    world.service.policies.stop("open", stopped=True, by="carol")
    assert asked(world) == second

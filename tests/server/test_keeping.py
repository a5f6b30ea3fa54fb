"""How long answers are kept, what is told of those that were dropped, and how an answer and its key are found."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from lapwing.errors import AnswerDropped
from lapwing.server import answer_store, store
from lapwing.server.answer_store import BOUGHT_TOGETHER, AnswerStore, NewAnswer
from lapwing.server.people import DAY
from lapwing.server.store_places import open_store
from tests.support.release import small
from tests.support.server.world import BOTH_STORES, QUESTION, QUICK, World, on_both, service_in, serving

DAYS: Final = 30
KEPT: Final = replace(QUICK, keep_answers=DAYS)
KEY: Final = {"Idempotency-Key": "the first"}
BATCH: Final = {"questions": [{"sql": QUESTION["sql"]}, {"sql": "SELECT COUNT(*) AS n FROM visits"}], "epsilon": 0.5}


@pytest.fixture
def keeping(tmp_path: Path, people: str) -> Iterator[World]:
    """A service that keeps answers for some days."""
    with serving(service_in(tmp_path, KEPT, people=people)) as running:
        yield running


def later(world: World, days: float) -> None:
    world.service.answers._clock = lambda: time.time() + days * DAY


@pytest.mark.long
@on_both
@pytest.mark.parametrize("swept", [False, True])
def test_an_answer_that_is_too_old_is_gone_and_says_so(keeping: World, swept: bool) -> None:
    bought = keeping.query("alice", **KEY).document["id"]
    queued = keeping.connect("alice").submit(str(QUESTION["sql"]), epsilon=0.5)
    assert queued.wait(60).id
    later(keeping, DAYS - 0.01)
    assert keeping.service.answers.drop_old() == 0
    assert keeping.ask("GET", f"/v1/answers/{bought}", "alice").status == 200
    later(keeping, DAYS + 0.01)
    if swept:
        keeping.service.retention.look()
        with keeping.service.store.reading() as connection:
            left = connection.execute("SELECT request, document, arrow FROM answers").fetchall()
            jobs = connection.execute("SELECT COUNT(*) FROM queries").fetchone()[0]
        assert {(request, document, bytes(arrow)) for request, document, arrow in left} == {("{}", "{}", b"")}
        assert jobs == 0
    for path in (f"/v1/answers/{bought}", f"/v1/answers/{bought}?confidence=0.5", f"/v1/answers/{bought}/consistent"):
        reply = keeping.ask("GET", path, "alice")
        assert (reply.status, reply.document["code"]) == (410, "answer_dropped")
        assert keeping.ask("GET", path, "bob").status == 404  # what is hidden does not become visible
    assert keeping.ask("GET", "/v1/datasets/open/answers", "alice").document == []
    with pytest.raises(AnswerDropped, match="with a new key"):
        keeping.connect("alice").answer(bought)


def replayed_after_new_data(world: World) -> list[int]:
    """Buy with a key, drop the answer, take in new data, for which it would have to be bought anew, and send it again.

    Returns: the statuses of the second query and of the second batch.
    """
    world.query("alice", **KEY)
    batch = ("POST", "/v1/datasets/open/batch", "alice", BATCH, {"Idempotency-Key": "the second"})
    world.ask(*batch)
    later(world, DAYS + 1)
    world.service.retention.look()
    small.write(Path(world.session().catalog.folder), [small.row(1)])
    assert world.ask("POST", "/v1/datasets/open/accept", "carol").status == 200
    return [world.query("alice", **KEY).status, world.ask(*batch).status]


@on_both
def test_a_key_whose_answer_was_dropped_is_never_charged_again(keeping: World) -> None:
    assert replayed_after_new_data(keeping) == [410, 410]
    assert keeping.charges() == 2  # the first question of the batch was bought before
    queued = keeping.ask("POST", "/v1/datasets/open/queries", "alice", QUESTION, KEY).document["id"]
    with pytest.raises(AnswerDropped):
        keeping.connect("alice").pending(queued).wait(60)
    assert keeping.charges() == 2


@pytest.mark.long
def test_keys_that_are_dropped_with_their_answers_would_be_charged_again(
    keeping: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: the keys go as well."""
    drop = AnswerStore.drop_old

    def with_keys(self: AnswerStore) -> int:
        with self._store.transaction() as connection:
            connection.execute("DELETE FROM requests")
        return drop(self)

    monkeypatch.setattr(AnswerStore, "drop_old", with_keys)
    assert replayed_after_new_data(keeping) == [200, 200]
    assert keeping.charges() > 2


@on_both
def test_the_same_question_after_its_answer_was_dropped_is_free_and_kept_anew(keeping: World) -> None:
    keeping.query("alice")
    first, second = (keeping.query("alice").document["id"] for _ in range(2))
    assert first == second  # as remembered
    later(keeping, DAYS + 1)
    again = keeping.query("alice").document
    assert (again["stored"], keeping.charges()) == (True, 1)
    assert again["id"] != first
    assert keeping.ask("GET", f"/v1/answers/{again['id']}", "alice").status == 200


def test_answers_are_kept_for_ever_unless_it_is_said(world: World) -> None:
    bought = world.query("alice").document["id"]
    later(world, 100_000)
    assert world.service.answers.drop_old() == 0
    assert world.ask("GET", f"/v1/answers/{bought}", "alice").status == 200


# ---- How they are found ----


def filled(place: str, monkeypatch: pytest.MonkeyPatch) -> tuple[store.ServiceStore, str]:
    """Return a store of the first two steps with answers, opened by this Lapwing, and the id of a batch in it."""
    kind: store.Kind = "postgres" if place.startswith("postgres") else "sqlite"
    steps = store.migrations(kind)
    with monkeypatch.context() as earlier:
        earlier.setattr(store, "migrations", lambda _kind: steps[:2])
        old = open_store(place)
        with old.transaction() as connection:
            connection.execute("INSERT INTO people (name, role, created) VALUES ('carol', 'curator', '2026-01-01')")
            for number in range(300):
                row = (f"{number // 3:032x}" + (f".{number % 3}" if number % 3 else ""), "carol", "2026-01-01")
                connection.execute(
                    "INSERT INTO answers (id, person, dataset, created, request, document, arrow)"
                    f" VALUES (?, ?, 'open', ?, '{{\"place\": {number % 3}}}', '{{}}', '')",
                    row,
                )
        old.close()
    return open_store(place), f"{7:032x}"


@pytest.mark.parametrize("people", BOTH_STORES, indirect=True)
def test_what_was_bought_together_is_found_by_an_index_also_in_an_older_store(
    people: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, batch = filled(people, monkeypatch)
    found = AnswerStore(opened).bought_with(batch)
    assert [record.id for record in found] == [batch, f"{batch}.1", f"{batch}.2"]
    assert [record.request["place"] for record in found] == [0, 1, 2]
    assert "answers_bought_together" in plan(opened, BOUGHT_TOGETHER, batch)
    assert "answers_bought_together" not in plan(opened, "SELECT id FROM answers WHERE id LIKE ?", f"{batch}.%")
    opened.close()


def plan(opened: store.ServiceStore, statement: str, value: str) -> str:
    """Return how a store says that it carries out a statement."""
    sqlite = opened.is_local
    with opened.reading() as connection:
        if not sqlite:
            connection.execute("SET LOCAL enable_seqscan = off")  # a few rows are read faster than an index
        rows = connection.execute(f"EXPLAIN {'QUERY PLAN ' if sqlite else ''}{statement}", (value,)).fetchall()
    return "\n".join(str(row) for row in rows)


@pytest.mark.parametrize("people", BOTH_STORES, indirect=True)
def test_old_answers_are_dropped_some_at_a_time(people: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_store, "MOST_DROPPED", 130)
    opened, batch = filled(people, monkeypatch)
    answers = AnswerStore(opened, DAYS)
    answers.keep([NewAnswer(request={}, document={"n": 1}, arrow=b"x")], person="carol", dataset="open", key=None)
    assert [answers.drop_old() for _ in range(4)] == [130, 130, 40, 0]
    assert [record.dropped for record in answers.bought_with(batch)] == [True] * 3
    assert len(answers.of("carol", "open", 10)) == 1
    opened.close()

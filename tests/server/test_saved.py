"""Saved questions, dashboards and answers of a team: who sees what, when, and that it costs nothing."""

import pytest

from lapwing.privacy.measures import from_record
from lapwing.server import saved
from lapwing.server.audit_log import lines
from tests.support.effort import one_in
from tests.support.server.world import QUESTION, World, on_both

PATH = "/v1/datasets/open/saved"
SAVED = {"title": "by plan", "question": {"sql": QUESTION["sql"], "epsilon": "1/3"}}


@pytest.fixture
def team(world: World) -> World:
    """A service in which bob may ask `open` too, and alice and bob are in one team."""
    view = world.session().budget()
    world.service.policies.grant("open", "bob", None, view.spending, view.total, view.delta_keys, by="carol")
    for name in ("alice", "bob"):
        world.service.people.change(name, team="nurses", by="carol")
    return world


@on_both
def test_what_is_shared_is_seen_by_the_team_alone(world: World) -> None:
    for name in ("alice", "bob"):
        world.service.people.change(name, team="nurses", by="carol")
    own = world.ask("POST", PATH, "alice", SAVED)
    assert own.status == 201
    assert own.headers["location"] == f"/v1/saved/{own.document['id']}"
    shared = world.ask("POST", PATH, "alice", {**SAVED, "title": "of us", "shared": True}).document
    assert shared["team"] == "nurses"
    view = world.session().budget()
    assert world.ask("GET", f"/v1/saved/{shared['id']}", "bob").status == 404  # as he may not see the data set
    world.service.policies.grant("open", "bob", None, view.spending, view.total, view.delta_keys, by="carol")
    assert world.ask("GET", f"/v1/saved/{shared['id']}", "bob").document == shared
    assert [one["title"] for one in world.ask("GET", PATH, "alice").document] == ["by plan", "of us"]
    assert [one["title"] for one in world.ask("GET", PATH, "bob").document] == ["of us"]
    assert world.ask("GET", PATH, "carol").document == []
    assert world.ask("PUT", f"/v1/saved/{shared['id']}", "bob", SAVED).status == 404
    assert world.ask("DELETE", f"/v1/saved/{shared['id']}", "bob").status == 404
    world.service.people.change("bob", leave_team=True, by="carol")
    assert world.ask("GET", f"/v1/saved/{shared['id']}", "bob").status == 404
    changed = world.ask("PUT", f"/v1/saved/{shared['id']}", "alice", {**SAVED, "title": "mine"}).document
    assert (changed["title"], changed["team"], changed["question"]) == ("mine", None, SAVED["question"])
    assert world.ask("DELETE", f"/v1/saved/{shared['id']}", "alice").status == 204
    assert world.ask("GET", f"/v1/saved/{shared['id']}", "alice").status == 404


@pytest.mark.long
def test_an_answer_is_opened_by_a_team_that_shares_it(team: World) -> None:
    answer = team.query("alice").document["id"]
    path = f"/v1/answers/{answer}"
    assert team.ask("GET", path, "bob").status == 404
    assert team.ask("PUT", f"{path}/team", "bob", {"shared": True}).status == 404
    assert team.ask("PUT", f"{path}/team", "alice", {"shared": True}).document == {"answer": answer, "team": "nurses"}
    assert team.ask("PUT", f"{path}/team", "alice", {"shared": True}).status == 200
    charges = team.charges()
    assert team.ask("GET", path, "bob").content == team.ask("GET", path, "alice").content
    assert team.ask("GET", f"{path}?confidence=0.5", "bob").status == 200
    told = team.ask("GET", f"{path}/request", "bob").document
    assert (told["person"], told["team"], told["request"]["sql"]) == ("alice", "nurses", QUESTION["sql"])
    (listed,) = team.ask("GET", "/v1/datasets/open/shared", "bob").document
    assert (listed["id"], listed["person"]) == (answer, "alice")
    assert team.ask("GET", "/v1/datasets/open/answers", "bob").document == []
    assert team.charges() == charges
    assert team.ask("PUT", f"{path}/team", "alice", {"shared": False}).document["team"] is None
    assert team.ask("GET", path, "bob").status == 404
    with team.service.store.reading() as connection:
        acts = [line["act"] for line in lines(connection, 0, None)]
    assert acts[-2:] == ["answer shared", "answer shared no more"]


@pytest.mark.long
def test_an_answer_that_anybody_could_open_is_found(team: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: whoever asks is of the team."""
    answer = team.query("alice").document["id"]
    team.ask("PUT", f"/v1/answers/{answer}/team", "alice", {"shared": True})
    team.service.people.change("bob", leave_team=True, by="carol")
    assert team.ask("GET", f"/v1/answers/{answer}", "bob").status == 404
    monkeypatch.setattr(saved.SavedItems, "may_open", lambda *_: True)
    assert team.ask("GET", f"/v1/answers/{answer}", "bob").status == 200


@pytest.mark.long
def test_a_shared_dashboard_shares_its_answers(team: World) -> None:
    own, answer = team.query("bob").document["id"], team.query("alice").document["id"]
    tiles = [{"answer": answer, "column": "n"}, {"answer": own}, {"monitor": "density", "title": "Now"}]
    made = team.ask("POST", PATH, "alice", {"title": "Ward", "tiles": tiles, "shared": True}).document
    assert made["tiles"] == tiles
    assert team.ask("GET", f"/v1/answers/{answer}", "bob").status == 200
    assert team.ask("GET", f"/v1/answers/{own}", "alice").status == 404  # that of another is not hers to share


@pytest.mark.parametrize(
    "body",
    one_in(
        3,
        [
            {"title": "x"},
            {"title": "", "tiles": []},
            {"title": "x" * 121, "tiles": []},
            {"title": "x", "tiles": [], "question": {"sql": "SELECT 1"}},
            {"title": "x", "tiles": [{}]},
            {"title": "x", "tiles": [{"answer": "a", "monitor": "m"}]},
            {"title": "x", "tiles": [{"answer": "a"}] * 41},
            {"title": "x", "tiles": [], "shared": True},  # carol is in no team
        ],
    ),
)
def test_what_cannot_be_saved_is_told(shared: World, body: object) -> None:
    reply = shared.ask("POST", PATH, "carol", body)
    assert reply.status == 422
    assert shared.ask("GET", PATH, "carol").document == []


def test_there_is_a_limit(shared: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved, "MOST_SAVED", 1)
    assert shared.ask("POST", PATH, "alice", SAVED).status == 201
    assert "remove some" in shared.ask("POST", PATH, "alice", SAVED).document["detail"]


@pytest.mark.long
def test_a_batch_is_priced_as_it_is_bought(shared: World) -> None:
    world = shared
    texts = [QUESTION["sql"], "SELECT COUNT(*) AS n FROM visits", QUESTION["sql"]]
    body = {"questions": [{"sql": text} for text in texts], "epsilon": 0.5}
    priced = world.ask("POST", "/v1/datasets/open/batch/explain", "alice", body).document
    assert world.charges() == 0
    before = world.session().budget().spent.amount
    bought = world.ask("POST", "/v1/datasets/open/batch", "alice", body).document["answers"]
    spent = world.session().budget().spent.amount - before
    assert from_record(priced["cost"]).amount == spent
    for preview, answer in zip(priced["questions"], bought, strict=True):
        (column,) = [one for one in answer["facts"] if one["name"] == "n"]
        # Answers that were bought together may make each other better.
        assert column["half_width"] <= next(c["half_width"] for c in preview["columns"] if c["name"] == "n")
    again = world.ask("POST", "/v1/datasets/open/batch/explain", "alice", body).document
    assert all(preview["stored"] for preview in again["questions"])
    assert float(again["cost"]["amount"]) == 0
    dear = world.ask("POST", "/v1/datasets/open/batch/explain", "alice", {**body, "epsilon": 1e6}).document
    assert dear["refusal"]
    refused = world.ask("POST", "/v1/datasets/open/batch/explain", "alice", {**body, "questions": [{"sql": "SELECT"}]})
    assert refused.status == 422

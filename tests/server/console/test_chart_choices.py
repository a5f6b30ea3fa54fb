"""The choices of a chart, in the address of a result, in its files and on a dashboard; all of them are free."""

import pytest

from tests.support.server.browsing import Visitor

pytestmark = pytest.mark.long
CHOSEN = "kind=points&title=By+plan&log=1&line=5,0&arrange=largest"


def test_an_address_has_the_choices_and_a_tile_keeps_them(alice: Visitor) -> None:
    world = alice.world
    answer, charges = world.query("alice").document["id"], world.charges()
    shown = alice.go(f"/console/answers/{answer}?{CHOSEN}")
    assert shown.status == 200
    assert 'class="chart points"' in shown.text or b'class="chart points"' in shown.content
    assert b"Reference line at 5" in shown.content
    for form in ("svg", "json"):
        file = alice.go(f"/console/answers/{answer}/file.{form}?{CHOSEN}")
        assert (b"By plan" in file.content) == (form == "svg")
    added = alice.submit(shown, "/dashboards/add", name="Ward")
    item = world.ask("GET", f"/v1/saved/{added.path.rpartition('/')[2].partition('?')[0]}", "alice").document
    (tile,) = item["tiles"]
    assert tile == {
        "answer": answer, "column": "n", "kind": "points", "title": "By plan", "log": True, "line": 5.0,
        "arrange": "largest",
    }  # fmt: skip
    board = alice.go(f"/console/dashboards/{item['id']}")
    assert b'class="chart points"' in board.content
    removed = alice.submit(board, f"/console/dashboards/{item['id']}/change", what="take", place="0")
    back = alice.submit(removed, f"/console/dashboards/{item['id']}/change", what="put", place="0")
    assert back.status == 200
    assert world.charges() == charges


@pytest.mark.parametrize(
    "wrong", ["kind=pie", "title=" + "x" * 121, "line=high", "line=1,000", "x=nobody", "log=1&line=-1"]
)
def test_choices_that_are_not_allowed_are_refused(alice: Visitor, wrong: str) -> None:
    answer = alice.world.query("alice").document["id"]
    assert alice.go(f"/console/answers/{answer}?{wrong}").status == 422


def test_a_tile_whose_key_went_away_says_so(alice: Visitor) -> None:
    world = alice.world
    answer = world.query("alice").document["id"]
    path, body = "/v1/datasets/open/saved", {"title": "Ward", "tiles": [{"answer": answer, "x": "gone"}]}
    item = world.ask("POST", path, "alice", body).document
    shown = alice.go(f"/console/dashboards/{item['id']}")
    assert shown.status == 200
    assert b"has no key" in shown.content
    assert world.ask("POST", path, "alice", {**body, "tiles": [{"answer": answer, "title": "a\u202eb"}]}).status == 422
    assert world.ask("POST", path, "alice", {**body, "tiles": [{"answer": answer, "kind": "pie"}]}).status == 422

"""Charts of saved queries: results and tiles of the query show them."""

from typing import Any, Final

import pytest

from lapwing.server.console.forms import FIELD
from tests.support.server.browsing import Visitor

CHOSEN: Final = "kind=points&title=By+plan&log=1&line=5,0&arrange=largest"
KEPT: Final = {"column": "n", "kind": "points", "title": "By plan", "arrange": "largest", "log": True, "line": 5.0}


def bought(alice: Visitor) -> str:
    return str(alice.world.query("alice").document["id"])


def saved(alice: Visitor) -> list[Any]:
    found: list[Any] = alice.world.ask("GET", "/v1/datasets/open/saved", "alice").document
    return found


def test_a_saved_query_keeps_its_chart(alice: Visitor) -> None:
    answer, charges = bought(alice), alice.world.charges()
    shown = alice.go(f"/console/answers/{answer}?{CHOSEN}")
    change = b'<details class="no-print stack" open><summary>Change chart'
    assert (change in shown.content, change in alice.go(f"/console/answers/{answer}").content) == (True, False)
    alice.submit(shown, "/data/open/saved", title="Plans")
    (item,) = saved(alice)
    assert item["chart"] == KEPT
    opened = alice.go(f"/console/answers/{bought(alice)}")
    assert b'class="chart points"' in opened.content
    assert b"Reference line at 5" in opened.content
    assert b'class="chart bars"' in alice.go(f"/console/answers/{answer}?chart=n").content
    made = alice.submit(opened, "/dashboards/add", name="Ward")
    board = alice.world.ask("GET", f"/v1/saved/{made.path.rpartition('/')[2].partition('?')[0]}", "alice").document
    alice.submit(alice.go("/console/data/open/dashboards"), "/dashboards/add", dashboard=board["id"], answer=answer)
    tiles = alice.world.ask("GET", f"/v1/saved/{board['id']}", "alice").document["tiles"]
    assert tiles == [{"answer": tile["answer"], **KEPT} for tile in tiles]
    assert len(tiles) == 2
    assert alice.world.charges() == charges


def test_saving_the_text_again_keeps_the_chart_and_so_does_sharing(alice: Visitor) -> None:
    answer = bought(alice)
    alice.submit(alice.go(f"/console/answers/{answer}?{CHOSEN}"), "/data/open/saved", title="Plans")
    alice.submit(alice.go(f"/console/answers/{answer}?kind=lines"), "/data/open/saved", title="Plans")
    assert saved(alice)[0]["chart"] == {"column": "n", "kind": "lines"}
    item = saved(alice)[0]
    body = {"title": "Plans", "question": item["question"], "chart": {"x": "nobody"}}
    assert alice.world.ask("PUT", f"/v1/saved/{item['id']}", "alice", body).status == 200
    opened = alice.go(f"/console/answers/{answer}")  # which must not fail by a key that its result does not have
    assert (opened.status, b'class="chart bars"' in opened.content) == (200, True)


@pytest.mark.parametrize(
    "chart",
    [{"kind": "pie"}, {"line": "5"}, {"log": True, "line": -1}, {"title": "a\u202eb"}, {"x": "a", "colour": "a"}],
)
def test_a_chart_that_is_not_allowed_is_not_saved(alice: Visitor, chart: dict[str, object]) -> None:
    body = {"title": "Plans", "question": {"sql": "SELECT COUNT(*) AS n FROM visits"}, "chart": chart}
    assert alice.world.ask("POST", "/v1/datasets/open/saved", "alice", body).status == 422
    assert (
        alice.world.ask("POST", "/v1/datasets/open/saved", "alice", {"title": "x", "tiles": [], "chart": {}}).status
        == 422
    )


def test_a_dashboard_takes_a_result_of_another_data_set_that_one_may_open(alice: Visitor) -> None:
    world, carol = alice.world, Visitor(alice.world)
    carol.sign_in("carol")
    tiles = {"title": "Ward", "tiles": []}
    theirs = str(world.query("carol", dataset="closed").document["id"])
    boards = {
        who: world.ask("POST", "/v1/datasets/open/saved", who, tiles).document["id"] for who in ("carol", "alice")
    }

    def added(visitor: Visitor, who: str, elsewhere: str) -> tuple[int, list[Any]]:
        fields = {FIELD: visitor.secret(), "dashboard": boards[who], "elsewhere": elsewhere}
        shown = visitor.post("/console/data/open/dashboards/add", fields)
        return shown.status, world.ask("GET", f"/v1/saved/{boards[who]}", who).document["tiles"]

    for unknown in (theirs, "<script>alert(1)</script>", "../people", "%2e%2e/people"):
        assert added(alice, "alice", unknown) == (404, [])
    address = f"{world.address}/console/answers/{theirs}?kind=bars"
    assert added(carol, "carol", address) == (200, [{"answer": theirs}])
    assert b'class="chart bars"' in carol.go(f"/console/dashboards/{boards['carol']}").content

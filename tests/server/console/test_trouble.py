"""What goes wrong, told where it happens: nothing left, a stopped data set, a fault after the charge."""

import pytest

from lapwing.engines import DuckDB
from lapwing.server.console.forms import FIELD
from tests.server.console.test_asking import SQL, priced
from tests.support.server.browsing import Visitor, bars_in, visitor
from tests.support.server.world import World


@pytest.fixture
def place(settled: World) -> World:
    """One service for all: each test buys what no other does, and leaves it as it was."""
    return settled


@pytest.mark.long
def test_what_is_spent_is_told_and_what_was_bought_stays_free(alice: Visitor, place: World) -> None:
    """A small share of the budget: one question fits, the next does not, and the first opens again."""
    carol = visitor(place, "carol")
    carol.submit(carol.go("/console/data/open/access"), "/access/grant", holder="person", name="alice", share="0.2 %")
    charges = place.charges()
    first = alice.submit(priced(alice, epsilon="1"), "/ask/answer")
    assert first.status == 200
    dear = priced(alice, "SELECT COUNT(*) AS n FROM visits", epsilon="9")
    assert "too expensive" in dear.text
    assert "/ask/answer" not in [form.action[-11:] for form in dear.page.forms]
    again = priced(alice, epsilon="1")
    assert "was bought before" in again.text
    assert alice.submit(again, "/ask/answer").status == 200
    board = alice.submit(alice.go(first.path.partition("?")[0]), "/dashboards/add")
    assert bars_in(board) == 2
    several = alice.submit(alice.go("/console/data/open/batch"), "/batch", sql=f"{SQL}; SELECT 1", epsilon="4")
    assert 'data-verdict="refused"' in several.content.decode()
    assert "/batch/answers" not in [form.action[-14:] for form in several.page.forms]
    assert place.charges() == charges + 1
    carol.submit(carol.go("/console/data/open/access"), "/access/grant", holder="person", name="alice")


def test_a_fault_after_the_charge_is_told_on_the_page_and_to_the_curator(
    alice: Visitor, place: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql, charges = SQL.replace("COUNT(*)", "SUM(cost)"), place.charges()
    price = priced(alice, sql)

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the disk of row 7 is full")

    monkeypatch.setattr(DuckDB, "run", broken)
    shown = alice.submit(price, "/ask/answer")
    assert shown.status >= 500
    assert 'data-charged="unknown"' in shown.content.decode()  # as nobody expected it; it is charged, as seen below
    assert "row 7" not in shown.text
    monkeypatch.undo()
    carol = visitor(place, "carol")
    assert place.charges() == charges + 1
    assert "fault" in carol.go("/console/data/open/access").text
    assert alice.submit(alice.go("/console/data/open/ask"), "/ask", sql=sql, epsilon="0.5").status == 200
    carol.submit(carol.go("/console/data/open/access"), "/access/resume")


def test_access_that_was_withdrawn_is_said_to_have_ended(alice: Visitor, place: World) -> None:
    place.service.policies.withdraw("open", "alice", by="carol")
    assert "Your access ended. A curator withdrew it." in alice.go("/console").text
    carol = visitor(place, "carol")
    carol.submit(carol.go("/console/data/open/access"), "/access/grant", holder="person", name="alice")


@pytest.mark.long
def test_a_stopped_data_set_shows_what_was_bought_and_sells_nothing(alice: Visitor, place: World) -> None:
    answer = alice.submit(priced(alice, SQL.replace("plan", "size")), "/ask/answer").path.partition("?")[0]
    charges = place.charges()
    board = alice.submit(alice.go(answer), "/dashboards/add").path
    carol = visitor(place, "carol")
    carol.post("/console/data/open/access/stop", {FIELD: carol.secret(), "stopped": "yes"})
    assert "stopped by the curator" in alice.go("/console").text
    assert alice.go(answer).status == 200
    assert bars_in(alice.go(board)) == 3
    assert alice.go(f"{answer}/rearranged").status == 200
    told = alice.submit(alice.go("/console/data/open/batch"), "/batch", sql="SELECT COUNT(*) AS n FROM visits")
    assert "Lapwing would refuse" in told.text
    assert place.charges() == charges
    carol.post("/console/data/open/access/stop", {FIELD: carol.secret(), "stopped": "no"})

"""How a data set stands, on every page that says it: changed data, a stop, failures, a spent budget, and what to do."""

import re
from datetime import UTC, datetime

import pytest

from lapwing.server.console.forms import FIELD
from lapwing.server.console.home.notices import of_accounts, of_dataset
from lapwing.server.console.standing import state_of
from lapwing.server.people import RIGHTS_OF, Caller
from tests.server.console.test_asking import SQL, priced
from tests.server.console.test_refused_forms import faults
from tests.support.release import small
from tests.support.server.browsing import Shown, Visitor, visitor
from tests.support.server.world import World

OPEN = "/console/data/open"


def told(page: Shown) -> list[str]:
    """Return the states that a page says."""
    return re.findall(r'data-state="(\w+)"', page.content.decode())


def noticed(page: Shown) -> list[str]:
    """Return the notices that a page shows."""
    return re.findall(r'data-notice="(\w+)"', page.content.decode())


@pytest.fixture
def carol(place: World) -> Visitor:
    return visitor(place, "carol")


def look(place: World) -> None:
    """Let the service look at the data now, and then how data sets stand."""
    place.service.data_watch._due.clear()
    place.service.data_watch.look()
    place.service.readiness.look_again()


def replace_data(place: World) -> None:
    """Write other rows into the file of `open`."""
    small.write(place.session().catalog.folder, [small.row(person, plan="b") for person in range(21)])
    look(place)


def test_replaced_data_are_told_to_each_reader_until_they_are_accepted(
    alice: Visitor, carol: Visitor, place: World
) -> None:
    look(place)
    assert told(alice.go("/console")) == []
    bought = alice.submit(priced(alice), "/ask/answer").path
    replace_data(place)
    for path in ("/console", OPEN, f"{OPEN}/ask", f"{OPEN}/budget"):
        assert told(alice.go(path)) == ["changed"]
        assert f"{OPEN}/versions" not in alice.go(path).page.links
        assert f"{OPEN}/versions" in carol.go(path).page.links
    assert told(carol.go("/console/health")) == ["changed"]
    assert noticed(carol.go("/console")) == ["changed"]
    access = carol.go(f"{OPEN}/access")
    assert "Open to queries." not in access.text
    assert '<button class="primary">Accept the current data' in access.content.decode()
    assert noticed(alice.go("/console")) == []
    assert "changed" in told(priced(alice, "SELECT COUNT(*) AS n FROM visits"))
    assert "Run query" not in priced(alice, "SELECT COUNT(*) AS n FROM visits").text
    by_carol = priced(carol, "SELECT COUNT(*) AS n FROM visits").text
    assert by_carol.index("Review current data", by_carol.index("data changed Cost")) < by_carol.index("Try to run")
    assert alice.go(bought).status == 200
    standing = {one["name"]: one for one in place.ask("GET", "/v1/readiness", "alice").document}
    assert standing["open"]["reason"] == "changed"
    metrics = place.ask("GET", "/metrics", "audrey").content.decode()
    assert 'lapwing_dataset_ready{dataset="open"} 0.0' in metrics
    assert told(carol.go(f"{OPEN}/versions")) == ["changed"]
    carol.submit(carol.go(f"{OPEN}/access"), "/access/accept")
    assert told(carol.go(f"{OPEN}/versions")) == told(alice.go("/console")) == []
    assert told(alice.go(f"{OPEN}/ask")) == []


def test_data_that_come_back_are_told_as_such(alice: Visitor, place: World) -> None:
    folder = place.session().catalog.folder
    kept = (folder / "visits.parquet").read_bytes()
    (folder / "visits.parquet").unlink()
    look(place)
    assert told(alice.go("/console")) == ["changed"]
    (folder / "visits.parquet").write_bytes(kept)
    look(place)
    assert told(alice.go("/console")) == []


def test_a_file_that_takes_long_is_looked_at_seldom(place: World) -> None:
    times = iter([0.0, 3.0, 0.0, 0.0] + [62.9] * 3 + [63.1] * 4)
    watch = type(place.service.data_watch)(place.service.datasets, lambda: next(times))
    seen = list[str]()
    watch._look_at = lambda served: seen.append(served.name)  # type: ignore[method-assign]
    watch.look()
    assert seen == ["open", "closed"]
    watch.look()
    assert seen == ["open", "closed", "closed"]
    watch.look()
    assert seen[3:] == ["open", "closed"]


def test_a_stop_says_to_each_reader_what_to_do(alice: Visitor, carol: Visitor, place: World) -> None:
    reason = "The figures of May <look> wrong."
    assert faults(carol.submit(carol.go(OPEN), "/access/stop", reason="a\u202eb")).fields[0]["name"] == "reason"
    long = faults(carol.submit(carol.go(OPEN), "/access/stop", reason="a" * 2000))
    assert list(long.texts.values()) == ["Write at most 1,000 characters."]  # and no path of the API
    assert carol.submit(carol.go(OPEN), "/access/stop", reason=f" {reason} ").status == 200
    for path in ("/console", f"{OPEN}/ask", f"{OPEN}/budget"):
        assert told(alice.go(path)) == ["stopped"]
        assert f"Reason: “{reason}”" in alice.go(path).text
        assert f"{OPEN}/access" not in alice.go(path).page.links
        assert f"{OPEN}/access" in carol.go(path).page.links
    assert told(carol.go("/console/health")) == ["stopped"]
    assert reason in carol.go("/console/audit").text
    carol.submit(carol.go(OPEN), "/access/stop")
    assert told(alice.go("/console")) == []
    place.service.policies.stop("open", stopped=True, by="carol")  # for no reason: the earlier one is not shown again
    assert place.ask("GET", "/v1/datasets/open/budget", "alice").document["stop_reason"] is None


def test_a_limit_that_holds_no_query_any_more_is_told(alice: Visitor, carol: Visitor, place: World) -> None:
    carol.submit(carol.go(f"{OPEN}/access"), "/access/grant", holder="person", name="alice", share="1 %")
    assert told(alice.go("/console")) == []
    carol.submit(carol.go(f"{OPEN}/access"), "/access/policy", division="share", least_share="2 %")
    assert told(alice.go("/console")) == ["share_spent"]
    assert told(carol.go("/console")) == []
    refused = priced(alice, "SELECT COUNT(*) AS n FROM visits")
    assert "Lapwing would refuse" in refused.text
    assert "/console/requests?dataset=open#new" in alice.go("/console/data/open/budget").page.links
    spent = priced(alice, "SELECT COUNT(*) AS n FROM visits", epsilon="0.9")  # beyond her limit
    assert "/console/requests?dataset=open#new" in spent.page.links


def test_the_newest_reason_counts_and_each_state_has_words() -> None:
    amount = {"measure": "gdp", "amount": "4"}
    budget = {
        "closed": False,
        "stopped_by_curator": False,
        "stopped": False,
        "faults": 0,
        "total": amount,
        "remaining": amount,
        "allowances": [],
        "share_spent": 0.0,
        "least": "0.01",
    }
    analyst = Caller(name="x", role="analyst", rights=RIGHTS_OF["analyst"], token="")
    curator = Caller(name="x", role="curator", rights=RIGHTS_OF["curator"], token="")
    assert state_of("x", budget, None, analyst).code is None
    for reason in ("unreadable", "unwritable", "engine", "late", "changed"):
        assert state_of("x", budget, reason, analyst).code == reason
        assert state_of("x", budget, reason, analyst).action is None
    assert state_of("x", budget, "stopped", analyst).code is None  # the budget says it has been resumed
    assert state_of("x", {**budget, "closed": True}, "changed", analyst).code == "closed"
    for left in ("0", "0.039"):
        nothing = {**budget, "remaining": {"measure": "gdp", "amount": left}, "share_spent": 0.99}
        assert state_of("x", nothing, None, analyst).code == "spent"
    assert state_of("x", {**budget, "remaining": {"measure": "gdp", "amount": "0.04"}}, None, analyst).code is None

    assert state_of("x", nothing, None, analyst).code == "spent"
    assert state_of("x", nothing, None, curator).action == ("Raise or close budget", "/console/data/x/cap")
    nearly = {**budget, "share_spent": 0.8, "faults": 2}
    codes = [one.code for one in of_dataset("x", nearly, state_of("x", nearly, None, curator))]
    assert codes == ["failures", "nearly_spent"]
    assert not list(of_dataset("x", budget, state_of("x", budget, None, curator)))


def test_accounts_that_end_soon_are_noticed(carol: Visitor, alice: Visitor) -> None:
    for name, days in (("nightly", "13"), ("weekly", "15")):
        carol.post("/console/accounts", {FIELD: carol.secret(), "name": name, "owner": "carol", "days": days})
    assert noticed(carol.go("/console")) == ["account_expires"]
    assert "/console/accounts/nightly" in carol.go("/console").page.links
    assert noticed(alice.go("/console")) == []
    one = {"name": "nightly", "active": True, "expires": "2026-01-02T00:00:00+00:00"}
    now = datetime(2026, 1, 3, tzinfo=UTC)
    assert [notice.code for notice in of_accounts([one, {**one, "active": False}], now)] == ["account_expired"]


def test_a_charge_of_today_forecasts_nothing(alice: Visitor) -> None:
    alice.submit(priced(alice, SQL), "/ask/answer")
    text = alice.go(f"{OPEN}/budget").text
    assert "a day," not in text
    assert "after 3 days with charges" in text


def test_the_tab_of_each_page_is_marked(alice: Visitor, carol: Visitor, place: World) -> None:
    answer = alice.submit(priced(alice), "/ask/answer").path.partition("?")[0]

    def marked(page: Shown) -> list[str]:
        return re.findall(r'<a href="([^"]*)" aria-current="(?:page|true)">', page.content.decode())[:2]

    assert marked(alice.go("/console"))[:1] == ["/console"]
    assert marked(alice.go(OPEN)) == ["/console", OPEN]
    assert marked(alice.go(f"{OPEN}/batch")) == ["/console", f"{OPEN}/ask"]
    for path in (answer, f"{answer}/rearranged", f"{answer}/difference", f"{OPEN}/charges"):
        assert marked(alice.go(path)) == ["/console", f"{OPEN}/history"]
    assert marked(carol.go(f"{OPEN}/cap")) == ["/console", f"{OPEN}/budget"]
    audrey = visitor(place, "audrey")  # has no results: her history is what was charged to all
    assert marked(audrey.go(f"{OPEN}/charges")) == ["/console", f"{OPEN}/charges"]
    assert f"{OPEN}/charges" in audrey.go("/console").page.links
    spent = audrey.go(f"{OPEN}/budget").text
    assert "Left" in spent
    assert "for you" not in spent
    assert marked(carol.go("/console/teams"))[:1] == ["/console/people"]
    assert marked(carol.go("/console/sign-ins"))[:1] == ["/console/audit"]

"""The page of requests: ask, see the state, approve and decline; and what is shown of others' texts."""

from typing import Final

from tests.support.server.browsing import Shown, Visitor, visitor
from tests.support.server.world import World

HERE: Final = "/console/requests"
FEWER: Final = "More when the first report is out."
HOSTILE: Final = "<img src=x onerror=alert(1)> {{ 7 * 7 }}"


def notices(who: Visitor) -> int:
    return who.go("/console").content.decode().count('data-notice="requests"')


def action(who: Visitor, end: str) -> str:
    """Return where the form of a request that ends so goes."""
    (found,) = (form.action for form in who.go(HERE).page.forms if form.action.endswith(f"/{end}"))
    return found


def decline(who: Visitor, reason: str) -> Shown:
    """Press the other button of the form that approves."""
    form = who.go(HERE).form("/approve")
    return who.post(form.action.removesuffix("approve") + "decline", {**form.fields, "reason": reason})


def test_access_is_asked_for_and_approved(place: World) -> None:
    bob, carol = visitor(place, "bob"), visitor(place, "carol")
    assert "open" not in bob.go(HERE).form("/console/requests").fields["dataset"]  # nothing of it before it is listed
    access = carol.go("/console/data/open/access")
    assert "no longer" not in carol.submit(access, "/access/listed").text
    assert "ask for access" in bob.go("/console").text.lower()
    shown = bob.submit(bob.go(HERE), HERE, dataset="open", share="20 %", reason=HOSTILE)
    assert (shown.status, shown.path.partition("?")[0]) == (200, HERE)
    assert "open" in shown.text
    assert notices(carol) == 1
    assert [who.go("/console").text.count("Requests (1)") for who in (carol, bob, visitor(place, "alice"))] == [1, 0, 0]
    page = carol.go(HERE)
    assert HOSTILE in page.text
    assert page.page.forbidden == []
    approving = action(carol, "approve")
    assert page.form(approving).fields["share"] == "20 %"
    decided = carol.submit(page, approving, share="15 %", reason=FEWER)
    assert decided.status == 200
    for said in ("up to 20 % of the budget", "Given: up to 15 % of the budget", HOSTILE, "Approved by carol", FEWER):
        assert said in decided.text
    assert "You sent no requests" not in decided.text  # whoever decides has no limit to ask for
    assert notices(carol) == 0
    assert "Requests (" not in carol.go(HERE).text
    assert f"approvedup to 15 % of the budgetReason: {FEWER}" in bob.go(HERE).text
    assert place.query("bob").status == 200


def test_an_approval_shows_a_newer_limit_and_asks(place: World) -> None:
    alice, carol = visitor(place, "alice"), visitor(place, "carol")
    alice.submit(alice.go(HERE), HERE, share="50 %", reason="All of it.")
    assert "Ask a curator for a larger limit." in alice.go(HERE).text
    page, approving = carol.go(HERE), action(carol, "approve")
    assert "replace" not in page.form(approving).fields
    place.ask("PUT", "/v1/datasets/open/grants/alice", "carol", {"share": "1/8"})
    refused = carol.submit(page, approving)  # of a page that was open before
    assert refused.status == 422
    assert "up to 12.5 % of the budget" in refused.text
    assert carol.submit(refused, approving, replace="yes").status == 200
    assert place.ask("GET", "/v1/datasets/open/grants", "carol").document["people"]["alice"] == "0.5"


def test_a_larger_limit_is_asked_for_and_declined(place: World) -> None:
    alice, carol = visitor(place, "alice"), visitor(place, "carol")
    assert "/console/requests?dataset=open#new" in alice.go("/console/data/open/budget").page.links
    refused = alice.submit(alice.go(HERE), HERE, share="200 %", reason="All of it.")
    assert (refused.status, refused.form(HERE).fields["reason"]) == (422, "All of it.")
    assert alice.submit(alice.go(HERE), HERE, share="1/2", reason="All of it.").status == 200
    refused = decline(carol, "")
    assert (refused.status, refused.form("/approve").fields["share"]) == (422, "50 %")
    assert 'formaction="/console/requests/' in refused.content.decode()
    assert decline(carol, "The study has ended.").status == 200
    shown = alice.go(HERE)
    assert "declined" in shown.text
    assert "The study has ended." in shown.text
    place.ask("PUT", "/v1/datasets/open/grants/alice", "carol", {"share": "1/8"})
    assert "open (now: up to 12.5 % of the budget)" in alice.go(HERE).text
    alice.submit(shown, HERE, reason="Once more.")
    assert alice.submit(alice.go(HERE), action(alice, "withdraw")).status == 200
    assert notices(carol) == 0

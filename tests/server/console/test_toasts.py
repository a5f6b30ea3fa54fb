"""Toasts: what a page says of what was just done, and the button that undoes it."""

import time
from typing import Final

import pytest

from lapwing.errors import InvalidParameter, NotFound
from lapwing.server.console.forms import FIELD
from lapwing.server.saved import MOST_REMOVED, MOST_SAVED, UNDO, SavedItem, SavedItems
from tests.server.console.test_asking import SQL
from tests.support.server.browsing import Shown, Visitor, visitor
from tests.support.server.world import World, on_both

SAVED: Final = "/console/data/open/saved"
PATH: Final = "/v1/datasets/open/saved"
ACCESS: Final = "/console/data/open/access"


@pytest.fixture(scope="module")
def carol(settled: World) -> Visitor:
    settled.service.people.change("carol", team="nurses", by="carol")
    return visitor(settled, "carol")


def kept(who: Visitor, name: str, title: str) -> str:
    """Save a query, and return the address of its forms."""
    body = {"title": title, "question": {"sql": SQL}}
    return f"/console/saved/{who.world.ask('POST', PATH, name, body).document['id']}/change"


def done(who: Visitor, action: str, **fields: str) -> Shown:
    return who.post(action, {FIELD: who.secret(), **fields})


def undo(who: Visitor, page: Shown) -> Shown:
    """Press the button of a toast, which is the first form of the page after that of the bar."""
    assert "Undo" in page.text
    form = page.page.forms[1]
    return who.post(form.action, form.fields)


@on_both
def test_what_was_removed_comes_back_under_its_address(place: World) -> None:
    alice = visitor(place, "alice")
    action = kept(alice, "alice", "by plan")
    gone = done(alice, action, what="remove")
    assert "Removed “by plan”. You can undo this for one hour." in gone.text
    assert alice.go(action.removesuffix("/change")).status == 404
    assert "“by plan” is back." in undo(alice, gone).text
    assert alice.go(action.removesuffix("/change")).form("/ask").fields["sql"] == SQL
    assert "Undo" not in alice.go(SAVED).text


def test_sharing_says_what_it_did(carol: Visitor) -> None:
    action = kept(carol, "carol", "for us")
    told = done(carol, action, what="share")
    assert "Shared “for us” with your team “nurses”." in told.text
    assert "Stopped sharing “for us”." in undo(carol, told).text
    path = "/console/answers/" + str(carol.world.query("carol").document["id"])
    told = done(carol, f"{path}/share", what="share")
    assert "Shared this result with your team “nurses”." in told.text
    again = done(carol, f"{path}/share", what="share")  # a double click asks for the same twice
    assert "Shared this result with your team “nurses”." in again.text
    assert "Stopped sharing this result." in undo(carol, again).text


@pytest.mark.long
def test_a_toast_is_shown_where_it_belongs_to_whom_it_belongs(settled: World, carol: Visitor) -> None:
    where = carol.post(kept(carol, "carol", "mine"), {FIELD: carol.secret(), "what": "remove"}, follow=False).path
    assert "Removed “mine”." in carol.go(where).text
    assert "Removed" not in visitor(settled, "carol").go(where).text  # of another sign-in
    assert "Removed" not in carol.go(SAVED).text
    assert "Removed" not in carol.go(f"{SAVED}?done=removed").text  # no link makes a page say so
    assert "Removed “mine”." in carol.go(where).text  # as when one goes back to it


@pytest.mark.long
@pytest.mark.parametrize("title", ["<script>alert(1)</script>", "\u202egnp.exe", "\"'><img src=x>{{ 7*7 }}"])
def test_a_hostile_title_stays_a_text(carol: Visitor, title: str) -> None:
    told = done(carol, kept(carol, "carol", title), what="remove")
    assert f"Removed “{title}”." in told.text
    assert told.page.forbidden == []
    assert f"<bdi>Removed “{title}”".encode() in told.content or "<" in title or "'" in title


@pytest.mark.long
def test_a_grant_a_member_and_a_role_come_back(carol: Visitor) -> None:
    world, people = carol.world, carol.world.service.people
    people.add("dora", "analyst", None, by="carol")
    done(carol, f"{ACCESS}/grant", holder="person", name="dora", share="20 %", trusted="on")
    grants = world.ask("GET", "/v1/datasets/open/grants", "carol").document
    gone = done(carol, f"{ACCESS}/withdraw", name="dora")
    assert "Withdrew the access of “dora”." in gone.text
    assert "dora" not in world.ask("GET", "/v1/datasets/open/grants", "carol").document["people"]
    undo(carol, gone)
    assert world.ask("GET", "/v1/datasets/open/grants", "carol").document == grants
    done(carol, "/console/teams/nurses/join", name="dora")
    gone = done(carol, "/console/teams/nurses/leave", name="dora")
    assert "dora" not in world.ask("GET", "/v1/teams/nurses", "carol").document["members"]
    undo(carol, gone)
    assert "dora" in world.ask("GET", "/v1/teams/nurses", "carol").document["members"]
    given = done(carol, "/console/people/dora/role", dataset="closed", role="auditor")
    assert "“dora” is now auditor of “closed”." in given.text
    gone = carol.post("/console/people/dora/role", {**role_form(given)})
    undo(carol, gone)
    assert role_form(carol.go("/console/people/dora"))["was"] == "auditor"


def role_form(page: Shown) -> dict[str, str]:
    (fields,) = [form.fields for form in page.page.forms if "was" in form.fields]
    return fields


@pytest.mark.long
def test_a_tile_comes_back_where_it_was(carol: Visitor) -> None:
    tiles = [{"monitor": "a", "title": "First"}, {"monitor": "b", "column": "n"}, {"monitor": "c"}]
    made = carol.world.ask("POST", PATH, "carol", {"title": "Ward", "tiles": tiles}).document
    action = f"/console/dashboards/{made['id']}/change"

    def now() -> list[dict[str, str]]:
        shown: list[dict[str, str]] = carol.world.ask("GET", f"/v1/saved/{made['id']}", "carol").document["tiles"]
        return shown

    gone = done(carol, action, what="take", place="1")
    assert now() == [tiles[0], tiles[2]]
    undo(carol, gone)
    assert now() == tiles
    undo(carol, done(carol, action, what="forward", place="2"))
    assert now() == tiles
    undo(carol, done(carol, action, what="name", name="Other"))
    assert "Ward" in carol.go(action.removesuffix("/change")).text


@pytest.mark.long
def test_what_was_removed_long_ago_is_gone(settled: World) -> None:
    now = [time.time()]
    items = SavedItems(settled.service.store, lambda: now[0])

    def add(title: str) -> SavedItem:
        return items.add("bob", "open", title, {"question": {"sql": SQL}}, shared=False)

    added = [add(str(place)) for place in range(MOST_REMOVED + 1)]
    for item in added:
        items.remove(item.id, "bob")
        now[0] += 1
    with pytest.raises(NotFound):
        items.removed(added[0].id, "bob")  # there is an end to what can be restored
    with pytest.raises(NotFound):
        items.removed(added[1].id, "alice")
    assert items.restore(items.removed(added[1].id, "bob")) == added[1]
    with pytest.raises(NotFound):
        items.removed(added[1].id, "bob")  # it is back
    last = items.removed(added[-1].id, "bob")
    for place in range(MOST_SAVED - 1):
        add(str(place))
    with pytest.raises(InvalidParameter):
        items.restore(last)
    now[0] += UNDO
    with pytest.raises(NotFound):
        items.removed(last.id, "bob")

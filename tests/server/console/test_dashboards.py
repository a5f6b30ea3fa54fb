"""Dashboards that people read: the order and the width of tiles, texts, and hostile texts."""

from collections.abc import Mapping
from typing import Any, Final

import pytest

from lapwing.server.console.dashboards.changing import DashboardChange, change_in
from lapwing.server.console.forms import FIELD
from tests.server.test_published import HOSTILE, Tags
from tests.support.server.browsing import Shown, Visitor
from tests.support.server.world import World

ITEM: Final = {"title": "Ward", "team": None, "tiles": [{"text": one} for one in "abc"]}


def made(place: World, *tiles: Mapping[str, Any], who: str = "alice") -> str:
    """Make a dashboard, and return its address in the console."""
    body = {"title": "Ward", "tiles": list(tiles)}
    board = place.ask("POST", "/v1/datasets/open/saved", who, body)
    assert board.status == 201, board.content
    return f"/console/dashboards/{board.document['id']}"


def changed(who: Visitor, here: str, **fields: str) -> Shown:
    return who.post(f"{here}/change", {FIELD: who.secret(), **fields})


def order(change: DashboardChange) -> str:
    return "".join(tile["text"] for tile in change.item["tiles"])


@pytest.mark.parametrize(
    ("what", "place", "after", "button"),
    [
        ("forward", 0, "abc", ""),
        ("forward", 1, "bac", "down-0"),
        ("forward", 2, "acb", "up-1"),
        ("back", 0, "bac", "down-1"),
        ("back", 1, "acb", "up-2"),
        ("back", 2, "abc", ""),
        ("take", 1, "ac", ""),
    ],
)
def test_tiles_move_both_ways_and_undo_puts_them_back(what: str, place: int, after: str, button: str) -> None:
    change = change_in(ITEM, {"what": what, "place": str(place)})
    assert (order(change), change.button) == (after, button)
    if change.undo:
        assert order(change_in(change.item, change.undo)) == "abc"


@pytest.mark.parametrize("place", ["3", "-1", "", "x", "٣", "1.0"])
@pytest.mark.parametrize("what", ["forward", "back", "take", "set", "none"])
def test_a_form_that_names_no_tile_changes_none(what: str, place: str) -> None:
    assert order(change_in(ITEM, {"what": what, "place": place, "text": "z"})) == "abc"


def test_a_tile_gets_a_title_a_text_and_a_width_and_undo_takes_them_back() -> None:
    form = {"what": "set", "place": "1", "title": "Why", "text": "because", "width": "full"}
    change = change_in(ITEM, form)
    assert change.item["tiles"][1] == {"title": "Why", "text": "because", "width": "full"}
    assert change_in(change.item, change.undo).item["tiles"] == ITEM["tiles"]


def test_the_button_that_moved_a_tile_has_the_focus_on_the_page_that_follows(place: World, alice: Visitor) -> None:
    here = made(place, {"text": "first"}, {"text": "second"}, {"text": "third"})
    sent = alice.post(f"{here}/change", {FIELD: alice.secret(), "what": "back", "place": "0"}, follow=False)
    assert sent.path.endswith("#down-1")
    shown = alice.go(sent.path.partition("#")[0])
    assert "Moved the tile down." in shown.text
    assert b'id="down-1"' in shown.content
    assert shown.text.index("second") < shown.text.index("first")


@pytest.mark.parametrize(
    "tile", [{}, {"text": "a", "monitor": "m"}, {"text": " \u202e\n"}, {"text": "a", "width": "1"}]
)
def test_a_tile_is_of_one_thing_with_something_to_see(place: World, tile: Mapping[str, Any]) -> None:
    assert place.ask("POST", "/v1/datasets/open/saved", "alice", {"title": "W", "tiles": [tile]}).status == 422


def test_a_text_is_shown_as_text_and_charges_nothing(place: World, alice: Visitor) -> None:
    charges = place.charges()
    here = made(place)
    form = next(form for form in alice.go(here).page.forms if "text" in form.fields)
    shown = alice.post(form.action, {**form.fields, "title": "Read this", "text": "One <b>line</b>\n- two\n- three"})
    assert shown.path.startswith(here)
    assert "One <b>line</b>" in shown.text
    assert shown.content.count(b"<li><bdi>") == 2
    assert b'class="card full"' in shown.content
    assert changed(alice, here, what="set", place="0", width="third").content.count(b'class="card third"') == 1
    assert place.charges() == charges


def test_hostile_texts_of_a_dashboard_stay_texts(place: World, alice: Visitor) -> None:
    here = made(place, *({"text": text, "title": text.replace("\u202e", "")} for text in HOSTILE))
    shown = alice.go(here)
    assert (shown.status, shown.page.forbidden) == (200, [])
    active = Tags(shown.content.decode()).active
    assert "onerror" not in active
    assert active.count("img") == 1  # the emblem of the page

"""Dashboards that people read: the order and the width of tiles, texts, and hostile texts."""

import re
from collections.abc import Mapping
from typing import Any, Final
from unittest import mock

import pyarrow.parquet as pq
import pytest

from lapwing.answer.charts.answer_chart import chart_of
from lapwing.answer.charts.chart_options import ChartOptions
from lapwing.documents.over_time import over_time
from lapwing.server.console import inside
from lapwing.server.console.dashboards import refreshing
from lapwing.server.console.dashboards.changing import DashboardChange, added, change_in
from lapwing.server.console.dashboards.filtering import choices_of, filters_of, only, wanted_in
from lapwing.server.console.dashboards.refreshing import Again
from lapwing.server.console.forms import FIELD
from tests.server.test_published import ALIASED, HOSTILE, Tags
from tests.support.effort import one_in
from tests.support.server.browsing import Shown, Visitor, visitor
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


def test_a_tile_gets_another_chart_and_keeps_its_other_choices() -> None:
    item = {"tiles": [{"answer": "a", "x": "plan", "kind": "bars"}]}
    change = change_in(item, {"what": "set", "place": "0", "kind": "lines"})
    assert change.item["tiles"] == [{"answer": "a", "x": "plan", "kind": "lines"}]
    assert change_in(change.item, change.undo).item["tiles"] == item["tiles"]
    automatic = change_in(item, {"what": "set", "place": "0", "kind": ""})
    assert automatic.item["tiles"] == [{"answer": "a", "x": "plan"}]


def test_a_result_that_is_there_gets_the_new_chart_and_other_numbers_of_it_a_tile_of_their_own() -> None:
    item = {"title": "Ward", "tiles": [{"answer": "a", "title": "Plans", "width": "full", "log": True}]}
    again = added(item, {"answer": "a", "kind": "lines", "column": "n"}, "n")
    assert again.item["tiles"] == [{"answer": "a", "title": "Plans", "width": "full", "kind": "lines", "column": "n"}]
    assert change_in(again.item, again.undo).item["tiles"] == item["tiles"]
    other = added(item, {"answer": "a", "column": "cost"}, "n")
    assert other.item["tiles"] == [*item["tiles"], {"answer": "a", "column": "cost"}]
    for tile in ({"text": "b"}, {"monitor": "m"}, {"answer": "b"}):
        assert added(item, tile, "n").item["tiles"] == [*item["tiles"], tile]


def test_the_form_of_a_tile_states_the_whole_chart_also_the_box_that_is_not_ticked() -> None:
    item = {"tiles": [{"answer": "a", "log": True, "line": 2.5, "width": "full"}]}
    form = {"what": "set", "place": "0", "kind": "points", "arrange": "largest", "line": "", "column": "n"}
    change = change_in(item, form)
    stated = {"kind": "points", "arrange": "largest", "column": "n"}
    assert change.item["tiles"] == [{"answer": "a", "width": "full", **stated}]
    assert change_in(change.item, change.undo).item["tiles"] == item["tiles"]
    ticked = change_in(item, {**form, "log": "1", "line": "2,5"})
    assert ticked.item["tiles"] == [{"answer": "a", "width": "full", **stated, "log": True, "line": 2.5}]


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
    for path, emblems in ((here, 1), (f"{here}/read", 0)):
        shown = alice.go(path)
        assert (shown.status, shown.page.forbidden) == (200, [])
        active = Tags(shown.content.decode()).active
        assert "onerror" not in active
        assert active.count("img") == emblems


# ---- Filters ----

ROWS: Final = [
    {"plan": plan, "size": size, "n": 10 * n} for n, (plan, size) in enumerate([("a", 1), ("a", 2), ("b", 1)])
]
ENDS: Final = {"low": [-2, 8, 18], "high": [2, 12, 22]}
DOCUMENT: Final = {
    "columns": ["plan", "size", "n"], "keys": ["plan", "size"], "rows": ROWS, "intervals": {"n": ENDS},
    "types": {"plan": "text", "size": "integer", "n": "integer"},
}  # fmt: skip


def test_a_filter_chooses_rows_with_their_intervals() -> None:
    shown = only(DOCUMENT, {"size": "1", "other": "x"})
    assert [row["n"] for row in shown["rows"]] == [0, 20]
    assert shown["intervals"] == {"n": {"low": [-2, 18], "high": [2, 22]}}
    assert (shown["keys"], shown["columns"]) == (["plan"], ["plan", "n"])
    assert only(DOCUMENT, {"other": "x"}) == DOCUMENT
    assert only(DOCUMENT, {"plan": "none"})["rows"] == []


def test_a_form_offers_the_values_that_were_released_and_no_other() -> None:
    plans, sizes = filters_of([choices_of(DOCUMENT), {"plan": {"c": "C"}}], {"size": "1"})[::-1]
    assert (plans.key, [text for _, text in plans.choices]) == ("plan", ["a", "b", "C"])
    assert (sizes.key, sizes.chosen) == ("size", '["size", "1"]')
    assert wanted_in({sizes.name: sizes.chosen}) == {"size": "1"}


@pytest.mark.parametrize("text", ["x", "[]", "{}", "[1, 2]", '["plan"]', "[" * 9999, "NaN", '"plan"'])
def test_an_address_that_states_no_filter_filters_nothing(text: str) -> None:
    assert wanted_in({"f0": text}) == {}


def sent_for(path: str, alice: Visitor, monkeypatch: pytest.MonkeyPatch) -> tuple[Shown, set[str]]:
    """Return a page, and by which methods it asked the service."""
    methods, sent = set[str](), inside.Api.send

    async def counting(self: inside.Api, method: str, *path: str, **more: Any) -> inside.ApiReply:
        methods.add(method)
        return await sent(self, method, *path, **more)

    with monkeypatch.context() as patch:
        patch.setattr(inside.Api, "send", counting)
        return alice.go(path), methods


def test_a_filter_and_a_full_screen_read_what_was_bought_and_nothing_else(
    place: World, alice: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = place.query(
        "alice", {"sql": "SELECT plan, size, COUNT(*) AS n FROM visits GROUP BY plan, size", "epsilon": 2}
    )
    one = place.query("alice", {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 2})
    here = made(place, {"answer": both.document["id"]}, {"answer": one.document["id"]}, {"text": "Read this"})
    charges = place.charges()
    for path in (here, f"{here}/read"):
        whole, _ = sent_for(path, alice, monkeypatch)
        (form,) = [form for form in whole.page.forms if "f0" in form.fields]
        assert form.method == "get"
        shown, methods = sent_for(f"{path}?f0=%5B%22plan%22%2C%20%22a%22%5D", alice, monkeypatch)
        assert "Only plan = a." in shown.text
        assert shown.text.count("The filter does not apply to this tile.") == 1
        assert (methods, shown.page.forbidden) == ({"GET"}, [])
        none, _ = sent_for(f"{path}?f0=%5B%22plan%22%2C%20%22%3Cscript%3E%22%5D", alice, monkeypatch)
        assert "no row for the filter" in none.text
        assert none.page.forbidden == []
    assert place.charges() == charges
    assert "Move up" not in shown.text  # nothing there changes the dashboard


def test_groups_of_a_monitor_are_lines_over_time_with_bands() -> None:
    def tick(hour: int, numbers: tuple[int, ...]) -> dict[str, Any]:
        rows = [{"plan": plan, "n": n} for plan, n in zip("abc", numbers, strict=False)]
        ends = {"low": [n - 2 for n in numbers], "high": [n + 2 for n in numbers]}
        return {
            "time": f"2026-03-02T0{hour}:00:00",
            "answer": {"columns": ["plan", "n"], "rows": rows, "intervals": {"n": ends}, "confidence": 0.95},
        }

    document = over_time([tick(1, (5, 6)), tick(2, (7, 8)), tick(3, (9, 9, 1))])
    assert [(row["time"][11:13], row["plan"], row["n"]) for row in document["rows"]][-2:] == [
        ("03", "b", 9),
        ("03", "c", 1),
    ]
    chart = chart_of(document, options=ChartOptions(kind="lines", x="time"))
    assert chart is not None
    assert [entry.text for entry in chart.legend] == ["a", "b", "c"]
    assert [(mark.series, mark.low is not None) for mark in chart.marks].count((0, True)) == 3
    alone = only(document, {"plan": "b"})
    assert (alone["keys"], [row["n"] for row in alone["rows"]]) == (["time"], [6, 8, 9])


# ---- One refresh ----

COUNT: Final = {"sql": "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan", "epsilon": 0.5, "label": "by plan"}


def with_new_data(place: World) -> None:
    """Let the ledger have no result of the data any more."""
    session = place.session()
    file = session.catalog.folder / "visits.parquet"
    pq.write_table(pq.read_table(file).slice(1), file)
    session.accept_data()


def bought(place: World, **body: Any) -> dict[str, str]:
    return {"answer": place.query("alice", {**COUNT, **body}).document["id"]}


def test_a_result_is_offered_to_the_dashboard_that_one_has(place: World, alice: Visitor) -> None:
    """The form once chose a new dashboard first, so people with one made a second."""
    answer = f"/console/answers/{bought(place)['answer']}"
    assert alice.go(answer).form("/dashboards/add").fields["dashboard"] == ""
    here = made(place, {"text": "Read this"})
    form = alice.go(answer).form("/dashboards/add")
    assert form.fields["dashboard"] == here.rpartition("/")[2]
    assert alice.post(form.action, form.fields).path.startswith(here)


def test_the_form_of_a_tile_changes_its_chart_for_free(place: World, alice: Visitor) -> None:
    here = made(place, {**bought(place), "kind": "bars"}, {"text": "Read this"})
    charges = place.charges()
    page = alice.go(here)
    (form,) = [form for form in page.page.forms if "kind" in form.fields]
    assert (form.fields["kind"], form.fields["place"]) == ("bars", "0")
    shown = alice.post(form.action, {**form.fields, "kind": "table", "what": "set"})
    assert b"</svg>" in page.content.partition(b'class="tiles"')[2]
    assert b"</svg>" not in shown.content.partition(b'class="tiles"')[2]
    wide = alice.post(form.action, {**form.fields, "kind": "points", "arrange": "largest", "line": "30", "what": "set"})
    *_, again = [form for form in wide.page.forms if "kind" in form.fields]  # after the form that undoes it
    assert [again.fields[name] for name in ("kind", "arrange", "line", "column")] == ["points", "largest", "30", "n"]
    assert wide.content.count(b'class="reference"') > page.content.count(b'class="reference"')
    for wrong in ({"kind": "zigzag"}, {"line": "high", "arrange": ""}, {"line": "-1", "log": "1", "arrange": ""}):
        assert changed(alice, here, what="set", place="0", **wrong).status == 422
    typed = {**form.fields, "title": "Mine", "x_title": "Plans", "line": "-1", "log": "1", "what": "set"}
    refused = alice.post(form.action, typed)
    (kept,) = [form for form in refused.page.forms if form.fields.get("x_title")]
    assert {name: kept.fields[name] for name in ("title", "x_title", "line")} == {
        "title": "Mine", "x_title": "Plans", "line": "-1",
    }  # fmt: skip
    opened = re.findall(rb"<details[^>]* open=\"\">", refused.content)
    assert opened == [b'<details name="change-tile" open="">']  # the form with the error, and no other; one at a time
    assert b'aria-invalid="true"' in refused.content
    assert place.charges() == charges


def test_what_was_bought_before_refreshes_for_free(place: World, alice: Visitor) -> None:
    tile = bought(place)
    here = made(place, tile, {"text": "Read this"}, dict(tile))
    charges = place.charges()
    page = alice.go(f"{here}/refresh")
    assert "Refresh all · free" in page.text
    assert page.text.count("with a tile above") == 1
    after = alice.submit(page, "/refresh")
    assert "ran the queries of this dashboard again" in after.text
    assert place.charges() == charges
    kept = place.ask("GET", f"/v1/saved/{here.rpartition('/')[2]}", "alice").document["tiles"]
    assert kept[0]["answer"] == kept[2]["answer"] != tile["answer"]
    assert kept[1] == {"text": "Read this"}


def refreshed(place: World, alice: Visitor) -> tuple[str, Shown]:
    """Return a dashboard of three tiles and two queries on new data, and the page with its prices."""
    tiles = bought(place), bought(place, sql="SELECT COUNT(*) AS n FROM visits", epsilon=2), bought(place)
    here = made(place, *tiles)
    with_new_data(place)
    rule = {"division": "share", "most_epsilon": 1}
    assert place.ask("PUT", "/v1/datasets/open/policy", "carol", rule).status == 200
    return here, alice.go(f"{here}/refresh")


def test_a_refresh_shows_the_total_charges_each_query_once_and_says_what_is_refused(
    place: World, alice: Visitor
) -> None:
    charges = place.charges()
    here, page = refreshed(place, alice)
    before = place.ask("GET", f"/v1/saved/{here.rpartition('/')[2]}", "alice").document["tiles"]
    assert place.charges() == charges + 2
    assert page.content.count(b"data-refused") == 1
    assert "Refresh all · ε = 0.5" in page.text
    after = alice.submit(page, "/refresh")
    assert "charged ε = 0.5" in after.text
    assert "The tile keeps its old result." in after.text
    assert place.charges() == charges + 3
    tiles = place.ask("GET", f"/v1/saved/{here.rpartition('/')[2]}", "alice").document["tiles"]
    assert tiles[1] == before[1]
    assert tiles[0] == tiles[2] != before[0]
    again = alice.submit(page, "/refresh")  # the same form once more, as a double click sends it
    assert (again.status, place.charges()) == (409, charges + 3)
    assert "the earlier click counts" in again.text  # not that nothing was charged at all
    assert "Refresh all · free" in again.text


@pytest.mark.long
def test_queries_that_were_bought_together_are_refreshed_together(place: World, alice: Visitor) -> None:
    queries = [{"sql": COUNT["sql"]}, {"sql": "SELECT COUNT(*) AS n FROM visits"}]
    body = {"questions": queries, "epsilon": 0.5}
    both = place.ask("POST", "/v1/datasets/open/batch", "alice", body).document["answers"]
    here = made(place, {"answer": both[1]["id"]}, {"answer": both[0]["id"]}, bought(place, epsilon=0.25))
    with_new_data(place)
    page, charges = alice.go(f"{here}/refresh"), place.charges()
    assert page.text.count("with a tile above") == 1  # the batch has one cost
    after = alice.submit(page, "/refresh")
    assert "data-refused" not in after.content.decode()
    assert place.charges() > charges
    tiles = place.ask("GET", f"/v1/saved/{here.rpartition('/')[2]}", "alice").document["tiles"]
    shown = [place.ask("GET", f"/v1/answers/{tile['answer']}", "alice").document for tile in tiles]
    assert [one["columns"] for one in shown] == [["n"], ["plan", "n"], ["plan", "n"]]
    assert {one["id"] for one in shown}.isdisjoint(one["id"] for one in both)
    now = place.charges()
    assert "Refresh all · free" in alice.go(f"{here}/refresh").text
    assert place.charges() == now


def test_hostile_texts_on_the_pages_of_a_refresh_stay_texts(place: World, alice: Visitor) -> None:
    plain = [text.replace("\u202e", "") for text in HOSTILE]
    titled = [{**bought(place), "title": text} for text in plain]
    labelled = [bought(place, label=text) for text in plain]
    by_query = {"answer": place.query("alice", {"sql": ALIASED, "epsilon": 0.5}).document["id"]}
    here = made(place, *titled, *labelled, by_query)
    page = alice.go(f"{here}/refresh")
    for shown in (page, alice.submit(page, "/refresh")):
        assert (shown.status, shown.page.forbidden) == (200, [])
        active = Tags(shown.content.decode()).active
        assert ("onerror" in active, active.count("img")) == (False, 1)  # the emblem
        assert shown.text.count("<script>alert(1)</script>") == 2
        assert """AS "<b>&'",""" in shown.text


@pytest.mark.parametrize("typed", one_in(3, [{"total": "0 0"}, {"total": ""}, {"key": "x"}]))
def test_a_total_that_nobody_saw_is_not_paid(place: World, alice: Visitor, typed: dict[str, str]) -> None:
    _, page = refreshed(place, alice)
    charges = place.charges()
    told = alice.submit(page, "/refresh", **typed)
    assert (told.status, place.charges()) == (409, charges)
    assert "charged nothing" in told.text


def test_two_forms_at_the_same_moment_charge_once(place: World, alice: Visitor) -> None:
    """The second has looked at the prices before the first was charged; the keys of both are the same."""
    refreshed(place, alice)
    charges = place.charges()
    key = Again(body=COUNT, tiles=()).key("a" * 32)
    assert (
        key != Again(body={**COUNT, "epsilon": 1}, tiles=()).key("a" * 32) != Again(body=COUNT, tiles=()).key("b" * 32)
    )
    for _ in range(2):
        assert place.query("alice", COUNT, **{"Idempotency-Key": key}).status == 200
    assert place.charges() == charges + 1


def test_twin_a_refresh_that_does_not_compare_the_total_is_caught(place: World, alice: Visitor) -> None:
    _, page = refreshed(place, alice)
    charges = place.charges()
    with mock.patch.object(refreshing.Refresh, "stated", "0 0"):
        assert alice.submit(page, "/refresh", total="0 0").status == 200
    assert place.charges() == charges + 1


def test_only_the_owner_refreshes_a_dashboard(place: World, alice: Visitor) -> None:
    for name in ("alice", "bob"):
        place.service.people.change(name, team="nurses", by="carol")
    view = place.session().budget()
    place.service.policies.grant("open", "bob", None, view.spending, view.total, view.delta_keys, by="carol")
    here, bob = made(place, bought(place)), visitor(place, "bob")
    changed(alice, here, what="share")
    assert bob.go(here).status == 200
    charges = place.charges()
    assert bob.go(f"{here}/refresh").status == 403
    assert bob.post(f"{here}/refresh", {FIELD: bob.secret(), "total": "0 0", "key": "0" * 32}).status == 403
    assert alice.post(f"{here}/refresh", {"total": "0 0", "key": "0" * 32}).status == 403  # no secret of a form
    assert place.charges() == charges

"""Published pages: who may publish and withdraw, and that a page shows its snapshot and nothing else."""

import json
import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import pytest
from markupsafe import escape

from lapwing.catalog.codebook_texts import with_unit_title
from lapwing.catalog.dictionary import Dictionary, Texts
from lapwing.cli.result_page import as_page
from lapwing.documents.published import page as public
from lapwing.engines import DuckDB
from lapwing.errors import InvalidParameter
from lapwing.ledger.charged_queries import in_all
from lapwing.ledger.reading import HistoryRow
from lapwing.monitors import Monitor, create_monitor
from lapwing.privacy.measures import from_record
from lapwing.server import public_pages
from lapwing.server.published_pages import PublishedPages, checked_origins
from lapwing.server.sqlite_store import SqliteStore
from tests.support.server.world import QUESTION, Reply, World, on_both, service_in, serving

CREATED, EMPTY, FORBIDDEN, MISSING, REFUSED = 201, 204, 403, 404, 422
ORIGIN: Final = "https://news.example.org"
HOURLY: Final = (
    "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan EVERY '1 hour' FOR '6 hours' STARTING '2026-03-02'"
)
SQL: Final = "SELECT plan, COUNT(*) AS n FROM visits WHERE town <> 'Smithville' GROUP BY plan"
ALIASED: Final = """SELECT plan AS "<b>&'", COUNT(*) AS n FROM visits GROUP BY plan"""
HOSTILE: Final = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{ 7*7 }}{% raw %}",
    "</style><style>*{background:url(https://evil.example/)}",
    "right\u202eleft",
    "x" * 120,
)


def allow(world: World, *origins: str, dataset: str = "open") -> None:
    body = {"allowed": True, "origins": list(origins)}
    assert world.ask("PUT", f"/v1/datasets/{dataset}/publishing", "carol", body).status == 200


def forbid(world: World) -> None:
    assert world.ask("PUT", "/v1/datasets/open/publishing", "carol", {"allowed": False}).status == 200


def publish(world: World, who: str = "alice", dataset: str = "open", **body: Any) -> Reply:
    return world.ask("POST", f"/v1/datasets/{dataset}/published", who, {"title": "Visits by plan", **body})


def bought(world: World, **body: Any) -> str:
    return str(world.query("alice", {**QUESTION, **body}).document["id"])


def published(world: World, **body: Any) -> dict[str, Any]:
    """Publish a result of alice, in a world where that is allowed."""
    allow(world)
    made = publish(world, answers=[bought(world, sql=SQL)], **body)
    assert made.status == CREATED, made.content
    document: dict[str, Any] = made.document
    return document


def read(world: World, page: Mapping[str, Any]) -> Reply:
    return world.ask("GET", page["address"])


# ---- Who may ----


@on_both
def test_a_result_is_published_where_the_curator_allows_it_and_withdrawn(world: World) -> None:
    answer = bought(world)
    assert world.ask("GET", "/v1/datasets/open/publishing", "alice").document == {"allowed": False, "origins": []}
    assert publish(world, answers=[answer]).status == FORBIDDEN
    allow(world, ORIGIN)
    made = publish(world, answers=[answer], name="visits-by-plan").document
    assert made["address"] == "/published/visits-by-plan"
    assert read(world, made).status == 200
    assert publish(world, answers=[answer], name="visits-by-plan").status == REFUSED  # the name is taken
    (listed,) = world.ask("GET", "/v1/datasets/open/published", "carol").document
    assert (listed["person"], listed["address"], listed["withdrawn"]) == ("alice", made["address"], None)
    assert world.ask("DELETE", f"/v1/published/{made['id']}", "alice").status == EMPTY
    assert read(world, made).status == MISSING
    assert world.ask("DELETE", f"/v1/published/{made['id']}", "alice").status == MISSING
    assert publish(world, answers=[answer], name="visits-by-plan").status == CREATED
    acts = [json.loads(line)["act"] for line in world.ask("GET", "/v1/audit", "carol").content.splitlines()]
    assert acts[-4:] == ["publishing allowed", "page published", "page withdrawn", "page published"]


def test_only_publisher_and_curator_see_and_withdraw_a_page(world: World) -> None:
    page = published(world)
    for method, path in (("GET", ""), ("GET", "/page"), ("DELETE", "")):
        for who in ("bob", "audrey"):
            assert world.ask(method, f"/v1/published/{page['id']}{path}", who).status == MISSING
        assert world.ask(method, f"/v1/published/{page['id']}{path}").status == 401
    (listed,) = world.ask("GET", "/v1/datasets/open/published", "audrey").document  # to read: no address that is secret
    assert (listed["id"], "address" in listed) == (page["id"], False)
    assert world.ask("GET", "/v1/datasets/open/published", "bob").status == MISSING
    shown = world.ask("GET", f"/v1/published/{page['id']}", "carol").document
    assert "address" not in shown  # a curator can withdraw it, and needs no token for that
    assert world.ask("DELETE", f"/v1/published/{page['id']}", "carol").status == EMPTY
    assert read(world, page).status == MISSING


def test_nobody_publishes_a_result_that_they_may_not_open(world: World) -> None:
    allow(world)
    allow(world, dataset="closed")
    answer = bought(world)
    assert publish(world, "bob", answers=[answer]).status == MISSING
    assert publish(world, "bob", "closed", answers=[answer]).status == MISSING
    assert publish(world, "carol", "closed", answers=[answer]).status == MISSING  # no result is of that data set
    assert publish(world, "audrey", answers=[answer]).status == FORBIDDEN
    assert publish(world, "alice", answers=["none"]).status == MISSING
    assert publish(world, "alice").status == REFUSED
    assert publish(world, "carol", answers=[answer]).status == CREATED


@pytest.mark.parametrize("name", ["ab", "-abc", "abc-", "Abc", "a b c", "a/b", "lapwing_x", "ünder", "a" * 61, "a.b.c"])
def test_a_public_name_is_plain(world: World, name: str) -> None:
    allow(world)
    assert publish(world, answers=[bought(world)], name=name).status == REFUSED


# ---- What a page says ----


class Tags(HTMLParser):
    """Reads what of a page could load, run or send something."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.active: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "form", "input", "button", "img", "iframe", "object", "embed", "base", "link", "image"):
            self.active.append(tag)
        self.active += [name for name, _ in attributes if name in ("style", "src", "srcset") or name.startswith("on")]


def leaks(page: str, title: str = "") -> list[str]:
    """Return what is on a page that may not be."""
    found = Tags(page).active
    found += [word for word in ("Smithville", "alice", "carol", "Budget", "budget") if word in page]
    found += re.findall(r"url\(|@import|/v1/|/console", page.replace(title, ""))
    return found


def test_a_page_shows_the_result_its_noise_and_its_price_and_nothing_else(world: World) -> None:
    texts = Texts(title="Ward visits", licence="CC BY 4.0", contact="data@example.org", owner="Dr Owner")
    object.__setattr__(world.session().catalog, "dictionary", Dictionary(dataset=texts))
    page = published(world, author="Office for Wards")
    text = read(world, page).content.decode()
    for part in (
        "Visits by plan",
        "Office for Wards",
        "Ward visits",
        "CC BY 4.0",
        "data@example.org",
        "rounded Gaussian",
    ):
        assert part in text
    for part in ("ε = 0.5", "δ = 0.001", "each person", "95\xa0%", "at most 2 rows", "<svg", "<table"):
        assert part in text, part
    assert "Dr Owner" not in text
    assert leaks(text) == []


def test_twin_a_page_with_its_query_has_the_constant(world: World) -> None:
    page = published(world, show_query=True)
    assert leaks(read(world, page).content.decode()) == ["Smithville"]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_stay_texts(world: World, text: str) -> None:
    allow(world)
    answer = bought(
        world,
        label=text[:80].replace("\u202e", ""),
        sql=ALIASED,
    )
    page = publish(world, answers=[answer, bought(world)], title=text, author=text).document
    reply = read(world, page)
    assert Tags(reply.content.decode()).active == []
    assert "\u202e" not in reply.content.decode()
    assert reply.content.decode().count("<style") == 1


@pytest.mark.parametrize("word", HOSTILE[:3])
def test_a_hostile_word_for_the_protected_stays_a_text(world: World, word: str) -> None:
    catalog = world.session().catalog
    object.__setattr__(catalog, "dictionary", with_unit_title(catalog, word).dictionary)
    page = published(world)
    for address in (page["address"], f"{page['address']}?frame"):
        shown = world.ask("GET", address).content.decode()
        assert (Tags(shown).active, str(escape(word)) in shown) == ([], True)


def test_a_frame_has_the_same_texts_as_its_page(world: World) -> None:
    page = published(world)
    whole, framed = (world.ask("GET", f"{page['address']}{query}") for query in ("", "?frame"))
    assert Tags(framed.content.decode()).active == []
    assert leaks(framed.content.decode()) == []
    assert (b"<details" in whole.content, framed.content.count(b"<details")) == (False, 2)
    for text in ("About these results", "With a probability of 95", ", scale ", page["title"]):
        assert (text in whole.content.decode(), text in framed.content.decode()) == (True, True), text
    assert framed.headers["content-security-policy"] == whole.headers["content-security-policy"]
    assert framed.headers["etag"] != whole.headers["etag"]


def test_twin_a_page_that_does_not_escape_is_caught() -> None:
    assert Tags(HOSTILE[0]).active == ["script"]
    assert Tags(HOSTILE[1]).active == ["img", "src", "onerror"]


def test_a_result_that_was_bought_before_says_what_was_charged_then(world: World) -> None:
    allow(world)
    first = bought(world)
    again = bought(world)
    assert first != again
    pages = [publish(world, answers=[answer]).document for answer in (first, again)]
    assert all("ε = 0.5" in read(world, page).content.decode() for page in pages)


@pytest.mark.parametrize("parameters", [{}, {"parameters": ["Smithville"]}])
def test_a_result_that_refines_an_earlier_one_says_what_both_cost(world: World, parameters: dict[str, Any]) -> None:
    allow(world)
    sql = f"SELECT plan, COUNT(*) AS n FROM visits {'WHERE town <> ? ' if parameters else ''}GROUP BY plan"
    bought(world, sql=sql, epsilon="0.4", **parameters)
    refined, again = (bought(world, sql=sql, epsilon="0.5", **parameters) for _ in range(2))
    for answer in (refined, again):
        text = read(world, publish(world, answers=[answer]).document).content.decode()
        (epsilon,) = set(re.findall("ε = ([0-9.]+)", text))
        assert 0.5 <= float(epsilon) < 0.53  # the second charge alone is 0.29


@pytest.mark.parametrize("before", [(), ("0.4",)])
def test_a_page_of_the_command_line_has_the_bytes_of_a_published_one(world: World, before: tuple[str, ...]) -> None:
    allow(world)
    for epsilon in before:
        bought(world, epsilon=epsilon)
    answer = bought(world, label="By <plan>")
    page = publish(world, answers=[answer], title="By <plan>").document
    session = world.service.datasets.session_of("open")
    here = session.sql(str(QUESTION["sql"]), epsilon=0.5)
    assert here.stored
    exported = world.ask("GET", f"/v1/published/{page['id']}/page", "alice").content
    assert as_page(here, session, "By <plan>", Fraction(95, 100)).encode() == exported


def test_the_charges_of_a_result_are_those_of_its_query_and_data_up_to_its_own() -> None:
    loss = from_record({"measure": "gdp", "amount": "1"})
    row = HistoryRow(sequence=1, time="", principal="alice", question="q", loss=loss, version=1, answered=True)
    rows = [row, replace(row, sequence=2, version=2), replace(row, sequence=3, version=2, answered=False)]
    rows += [replace(row, sequence=4, version=2, question="other"), replace(row, sequence=5, version=2)]
    found = [[one.sequence for one in in_all(rows, bought)] for bought in (rows[:2], rows[4:], rows[2:3])]
    assert found == [[2], [2, 5], []]


def test_several_results_say_what_they_promise_together(world: World) -> None:
    allow(world)
    page = publish(world, answers=[bought(world), bought(world, sql="SELECT COUNT(*) AS n FROM visits")]).document
    text = read(world, page).content.decode()
    (together,) = re.findall(r"together: ε = ([0-9.]+)", text)
    assert 0.5 < float(together) <= 1
    assert "The 2 results of this page together change" in text
    answer = bought(world)
    twice = board_of(world, {"answer": answer, "kind": "bars"}, {"answer": answer, "kind": "points"})
    text = read(world, publish(world, dashboard=twice).document).content.decode()
    assert set(re.findall("ε = ([0-9.]+)", text)) == {"0.5"}  # one release, shown in two ways


def test_a_dashboard_is_published_with_its_results_alone(world: World) -> None:
    allow(world)
    tiles = [{"answer": bought(world), "title": "By plan"}, {"monitor": "arrivals"}]
    path = "/v1/datasets/open/saved"
    board = world.ask("POST", path, "alice", {"title": "Ward", "tiles": tiles}).document["id"]
    question = world.ask("POST", path, "alice", {"title": "Q", "question": {"sql": SQL}}).document["id"]
    page = publish(world, dashboard=board).document
    assert page["left_out"] == 1
    assert "By plan" in read(world, page).content.decode()
    assert publish(world, dashboard=question).status == MISSING
    assert publish(world, "carol", dashboard=board).status == MISSING


# ---- Of several data sets ----


def of_two(world: World, **body: Any) -> Reply:
    """Publish a result of each of two data sets, as somebody who may query both."""
    answers = [str(world.query("carol", dataset=dataset).document["id"]) for dataset in ("open", "closed")]
    return publish(world, "carol", answers=answers, **body)


def test_a_page_of_two_data_sets_needs_that_both_allow_it(world: World) -> None:
    assert of_two(world).status == FORBIDDEN
    allow(world)
    assert of_two(world).status == FORBIDDEN
    allow(world, dataset="closed")
    page = of_two(world).document
    text = read(world, page).content.decode()
    assert page["datasets"] == ["open", "closed"]
    assert (text.count("All results"), text.count("Somebody may be in several of these data sets")) == (0, 1)
    assert text.count("The noise protects each person") == text.count("This result changes") == 2
    assert leaks(text) == []
    # Who may ask only one of them publishes nothing of the other.
    other = str(world.query("carol", dataset="closed").document["id"])
    assert publish(world, "alice", answers=[bought(world), other]).status == MISSING


@on_both
def test_either_data_set_withdraws_a_page_of_both_at_once(world: World) -> None:
    for dataset in ("open", "closed"):
        allow(world)
        allow(world, dataset="closed")
        page = of_two(world).document
        alone = publish(world, answers=[bought(world)]).document
        path = f"/v1/datasets/{dataset}/publishing"
        assert read(world, page).status == 200
        assert world.ask("PUT", path, "carol", {"allowed": False}).status == 200
        allow(world, dataset=dataset)  # turning it on again brings no page back
        assert read(world, page).status == MISSING
        assert read(world, alone).status == (MISSING if dataset == "open" else 200)
        (listed,) = [
            one for one in world.ask("GET", f"/v1/datasets/{dataset}/published", "carol").document
            if one["id"] == page["id"]
        ]  # fmt: skip
        assert listed["withdrawn"] is not None
        content = "SELECT content FROM published WHERE id = ?"
        assert world.service.store.look(content, (page["id"],))[0][0] is None


def test_twin_a_page_that_only_its_first_data_set_withdraws_is_caught(world: World) -> None:
    allow(world)
    allow(world, dataset="closed")
    page = of_two(world).document
    with world.service.store.transaction() as connection:
        connection.execute("DELETE FROM published_datasets WHERE dataset <> 'open'")
    assert world.ask("PUT", "/v1/datasets/closed/publishing", "carol", {"allowed": False}).status == 200
    assert read(world, page).status == 200


def test_only_origins_that_both_data_sets_name_frame_a_page_of_both(world: World) -> None:
    allow(world, ORIGIN, "https://one.example")
    allow(world, "https://two.example", ORIGIN, dataset="closed")
    page = of_two(world).document
    assert f"frame-ancestors {ORIGIN}" in str(read(world, page).headers.values())
    allow(world, "https://two.example", dataset="closed")
    assert "frame-ancestors 'none'" in str(read(world, page).headers.values())


def board_of(world: World, *tiles: Mapping[str, Any]) -> str:
    body = {"title": "Ward", "tiles": list(tiles)}
    return str(world.ask("POST", "/v1/datasets/open/saved", "alice", body).document["id"])


def test_a_page_has_the_texts_the_order_and_the_charts_of_its_dashboard(world: World) -> None:
    allow(world)
    result = {"answer": bought(world), "title": "By plan", "kind": "points", "x": "plan", "width": "full"}
    board = board_of(
        world, {"text": "Read <b>this</b>\n- first", "title": "Why", "width": "third"}, result, {"monitor": "m"}
    )
    page = publish(world, dashboard=board).document
    text = read(world, page).content.decode()
    assert page["left_out"] == 1
    assert text.index("Read &lt;b&gt;this&lt;/b&gt;") < text.index("By plan")
    assert '<section class="third">' in text
    assert "<li><bdi>first</bdi></li>" in text
    assert 'class="chart points"' in text
    assert leaks(text) == []
    average = bought(world, sql="SELECT plan, AVG(cost) AS cost FROM visits GROUP BY plan", epsilon=2)
    drawn = read(world, publish(world, answers=[average]).document).content.decode()
    assert 'class="chart points"' in drawn  # as on the dashboard: averages do not add up, so no bar begins at 0
    only_text = publish(world, dashboard=board_of(world, {"text": "Nothing was bought"}))
    assert only_text.status == REFUSED


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_of_a_dashboard_stay_texts(world: World, text: str) -> None:
    allow(world)
    board = board_of(world, {"text": text, "title": text.replace("\u202e", "")}, {"answer": bought(world)})
    shown = read(world, publish(world, dashboard=board).document).content.decode()
    assert Tags(shown).active == []
    assert "\u202e" not in shown
    assert shown.count("<style") == 1


def test_a_page_of_the_first_format_is_shown_as_it_was() -> None:
    result = {
        "title": "By plan", "released": "2026-11-01", "columns": ["plan", "n"], "keys": ["plan"], "confidence": 0.95,
        "rows": [{"plan": "a", "n": 4}], "types": {"plan": "text", "n": "integer"}, "labels": {}, "column": None,
        "intervals": {"n": {"low": [2], "high": [6]}}, "noise": [], "query": None,
        "meaning": {"epsilon": "1", "delta": "0", "words": "Words."},
    }  # fmt: skip
    page = {
        "format": 1, "title": "Visits", "author": None, "published": "2026-11-02", "dataset": {"name": "open"},
        "protects": "Everybody.", "together": None, "results": [result],
    }  # fmt: skip
    text = public.page_of(json.dumps(page))
    assert '<section class="full" aria-label="1. By plan">' in text
    assert "4" in text


# ---- What happens later adds nothing ----


def stopped(world: World, _page: Mapping[str, Any]) -> None:
    assert world.ask("PUT", "/v1/datasets/open/stop", "carol", {"stopped": True}).status in (200, 204)


def asked_more(world: World, _page: Mapping[str, Any]) -> None:
    assert world.query("alice", {"sql": "SELECT COUNT(*) AS other FROM visits", "epsilon": 0.25}).status == 200


def refused(world: World, _page: Mapping[str, Any]) -> None:
    assert world.query("alice", {"sql": "SELECT town FROM visits", "epsilon": 0.25}).status == REFUSED


def broken(world: World, _page: Mapping[str, Any]) -> None:
    """Fail until the data set is stopped, with a fault that has a row in its text."""
    with patch.object(DuckDB, "run", side_effect=RuntimeError("row 7 has 97753136")):
        for age in (1, 2, 3):
            failed = world.query(
                "alice", {"sql": f"SELECT COUNT(*) AS n FROM visits WHERE age < {age}", "epsilon": 0.2}
            )
            assert failed.status >= 500


def retitled(world: World, _page: Mapping[str, Any]) -> None:
    texts = Texts(title="A new title", licence="Another licence")
    object.__setattr__(world.session().catalog, "dictionary", Dictionary(dataset=texts))


def disabled(world: World, _page: Mapping[str, Any]) -> None:
    world.service.people.change("alice", active=False, by="carol")


def without_grant(world: World, _page: Mapping[str, Any]) -> None:
    world.service.policies.withdraw("open", "alice", by="carol")


def framed_by_others(world: World, _page: Mapping[str, Any]) -> None:
    allow(world, "https://other.example")


def rewritten(world: World, page: Mapping[str, Any]) -> None:
    """Change the dashboard of a page: its title, its text, and its result."""
    for item in world.service.saved.of("alice", "open"):
        newest = bought(world, sql="SELECT COUNT(*) AS other FROM visits", epsilon=0.25)
        body = {"title": "Other", "tiles": [{"text": "Another text"}, {"answer": newest}]}
        assert world.ask("PUT", f"/v1/saved/{item.id}", "alice", body).status == 200


LATER: Final = (stopped, asked_more, refused, broken, retitled, disabled, without_grant, framed_by_others)


def changed_by(world: World, page: Mapping[str, Any], event: Callable[[World, Mapping[str, Any]], None]) -> bool:
    """Tell whether something that happens later changes what a page says."""
    before = read(world, page).content
    event(world, page)
    public.page_of.cache_clear()
    after = read(world, page)
    return after.status != 200 or after.content != before


@pytest.mark.parametrize("event", LATER)
def test_a_page_stays_as_it_was_published(world: World, event: Callable[[World, Mapping[str, Any]], None]) -> None:
    page = published(world)
    assert not changed_by(world, page, event)


@pytest.mark.parametrize("event", [rewritten, refused, broken, without_grant])
def test_the_page_of_a_dashboard_stays_as_it_was_published(
    world: World, event: Callable[[World, Mapping[str, Any]], None]
) -> None:
    allow(world)
    board = board_of(world, {"text": "Read this"}, {"answer": bought(world)})
    assert not changed_by(world, publish(world, dashboard=board).document, event)


def made_again(world: World, page: Mapping[str, Any]) -> None:
    """Do as a page would that is made of the newest answer and of the catalog when it is read."""
    asked_more(world, page)
    retitled(world, page)
    newest = world.service.answers.find(str(world.service.answers.of("alice", "open", 1)[0]["id"]))
    assert newest is not None
    content = json.loads(world.service.published.find(page["id"])[1] or "")
    content["datasets"][0] |= world.session().catalog.dictionary.dataset.facts
    content["results"][0] |= newest.document
    with world.service.store.transaction() as connection:
        connection.execute("UPDATE published SET content = ?", (json.dumps(content),))


def test_twin_a_page_that_is_made_when_it_is_read_is_caught(world: World) -> None:
    assert changed_by(world, published(world), made_again)


# ---- Monitors ----


@pytest.fixture
def monitor(world: World) -> Iterator[Monitor]:
    catalog = world.session().catalog
    with create_monitor(catalog, "m", HOURLY, epsilon=1, time="seen", most=3, source="service") as made:
        yield made


def released(monitor: Monitor, count: int) -> None:
    """Let a monitor release some ticks more."""
    running = monitor.run(replay=True)
    for _ in range(count):
        next(running)


def numbers_of(world: World, page: Mapping[str, Any]) -> list[Any]:
    """Return the numbers that the snapshot of a page has, in their order."""
    (result,) = json.loads(world.service.published.find(page["id"])[1] or "")["results"]
    return [row["n"] for row in result["rows"]]


def numbers_released(world: World) -> list[Any]:
    ticks = world.ask("GET", "/v1/datasets/open/monitors/m/ticks", "carol").document
    return [row["n"] for tick in ticks for row in tick["answer"]["rows"]]


def test_a_monitor_is_published_as_lines_with_bands_and_the_loss_of_all_its_releases(
    world: World, monitor: Monitor
) -> None:
    assert publish(world, monitor="m").status == FORBIDDEN  # the curator allows nothing yet
    allow(world)
    assert publish(world, monitor="m").status == REFUSED  # it has released nothing
    assert publish(world, monitor="other").status == MISSING
    assert publish(world, monitor="m", answers=["a"]).status == REFUSED
    released(monitor, 4)
    charges = world.charges()
    assert publish(world, "bob", monitor="m").status == MISSING
    assert publish(world, "audrey", monitor="m").status == FORBIDDEN
    page = publish(world, monitor="m").document
    text = read(world, page).content.decode()
    assert leaks(text) == []
    assert 'class="chart line' in text
    assert text.count('class="band') == 4  # two groups, on a wide and on a narrow chart
    for part in ("ε = 1", "2026-03-02 04:00 UTC", "3 events count in the horizon", "correlated noise, scale"):
        assert part in text, part
    assert HOURLY not in text
    assert numbers_of(world, page) == numbers_released(world)
    assert "EVERY" in read(world, publish(world, monitor="m", show_query=True).document).content.decode()
    assert world.charges() == charges


def test_a_dashboard_is_published_with_its_monitors(world: World, monitor: Monitor) -> None:
    allow(world)
    released(monitor, 2)
    tile = {"monitor": "m", "title": "Arrivals", "width": "full"}
    board = board_of(world, tile, {"answer": bought(world), "title": "By plan"}, {"monitor": "gone"})
    page = publish(world, dashboard=board).document
    text = read(world, page).content.decode()
    assert page["left_out"] == 1
    assert text.index("Arrivals") < text.index("By plan")
    (together,) = re.findall(r"together: ε = ([0-9.]+)", text)
    assert 1 < float(together) <= 1.5
    assert publish(world, dashboard=board_of(world, {"monitor": "m"})).status == CREATED


def arrived(world: World) -> None:
    """Send events that no tick has released yet."""
    one = {"person": 7, "seen": "2026-03-02T00:10:00", "plan": "a"}
    lines = "\n".join(json.dumps({"id": str(number), **one, "person": number}) for number in range(40)).encode()
    kind = {"Content-Type": "application/x-ndjson"}
    assert world.ask("POST", "/v1/datasets/open/monitors/m/events", "carol", lines, kind).status == 200


def shows_unreleased(world: World, page: Mapping[str, Any], before: list[Any]) -> bool:
    """Tell whether a page has a number that no tick had released when it was published."""
    return numbers_of(world, page) != before


@pytest.mark.parametrize("event", [asked_more, refused, retitled, without_grant, stopped])
def test_the_page_of_a_monitor_shows_what_was_released_and_stays(
    world: World, monitor: Monitor, event: Callable[[World, Mapping[str, Any]], None]
) -> None:
    allow(world)
    released(monitor, 2)
    before = numbers_released(world)
    arrived(world)
    page = publish(world, monitor="m").document
    assert not shows_unreleased(world, page, before)
    assert not changed_by(world, page, event)

    def goes_on(world: World, _page: Mapping[str, Any]) -> None:
        released(monitor, 1)

    assert not changed_by(world, page, goes_on)
    assert numbers_released(world)[: len(before)] == before != numbers_released(world)


def test_twin_a_page_that_follows_its_monitor_is_caught(world: World, monitor: Monitor) -> None:
    allow(world)
    released(monitor, 2)
    before = numbers_released(world)
    page = publish(world, monitor="m").document

    def follows(world: World, page: Mapping[str, Any]) -> None:
        """Do as a page would that reads the monitor whenever it is read."""
        released(monitor, 1)
        newer = publish(world, monitor="m").document
        with world.service.store.transaction() as connection:
            newest = "UPDATE published SET content = (SELECT content FROM published WHERE id = ?) WHERE id = ?"
            connection.execute(newest, (newer["id"], page["id"]))

    assert changed_by(world, page, follows)
    assert shows_unreleased(world, page, before)


def shown_after_withdrawal(world: World, withdraw: Callable[[World, Mapping[str, Any]], None]) -> bool:
    """Tell whether a page can be read, here or by its exported file, after it was withdrawn."""
    page = published(world)
    assert read(world, page).status == 200
    withdraw(world, page)
    allow(world)  # turning it on again brings no page back
    file = world.ask("GET", f"/v1/published/{page['id']}/page", "carol")
    return read(world, page).status != MISSING or file.status != MISSING


def by_publisher(world: World, page: Mapping[str, Any]) -> None:
    assert world.ask("DELETE", f"/v1/published/{page['id']}", "alice").status == EMPTY


def by_the_switch(world: World, _page: Mapping[str, Any]) -> None:
    forbid(world)


@pytest.mark.parametrize("withdraw", [by_publisher, by_the_switch])
def test_a_withdrawn_page_is_gone_at_once(world: World, withdraw: Callable[[World, Mapping[str, Any]], None]) -> None:
    assert not shown_after_withdrawal(world, withdraw)
    assert world.service.store.look("SELECT COUNT(*) FROM published WHERE content IS NOT NULL")[0][0] == 0


def test_twin_a_switch_that_only_hides_pages_is_caught(world: World) -> None:
    def hidden(world: World, _page: Mapping[str, Any]) -> None:
        with world.service.store.transaction() as connection:
            connection.execute("DELETE FROM publishing WHERE dataset = 'open'")

    assert shown_after_withdrawal(world, hidden)


def test_a_publisher_without_access_can_withdraw(world: World) -> None:
    page = published(world)
    without_grant(world, page)
    by_publisher(world, page)
    assert read(world, page).status == MISSING


# ---- What it tells a browser ----


def lax(reply: Reply, origins: str = "'none'") -> list[str]:
    """Return what the headers of a page allow that they should not."""
    headers = {name.lower(): value for name, value in reply.headers.items()}
    policy = headers.get("content-security-policy", "")
    wanted = {
        "cookie": "set-cookie" not in headers,
        "frame": f"frame-ancestors {origins}" in policy.split("; "),
        "policy": "default-src 'none'" in policy and "unsafe" not in policy and "form-action 'none'" in policy,
        "referrer": headers.get("referrer-policy") == "no-referrer",
        "sniff": headers.get("x-content-type-options") == "nosniff",
    }
    return [name for name, holds in wanted.items() if not holds]


def test_headers_let_in_named_origins_and_nothing_else(world: World) -> None:
    page = published(world)
    named = publish(world, answers=[bought(world)], name="by-plan").document
    for one, kept in ((page, "private, no-cache"), (named, "public, no-cache")):
        reply = read(world, one)
        assert lax(reply) == []
        assert reply.headers["cache-control"] == kept
        assert ("x-robots-tag" in reply.headers) == (one is page)
        assert reply.headers["cross-origin-resource-policy"] == "same-origin"
    allow(world, ORIGIN, "https://a.example:8443")
    reply = read(world, page)
    assert lax(reply, f"{ORIGIN} https://a.example:8443") == []
    assert reply.headers["cross-origin-resource-policy"] == "cross-origin"
    style = re.findall(r"<style>(.*?)</style>", reply.content.decode(), re.DOTALL)
    assert [public.style()] == style


def test_a_browser_asks_each_time_and_gets_the_bytes_once(world: World) -> None:
    page = published(world)
    allow(world, ORIGIN)

    def again(tag: str) -> Reply:
        return world.ask("GET", page["address"], headers={"If-None-Match": tag})

    tag = read(world, page).headers["etag"]
    kept = again(f'W/"0", {tag}')
    assert (kept.status, kept.content, lax(kept, ORIGIN)) == (304, b"", [])
    assert kept.headers["etag"] == tag
    assert again('W/"0"').status == 200
    allow(world)  # other rules are another answer, as a browser may keep the old ones
    assert again(tag).status == 200
    by_publisher(world, page)
    gone = again(tag)
    assert (gone.status, gone.headers["cache-control"]) == (MISSING, "no-store")


def test_a_frame_says_that_a_page_was_withdrawn_and_not_that_there_was_one(world: World) -> None:
    page = published(world)
    allow(world, ORIGIN)
    by_publisher(world, page)
    gone = read(world, page)
    never = [world.ask("GET", path) for path in ("/published/none", "/published/none/more", "/published/")]
    for one in (gone, *never):
        assert (one.status, lax(one, "*"), one.content) == (MISSING, [], gone.content)
        assert one.headers["cross-origin-resource-policy"] == "cross-origin"
    assert b"withdrawn" in gone.content
    assert not re.findall(rb"<(?:a|form|script|button|input|iframe)\b", gone.content)
    assert [public.style()] == re.findall(r"<style>(.*?)</style>", gone.content.decode(), re.DOTALL)


@pytest.mark.long
def test_origins_frame_no_other_page(world: World) -> None:
    page = published(world)
    allow(world, ORIGIN)
    others = [
        "/",
        "/docs",
        "/v1/datasets",
        "/console",
        "/console/sign-in",
        "/publishedx",
    ]
    for path in others:
        assert lax(replace(world.ask("GET", path), headers=_framing(world.ask("GET", path)))) == [], path
    assert "frame" in lax(read(world, page))  # the twin: of the page itself they are others


def _framing(reply: Reply) -> dict[str, str]:
    """Return the headers that say who may frame a page, beside those of a good one."""
    policy = next((v for k, v in reply.headers.items() if k.lower() == "content-security-policy"), "")
    frame = next((part for part in policy.split("; ") if part.startswith("frame-ancestors")), "")
    strict = "default-src 'none'; form-action 'none'"
    good = {"referrer-policy": "no-referrer", "x-content-type-options": "nosniff"}
    return {**good, "content-security-policy": f"{strict}; {frame}"}


@pytest.mark.parametrize("fault", [{"Set-Cookie": "a=b"}, {"Content-Security-Policy": "frame-ancestors *"}])
def test_twin_a_cookie_or_another_frame_is_caught(world: World, fault: dict[str, str]) -> None:
    good = read(world, published(world))
    assert lax(replace(good, headers={**good.headers, **{name.lower(): value for name, value in fault.items()}}))


def test_unknown_and_withdrawn_addresses_are_answered_alike(world: World) -> None:
    page = published(world)
    by_publisher(world, page)

    def told(path: str) -> tuple[object, ...]:
        reply = world.ask("GET", path)
        headers = {k: v for k, v in reply.headers.items() if k.lower() not in ("date", "x-request-id")}
        return reply.status, headers, reply.content

    assert told(page["address"]) == told("/published/none") == told(f"/published/{'x' * 500}")


def test_no_other_method_is_answered_and_no_token_is_looked_at(world: World) -> None:
    page = published(world)
    assert world.ask("POST", page["address"], "carol", {}).status == 405
    shown = world.ask("GET", page["address"], None, headers={"Authorization": "Bearer wrong", "Cookie": "lapwing=x"})
    assert shown.status == 200
    assert lax(shown) == []


def test_no_log_has_an_address(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    page = published(world)
    read(world, page)
    while '"/published/{address}"' not in caplog.text:  # the line follows the response
        time.sleep(0.01)
    assert page["address"].rpartition("/")[2] not in caplog.text
    kept = world.service.store.look("SELECT address FROM published")[0][0]
    assert kept not in page["address"]
    assert len(kept) == 64


def test_reading_is_limited_by_address(tmp_path: Path) -> None:
    service = service_in(tmp_path, replace(service_in_settings(), strangers=0.1))
    with serving(service) as world:
        page = published(world)
        assert [read(world, page).status for _ in range(30)].count(429) > 0


def service_in_settings() -> Any:
    from tests.support.server.world import QUICK

    return QUICK


# ---- Origins ----

BAD_ORIGINS: Final = (
    "http://localhost.a.example", "http://localhost/", "http://localhost:*", "http://127.0.0.2", "ftp://localhost",
    "http://a.example", "https://*.example", "*", "https://a.example/", "https://a.example/x", "a.example", "https://",
    "https://a.example; script-src *", "https://a.example 'unsafe-inline'", "https://u@a.example", "https://a.example:0",
    "https://a_b.example", "https://ä.example", "https://a.example:99999999", "'self'", "https:", "https://a..example",
    "https://a.example\nx", "null", "data:",
)  # fmt: skip


@pytest.mark.parametrize("origin", BAD_ORIGINS)
def test_an_origin_is_https_and_a_host(origin: str) -> None:
    with pytest.raises(InvalidParameter):
        checked_origins([origin])


def test_origins_are_few(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "people.db")) as store, pytest.raises(InvalidParameter):
        PublishedPages(store).allow("open", [f"https://a{n}.example" for n in range(21)], by="carol")


def test_an_exported_page_is_the_page(world: World) -> None:
    page = published(world)
    file = world.ask("GET", f"/v1/published/{page['id']}/page", "alice")
    assert file.content == read(world, page).content
    assert "attachment" in file.headers["content-disposition"]
    assert public_pages.PREFIX not in file.content.decode()

"""How every page looks: on a phone, a tablet and a desk, light and dark; and what axe-core finds wrong with it.

Pictures are written to the folder that LAPWING_PICTURES names, to be looked at; without it they are made and dropped.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pytest

from lapwing.monitors import create_monitor
from tests.server.console.test_in_a_browser import complaints, sign_in
from tests.server.test_monitors import QUESTION
from tests.support.browser.accessibility import findings
from tests.support.browser.chromium import Page, find_chromium, running
from tests.support.server.queueing import ended, submitted
from tests.support.server.world import World

pytestmark = [
    pytest.mark.skipif(find_chromium() is None, reason="Chromium is not installed (apt install chromium)"),
    pytest.mark.long,
]
WIDTHS: Final = (360, 768, 1440)
ANSWERS: Final = {
    "bars": "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan",
    "heat": "SELECT plan, size, COUNT(*) AS n FROM visits GROUP BY plan, size",
    "figure": "SELECT COUNT(*) AS n, AVG(cost) AS cost FROM visits",
    "points": "SELECT plan, AVG(cost) AS cost FROM visits GROUP BY plan",
    "histogram": "SELECT FLOOR(age / 10) AS decade, COUNT(*) AS n FROM visits GROUP BY FLOOR(age / 10)",
}
DEAR: Final = {"sql": ANSWERS["bars"], "epsilon": 99999, "label": "too dear"}
BUILT: Final = (
    "SELECT plan, FLOOR(age / 2) * 2 AS a, COUNT(*) AS n, AVG(cost) AS c FROM visits WHERE plan = 'a' AND age > 1 "
    "GROUP BY 1, 2 ORDER BY n"
)
ASK: Final = "/console/data/open/ask?sql="
PAGES: Final = {
    "home": "/console", "tables": "/console/data/open", "ask": f"{ASK}{ANSWERS['bars']}&epsilon=1",
    "build": "/console/data/open/ask?tab=build",
    "built": f"{ASK}{quote(BUILT)}&tab=build",
    "unread": f"{ASK}SELECT COUNT(%2A) %2B 1 FROM visits&tab=build",
    "refused": f"{ASK}SELECT plam FROM visits&epsilon=1", "dear": f"{ASK}{ANSWERS['bars']}&epsilon=99999",
    "history": "/console/data/open/history", "charges": "/console/data/open/charges",
    "budget": "/console/data/open/budget", "guarantee": "/console/data/open/guarantee",
    "access": "/console/data/open/access", "ledger": "/console/data/open/ledger", "people": "/console/people",
    "person": "/console/people/alice", "audit": "/console/audit", "sign-ins": "/console/sign-ins",
    "cap": "/console/data/open/cap", "register": "/console/register", "register-catalog": "/console/register/catalog",
    "catalog": "/console/data/open/catalog", "catalog-changed": "/console/data/open/catalog?from=1",
    "teams": "/console/teams", "team": "/console/teams/nurses", "accounts": "/console/accounts",
    "service-account": "/console/accounts/nightly-counts",
    "versions": "/console/data/open/versions", "version": "/console/data/open/versions/2",
    "health": "/console/health", "failures": "/console/data/open/failures",
    "account": "/console/account", "second-factor": "/console/account/second-factor",
    "saved": "/console/data/open/saved", "dashboards": "/console/data/open/dashboards", "dashboard": "BOARD",
    "read": "BOARD/read", "refresh": "BOARD/refresh", "filtered": "BOARD?f0=%5B%22plan%22%2C%22a%22%5D",
    "rearranged": "HEAT/rearranged?chosen=1&k0=1&sort=n&order=falling", "difference": "HEAT/difference?other=BARS",
    "compare": "HEAT/difference", "chart-form": "HEAT?kind=bars&colour=plan&arrange=largest&line=50",
    "publish": "HEAT/publish", "publish-board": "BOARD/publish",
    "publish-monitor": "/console/data/open/monitors/visits/publish", "published": "/console/data/open/published",
    "public": "PUBLIC",
    "batch": "/console/data/open/batch?sql=SELECT COUNT(*) AS n FROM visits;", "bought": "BOUGHT",
    "queue": "/console/questions", "queued": "QUEUED",
    "words": "/console/words",
    "missing": "/console/nowhere", "sign-in": "/console/sign-in", "invite": "/console/invite",
    "invited": "/console/people/emil", "requests": "/console/requests",
}  # fmt: skip

TEXT: Final = "The ward counts visits.\n- Each number has noise.\n- The ± says how much.\n\n" + "long" * 60
RUNS_OVER: Final = """
    const wider = (element) => element.scrollWidth > element.clientWidth;
    const boxes = [...document.querySelectorAll(".scroll, .tabs, .global, .card")];
    const shown = (element) => !element.closest("details:not([open])");
    const found = [document.documentElement, ...boxes].filter(shown).filter(wider);
    return found.map((element) => element.outerHTML.slice(0, 200));
"""
"""What is cut off, or scrolls sideways: of a page, its navigation, its cards, and its tables and charts."""


@pytest.fixture(scope="module")
def shown(settled: World) -> Iterator[tuple[Page, dict[str, str]]]:
    changed(settled)
    peopled(settled)
    answers = {
        name: "/console/answers/" + settled.query("carol", {"sql": sql, "epsilon": 1, "label": name}).document["id"]
        for name, sql in ANSWERS.items()
    }
    board = kept(settled, answers)
    names = {
        "HEAT": answers["heat"],
        "BARS": answers["heat"].rpartition("/")[2],
        "BOARD": board,
        "PUBLIC": published(settled, board),
        "BOUGHT": batch(settled),
        "QUEUED": f"/console/questions/{ended(settled, submitted(settled, DEAR, 'carol'))['id']}",
    }
    paths = {name: replaced(path, names) for name, path in PAGES.items()}
    with running(find_chromium() or "") as browser:
        page = browser.page()
        sign_in(page, settled, "carol")
        yield page, {**paths, **answers}


def kept(world: World, answers: dict[str, str]) -> str:
    """Let carol save a question, and make a dashboard of a monitor and answers."""
    world.service.people.change("carol", team="nurses", by="carol")
    question = QUESTION.replace("plan, ", "").replace("GROUP BY plan ", "")
    with create_monitor(
        world.session().catalog, "visits", question, epsilon=1, time="seen", most=3, source="service"
    ) as made:
        for _ in zip(range(5), made.run(replay=True), strict=False):
            pass
    tiles = [{"answer": path.rpartition("/")[2]} for path in answers.values()]
    tiles += [{"text": TEXT, "title": "How to read this", "width": "full"}, {**tiles[0], "width": "third"}]
    path = "/v1/datasets/open/saved"
    saved = {"title": "Visits by plan", "question": {"sql": ANSWERS["bars"], "epsilon": 0.5}, "shared": True}
    world.ask("POST", path, "carol", saved)
    board = {"title": "The ward at a glance", "tiles": [{"monitor": "visits"}, *tiles], "shared": True}
    return "/console/dashboards/" + str(world.ask("POST", path, "carol", board).document["id"])


def published(world: World, board: str) -> str:
    """Let carol publish a dashboard with its monitor, with an origin that may embed it."""
    rule = {"allowed": True, "origins": ["https://news.example.org"]}
    assert world.ask("PUT", "/v1/datasets/open/publishing", "carol", rule).status == 200
    body = {"title": "Visits for everybody", "dashboard": board.rpartition("/")[2]}
    return str(world.ask("POST", "/v1/datasets/open/published", "carol", body).document["address"])


def peopled(world: World) -> None:
    """Let there be a team with a share, somebody who looks after one data set, and service accounts."""
    for name, team in (("alice", "nurses"), ("bob", "porters")):
        world.service.people.change(name, team=team, by="carol")
    world.service.people.change("bob", team="nurses", by="carol")
    world.service.people.give_role("alice", "closed", "curator", by="carol")
    for dataset, who in (("open", "alice"), ("closed", "bob")):
        reason = {"reason": "For the yearly report on wards and the length of stays. " * 3, "share": 0.4}
        world.ask("POST", f"/v1/datasets/{dataset}/requests", who, reason)
    world.ask("PUT", "/v1/datasets/open/teams/nurses", "carol", {"share": 0.25})
    world.ask("POST", "/v1/people", "carol", {"name": "emil", "role": "analyst", "dataset": "open", "share": 0.2})
    world.ask("POST", "/v1/people/emil/invite", "carol", {})
    for name, owner in (("nightly-counts", "carol"), ("dashboard-of-the-ward", "alice")):
        world.ask("POST", "/v1/accounts", "carol", {"name": name, "owner": owner, "days": 90, "team": "nurses"})
    world.ask("POST", "/v1/people/nightly-counts/tokens", "carol", {"label": "cron", "days": 30})


def changed(world: World) -> None:
    """Let carol put another catalog into force."""
    known = world.ask("GET", "/v1/datasets/open/catalog", "carol").document
    other = (
        known["catalog"]
        .replace("upper = 8, step", "upper = 4, step")
        .replace("[tables.codes]", "# Prices\n[tables.codes]")
    )
    body = {"catalog": other, "was": known["state"]}
    assert world.ask("PUT", "/v1/datasets/open/catalog", "carol", body).status == 200


def batch(world: World) -> str:
    """Let carol buy several questions at one price."""
    body = {"questions": [{"sql": sql} for sql in ANSWERS.values()], "epsilon": 1}
    first = world.ask("POST", "/v1/datasets/open/batch", "carol", body).document["answers"][0]["id"]
    return f"/console/data/open/batch/{first}?count={len(ANSWERS)}"


def replaced(path: str, names: dict[str, str]) -> str:
    for word, name in names.items():
        path = path.replace(word, name)
    return path


@pytest.mark.parametrize("name", [*PAGES, *ANSWERS])
def test_a_page_fits_and_can_be_used_by_everybody(
    settled: World, shown: tuple[Page, dict[str, str]], tmp_path: Path, name: str
) -> None:
    page, paths = shown
    folder = Path(os.environ.get("LAPWING_PICTURES", tmp_path))
    page.go(settled.address + paths[name].replace(" ", "%20"))
    for dark in (False, True):
        for width in WIDTHS:
            page.look(folder / f"{name}-{width}{'-dark' if dark else ''}.png", width, 900, dark=dark)
            assert page.run(RUNS_OVER) == []
        found = findings(page)
        assert found["violations"] == []
        assert found["passes"] > 10
    assert [text for text in complaints(page) if "autocomplete" not in text and "404" not in text] == []


@pytest.mark.parametrize(
    "planted",
    [
        "document.querySelector('h1').style.color = '#eee'",
        "document.querySelector('label').remove()",
        "document.documentElement.removeAttribute('lang')",
    ],
)
def test_a_page_that_some_cannot_use_is_found(settled: World, shown: tuple[Page, dict[str, str]], planted: str) -> None:
    page, paths = shown
    page.size(1440, 900)
    page.go(settled.address + paths["access"])
    page.run(planted)
    assert findings(page)["violations"] != []


@pytest.mark.parametrize(
    ("name", "planted"),
    [
        ("bars", ".in-wide { display: block !important; width: 38rem } .in-narrow { display: none !important }"),
        ("audit", ".blocks, .blocks :is(th, td) { display: revert !important; white-space: nowrap !important }"),
        ("budget", ".tabs { flex-wrap: nowrap !important }"),
        ("cap", "body { min-width: 400px }"),
    ],
)
def test_what_is_cut_off_on_a_phone_is_found(
    settled: World, shown: tuple[Page, dict[str, str]], name: str, planted: str
) -> None:
    page, paths = shown
    page.size(360, 900)
    page.go(settled.address + paths[name])
    assert page.run(RUNS_OVER) == []
    page.run(f"document.styleSheets[0].insertRule({json.dumps('@media all { ' + planted + ' }')})")
    assert page.run(RUNS_OVER) != []

"""A dashboard in Chromium: it follows a monitor and costs nothing. Then keys, and a price without a network."""

from collections.abc import Iterator

import pytest

from lapwing.monitors import Monitor, create_monitor
from lapwing.server.console import dashboards
from tests.server.console.test_in_a_browser import complaints, sign_in
from tests.server.test_monitors import QUESTION
from tests.support.browser.chromium import find_chromium, running
from tests.support.server.world import World

pytestmark = [
    pytest.mark.skipif(find_chromium() is None, reason="Chromium is not installed (apt install chromium)"),
    pytest.mark.long,
]


@pytest.fixture
def monitor(place: World) -> Iterator[Monitor]:
    question = QUESTION.replace("plan, ", "").replace("GROUP BY plan ", "")
    with create_monitor(
        place.session().catalog, "m", question, epsilon=1, time="seen", most=3, source="service"
    ) as made:
        yield made


def test_a_dashboard_follows_a_monitor(place: World, monitor: Monitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dashboards, "POLL", 0.1)
    released = monitor.run(replay=True)
    next(released), next(released)
    tiles = [{"monitor": "m"}, {"answer": place.query("alice").document["id"]}]
    made = place.ask("POST", "/v1/datasets/open/saved", "alice", {"title": "Ward", "tiles": tiles}).document
    charges, dots = place.charges(), "document.querySelectorAll('#tile-0 .in-wide .dot').length"
    with running(find_chromium() or "") as browser:
        page = browser.page()
        sign_in(page, place, "alice")
        page.go(f"{place.address}/console/dashboards/{made['id']}")
        page.wait(f"{dots} == 2 && document.getElementById('live').textContent == 'This page updates automatically.'")
        next(released)
        page.wait(f"{dots} == 3")
        assert page.run("return document.querySelectorAll('#tile-1 .in-wide .bar-1').length") == 2
        place.ask("PUT", f"/v1/saved/{made['id']}", "alice", {"title": "Ward", "tiles": tiles[1:]})
        page.wait("!document.getElementById('tile-1') && document.querySelector('#tile-0 .bar-1')")  # by itself
        assert place.charges() == charges

        page.press("?", 191, "?")
        page.wait("document.querySelector('dialog[open] kbd')")
        page.press("Enter", 13, "\r")  # on the button that closes
        page.wait("!document.querySelector('dialog[open]')")
        page.run(
            "for (const key of 'ga') document.body.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}))"
        )
        page.wait("location.pathname == '/console/data/open/ask'")
        page.wait("document.querySelector('#preview [data-verdict]')")
        page.offline(True)
        page.run("const field = document.getElementById('epsilon'); field.value = '0.7'; "
                 "field.dispatchEvent(new Event('input', {bubbles: true}))")  # fmt: skip
        page.wait("document.getElementById('preview').textContent.includes('does not respond')")
        page.offline(False)
        page.run("document.getElementById('epsilon').dispatchEvent(new Event('input', {bubbles: true}))")
        page.wait("document.querySelector('#preview [data-verdict=fits]')")
        assert [told for told in complaints(page) if "ERR_INTERNET_DISCONNECTED" not in told] == []


def test_a_theme_is_chosen_and_stays_in_the_browser(place: World) -> None:
    """Whatever the system prefers; by no cookie, and with the first thing that is drawn."""
    ground = "getComputedStyle(document.documentElement).getPropertyValue('--ground').trim()"
    light, dark = "#f7f8f6", "#111614"
    with running(find_chromium() or "") as browser:
        page = browser.page()
        sign_in(page, place, "alice")
        cookies = page.ask("Network.getCookies")["cookies"]

        def choose(theme: str) -> None:
            page.run(
                f"const list = document.getElementById('theme'); list.value = '{theme}'; "
                "list.dispatchEvent(new Event('change'))"
            )

        for theme, bright, night in (("dark", dark, dark), ("light", light, light), ("", light, dark)):
            choose(theme)
            for system_is_dark, colour in ((False, bright), (True, night)):
                page.size(1280, 900, dark=system_is_dark)
                page.wait(f"{ground} == '{colour}'")
                page.go(f"{place.address}/console/account")
                assert page.run(f"return {ground}") == colour
                assert page.run("return document.getElementById('theme').value") == theme
        choose("dark")
        page.run("document.querySelector('form[action=\"/console/sign-out\"]').requestSubmit()")
        page.wait("location.pathname == '/console/sign-in' && document.readyState == 'complete'")
        assert page.run(f"return {ground}") == dark
        assert [cookie["name"] for cookie in cookies] == ["lapwing"]
        assert complaints(page) == []


def test_tiles_are_moved_filtered_and_refreshed_by_keys(place: World) -> None:
    """The focus stays on the button that moved a tile, and what follows costs nothing but what its button says."""
    plans = place.query("alice").document["id"]
    alone = place.query("alice", {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 0.5}).document["id"]
    tiles = [{"answer": plans, "title": "By plan"}, {"answer": alone, "title": "All"}, {"text": "Read this"}]
    made = place.ask("POST", "/v1/datasets/open/saved", "alice", {"title": "Ward", "tiles": tiles}).document
    here, charges = f"{place.address}/console/dashboards/{made['id']}", place.charges()
    focus = "document.activeElement.id"
    order = "[...document.querySelectorAll('.tiles > section')].map(one => one.getAttribute('aria-label')).join('|')"
    with running(find_chromium() or "") as browser:
        page = browser.page()
        sign_in(page, place, "alice")
        page.go(here)
        page.run("document.getElementById('down-0').focus()")
        page.press("Enter", 13, "\r")
        page.wait(f"{order} == 'Tile 1: All|Tile 2: By plan|Tile 3: text' && {focus} == 'down-1'")
        page.press("Enter", 13, "\r")
        page.wait(f"{order} == 'Tile 1: All|Tile 2: text|Tile 3: By plan' && {focus} == 'up-2'")

        page.run(
            "const list = document.querySelector('.filters select'); list.selectedIndex = 1; list.form.requestSubmit()"
        )
        page.wait("location.search.length > 1")
        page.wait("document.readyState == 'complete' && document.querySelector('.filters select').selectedIndex == 1")
        assert place.charges() == charges

        page.go(f"{here}/refresh")
        page.run("document.querySelector('form[data-buy] button').focus()")
        page.press("Enter", 13, "\r")
        page.wait("document.body.textContent.includes('ran the queries of this dashboard again')")
        assert place.charges() == charges  # all of it was bought before
        assert complaints(page) == []

"""An invite in Chromium: its token leaves the address at once, and reaches no server by an address."""

import json
import os
from pathlib import Path

import pytest

from tests.server.console.test_in_a_browser import complaints, sign_in, typed
from tests.support.browser.accessibility import findings
from tests.support.browser.chromium import Page, find_chromium, running
from tests.support.server.browsing import PASSWORD
from tests.support.server.world import World

pytestmark = [
    pytest.mark.skipif(find_chromium() is None, reason="Chromium is not installed (apt install chromium)"),
    pytest.mark.long,
]


def test_a_person_comes_in_by_a_link(place: World, tmp_path: Path) -> None:
    folder = Path(os.environ.get("LAPWING_PICTURES", tmp_path))
    with running(find_chromium() or "") as browser:
        page = browser.page()
        sign_in(page, place, "carol")
        page.go(f"{place.address}/console/people")
        typed(page, "name", "emil")
        page.run("document.getElementById('dataset').value = 'open'")
        typed(page, "share", "20 %")
        page.press("Enter", 13, "\r")
        page.wait("document.querySelector('.once pre')")
        link = str(page.run("return document.querySelector('.once pre').textContent"))
        seen(page, folder, "invite-link")
        page.run("document.querySelector('form[action=\"/console/sign-out\"] button').click()")
        page.wait("document.getElementById('name') && location.pathname == '/console/sign-in'")
        page.run(f"location.assign({json.dumps(link)})")  # `go` waits for the address, which changes at once
        page.wait("document.getElementById('again')")
        assert page.run("return location.href") == f"{place.address}/console/invite"
        assert "emil" in page.run("return document.querySelector('main').textContent")
        seen(page, folder, "invite-password")
        typed(page, "password", PASSWORD)
        typed(page, "again", "something else")
        page.press("Enter", 13, "\r")
        page.wait("document.querySelector('.fault')")
        typed(page, "again", PASSWORD)
        page.press("Enter", 13, "\r")
        page.wait("location.pathname == '/console' && document.readyState == 'complete'")
        assert "emil" in page.run("return document.querySelector('.who').textContent")
        assert link.partition("#")[2] not in page.run("return JSON.stringify(performance.getEntries())")
        assert [text for text in complaints(page) if "422" not in text and "autocomplete" not in text] == []


def seen(page: Page, folder: Path, name: str) -> None:
    """Look at a page in three widths, and let axe-core look at it."""
    for width in (1440, 768, 360):
        page.look(folder / f"{name}-{width}.png", width, 900, dark=False)
    assert findings(page)["violations"] == []

"""The tour of a demo in Chromium: five steps, by keyboard, remembered, and without scripts a plain list."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.server.console.conftest import with_passwords
from tests.server.console.test_in_a_browser import complaints, sign_in
from tests.support.browser.accessibility import findings
from tests.support.browser.chromium import Page, find_chromium, running
from tests.support.server.browsing import visitor
from tests.support.server.world import QUICK, World, service_in, serving

HERE = "return [...document.querySelectorAll('#tour li')].findIndex((one) => !one.hidden)"


@pytest.fixture
def toured(tmp_path: Path) -> Iterator[World]:
    with serving(service_in(tmp_path, replace(QUICK, tour="demo-1"))) as running_service:
        yield with_passwords(running_service)


def test_without_scripts_all_steps_are_there(toured: World, settled: World) -> None:
    alice, carol = (visitor(toured, name).go("/console") for name in ("alice", "carol"))
    assert [text for text in ("1 of 5.", "5 of 5.") if text not in alice.text] == []
    assert ("/console/requests" in alice.page.links, "/console/people" in alice.page.links) == (True, False)
    assert "/console/people" in carol.page.links
    assert alice.page.forbidden == []
    assert "1 of 5." not in visitor(settled, "alice").go("/console").text  # no demo, no tour


@pytest.mark.long
@pytest.mark.skipif(find_chromium() is None, reason="Chromium is not installed (apt install chromium)")
def test_a_tour_is_remembered(toured: World, tmp_path: Path) -> None:
    folder = Path(os.environ.get("LAPWING_PICTURES", tmp_path))
    with running(find_chromium() or "") as browser:
        page = browser.page()
        sign_in(page, toured, "carol")
        page.go(f"{toured.address}/console")
        assert page.run(HERE) == 0
        for dark in (False, True):
            for width in (360, 768, 1440):
                page.look(folder / f"tour-{width}{'-dark' if dark else ''}.png", width, 900, dark=dark)
            assert findings(page)["violations"] == []
        assert pressed(page, "1") == 1
        page.go(f"{toured.address}/console")
        assert page.run(HERE) == 1
        assert pressed(page, "-1") == 0
        for step in range(1, 5):
            assert pressed(page, "1") == step
        assert page.run("return document.querySelector('#tour [data-step]').textContent") == "Done"
        pressed(page, "1")
        assert page.run("return document.getElementById('tour').hidden && document.activeElement.id") == "main"
        page.go(f"{toured.address}/console")
        assert page.run("return document.getElementById('tour').hidden")
        page.run("localStorage.clear()")
        page.go(f"{toured.address}/console")
        pressed(page, "5")
        assert page.run("return document.getElementById('tour').hidden")
        assert [text for text in complaints(page) if "autocomplete" not in text] == []


def pressed(page: Page, step: str) -> object:
    """Press a button by the keyboard, and return the step that is shown."""
    page.run(f"document.querySelector('#tour [data-step=\"{step}\"]').focus()")
    page.press("Enter", 13, "\r")
    return page.run(HERE)

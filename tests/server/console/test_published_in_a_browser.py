"""How a published page looks to people without an account, and what axe-core finds wrong with it.

Pictures are written to the folder that LAPWING_PICTURES names, to be looked at.
"""

import base64
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from lapwing.catalog.dictionary import Dictionary, Texts
from tests.server.console.test_in_a_browser import complaints, sign_in
from tests.support.browser.accessibility import findings
from tests.support.browser.chromium import Page, find_chromium, running
from tests.support.server.world import World

pytestmark = [
    pytest.mark.skipif(find_chromium() is None, reason="Chromium is not installed (apt install chromium)"),
    pytest.mark.long,
]
WIDTHS: Final = (360, 768, 1440)
QUERIES: Final = {
    "Visits by plan": "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan",
    "All visits": "SELECT COUNT(*) AS visits, AVG(cost) AS cost FROM visits",
    "A long title, so that a phone has to break it, of plans and sizes": (
        "SELECT plan, size, COUNT(*) AS n FROM visits GROUP BY plan, size"
    ),
}
RUNS_OVER: Final = "return document.documentElement.scrollWidth > document.documentElement.clientWidth"

FRAMED: Final = (300, 360, 480, 600, 768, 1440)
"""Widths of frames: phones, columns of text, and whole pages."""
MOST: Final = 1.3
"""The stated height of a frame, at most, as a multiple of what is needed."""


def needed_at(page: Page, width: int) -> int:
    """Return the height of what a page shows at a width."""
    page.size(width, 100)
    needed: int = page.run("return document.documentElement.scrollHeight")
    return needed


@pytest.fixture(scope="module")
def pages(settled: World) -> Iterator[tuple[Page, dict[str, str]]]:
    """A browser of carol, a published page, and the pages of the console that are about it."""
    texts = Texts(
        title="Visits to the ward", licence="https://creativecommons.org/licenses/by/4.0/", contact="a@b.example"
    )
    object.__setattr__(settled.session().catalog, "dictionary", Dictionary(dataset=texts))
    settled.ask("PUT", "/v1/datasets/open/publishing", "carol", {"allowed": True, "origins": []})
    asked = [{"sql": sql, "epsilon": 2, "label": label} for label, sql in QUERIES.items()]
    answers = [settled.query("carol", body).document["id"] for body in asked]
    body = {"title": "Visits in November", "author": "Office for Wards", "answers": answers, "show_query": True}
    made = settled.ask("POST", "/v1/datasets/open/published", "carol", body).document
    one = {"title": "Visits by plan", "answers": answers[:1], "name": "visits-by-plan"}
    alone = settled.ask("POST", "/v1/datasets/open/published", "carol", one).document
    with running(find_chromium() or "") as browser:
        page = browser.page()
        sign_in(page, settled, "carol")
        yield (
            page,
            {
                "published": made["address"],
                "framed": f"{alone['address']}?frame",
                "framed-several": f"{made['address']}?frame",
                "embed": f"/console/published/{alone['id']}/embed",
                "list": "/console/data/open/published",
                "form": f"/console/answers/{answers[0]}/publish",
            },
        )


@pytest.mark.parametrize("name", ["published", "framed", "framed-several", "embed", "list", "form"])
def test_a_page_fits_and_can_be_used_by_everybody(
    settled: World, pages: tuple[Page, dict[str, str]], tmp_path: Path, name: str
) -> None:
    page, paths = pages
    folder = Path(os.environ.get("LAPWING_PICTURES", tmp_path))
    page.go(settled.address + paths[name])
    for dark in (False, True):
        for width in WIDTHS:
            page.look(folder / f"{name}-{width}{'-dark' if dark else ''}.png", width, 900, dark=dark)
            assert not page.run(RUNS_OVER)
        found = findings(page)
        assert found["violations"] == []
        assert found["passes"] > 10
    if name == "published":
        pdf = base64.b64decode(page.ask("Page.printToPDF", {"preferCSSPageSize": True})["data"])
        (folder / "published.pdf").write_bytes(pdf)
        assert pdf.startswith(b"%PDF")
    assert [text for text in complaints(page) if "autocomplete" not in text] == []


@pytest.mark.parametrize("name", ["framed", "framed-several"])
def test_a_frame_is_as_tall_as_the_page_states(settled: World, pages: tuple[Page, dict[str, str]], name: str) -> None:
    page, paths = pages
    stated = {"framed": "Visits by plan", "framed-several": "Visits in November"}[name]
    (made,) = (one for one in settled.service.published.of("open", None) if one.title == stated)
    height = settled.ask("GET", f"/v1/published/{made.id}", "carol").document["frame_height"]
    page.go(settled.address + paths[name])
    needed = {width: needed_at(page, width) for width in FRAMED}
    assert max(needed.values()) <= height <= MOST * max(needed.values()), (height, needed)


def test_twin_a_frame_with_its_tables_open_is_too_tall(settled: World, pages: tuple[Page, dict[str, str]]) -> None:
    page, paths = pages
    page.go(settled.address + paths["framed"])
    folded = needed_at(page, 360)
    page.run("for (const one of document.querySelectorAll('details')) one.open = true")
    assert needed_at(page, 360) > MOST * folded


def test_twin_a_page_that_some_cannot_use_is_found(settled: World, pages: tuple[Page, dict[str, str]]) -> None:
    page, paths = pages
    page.go(settled.address + paths["published"])
    page.run("document.documentElement.removeAttribute('lang')")
    assert findings(page)["violations"] != []

"""A curator uploads a messy file in Chromium: what she sees at each step, on all widths, and what axe-core finds.

Pictures are written to the folder that LAPWING_PICTURES names, to be looked at.
"""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from tests.server.console.conftest import with_passwords
from tests.server.console.test_in_a_browser import complaints, sign_in
from tests.server.test_uploads import SMALL, kept
from tests.support.browser.accessibility import findings
from tests.support.browser.chromium import Page, find_chromium, running
from tests.support.server.world import QUICK, World, service_in, serving

pytestmark = [
    pytest.mark.skipif(find_chromium() is None, reason="Chromium is not installed (apt install chromium)"),
    pytest.mark.long,
]
WIDTHS: Final = (360, 1440)
MESSY: Final = b"person,note,age,pay,a long name of a column that a phone has to break\n1,x,34,12,a\n2,y,NA,many,b\n"
RUNS_OVER: Final = "return document.documentElement.scrollWidth > document.documentElement.clientWidth"


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[World]:
    (tmp_path / "data").mkdir()
    settings = replace(QUICK, folders=(tmp_path / "data",), uploads=SMALL)
    with serving(service_in(tmp_path, settings)) as world:
        yield with_passwords(world)


def choose(page: Page, file: Path) -> None:
    """Choose a file in the form, as its dialog does."""
    root = page.ask("DOM.getDocument")["root"]["nodeId"]
    field = page.ask("DOM.querySelector", {"nodeId": root, "selector": "#upload"})["nodeId"]
    page.ask("DOM.setFileInputFiles", {"nodeId": field, "files": [str(file)]})


def press(page: Page, action: str, then: str) -> None:
    """Press the button of a form, and wait until the next page, which has no mark, shows something."""
    page.run(f"window.mark = 1; setTimeout(() => document.querySelector('form[action=\"{action}\"] button').click())")
    page.wait(f"!window.mark && document.readyState == 'complete' && document.body.innerText.includes({then!r})")


def test_a_messy_file_becomes_a_data_set(registry: World, tmp_path: Path) -> None:
    pictures = Path(os.environ.get("LAPWING_PICTURES", tmp_path))

    def looked_at(name: str) -> None:
        for dark in (False, True):
            for width in WIDTHS:
                page.look(pictures / f"upload-{name}-{width}{'-dark' if dark else ''}.png", width, 900, dark=dark)
                assert not page.run(RUNS_OVER)
            found = findings(page)
            assert found["violations"] == []
            assert found["passes"] > 10

    bad, messy = tmp_path / "short.csv", tmp_path / "My visits.csv"
    bad.write_bytes(b"a,b\n1\n")
    messy.write_bytes(MESSY)
    with running(find_chromium() or "") as browser:
        page = browser.page()
        sign_in(page, registry, "carol")
        page.go(f"{registry.address}/console/register")
        looked_at("1-form")
        choose(page, bad)
        press(page, "/console/register/upload", "Nothing was stored.")
        assert page.run("return document.querySelector('#upload').getAttribute('aria-invalid')") == "true"
        looked_at("2-refused")
        choose(page, messy)
        press(page, "/console/register/upload", "Lapwing found 2 rows and 5 columns.")
        looked_at("3-columns")
        page.run(
            'const set = (name, value) => { document.querySelector(`[name="${name}"]`).value = value; };'
            "set('unit', 'person'); set('rows', '1'); set('type-3', 'integer');"
            "for (const name of ['out-1', 'unreadable']) document.querySelector(`[name=\"${name}\"]`).checked = true;"
        )
        press(page, "/console/register/file", "unreadable")
        looked_at("4-catalog")
        assert [text for text in complaints(page) if "autocomplete" not in text and "422" not in text] == []
    assert kept(tmp_path / "data") == ["My visits.csv"]

"""The guarantee on paper: Chromium makes PDF of A4 of it, of the console's page and of the file that stands alone."""

import base64
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from lapwing.guarantee import as_html
from lapwing.guarantee.rendering import SHORT
from tests.server.console.test_in_a_browser import sign_in
from tests.support.browser.chromium import FLAGS, Page, find_chromium, running
from tests.support.server.world import World

pytestmark = [
    pytest.mark.skipif(find_chromium() is None, reason="Chromium is not installed (apt install chromium)"),
    pytest.mark.long,
]
A4: Final = (595, 842)
PRINTED: Final = 642
"""CSS pixels between the margins of an A4 sheet: 170 mm."""
LINES: Final = """
    const short = (cell) => cell.textContent && cell.textContent.length <= SHORT;
    return Math.max(...[...document.querySelectorAll("td")].filter(short).map((cell) => {
        const range = document.createRange();
        range.selectNodeContents(cell);
        return new Set([...range.getClientRects()].map((box) => box.top)).size;
    }));
"""


@pytest.fixture(scope="module")
def page(settled: World) -> Iterator[Page]:
    with running(find_chromium() or "") as browser:
        shown = browser.page()
        sign_in(shown, settled, "carol")
        yield shown


def printed(page: Page) -> bytes:
    asked = {"preferCSSPageSize": True, "generateTaggedPDF": True}
    return base64.b64decode(page.ask("Page.printToPDF", asked)["data"])


def lacking(pdf: bytes) -> list[str]:
    """Return what a document that is handed to people should have, and this one has not."""
    boxes = {
        (round(float(width)), round(float(height)))
        for width, height in re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", pdf)
    }
    pages = len(re.findall(rb"/Type /Page\b", pdf))
    found = [] if boxes == {A4} else [f"not A4: {boxes}"]
    found += [] if 2 <= pages <= 6 else [f"{pages} pages"]
    found += [] if b"/FontFile2" in pdf else ["its fonts"]
    found += [] if b"/StructTreeRoot" in pdf else ["what readers aloud need"]
    return found


def test_the_page_of_the_console_is_printed(settled: World, page: Page) -> None:
    page.go(f"{settled.address}/console/data/open/guarantee")
    page.size(PRINTED, 900, dark=True)
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    page.ask("Emulation.setEmulatedMedia", {"media": "print", "features": features})
    assert page.run("return getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    assert page.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.run("return document.querySelector('.bar').getClientRects().length") == 0
    assert page.run("return document.documentElement.scrollWidth <= innerWidth")
    assert lacking(printed(page)) == []
    page.run("document.styleSheets[0].insertRule('@page { size: letter }', document.styleSheets[0].cssRules.length)")
    assert lacking(printed(page)) == ["not A4: {(612, 792)}"]  # planted


def test_the_file_that_stands_alone_is_printed_by_one_command(settled: World, page: Page, tmp_path: Path) -> None:
    file, pdf = tmp_path / "guarantee.html", tmp_path / "guarantee.pdf"
    file.write_text(as_html(settled.session().guarantee()), "utf-8")
    flags = [flag for flag in FLAGS if "debugging" not in flag]
    command = [find_chromium() or "", *flags, f"--user-data-dir={tmp_path / 'profile'}", "--no-pdf-header-footer"]
    told = subprocess.run([*command, f"--print-to-pdf={pdf}", str(file)], capture_output=True, timeout=120, check=False)
    assert told.returncode == 0, told.stderr.decode()
    assert lacking(pdf.read_bytes()) == []
    page.ask("Emulation.setEmulatedMedia", {"media": "print"})
    page.go(file.as_uri())
    assert page.run("return document.documentElement.scrollWidth <= innerWidth")
    assert page.run(LINES.replace("SHORT", str(SHORT))) == 1

"""The documentation builds without a warning, lists every page, and loads nothing from the network."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.docs.pages import DOCS, ROOT

LOADED = re.compile(r"<(?:script|link|img|iframe)\b[^>]*?\b(?:src|href)=\"([^\"]+)\"")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--quiet",
        "--site-dir",
        str(folder),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_is_built(site: Path) -> None:
    built = {page.relative_to(site).with_suffix(".md") for page in site.rglob("*.html")}
    assert built >= {page.relative_to(DOCS) for page in DOCS.rglob("*.md")}


def test_nothing_comes_from_the_network(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert pages
    for page in pages:
        foreign = [link for link in LOADED.findall(page.read_text(encoding="utf-8")) if "//" in link]
        assert not foreign, page
    for style in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(https?:)?//|@import [\"']?https?:", style.read_text(encoding="utf-8")), style


def test_the_navigation_lists_every_page() -> None:
    listed = set(re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE))
    assert listed == {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}

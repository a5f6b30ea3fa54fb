"""The documentation builds without a warning, lists every page, and loads nothing from the network."""

import re
import runpy
from pathlib import Path
from types import ModuleType

import pytest

import lapwing as lw
from tests.support.docs.pages import DOCS, ROOT

LOADED = re.compile(r"<(?:script|link|img|iframe)\b[^>]*?\b(?:src|href)=\"([^\"]+)\"")


@pytest.mark.long
def test_every_page_is_built(site: Path) -> None:
    built = {page.relative_to(site).with_suffix(".md") for page in site.rglob("*.html")}
    assert built >= {page.relative_to(DOCS) for page in DOCS.rglob("*.md")}


@pytest.mark.long
def test_nothing_comes_from_the_network(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert pages
    for page in pages:
        foreign = [link for link in LOADED.findall(page.read_text(encoding="utf-8")) if "//" in link]
        assert not foreign, page
    for style in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(https?:)?//|@import [\"']?https?:", style.read_text(encoding="utf-8")), style


def test_the_page_is_loaded_with_what_is_vendored_and_each_typeface_has_its_licence() -> None:
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert re.search(r"^  font: false\b", config, re.MULTILINE), "a theme's font comes from the network"
    named = re.findall(r"\bassets/[\w./-]+", config)
    assert {"assets/katex/katex.min.js", "assets/katex/katex.min.css", "assets/lapwing.css"} <= set(named)
    styles = [DOCS / name for name in named if name.endswith(".css")]
    files = [
        style.parent / url for style in styles for url in re.findall(r"url\(\"?([^\")]+)", style.read_text("utf-8"))
    ]
    assert len(files) > 20
    missing = [file for file in (*(DOCS / name for name in named), *files) if not file.is_file()]
    assert not missing
    assert all(
        (DOCS / "assets" / name).is_file() for name in ("LICENSE-inter", "LICENSE-iframe-worker", "katex/LICENSE")
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("page", "module"), [("api", lw), ("api-mechanisms", lw.mechanisms), ("api-mechanisms", lw.privacy)]
)
def test_every_public_name_is_shown_with_its_docstring(site: Path, page: str, module: ModuleType) -> None:
    pages = {name: (site / "reference" / f"{name}.html").read_text(encoding="utf-8") for name in ("api", page)}
    shown = {name for text in pages.values() for name in re.findall(r'id="lapwing\.(?:\w+\.)*(\w+)"', text)}
    named = {name for name in getattr(module, "__all__", dir(module)) if callable(getattr(module, name))}
    assert named
    assert not named - shown


@pytest.mark.long
def test_formulas_are_left_to_be_typeset(site: Path) -> None:
    page = (site / "theory" / "guarantee.html").read_text(encoding="utf-8")
    assert re.search(r'<div class="arithmatex">\\\[\s*P\(T \\in S', page)
    for page_file in site.rglob("*.html"):
        text = re.sub(r"<(pre|code|script)\b.*?</\1>", "", page_file.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert "$$" not in text, page_file


def test_the_navigation_lists_every_page() -> None:
    listed = set(re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE))
    assert listed == {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}


@pytest.mark.long
def test_exponents_are_raised_and_code_and_formulas_stay(site: Path) -> None:
    on_page_markdown = runpy.run_path(str(ROOT / "scripts" / "exponents.py"))["on_page_markdown"]
    raised = {
        "e^(−ε)/(1 + e^2ε) and r^|d|·x": "e<sup>−ε</sup>/(1 + e<sup>2ε</sup>) and r<sup>|d|</sup>·x",
        "1 − 2r^((k+1)/2) to (1 + r)^k": "1 − 2r<sup>(k+1)/2</sup> to (1 + r)<sup>k</sup>",
        "`e^(x)` $a^b$ [^1]": "`e^(x)` $a^b$ [^1]",
        "```text\ne^ε\n```": "```text\ne^ε\n```",
    }
    for text, shown in raised.items():
        assert on_page_markdown(text) == shown
    coin = (site / "lab" / "coin.html").read_text(encoding="utf-8")
    assert "e<sup>ε</sup>/(1 + e<sup>ε</sup>)" in coin
    assert "truth with e^ε/(1+e^ε)" in coin, "what the program prints stays"


def test_release_notes_are_the_changelog() -> None:
    hook = runpy.run_path(str(ROOT / "scripts" / "release_notes.py"))
    text = "[a](docs/deploy.md#x) [b](CONTRIBUTING.md) [c](https://example.org)"
    assert hook["from_root_to_page"](text) == "[a](../deploy.md#x) b [c](https://example.org)"
    page = hook["on_page_markdown"]((DOCS / "start" / "release-notes.md").read_text(encoding="utf-8"))
    assert hook["MARK"] not in page
    assert page.count("\n- ") == (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").count("\n- ")
    assert hook["on_page_markdown"]("another page") == "another page"

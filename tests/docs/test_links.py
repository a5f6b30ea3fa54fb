"""Every relative link leads to a file that exists, and to a heading that the file has."""

import re
from pathlib import Path

import pytest

from tests.support.docs.pages import PAGES, ROOT

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def links(page: Path) -> list[str]:
    return LINK.findall(CODE.sub("", page.read_text(encoding="utf-8")))


def headings(page: Path) -> set[str]:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    words = (
        re.sub(r"[^\w\s-]", "", found[1]).strip().lower() for found in re.finditer(r"^#+ (.+)$", text, re.MULTILINE)
    )
    return {re.sub(r"[\s-]+", "-", heading) for heading in words}


def broken(page: Path) -> list[str]:
    """Return the relative links of a page that lead nowhere."""
    found = []
    for link in links(page):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.is_file() or (anchor and anchor not in headings(target)):
            found.append(link)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_resolve(page: Path) -> None:
    assert not broken(page)


def test_a_broken_link_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A page\n\n[here](page.md#a-page) [gone](gone.md) [nowhere](#nowhere) [out](https://example.org)\n"
    )
    assert broken(page) == ["gone.md", "#nowhere"]

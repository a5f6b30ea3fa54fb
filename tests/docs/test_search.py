"""The search of the site: the page that a newcomer wants comes first for the words that newcomers type."""

import json
import re
from pathlib import Path

import pytest

from tests.support.browser.chromium import Page, find_chromium, running
from tests.support.docs.pages import DOCS

WANTED = {
    "quickstart": "start/analyse",
    "faq": "start/faq",
    "choose epsilon": "start/choose-epsilon",
    "glossary": "reference/glossary",
    "install": "how-to/install",
    "password": "start/faq",
    "docker": "deploy",
    "tableau": "how-to/bi-tools",
    "power bi": "how-to/bi-tools",
    "superset": "how-to/bi-tools",
    "join": "how-to/ask-across-tables",
    "null": "reference/sql",
    "median": "start/cookbook",
    "delta": "start/choose-epsilon",
    "budget": "how-to/spend-a-budget",
    "reset budget": "start/faq",
    "error bar": "how-to/read-an-answer",
    "confidence interval": "how-to/read-an-answer",
    "group by": "start/cookbook",
    "histogram": "start/cookbook",
    "csv": "how-to/protect-a-table",
    "excel": "how-to/r-and-excel",
    "postgres": "how-to/connect",
    "spark": "how-to/scale",
    "delta lake": "how-to/connect",
    "s3": "how-to/connect",
    "token": "how-to/serve",
    "login": "how-to/console",
    "sso": "how-to/console",
    "upload": "how-to/upload",
    "dashboard": "how-to/dashboards",
    "publish": "how-to/publish",
    "synthetic data": "how-to/synthesize",
    "machine learning": "how-to/learn",
    "local differential privacy": "how-to/local",
    "federated": "how-to/secure",
    "audit": "how-to/audit",
    "backup": "deploy",
    "upgrade": "operate/upgrade",
    "laplace": "mechanisms/discrete-laplace",
    "gaussian": "mechanisms/rounded-gaussian",
    "terminology": "reference/glossary",
    "clipping": "reference/glossary",
    "anonymization": "start/faq",
    "gdpr": "start/faq",
    "vulnerability": "start/faq",
    "jupyter": "notebooks/first-questions",
    "notebook": "notebooks/first-questions",
    "cheat sheet": "start/cookbook",
    "opendp": "start/beside",
    "tumult": "start/beside",
    "alternatives": "start/beside",
    "snowflake": "start/migrate",
    "hardware": "operate/size",
    "changelog": "start/release-notes",
    "contribute": "architecture",
    "error message": "start/troubleshooting",
    "refused": "start/troubleshooting",
    "k-anonymity": "lab/k-anonymity",
    "security checklist": "start/hardening",
    "deprecation": "reference/versions",
    "rest api": "reference/http",
    "coverage": "reference/sql-coverage",
}
"""What newcomers type, and the page that answers."""

RESULTS = "[...document.querySelectorAll('.md-search-result__item a:first-of-type')]"


def tags_of(text: str) -> set[str]:
    """Return the words by which search finds a page, from the list `tags` at its top."""
    listed = re.match(r"---\n(?:.*\n)*?tags: \[(.+)\]\n(?:.*\n)*?---\n", text)
    return {tag.strip('"') for tag in listed[1].split(", ")} if listed else set()


def without_its_words(pages: dict[str, str]) -> list[str]:
    """Return what newcomers type where no word of it is a tag of the page that they want."""
    return [typed for typed, page in WANTED.items() if not tags_of(pages[page]) & set(typed.split())]


def test_every_page_that_is_wanted_exists_and_names_the_words() -> None:
    assert len(WANTED) >= 40
    pages = {page: (DOCS / f"{page}.md").read_text(encoding="utf-8") for page in WANTED.values()}
    assert without_its_words(pages) == []
    pages["deploy"] = pages["deploy"].replace("docker, ", "")
    assert without_its_words(pages) == ["docker"], "the planted bug: a word that a page lost"


def first_result(page: Page, typed: str) -> str:
    """Type into the search box, and return the page of its first result: keys decide, not the clock."""
    page.run("const box = document.querySelector('.md-search__input'); box.focus(); box.select()")
    page.press("Backspace", 8)
    page.wait(f"!{RESULTS}.length")
    page.ask("Input.insertText", {"text": typed[:-1]})  # search begins when a key is let go
    page.press(typed[-1], ord(typed[-1].upper()), typed[-1])
    page.wait(f"{RESULTS}.length || /^No/.test(document.querySelector('.md-search-result__meta').innerText)")
    found: str = page.run(f"return {RESULTS}[0]?.href ?? ''")
    return found


@pytest.mark.long
@pytest.mark.skipif(not find_chromium(), reason="Chromium is not installed")
def test_the_wanted_page_comes_first(site: Path) -> None:
    with running(find_chromium() or "") as browser:
        page = browser.page()
        page.size(1440, 900)
        page.go((site / "index.html").as_uri())  # search works from the disk, too
        page.run("document.querySelector('label[for=__search]').click()")
        first = {typed: first_result(page, typed).partition("?")[0].partition("#")[0] for typed in WANTED}
    wanted = {typed: (site / f"{name}.html").as_uri() for typed, name in WANTED.items()}
    assert first == wanted, json.dumps({typed: first[typed] for typed in wanted if first[typed] != wanted[typed]})

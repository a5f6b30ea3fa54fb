"""The glossary: each word once, a short meaning, and the same meaning where another page first uses the word."""

import re
from pathlib import Path

import glossary
import pytest

from tests.support.docs.pages import DOCS


def test_every_entry_has_a_meaning_and_a_page() -> None:
    text = (DOCS / "reference" / "glossary.md").read_text(encoding="utf-8")
    assert len(glossary.entries()) == len(re.findall(r"^\*\*", text, re.MULTILINE)) > 60
    assert [entry.names for entry in glossary.entries() if len(entry.meaning.split()) > 26] == []
    words = [name.lower() for entry in glossary.entries() for name in (*entry.names, *entry.others)]
    assert sorted(words) == sorted(set(words)), "a word with two meanings"
    assert set(words) >= set(glossary.ORDINARY.pattern.split("|"))
    anchors = [entry.anchor for entry in glossary.entries()]
    assert len(set(anchors)) == len(anchors)


def test_the_first_use_of_a_word_shows_its_meaning() -> None:
    shown = glossary.with_meanings("<p>A ledger is durable.<br>Two Ledgers, subledger, ledger-file.</p>")
    assert shown == (
        '<p>A <abbr title="The durable record of what was spent." tabindex="0">ledger</abbr> is durable.<br>'
        "Two Ledgers, subledger, ledger-file.</p>"
    )
    assert 'title="The range' in glossary.with_meanings("<p>error bars</p>"), "the plural of another word for it"


@pytest.mark.parametrize(
    "text",
    [
        "<h2>The ledger</h2>",
        '<a href="x.html">the <em>ledger</em></a>',
        "<pre><code>ledger</code></pre>",
        '<span class="arithmatex">ledger</span>',
        "<table><tr><td>ledger</td></tr></table>",
        '<p title="ledger">group, limit, Delta Lake</p>',
        "<!-- the ledger -->",
    ],
)
def test_headings_links_code_formulas_and_ordinary_words_stay(text: str) -> None:
    assert glossary.with_meanings(text) == text
    assert glossary.with_meanings(f"{text}<p>ledger</p>").startswith(f"{text}<p><abbr "), "the next paragraph is prose"


@pytest.mark.long
def test_the_site_shows_meanings(site: Path) -> None:
    page = (site / "reference" / "glossary.html").read_text(encoding="utf-8")
    assert re.findall(r'<dt id="([^"]+)"', page) == [entry.anchor for entry in glossary.entries()]
    assert "<abbr" not in page
    start = (site / "start" / "own.html").read_text(encoding="utf-8")
    assert 3 <= len(re.findall(r'<abbr title="[^"]+" tabindex="0">', start)) <= 20

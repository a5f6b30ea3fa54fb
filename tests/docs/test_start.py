"""The quickstarts: they are easy to read, each is behind a door of the front page, and the one of the service runs."""

import os
import re
import subprocess
import sys
from pathlib import Path
from statistics import mean

import prose
import pytest
import reading_ease

from tests.support.docs.pages import DOCS, blocks, prepare
from tests.support.engines.standalone import free_port

DOORS = {
    "I analyse data": "analyse",
    "I own data": "own",
    "I run the service": "run",
    "I teach or research": "teach",
}


def ease_of(texts: list[str]) -> float:
    """Return Flesch's reading ease of sentences as one text."""
    words = [re.findall(reading_ease.WORD, text.lower()) for text in texts]
    every = [word for each in words for word in each]
    length = mean(len(each) for each in words if each)
    return 206.835 - 1.015 * length - 84.6 * mean(map(reading_ease.syllables, every))


@pytest.mark.parametrize("name", DOORS.values())
def test_a_quickstart_is_plain_english(name: str) -> None:
    page = DOCS / "start" / f"{name}.md"
    sentences = [*prose.sentences_of_page(page)]
    assert len(sentences) > 30
    assert ease_of([sentence.text for sentence in sentences]) >= 60
    assert [one for one in sentences if any(rule(one) for rule in prose.RULES.values())] == []


def test_hard_english_is_noticed() -> None:
    assert ease_of(["Differential privacy guarantees deniability to participating individuals."]) < 60


def test_the_front_page_has_four_doors() -> None:
    front = (DOCS / "index.md").read_text(encoding="utf-8")
    assert re.findall(r"^\*\*\[(.+)\]\(start/(\w+)\.md\)\*\*$", front, re.MULTILINE) == [*DOORS.items()]
    assert len([block for block in blocks(DOCS / "index.md") if block.language == "console"]) == 1


@pytest.mark.long
def test_the_quickstart_of_the_service_runs(tmp_path: Path) -> None:
    """The page's own lines, in a folder like that of `lapwing demo`, but for its port."""
    page = DOCS / "start" / "run.md"
    prepare(page, tmp_path)
    lines = [block.text for block in blocks(page) if block.language == "sh"][1:]  # the first one installs
    assert "lapwing serve" in lines[0]
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "lapwing"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m lapwing "$@"\n')
    command.chmod(0o755)
    script = f"""
set -eu
trap 'kill $(jobs -p); wait' EXIT
{lines[0]}
until curl -s -o service.html http://127.0.0.1:8000/; do sleep 0.2; done
export LAPWING_PASSWORD="$LAPWING_CURATOR_PASSWORD"
{"".join(lines[1:])}
""".replace("8000", str(free_port()))
    known = {name: value for name, value in os.environ.items() if not name.startswith("LAPWING_")}
    known["PATH"] = f"{command.parent}:{known['PATH']}"
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=known, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^female,\d+,\d+,\d+$", done.stdout, re.MULTILINE), done.stdout + done.stderr
    assert "alice (limit: 20 %)" in " ".join(done.stderr.split())


TOP = sorted([*DOCS.glob("*.md"), *(DOCS / "start").glob("*.md"), DOCS.parent / "README.md"])
LONGEST = 90
"""Words of a paragraph."""


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs and the items of lists of a page, without code and tables."""
    prose_only = re.sub(r"```.*?```|<!--.*?-->|\A---\n.*?\n---\n|^\|.*$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", prose_only)


def test_top_pages_are_plain_english_in_short_paragraphs() -> None:
    sentences = [sentence for page in TOP for sentence in prose.sentences_of_page(page)]
    flagged = [one for one in sentences if any(rule(one) for rule in prose.RULES.values())]
    assert len(sentences) > 2000
    assert len(flagged) * 200 <= len(sentences), flagged
    assert [each for page in TOP for each in paragraphs(page.read_text("utf-8")) if len(each.split()) > LONGEST] == []
    assert len(paragraphs("a\nb\n\n- c\n- d\n1. e")) == 4, "items stand by themselves"
    assert "code" not in "".join(paragraphs("a\n```\ncode\n```\n| code |\n"))

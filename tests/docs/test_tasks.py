"""Tasks of four readers: from the front page, following links of the texts only, each finds its answer.

Each step is the words of a link on the page before. A task has at most three steps, and its answer stands on the last
page. Navigation and search are not used: they are other ways to the same pages.
"""

import re
from pathlib import Path

import pytest

from tests.support.docs.pages import DOCS

TASKS = {
    "newcomer": {
        "install it": (["Install"], r"python3 -m venv"),
        "know what differential privacy is": (["questions and answers"], r"promise about results with noise"),
        "know what ±35 means": (["I analyse data", "Read a result"], r"95"),
        "use it in a notebook": (["I analyse data", "a notebook"], r"notebook first-questions.ipynb"),
        "know why a query was refused": (["I analyse data", "Troubleshooting by message"], r"privacy unit"),
    },
    "statistician": {
        "know if the ± covers sampling": (["I analyse data", "Read a result"], r"### The population|## The population"),
        "publish tables each month": (["I own data", "Release a set of tables", "Release tables each month"], r"month"),
        "fit a model": (["I analyse data", "Fit a model"], r"regression"),
        "compare errors with OpenDP": (["Lapwing beside other systems", "Errors beside other systems"], r"OpenDP"),
        "choose noise, with its proof": (["I teach or research", "Which mechanism"], r"Gaussian"),
    },
    "security officer": {
        "know what leaves the machine": (["I run the service", "Data flow on one page"], r"leave the machine"),
        "read the threats": (["I run the service", "Data flow on one page", "Threats"], r"attack"),
        "check a signature": (["I run the service", "Hardening checklist", "Upgrade"], r"minisign -V"),
        "report a vulnerability": (["questions and answers"], r"Report a vulnerability"),
        "know what is not promised": (["Limitations"], r"severest"),
    },
    "developer": {
        "call it over HTTP": (["I run the service", "HTTP"], r"POST /v1"),
        "call it from Python": (["I analyse data", "Use it from Python", "Python reference"], r"`connect`"),
        "know which SQL works": (["I analyse data", "SQL"], r"GROUP BY"),
        "know which names stay": (["I run the service", "Versions and deprecation"], r"deprecat"),
        "change the code": (["I teach or research", "Architecture"], r"How to add"),
    },
}


def arrives(steps: list[str], pages: Path = DOCS) -> Path:
    """Follow links by their words from the front page, and return the page at the end."""
    page = pages / "index.md"
    for words in steps:
        links = re.findall(r"\[([^\]]+)\]\(([^)#]+\.md)[^)]*\)", page.read_text(encoding="utf-8"))
        found = {" ".join(label.replace("`", "").split()): target for label, target in links}
        assert words in found, f"{page.name} has no link {words!r}; it has {sorted(found)}"
        page = (page.parent / found[words]).resolve()
    return page


@pytest.mark.parametrize(("reader", "task"), [(reader, task) for reader, tasks in TASKS.items() for task in tasks])
def test_a_reader_finds_the_answer(reader: str, task: str) -> None:
    steps, answer = TASKS[reader][task]
    assert 1 <= len(steps) <= 3
    assert re.search(answer, arrives(steps).read_text(encoding="utf-8"))


def test_a_missing_link_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "index.md").write_text("[Install](how-to/install.md)")
    assert arrives(["Install"], tmp_path).name == "install.md"
    with pytest.raises(AssertionError, match="no link 'Glossary'"):
        arrives(["Glossary"], tmp_path)


def test_there_are_five_tasks_for_each_reader() -> None:
    assert [len(tasks) for tasks in TASKS.values()] == [5, 5, 5, 5]

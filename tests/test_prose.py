"""The rules of `docs/contributing/style.md` that a pattern holds: each finds its example, and not what it becomes."""

import re
from pathlib import Path

import prose
import pytest

PAGE = Path(prose.ROOT, "docs/contributing/style.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| ([a-z ]+) \| (.+?) \| (.+?) \|$", PAGE.split("## Words")[0], re.MULTILINE)
EXAMPLES = {rule: (before, after) for rule, before, after in ROWS if rule in prose.RULES and rule != "long"}


def broken(text: str, *, heading: bool = False) -> set[str]:
    return {
        rule
        for sentence in prose.split("page:1", text, heading=heading)
        for rule, breaks in prose.RULES.items()
        if breaks(sentence)
    }


def test_the_page_shows_every_rule() -> None:
    assert EXAMPLES.keys() == prose.RULES.keys() - {"long"}


@pytest.mark.parametrize("rule", EXAMPLES)
def test_a_rule_finds_its_example_alone(rule: str) -> None:
    before, after = EXAMPLES[rule]
    heading = rule == "clause as heading"
    assert rule in broken(before, heading=heading)
    assert broken(after, heading=heading) == set()


def test_a_question_is_no_clause_without_a_noun() -> None:
    assert broken("What does a query cost?", heading=True) == set()


def test_long_is_more_than_25_words() -> None:
    assert broken(" ".join(["word"] * 25)) == set()
    assert broken(" ".join(["word"] * 26)) == {"long"}


def test_values_and_code_are_one_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prose, "PACKAGE", tmp_path)
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    (tmp_path / "a.html").write_text(
        '<p>A {{ x if y }} row.{% if z %}Take it along{% endif %}</p><a title="Shut out">b</a>'
    )
    (tmp_path / "a.py").write_text('"""Module."""\nx = f"Nobody {x} is told of it"\ny = "SELECT a FROM b"\n')
    assert [sentence.text for sentence in prose.interface()] == ["A x row.", "Take it along", "Shut out"]
    assert [(one.text, one.place) for one in prose.messages()] == [("Nobody x is told of it", "a.py:2")]

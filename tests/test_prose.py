"""The rules of `docs/contributing/style.md` that a pattern holds: each finds its example, and not what it becomes."""

import ast
import re
from pathlib import Path

import prose
import pytest
import reading_ease

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


def test_reading_ease_is_flesch_s_formula() -> None:
    # Five words of one part each, by hand: 206.835 - 1.015 * 5 - 84.6 * 5 / 5.
    assert reading_ease.reading_ease("The noise is a draw.") == pytest.approx(117.16)
    # Pri-va-cy bud-get: two words of five parts.
    assert reading_ease.reading_ease("Privacy budget") == pytest.approx(206.835 - 2.03 - 84.6 * 5 / 2)
    assert reading_ease.reading_ease("1,000 %") is None


def test_a_baseline_is_only_improved() -> None:
    none = dict.fromkeys(prose.HELD["docs"], 0)
    hard, easy = ("Differential privacy guarantees deniability.", "The noise is a draw.")
    harder, easier = ({**none, prose.EASE: reading_ease.median_ease([text])} for text in (hard, easy))
    assert easier[prose.EASE] == 117
    assert list(prose.complaints({"docs": easier}, {"docs": harder})) == []
    assert list(prose.complaints({"docs": easier}, {})) == []
    assert len(list(prose.complaints({"docs": harder}, {"docs": easier}))) == 2
    assert len(list(prose.complaints({"docs": easier | {"long": 1}}, {"docs": easier}))) == 3


def test_a_sentence_may_begin_with_code() -> None:
    sentences = list(prose.split("page:1", "A price. x is the loss. See x: it follows."))
    assert [each.text for each in sentences] == ["A price.", "x is the loss.", "See x: it follows."]


MODULES = {
    "src/lapwing/__init__.py": (
        '"""Root."""\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from lapwing import room\n'
        "    from lapwing.inner import Shown as Shown\n"
    ),
    "src/lapwing/inner.py": (
        '"""Inner."""\n'
        'class Base:\n    """Base class."""\n    def inherited(self):\n        """Inherited."""\n'
        'class Shown(Base):\n    """Shown."""\n    part: int\n    """Part."""\n'
        '    def member(self):\n        """Member."""\n        def nested():\n            """Nested."""\n'
        '    def _hidden(self):\n        """Hidden."""\n'
        'def unnamed():\n    """Unnamed."""\n'
    ),
    "src/lapwing/room/__init__.py": '"""Room."""\nfrom lapwing.room.files import use\n__all__ = ["use"]\n',
    "src/lapwing/room/files.py": '"""Files."""\ndef use():\n    """Use."""\ndef other():\n    """Other."""\n',
}


def texts_of(*names: str) -> set[str]:
    public = prose.Public({path: ast.parse(text) for path, text in MODULES.items()})
    for name in names:
        public.add(name)
    return {str(constant.value) for _, constant in public.docstrings.values()}


def test_the_api_is_what_packages_export_and_pages_render() -> None:
    exported = {"Root.", "Shown.", "Part.", "Member.", "Base class.", "Inherited.", "Room.", "Use."}
    assert texts_of("lapwing") == exported
    assert texts_of("lapwing", "lapwing.inner.unnamed") == exported | {"Unnamed."}
    assert texts_of("lapwing.room.files") == {"Files.", "Use.", "Other."}
    assert texts_of("lapwing.room.missing", "elsewhere.thing") == set()


@pytest.mark.long
def test_every_docstring_is_of_one_source() -> None:
    api, internals = list(prose.api()), list(prose.internals())
    assert any(each.place.startswith("src/lapwing/session.py") for each in api)
    assert any(each.place.startswith("src/lapwing/query/") for each in internals)
    assert not any(each.place.startswith("src/lapwing/query/") for each in api)


def test_values_and_code_are_one_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prose, "PACKAGE", tmp_path)
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    (tmp_path / "a.html").write_text(
        '<p>A {{ x if y }} row.{% if z %}Take it along{% endif %}</p><a title="Shut out">b</a>'
    )
    (tmp_path / "a.py").write_text('"""Module."""\nx = f"Nobody {x} is told of it"\ny = "SELECT a FROM b"\n')
    assert [sentence.text for sentence in prose.interface()] == ["A x row.", "Take it along", "Shut out"]
    assert [(one.text, one.place) for one in prose.messages()] == [("Nobody x is told of it", "a.py:2")]

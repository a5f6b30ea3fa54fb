"""Every recipe of the cookbook runs, for the cost that the page states, and gives the result that the page shows."""

from pathlib import Path

import pytest

import lapwing as lw
from tests.support.docs.pages import DOCS, blocks, inside, lies, prepare, same

PAGE = DOCS / "start" / "cookbook.md"
EPSILON = 0.3
SPREAD = 1.0
"""By which part half-widths may be off: many follow from several noisy numbers."""


def recipes() -> list[tuple[str, str]]:
    listed = blocks(PAGE)
    assert [block.language for block in listed] == ["sql", "text"] * (len(listed) // 2)
    return [(query.text, result.text) for query, result in zip(listed[::2], listed[1::2], strict=True)]


def test_there_are_thirty_questions() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert len(recipes()) == text.count("\n### ") == 30
    assert text.count("?\n\n```sql") == 30
    assert f"epsilon (ε) {EPSILON}" in text


@pytest.mark.long
def test_each_recipe_gives_what_it_shows(tmp_path: Path) -> None:
    prepare(PAGE, tmp_path)
    with inside(tmp_path), lw.connect("lapwing.toml") as session:
        share = session.explain(recipes()[0][0], epsilon=EPSILON).share_of_remaining
        assert f"{100 * share:.1f} %" in PAGE.read_text(encoding="utf-8")
        answers = [(query, shown, str(session.sql(query, epsilon=EPSILON))) for query, shown in recipes()]
    found = [(query, shown, real) for query, shown, real in answers if not same(shown, real)]
    assert found == []
    assert [lie for _, shown, real in answers for lie in lies(shown, real, spread=SPREAD)] == []

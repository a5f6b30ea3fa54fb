"""The page of the architecture shows the counts that there are, and none is beyond its bound."""

from pathlib import Path

import architecture_figures as figures
import pytest


@pytest.mark.long
def test_the_page_shows_what_is_counted() -> None:
    counts = figures.from_texts()
    assert len(counts) > 12
    assert figures.complaints(counts, figures.shown()) == []


def test_what_grew_or_is_stale_is_noticed() -> None:
    """The planted bugs: a room more, and a page of another commit."""
    page = figures.shown()
    assert figures.complaints(page, page) == []
    assert len(figures.complaints({**page, "rooms": page["rooms"] + 1}, page)) == 1
    assert len(figures.complaints(page, {**page, "private patches": page["private patches"] // 2})) == 1


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("from lapwing.query.plan.plan import Plan, Question", ["query.plan.plan.Plan", "query.plan.plan.Question"]),
        (
            "from lapwing.ledger import (\n    exporting,  # a module\n    reading,\n)",
            ["ledger.exporting", "ledger.reading"],
        ),
        ("    from lapwing import noise  # here: few draw", ["noise"]),
        ("import lapwing.noise as exact", ["noise"]),
        ('"""from lapwing"""', []),
    ],
)
def test_what_a_file_imports(text: str, names: list[str]) -> None:
    assert list(figures.imports_of(text)) == names


def test_rooms_arrows_and_circles() -> None:
    texts = {
        figures.SOURCE / "a" / "one.py": "from lapwing.b.two import x\nfrom lapwing.a.other import y",
        figures.SOURCE / "b" / "two.py": "from lapwing import loose",
        figures.SOURCE / "loose.py": "from lapwing.a.one import z",
        figures.SOURCE / "top.py": "from lapwing.b import two",
        figures.SOURCE / "__init__.py": "from lapwing.top import u",
    }
    rooms, arrows = figures.rooms_and_arrows(texts)
    assert rooms == {"a", "b", "loose", "top"}
    assert arrows == {("a", "b"), ("b", "loose"), ("loose", "a"), ("top", "b")}
    assert figures.circles_of(arrows) == 3
    assert figures.circles_of(arrows - {("loose", "a")}) == 0


def test_how_many_lines_functions_have(tmp_path: Path) -> None:
    file = tmp_path / "some.py"
    file.write_text('@cache\ndef f():\n    """Say."""\n    a = 1\n\n    return a\n\n\ndef g(): ...\n')
    assert figures.lines_of_functions(file) == {1: 3, 9: 1}

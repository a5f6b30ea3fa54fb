"""The map of the code names files that there are, and every room that there is."""

import re
from pathlib import Path

from tests.support.docs.pages import DOCS, ROOT

PAGE = (DOCS / "architecture.md").read_text(encoding="utf-8")
FIRST_STEPS = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PARTS = ("Context", "Decision", "Consequences", "Alternatives")
SOURCE = ROOT / "src" / "lapwing"
# What stands in the page as code and looks like a path: `query/bind/bind.py`, `engines/duckdb`, `tests/`.
_PATH = re.compile(r"`([a-z_]+(?:/[a-z_]+)*(?:\.py|/)|[a-z_]+(?:/[a-z_]+)+)`")


def missing(page: str) -> list[str]:
    """Return the paths that a page names and that are not there."""
    return [path for path in _PATH.findall(page) if not any((root / path).exists() for root in (SOURCE, ROOT))]


def test_every_file_that_is_named_is_there() -> None:
    assert len(_PATH.findall(PAGE)) > 45
    assert missing(PAGE) == []


def test_a_file_that_moved_is_noticed() -> None:
    """The planted bug: a name that was true once."""
    assert set(missing(PAGE.replace("query/bind/bind.py", "query/binding.py"))) == {"query/binding.py"}


def test_every_room_is_on_the_map() -> None:
    def named(path: Path) -> bool:
        return f"`{path.name}`" in PAGE

    rooms = [path for path in SOURCE.iterdir() if path.is_dir() and (path / "__init__.py").exists()]
    assert [room.name for room in rooms if not named(room)] == []


def test_the_first_steps_say_how_long_the_tests_of_every_room_take() -> None:
    rooms = {file.parent.name for file in (ROOT / "tests").glob("*/test_*.py")}
    named = set(re.findall(r"`(\w+)`", FIRST_STEPS.partition("| time | rooms |")[2].partition("\n\n")[0]))
    assert named == rooms


def unlike_a_record(text: str) -> list[str]:
    """Return the parts of a decision record that a text lacks, or has in another order."""
    found = [match[1] for match in re.finditer(r"^\*\*(\w+)\.\*\*", text, re.MULTILINE)]
    return [part for place, part in enumerate(PARTS) if found[place : place + 1] != [part]]


def test_every_decision_is_listed_and_has_its_parts() -> None:
    index = (DOCS / "decisions" / "index.md").read_text(encoding="utf-8")
    records = [file for file in sorted((DOCS / "decisions").glob("*.md")) if file.name != "index.md"]
    assert len(records) >= 12
    for file in records:
        text = file.read_text(encoding="utf-8")
        number, title = re.match(r"# (\d+) (.+)\n", text).groups()  # type: ignore[union-attr]
        assert f"| {number} | [{title}]({file.name}) |" in index
        assert unlike_a_record(text) == [], file.name


def test_a_record_without_its_alternatives_is_noticed() -> None:
    text = (DOCS / "decisions" / "refuse.md").read_text(encoding="utf-8")
    assert unlike_a_record(text.replace("**Alternatives.**", "Or")) == ["Alternatives"]

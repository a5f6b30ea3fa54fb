"""The map of the code names files that there are, and every room that there is."""

import re
from pathlib import Path

from tests.support.docs.pages import DOCS, ROOT

PAGE = (DOCS / "architecture.md").read_text(encoding="utf-8")
SOURCE = ROOT / "src" / "lapwing"
# What stands in the page as code and looks like a path: `query/bind.py`, `engines/duckdb`, `tests/`.
_PATH = re.compile(r"`([a-z_]+(?:/[a-z_]+)*(?:\.py|/)|[a-z_]+(?:/[a-z_]+)+)`")


def missing(page: str) -> list[str]:
    """Return the paths that a page names and that are not there."""
    return [path for path in _PATH.findall(page) if not any((root / path).exists() for root in (SOURCE, ROOT))]


def test_every_file_that_is_named_is_there() -> None:
    assert len(_PATH.findall(PAGE)) > 45
    assert missing(PAGE) == []


def test_a_file_that_moved_is_noticed() -> None:
    """The planted bug: a name that was true once."""
    assert set(missing(PAGE.replace("query/bind.py", "query/binding.py"))) == {"query/binding.py"}


def test_every_room_is_on_the_map() -> None:
    def named(path: Path) -> bool:
        return f"`{path.name}`" in PAGE

    rooms = [path for path in SOURCE.iterdir() if path.is_dir() and (path / "__init__.py").exists()]
    assert [room.name for room in rooms if not named(room)] == []

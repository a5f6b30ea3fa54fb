"""Everything that the proof index names exists, and nothing that promises privacy lacks a row."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from proof_index import GROUPS, PAGE, ROOT, ROWS, with_table
from proof_rows import Row

from tests.docs.test_links import headings
from tests.support.docs.pages import DOCS

SOURCE = ROOT / "src" / "lapwing"
ROOMS = ("mechanisms", "privacy", "graphs", "local", "monitors", "secure", "holdout", "generalisation")
NOT_CONVERSIONS = {"grid_up", "grid_down", "rounded_up", "check_adds_up"}
"""They round numbers or refuse losses; no measure becomes another one."""
WITHOUT_TWIN = {"NoNoise"}
"""What draws nothing and reads no data, so that no bug can be planted. Nothing may be added."""
TEXT = PAGE.read_text(encoding="utf-8")


@cache
def names_of(path: Path, *kinds: type[ast.ClassDef] | type[ast.FunctionDef]) -> list[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node.name for node in ast.walk(tree) if isinstance(node, kinds)]


def promises(node: ast.Module | ast.ClassDef | ast.FunctionDef) -> bool:
    """Whether a docstring states a guarantee of its own: not that there is none, and not that of another name."""
    stated = (ast.get_docstring(node) or "").partition("Guarantee:")[2].split()[:2]
    return bool(stated) and stated[0].strip(",.") not in ("As", "See", "None") and stated != ["No", "privacy."]


def loses(node: ast.AST) -> bool:
    """Whether a class states its loss, and is no protocol that others fulfil."""
    if not isinstance(node, ast.ClassDef) or "Protocol" in ast.dump(ast.Tuple(node.bases)):
        return False
    return states(node, "loss")


def states(node: ast.ClassDef, method: str) -> bool:
    return method in {part.name for part in node.body if isinstance(part, ast.FunctionDef)}


def promised_in(room: str) -> Iterator[str]:
    """Yield what states a guarantee in a room, and of `mechanisms` what states a loss."""
    for path in sorted((SOURCE / room).rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        code = str(path.relative_to(SOURCE))
        if promises(tree) and path.name != "__init__.py":
            yield code
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and (
                promises(node) or (room == "mechanisms" and loses(node))
            ):
                yield f"{code}:{node.name}"


def converting() -> Iterator[str]:
    """Yield the conversions and the filters: what rounds an amount of loss up or down, and what they are made of."""
    for path in sorted((SOURCE / "privacy").glob("*.py")):
        functions = ast.parse(path.read_text(encoding="utf-8")).body
        for name in (node.name for node in functions if isinstance(node, ast.FunctionDef)):
            whole = path.stem in ("conversions", "filters")
            if not name.startswith("_") and name not in NOT_CONVERSIONS and (whole or name.endswith(("_up", "_down"))):
                yield f"privacy/{path.name}:{name}"


def bounding() -> Iterator[str]:
    """Yield the relations: what bounds the rows of a unit."""
    for path in sorted((SOURCE / "query" / "relations").glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and path.name != "node.py" and states(node, "rows_per_unit"):
                yield f"query/relations/{path.name}:{node.name}"


@cache
def owed() -> frozenset[str]:
    """Return what must have a row: mechanisms, relations, conversions, filters, and what states a guarantee."""
    return frozenset({*converting(), *bounding(), *(code for room in ROOMS for code in promised_in(room))})


def missing(rows: tuple[Row, ...]) -> frozenset[str]:
    return owed() - {row.code for row in rows}


def test_the_page_shows_what_is_so() -> None:
    assert with_table(TEXT) == TEXT, "python scripts/proof_index.py --write"


def test_nothing_that_promises_privacy_lacks_a_row() -> None:
    assert missing(ROWS) == set()
    assert len(owed()) > 130


@pytest.mark.parametrize("group", GROUPS)
def test_a_row_that_is_left_out_is_noticed(group: str) -> None:
    """The planted bug."""
    needed = [row for row in GROUPS[group] if row.code in owed()]
    for row in needed[:1]:
        assert missing(tuple(other for other in ROWS if other != row)) == {row.code}


def test_rows_are_one_for_each_name() -> None:
    assert len({row.code for row in ROWS}) == len(ROWS)
    assert {(row.code.partition(":")[2] or Path(row.code).name) for row in ROWS if ":" not in row.twin} == WITHOUT_TWIN


@pytest.mark.parametrize("row", ROWS, ids=[row.code for row in ROWS])
def test_what_a_row_names_is_there(row: Row) -> None:
    path, _, name = row.code.partition(":")
    assert (SOURCE / path).exists()
    assert not name or name in names_of(SOURCE / path, ast.ClassDef, ast.FunctionDef)
    page, _, heading = row.theorem.partition("#")
    assert (DOCS / page).exists()
    assert not heading or heading in headings(DOCS / page)
    test, _, twin = row.twin.partition(":")
    assert not twin or twin in names_of(ROOT / "tests" / test, ast.FunctionDef)
    assert (ROOT / "tests" / test).exists()
    if row.machine:
        file, _, theorem = row.machine.partition(".")
        assert f"Theorem {theorem} " in (ROOT / "proofs" / f"{file}.v").read_text(encoding="utf-8").replace(":", " :")

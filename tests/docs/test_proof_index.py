"""Everything that the proof index names exists, and nothing that promises privacy lacks a row."""

import ast
import inspect
from pathlib import Path

import pytest
from proof_index import GROUPS, PAGE, ROOT, ROWS, Row, with_table

from lapwing import mechanisms
from tests.docs.test_links import headings
from tests.support.docs.pages import DOCS

SOURCE = ROOT / "src" / "lapwing"
CONVERSIONS = (
    "conversions", "gaussian_epsilon", "gaussian_profile", "concentrated_profile", "pure_concentrated", "pure_profile",
    "laplace_implies", "bounded_range",
)  # fmt: skip
WITHOUT_TWIN = {
    "zcdp_delta_up", "zcdp_epsilon_up", "pure_delta_up", "bounded_range_down",
}  # fmt: skip
"""What is compared with other formulas, and has no test with a bug planted. Nothing may be added."""
TEXT = PAGE.read_text(encoding="utf-8")


def names_of(path: Path, kind: type[ast.ClassDef] | type[ast.FunctionDef]) -> list[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node.name for node in tree.body if isinstance(node, kind)]


def owed() -> set[str]:
    """Return what must have a row: mechanisms with a loss, relations, conversions, filters."""
    exported = {name: getattr(mechanisms, name) for name in mechanisms.__all__}
    losing = {n for n, v in exported.items() if inspect.isclass(v) and hasattr(v, "loss") and not is_protocol(v)}
    relations = set[str]()
    for path in sorted((SOURCE / "query" / "relations").glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and path.name != "node.py":
                bound = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
                relations |= {node.name} if "rows_per_unit" in bound else set()
    decided = {
        name
        for file in (*CONVERSIONS, "filters")
        for name in names_of(SOURCE / "privacy" / f"{file}.py", ast.FunctionDef)
        if not name.startswith("_") and (file in ("conversions", "filters") or name.endswith(("_up", "_down")))
    }
    return losing | relations | decided


def is_protocol(value: type) -> bool:
    return bool(getattr(value, "_is_protocol", False))


def missing(rows: tuple[Row, ...]) -> set[str]:
    return owed() - {row.code.partition(":")[2] for row in rows}


def test_the_page_shows_what_is_so() -> None:
    assert with_table(TEXT) == TEXT, "python scripts/proof_index.py --write"


def test_nothing_that_promises_privacy_lacks_a_row() -> None:
    assert missing(ROWS) == set()
    assert len(owed()) > 35


@pytest.mark.parametrize("group", GROUPS)
def test_a_row_that_is_left_out_is_noticed(group: str) -> None:
    """The planted bug."""
    needed = [row for row in GROUPS[group] if row.code.partition(":")[2] in owed()]
    for row in needed[:1]:
        assert missing(tuple(other for other in ROWS if other != row)) == {row.code.partition(":")[2]}


@pytest.mark.parametrize("row", ROWS, ids=[row.code for row in ROWS])
def test_what_a_row_names_is_there(row: Row) -> None:
    path, _, name = row.code.partition(":")
    assert name in names_of(SOURCE / path, ast.ClassDef) + names_of(SOURCE / path, ast.FunctionDef)
    page, _, heading = row.theorem.partition("#")
    assert (DOCS / page).exists()
    assert not heading or heading in headings(DOCS / page)
    test, _, twin = row.twin.partition(":")
    assert twin in names_of(ROOT / "tests" / test, ast.FunctionDef) or (not twin and name in WITHOUT_TWIN)
    assert (ROOT / "tests" / test).exists()
    if row.machine:
        file, _, theorem = row.machine.partition(".")
        assert f"Theorem {theorem} " in (ROOT / "proofs" / f"{file}.v").read_text(encoding="utf-8").replace(":", " :")

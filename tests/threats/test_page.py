"""The page of threats lists all forty, and names tests that exist; every test here is named there."""

import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = Path(__file__).parents[2] / "docs" / "theory" / "threats.md"
FORTY = range(1, 41)


def promised(page: str) -> dict[int, set[str]]:
    """Return the tests that a page names, by threat."""
    rows = (row for row in page.splitlines() if row.startswith("| T"))
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    return {int(number.removeprefix("T")): set(re.findall(r"`(test_\w+)`", tests)) for number, _, _, tests in cells}


def check(page: str) -> None:
    files = (file.read_text(encoding="utf-8") for file in HERE.glob("test_*.py"))
    tests = {name for text in files for name in re.findall(r"^def (test_t\d\d_\w+)\(", text, re.MULTILINE)}
    listed = promised(page)
    assert sorted(listed) == list(FORTY)
    for number, named in listed.items():
        assert named, number
        assert named <= tests
        assert all(name.startswith(f"test_t{number:02}_") for name in named)
        of_its_own = {name for name in tests if name.startswith(f"test_t{number:02}_")}
        assert named | {name for name in of_its_own if "twin" in name or "any_other" in name} == of_its_own


def test_all_forty_are_listed_with_their_tests() -> None:
    check(PAGE.read_text(encoding="utf-8"))


def test_twin_a_page_that_leaves_one_out_or_names_another_test_is_found() -> None:
    page = PAGE.read_text(encoding="utf-8")
    without = "\n".join(row for row in page.splitlines() if not row.startswith("| T27"))
    for wrong in (without, page.replace("test_t30_reconstruction", "test_t30_something_else")):
        try:
            check(wrong)
        except AssertionError:
            continue
        raise AssertionError("not noticed")

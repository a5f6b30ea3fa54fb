"""Tables that scripts make: what an attacker can guess by the budget, and how much public SQL is answered."""

import math
import re
from fractions import Fraction
from statistics import NormalDist

import guess_table
import pytest
import sql_coverage

from lapwing.privacy import loss_for
from lapwing.privacy.measures import GaussianDP
from tests.support.docs.pages import DOCS


def test_the_page_has_the_table_of_guesses() -> None:
    page = guess_table.PAGE.read_text(encoding="utf-8")
    assert guess_table.written(page) == page, "run `python scripts/guess_table.py --write`"
    changed = page.replace("| 1 | 5", "| 1 | 4")
    assert changed != page
    assert guess_table.written(changed) == page, "the planted bug: a number of another day"
    with pytest.raises(ValueError, match="0 tables"):
        guess_table.written("")


def test_guesses_are_those_of_the_formulas() -> None:
    for row in guess_table.rows():
        epsilon, gaussian, pure, factor = (float(cell.strip(" ×\n").replace(",", "")) for cell in row.split("|")[1:-1])
        loss = loss_for("gdp", Fraction(str(epsilon)), guess_table.DELTA)
        assert isinstance(loss, GaussianDP)
        assert 0 <= gaussian - 100 * NormalDist().cdf(float(loss.mu) / 2) < 0.11
        assert 0 <= pure - 100 / (1 + math.exp(-epsilon)) < 0.11
        assert 1 <= factor / math.exp(epsilon) < 1.01


def test_the_page_of_coverage_has_every_collection() -> None:
    page = sql_coverage.SQL.read_text(encoding="utf-8")
    found = sql_coverage.collections(page)
    assert len(found) == len(
        re.findall(r"^\| .+ \| \d+ \| .+ \|$", page.partition(sql_coverage.HEADER)[2], re.MULTILINE)
    )
    assert len(found) >= 12
    assert len({each.name for each in found}) == len(found)
    assert all(each.most <= each.queries for each in found)
    assert sum(each.answered is None for each in found) == 1
    assert sql_coverage.MARK in (DOCS / "reference" / "sql-coverage.md").read_text(encoding="utf-8")
    shown = sql_coverage.on_page_markdown(f"a\n\n{sql_coverage.MARK}\n")
    assert sql_coverage.MARK not in shown
    assert sql_coverage.on_page_markdown("another page") == "another page"


def test_counts_are_read_as_they_are_written() -> None:
    rows = """| collection | queries | answered | refused |
|---|---|---|---|
| A, of 2020 | 10 | 2; 4 with `delta`, small | x |
| B: b | 4 | 0; with `COUNT(*)` in place, 3 | |
| C | 2 | 2 | |
| D | 5 | see [D](d.md) | |

"""
    found = sql_coverage.collections(rows)
    assert [(each.name, each.answered, each.with_delta, each.note) for each in found] == [
        ("C", 2, None, ""),
        ("A", 2, 4, ""),
        ("B", 0, None, "3 with `COUNT(*)` in place"),
        ("D", None, None, "see [D](d.md)"),
    ]
    assert "| **all** | **38 %** | | | **16** | **6 answered** |" in sql_coverage.as_table(found)

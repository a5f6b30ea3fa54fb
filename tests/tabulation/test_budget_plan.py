"""A budget over a year: all entries together cost what is given, and their errors are what was asked of each."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Final
from unittest.mock import patch

import pytest

from lapwing.engines import DuckDB
from lapwing.errors import CatalogError, InvalidParameter
from lapwing.query.pricing.quote import request
from lapwing.tabulation import BudgetEntry, ReleaseTable, TableRelease, entries_from_file, plan_budget, plan_release
from tests.support.cli.command import Run
from tests.support.release.small import GDP, PURE, ZCDP, opened, row

COUNT: Final = ReleaseTable(name="n", query="SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan")
SUM: Final = ReleaseTable(name="s", query="SELECT SUM(cost) AS s FROM visits")
MARGINS: Final = ReleaseTable.margins("m", select="COUNT(*) AS m", source="visits", by=[["plan"], ["plan", "size"]])
OTHERS: Final = [pytest.param(budget, marks=pytest.mark.long) for budget in (PURE, ZCDP)]


def entry(*tables: ReleaseTable, times: int = 1, importance: float = 1) -> BudgetEntry:
    release = TableRelease(title="T", epsilon=1, tables=tables)
    return BudgetEntry(name=tables[0].name, release=release, times=times, importance=importance)


@pytest.mark.parametrize("budget", [GDP, *OTHERS])
def test_all_entries_cost_the_whole_and_err_alike(tmp_path: Path, budget: str) -> None:
    entries = (entry(COUNT, times=12), entry(SUM, times=4, importance=2), entry(*MARGINS, times=2))
    with (
        opened(tmp_path, [row(1)], budget=budget) as session,
        patch.object(DuckDB, "run", side_effect=AssertionError("a row is read")),
    ):
        plan = plan_budget(session, entries, epsilon=3)
        whole = request(3, session.catalog.budget).amount
        prices = [one.entry.times * request(one.epsilon, session.catalog.budget).amount for one in plan.entries]
        alone = [plan_release(session, TableRelease(title="T", epsilon=3, tables=(table,))) for table in (COUNT, SUM)]
        assert not session.history()
    assert Fraction(98, 100) * whole < sum(prices) <= whole  # rounded down
    errors = [one.tables[0].numbers[0].standard_error or 0 for one in plan.entries[:2]]
    ratios = [own / (of.tables[0].numbers[0].standard_error or 0) for own, of in zip(errors, alone, strict=True)]
    assert ratios[0] == pytest.approx(2 * ratios[1], rel=0.02)  # the important one errs by half


@pytest.mark.long
def test_wanted_errors_are_met_at_the_cost_that_is_said(tmp_path: Path) -> None:
    tables = [ReleaseTable(name="n", query=COUNT.query, error=40), ReleaseTable(name="s", query=SUM.query, error=90)]
    entries = tuple(entry(table, times=times) for table, times in zip(tables, (12, 3), strict=True))
    with opened(tmp_path, [row(1)]) as session:
        needed = plan_budget(session, entries, epsilon=1).epsilon_needed or 0
        at_it = plan_budget(session, entries, epsilon=1.05 * needed)
        below = plan_budget(session, entries, epsilon=0.9 * needed)
        assert plan_budget(session, entries).epsilon == pytest.approx(100, rel=0.01)  # what is left
        with pytest.raises(InvalidParameter, match="wanted error"):
            plan_budget(session, (entries[0], entry(SUM)))
    assert all(table.is_met for one in at_it.entries for table in one.tables)
    assert not all(table.is_met for one in below.entries for table in one.tables)


FILE: Final = """
epsilon = 1
[queries.n]
query = "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan"
times = 12
[releases.r]
file = "release.toml"
importance = 2
"""
RELEASE: Final = """
title = "T"
epsilon = 1
[tables.m]
select = "COUNT(*) AS m"
from = "visits"
by = [[], ["plan"]]
"""


def test_the_command(visits: Path, run: Run) -> None:
    (visits / "year.toml").write_text(FILE)
    (visits / "release.toml").write_text(RELEASE)
    done = run("budget", "plan", "year.toml")
    assert done.status == 0, done.err
    assert "epsilon each" in done.out
    assert "  m by plan" in done.out
    document = json.loads(run("budget", "plan", "year.toml", "--format", "json").out)
    assert [one["times"] for one in document["entries"]] == [12, 1]
    assert document["fits"]


def test_wrong_files_are_refused(tmp_path: Path) -> None:
    wrong = {
        "times": FILE.replace("times = 12", "times = 0"),
        "prices": FILE.replace("times = 12", "prices = 12"),
        "queries": "epsilon = 1",
        "TOML": "epsilon = ",
        "importance": FILE.replace("times = 12", "error = 5\nimportance = 2"),
    }
    (tmp_path / "release.toml").write_text(RELEASE)
    for key, text in wrong.items():
        (tmp_path / "year.toml").write_text(text)
        with pytest.raises(CatalogError, match=key):
            entries_from_file(tmp_path / "year.toml")
    with pytest.raises(CatalogError, match="cannot be read"):
        entries_from_file(tmp_path / "none.toml")

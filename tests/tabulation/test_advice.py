"""Advice on a plan holds: what it says of other tables is what a plan of these says."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from lapwing.tabulation import (
    Hierarchy,
    Objective,
    ReleaseTable,
    TableRelease,
    plan_release,
    savings,
    unreliable_tables,
)
from lapwing.tabulation.advice import _coarser
from tests.support.cli.command import Run
from tests.support.release.small import GDP, PURE, opened, row
from tests.tabulation.test_hierarchies import opened as opened_towns

COUNTS: Final = ReleaseTable.margins(
    "n", select="COUNT(*) AS n", source="visits", by=[["plan"], ["plan", "size"]], assumed_cell=10
)
SUMS: Final = ReleaseTable(name="s", query="SELECT plan, SUM(cost) AS s FROM visits GROUP BY plan")
RELEASE: Final = TableRelease(title="Visits", epsilon=1, tables=(*COUNTS, SUMS))


@pytest.mark.parametrize("budget", [GDP, pytest.param(PURE, marks=pytest.mark.long)])
@pytest.mark.parametrize("objective", ["largest error", pytest.param("sum of variances", marks=pytest.mark.long)])
def test_what_leaving_out_a_table_saves_is_true(tmp_path: Path, budget: str, objective: str) -> None:
    release = replace(RELEASE, objective=Objective(objective))
    with opened(tmp_path, [row(1)], budget=budget) as session:
        now = plan_release(session, release)
        found = savings(session, release)
        assert [one.table for one in found] == ["n by plan", "n by plan, size", "s"]
        assert not savings(session, replace(release, tables=(SUMS,)))
        saved = found[1]  # the others share no noise with each other
        rest = replace(release, tables=(COUNTS[0], SUMS), epsilon=saved.epsilon)
        then = plan_release(session, rest)
    assert saved.others < 1
    assert saved.epsilon < 1
    if objective == "largest error":
        errors = [now.tables[0].numbers[0].standard_error or 0, now.tables[2].numbers[0].standard_error or 0]
        cheaper = [table.numbers[0].standard_error or 0 for table in then.tables]
        for own, other in zip(cheaper, errors, strict=True):
            assert own <= 1.02 * other


def test_noisy_tables_are_told_with_what_helps(tmp_path: Path) -> None:
    with opened(tmp_path, [row(1)]) as session:
        plan = plan_release(session, RELEASE)
        noisy = list(unreliable_tables(RELEASE, plan))
        assert [one.table for one in noisy] == ["n by plan", "n by plan, size"]
        larger = [replace(table, assumed_cell=10 * noisy[0].merged) for table in COUNTS]
        coarser = replace(RELEASE, tables=(*larger, SUMS))
        assert not list(unreliable_tables(coarser, plan_release(session, coarser)))
        less = [replace(table, assumed_cell=10 * noisy[0].merged - 10) for table in COUNTS]
        assert list(unreliable_tables(coarser, plan_release(session, replace(coarser, tables=(*less, SUMS)))))
        dearer = replace(RELEASE, epsilon=1.02 * noisy[0].epsilon)
        assert not list(unreliable_tables(dearer, plan_release(session, dearer)))


@pytest.mark.long
def test_the_command_shows_advice_if_it_is_asked(visits: Path, run: Run) -> None:
    query = "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan"
    tables = f'[tables.n]\nquery = "{query}"\nassumed_cell = 1\n[tables.a]\nquery = "SELECT COUNT(*) AS n FROM visits"'
    (visits / "release.toml").write_text(f'title = "T"\nepsilon = 1\n{tables}\n')
    done = run("release", "plan", "release.toml", "--without")
    assert "without this table" in done.out
    assert "coarser keys" in done.err
    document = json.loads(run("release", "plan", "release.toml", "--format", "json").out)
    less = json.loads(run("release", "plan", "release.toml", "--epsilon", "0.01", "--format", "json").out)
    assert less["epsilon"] == 0.01
    assert less["tables"][0]["numbers"][0]["half_width"] > document["tables"][0]["numbers"][0]["half_width"]
    refused = run("release", "plan", "release.toml", "--epsilon", "0")
    assert refused.status == 2
    assert "--epsilon" in refused.err
    assert document["unreliable_tables"][0]["table"] == "n"
    assert document["savings"] == []


def test_a_coarser_level_saves_what_a_release_with_it_says(tmp_path: Path) -> None:
    """By hand: the release with the coarser table in the place of the finer one."""
    place = Hierarchy(name="place", levels=("region", "district", "municipality"), table="places")

    def release(*by: list[str]) -> TableRelease:
        margins = ReleaseTable.margins("n", select="COUNT(*) AS n", source="visits", by=by, hierarchies=[place])
        return TableRelease(title="t", epsilon=0.5, tables=margins, hierarchies=(place,))

    with opened_towns(tmp_path) as session:
        fine = release(["region"], ["municipality", "sex"])
        found = {(one.table, one.coarser): one.others for one in savings(session, fine)}
        plans = [plan_release(session, one) for one in (fine, release(["region"], ["district", "sex"]))]
        twice = savings(session, release(["region"], ["district"], ["municipality"]))
    errors = [plan.tables[0].numbers[0].standard_error or 0 for plan in plans]
    table = "n by municipality, sex"
    assert set(found) == {("n by region", None), (table, None), (table, "district")}
    assert found[table, "district"] == pytest.approx(errors[1] / errors[0])
    assert found[table, None] < found[table, "district"]
    assert not any(one.coarser for one in twice)  # each of these is in the release


def test_a_column_whose_name_ends_like_a_level_stays() -> None:
    """The twin: by an edit of the text, `birthday` would lose its end."""
    time = Hierarchy(name="time", levels=("month", "day"), column="day")
    by = [["birthday AS day"], ["day", "sex"], ["sex"]]
    tables = ReleaseTable.margins("n", select="COUNT(*) AS n", source="visits", by=by, hierarchies=[time])
    release = TableRelease(title="t", epsilon=1, tables=tables, hierarchies=(time,))
    assert f"{time.key('day')}," in tables[0].query
    found = [[coarser.query for _, coarser in _coarser(release, table)] for table in tables]
    month = ReleaseTable.margins(
        "n", select="COUNT(*) AS n", source="visits", by=[["month", "sex"]], hierarchies=[time]
    )
    assert found == [[], [month[0].query], []]
    written = replace(tables[1], query=f"{tables[1].query} ")
    assert not list(_coarser(release, written))

"""A plan is free, reads no row, and promises the errors that a batch at its shares has."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.catalog.toml import loads
from lapwing.engines import DuckDB
from lapwing.errors import InvalidParameter, QueryRefused, RefusalCause
from lapwing.opening import open_session
from lapwing.session import Session
from lapwing.tabulation import Objective, ReleasePlan, ReleaseTable, TableRelease, plan_release, run_release
from tests.support.cli.command import Run
from tests.support.effort import one_in
from tests.support.fixed_entropy import StreamEntropy
from tests.support.release.small import GDP, PURE, opened, row, shown

ROWS = [row(n, plan="ab"[n % 2], size=5 * (n % 3), age=n % 5 - 1) for n in range(60)]
COUNTS = ReleaseTable.margins("n", select="COUNT(*) AS n", source="visits", by=[[], ["plan"], ["plan", "size"]])


def release_of(*tables: ReleaseTable, **facts: Any) -> TableRelease:
    return TableRelease(title="Visits", epsilon=facts.pop("epsilon", 1), tables=tables or COUNTS, **facts)


def planned(folder: Path, release: TableRelease, budget: str = GDP) -> ReleasePlan:
    with opened(folder, ROWS, budget=budget) as session:
        return plan_release(session, release)


def test_it_reads_no_row_and_costs_nothing(tmp_path: Path) -> None:
    means = ReleaseTable(name="mean", query="SELECT plan, AVG(cost) AS c FROM visits GROUP BY plan", assumed_cell=50)
    keys = ReleaseTable(name="towns", query="SELECT town, COUNT(DISTINCT person) AS n FROM visits GROUP BY town")
    with opened(tmp_path, ROWS) as session:
        before = session.budget()
        with patch.object(DuckDB, "run", side_effect=AssertionError("a row is read")):
            plan = plan_release(session, release_of(*COUNTS, means, keys, delta=1e-4))
        assert session.budget().spent == before.spent
        assert not session.history()
    assert [table.cells for table in plan.tables] == [1, 2, 6, 2, None]
    assert plan.fits
    assert not plan.is_optimal  # a mean is of two numbers
    assert plan.tables[0].measured_with == ("n by plan", "n by plan, size")
    assert plan.tables[3].numbers[0].relative is not None
    assert plan.tables[2].numbers[0].relative is None


def test_delta_of_private_keys_must_fit_too(tmp_path: Path) -> None:
    keys = ReleaseTable(name="codes", query="SELECT code, COUNT(*) AS n FROM visits GROUP BY code")
    release = release_of(keys, delta=3e-4)
    with opened(tmp_path, ROWS) as session:  # which has 5e-4 of it
        assert plan_release(session, release).fits
        run_release(session, release)
        more = replace(release, tables=(replace(keys, query=f"{keys.query} HAVING COUNT(*) > 1"),), epsilon=2)
        plan = plan_release(session, more)
        assert plan.cost.amount < session.budget().remaining.amount
        assert plan.delta_keys > session.budget().delta_room()
        assert not plan.fits


def test_twice_the_cost_is_about_half_the_error(tmp_path: Path) -> None:
    plan = planned(tmp_path, release_of(epsilon=0.05))
    less, more = plan.other_costs
    now = plan.tables[1].numbers[0].half_width or 0
    assert (less.epsilon, more.epsilon) == (0.025, 0.1)
    assert less.half_widths[1][0] == pytest.approx(2 * now, rel=0.15)
    assert more.half_widths[1][0] == pytest.approx(now / 2, rel=0.15)
    assert [one.measure for one in plan.other_measures] == ["pure", "zcdp"]
    assert (plan.tables[1].numbers[0].table_by_table or 0) > 1.15 * now


def test_the_cost_that_wanted_errors_need(tmp_path: Path) -> None:
    tables = [replace(table, error=error) for table, error in zip(COUNTS, (30, 30, 60), strict=True)]
    plan = planned(tmp_path, release_of(*tables, epsilon=0.2))
    assert plan.epsilon_needed is not None
    assert not any(table.is_met for table in plan.tables)
    enough = planned(tmp_path, release_of(*tables, epsilon=plan.epsilon_needed * 1.03))
    assert all(table.is_met for table in enough.tables)
    less = planned(tmp_path, release_of(*tables, epsilon=plan.epsilon_needed * 0.9))
    assert not all(table.is_met for table in less.tables)


def test_cells_that_will_be_noise(tmp_path: Path) -> None:
    tables = [replace(table, assumed_cell=size) for table, size in zip(COUNTS, (10_000, 10_000, 3), strict=True)]
    plan = planned(tmp_path, release_of(*tables, unreliable=0.25, epsilon=0.1))
    assert [table.is_noise for table in plan.tables] == [False, False, True]
    number = plan.tables[0].numbers[0]
    assert number.unreliable_below == 4 * (number.half_width or 0)


def test_refusals_name_the_table(tmp_path: Path) -> None:
    wrong = ReleaseTable(name="tall", query="SELECT MAX(height) AS h FROM visits")
    with pytest.raises(QueryRefused, match="The table 'tall'") as refused:
        planned(tmp_path, release_of(*COUNTS, wrong))
    assert refused.value.cause is RefusalCause.UNKNOWN_COLUMN


@pytest.mark.parametrize(
    ("query", "facts", "said"),
    one_in(
        2,
        [
            ("SELECT COUNT(*) AS total FROM visits", {}, "asks what a table before it asks"),
            ("SELECT COUNT(*) AS n FROM visits WHERE age > (SELECT AVG(age) FROM visits)", {}, "other results"),
            (
                "SELECT plan, 1 AS one FROM visits GROUP BY plan",
                {},
                "Nothing in the table 'other' comes",
            ),
            ("SELECT town, COUNT(*) AS n FROM visits GROUP BY town", {"objective": Objective.SUM_OF_VARIANCES}, "priv"),
        ],
        many=True,
    ),
)
def test_what_cannot_be_planned(tmp_path: Path, query: str, facts: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        planned(tmp_path, release_of(*COUNTS, ReleaseTable(name="other", query=query), **facts))


def test_an_error_is_of_one_number(tmp_path: Path) -> None:
    query = "SELECT COUNT(*) AS n, SUM(size) AS s FROM visits"
    with pytest.raises(InvalidParameter, match="2 noisy numbers"):
        planned(tmp_path, release_of(ReleaseTable(name="two", query=query, error=5)))


def test_a_relative_error_is_of_counts_and_sums(tmp_path: Path) -> None:
    """Half of 5 % at twice the size of a cell is the same wanted error."""
    table = ReleaseTable(name="all", query="SELECT COUNT(*) AS n FROM visits", assumed_cell=1_000, relative_error=0.05)
    plan = planned(tmp_path, release_of(table, epsilon=0.01))
    same = planned(tmp_path, release_of(replace(table, assumed_cell=500, relative_error=0.1, error=None), epsilon=0.01))
    assert plan.epsilon_needed == same.epsilon_needed
    mean = replace(table, query="SELECT AVG(size) AS n FROM visits")
    with pytest.raises(InvalidParameter, match="for counts and sums"):
        planned(tmp_path, release_of(mean))


def test_a_pure_ledger(tmp_path: Path) -> None:
    plan = planned(tmp_path, release_of(), budget=PURE)
    assert [round(table.share, 3) for table in plan.tables] == [0.333, 0.333, 0.333]
    assert {one.measure for one in plan.other_measures} == {"gdp", "zcdp"}


CATALOG = """
[dataset]
name = "cells"
ledger = "sqlite:cells.db"
[budget]
epsilon = 10
delta = 1e-6
[tables.cells]
source = "cells.parquet"
privacy_unit = "row"
[tables.cells.columns]
a = { type = "integer", lower = 1, upper = 20, values = [VALUES], nullable = false }
b = { type = "integer", lower = 1, upper = 20, values = [VALUES], nullable = false }
c = { type = "integer", lower = 1, upper = 20, values = [VALUES], nullable = false }
"""


def session_of_cells(folder: Path) -> Session:
    """Every combination of three keys with 20 values, some of them several times."""
    grid = np.indices((20, 20, 20)).reshape(3, -1) + 1
    table = pa.table(dict(zip("abc", np.repeat(grid, 1 + grid[0] % 3, axis=1), strict=True)))
    pq.write_table(table, folder / "cells.parquet")
    text = CATALOG.replace("VALUES", ", ".join(map(str, range(1, 21))))
    described = replace(loads(text, file="cells", folder=folder), folder=folder)
    return open_session(described, entropy=StreamEntropy("cells"))


@pytest.mark.long
@pytest.mark.parametrize("objective", list(Objective))
def test_expected_errors_are_observed(tmp_path: Path, objective: Objective) -> None:
    """Over the 8,000 cells of the finest table, and all of the others; the twin plans for a tenth more than is paid."""
    by = [["a"], ["a", "b"], ["b", "c"], ["a", "b", "c"]]
    tables = ReleaseTable.margins("n", select="COUNT(*) AS n", source="cells", by=by)
    release = release_of(*tables, objective=objective)
    with session_of_cells(tmp_path) as session:
        released = run_release(session, release)
        plan, answers = released.plan, [table.answer for table in released.tables]
        assert session.budget().spent == plan.cost
        more = plan_release(session, replace(release, epsilon=1.1))
    errors, planted, promised = [], [], []
    for answer, keys, table, other in zip(answers, by, plan.tables, more.tables, strict=True):
        number, wrong = table.numbers[0], other.numbers[0]
        for told in shown(answer):
            error = told["n"] - (20 ** (3 - len(keys)) * (1 + told["a"] % 3) if "a" in keys else 41)
            errors.append(error / (number.standard_error or 0))
            planted.append(error / (wrong.standard_error or 0))
            promised.append(abs(error) <= (number.half_width or 0))
    assert len(errors) > 8_000
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(1, abs=0.05)
    assert np.sqrt(np.mean(np.square(planted))) != pytest.approx(1, abs=0.05)
    assert np.mean(promised) == pytest.approx(0.955, abs=0.01)


FILE = """
title = "Visits"
epsilon = 0.5
[tables.visits]
select = "COUNT(*) AS n"
from = "visits"
by = [[], ["plan"]]
assumed_cell = 10
"""


@pytest.mark.usefixtures("visits")
@pytest.mark.long
def test_the_command(run: Run) -> None:
    Path("release.toml").write_text(FILE)
    outcome = run("release", "plan", "release.toml")
    assert outcome.status == 0, outcome.err
    assert "visits by plan" in outcome.out
    assert "unreliable" in outcome.err
    document = json.loads(run("release", "plan", "release.toml", "--format", "json").out)
    assert [table["name"] for table in document["tables"]] == ["visits in all", "visits by plan"]
    assert document["tables"][0]["is_noise"]
    Path("release.toml").write_text(FILE.replace("epsilon", "epsilom"))
    outcome = run("release", "plan", "release.toml")
    assert outcome.status == 2
    assert 'unknown "epsilom" (did you mean epsilon?)' in outcome.err
    assert "0 %" in run("budget").out

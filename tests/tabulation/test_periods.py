"""The same release in several periods: one budget for all of them, or one for each person in each period."""

import json
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Final

import pytest

from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import loads
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.query.bind.bind import bind
from lapwing.query.pricing.quote import request
from lapwing.tabulation import (
    BudgetEntry,
    CellChange,
    FileFormat,
    NumberChanges,
    PublishedNumber,
    PublishedRelease,
    ReleaseTable,
    TableRelease,
    combined_promise,
    comparison_document,
    plan_budget,
    run_release,
)
from tests.support.cli.command import Run
from tests.support.release.small import CATALOG, GDP, PURE, Row, exact, opened, row

PERIODS: Final = 'values = ["a", "b"]'
OF_ONE: Final = "SELECT size, COUNT(*) AS n, SUM(age) AS s FROM visits WHERE plan = 'a' GROUP BY size"
RELEASE: Final = TableRelease(
    title="T",
    epsilon=2,
    tables=ReleaseTable.margins("n", select="COUNT(*) AS n", source="visits", by=[["plan"], ["plan", "size"]]),
)


def of_period(folder: Path, values: str, part: str) -> Catalog:
    """Return a catalog; its column `plan` is the period."""
    text = CATALOG.format(budget=GDP, unit="person", table=f"max_rows_per_unit = 2\n{part}", plan="", age="")
    return replace(loads(text.replace(PERIODS, values), file="small", folder=folder), folder=folder)


def moved(folder: Path, described: Catalog) -> bool:
    """Tell whether rows of other periods decide what is counted in the period `a`."""
    own = [row(n, plan="a", size=5 * (n % 3), age=m) for n in range(20) for m in range(3)]
    others: list[list[Row]] = [[], [row(n, plan="b", age=m) for n in range(15) for m in range(4)], [row(99, plan="b")]]
    question = bind(OF_ONE, described, PublicData(described)).question
    found = [str(sorted(exact(question, described, [*own, *more]).cells.items())) for more in others]
    return len(set(found)) > 1


def test_a_ledger_of_one_period_sees_no_row_of_another(tmp_path: Path) -> None:
    """The twins: a condition in the query without a part, and a part with several values."""
    one = 'values = ["a"]'
    assert not moved(tmp_path, of_period(tmp_path, one, 'part = "plan"'))
    assert moved(tmp_path, of_period(tmp_path, PERIODS, ""))
    assert moved(tmp_path, of_period(tmp_path, 'values = ["b", "a"]', 'part = "plan"'))


@pytest.mark.long
def test_a_report_each_month_stays_within_the_year(tmp_path: Path) -> None:
    """New data each month cost again, a second run on the same data is free, and twelve months fit."""
    with opened(tmp_path, [row(1)]) as session:
        (planned,) = plan_budget(session, (BudgetEntry(name="n", release=RELEASE, times=12),), epsilon=6).entries
        whole = request(6, session.catalog.budget).amount
    release = replace(planned.entry.release, epsilon=planned.epsilon)
    for month in range(12):
        with opened(tmp_path, [row(n, plan="ab"[n % 2]) for n in range(40 + month)]) as session:
            session.accept_data()
            assert not run_release(session, release).stored
            assert run_release(session, release).stored
            spent = session.budget().spent.amount
            assert spent <= whole * (month + 1) / 12
    assert spent > 0.98 * whole


def test_keys_of_any_type_are_in_json() -> None:
    keys: tuple[object, ...] = (date(2026, 12, 1), None, 3, "x", float("nan"), Decimal("1.5"))
    change = CellChange(keys=keys, before=1.0, now=5.0, half_width=2.0)
    number = PublishedNumber(table="t", name="n", key_names=tuple("abcdef"), figures={}, is_normal=True)
    changes = NumberChanges(number=number, changes=(change,), is_same=False, confidence=0.95)
    facts = {"title": "T", "measure": "gdp", "neighbouring": "add_remove"}
    before, now = (PublishedRelease(manifest={**facts, "measure": kind}, numbers=()) for kind in ("gdp", "zcdp"))
    document = json.loads(json.dumps(comparison_document(before, now, [changes])))
    assert document["numbers"][0]["changes"][0]["keys"] == ["2026-12-01", None, 3, "x", "nan", "1.5"]
    assert document["together"] is None


def test_texts_that_look_like_numbers_stay_apart_in_csv(tmp_path: Path) -> None:
    """A guess of types would make both keys 1, and lose a cell."""
    query = "SELECT CASE WHEN plan = 'a' THEN '01' ELSE '1' END AS code, COUNT(*) AS n FROM visits GROUP BY 1"
    tables = (ReleaseTable(name="t", query=query), ReleaseTable(name="u", query=OF_ONE))
    with opened(tmp_path, [row(n, plan="ab"[n % 2]) for n in range(60)]) as session:
        released = run_release(session, replace(RELEASE, tables=tables, formats=(FileFormat.CSV,)))
        release = PublishedRelease.from_file(released.write(tmp_path / "1"))
    assert [sorted(number.figures) for number in release.numbers[:2]] == [[("01",), ("1",)], [(0,), (5,), (10,)]]


def test_releases_are_compared_by_a_command(tmp_path: Path, run: Run) -> None:
    with opened(tmp_path, [row(n, plan="ab"[n % 2]) for n in range(60)]) as session:
        before = run_release(session, RELEASE).write(tmp_path / "1")
        now = run_release(session, replace(RELEASE, epsilon=3, title="U")).write(tmp_path / "2")
        both = request(2, session.catalog.budget) + request(3, session.catalog.budget)
        delta = float(session.catalog.budget.delta - session.catalog.budget.delta_keys)
    promise = combined_promise(PublishedRelease.from_file(before), PublishedRelease.from_file(now))
    assert promise is not None
    assert promise.epsilon == pytest.approx(both.to_epsilon(delta=delta), rel=0.05)
    assert promise.epsilon <= both.to_epsilon(delta=delta) * 1.0001
    document = json.loads(run("release", "compare", str(before), str(now), "--format", "json").out)
    assert [len(one["changes"]) for one in document["numbers"]] == [2, 6]
    assert document["numbers"][1]["by_noise"] == pytest.approx(6 / 20)
    shown = run("release", "compare", str(before), str(now))
    assert shown.status == 0, shown.err
    assert "n by plan, size" in shown.out
    folder = tmp_path / "pure"
    folder.mkdir()
    with opened(folder, [row(1)], budget=PURE) as session:
        other = run_release(session, RELEASE).write(folder / "1")
        alone = replace(RELEASE, tables=(ReleaseTable(name="v", query="SELECT COUNT(*) AS v FROM visits"),))
        apart = run_release(session, alone).write(folder / "2")
    assert combined_promise(PublishedRelease.from_file(before), PublishedRelease.from_file(other)) is None
    assert "together" not in run("release", "compare", str(before), str(other)).out
    assert run("release", "compare", str(before), str(apart)).status == 2

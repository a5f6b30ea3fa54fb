"""A rehearsal: free, never on protected data, and with the errors that the plan promises."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Final
from unittest.mock import patch

import numpy as np
import pyarrow.parquet as pq
import pytest

from lapwing.errors import InvalidParameter
from lapwing.opening import open_session, refresh_data
from lapwing.tabulation import (
    CellErrors,
    PublishedRelease,
    Rehearsal,
    RehearsedNumber,
    ReleaseTable,
    TableRelease,
    adjusted_columns,
    plan_release,
    rehearse_release,
    run_release,
)
from tests.support.cli.command import Run
from tests.support.effort import one_in
from tests.support.release.small import GDP, PURE, ZCDP, catalog, opened, row, write

ROWS: Final = [row(n, plan="ab"[n % 2], size=5 * (n % 3), age=n % 5 - 1, cost=n % 17 / 2) for n in range(60)]
OTHERS: Final = [row(n, plan="a", size=5 * (n % 3), age=n % 5 - 1, cost=n % 17 / 2) for n in range(80)]
COUNTS: Final = ReleaseTable.margins("n", select="COUNT(*) AS n", source="visits", by=[["plan"], ["plan", "size"]])
RELEASE: Final = TableRelease(title="Visits", epsilon=2, tables=COUNTS)


def other_data(folder: Path) -> Path:
    folder.mkdir()
    write(folder, OTHERS)
    return folder / "visits.parquet"


def by_name(rehearsal: Rehearsal) -> dict[tuple[str, str, bool], RehearsedNumber]:
    return {(one.table, one.planned.name, one.is_adjusted): one for one in rehearsal.numbers}


def test_it_reads_no_protected_row_and_costs_nothing(tmp_path: Path) -> None:
    other = other_data(tmp_path / "other")
    with opened(tmp_path, ROWS) as session:
        (tmp_path / "visits.parquet").unlink()  # nothing needs it
        rehearsal = rehearse_release(session, RELEASE, {"visits": other}, times=2)
        assert not session.history()
        assert rehearsal.plan == plan_release(session, RELEASE)
    assert [number.errors.cells for number in rehearsal.numbers] == [4, 12]
    assert not list(other.parent.glob("*.db*"))


@pytest.mark.parametrize("address", ["delta:lake", "delta:file://{}/lake"])
def test_files_of_a_protected_lake_are_refused(tmp_path: Path, address: str) -> None:
    deltalake = pytest.importorskip("deltalake")
    write(tmp_path, ROWS)
    deltalake.write_deltalake(str(tmp_path / "lake"), pq.read_table(tmp_path / "visits.parquet"))
    described = catalog(tmp_path)
    source = address.format(tmp_path)
    described = described.with_table(replace(described.tables[0], source=source))
    refresh_data(described)
    (part,) = (tmp_path / "lake").glob("*.parquet")
    (tmp_path / "link.parquet").symlink_to(part)
    with open_session(described) as session:
        (fetched,) = tmp_path.glob("*.snapshots/*/*.parquet")
        for refused in (part, tmp_path / "lake" / "*.parquet", tmp_path / "link.parquet", fetched):
            with pytest.raises(InvalidParameter, match="protected data"):
                rehearse_release(session, RELEASE, {"visits": refused}, times=1)


def test_protected_data_are_refused(tmp_path: Path) -> None:
    with opened(tmp_path, ROWS) as session:
        file = tmp_path / "visits.parquet"
        first = shutil.copy(file, tmp_path / "first-version.parquet")
        write(tmp_path, ROWS[:50])
        session.accept_data()
        (tmp_path / "link.parquet").symlink_to(file)
        os.link(file, tmp_path / "hard.parquet")
        copied = shutil.copy(file, tmp_path / "copy.parquet")
        for refused in (file, copied, first, tmp_path / "link.parquet", tmp_path / "hard.parquet"):
            with pytest.raises(InvalidParameter, match="protected data"):
                rehearse_release(session, RELEASE, {"visits": refused}, times=1)
        folder = tmp_path / "several"
        folder.mkdir()
        shutil.copy(other_data(tmp_path / "other"), folder / "1.parquet")
        rehearse_release(session, RELEASE, {"visits": folder}, times=1)
        for copied_here in (file, first):
            shutil.copy(copied_here, folder / "2.parquet")
            with pytest.raises(InvalidParameter, match="protected data"):
                rehearse_release(session, RELEASE, {"visits": folder}, times=1)
        write(tmp_path, ROWS[:40])  # a version that the ledger does not know yet
        with pytest.raises(InvalidParameter, match="protected data"):
            rehearse_release(session, RELEASE, {"visits": file}, times=1)
        for wrong, why in (({}, "No data for visits"), ({"visits": copied, "trips": copied}, "no protected table")):
            with pytest.raises(InvalidParameter, match=why):
                rehearse_release(session, RELEASE, wrong, times=1)
        with pytest.raises(InvalidParameter, match="at an address"):
            rehearse_release(session, RELEASE, {"visits": "postgresql://db/x#visits"})
        with pytest.raises(InvalidParameter, match="times"):
            rehearse_release(session, RELEASE, {"visits": copied}, times=0)


@pytest.mark.long
def test_adjusted_numbers_and_private_keys_have_errors_of_their_own(tmp_path: Path) -> None:
    towns = ReleaseTable(name="towns", query="SELECT town, COUNT(DISTINCT person) AS n FROM visits GROUP BY town")
    middle = ReleaseTable(name="middle", query="SELECT MEDIAN(age) AS m, AVG(cost) AS c FROM visits")
    release = replace(RELEASE, tables=(*COUNTS, towns, middle), delta=1e-4, adjusted=True, epsilon=1)
    folder = tmp_path / "other"
    folder.mkdir()
    write(folder, [row(n, town="Ulm" if n > 3 else "Bonn") for n in range(300)])
    simulated = patch.object(adjusted_columns, "effects", side_effect=AssertionError("a rehearsal measures itself"))
    with opened(tmp_path, ROWS) as session, simulated:
        found = by_name(rehearse_release(session, release, {"visits": folder / "visits.parquet"}, times=2))
    assert found["n by plan", "n", True].errors.within_interval is None
    assert found["n by plan", "n", True].ratio is None
    assert found["n by plan", "n", False].ratio is not None
    assert found["towns", "n", False].missing == 0.5  # Bonn, which has too few people
    assert found["towns", "n", False].errors.cells == 2
    assert found["middle", "m", False].errors.half_width is not None
    assert found["middle", "m", False].errors.within_interval is None


def test_an_earlier_release_stands_for_the_data(tmp_path: Path) -> None:
    with opened(tmp_path, ROWS) as session:
        earlier = PublishedRelease.from_file(run_release(session, RELEASE).write(tmp_path / "out"))
        spent = session.budget().spent
        found = by_name(rehearse_release(session, replace(RELEASE, epsilon=0.5), earlier, times=200))
        assert session.budget().spent == spent
        sums = ReleaseTable(name="s", query="SELECT plan, SUM(age) AS s FROM visits GROUP BY plan")
        with pytest.raises(InvalidParameter, match="the same name"):
            rehearse_release(session, replace(RELEASE, tables=(sums,)), earlier)
    number = found["n by plan, size", "n", False]
    assert number.errors.cells == 1_200
    assert number.ratio == pytest.approx(1, abs=0.13)  # six standard deviations
    assert 0.85 < (number.errors.within_interval or 0) <= 1
    assert 0 < (number.errors.right_order or 0) < 1
    assert number.unreliable is not None


def test_errors_signs_and_orders_are_counted() -> None:
    truth, released = np.array([10.0, 20.0, 0.0, -4.0, 20.0]), np.array([13.0, 12.0, -7.0, 1.0, 30.0])
    errors = CellErrors.of([truth], [released], [np.array([True, True, False, True])])
    assert errors.cells == 5
    assert errors.standard_error == pytest.approx(np.sqrt((9 + 64 + 49 + 25 + 100) / 5))
    assert errors.within_interval == 0.75
    assert errors.right_sign == 0.75  # the zero has no sign
    # Of ten pairs one is equal, and (10, 20) and (0, -4) are in the wrong order: (20, 20) is not compared.
    assert errors.right_order == pytest.approx(7 / 9)
    assert CellErrors.of([truth[:0]], [truth[:0]], None).half_width is None


def test_large_tables_are_compared_at_some_distances() -> None:
    truth = np.arange(10_000.0)
    assert CellErrors.of([truth], [truth], None).right_order == 1
    assert CellErrors.of([truth], [-truth], None).right_order == 0


@pytest.mark.long
@pytest.mark.parametrize("budget", one_in(3, [GDP, PURE, ZCDP]))
def test_planned_errors_are_observed(tmp_path: Path, budget: str) -> None:
    keys = ["plan", "size", "age", "cost"]
    counts = ReleaseTable.margins("n", select="COUNT(*) AS n", source="visits", by=[keys[:3], keys])
    sums = ReleaseTable(name="s", query="SELECT plan, size, age, SUM(cost) AS s FROM visits GROUP BY plan, size, age")
    release = TableRelease(title="Visits", epsilon=1, tables=(*counts, sums))
    other = other_data(tmp_path / "other")
    with opened(tmp_path, ROWS, budget=budget) as session:
        rehearsal = rehearse_release(session, release, {"visits": other})
        more = plan_release(session, replace(release, epsilon=1.2))
    detailed = by_name(rehearsal)["n by plan, size, age, cost", "n", False]
    assert detailed.errors.cells == 20 * 510
    assert detailed.ratio == pytest.approx(1, abs=0.05)
    assert detailed.errors.within_interval == pytest.approx(0.95, abs=0.015)
    pooled = [(number.ratio or 0) ** 2 * number.errors.cells for number in rehearsal.numbers]
    cells = sum(number.errors.cells for number in rehearsal.numbers)
    assert np.sqrt(sum(pooled) / cells) == pytest.approx(1, abs=0.05)
    wrong = more.tables[1].numbers[0].standard_error or 0  # another plan is not what is observed
    assert (detailed.errors.standard_error or 0) / wrong != pytest.approx(1, abs=0.05)


def test_the_command_tells_errors_and_how_to_read_them(visits: Path, run: Run, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    folder = visits if visits.is_dir() else visits.parent
    file = folder / "release.toml"
    file.write_text(
        'title = "T"\nepsilon = 1\n[tables.n]\nquery = "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan"'
    )
    rows = pq.read_table(folder / "visits.parquet")
    pq.write_table(rows.slice(0, 100), tmp_path / "made-up.parquet")
    made_up = str(tmp_path / "made-up.parquet")
    done = run("release", "rehearse", str(file), "--data", made_up, "--times", "2")
    assert done.status == 0, done.err
    assert "right order" in done.out
    assert "copy or a sample" in done.err
    again = run("release", "rehearse", str(file), "--data", f"visits={made_up}", "--times", "2", "--format", "json")
    document = json.loads(again.out)
    assert document["times"] == 2
    assert document["numbers"][0]["errors"]["cells"] == 4
    assert run("release", "rehearse", str(file)).status != 0
    assert run("release", "rehearse", str(file), "--data", made_up, "--data", made_up).status != 0
    assert run("release", "rehearse", str(file), "--data", str(folder / "visits.parquet")).status != 0

"""Tables over a public table add up exactly where public facts prove it, and at most where they do not.

Released numbers are without noise in most tests. They are then true together, so adjusting must not change them. An
equality that is imposed where a row may lack a cell changes them.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch
from zipfile import ZipFile

import pytest

from lapwing.catalog.toml import loads
from lapwing.errors import CatalogError, InvalidParameter
from lapwing.mechanisms import residual_marginals
from lapwing.opening import open_session
from lapwing.session import Session
from lapwing.tabulation import (
    FileFormat,
    Hierarchy,
    ReleasedTables,
    TableRelease,
    consistency,
    plan_release,
    run_release,
)
from lapwing.tabulation.complete_keys import is_complete, kept_by_where
from lapwing.tabulation.nestings import nestings_of
from tests.support.fixed_entropy import StreamEntropy
from tests.tabulation.test_hierarchies import silent

CATALOG = """
[dataset]
name = "towns"
ledger = "sqlite:towns.db"
[budget]
epsilon = 100
delta = 1e-6
[tables.visits]
source = "visits.csv"
privacy_unit = "person"
max_rows_per_unit = 1
[tables.visits.columns]
town = { type = "integer", lower = 1, upper = 6, values = [1, 2, 3, 4, 5, 6] }
sex = { type = "string", values = ["f", "m"] }
plan = { type = "string", values = ["a", "b"], other = true }
size = { type = "decimal", lower = 0, upper = 3, step = 1 }
day = { type = "date", lower = 2025-01-01, upper = 2025-06-30, nullable = false }
[tables.places]
source = "places.csv"
public = true
[tables.places.columns]
region = { type = "string" }
town = { type = "integer" }
"""
RELEASE = """
title = "Visits"
epsilon = 0.5
adjusted = true
[hierarchies.place]
table = "places"
levels = ["region", "town"]
{missing}
[hierarchies.time]
column = "day"
levels = ["quarter", "month"]
[tables.n]
select = "COUNT(*) AS n"
from = "visits"
{where}
by = [[], ["region"], ["town", "sex"], ["plan"], ["region", "plan"], ["quarter"], ["month", "sex"]]
"""
PROVEN = "where = \"visits.town BETWEEN 1 AND 6 AND sex IN ('f', 'm')\""
MISSING = 'missing = ["elsewhere", 0]'
FORMS = {"": "", MISSING: "", PROVEN: PROVEN}
PLACES = [("north" if n < 4 else "south", n) for n in range(1, 7)]
CLEAN = [(n, 1 + n * n % 6, "fm"[n % 2], "ab"[n % 3 == 0], n % 4, f"2025-0{1 + n % 6}-15") for n in range(120)]
ROUNDING = 1
"""Whole numbers next to real ones are off by less."""
HOLES = [
    *CLEAN,
    *[(200 + n, 9 if n % 2 else "", ("x", "", "f")[n % 3], "ac"[n % 2], 1, "2025-02-01") for n in range(30)],
]
"""With towns and values of sex that nobody listed, and without any."""


@contextmanager
def opened(
    folder: Path, people: Sequence[Sequence[Any]], catalog: str = CATALOG, entropy: str = "towns"
) -> Iterator[Session]:
    folder.mkdir(exist_ok=True)
    for name, head, rows in (("visits", "person,town,sex,plan,size,day", people), ("places", "region,town", PLACES)):
        text = "".join(",".join(map(str, row)) + "\n" for row in rows)
        (folder / f"{name}.csv").write_text(f"{head}\n{text}")
    with open_session(loads(catalog, file="towns", folder=folder), entropy=StreamEntropy(entropy)) as session:
        yield session


def release_of(missing: str = "", where: str = "") -> TableRelease:
    return TableRelease.from_text(RELEASE.format(missing=missing, where=where))


def sums(released: ReleasedTables, name: str = "n_adjusted") -> list[int]:
    every = range(len(released.tables))
    return [sum(row[name] for row in released.arrow(place).to_pylist()) for place in every]


def moved(folder: Path, people: Sequence[Sequence[Any]], release: TableRelease, *, planted: bool = False) -> int:
    """Return by how much adjusting changes a number without noise. Planted: every key counts as complete."""
    with ExitStack() as stack:
        stack.enter_context(patch.object(residual_marginals, "rounded_gaussian", silent))
        if planted:
            stack.enter_context(patch.object(consistency, "is_complete", lambda *_: True))
        released = run_release(stack.enter_context(opened(folder, people)), release)
    tables = [released.arrow(place).to_pylist() for place in range(len(released.tables))]
    return max(abs(int(row["n"]) - int(row["n_adjusted"])) for rows in tables for row in rows)


@pytest.mark.parametrize(("missing", "where"), [(MISSING, "where = \"sex IN ('f', 'm')\""), ("", PROVEN)])
def test_all_tables_have_the_same_total_where_it_is_proven(tmp_path: Path, missing: str, where: str) -> None:
    release = release_of(missing, where)
    with opened(tmp_path / "t", HOLES) as session:
        assert plan_release(session, release).incomplete_keys == ()
        released = run_release(session, release)
    assert len(set(sums(released))) == 1
    assert len(set(sums(released, "n"))) > 1  # as released, numbers have noise of their own
    by_region, by_town = ({row[key]: 0 for row in PLACES_AND_MISSING[bool(missing)]} for key in (0, 0))
    for row in released.arrow(1).to_pylist():
        by_region[row["region"]] += row["n_adjusted"]
    above = {town: region for region, town in PLACES_AND_MISSING[bool(missing)]}
    for row in released.arrow(2).to_pylist():
        by_town[above[row["town"]]] += row["n_adjusted"]
    assert by_region == by_town


PLACES_AND_MISSING = {False: PLACES, True: [*PLACES, ("elsewhere", 0)]}


def test_without_a_proof_tables_add_up_to_at_most_the_total_and_the_plan_says_which(tmp_path: Path) -> None:
    with opened(tmp_path / "t", HOLES) as session:
        plan = plan_release(session, release_of())
        released = run_release(session, release_of())
    whole, region, town, by_plan, region_and_plan, quarter, month = sums(released)
    assert by_plan == quarter == whole  # plan has `other`, and the day is never NULL
    assert region == region_and_plan
    assert max(region, town, month) <= whole
    said = {one.keys: one for one in plan.incomplete_keys}
    assert set(said) == {("region", "town"), ("sex",)}
    assert said["sex",].tables == ("n by town, sex", "n by month, sex")
    assert "sex IN ('f', 'm')" in said["sex",].remedy
    assert 'missing = "elsewhere" in [hierarchies.place]' in said["region", "town"].remedy


@pytest.mark.parametrize("missing", FORMS)
def test_numbers_that_are_true_together_stay(tmp_path: Path, missing: str) -> None:
    """The twin: every key counts as complete. Rows that lack a cell then move the numbers."""
    release = release_of("" if missing == PROVEN else missing, FORMS[missing])
    assert moved(tmp_path / "a", HOLES, release) <= ROUNDING
    assert moved(tmp_path / "b", CLEAN, release) <= ROUNDING
    if missing != PROVEN:  # by which rows without a cell are in no table
        assert moved(tmp_path / "c", HOLES, release, planted=True) > 2 * ROUNDING
    assert moved(tmp_path / "d", CLEAN, release, planted=True) <= ROUNDING


@pytest.mark.parametrize(
    ("key", "where", "expected"),
    [
        ("sex", "sex IN ('f', 'm')", True),
        ("sex", "sex = 'f'", True),
        ("sex", "sex IN ('f', 'x')", False),
        ("sex", "sex IN ('f', 'x') AND sex IN ('x', 'm', 'f') AND sex IN ('m', 'f')", True),
        ("sex", "sex = 'f' OR size = 1", False),
        ("sex", "sex <> 'x'", False),
        ("sex", "plan IN ('f', 'm')", False),
        ("visits.town AS town", "visits.town BETWEEN 1 AND 6", True),
        ("visits.town AS town", "visits.town BETWEEN 0 AND 6", False),
        ("visits.town AS town", "visits.town >= 1", False),
        ("visits.town AS town", "visits.town BETWEEN 2 AND 4", True),
        ("size", "size BETWEEN 0 AND 3", False),  # a decimal between its steps is in no cell
        ("size", "size IN (0, 1)", True),
        ("plan", "size > 0", True),
        ("day", "size > 0", True),
        ("CAST(DATE_TRUNC('month', day) AS DATE) AS month", "size > 0", True),
        ("place.region AS region", "visits.town BETWEEN 1 AND 6", True),
        ("place.region AS region", "visits.town BETWEEN 1 AND 7", False),
        ("place.region AS region", "sex = 'f'", False),
        ("COALESCE(place.region, 'x') AS region", "sex = 'f'", True),
    ],
)
def test_a_key_is_complete_if_every_row_has_a_cell(tmp_path: Path, key: str, where: str, expected: bool) -> None:
    """Complete by public facts. Then the cells of rows with holes add up to all of them, but for noise."""
    place = Hierarchy(name="place", levels=("region", "town"), table="places")
    rows = f"FROM visits LEFT JOIN places AS place ON visits.town = place.town WHERE {where}"
    by_key, in_all = f"SELECT {key}, COUNT(*) AS n {rows} GROUP BY ALL", f"SELECT COUNT(*) AS n {rows}"
    with opened(tmp_path / "t", HOLES) as session:
        plan = session._bind(session.moment(), by_key, ())
        levels = nestings_of([replace(place, missing=("x", 0)) if "COALESCE" in key else place], [plan], session)
        assert is_complete(plan.question.keys[0], plan.question.selection, levels) is expected
        inside, everyone = (session.sql(query, epsilon=45).to_arrow()["n"].to_pylist() for query in (by_key, in_all))
    if expected:  # noise of far less than the 30 rows with holes
        assert abs(sum(inside) - everyone[0]) < 10


def test_a_date_that_may_be_missing_is_not_complete(tmp_path: Path) -> None:
    catalog = CATALOG.replace(", nullable = false", "")
    with opened(tmp_path / "t", CLEAN, catalog) as session:
        (said,) = plan_release(session, release_of(MISSING, PROVEN)).incomplete_keys
    assert said.keys == ("quarter", "month")
    assert "nullable = false" in said.remedy


@pytest.mark.parametrize(
    "missing", ['missing = "elsewhere"\nx = 1', "missing = true", 'missing = [""]', 'missing = ["a", "b", "c"]']
)
def test_a_wrong_value_for_missing_places_is_refused(missing: str) -> None:
    with pytest.raises((CatalogError, InvalidParameter)):
        release_of(missing)


def test_a_value_for_missing_places_is_no_place(tmp_path: Path) -> None:
    with opened(tmp_path / "t", CLEAN) as session, pytest.raises(InvalidParameter, match="which is a town"):
        plan_release(session, release_of('missing = ["elsewhere", 3]'))


def test_conditions_below_a_join_count(tmp_path: Path) -> None:
    with opened(tmp_path / "t", CLEAN) as session:
        plan = session._bind(session.moment(), "SELECT sex, COUNT(*) AS n FROM visits WHERE sex = 'f' GROUP BY sex", ())
        (key,) = plan.question.keys
        assert kept_by_where(plan.question.selection, key.expression) == frozenset({"f"})


def test_report_and_workbook_name_tables_that_may_add_up_to_less(tmp_path: Path) -> None:
    said = "Some rows may lack a listed value of sex."
    for where, count in (("", 1), (PROVEN, 0)):
        release = replace(release_of(where=where), formats=(FileFormat.CSV, FileFormat.XLSX))
        with opened(tmp_path / f"data {count}", CLEAN) as session:
            run_release(session, release).write(tmp_path / f"files {count}")
        report = (tmp_path / f"files {count}" / "method.html").read_text("utf-8")
        with ZipFile(tmp_path / f"files {count}" / "tables.xlsx") as workbook:
            texts = "".join(workbook.read(name).decode() for name in workbook.namelist() if name.endswith(".xml"))
        assert (report.count(said), texts.count(said)) == (count, count)
        assert texts.count("Columns that end in _adjusted") == 1
        manifest = json.loads((tmp_path / f"files {count}" / "manifest.json").read_text("utf-8"))
        assert len(manifest.get("incomplete_keys", ())) == 2 * count

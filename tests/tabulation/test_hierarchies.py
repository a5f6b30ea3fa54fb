"""Levels of places and dates: measured as one workload, added up exactly, and refused if the public table is wrong."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch

import numpy as np
import pytest

from lapwing.catalog.toml import loads
from lapwing.errors import CatalogError, InvalidParameter, QueryRefused, RefusalCause
from lapwing.mechanisms import residual_marginals
from lapwing.opening import open_session
from lapwing.release import workloads
from lapwing.session import Session
from lapwing.tabulation import (
    Hierarchy,
    ReleasedTables,
    ReleaseTable,
    TableRelease,
    nestings,
    plan_release,
    run_release,
)
from tests.support.effort import one_in
from tests.support.fixed_entropy import StreamEntropy

CATALOG = """
[dataset]
name = "towns"
ledger = "sqlite:towns.db"
[budget]
epsilon = 100
delta = 1e-6
{budget}
[tables.visits]
source = "visits.csv"
privacy_unit = "person"
max_rows_per_unit = 1
[tables.visits.columns]
municipality = {{ type = "string"{listed} }}
sex = {{ type = "string", values = ["f", "m"] }}
day = {{ type = "date", lower = 2024-10-01, upper = 2025-03-31 }}
[tables.places]
source = "places.csv"
public = true
[tables.places.columns]
region = {{ type = "string" }}
district = {{ type = "string" }}
municipality = {{ type = "string" }}
"""
PLACES = [(f"r{n // 6}", f"d{n // 2}", f"m{n}") for n in range(12)]
PEOPLE = [
    (n, f"m{n * n % 14}", "fm"[n % 2], f"202{4 + (n % 6 < 3)}-{(1 if n % 6 < 3 else 7) + n % 6:02}-15")
    for n in range(300)
]
LEVELS = ("region", "district", "municipality", "sex", "year", "quarter", "month")
RELEASE = """
title = "Visits"
epsilon = 0.5
adjusted = true
[hierarchies.place]
table = "places"
levels = ["region", "district", "municipality"]
[hierarchies.time]
column = "day"
levels = ["year", "quarter", "month"]
[tables.n]
select = "COUNT(*) AS n"
from = "visits"
by = [[], ["region"], ["district"], ["municipality", "sex"], ["region", "sex", "year"], ["month"]]
[tables.more]
select = "COUNT(*) AS n"
from = "visits"
by = [["sex"], ["quarter"]]
"""


def opened(
    folder: Path, places: Sequence[Sequence[str]] = PLACES, people: Any = PEOPLE, budget: str = "", listed: str = ""
) -> Session:
    folder.mkdir(exist_ok=True)
    for name, head, rows in (
        ("visits", "person,municipality,sex,day", people),
        ("places", "region,district,municipality", places),
    ):
        text = "".join(",".join(map(str, row)) + "\n" for row in rows)
        (folder / f"{name}.csv").write_text(f"{head}\n{text}")
    catalog = loads(CATALOG.format(budget=budget, listed=listed), file="towns", folder=folder)
    return open_session(catalog, entropy=StreamEntropy("towns"))


def silent(_variance: Any, size: int, _entropy: object) -> Any:
    return np.zeros(size, dtype=np.int64)


def counted(keys: Sequence[str]) -> dict[tuple[Any, ...], int]:
    """The true numbers of people by some levels; those without a listed value are in no cell."""
    above = {row[2]: row for row in PLACES}
    numbers: dict[tuple[Any, ...], int] = {}
    for _, municipality, sex, text in PEOPLE:
        day = date.fromisoformat(text)
        quarter = day.replace(month=1 + 3 * ((day.month - 1) // 3), day=1)
        place = dict(zip(("region", "district", "municipality"), above.get(municipality, (None,) * 3), strict=True))
        facts = {**place, "sex": sex, "year": day.year, "quarter": quarter, "month": day.replace(day=1)}
        cell = tuple(facts[key] for key in keys)
        numbers[cell] = numbers.get(cell, 0) + 1
    return {cell: number for cell, number in numbers.items() if None not in cell}


def require_true(released: ReleasedTables) -> None:
    for place in range(len(released.tables)):
        rows = released.arrow(place).to_pylist()
        keys = [key for key in LEVELS if key in rows[0]]
        truth = counted(keys)
        assert all(row["n"] == truth.get(tuple(row[key] for key in keys), 0) for row in rows), keys


def test_levels_are_one_workload_of_true_margins(tmp_path: Path) -> None:
    """The twin: a district in the wrong region."""
    release = replace(TableRelease.from_text(RELEASE), adjusted=False)
    with patch.object(residual_marginals, "rounded_gaussian", silent):
        with opened(tmp_path / "a") as session:
            released = run_release(session, release)
        require_true(released)
        swapped = [("r1" if region == "r0" else "r0", *rest) for region, *rest in PLACES]
        right = nestings.PublicPlaces.of
        wrong = staticmethod(lambda *given: replace(right(*given), rows=tuple(map(tuple, swapped))))
        with opened(tmp_path / "b") as session, patch.object(nestings.PublicPlaces, "of", wrong):
            released_wrong = run_release(session, release)
        with pytest.raises(AssertionError):
            require_true(released_wrong)
    assert all(len(table.planned.measured_with) == len(release.tables) - 1 for table in released.tables)
    numbers = [table.planned.numbers[0] for table in released.tables]
    assert all(one.half_width < 0.9 * one.table_by_table for one in numbers if one.half_width and one.table_by_table)


def require_levels_add_up(released: ReleasedTables, suffix: str = "_adjusted") -> None:
    """Assert that numbers are whole and not negative, and that a level is the sum of the finer one."""
    tables = {}
    for place, table in enumerate(released.tables):
        rows = released.arrow(place).to_pylist()
        keys = [key for key in LEVELS if key in rows[0]]
        tables[table.planned.name.partition(" ")[2]] = {tuple(r[k] for k in keys): r[f"n{suffix}"] for r in rows}
    assert all(isinstance(one, int) and one >= 0 for table in tables.values() for one in table.values())
    region, district, cross = tables["by region"], tables["by district"], tables["by municipality, sex"]
    for (name,), number in region.items():
        inside = {row[1] for row in PLACES if row[0] == name}
        assert number == sum(district[one,] for one in inside)
    for (name,), number in district.items():
        towns = {row[2] for row in PLACES if row[1] == name}
        # Rows may lack a sex as far as the catalog says, so the table by sex adds up to at most that.
        assert number >= sum(value for (town, _), value in cross.items() if town in towns)
    months, quarters = tables["by month"], tables["by quarter"]
    for (begin,), number in quarters.items():
        assert number == sum(value for (day,), value in months.items() if begin <= day < _after(begin))
    assert tables["in all"][()] >= sum(region.values())
    by_sex = {
        sex: sum(value for (_, one, _), value in tables["by region, sex, year"].items() if one == sex) for sex in "fm"
    }
    assert all(tables["by sex"][sex,] >= number for sex, number in by_sex.items())


@pytest.mark.parametrize("levels", one_in(2, [["year", "month", "day"], ["year", "quarter", "month"]]))
def test_a_level_between_two_may_have_no_table(tmp_path: Path, levels: Sequence[str]) -> None:
    time = Hierarchy(name="time", levels=tuple(levels), column="day")
    by = [[levels[0]], [levels[2]]]
    tables = ReleaseTable.margins("n", select="COUNT(*) AS n", source="visits", by=by, hierarchies=[time])
    release = TableRelease(title="t", epsilon=1, tables=tables, hierarchies=(time,), adjusted=True)
    with opened(tmp_path) as session:
        released = run_release(session, release)
    years, days = (released.arrow(n).to_pylist() for n in range(2))
    for row in years:
        inside = [one["n_adjusted"] for one in days if one[levels[2]].year == row["year"]]
        assert row["n_adjusted"] == sum(inside)


def _after(begin: date) -> date:
    return date(begin.year + (begin.month == 10), 1 if begin.month == 10 else begin.month + 3, 1)


@pytest.mark.parametrize("budget", one_in(3, ["", 'measure = "zcdp"', 'neighbouring = "replace_one"']))
def test_adjusted_numbers_add_up_through_all_levels(tmp_path: Path, budget: str) -> None:
    with opened(tmp_path, budget=budget) as session:
        released = run_release(session, TableRelease.from_text(RELEASE))
        assert session.budget().spent == released.plan.cost
        again = run_release(session, TableRelease.from_text(RELEASE))
    require_levels_add_up(released)
    assert again.stored
    assert [again.arrow(n) for n in range(8)] == [released.arrow(n) for n in range(8)]
    with pytest.raises(AssertionError):  # small released numbers are negative
        require_levels_add_up(released, "")


@pytest.mark.long
def test_the_measurements_lose_no_more_than_is_charged(tmp_path: Path) -> None:
    found: list[tuple[Any, Any]] = []
    right = workloads.workloads_of

    def watched(buying: Any, *rest: Any) -> Any:
        found.append((buying, right(buying, *rest)))
        return found[-1][1]

    with opened(tmp_path) as session, patch.object(workloads, "workloads_of", watched):
        run_release(session, replace(TableRelease.from_text(RELEASE), adjusted=False))
    ((buying, (workload,)),) = found
    terms = [buying[place].bought.terms[at] for place, at in workload.members]
    unit = workloads._unit(buying[0].bought.question, terms[0].measure, "add_remove")
    assert workload.mechanism.loss(unit, "gdp").amount <= sum(term.loss("gdp").amount for term in terms)
    assert [len(attribute.sizes) for attribute in workload.attributes] == [3, 1, 3]


WRONG = {
    "lies in two of region": [*PLACES, ("r1", "d0", "m12")],
    "lies in two of district": [*PLACES, ("r0", "d1", "m0")],
    "stands in two rows": [*PLACES, PLACES[3]],
    "has no district": [*PLACES, ("r1", "", "m12")],
    "has no region": [("", "d0", "m0"), *PLACES[2:]],
    "which the table lacks": PLACES[:11],
}


@pytest.mark.parametrize("said", WRONG)
def test_a_wrong_public_table_is_refused_before_the_charge(tmp_path: Path, said: str) -> None:
    listed = ', values = ["m0", "m11"]'
    with opened(tmp_path, WRONG[said], listed=listed) as session:
        with pytest.raises(InvalidParameter, match=said):
            run_release(session, TableRelease.from_text(RELEASE))
        assert not session.history()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('levels = ["region", "district", "municipality"]', 'levels = ["region", "district", "region"]'),
        ('levels = ["region", "district", "municipality"]', 'levels = ["municipality"]'),
        ('levels = ["year", "quarter", "month"]', 'levels = ["month", "year"]'),
        ('levels = ["year", "quarter", "month"]', 'levels = ["year", "decade"]'),
        ('column = "day"\n', ""),
        ('["district"]', '["region", "district"]'),
        ('levels = ["year", "quarter", "month"]', 'levels = ["year", 3]'),
        ('levels = ["year", "quarter", "month"]', 'levels = ["year", "x; y"]'),
        ('from = "visits"', 'from = "visits AS v JOIN visits AS w USING (person)"'),
    ],
)
def test_a_wrong_hierarchy_is_refused(old: str, new: str) -> None:
    assert old in RELEASE
    with pytest.raises(CatalogError):
        TableRelease.from_text(RELEASE.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('table = "places"', 'table = "visits"', r"\[tables.visits\] with public = true"),
        ('table = "places"', 'table = "towns"', r"'place': the catalog has no public table 'towns'"),
        ('"municipality"]', '"parish"]', "'place': the public table 'places' has no column parish"),
        (', "municipality"]\n[h', "]\n[h", "'place': no protected table has a column 'district'.* end the levels with"),
        (', "municipality"]\n[h', ', "municipality"]\ncolumn = "town"\n[h', "no protected table has a column 'town'"),
    ],
)
def test_a_public_table_that_the_catalog_lacks_is_named(tmp_path: Path, old: str, new: str, said: str) -> None:
    text = RELEASE.replace(old, new, 1)
    with opened(tmp_path) as session:
        with pytest.raises(InvalidParameter, match=said):
            run_release(session, TableRelease.from_text(text))
        assert not session.history()


def test_a_last_level_of_another_type_is_named(tmp_path: Path) -> None:
    text = CATALOG.format(budget="", listed="")
    place = Hierarchy(name="place", levels=LEVELS[:3], table="places")
    with opened(tmp_path) as session:
        number = 'municipality = { type = "integer" }\n'
        catalog = loads(text[: text.rindex("municipality")] + number, file="towns", folder=tmp_path)
        wrong = cast(Session, SimpleNamespace(catalog=catalog))
        with pytest.raises(InvalidParameter, match="'municipality' is string in your data, and the level"):
            nestings.require_public_tables([place], wrong)
        nestings.require_public_tables([place], session)


def test_a_level_in_a_query_is_refused_with_what_to_write(tmp_path: Path) -> None:
    query = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"
    text = f'{RELEASE}[tables.other]\nquery = "{query}"\n'
    with opened(tmp_path) as session, pytest.raises(QueryRefused) as refused:
        plan_release(session, TableRelease.from_text(text))
    assert refused.value.cause is RefusalCause.UNKNOWN_COLUMN
    assert "select, from and by" in refused.value.remedy
    select = "1.0 * COUNT(DISTINCT person) / COUNT(*) AS part"
    ratio = f'{RELEASE}[tables.other]\nselect = "{select}"\nfrom = "visits"\nby = [["region"]]\n'
    with opened(tmp_path / "ratio") as session:
        assert plan_release(session, TableRelease.from_text(ratio)).tables[-1].cells == 2


def test_two_hierarchies_have_levels_of_their_own() -> None:
    one = Hierarchy(name="a", levels=("year", "month"), column="day")
    release = TableRelease.from_text(RELEASE)
    with pytest.raises(InvalidParameter, match="Two hierarchies"):
        replace(release, hierarchies=(one, replace(one, name="b")))

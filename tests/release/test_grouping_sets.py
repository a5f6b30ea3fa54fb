"""ROLLUP, CUBE and GROUPING SETS: what they mean, and how far one unit moves them."""

from collections.abc import Iterator
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import loads
from lapwing.engines import DuckDB
from lapwing.query.bind.bind import bind
from lapwing.query.plan.plan import Question
from lapwing.query.sensitivity import stability
from lapwing.release.cells import cells_of, exact_values
from tests.support.effort import only
from tests.support.engines.tables import run
from tests.support.refusals import refused_as
from tests.support.release.tables import protected, visits

CATALOG = """
[dataset]
name = "small"
ledger = "sqlite:small.db"
[budget]
epsilon = 1
delta = 1e-6
delta_keys = 1e-7
[tables.visits]
source = "visits.parquet"
privacy_unit = "person"
max_rows_per_unit = 2
[tables.visits.columns]
plan = { type = "string", values = ["a", "b"] }
member = { type = "boolean" }
age = { type = "integer", lower = 0, upper = 3 }
town = { type = "string" }
"""
SETS = {
    "GROUP BY ROLLUP (plan, member)": ["plan, member", "plan", ""],
    "GROUP BY CUBE (plan, member)": ["plan, member", "plan", "member", ""],
    "GROUP BY GROUPING SETS ((plan), (member), ())": ["plan", "member", ""],
    "GROUP BY plan, ROLLUP (member)": ["plan, member", "plan"],
    "GROUP BY GROUPING SETS ((plan), (plan), ROLLUP (member))": ["plan", "member", ""],
    "GROUP BY ROLLUP ((plan, member))": ["plan, member", ""],
}


def catalog(folder: Path) -> Catalog:
    return loads(CATALOG, file="small", folder=folder)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[lw.Session]:
    with protected(visits(tmp_path)) as session:
        yield session


@pytest.mark.parametrize("clause", SETS)
def test_the_sets_are_those_of_sql(clause: str, tmp_path: Path) -> None:
    question = bind(f"SELECT COUNT(*) AS n FROM visits {clause}", catalog(tmp_path)).question
    found = [", ".join(sorted((key.name for key in part.keys), reverse=True)) for part in question.parts]
    assert sorted(found) == sorted(SETS[clause])


@pytest.mark.parametrize("clause", only([0], SETS))
def test_the_cells_are_those_of_plain_sql(clause: str, tmp_path: Path) -> None:
    rows = [
        (person, plan, member, age) for person, (plan, member, age) in enumerate(product("ab", (True, False), (0, 3)))
    ]
    names = ("person", "plan", "member", "age")
    table = pa.table(dict(zip(names, zip(*rows, strict=True), strict=True)) | {"town": ["x"] * len(rows)})
    pq.write_table(table, tmp_path / "visits.parquet")
    plan = bind(f"SELECT plan, member, COUNT(*) AS n, SUM(age) AS s FROM visits {clause}", catalog(tmp_path))
    engine = DuckDB(catalog(tmp_path), threads=1)
    found = run(engine, plan.question)
    engine.close()
    ours = {
        (
            *(
                cell[[key.name for key in plan.question.keys].index(name)] if name in _names(plan.question) else None
                for name in ("plan", "member")
            ),
            *values,
        )
        for cell, values in found.items()
    }
    wanted = duckdb.connect().execute(
        f"SELECT plan, member, COUNT(*), SUM(age) FROM '{tmp_path}/visits.parquet' {clause}"
    )
    assert ours == set(wanted.fetchall())


def _names(question: Question) -> list[str]:
    return [key.name for key in question.keys]


# ---- sensitivity -----------------------------------------------------------------------------------------------------

KINDS = list(product(("a", "b"), (True, False), (0, 3)))


def moved(question: Question, unit: tuple[tuple[str, bool, int], ...]) -> dict[int, list[int]]:
    """Return what a unit's rows add to every cell of every measure, by hand."""
    names = [key.name for key in question.keys]
    found: dict[int, list[int]] = {}
    for place, measure in enumerate(question.measures):
        vector = []
        for cell in cells_of(question):
            wanted = dict(zip(names, cell, strict=True))
            rows = [
                row
                for row in unit
                if all(wanted.get(name) in (None, value) for name, value in zip(("plan", "member"), row, strict=False))
            ]
            text = str(measure)
            vector.append(
                min(1, len(rows)) if "unit" in text else sum(row[2] for row in rows) if "SUM" in text else len(rows)
            )
        found[place] = vector
    return found


def excess(question: Question, neighbouring: str) -> list[tuple[int, int]]:
    """Return how far claims are above the farthest that any unit of two rows moves, in either norm."""
    claims = stability.of_question(question, neighbouring)
    units = [moved(question, unit) for size in (1, 2) for unit in combinations_with_replacement(KINDS, size)]
    nothing = {place: [0] * len(cells_of(question)) for place in range(len(question.measures))}
    pairs = [(unit, nothing) for unit in units]
    if neighbouring == "replace_one":
        pairs += [(one, other) for one in units for other in units]
    found = []
    for place, candidates in enumerate(claims):
        gaps = [[a - b for a, b in zip(one[place], other[place], strict=True)] for one, other in pairs]
        l1, l2 = max(sum(map(abs, gap)) for gap in gaps), max(sum(x * x for x in gap) for gap in gaps)
        least_l1 = min(int(candidate.sensitivity.l1) for candidate in candidates)
        least_l2 = min(int(candidate.sensitivity.l2_squared) for candidate in candidates)
        found.append((least_l1 - l1, least_l2 - l2))
    return found


QUESTION = "SELECT COUNT(*) AS n, SUM(age) AS s, COUNT(DISTINCT person) AS p FROM visits {}"


@pytest.mark.parametrize("neighbouring", ["add_remove", "replace_one"])
@pytest.mark.parametrize("clause", SETS)
def test_no_unit_moves_the_cells_further_than_claimed(clause: str, neighbouring: str, tmp_path: Path) -> None:
    question = bind(QUESTION.format(clause), catalog(tmp_path)).question
    assert all(l1 >= 0 and l2 >= 0 for l1, l2 in excess(question, neighbouring))


@pytest.mark.parametrize("clause", SETS)
def test_some_unit_moves_rows_as_far_as_claimed(clause: str, tmp_path: Path) -> None:
    question = bind(QUESTION.format(clause), catalog(tmp_path)).question
    assert excess(question, "add_remove")[:2] == [(0, 0), (0, 0)]


def test_sets_that_are_forgotten_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stability, "_together", lambda sets: sets[0])
    question = bind(QUESTION.format("GROUP BY ROLLUP (plan, member)"), catalog(tmp_path)).question
    assert any(l1 < 0 or l2 < 0 for l1, l2 in excess(question, "add_remove"))


# ---- answers ---------------------------------------------------------------------------------------------------------


def test_totals_come_after_parts_and_grouping_tells_them_apart(session: lw.Session) -> None:
    answer = session.sql(
        "SELECT plan, GROUPING(plan) AS total, COUNT(*) AS n FROM visits GROUP BY ROLLUP (plan)", epsilon=3
    )
    assert [(row["plan"], row["total"]) for row in answer.rows()] == [("a", 0), ("b", 0), ("c", 0), (None, 1)]
    (low,), (high,) = (ends[3:] for ends in answer.interval(1 - 1e-9)["n"])
    assert low <= 400 <= high


def test_the_same_sets_in_other_words_are_the_same_question(session: lw.Session) -> None:
    bought = session.sql("SELECT plan, COUNT(*) AS n FROM visits GROUP BY ROLLUP (plan)", epsilon=1)
    again = session.sql("SELECT COUNT(*) AS n, plan FROM visits GROUP BY GROUPING SETS ((plan), ())", epsilon=1)
    assert again.stored
    assert [row["n"] for row in again.rows()] == [row["n"] for row in bought.rows()]


@pytest.mark.parametrize(
    ("clause", "reason"),
    [
        ("GROUP BY CUBE (plan, member, age, plan, plan, plan, plan)", "too_many_grouping_sets"),
        ("GROUP BY ROLLUP (town, plan)", "values_not_public"),
        ("GROUP BY ROLLUP (person)", "shows_units"),
        ("GROUP BY ROLLUP (COUNT(*))", "invalid_group_key"),
    ],
)
def test_what_has_no_public_sets_is_refused(clause: str, reason: str, tmp_path: Path) -> None:
    with refused_as(reason):
        bind(f"SELECT COUNT(*) AS n FROM visits {clause}", catalog(tmp_path))


def test_exact_values_are_laid_out_set_by_set(tmp_path: Path) -> None:
    question = bind("SELECT COUNT(*) AS n FROM visits GROUP BY ROLLUP (plan)", catalog(tmp_path)).question
    cells: dict[Any, Any] = {("a",): (5,), (None,): (7,)}
    assert [values.tolist() for values in exact_values(question, cells, cells_of(question))] == [[5, 0, 7]]

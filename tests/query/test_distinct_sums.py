"""SUM(DISTINCT x) and distinct rows: what they are, and how far one unit moves a sum, by brute force."""

from collections.abc import Iterable
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.catalog.toml import loads
from lapwing.query.bind.bind import bind
from lapwing.query.measures.distinct_sums import SumDistinct
from lapwing.query.plan.plan import Question
from lapwing.query.sensitivity import stability
from lapwing.query.sensitivity.score_stability import direction
from tests.support.effort import one_in, only
from tests.support.refusals import refused_as

CATALOG = """
[dataset]
name = "visits"
ledger = "sqlite:v.db"
[budget]
epsilon = 1
delta = 1e-6
[tables.visits]
source = "visits.parquet"
privacy_unit = "person"
max_rows_per_unit = {rows}
[tables.visits.columns]
person = {{ type = "integer" }}
plan = {{ type = "integer", values = [0, 1] }}
age = {{ type = "integer", lower = {low}, upper = {high} }}
"""
Row = tuple[int, int]
"""A cell and a value."""


def question_of(rows: int, low: int, high: int, keys: str) -> Question:
    text = CATALOG.format(rows=rows, low=low, high=high)
    asked = "SELECT SUM(DISTINCT age) AS s FROM visits"
    if keys:
        asked = f"{asked.replace('SELECT', f'SELECT {keys},')} GROUP BY {keys}"
    return bind(asked, loads(text, file="visits", folder=Path())).question


def sums(rows: Iterable[Row], cells: int) -> list[int]:
    there = set(rows)
    return [sum(value for at, value in there if at == cell) for cell in range(cells)]


@pytest.mark.parametrize("neighbouring", ["add_remove", "replace_one"])
@pytest.mark.parametrize(("low", "high"), only((0, 3), [(0, 2), (-1, 2), (-2, 0), (1, 2), (-2, -1)], many=True))
@pytest.mark.parametrize("keys", ["", "plan"])
def test_no_unit_moves_it_further_than_is_claimed(neighbouring: str, low: int, high: int, keys: str) -> None:
    cells, rows = (2, 2) if keys else (1, 2)
    question = question_of(rows, low, high, keys)
    (measure,), ((bound,),) = question.measures, stability.of_question(question, neighbouring)
    assert isinstance(measure, SumDistinct)
    points = list(product(range(cells), range(low, high + 1)))
    units = [unit for size in range(rows + 1) for unit in combinations_with_replacement(points, size)]
    others = units if neighbouring == "replace_one" else [()]
    furthest = squared = 0
    for rest in units:
        for one, other in product(units, others):
            pairs = zip(sums([*rest, *one], cells), sums([*rest, *other], cells), strict=True)
            moved = [x - y for x, y in pairs]
            furthest, squared = max(furthest, sum(map(abs, moved))), max(squared, sum(x * x for x in moved))
            if neighbouring == "add_remove":
                assert all(x * direction(measure) >= 0 for x in moved) or direction(measure) == 0
    assert furthest <= bound.sensitivity.l1
    assert squared <= bound.sensitivity.l2_squared
    # A person's values are all different, or count once: of two rows one may be at the bound and another beside it.
    assert furthest >= bound.sensitivity.l1 - (2 if neighbouring == "replace_one" else 1) * max(1, rows - 1) * 2


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("distinct sums")
    generator = np.random.default_rng(1)
    table = pa.table(
        {
            "person": np.arange(900) // 3,
            "plan": generator.choice(["a", "b"], 900),
            "age": pa.array([None if n % 7 == 0 else int(n % 90) for n in generator.integers(0, 999, 900)]),
            "cost": generator.exponential(300, 900).clip(0, 5000).round(1),
        }
    )
    pq.write_table(table, folder / "visits.parquet")
    with lw.protect(
        folder / "visits.parquet",
        privacy_unit="person",
        epsilon=10**9,
        max_rows_per_unit=3,
        bounds={"age": (0, 110)},
        domains={"plan": ["a", "b"]},
    ) as opened:
        yield opened


@pytest.mark.long
@pytest.mark.parametrize(
    "text",
    one_in(
        6,
        [
            "SELECT SUM(DISTINCT age) AS s, SUM(age) AS t, COUNT(DISTINCT age) AS c FROM visits",
            "SELECT plan, SUM(DISTINCT age - 40) AS s FROM visits GROUP BY plan ORDER BY plan",
            "SELECT SUM(DISTINCT age // 10) FILTER (WHERE plan = 'a') AS s FROM visits WHERE age > 20",
            "SELECT plan, SUM(DISTINCT age) AS s FROM visits GROUP BY ROLLUP (plan) ORDER BY plan",
            "SELECT plan, AVG(DISTINCT age) AS a FROM visits GROUP BY plan ORDER BY plan",
            "SELECT SUM(DISTINCT n) AS s FROM "
            "(SELECT person, COUNT(*) AS n FROM visits WHERE age > 40 GROUP BY person)",
            "SELECT SUM(DISTINCT CASE WHEN age > 200 THEN age END) AS s FROM visits",
            "SELECT COUNT(*) AS n FROM (SELECT DISTINCT age FROM visits)",
            "SELECT COUNT(*) AS n FROM (SELECT DISTINCT plan, age FROM visits WHERE age > 20 OR age IS NULL) AS t",
            "SELECT COUNT(*) AS n FROM (SELECT DISTINCT age // 10 AS decade, NULLIF(plan, 'b') FROM visits)",
        ],
    ),
)
def test_it_is_that_of_sql(session: lw.Session, text: str) -> None:
    ours = session.sql(text, epsilon=10**6).rows()
    path = Path(session.catalog.folder) / "visits.parquet"
    with duckdb.connect() as plain:
        theirs = plain.execute(text.replace("FROM visits", f"FROM '{path}'")).fetchall()
    # Of no values it is 0 here, as every sum is.
    whole = [tuple(0 if x is None and len(row) == 1 else x for x in row) for row in theirs]
    assert [tuple(row.values()) for row in ours] == whole


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT SUM(DISTINCT age, cost) FROM visits", "wrong_argument_count"),
        ("SELECT SUM(DISTINCT plan) FROM visits", "wrong_type"),
        ("SELECT SUM(DISTINCT person) FROM visits", "unbounded"),
        ("SELECT SUM(DISTINCT age, contribution_bounds_per_group => (0, 5)) FROM visits", "inapplicable_option"),
        ("SELECT SUM(DISTINCT age, contribution_bounds_per_row => AUTO) FROM visits", "invalid_bounds"),
        ("SELECT AVG(DISTINCT plan) FROM visits", "wrong_type"),
        ("SELECT COUNT(*) FROM (SELECT DISTINCT cost FROM visits)", "cast_not_supported"),
        (
            "SELECT COUNT(*) FROM (SELECT DISTINCT plan FROM visits) WHERE plan = 'a'",
            "mixes_units",
        ),
        ("SELECT COUNT(*) FROM (SELECT DISTINCT plan FROM visits LIMIT 1)", "mixes_units"),
        ("SELECT COUNT(plan) FROM (SELECT DISTINCT plan FROM visits)", "mixes_units"),
    ],
)
def test_what_is_not_answered_is_refused(session: lw.Session, text: str, said: str) -> None:
    with refused_as(said):
        session.sql(text, epsilon=1)

"""Floats of public tables in joins and conditions: they are compared as they are read, as DuckDB compares them."""

import math
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.catalog.toml import load
from lapwing.engines.duckdb.lockdown import DISABLED_OPTIMIZERS
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.errors import RefusalCause
from lapwing.query.bind.bind import bind
from lapwing.query.expressions.conversion import to_real
from lapwing.query.expressions.expression import ColumnReference, Expression, Operation
from lapwing.query.relations.public_join import PublicJoin
from lapwing.query.relations.public_rows import ComparedRange
from tests.support.effort import one_in, only
from tests.support.query.neighbours import CODE_SCHEMA, awkward_row, catalog, violations
from tests.support.refusals import refused_as

CATALOG = """
[dataset]
name = "costs"
ledger = "sqlite:costs.db"
[budget]
epsilon = 1e30
measure = "pure"
[tables.visits]
source = "visits.parquet"
privacy_unit = "person"
max_rows_per_unit = 2
[tables.visits.columns]
cost = { type = "float", lower = -10, upper = 100 }
pay = { type = "decimal", lower = 0, upper = 100, step = 0.01 }
age = { type = "integer", lower = 0, upper = 100 }
wide = { type = "float" }
[tables.bands]
source = "bands.parquet"
public = true
[tables.bands.columns]
name = { type = "string" }
fl = { type = "float" }
fh = { type = "float" }
bounded = { type = "float", lower = 0, upper = 60 }
stepped = { type = "float", step = 0.01 }
short = { type = "float" }
"""
EXACT = 10**10
NAN, INF = math.nan, math.inf
COSTS = [99.99, 0.1, 33.3, 50.0, -0.0, 95.0, 0.30000000000000004, 0.3, None, INF, -INF, NAN, 1e30, 5e-324, 60.0]
FLOATS = [99.99, 0.1, 33.3, 0.0, 0.3, None, NAN, INF, -INF, 50.0, 1e-300]
BANDS = [
    ("low", -0.0, 50.0, 0.1, 0.3, 0.5),
    ("high", 50.0, INF, 99.99, 99.99, 60.0),
    ("cheap", 99.99, 99.99, 33.3, 33.3, 0.25),
    ("under", -INF, 0.1, INF, 0.25, None),
    ("none", NAN, 33.3, None, None, 0.0),
    ("third", 33.3, 0.30000000000000004, NAN, 0.1, 33.0),
    ("missing", None, 1e-300, 60.0, 50.0, 95.0),
]
QUERIES = [
    "SELECT COUNT(*) AS n FROM visits v JOIN bands b ON v.cost = b.fl",
    "SELECT COUNT(*) AS n FROM visits v JOIN bands b ON v.pay = b.fl",
    "SELECT COUNT(*) AS n FROM visits v JOIN bands b ON v.age = b.fl",
    "SELECT COUNT(*) AS n FROM visits v JOIN bands b ON v.cost = b.fl * 3 WHERE v.cost < 1000 AND v.cost > -1000",
    "SELECT COUNT(*) AS n FROM visits v JOIN bands b ON v.cost > b.fl",
    "SELECT COUNT(*) AS n FROM visits v JOIN bands b ON v.pay >= b.fl AND v.pay < b.fh",
    "SELECT COUNT(*) AS n FROM visits v JOIN bands b ON v.cost >= b.fl AND v.cost <= b.fl",
    "SELECT b.name, COUNT(*) AS n FROM visits v JOIN bands b ON v.cost >= b.fl AND v.cost < b.fh GROUP BY b.name",
    "SELECT COUNT(*) AS n FROM visits v LEFT JOIN bands b ON v.cost BETWEEN b.fl AND b.fh",
    "SELECT COUNT(*) AS n FROM visits v LEFT JOIN bands b ON v.cost = b.fl WHERE b.name IS NULL",
    "SELECT COUNT(*) AS n FROM visits v JOIN bands b ON v.cost = b.bounded",
    "SELECT COUNT(*) AS n FROM visits v JOIN bands b ON v.cost = b.stepped",
    "SELECT COUNT(*) AS n FROM visits v JOIN bands b ON v.cost = b.short",
    "SELECT COUNT(*) AS n FROM visits v JOIN bands b ON v.cost > b.fl WHERE b.fh > 60",
    "SELECT COUNT(*) AS n FROM visits v JOIN bands b ON v.cost > b.fl WHERE b.bounded = 0.1",
    "SELECT COUNT(*) AS n FROM visits v JOIN bands b ON v.cost > b.fl AND b.fh IN (33.3, 0.1)",
    "SELECT COUNT(*) AS n FROM visits WHERE cost IN (SELECT fl FROM bands)",
    "SELECT COUNT(*) AS n FROM visits WHERE cost IN (SELECT fl FROM bands WHERE fh > 60)",
    "SELECT COUNT(*) AS n FROM visits WHERE cost NOT IN (SELECT fl FROM bands WHERE fl IS NOT NULL)",
    "SELECT COUNT(*) AS n FROM visits WHERE age > 40 OR cost IN (SELECT fl FROM bands WHERE fh < 60 AND fl > 0)",
    "SELECT COUNT(*) AS n FROM visits v WHERE EXISTS (SELECT 1 FROM bands b WHERE b.fl = v.cost)",
    "SELECT COUNT(*) AS n FROM visits v WHERE NOT EXISTS (SELECT 1 FROM bands b WHERE b.fl = v.cost AND b.fh > 60)",
    "SELECT COUNT(*) AS n FROM visits WHERE cost >= (SELECT MAX(bounded) FROM bands WHERE bounded < 99.995)",
    "SELECT COUNT(*) AS n FROM visits WHERE cost >= (SELECT MAX(fl) FROM bands WHERE fl > -9)",
    "SELECT COUNT(*) AS n FROM visits WHERE cost = (SELECT fl FROM bands WHERE name = 'cheap')",
    "SELECT COUNT(*) AS n FROM visits v, bands b, bands c WHERE v.cost = b.fl AND b.fl = c.bounded",
    "SELECT COUNT(*) AS n FROM visits v LEFT JOIN bands b ON v.cost = b.fl AND v.age < b.fh",
    "SELECT COUNT(*) AS n FROM visits v JOIN (SELECT DISTINCT fl FROM bands) d ON v.cost = d.fl",
    "SELECT COUNT(*) AS n FROM visits v JOIN (SELECT fl * 2 AS d FROM bands) s ON v.cost > s.d WHERE v.cost > -99",
    "SELECT COUNT(*) AS n FROM visits v JOIN (SELECT fl AS cost FROM bands) s USING (cost)",
    "SELECT SUM(CASE WHEN v.cost = b.fl THEN 1 ELSE 0 END) AS n FROM visits v JOIN bands b ON v.cost >= b.fl",
    "SELECT COUNT(*) FILTER (WHERE b.fh > 60) AS n FROM visits v JOIN bands b ON v.cost > b.fl",
    "SELECT COUNT(*) AS n FROM (SELECT v.cost, b.fl AS f FROM visits v JOIN bands b ON v.cost >= b.fl) AS s "
    "WHERE s.f = 0.1",
    "SELECT CASE WHEN b.fh > 60 THEN 'open' ELSE 'closed' END AS k, COUNT(*) AS n FROM visits v JOIN bands b "
    "ON v.cost >= b.fl GROUP BY 1",
    "SELECT COUNT(*) AS n FROM bands WHERE fh > 60",
    "SELECT COUNT(*) AS n FROM bands WHERE fl = 99.99",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("costs")
    write(folder, COSTS, BANDS)
    return folder


def write(folder: Path, costs: Sequence[float | None], bands: Sequence[tuple[object, ...]]) -> None:
    (folder / "lapwing.toml").write_text(CATALOG)
    pays = [None if cost is None or not 0 <= cost <= 100 else round(cost, 2) for cost in costs]
    ages = [None if pay is None else int(pay) for pay in pays]
    person = list(range(len(costs)))
    visits = {
        "person": person,
        "cost": pa.array(costs, pa.float64()),
        "pay": pays,
        "age": ages,
        "wide": pa.array(costs, pa.float64()),
    }
    pq.write_table(pa.table(visits), folder / "visits.parquet")
    names = ("name", "fl", "fh", "bounded", "stepped", "short")
    columns = dict(zip(names, map(list, zip(*bands, strict=True)), strict=True))
    pq.write_table(pa.table(columns), folder / "bands.parquet")


@pytest.fixture(scope="module")
def session(folder: Path) -> Iterator[lw.Session]:
    with lw.connect(folder / "lapwing.toml") as session:
        yield session


def true(folder: Path, query: str) -> list[tuple[Any, ...]]:
    """Ask DuckDB, in which NaN is a number: Lapwing has NULL in its place."""
    with duckdb.connect() as database:
        # It would take the statistics of a file, which leave NaN out, for a proof that there is none.
        database.execute(f"SET disabled_optimizers = '{','.join(DISABLED_OPTIMIZERS)}'")
        database.execute(
            f"CREATE VIEW visits AS SELECT person, NULLIF(cost, 'nan'::DOUBLE) AS cost, pay, age "
            f"FROM '{folder / 'visits.parquet'}'"
        )
        floats = ", ".join(
            f"NULLIF({name}, 'nan'::DOUBLE) AS {name}" for name in ("fl", "fh", "bounded", "stepped", "short")
        )
        database.execute(f"CREATE VIEW bands AS SELECT name, {floats} FROM '{folder / 'bands.parquet'}'")
        return database.execute(query).fetchall()


@pytest.mark.parametrize("query", one_in(3, QUERIES))
def test_they_are_compared_as_duckdb_compares_them(session: lw.Session, folder: Path, query: str) -> None:
    answer = session.sql(query, epsilon=EXACT)
    found = {tuple(row.values()) for row in answer.rows() if row["n"]}
    assert found == {row for row in true(folder, query) if row[-1]}


@pytest.mark.parametrize(
    ("condition", "cause"),
    [
        ("age > 40 OR cost IN (SELECT fh FROM bands)", RefusalCause.UNUSABLE_VALUE),
        ("cost = (SELECT fh FROM bands WHERE name = 'high')", RefusalCause.UNUSABLE_VALUE),
        ("cost = (SELECT MAX(fh) FROM bands)", RefusalCause.PUBLIC_ROWS_NOT_DISTINCT),
        ("age > 40 OR cost IN (SELECT fh FROM bands WHERE name = 'missing')", RefusalCause.UNUSABLE_VALUE),
    ],
)
def test_an_infinity_is_no_constant(session: lw.Session, condition: str, cause: RefusalCause) -> None:
    with refused_as(cause.value):
        session.explain(f"SELECT COUNT(*) AS n FROM visits WHERE {condition}", epsilon=1)


def test_an_infinity_beside_numbers_far_out_is_no_constant(tmp_path: Path) -> None:
    """Beyond 2¹⁵⁰ a float has one column, as its bounds are further out than those of what is read."""
    write(tmp_path, COSTS, [*BANDS, ("far", 0.5, 1e300, 0.1, 0.1, 0.5)])
    with lw.connect(tmp_path / "lapwing.toml") as session, refused_as(RefusalCause.UNUSABLE_VALUE.value):
        session.explain("SELECT COUNT(*) AS n FROM visits WHERE age > 40 OR cost IN (SELECT fh FROM bands)", epsilon=1)


def test_want_of_bounds_is_not_hidden_by_a_number_that_is_no_constant(session: lw.Session) -> None:
    """IN of rows is a join, and is read as a list of constants only where it can be one."""
    summed = (
        "SELECT SUM(x) AS s FROM (SELECT person, MAX(wide) AS x FROM visits WHERE cost IN (SELECT {}) GROUP BY person)"
    )
    for listed in ("fh FROM bands", "fl FROM bands", "fh FROM bands WHERE name = 'missing'"):
        with refused_as(RefusalCause.UNBOUNDED.value):
            session.explain(summed.format(listed), epsilon=1)


# ---- how many rows one row can meet ----------------------------------------------------------------------------------

ENDS = [0.0, -0.0, 0.1, 0.3, 33.3, 50.0, 99.99, 1e-300, 1e30, INF, -INF, NAN, None]
CONDITIONS = [
    "v.cost >= b.fl AND v.cost < b.fh",
    "v.cost > b.fl AND v.cost <= b.fh",
    "v.cost BETWEEN b.fl AND b.fh",
    "v.cost > b.fl",
    "v.cost <= b.bounded",
    "v.cost = b.fl",
    "v.cost = b.fl AND b.fh > 50",
    "v.cost = b.stepped AND v.cost >= b.fl",
    "v.cost = 0 - b.fl",
]
LOOSE = {"v.cost > b.fl", "v.cost = b.fl AND b.fh > 50", "v.cost = b.stepped AND v.cost >= b.fl"}


@pytest.mark.parametrize("seed", only([0], range(20)))
def test_no_row_meets_more_public_rows_than_the_plan_says(seed: int, tmp_path: Path) -> None:
    """And some row meets as many: the bound is counted over what is compared, as it is compared."""
    chance = random.Random(seed)
    near = [math.nextafter(end, to) for end in ENDS if end is not None for to in (-1e9, 1e9) if math.isfinite(end)]
    few = [
        end for end in [*ENDS, *near] if end is None or not 1e9 < abs(end) < INF
    ]  # of which a step of 0.01 has bounds
    bands = [
        (str(place), *(chance.choice([*ENDS, *near]) for _ in range(3)), chance.choice(few), chance.choice(few))
        for place in range(12)
    ]
    costs = [*ENDS, *near, *(-end for end in [*ENDS, *near] if end is not None)]
    write(tmp_path, costs, bands)
    catalog = load(tmp_path / "lapwing.toml")
    facts = PublicData(catalog)
    with lw.connect(tmp_path / "lapwing.toml") as session:
        for condition in CONDITIONS:
            joined = f"FROM visits v JOIN bands b ON {condition}"
            relation = bind(f"SELECT COUNT(*) AS n {joined}", catalog, facts).question.selection.relation
            met = [n for _, n in true(tmp_path, f"SELECT person, COUNT(*) {joined} GROUP BY person")]
            assert isinstance(relation, PublicJoin)
            # Two comparisons of two values, or one with an infinity that nothing is above, may leave rows out.
            exact = condition not in LOOSE
            assert relation.multiplicity >= max(met, default=0), condition
            assert relation.multiplicity == max(met, default=0) or not exact, condition
            answer = session.sql(f"SELECT COUNT(*) AS n {joined}", epsilon=EXACT)
            assert answer.rows() == [{"n": sum(met)}], condition
    facts.close()


OPEN = "SELECT COUNT(*) FROM visits v JOIN codes c ON v.cost >= c.factor AND v.cost < c.rate"


class InSteps:
    """Planted: facts that count intervals between ends in steps, whatever the join compares."""

    def __init__(self, facts: PublicData) -> None:
        self.facts = facts

    def __getattr__(self, name: str) -> Any:
        return getattr(self.facts, name)

    def overlap(self, wanted: ComparedRange) -> int:
        ends = tuple((symbol, self.in_steps(end)) for symbol, end in wanted.ends)
        return self.facts.overlap(replace(wanted, ends=ends))

    def in_steps(self, end: Expression) -> Expression:
        if isinstance(end, ColumnReference) and end.cleaned is not None:
            return to_real(end.cleaned)
        return replace(end, arguments=tuple(map(self.in_steps, end.arguments))) if isinstance(end, Operation) else end


def test_an_overlap_of_rounded_ends_is_found_by_neighbours(tmp_path: Path) -> None:
    """Three bands without an upper end: rounded, the end is the greatest finite value, and two of them are empty."""
    open_ended = [{"plan": "a", "tier": "x", "factor": factor, "rate": INF} for factor in (30, 40, 50)]
    closed = {"plan": "b", "tier": "y", "factor": 0, "rate": 2.5}
    rows = pa.Table.from_pylist([*open_ended, closed], schema=CODE_SCHEMA)
    pq.write_table(rows, tmp_path / "codes.parquet")
    small = catalog(tmp_path)
    facts, chance = PublicData(small), random.Random(1)

    def found(facts: PublicData) -> list[str]:
        return [
            wrong
            for _ in range(4)
            for cost in (99.99, chance.choice(COSTS))
            for rows in [[{**awkward_row(chance, 1), "cost": cost}, *(awkward_row(chance, 2) for _ in range(2))]]
            for wrong in violations(OPEN, rows, rows[1:], small, facts)
        ]

    assert found(facts) == []
    assert found(cast(PublicData, InSteps(facts)))
    facts.close()


# ---- what stays as it was --------------------------------------------------------------------------------------------


def test_only_plans_that_mean_something_else_have_another_text(folder: Path) -> None:
    """Of short binary fractions steps are what was read, and of what nothing compares no plan speaks."""
    catalog, facts = load(folder / "lapwing.toml"), PublicData(load(folder / "lapwing.toml"))
    for text, changed in [
        ("SELECT COUNT(*) AS n FROM visits v JOIN bands b ON v.cost = b.short", False),
        ("SELECT COUNT(*) AS n FROM visits v LEFT JOIN bands b ON v.cost = b.short AND v.age > b.short", False),
        ("SELECT COUNT(*) AS n FROM visits v LEFT JOIN bands b ON v.cost > b.short", False),
        ("SELECT b.fl, SUM(b.fh) AS s FROM visits v JOIN bands b ON v.cost = b.short GROUP BY b.fl", False),
        ("SELECT COUNT(*) AS n FROM visits v JOIN bands b ON v.cost = b.fl", True),
        ("SELECT COUNT(*) AS n FROM visits v JOIN bands b ON v.cost = b.stepped", False),
        ("SELECT COUNT(*) AS n FROM visits v JOIN bands b ON v.cost = b.short WHERE b.fl > 3", True),
    ]:
        found = re.findall(r"(?<!cost)(?<!age) as read", str(bind(text, catalog, facts).question))
        assert bool(found) is changed, text
    facts.close()

"""A SELECT over the answer of another is computed from released numbers: one release, one charge, nothing else read.

That it means what SQL means is shown by the golden files (`fixtures/query/layers.sql`), on plain DuckDB.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import load
from lapwing.errors import QueryRefused
from lapwing.query.bind import layers
from lapwing.query.bind.bind import bind
from lapwing.query.derivation.node import Derived
from lapwing.query.plan.plan import Plan
from tests.support.effort import one_in
from tests.support.query import clean
from tests.support.refusals import refused_as

SAME = [
    (
        "SELECT * FROM (SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan) WHERE n > 10",
        "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan HAVING COUNT(*) > 10",
    ),
    (
        "WITH a AS (SELECT plan, COUNT(*) AS n, AVG(age) AS age FROM visits GROUP BY plan) "
        "SELECT a.plan, a.age FROM a ORDER BY a.age DESC LIMIT 2",
        "SELECT plan, AVG(age) AS age FROM visits GROUP BY plan ORDER BY AVG(age) DESC LIMIT 2",
    ),
    (
        "SELECT plan, n FROM (SELECT * FROM (SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan HAVING n > 1) "
        "WHERE n < 99) ORDER BY n",
        "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan HAVING COUNT(*) > 1 AND COUNT(*) < 99 ORDER BY n",
    ),
    (
        "SELECT plan, n, RANK() OVER (ORDER BY n DESC) AS r FROM (SELECT plan, COUNT(*) AS n FROM visits GROUP BY 1) "
        "WHERE n > 1 QUALIFY r < 3",
        "SELECT plan, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS r FROM visits GROUP BY plan "
        "HAVING COUNT(*) > 1 QUALIFY r < 3",
    ),
    (
        "SELECT m FROM (SELECT plan AS k, SUM(age) AS m, COUNT(*) AS n FROM visits WHERE age > 3 GROUP BY k)",
        "SELECT SUM(age) AS m FROM visits WHERE age > 3 GROUP BY plan",
    ),
]
"""Questions with a SELECT inside, and the same without."""


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load(clean.FIXTURES / "catalog.toml")


@pytest.mark.parametrize(("nested", "flat"), SAME)
def test_the_plan_is_that_of_one_select(nested: str, flat: str, catalog: Catalog) -> None:
    assert bind(nested, catalog) == bind(flat, catalog)


INNER = "(SELECT plan, member, COUNT(*) AS n, SUM(age) AS s FROM visits GROUP BY plan, member)"
OUTER = [
    f"SELECT * FROM {INNER} WHERE n > 3",
    f"SELECT plan, SUM(n) AS n, MAX(s) AS s FROM {INNER} GROUP BY plan",
    f"SELECT member, SUM(n) AS n FROM {INNER} WHERE s > 4 GROUP BY member HAVING COUNT(*) > 1",
    f"SELECT COUNT(*) AS k FROM {INNER} WHERE n > 3",
    f"SELECT plan FROM {INNER}",
    f"SELECT plan, n / SUM(n) OVER (PARTITION BY member) AS share FROM {INNER}",
]


def reads_more(outer: Plan, inner: Plan) -> bool:
    """Tell whether a plan touches anything of the data that another does not."""
    fewer = replace(inner.question, measures=outer.question.measures)
    same_rows = outer.question.selection == inner.question.selection or outer.question.columns <= inner.question.columns
    return (
        not set(outer.question.measures) <= set(inner.question.measures)
        or fewer.keys != outer.question.keys
        or (not same_rows)
    )


@pytest.mark.parametrize("text", OUTER)
def test_nothing_is_read_but_what_the_inner_select_reads(text: str, catalog: Catalog) -> None:
    assert not reads_more(bind(text, catalog), bind(INNER[1:-1], catalog))


def test_a_condition_that_reached_the_rows_would_be_noticed(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: the plan of the outer SELECT is of other rows than the inner one."""

    def of_other_rows(plan: Plan) -> Plan:
        other = bind("SELECT plan, member, COUNT(*) AS n FROM visits WHERE cost > 3 GROUP BY plan, member", catalog)
        return replace(plan, question=replace(other.question, measures=plan.question.measures))

    monkeypatch.setattr(layers, "_settled", of_other_rows)
    assert reads_more(bind(OUTER[0], catalog), bind(INNER[1:-1], catalog))


# ---- asked ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lw.Session]:
    file = tmp_path_factory.mktemp("layers") / "visits.parquet"
    rows = range(3_000)
    pq.write_table(
        pa.table(
            {"person": [n // 3 for n in rows], "plan": ["abc"[n % 3] for n in rows], "age": [n % 80 for n in rows]}
        ),
        file,
    )
    with lw.protect(
        Path(file), privacy_unit="person", epsilon=1000, delta=1e-6, max_rows_per_unit=3,
        domains={"plan": ["a", "b", "c", "d"]}, bounds={"age": (0, 80)},
    ) as session:  # fmt: skip
        yield session


BY_PLAN = "SELECT plan, age >= 40 AS old, COUNT(*) AS n, SUM(age) AS s FROM visits GROUP BY plan, age >= 40"
COUNTED = BY_PLAN.replace(", SUM(age) AS s", "")
OVER = [
    "SELECT * FROM a WHERE n > 400 ORDER BY plan, old",
    "SELECT plan, SUM(n) AS n, MIN(n) AS lo, MAX(s) AS hi, COUNT(*) AS k FROM a GROUP BY plan ORDER BY plan",
    "SELECT old, SUM(n) AS n FROM a WHERE plan <> 'd' GROUP BY old HAVING SUM(n) > 10 ORDER BY old",
    "SELECT SUM(n) AS n, AVG(s) AS s FROM a",
    "SELECT n > 100 AS many, COUNT(*) AS k, SUM(s) AS s FROM a GROUP BY 1 ORDER BY 1",
    "SELECT plan, n * 2 + 1 AS x, n - LAG(n) OVER (ORDER BY n, plan) AS d FROM a WHERE old ORDER BY n, plan LIMIT 3",
    "SELECT plan, n FROM a WHERE old AND n > (1 + 2) ORDER BY n DESC, plan LIMIT 1 OFFSET 1",
    "SELECT ARG_MAX(plan, n) AS most, ARG_MIN(n, plan) AS first FROM a WHERE plan <> 'd'",
    "SELECT plan, MAX_BY(old, n) AS old, COUNT(*) AS k FROM a GROUP BY plan ORDER BY plan",
    "SELECT plan, FIRST_VALUE(plan) OVER (ORDER BY n DESC, plan, old) AS top, LAG(old) OVER (ORDER BY plan, old) AS l "
    "FROM a ORDER BY plan, old",
    "SELECT b.plan, b.m FROM (SELECT plan, SUM(n) AS m FROM a GROUP BY plan) AS b WHERE b.m > 100 ORDER BY m, plan",
]


@pytest.mark.long
@pytest.mark.parametrize("outer", one_in(12, OVER))
def test_the_answer_is_what_sql_makes_of_the_released_one(outer: str, session: lw.Session) -> None:
    inner = BY_PLAN if "(s)" in outer or "*" in outer[:10] else COUNTED  # what nothing reads is not asked for
    released = session.sql(inner, epsilon=5)
    answer = session.sql(f"WITH a AS ({BY_PLAN}) {outer}", epsilon=5)
    assert answer.stored
    with duckdb.connect() as plain:
        plain.register("a", released.to_arrow())
        rows = plain.execute(outer)
        names = [column[0] for column in rows.description or []]
        expected = [dict(zip(names, row, strict=True)) for row in rows.fetchall()]
    assert [{name: as_number(value) for name, value in row.items()} for row in answer] == [
        {name: as_number(value) for name, value in row.items()} for row in expected
    ]


def as_number(value: Any) -> Any:
    return value if isinstance(value, str | bool | None) else pytest.approx(float(value), rel=1e-12)


def test_it_is_charged_once_whatever_stands_around_it(session: lw.Session) -> None:
    inner = "SELECT plan, COUNT(*) AS n, AVG(age) AS a FROM visits WHERE age > 5 GROUP BY plan"
    before, price = len(session.history()), session.explain(inner, epsilon=1).cost
    first = session.sql(f"SELECT plan, n, a FROM ({inner}) WHERE n > 5", epsilon=1)
    assert len(session.history()) == before + 1
    assert not first.stored
    assert first.cost == price
    assert session.sql(f"SELECT MAX(n) AS n, MIN(a) AS a FROM ({inner})", epsilon=1).stored
    assert session.sql(inner, epsilon=1).stored
    assert len(session.history()) == before + 1


def test_intervals_stay_where_they_are_known(session: lw.Session) -> None:
    inner = session.sql("SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan", epsilon=2)
    outer = session.sql(
        "SELECT plan, n, 2 * n AS m, SUM(n) OVER () AS t FROM (SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan)",
        epsilon=2,
    )
    low, high = outer.interval()["n"]
    assert (low.tolist(), high.tolist()) == tuple(ends.tolist() for ends in inner.interval()["n"])
    assert (outer.interval()["m"][0] == 2 * low).all()
    assert all(end != end for end in outer.interval()["t"][0].tolist())


def test_parameters_and_options_stand_inside(session: lw.Session) -> None:
    text = "SELECT n FROM (SELECT plan, COUNT(*) AS n FROM visits WHERE age > ? GROUP BY plan) WHERE plan = ?"
    assert len(session.sql(text, (7, "b"), epsilon=1)) == 1
    assert session.explain(f"EXPLAIN PRIVACY {text}", (7, "b"), epsilon=1).cells == 4


PRIVATE = "WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.5, max_groups_contributed = 1)"
SPENT = f"SELECT {PRIVATE} plan, SUM(age, contribution_bounds_per_group => (0, 9)) AS s FROM visits GROUP BY plan"


def test_options_may_stand_at_the_select_that_is_released(catalog: Catalog) -> None:
    inner, asked = bind(SPENT, catalog), bind(f"SELECT SUM(s) AS s FROM ({SPENT}) WHERE s > 3", catalog)
    assert (asked.question, asked.price_request) == (inner.question, inner.price_request)
    by_name = bind(f"WITH a AS ({SPENT}) SELECT s FROM a", catalog)
    assert (by_name.question, by_name.price_request) == (inner.question, inner.price_request)


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT COUNT(*) AS n FROM (SELECT {PRIVATE} person, COUNT(*) AS c FROM visits GROUP BY person)",
        "SELECT COUNT(*) AS n FROM (SELECT person, SUM(age, epsilon => 0.1) AS c FROM visits GROUP BY person)",
        f"SELECT COUNT(*) AS n FROM (SELECT {PRIVATE} age FROM visits)",
        f"SELECT COUNT(*) AS n FROM visits WHERE plan IN (SELECT {PRIVATE} plan FROM visits)",
        f"SELECT n FROM (SELECT COUNT(*) AS n FROM (SELECT {PRIVATE} person, age FROM visits))",
        f"SELECT {PRIVATE} n FROM (SELECT {PRIVATE} COUNT(*) AS n FROM visits)",
        f"SELECT n FROM (SELECT {PRIVATE} 1 AS n, COUNT(*) AS m FROM (SELECT {PRIVATE} age FROM visits))",
        "SELECT SUM(n, epsilon => 0.1) AS s FROM (SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan)",
    ],
)
def test_options_elsewhere_are_refused(text: str, catalog: Catalog) -> None:
    with pytest.raises(QueryRefused):
        bind(text, catalog)


@pytest.mark.parametrize("text", ["SELECT * FROM (SELECT person, COUNT(*) AS n FROM visits GROUP BY person)"])
def test_no_unit_is_shown(text: str, session: lw.Session) -> None:
    with refused_as("shows_units"):
        session.sql(text, epsilon=1)


def test_a_question_about_units_stays_one(session: lw.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where both readings are possible, the one about units is meant, as ever."""
    text = "SELECT n, COUNT(*) AS people FROM (SELECT person, COUNT(*) AS n FROM visits GROUP BY person) GROUP BY n"
    assert "GROUP BY unit" in str(session.plan(text, (), epsilon=1).question)

    def never(self: object, select: object) -> Derived:
        raise AssertionError("the SELECT inside is taken for the question")

    monkeypatch.setattr(layers.OuterSelect, "over", never)
    session.plan(f"{text} HAVING COUNT(*) > 3", (), epsilon=1)


GROWING = {
    "numbers": ("COUNT(*) AS n", "n * n AS n"),
    "quotients": ("COUNT(*) AS n", "n / (n + 1.5) AS n"),
    "texts": ("plan AS n, COUNT(*) AS m", "n || n AS n, m"),
    "windows": ("COUNT(*) AS n", "SUM(n * n) OVER () AS n"),
}


@pytest.mark.parametrize("kind", one_in(4, GROWING))
def test_what_grows_without_end_is_refused(kind: str, session: lw.Session) -> None:
    first, again = GROWING[kind]
    chain = f"c0 AS (SELECT plan, {first} FROM visits GROUP BY plan)"
    for number in range(1, 13):
        chain += f", c{number} AS (SELECT plan, {again} FROM c{number - 1})"
    with refused_as("query_too_complex"):
        session.explain(f"WITH {chain} SELECT * FROM c12", epsilon=1)
    assert session.explain(f"WITH {chain} SELECT plan FROM c2", epsilon=1).cells == 4

"""Keys alone: public ones are free and touch no data, private ones are a selection and nothing else."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.answer import Answer
from lapwing.engines.duckdb import queries
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.privacy.measures import GaussianDP
from lapwing.query.bind import public_keys
from lapwing.query.bind.bind import bind
from lapwing.query.plan.composition import plans_asked
from lapwing.release.cells import cells_of, columns_of
from tests.support.effort import one_in
from tests.support.refusals import refused_as

PUBLIC = [
    ("SELECT DISTINCT plan FROM visits", ["a", "b", "c"]),
    ("SELECT plan FROM visits GROUP BY plan ORDER BY plan DESC", ["c", "b", "a"]),
    ("SELECT DISTINCT plan FROM visits WHERE plan <> 'b'", ["a", "c"]),
    ("SELECT plan FROM visits GROUP BY ROLLUP (plan)", ["a", "b", "c", None]),
    ("SELECT plan FROM visits GROUP BY plan, age >= 10 LIMIT 3", ["a", "a", "b"]),
    ("SELECT DISTINCT UPPER(plan) AS plan FROM visits", ["A", "B", "C"]),
    ("SELECT plan, age >= 10 AS old FROM visits GROUP BY plan, age >= 10", ["a", "a", "b", "b", "c", "c"]),
    ("SELECT plan FROM visits GROUP BY plan HAVING plan > 'a' ORDER BY LOWER(plan) DESC LIMIT 1 OFFSET 1", ["b"]),
    ("SELECT plan FROM visits GROUP BY plan QUALIFY ROW_NUMBER() OVER (ORDER BY plan DESC) <= 2", ["b", "c"]),
]


NOTHING = GaussianDP.from_amount(0)
CATALOG = """
[dataset]
name = "visits"
engine = "duckdb"
ledger = "sqlite:visits.lapwing.db"

[budget]
epsilon = 50
delta = 1e-5
delta_keys = 1e-6
measure = "gdp"
neighbouring = "add_remove"

[tables.visits]
source = "visits.parquet"
privacy_unit = "person"
max_rows_per_unit = 3

[tables.visits.columns]
plan = { type = "string", values = ["a", "b", "c"] }
town = { type = "string" }
age = { type = "integer", lower = 0, upper = 80 }
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lw.Session]:
    folder = tmp_path_factory.mktemp("alone")
    rows = range(6_000)
    towns = ["Ulm" if n % 2 else "Bonn" if n < 5_990 else f"hamlet {n}" for n in rows]
    table = {
        "person": [n // 3 for n in rows],
        "plan": ["abc"[n % 3] for n in rows],
        "town": towns,
        "age": [n % 80 for n in rows],
    }
    pq.write_table(pa.table(table), folder / "visits.parquet")
    (folder / "lapwing.toml").write_text(CATALOG)
    with lw.connect(folder / "lapwing.toml") as session:
        yield session


@pytest.mark.parametrize(("text", "keys"), one_in(3, PUBLIC, many=True))
def test_public_keys_are_free(text: str, keys: list[Any], session: lw.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*_: object) -> None:
        raise AssertionError("rows are read")

    monkeypatch.setattr(queries, "grouped", read)
    entries = len(session.history())
    preview = session.explain(text, epsilon=1)
    assert preview.price.amount == 0
    assert plans_asked(session.plan(text, (), epsilon=1)) == ()
    assert session.sql(text, epsilon=1).cost.amount == 0
    assert [row["plan"] for row in session.sql(text)] == keys
    assert len(session.history()) == entries
    with pytest.MonkeyPatch.context() as asked:
        asked.setattr(public_keys, "MOST_FREE_ROWS", 0)
        with closing(PublicData(session.catalog)) as facts:  # which tells the values that WHERE leaves
            plan = bind(text, session.catalog, facts)
    assert plan.composition is None, "many of them are charged, and cost nothing"
    cells = cells_of(plan.question)
    answer = Answer(plan=plan, mechanisms=(), keys=columns_of(cells, len(plan.question.keys)), values=(), cost=NOTHING)
    assert list(answer) == list(session.sql(text))


def test_private_keys_are_never_shown_as_public_ones(session: lw.Session) -> None:
    for text in ("SELECT DISTINCT town FROM visits", "SELECT town, plan FROM visits GROUP BY town, plan"):
        assert plans_asked(session.plan(text, (), epsilon=1, delta=1e-8))
    with pytest.raises(AssertionError):  # the check finds a plan that is not asked
        assert plans_asked(session.plan("SELECT DISTINCT plan FROM visits", (), epsilon=1))


def test_private_keys_are_those_that_many_hold(session: lw.Session) -> None:
    for text in ("SELECT DISTINCT town FROM visits", "SELECT town FROM visits GROUP BY town ORDER BY 1"):
        answer = session.sql(text, epsilon=2, delta=1e-7)
        assert [row["town"] for row in answer] == ["Bonn", "Ulm"]
        assert answer.to_arrow().column_names == ["town"]
        assert answer.interval() == {}
    assert len([row for row in session.history() if row.loss.amount]) == 1, "the second question is the first"


def test_keys_alone_go_into_a_batch(session: lw.Session) -> None:
    texts = ["SELECT DISTINCT plan FROM visits WHERE age > 3", "SELECT COUNT(*) AS n FROM visits WHERE age > 4"]
    keys, counted = session.batch(texts, epsilon=1)
    assert keys.cost.amount == 0
    assert counted.cost.amount > 0
    assert len(session.batch([texts[0].replace("3", "5")], epsilon=1)[0]) == 3


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT DISTINCT person FROM visits", "shows_units"),
        ("SELECT person FROM visits GROUP BY person", "shows_units"),
        ("SELECT DISTINCT town, COUNT(*) AS n FROM visits", "not_grouped"),
        ("SELECT town FROM visits", "not_grouped"),
        ("SELECT 1 AS one FROM visits", "no_aggregate"),
        ("SELECT COUNT(*) AS n FROM (SELECT plan FROM visits GROUP BY plan)", "keys_without_number"),
        ("SELECT COUNT(*) AS n FROM (SELECT town FROM visits GROUP BY town)", "keys_without_number"),
    ],
)
def test_what_would_mislead_is_refused(text: str, reason: str, session: lw.Session) -> None:
    with refused_as(reason):
        session.sql(text, epsilon=1, delta=1e-8)

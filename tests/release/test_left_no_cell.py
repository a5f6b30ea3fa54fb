"""Constants that are asked for first may leave a query no cell: then it is empty, and free, and never refused."""

from collections.abc import Iterator
from datetime import date, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.answer.notes import CONSTANT_FOUND, NO_POSSIBLE_ROWS, UNLISTED_KEYS, code_of
from lapwing.query.bind import constants

CATALOG = """
[dataset]
name = "shop"
ledger = "sqlite:shop.lapwing.db"
[budget]
epsilon = 100000
delta = 1e-6
[tables.sales]
source = "sales.parquet"
privacy_unit = "person"
max_rows_per_unit = 1
[tables.sales.columns]
plan = { type = "string", values = ["a", "b", "c"] }
age = { type = "integer", lower = 0, upper = 80 }
day = { type = "date", lower = 1999-01-01, upper = 2001-12-31 }
"""
TOP = "SELECT plan FROM sales GROUP BY plan ORDER BY COUNT(*) DESC LIMIT 1"
PLANS = "SELECT plan, COUNT(*) AS n FROM sales WHERE {} GROUP BY plan"
OF_LIST = PLANS.format(f"plan IN ({TOP}) AND plan = 'b'")
COUNTS = "(SELECT plan, COUNT(*) AS k FROM sales GROUP BY plan) AS d"
EMPTY = {
    "a list": OF_LIST,
    "a list, with HAVING and ORDER BY": f"{OF_LIST} HAVING COUNT(*) > 5 ORDER BY n LIMIT 3",
    "a list that leaves out": PLANS.format(f"plan NOT IN ({TOP}) AND plan = 'a'"),
    "a number": PLANS.format("CASE plan WHEN 'a' THEN 1 ELSE 5 END > (SELECT COUNT(*) FROM sales)"),
    "months": "SELECT DATE_TRUNC('month', day) AS m, COUNT(*) AS n FROM sales WHERE day > (SELECT MAX(day) FROM sales "
    "WHERE plan <> 'c') AND day < DATE '2000-12-01' GROUP BY m",
    "a join": f"SELECT plan, COUNT(*) AS n FROM sales AS s JOIN {COUNTS} USING (plan) WHERE d.k > 99999 GROUP BY plan",
    "a SELECT over it": f"SELECT plan, n FROM ({OF_LIST}) AS e WHERE n > 3",
}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lw.Session]:
    folder, rows = tmp_path_factory.mktemp("cells"), range(900)
    columns = {
        "person": list(rows),
        "plan": [("a", "a", "b", "c")[n % 4] for n in rows],
        "age": [n * 7 % 81 for n in rows],
        "day": [date(1999, 1, 1) + timedelta(days=n) for n in rows],
    }
    pq.write_table(pa.table(columns), folder / "sales.parquet")
    (folder / "lapwing.toml").write_text(CATALOG)
    with lw.connect(folder / "lapwing.toml") as opened:
        yield opened


def check_empty(session: lw.Session, text: str) -> None:
    before = session.budget().spent.amount
    answer = session.sql(text, epsilon=40)
    assert answer.rows() == []
    assert {CONSTANT_FOUND, NO_POSSIBLE_ROWS} <= set(map(code_of, answer.notes))
    assert abs(session.budget().spent.amount - before - answer.cost.amount) < 1e-20
    assert answer.cost < session.price(40), "what is not asked is not charged"
    preview, again = session.explain(text, epsilon=40), session.sql(text, epsilon=40)
    assert preview.cost.amount == again.cost.amount == 0
    assert again.stored
    assert again.rows() == []
    assert again.entries == answer.entries


@pytest.mark.parametrize("name", EMPTY)
def test_a_query_that_constants_leave_no_cell_is_empty(session: lw.Session, name: str) -> None:
    check_empty(session, EMPTY[name])


def test_twin_a_refusal_after_the_charge_is_caught(session: lw.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "plans_asked", lambda plan: (plan,))
    with pytest.raises(lw.errors.QueryRefused):
        check_empty(session, EMPTY["a list"])


def test_what_is_asked_first_says_which_rows_are_in_no_group(session: lw.Session) -> None:
    """A join to a result leaves out the rows whose plan is not listed, as the result has no group of them."""
    text = f"SELECT plan, COUNT(*) AS n FROM sales AS s JOIN {COUNTS} USING (plan) WHERE s.age < d.k GROUP BY plan"
    for notes in (session.explain(text, epsilon=40).notes, session.sql(text, epsilon=40).notes):
        assert list(map(code_of, notes)).count(UNLISTED_KEYS) == 1


def test_one_part_that_is_left_no_cell_leaves_the_others(session: lw.Session) -> None:
    """What it asked first is charged once, whoever asks for it."""
    first = session.sql(TOP, epsilon=10)
    assert first.rows() == [{"plan": "a"}]
    union = session.sql(f"{OF_LIST} UNION ALL {PLANS.format('age < 40')}", epsilon=30)
    assert [row["plan"] for row in union] == ["a", "b", "c"]
    total = session.sql(f"SELECT COUNT(*) AS k, SUM(n) AS s FROM ({OF_LIST}) AS e", epsilon=30)
    assert total.rows() == [{"k": 0, "s": None}]
    before = session.budget().spent.amount
    together = session.batch([OF_LIST, PLANS.format(f"plan IN ({TOP})")], epsilon=90)
    assert [len(answer) for answer in together] == [0, 1]
    paid = sum(answer.cost.amount for answer in together)
    assert abs(session.budget().spent.amount - before - paid) < 1e-20

"""Lists that an answer shows, and a number for each row of a public table: asked first, and then constants."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlglot import exp

import lapwing as lw
from lapwing.query.bind import constant_lists, constants
from lapwing.query.classify import outer_keys
from lapwing.query.plan.composition import plans_asked
from tests.support.effort import one_in, only
from tests.support.refusals import refused_as

CATALOG = """
[dataset]
name = "shop"
ledger = "sqlite:shop.lapwing.db"
[budget]
epsilon = 10000
delta = 1e-6
delta_keys = 1e-7
[tables.sales]
source = "sales.parquet"
privacy_unit = "person"
max_rows_per_unit = 3
[tables.sales.columns]
plan = { type = "string", values = ["a", "b", "it's"] }
town = { type = "string", values = ["x", "y"], other = "z" }
item = { type = "integer" }
age = { type = "integer", lower = 0, upper = 80 }
[tables.items]
source = "items.parquet"
public = true
[tables.items.columns]
number = { type = "integer" }
maker = { type = "string" }
"""
BIG = "SELECT plan FROM sales GROUP BY plan HAVING COUNT(*) > 700"
COUNTED = "SELECT COUNT(*) AS n FROM sales WHERE "
LISTS = {
    f"{COUNTED}plan IN ({BIG})": f"{COUNTED}plan IN ({{0}})",
    f"{COUNTED}NOT plan IN ({BIG}) OR age > 70": f"{COUNTED}NOT plan IN ({{0}}) OR age > 70",
    f"SELECT SUM(age) FILTER (WHERE plan NOT IN ({BIG})) AS s FROM sales": "SELECT SUM(age) FILTER (WHERE plan NOT IN "
    "({0})) AS s FROM sales",
    f"WITH big AS ({BIG}) {COUNTED}plan IN (SELECT plan FROM big) AND age < 9": f"{COUNTED}plan IN ({{0}}) AND age < 9",
    f"SELECT AVG(k) AS m FROM (SELECT person, COUNT(*) AS k FROM sales WHERE plan IN ({BIG}) GROUP BY person)":
        "SELECT AVG(k) AS m FROM (SELECT person, COUNT(*) AS k FROM sales WHERE plan IN ({0}) GROUP BY person)",
    f"SELECT plan, COUNT(*) AS n FROM sales WHERE plan IN ({BIG}) GROUP BY plan":
        "SELECT plan, COUNT(*) AS n FROM sales WHERE plan IN ({0}) GROUP BY plan",
}  # fmt: skip
"""Questions, and the same with the list written out."""
LIST = next(iter(LISTS))
MEANS = (
    "SELECT item, AVG(age) AS m FROM sales WHERE {}item IN (SELECT number FROM items WHERE maker = 'u') GROUP BY item"
)
OF_ITEM = "SELECT COUNT(*) AS n FROM sales, items WHERE item = number AND maker = 'u' AND age > ({})"
NUMBERS = [
    OF_ITEM.format("SELECT AVG(age) FROM sales WHERE item = number"),
    OF_ITEM.format("SELECT AVG(s.age) FROM sales AS s WHERE items.number = s.item"),
    "SELECT COUNT(*) AS n FROM sales JOIN items AS i ON item = i.number WHERE i.maker = 'u' AND "
    "age > (SELECT AVG(age) FROM sales AS s WHERE s.item = i.number)",
]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lw.Session]:
    folder, rows = tmp_path_factory.mktemp("lists"), range(3_000)
    columns = {
        "person": [n // 3 for n in rows],
        "plan": [("a", "a", "b", "it's")[n % 4] for n in rows],
        "town": ["xyw"[n % 3] for n in rows],
        "item": [n % 7 for n in rows],
        "age": [n * 7 % 80 for n in rows],
    }
    items = {"number": [1, 2, 3, 8], "maker": ["u", "u", "v", "u"]}
    pq.write_table(pa.table(columns), folder / "sales.parquet")
    pq.write_table(pa.table(items), folder / "items.parquet")
    (folder / "lapwing.toml").write_text(CATALOG)
    with lw.connect(folder / "lapwing.toml") as opened:
        yield opened


def check_list(session: lw.Session, text: str) -> None:
    answer, listed = session.sql(text, epsilon=3), session.sql(BIG, epsilon=0.1)
    assert listed.stored
    values = ", ".join(f"""'{str(row["plan"]).replace("'", "''")}'""" for row in listed)
    written = session.sql(LISTS[text].format(values), epsilon=0.1)
    assert written.stored, "it is the question with that list"
    assert written.rows() == answer.rows()
    again = session.sql(text, epsilon=3)
    assert again.rows() == answer.rows()
    assert again.cost.amount == 0


@pytest.mark.parametrize("text", only([0], LISTS))
def test_the_released_list_stands_in_the_condition(text: str, session: lw.Session) -> None:
    check_list(session, text)


def test_a_list_that_is_not_the_released_one_is_found(session: lw.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the values that were likely before it was asked for stay in the condition."""
    never_asked = f"{COUNTED}age < 33 AND "  # so that no stored answer is the same by chance
    text = LIST.replace(COUNTED, never_asked)
    monkeypatch.setitem(LISTS, text, LISTS[LIST].replace(COUNTED, never_asked))
    monkeypatch.setattr(constants, "written", lambda node, _values, has_null: exp.Boolean(this=True))
    with pytest.raises(AssertionError):
        check_list(session, text)


def test_one_price_is_fixed_before_the_list_is_known(session: lw.Session) -> None:
    text = LIST.replace("700", "690 + COUNT(DISTINCT person)")
    preview, before, entries = session.explain(text, epsilon=1), session.budget().spent.amount, len(session.history())
    answer = session.sql(text, epsilon=1)
    assert answer.cost == preview.cost
    assert 0 <= session.budget().spent.amount - before - answer.cost.amount < 1e-20  # the ledger rounds up
    assert answer.cost <= session.price(1)
    assert len(session.history()) == entries + 2
    assert "plan: asked for first" in preview.notes[-1]
    assert answer.notes[-1].startswith("the list of plan that was asked for first, and stands in the condition, is ")
    inner, outer = plans_asked(session.plan(text, (), epsilon=1))
    assert inner.price_request.numbers
    assert outer.question != inner.question


@pytest.mark.long
def test_an_empty_list_is_false_and_one_with_null_is_never_true_outside_of_it(session: lw.Session) -> None:
    nobody = BIG.replace("700", "70000")
    with_total = "SELECT plan FROM sales GROUP BY ROLLUP (plan) HAVING COUNT(*) > 2000"  # that of all: NULL

    def counted(condition: str) -> float:
        return float(str(session.sql(f"{COUNTED}{condition}", epsilon=200)[0]["n"]))

    assert abs(counted(f"plan IN ({nobody})")) < 99
    assert counted(f"plan NOT IN ({nobody})") > 3_000 - 99
    assert abs(counted(f"plan NOT IN ({with_total})")) < 99
    assert constant_lists.written(exp.In(this=exp.column("a")), [], has_null=True).sql() == (
        "(FALSE OR CASE WHEN FALSE THEN TRUE END)"
    )


@pytest.mark.parametrize("text", one_in(3, NUMBERS))
def test_there_is_a_number_for_each_row_of_a_public_table(text: str, session: lw.Session) -> None:
    """It is asked for those rows alone that WHERE leaves, and for nobody of whom the condition is not asked."""
    answer = session.sql(text, epsilon=5)
    means = session.sql(MEANS.format(""), epsilon=0.1)
    assert means.stored
    assert [row["item"] for row in means] == [1, 2, 8]
    branches = " ".join(f"WHEN {row['item']} THEN {row['m']}" for row in means if row["m"] is not None)
    written = session.sql(OF_ITEM.replace("({})", f"CASE number {branches} END"), epsilon=0.1)
    assert written.stored
    assert written.rows() == answer.rows()


@pytest.mark.long
def test_numbers_for_other_rows_are_found(session: lw.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: numbers are asked for one row of the public table, whatever the others are."""
    honest = outer_keys.restricted

    def fewer(query: exp.Select, inner: exp.Expression, *rest: object) -> exp.Select | None:
        narrower = honest(query, inner, *rest)  # type: ignore[arg-type]
        assert narrower is not None
        return narrower.where(exp.EQ(this=inner.copy(), expression=exp.Literal.number(1)))

    monkeypatch.setattr(constants, "restricted", fewer)
    with pytest.raises(AssertionError):
        test_there_is_a_number_for_each_row_of_a_public_table(
            NUMBERS[0].replace("maker = 'u'", "maker >= 'u'"), session
        )


REFUSED = {
    f"{COUNTED}item IN (SELECT item FROM sales GROUP BY item HAVING COUNT(*) > 9)": ("values_not_public", 55),
    f"{COUNTED}town IN (SELECT town FROM sales GROUP BY town HAVING COUNT(*) > 9)": ("values_not_public", 55),
    f"{COUNTED}age IN (SELECT COUNT(*) FROM sales GROUP BY plan)": ("subquery_not_supported", 54),
    f"{COUNTED}plan IN (SELECT UPPER(plan) FROM sales GROUP BY plan HAVING COUNT(*) > 9)": (
        "subquery_not_supported",
        55,
    ),
    f"{COUNTED}plan IN (SELECT plan FROM sales WHERE plan IN ({BIG}) GROUP BY plan HAVING SUM(age) > 9)": (
        "subquery_not_supported",
        0,
    ),
    # a number of rows that another list or number chooses
    f"WITH t AS (SELECT * FROM sales WHERE plan IN ({BIG})) {COUNTED}age > (SELECT AVG(age) FROM t)": (
        "subquery_not_supported",
        0,
    ),
    "WITH t AS (SELECT * FROM sales WHERE age > (SELECT AVG(age) FROM sales)) SELECT COUNT(*) AS n FROM t "
    "WHERE age < (SELECT MAX(age) FROM t)": ("subquery_not_supported", 0),
    f"{COUNTED}age > (SELECT AVG(s.age) FROM sales AS s WHERE s.town = sales.town)": ("values_not_public", 0),
    f"{COUNTED}person IN (SELECT person FROM sales GROUP BY plan HAVING COUNT(*) > 9)": ("privacy_unit_as_value", 0),
}


@pytest.mark.parametrize("text", one_in(3, REFUSED))
def test_refusals_charge_nothing(text: str, session: lw.Session) -> None:
    reason, column = REFUSED[text]
    before = session.budget().spent
    with refused_as(reason) as refused:
        session.sql(text, epsilon=1)
    assert not column or refused.value.position == (1, column)
    assert session.budget().spent == before

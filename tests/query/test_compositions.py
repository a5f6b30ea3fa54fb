"""A question over several answers is computed from what they release: one price, and nothing else read."""

import re
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.answer import composing
from lapwing.errors import QueryRefused
from lapwing.query.bind import compositions
from lapwing.query.plan import composition
from lapwing.query.plan.composition import plans_asked
from lapwing.query.plan.plan import Question
from lapwing.query.pricing import joint_error
from lapwing.query.pricing.error_price import at_error
from lapwing.query.pricing.quote import CONFIDENCE
from lapwing.server.deadline.cost import Speed, cost_of
from tests.support.effort import one_in, only
from tests.support.query.composition_texts import text_of
from tests.support.refusals import refused_as


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lw.Session]:
    rows = range(3_000)
    columns = {
        "person": [n // 3 for n in rows],
        "plan": ["aabc"[n % 4] for n in rows],
        "site": ["xyz"[n * n % 7 % 3] for n in rows],
        "age": [n % 80 for n in rows],
        "city": [f"town {n % 5}" for n in rows],
    }
    file = tmp_path_factory.mktemp("compositions") / "visits.parquet"
    pq.write_table(pa.table(columns), file)
    with lw.protect(
        Path(file), privacy_unit="person", epsilon=10_000, delta=1e-6, max_rows_per_unit=3,
        domains={"plan": ["a", "b", "c", "d"], "site": ["x", "y", "z"]}, bounds={"age": (0, 80)},
    ) as session:  # fmt: skip
        yield session


INNER = {
    "a": "SELECT plan, site, COUNT(*) AS n FROM visits GROUP BY plan, site",
    "b": "SELECT plan, COUNT(*) AS n FROM visits WHERE age > 30 GROUP BY plan",
    "c": "SELECT COUNT(*) AS n FROM visits",
    "d": "SELECT plan, SUM(age) AS s FROM visits GROUP BY plan",
}

OVER = [
    "SELECT a.plan, a.n, b.n AS m FROM a JOIN b ON a.plan = b.plan WHERE a.site = 'x' ORDER BY a.plan",
    "SELECT plan, site, a.n - b.n AS d FROM a JOIN b USING (plan) ORDER BY plan, site",
    "SELECT * FROM b JOIN a USING (plan) ORDER BY plan, site",
    "SELECT b.*, c.n AS total FROM b CROSS JOIN c ORDER BY plan",
    "SELECT x.plan AS p, y.plan AS q, x.n - y.n AS d FROM b x, b y WHERE x.plan < y.plan ORDER BY p, q",
    "SELECT a.plan, a.site, x.n FROM a LEFT JOIN (SELECT * FROM b WHERE plan <> 'a') x ON a.plan = x.plan ORDER BY "
    "1, 2",
    "SELECT x.plan, a.site, a.n FROM (SELECT * FROM b WHERE plan > 'b') x RIGHT JOIN a ON a.plan = x.plan "
    "ORDER BY a.plan, a.site",
    "SELECT plan, x.n AS l, y.n AS r FROM (SELECT * FROM b WHERE plan > 'a') x FULL JOIN (SELECT * FROM b WHERE "
    "plan < 'c') y USING (plan) ORDER BY plan",
    "SELECT x.n AS l, y.n AS r FROM b x FULL JOIN b y ON x.plan = y.plan AND x.n > 300 ORDER BY l NULLS LAST, r",
    "SELECT x.plan, COUNT(*) AS k, SUM(y.n) AS t FROM a x JOIN a y ON x.plan = y.plan AND x.site <> y.site "
    "GROUP BY x.plan HAVING COUNT(*) > 2 ORDER BY t, 1",
    "SELECT a.plan, MAX(a.n) AS most FROM a JOIN b ON a.plan = b.plan AND a.n > b.n / 4 GROUP BY a.plan ORDER BY 1",
    "SELECT plan AS k, n FROM b UNION ALL SELECT site, SUM(n) FROM a GROUP BY site ORDER BY n DESC, k",
    "SELECT k, SUM(n) AS n FROM (SELECT plan AS k, n FROM b UNION ALL SELECT plan, s FROM d UNION ALL SELECT 'all', n "
    "FROM c) u GROUP BY k ORDER BY k",
    "SELECT DISTINCT x.plan FROM a x JOIN a y ON x.plan = y.plan AND x.n > y.n ORDER BY x.plan",
    "SELECT plan, n FROM b WHERE n > (SELECT AVG(n) FROM b) ORDER BY plan",
    "SELECT plan, n * 100.0 / (SELECT n FROM (SELECT SUM(n) AS n FROM b)) AS share FROM b ORDER BY plan",
    "SELECT (SELECT MAX(n) FROM b) - (SELECT MIN(n) FROM b) AS range",
    "SELECT SUM(n) AS n FROM (SELECT plan, n FROM b ORDER BY n DESC, plan LIMIT 2)",
    "SELECT plan, n, RANK() OVER (ORDER BY n DESC) AS r FROM (SELECT plan, n FROM b QUALIFY RANK() "
    "OVER (ORDER BY n) < 4) ORDER BY r, plan",
    "WITH t AS (SELECT plan, SUM(n) AS n FROM a GROUP BY plan), u AS (SELECT t.plan, t.n - b.n AS d FROM t JOIN b "
    "USING (plan)) SELECT u.plan, u.d, c.n AS n FROM u, c WHERE u.d > -1000000 ORDER BY u.plan",
    "SELECT x.plan, COALESCE(y.n, 0) AS n, y.n IS NULL AS gone, CASE WHEN y.n > 100 THEN 'many' ELSE 'few' END AS f "
    "FROM b x LEFT JOIN (SELECT plan, n FROM b WHERE n > 400) y ON x.plan = y.plan ORDER BY x.plan",
    "SELECT a.plan, b.n AS n, SUM(a.n) OVER (PARTITION BY a.plan) AS t FROM a JOIN b USING (plan) ORDER BY 1, 2, 3",
    "SELECT b.plan, n FROM b JOIN (SELECT plan FROM a WHERE n > 50) f ON f.plan = b.plan ORDER BY 1 LIMIT 3 OFFSET 1",
    "SELECT x.plan, x.n, y.n AS m FROM a x, a y WHERE x.plan = y.plan AND x.site = 'x' AND y.site = 'z' ORDER BY 1",
    "SELECT x.plan, x.n, y.n AS before FROM (SELECT plan, site, n, RANK() OVER (PARTITION BY plan ORDER BY site) AS r "
    "FROM a) x, (SELECT plan, site, n, RANK() OVER (PARTITION BY plan ORDER BY site) AS r FROM a) y "
    "WHERE x.plan = y.plan AND x.r = y.r + 1 ORDER BY x.plan, x.site",
    "SELECT plan, site, SUM(n) AS n, GROUPING(site) AS g FROM a GROUP BY ROLLUP (plan, site) "
    "ORDER BY plan NULLS LAST, site NULLS LAST",
    "SELECT a.plan, a.site, SUM(a.n) + 1, MAX(b.n) AS m FROM a JOIN b ON a.plan = b.plan "
    "GROUP BY GROUPING SETS ((a.plan), (a.site), ()) HAVING COUNT(*) > 3 ORDER BY 3 LIMIT 5",
    "SELECT k, SUM(n) AS n FROM (SELECT plan AS k, n FROM b UNION ALL SELECT 'all', n FROM c) u GROUP BY CUBE (k) "
    "ORDER BY n, k",
    "SELECT plan AS k, n FROM b UNION ALL SELECT 'x', n FROM c UNION SELECT 'x', n FROM c ORDER BY 1",
    "SELECT COUNT(*) AS k, SUM(n) AS s FROM (SELECT plan, n FROM b UNION SELECT plan, n FROM b) u",
    "SELECT plan, site FROM a GROUP BY CUBE (plan, site) ORDER BY plan, site",
    "SELECT x.plan, y.plan AS p, y.n FROM b x LEFT JOIN b y ON y.plan = 'a' AND x.n > 100 ORDER BY 1, 2",
    "SELECT x.plan, y.plan AS p FROM b x FULL JOIN b y ON y.plan = 'a' AND x.plan = y.plan ORDER BY 1, 2",
    "SELECT AVG(m) AS m FROM (SELECT plan, MAX(n) AS m FROM a GROUP BY plan) u",
    "SELECT SUM(s) AS s FROM (SELECT m, SUM(n) AS s FROM (SELECT plan, n, MAX(n) OVER (PARTITION BY plan) AS m FROM a) "
    "u GROUP BY m) v",
]


def with_all(outer: str) -> str:
    """Return a question over the answers `a`, `b` and `c`."""
    used = [name for name in INNER if re.search(rf"\b{name}\b(?!\.)", outer)]
    named = ", ".join(f"{name} AS ({INNER[name]})" for name in used)
    return f"WITH {named}, {outer[5:]}" if outer.startswith("WITH ") else f"WITH {named} {outer}"


@pytest.fixture(scope="module")
def released(session: lw.Session) -> dict[str, pa.Table]:
    return {name: session.sql(text, epsilon=30).to_arrow() for name, text in INNER.items()}


def of_duckdb(outer: str, released: dict[str, pa.Table]) -> list[list[Any]]:
    with duckdb.connect() as plain:
        for name, table in released.items():
            plain.register(name, table)
        return [list(map(as_number, row)) for row in plain.execute(outer).fetchall()]


def as_number(value: Any) -> Any:
    return value if isinstance(value, str | bool | None) else float(f"{float(value):.10g}")


def rows_of(answer: lw.Answer) -> list[list[Any]]:
    return [[as_number(value) for value in row.values()] for row in answer]


@pytest.mark.long
@pytest.mark.parametrize("outer", only([0], OVER))
def test_the_answer_is_what_sql_makes_of_the_released_ones(
    outer: str, session: lw.Session, released: dict[str, pa.Table]
) -> None:
    answer = session.sql(with_all(outer), epsilon=0.5)
    assert answer.stored, "each answer inside is found under the name that it has by itself"
    assert of_duckdb(outer, released) == rows_of(answer)
    assert session.explain(with_all(outer), epsilon=0.5).cost.amount == 0


@pytest.mark.parametrize("seed", only([0], range(60)))
def test_random_questions(seed: int, session: lw.Session, released: dict[str, pa.Table]) -> None:
    outer = text_of(seed)
    answer, theirs = session.sql(with_all(outer), epsilon=0.5), of_duckdb(outer, released)
    assert Counter(map(str, rows_of(answer))) == Counter(map(str, theirs)), outer
    assert more_than_said(answer) is None


def more_than_said(answer: lw.Answer) -> int | None:
    """Return how many rows an answer is made of if these are more than was known before it was paid."""
    composition, size = answer.plan.composition, answer._released.size
    return None if composition is None or size <= (composition.most_rows or 0) else size


EACH = "SELECT plan, site, age, COUNT(*) AS n FROM visits GROUP BY plan, site, age"


def test_rows_are_bounded_by_what_keys_say_is_equal(session: lw.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 972 cells, 81 have the same plan and site, and 12 the same age."""
    by_plan = f"SELECT x.n FROM ({EACH}) x, ({EACH}) y, ({EACH}) z WHERE x.plan = y.plan AND x.site = y.site"
    plan = session.plan(f"{by_plan} AND y.age = z.age AND z.plan = 'a'", (), epsilon=1)
    assert plan.composition is not None
    assert plan.composition.most_rows == 972 * 81 * 3
    with refused_as("result_too_large", saying="76,527,504"):
        session.plan(by_plan, (), epsilon=1)
    pairs = f"SELECT y.plan, y.site, y.age, z.n FROM ({EACH}) y JOIN ({EACH}) z USING (plan, site, age)"
    plan = session.plan(f"SELECT u.n FROM ({EACH}) x JOIN ({pairs}) u USING (plan, site, age)", (), epsilon=1)
    assert plan.composition is not None
    assert plan.composition.most_rows == 972  # as many rows of a join are alike as of its first side, and meet
    for kind in ("", "LEFT", "FULL"):
        nested = f"SELECT y.plan AS p, z.n FROM a y {kind} JOIN a z ON y.plan = z.plan AND z.n > 3"
        joined = f"SELECT u.n FROM a x {kind} JOIN ({nested}) u ON x.plan = u.p"
        assert more_than_said(session.sql(with_all(joined), epsilon=0.5)) is None
    answer = session.sql(with_all("SELECT x.n FROM a x JOIN a y ON x.plan = y.plan"), epsilon=0.5)
    assert more_than_said(answer) is None
    monkeypatch.setattr(composition, "_most_alike", lambda *_: 1)
    assert more_than_said(answer) == 36


@pytest.mark.long
def test_rows_that_are_alike_and_kept_would_be_noticed(
    session: lw.Session, released: dict[str, pa.Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted bug: UNION that is UNION ALL."""
    outer = "SELECT plan, n FROM b UNION SELECT plan, n FROM b ORDER BY plan"
    assert rows_of(session.sql(with_all(outer), epsilon=0.5)) == of_duckdb(outer, released)
    monkeypatch.setattr(compositions._Composer, "_group_by_all", lambda _, select: select.set("distinct", None))
    assert len(session.sql(with_all(outer.replace("ORDER", "ORDER ")), epsilon=0.5)) == 8  # plans are remembered


def test_it_is_charged_once_together(session: lw.Session) -> None:
    parts = ["SELECT plan, COUNT(*) AS n FROM visits WHERE age > 11 GROUP BY plan", "SELECT SUM(age) AS s FROM visits"]
    text = f"SELECT n, s, s / n AS r FROM ({parts[0]}), ({parts[1]})"
    price, before = session.explain(text, epsilon=1), len(session.history())
    answer = session.sql(text, epsilon=1, label="shares")
    history = session.history()[before:]
    assert [row.wording.label for row in history if row.wording] == ["shares"] * 2
    assert answer.cost == price.cost == history[0].loss + history[1].loss
    assert answer.entries == tuple(row.sequence for row in history)
    assert answer.cost.amount <= session.price(1).amount
    assert session.sql(text, epsilon=1).cost.amount == 0
    for part in parts:
        assert session.sql(part, epsilon=Fraction(1, 2)).stored
    assert len(session.history()) == before + 2


def test_a_named_answer_is_asked_once(session: lw.Session) -> None:
    text = (
        "WITH a AS (SELECT plan, COUNT(*) AS n, SUM(age) AS s FROM visits WHERE age > 12 GROUP BY plan) "
        "SELECT x.plan, x.n, y.s FROM a x JOIN a y USING (plan) WHERE x.n > (SELECT AVG(n) FROM a)"
    )
    asked = {plan.question for plan in plans_asked(session.plan(text, (), epsilon=1))}
    assert len(asked) == 1
    assert {str(measure) for measure in asked.pop().measures} == {"COUNT(*)", 'SUM("age" - 0; 1)'}
    before = len(session.history())
    session.sql(text, epsilon=1)
    assert len(session.history()) == before + 1


def test_what_is_not_read_is_not_asked_for(session: lw.Session) -> None:
    both = "WITH a AS (SELECT plan, COUNT(*) AS n, SUM(age) AS s FROM visits GROUP BY plan) "
    plan = session.plan(both + "SELECT x.n FROM a x JOIN a y ON x.plan = y.plan AND x.n > y.n", (), epsilon=1)
    assert {str(measure) for asked in plans_asked(plan) for measure in asked.question.measures} == {"COUNT(*)"}


@pytest.mark.long
def test_nothing_is_read_but_what_the_answers_inside_read(session: lw.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = {session.plan(text, (), epsilon=1).question for text in INNER.values()}
    assert not any(strangers(outer, session, alone) for outer in OVER)

    def over_other_rows(self: object, query: object) -> object:
        return session.plan("SELECT plan, site, COUNT(*) AS n FROM visits WHERE age < 9 GROUP BY 1, 2", (), epsilon=1)

    monkeypatch.setattr(compositions._Composer, "_source", over_other_rows)
    assert strangers(f"{OVER[0]} LIMIT 99", session, alone), "the planted bug: rows of others are read"


def strangers(outer: str, session: lw.Session, alone: set[Question]) -> list[Question]:
    """Return the questions that are asked, and are none of those inside with some of their measures."""
    asked = [plan.question for plan in plans_asked(session.plan(with_all(outer), (), epsilon=1))]
    return [
        question
        for question in asked
        if not any(
            replace(inner, measures=question.measures) == question and set(question.measures) <= set(inner.measures)
            for inner in alone
        )
    ]


# ---- intervals -------------------------------------------------------------------------------------------------------

DIFFERENCE = (
    "SELECT x.n - y.n AS d, x.n AS n FROM (SELECT COUNT(*) AS n FROM visits WHERE age > 40) x, "
    "(SELECT COUNT(*) AS n FROM visits WHERE age > 20) y"
)


def test_an_interval_of_two_answers_covers_both(session: lw.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = session.sql(DIFFERENCE, epsilon=1)
    noise = [source.mechanisms[source.plan.question.measures[0]] for source in answer.sources]
    apart = sum(law.half_width((1 + CONFIDENCE) / 2) for law in noise)
    alone = noise[0].half_width(CONFIDENCE)

    def half_width(name: str) -> float:
        low, high = answer.interval()[name]
        return float(high[0] - low[0]) / 2

    assert half_width("d") == float(apart)
    assert half_width("n") == float(alone)
    # The planted bug: each of the two may miss as often as both together may.
    monkeypatch.setattr(
        composing, "margins_of", lambda value, laws, _: {m: laws[m].half_width(CONFIDENCE) for m in laws}
    )
    careless = session.sql(DIFFERENCE, epsilon=1)
    low, high = careless.interval()["d"]
    assert float(high[0] - low[0]) / 2 < float(apart)


def test_a_row_without_an_answer_has_no_interval(session: lw.Session) -> None:
    answer = session.sql(with_all(OVER[5]), epsilon=0.5)
    low, high = answer.interval()["n"]
    for row, left, right in zip(answer, low.tolist(), high.tolist(), strict=True):
        assert (row["n"] is None) == (left == -float("inf")) == (right == float("inf"))


def test_columns_keep_the_errors_that_were_promised(session: lw.Session) -> None:
    text = with_all("SELECT a.plan, a.n, b.n AS m, a.n / b.n AS r FROM a JOIN b USING (plan)")
    preview, answer = session.explain(text, epsilon=0.5), session.sql(text, epsilon=0.5)
    assert [column.half_width is not None for column in preview.columns] == [False, True, True, False]
    facts = {column.name: column for column in answer.describe()}
    low, high = answer.interval()["m"]
    assert facts["m"].half_width == float(high[0] - low[0]) / 2
    assert [measure.measure for measure in facts["r"].measures] == ["n"]


# ---- private keys ----------------------------------------------------------------------------------------------------


CATALOG = """
[dataset]
name = "towns"
ledger = "sqlite:towns.lapwing.db"
[budget]
epsilon = 1000
delta = 1e-6
delta_keys = 5e-7
[tables.visits]
source = "visits.parquet"
privacy_unit = "person"
max_rows_per_unit = 3
[tables.visits.columns]
city = { type = "string" }
age = { type = "integer", lower = 0, upper = 80 }
"""
BY_CITY = "(SELECT city, COUNT(*) AS n FROM visits GROUP BY city)"


@pytest.fixture
def towns(session: lw.Session, tmp_path: Path) -> Iterator[lw.Session]:
    shutil.copy(session.catalog.folder / "visits.parquet", tmp_path)
    (tmp_path / "towns.toml").write_text(CATALOG)
    with lw.connect(tmp_path / "towns.toml") as towns:
        yield towns


def test_private_keys_are_joined_as_they_were_chosen(towns: lw.Session) -> None:
    old = "(SELECT city, SUM(age) AS s FROM visits WHERE age > 2 GROUP BY city)"
    answer = towns.sql(f"SELECT x.city, n, s FROM {BY_CITY} x JOIN {old} y ON x.city = y.city", epsilon=20, delta=1e-8)
    assert [row["city"] for row in answer] == [f"town {number}" for number in range(5)]
    assert (
        towns.explain(f"SELECT x.city FROM {BY_CITY} x JOIN {old} y USING (city)", epsilon=20, delta=1e-8).cells is None
    )


@pytest.mark.long
def test_too_many_rows_are_refused(session: lw.Session, towns: lw.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    every = "(SELECT plan, site, age, COUNT(*) AS n FROM visits GROUP BY plan, site, age)"
    with refused_as("result_too_large", saying="918,330,048.*1,000,000"):
        session.explain(f"SELECT x.n FROM {every} x, {every} y, {every} z", epsilon=1)
    monkeypatch.setattr(composing, "MOST_ROWS", 10)
    with refused_as("result_too_large") as refused:
        towns.sql(f"SELECT x.n FROM {BY_CITY} x, {BY_CITY} y", epsilon=20, delta=1e-8)
    assert refused.value.searches_charged
    assert towns.sql(BY_CITY[1:-1], epsilon=20, delta=1e-8).stored


# ---- what is refused -------------------------------------------------------------------------------------------------

REFUSED = {
    "SELECT x.person FROM (SELECT person, COUNT(*) AS n FROM visits GROUP BY person) x, (SELECT COUNT(*) AS n FROM "
    "visits) y": "mixes_units",
    "SELECT x.n FROM (SELECT COUNT(*) AS n FROM visits) x JOIN visits v ON x.n > v.age": "mixes_units",
    "SELECT n FROM b x JOIN b y USING (plan)": "ambiguous_column",
    "SELECT x.nothing FROM b x JOIN b y USING (plan)": "unknown_column",
    "SELECT nothing FROM b x JOIN b y USING (plan)": "unknown_column",
    "SELECT z.n FROM b x JOIN b y USING (plan)": "unknown_table",
    "SELECT x.n FROM b x JOIN b x USING (plan)": "duplicate_name",
    "SELECT x.n FROM b x JOIN b y ON x.n": "not_a_condition",
    "SELECT x.n FROM b x JOIN b y USING (site)": "ambiguous_column",
    "SELECT x.n FROM b x NATURAL JOIN b y": "clause_not_supported",
    "SELECT x.n FROM b x SEMI JOIN b y USING (plan)": "join_not_supported",
    "SELECT x.n FROM b x ASOF JOIN b y ON x.n >= y.n": "clause_not_supported",
    "SELECT n, (SELECT n FROM b) AS m FROM b": "subquery_not_one_row",
    "SELECT n, (SELECT SUM(n), AVG(n) FROM b) AS m FROM b": "subquery_not_one_column",
    "SELECT n FROM b UNION SELECT n FROM c UNION ALL SELECT n FROM c": "set_operation_not_supported",
    "SELECT plan, SUM(n), RANK() OVER (ORDER BY plan) FROM a GROUP BY ROLLUP (plan)": "grouping_sets_not_supported",
    "SELECT plan, SUM(n) AS s FROM a GROUP BY ROLLUP (plan) ORDER BY MAX(n)": "grouping_sets_not_supported",
    "SELECT n FROM b UNION ALL SELECT n, n AS m FROM c": "set_operation_mismatch",
    "SELECT plan FROM b UNION ALL SELECT n FROM c": "incompatible_types",
    "SELECT n FROM b UNION ALL BY NAME SELECT n FROM c": "clause_not_supported",
    "SELECT x.plan FROM (SELECT plan FROM visits GROUP BY plan) x, c": "keys_without_number",
    "SELECT x.n, x.n + 'a' FROM b x, c": "wrong_type",
}


@pytest.mark.parametrize("outer", one_in(3, REFUSED))
def test_refusals_say_why_and_charge_nothing(outer: str, session: lw.Session) -> None:
    before = session.budget().spent
    with refused_as(REFUSED[outer]) as refused:
        session.sql(with_all(outer) if re.search(r"(FROM|,) [abcd]\b", outer) else outer, epsilon=0.5)
    assert "\0" not in str(refused.value)
    assert session.budget().spent == before


@pytest.mark.parametrize("length", [60, pytest.param(300, marks=pytest.mark.long)])
def test_no_text_takes_long(session: lw.Session, length: int) -> None:
    chain = "c0 AS (SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan)"
    for number in range(1, length):
        chain += f", c{number} AS (SELECT x.plan, x.n FROM c{number - 1} x JOIN c{number - 1} y USING (plan))"
    for last in (8, 14, length - 1):
        with pytest.raises(QueryRefused):
            session.explain(f"WITH {chain} SELECT * FROM c{last}", epsilon=1)


def test_a_batch_may_hold_them(session: lw.Session) -> None:
    questions = [with_all(OVER[0]), "SELECT COUNT(*) AS n FROM visits WHERE age = 77", with_all(OVER[1])]
    answers = session.batch(questions, epsilon=1)
    assert rows_of(answers[0]) == rows_of(session.sql(questions[0], epsilon=0.1))
    assert sum(answer.cost.amount for answer in answers) <= session.price(1).amount


def test_a_price_and_options_stand_outside(session: lw.Session) -> None:
    text = with_all("SELECT b.n, c.n AS m FROM b, c").replace(
        "SELECT b.n", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 2) b.n"
    )
    with pytest.raises(QueryRefused):  # options stand at the beginning, before WITH there is no place for them
        session.explain(text.replace("OPTIONS (epsilon", "OPTIONS (nothing"))


@pytest.mark.parametrize(
    "over",
    only(
        [0],
        [
            "SELECT b.n, c.n AS m FROM b, c",
            "SELECT a.plan, a.n, b.n AS m FROM a LEFT JOIN b USING (plan) WHERE b.n > 5",
            "SELECT plan AS k, n FROM b UNION ALL SELECT site, n FROM a WHERE plan = 'a'",
            "SELECT x.n, y.n AS m FROM (SELECT plan, n FROM b ORDER BY n DESC LIMIT 2) x JOIN b y USING (plan)",
        ],
    ),
)
def test_every_number_is_bought_at_the_error(over: str, session: lw.Session) -> None:
    text = with_all(over)
    preview, answer = session.explain(text, error=10), session.sql(text, error=10)
    questions = {leaf.question: leaf for leaf in plans_asked(session.plan(text, (), error=10))}
    alone = [session.explain(INNER[name], error=10).price.amount for name in "abc" if f" {name}" in over]
    assert preview.price.amount == sum(alone)
    assert len(questions) == len(alone)
    assert answer.cost.amount <= preview.price.amount
    widths = [c.half_width for c in preview.columns if c.half_width is not None]
    assert len(widths) > 0
    assert 9 <= min(widths) <= max(widths) <= 10
    assert all(half_width <= 10 for name in answer.interval() for half_width in half_widths(answer, name))


def test_a_price_for_a_wider_error_is_found(session: lw.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: what is asked for inside may err by a tenth more."""
    honest = at_error
    monkeypatch.setattr(
        joint_error, "at_error", lambda p, b, budget, error, n: honest(p, b, budget, error * 11 / 10, n)
    )
    preview = session.explain(with_all("SELECT b.n, c.n AS m FROM b, c"), error=20)
    assert any(column.half_width is not None and column.half_width > 20 for column in preview.columns)


def half_widths(answer: lw.Answer, name: str) -> list[float]:
    low, high = answer.interval()[name]
    return [(b - a) / 2 for a, b in zip(low.tolist(), high.tolist(), strict=True) if b - a < float("inf")]


@pytest.mark.parametrize(
    ("over", "reason"),
    [
        ("SELECT b.n / c.n AS share FROM b, c", "error_not_single"),
        ("SELECT SUM(a.n) AS n FROM a JOIN b USING (plan)", "error_not_single"),
    ],
)
def test_what_is_computed_has_no_one_error(over: str, reason: str, session: lw.Session) -> None:
    with refused_as(reason):
        session.explain(with_all(over), error=10)
    constant = "SELECT plan, COUNT(*) AS n FROM visits WHERE age > (SELECT AVG(age) FROM visits) GROUP BY plan"
    with refused_as("error_not_single"):
        session.explain(constant, error=10)


def test_it_costs_the_time_of_all_of_them(session: lw.Session) -> None:
    speed = Speed(question=1e-3, nanosecond=1e-9, row=1e-7, number=1e-6)
    whole = session.plan(with_all(OVER[1]), (), epsilon=1)
    parts = [session.plan(INNER[name], (), epsilon=1) for name in ("a", "b")]
    together = cost_of(parts, speed, indexed=True).seconds
    assert cost_of([whole], speed, indexed=True).seconds >= together * 0.9


# ---- what is said about privacy -------------------------------------------------------------------------------------

CLAUSE = "WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.25, max_rows_contributed = 2)"
BOUNDED = "COUNT(*, contribution_bounds_per_group => (0, 2)) AS n FROM visits"


def test_each_part_may_say_its_options_and_the_prices_add_up(session: lw.Session) -> None:
    both = session.plan(f"SELECT {CLAUSE} {BOUNDED} UNION ALL SELECT {CLAUSE} {BOUNDED} WHERE age > 3", ())
    first = session.plan(f"SELECT {CLAUSE} {BOUNDED}", ())
    assert (both.price_request.epsilon, first.price_request.epsilon) == (Fraction(1, 2), Fraction(1, 4))
    assert first.question in [leaf.question for leaf in plans_asked(both)]


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT SUM(n, epsilon => 0.1) AS s FROM (SELECT {BOUNDED} UNION ALL SELECT {BOUNDED} WHERE age > 3)",
        f"SELECT {CLAUSE} {BOUNDED} UNION ALL SELECT {CLAUSE.replace('2)', '3)')} {BOUNDED}",
        f"SELECT {BOUNDED} UNION ALL SELECT COUNT(*) AS n FROM (SELECT {CLAUSE} person, age FROM visits)",
        f"SELECT {BOUNDED} UNION ALL SELECT COUNT(*) AS n FROM (SELECT person, SUM(age, epsilon => 1) AS a FROM visits "
        "GROUP BY person)",
    ],
)
def test_what_is_said_where_nothing_is_released_is_refused(text: str, session: lw.Session) -> None:
    with pytest.raises(QueryRefused):
        session.plan(text, ())

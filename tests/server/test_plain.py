"""What is reserved for plain questions: each step that an engine takes for a row is counted, and none is left out."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import loads
from lapwing.engines.duckdb.expressions import where_clause
from lapwing.query.bind.bind import bind
from lapwing.query.plan.plan import Plan, Question
from lapwing.server.deadline import plain
from lapwing.server.deadline.cost import Speed, cost_of, nanoseconds, over_rows
from lapwing.server.deadline.plain import steps

CATALOG = """
[dataset]
name = "visits"
ledger = "sqlite:ledger.db"
[budget]
epsilon = 1
delta = 1e-6
[tables.visits]
source = "visits.parquet"
privacy_unit = "person"
max_rows_per_unit = 8
rows_at_most = 1000000
[tables.visits.columns]
plan = { type = "string", values = ["a", "b", "c"] }
ill = { type = "boolean" }
note = { type = "string" }
age = { type = "integer", lower = 0, upper = 110 }
cost = { type = "integer", lower = 0, upper = 1000, nullable = false }
real = { type = "float" }
wide = { type = "integer", lower = 0, upper = 10000000000 }
"""
SPEED = Speed(
    question=0.0, nanosecond=1e-9, row=0.0, number=0.0, compared=1e-9, known=1e-9, null=3e-9, branched=20e-9,
    summed=2e-9, count_filtered=3e-9, sum_filtered=9e-9,
)  # fmt: skip
WHERE = "SELECT COUNT(*) FROM visits WHERE "


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return loads(CATALOG, file="lapwing.toml", folder=Path())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT COUNT(*) FROM visits", {"compared": 1}),
        (f"{WHERE}cost > 5", {"compared": 1}),
        (f"{WHERE}age > 5", {"compared": 1, "known": 1}),
        (f"{WHERE}age > 5 AND cost <> 3", {"compared": 2, "known": 1}),
        (f"{WHERE}age > 5 OR cost <> 3", {"compared": 2, "null": 1, "branched": 1}),
        (f"{WHERE}age IS NULL", {"compared": 1, "null": 1}),
        (f"{WHERE}cost > 500 OR cost < 10 OR cost = 30", {"compared": 3, "branched": 2}),
        (f"{WHERE}NOT (cost > 500 AND age < 10)", {"compared": 2, "null": 1, "branched": 1}),
        ("SELECT SUM(cost), COUNT(*) FROM visits", {"summed": 1}),
        ("SELECT COUNT(*) FILTER (WHERE cost > 3) FROM visits", {"compared": 1, "count_filtered": 1}),
        (
            "SELECT SUM(age) FILTER (WHERE cost > 3) FROM visits",
            {"compared": 1, "summed": 1, "null": 1, "sum_filtered": 1},
        ),
    ],
)
def test_steps_are_counted(catalog: Catalog, text: str, expected: dict[str, int]) -> None:
    assert steps(bind(text, catalog).question) == Counter(expected)


@pytest.mark.parametrize(
    "text",
    [
        f"{WHERE}wide > 5",  # takes more to read, and to add up
        f"{WHERE}real > 5",
        f"{WHERE}ill",
        f"{WHERE}note = 'x'",
        f"{WHERE}cost + 1 > 5",
        f"{WHERE}cost > age",
        f"{WHERE}cost IN (1, 2, 3, 4, 5, 6, 7)",
        f"{WHERE}cost > 5 AND (cost < 3 OR note LIKE '%a%')",
        "SELECT plan, COUNT(*) FROM visits GROUP BY plan",
        "SELECT SUM(wide) FROM visits",
        "SELECT SUM(cost * 2) FROM visits",
        "SELECT COUNT(DISTINCT person) FROM visits",
        "SELECT MEDIAN(cost) FROM visits",
        "SELECT COUNT(*) FILTER (WHERE cost > 3 OR age < 7) FROM visits",
        "SELECT COUNT(*) FROM (SELECT DISTINCT person, cost FROM visits)",
        "SELECT COUNT(*) FROM visits WHERE person IN (SELECT person FROM visits WHERE cost > 3)",
    ],
)
def test_what_was_not_measured_costs_what_the_model_says(catalog: Catalog, text: str) -> None:
    question = bind(text, catalog).question
    assert steps(question) is None
    assert over_rows(question, SPEED, indexed=True) == SPEED.nanosecond * nanoseconds(question)


def test_without_an_index_or_measurements_the_model_says_it(catalog: Catalog) -> None:
    plan = bind(f"{WHERE}cost > 5", catalog)
    model = SPEED.nanosecond * nanoseconds(plan.question)
    assert over_rows(plan.question, SPEED, indexed=False) == model
    assert over_rows(plan.question, replace(SPEED, compared=0.0), indexed=True) == model
    assert over_rows(plan.question, SPEED, indexed=True) == pytest.approx(1e-3)
    assert cost_of([plan], SPEED, indexed=True).seconds == pytest.approx(1e-3)


MORE = (
    ("cost > 5", "cost > 5 AND cost < 90"),
    ("cost > 5", "age > 5"),
    ("cost > 5 AND cost < 90", "cost > 5 OR cost < 3"),
    ("cost > 5 OR cost < 3", "NOT (cost > 5 AND cost < 30) OR cost = 1"),
    ("cost > 5", "cost > 5 AND age IS NULL"),
    ("cost > 5 OR cost < 3", "cost > 5 OR age < 3"),
)


def check_nothing_is_left_out(bound: Callable[[str], Plan], of: Callable[[Question], Counter[str] | None]) -> None:
    for less, more in MORE:
        pair = [of(bound(WHERE + condition).question) for condition in (less, more)]
        assert pair[0] is not None, "unknown"
        assert pair[1] is None or pair[1] > pair[0], "left out"


def test_what_asks_more_reserves_more(catalog: Catalog) -> None:
    check_nothing_is_left_out(lambda text: bind(text, catalog), steps)


@pytest.mark.parametrize("step", ["known", "null", "branched", "compared"])
def test_twin_steps_that_are_not_counted_are_noticed(catalog: Catalog, step: str) -> None:
    def forgetful(question: Question) -> Counter[str] | None:
        known = steps(question)
        return None if known is None else Counter({name: times for name, times in known.items() if name != step})

    with pytest.raises(AssertionError, match="left out"):
        check_nothing_is_left_out(lambda text: bind(text, catalog), forgetful)


def test_each_step_is_what_its_question_takes_beyond_others() -> None:
    took = {
        "nothing": 1.0, "compared": 2.0, "compared_null": 3.5, "branched": 13.0, "branched_null": 19.0,
        "summed": 3.0, "summed_null": 7.0, "count_filtered": 4.0, "count_filtered_null": 8.0, "sum_filtered": 13.0,
    }  # fmt: skip
    assert plain.seconds_of(took) == {
        "compared": 1.0, "known": 1.5, "null": 4.0, "branched": 10.0, "summed": 2.0, "count_filtered": 2.0,
        "sum_filtered": 9.0,
    }  # fmt: skip


def test_each_question_that_is_measured_is_of_its_steps(catalog: Catalog) -> None:
    """A plain question costs no less than it took where it was measured: its steps add up to that."""
    made = loads(CATALOG.replace("[tables.visits]", "[tables.plain]").replace("[tables.visits.", "[tables.plain.")
        .replace("cost =", "even =").replace("age =", "spotty =").replace("upper = 1000,", "upper = 2000000000,")
        .replace("upper = 110", "upper = 2000000000"), file="lapwing.toml", folder=Path())  # fmt: skip
    took = dict(zip(plain.QUERIES, (1.0, 2.0, 3.5, 13.0, 19.0, 3.0, 7.0, 4.0, 8.0, 13.0), strict=True))
    figures = plain.seconds_of(took)
    for name, text in plain.QUERIES.items():
        known = steps(bind(text, made).question)
        assert known is not None
        if name != plain.NOTHING:
            assert sum(figures[step] * times for step, times in known.items()) >= took[name] - took[plain.NOTHING]


def test_the_engine_leaves_out_nulls_of_exactly_the_columns_that_are_reserved_so(catalog: Catalog) -> None:
    """A condition that could hold where a column is NULL leaves nothing out."""
    for condition, expected in (
        ("age > 5 AND (cost = 3 AND 7 >= age)", {"age", "cost"}),
        ("age > 5 OR cost = 3", set()),
        ("NOT (age > 5 OR cost = 3)", {"age", "cost"}),
        ("age IS NULL AND cost < 9", {"cost"}),
        ("age IS DISTINCT FROM 5", set()),
        ("COALESCE(age, 3) > 2 AND note = 'x'", set()),
    ):
        question = bind(WHERE + condition, catalog).question
        printed, taken = where_clause(question.selection.where, quick=True), steps(question)
        assert {name for name in ("age", "cost") if f' AND "{name}" IS NOT NULL' in printed} == expected, printed
        assert taken is None or bool(taken["known"]) is ("age" in expected), condition

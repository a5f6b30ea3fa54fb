"""Bounds that a question leaves open: of a group alone, or none; and averages of what each unit has on average."""

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from itertools import product
from math import floor
from typing import Any

import pyarrow as pa
import pytest

import lapwing as lw
from lapwing.engines.duckdb import clamped_sums, held_totals
from lapwing.errors import QueryRefused, RefusalCause
from lapwing.query.bind import implicit_bounds
from lapwing.query.derivation.average import Average
from lapwing.query.expressions.expression import ColumnReference
from lapwing.query.expressions.magnitudes import magnitudes_of
from lapwing.query.expressions.rows import RowScope
from lapwing.query.expressions.types import Fixed, Real, Type
from lapwing.query.from_clause.scope import Scope, bind_from
from lapwing.query.measures.measures import Sum
from lapwing.query.plan.plan import Plan
from lapwing.query.sensitivity.stability import of_question
from lapwing.query.text.parse import Parsed, parse
from tests.support.effort import only
from tests.support.query.asked import World as Asked
from tests.support.query.ibis_world import World, same, world

__all__ = ["world"]

PRIVATE = "SELECT WITH DIFFERENTIAL_PRIVACY"
KINDS: list[Type] = [
    *(
        Fixed(step=step, low=low, high=high)
        for step in (Fraction(1), Fraction(1, 100))
        for low, high in ((None, None), (0, None), (0, 0), (-5, 0), (0, 1), (1, 7), (-3, 1 << 100))
    ),
    *(
        Real(low=low, high=high)
        for low, high in (
            (None, None),
            (Fraction(0), None),
            (Fraction(0), Fraction(0)),
            (Fraction(-1, 3), Fraction(10) ** 40),
        )
    ),
]
AUTO = "contribution_bounds_per_row => AUTO"
GROUP = "contribution_bounds_per_group"
FOUND = [
    ("SUM(weight) AS s", f"SUM(weight, {AUTO}) AS s"),
    ("plan, AVG(points) AS a", f"plan, AVG(points, {AUTO}) AS a"),
    ("VAR_POP(weight) AS v, SUM(age) AS s", f"VAR_POP(weight, {AUTO}) AS v, SUM(age) AS s"),
    ("CORR(weight, points) AS c", f"CORR(weight, points, {AUTO}) AS c"),
    ("SUM(weight) FILTER (WHERE member) AS s", f"SUM(weight, {AUTO}) FILTER (WHERE member) AS s"),
    ("SUM(weight) + AVG(points) AS s", f"SUM(weight, {AUTO}) + AVG(points, {AUTO}) AS s"),
    ("SUM(weight, epsilon => 0.1) AS s", f"SUM(weight, epsilon => 0.1, {AUTO}) AS s"),
]


@pytest.mark.parametrize(("text", "written"), FOUND, ids=[text for text, _ in FOUND])
def test_implicit_bounds_are_auto_written_out(world: World, text: str, written: str) -> None:
    keys = " GROUP BY plan" if text.startswith("plan") else ""
    plan, known = (world.plan(f"{PRIVATE} {shown} FROM visits{keys}") for shown in (text, written))
    assert not same(plan, known)
    assert plan.searches


@pytest.mark.parametrize(
    "text",
    [
        "SELECT SUM(weight) AS s FROM visits",
        f"{PRIVATE} MEDIAN(weight) AS m FROM visits",
        f"{PRIVATE} SUM(weight, {GROUP} => AUTO) AS s FROM visits",
        f"SELECT SUM(weight, {GROUP} => (0, 5)) AS s, SUM(points) AS p FROM visits",
        f"SELECT AVG(weight, {GROUP} => AUTO) AS s FROM visits",
        f"SELECT AVG(weight, {GROUP} => (0, 5)) AS s FROM ballots",
        f"SELECT SUM(weight, {GROUP} => (0, 0.1)) AS s, AVG(points, {GROUP} => (0.1, 0.1)) AS a FROM visits",
    ],
)
def test_what_states_no_bounds_is_refused(world: World, text: str) -> None:
    with pytest.raises(QueryRefused):
        world.plan(text)


def test_bounds_that_where_states_come_first(world: World) -> None:
    text = f"{PRIVATE} SUM(weight, {GROUP} => (0, 5)) AS s FROM visits WHERE weight BETWEEN 0 AND 9"
    (measure,) = world.plan(text).question.measures
    assert isinstance(measure, Sum)
    assert measure.type.interval()[1] == 9


def test_what_has_bounds_is_read_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(implicit_bounds, "with_implicit_bounds", lambda *_: pytest.fail("it is read again"))
    world.plan(f"{PRIVATE} SUM(age) AS s, AVG(weight, {GROUP} => (0, 5)) AS a FROM visits")


@pytest.mark.parametrize(("condition", "reached"), [("age > 3", 0), ("weight > 0", 0), ("weight BETWEEN 0 AND 9", 1)])
def test_the_rest_is_bound_again_only_where_conditions_state_bounds(world: World, condition: str, reached: int) -> None:
    text = f"SELECT SUM(weight) AS s FROM visits WHERE {condition}"
    scope, parsed = Scope(text=text, catalog=world.catalog, facts=world.facts), parse(text)
    refused, beyond = QueryRefused("It has no bounds", cause=RefusalCause.UNBOUNDED), list[Parsed]()

    def bound(parsed: Parsed, names: Callable[..., RowScope]) -> Plan:
        names(*bind_from(parsed.select, scope))
        beyond.append(parsed)
        raise refused

    with pytest.raises(QueryRefused) as raised:
        implicit_bounds.bind_otherwise(refused, parsed, bound, scope)
    assert raised.value is refused
    assert len(beyond) == reached


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_classes_are_counted_without_their_edges(kind: Type) -> None:
    magnitudes = magnitudes_of(ColumnReference(name="x", type=kind))
    assert magnitudes.classes == len(magnitudes.edges)


def test_a_number_in_a_condition_says_its_own_bounds(world: World) -> None:
    inner = f"SELECT AVG(weight, {GROUP} => (0, 9)) AS a FROM visits"
    plan = world.plan(f"SELECT SUM(age, {GROUP} => (0, 50)) AS s FROM visits WHERE cost > ({inner})")
    assert [asked.question for asked in plan.constants] == [world.plan(inner).question]
    assert {str(measure).split("CLAMPED ")[1] for measure in plan.question.measures} == {"0 50"}


# ---- how far a unit moves it -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("bounds", "most"), [("(0, 10)", 10), ("(-2, 3)", 3), ("(2, 3)", 3), ("(0, 0.5)", 0.5)])
def test_a_sum_moves_by_the_bounds_of_the_group(world: World, bounds: str, most: float) -> None:
    for column in ("weight", "points") if most >= 1 else ("weight",):
        question = world.plan(f"SELECT SUM({column}, {GROUP} => {bounds}) AS s FROM visits").question
        (candidates,) = of_question(question, "add_remove")
        step = question.measures[0].step
        assert min(candidate.sensitivity.l1 for candidate in candidates) * step == Fraction(str(most))


def test_a_mean_moves_by_half_the_bounds_and_its_count_by_one(world: World) -> None:
    question = world.plan(f"SELECT plan, AVG(weight, {GROUP} => (2, 12)) AS a FROM visits GROUP BY plan").question
    count, total = (min(found, key=lambda one: one.sensitivity.l1) for found in of_question(question, "add_remove"))
    assert count.sensitivity.l1 == 3  # of three rows in three plans
    assert total.sensitivity.l1 * question.measures[1].step == 3 * 5
    assert question.measures[1].step <= Fraction(12, 2**19)


# ---- what it is ------------------------------------------------------------------------------------------------------

PEOPLE, ROWS, HIGH = 12, 4, 2**62
TABLE = f"""
[dataset]
name = "few"
ledger = "sqlite:few.db"
[budget]
epsilon = 500
delta = 1e-6
delta_keys = 1e-7
[tables.visits]
source = "visits.parquet"
privacy_unit = "person"
max_rows_per_unit = {ROWS}
[tables.visits.columns]
plan = {{ type = "string", values = ["a", "b"] }}
points = {{ type = "integer" }}
weight = {{ type = "float" }}
age = {{ type = "integer", lower = 0, upper = 110 }}
"""


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Asked, list[dict[str, Any]]]]:
    chance = random.Random(7)
    numbers = [None, 0, 1, 2, 7, -3, 50, HIGH, -HIGH]
    rows: list[dict[str, Any]] = [
        {
            "person": person,
            "plan": chance.choice("ab"),
            "points": chance.choice(numbers),
            "weight": chance.choice([None, 0.0, 0.25, 3.5, -1e300, 1e300, float("nan"), float("inf"), 2.0]),
            "age": chance.choice([None, 0, 30, 31, 110]),
        }
        for person in range(PEOPLE)
        for _ in range(chance.randint(0, ROWS))
    ]
    with Asked(tmp_path_factory.mktemp("few"), TABLE, {"visits": pa.Table.from_pylist(rows)}) as asked:
        yield asked, rows


def inside(value: int, low: Fraction, high: Fraction) -> Fraction:
    return min(max(Fraction(value), low), high)


def by_unit(rows: list[dict[str, Any]], column: str, reach: Fraction) -> Mapping[str, list[list[Fraction]]]:
    """Return what each unit has in each plan, each value within reach of 0."""
    found: dict[tuple[str, int], list[Fraction]] = defaultdict(list)
    for row in rows:
        value = row[column]
        if value is None or value != value:
            continue
        number = reach if value > reach else -reach if value < -reach else Fraction(value)
        found[(row["plan"], row["person"])].append(number)
    return {plan: [values for (p, _), values in found.items() if p == plan] for plan in "ab"}


@pytest.mark.parametrize(
    ("column", "bounds"),
    only([0], [*product(["points", "weight", "age"], [(0, 10), (2, 3), (-3, -1)]), ("age", (0, 110))], many=True),
)
def test_it_is_the_mean_of_means(few: tuple[Asked, list[dict[str, Any]]], column: str, bounds: tuple[int, int]) -> None:
    asked, rows = few
    low, high = map(Fraction, bounds)
    plan = asked.plan(f"SELECT plan, AVG({column}, {GROUP} => {bounds}) AS a FROM visits GROUP BY plan")
    average = plan.outputs[1].value
    assert isinstance(average, Average)
    step, origin = average.total.step, average.total.origin
    reach = step * 2**39
    cells = asked.exact(plan.question)
    for name, units in by_unit(rows, column, reach).items():
        means = [sum(values, Fraction()) / len(values) for values in units]
        kept = [inside(floor(mean / step + Fraction(1, 2)), low / step, high / step) - origin for mean in means]
        assert dict(zip(plan.question.measures, cells[(name,)], strict=True)) == {
            average.total: sum(kept),
            average.count: len(units),
        }


@pytest.mark.parametrize(("column", "bounds"), [*product(["points", "weight"], [(0, 10), (2, 3), (-3, -1)])])
def test_it_is_the_sum_of_kept_sums(
    few: tuple[Asked, list[dict[str, Any]]], column: str, bounds: tuple[int, int]
) -> None:
    asked, rows = few
    plan = asked.plan(f"SELECT plan, SUM({column}, {GROUP} => {bounds}) AS s FROM visits GROUP BY plan")
    (measure,) = plan.question.measures
    step = measure.step
    cells = asked.exact(plan.question)
    for name, units in by_unit(rows, column, step * 2**39).items():
        sums = [sum(values, Fraction()) for values in units]
        here = len({row["person"] for row in rows if row["plan"] == name})
        sums += [Fraction(0)] * (here - len(sums))  # of a unit with rows that have no value
        low, high = (Fraction(end) / step for end in bounds)
        kept = [inside(floor(value / step + Fraction(1, 2)), low, high) for value in sums]
        assert cells[(name,)] == (sum(kept),)


def differs(few: tuple[Asked, list[dict[str, Any]]], column: str, bounds: tuple[int, int]) -> bool:
    try:
        test_it_is_the_mean_of_means(few, column, bounds)
    except AssertionError:
        return True
    return False


def test_rounding_and_clamping_a_mean_are_noticed(
    few: tuple[Asked, list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    mean = clamped_sums._mean
    for right, wrong in (("2 * (SUM", "2 * (1 + SUM"), ("THEN CASE", "THEN 1 + CASE")):

        def bug(measure: Any, place: int, right: str = right, wrong: str = wrong) -> str | None:
            item = mean(measure, place)
            assert item is None or right in item
            return item and item.replace(right, wrong)

        monkeypatch.setattr(clamped_sums, "_mean", bug)
        assert any(differs(few, column, bounds) for column in ("points", "weight") for bounds in ((0, 10), (-3, -1)))


def test_a_mean_is_not_read_from_sums_that_are_held(few: tuple[Asked, list[dict[str, Any]]]) -> None:
    """What units add is held for a search and the question: here the sum has the mean's steps and origin."""
    asked, _ = few
    found = f"SELECT SUM(age, {GROUP} => AUTO) AS s"
    text = f"{found}, AVG(age, {GROUP} => (-2000000, 2000000)) AS a FROM visits"
    assert held_totals._totals_of(asked.plan(f"{found} FROM visits").question) is not None
    (total,) = {m for m in asked.plan(text).question.measures if isinstance(m, Sum) and m.averaged}
    assert total.step == 1
    assert not total.origin
    assert held_totals._totals_of(asked.plan(text).question) is None


def test_a_question_is_answered(few: tuple[Asked, list[dict[str, Any]]]) -> None:
    asked, _ = few
    with lw.connect(asked.catalog.folder / "catalog.toml") as session:
        text = f"SELECT AVG(age, {GROUP} => (0, 110)) AS a, COUNT(*) AS n FROM visits"
        answer = session.sql(text, epsilon=40)
        ((low,), (high,)) = answer.interval(0.95)["a"]
        average = answer.rows()[0]["a"]
        assert isinstance(average, float)
        assert 0 <= low <= average <= high <= 110

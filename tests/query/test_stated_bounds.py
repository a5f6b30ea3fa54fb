"""Bounds that WHERE states: no row that it keeps lies beyond them, and nothing rests on WHERE but what is meant."""

from fractions import Fraction
from itertools import product
from operator import eq, ge, gt, le, lt
from random import Random

import pytest

from lapwing.errors import QueryRefused
from lapwing.query.bind import implicit_bounds
from lapwing.query.bind.bind import bind
from lapwing.query.expressions.expression import ColumnReference, Expression, Literal, Operation
from lapwing.query.expressions.types import BOOLEAN, Fixed
from lapwing.query.from_clause import stated_bounds as stated
from lapwing.query.sensitivity.stability import of_question
from tests.support.effort import one_in
from tests.support.query.ibis_world import World, world
from tests.support.refusals import refused_as

__all__ = ["world"]

NUMBER = Fixed(step=Fraction(1), low=None, high=None)
X, Y = ColumnReference(name="x", type=NUMBER), ColumnReference(name="y", type=NUMBER)
MEANING = {"equal": eq, "greater": gt, "greater_equal": ge, "less": lt, "less_equal": le}


def holds(condition: Operation, x: int, y: int) -> bool:
    def value(one: Expression) -> Fraction:
        if isinstance(one, ColumnReference):
            return Fraction({"x": x, "y": y}[one.name])
        assert isinstance(one, Literal)
        assert isinstance(one.value, Fraction)
        return one.value

    first, *others = map(value, condition.arguments)
    if condition.function == "member":
        return first in others
    if condition.function == "not_equal":
        return first != others[0]
    return bool(MEANING[condition.function](first, others[0]))


def conditions(chance: Random) -> list[Operation]:
    found = []
    for _ in range(chance.randrange(1, 5)):
        function = chance.choice([*MEANING, "member", "not_equal"])
        others: list[Expression] = [
            Literal(value=Fraction(chance.randrange(-4, 5)), type=NUMBER)
            for _ in range(chance.randrange(1, 4) if function == "member" else 1)
        ]
        if chance.random() < 0.15:
            others[0] = Y
        arguments = (chance.choice([X, X, X, Y]), *others)
        found.append(Operation(function=function, arguments=arguments, type=BOOLEAN))
    return found


def beyond(turns: int) -> bool:
    """Return whether a row that is kept lies beyond the bounds that were found."""
    chance = Random(7)
    for _ in range(turns):
        asked = conditions(chance)
        found = stated.stated_bounds(X, asked)
        kept = [x for x, y in product(range(-6, 7), repeat=2) if all(holds(one, x, y) for one in asked)]
        if found is not None and any(not found[0] <= x <= found[1] for x in kept):
            return True
    return False


@pytest.mark.parametrize("turns", [300, pytest.param(3_000, marks=pytest.mark.long)])
def test_no_kept_row_lies_beyond(turns: int) -> None:
    assert not beyond(turns)


@pytest.mark.parametrize("end", one_in(2, ["min", "max"]))
def test_the_wrong_end_is_noticed(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stated, end, {"min": max, "max": min}[end], raising=False)
    assert beyond(1_000)


# ---- in questions ----------------------------------------------------------------------------------------------------

ANSWERED = [
    "SELECT SUM(weight) AS s FROM visits WHERE weight >= 0 AND weight <= 100",
    "SELECT SUM(weight) AS s FROM visits WHERE weight BETWEEN 0 AND 100 AND weight < 500 AND member",
    "SELECT SUM(w) AS s FROM (SELECT weight AS w, age FROM visits WHERE weight < 100) AS v WHERE 0 <= w",
    "SELECT AVG(v.weight) AS s FROM visits AS v JOIN codes USING (plan) WHERE v.weight BETWEEN 0 AND 100",
    "SELECT MEDIAN(weight) AS s FROM visits WHERE weight BETWEEN 0 AND 100",
    "SELECT plan, STDDEV(weight) AS s FROM visits WHERE weight BETWEEN 0 AND 100 GROUP BY plan",
    "SELECT SUM(points * 2 + 1) AS s FROM visits WHERE points IN (0, 100)",
    "SELECT * FROM (SELECT plan, SUM(weight) AS s FROM visits WHERE weight BETWEEN 0 AND 9 GROUP BY plan) WHERE s > 3",
]
REFUSED = [
    "SELECT SUM(weight) AS s FROM visits WHERE weight > 0",
    "SELECT SUM(weight) AS s FROM visits WHERE weight > 0 OR weight < 100",
    "SELECT SUM(weight) AS s FROM visits WHERE NOT (weight > 0 AND weight < 100)",
    "SELECT SUM(weight) AS s FROM visits WHERE weight > 100 AND weight < 0",
    "SELECT SUM(weight) AS s FROM visits WHERE weight > age AND weight < 100",
    "SELECT SUM(weight) AS s FROM visits WHERE weight NOT IN (0, 100)",
    "SELECT SUM(b.weight) AS s FROM visits AS a JOIN visits AS b USING (person) WHERE a.weight BETWEEN 0 AND 100",
]


@pytest.mark.parametrize("text", ANSWERED)
def test_it_is_the_clamped_value(world: World, text: str) -> None:
    question = str(world.plan(text).question)
    assert "greatest" in question
    assert "least" in question


@pytest.mark.parametrize("text", REFUSED)
def test_what_states_no_bounds_is_refused_as_ever(world: World, text: str) -> None:
    with refused_as("unbounded", saying="weight"):
        world.plan(text)


def test_it_is_as_sensitive_as_with_the_bounds_written_out(world: World) -> None:
    said = "SELECT SUM(weight, contribution_bounds_per_row => (0, 100)) AS s FROM visits"
    by_where, by_argument = (of_question(world.plan(text).question, "add_remove") for text in (ANSWERED[0], said))
    assert by_where == by_argument


def test_other_questions_stay_what_they_were(world: World) -> None:
    for text in (
        "SELECT COUNT(weight) AS n FROM visits WHERE weight BETWEEN 0 AND 100",
        "SELECT SUM(age) AS s FROM visits WHERE age BETWEEN 20 AND 30 AND weight BETWEEN 0 AND 100",
        "SELECT points, COUNT(*) AS n FROM visits WHERE points BETWEEN 0 AND 100 GROUP BY points",
    ):
        assert "greatest" not in str(world.plan(text).question)


def test_bounds_need_no_second_reading_of_others(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(implicit_bounds, "rows_as_stated", lambda *_: pytest.fail("it is read again"))
    bind("SELECT COUNT(*) AS n FROM visits WHERE weight > 0", world.catalog, world.facts)
    with pytest.raises(QueryRefused):
        bind("SELECT COUNT(*) AS n FROM visits WHERE wieght > 0", world.catalog, world.facts)

"""Aggregates of public tables in conditions on rows mean the constants that they are, and what SQL means."""

import pytest

from lapwing.errors import QueryRefused
from tests.support.query.ibis_world import World, same, world

__all__ = ["world"]

COUNT = "SELECT COUNT(*) AS n FROM visits AS v WHERE"
NO_NUMBER, NO_TEXT = "(CASE WHEN FALSE THEN 0 END)", "(CASE WHEN FALSE THEN '' END)"
BY_PLAN = "FROM codes AS c WHERE c.plan = v.plan"
PAIRS = [
    (f"{COUNT} age > (SELECT AVG(factor) FROM codes)", f"{COUNT} age > (2.5)"),
    (f"{COUNT} age > 2 * (SELECT MAX(factor) - COUNT(*) FROM codes)", f"{COUNT} age > 2 * ((5) - (6))"),
    (f"{COUNT} age > (SELECT SUM(floor) FROM codes WHERE tier = 'gold')", f"{COUNT} age > (-1)"),
    (f"{COUNT} age > (SELECT COUNT(floor) FROM codes WHERE plan = 'z')", f"{COUNT} age > (0)"),
    (
        f"{COUNT} age > (SELECT AVG(c.factor) {BY_PLAN})",
        f"{COUNT} age > CASE v.plan WHEN 'a' THEN (2.5) WHEN 'b' THEN (1.0) WHEN 'c' THEN (0.0) "
        "WHEN 'it''s' THEN (5.0) END",
    ),
    (
        f"{COUNT} (SELECT COUNT(*) {BY_PLAN} AND c.factor > 1) = 0",
        f"{COUNT} CASE v.plan WHEN 'a' THEN (2) WHEN 'it''s' THEN (1) ELSE (0) END = 0",
    ),
    (
        f"{COUNT} (SELECT COUNT(*) FROM codes AS c WHERE (c.plan = v.plan AND factor > 2) "
        "OR (c.plan = v.plan AND tier = 'basic')) > 0",
        f"{COUNT} CASE v.plan WHEN 'a' THEN (1) WHEN 'b' THEN (1) WHEN 'it''s' THEN (1) ELSE (0) END > 0",
    ),
    (
        "SELECT SUM(CASE WHEN age > (SELECT AVG(factor) FROM codes) THEN 1 ELSE 0 END) AS s FROM visits",
        "SELECT SUM(CASE WHEN age > (2.5) THEN 1 ELSE 0 END) AS s FROM visits",
    ),
    (
        f"WITH gold AS (SELECT * FROM codes WHERE tier = 'gold') {COUNT} age > (SELECT AVG(factor) FROM gold)",
        f"{COUNT} age > (2.5)",
    ),
    (f"{COUNT} age > (SELECT AVG(factor) FROM codes WHERE plan = 'z')", f"{COUNT} age > {NO_NUMBER}"),
    (f"{COUNT} age > (SELECT 2 * MIN(floor) FROM codes WHERE plan = 'z')", f"{COUNT} age > {NO_NUMBER}"),
    (f"{COUNT} plan = (SELECT MAX(tier) FROM codes WHERE plan = 'z')", f"{COUNT} plan = {NO_TEXT}"),
    (f"{COUNT} plan = (SELECT tier FROM codes WHERE plan = 'z')", f"{COUNT} plan = {NO_TEXT}"),
    (f"{COUNT} age > (SELECT AVG(c.factor) {BY_PLAN} AND c.plan = 'z')", f"{COUNT} age > {NO_NUMBER}"),
    (
        f"WITH codes AS (SELECT * FROM codes WHERE tier = 'gold') {COUNT} age > (SELECT COUNT(*) FROM codes)",
        f"{COUNT} age > (2)",
    ),
]
REFUSED = [
    f"{COUNT} age > (SELECT COUNT(DISTINCT c.factor) {BY_PLAN})",
    f"{COUNT} age > (SELECT AVG(c.factor) {BY_PLAN} AND c.floor = v.floor)",
    f"{COUNT} age > (SELECT COALESCE(AVG(c.factor), 3) {BY_PLAN})",
    f"{COUNT} age > (SELECT AVG(factor) FROM codes GROUP BY plan)",
]


def check_plan(world: World, text: str, constants: str) -> None:
    """Require that a text has the plan of the constants that are in it."""
    assert not same(world.plan(text), world.plan(constants))


@pytest.mark.parametrize(("text", "constants"), PAIRS)
def test_it_is_the_plan_of_the_constants(world: World, text: str, constants: str) -> None:
    check_plan(world, text, constants)


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_such_number_is_refused(world: World, text: str) -> None:
    with pytest.raises(QueryRefused):
        world.plan(text)


def test_twin_a_value_without_rows_that_had_no_count_is_caught(world: World) -> None:
    """A count of nothing is 0: as NULL, the rows that meet nothing would be left out."""
    text, constants = PAIRS[5]
    with pytest.raises(AssertionError):
        check_plan(world, text, constants.replace(" ELSE (0)", ""))


def test_rows_of_units_are_asked_for(world: World) -> None:
    """The number of a protected table has noise, and a cost."""
    (constant,) = world.plan(f"{COUNT} age > (SELECT AVG(w.age) FROM visits AS w)").constants
    assert constant.question.measures

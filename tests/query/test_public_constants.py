"""Subqueries of public tables that are constants mean what the constants mean, and what SQL means."""

import duckdb
import pyarrow as pa
import pytest

from lapwing.errors import QueryRefused
from lapwing.query.normalise import public_constants
from tests.support.effort import only
from tests.support.query import clean
from tests.support.query.ibis_world import World, same, world

__all__ = ["world"]

COUNT = "SELECT COUNT(*) AS n FROM visits WHERE"
ONE = "(SELECT factor FROM codes WHERE plan = 'a' AND floor = 0)"
SAME = [
    (f"{COUNT} age > {ONE}", f"{COUNT} age > {{one}}"),
    (
        f"{COUNT} age > (SELECT DISTINCT 2 * factor + 1 FROM codes WHERE plan = 'a' AND floor = 0)",
        f"{COUNT} age > {{odd}}",
    ),
    (f"{COUNT} age BETWEEN {ONE} AND 10 * {ONE}", f"{COUNT} age BETWEEN {{one}} AND 10 * {{one}}"),
    (f"SELECT SUM(age * {ONE}) AS s FROM visits", "SELECT SUM(age * {one}) AS s FROM visits"),
    (
        f"{COUNT} age > 50 OR plan IN (SELECT plan FROM codes WHERE tier = 'gold')",
        f"{COUNT} age > 50 OR plan IN ({{gold}})",
    ),
    (
        f"{COUNT} (age > 50 OR plan IN (SELECT plan FROM codes WHERE factor = {ONE} AND tier = 'gold')) AND member",
        f"{COUNT} (age > 50 OR plan IN ({{both}})) AND member",
    ),
    (f"{COUNT} age > (SELECT factor FROM codes WHERE tier = 'none')", f"{COUNT} age > (CASE WHEN FALSE THEN 0 END)"),
    (f"{COUNT} age > 50 OR plan IN (SELECT plan FROM codes WHERE tier = 'none')", f"{COUNT} age > 50 OR FALSE"),
    (
        f"{COUNT} plan IN (SELECT plan FROM codes WHERE factor IN (SELECT factor FROM codes WHERE floor = 0))",
        f"{COUNT} plan IN (SELECT plan FROM codes WHERE factor IN ({{factors}}))",
    ),
]
SEVENTH = "WITH codes AS (SELECT 7 * factor AS factor FROM codes WHERE factor = 5)"
NAMED = [
    (f"{SEVENTH} {COUNT} age > (SELECT factor FROM codes)", "35"),
    (f"WITH c AS (SELECT factor FROM codes WHERE factor = 5) {COUNT} age > (SELECT factor FROM c)", "5"),
]
"""A name is of the common table expression before it is that of a table."""
FROM_LISTED = "FROM (SELECT * FROM visits WHERE plan IN {}) AS v"
UNBOUNDED = f"SELECT SUM(points, contribution_bounds_per_group => (0, 20)) AS s {FROM_LISTED}"
AS_IT_STANDS_REFUSED = [
    (UNBOUNDED.format("(SELECT plan FROM codes WHERE tier = 'gold')"), UNBOUNDED.format("({gold})")),
]
"""Where bounds are wanting, a join is read as a list."""
LOOKED_UP = {
    "one": ONE,
    "odd": "(SELECT 2 * factor + 1 FROM codes WHERE plan = 'a' AND floor = 0)",
    "gold": "(SELECT DISTINCT plan FROM codes WHERE tier = 'gold' ORDER BY plan)",
    "both": f"(SELECT DISTINCT plan FROM codes WHERE tier = 'gold' AND factor = {ONE} ORDER BY plan)",
    "factors": "(SELECT DISTINCT factor FROM codes WHERE floor = 0 ORDER BY factor)",
}
REFUSED = [
    f"{COUNT} age > (SELECT factor FROM codes)",
    f"{COUNT} age > (SELECT factor + 1 FROM codes)",
    f"{COUNT} age > (SELECT factor FROM codes WHERE plan = visits.plan)",
    f"{COUNT} age > 50 OR NOT plan IN (SELECT plan FROM codes WHERE tier = 'gold')",
    f"{COUNT} age > 50 OR (plan IN (SELECT plan FROM codes WHERE tier = 'gold')) IS NULL",
    f"{COUNT} age > 50 OR plan IN (SELECT plan, tier FROM codes)",
    f"{COUNT} age > 50 OR plan IN (SELECT plan FROM visits)",
]


@pytest.fixture(scope="module")
def constants() -> dict[str, str]:
    """Return what plain DuckDB finds, written as constants."""
    with duckdb.connect() as connection:
        connection.register("codes", pa.Table.from_pylist(clean.codes()))
        found = {name: [row[0] for row in connection.execute(text).fetchall()] for name, text in LOOKED_UP.items()}
    return {name: ", ".join(map(repr, values)) for name, values in found.items()}


@pytest.mark.parametrize(("text", "known"), only([0], [*SAME, *AS_IT_STANDS_REFUSED], many=True))
def test_it_is_the_plan_of_the_constants(world: World, constants: dict[str, str], text: str, known: str) -> None:
    assert not same(world.plan(text), world.plan(known.format(**constants)))


@pytest.mark.parametrize(("text", "value"), NAMED)
def test_a_common_table_expression_comes_before_a_table(world: World, text: str, value: str) -> None:
    assert not same(world.plan(text), world.plan(f"{COUNT} age > {value}"))


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_constant_is_refused(world: World, text: str) -> None:
    with pytest.raises(QueryRefused):
        world.plan(text)


def test_a_membership_that_is_denied_would_be_noticed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """There NULL in the list would make another answer."""
    monkeypatch.setattr(public_constants, "_is_alternative", lambda *_: True)
    for text in REFUSED[3:5]:
        assert world.plan(text).outputs


def test_a_membership_that_stands_for_itself_stays_a_join(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public_constants, "public_values", lambda *_: pytest.fail("its values are looked up"))
    within = "plan IN (SELECT plan FROM codes WHERE tier = 'gold')"
    for text in (f"{COUNT} {within}", f"SELECT COUNT(*) FROM (SELECT * FROM visits WHERE {within}) AS v"):
        assert "codes" in str(world.plan(text).question)

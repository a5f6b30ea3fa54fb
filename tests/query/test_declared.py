"""DECLARE of SQL Server: the plan is that of the query with the constants in it, and anything else is refused."""

import pytest

from lapwing.query.text.parse import parse
from tests.support.query.ibis_world import World, same, world
from tests.support.refusals import refused_as

__all__ = ["world"]

PAIRS = [
    (
        "DECLARE @least INT = 5; SELECT COUNT(*) AS n FROM visits WHERE age > @Least AND cost > @least",
        "SELECT COUNT(*) AS n FROM visits WHERE age > 5 AND cost > 5",
    ),
    (
        "declare @a smallint = -3, @end AS NUMERIC(3, 1) = 14.5 select count(*) as n from visits where cost between "
        "@a and @end",
        "SELECT COUNT(*) AS n FROM visits WHERE cost BETWEEN -3 AND 14.5",
    ),
    (
        "DECLARE @p NVARCHAR(MAX) = N'it''s @p'; DECLARE @q varchar = 'b' SELECT COUNT(*) AS n FROM visits "
        "WHERE town IN (@p, @q, '@q')",
        "SELECT COUNT(*) AS n FROM visits WHERE town IN ('it''s @p', 'b', '@q')",
    ),
    (
        "DECLARE @since DATETIME = '2020-01-05 10:00', @day DATE = '20200301'; SELECT "
        "COUNT(*) AS n FROM visits WHERE seen BETWEEN DATEADD(day, 3, @since) AND @day",
        "SELECT COUNT(*) AS n FROM visits "
        "WHERE seen BETWEEN TIMESTAMP '2020-01-05 10:00' + INTERVAL 3 DAY AND DATE '2020-03-01'",
    ),
    (
        "DECLARE @many INT = 2; SELECT TOP (@many) plan, COUNT(*) AS n FROM visits GROUP BY plan ORDER BY n DESC",
        "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan ORDER BY n DESC LIMIT 2",
    ),
    (
        "DECLARE @x INT = 2 SELECT TOP @x plan, ROUND(SUM(age), @x) AS s FROM visits "
        "WHERE (age + @x) * 3 - @x IN (1, @x) GROUP BY plan ORDER BY plan",
        "SELECT plan, ROUND(SUM(age), 2) AS s FROM visits WHERE (age + 2) * 3 - 2 IN (1, 2) GROUP BY plan "
        "ORDER BY plan LIMIT 2",
    ),
    (
        "DECLARE @x INT = 2 SELECT plan, COUNT(*) AS n FROM visits WHERE age IS DISTINCT FROM @x "
        "GROUP BY plan, age > @x HAVING COUNT(*) > @x ORDER BY ROUND(n, @x) OFFSET 0 ROWS FETCH NEXT @x ROWS ONLY",
        "SELECT plan, COUNT(*) AS n FROM visits WHERE age IS DISTINCT FROM 2 GROUP BY plan, age > 2 "
        "HAVING COUNT(*) > 2 ORDER BY ROUND(n, 2) OFFSET 0 ROWS FETCH NEXT 2 ROWS ONLY",
    ),
]
COUNT = "SELECT COUNT(*) AS n FROM visits WHERE age > @x"
REFUSED = [
    "DECLARE",
    "DECLARE @",
    "DECLARE @ x INT = 5 " + COUNT,
    "DECLARE @x",
    "DECLARE @x AS",
    "DECLARE @x NUMERIC(",
    "DECLARE @x INT " + COUNT,
    "DECLARE @x INT =",
    "DECLARE @x INT = -",
    "DECLARE @x INT = 5, " + COUNT,
    "DECLARE @x INT = 5.0 " + COUNT,
    "DECLARE @x INT = '5' " + COUNT,
    "DECLARE @x INT = 2147483648 " + COUNT,
    "DECLARE @x SMALLINT = 32768 " + COUNT,
    "DECLARE @x INT = age " + COUNT,
    "DECLARE @x INT = (SELECT MAX(age) FROM visits) " + COUNT,
    "DECLARE @x NUMERIC = 5.5 " + COUNT,
    "DECLARE @x NUMERIC(3, 1) = 555.5 " + COUNT,
    "DECLARE @x VARCHAR(4) = 'basic' " + COUNT,
    "DECLARE @x VARCHAR = 'ba' " + COUNT,
    "DECLARE @x VARCHAR(4) = 'é' " + COUNT,
    "DECLARE @x CHAR(4) = 'a' " + COUNT,
    "DECLARE @x DATE = 5 " + COUNT,
    "DECLARE @x DATETIME = '2020-01-05 10:00:00.001' " + COUNT,
    "DECLARE @x MONEY = 5 " + COUNT,
    "DECLARE @x INT = 5 DECLARE @X INT = 6 " + COUNT,
    "DECLARE @age INT = 5 " + COUNT,  # @x of no DECLARE is ABS(x) in DuckDB
    "DECLARE x CURSOR FOR " + COUNT,
    # Where a constant would be a name, a place, a part of a number, an argument, or the target of an assignment:
    "DECLARE @x INT = -1 SELECT COUNT@x AS n FROM visits",
    "DECLARE @x INT = 5 SELECT COUNT(*) AS n FROM visits WHERE age = @x.5",
    "DECLARE @x INT = 5 SELECT COUNT(*) AS n FROM visits WHERE visits.@x = 5",
    "DECLARE @x NVARCHAR(9) = 'ba', @y NVARCHAR(9) = 'sic' SELECT COUNT(*) AS n FROM visits WHERE plan = @x @y",
    "DECLARE @x NVARCHAR(9) = 'n' SELECT COUNT(*) AS @x FROM visits",
    "DECLARE @x NVARCHAR(9) = 'n' SELECT @x: COUNT(*) FROM visits",
    "DECLARE @x INT = 5 SELECT @x = COUNT(*) FROM visits",
    "DECLARE @x INT = 1 SELECT plan, COUNT(*) AS n FROM visits GROUP BY @x",
    "DECLARE @x INT = 2 SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan ORDER BY ROUND(n, 1), @x DESC",
    # These are no variables: @@rowcount is the server's, and @ x would be ABS(x).
    "DECLARE @rowcount INT = -6 SELECT COUNT(*) AS n FROM visits WHERE age = @@rowcount",
    "DECLARE @age INT = 6 SELECT COUNT(*) AS n FROM visits WHERE @ age = 6",
    "DECLARE @age INT = 6 SELECT COUNT(*) AS n FROM visits WHERE age = @age$",
]


@pytest.mark.parametrize(("text", "known"), PAIRS, ids=[str(place) for place in range(len(PAIRS))])
def test_it_is_the_plan_with_the_constants(world: World, text: str, known: str) -> None:
    assert not same(world.plan(text), world.plan(known))


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_constant_of_its_type_is_refused(text: str) -> None:
    with refused_as("not_constant"):
        parse(text)


def test_twin_a_lost_sign_is_another_plan(world: World) -> None:
    text, known = PAIRS[1]
    assert same(world.plan(text.replace("-3", "3")), world.plan(known))


@pytest.mark.parametrize(("size", "many"), [(40_000, 2), (2, 6_000)])
def test_constants_that_are_long_together_are_refused(size: int, many: int) -> None:
    """A long text that is named twice, and names that are few words in the query and too many with constants."""
    names = ", ".join(["@x"] * many)
    with refused_as("query_too_long"):
        parse(f"DECLARE @x NVARCHAR(MAX) = '{'a' * size}' SELECT COUNT(*) FROM visits WHERE town IN ({names})")

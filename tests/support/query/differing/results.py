"""Random queries over results, constants and public tables: what is computed of released numbers, or needs none."""

import random
import re
from collections.abc import Callable
from typing import Final

from tests.support.query.differing.comparing import Question
from tests.support.query.differing.rows import literal
from tests.support.query.differing.worlds import World

BY_BOTH: Final = "r AS (SELECT plan, site, COUNT(*) AS n, SUM(age) AS s, AVG(pay) AS m FROM visits GROUP BY plan, site)"
BY_PLAN: Final = "q AS (SELECT plan, COUNT(*) AS n, COUNT_IF(member) AS c FROM visits GROUP BY plan)"
BY_MONTH: Final = "t AS (SELECT DATE_TRUNC('month', seen) AS month, COUNT(*) AS n FROM visits GROUP BY 1)"


def with_results(text: str) -> str:
    """Return a query with those results before it that it names."""
    named = [result for result in (BY_BOTH, BY_PLAN, BY_MONTH) if re.search(rf"(FROM|JOIN) {result[0]}\b", text)]
    return f"WITH {', '.join(named)} {text}" if named else text


def over(chance: random.Random, _world: World) -> Question:
    """Return aggregates and windows over one result."""
    at_least = chance.randint(0, 60)
    condition = chance.choice((
        f"n > {at_least}", "plan <> 'pro'", "site = 'n'", f"s IS DISTINCT FROM {at_least}", "m > 90.123", "n % 2 = 0",
        f"plan IS NOT DISTINCT FROM {chance.choice(('NULL', repr('free')))}", "s BETWEEN -50.5 AND 700.5",
    ))  # fmt: skip
    aggregates = (
        f"SUM(n) FILTER (WHERE {condition})", f"COUNT_IF({condition})", "COUNT(s)", "COUNT(DISTINCT site)",
        "MIN(plan)",
        "MEDIAN(n)", f"QUANTILE_CONT(n, 0.{at_least})", f"QUANTILE_DISC(n, 0.{at_least})",
        f"PERCENTILE_CONT(0.{at_least}) WITHIN GROUP (ORDER BY n DESC)", f"MEDIAN(n) FILTER (WHERE {condition})",
        "MAX(n)", "MIN(s)", "AVG(n)", "SUM(n)", "COUNT(*)", "STRING_AGG(site, ', ' ORDER BY site)", "MAX(site)",
        "STRING_AGG(plan || site, '|' ORDER BY n DESC, plan, site)", f"BOOL_OR({condition})",
        f"BOOL_AND({condition})",
        "ARG_MAX(site, n * 1000 + s)", "COUNT(DISTINCT n)", "SUM(n * s) / SUM(n)",
        f"MAX(n) FILTER (WHERE {condition})",
        f"COUNT(CASE WHEN {condition} THEN 1 END)", "MAX(m) - MIN(m)",
        f"STRING_AGG(site, '-' ORDER BY site) FILTER (WHERE {condition})",
    )  # fmt: skip
    order = chance.choice(("n, plan, site", "n DESC, plan, site", "plan, site", "s, site DESC, plan"))
    part = chance.choice(("", "PARTITION BY plan ", "PARTITION BY site "))
    windows = (
        f"NTILE({chance.randint(2, 5)}) OVER (ORDER BY {order})", f"PERCENT_RANK() OVER ({part}ORDER BY n)",
        f"CUME_DIST() OVER ({part}ORDER BY n)", f"RANK() OVER ({part}ORDER BY n DESC)",
        f"SUM(n) OVER ({part}ORDER BY {order})",
        f"ROW_NUMBER() OVER ({part}ORDER BY {order})", f"LAG(n) OVER ({part}ORDER BY {order})",
        "DENSE_RANK() OVER (ORDER BY n)",
        f"AVG(n) OVER ({part}ORDER BY {order} ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)", f"MAX(s) OVER ({part})",
        f"LEAD(site, 2) OVER ({part}ORDER BY {order})", f"FIRST_VALUE(plan) OVER ({part}ORDER BY {order})",
        "n / SUM(n) OVER ()",
        f"COUNT(*) OVER ({part})", f"SUM(n) FILTER (WHERE {condition}) OVER ({part})", f"MIN(site) OVER ({part})",
        f"COUNT_IF({condition}) OVER ({part})", f"MEDIAN(n) OVER ({part})",
    )  # fmt: skip
    where = f" WHERE {condition}" if chance.random() < 0.4 else ""
    match chance.randrange(5):
        case 0:
            keys = chance.choice(("plan", "site", ""))
            chosen = ", ".join(f"{text} AS x{place}" for place, text in enumerate(chance.sample(aggregates, 3)))
            tail = f" GROUP BY {keys}" if keys else ""
            text = f"SELECT {keys + ', ' if keys else ''}{chosen} FROM r{where}{tail}"
        case 1:
            text = f"SELECT plan, site, {chance.choice(windows)} AS x, {chance.choice(windows)} AS y FROM r{where}"
        case 2:
            text = (
                f"SELECT plan, site, n FROM r{where} QUALIFY {chance.choice(windows[3:6:2])} <= {chance.randint(1, 3)}"
            )
        case 3:
            text = f"SELECT DISTINCT ON (plan) plan, site, n FROM r{where} ORDER BY plan, n DESC, site"
        case _:
            by = chance.choice(("ROLLUP (plan, site)", "CUBE (plan, site)", "GROUPING SETS ((plan), (site), ())"))
            text = (
                f"SELECT plan, site, {chance.choice(aggregates[7:10])} AS x, GROUPING(plan) AS g FROM r GROUP BY {by}"
            )
    return Question(text=f"WITH {BY_BOTH} {text}", dense=True)


def numbers_of_results(chance: random.Random, _world: World) -> Question:
    """Return expressions over the numbers and keys of a result."""
    numbers = (
        "n", "s", "m", "n / NULLIF(s, 0)", "s % 7", "ABS(s - n)", "ROUND(m, 1)", "FLOOR(m)", "CEIL(m)", "SQRT(n)",
        "LN(n)", "n * 1.5",
        "COALESCE(NULLIF(n, 12), -1)", "GREATEST(n, s)", "LEAST(n, s, 20)", "SIGN(s)", "POWER(n, 2)",
        "CAST(m * 1.0001 AS INTEGER)",
        "CASE WHEN n > 20 THEN s ELSE -n END", "n - 1 > s", "LENGTH(plan || site)", "m IS DISTINCT FROM n",
        "n IN (10, 12, 14)",
        "CAST(n AS VARCHAR) || plan", "UPPER(plan)", "SUBSTRING(plan, 2, 2)", "CAST(s AS DOUBLE) / 3",
        "IF(n > 15, 'a', site)",
        "CAST(m AS DECIMAL(12, 1))", "n BETWEEN 10 AND 20 OR s IS NULL", "CONCAT(plan, '/', site)", "RIGHT(plan, 2)",
        "CAST(ROUND(m, 1) AS VARCHAR)", "ROUND(n / 7, 2) || '%'", "CONCAT(plan, ': ', n, CAST(m AS DECIMAL(12, 2)))",
    )  # fmt: skip
    months = (
        "month", "EXTRACT(year FROM month)", "month + INTERVAL 1 MONTH", "DATE_TRUNC('year', month)",
        "CAST(month AS DATE)",
        "EXTRACT(week FROM month)", "CAST(month AS DATE) - DATE '1970-01-01'",
        "DATE_DIFF('day', month, TIMESTAMP '2020-02-29')",
        "month - INTERVAL '10 days'", "DAYOFWEEK(month)", "MAX(month) OVER ()",
        "SUM(n) OVER (ORDER BY month)", "LAG(month) OVER (ORDER BY month)", "QUARTER(month)",
        "month < TIMESTAMP '2024-03-01'",
         "CAST(month AS DATE) + 7",
    )  # fmt: skip
    if chance.random() < 0.5:
        return Question(
            text=f"WITH {BY_MONTH} SELECT {chance.choice(months)} AS x, {chance.choice(months)} AS y, n FROM t",
            dense=True,
        )
    x, y = chance.sample(numbers, 2)
    return Question(text=f"WITH {BY_BOTH} SELECT plan, site, {x} AS x, {y} AS y FROM r", dense=True)


def composed(chance: random.Random, world: World) -> Question:
    """Return joins of results with one another, with rows, with lists and with public tables."""
    join, size = chance.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")), chance.randint(1, 3)
    top = f"(SELECT plan FROM visits GROUP BY plan ORDER BY COUNT(*) DESC, plan LIMIT {size})"
    site = literal(chance.choice(world.sites))
    texts = (
        f"SELECT r.plan, r.site, r.n, q.n AS o FROM r {join} q ON r.plan = q.plan AND r.n > {chance.randint(0, 30)}",
        "SELECT plan, SUM(r.n) AS x, MAX(q.c) AS y FROM r JOIN q USING (plan) GROUP BY plan",
        f"SELECT p.region, SUM(r.n) AS x FROM r {chance.choice(('', 'LEFT '))}JOIN places p ON r.site = "
        "p.site GROUP BY p.region",
        f"SELECT p.site, r.plan, r.n FROM places p LEFT JOIN r ON r.site = p.site AND r.n > {chance.randint(0, 30)}",
        f"SELECT v.plan, COUNT(*) AS x FROM visits v JOIN {top} h ON v.plan = h.plan GROUP BY v.plan",
        f"SELECT v.plan, v.site, SUM(v.age) AS x FROM visits v JOIN {top} h USING (plan) GROUP BY v.plan, v.site",
        f"SELECT plan, COUNT(*) AS x FROM visits WHERE plan IN {top} GROUP BY plan",
        "SELECT COUNT(*) AS x FROM visits WHERE age > (SELECT AVG(age) FROM visits)",
        "SELECT v.plan, COUNT(*) AS a FROM visits v JOIN q ON v.plan = q.plan WHERE v.age > q.c GROUP BY v.plan",
        "SELECT COUNT(*) AS x FROM visits v WHERE v.age > (SELECT AVG(w.age) FROM visits w WHERE w.plan = v.plan)",
        "SELECT r.plan, r.site, r.n, (SELECT MAX(n) FROM q) AS x FROM r WHERE r.n < (SELECT AVG(n) FROM q)",
        "SELECT plan AS k, n FROM q UNION ALL SELECT site, SUM(n) FROM r GROUP BY site",
        f"SELECT x.plan, y.plan AS o, x.n - y.n AS d FROM q x JOIN q y ON x.n {chance.choice(('<', '<=', '<>'))} y.n",
        "SELECT x.month, x.n, y.n AS o FROM t x LEFT JOIN t y ON x.month = y.month + INTERVAL 1 MONTH",
        "SELECT x.month, SUM(y.n) AS o FROM t x JOIN t y ON y.month <= x.month GROUP BY x.month",
        f"SELECT plan, n FROM r WHERE site = {site} AND plan IN (SELECT plan FROM q WHERE n > "
        f"{chance.randint(0, 90)})",
        f"SELECT plan, n FROM q WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.plan = q.plan AND r.n > "
        f"{chance.randint(0, 40)})",
        "SELECT AVG(x.n) AS a FROM q x JOIN (VALUES ('free'), ('pro')) AS l(plan) ON x.plan = l.plan",
        f"SELECT q.plan, l.w, q.n FROM q JOIN (VALUES ('free', 2), ({literal(world.plans[1])}, 3)) AS l(plan, "
        "w) USING (plan)",
        "SELECT r.plan, r.site FROM r WHERE (r.plan, r.n) IN (SELECT plan, MAX(n) FROM r GROUP BY plan)",
    )  # fmt: skip
    text = chance.choice(texts)
    return Question(text=with_results(text), dense="v.age > q.c" not in text)  # which leaves groups of rows none


def spines(chance: random.Random, world: World) -> Question:
    """Return results joined to lists of constants, and what is computed of constants."""
    first, last = world.period
    low, high = sorted(chance.sample(range(-3, 40), 2))
    months = chance.choice((
        f"generate_series(TIMESTAMP '{first.date()}', TIMESTAMP '{last.date()}', INTERVAL 1 MONTH) AS g(x)",
        f"generate_series(DATE '{first.date().replace(day=1)}', DATE '{last.date()}', INTERVAL '1 month') AS g(x)",
        f"range(TIMESTAMP '{first.date()}', TIMESTAMP '{last.date()}', INTERVAL 1 MONTH) AS g(x)",
    ))  # fmt: skip
    counts = chance.choice((
        f"generate_series({low}, {high}) AS g(x)", f"range({low}, {high}, {chance.randint(1, 4)}) AS g(x)",
        f"(VALUES ({low}), ({high}), (1)) AS g(x)", f"(SELECT 1 AS x UNION ALL SELECT {high}) AS g", "d AS g",
        f"generate_series({high}, {low}, -2) AS g(x)",
    ))  # fmt: skip
    ages = "a AS (SELECT FLOOR(age / 10) AS bucket, COUNT(*) AS n FROM visits WHERE age IS NOT NULL GROUP BY 1)"
    recursive = f"d(x) AS (SELECT {low} UNION ALL SELECT x + {chance.randint(1, 3)} FROM d WHERE x < {high})"
    value = chance.choice(
        ("COALESCE(a.n, 0)", "SUM(a.n) OVER (ORDER BY g.x)", "a.n", "CASE WHEN a.n > 9 THEN 'm' ELSE 'f' END")
    )
    texts = (
        f"WITH {BY_MONTH} SELECT g.x, COALESCE(t.n, 0) AS n FROM {months} LEFT JOIN t ON t.month = "
        "DATE_TRUNC('month', g.x)",
        f"WITH {BY_MONTH} SELECT g.x, SUM(t.n) AS n FROM {months} JOIN t ON t.month <= g.x GROUP BY g.x",
        f"WITH RECURSIVE {recursive}, {ages} SELECT g.x, {value} AS n FROM {counts} LEFT JOIN a ON a.bucket = g.x",
        f"WITH RECURSIVE {recursive}, {ages} SELECT g.x, SUM(a.n) AS n FROM {counts} JOIN a ON a.bucket <= "
        "g.x GROUP BY g.x",
        f"WITH RECURSIVE {recursive} SELECT g.x AS k0, COUNT(*) AS a0 FROM visits v JOIN (SELECT DISTINCT x "
        f"FROM {counts}) AS g ON v.age = g.x GROUP BY g.x",
        f"WITH RECURSIVE {recursive} SELECT COUNT(*) AS a0 FROM visits WHERE age IN (SELECT x FROM {counts})",
        f"WITH {BY_PLAN} SELECT g.p, COALESCE(q.n, 0) AS n FROM (VALUES ('free'), ('nobody')) AS g(p) LEFT "
        "JOIN q ON q.plan = g.p",
    )  # fmt: skip
    text = chance.choice(texts)
    if " d AS g" not in text:
        text = text.replace(f"RECURSIVE {recursive}, ", "").replace(f"WITH RECURSIVE {recursive} ", "")
    return Question(text=text, dense=" a0 " not in text and " a AS" not in text)


def public(chance: random.Random, _world: World) -> Question:
    """Return queries over public tables, which need no noise."""
    rate = chance.randint(0, 9)
    condition = chance.choice(
        (f"rate > {rate}", "region = 'north'", "site IN ('n', 'x')", f"opened < DATE '201{rate}-02-03'")
    )
    source = chance.choice(("places", "places", f"(SELECT * FROM places WHERE {condition}) p"))
    texts = (
        f"SELECT * FROM {source}", f"SELECT site, rate * 2 AS x, UPPER(region) AS y FROM {source} WHERE {condition}",
        f"SELECT region, COUNT(*) AS n, SUM(rate) AS s, AVG(rate) AS m, MIN(opened) AS o FROM {source} GROUP "
        "BY region",
        f"SELECT region, MEDIAN(rate) AS m, QUANTILE_DISC(rate, 0.{rate}) AS q FROM {source} GROUP BY region",
        "SELECT * FROM (SELECT region, site, rate FROM places) PIVOT (SUM(rate) AS s FOR site IN ('n', 'x'))",
        "SELECT * FROM (SELECT site, rate, rate * 2 AS twice FROM places) UNPIVOT (x FOR word IN (rate, twice))",
        f"SELECT * REPLACE (rate * {rate} AS rate) FROM (SELECT site, rate FROM places) AS p",
        f"SELECT site FROM places WHERE rate IN (SELECT x FROM generate_series(0, {rate}) AS g (x))",
        f"SELECT DISTINCT region FROM {source}", f"SELECT COUNT(*) AS n, MAX(rate) AS m FROM {source} WHERE "
        f"{condition}",
        f"SELECT region, STRING_AGG(site, ',' ORDER BY site DESC) AS l FROM {source} GROUP BY region",
        f"SELECT site, RANK() OVER (PARTITION BY region ORDER BY rate) AS r FROM {source}",
        "SELECT p.site, q.site AS o FROM places p JOIN places q ON p.region = q.region AND p.rate < q.rate",
        f"SELECT YEAR(opened) AS y, COUNT(*) FILTER (WHERE {condition}) AS n FROM places GROUP BY 1",
        f"SELECT site FROM {source} ORDER BY rate DESC, site LIMIT {chance.randint(1, 4)}",
        "SELECT site FROM places WHERE rate > (SELECT AVG(rate) FROM places)",
        "SELECT site FROM places p WHERE rate > (SELECT AVG(q.rate) FROM places q WHERE q.region = p.region)",
        "SELECT site FROM places p WHERE (SELECT COUNT(*) FROM places q WHERE q.region = p.region AND q.rate > 1) = 0",
        f"SELECT region, COUNT(*) AS n FROM places GROUP BY region HAVING COUNT(*) > {rate % 3}",
        f"SELECT site FROM places WHERE {condition} UNION ALL SELECT region FROM {source}",
        "SELECT x, COUNT(p.site) AS n FROM generate_series(0, 9) AS g(x) LEFT JOIN places p ON p.rate > g.x "
        "GROUP BY x",
        f"SELECT site, CASE WHEN {condition} THEN 'a' ELSE 'b' END AS c FROM places ORDER BY site",
        "SELECT site, NTILE(2) OVER (ORDER BY rate, site) AS t FROM places",
        "SELECT DISTINCT ON (region) region, site, rate FROM places ORDER BY region, rate DESC, site",
    )  # fmt: skip
    text = chance.choice(texts)
    # DuckDB rounds the median of two decimals to their step; here it is what lies between them.
    theirs = text.replace("MEDIAN(rate)", "MEDIAN(rate::DOUBLE)")
    return Question(text=text, theirs=theirs, dense=True, ordered="ORDER BY rate DESC, site L" in text)


def empty(chance: random.Random, world: World) -> Question:
    """Return queries of which no row can be in a group, or in the result."""
    low, high = world.ages
    first, _ = world.period
    conditions = (
        f"age > {high + 1000}", f"age < {low} AND age > {high}", "plan = 'free' AND plan = 'pro'", "1 = 0", "FALSE",
        f"seen < TIMESTAMP '{first.replace(year=first.year - 90)}'", "plan = 'nothing like it'",
        "plan IN ('pro') AND plan IN ('free')",
        "day > DATE '2100-01-01'", "EXTRACT(month FROM day) = 13", f"age BETWEEN {high} AND {low}",
        "plan IS NULL AND plan = 'pro'",
    )  # fmt: skip
    condition = chance.choice(conditions)
    key = chance.choice(("plan", "site", "DATE_TRUNC('month', seen)", "FLOOR(age / 10)", "CAST(day AS DATE)"))
    texts = (
        f"SELECT {key} AS k0, COUNT(*) AS a0, SUM(pay) AS a1 FROM visits WHERE {condition} GROUP BY 1",
        f"SELECT COUNT(*) AS a0, SUM(age) AS a1, AVG(pay) AS a2 FROM visits WHERE {condition}",
        f"SELECT {key} AS k0, COUNT(*) AS a0 FROM visits WHERE {condition} GROUP BY 1 HAVING COUNT(*) > 0",
        f"SELECT {key} AS k0, COUNT_IF({condition}) AS a0 FROM visits GROUP BY 1",
        f"SELECT COUNT(*) AS x FROM (SELECT {key} AS k, COUNT(*) AS n FROM visits WHERE {condition} GROUP BY "
        "1 HAVING COUNT(*) > 0) u",
    )
    return Question(text=chance.choice(texts))


RESULTS: Final[dict[str, Callable[[random.Random, World], Question]]] = {
    "over": over, "numbers_of_results": numbers_of_results, "composed": composed, "spines": spines, "public": public,
    "empty": empty,
}  # fmt: skip

"""Other spellings are the plan of the words that are known, and nothing is lost on the way."""

from dataclasses import replace
from datetime import date, timedelta
from itertools import product

import duckdb
import pytest
from sqlglot import exp

from lapwing.errors import QueryRefused
from lapwing.query.bind import bind as bind_module
from lapwing.query.from_clause import comma_joins, listed_values
from lapwing.query.from_clause.conditions import conjuncts
from lapwing.query.from_clause.scope import Scope
from lapwing.query.normalise import clause_spellings, other_spellings, report_fields
from lapwing.query.text.parse import parse
from tests.support.effort import one_in
from tests.support.query.ibis_world import World, same, world
from tests.support.refusals import refused_as

__all__ = ["world"]

BOTH = "WHERE NOT cost IS NULL AND NOT age IS NULL"
PAIR = "CAST(LENGTH(CAST(plan AS VARCHAR)) AS VARCHAR) || (':' || (CAST(plan AS VARCHAR) || CAST(town AS VARCHAR)))"
TIERS = "(SELECT plan, tier FROM codes) AS c"
PLANS = "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan ORDER BY n LIMIT 2"
SLOPE = f"COVAR_POP(cost, age) FILTER ({BOTH}) / VAR_POP(age) FILTER ({BOTH})"
PUBLIC = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (group_selection_strategy = PUBLIC_GROUPS) note, COUNT(*) AS n FROM"
GROUPS = PUBLIC.replace("note", "plan")
SUM = "SUM(weight, contribution_bounds_per_row => (0, 9){})"
JSON, LOW, HIGH = (
    SUM.format(", report_format => 'JSON'"),
    f"DP_INTERVAL_LOW({SUM.format('')})",
    f"DP_INTERVAL_HIGH({SUM.format('')})",
)
FIRST = (
    "SELECT k.tier, COUNT(*) AS n FROM codes AS c JOIN codes AS k ON c.tier = k.tier AND c.factor > 1 "
    "JOIN visits AS v ON v.plan = c.plan AND v.age > 3 GROUP BY k.tier"
)
LISTED = (
    "SELECT k.tier, COUNT(*) AS n FROM codes AS c, codes AS k, visits AS v WHERE c.tier = k.tier AND c.factor > 1 "
    "AND v.plan = c.plan AND v.age > 3 GROUP BY k.tier"
)
PAIRS = [
    (
        "SELECT CAST(age AS NVARCHAR(10)) AS k, CAST(COUNT(*) AS NVARCHAR) AS n FROM visits GROUP BY 1",
        "SELECT CAST(age AS VARCHAR) AS k, CAST(COUNT(*) AS VARCHAR) AS n FROM visits GROUP BY 1",
    ),
    (
        "SELECT plan, ARRAY_LENGTH(ARRAY_AGG(age)) AS n FROM visits GROUP BY plan",
        "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan",
    ),
    (
        "SELECT AVG(k) AS a FROM (SELECT person, LEN(LIST(DISTINCT plan)) AS k FROM visits GROUP BY person)",
        "SELECT AVG(k) AS a FROM (SELECT person, (COUNT(DISTINCT plan) + MAX(CASE WHEN plan IS NULL THEN 1 ELSE 0 "
        "END)) AS k FROM visits GROUP BY person)",
    ),
    (
        "SELECT CONVERT(INT, cost) AS k, COUNT(*) AS n FROM visits GROUP BY 1",
        "SELECT CAST(cost AS INT) AS k, COUNT(*) AS n FROM visits GROUP BY 1",
    ),
    (
        "SELECT CONVERT(DECIMAL(10, 2), SUM(CONVERT(INT, age) + 1)) AS s FROM visits",
        "SELECT CAST(SUM(CAST(age AS INT) + 1) AS DECIMAL(10, 2)) AS s FROM visits",
    ),
    ("SELECT SUM(TRY_CONVERT(INT, age)) AS s FROM visits", "SELECT SUM(TRY_CAST(age AS INT)) AS s FROM visits"),
    (
        "SELECT plan + ':' + town AS k, COUNT(*) AS n FROM visits GROUP BY 1",
        "SELECT plan || ':' || town AS k, COUNT(*) AS n FROM visits GROUP BY 1",
    ),
    (
        "SELECT plan + ':' AS k, COUNT(*) AS n FROM visits GROUP BY plan",
        "SELECT plan || ':' AS k, COUNT(*) AS n FROM visits GROUP BY plan",
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE plan LIKE '%' + LOWER('IT') + '%'",
        "SELECT COUNT(*) AS n FROM visits WHERE plan LIKE '%it%'",
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE plan LIKE UPPER('i' || 't%')",
        "SELECT COUNT(*) AS n FROM visits WHERE plan LIKE 'IT%'",
    ),
    (FIRST, LISTED),
    (
        "SELECT MIN(m) AS a, MAX(q.m) AS b FROM "
        "(SELECT DATE_TRUNC('month', born) AS m FROM visits WHERE member GROUP BY 1) AS q",
        "SELECT MIN(DATE_TRUNC('month', born)) AS a, MAX(DATE_TRUNC('month', born)) AS b FROM visits WHERE member",
    ),
    (
        "SELECT MAX(age) - MIN(age) AS w FROM (SELECT age, plan FROM visits GROUP BY plan, age) AS q",
        "SELECT MAX(age) - MIN(age) AS w FROM visits",
    ),
    (
        "SELECT MAX(a) AS a FROM (SELECT age + 1 AS a FROM visits GROUP BY a) AS q",
        "SELECT MAX(age + 1) AS a FROM visits",
    ),
    (
        "SELECT COUNT(*) AS n FROM codes AS c JOIN codes AS k ON c.tier = k.tier JOIN visits AS v ON v.plan = c.plan",
        "SELECT COUNT(*) AS n FROM visits AS v JOIN codes AS c ON v.plan = c.plan JOIN codes AS k ON c.tier = k.tier",
    ),
    (
        "SELECT COUNT(*) AS n FROM codes AS c CROSS JOIN codes AS k JOIN visits AS v "
        "ON v.plan = c.plan AND v.floor = k.floor",
        "SELECT COUNT(*) AS n FROM visits AS v JOIN codes AS c ON v.plan = c.plan JOIN codes AS k ON v.floor = k.floor",
    ),
    (
        f"{GROUPS} visits RIGHT OUTER JOIN (SELECT DISTINCT plan FROM codes) USING (plan) GROUP BY plan",
        f"{GROUPS} visits JOIN (SELECT DISTINCT plan FROM codes) USING (plan) GROUP BY plan",
    ),
    (
        f"{GROUPS} codes AS c LEFT JOIN visits USING (plan) WHERE age > 3 GROUP BY plan",
        f"{GROUPS} codes AS c JOIN visits USING (plan) WHERE age > 3 GROUP BY plan",
    ),
    (
        f"{PUBLIC} visits RIGHT JOIN (SELECT DISTINCT note FROM UNNEST(['a', 'b']) AS note) USING (note) "
        "WHERE age > 3 OR member GROUP BY note",
        f"{PUBLIC} visits WHERE (age > 3 OR member) AND note IN ('a', 'b') GROUP BY note",
    ),
    (
        "SELECT MODE(plan) FROM visits WHERE age > 3 OR member",
        "SELECT plan AS mode_plan FROM visits WHERE (age > 3 OR member) AND NOT plan IS NULL GROUP BY plan "
        "ORDER BY COUNT(*) DESC LIMIT 1",
    ),
    (
        "SELECT member, MODE() WITHIN GROUP (ORDER BY plan) AS m FROM visits GROUP BY 1 ORDER BY member",
        "SELECT member, plan AS m FROM visits WHERE NOT plan IS NULL GROUP BY member, plan "
        "QUALIFY ROW_NUMBER() OVER (PARTITION BY member ORDER BY COUNT(*) DESC) = 1 ORDER BY member",
    ),
    (
        "SELECT APPROX_TOP_COUNT(plan, 3) FROM visits",
        "SELECT plan AS value, COUNT(*) AS count FROM visits GROUP BY plan ORDER BY COUNT(*) DESC LIMIT 3",
    ),
    (
        "SELECT APPROX_TOP_K(plan, 3) FROM visits",
        "SELECT plan AS value, COUNT(*) AS count FROM visits GROUP BY plan ORDER BY COUNT(*) DESC LIMIT 3",
    ),
    (
        "SELECT 1 AS one, plan, COUNT(*) AS n, TRUE AS yes FROM visits GROUP BY 1, 2, 4",
        "SELECT 1 AS one, plan, COUNT(*) AS n, TRUE AS yes FROM visits GROUP BY plan",
    ),
    (
        f"SELECT {JSON}.result.noise_confidence_interval, {JSON}.result.noise_confidence_interval AS i FROM visits",
        f'SELECT {LOW} AS "noise_confidence_interval.lower_bound", {HIGH} AS "noise_confidence_interval.upper_bound", '
        f'{LOW} AS "i.lower_bound", {HIGH} AS "i.upper_bound" FROM visits',
    ),
    (
        "SELECT plan, COUNT(*).value.int_value AS n, COUNT(*).value.noise_confidence_interval.upper_bound AS high "
        "FROM visits GROUP BY plan",
        "SELECT plan, COUNT(*) AS n, DP_INTERVAL_HIGH(COUNT(*)) AS high FROM visits GROUP BY plan",
    ),
    (
        "SELECT DOUBLE(q[OFFSET(1)].value) AS m, q[OFFSET(1)].noise_confidence_interval.lower_bound AS low, "
        "q[OFFSET(1)].noise_confidence_interval.confidence_level AS level FROM (SELECT JSON_QUERY_ARRAY("
        "APPROX_QUANTILES(age, 4, report_format => 'JSON').result) AS q FROM visits WHERE member)",
        "SELECT m, low, 0.95 AS level FROM (SELECT QUANTILE(age, 0.25) AS m, "
        "DP_INTERVAL_LOW(QUANTILE(age, 0.25)) AS low FROM visits WHERE member)",
    ),
    (
        "SELECT plan, q[ORDINAL(1)].float_value AS m FROM (SELECT plan, APPROX_QUANTILES(age, 2).values.values AS q "
        "FROM visits GROUP BY plan)",
        "SELECT plan, m FROM (SELECT plan, QUANTILE(age, 0) AS m FROM visits GROUP BY plan)",
    ),
    (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (delta = 1e-220) COUNT(*) AS n FROM visits",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (delta = 0) COUNT(*) AS n FROM visits",
    ),
    ("SELECT VAR(age) AS v, STD(age) AS s FROM visits", "SELECT VAR_SAMP(age) AS v, STDDEV_SAMP(age) AS s FROM visits"),
    (
        "SELECT VAR(weight, contribution_bounds_per_row => (0, 9)) AS v FROM visits",
        "SELECT VAR_SAMP(weight, contribution_bounds_per_row => (0, 9)) AS v FROM visits",
    ),
    (
        "SELECT VAR(weight) AS v FROM visits WHERE weight BETWEEN 0 AND 9",
        "SELECT VAR_SAMP(weight) AS v FROM visits WHERE weight BETWEEN 0 AND 9",
    ),
    ("SELECT GEOMEAN(age + 1) AS g FROM visits", "SELECT EXP(AVG(LN(age + 1))) AS g FROM visits"),
    ("SELECT APPROX_COUNT_DISTINCT(note) AS n FROM visits", "SELECT COUNT(DISTINCT note) AS n FROM visits"),
    (
        "SELECT APPROX_COUNT_DISTINCT(person, epsilon => 0.1) AS n FROM visits",
        "SELECT COUNT(DISTINCT person, epsilon => 0.1) AS n FROM visits",
    ),
    ("SELECT COUNT(DISTINCT plan, town) AS n FROM visits", f"SELECT COUNT(DISTINCT {PAIR}) AS n FROM visits"),
    ("SELECT REGR_SLOPE(cost, age) AS r FROM visits", f"SELECT {SLOPE} AS r FROM visits"),
    (
        "SELECT REGR_INTERCEPT(cost, age) AS r FROM visits",
        f"SELECT AVG(cost) FILTER ({BOTH}) - ({SLOPE}) * AVG(age) FILTER ({BOTH}) AS r FROM visits",
    ),
    ("SELECT REGR_R2(cost, age) AS r FROM visits", "SELECT CORR(cost, age) * CORR(cost, age) AS r FROM visits"),
    ("SELECT REGR_COUNT(cost, age) AS r FROM visits", f"SELECT COUNT(*) FILTER ({BOTH}) AS r FROM visits"),
    ("SELECT REGR_AVGX(cost, age) AS r FROM visits", f"SELECT AVG(age) FILTER ({BOTH}) AS r FROM visits"),
    ("SELECT REGR_AVGY(cost, age) AS r FROM visits", f"SELECT AVG(cost) FILTER ({BOTH}) AS r FROM visits"),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE (plan, town) IN (('a', 'Ulm'), ('b', 'Rom')) AND (age, floor) = (3, 1)",
        "SELECT COUNT(*) AS n FROM visits WHERE ((plan = 'a' AND town = 'Ulm') OR (plan = 'b' AND town = 'Rom')) "
        "AND age = 3 AND floor = 1",
    ),
    ("SELECT COUNT(*) AS n FROM main.visits", "SELECT COUNT(*) AS n FROM visits"),
    ("SELECT AVG(public.visits.age) AS n FROM public.visits", "SELECT AVG(visits.age) AS n FROM visits"),
    (
        "SELECT COUNT(*) AS n FROM ((visits JOIN codes USING (plan)))",
        "SELECT COUNT(*) AS n FROM visits JOIN codes USING (plan)",
    ),
    ("SELECT COUNT(CAST(age AS VARCHAR(10))) AS n FROM visits", "SELECT COUNT(CAST(age AS VARCHAR)) AS n FROM visits"),
    (
        "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan ORDER BY n OFFSET 1 ROWS FETCH NEXT 2 ROWS ONLY",
        "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan ORDER BY n LIMIT 2 OFFSET 1",
    ),
    (
        "SELECT plan, town, COUNT(*) AS n FROM visits GROUP BY plan, town WITH ROLLUP",
        "SELECT plan, town, COUNT(*) AS n FROM visits GROUP BY ROLLUP (plan, town)",
    ),
    (
        "SELECT plan, town, COUNT(*) AS n FROM visits GROUP BY plan, town WITH CUBE",
        "SELECT plan, town, COUNT(*) AS n FROM visits GROUP BY CUBE (plan, town)",
    ),
    (
        "SELECT n, COUNT(*) AS c FROM visits CROSS JOIN UNNEST([1, 2]) AS n GROUP BY n",
        "SELECT n, COUNT(*) AS c FROM (SELECT *, 1 AS n FROM visits UNION ALL SELECT *, 2 AS n FROM visits) GROUP BY n",
    ),
    (
        "SELECT v.word, SUM(v.n) AS c FROM visits AS t, (VALUES (1, 'a'), (-2, 'b')) AS v (n, word) GROUP BY v.word",
        "SELECT word, SUM(n) AS c FROM (SELECT *, 1 AS n, 'a' AS word FROM visits "
        "UNION ALL SELECT *, -2 AS n, 'b' AS word FROM visits) AS t GROUP BY word",
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE age IN UNNEST([1, 2])",
        "SELECT COUNT(*) AS n FROM visits WHERE age IN (1, 2)",
    ),
    ("SELECT APPROX_QUANTILES(age, 4)[OFFSET(1)] AS q FROM visits", "SELECT QUANTILE(age, 0.25) AS q FROM visits"),
    (
        "SELECT APPROX_QUANTILES(weight, 3, contribution_bounds_per_row => (0, 9))[SAFE_ORDINAL(3)] AS q FROM visits",
        "SELECT QUANTILE(weight, 0.666666666666666666, contribution_bounds_per_row => (0, 9)) AS q FROM visits",
    ),
    ("SELECT COUNT(*) AS n FROM golden.visits", "SELECT COUNT(*) AS n FROM visits"),
    ("SELECT AVG(v.age) AS a FROM (visits) AS v", "SELECT AVG(v.age) AS a FROM visits AS v"),
    (
        f"SELECT j.tier, COUNT(*) AS n FROM (visits JOIN {TIERS} USING (plan)) AS j GROUP BY j.tier",
        f"SELECT j.tier, COUNT(*) AS n FROM (SELECT * FROM visits JOIN {TIERS} USING (plan)) AS j GROUP BY j.tier",
    ),
    ("SELECT TOP 2 plan, COUNT(*) AS n FROM visits GROUP BY plan ORDER BY n", PLANS),
    ("SELECT TOP (2) plan, COUNT(*) AS n FROM visits GROUP BY plan ORDER BY n", PLANS),
    (
        "SELECT COUNT(*) FROM visits WHERE plan IN (SELECT TOP (2) plan FROM visits GROUP BY plan ORDER BY COUNT(*))",
        "SELECT COUNT(*) FROM visits WHERE plan IN (SELECT plan FROM visits GROUP BY plan ORDER BY COUNT(*) LIMIT 2)",
    ),
    (
        "SELECT TOP (2) [v 1].[plan], COUNT(*) AS [n] FROM [golden].[dbo].[visits] [v 1] GROUP BY plan ORDER BY n",
        PLANS,
    ),
    (
        "SELECT COUNT(*) AS n FROM (SELECT [$Table].[age] AS [the age] FROM [dbo].[visits] AS [$Table]) AS t "
        "WHERE [the age] > 3",
        "SELECT COUNT(*) AS n FROM visits WHERE age > 3",
    ),
    ("SELECT SUM(golden.main.visits.age) AS n FROM golden.main.visits", "SELECT SUM(age) AS n FROM visits"),
    (
        "SELECT DISTINCT ON (plan) plan, town, COUNT(*) AS n FROM visits GROUP BY plan, town ORDER BY plan, n DESC",
        "SELECT plan, town, COUNT(*) AS n FROM visits GROUP BY plan, town "
        "QUALIFY ROW_NUMBER() OVER (PARTITION BY plan ORDER BY COUNT(*) DESC) = 1 ORDER BY plan, n DESC",
    ),
    (
        "SELECT f.plan, COUNT(*) AS n FROM (SELECT DISTINCT ON (1) person, plan FROM visits ORDER BY 1, seen) AS f "
        "GROUP BY f.plan",
        "SELECT f.plan, COUNT(*) AS n FROM (SELECT person, plan FROM visits "
        "QUALIFY ROW_NUMBER() OVER (PARTITION BY person ORDER BY seen) = 1) AS f GROUP BY f.plan",
    ),
    (
        "SELECT v.plan, AVG(s.total) AS a FROM visits AS v CROSS JOIN LATERAL (SELECT SUM(o.age) AS total "
        "FROM visits AS o WHERE o.person = v.person AND o.member) AS s GROUP BY v.plan",
        "SELECT v.plan, AVG(s.total) AS a FROM visits AS v LEFT JOIN (SELECT o.person AS p, SUM(o.age) AS total "
        "FROM visits AS o WHERE o.member GROUP BY o.person) AS s ON s.p = v.person GROUP BY v.plan",
    ),
    (
        "SELECT COUNT(*) AS n FROM visits AS v, LATERAL (SELECT COUNT(*) AS k FROM visits WHERE person = v.person "
        "AND age > 3) AS s WHERE s.k = 0",
        "SELECT COUNT(*) AS n FROM visits AS v LEFT JOIN (SELECT person AS p, COUNT(*) AS k FROM visits WHERE age > 3 "
        "GROUP BY person) AS s ON s.p = v.person WHERE COALESCE(s.k, 0) = 0",
    ),
    (  # ANDs in parentheses
        "SELECT COUNT(*) AS n FROM visits AS v, LATERAL (SELECT COUNT(*) AS k FROM visits WHERE (person = v.person "
        "AND age > 3) AND member) AS s WHERE s.k = 0",
        "SELECT COUNT(*) AS n FROM visits AS v LEFT JOIN (SELECT person AS p, COUNT(*) AS k FROM visits WHERE age > 3 "
        "AND member GROUP BY person) AS s ON s.p = v.person WHERE COALESCE(s.k, 0) = 0",
    ),
    (  # a count that is named without its table
        "SELECT COUNT(*) AS n FROM visits AS v, LATERAL (SELECT COUNT(*) AS k FROM visits WHERE person = v.person "
        "AND age > 3) AS s WHERE k = 0",
        "SELECT COUNT(*) AS n FROM visits AS v LEFT JOIN (SELECT person AS p, COUNT(*) AS k FROM visits WHERE age > 3 "
        "GROUP BY person) AS s ON s.p = v.person WHERE COALESCE(s.k, 0) = 0",
    ),
    (
        "SELECT COUNT(*) AS n FROM visits AS v, LATERAL (SELECT APPROX_COUNT_DISTINCT(plan) AS k FROM visits "
        "WHERE person = v.person AND age > 3) AS s WHERE s.k = 0",
        "SELECT COUNT(*) AS n FROM visits AS v LEFT JOIN (SELECT person AS p, COUNT(DISTINCT plan) AS k FROM visits "
        "WHERE age > 3 GROUP BY person) AS s ON s.p = v.person WHERE COALESCE(s.k, 0) = 0",
    ),
    (
        "SELECT s.plan, COUNT(*) AS n FROM visits AS v LEFT JOIN LATERAL (SELECT o.plan FROM visits AS o "
        "WHERE o.person = v.person ORDER BY o.seen LIMIT 1) AS s ON TRUE GROUP BY s.plan",
        "SELECT s.plan, COUNT(*) AS n FROM visits AS v LEFT JOIN (SELECT o.person AS p, o.plan FROM visits AS o "
        "QUALIFY ROW_NUMBER() OVER (PARTITION BY o.person ORDER BY o.seen) <= 1) AS s ON s.p = v.person "
        "GROUP BY s.plan",
    ),
    (
        "SELECT COUNT(*) AS n FROM visits AS a JOIN visits AS b "
        "ON a.person = b.person OR (b.person IS NULL AND a.person IS NULL)",
        "SELECT COUNT(*) AS n FROM visits AS a JOIN visits AS b ON a.person = b.person",
    ),
    (
        "SELECT COUNT(*) AS n FROM visits AS a JOIN visits AS b ON a.person IS NOT DISTINCT FROM b.person",
        "SELECT COUNT(*) AS n FROM visits AS a JOIN visits AS b ON a.person = b.person",
    ),
    ("FROM visits SELECT plan, COUNT(*) AS n GROUP BY plan ORDER BY n LIMIT 2", PLANS),
    ("SELECT plan, COUNT(*) AS n, FROM visits GROUP BY plan ORDER BY n LIMIT 2", PLANS),
    (
        "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan HAVING (plan = 'a') = 1",
        "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan HAVING (plan = 'a') = TRUE",
    ),
    (
        "SELECT member, COUNT(*) AS n FROM visits GROUP BY member ORDER BY CAST(member AS INTEGER)",
        "SELECT member, COUNT(*) AS n FROM visits GROUP BY member "
        "ORDER BY ROUND(CASE WHEN member THEN 1 WHEN NOT member THEN 0 END)",
    ),
    (
        "SELECT plan, n = COUNT_BIG(*), k = COUNT_BIG(DISTINCT age) FROM visits GROUP BY plan",
        "SELECT plan, COUNT(*) AS n, COUNT(DISTINCT age) AS k FROM visits GROUP BY plan",
    ),
    (
        "SELECT plan = 'a' AS a, COUNT(*) AS n FROM visits WHERE EOMONTH(born) > '2000-01-01' GROUP BY plan = 'a'",
        "SELECT plan = 'a' AS a, COUNT(*) AS n FROM visits WHERE LAST_DAY(born) > '2000-01-01' GROUP BY 1",
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE DATENAME(mm, seen) = 'May' AND DATENAME(dw, seen) <> 'Monday' "
        "AND DATENAME(yyyy, seen) = '2020'",
        "SELECT COUNT(*) AS n FROM visits WHERE MONTHNAME(seen) = 'May' AND DAYNAME(seen) <> 'Monday' "
        "AND CAST(YEAR(seen) AS VARCHAR) = '2020'",
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE DATEADD(month, DATEDIFF(month, 0, seen), 0) > '2020-01-01' "
        "AND DATEADD(DAY, 0, DATEDIFF(DAY, 0, seen)) < '2021-01-01'",
        "SELECT COUNT(*) AS n FROM visits WHERE DATE_TRUNC('month', seen) > '2020-01-01' "
        "AND DATE_TRUNC('day', seen) < '2021-01-01'",
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE DATEADD(wk, DATEDIFF(week, 0, seen), 0) > '2020-01-06' "
        "AND DATEDIFF(ww, 0, seen) > 6000 AND DATEDIFF(dd, 0, seen) > 43000",
        "SELECT COUNT(*) AS n FROM visits WHERE DATE_TRUNC('week', (seen) + INTERVAL 1 DAY) > '2020-01-06' "
        "AND DATE_DIFF('week', DATE '1900-01-01', (seen) + INTERVAL 1 DAY) > 6000 "
        "AND DATE_DIFF('day', DATE '1900-01-01', seen) > 43000",
    ),
    (
        "SELECT DATEPART(yyyy, seen) AS y, DATEPART(dw, seen) AS d, COUNT(*) AS n FROM visits "
        "WHERE seen > CAST('2020/1/5' AS TIMESTAMP) - 3 AND DATEPART(weekday, seen) < 7 "
        "GROUP BY DATEPART(yyyy, seen), DATEPART(dw, seen)",
        "SELECT YEAR(seen) AS y, (DAYOFWEEK(seen) + 1) AS d, COUNT(*) AS n FROM visits "
        "WHERE seen > CAST('2020-01-05' AS TIMESTAMP) - INTERVAL 3 DAY AND (DAYOFWEEK(seen) + 1) < 7 "
        "GROUP BY YEAR(seen), (DAYOFWEEK(seen) + 1)",
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE DATEPART(wk, seen) = 3",
        "SELECT COUNT(*) AS n FROM visits "
        "WHERE ((DAYOFYEAR(seen) + DAYOFWEEK(MAKE_DATE(YEAR(seen), 1, 1)) - 1) // 7 + 1) = 3",
    ),
    (
        "SELECT COUNT(*) AS n FROM visits "
        "WHERE DATEADD(mm, (YEAR(seen) - 1900) * 12 + MONTH(seen) - 1, 0) > '2020-01-01' "
        "AND CAST(CAST(DATEPART(YYYY, seen) AS varchar(4)) + '-' + CAST(MONTH(seen) AS varchar) + '-01' AS date) "
        "< '2021-01-01'",
        "SELECT COUNT(*) AS n FROM visits "
        "WHERE DATE '1900-01-01' + INTERVAL ((YEAR(seen) - 1900) * 12 + MONTH(seen) - 1) MONTH > '2020-01-01' "
        "AND CAST(DATE_TRUNC('month', seen) AS date) < '2021-01-01'",
    ),
    (
        "SELECT *, COUNT(*) AS n FROM (SELECT plan, YEAR(seen) AS y FROM visits AS v) AS x GROUP BY y, plan ORDER BY n",
        "SELECT plan, y, COUNT(*) AS n FROM (SELECT plan, YEAR(seen) AS y FROM visits AS v) AS x GROUP BY y, plan "
        "ORDER BY n",
    ),
    (
        "SELECT COUNT(*) AS [% of (all)?], SUM(age) AS [Years, all] FROM visits ORDER BY [% of (all)?]",
        'SELECT COUNT(*) AS "% of (all)?", SUM(age) AS "Years, all" FROM visits ORDER BY "% of (all)?"',
    ),
    (
        "SELECT * FROM (SELECT plan, VAR(age) AS v FROM main.visits GROUP BY plan) WHERE v > 3",
        "SELECT plan, VAR_SAMP(age) AS v FROM visits GROUP BY plan HAVING VAR_SAMP(age) > 3",
    ),
    (
        "WITH f (p, w) AS (SELECT plan, COUNT(*) FROM visits GROUP BY plan) SELECT AVG(w) AS a FROM f",
        "WITH f AS (SELECT plan AS p, COUNT(*) AS w FROM visits GROUP BY plan) SELECT AVG(w) AS a FROM f",
    ),
    (
        "WITH f (p, w) AS (SELECT age, plan AS k FROM visits UNION ALL SELECT age + 1, plan FROM visits) "
        "SELECT w, SUM(p) AS s FROM f GROUP BY w",
        "WITH f AS (SELECT age AS p, plan AS w FROM visits UNION ALL SELECT age + 1, plan FROM visits) "
        "SELECT w, SUM(p) AS s FROM f GROUP BY w",
    ),
]
REFUSED = [
    "SELECT SUM(age) AS s FROM (SELECT age FROM visits GROUP BY age) AS q",
    "SELECT MIN(age) AS a, COUNT(*) AS n FROM (SELECT age FROM visits GROUP BY age) AS q",
    "SELECT MIN(age) AS a FROM (SELECT age FROM visits GROUP BY plan) AS q",
    f"{PUBLIC} visits RIGHT JOIN visits AS v USING (person) GROUP BY note",
    f"{PUBLIC} visits LEFT JOIN UNNEST(['a', 'b']) AS note USING (note) GROUP BY note",
    f"{PUBLIC} visits RIGHT JOIN UNNEST(['a', note]) AS note USING (note) GROUP BY note",
    "SELECT plan, COUNT(*) AS n FROM visits RIGHT JOIN codes USING (plan) GROUP BY plan",
    "SELECT note, COUNT(*) AS n FROM visits RIGHT JOIN UNNEST(['a', 'b']) AS note USING (note) GROUP BY note",
    "SELECT COUNT(*) AS n FROM archive.visits",
    "SELECT plan = COUNT(*) FROM visits",
    "SELECT v.n = COUNT(*) FROM visits AS v",
    "SELECT n = COUNT(*) FROM (SELECT age FROM visits)",
    "SELECT COUNT(*) AS n FROM visits WHERE DATENAME(week, seen) = '3'",
    "SELECT COUNT(*) AS n FROM visits WHERE DATEADD(m, 3, seen) > '2020-01-01'",
    "SELECT COUNT(*) AS n FROM visits WHERE DATEDIFF(m, born, seen) > 3",
    "SELECT COUNT(*) AS n FROM visits WHERE DATEPART(y, seen) = 3",
    "SELECT COUNT(*) AS n FROM visits WHERE DATEADD(w, 3, seen) > '2020-01-01'",
    "SELECT COUNT(*) AS n FROM visits WHERE DATEPART(m, seen) = 3",
    "SELECT COUNT(*) AS n FROM visits WHERE seen > '2020-13-1'",
    "SELECT COUNT(*) AS n FROM visits WHERE seen + 0.5 > '2020-01-01'",
    "SELECT COUNT(*) AS n FROM visits WHERE CAST(CAST(YEAR(seen) AS TEXT) + '-' + CAST(MONTH(born) AS TEXT) + '-01' "
    "AS DATE) > '2020-01-01'",
    "SELECT COUNT(*) AS n FROM visits WHERE CAST(CAST(YEAR(seen) AS TEXT) + '-' + CAST(MONTH(seen) AS TEXT) + '-02' "
    "AS DATE) > '2020-01-01'",
    "SELECT *, COUNT(*) AS n FROM (SELECT plan, age FROM visits) AS x GROUP BY plan",
    "SELECT *, COUNT(*) AS n FROM (SELECT *, age + 1 AS more FROM visits) AS x GROUP BY plan",
    "SELECT *, *, COUNT(*) AS n FROM (SELECT plan FROM visits) AS x GROUP BY plan",
    "SELECT *, COUNT(*) AS n FROM (SELECT plan FROM visits) AS x (p) GROUP BY plan",
    "SELECT *, COUNT(*) AS n FROM (SELECT plan FROM visits) AS x JOIN codes USING (plan) GROUP BY plan",
    "SELECT [age, cost] AS n, COUNT(*) AS k FROM visits",
    "SELECT COUNT(*) AS n FROM visits WHERE DATEADD(month, DATEDIFF(day, 0, seen), 0) > '2020-01-01'",
    "SELECT COUNT(*) AS n FROM visits WHERE JSON_VALUE(note, 'a.b') = 'b'",
    "SELECT COUNT(*) AS n FROM other.main.visits",
    "SELECT VAR(age, 3) AS v FROM visits",
    "SELECT REGR_SLOPE(cost, age, epsilon => 0.1) AS r FROM visits",
    "SELECT REGR_SLOPE(cost, age) FILTER (WHERE member) AS r FROM visits",
    "SELECT REGR_SLOPE(cost) AS r FROM visits",
    "SELECT COUNT(DISTINCT plan, person) AS n FROM visits",
    "SELECT COUNT(DISTINCT plan, weight) AS n FROM visits",
    "SELECT COUNT(*) AS n FROM visits WHERE (plan, town) IN (('a', 'Ulm', 'x'))",
    "SELECT COUNT(*) AS n FROM visits WHERE (plan, town) IN ('a', 'b')",
    "SELECT COUNT(*) AS n FROM visits WHERE (plan, town) < ('a', 'b')",
    "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan FETCH FIRST 2 ROWS WITH TIES",
    "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan FETCH FIRST 50 PERCENT ROWS ONLY",
    "SELECT COUNT(CAST(age AS VARCHAR(plan))) AS n FROM visits",
    "SELECT COUNT(CAST(age AS VARCHAR(10, 3))) AS n FROM visits",
    "SELECT COUNT(*) AS n FROM (visits JOIN codes USING (plan)) AS j",
    "SELECT COUNT(*) AS n FROM visits CROSS JOIN UNNEST([1, 2])",
    "SELECT COUNT(*) AS n FROM visits CROSS JOIN (VALUES (1, 2), (3)) AS v (x, y)",
    "SELECT COUNT(*) AS n FROM visits CROSS JOIN UNNEST([" + ", ".join(map(str, range(51))) + "]) AS x",
    "SELECT COUNT(*) AS n FROM visits LEFT JOIN UNNEST([1, 2]) AS x ON x > age",
    "SELECT APPROX_QUANTILES(age, 4) AS q FROM visits",
    "SELECT APPROX_QUANTILES(age, 4)[OFFSET(5)] AS q FROM visits",
    "SELECT APPROX_QUANTILES(age, plan)[OFFSET(1)] AS q FROM visits",
    "SELECT COUNT(*) AS n FROM visits WHERE [1, 2] = age",
    "SELECT TOP 2 PERCENT plan, COUNT(*) AS n FROM visits GROUP BY plan",
    "SELECT TOP 2 WITH TIES plan, COUNT(*) AS n FROM visits GROUP BY plan",
    "SELECT TOP 2 plan, COUNT(*) AS n FROM visits GROUP BY plan LIMIT 1",
    "SELECT COUNT(*) AS n FROM golden.archive.visits",
    "SELECT COUNT(*) AS n FROM visits WHERE plan[town] = 'a'",
    "SELECT COUNT(*) AS n FROM visits WHERE plan = ['a']",
    "SELECT COUNT(*) AS [n FROM visits",
    "SELECT COUNT(*) AS [[n]] FROM visits",
    "SELECT DISTINCT ON (plan) plan, town, COUNT(*) AS n FROM visits GROUP BY plan, town",
    "SELECT DISTINCT ON (plan) plan, town, COUNT(*) AS n FROM visits GROUP BY plan, town ORDER BY plan",
    "SELECT COUNT(*) AS n FROM (SELECT DISTINCT ON (plan) plan FROM visits ORDER BY plan, seen) AS f",
    "SELECT COUNT(*) AS n FROM visits AS v, LATERAL (SELECT plan FROM visits AS o WHERE o.plan = v.plan LIMIT 1) AS s",
    "SELECT COUNT(*) AS n FROM visits AS v, LATERAL (SELECT o.plan FROM visits AS o WHERE o.age > v.age) AS s",
    "SELECT COUNT(*) AS n FROM visits AS v, LATERAL (SELECT SUM(o.age + v.age) AS k FROM visits AS o "
    "WHERE o.person = v.person) AS s",
    "SELECT COUNT(*) AS n FROM visits AS v RIGHT JOIN LATERAL (SELECT SUM(o.age) AS k FROM visits AS o "
    "WHERE o.person = v.person) AS s ON TRUE",
    "SELECT COUNT(*) AS n FROM visits AS a JOIN visits AS b ON a.person = b.person OR a.plan IS NULL AND b.age IS NULL",
    "SELECT COUNT(*) AS n FROM visits AS a JOIN visits AS b ON a.person = b.person OR a.person IS NULL",
    "SELECT TOP (plan) plan, COUNT(*) AS n FROM visits GROUP BY plan",
    "SELECT TOP 1.5 plan, COUNT(*) AS n FROM visits GROUP BY plan",
    "SELECT member, COUNT(*) AS n FROM visits GROUP BY member HAVING member = 2",
]


def title(text: object) -> str:
    return str(text)[:70]


@pytest.mark.long
@pytest.mark.parametrize(("text", "known"), one_in(48, PAIRS, many=True), ids=title)
def test_it_is_the_plan_of_the_known_words(world: World, text: str, known: str) -> None:
    assert not same(world.plan(text), world.plan(known))


@pytest.mark.parametrize("text", REFUSED, ids=title)
def test_what_says_more_is_refused(world: World, text: str) -> None:
    with pytest.raises(QueryRefused):
        world.plan(text)


def test_the_refusal_of_the_last_reading_is_shown(world: World) -> None:
    with refused_as("unbounded", saying="weight"):
        world.plan("SELECT VAR(weight) AS v FROM visits")
    with refused_as("unknown_column", saying="'wieght'.*'weight'"):
        world.plan("SELECT VAR(wieght) AS v FROM visits")


def test_a_column_is_not_called_as_something_that_is_named_inside(world: World) -> None:
    """ORDER BY would name the new column, which is a query that is answered, and another one."""
    inner = "COUNT(*){} FROM visits GROUP BY plan ORDER BY plan LIMIT 1"
    assert world.plan(f"WITH a AS (SELECT UPPER(plan) AS plan, {inner.format(' AS n')}) SELECT n FROM a")
    with refused_as("clause_not_supported"):
        world.plan(f"WITH a (plan, n) AS (SELECT UPPER(plan), {inner.format('')}) SELECT n FROM a")


ALL = "(SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan)"
SETS = "SELECT COUNT(*) AS n FROM (SELECT DISTINCT plan FROM visits INTERSECT SELECT DISTINCT plan FROM adults)"


def test_a_condition_that_is_lost_when_public_tables_come_first_is_found(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = world.plan(LISTED)
    monkeypatch.setattr(comma_joins, "conjuncts", lambda node, rows: conjuncts(node, rows)[:1])
    assert same(world.plan(FIRST), known)


def _weeks(formula: str, week: str) -> list[date]:
    """Return the days of 400 years on which DuckDB counts other weeks than SQL Server does."""
    days = [date(1900, 1, 1) + timedelta(days=place) for place in range(146_097)]
    known = duckdb.execute(
        f"SELECT {formula}, {week} FROM (SELECT DATE '1900-01-01' + i::INT AS d FROM range(146097) r(i))"
    )
    differing = []
    for day, (begun, number) in zip(days, known.fetchall(), strict=True):
        sundays = ((day - days[0]).days + 1) // 7
        first = date(day.year, 1, 1).isoweekday() % 7
        expected = days[0] + timedelta(weeks=sundays), (day.timetuple().tm_yday - 1 + first) // 7 + 1
        differing += [day] if (begun, number) != expected or (sundays == 0 and begun != days[0]) else []
    return differing


def test_weeks_are_those_of_sql_server() -> None:
    """From day 0 on, by its arithmetic: Sundays since a Monday, and weeks that the first of January begins."""
    week = "(DAYOFYEAR(d) + DAYOFWEEK(MAKE_DATE(YEAR(d), 1, 1)) - 1) // 7 + 1"
    assert not _weeks("CAST(DATE_TRUNC('week', d + INTERVAL 1 DAY) AS DATE)", week)
    assert _weeks("CAST(DATE_TRUNC('week', d) AS DATE)", week)
    assert _weeks("CAST(DATE_TRUNC('week', d + INTERVAL 1 DAY) AS DATE)", "WEEK(d)")


def test_parentheses_around_a_question_are_left_out(world: World) -> None:
    assert world.plan(f"({ALL})") == world.plan(ALL[1:-1])
    assert world.plan(f"{ALL} ORDER BY n LIMIT 2") == world.plan(f"SELECT * FROM {ALL} ORDER BY n LIMIT 2")
    below = world.plan(f"{ALL[1:-1]} UNION ALL {ALL[1:-1]} ORDER BY n")
    assert world.plan(f"({ALL} UNION ALL {ALL}) ORDER BY n") == below


def test_limit_is_over_the_one_row_of_a_count(world: World) -> None:
    assert world.plan(f"{SETS} LIMIT 9") == replace(world.plan(SETS), limit=9)


def test_what_binding_knows_stays_as_it_is(world: World) -> None:
    for _, known in PAIRS:
        parsed, within = parse(known), Scope(text=known, catalog=world.catalog, facts=world.facts)
        assert other_spellings.rewritten(parsed.select, parsed.arguments.keys(), within) is None, known


PARTS = 8
READ_OVER = {"Count.big_int", "Fetch.direction", "LimitOptions.rows", "Group.all", "Table.alias"}
"""Arguments that say nothing, and those that every question may have."""


def let_through(world: World, monkeypatch: pytest.MonkeyPatch, part: int) -> set[str]:
    """Return the arguments that nobody looks at when they are put into nodes that are spelled anew.

    Args: part: which of the parts of all pairs is looked at.
    """
    found = set()
    read = [kind for kind in other_spellings._SPELLINGS if kind is not exp.Select]
    further = (exp.Distinct, exp.Tuple, exp.LimitOptions, exp.Rollup, exp.Cube, exp.Unnest, exp.Values, exp.Array)
    kinds = (*read, *further, exp.TableAlias)
    for text, _ in PAIRS[part::PARTS]:
        parsed = parse(text)
        nodes: list[exp.Expression] = list(parsed.select.find_all(*kinds))
        for node in nodes:
            for name in {*node.arg_types, "surprise"} - node.args.keys():
                for surprise in (True, exp.column("age"), [exp.column("age")], "x"):
                    node.args[name] = surprise
                    monkeypatch.setattr(bind_module, "parse", lambda *_, parsed=parsed: parsed)
                    try:
                        bind_module.bind(text, world.catalog, world.facts)
                        found.add(f"{type(node).__name__}.{name}")
                    except QueryRefused:
                        pass
                    del node.args[name]
    return found


@pytest.mark.long
@pytest.mark.parametrize("part", one_in(PARTS, range(PARTS)))
def test_an_argument_that_is_not_understood_is_refused(
    world: World, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert let_through(world, monkeypatch, part) <= READ_OVER


@pytest.mark.long
def test_an_argument_that_is_read_over_is_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (other_spellings, listed_values, clause_spellings, report_fields):
        monkeypatch.setattr(module, "has_only", lambda *_: True)
    assert len(let_through(world, monkeypatch, 0) - READ_OVER) > 3


@pytest.mark.long
def test_each_pair_of_texts_is_one_text() -> None:
    """What COUNT(DISTINCT a, b) counts is another text for every pair, on the engine that computes it."""
    parts = [
        "",
        "1",
        "a",
        ":",
        "1:",
        ":a",
        "1:a",
        "11",
        "é",
        "e\u0301",
        "\u0301",
        "\u0301a",
        "\U0001f469\u200d\U0001f52c",
        None,
    ]
    with duckdb.connect() as engine:
        engine.execute("CREATE TABLE pairs (plan VARCHAR, town VARCHAR)")
        engine.executemany("INSERT INTO pairs VALUES (?, ?)", [*product(parts, repeat=2)])
        (counted,) = engine.execute(f"SELECT COUNT(DISTINCT {PAIR}) FROM pairs").fetchall()
        (without,) = engine.execute("SELECT COUNT(DISTINCT plan || town) FROM pairs").fetchall()
    assert counted == ((len(parts) - 1) ** 2,)
    assert without < counted

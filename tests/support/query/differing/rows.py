"""Random queries over rows: conditions, keys, times, aggregates, joins, and subqueries of one unit."""

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from tests.support.query.differing.comparing import Question
from tests.support.query.differing.worlds import World

ZONES: Final = ("Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe")
PARTS: Final = ("year", "quarter", "month", "week", "day", "dayofweek", "isodow", "dayofyear")


def literal(text: str) -> str:
    """Return a text as SQL."""
    return "'" + text.replace("'", "''") + "'"


def day_within(chance: random.Random, world: World) -> str:
    """Return a day of the world's period, as SQL."""
    first, last = world.period
    return f"DATE '{first.date() + timedelta(days=chance.randint(0, (last - first).days))}'"


def moment_within(chance: random.Random, world: World) -> str:
    """Return a time of the world's period as one of its spellings."""
    first, last = world.period
    text = str(first + timedelta(seconds=chance.randint(0, int((last - first).total_seconds()))))
    return chance.choice((f"TIMESTAMP '{text}'", f"'{text}'", f"'{text}'::timestamp", f"CAST('{text}' AS TIMESTAMP)"))


def number(chance: random.Random, world: World, prefix: str = "") -> str:
    """Return a bounded number of a row of visits."""
    low, high = world.ages
    middle = chance.randint(low, high)
    age, pay = f"{prefix}age", f"{prefix}pay"
    return chance.choice(
        (
            age, pay, age, pay, f"{age} * 2 + 1", f"{pay} - {age}", f"ABS({age})", f"COALESCE({age}, {middle})",
            f"LEAST(GREATEST({age}, {low}), {middle})", f"NULLIF({age}, {middle})", f"SIGN({age})",
            f"FLOOR({pay} / 10)",
            f"CASE WHEN {prefix}member THEN {age} ELSE {pay} END", f"ROUND(GREATEST({pay}, 0), 1)", f"{age} % 7",
            f"CEIL({pay})",
            f"CASE WHEN {age} > {middle} THEN 1 ELSE 0 END", f"LENGTH({prefix}plan)",
            f"EXTRACT(hour FROM {prefix}seen)", f"DATE_DIFF('day', {prefix}day, CAST({prefix}seen AS DATE))",
        )
    )  # fmt: skip


def condition(chance: random.Random, world: World, prefix: str = "", depth: int = 2) -> str:
    """Return a condition on a row of visits."""
    if depth and chance.random() < 0.35:
        left, right = (condition(chance, world, prefix, depth - 1) for _ in range(2))
        return chance.choice((f"({left} AND {right})", f"({left} OR {right})", f"NOT ({left})"))
    low, high = world.ages
    age, other = chance.randint(low, high), chance.randint(low, high)
    plan, site = literal(chance.choice(world.plans)), literal(chance.choice(world.sites))
    sign = chance.choice(("=", "<>", "<", "<=", ">", ">="))
    p = prefix
    return chance.choice(
        (
            f"{p}age {sign} {age}", f"{p}age BETWEEN {min(age, other)} AND {max(age, other)}",
            f"{p}pay {sign} {age}.5",
            f"{p}plan {chance.choice(('=', '<>'))} {plan}", f"{p}plan IN ({plan}, 'none')",
            f"{p}site NOT IN ({site})",
            f"{p}plan LIKE '{chance.choice(('f%', '%r%', '_____'))}'", f"{p}member", f"NOT {p}member",
            f"{p}note IS NULL",
            f"{p}note = 'call'", f"LOWER({p}note) LIKE 'call%'", f"{p}note IS NOT NULL", f"{p}age IS NULL",
            f"{p}age IS NOT DISTINCT FROM {age}", f"{p}note IS DISTINCT FROM 'call'", f"{p}age IN ({age}, {other})",
            f"{p}day {sign} {day_within(chance, world)}", f"{p}seen {sign} {moment_within(chance, world)}",
            f"EXTRACT({chance.choice(('month', 'dow', 'hour'))} FROM {p}seen) {sign} 3", f"{p}age + 1 {sign} {p}pay",
            f"COALESCE({p}age, {age}) {sign} {other}", f"CASE WHEN {p}member THEN {p}age > {age} ELSE {p}pay < 50 "
            "END",
            f"{p}seen - TIMESTAMP '{world.period[0]}' < INTERVAL '{chance.randint(1, 90)} days'",
        )
    )  # fmt: skip


def aggregate(chance: random.Random, world: World, prefix: str = "") -> str:
    """Return an aggregate over rows of visits."""
    value, where = number(chance, world, prefix), condition(chance, world, prefix, 1)
    return chance.choice(
        (
            "COUNT(*)", "COUNT(*)", f"COUNT({prefix}age)", f"COUNT({value})", f"SUM({value})", f"SUM({value})",
            f"AVG({value})", f"AVG({prefix}age)", f"COUNT_IF({where})", f"COUNT(*) FILTER (WHERE {where})",
            f"SUM({value}) FILTER (WHERE {where})", f"COUNT(DISTINCT {prefix}plan)",
            f"COUNT(DISTINCT {prefix}person)",
            f"COUNT(DISTINCT {prefix}note)", f"100.0 * COUNT_IF({where}) / COUNT(*)", f"VAR_POP({prefix}age)",
            f"STDDEV_SAMP({prefix}age)", f"COUNT(DISTINCT {prefix}age)", f"SUM(CASE WHEN {where} THEN {value} END)",
            f"COALESCE(SUM({value}), 0) - COUNT(*)",
        )
    )  # fmt: skip


def key(chance: random.Random, world: World, prefix: str = "") -> str:
    """Return a key of visits with public values."""
    p = prefix
    edge = chance.randint(*world.ages)
    return chance.choice(
        (
            f"{p}plan", f"{p}site", f"{p}plan", f"{p}member", f"FLOOR({p}age / 10)", f"{p}age > {edge}", f"{p}age",
            f"CASE WHEN {p}age < {edge} THEN 'young' WHEN {p}age IS NULL THEN 'unknown' ELSE 'old' END",
            f"UPPER({p}site)", f"{p}plan || '-' || {p}site", f"EXTRACT(year FROM {p}day)", f"LEFT({p}plan, 2)",
            f"DATE_TRUNC('month', {p}day)", f"DATE_TRUNC('week', {p}seen)", f"CAST({p}seen AS DATE)",
            f"EXTRACT({chance.choice(PARTS)} FROM {p}day)",
        )
    )  # fmt: skip


def _grouped(keys: list[str], aggregates: list[str], source: str, where: str, chance: random.Random) -> Question:
    """Return a SELECT with keys `k…` and aggregates `a…`."""
    shown = [f"{text} AS k{place}" for place, text in enumerate(keys)]
    shown += [f"{text} AS a{place}" for place, text in enumerate(aggregates)]
    by = ", ".join(chance.choice((str(place + 1), f"k{place}", text)) for place, text in enumerate(keys))
    group = f" GROUP BY {by}" if keys else ""
    having = f" HAVING COUNT(*) > {chance.randint(0, 9)}" if keys and chance.random() < 0.2 else ""
    return Question(text=f"SELECT {', '.join(shown)} FROM {source}{where}{group}{having}")


def _where(chance: random.Random, world: World, prefix: str = "", often: float = 0.6) -> str:
    return f" WHERE {condition(chance, world, prefix)}" if chance.random() < often else ""


def flat(chance: random.Random, world: World) -> Question:
    """Return aggregates over visits, by keys or not."""
    keys = list(dict.fromkeys(key(chance, world) for _ in range(chance.choice((0, 1, 1, 2)))))
    aggregates = [aggregate(chance, world) for _ in range(chance.randint(1, 3))]
    return _grouped(keys, aggregates, "visits", _where(chance, world), chance)


def times(chance: random.Random, world: World) -> Question:
    """Return aggregates by times, or of times, as tools write them."""
    unit, zone = chance.choice(("hour", "day", "week", "month", "quarter", "year")), chance.choice(ZONES)
    span = chance.choice(("15 minutes", "6 hours", "1 day", "7 days", "1 month", "3 months", "1 year", "90 minutes"))
    there = f"seen AT TIME ZONE 'UTC' AT TIME ZONE '{zone}'"
    keys = [
        f"DATE_TRUNC('{unit}', seen)", f"DATE_TRUNC('{unit}', {there})", f"TIME_BUCKET(INTERVAL '{span}', seen)",
        f"EXTRACT(hour FROM {there})", f"CAST({there} AS DATE)", f"TIME_BUCKET(INTERVAL '{span}', day)",
        "DATE_TRUNC('week', seen + INTERVAL '1 day') - INTERVAL '1 day'", "STRFTIME(seen, '%Y-%m')", "MONTHNAME(day)",
        f"DATE_TRUNC('{unit}', day + INTERVAL ({chance.randint(-3, 3)}) MONTH)", "LAST_DAY(day)", "day + 7",
        f"TIME_BUCKET(INTERVAL '{span}', seen, TIMESTAMP '2001-01-01 00:05:00')", "DATE_TRUNC('week', day)::date",
        f"EXTRACT({chance.choice((*PARTS, 'minute', 'second', 'isoyear'))} FROM seen)", "DAYNAME(seen)",
    ]  # fmt: skip
    other = f"TIMESTAMP '{chance.choice(world.period)}'"
    begun = "day" if unit == "week" else unit  # DuckDB counts whole weeks, and Lapwing weeks that begin on Monday
    values = [
        f"AVG(EXTRACT(epoch FROM seen - {other}))", f"SUM(DATE_DIFF('{begun}', seen, {other}))", "COUNT(day)",
        f"COUNT_IF(seen + INTERVAL '{chance.randint(1, 40)} hours' < {other})",
        f"AVG(day - {day_within(chance, world)})",
        f"COUNT_IF(EXTRACT(hour FROM {there}) < {chance.randint(0, 23)})", "COUNT(*)", "COUNT(*)",
        f"SUM(DATE_DIFF('{begun}', day, seen))", "AVG(DATE_PART('year', AGE(seen, TIMESTAMP '1960-02-29')))",
        f"COUNT_IF(seen >= {other} - INTERVAL '{chance.randint(1, 14)} months')", "COUNT(DISTINCT day)",
        f"COUNT_IF(DATE_TRUNC('{unit}', seen) = DATE_TRUNC('{unit}', {moment_within(chance, world)}::timestamp))",
        "SUM(EXTRACT(minute FROM seen))", "COUNT_IF(day + INTERVAL '1 month' > LAST_DAY(day))",
    ]  # fmt: skip
    start = moment_within(chance, world)
    narrow = f" WHERE seen >= {start} AND seen < {moment_within(chance, world)}"
    where = chance.choice(
        ("", _where(chance, world), narrow, f" WHERE CAST(seen AS DATE) = {day_within(chance, world)}")
    )
    chosen = chance.sample(keys, chance.choice((0, 1, 1, 1)))
    return _grouped(chosen, chance.sample(values, chance.randint(1, 2)), "visits", where, chance)


def joined(chance: random.Random, world: World) -> Question:
    """Return aggregates over joins with public rows, and with rows of the same unit."""
    left = chance.choice(("", "LEFT "))
    sources = {
        "visits v JOIN places p ON v.site = p.site": ("p.region", "SUM(p.rate * v.age)", "COUNT(p.rate)"),
        f"visits v {left}JOIN places p USING (site)": ("p.region", "SUM(p.rate)", "AVG(p.rate)"),
        f"visits v {left}JOIN guests g ON v.person = g.person": ("g.tier", "SUM(g.credit)", "AVG(v.age - g.credit)"),
        f"guests g {left}JOIN visits v USING (person)": ("g.tier", "SUM(g.credit)", "COUNT(v.age)"),
        "visits v JOIN guests g ON v.person IS NOT DISTINCT FROM g.person": ("g.tier", "COUNT(g.credit)", "COUNT(*)"),
        "visits v JOIN visits w ON v.person = w.person AND v.seen < w.seen": ("w.plan", "SUM(w.age)", "COUNT(*)"),
        "visits v JOIN (VALUES ('n', 2), ('s', 3)) AS f(site, weight) ON v.site = f.site": (
            "f.weight", "SUM(f.weight)", "COUNT(*)"),
        f"visits v {left}JOIN (VALUES ('n', 2), ('s', 3), ('w', 7)) AS f(site, weight) USING (site)": (
            "f.weight", "SUM(f.weight)", "COUNT(f.weight)"),
        "generate_series(0, 40, 10) AS g(step) JOIN visits v ON v.age BETWEEN g.step AND g.step + 15": (
            "g.step", "SUM(v.age - g.step)", "COUNT(*)"),
        "visits v CROSS JOIN UNNEST([1, 2, 3]) AS t(copy)": ("t.copy", "SUM(t.copy)", "COUNT(*)"),
        "visits v CROSS JOIN LATERAL (VALUES ('x', v.age), ('y', v.pay), ('z', 4)) AS l(word, y)": (
            "l.word", "SUM(l.y)", "COUNT(l.y)"),
        "visits v, LATERAL (SELECT v.age > 20 AS old, v.pay - 1 AS less) AS l": (
            "l.old", "SUM(l.less)", "COUNT(l.less)"),
        "places p JOIN visits v ON v.age >= p.rate AND v.age < p.rate + 9": ("p.region", "SUM(p.rate)", "COUNT(*)"),
        f"visits v {left}JOIN places p ON v.day > p.opened AND v.pay > p.rate": ("p.region", "SUM(p.rate)", "COUNT(*)"),
    }  # fmt: skip
    source = chance.choice(tuple(sources))
    own, value, counted = sources[source]
    keys = chance.choice(([own], [own], ["v.plan"], []))
    if chance.random() < 0.3:
        keys = list(dict.fromkeys([*keys, "v.plan"]))
    aggregates = [chance.choice((value, counted, aggregate(chance, world, "v."))) for _ in range(2)]
    return _grouped(keys, aggregates, source, _where(chance, world, "v.", 0.4), chance)


def of_units(chance: random.Random, world: World) -> Question:
    """Return aggregates over what a subquery makes of the rows of each unit."""
    where, least = _where(chance, world), chance.randint(0, 3)
    value = number(chance, world)
    per = chance.choice(("COUNT(*)", f"SUM({value})", f"MAX({value})", f"MIN({value})", "COUNT(DISTINCT plan)"))
    order = "seen, pay, age, plan, site, day, note, member"
    subqueries = (
        f"(SELECT person, {per} AS x FROM visits{where} GROUP BY person) u",
        f"(SELECT person, plan, {per} AS x FROM visits{where} GROUP BY person, plan) u",
        f"(SELECT DISTINCT ON (person) person, plan, age AS x FROM visits{where} ORDER BY person, {order}) u",
        f"(SELECT person, plan, age AS x FROM visits{where} "
        f"QUALIFY ROW_NUMBER() OVER (PARTITION BY person ORDER BY {order}) <= {least + 1}) u",
        f"(SELECT person, age - LAG(age) OVER (PARTITION BY person ORDER BY {order}) AS x FROM visits) u",
        f"(SELECT DISTINCT person, plan, site AS x FROM visits{where}) u",
        "guests g CROSS JOIN LATERAL (SELECT SUM(v.age) AS x FROM visits v WHERE v.person = g.person) u",
        f"guests g LEFT JOIN LATERAL (SELECT v.age AS x FROM visits v WHERE v.person = g.person "
        f"ORDER BY {', '.join('v.' + name for name in order.split(', '))} LIMIT {least + 1}) u ON TRUE",
    )
    place = chance.randrange(len(subqueries))
    if place == 5:
        return Question(text=f"SELECT x AS k0, COUNT(*) AS a0 FROM {subqueries[place]} GROUP BY x")
    keys = ["plan"] if place in (1, 2, 3) and chance.random() < 0.5 else []
    values = ["COUNT(*)", "COUNT(x)", "SUM(x)", "AVG(x)", f"COUNT_IF(x > {least})", "SUM(x) FILTER (WHERE x < 30)"]
    return _grouped(
        keys,
        chance.sample(values, 2),
        subqueries[place],
        f" WHERE x >= {least}" if chance.random() < 0.2 else "",
        chance,
    )


def members(chance: random.Random, world: World) -> Question:
    """Return aggregates of rows whose unit, or public row, is or is not in a subquery."""
    inner, word = condition(chance, world, "w."), chance.choice(("", "NOT "))
    conditions = (
        f"v.person {word}IN (SELECT w.person FROM visits w WHERE w.person IS NOT NULL AND {inner})",
        f"{word}EXISTS (SELECT 1 FROM visits w WHERE w.person = v.person AND {inner})",
        f"{word}EXISTS (SELECT 1 FROM guests g WHERE g.person = v.person AND g.credit > {chance.randint(0, 900)})",
        f"v.site {word}IN (SELECT site FROM places WHERE rate > {chance.randint(0, 9)})",
        f"v.age > (SELECT COUNT(*) FROM places WHERE rate < {chance.randint(0, 9)})",
        "v.age > (SELECT MAX(rate) FROM places)",
        "v.age > (SELECT AVG(w.age) FROM visits w WHERE w.person = v.person)",
        f"(SELECT COUNT(*) FROM visits w WHERE w.person = v.person AND {inner}) > {chance.randint(0, 2)}",
        f"(v.plan, v.site) IN (({literal(world.plans[0])}, 'n'), ({literal(world.plans[1])}, 's'))",
        "v.site IN (SELECT s FROM (VALUES ('n'), ('zz')) AS t(s))",
    )
    keys = chance.choice(([], ["v.plan"], ["v.site"]))
    return _grouped(keys, [aggregate(chance, world, "v.")], "visits v", f" WHERE {chance.choice(conditions)}", chance)


def spelled(chance: random.Random, world: World) -> Question:
    """Return a query in words that DuckDB does not know, beside the same in words that it does."""
    value, where = number(chance, world), _where(chance, world)
    span = chance.choice((5, 15, 60, 720))
    edges = (world.ages[0], world.ages[1], chance.randint(2, 6))
    buckets = (
        f"CASE WHEN age < {edges[0]} THEN 0 WHEN age >= {edges[1]} THEN {edges[2] + 1} "
        f"ELSE FLOOR((age - {edges[0]}) * {edges[2]} / {edges[1] - edges[0]}) + 1 END"
    )
    pairs = {
        f"SELECT [plan] AS k0, SUM({value}) AS a0 FROM [visits]{where} GROUP BY [plan]":
        f"SELECT plan AS k0, SUM({value}) AS a0 FROM visits{where} GROUP BY plan",
        "SELECT TOP 2 plan, COUNT(*) AS n FROM visits GROUP BY plan ORDER BY n DESC, plan":
        "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan ORDER BY n DESC, plan LIMIT 2",
        f"SELECT DATE_BIN('{span} minutes', seen, TIMESTAMP '2000-01-01') AS k0, COUNT(*) AS a0 FROM visits GROUP BY 1":
        f"SELECT TIME_BUCKET(INTERVAL '{span} minutes', seen, TIMESTAMP '2000-01-01') AS k0, COUNT(*) AS a0 "
        "FROM visits "
        "GROUP BY 1",
        f"SELECT TO_CHAR(seen, 'YYYY-MM') AS k0, COUNT(*) AS a0 FROM visits{where} GROUP BY 1":
        f"SELECT STRFTIME(seen, '%Y-%m') AS k0, COUNT(*) AS a0 FROM visits{where} GROUP BY 1",
        f"SELECT WIDTH_BUCKET(age, {edges[0]}, {edges[1]}, {edges[2]}) AS k0, COUNT(*) AS a0 FROM visits GROUP BY 1":
        f"SELECT {buckets} AS k0, COUNT(*) AS a0 FROM visits GROUP BY 1",
        f"SELECT IIF(member, 'y', 'no') AS k0, COUNT(*) AS a0 FROM dbo.visits{where} GROUP BY IIF(member, 'y', 'no')":
        f"SELECT IF(member, 'y', 'no') AS k0, COUNT(*) AS a0 FROM visits{where} GROUP BY 1",
        f"SELECT plan AS k0, COUNT(*) AS a0 FROM world.public.visits{where} GROUP BY plan FETCH FIRST 9 ROWS ONLY":
        f"SELECT plan AS k0, COUNT(*) AS a0 FROM visits{where} GROUP BY plan",
        f"SELECT plan AS k0, COUNT(*) AS a0 FROM visits{where} GROUP BY plan WITH ROLLUP":
        f"SELECT plan AS k0, COUNT(*) AS a0 FROM visits{where} GROUP BY ROLLUP (plan)",
        f"SELECT ISNULL(plan, 'no') AS k0, SUM(ZEROIFNULL(age)) AS a0 FROM visits{where} GROUP BY 1":
        f"SELECT COALESCE(plan, 'no') AS k0, SUM(COALESCE(age, 0)) AS a0 FROM visits{where} GROUP BY 1",
        f"SELECT DATEPART(month, seen) AS k0, AVG({value}) AS a0 FROM visits{where} GROUP BY DATEPART(month, seen)":
        f"SELECT MONTH(seen) AS k0, AVG({value}) AS a0 FROM visits{where} GROUP BY 1",
        "SELECT COUNT(*) AS a0 FROM visits WHERE TO_TIMESTAMP(age * 3600) < TIMESTAMP '1970-01-02'":
        "SELECT COUNT(*) AS a0 FROM visits WHERE age < 24",
        f"SELECT DATEADD(month, 1, day) AS k0, COUNT(*) AS a0 FROM visits{where} GROUP BY 1":
        f"SELECT day + INTERVAL 1 MONTH AS k0, COUNT(*) AS a0 FROM visits{where} GROUP BY 1",
        f"SELECT plan AS k0, COUNT(DISTINCT site) AS a0 FROM visits{where} GROUP BY ALL":
        f"SELECT plan AS k0, COUNT(DISTINCT site) AS a0 FROM visits{where} GROUP BY ALL",
    }  # fmt: skip
    text = chance.choice(tuple(pairs))
    return Question(text=text, theirs=pairs[text], ordered="TOP" in text)


def named_columns(chance: random.Random, world: World) -> Question:
    """Return aggregates over rows that meet named columns: of WITH f (p, w), of a list, and of both sides of USING."""
    left, weights = chance.choice(("", "LEFT ")), [chance.randint(-3, 9) for _ in world.sites]
    listed = ", ".join(f"({literal(site)}, {weight})" for site, weight in zip(world.sites, weights, strict=True))
    body = chance.choice((f"VALUES {listed}, (NULL, 5)", "SELECT site, rate FROM places WHERE rate > 1",
                          "SELECT site, SUM(rate) FROM places GROUP BY site", f"VALUES {listed}"))  # fmt: skip
    where = _where(chance, world, "v.", 0.3)
    clause = f"WITH f (s, w) AS ({body}) "
    on = chance.choice(("v.site = s", "s = v.site", "v.site = f.s", "(f.s = site)"))
    value = aggregate(chance, world, "v.")
    divided = f"v.age / {chance.choice(('12', '2.5', '-7'))}"
    texts = (
        f"{clause}SELECT {value} AS a0, SUM(w) AS a1 FROM visits v {left}JOIN f ON {on}{where}",
        f"{clause}SELECT COALESCE(f.w, -9) AS k0, COUNT(*) AS a0 FROM visits v {left}JOIN f ON {on}{where} GROUP BY 1",
        f"{clause}SELECT f.s AS k0, COUNT(v.age) AS a0 FROM visits v JOIN f ON {on} AND v.age > w{where} GROUP BY f.s",
        f"{clause}SELECT SUM(f.w) AS a0 FROM places p JOIN visits v ON v.site = p.site JOIN f ON p.site = f.s{where}",
        f"SELECT v.site AS k0, COUNT(p.site) AS a0 FROM visits v {left}JOIN places p USING (site){where} GROUP BY 1",
        "SELECT p.site AS k0, COUNT(v.site) AS a0 FROM places p LEFT JOIN visits v USING (site) GROUP BY p.site",
        f"SELECT COUNT(DISTINCT g.person) AS a0, COUNT(site) AS a1 FROM visits v JOIN guests g USING (person){where}",
        f"SELECT {divided} AS k0, COUNT(*) AS a0 FROM visits v{where} GROUP BY 1",
    )
    return Question(text=chance.choice(texts))


def truths(chance: random.Random, world: World) -> Question:
    """Return aggregates of rows by whether a condition is true, also where it is NULL, and EXISTS by a comparison."""
    words = ("IS TRUE", "IS NOT TRUE", "IS FALSE", "IS NOT FALSE")
    sign, most = chance.choice(("<", "<=", ">", ">=")), chance.randint(-1, 9)
    nothing = f"(SELECT {chance.choice(('MIN', 'MAX', 'AVG', 'SUM'))}(rate) FROM places WHERE rate > 99)"
    choices = [f"({condition(chance, world, depth=1)}) {chance.choice(words)}" for _ in range(3)]
    choices += [
        f"EXISTS (SELECT 1 FROM places p WHERE visits.{column} {sign} p.rate AND p.rate < {most})"
        for column in ("age", "pay")
    ]
    choices += [f"age {sign} {nothing}", f"NOT age {sign} 2 * {nothing}", f"age {sign} COALESCE({nothing}, {most})"]
    chosen = " AND ".join(chance.choice(("", "NOT ")) + one for one in chance.sample(choices, chance.choice((1, 1, 2))))
    keys = chance.choice(([], ["plan"], [f"({condition(chance, world, depth=0)}) {chance.choice(words)}"]))
    return _grouped(keys, [aggregate(chance, world)], "visits", f" WHERE {chosen}", chance)


ROWS: Final[dict[str, Callable[[random.Random, World], Question]]] = {
    "flat": flat, "times": times, "joined": joined, "of_units": of_units, "members": members, "spelled": spelled,
    "named_columns": named_columns, "truths": truths,
}  # fmt: skip

"""The law of the builder: what it says and what SQL says are one plan, text and all; so are their refusals."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import pytest

import lapwing as lw
from lapwing.builder.table import Table
from lapwing.builder.values import Value
from tests.support.builder.world import World, same

col = lw.col
Build = Callable[[World], Table[lw.Answer]]


def visits(world: World) -> Table[lw.Answer]:
    return world.table("visits")


def answers(build: Callable[[Table[lw.Answer]], Table[lw.Answer]]) -> Build:
    return lambda world: build(world.table("visits"))


PAIRS: list[tuple[str, Build]] = [
    ("SELECT COUNT(*) AS n FROM visits", answers(lambda t: t.agg(n=lw.count()))),
    ("SELECT COUNT(*) AS count FROM visits", answers(lambda t: t.count())),
    (
        "SELECT plan, COUNT(*) AS n, AVG(cost) AS cost FROM visits WHERE age > 30 GROUP BY plan",
        answers(lambda t: t.filter(col.age > 30).group_by("plan").agg(n=lw.count(), cost=lw.mean("cost"))),
    ),
    (
        "SELECT plan, COUNT(*) AS count FROM visits GROUP BY plan",
        answers(lambda t: t.group_by(col.plan).count()),
    ),
    (
        "SELECT plan, member, SUM(cost) AS s FROM visits GROUP BY plan, member",
        answers(lambda t: t.aggregate(s=col.cost.sum(), by=["plan", "member"])),
    ),
    # filters become WHERE, one after another
    (
        "SELECT COUNT(*) AS n FROM visits WHERE age > 30 AND cost < 100 AND member",
        answers(lambda t: t.filter(col.age > 30).filter(col.cost < 100, col.member).agg(n=lw.count())),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE age > 30 AND (plan = 'a' OR NOT member) AND NOT (age = 40 OR age = 50)",
        answers(
            lambda t: t.filter(
                (col.age > 30) & ((col.plan == "a") | ~col.member) & ~((col.age == 40) | (col.age == 50))
            ).agg(n=lw.count())
        ),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE plan IN ('a', 'it''s') AND age NOT IN (1, 2)",
        answers(lambda t: t.filter(col.plan.isin(["a", "it's"]), col.age.notin({1: 0, 2: 0})).agg(n=lw.count())),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE age BETWEEN 18 AND 61 AND cost IS NULL AND points IS NOT NULL",
        answers(lambda t: t.filter(col.age.between(18, 61), col.cost.isnull(), col.points.notnull()).agg(n=lw.count())),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE plan IS NOT DISTINCT FROM 'a' AND XOR(member, age > 3)",
        answers(lambda t: t.filter(col.plan.identical_to("a"), col.member ^ (col.age > 3)).agg(n=lw.count())),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE 30 < age",
        answers(lambda t: t.filter(lw.literal(30) < col.age).agg(n=lw.count())),
    ),
    ("SELECT COUNT(*) AS n FROM visits WHERE TRUE", answers(lambda t: t.filter(lw.literal(True)).agg(n=lw.count()))),
    # constants
    (
        "SELECT COUNT(*) AS n FROM visits WHERE cost > 0.1 AND share < -0.125 AND weight <> 1.5 AND points >= -7",
        answers(
            lambda t: t.filter(
                col.cost > 0.1, col.share < Fraction(-1, 8), col.weight != Decimal("1.50"), col.points >= -7
            ).agg(n=lw.count())
        ),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE born < DATE '1970-01-01' AND seen >= TIMESTAMP '2020-02-29 12:00:00.5'",
        answers(
            lambda t: t.filter(
                col.born < date(1970, 1, 1), col.seen >= datetime(2020, 2, 29, 12, 0, 0, 500_000, tzinfo=UTC)
            ).agg(n=lw.count())
        ),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE member = TRUE AND note <> 'a''b\"c\\d -- /* ; $x ? :y'",
        answers(lambda t: t.filter(col.member == True, col.note != "a'b\"c\\d -- /* ; $x ? :y").agg(n=lw.count())),  # noqa: E712
    ),
    # arithmetic
    (
        "SELECT SUM((age + 1) * 2 - age * (3 - 1)) AS s, SUM(1 - (age - 1) - (2 - age)) AS u FROM visits",
        answers(
            lambda t: t.agg(
                s=((col.age + 1) * 2 - col.age * (lw.literal(3) - 1)).sum(),
                u=(1 - (col.age - 1) - (2 - col.age)).sum(),
            )
        ),
    ),
    (
        "SELECT AVG(-cost / 2) AS a, AVG(-(-age)) AS b, AVG(age - -5) AS c, AVG(2 / (cost + 1)) AS d FROM visits",
        answers(
            lambda t: t.agg(
                a=(-col.cost / 2).mean(),
                b=(-(-col.age)).mean(),  # noqa: B002
                c=(col.age - -5).mean(),
                d=(2 / (col.cost + 1)).mean(),
            )
        ),
    ),
    (
        "SELECT AVG(age % 10) AS a, AVG(POWER(age, 2)) AS b, AVG(FLOOR(age / 10)) AS c, AVG(-(5)) AS d, "
        "AVG(-(-5)) AS e FROM visits",
        answers(
            lambda t: t.agg(
                a=(col.age % 10).mean(),
                b=(col.age**2).mean(),
                c=(col.age // 10).mean(),
                d=lw.literal(-5).mean(),
                e=(-lw.literal(-5)).mean(),
            )
        ),
    ),
    (
        "SELECT SUM(ABS(share)) AS a, SUM(ROUND(cost)) AS b, SUM(ROUND(cost, 1)) AS c, SUM(CEIL(cost)) AS d, "
        "SUM(SIGN(share)) AS e, SUM(TRUNC(cost)) AS f FROM visits",
        answers(
            lambda t: t.agg(
                a=col.share.abs().sum(),
                b=col.cost.round().sum(),
                c=col.cost.round(1).sum(),
                d=col.cost.ceil().sum(),
                e=col.share.sign().sum(),
                f=col.cost.trunc().sum(),
            )
        ),
    ),
    (
        "SELECT AVG(SQRT(cost)) AS a, AVG(LN(1 + cost)) AS b, AVG(LOG2(1 + cost)) AS c, AVG(LOG10(1 + cost)) AS d, "
        "AVG(EXP(share)) AS e, AVG(LOG(3, 1 + cost)) AS f FROM visits",
        answers(
            lambda t: t.agg(
                a=col.cost.sqrt().mean(),
                b=(1 + col.cost).ln().mean(),
                c=(1 + col.cost).log2().mean(),
                d=(1 + col.cost).log10().mean(),
                e=col.share.exp().mean(),
                f=(1 + col.cost).log(3).mean(),
            )
        ),
    ),
    (
        "SELECT AVG(SIN(share)) AS a, AVG(COS(share)) AS b, AVG(ATAN(share)) AS c, AVG(DEGREES(share)) AS d, "
        "AVG(RADIANS(share)) AS e, AVG(WIDTH_BUCKET(age, 0, 100, 10)) AS f FROM visits",
        answers(
            lambda t: t.agg(
                a=col.share.sin().mean(),
                b=col.share.cos().mean(),
                c=col.share.atan().mean(),
                d=col.share.degrees().mean(),
                e=col.share.radians().mean(),
                f=col.age.width_bucket(0, 100, 10).mean(),
            )
        ),
    ),
    (
        "SELECT SUM(LEAST(GREATEST(weight, 0), 100)) AS s, SUM(LEAST(cost, 10)) AS u FROM visits",
        answers(lambda t: t.agg(s=col.weight.clip(0, 100).sum(), u=col.cost.clip(upper=10).sum())),
    ),
    # choices
    (
        "SELECT SUM(CASE WHEN member THEN cost ELSE 0 END) AS s, SUM(CASE WHEN age > 3 THEN 1 END) AS u FROM visits",
        answers(lambda t: t.agg(s=col.member.ifelse(col.cost, 0).sum(), u=lw.ifelse(col.age > 3, 1).sum())),
    ),
    (
        "SELECT SUM(CASE WHEN age < 10 THEN 1 WHEN age < 20 THEN 2 ELSE 3 END) AS s, "
        "SUM(CASE plan WHEN 'a' THEN 5 WHEN 'b' THEN 6 END) AS u FROM visits",
        answers(
            lambda t: t.agg(
                s=lw.cases((col.age < 10, 1), (col.age < 20, 2), else_=3).sum(),
                u=col.plan.cases(("a", 5), ("b", 6)).sum(),
            )
        ),
    ),
    (
        "SELECT SUM(COALESCE(cost, 0)) AS a, SUM(COALESCE(cost, age, 1)) AS b, SUM(NULLIF(age, 3)) AS c, "
        "SUM(LEAST(age, 5)) AS d, SUM(GREATEST(age, cost)) AS e FROM visits",
        answers(
            lambda t: t.agg(
                a=col.cost.fill_null(0).sum(),
                b=lw.coalesce(col.cost, col.age, 1).sum(),
                c=col.age.nullif(3).sum(),
                d=lw.least(col.age, 5).sum(),
                e=lw.greatest(col.age, col.cost).sum(),
            )
        ),
    ),
    (
        "SELECT SUM(CAST(cost AS INTEGER)) AS a, SUM(CAST(member AS BIGINT)) AS b, AVG(CAST(age AS DOUBLE)) AS c, "
        "COUNT(TRY_CAST(note AS DATE)) AS d FROM visits",
        answers(
            lambda t: t.agg(
                a=col.cost.cast("int32").sum(),
                b=col.member.cast(int).sum(),
                c=col.age.cast(float).mean(),
                d=col.note.try_cast("date").count(),
            )
        ),
    ),
    # texts
    (
        "SELECT COUNT(*) AS n FROM visits WHERE UPPER(note) = 'X' AND LOWER(note) <> 'y' AND TRIM(note) = LTRIM(note) "
        "AND RTRIM(note) = 'z' AND LENGTH(note) > 2 AND REVERSE(note) = 'b'",
        answers(
            lambda t: t.filter(
                col.note.upper() == "X",
                col.note.lower() != "y",
                col.note.strip() == col.note.lstrip(),
                col.note.rstrip() == "z",
                col.note.length() > 2,
                col.note.reverse() == "b",
            ).agg(n=lw.count())
        ),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE LEFT(note, 1) = 'a' AND RIGHT(note, 2) = 'b' AND "
        "SUBSTRING(note, 2, 3) = 'c' AND LPAD(note, 4, '0') = 'd' AND RPAD(note, 4, ' ') = 'e' AND "
        "REPLACE(note, 'a', 'b') = 'f' AND SPLIT_PART(note, '-', 2) = 'g'",
        answers(
            lambda t: t.filter(
                col.note.left(1) == "a",
                col.note.right(2) == "b",
                col.note.substr(1, 3) == "c",
                col.note.lpad(4, "0") == "d",
                col.note.rpad(4) == "e",
                col.note.replace("a", "b") == "f",
                col.note.split_part("-", 2) == "g",
            ).agg(n=lw.count())
        ),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE plan || '-' || note = 'a-b' AND 'x' || note = 'xy' AND "
        "STRPOS(note, 'a') = 1 AND CONTAINS(note, 'a') AND STARTS_WITH(note, 'a') AND ENDS_WITH(note, 'b')",
        answers(
            lambda t: t.filter(
                col.plan.concat("-", col.note) == "a-b",
                "x" + col.note == "xy",
                col.note.strpos("a") == 1,
                col.note.contains("a"),
                col.note.startswith("a"),
                col.note.endswith("b"),
            ).agg(n=lw.count())
        ),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE note LIKE 'a%' AND note ILIKE '%B' AND NOT note LIKE '_' AND "
        "REGEXP_MATCHES(note, '^a') AND REGEXP_FULL_MATCH(note, 'a+') AND REGEXP_EXTRACT(note, '(a)b', 1) = 'a' AND "
        "REGEXP_REPLACE(note, 'a', 'b', 'g') = 'b'",
        answers(
            lambda t: t.filter(
                col.note.like("a%"),
                col.note.ilike("%B"),
                ~col.note.like("_"),
                col.note.re_search("^a"),
                col.note.re_fullmatch("a+"),
                col.note.re_extract("(a)b", 1) == "a",
                col.note.re_replace("a", "b") == "b",
            ).agg(n=lw.count())
        ),
    ),
    # dates
    (
        "SELECT AVG(YEAR(born)) AS a, AVG(MONTH(born)) AS b, AVG(DAY(born)) AS c, AVG(QUARTER(born)) AS d, "
        "AVG(WEEK(born)) AS e, AVG(DAYOFYEAR(born)) AS f, AVG(ISODOW(born)) AS g FROM visits",
        answers(
            lambda t: t.agg(
                a=col.born.year().mean(),
                b=col.born.month().mean(),
                c=col.born.day().mean(),
                d=col.born.quarter().mean(),
                e=col.born.week_of_year().mean(),
                f=col.born.day_of_year().mean(),
                g=col.born.isodow().mean(),
            )
        ),
    ),
    (
        "SELECT AVG(HOUR(seen)) AS a, AVG(MINUTE(seen)) AS b, AVG(SECOND(seen)) AS c, AVG(EPOCH(seen)) AS d "
        "FROM visits",
        answers(
            lambda t: t.agg(
                a=col.seen.hour().mean(),
                b=col.seen.minute().mean(),
                c=col.seen.second().mean(),
                d=col.seen.epoch_seconds().mean(),
            )
        ),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE MONTHNAME(born) = 'May' AND DAYNAME(born) = 'Monday' AND "
        "CAST(seen AS DATE) = LAST_DAY(born) AND DATE_TRUNC('month', born) = born AND STRFTIME(born, '%Y') = '1999'",
        answers(
            lambda t: t.filter(
                col.born.monthname() == "May",
                col.born.dayname() == "Monday",
                col.seen.date() == col.born.last_day(),
                col.born.truncate("month") == col.born,
                col.born.strftime("%Y") == "1999",
            ).agg(n=lw.count())
        ),
    ),
    (
        "SELECT AVG(DATE_DIFF('day', DATE '2000-01-01', born)) AS a, AVG(day - born) AS b, COUNT(*) AS n FROM visits "
        "WHERE born + INTERVAL 3 MONTH > DATE '1990-01-01' AND born - INTERVAL (2) YEAR < seen AND "
        "born + INTERVAL 7 DAY < seen",
        answers(
            lambda t: t.filter(
                col.born + lw.interval(months=3) > date(1990, 1, 1),
                col.born - lw.interval(years=2) < col.seen,
                col.born + timedelta(days=7) < col.seen,
            ).agg(a=col.born.delta(date(2000, 1, 1), "day").mean(), b=(col.day - col.born).mean(), n=lw.count())
        ),
    ),
    # aggregates
    (
        "SELECT COUNT(cost) AS a, COUNT(DISTINCT person) AS b, COUNT(DISTINCT note) AS c, COUNT_IF(age > 3) AS d "
        "FROM visits",
        answers(
            lambda t: t.agg(
                a=lw.count("cost"), b=lw.nunique("person"), c=col.note.nunique(), d=lw.count_where(col.age > 3)
            )
        ),
    ),
    (
        "SELECT VAR_SAMP(age) AS a, VAR_POP(age) AS b, STDDEV(age) AS c, STDDEV_POP(age) AS d, "
        "COVAR_SAMP(age, cost) AS e, COVAR_POP(age, cost) AS f, CORR(age, cost) AS g FROM visits",
        answers(
            lambda t: t.agg(
                a=lw.var("age"),
                b=lw.var("age", how="pop"),
                c=lw.std("age"),
                d=col.age.std("pop"),
                e=lw.cov("age", "cost"),
                f=lw.cov("age", "cost", how="pop"),
                g=lw.corr("age", "cost"),
            )
        ),
    ),
    (
        "SELECT MEDIAN(age) AS a, QUANTILE_CONT(age, 0.25) AS b, MIN(age) AS c, MAX(age) AS d FROM visits",
        answers(lambda t: t.agg(a=lw.median("age"), b=lw.quantile("age", 0.25), c=lw.min("age"), d=lw.max("age"))),
    ),
    (
        "SELECT COUNT(*) FILTER (WHERE member) AS a, SUM(cost) FILTER (WHERE age > 3 AND member) AS b, "
        "AVG(cost) FILTER (WHERE plan = 'a') AS c FROM visits",
        answers(
            lambda t: t.agg(
                a=lw.count(where=col.member),
                b=lw.sum("cost", where=(col.age > 3) & col.member),
                c=lw.mean("cost", where=col.plan == "a"),
            )
        ),
    ),
    (
        "SELECT SUM(weight, contribution_bounds_per_row => (-1, 2.5)) AS a, "
        "SUM(cost, contribution_bounds_per_group => (0, 100)) AS b, COUNT(*, epsilon => 0.1) AS c FROM visits",
        answers(
            lambda t: t.agg(
                a=lw.sum("weight", contribution_bounds_per_row=(-1, 2.5)),
                b=lw.sum("cost", contribution_bounds_per_group=(0, 100)),
                c=lw.count(epsilon=0.1),
            )
        ),
    ),
    (
        "SELECT SUM(cost, contribution_bounds_per_group => AUTO) AS b FROM visits",
        answers(lambda t: t.agg(b=lw.sum("cost", contribution_bounds_per_group="auto"))),
    ),
    (
        "SELECT SUM(cost, contribution_bounds_per_group => RACE) AS b FROM visits",
        answers(lambda t: t.agg(b=lw.sum("cost", contribution_bounds_per_group="race"))),
    ),
    (
        "SELECT SUM(cost, contribution_bounds_per_row => AUTO) AS b FROM visits",
        answers(lambda t: t.agg(b=lw.sum("cost", contribution_bounds_per_row="auto"))),
    ),
    (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.2, max_rows_contributed = 2, "
        "privacy_unit_column = person) plan, SUM(cost) AS s FROM visits GROUP BY plan",
        answers(
            lambda t: (
                t.group_by("plan")
                .agg(s=lw.sum("cost"))
                .options(epsilon=0.2, max_rows_contributed=2, privacy_unit_column="person")
            )
        ),
    ),
    (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (delta = 1e-6, min_privacy_units_per_group = 5, "
        "group_selection_strategy = LAPLACE_THRESHOLD, group_selection_epsilon = 0.1) note, COUNT(*) AS n "
        "FROM visits GROUP BY note",
        answers(
            lambda t: (
                t.group_by("note")
                .agg(n=lw.count())
                .options(
                    delta=1e-6,
                    min_privacy_units_per_group=5,
                    group_selection_strategy="LAPLACE_THRESHOLD",
                    group_selection_epsilon=Decimal("0.1"),
                )
            )
        ),
    ),
    # keys
    (
        "SELECT FLOOR(age / 10) AS decade, COUNT(*) AS n FROM visits GROUP BY FLOOR(age / 10)",
        answers(lambda t: t.group_by(decade=col.age // 10).agg(n=lw.count())),
    ),
    (
        "SELECT FLOOR(age / 10) * 10 AS decade, COUNT(*) AS n FROM visits GROUP BY FLOOR(age / 10)",
        answers(
            lambda t: (
                t.group_by((col.age // 10).name("tenth")).agg(n=lw.count()).select((col.tenth * 10).name("decade"), "n")
            )
        ),
    ),
    (
        "SELECT age >= 18 AS adult, plan, COUNT(*) AS n FROM visits GROUP BY age >= 18, plan",
        answers(lambda t: t.mutate(adult=col.age >= 18).group_by("adult", "plan").agg(n=lw.count())),
    ),
    (
        "SELECT plan, member, COUNT(*) AS n, GROUPING(member) AS g FROM visits GROUP BY ROLLUP (plan, member)",
        answers(lambda t: t.group_by(lw.rollup("plan", "member")).agg(n=lw.count()).mutate(g=lw.grouping("member"))),
    ),
    (
        "SELECT plan, member, COUNT(*) AS n FROM visits GROUP BY CUBE (plan, member)",
        answers(lambda t: t.group_by(lw.cube("plan", "member")).agg(n=lw.count())),
    ),
    (
        "SELECT plan, member, floor, COUNT(*) AS n FROM visits GROUP BY floor, "
        "GROUPING SETS ((plan, member), plan, ())",
        answers(
            lambda t: (
                t.group_by("floor", lw.grouping_sets(["plan", "member"], "plan", []))
                .agg(n=lw.count())
                .select("plan", "member", "floor", "n")
            )
        ),
    ),
    # the answer
    (
        "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan HAVING COUNT(*) > 10 AND plan <> 'a' "
        "ORDER BY n DESC, plan LIMIT 2 OFFSET 1",
        answers(
            lambda t: (
                t.group_by("plan")
                .agg(n=lw.count())
                .filter(col.n > 10)
                .filter(col.plan != "a")
                .order_by(lw.desc("n"), "plan")
                .limit(2, offset=1)
            )
        ),
    ),
    (
        "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan ORDER BY n DESC NULLS FIRST, plan NULLS FIRST LIMIT 5",
        answers(
            lambda t: (
                t.group_by("plan")
                .count()
                .rename(n="count")
                .order_by(lw.desc("n", nulls_first=True), lw.asc("plan", nulls_first=True))
                .head()
            )
        ),
    ),
    (
        "SELECT plan, SUM(cost) AS s, COUNT(*) AS n, s / n AS each FROM visits GROUP BY plan HAVING each > 3",
        answers(
            lambda t: (
                t.group_by("plan").agg(s=lw.sum("cost"), n=lw.count()).mutate(each=col.s / col.n).filter(col.each > 3)
            )
        ),
    ),
    (
        "SELECT AVG(cost) * 2 AS cost, plan FROM visits GROUP BY plan ORDER BY AVG(cost) * 2",
        answers(
            lambda t: (
                t.group_by("plan")
                .agg(cost=lw.mean("cost"))
                .mutate(cost=col.cost * 2)
                .order_by("cost")
                .select("cost", "plan")
            )
        ),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits GROUP BY plan ORDER BY plan",
        answers(lambda t: t.group_by("plan").agg(n=lw.count()).order_by("plan").drop("plan")),
    ),
    (
        "SELECT ROUND(100.0 * COUNT_IF(member) / COUNT(*), 1) AS percent FROM visits",
        answers(lambda t: t.agg(percent=(lw.literal(100) * lw.count_where(col.member) / lw.count()).round(1))),
    ),
    (
        "SELECT plan, COUNT(*) AS n, DP_INTERVAL_LOW(n) AS least, DP_INTERVAL_HIGH(n) AS most FROM visits "
        "GROUP BY plan HAVING DP_INTERVAL_LOW(n) > 10",
        answers(
            lambda t: (
                t.group_by("plan")
                .agg(n=lw.count())
                .filter(col.n.interval_low() > 10)
                .mutate(least=col.n.interval_low(), most=col.n.interval_high())
            )
        ),
    ),
    # columns before the aggregation
    (
        "SELECT SUM(net) AS s FROM (SELECT cost - share AS net, person, age FROM visits) WHERE net > 3 AND age < 9",
        answers(
            lambda t: (
                t.mutate(net=col.cost - col.share).drop("town").filter(col.net > 3, col.age < 9).agg(s=lw.sum("net"))
            )
        ),
    ),
    (
        "SELECT COUNT(DISTINCT who) AS people, AVG(years) AS years FROM "
        "(SELECT person AS who, age AS years FROM visits)",
        answers(lambda t: t.rename(who="person", years="age").agg(people=lw.nunique("who"), years=lw.mean("years"))),
    ),
    (
        "SELECT COUNT(*) AS n FROM (SELECT DISTINCT person, plan FROM visits WHERE age > 3) WHERE plan = 'a'",
        answers(
            lambda t: (
                t.filter(col.age > 3).select("person", "plan").distinct().filter(col.plan == "a").agg(n=lw.count())
            )
        ),
    ),
    (
        "SELECT COUNT_IF(kind = 'x') AS n FROM (SELECT *, 'x' AS kind FROM visits)",
        answers(lambda t: t.mutate(kind="x").agg(n=lw.count_where(col.kind == "x"))),
    ),
    # one row a unit first
    (
        "SELECT years, COUNT(*) AS people FROM (SELECT person, COUNT(*) AS years FROM visits GROUP BY person) "
        "GROUP BY years",
        answers(lambda t: t.group_by("person").agg(years=lw.count()).group_by("years").agg(people=lw.count())),
    ),
    (
        "SELECT SUM(LEAST(spent, 8000)) AS s FROM (SELECT person, SUM(cost) AS spent FROM visits GROUP BY person "
        "HAVING COUNT(*) > 1)",
        answers(
            lambda t: (
                t.group_by("person")
                .agg(spent=lw.sum("cost"), times=lw.count())
                .filter(col.times > 1)
                .select("person", "spent")
                .agg(s=col.spent.clip(upper=8000).sum())
            )
        ),
    ),
    (
        "SELECT old, COUNT(*) AS n FROM (SELECT person, MAX(age) > 60 AS old, BOOL_OR(member) AS some, "
        "BOOL_AND(member) AS every, COUNT(DISTINCT plan) AS plans FROM visits GROUP BY person) "
        "WHERE some AND NOT every AND plans < 3 GROUP BY old",
        answers(
            lambda t: (
                t.group_by("person")
                .agg(
                    old=lw.max("age") > 60,
                    some=col.member.any(),
                    every=col.member.all(),
                    plans=lw.nunique("plan"),
                )
                .filter(col.some, ~col.every, col.plans < 3)
                .group_by("old")
                .agg(n=lw.count())
            )
        ),
    ),
    (
        "SELECT plan, AVG(times) AS times FROM (SELECT person, plan, COUNT(*) AS times FROM visits "
        "GROUP BY person, plan) GROUP BY plan",
        answers(
            lambda t: t.group_by("person", "plan").agg(times=lw.count()).group_by("plan").agg(times=lw.mean("times"))
        ),
    ),
    # windows within a unit
    (
        "SELECT plan, COUNT(*) AS n FROM (SELECT * FROM visits QUALIFY "
        "ROW_NUMBER() OVER (PARTITION BY person ORDER BY seen) = 1) GROUP BY plan",
        answers(
            lambda t: (
                t.filter(lw.row_number().over(group_by="person", order_by="seen") == 1)
                .group_by("plan")
                .agg(n=lw.count())
            )
        ),
    ),
    (
        "SELECT COUNT_IF(more > 0) AS up FROM (SELECT age - LAG(age) OVER (PARTITION BY person ORDER BY seen DESC) "
        "AS more FROM visits)",
        answers(
            lambda t: t.mutate(more=col.age - col.age.lag().over(group_by="person", order_by=lw.desc("seen"))).agg(
                up=lw.count_where(col.more > 0)
            )
        ),
    ),
    (
        "SELECT COUNT(*) AS n FROM (SELECT RANK() OVER (PARTITION BY person, plan ORDER BY age, cost DESC) AS r, "
        "LEAD(age, 2, 0) OVER (PARTITION BY person ORDER BY age) AS l, DENSE_RANK() OVER (PARTITION BY person "
        "ORDER BY age) AS d, SUM(cost) OVER (PARTITION BY person) AS s FROM visits WHERE member) "
        "WHERE r = 1 AND l < 5 AND d < 2 AND s > 9",
        answers(
            lambda t: (
                t.filter(col.member)
                .mutate(
                    r=lw.rank().over(group_by=["person", "plan"], order_by=["age", lw.desc("cost")]),
                    l=col.age.lead(2, 0).over(group_by="person", order_by=col.age),
                    d=lw.dense_rank().over(group_by="person", order_by="age"),
                    s=col.cost.sum().over(group_by=col.person),
                )
                .filter(col.r == 1, col.l < 5, col.d < 2, col.s > 9)
                .agg(n=lw.count())
            )
        ),
    ),
    # joins to public tables, unions, views
    (
        "SELECT tier, COUNT(DISTINCT person) AS people FROM visits JOIN codes USING (plan) GROUP BY tier",
        lambda w: visits(w).join(w.table("codes"), "plan").group_by("tier").agg(people=lw.nunique("person")),
    ),
    (
        "SELECT plan, SUM(factor) AS s FROM visits JOIN codes USING (plan, floor) GROUP BY plan",
        lambda w: visits(w).join(w.table("codes"), ["plan", "floor"]).group_by("plan").agg(s=lw.sum("factor")),
    ),
    (
        "SELECT tier, COUNT(*) AS n FROM visits LEFT JOIN codes ON visits.plan = codes.plan AND codes.factor > 1 "
        "WHERE codes.floor = 0 GROUP BY tier",
        lambda w: (
            visits(w)
            .left_join(w.table("codes").filter(col.factor > 1), [("plan", "plan")])
            .filter(col.floor_right == 0)
            .group_by("tier")
            .agg(n=lw.count())
        ),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits JOIN codes ON UPPER(visits.plan) = codes.tier AND visits.floor = codes.floor",
        lambda w: (
            visits(w)
            .join(w.table("codes"), [(col.plan.upper(), "tier"), (col.floor, col.floor)], rname="code_{name}")
            .agg(n=lw.count())
        ),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE plan IN (SELECT plan FROM codes WHERE tier = 'gold')",
        lambda w: (
            visits(w).semi_join(w.table("codes").filter(col.tier == "gold").select("plan"), "plan").agg(n=lw.count())
        ),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits ANTI JOIN codes USING (plan)",
        lambda w: visits(w).anti_join(w.table("codes"), "plan").agg(n=lw.count()),
    ),
    # tables of the same people
    (
        "SELECT COUNT(*) AS n, SUM(b.cost) AS s FROM visits AS a JOIN visits AS b USING (person)",
        lambda w: visits(w).join(visits(w), "person").agg(n=lw.count(), s=lw.sum("cost_right")),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits AS a JOIN (SELECT person AS who, age AS years FROM visits) AS b "
        "ON a.person = b.who WHERE years > 3",
        lambda w: (
            visits(w)
            .join(
                visits(w).select(col.person.name("who"), years="age"),
                [("person", "who")],
            )
            .filter(col.years > 3)
            .agg(n=lw.count())
        ),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits AS a SEMI JOIN (SELECT * FROM visits WHERE age > 3) AS b USING (person)",
        lambda w: visits(w).semi_join(visits(w).filter(col.age > 3), "person").agg(n=lw.count()),
    ),
    (
        "SELECT COUNT(*) AS n FROM (SELECT person, plan FROM visits WHERE age > 3 UNION ALL "
        "SELECT person, plan FROM visits WHERE member) WHERE plan = 'a'",
        lambda w: (
            visits(w)
            .filter(col.age > 3)
            .select("person", "plan")
            .union(visits(w).filter(col.member).select("plan", "person"))
            .filter(col.plan == "a")
            .agg(n=lw.count())
        ),
    ),
    (
        "SELECT COUNT(*) AS n FROM (SELECT person, plan FROM visits WHERE age > 3 UNION "
        "SELECT person, plan FROM visits WHERE member)",
        lambda w: (
            visits(w)
            .filter(col.age > 3)
            .select("person", "plan")
            .union(visits(w).filter(col.member).select("person", "plan"), distinct=True)
            .agg(n=lw.count())
        ),
    ),
    ("SELECT COUNT(*) AS n FROM adults", lambda w: w.table("adults").agg(n=lw.count())),
    (
        "SELECT plan, SUM(spent) AS s FROM spending WHERE times < 3 GROUP BY plan",
        lambda w: w.table("spending").filter(col.times < 3).group_by("plan").agg(s=lw.sum("spent")),
    ),
    (
        "SELECT choice, SUM(weight) AS s FROM ballots GROUP BY choice",
        lambda w: w.table("ballots").group_by("choice").agg(s=lw.sum("weight")),
    ),
    (
        "SELECT DISTINCT plan, COUNT(*) AS n FROM visits GROUP BY plan",
        answers(lambda t: t.group_by("plan").agg(n=lw.count()).distinct()),
    ),
]


def test_there_are_enough() -> None:
    assert len(PAIRS) >= 60


@pytest.mark.parametrize(("text", "build"), PAIRS, ids=[text[:70] for text, _ in PAIRS])
def test_same_plan(world: World, text: str, build: Build) -> None:
    question = build(world)
    assert not same(world.plan(text), world.plan(question)), question.to_sql()


REFUSED: list[tuple[str, Build]] = [
    ("SELECT * FROM visits", visits),
    ("SELECT * FROM visits WHERE age > 3", answers(lambda t: t.filter(col.age > 3))),
    ("SELECT person, COUNT(*) AS n FROM visits GROUP BY person", answers(lambda t: t.group_by("person").count())),
    ("SELECT SUM(weight) AS s FROM visits", answers(lambda t: t.agg(s=lw.sum("weight")))),
    ("SELECT SUM(plan) AS s FROM visits", answers(lambda t: t.agg(s=lw.sum("plan")))),
    ("SELECT COUNT(*) AS n FROM visits WHERE age", answers(lambda t: t.filter(col.age).agg(n=lw.count()))),
    ("SELECT COUNT(*) AS n FROM visits WHERE age = 'x'", answers(lambda t: t.filter(col.age == "x").agg(n=lw.count()))),
    (
        "SELECT COUNT(*) AS n FROM (SELECT * FROM visits LIMIT 10)",
        answers(lambda t: t.limit(10).agg(n=lw.count())),
    ),
    (
        "SELECT COUNT(*) AS n FROM (SELECT * FROM visits ORDER BY age)",
        answers(lambda t: t.order_by("age").agg(n=lw.count())),
    ),
    (
        "SELECT COUNT(*) AS n FROM (SELECT DISTINCT plan FROM visits)",
        answers(lambda t: t.select("plan").distinct().agg(n=lw.count())),
    ),
    (
        "SELECT COUNT(*) AS n FROM (SELECT ROW_NUMBER() OVER (PARTITION BY plan ORDER BY age) AS r FROM visits)",
        answers(
            lambda t: t.mutate(r=lw.row_number().over(group_by="plan", order_by="age")).select("r").agg(n=lw.count())
        ),
    ),
    (
        "SELECT COUNT(*) AS n FROM ballots JOIN visits ON ballots.weight = visits.age",
        lambda w: w.table("ballots").join(visits(w), [("weight", "age")]).agg(n=lw.count()),
    ),
    ("SELECT COUNT(*) AS n FROM codes", lambda w: w.table("codes").agg(n=lw.count())),
    ("SELECT BOOL_OR(member) AS n FROM visits", answers(lambda t: t.agg(n=col.member.any()))),
    (
        "SELECT COUNT(*, contribution_bounds_per_row => (0, 1)) AS n FROM visits",
        answers(lambda t: t.agg(n=lw.count(contribution_bounds_per_row=(0, 1)))),
    ),
    (
        "SELECT COUNT(*) AS n FROM (SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1) person, COUNT(*) AS k "
        "FROM visits GROUP BY person)",
        answers(lambda t: t.group_by("person").agg(k=lw.count()).options(epsilon=1).agg(n=lw.count())),
    ),
    (
        "SELECT AVG(share / 0.0 - weight) AS s FROM visits",
        answers(lambda t: t.agg(s=(col.share / 0 - col.weight).mean())),
    ),
]


@pytest.mark.parametrize(("text", "build"), REFUSED, ids=[text[:70] for text, _ in REFUSED])
def test_same_refusal(world: World, text: str, build: Build) -> None:
    assert world.refusal(text) == world.refusal(build(world))


def test_a_difference_is_noticed(world: World) -> None:
    plan = world.plan("SELECT COUNT(*) AS n FROM visits WHERE age > 3")
    for other in ("age >= 3", "age > 4", "cost > 3", "age > 3 OR member"):
        assert same(plan, world.plan(f"SELECT COUNT(*) AS n FROM visits WHERE {other}"))
    assert same(plan, world.plan("SELECT COUNT(*) AS m FROM visits WHERE age > 3")) == ["outputs"]


def test_a_value_is_not_hashed() -> None:
    with pytest.raises(TypeError):
        hash(Value(col.age.node))

"""What an expression says and what SQL says: one plan, or the same noise at the same price; and one refusal."""

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import ibis
import pytest
from ibis import _
from tests.support.effort import one_in, only
from tests.support.query.ibis_world import World, same

from lapwing.query.pricing.calibrate import calibrate

Build = Callable[[Any], Any]

PAIRS: list[tuple[str, Build]] = [
    ("SELECT COUNT(*) AS n FROM visits", lambda t: t.visits.agg(n=t.visits.count())),
    (
        "SELECT plan, COUNT(*) AS n, AVG(cost) AS cost FROM visits WHERE age > 30 GROUP BY plan",
        lambda t: t.visits.filter(_.age > 30).group_by("plan").agg(n=_.count(), cost=_.cost.mean()),
    ),
    (
        "SELECT plan, member, SUM(cost) AS s FROM visits GROUP BY plan, member",
        lambda t: t.visits.group_by("plan", "member").agg(s=_.cost.sum()),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE age > 30 AND cost < 100 AND member",
        lambda t: t.visits.filter(_.age > 30).filter(_.cost < 100, _.member).agg(n=_.count()),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE age > 30 AND (plan = 'a' OR NOT member) AND NOT (age = 40 OR age = 50)",
        lambda t: t.visits.filter((_.age > 30) & ((_.plan == "a") | ~_.member) & ~((_.age == 40) | (_.age == 50))).agg(
            n=_.count()
        ),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE plan IN ('a', 'it''s') AND NOT age IN (1, 2)",
        lambda t: t.visits.filter(_.plan.isin(["a", "it's"]), _.age.notin([1, 2])).agg(n=_.count()),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE age BETWEEN 18 AND 61 AND cost IS NULL AND points IS NOT NULL",
        lambda t: t.visits.filter(_.age.between(18, 61), _.cost.isnull(), _.points.notnull()).agg(n=_.count()),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE plan IS NOT DISTINCT FROM 'a'",
        lambda t: t.visits.filter(_.plan.identical_to("a")).agg(n=_.count()),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE cost > 0.1 AND share < -0.125 AND weight <> 1.5 AND points >= -7",
        lambda t: t.visits.filter(_.cost > 0.1, _.share < -0.125, _.weight != Decimal("1.50"), _.points >= -7).agg(
            n=_.count()
        ),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE member = TRUE AND note <> 'a''b\"c\\d -- /* ; $x ? :y'",
        lambda t: t.visits.filter(_.member == ibis.literal(True), _.note != "a'b\"c\\d -- /* ; $x ? :y").agg(
            n=_.count()
        ),
    ),
    (
        "SELECT SUM((age + 1) * 2 - age * 2) AS s, SUM(1 - (age - 1) - (2 - age)) AS u FROM visits",
        lambda t: t.visits.agg(s=((_.age + 1) * 2 - _.age * 2).sum(), u=(1 - (_.age - 1) - (2 - _.age)).sum()),
    ),
    (
        "SELECT AVG(-cost / 2) AS a, AVG(-(-age)) AS b, AVG(age - -5) AS c, AVG(2 / (cost + 1)) AS d FROM visits",
        lambda t: t.visits.agg(
            a=(-_.cost / 2).mean(), b=_.age.negate().negate().mean(), c=(_.age - -5).mean(), d=(2 / (_.cost + 1)).mean()
        ),
    ),
    (
        "SELECT AVG(age % 10) AS a, AVG(POWER(age, 2)) AS b, AVG(FLOOR(age / 10)) AS c FROM visits",
        lambda t: t.visits.agg(a=(_.age % 10).mean(), b=(_.age**2).mean(), c=(_.age // 10).mean()),
    ),
    (
        "SELECT SUM(ABS(share)) AS a, SUM(ROUND(cost)) AS b, SUM(ROUND(cost, 1)) AS c, SUM(CEIL(cost)) AS d, "
        "SUM(SIGN(share)) AS e, SUM(FLOOR(cost)) AS f FROM visits",
        lambda t: t.visits.agg(
            a=_.share.abs().sum(),
            b=_.cost.round().sum(),
            c=_.cost.round(1).sum(),
            d=_.cost.ceil().sum(),
            e=_.share.sign().sum(),
            f=_.cost.floor().sum(),
        ),
    ),
    (
        "SELECT AVG(SIN(share)) AS a, AVG(COS(share)) AS b, AVG(ATAN(share)) AS c, AVG(DEGREES(share)) AS d FROM "
        "visits",
        lambda t: t.visits.agg(
            a=_.share.sin().mean(), b=_.share.cos().mean(), c=_.share.atan().mean(), d=_.share.degrees().mean()
        ),
    ),
    (
        "SELECT SUM(CASE WHEN member THEN cost ELSE 0 END) AS s, SUM(CASE WHEN age > 3 THEN 1 ELSE NULL END) AS u "
        "FROM visits",
        lambda t: t.visits.agg(
            s=_.member.ifelse(_.cost, 0).sum(), u=(t.visits.age > 3).ifelse(1, ibis.null("int64")).sum()
        ),
    ),
    (
        "SELECT SUM(CASE WHEN age < 10 THEN 1 WHEN age < 20 THEN 2 ELSE 3 END) AS s, SUM(CASE plan WHEN 'a' THEN 5 "
        "WHEN 'b' THEN 6 END) AS u FROM visits",
        lambda t: t.visits.agg(
            s=ibis.cases((t.visits.age < 10, 1), (t.visits.age < 20, 2), else_=3).sum(),
            u=_.plan.cases(("a", 5), ("b", 6)).sum(),
        ),
    ),
    (
        "SELECT SUM(COALESCE(cost, 0)) AS a, SUM(COALESCE(cost, age, 1)) AS b, SUM(NULLIF(age, 3)) AS c, "
        "SUM(LEAST(age, 5)) AS d, SUM(GREATEST(age, cost)) AS e FROM visits",
        lambda t: t.visits.agg(
            a=_.cost.fill_null(0).sum(),
            b=ibis.coalesce(t.visits.cost, t.visits.age, 1).sum(),
            c=_.age.nullif(3).sum(),
            d=ibis.least(t.visits.age, 5).sum(),
            e=ibis.greatest(t.visits.age, t.visits.cost).sum(),
        ),
    ),
    (
        "SELECT SUM(CAST(cost AS INTEGER)) AS a, SUM(CAST(member AS BIGINT)) AS b, AVG(CAST(age AS DOUBLE)) AS c, "
        "COUNT(TRY_CAST(note AS DATE)) AS d FROM visits",
        lambda t: t.visits.agg(
            a=_.cost.cast("int32").sum(),
            b=_.member.cast("int64").sum(),
            c=_.age.cast("float64").mean(),
            d=_.note.try_cast("date").count(),
        ),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE plan || '-' || note = 'a-b' AND 'x' || note = 'xy' AND "
        "CONTAINS(note, 'a') AND STARTS_WITH(note, 'a') AND ENDS_WITH(note, 'b')",
        lambda t: t.visits.filter(
            _.plan.concat("-", _.note) == "a-b",
            "x" + _.note == "xy",
            _.note.contains("a"),
            _.note.startswith("a"),
            _.note.endswith("b"),
        ).agg(n=_.count()),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE note LIKE 'a%' AND note ILIKE '%B' AND NOT note LIKE '_' AND "
        "REGEXP_MATCHES(note, '^a') AND REGEXP_EXTRACT(note, '(a)b', 1) = 'a'",
        lambda t: t.visits.filter(
            _.note.like("a%"),
            _.note.ilike("%B"),
            ~_.note.like("_"),
            _.note.re_search("^a"),
            _.note.re_extract("(a)b", 1) == "a",
        ).agg(n=_.count()),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE REGEXP_REPLACE(note, 'a', 'b', 'g') = 'b'",
        lambda t: t.visits.filter(_.note.re_replace("a", "b") == "b").agg(n=_.count()),
    ),
    (
        "SELECT AVG(YEAR(born)) AS a, AVG(MONTH(born)) AS b, AVG(DAY(born)) AS c, AVG(QUARTER(born)) AS d, "
        "AVG(WEEK(born)) AS e, AVG(DAYOFYEAR(born)) AS f FROM visits",
        lambda t: t.visits.agg(
            a=_.born.year().mean(),
            b=_.born.month().mean(),
            c=_.born.day().mean(),
            d=_.born.quarter().mean(),
            e=_.born.week_of_year().mean(),
            f=_.born.day_of_year().mean(),
        ),
    ),
    (
        "SELECT AVG(HOUR(seen)) AS a, AVG(MINUTE(seen)) AS b, AVG(SECOND(seen)) AS c, AVG(EPOCH(seen)) AS d FROM "
        "visits",
        lambda t: t.visits.agg(
            a=_.seen.hour().mean(), b=_.seen.minute().mean(), c=_.seen.second().mean(), d=_.seen.epoch_seconds().mean()
        ),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE CAST(seen AS DATE) = born AND DATE_TRUNC('month', born) = born AND "
        "STRFTIME(born, '%Y') = '1999'",
        lambda t: t.visits.filter(
            _.seen.date() == _.born, _.born.truncate("month") == _.born, _.born.strftime("%Y") == "1999"
        ).agg(n=_.count()),
    ),
    (
        "SELECT VAR_SAMP(age) AS a, VAR_POP(age) AS b, STDDEV(age) AS c, STDDEV_POP(age) AS d, COVAR_SAMP(age, cost) "
        "AS e, COVAR_POP(age, cost) AS f, CORR(age, cost) AS g FROM visits",
        lambda t: t.visits.agg(
            a=_.age.var(),
            b=_.age.var(how="pop"),
            c=_.age.std(),
            d=_.age.std(how="pop"),
            e=_.age.cov(_.cost),
            f=_.age.cov(_.cost, how="pop"),
            g=_.age.corr(_.cost, how="pop"),
        ),
    ),
    (
        "SELECT MEDIAN(age) AS a, QUANTILE_CONT(age, 0.25) AS b, MIN(age) AS c, MAX(age) AS d FROM visits",
        lambda t: t.visits.agg(a=_.age.median(), b=_.age.quantile(0.25), c=_.age.min(), d=_.age.max()),
    ),
    (
        "SELECT COUNT(*) FILTER (WHERE member) AS a, SUM(cost) FILTER (WHERE age > 3 AND member) AS b, AVG(cost) "
        "FILTER (WHERE plan = 'a') AS c FROM visits",
        lambda t: t.visits.agg(
            a=t.visits.count(where=t.visits.member),
            b=_.cost.sum(where=(t.visits.age > 3) & t.visits.member),
            c=_.cost.mean(where=t.visits.plan == "a"),
        ),
    ),
    (
        "SELECT FLOOR(age / 10) AS decade, COUNT(*) AS n FROM visits GROUP BY FLOOR(age / 10)",
        lambda t: t.visits.group_by(decade=_.age // 10).agg(n=_.count()),
    ),
    (
        "SELECT age >= 18 AS adult, plan, COUNT(*) AS n FROM visits GROUP BY age >= 18, plan",
        lambda t: t.visits.mutate(adult=_.age >= 18).group_by("adult", "plan").agg(n=_.count()),
    ),
    (
        "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan HAVING COUNT(*) > 10 AND plan <> 'a' ORDER BY n DESC, "
        "plan LIMIT 2 OFFSET 1",
        lambda t: (
            t.visits.group_by("plan")
            .agg(n=_.count())
            .filter(_.n > 10)
            .filter(_.plan != "a")
            .order_by(ibis.desc("n"), "plan")
            .limit(2, offset=1)
        ),
    ),
    (
        "SELECT plan, SUM(cost) AS s, COUNT(*) AS n, s / n AS each FROM visits GROUP BY plan HAVING each > 3",
        lambda t: t.visits.group_by("plan").agg(s=_.cost.sum(), n=_.count()).mutate(each=_.s / _.n).filter(_.each > 3),
    ),
    (
        "SELECT AVG(cost) * 2 AS cost, plan FROM visits GROUP BY plan ORDER BY AVG(cost) * 2",
        lambda t: (
            t.visits.group_by("plan")
            .agg(cost=_.cost.mean())
            .mutate(cost=_.cost * 2)
            .order_by("cost")
            .select("cost", "plan")
        ),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits GROUP BY plan ORDER BY plan",
        lambda t: t.visits.group_by("plan").agg(n=_.count()).order_by("plan").drop("plan"),
    ),
    (
        "SELECT SUM(net) AS s FROM (SELECT cost - share AS net, person, age FROM visits) WHERE net > 3 AND age < 9",
        lambda t: t.visits.mutate(net=_.cost - _.share).drop("town").filter(_.net > 3, _.age < 9).agg(s=_.net.sum()),
    ),
    (
        "SELECT COUNT(DISTINCT who) AS people, AVG(years) AS years FROM (SELECT person AS who, age AS years FROM "
        "visits)",
        lambda t: t.visits.rename(who="person", years="age").agg(people=_.who.nunique(), years=_.years.mean()),
    ),
    (
        "SELECT years, COUNT(*) AS people FROM (SELECT person, COUNT(*) AS years FROM visits GROUP BY person) GROUP "
        "BY years",
        lambda t: t.visits.group_by("person").agg(years=_.count()).group_by("years").agg(people=_.count()),
    ),
    (
        "SELECT old, COUNT(*) AS n FROM (SELECT person, MAX(age) > 60 AS old, BOOL_OR(member) AS some, "
        "BOOL_AND(member) AS every, COUNT(DISTINCT plan) AS plans FROM visits GROUP BY person) WHERE some AND NOT "
        "every AND plans < 3 GROUP BY old",
        lambda t: (
            t.visits.group_by("person")
            .agg(old=_.age.max() > 60, some=_.member.any(), every=_.member.all(), plans=_.plan.nunique())
            .filter(_.some, ~_.every, _.plans < 3)
            .group_by("old")
            .agg(n=_.count())
        ),
    ),
    (
        "SELECT plan, AVG(times) AS times FROM (SELECT person, plan, COUNT(*) AS times FROM visits GROUP BY person, "
        "plan) GROUP BY plan",
        lambda t: t.visits.group_by("person", "plan").agg(times=_.count()).group_by("plan").agg(times=_.times.mean()),
    ),
    (
        "SELECT tier, COUNT(DISTINCT person) AS people FROM visits JOIN codes USING (plan) GROUP BY tier",
        lambda t: t.visits.join(t.codes, "plan").group_by("tier").agg(people=_.person.nunique()),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE plan IN (SELECT plan FROM codes WHERE tier = 'gold')",
        lambda t: t.visits.semi_join(t.codes.filter(_.tier == "gold"), "plan").agg(n=_.count()),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits ANTI JOIN codes USING (plan)",
        lambda t: t.visits.anti_join(t.codes, "plan").agg(n=_.count()),
    ),
    (
        "SELECT COUNT(*) AS n, SUM(b.cost) AS s FROM visits AS a JOIN visits AS b USING (person)",
        lambda t: t.visits.join(t.visits.view(), "person").agg(n=_.count(), s=_.cost_right.sum()),
    ),
    ("SELECT COUNT(*) AS n FROM adults", lambda t: t.adults.agg(n=_.count())),
    (
        "SELECT plan, SUM(spent) AS s FROM spending WHERE times < 3 GROUP BY plan",
        lambda t: t.spending.filter(_.times < 3).group_by("plan").agg(s=_.spent.sum()),
    ),
    (
        "SELECT choice, SUM(weight) AS s FROM ballots GROUP BY choice",
        lambda t: t.ballots.group_by("choice").agg(s=_.weight.sum()),
    ),
    (
        "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan",
        lambda t: t.visits.group_by("plan").agg(n=_.count()).distinct(),
    ),
]


ALIKE: list[tuple[str, Build]] = [
    (
        "SELECT COUNT(*) AS n FROM visits WHERE XOR(member, age > 3)",
        lambda t: t.visits.filter(_.member ^ (_.age > 3)).agg(n=_.count()),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE born < DATE '1970-01-01' AND seen >= TIMESTAMP '2020-02-29 12:00:00.5'",
        lambda t: t.visits.filter(_.born < date(1970, 1, 1), _.seen >= datetime(2020, 2, 29, 12, 0, 0, 500000)).agg(
            n=_.count()
        ),
    ),
    (
        "SELECT AVG(SQRT(cost)) AS a, AVG(LN(1 + cost)) AS b, AVG(LOG2(1 + cost)) AS c, AVG(LOG10(1 + cost)) AS d, "
        "AVG(EXP(share)) AS e, AVG(LOG(3, 1 + cost)) AS f FROM visits",
        lambda t: t.visits.agg(
            a=_.cost.sqrt().mean(),
            b=(1 + _.cost).ln().mean(),
            c=(1 + _.cost).log2().mean(),
            d=(1 + _.cost).log10().mean(),
            e=_.share.exp().mean(),
            f=(1 + _.cost).log(3).mean(),
        ),
    ),
    (
        "SELECT SUM(LEAST(GREATEST(weight, 0), 100)) AS s FROM visits",
        lambda t: t.visits.agg(s=_.weight.clip(0, 100).sum()),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE UPPER(note) = 'X' AND LOWER(note) <> 'y' AND RTRIM(note) = 'z' AND "
        "LENGTH(note) > 2 AND REVERSE(note) = 'b'",
        lambda t: t.visits.filter(
            _.note.upper() == "X",
            _.note.lower() != "y",
            _.note.rstrip() == "z",
            _.note.length() > 2,
            _.note.reverse() == "b",
        ).agg(n=_.count()),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE LEFT(note, 1) = 'a' AND RIGHT(note, 2) = 'b' AND SUBSTRING(note, 2, "
        "3) = 'c' AND REPLACE(note, 'a', 'b') = 'f'",
        lambda t: t.visits.filter(
            _.note.left(1) == "a", _.note.right(2) == "b", _.note.substr(1, 3) == "c", _.note.replace("a", "b") == "f"
        ).agg(n=_.count()),
    ),
    (
        "SELECT AVG(DATE_DIFF('day', MAKE_DATE(2000, 1, 1), born)) AS a, COUNT(*) AS n FROM visits WHERE born + "
        "INTERVAL 3 MONTH > DATE '1990-01-01' AND born - INTERVAL (2) YEAR < seen",
        lambda t: t.visits.filter(
            _.born + ibis.interval(months=3) > date(1990, 1, 1), _.born - ibis.interval(years=2) < _.seen
        ).agg(a=_.born.delta(date(2000, 1, 1), unit="day").mean(), n=_.count()),
    ),
    (
        "SELECT COUNT(cost) AS a, COUNT(DISTINCT person) AS b, COUNT(DISTINCT note) AS c, COUNT_IF(age > 3) AS d "
        "FROM visits",
        lambda t: t.visits.agg(a=_.cost.count(), b=_.person.nunique(), c=_.note.nunique(), d=(_.age > 3).sum()),
    ),
    (
        "SELECT ROUND(100.0 * COUNT_IF(member) / COUNT(*), 1) AS percent FROM visits",
        lambda t: t.visits.agg(percent=(100 * t.visits.count(where=t.visits.member) / t.visits.count()).round(1)),
    ),
    (
        "SELECT COUNT(*) AS n FROM (SELECT DISTINCT person, plan FROM visits WHERE age > 3) WHERE plan = 'a'",
        lambda t: t.visits.filter(_.age > 3).select("person", "plan").distinct().filter(_.plan == "a").agg(n=_.count()),
    ),
    (
        "SELECT SUM(LEAST(spent, 8000)) AS s FROM (SELECT person, SUM(cost) AS spent FROM visits GROUP BY person "
        "HAVING COUNT(*) > 1)",
        lambda t: (
            t.visits.group_by("person")
            .agg(spent=_.cost.sum(), times=_.count())
            .filter(_.times > 1)
            .select("person", "spent")
            .agg(s=_.spent.clip(upper=8000).sum())
        ),
    ),
    (
        "SELECT plan, COUNT(*) AS n FROM (SELECT * FROM visits QUALIFY ROW_NUMBER() OVER (PARTITION BY person ORDER "
        "BY seen) = 1) GROUP BY plan",
        lambda t: (
            t.visits.filter(ibis.row_number().over(group_by="person", order_by="seen") == 0)
            .group_by("plan")
            .agg(n=_.count())
        ),
    ),
    (
        "SELECT COUNT_IF(more > 0) AS up FROM (SELECT age - LAG(age) OVER (PARTITION BY person ORDER BY seen DESC) "
        "AS more FROM visits)",
        lambda t: t.visits.mutate(more=_.age - _.age.lag().over(group_by="person", order_by=ibis.desc("seen"))).agg(
            up=(_.more > 0).sum()
        ),
    ),
    (
        "SELECT plan, SUM(factor) AS s FROM visits JOIN codes USING (plan, floor) GROUP BY plan",
        lambda t: t.visits.join(t.codes, ["plan", "floor"]).group_by("plan").agg(s=_.factor.sum()),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE TRIM(note) = LTRIM(note)",
        lambda t: t.visits.filter(_.note.strip() == _.note.lstrip()).agg(n=_.count()),
    ),
    (
        "SELECT AVG((DAYOFWEEK(born) + 6) % 7) AS a FROM visits",
        lambda t: t.visits.agg(a=_.born.day_of_week.index().mean()),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE DAYNAME(born) = 'Monday'",
        lambda t: t.visits.filter(_.born.day_of_week.full_name() == "Monday").agg(n=_.count()),
    ),
    (
        "SELECT COUNT(*) AS n FROM (SELECT RANK() OVER (PARTITION BY person, plan ORDER BY age, cost DESC) AS r, "
        "LEAD(age, 2, 0) OVER (PARTITION BY person ORDER BY age) AS l, DENSE_RANK() OVER (PARTITION BY person ORDER "
        "BY age) AS d, SUM(cost) OVER (PARTITION BY person) AS s FROM visits WHERE member) WHERE r = 1 AND l < 5 AND "
        "d < 2 AND s > 9",
        lambda t: (
            t.visits.filter(_.member)
            .mutate(
                r=ibis.rank().over(group_by=["person", "plan"], order_by=["age", ibis.desc("cost")]),
                l=_.age.lead(2, 0).over(group_by="person", order_by="age"),
                d=ibis.dense_rank().over(group_by="person", order_by="age"),
                s=_.cost.sum().over(group_by="person"),
            )
            .filter(_.r == 0, _.l < 5, _.d < 2, _.s > 9)
            .agg(n=_.count())
        ),
    ),
    (
        "SELECT tier, COUNT(*) AS n FROM visits LEFT JOIN codes ON visits.plan = codes.plan AND codes.factor > 1 "
        "WHERE codes.floor = 0 GROUP BY tier",
        lambda t: (
            t.visits.left_join(t.codes.filter(_.factor > 1), "plan")
            .filter(_.floor_right == 0)
            .group_by("tier")
            .agg(n=_.count())
        ),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits JOIN codes ON UPPER(visits.plan) = codes.tier AND visits.floor = codes.floor",
        lambda t: t.visits.join(t.codes, [t.visits.plan.upper() == t.codes.tier, t.visits.floor == t.codes.floor]).agg(
            n=_.count()
        ),
    ),
    (
        "SELECT COUNT(*) AS n FROM visits WHERE plan IN (SELECT plan FROM codes WHERE tier = 'gold')",
        lambda t: t.visits.filter(_.plan.isin(t.codes.filter(_.tier == "gold").plan)).agg(n=_.count()),
    ),
    (
        "SELECT COUNT(*) AS n FROM (SELECT person, plan FROM visits WHERE age > 3 UNION ALL SELECT person, plan FROM "
        "visits WHERE member) WHERE plan = 'a'",
        lambda t: (
            t.visits.filter(_.age > 3)
            .select("person", "plan")
            .union(t.visits.filter(_.member).select("person", "plan"))
            .filter(_.plan == "a")
            .agg(n=_.count())
        ),
    ),
    (
        "SELECT COUNT(*) AS n FROM (SELECT person, plan FROM visits WHERE age > 3 UNION SELECT person, plan FROM "
        "visits WHERE member)",
        lambda t: (
            t.visits.filter(_.age > 3)
            .select("person", "plan")
            .union(t.visits.filter(_.member).select("person", "plan"), distinct=True)
            .agg(n=_.count())
        ),
    ),
    (
        "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan ORDER BY n DESC",
        lambda t: t.visits.plan.value_counts(name="n").order_by(ibis.desc("n")),
    ),
    (
        "SELECT plan, COUNT(*) AS plan_count FROM visits GROUP BY plan ORDER BY plan_count DESC LIMIT 2",
        lambda t: t.visits.plan.topk(2),
    ),
    (
        "SELECT plan, AVG(age) AS m, STDDEV(age) AS s FROM visits GROUP BY plan",
        lambda t: t.visits.aggregate([t.visits.age.mean().name("m"), t.visits.age.std().name("s")], by=[t.visits.plan]),
    ),
    (
        "SELECT CASE WHEN age < 0 THEN NULL WHEN age < 18 THEN 0 WHEN age < 65 THEN 1 WHEN age <= 120 THEN 2 END AS "
        "b, COUNT(*) AS n FROM visits GROUP BY b",
        lambda t: t.visits.mutate(b=_.age.bucket([0, 18, 65, 120])).group_by("b").agg(n=_.count()),
    ),
]


REFUSED: list[tuple[str, Build]] = [
    ("SELECT * FROM visits", lambda t: t.visits),
    ("SELECT * FROM visits WHERE age > 3", lambda t: t.visits.filter(_.age > 3)),
    (
        "SELECT person, COUNT(*) AS n FROM visits GROUP BY person",
        lambda t: t.visits.group_by("person").agg(n=_.count()),
    ),
    ("SELECT SUM(weight) AS s FROM visits", lambda t: t.visits.agg(s=_.weight.sum())),
    ("SELECT COUNT(*) AS n FROM (SELECT * FROM visits LIMIT 10)", lambda t: t.visits.limit(10).agg(n=_.count())),
    ("SELECT COUNT(*) AS n FROM codes", lambda t: t.codes.agg(n=_.count())),
    ("SELECT BOOL_OR(member) AS n FROM visits", lambda t: t.visits.agg(n=_.member.any())),
    (
        "SELECT COUNT(*) AS n FROM ballots AS a JOIN visits AS b ON a.weight = b.age",
        lambda t: t.ballots.join(t.visits, t.ballots.weight == t.visits.age).agg(n=_.count()),
    ),
]


def title(text: object) -> str | None:
    return text[:70] if isinstance(text, str) else None


@pytest.mark.parametrize(("text", "build"), one_in(16, PAIRS, many=True), ids=title)
def test_same_plan(world: World, text: str, build: Build) -> None:
    question = build(world.tables)
    assert not same(world.plan(text), world.plan(question)), ibis.to_sql(question)


@pytest.mark.parametrize(("text", "build"), only([0], ALIKE, many=True), ids=title)
def test_same_noise(world: World, text: str, build: Build) -> None:
    """Where Ibis writes the same in other words: as many cells, and the same noise for each number."""
    found = []
    for plan in (world.plan(text), world.plan(build(world.tables))):
        terms = calibrate(plan, world.catalog.budget, epsilon=1, error=None, delta=None).terms
        noise = sorted((term.half_width(Fraction(19, 20)), term.mechanism.standard_deviation) for term in terms)
        found.append((plan.question.combined, [output.name for output in plan.outputs], noise))
    assert found[0] == found[1]


@pytest.mark.parametrize(("text", "build"), one_in(3, REFUSED, many=True), ids=title)
def test_same_refusal(world: World, text: str, build: Build) -> None:
    assert world.refusal(text) == world.refusal(build(world.tables))


def test_a_difference_is_noticed(world: World) -> None:
    plan = world.plan("SELECT COUNT(*) AS n FROM visits WHERE age > 3")
    visits = world.tables.visits
    for other in (visits.age >= 3, visits.age > 4, visits.cost > 3, (visits.age > 3) | visits.member):
        assert same(plan, world.plan(visits.filter(other).agg(n=_.count())))

"""Random questions in which there is more than one SELECT over rows: over answers, several at once, in two readings.

Each form is a function of chance that returns a question, or several that are asked together, about the tables of
`strategies.CATALOG`. `PRIVATE` are those that select private keys, which are asked with a δ.
"""

import random
import re
from collections.abc import Callable, Mapping
from typing import Final

from tests.support.query.composition_texts import text_of
from tests.support.replay import Batch, Question

Form = Callable[[random.Random], Question]

CONDITIONS: Final = (
    *("age > 30", "member", "plan <> 'a'", "cost BETWEEN 0 AND 50", "note LIKE 'a%'", "pay > 10 OR member"),
    *("day >= '2026-01-02'", "score > 0", "NOT member", "note IS NOT NULL", "age % 2 = 0", "plan IN ('a', 'c')"),
)
NUMBERS: Final = ("COUNT(*)", "SUM(age)", "COUNT(DISTINCT person)", "SUM(pay)", "AVG(age)", "COUNT(note)")
SITES: Final = "SELECT plan, CASE WHEN member THEN 'x' ELSE 'y' END AS site, COUNT(*) AS n FROM visits{} GROUP BY 1, 2"


def _where(chance: random.Random) -> str:
    return f" WHERE {chance.choice(CONDITIONS)}" if chance.random() < 0.6 else ""


def _inner(chance: random.Random, keys: str = "plan, member") -> str:
    """Return a SELECT by keys, with two numbers n and s."""
    return f"SELECT {keys}, COUNT(*) AS n, {chance.choice(NUMBERS)} AS s FROM visits{_where(chance)} GROUP BY {keys}"


def _layer(chance: random.Random) -> str:
    inner = f"({_inner(chance)})"
    return chance.choice(
        (
            f"SELECT * FROM {inner} WHERE n > {chance.randint(-2, 3)} ORDER BY s DESC NULLS LAST, n LIMIT 3",
            f"SELECT plan, SUM(n) AS n, MAX(s) AS m, COUNT(*) AS k FROM {inner} WHERE s > 1 GROUP BY plan",
            f"SELECT member, ARG_MAX(plan, n) AS most FROM {inner} GROUP BY member HAVING SUM(n) > -9",
            f"SELECT n / SUM(n) OVER (PARTITION BY member) AS r FROM {inner} QUALIFY RANK() OVER (ORDER BY n) < 4",
            f"SELECT plan, m FROM (SELECT plan, MAX(n) AS m FROM {inner} GROUP BY plan) WHERE m > 0 ORDER BY m",
            f"SELECT AVG(m) AS m FROM (SELECT plan, MAX(n) AS m FROM {inner} GROUP BY plan)",
            f"SELECT plan, member, SUM(n) AS n FROM {inner} GROUP BY ROLLUP (plan, member) ORDER BY n, plan, member",
            f"SELECT plan, n FROM {inner} UNION SELECT plan, s FROM {inner}",
        )
    )


def _several(chance: random.Random) -> str:
    inner = {
        "a": SITES.format(_where(chance)),
        "b": f"SELECT plan, COUNT(*) AS n FROM visits{_where(chance)} GROUP BY plan",
        "c": f"SELECT SUM(age) AS n FROM visits{_where(chance)}",
    }
    outer = text_of(chance.randrange(10**6))
    named = ", ".join(f"{name} AS ({inner[name]})" for name in inner if re.search(rf"\b{name}\b(?!\.)", outer))
    return f"WITH {named} {outer}"


def _public(chance: random.Random) -> str:
    """An answer joined to a public table, or to a subquery over one."""
    inner = f"({_inner(chance, 'plan')}) AS a"
    floors = chance.choice(("floors", "floors", "(SELECT plan, floor FROM floors WHERE floor < 9)"))
    return chance.choice(
        (
            f"SELECT floor, SUM(n) AS n FROM {inner} JOIN {floors} AS c USING (plan) GROUP BY floor",
            f"SELECT a.plan, n / (floor + 1) AS r, s FROM {inner} LEFT JOIN {floors} AS c ON a.plan = c.plan",
            f"SELECT c.plan, c.floor, n FROM {floors} AS c LEFT JOIN {inner} ON a.plan = c.plan AND n > floor - 9",
            f"SELECT a.plan, c.floor, n FROM {inner} FULL JOIN {floors} AS c ON a.plan = c.plan WHERE n > -3",
            f"SELECT a.plan, COUNT(*) AS k, MAX(floor) AS f FROM {inner}, {floors} AS c WHERE n < floor GROUP BY 1",
            f"SELECT n, floor FROM {inner}, {floors} AS c WHERE floor < 20 AND n > -5 ORDER BY n, floor",
            f"SELECT n, floor, b.m FROM {inner} JOIN {floors} AS c USING (plan) "
            "JOIN (SELECT COUNT(*) AS m FROM visits) AS b ON floor < b.m ORDER BY n",
        )
    )


def _constant(chance: random.Random) -> str:
    """A noisy number in a condition, one for all rows or one for each plan, or a list that an answer shows."""
    number = f"(SELECT {chance.choice(('AVG(age)', 'SUM(age) / 40', 'COUNT(*)'))} FROM visits{_where(chance)})"
    of_plan = "(SELECT AVG(w.age) FROM visits AS w WHERE w.plan = v.plan)"
    of_floor = "(SELECT AVG(w.age) FROM visits AS w WHERE w.plan = f.plan)"
    by, kept = chance.choice(("plan", "ROLLUP (plan)")), f"HAVING COUNT(*) > {chance.randint(-1, 3)}"
    plans = f"{chance.choice(('IN', 'NOT IN'))} (SELECT plan FROM visits{_where(chance)} GROUP BY {by} {kept})"
    return chance.choice(
        (
            f"SELECT plan, COUNT(*) AS n, SUM(pay) AS s FROM visits WHERE age > {number} GROUP BY plan",
            f"SELECT COUNT_IF(age <= {number}) AS n FROM visits",
            f"SELECT plan, COUNT(*) AS n FROM visits AS v WHERE age > {of_plan} GROUP BY plan",
            f"SELECT COUNT(*) AS n FROM visits WHERE member AND age BETWEEN {number} AND 100",
            f"SELECT member, COUNT(*) AS n, SUM(age) AS s FROM visits WHERE plan {plans} OR age > 70 GROUP BY member",
            f"SELECT COUNT(DISTINCT person) FILTER (WHERE plan {plans}) AS n, COUNT(*) AS m FROM visits",
            f"SELECT COUNT(*) AS n FROM visits AS v JOIN floors AS f USING (plan) WHERE age > {of_floor} AND floor < 9",
            "SELECT SUM(pay) AS s FROM visits AS v JOIN codes USING (plan) WHERE v.age > "
            "(SELECT AVG(pay) FROM visits AS w WHERE w.age = factor)",
            f"SELECT n FROM (SELECT plan, COUNT(*) AS n FROM visits WHERE age > {number} GROUP BY plan) WHERE n > 1",
            f"SELECT x.n - y.n AS d FROM (SELECT COUNT(*) AS n FROM visits WHERE age > {number}) AS x, "
            f"(SELECT COUNT(*) AS n FROM visits{_where(chance)}) AS y",
        )
    )


def _joined(chance: random.Random) -> str:
    """Rows that are joined to the groups of a result, whose columns conditions and aggregates read."""
    means = f"(SELECT plan, AVG(age) AS a, COUNT(*) AS n FROM visits{_where(chance)} GROUP BY plan) AS d"
    on = chance.choice(("USING (plan)", "ON d.plan = v.plan"))
    side, kept = chance.choice(("", "LEFT ")), f"v.age {chance.choice(('>', '<='))} d.a"
    return chance.choice(
        (
            f"SELECT COUNT(*) AS n FROM visits AS v {side}JOIN {means} {on} WHERE {kept} AND d.n > 1",
            f"SELECT v.plan, COUNT(*) AS n, SUM(v.pay) AS s FROM visits AS v JOIN {means} {on} WHERE {kept} GROUP BY 1",
            f"SELECT member, SUM(v.age - a) AS s FROM visits AS v {side}JOIN {means} {on} GROUP BY member",
            f"SELECT COUNT(DISTINCT person) FILTER (WHERE {kept}) AS n FROM visits AS v JOIN {means} {on}",
        )
    )


def _beside(chance: random.Random) -> str:
    """A number of another answer beside those of this one."""
    other = f"(SELECT {chance.choice(NUMBERS)} FROM visits{_where(chance)})"
    return chance.choice(
        (
            f"SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan HAVING COUNT(*) > {other}",
            f"SELECT plan, n * 100.0 / {other} AS percent FROM (SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan)",
            f"SELECT {other} - {other} AS none, {other} AS one",
        )
    )


def _batch(chance: random.Random) -> Batch:
    """Marginals of the same columns, which are measured together, and others beside them."""
    where, number = _where(chance), chance.choice(("COUNT(*)", "SUM(age)", "COUNT(DISTINCT person)"))
    marginals = [
        f"SELECT {keys}{', ' if keys else ''}{number} AS n FROM visits{where}{' GROUP BY ' if keys else ''}{keys}"
        for keys in chance.sample(("", "plan", "member", "day", "plan, member", "plan, day", "plan, member, day"), 3)
    ]
    more = (
        *(_layer, _public, _constant, lambda chance: _inner(chance, "day")),
        lambda _: "SELECT plan, MEDIAN(age) AS m FROM visits GROUP BY plan",
    )
    return Batch(tuple([*marginals, chance.choice(more)(chance)][: chance.randint(2, 4)]))


def _chosen(chance: random.Random) -> str:
    """What is chosen without its number, alone and inside several answers."""
    compared = f"COUNT(*) > {chance.randint(-2, 9)}, SUM(age) > 60, COUNT(DISTINCT person) >= 2"
    return chance.choice(
        (
            f"SELECT MODE(plan) AS m FROM visits{_where(chance)}",
            f"SELECT APPROX_TOP_COUNT(plan, 2) FROM visits{_where(chance)}",
            "SELECT member, MODE(plan) AS m FROM visits GROUP BY member",
            f"SELECT ABOVE_THRESHOLD({compared}) AS first FROM visits{_where(chance)}",
            f"SELECT m.plan, n FROM (SELECT plan FROM visits{_where(chance)} GROUP BY plan ORDER BY SUM(age) LIMIT 1) "
            "AS m JOIN (SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan) AS c ON c.plan = m.plan",
        )
    )


def _keys_alone(chance: random.Random) -> str:
    return chance.choice(
        (
            f"SELECT DISTINCT plan, member FROM visits{_where(chance)}",
            f"SELECT day FROM visits{_where(chance)} GROUP BY day ORDER BY day DESC",
            "SELECT DISTINCT c.factor FROM visits JOIN codes AS c USING (plan) WHERE c.factor > 0",
        )
    )


def _distinct(chance: random.Random) -> str:
    sides = [f"SELECT {chance.choice(('plan', 'note'))} FROM visits{_where(chance)}" for _ in range(2)]
    word = chance.choice((" UNION ", " INTERSECT ", " EXCEPT "))
    return chance.choice(
        (
            f"SELECT COUNT(*) AS n FROM (SELECT DISTINCT plan, note FROM visits{_where(chance)})",
            f"SELECT COUNT(*) AS n FROM ({word.join(sides)})",
            f"SELECT plan, SUM(DISTINCT age) AS s, AVG(DISTINCT age) AS a FROM visits{_where(chance)} GROUP BY plan",
            f"SELECT member, COUNT(DISTINCT plan, note) AS n FROM visits{_where(chance)} GROUP BY member",
        )
    )


def _spelled(chance: random.Random) -> str:
    return chance.choice(
        (
            "SELECT COUNT(*) AS n FROM visits WHERE member = 1 AND (plan, age) IN (('a', 30), ('b', 1))",
            "SELECT TOP 2 plan, COUNT(*) AS n FROM main.visits GROUP BY plan ORDER BY n DESC",
            "SELECT k, COUNT(*) AS n FROM visits CROSS JOIN UNNEST([1, 2]) AS k WHERE age > k GROUP BY k",
            "SELECT w, SUM(age) AS s FROM visits CROSS JOIN (VALUES (1, 'a'), (2, 'b')) AS v (k, w) GROUP BY w",
            "FROM visits SELECT plan, VAR(age) AS v, STD(age) AS d GROUP BY plan",
            "SELECT REGR_SLOPE(age, pay) AS b, REGR_R2(age, pay) AS r, REGR_COUNT(age, pay) AS n FROM visits",
            "SELECT GEOMEAN(age + 1) AS g FROM visits",
            "SELECT plan, member, COUNT(*) AS n FROM visits GROUP BY plan, member WITH ROLLUP",
            "SELECT COUNT(*) AS n FROM visits WHERE age IN UNNEST([0, 30]) OR CAST(note AS VARCHAR(2)) = 'x'",
            "SELECT COUNT(*) AS n FROM (visits JOIN codes USING (plan)) WHERE factor > 3",
        )
    )


def _of_public(chance: random.Random) -> str:
    """Subqueries of public tables that are constants, and keys that public tables allow together."""
    factor = chance.choice(("factor > 3", "factor IN (0, 30) OR c.plan = 'b'", "factor < 100 OR member"))
    of_public = factor.replace("member", "c.plan < 'b'")
    return chance.choice(
        (
            "SELECT COUNT(*) AS n FROM visits WHERE age > (SELECT factor FROM codes WHERE plan = 'b')",
            "SELECT COUNT(*) AS n FROM visits WHERE member OR age IN (SELECT factor FROM codes)",
            "SELECT f, COUNT(*) FROM visits JOIN (SELECT plan, -factor AS f FROM codes) AS c USING (plan) GROUP BY 1",
            "SELECT COUNT(*) AS n FROM visits JOIN (SELECT factor // 31 AS f FROM codes) AS c ON age // 31 = f",
            "SELECT COUNT(*) AS n FROM visits WHERE age IN (SELECT factor + 1 FROM codes)",
            "SELECT SUM(age) AS s FROM visits AS v WHERE EXISTS (SELECT 1 FROM codes AS c WHERE c.plan = v.plan)",
            f"SELECT factor, COUNT(*) AS n FROM visits JOIN codes AS c USING (plan) WHERE {factor} GROUP BY factor",
            "SELECT factor, SUM(age) AS s FROM visits LEFT JOIN codes AS c ON visits.plan = c.plan "
            f"AND ({of_public}) GROUP BY 1",
            "SELECT c.factor, d.factor, COUNT(*) AS n FROM visits JOIN codes AS c USING (plan) JOIN codes AS d "
            f"ON d.plan = c.plan AND d.factor >= c.factor WHERE c.{factor.split(' OR')[0]} GROUP BY 1, 2",
        )
    )


def _of_units(chance: random.Random) -> str:
    """Conditions on a unit's own rows under OR, and joins that keep what has no partner."""
    older = "EXISTS (SELECT 1 FROM visits AS w WHERE w.person = v.person AND w.age > v.age)"
    among = f"v.person IN (SELECT person FROM visits{_where(chance)})"
    join = chance.choice(("FULL", "RIGHT"))
    return chance.choice(
        (
            f"SELECT COUNT(*) AS n FROM visits AS v WHERE {chance.choice(('NOT ', ''))}{older} OR v.member",
            f"SELECT plan, SUM(age) AS s FROM visits AS v WHERE v.age > 30 OR NOT ({among}) GROUP BY plan",
            "SELECT COUNT(*) AS n, SUM(GREATEST(a.age, b.age)) AS s FROM (SELECT person, age FROM visits WHERE member) "
            f"AS a {join} JOIN (SELECT person, age FROM visits WHERE plan = 'a') AS b ON a.person = b.person",
        )
    )


def _bounded(chance: random.Random) -> str:
    """Bounds that are stated by the question's own conditions, or found."""
    return chance.choice(
        (
            "SELECT plan, SUM(score) AS s FROM visits WHERE score > 0 AND score <= 50 GROUP BY plan",
            "SELECT AVG(score) AS a, VAR_POP(score) AS v FROM visits WHERE score BETWEEN -5 AND 9 AND member",
            "SELECT SUM(age, contribution_bounds_per_group => AUTO) AS s FROM visits",
            "SELECT plan, AVG(score, contribution_bounds_per_row => AUTO) AS a FROM visits GROUP BY plan",
        )
    )


def _google(chance: random.Random) -> str:
    said = chance.choice(
        (
            "max_groups_contributed = 1",
            "delta = NULL, max_groups_contributed = NULL, max_rows_contributed = 1",
            "max_rows_contributed = 2, max_groups_contributed = 1",
        )
    )
    shown = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({said})"
    return chance.choice(
        (
            f"{shown} plan, SUM(score) AS s FROM visits GROUP BY plan",
            f"{shown} plan, AVG(age, contribution_bounds_per_group => (0, 40)) AS a FROM visits GROUP BY plan",
            f"{shown} plan, COUNT(*, report_format => 'JSON') AS n FROM visits GROUP BY plan",
            f"SELECT plan, n FROM ({shown} plan, COUNT(*, contribution_bounds_per_group => (0, 1)) AS n FROM visits "
            "GROUP BY plan) WHERE n > 1",
            f"{shown.replace('(', '(group_selection_strategy = PUBLIC_GROUPS, ', 1)} c.plan, COUNT(*) AS n FROM visits "
            "RIGHT JOIN (SELECT DISTINCT plan FROM floors) AS c ON visits.plan = c.plan GROUP BY c.plan",
        )
    )


FORMS: Final[Mapping[str, Form]] = {
    "a SELECT over an answer": _layer,
    "several answers": _several,
    "answers and public tables": _public,
    "a noisy number in a condition": _constant,
    "a noisy number beside others": _beside,
    "a join to a result": _joined,
    "a batch": _batch,
    "what is chosen": _chosen,
    "keys alone": _keys_alone,
    "distinct rows": _distinct,
    "other spellings": _spelled,
    "public constants and keys": _of_public,
    "conditions on a unit's rows": _of_units,
    "bounds that are stated or found": _bounded,
    "GoogleSQL": _google,
}


def _private(chance: random.Random) -> str:
    return chance.choice(
        (
            f"SELECT note, COUNT(DISTINCT person) AS n FROM visits{_where(chance)} GROUP BY note",
            f"SELECT DISTINCT note FROM visits{_where(chance)}",
            "SELECT note, SUM(age) AS s, COUNT(*) AS n FROM visits GROUP BY note ORDER BY n LIMIT 3",
            "SELECT note, n FROM (SELECT note, COUNT(DISTINCT person) AS n FROM visits GROUP BY note) WHERE n > 1",
            "SELECT x.note, x.n, y.n AS m FROM (SELECT note, COUNT(DISTINCT person) AS n FROM visits GROUP BY note) "
            "AS x LEFT JOIN (SELECT note, COUNT(*) AS n FROM visits WHERE member GROUP BY note) AS y USING (note)",
        )
    )


PRIVATE: Final[Form] = _private


def questions(seed: int) -> list[Question]:
    """Return a question of every form."""
    return [form(random.Random(f"{seed} {name}")) for name, form in FORMS.items()]

"""Random questions over rows that meet others by comparisons, and over the newer forms that SQL of tools has.

Rows begin as joins by comparisons, LEFT JOIN with any condition, UNPIVOT, lists of constants, or fields of JSON texts.
What stands on them is grown as over any rows. Whole questions are PIVOT, public rows that nobody matches, the least of
keys, and quantiles over results.
"""

import random
from collections.abc import Callable
from typing import Final

from tests.support.query.questions import BOOLEAN, CODES, DATE, NUMBER, TEXT, VISITS, Grower, Rows

_PAIRS: Final = (("age", "factor"), ("score", "factor"), ("cost", "rate"), ("pay", "rate"), ("pay", "factor"))
Form = Callable[[random.Random], Rows]


def _shown(alias: str, columns: dict[str, str]) -> str:
    return ", ".join(f"{alias}.{name}" for name in columns)


def _with_codes(on: str, kind: str, chance: random.Random) -> Rows:
    """Return visits beside codes, of which a column that has the name of one of visits has another."""
    others = {"code" if name == "plan" else name: kind_of for name, kind_of in CODES.items()}
    shown = f"v.person, {_shown('v', VISITS)}, {_shown('c', CODES).replace('c.plan', 'c.plan AS code')}"
    first = chance.random() < 0.3 and kind == "JOIN"
    clause = f"codes c JOIN visits v ON {on}" if first else f"visits v {kind} codes c ON {on}"
    return Rows(f"(SELECT {shown} FROM {clause})", VISITS | others, "person")


def _comparison(chance: random.Random) -> str:
    own, other = chance.choice(_PAIRS)
    sign, width = chance.choice(("<", "<=", ">", ">=")), chance.choice((1, 5, 40))
    return chance.choice(
        (
            f"v.{own} {sign} c.{other}",
            f"c.{other} {sign} v.{own} + {width}",
            f"v.{own} >= c.{other} AND v.{own} < c.{other} + {width}",
            f"v.{own} BETWEEN c.{other} AND c.{other} + {width}",
            f"v.{own} {sign} c.{other} AND (v.member OR c.tier = 'gold')",
            f"v.{own} {sign} c.{other} AND v.plan = c.plan",
        )
    )


def by_comparisons(chance: random.Random) -> Rows:
    """Return visits joined to codes by comparisons."""
    return _with_codes(_comparison(chance), chance.choice(("JOIN", "JOIN", "LEFT JOIN")), chance)


def with_any_condition(chance: random.Random) -> Rows:
    """Return visits with the codes that an equality finds and a further condition keeps, or with NULL."""
    equal = chance.choice(("v.plan = c.plan", "v.age = c.factor", "v.cost = c.rate"))
    further = chance.choice(
        ("v.age > c.factor", "c.factor > 3", "v.member", "(v.age < c.factor OR c.tier IS NULL)", "v.note <> c.tier",
         "NOT (v.pay > c.rate)", "COALESCE(v.age, 0) + c.factor > 30")
    )  # fmt: skip
    return _with_codes(f"{equal} AND {further}", "LEFT JOIN", chance)


def by_series(chance: random.Random) -> Rows:
    """Return visits joined to constants."""
    series = chance.choice(("generate_series(0, 3)", "range(0, 40, 10)", "(VALUES (0), (30), (30))"))
    on = chance.choice(("v.age > g.k", "v.age = g.k", "v.age BETWEEN g.k AND g.k + 30", "v.pay <= g.k"))
    shown = f"v.person, {_shown('v', VISITS)}, g.k"
    clause = chance.choice((f"visits v JOIN {series} AS g(k) ON {on}", f"{series} AS g(k) JOIN visits v ON {on}"))
    if chance.random() < 0.4:
        keys = chance.choice(("('a', 1), ('b', 2)", "('b', 7), ('a', 7), ('none', 0)"))
        clause = f"visits v {chance.choice(('', 'LEFT '))}JOIN (VALUES {keys}) AS g(word, k) ON v.plan = g.word"
    return Rows(f"(SELECT {shown} FROM {clause})", {**VISITS, "k": NUMBER}, "person")


def unpivoted(chance: random.Random) -> Rows:
    """Return a row for each of several numbers of a visit."""
    taken = chance.sample(("age", "pay", "score"), chance.choice((2, 3)))
    nulls = chance.choice(("", "INCLUDE NULLS "))
    source = f"(SELECT person, plan, member, day, {', '.join(taken)} FROM visits)"
    kept = {"plan": TEXT, "member": BOOLEAN, "day": DATE, "kind": TEXT, "x": NUMBER}
    text = f"{source} UNPIVOT {nulls}(x FOR kind IN ({', '.join(taken)}))"
    return Rows(f"(SELECT person, {', '.join(kept)} FROM {text} AS u)", kept, "person")


def with_fields(chance: random.Random) -> Rows:
    """Return visits with a field of a JSON text that may be none."""
    made = """('{"a": ' || note || ', "b": [' || plan || ']}')"""
    field = chance.choice((f"({made} ->> 'a')", f"({made} ->> '$.b[0]')", f"JSON_VALUE({made}, '$.a')"))
    return Rows(f"(SELECT *, {field} AS field FROM visits)", {**VISITS, "field": TEXT}, None)


FORMS: Final[dict[str, Form]] = {
    "comparisons": by_comparisons, "left": with_any_condition, "series": by_series, "unpivot": unpivoted,
    "json": with_fields,
}  # fmt: skip


def _rows(chance: random.Random, *, with_unit: bool) -> Rows:
    """Return rows of one of the forms."""
    forms = [form for name, form in FORMS.items() if name != "json" or not with_unit]
    return chance.choice(forms)(chance)


def _whole(chance: random.Random) -> str:
    """Return a question that is of one of the forms as a whole."""
    inner = by_comparisons(chance).sql if chance.random() < 0.5 else "visits"
    value, condition = chance.choice(("age", "pay", "cost")), chance.choice(("member", "age > 30", "note IS NOT NULL"))
    aggregate = chance.choice((f"SUM({value})", "COUNT(*)", f"AVG({value})", f"COUNT({value})"))
    result = f"(SELECT plan, member, {aggregate} AS n FROM {inner} WHERE {condition} GROUP BY plan, member)"
    unmatched = chance.choice(("factor", "rate"))
    return chance.choice(
        (
            f"SELECT * FROM (SELECT plan, member, {value} FROM {inner}) "
            f"PIVOT ({aggregate} AS s FOR plan IN ('a', 'b'))",
            f"SELECT MEDIAN(n) AS a, QUANTILE_DISC(n, 0.25) AS b, MAX(n) AS c FROM {result} AS q",
            f"SELECT member, QUANTILE_CONT(n, 0.9) AS a, COUNT(*) AS b FROM {result} AS q GROUP BY member",
            f"SELECT MIN(k) AS a, MAX(k) AS b FROM (SELECT {value} AS k FROM visits WHERE {condition} GROUP BY 1) AS q",
            "SELECT t.k FROM (SELECT DISTINCT factor AS k FROM codes WHERE factor IS NOT NULL) AS t "
            f"LEFT JOIN (SELECT age AS k, COUNT(*) AS n FROM {inner} GROUP BY age) AS r ON r.k = t.k WHERE r.n > 1",
            f"SELECT c.tier, COUNT(v.age) AS n FROM codes c LEFT JOIN visits v ON v.age > c.{unmatched} "
            "GROUP BY c.tier",
        )
    )


def grown(seed: int, _kind: str) -> tuple[str, dict[str, int | str]]:
    """Return the question of a number, with its parameters."""
    chance = random.Random(f"matched {seed}")
    if chance.random() < 0.2:
        return _whole(chance), {}
    grower = Grower(chance, begin=_rows)
    return grower.question(), grower.values

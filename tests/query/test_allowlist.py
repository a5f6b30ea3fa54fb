"""Every kind of syntax node, and every argument of it, is understood or refused.

A parser's next release may give a node a new argument that changes what it means. Nothing may slip through: each
argument that is not on the list below is put into a question that is answered, which must then be refused.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB

from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import load
from lapwing.errors import QueryRefused
from lapwing.query.aggregates import outputs
from lapwing.query.bind import bind as bind_module
from lapwing.query.bind.bind import bind
from lapwing.query.expressions import calls, library
from lapwing.query.expressions.rows import RowScope
from lapwing.query.text.parse import Parsed
from tests.support.effort import is_long, one_in
from tests.support.query.clean import FIXTURES

# What a node may carry. Of those in the second place the meaning is fixed by the dialect: they are read over.
UNDERSTOOD: dict[type[exp.Expr], tuple[set[str], set[str]]] = {
    exp.Select: (
        {
            "expressions",
            "from_",
            "joins",
            "where",
            "group",
            "having",
            "order",
            "limit",
            "offset",
            "with_",
            "distinct",
            "qualify",
            "windows",
        },
        set(),
    ),
    exp.From: ({"this"}, set()),
    exp.Table: ({"this", "alias"}, set()),
    exp.TableAlias: ({"this"}, set()),
    exp.Where: ({"this"}, set()),
    exp.Group: ({"expressions", "all"}, set()),
    exp.With: ({"expressions"}, set()),
    exp.CTE: ({"this", "alias"}, set()),
    exp.Subquery: ({"this", "alias"}, set()),
    exp.Union: ({"this", "expression", "distinct", "with_"}, set()),
    exp.Join: ({"this", "on", "using", "side", "kind"}, set()),
    exp.Exists: ({"this"}, set()),
    exp.Nullif: ({"this", "expression"}, set()),
    exp.Window: ({"this", "partition_by", "order", "over", "spec", "alias"}, set()),
    exp.WindowSpec: ({"kind", "start", "start_side", "end", "end_side"}, set()),
    exp.IgnoreNulls: ({"this"}, set()),
    exp.PercentRank: (set(), set()),
    exp.CumeDist: (set(), set()),
    exp.Ntile: ({"this"}, set()),
    exp.FirstValue: ({"this"}, set()),
    exp.LastValue: ({"this"}, set()),
    exp.NthValue: ({"this", "offset"}, set()),
    exp.Qualify: ({"this"}, set()),
    exp.RowNumber: (set(), set()),
    exp.Rank: (set(), set()),
    exp.DenseRank: (set(), set()),
    exp.Lag: ({"this", "offset", "default"}, set()),
    exp.Lead: ({"this", "offset", "default"}, set()),
    exp.LogicalAnd: ({"this"}, set()),
    exp.LogicalOr: ({"this"}, set()),
    exp.Filter: ({"this", "expression"}, set()),
    exp.CountIf: ({"this"}, set()),
    exp.Variance: ({"this"}, set()),
    exp.VariancePop: ({"this"}, set()),
    exp.Stddev: ({"this"}, set()),
    exp.StddevPop: ({"this"}, set()),
    exp.StddevSamp: ({"this"}, set()),
    exp.CovarPop: ({"this", "expression"}, set()),
    exp.CovarSamp: ({"this", "expression"}, set()),
    exp.Corr: ({"this", "expression"}, set()),
    exp.Grouping: ({"expressions"}, set()),
    exp.GroupingSets: ({"expressions"}, set()),
    exp.Rollup: ({"expressions"}, set()),
    exp.Cube: ({"expressions"}, set()),
    exp.Tuple: ({"expressions"}, set()),
    exp.Having: ({"this"}, set()),
    exp.Order: ({"expressions"}, set()),
    exp.Ordered: ({"this", "desc", "nulls_first"}, set()),
    exp.Limit: ({"expression"}, set()),
    exp.Offset: ({"expression"}, set()),
    exp.Alias: ({"this", "alias"}, set()),
    exp.Identifier: ({"this", "quoted"}, set()),
    exp.Column: ({"this", "table"}, set()),
    exp.Literal: ({"this", "is_string"}, set()),
    exp.Boolean: ({"this"}, {"is_string"}),
    exp.Null: (set(), {"this", "is_string"}),
    exp.Star: (set(), set()),
    exp.Paren: ({"this"}, set()),
    exp.Distinct: ({"expressions"}, set()),
    exp.Count: ({"this"}, {"big_int"}),
    exp.Sum: ({"this"}, set()),
    exp.Avg: ({"this"}, set()),
    exp.Median: ({"this"}, set()),
    exp.Quantile: ({"this", "quantile"}, set()),
    exp.ApproxQuantile: ({"this", "quantile"}, set()),
    exp.PercentileCont: ({"this", "expression"}, set()),
    exp.PercentileDisc: ({"this", "expression"}, set()),
    exp.WithinGroup: ({"this", "expression"}, set()),
    exp.Min: ({"this"}, set()),
    exp.Max: ({"this"}, set()),
    exp.Add: ({"this", "expression"}, set()),
    exp.Sub: ({"this", "expression"}, set()),
    exp.Mul: ({"this", "expression"}, set()),
    exp.Div: ({"this", "expression"}, {"typed", "safe"}),
    exp.Neg: ({"this"}, set()),
    exp.Abs: ({"this"}, set()),
    exp.Floor: ({"this"}, set()),
    exp.Ceil: ({"this"}, set()),
    exp.Round: ({"this", "decimals"}, set()),
    exp.Least: ({"this", "expressions"}, {"ignore_nulls"}),
    exp.Greatest: ({"this", "expressions"}, {"ignore_nulls"}),
    exp.Coalesce: ({"this", "expressions"}, set()),
    exp.Case: ({"this", "ifs", "default"}, set()),
    exp.If: ({"this", "true", "false"}, set()),
    exp.EQ: ({"this", "expression"}, set()),
    exp.NEQ: ({"this", "expression"}, set()),
    exp.LT: ({"this", "expression"}, set()),
    exp.LTE: ({"this", "expression"}, set()),
    exp.GT: ({"this", "expression"}, set()),
    exp.GTE: ({"this", "expression"}, set()),
    exp.And: ({"this", "expression"}, set()),
    exp.Or: ({"this", "expression"}, set()),
    exp.Not: ({"this"}, set()),
    exp.Between: ({"this", "low", "high", "symmetric"}, set()),
    exp.Any: ({"this"}, set()),
    exp.All: ({"this"}, set()),
    exp.In: ({"this", "expressions", "query"}, set()),
    exp.Is: ({"this", "expression"}, set()),
    exp.Like: ({"this", "expression", "negate"}, set()),
    exp.Cast: ({"this", "to"}, {"safe"}),
    exp.TryCast: ({"this", "to"}, {"safe"}),
    exp.DataType: ({"this"}, set()),
    exp.ILike: ({"this", "expression", "negate"}, set()),
    exp.Escape: ({"this", "expression"}, set()),
    exp.Interval: ({"this", "unit"}, {"fraction_in_string"}),
    exp.AtTimeZone: ({"this", "zone"}, set()),
    exp.DateBin: ({"this", "expression", "unit"}, set()),
    exp.StrToTime: ({"this", "format"}, set()),
    exp.UnixToTime: ({"this", "scale"}, set()),
    exp.Var: ({"this"}, {"is_string"}),
    exp.DateAdd: ({"this", "expression"}, set()),
    exp.DatetimeAdd: ({"this", "expression"}, set()),
    exp.DatetimeSub: ({"this", "expression"}, set()),
    exp.TimestampAdd: ({"this", "expression"}, set()),
    exp.TimestampSub: ({"this", "expression"}, set()),
    exp.DataTypeParam: ({"this"}, set()),
    exp.JSONExtractScalar: ({"this", "expression"}, {"only_json_types", "scalar_only"}),
    exp.JSONValue: ({"this", "path"}, set()),
    exp.JSONPath: ({"expressions"}, set()),
    exp.JSONPathRoot: (set(), set()),
    exp.JSONPathKey: ({"this"}, set()),
    exp.JSONPathSubscript: ({"this"}, set()),
    exp.Anonymous: ({"this", "expressions"}, set()),
    exp.CurrentDate: (set(), set()),
    exp.CurrentTime: (set(), set()),
    exp.CurrentTimestamp: (set(), set()),
    **{
        kind: ({*call.words, *call.flags, *call.needed, *call.optional, *call.rest}, set(call.ignored))
        for kind, call in library.LIBRARY.items()
    },
}

# Together they hold every node of the list, inside aggregates and around them.
QUESTIONS = [
    """SELECT plan AS p, COUNT(*) AS n, COUNT(DISTINCT person) AS "People", SUM(v.age) AS s, AVG(-cost) AS m
       FROM visits AS v WHERE NOT (age + 1 > 2 AND cost - 1 >= 2 OR age * 2 < 9 OR age / 2 <= 4 OR age = 3)
       GROUP BY plan HAVING COUNT(*) > 3 ORDER BY n DESC NULLS FIRST, 1 LIMIT 10 OFFSET 2""",
    """SELECT COUNT(*) AS n FROM visits WHERE age <> 1 AND member IS NOT TRUE AND note IS NULL AND note LIKE 'a%'
       AND note NOT LIKE 'b' AND age BETWEEN 1 AND 2 AND age IN (1, 2) AND born > DATE '2020-01-01'
       AND member = TRUE""",
    """SELECT SUM(CASE WHEN member THEN ABS(age) ELSE FLOOR(cost) END) AS a, SUM(CASE plan WHEN 'a' THEN 1 END) AS b,
       SUM(CEIL(cost) + ROUND(cost, 1) + LEAST(age, 1) + GREATEST(age, 1) + COALESCE(age, NULL, 1)) AS c,
       SUM(CAST(member AS INTEGER)) AS d, COUNT(TRY_CAST(note AS DOUBLE)) AS e FROM visits""",
    """SELECT CASE WHEN COUNT(*) > 1 THEN ABS(SUM(age)) ELSE FLOOR(AVG(age)) END AS a, ROUND(SUM(age) / 2, 1) AS b,
       CEIL(AVG(age)) + LEAST(COUNT(*), 1) - GREATEST(COUNT(*), 1) * COALESCE(COUNT(*), NULL) AS c, -(COUNT(*)) AS d,
       CASE COUNT(*) WHEN 1 THEN 2 END AS e FROM visits
       HAVING NOT (COUNT(*) IN (1, 2) OR COUNT(*) BETWEEN 1 AND 2 OR COUNT(*) IS NULL AND COUNT(*) <> 1)
       OR COUNT(*) = 1 OR COUNT(*) >= 1 OR COUNT(*) < 1 OR COUNT(*) <= 1 OR TRUE""",
    """SELECT SUM(ROUND(age, 1) + TRUNC(cost, 1) + age % 7 + age // 7 + SIGN(age) + POWER(age, 2) + SQRT(age) + LN(age)
       + LOG(2, age) + EXP(share) + PI() + RADIANS(age) + DEGREES(share) + SIN(age) + COS(age) + ATAN(age)
       + WIDTH_BUCKET(age, 0, 100, 10) + NULLIF(age, 0) + IF(member, age, 1)) AS n FROM visits
       WHERE age IS NOT DISTINCT FROM 1 AND age IS DISTINCT FROM 2 AND XOR(member, age > 1)""",
    """SELECT SUM(EXTRACT(year FROM born) + YEAR(born) + QUARTER(born) + MONTH(born) + WEEK(born) + WEEKOFYEAR(born)
       + DAY(born) + DAYOFMONTH(born) + DAYOFYEAR(born) + DAYOFWEEK(born) + ISODOW(born) + HOUR(seen) + MINUTE(seen)
       + SECOND(seen) + EPOCH(born) + DATE_DIFF('day', born, seen) + DATE_PART('year', born)) AS n FROM visits
       WHERE DATE_TRUNC('month', seen) > LAST_DAY(born) AND MAKE_DATE(2020, 1, 2) < born + INTERVAL 1 DAY
       AND MAKE_TIMESTAMP(2020, 1, 2, 3, 4, 5.5) < seen
       AND STRFTIME(born, '%Y') = '2000' AND MONTHNAME(born) <> DAYNAME(born)
       AND DATE_ADD(born, INTERVAL 2 DAY) > seen - INTERVAL (age) HOUR""",
    """SELECT COUNT(*) AS n FROM visits WHERE TIME_BUCKET(INTERVAL '15 minutes', seen) AT TIME ZONE 'UTC' > '2020-01-01'
       AND STRPTIME('2020-01-01', '%Y-%m-%d') < seen AND (note ->> '$.a[0]') = 'b'
       AND JSON_VALUE(note, '$.a') > 'b'
       AND TO_TIMESTAMP(age) < TO_TIMESTAMP('2020', 'YYYY')""",
    """SELECT COUNT(*) AS n FROM visits WHERE DATE(born) > DATE_TRUNC('month', DATE '2020-01-15')
       AND DATE(2020, 1, 2) > born AND TIMESTAMP(born) > TIMESTAMP_ADD(seen, INTERVAL 1 HOUR)
       AND seen > TIMESTAMP_SUB(seen, INTERVAL 1 HOUR)
       AND DATETIME_ADD(seen, INTERVAL 1 DAY) > DATETIME_SUB(seen, INTERVAL 1 DAY) AND TO_CHAR(born, 'YYYY') = '2000'
       AND SAFE_DIVIDE(age, cost) > 1 AND EQUAL_NULL(age, 1) AND NVL2(note, 1, 0) = 1 AND note ~* 'a'
       AND note LIKE ANY ('a%', 'b') AND note ILIKE ALL ('a%', 'b') AND age BETWEEN SYMMETRIC 3 AND 1
       AND CAST(cost AS DECIMAL(18, 1)) > 1""",
    """SELECT COUNT(*) AS n FROM visits WHERE UPPER(note) = LOWER(REVERSE(note))
       AND TRIM(BOTH 'a' FROM note) = LTRIM(note)
       AND SUBSTRING(note, 1, 2) = LEFT(note, 2) AND RIGHT(note, 1) = LPAD(note, 3, 'x') AND RPAD(note, 3, 'x') <> 'x'
       AND REPLACE(note, 'a', 'b') = SPLIT_PART(note, '-', 1) AND note || 'x' = CONCAT(note, 'x')
       AND CONCAT_WS('-', note, 'x') > 'a' AND STRPOS(note, 'a') > LENGTH(note) AND CONTAINS(note, 'a')
       AND STARTS_WITH(note, 'a') AND ENDS_WITH(note, 'a') AND REGEXP_MATCHES(note, 'a', 'i') AND note ILIKE 'a'
       AND REGEXP_FULL_MATCH(note, 'a', 'i') AND REGEXP_EXTRACT(note, '(a)', 1, 'i') = 'a' AND note NOT ILIKE 'b'
       AND REGEXP_REPLACE(note, 'a', 'b', 'g') = 'b' AND note LIKE 'a!%' ESCAPE '!'""",
    """SELECT MEDIAN(age) AS m, QUANTILE(age, 0.1) AS q, APPROX_QUANTILE(cost, 0.2) AS a, QUANTILE_CONT(cost, 0.3) AS c,
       QUANTILE_DISC(cost, 0.4) AS d, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY cost DESC) AS w, MIN(age) AS lo,
       PERCENTILE_DISC(0.6) WITHIN GROUP (ORDER BY cost) AS v, MAX(age) AS hi FROM visits""",
    """WITH few AS (SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan HAVING COUNT(*) > 1),
       more AS (SELECT * FROM few AS f WHERE f.n > 2)
       SELECT n > 3 AS big, SUM(n) AS s, COUNT(*) AS k FROM (SELECT * FROM more) AS t (plan, n)
       GROUP BY 1 HAVING SUM(n) > 3 ORDER BY s DESC LIMIT 2 OFFSET 1""",
    """SELECT DISTINCT plan, n, n / SUM(n) OVER () AS share
       FROM (SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan) AS t
       QUALIFY ROW_NUMBER() OVER (ORDER BY n DESC) < 3""",
    """WITH few AS (SELECT DISTINCT person, plan FROM visits UNION ALL SELECT person, plan FROM visits)
       SELECT COUNT(*) FILTER (WHERE plan = 'a') AS n, COUNT_IF(plan = 'a') AS m FROM few""",
    """SELECT VARIANCE(n) AS a, VAR_POP(n) AS b, STDDEV(n) AS c, STDDEV_POP(n) AS d, STDDEV_SAMP(n) AS e,
       COVAR_POP(n, r) AS f, COVAR_SAMP(n, r) AS g, CORR(n, r) AS h, DP_INTERVAL_LOW(a) AS i FROM
       (SELECT person, COUNT(*) AS n, BOOL_AND(member) AS x, BOOL_OR(member) AS y, MAX(r) AS r FROM
         (SELECT person, member, ROW_NUMBER() OVER (PARTITION BY person ORDER BY age DESC) AS r,
            RANK() OVER (PARTITION BY person ORDER BY age) AS k,
            DENSE_RANK() OVER (PARTITION BY person ORDER BY age) AS d,
            LAG(age, 1, 0) OVER (PARTITION BY person ORDER BY age) AS b,
            LEAD(age, 1, 0) OVER (PARTITION BY person ORDER BY age) AS c FROM visits QUALIFY k < 9) AS w
         GROUP BY person) AS u WHERE x OR y""",
    """SELECT SUM(a + b + c + d + e + f + g) AS s FROM (SELECT PERCENT_RANK() OVER w AS a, CUME_DIST() OVER w AS b,
       NTILE(2) OVER w AS c, FIRST_VALUE(age) OVER w AS d, LAST_VALUE(age IGNORE NULLS) OVER (w ROWS BETWEEN 1 PRECEDING
       AND 1 FOLLOWING) AS e, NTH_VALUE(age, 2) OVER (w ROWS UNBOUNDED PRECEDING) AS f,
       SUM(age) FILTER (WHERE member) OVER (PARTITION BY person ORDER BY born RANGE INTERVAL 1 DAY PRECEDING) AS g
       FROM visits WINDOW w AS (PARTITION BY person ORDER BY age))""",
    """SELECT plan, member, GROUPING(plan) AS g, COUNT(*) AS n FROM visits
       GROUP BY GROUPING SETS ((plan, member), ROLLUP (plan), CUBE (member))""",
    "SELECT SUM(points + 1) AS s FROM visits WHERE points BETWEEN 1 AND 5 AND points IN (2, 3)",
]
# Joined to a public table of the catalog, which these tests do not open.
JOINED = {exp.Join, exp.Exists}
WRITTEN = {exp.JSONValue}  # for JSON_VALUE, which the parser does not know
# Refused by a remedy of their own.
ALWAYS_REFUSED = {exp.CurrentDate, exp.CurrentTime, exp.CurrentTimestamp}

SURPRISES: list[Callable[[], Any]] = [
    lambda: True,
    lambda: [exp.column("age")],
]


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load(FIXTURES / "catalog.toml")


def tree(text: str) -> exp.Select:
    (statement,) = DuckDB().parse(text)
    assert isinstance(statement, exp.Select)
    return statement


def refused(changed: exp.Select, text: str, catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(bind_module, "parse", lambda _text, _parameters=(): Parsed(select=changed))
    try:
        bind(text, catalog)
    except QueryRefused:
        return True
    return False


def places(text: str) -> Iterator[tuple[int, exp.Expr]]:
    return enumerate(tree(text).walk())


def changed_at(text: str, place: int, name: str, value: object) -> exp.Select:
    """Return a fresh tree with one argument of one node set; the fields of a node alone, so that nothing else moves."""
    statement = tree(text)
    node = next(node for i, node in enumerate(statement.walk()) if i == place)
    node.args[name] = value
    return statement


@pytest.mark.parametrize("text", QUESTIONS)
def test_the_questions_are_answered(text: str, catalog: Catalog) -> None:
    assert bind(text, catalog).outputs


def test_the_questions_hold_every_node_that_is_understood() -> None:
    held = {type(node) for text in QUESTIONS for _, node in places(text)}
    assert held == set(UNDERSTOOD) - ALWAYS_REFUSED - JOINED - WRITTEN
    assert {*calls.HANDLERS, *outputs.HANDLERS} <= set(UNDERSTOOD)


def firsts() -> dict[str, list[int]]:
    """Return the places of each question at which a node stands below its parent as none did before."""
    seen: set[Any] = set()
    first: dict[str, list[int]] = {}
    for text in QUESTIONS:
        first[text] = []
        for place, node in places(text):
            standing = (type(node), type(node.parent), node.arg_key)
            if standing not in seen:
                seen.add(standing)
                first[text].append(place)
    return first


FIRSTS = firsts()
EVERY = {text: [place for place, _ in places(text)] for text in QUESTIONS}


@pytest.mark.parametrize("looked_at", [FIRSTS, pytest.param(EVERY, marks=pytest.mark.long)], ids=["firsts", "every"])
@pytest.mark.parametrize("text", one_in(8, QUESTIONS))
def test_an_argument_that_is_not_understood_is_refused(
    text: str, looked_at: Mapping[str, list[int]], catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_through = []
    statement = tree(text)
    for place, node in enumerate(list(statement.walk())):
        if place not in looked_at[text]:
            continue
        meant, read_over = UNDERSTOOD[type(node)]
        if isinstance(node, exp.If) and isinstance(node.parent, exp.Case):
            meant = meant - {"false"}
        for name in {*node.arg_types, "surprise"} - meant - read_over:
            for surprise in SURPRISES if is_long() else SURPRISES[:1]:
                before = dict(node.args)
                node.args[name] = surprise()
                if not refused(statement, text, catalog, monkeypatch):
                    let_through.append(f"{type(node).__name__}.{name}")
                node.args.clear()
                node.args.update(before)
    assert set(let_through) == set()
    assert repr(statement) == repr(tree(text)), "each was put into the question as it is written"


def every_node() -> list[type[exp.Expression]]:
    found, pending = set(), [exp.Expression]
    while pending:
        kind = pending.pop()
        if kind not in found:
            found.add(kind)
            pending.extend(kind.__subclasses__())
    return sorted(found, key=lambda kind: kind.__name__)


@pytest.mark.parametrize("every", [40, pytest.param(1, marks=pytest.mark.long)])
def test_a_node_that_is_not_understood_is_refused(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    """In a condition, in an aggregate, around one, as a key, as the table, as the limit."""
    text = "SELECT SUM(age) + 1 AS n FROM visits WHERE member GROUP BY plan ORDER BY n LIMIT 3"
    spots: dict[str, Callable[[exp.Expression, Any], Any]] = {
        "condition": lambda root, node: root.args["where"].set("this", node),
        "argument": lambda root, node: root.find(exp.Sum).set("this", node),  # type: ignore[union-attr]
        "output": lambda root, node: root.expressions[0].set("this", node),
        "key": lambda root, node: root.args["group"].set("expressions", [node]),
        "table": lambda root, node: root.args["from_"].set("this", node),
        "order": lambda root, node: root.args["order"].expressions[0].set("this", node),
        "limit": lambda root, node: root.args["limit"].set("expression", node),
        "clause": lambda root, node: root.set("limit", node),
    }
    unknown = [kind for kind in every_node() if kind not in UNDERSTOOD]
    assert len(unknown) > 500
    unknown = unknown[::every]
    let_through = []
    for spot, put in spots.items():
        root = tree(text)
        for kind in unknown:
            put(root, kind(this="x"))
            if not refused(root, text, catalog, monkeypatch):
                let_through.append((spot, kind.__name__))
    assert let_through == []


def test_an_argument_that_is_read_over_is_found(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    text = QUESTIONS[0]
    place = next(i for i, node in places(text) if isinstance(node, exp.Sum))
    changed = changed_at(text, place, "filter", exp.column("member"))
    assert refused(changed, text, catalog, monkeypatch)
    monkeypatch.setattr(RowScope, "only", lambda *_arguments: None)
    assert not refused(changed, text, catalog, monkeypatch)

"""What a refusal says to write is itself answered, typed as it stands.

Every "Write …" of the golden refusals, of the tables of names, and of the source of `query` is taken apart. A part is
typed into a query in the place of an expression, a condition or a column of the answer. Letters such as x stand for a
column, as in the remedies. What fits none of these places has a query of its own in `TYPED`, or is no SQL and stands in
`PROSE`.
"""

import ast
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from lapwing.catalog.model import Catalog
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.errors import QueryRefused
from lapwing.query.bind.bind import bind
from lapwing.query.expressions import naming
from tests.support.query import clean

TEXTS = clean.FIXTURES / "refusal_texts.txt"
WRITE = re.compile(r"\b[Ww]rite (.+?)(?=\.$|\. [A-Z]|: |; |$)")
BETWEEN = re.compile(r", or |, as in |, which |, where |, with |, of | or one like ")
PLACES = (
    "SELECT COUNT(*) AS n FROM visits WHERE ({}) IS NOT NULL",
    "SELECT COUNT(*) AS n FROM visits WHERE {}",
    "SELECT plan, {} AS v FROM visits GROUP BY plan",
)
COLUMNS = ("cost", "age", "member", "plan", "note", "born", "seen")
LETTERS = re.compile(r"(?<![%'\w])(x|y|a|b|c|d|earlier|later|name)\b(?![('])")


def remedies() -> list[str]:
    """Return all remedies that are known without asking."""
    golden = [line for line in TEXTS.read_text(encoding="utf-8").split("\n") if line and not line.startswith("[")]
    tables = (naming.REMEDIES, naming._REMEDIES_OF_NODES, naming._OF_AGGREGATES, naming._AS_NUMBERS)
    return [*golden, *chain.from_iterable(table.values() for table in tables), *in_source()]


def in_source() -> Iterator[str]:
    """Yield the texts in the source of `query` that are whole: a refusal may be newer than the golden ones."""
    for path in sorted(Path(naming.__file__).parents[1].rglob("*.py")):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        inner = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        inner |= {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
                yield node.value


def parts(remedy: str) -> Iterator[str]:
    """Yield what a remedy says to write."""
    for found in WRITE.finditer(remedy):
        yield from BETWEEN.split(found[1])


def is_answered(question: str, catalog: Catalog, facts: PublicData) -> bool:
    try:
        bind(question, catalog, facts)
    except QueryRefused:
        return False
    return True


def fits(part: str, catalog: Catalog, facts: PublicData) -> bool:
    """Tell whether a part is answered somewhere, with some column in the place of its letters."""
    columns = COLUMNS if LETTERS.search(part) else COLUMNS[:1]
    typed = (place.format(LETTERS.sub(column, part)) for place in PLACES for column in columns)
    return any(is_answered(question, catalog, facts) for question in typed)


_WINDOW = "SELECT SUM(v) AS s FROM (SELECT person, SUM(cost) OVER ({}) AS v FROM visits) WHERE v BETWEEN 0 AND 10"
_FRAME = "PARTITION BY person ORDER BY {}"
_ROWS = _FRAME.format("day")
_SUM = "SELECT SUM(weight, {}) AS s FROM visits"
_OPTIONS = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({}) plan, COUNT(*) AS n FROM visits GROUP BY plan"
_GROUPS = "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan"
_BOTH = "SELECT COUNT(*) AS n FROM (SELECT plan FROM visits {} SELECT plan FROM visits WHERE age > 60)"
_UNMATCHED = (
    "SELECT a.plan FROM codes AS a LEFT JOIN (SELECT DISTINCT plan FROM codes) AS b ON a.plan = b.plan WHERE b.plan"
)
# A query, or its WHERE, for each part that is not an expression, or that leaves something open.
TYPED = {
    "(0, 100)": _SUM.format("contribution_bounds_per_group => (0, 100)"),
    "(VALUES (1), (2)) AS v (x)": f"SELECT v.x, q.n FROM ({_GROUPS}) AS q, (VALUES (1), (2)) AS v (x)",
    "* REPLACE (x AS y)": "SELECT AVG(age) AS a FROM (SELECT * REPLACE (age + 1 AS age) FROM visits)",
    "(SELECT … FROM …)": "SELECT COUNT(*) AS n FROM (SELECT * FROM visits)",
    "2026-03-31 or 2026-03-31 12:00:00": "WHERE seen > '2026-03-31 12:00:00'",
    "AT TIME ZONE 'Europe/Berlin'": "WHERE seen AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Berlin' > '2026-01-01'",
    "CASE WHEN condition THEN …": "SELECT plan, CASE WHEN COUNT(*) > 9 THEN 1 END AS c FROM visits GROUP BY plan",
    "CASE WHEN x < 18 THEN 1 …": "SELECT SUM(CASE WHEN age < 18 THEN 1 ELSE 2 END) AS s FROM visits",
    "CAST(x AS TIMESTAMP) of a date or timestamp": "WHERE CAST(born AS TIMESTAMP) > '2000-01-01'",
    "CAST(x AS VARCHAR) where it can be": "WHERE CAST(age AS VARCHAR) = '7'",
    "CONVERT(type, x)": "WHERE CONVERT(INT, cost) > 3",
    "DATE_TRUNC('month', x) and DATE_DIFF('day', earlier, later)": (
        "WHERE DATE_TRUNC('month', born) < born AND DATE_DIFF('day', born, day) > 3"
    ),
    "DATE_TRUNC('month', x), 'quarter' or 'year'": "WHERE DATE_TRUNC('quarter', born) < born",
    "DECIMAL(10, 2)": "SELECT SUM(CAST(cost AS DECIMAL(10, 2))) AS s FROM visits",
    "EXCEPT": _BOTH.format("EXCEPT"),
    "EXISTS (SELECT 1 FROM …)": "WHERE EXISTS (SELECT 1 FROM codes AS k WHERE k.plan = visits.plan)",
    "FROM (SELECT y, k, x FROM …) PIVOT (SUM(x) AS s FOR k IN ('a', 'b'))": (
        "SELECT * FROM (SELECT member, plan, cost FROM visits) PIVOT (SUM(cost) AS s FOR plan IN ('a', 'b'))"
    ),
    "GROUP BY ROLLUP (…)": "SELECT plan, COUNT(*) AS n FROM visits GROUP BY ROLLUP (plan)",
    "GROUP BY x": _GROUPS,
    "GROUP BY x and COUNT(*)": _GROUPS,
    "ILIKE '50!%' ESCAPE '!'": "WHERE note ILIKE '50!%' ESCAPE '!'",
    "IN": "WHERE plan IN (SELECT plan FROM codes)",
    "IN (SELECT plan FROM … GROUP BY plan HAVING …)": (
        "WHERE plan IN (SELECT plan FROM visits GROUP BY plan HAVING COUNT(*) > 2)"
    ),
    "INTERSECT": _BOTH.format("INTERSECT"),
    "INTERVAL '1 day 12 hours'": "WHERE TIME_BUCKET(INTERVAL '1 day 12 hours', seen) < seen",
    "INTERVAL '15' MINUTE": "WHERE TIME_BUCKET(INTERVAL '15' MINUTE, seen) < seen",
    "INTERVAL 3 DAY": "WHERE day + INTERVAL 3 DAY > born",
    "INTERVAL 30 DAY": "WHERE seen - born > INTERVAL 30 DAY",
    "INTERVAL 7 DAY": _WINDOW.format(f"{_FRAME.format('born')} RANGE BETWEEN INTERVAL 7 DAY PRECEDING AND CURRENT ROW"),
    "IS NOT NULL": f"{_UNMATCHED} IS NOT NULL",
    "IS NULL": "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan HAVING SUM(cost) IS NULL",
    "IS NULL or IS NOT NULL": "WHERE note IS NULL OR note IS NOT NULL",
    "JOIN": "SELECT COUNT(*) AS n FROM visits AS v JOIN codes AS k ON v.plan = k.plan",
    "LAG(COUNT(*), 1)": "SELECT plan, LAG(COUNT(*), 1) OVER (ORDER BY plan) AS l FROM visits GROUP BY plan",
    "LEFT JOIN … ON a.x = b.x, and WHERE b.x IS NULL": f"{_UNMATCHED} IS NULL",
    "LIKE '50!%' ESCAPE '!'": "WHERE note LIKE '50!%' ESCAPE '!'",
    "LIMIT at the end": f"{_GROUPS} LIMIT 10",
    "LOG10(x), LOG2(x) or LN(x)": "WHERE LOG10(age + 1) < 2 OR LOG2(age + 1) < 6 OR LN(age + 1) < 4",
    "NTH_VALUE(x, 2)": _WINDOW.replace("SUM(cost)", "NTH_VALUE(cost, 2)").format(
        f"{_ROWS} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
    ),
    "ON a.x = b.y": f"SELECT a.plan, a.n FROM ({_GROUPS}) AS a JOIN codes AS b ON a.plan = b.plan",
    "ON or USING": "SELECT COUNT(*) AS n FROM visits AS v JOIN codes AS k USING (plan)",
    "OVER (PARTITION BY …)": _WINDOW.format("PARTITION BY person"),
    "SUM(GREATEST(x, 0), …) - SUM(GREATEST(-x, 0), …)": (
        "SELECT SUM(GREATEST(cost, 0), contribution_bounds_per_group => RACE) "
        "- SUM(GREATEST(-cost, 0), contribution_bounds_per_group => RACE) AS s FROM visits"
    ),
    "UNBOUNDED PRECEDING": (
        "SELECT plan, SUM(COUNT(*)) OVER (ORDER BY plan ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS s "
        "FROM visits GROUP BY plan"
    ),
    "VARCHAR(19)": "WHERE CONVERT(VARCHAR(19), seen, 120) = '2026-01-01 12:00:00'",
    "contribution_bounds_per_row": _SUM.format("contribution_bounds_per_row => (0, 100)"),
    "contribution_bounds_per_row => (0, …)": _SUM.format("contribution_bounds_per_row => (0, 9)"),
    "contribution_bounds_per_row => AUTO for the average of rows": (
        "SELECT AVG(weight, contribution_bounds_per_row => AUTO) AS a FROM visits"
    ),
    "one like DAY, MONTH or YEAR": "WHERE born + INTERVAL 1 DAY < day OR born - INTERVAL 2 MONTH < day",
    "LIMIT 10": f"{_GROUPS} LIMIT 10",
    "MEDIAN(n)": f"SELECT MEDIAN(n) AS m FROM ({_GROUPS})",
    "NOT EXISTS (SELECT 1 FROM … WHERE …)": (
        "WHERE NOT EXISTS (SELECT 1 FROM visits AS old WHERE old.person = visits.person AND old.age > 60)"
    ),
    "NTILE(4)": "SELECT plan, NTILE(4) OVER (ORDER BY COUNT(*)) AS t FROM visits GROUP BY plan",
    "OFFSET 10": f"{_GROUPS} LIMIT 10 OFFSET 10",
    "OVER (ORDER BY COUNT(*) DESC)": (
        "SELECT plan, ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC) AS r FROM visits GROUP BY plan"
    ),
    "OVER (PARTITION BY person …)": _WINDOW.format("PARTITION BY person"),
    "OVER (PARTITION BY … ORDER BY …)": _WINDOW.format(_ROWS),
    "PERCENTILE_CONT(x, 0.5, …)": _SUM.replace("SUM(", "PERCENTILE_CONT(").format(
        "0.5, contribution_bounds_per_row => (0, 100)"
    ),
    "QUANTILE(x, 0.25), QUANTILE(x, 0.5) and so on": (
        "SELECT QUANTILE(cost, 0.25) AS q, QUANTILE(cost, 0.5) AS m FROM visits"
    ),
    "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW": _WINDOW.format(f"{_ROWS} ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"),
    "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING": _WINDOW.format(
        f"{_ROWS} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
    ),
    "ROWS BETWEEN … or RANGE BETWEEN …": _WINDOW.format(f"{_ROWS} RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"),
    "SELECT 1": "WHERE EXISTS (SELECT 1 FROM codes AS k WHERE k.plan = visits.plan)",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (…) once, at the SELECT that is released": _OPTIONS.format("epsilon = 1"),
    "SELECT x, COUNT(*) … GROUP BY x ORDER BY COUNT(*) DESC LIMIT 1": f"{_GROUPS} ORDER BY COUNT(*) DESC LIMIT 1",
    "STRING_AGG(x, ', ')": f"SELECT STRING_AGG(plan, ', ') AS s FROM ({_GROUPS})",
    "STRFTIME(x, '%Y-%m'), up to 100 long": "WHERE STRFTIME(seen, '%Y-%m') = '2026-01'",
    "SELECT … GROUP BY …": _GROUPS,
    "UNION ALL": f"{_GROUPS} UNION ALL {_GROUPS}",
    "UNION ALL throughout": f"{_GROUPS} UNION ALL {_GROUPS}",
    "UNION last": f"{_GROUPS} UNION ALL {_GROUPS} UNION {_GROUPS}",
    "UNPIVOT (x FOR k IN (a, b))": (
        "SELECT k, SUM(x) AS s FROM (SELECT cost AS a, share AS b FROM visits) UNPIVOT (x FOR k IN (a, b)) GROUP BY k"
    ),
    "UPPER(LEFT(x, 1)) || LOWER(SUBSTRING(x, 2)) for one word": (
        "WHERE UPPER(LEFT(note, 1)) || LOWER(SUBSTRING(note, 2)) = 'Ulm'"
    ),
    "WHERE": "WHERE age > 18",
    "WITH name AS (SELECT …)": "WITH some AS (SELECT * FROM visits) SELECT COUNT(*) AS n FROM some",
    "contribution_bounds_per_group => (0, 100)": _SUM.format("contribution_bounds_per_group => (0, 100)"),
    "contribution_bounds_per_row => (0, 100)": _SUM.format("contribution_bounds_per_row => (0, 100)"),
    "delta = 1e-6": _OPTIONS.format("epsilon = 1, delta = 1e-6"),
    "epsilon = 0.5": _OPTIONS.format("epsilon = 0.5"),
    "epsilon => 0.5": "SELECT COUNT(*, epsilon => 0.5) AS n FROM visits",
    "group_selection_strategy = LAPLACE_THRESHOLD": _OPTIONS.replace("plan", "note").format(
        "epsilon = 1, delta = 1e-6, group_selection_strategy = LAPLACE_THRESHOLD"
    ),
    "max_groups_contributed = 3": _OPTIONS.format("epsilon = 1, max_groups_contributed = 3"),
    "one like 'Europe/Berlin'": ("WHERE seen AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Berlin' > '2026-01-01'"),
    "person IN (SELECT person FROM …)": "WHERE person IN (SELECT person FROM visits WHERE age > 60)",
    "privacy_unit_column = person_id": _OPTIONS.format("epsilon = 1, privacy_unit_column = person"),
    "table.column": "WHERE visits.age > 18",
    "the condition itself, x or NOT x": "WHERE member OR NOT member",
    "the time in UTC, as TIMESTAMPTZ '…Z'": "WHERE seen > TIMESTAMPTZ '2026-01-01 12:00:00Z'",
    "x IN (1, 2, 3), without NULL": "WHERE age IN (1, 2, 3)",
    "x ->> '$.address.city' or x ->> '$.tags[0]'": "WHERE note ->> '$.address.city' = note ->> '$.tags[0]'",
    "… WHERE a.x = b.x": "WHERE EXISTS (SELECT 1 FROM codes AS b WHERE b.plan = visits.plan)",
    "% and // instead": "WHERE age % 2 = 1 AND age // 2 = 3",
}
# What says how to write something, and is no SQL of its own; and lists of parameters.
PROSE = re.compile(
    r"\) where it ends|\$name for the values of a mapping|\? or \$1 for the values of a list"
    r"|(a|days|decimal|it|leave|name|numbers|one of|only|the|timestamps|what)\b(?! like).*|counts .*"
    r"|all of them alike|an aggregate without GROUP BY|fewer|group by fewer values|its position"
    r"|NOT EXISTS with an equality|[a-z] is (a|one of) .*"
)


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    return clean.catalog_in(tmp_path_factory.mktemp("remedies"))


@pytest.fixture(scope="module")
def facts(catalog: Catalog) -> Iterator[PublicData]:
    facts = PublicData(catalog)
    yield facts
    facts.close()


@pytest.mark.long
def test_every_remedy_is_answered_as_it_stands(catalog: Catalog, facts: PublicData) -> None:
    asked = sorted({part for remedy in remedies() for part in parts(remedy)})
    assert len(asked) > 120
    refused = [
        part for part in asked if part not in TYPED and not PROSE.fullmatch(part) and not fits(part, catalog, facts)
    ]
    assert not refused
    assert TYPED.keys() <= set(asked), "a remedy that nobody gives any more"


@pytest.mark.parametrize("part", TYPED)
def test_every_remedy_with_a_query_of_its_own_is_answered(part: str, catalog: Catalog, facts: PublicData) -> None:
    typed = TYPED[part]
    bind(f"SELECT COUNT(*) AS n FROM visits {typed}" if typed.startswith("WHERE ") else typed, catalog, facts)


@pytest.mark.parametrize("part", ["CBRT(x)", "TRY_CAST(x AS BLOB)", "EPOCH_MS(x)", "STR_TO_DATE(x, '%Y')"])
def test_a_remedy_that_is_refused_would_be_found(part: str, catalog: Catalog, facts: PublicData) -> None:
    assert list(parts(f"It is not answered. Write {part}.")) == [part]
    assert part not in TYPED
    assert not PROSE.fullmatch(part)
    assert not fits(part, catalog, facts)

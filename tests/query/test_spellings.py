"""Spellings of other databases: each is the same expression as a plain one, which means what it should."""

import duckdb
import pytest

from lapwing.catalog.model import Catalog
from lapwing.engines.duckdb import expressions as printers
from lapwing.errors import QueryRefused
from lapwing.query.bind.bind import bind
from lapwing.query.expressions import library, naming
from lapwing.query.text.syntax_refusals import FUNCTIONS
from tests.query.test_functions import agree, bound, differences, exact, values
from tests.query.test_functions import catalog as catalog_fixture
from tests.query.test_functions import engine as engine_fixture
from tests.support.effort import only

catalog, engine = catalog_fixture, engine_fixture

SAME = {
    # numbers
    "SQUARE(a)": "a * a",
    "SAFE_DIVIDE(a, b)": "a / b",
    "DIV0(a, b)": "CASE WHEN b = 0 AND a IS NOT NULL THEN 0 ELSE a / b END",
    "DIV0NULL(a, b)": "CASE WHEN (b = 0 OR b IS NULL) AND a IS NOT NULL THEN 0 ELSE a / b END",
    "ZEROIFNULL(a)": "COALESCE(a, 0)",
    "NULLIFZERO(a)": "NULLIF(a, 0)",
    "CAST(b / 7 AS DECIMAL(10, 2))": "ROUND(b / 7, 2)",
    "CAST(b / 7 AS NUMERIC)": "ROUND(b / 7, 3)",
    "(b / 7)::DECIMAL(5)": "ROUND(b / 7)",
    # choice
    "IFF(q, a, b)": "CASE WHEN q THEN a ELSE b END",
    "NVL2(s, a, b)": "CASE WHEN s IS NOT NULL THEN a ELSE b END",
    "ISNULL(a)": "a IS NULL",
    "ISNULL(a, b)": "COALESCE(a, b)",
    "EQUAL_NULL(a, b)": "a IS NOT DISTINCT FROM b",
    "a BETWEEN SYMMETRIC 5 AND -2": "a BETWEEN 5 AND -2 OR a BETWEEN -2 AND 5",
    "a = '7'": "a = 7",
    "a IN ('7', '-2')": "a IN (7, -2)",
    "q = 'true'": "q",
    "q <> 'TRUE'": "NOT q",
    "CAST(b AS BOOLEAN)": "b <> 0",
    # dates
    "DATE(u)": "CAST(u AS DATE)",
    "TO_DATE(u)": "CAST(u AS DATE)",
    "EXTRACT(DATE FROM u)": "CAST(u AS DATE)",
    "TRY_TO_DATE(s)": "TRY_CAST(s AS DATE)",
    "TRY_TO_TIMESTAMP(e)": "CAST(e AS TIMESTAMP)",
    "e = DATE('2024-02-29')": "e = DATE '2024-02-29'",
    "e = TO_DATE('2024-02-29')": "e = DATE '2024-02-29'",
    "DATE(2024, 2, 29)": "MAKE_DATE(2024, 2, 29)",
    "TIMESTAMP(e)": "CAST(e AS TIMESTAMP)",
    "MAKE_TIMESTAMP(2024, 2, 29, 12, 0, 0.25)": "TIMESTAMP '2024-02-29 12:00:00.25'",
    "DATEADD(month, 3, e)": "e + INTERVAL 3 MONTH",
    "DATEADD('day', -3, u)": "u + INTERVAL (-3) DAY",
    "TIMESTAMPADD(HOUR, 3, u)": "u + INTERVAL 3 HOUR",
    "DATE_ADD(e, 3)": "e + 3",
    "DATE_SUB(e, INTERVAL 3 MONTH)": "e - INTERVAL 3 MONTH",
    "TIMESTAMP_ADD(u, INTERVAL 3 HOUR)": "u + INTERVAL 3 HOUR",
    "TIMESTAMP_SUB(u, INTERVAL 3 HOUR)": "u - INTERVAL 3 HOUR",
    "DATE_PART(year, e)": "YEAR(e)",
    "EXTRACT(ISOWEEK FROM e)": "WEEK(e)",
    "DECADE(e)": "FLOOR(YEAR(e) * 0.1)",
    "EXTRACT(decade FROM u)": "FLOOR(YEAR(u) * 0.1)",
    "FORMAT_DATE('%Y-%m', e)": "STRFTIME(e, '%Y-%m')",
    "TO_CHAR(e, 'YYYY-MM-DD')": "STRFTIME(e, '%Y-%m-%d')",
    "TO_CHAR(e, 'dd/mm/yyyy')": "STRFTIME(e, '%d/%m/%Y')",
    "TO_CHAR(a)": "CAST(a AS VARCHAR)",
    "DATE_FORMAT(e, 'yyyy-MM')": "STRFTIME(e, '%Y-%m')",
    "DATE_TRUNC('month', CAST(u AS DATE))": "DATE_TRUNC('month', u::DATE)",
    # texts
    "s || a": "s || CAST(a AS VARCHAR)",
    "YEAR(e) || '-' || MONTH(e)": "CAST(YEAR(e) AS VARCHAR) || '-' || CAST(MONTH(e) AS VARCHAR)",
    "CONCAT(s, a, e, q)": "CONCAT(s, CAST(a AS VARCHAR), CAST(e AS VARCHAR), CAST(q AS VARCHAR))",
    "CONCAT_WS('-', a, s)": "CONCAT_WS('-', CAST(a AS VARCHAR), s)",
    "MID(s, 2, 2)": "SUBSTRING(s, 2, 2)",
    "BTRIM(s)": "TRIM(s)",
    "BTRIM(s, 'a')": "TRIM(s, 'a')",
    "REPLACE(s, 'b')": "REPLACE(s, 'b', '')",
    "LPAD(s, 5)": "LPAD(s, 5, ' ')",
    "RPAD(s, 5)": "RPAD(s, 5, ' ')",
    "s LIKE ANY ('a%', '%c')": "s LIKE 'a%' OR s LIKE '%c'",
    "s ILIKE ANY ('A%')": "s ILIKE 'A%'",
    "s LIKE ALL ('a%', '%c')": "s LIKE 'a%' AND s LIKE '%c'",
    "NOT (s LIKE ANY ('a%', '%c'))": "s NOT LIKE 'a%' AND s NOT LIKE '%c'",
    "REGEXP_CONTAINS(s, '^a')": "REGEXP_MATCHES(s, '^a')",
    "s ~* '^A'": "REGEXP_MATCHES(s, '^A', 'i')",
    "s !~* '^A'": "NOT REGEXP_MATCHES(s, '^A', 'i')",
}
# What the plain side is evaluated as where the evaluator of the tests knows no options of patterns.
UNKNOWN = {"s ~* '^A'", "s !~* '^A'"}
# DuckDB knows these too, and means the same.
DUCKDB = [
    "a = '7'",
    "a IN ('7', '-2')",
    "CAST(b AS BOOLEAN)",
    "DECADE(e)",
    "EXTRACT(decade FROM u)",
    "s || a",
    "YEAR(e) || '-' || MONTH(e)",
    "CONCAT(s, a, e, q)",
    "CONCAT_WS('-', a, s)",
    "DATE_TRUNC('month', DATE '2020-01-15')",
    "DATE_TRUNC('week', TIMESTAMP '2020-01-15 10:00:00')",
    "DATE_TRUNC('month', CAST(u AS DATE))",
    "DATE '2020-01-31' + 30",
    "DATE '2020-01-31' + INTERVAL 1 MONTH",
    "DATE '2020-03-31' - DATE '2020-01-01'",
    "e > DATE_TRUNC('year', DATE '2020-01-15') - INTERVAL 1 DAY",
    "DATE_DIFF('day', DATE '2020-01-01', e)",
    "REGEXP_MATCHES(s, '^A', 'i')",
]


@pytest.mark.parametrize("spelling", only([0], SAME))
def test_a_spelling_is_the_plain_expression(spelling: str, catalog: Catalog, engine: duckdb.DuckDBPyConnection) -> None:
    plain = SAME[spelling]
    assert str(bound(spelling, catalog)) == str(bound(plain, catalog))
    if spelling not in UNKNOWN:
        assert differences(plain, catalog, engine) == []


@pytest.mark.parametrize("text", DUCKDB)
def test_duckdb_means_the_same(text: str, catalog: Catalog, engine: duckdb.DuckDBPyConnection) -> None:
    node = bound(text, catalog)
    ours = [exact(value, node.type) for value in values(engine, printers.expression(node))]
    theirs = values(engine, text)
    assert all(agree(one, other) for one, other in zip(ours, theirs, strict=True)), list(zip(ours, theirs, strict=True))


def test_a_zero_divisor_gives_zero_and_null_stays_null(catalog: Catalog, engine: duckdb.DuckDBPyConnection) -> None:
    found = values(engine, printers.expression(bound("DIV0(a, 0)", catalog)))
    assert set(found) == {0.0, None}
    assert set(values(engine, printers.expression(bound("DIV0NULL(a, NULLIF(a, a))", catalog)))) == {0.0, None}


# ---- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("DATE_TRUNC(u, MONTH)", "takes the unit of time first"),
        ("DATE_DIFF(u, e, DAY)", "takes the unit of time first"),
        ("s NOT LIKE ANY ('a%', 'b%')", "has two meanings"),
        ("TO_CHAR(e, 'Day YYYY')", "not understood at 'Day YYYY'"),
        ("DATE_FORMAT(e, 'yyyy-MM-QQ')", "not understood at 'QQ'"),
        ("DATE_FORMAT(e, '%Y')", "not understood at '%Y'"),
        ("TO_CHAR(e, 'HH12')", "not understood at 'HH12'"),
        ("CAST(i AS DECIMAL(10, 2))", "bounds"),
        ("CAST(b AS DECIMAL(3, 1))", "may be larger"),
        ("CAST(s AS DECIMAL(3, 1))", "TRY_CAST"),
        ("CAST(a AS DECIMAL(39, 2))", "up to 38"),
        ("DATE(s)", "TRY_CAST"),
        ("DATE(2024, 2)", "a year, a month and a day"),
        ("a = '7.5'", "without quotes"),
        ("a = 'x'", "without quotes"),
        ("q = 2", "condition itself"),
        ("q = 'yes'", "condition itself"),
        ("TRUNC(e, 'MM')", "DATE_TRUNC"),
        ("DATE_ADD('month', 3, e)", "INTERVAL"),
        ("IFF(q, a)", "IFF takes 3 arguments"),
    ],
)
def test_what_is_not_answered_says_what_is(text: str, message: str, catalog: Catalog) -> None:
    with pytest.raises(QueryRefused) as refused:
        bound(text, catalog)
    assert message in str(refused.value)
    assert refused.value.remedy


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("RANDOM() > 0.5", "RANDOM"),
        ("LISTAGG(s)", "STRING_AGG"),
        ("LIST(s)", "LIST"),
        ("ANY_VALUE(s)", "ANY_VALUE"),
        ("ISNAN(a)", "ISNAN"),
        ("a & 1", "&"),
        ("a << 1", "<<"),
        ("s GLOB 'a*'", "GLOB"),
        ("my_own(s)", "MY_OWN"),
        ("s SIMILAR TO 'a'", "SIMILAR TO"),
        ("UNNEST(a)", "UNNEST"),
        ("repeat(s, 2)", "REPEAT"),
        ("BOOL_AND(q)", "BOOL_AND"),
        ("s -> 'a'", "->"),
    ],
)
def test_a_refusal_names_what_was_written(text: str, name: str, catalog: Catalog) -> None:
    with pytest.raises(QueryRefused) as refused:
        bound(text, catalog)
    assert refused.value.reason.startswith((f"The function {name} ", f"The aggregate {name} ", f"{name} "))


REMEDIED = {
    "AGE(e, e)": "DATE_PART('year', AGE(e, e))",
    "ADD_MONTHS(e, 3)": "e + INTERVAL 3 MONTH",
    "CENTURY(e)": "CEIL(YEAR(e) / 100)",
    "YEARWEEK(e)": "ISOYEAR(e) * 100 + WEEK(e)",
    "LOG1P(a)": "LN(a + 1)",
    "CBRT(a)": "EXP(LN(a) / 3)",
    "INITCAP(s)": "UPPER(LEFT(s, 1)) || LOWER(SUBSTRING(s, 2))",
    "s SIMILAR TO '(a|b)%'": "REGEXP_FULL_MATCH(s, '(a|b).*')",
    "REGEXP_SUBSTR(s, '[0-9]+')": "REGEXP_EXTRACT(s, '[0-9]+')",
    "REGEXP_INSTR(s, 'abc')": "STRPOS(s, 'abc')",
    "a & 1 = 1": "a % 2 = 1",
    "UNIX_SECONDS(u)": "EPOCH(u)",
    "TO_NUMBER(s)": "TRY_CAST(s AS DOUBLE)",
    "SUBSTRING_INDEX(s, '-', 1)": "SPLIT_PART(s, '-', 1)",
}


@pytest.mark.parametrize("text", REMEDIED)
def test_a_remedy_works(text: str, catalog: Catalog) -> None:
    with pytest.raises(QueryRefused) as refused:
        bind(f"SELECT COUNT(*) AS n FROM kept WHERE ({text}) IS NULL", catalog)
    assert refused.value.remedy != FUNCTIONS
    assert bound(REMEDIED[text], catalog)


def test_no_function_has_both_a_rule_and_a_remedy() -> None:
    handled = set(library.ANONYMOUS) | set(library.CLOCKS)
    assert handled & set(naming.REMEDIES) <= {"TO_DATE"}  # whose second argument has one
    assert not set(library.LIBRARY) & set(naming._REMEDIES_OF_NODES)

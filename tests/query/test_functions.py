"""The functions: the engine's values are those of an independent reading and of DuckDB's own, inside their bounds."""

import random
from collections.abc import Iterator
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlglot
from sqlglot import exp

from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import loads
from lapwing.engines.duckdb import expressions as printers
from lapwing.engines.duckdb import printers as function_printers
from lapwing.engines.duckdb import printers as sql_functions
from lapwing.engines.duckdb.lockdown import DISABLED_OPTIMIZERS
from lapwing.query.expressions import days, numeric, strings, temporal
from lapwing.query.expressions.calls import bind_expression
from lapwing.query.expressions.expression import Expression, Operation
from lapwing.query.expressions.strings import length_of
from lapwing.query.expressions.types import TEXT, Fixed, Plain, Real
from lapwing.query.normalise.server_spellings import of_server
from lapwing.query.text.parse import parse
from tests.query.test_expressions import names
from tests.support.effort import one_in, only
from tests.support.query.evaluator import Near, Row, Undecided, as_moment, evaluate
from tests.support.refusals import refused_as

CATALOG = """
[dataset]
name = "functions"
ledger = "sqlite:functions.db"
[budget]
epsilon = 1
delta = 1e-6
[tables.kept]
source = "kept.parquet"
privacy_unit = "row"
[tables.kept.columns]
a = { type = "integer", lower = -9, upper = 9 }
b = { type = "integer", lower = -40, upper = 1000 }
i = { type = "integer" }
q = { type = "boolean" }
s = { type = "string" }
t = { type = "string" }
d = { type = "date" }
e = { type = "date", lower = 1900-01-01, upper = 2030-12-31 }
u = { type = "timestamp", lower = 1900-01-01T00:00:00Z, upper = 2030-12-31T23:59:59Z }
j = { type = "string" }
"""
COLUMNS: dict[str, tuple[str, list[Any]]] = {
    "a": ("BIGINT", [None, -9, -2, 0, 1, 7, 9]),
    "b": ("BIGINT", [None, -40, -1, 0, 99, 100, 1000]),
    "i": ("BIGINT", [None, 0, 2**63 - 1, -(2**63), -7]),
    "q": ("BOOLEAN", [None, True, False]),
    "s": (
        "VARCHAR",
        [None, "", "abc", "a-b-c", "a--b", "😀x", "12", "-5.5", " 7 ", "2020-02-30", "2020-02-29", "ÄÖü", "a%b", "x\ny",
         "  pad ", "abcabc", "Ünï"],
    ),
    "t": ("VARCHAR", [None, "", "b", "😀", "a", "-", "c"]),
    "d": ("DATE", [None, date(1, 1, 1), date(9999, 12, 31), date(2024, 2, 29), date(1969, 12, 31), date(1600, 3, 1)]),
    "e": ("DATE", [None, date(1900, 1, 1), date(2030, 12, 31), date(2024, 2, 29), date(2000, 1, 31), date(2021, 1, 3)]),
    "u": (
        "TIMESTAMP",
        [None, datetime(1900, 1, 1), datetime(2030, 12, 31, 23, 59, 59), datetime(1969, 12, 31, 23, 59, 59, 999999),
         datetime(2024, 2, 29, 13, 14, 15, 500000), datetime(2021, 1, 4)],
    ),
    "j": (
        "VARCHAR",
        [None, "", "no JSON", '{"a": "x", "b": [1, 2.5, true]}', '{"a": {"b": "ü"}, "b": []}', '{"a": 7', '{"a": null}',
         '["a", {"b": 1}]', '{"a": "p\\u0041\\"q", "a": "later"}', '"a"', "12", '{"a": [[], {"b": false}]}', "{}{}"],
    ),
}  # fmt: skip

# DuckDB's own function means the same on these columns.
SAME = [
    *(f"{name}({x})" for name in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DAYOFWEEK", "ISODOW") for x in "deu"),
    *(f"EXTRACT({unit} FROM {x})" for unit in ("isoyear", "doy", "hour", "minute", "second") for x in ("d", "u")),
    *(
        "HOUR(u)",
        "MINUTE(u)",
        "SECOND(u)",
        "DAYOFYEAR(e)",
        "DAYOFMONTH(u)",
        "WEEKOFYEAR(e)",
        "WEEKDAY(u)",
        "ISOYEAR(u)",
    ),
    *("DATE_PART('year', e)", "DATE_PART('dow', u)", "EXTRACT(epoch FROM e)", "EPOCH(u)"),
    *(
        f"DATE_DIFF('{unit}', {x}, {y})"
        for unit in ("year", "month", "day", "hour")
        for x, y in ("eu", "ue", "ed", "ue")
    ),
    *(
        "DATEDIFF('second', u, TIMESTAMP '2026-01-01 12:00:00')",
        "e - DATE '2000-01-01'",
        "d - e",
        "DATE_DIFF('day', e, d)",
    ),
    *("DATE_TRUNC('year', e)", "DATE_TRUNC('month', u)", "DATE_TRUNC('week', e)", "DATE_TRUNC('day', u)"),
    *("LAST_DAY(e)", "LAST_DAY(u)", "CAST(u AS DATE)", "CAST(e AS TIMESTAMP)", "u::DATE = e", "e < u"),
    *(
        "e + INTERVAL 1 MONTH",
        "e - INTERVAL 13 MONTH",
        "u + INTERVAL '90' DAY",
        "e + 30",
        "e - 1",
        "INTERVAL 1 DAY + u",
    ),
    *("e + INTERVAL (a) MONTH", "u - INTERVAL (b) HOUR", "DATE_ADD(e, INTERVAL 2 YEAR)", "e + INTERVAL 1 QUARTER"),
    *("STRFTIME(e, '%Y-%m')", "STRFTIME(u, '%d/%m/%Y')", "MONTHNAME(e)", "DAYNAME(u)", "CAST(e AS VARCHAR)"),
    *("CAST(u AS VARCHAR)", "MAKE_DATE(2024, 2, 29)", "LEAST(e, DATE '2000-01-01')", "GREATEST(d, e)"),
    *("CASE WHEN 1 + 1 >= 2 THEN e ELSE d END", "CASE WHEN e IS NULL THEN e ELSE d END"),
    *("COALESCE(e, d)", "CASE WHEN q THEN e ELSE u END", "e BETWEEN '1950-01-01' AND '2020-12-31'"),
    *("e IN ('2000-01-31', '2024-02-29')", "TRY_CAST(s AS DATE)", "NULLIF(e, DATE '1900-01-01')"),
    *("UPPER(s)", "LOWER(s)", "UCASE(s)", "LENGTH(s)", "LEN(s)", "REVERSE(s)", "TRIM(s)", "LTRIM(s)", "RTRIM(s)"),
    *("TRIM(s, 'a ')", "LTRIM(s, 'ab')", "TRIM(TRAILING 'c' FROM s)", "SUBSTRING(s, 2, 2)", "SUBSTR(s, 2)"),
    *("SUBSTRING(s, -2, 1)", "SUBSTRING(s, 0, 2)", "SUBSTRING(s, -5, 3)", "SUBSTRING(s FROM 2 FOR 1)", "LEFT(s, 2)"),
    *("RIGHT(s, 2)", "LEFT(s, 0)", "RIGHT(s, 0)", "LPAD(s, 5, 'xy')", "RPAD(s, 2, '-')", "s || t", "s || '-' || t"),
    *(
        "CONCAT(s, t, 'x')",
        "CONCAT(s, NULL)",
        "CONCAT_WS(', ', s, t, s)",
        "REPLACE(s, 'a', '')",
        "REPLACE(s, 'b', 'xx')",
    ),
    *("STRPOS(s, t)", "INSTR(s, 'b')", "POSITION('c' IN s)", "CONTAINS(s, t)", "STARTS_WITH(s, t)", "PREFIX(s, 'a')"),
    *("ENDS_WITH(s, t)", "SUFFIX(s, t)", "SPLIT_PART(s, '-', 1)", "SPLIT_PART(s, '-', -1)", "SPLIT_PART(s, '--', 2)"),
    *("SPLIT_PART(s, '-', 9)", "s ILIKE 'A%'", "s NOT ILIKE '%B%'", "s LIKE 'a!%b' ESCAPE '!'", "s ILIKE 'ü%'"),
    *("s NOT LIKE '%!%%' ESCAPE '!'", "s < t", "s BETWEEN 'a' AND t", "s IN ('abc', '12')", "NULLIF(s, '')"),
    *("REGEXP_MATCHES(s, '^[a-z]+-')", "REGEXP_MATCHES(s, '^.{2,3}$')", "s ~ '[0-9]'", "s !~ '^a'"),
    *(r"REGEXP_MATCHES(s, '\d{2}|\bb')", "REGEXP_FULL_MATCH(s, 'a.*c')", "REGEXP_MATCHES(s, 'x$')"),
    *("REGEXP_EXTRACT(s, '([a-z])-([a-z])', 2)", "REGEXP_EXTRACT(s, '[a-c]+')", "REGEXP_EXTRACT(s, '(z)?b', 1)"),
    *("a < CAST('5' AS INTEGER)", "a < '-1'::BIGINT", "a > '1.25'::DECIMAL(9, 2)", "q = CAST('True' AS BOOLEAN)"),
    *("CAST(a AS VARCHAR)", "CAST(q AS VARCHAR)", "CAST(i AS TEXT)", "TRY_CAST(s AS INTEGER)", "TRY_CAST(s AS BIGINT)"),
    *(
        "a % 4",
        "MOD(b, 7)",
        "b % NULLIF(a, 0)",
        "a // 2",
        "b // 7",
        "b // NULLIF(a, 0)",
        "SIGN(a)",
        "SIGN(i)",
        "TRUNC(a)",
    ),
    *("TRUNC(b / 7)", "TRUNC(-b / 7, 1)", "POWER(a, 2)", "a ^ 2", "a ** 2", "SQRT(ABS(b))", "EXP(a)", "LN(ABS(a) + 1)"),
    *("LOG10(ABS(b) + 1)", "LOG2(ABS(b) + 1)", "LOG(ABS(b) + 1)", "LOG(3, ABS(b) + 1)", "PI()", "ABS(b) ^ 0.5"),
    *("NULLIF(a, 0)", "NULLIF(a, b)", "IFNULL(a, 3)", "IF(q, a, b)", "IF(q, a, NULL)", "a IS DISTINCT FROM b"),
    *("a IS NOT DISTINCT FROM 0", "s IS DISTINCT FROM t", "e IS NOT DISTINCT FROM d", "a IS DISTINCT FROM NULL"),
    *("CASE MONTH(e) WHEN 2 THEN 'Feb' WHEN 1 THEN 'Jan' END", "CASE LEFT(s, 1) WHEN 'a' THEN 1 ELSE 0 END"),
]
# DuckDB has another name for these, or raises where we have NULL.
OWN = [
    *("WIDTH_BUCKET(b, 0, 1000, 10)", "WIDTH_BUCKET(a, -9, 9, 5)", "WIDTH_BUCKET(b / 3, 0, 100, 7)"),
    *("WIDTH_BUCKET(i, 0, 1, 1)", "DATE_DIFF('quarter', u, d)"),
    *("WIDTH_BUCKET(a, -9, 12, 3)", "WIDTH_BUCKET(100 * a, -900, 1200, 300)", "XOR(q, a > 0)", "XOR(q, NULL)"),
    *("MAKE_DATE(2020 + a, ABS(a), 30)", "MAKE_DATE(2021, 2, ABS(a) + 25)", "b // a", "b % a", "MOD(a, a)", "SQRT(b)"),
    *("LN(b)", "LOG10(a)", "LOG2(b / 3)", "b ^ 0.5", "(a / 7) ^ 2", "DATE_DIFF('week', e, u)"),
    *("EPOCH(d)", "IIF(q, s, t)", "EXP(a / 3)", "SIGN(a / 3)", "TRUNC(b / 3, -1)"),
    *("SUBSTRING(UPPER(s), 2) || LOWER(t)", "j ->> 'a'", "j ->> '$.a.b'", "JSON_EXTRACT_STRING(j, '$.b[1]')"),
    *("j ->> '$[1].b'", "UPPER(j ->> 'b')", "(j ->> 'a') IS NULL"),
    *("JSON_VALUE(j, '$.a')", "JSON_VALUE(j, '$.b[1]')", "JSON_VALUE(j, '$.b') IS NULL"),
]  # fmt: skip


def rows() -> list[dict[str, Any]]:
    """Every value of every column, and many together."""
    chance = random.Random(5)
    longest = max(len(values) for _, values in COLUMNS.values())
    each = [{name: values[k % len(values)] for name, (_, values) in COLUMNS.items()} for k in range(longest)]
    return each + [{name: chance.choice(values) for name, (_, values) in COLUMNS.items()} for _ in range(50)]


def as_row(row: dict[str, Any]) -> Row:
    whole = {name: None if row[name] is None else Near(Fraction(row[name])) for name in "abi"}
    return {**row, **whole}


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return loads(CATALOG, file="functions.toml", folder=Path())


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect(config={"threads": 1})
    connection.execute(f"SET disabled_optimizers = '{','.join(DISABLED_OPTIMIZERS)}'")
    connection.execute("SET TimeZone = 'UTC'")
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in COLUMNS.items())
    connection.execute(f"CREATE TABLE kept ({columns})")
    marks = ", ".join("?" for _ in COLUMNS)
    connection.executemany(f"INSERT INTO kept VALUES ({marks})", [list(row.values()) for row in rows()])
    yield connection
    connection.close()


def values(engine: duckdb.DuckDBPyConnection, sql: str) -> list[Any]:
    return [value for (value,) in engine.execute(f"SELECT {sql} FROM kept").fetchall()]


def spelled(tree: exp.Expression) -> exp.Expression:
    return tree.transform(lambda node: (isinstance(node, exp.Anonymous) and of_server(node)) or node)


def bound(text: str, catalog: Catalog) -> Expression:
    asked = parse(f"SELECT COUNT(*) AS n FROM kept WHERE ({text}) IS NULL", ()).select
    return bind_expression(spelled(asked).args["where"].this.this, names(text, catalog))


def exact(value: Any, kind: Any) -> Any:
    """Return an engine's value as what it stands for."""
    return Fraction(value) * kind.step if value is not None and isinstance(kind, Fixed) else value


def inside(value: Any, node: Expression) -> bool:
    """Tell whether a value is inside the bounds of its type."""
    kind = node.type
    if value is None:
        return True
    if isinstance(kind, Fixed | Real):
        low, high = kind.interval()
        return (low is None or low <= Fraction(value)) and (high is None or Fraction(value) <= high)
    if kind == TEXT:
        length = length_of(node)
        return len(value) <= length.constant + length.factor * max(map(len, COLUMNS["s"][1][1:]))
    if isinstance(value, date) and isinstance(kind, Plain):
        count = days.count(value)
        return (kind.low is None or kind.low <= count) and (kind.high is None or count <= kind.high)
    return isinstance(value, bool)


def agree(one: Any, other: Any) -> bool:
    if isinstance(one, float | Fraction | int) and isinstance(other, float | Fraction | int):
        return abs(Fraction(one) - Fraction(other)) <= abs(Fraction(other)) * Fraction(1, 10**12)
    return bool(one == other)


def differences(text: str, catalog: Catalog, engine: duckdb.DuckDBPyConnection) -> list[Any]:
    """Return the rows on which the engine's value is not that of the evaluator, or outside its bounds."""
    node = bound(text, catalog)
    tree = spelled(sqlglot.parse_one(f"SELECT {text}", dialect="duckdb").expressions[0])
    wrong: list[Any] = []
    decided = 0
    for row, found in zip(rows(), values(engine, printers.expression(node)), strict=True):
        value = exact(found, node.type)
        if not inside(value, node):
            wrong.append((row, found, node.type))
        try:
            wanted = evaluate(tree, as_row(row))
        except Undecided:
            continue
        decided += 1
        if isinstance(wanted, Near) and value is not None:
            slack = wanted.error + abs(wanted.value) / 10**12 if isinstance(node.type, Real) else 0
            if abs(Fraction(value) - wanted.value) > slack:
                wrong.append((row, found, wanted))
        elif as_moment(value) != as_moment(wanted) if isinstance(wanted, date) else value != wanted:
            wrong.append((row, found, wanted))
    assert decided > 10, text
    return wrong


@pytest.mark.parametrize("text", only([0], [*SAME, *OWN]))
def test_the_engine_computes_what_the_text_means(
    text: str, catalog: Catalog, engine: duckdb.DuckDBPyConnection
) -> None:
    assert differences(text, catalog, engine) == []


@pytest.mark.parametrize("text", one_in(68, SAME))
def test_duckdb_means_the_same(text: str, catalog: Catalog, engine: duckdb.DuckDBPyConnection) -> None:
    node = bound(text, catalog)
    ours = [exact(value, node.type) for value in values(engine, printers.expression(node))]
    theirs = values(engine, text)
    assert all(agree(one, other) for one, other in zip(ours, theirs, strict=True)), list(zip(ours, theirs, strict=True))


@pytest.mark.long
def test_canonical_texts_tell_expressions_apart(catalog: Catalog) -> None:
    """Different functions, units, parameters: different texts, unless they are the same function by another name."""
    texts: dict[str, str] = {}
    same = {"UCASE(s)", "LEN(s)", "a ^ 2", "a ** 2", "DATE_PART('year', e)", "DATE_PART('dow', u)", "INSTR(s, 'b')"}
    for text in [*SAME, *OWN]:
        texts.setdefault(str(bound(text, catalog)), text)
    doubles = len({*SAME, *OWN}) - len(texts)
    known = [text for text in {*SAME, *OWN} if text not in texts.values()]
    assert doubles == len(known)
    for text in known:
        twin = texts[str(bound(text, catalog))]
        assert printers.expression(bound(text, catalog)) == printers.expression(bound(twin, catalog)), (text, twin)
    assert same - set(texts.values()) - set(known) == set()
    assert doubles < 25


# ---- planted bugs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("printer", "bug", "text"),
    [
        ("difference", lambda node, a: f"date_diff('{function_printers._word(node)}', {a[1]}, {a[2]})",
         "DATE_DIFF('week', e, u)"),
        ("part", lambda _node, a: f"EXTRACT(day FROM {a[1]})", "YEAR(e)"),
        ("add_months", lambda _node, a: f"({a[0]} + to_days(CAST(30 * {a[1]} AS INTEGER)))", "e + INTERVAL 1 MONTH"),
        ("concat_strict", lambda _node, a: f"concat({', '.join(a)})", "s || t"),
        ("quotient", lambda _node, a: f"CAST(floor({a[0]} / NULLIF({a[1]}, 0)) AS BIGINT)", "b // 7"),
        ("like_any_case", lambda _node, a: f"({a[0]} LIKE {a[1]})", "s ILIKE 'A%'"),
        ("distinct", lambda _node, a: f"({a[0]} <> {a[1]})", "a IS DISTINCT FROM b"),
        ("matches", lambda _node, a: f"regexp_full_match({', '.join(a)})", "s ~ '[0-9]'"),
    ],
)  # fmt: skip
def test_a_wrong_printer_is_found(
    printer: str,
    bug: Any,
    text: str,
    catalog: Catalog,
    engine: duckdb.DuckDBPyConnection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert differences(text, catalog, engine) == []
    monkeypatch.setitem(sql_functions.PRINTERS, printer, bug)
    assert differences(text, catalog, engine)


@pytest.mark.parametrize(
    ("module", "name", "bug", "text"),
    [
        (temporal, "PARTS", {**temporal.PARTS, "month": (1, 11)}, "MONTH(e)"),
        (numeric, "_outward", lambda low, high, negative=True: Real(low=Fraction(high), high=Fraction(high)), "EXP(a)"),
        (strings, "length_of", lambda _node: strings.Length(0), "LENGTH(s)"),
    ],
)
def test_a_wrong_bound_is_found(
    module: Any,
    name: str,
    bug: Any,
    text: str,
    catalog: Catalog,
    engine: duckdb.DuckDBPyConnection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert differences(text, catalog, engine) == []
    monkeypatch.setattr(module, name, bug)
    assert differences(text, catalog, engine)


# ---- refusals that the analyst could not see coming -----------------------------------------------------------------


def test_texts_cannot_grow_without_end(catalog: Catalog) -> None:
    with refused_as("text_too_long"):
        bound("REPLACE(REPLACE(s, 'a', 'aaaaaaaaaaaaaaaaaaaa'), 'a', 'aaaaaaaaaaaaaaaaaaaa')", catalog)
    with refused_as("text_too_long"):
        bound(" || ".join(["s"] * 101), catalog)
    assert length_of(bound("REGEXP_REPLACE(s, 'x*', 'yy', 'g')", catalog)) == strings.Length(2, 3)


def test_what_is_no_json_never_reaches_the_function_that_fails_on_it(
    catalog: Catalog, engine: duckdb.DuckDBPyConnection
) -> None:
    """The rows of `j` hold such texts; the twin hands them over."""
    text = printers.expression(bound("j ->> 'a'", catalog))
    assert values(engine, text).count(None) > 5
    twin = text.replace('CASE WHEN json_valid("j") THEN "j" END', '"j"')
    assert twin != text
    with pytest.raises(duckdb.Error):
        values(engine, twin)


def test_json_value_is_null_of_what_is_nested(catalog: Catalog, engine: duckdb.DuckDBPyConnection) -> None:
    """`->>` shows it as a text; DuckDB's own function of this name writes a text with its quotes."""
    own = values(engine, printers.expression(bound("JSON_VALUE(j, '$.a')", catalog)))
    assert own[3:5] == ["x", None]
    assert values(engine, printers.expression(bound("j ->> '$.a'", catalog)))[3:5] == ["x", '{"b":"ü"}']
    nested = values(engine, "json_value(CASE WHEN json_valid(j) THEN j END, '$.a')")
    assert [value is None for value in own] == [value is None for value in nested]


@pytest.mark.parametrize("path", ["s", "'a.b'", "'$a'", "'$a.b'", "'$.*'", "'$..a'", "'$.a[-1]'", "'$'"])
def test_a_path_is_a_constant_of_names_and_places(path: str, catalog: Catalog) -> None:
    with refused_as("not_constant"):
        bound(f"j ->> {path}", catalog)


def test_every_printed_function_has_a_rule_and_a_test() -> None:
    """A printer that nothing reaches is a printer that nothing checks."""
    reached: set[str] = set()
    catalog = loads(CATALOG, file="functions.toml", folder=Path())
    more = ["TRY_CAST(s AS TIMESTAMP)", "COS(a)", "SIN(a)", "ATAN(a)", "POWER(b, -1)", "DATE_TRUNC('day', d + 1)",
            "REGEXP_REPLACE(s, 'a', 'b')", "CAST(d + 1 AS DATE)", "TIME_BUCKET(INTERVAL '15 minutes', u)"]  # fmt: skip
    for text in [*SAME, *OWN, *more]:
        pending = [bound(text, catalog)]
        while pending:
            node = pending.pop()
            if isinstance(node, Operation):
                reached.add(node.function)
                pending.extend(node.arguments)
    assert set(function_printers.FUNCTION_PRINTERS) - reached == set()

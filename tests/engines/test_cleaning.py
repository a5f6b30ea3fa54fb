"""Every physical type under every declared type: nothing raises, values stay inside their bounds, rows stay alone."""

import time
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import Any, cast

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.catalog.model import Catalog, Column, Table
from lapwing.catalog.toml import loads
from lapwing.engines import DuckDB
from lapwing.engines.duckdb import cleaned, literals, printers, source_reading
from lapwing.errors import DataFault, QueryRefused
from lapwing.query.bind.bind import bind
from lapwing.query.measures.measures import Sum
from tests.support.effort import only
from tests.support.engines import physical
from tests.support.engines.tables import run

# Every declared type, with and without bounds, steps of both kinds, and values.
DECLARED = {
    "integer": '{ type = "integer" }',
    "integer_bounded": '{ type = "integer", lower = -3, upper = 110 }',
    "integer_wide": '{ type = "integer", lower = -4503599627370496, upper = 4503599627370496 }',
    "integer_steps": '{ type = "integer", lower = 0, upper = 100, step = 5 }',
    "integer_values": '{ type = "integer", values = [-9223372036854775808, 0, 1, 9223372036854775807] }',
    "decimal": '{ type = "decimal" }',
    "decimal_bounded": '{ type = "decimal", lower = -0.5, upper = 5000, step = 0.01 }',
    "decimal_fine": '{ type = "decimal", lower = 0, upper = 1e-50, step = 1e-60 }',
    "decimal_vast": '{ type = "decimal", lower = -1e58, upper = 1e59, step = 3e50 }',
    "float": '{ type = "float" }',
    "float_bounded": '{ type = "float", lower = -10, upper = 100 }',
    "boolean": '{ type = "boolean" }',
    "string": '{ type = "string" }',
    "string_short": '{ type = "string", max_length = 3 }',
    "string_values": '{ type = "string", values = ["x", "12", ""], other = "rest" }',
    "date": '{ type = "date" }',
    "date_bounded": '{ type = "date", lower = 1900-01-01, upper = 2026-12-31 }',
    "date_values": '{ type = "date", values = [0001-01-01, 2026-03-31, 9999-12-31] }',
    "timestamp": '{ type = "timestamp" }',
    "timestamp_bounded": '{ type = "timestamp", lower = 1900-01-01T00:00:00Z, upper = 2026-12-31T23:59:59.999999Z }',
}
NUMBERS = ["x", "x + 1", "x - 0.5", "x * 3", "x / x", "1 / x", "x / 7", "-x", "ABS(x)", "ROUND(x)", "ROUND(x, 1)"]
NUMBERS += ["ROUND(x, -3)", "FLOOR(x)", "CEIL(x)", "FLOOR(x / 3)", "ROUND(x / 3, 2)", "LEAST(x, 5)", "GREATEST(x, 0.5)"]
NUMBERS += ["LEAST(GREATEST(x, -5), 50)", "COALESCE(x, 1)", "CASE WHEN x > 0 THEN x ELSE 2 END", "x * x", "x / (x * x)"]
CONDITIONS = {
    "number": [
        "x = 1",
        "x <> 0.5",
        "x BETWEEN -1 AND 1e10",
        "x IN (0, 1, 2.5)",
        "x IS NULL",
        "NOT (x >= 0)",
        "x < x / 3",
    ],
    "boolean": ["x", "NOT x", "x IS TRUE", "x = FALSE", "x AND x OR x", "CAST(x AS INTEGER) = 1"],
    "text": ["x = 'x'", "x < 'y'", "x LIKE '%_2%'", "x IN ('x', '')", "TRY_CAST(x AS DOUBLE) > 1", "x || x IS NULL"],
    "date": ["x = '2026-03-31'", "x < '0002-01-01'", "x IN ('2026-03-31')", "COALESCE(x, '2000-01-01') > '1999-01-01'"],
    "timestamp": [
        "x = '2026-03-31 12:00:00'",
        "x BETWEEN '1970-01-01' AND '9999-12-31 23:59:59.999999'",
        "x IS NOT NULL",
    ],
}
SHORT = {"double", "text"}
RICH = {"int64", "double", "text", "sheet", "decimal38_0", "date32_wide", "timestamp_us_wide_zoned", "boolean"}
KINDS = {"integer": "number", "decimal": "number", "float": "number", "string": "text"}


HEAD = '[dataset]\nname = "all"\nledger = "sqlite:all.db"\n[budget]\nepsilon = 1\ndelta = 1e-6\n'
TABLE = '[tables.{table}]\nsource = "{source}"\nprivacy_unit = "row"\n[tables.{table}.columns]\nx = {declared}\n'


def alone(folder: Path, kind: pa.DataType, raw: list[Any], declared: str) -> Catalog:
    """Return a catalog of one table of one column."""
    pq.write_table(pa.table({"x": pa.array(raw, kind)}), folder / "t.parquet")
    return loads(HEAD + TABLE.format(table="t", source="t.parquet", declared=declared), file="t.toml", folder=folder)


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    """One table for each file and declared type."""
    folder = tmp_path_factory.mktemp("physical")
    sources = physical.write_all(folder)
    text = HEAD
    for source in sources:
        rich = source.split(".")[0] in RICH
        for name, declared in DECLARED.items():
            if name.endswith("_values") and not rich:  # cleaned as without them
                continue
            table = f"{source.split('.')[0]}_as_{name}"
            text += TABLE.format(table=table, source=source, declared=declared)
    return loads(text, file="all.toml", folder=folder)


@pytest.fixture(scope="module")
def engine(catalog: Catalog) -> Iterator[DuckDB]:
    engine = DuckDB(catalog, threads=1)
    yield engine
    engine.close()


def questions(table: Table, catalog: Catalog) -> list[str]:
    """Return questions about a table called {} that together use every function on x which its type allows."""
    kind = KINDS.get(table.columns[0].type, table.columns[0].type)
    conditions = [f"CASE WHEN {condition} THEN 1 END" for condition in CONDITIONS[kind]]
    parts = [f"COUNT({part})" for part in (*conditions, *(NUMBERS if kind == "number" else []))]
    parts += [f"{name}({part})" for part in NUMBERS for name in ("SUM", "AVG") if kind == "number"]
    fine = [part for part in parts if answered(f"SELECT {part} AS a FROM {table.name}", catalog)]
    found = ["SELECT COUNT(*) AS n, " + ", ".join(f"{part} AS a{i}" for i, part in enumerate(fine)) + " FROM {}"]
    if table.columns[0].values is not None:
        found.append("SELECT x, COUNT(*) AS n FROM {} GROUP BY x")
    return found


def answered(text: str, catalog: Catalog) -> bool:
    try:
        bind(text, catalog)
    except QueryRefused:
        return False
    return True


@pytest.mark.long
@pytest.mark.parametrize(
    ("asked_of", "every"), [(SHORT, 40), pytest.param(RICH, 1, marks=pytest.mark.long)], ids=["few", "rich"]
)
def test_nothing_raises(catalog: Catalog, engine: DuckDB, asked_of: Collection[str], every: int) -> None:
    """A file is refused as a whole, for its types, or every question about it is answered.

    Every file is cleaned as every type; what comes after is the same for all files, so the richest of them do, and in
    the short run two of these, and one in so many of the types.
    """
    unreadable = []
    asked: dict[Column, list[str]] = {}
    for table in catalog.tables[::every]:
        try:
            engine.digest(table)
        except DataFault:
            unreadable.append(table.name)
            continue
        if table.source.split(".")[0] in asked_of:
            (column,) = table.columns
            for text in asked.setdefault(column, asked.get(column) or questions(table, catalog)):
                run(engine, bind(text.format(table.name), catalog).question)
    assert unreadable == []


@pytest.mark.parametrize("every", [9, pytest.param(1, marks=pytest.mark.long)])
def test_values_stay_inside_their_bounds(catalog: Catalog, engine: DuckDB, every: int) -> None:
    for table in catalog.tables[::every]:
        (column,) = table.columns
        if not column.bounded:
            continue
        source = engine._describe(table).source
        rows = engine.fetch(f"SELECT MIN(x), MAX(x) FROM ({cleaned.cleaned(table, source, True)})")
        for value in rows[0]:
            if column.numeric:
                assert value is None or column.low <= value <= column.high, table.name
            elif value is not None:
                assert utc(column.lower) <= value <= utc(column.upper), table.name


def utc(end: object) -> Any:
    """Return a bound of a date or time as the engine shows it: UTC is not written."""
    return end.replace(tzinfo=None) if isinstance(end, datetime) else end


# ---- what a value becomes --------------------------------------------------------------------------------------------

HALVES = [0.5, 1.5, 2.5, -0.5, -1.5, -2.5]
INF, NAN, MOST = float("inf"), float("nan"), 2**63 - 1
CASES: list[tuple[str, pa.DataType, list[Any], list[Any]]] = [
    # declared, physical, raw, cleaned (in steps)
    ("integer_bounded", pa.int64(), [-4, -3, 0, 110, 111, MOST, -MOST, None], [-3, -3, 0, 110, 110, 110, -3, None]),
    ("integer_bounded", pa.uint64(), [0, 2**64 - 1], [0, 110]),
    ("integer_bounded", pa.float64(), [*HALVES, INF, NAN, 1e300], [1, 2, 3, 0, -1, -2, 110, None, 110]),
    ("integer_bounded", pa.string(), ["7", " 7 ", "7.5", "-2.5", "inf", "1e300"], [7, 7, 8, -2, 110, 110]),
    ("integer_bounded", pa.string(), ["nan", "x", ""], [None, None, None]),
    ("integer_bounded", pa.decimal128(4, 1), [-2.5, 2.5, 999.9], [-2, 3, 110]),
    ("integer_bounded", pa.bool_(), [True, False], [1, 0]),
    ("integer", pa.float64(), [*HALVES[:5], 1e300, INF, NAN], [1, 2, 3, 0, -1, None, None, None]),
    ("integer", pa.uint64(), [MOST, 2**63], [MOST, None]),
    ("integer", pa.string(), ["9223372036854775807", "9223372036854775808", "x"], [MOST, None, None]),
    ("integer_steps", pa.int32(), [2, 3, 7, 8, 99, -1], [0, 1, 1, 2, 20, 0]),
    ("decimal_bounded", pa.float64(), [0.005, 1.005, 2.675, -0.0, 4999.999, 1e9], [1, 100, 268, 0, 500_000, 500_000]),
    ("decimal_bounded", pa.decimal128(12, 2), [0.01, 4999.99, -7], [1, 499_999, -50]),
    ("float_bounded", pa.float32(), [-0.0, 100.0, -INF, NAN], [0, 953_250, -95_325, None]),
    ("float", pa.float64(), [NAN, INF, -0.0], [None, INF, 0.0]),
    ("boolean", pa.string(), ["true", "F", "1", "x", ""], [True, False, True, None, None]),
    ("boolean", pa.int8(), [0, 1, 2], [False, True, True]),
    ("string", pa.int8(), [0, -1], ["0", "-1"]),
    ("string", pa.binary(), [b"ab", b"\x00"], ["ab", "\\x00"]),
    ("string", pa.string(), ["a" * 256, "a" * 257, "ä" * 128, "ä" * 129, ""], ["a" * 256, None, "ä" * 128, None, ""]),
    ("string_short", pa.string(), ["abc", "abcd", "€", "€a", None], ["abc", None, "€", None, None]),
    ("string_short", pa.int64(), [100, 1000, -10, -100], ["100", None, "-10", None]),
    ("string_values", pa.string(), ["x", "y" * 300], ["x", None]),
]


@pytest.mark.parametrize(("declared", "kind", "raw", "wanted"), only([0], CASES, many=True))
def test_what_a_value_becomes(
    declared: str, kind: pa.DataType, raw: list[Any], wanted: list[Any], tmp_path: Path
) -> None:
    values = [Decimal(str(value)) for value in raw] if pa.types.is_decimal(kind) else raw
    catalog = alone(tmp_path, kind, values, DECLARED[declared])
    engine = DuckDB(catalog, threads=1)
    source = engine._describe(catalog.tables[0]).source
    sql = f"SELECT x FROM ({cleaned.cleaned(catalog.tables[0], source, True)})"
    found = [value for (value,) in engine.fetch(sql)]
    engine.close()
    assert found == wanted


def test_a_unit_is_told_apart_by_all_of_its_text(tmp_path: Path) -> None:
    """Two people whose names agree as far as a text may be long are two, and neither is dropped."""
    names = ["a" * 300 + "b", "a" * 300 + "c", "a" * 300 + "c"]
    pq.write_table(pa.table({"p": names, "x": [1, 2, 3]}), tmp_path / "t.parquet")
    text = (
        '[dataset]\nname = "t"\nledger = "sqlite:t.db"\n[budget]\nepsilon = 1\n[tables.t]\nsource = "t.parquet"\n'
        'privacy_unit = "p"\nmax_rows_per_unit = 1\n[tables.t.columns]\np = { type = "string" }\n'
    )
    catalog = loads(text, file="t.toml", folder=tmp_path)
    engine = DuckDB(catalog, threads=1)
    engine.digest(catalog.tables[0])
    counted = "SELECT COUNT(DISTINCT p) AS people, COUNT(*) AS n, COUNT(LENGTH(p)) AS read FROM t"
    plan = bind(counted, catalog)
    found = dict(zip(map(str, plan.question.measures), run(engine, plan.question)[()], strict=True))
    engine.close()
    assert sorted(found.values()) == [0, 2, 2], found


# ---- expressions that would raise where a bound is a hair too narrow ------------------------------------------------


def test_a_quotient_that_rounds_beyond_its_exact_bound_does_not_overflow(tmp_path: Path) -> None:
    """1.499999999999999999 is 1.5 as a double: it rounds to 2 where an exact bound would say 1 and choose 64 bits."""
    catalog = alone(tmp_path, pa.int64(), [1, 2, 3], '{ type = "integer", lower = 1, upper = 3 }')
    engine = DuckDB(catalog, threads=1)
    engine.digest(catalog.tables[0])
    attack = "ROUND(1.499999999999999999 / x) * 4611686018427387904"
    question = bind(f"SELECT COUNT(*) AS n, SUM({attack}) AS s FROM t WHERE {attack} > x", catalog).question
    (count,) = (i for i, measure in enumerate(question.measures) if not isinstance(measure, Sum))
    assert run(engine, question)[()][count] == 3
    engine.close()


LONG = '{ type = "string", max_length = 100000 }'


PATTERNS = ["%a_%a_%a_%a_%b", "_%a_%a_%a_%a_%b", "_%" * 9 + "b%", "%" + "_" * 900 + "b"]
TIMES_AS_LONG = 4
LARGEST_GROWTH = 7
"""Times the work, in texts four times as long: linear work becomes four times as much, quadratic sixteen times."""


def work(folder: Path, pattern: str, length: int, least: float) -> float:
    """Return the processor time of a pattern in texts of one letter, if it is less than the least so far."""
    catalog = alone(folder, pa.string(), ["a" * length + str(i) for i in range(10)], LONG)
    engine = DuckDB(catalog, threads=1, seconds=200)
    engine.digest(catalog.tables[0])
    question = bind(f"SELECT COUNT(*) AS n FROM t WHERE x LIKE '{pattern}'", catalog).question
    begun = time.process_time()
    assert run(engine, question) == {(): (0,)}
    spent = time.process_time() - begun
    engine.close()
    return min(least, spent)


def growth(folder: Path, pattern: str, length: int) -> float:
    """Return how much more work longer texts are; chance adds to both, so it is asked again if in doubt."""
    short = long = inf
    for tried in range(10):
        short, long = work(folder, pattern, length, short), work(folder, pattern, TIMES_AS_LONG * length, long)
        if tried >= 2 and not 0.8 < long / (LARGEST_GROWTH * short) < 1.25:
            break
    return long / short


@pytest.mark.parametrize("pattern", only([0], PATTERNS))
def test_no_pattern_takes_long(pattern: str, tmp_path: Path) -> None:
    """A pattern that is slow on one person's text alone would tell by the clock, and by the time limit."""
    assert growth(tmp_path, pattern, 12_500) < LARGEST_GROWTH


def test_a_search_that_goes_back_at_every_letter_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: as many steps as the text has pairs of letters."""

    def compared(_node: object, arguments: Sequence[str]) -> str:
        return f"(levenshtein({arguments[0]}, reverse({arguments[0]})) < 0)"

    monkeypatch.setitem(cast(dict[str, object], printers.PRINTERS), "like", compared)
    assert growth(tmp_path, PATTERNS[0], 1_000) > LARGEST_GROWTH


def test_without_the_guards_it_would_raise(catalog: Catalog, engine: DuckDB, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plain cast in the place of TRY_CAST is found by the same questions."""
    table = next(table for table in catalog.tables if table.name == "text_as_integer")
    source = engine._describe(table).source
    assert engine.fetch(source_reading.read_through(table, source))
    monkeypatch.setattr(
        source_reading, "clean", lambda column, physical: f"CAST({literals.identifier(column.name)} AS BIGINT)"
    )
    with pytest.raises(duckdb.Error):
        engine.fetch(source_reading.read_through(table, source))


def test_steps_are_exact(catalog: Catalog) -> None:
    fine = next(table for table in catalog.tables if table.name.endswith("decimal_fine")).columns[0]
    assert fine.step == Fraction(1, 10**60)

"""No expression raises on any row: random ones over columns of extreme bounds and steps, full of extreme values."""

import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from math import inf, isinf, nan
from pathlib import Path
from typing import Any

import duckdb
import pytest

from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import loads
from lapwing.engines.duckdb import cleaned
from lapwing.engines.duckdb import expressions as printers
from lapwing.engines.duckdb import queries as render
from lapwing.engines.duckdb.cleaned import Location
from lapwing.engines.duckdb.lockdown import DISABLED_OPTIMIZERS
from lapwing.errors import QueryRefused
from lapwing.query.bind.bind import bind
from lapwing.query.expressions import arithmetic, conversion
from lapwing.query.expressions.expression import Operation
from lapwing.query.expressions.strings import length_of
from lapwing.query.expressions.types import Fixed, Plain, Real
from lapwing.query.measures.measures import Sum
from tests.support.effort import SEED

CATALOG = """
[dataset]
name = "extreme"
ledger = "sqlite:extreme.db"
[budget]
epsilon = 1
delta = 1e-6
[tables.t]
source = "t.parquet"
privacy_unit = "row"
[tables.t.columns]
whole = { type = "integer", lower = -3, upper = 110 }
wide = { type = "integer", lower = -4503599627370496, upper = 4503599627370496 }
fine = { type = "decimal", lower = 0, upper = 1e-50, step = 1e-60 }
vast = { type = "decimal", lower = -1e58, upper = 1e59, step = 3e50 }
cents = { type = "decimal", lower = -0.5, upper = 5000, step = 0.01 }
share = { type = "float", lower = -10, upper = 100 }
zero = { type = "integer", lower = 0, upper = 0 }
negative = { type = "integer", lower = -7, upper = -2 }
fives = { type = "integer", lower = 0, upper = 100, step = 5 }
free = { type = "integer" }
real = { type = "float" }
flag = { type = "boolean" }
note = { type = "string" }
other = { type = "string" }
day = { type = "date" }
born = { type = "date", lower = 1900-02-28, upper = 2030-12-31 }
late = { type = "date", lower = 9998-01-01, upper = 9999-12-31 }
seen = { type = "timestamp" }
met = { type = "timestamp", lower = 0001-01-01T00:00:00Z, upper = 2030-12-31T00:00:00Z }
"""
WHOLE = [0, 1, -1, 5, -5, 100, 2**52, -(2**52), 2**63 - 1, -(2**63), None]
REAL = [0.0, -0.0, 5e-324, 1e-55, 5e-51, 0.5, 99.999, -9.995, 1e58, 5e58, 1e300, -1e308, inf, -inf, nan, None, 4999.995]
TEXT = [
    *(
        "",
        "1",
        "nan",
        "1e400",
        "x",
        "-5.5",
        "1e-400",
        None,
        "\U0001f600",
        "a\U0001f468\u200d\U0001f469",
        "e\u0301\u0301",
    ),
    *("2020-02-30", "2020-02-29", "infinity", "-infinity", "5881580-07-10", "290309-12-22 (BC) 00:00:00", "9" * 30),
    *("294247-01-10 04:00:54.775806", "ß\u0130\u0149", "\x00a", "a,b,,c", "%_!", "x" * 300, "-9223372036854775808"),
]
DAYS = [
    *(None, "0001-01-01", "9999-12-31", "10000-01-01", "0001-12-31 (BC)", "5877642-06-25 (BC)", "5881580-07-10"),
    *("infinity", "-infinity", "1970-01-01", "1969-12-31", "2024-02-29", "1900-02-28"),
]
TIMES = [
    *(None, "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999", "10000-01-01 00:00:00", "1969-12-31 23:59:59.999999"),
    *("290309-12-22 (BC) 00:00:00", "294247-01-10 04:00:54.775806", "infinity", "-infinity", "2024-02-29 12:34:56.5"),
]
COLUMNS: dict[str, tuple[str, list[Any]]] = {
    **dict.fromkeys(("whole", "wide", "zero", "negative", "fives", "free"), ("BIGINT", WHOLE)),
    **dict.fromkeys(("fine", "vast", "cents", "share", "real"), ("DOUBLE", REAL)),
    "flag": ("BOOLEAN", [True, False, None]),
    **dict.fromkeys(("note", "other"), ("VARCHAR", TEXT)),
    **dict.fromkeys(("day", "born", "late"), ("DATE", DAYS)),
    **dict.fromkeys(("seen", "met"), ("TIMESTAMP", TIMES)),
}
UNITS = ["year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond"]
PARTS = [
    "year",
    "isoyear",
    "quarter",
    "month",
    "week",
    "day",
    "doy",
    "dow",
    "isodow",
    "hour",
    "minute",
    "second",
    "epoch",
]
PATTERNS = ["^a", "[0-9]+", "(x)?1", r"\w\b", ".", "", "(a|b){2,}"]
BOUNDED = ["whole", "wide", "fine", "vast", "cents", "share", "zero", "negative", "fives"]
CONSTANTS = [
    *("0", "1", "2", "-1", "0.5", "3", "7", "1e30", "1e18", "0.000000000000000001", "4611686018427387904", "-1e-18"),
    *("4611686018427387903", "9223372036854775807", "1.499999999999999999", "0.333333333333333333", "1e20"),
]
LEAVES = [
    *("flag", "note = '1'", "free > 0.5", "real > 1e18", "free IN (1, 2.5, 1e30)", "real IS NULL", "free = real"),
    *("TRY_CAST(note AS DOUBLE) > 0", "GREATEST(free, 1e30) > real", "COALESCE(free, 1e30) = 1e30"),
]
UNBOUNDED = [
    "free",
    "real",
    "TRY_CAST(note AS DOUBLE)",
    "TRY_CAST(note AS BIGINT)",
    "LENGTH(note)",
    "STRPOS(note, other)",
]


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return loads(CATALOG, file="extreme.toml", folder=Path())


@pytest.fixture(scope="module")
def engine(catalog: Catalog) -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(f"SET disabled_optimizers = '{','.join(DISABLED_OPTIMIZERS)}'")
    kinds = {name: kind for name, (kind, _) in COLUMNS.items()}
    connection.execute(f"CREATE TABLE raw ({', '.join(f'{name} {kind}' for name, kind in kinds.items())})")
    chance = random.Random(1)
    rows = [[chance.choice(values) for _, values in COLUMNS.values()] for _ in range(60)]
    connection.executemany(f"INSERT INTO raw VALUES ({', '.join('?' for _ in COLUMNS)})", rows)
    table = cleaned.cleaned(catalog.tables[0], Location(relation="raw", types=kinds), True)
    connection.execute(f"CREATE TABLE kept AS {table}")
    yield connection
    connection.close()


def number(chance: random.Random, depth: int) -> str:
    """Return a random numeric expression."""

    def part() -> str:
        return number(chance, depth - chance.randint(1, 2))

    if depth <= 0:
        return chance.choice([*BOUNDED, *BOUNDED, *CONSTANTS])
    shapes: list[Callable[[], str]] = [
        *[lambda: f"({part()} {chance.choice('+-**//')} {part()})"] * 6,
        *[lambda: f"{chance.choice(['ABS', '-', 'FLOOR', 'CEIL'])}({part()})"] * 3,
        lambda: f"ROUND({part()}, {chance.randint(-12, 12)})",
        lambda: f"COALESCE({part()}, {part()})",
        lambda: f"LEAST({part()}, {part()})",
        lambda: f"GREATEST({part()}, {part()}, {part()})",
        lambda: f"LEAST(GREATEST({chance.choice(UNBOUNDED)}, {chance.choice(CONSTANTS)}), {chance.choice(CONSTANTS)})",
        lambda: f"CASE WHEN {condition(chance, depth - 1)} THEN {part()} ELSE {part()} END",
        lambda: f"CAST({condition(chance, depth - 1)} AS INTEGER)",
        *[lambda: f"({part()} {chance.choice(['%', '//'])} {part()})"] * 3,
        lambda: f"{chance.choice(['SIGN', 'SQRT', 'LN', 'LOG10', 'LOG2', 'SIN', 'COS', 'ATAN', 'TRUNC'])}({part()})",
        lambda: f"SIGN({chance.choice(UNBOUNDED)})",
        lambda: f"EXP(LEAST({part()}, {chance.choice(['1', '345', '0.5'])}))",
        lambda: f"POWER({part()}, {chance.choice(['0', '1', '2', '3', '-1', '-2', '0.5', '-0.5', '0.333', '10'])})",
        lambda: f"TRUNC({part()}, {chance.randint(-12, 12)})",
        lambda: f"NULLIF({part()}, {part()})",
        lambda: f"IF({condition(chance, depth - 1)}, {part()}, {part()})",
        lambda: (
            f"WIDTH_BUCKET({chance.choice([part(), *UNBOUNDED])}, {chance.choice(['-1', '0', '-1e18'])}, "
            f"{chance.choice(['0.7', '100', '1e20'])}, {chance.choice(['1', '3', '1000000'])})"
        ),
        *[lambda: f"DATE_PART('{chance.choice(PARTS)}', {moment(chance, depth - 1)})"] * 3,
        *[lambda: f"DATE_DIFF('{chance.choice(UNITS)}', {moment(chance, depth - 1)}, {moment(chance, depth - 1)})"] * 2,
        lambda: f"({chance.choice(['day', 'born', 'late'])} - {chance.choice(['day', 'born', 'late'])})",
        lambda: f"LENGTH(LEFT({words(chance, depth - 1)}, 5))",
        lambda: f"LEAST(LENGTH({words(chance, depth - 1)}), 7)",
    ]
    return chance.choice(shapes)()


def moment(chance: random.Random, depth: int) -> str:
    """Return a random date or timestamp."""

    def part() -> str:
        return moment(chance, depth - 1)

    if depth <= 0:
        return chance.choice(
            ["day", "born", "late", "seen", "met", "DATE '2024-02-29'", "TIMESTAMP '0001-01-01 00:00:00'"]
        )
    shapes: list[Callable[[], str]] = [
        lambda: f"DATE_TRUNC('{chance.choice(UNITS)}', {part()})",
        lambda: f"LAST_DAY({part()})",
        lambda: f"CAST({part()} AS {chance.choice(['DATE', 'TIMESTAMP'])})",
        lambda: f"({part()} {chance.choice('+-')} INTERVAL {chance.choice(['1', '999'])} {chance.choice(UNITS)})",
        lambda: f"({part()} + INTERVAL (whole) {chance.choice(UNITS)})",
        lambda: (
            f"({chance.choice(['day', 'born', 'late'])} {chance.choice('+-')} {chance.choice(['300000', 'whole'])})"
        ),
        lambda: f"MAKE_DATE(CAST(cents AS INTEGER) + 2, ABS(whole % 20), ABS(negative) * {chance.choice(['1', '5'])})",
        lambda: f"TRY_CAST({words(chance, depth - 1)} AS {chance.choice(['DATE', 'TIMESTAMP'])})",
        lambda: f"COALESCE({part()}, {part()})",
        lambda: f"{chance.choice(['LEAST', 'GREATEST'])}({part()}, {part()})",
        lambda: f"CASE WHEN {condition(chance, depth - 1)} THEN {part()} ELSE {part()} END",
        lambda: f"NULLIF({part()}, {part()})",
    ]
    return chance.choice(shapes)()


def words(chance: random.Random, depth: int) -> str:
    """Return a random text."""

    def part() -> str:
        return words(chance, depth - 1)

    if depth <= 0:
        return chance.choice(["note", "other", "'a-b'", "''"])
    shapes: list[Callable[[], str]] = [
        lambda: f"{chance.choice(['UPPER', 'LOWER', 'REVERSE', 'TRIM', 'LTRIM', 'RTRIM'])}({part()})",
        lambda: f"TRIM({part()}, {chance.choice(['1', 'a-b'])!r})",
        lambda: f"SUBSTRING({part()}, {chance.randint(-9, 9)}, {chance.choice(['0', '3', '1000000'])})",
        lambda: f"{chance.choice(['LEFT', 'RIGHT'])}({part()}, {chance.choice(['0', '2', '1000000'])})",
        lambda: f"{chance.choice(['LPAD', 'RPAD'])}({part()}, {chance.choice(['0', '7', '1000'])}, 'x😀')",
        lambda: f"({part()} || {part()})",
        lambda: f"CONCAT({part()}, {part()})",
        lambda: f"CONCAT_WS('-', {part()}, {part()})",
        lambda: f"REPLACE({part()}, 'a', 'bb')",
        lambda: f"SPLIT_PART({part()}, {chance.choice(['-', ',', '--'])!r}, {chance.choice(['1', '-1', '1000000'])})",
        lambda: f"REGEXP_EXTRACT({part()}, '{chance.choice(PATTERNS)}')",
        lambda: f"REGEXP_REPLACE({part()}, '{chance.choice(PATTERNS)}', 'z'{chance.choice(['', chr(44) + repr('g')])})",
        lambda: f"CAST({chance.choice([moment(chance, depth - 1), 'free', 'flag', 'whole'])} AS VARCHAR)",
        lambda: f"STRFTIME({moment(chance, depth - 1)}, '%Y-%m-%d %H:%M:%S %j %A %B %V %G %p %I %f %u %w %y %a %b %%')",
        lambda: f"{chance.choice(['MONTHNAME', 'DAYNAME'])}({moment(chance, depth - 1)})",
        lambda: f"COALESCE({part()}, {part()})",
        lambda: f"NULLIF({part()}, {part()})",
    ]
    return chance.choice(shapes)()


def condition(chance: random.Random, depth: int) -> str:
    """Return a random condition."""
    if depth <= 0:
        return chance.choice(LEAVES)
    shapes: list[Callable[[], str]] = [
        lambda: f"{number(chance, depth - 1)} {chance.choice(['<', '=', '>='])} {number(chance, depth - 1)}",
        lambda: f"{number(chance, depth - 1)} BETWEEN {number(chance, depth - 2)} AND {number(chance, depth - 2)}",
        lambda: f"{number(chance, depth - 1)} IN ({', '.join(chance.sample(CONSTANTS, 3))})",
        lambda: f"({condition(chance, depth - 1)} {chance.choice(['AND', 'OR'])} {condition(chance, depth - 1)})",
        lambda: f"XOR({condition(chance, depth - 1)}, {condition(chance, depth - 1)})",
        lambda: (
            f"{moment(chance, depth - 1)} {chance.choice(['<', '=', 'IS DISTINCT FROM'])} {moment(chance, depth - 1)}"
        ),
        lambda: (
            f"{words(chance, depth - 1)} {chance.choice(['<', '=', 'IS DISTINCT FROM'])} {words(chance, depth - 1)}"
        ),
        lambda: f"{words(chance, depth - 1)} {chance.choice(['LIKE', 'ILIKE'])} 'a!%%' ESCAPE '!'",
        lambda: f"REGEXP_MATCHES({words(chance, depth - 1)}, '{chance.choice(PATTERNS)}', 'i')",
        lambda: f"CONTAINS({words(chance, depth - 1)}, {words(chance, depth - 1)})",
    ]
    return chance.choice(shapes)()


def printed(text: str, catalog: Catalog, *, summed: bool) -> tuple[str, Fixed | Real]:
    """Return the SQL of an expression, summed or compared, and the type that bounds its values."""
    if summed:
        (total,) = bind(f"SELECT SUM({text}) AS s FROM t", catalog).question.measures
        assert isinstance(total, Sum)
        return render.measured(total, "unit").removeprefix("COALESCE(SUM(").removesuffix("), 0)"), total.type
    where = bind(f"SELECT COUNT(*) AS n FROM t WHERE ({text}) IS NULL", catalog).question.where
    assert isinstance(where, Operation)
    (node,) = where.arguments
    assert isinstance(node.type, Fixed | Real)
    return printers.expression(node), node.type


def astray(value: Any, kind: Fixed | Real) -> bool:
    """Tell whether a value is outside the bounds of its type."""
    if value is None:
        return False
    if value != value or isinf(value):
        return value != value or (kind.high if value > 0 else kind.low) is not None
    exact = Fraction(value)
    return (kind.low is not None and exact < kind.low) or (kind.high is not None and exact > kind.high)


@pytest.mark.long
def test_a_part_of_a_date_that_is_null_is_no_double(catalog: Catalog, engine: duckdb.DuckDBPyConnection) -> None:
    """The engine says so of a constant NULL; beside a large integer it would then round that."""
    sql, _ = printed(
        "LEAST(4611686018427387901, DATE_PART('dow', TRY_CAST(REVERSE('b-a') AS TIMESTAMP)))", catalog, summed=False
    )
    assert engine.execute(f"SELECT DISTINCT {sql}, typeof({sql}) FROM kept").fetchall() == [
        (4611686018427387901, "BIGINT")
    ]


TRIED = [(80, 11), pytest.param(25_000, SEED, marks=pytest.mark.long)]


@pytest.mark.parametrize(("tries", "seed"), TRIED)
def test_nothing_raises_and_nothing_strays(
    catalog: Catalog, engine: duckdb.DuckDBPyConnection, tries: int, seed: int
) -> None:
    chance = random.Random(seed)
    evaluated = 0
    for _ in range(tries):
        text = number(chance, chance.randint(1, 5))
        try:
            sql, kind = printed(text, catalog, summed=chance.random() < 0.5)
        except QueryRefused:
            continue
        evaluated += 1
        values = [value for (value,) in engine.execute(f"SELECT {sql} FROM kept").fetchall()]
        assert not [value for value in values if astray(value, kind)], text
    assert evaluated > tries * 0.4


@pytest.mark.long
@pytest.mark.parametrize(("tries", "seed"), TRIED)
def test_dates_and_texts_stay_inside_their_bounds(
    catalog: Catalog, engine: duckdb.DuckDBPyConnection, tries: int, seed: int
) -> None:
    """Of dates the days, of texts the characters, counted in the engine: they may be beyond what Python can hold."""
    chance = random.Random(seed)
    longest = max(len(text) for text in TEXT if text is not None)
    evaluated = 0
    for _ in range(tries):
        text = chance.choice([moment, words])(chance, chance.randint(1, 4))
        try:
            where = bind(f"SELECT COUNT(*) AS n FROM t WHERE ({text}) IS NULL", catalog).question.where
        except QueryRefused:
            continue
        assert isinstance(where, Operation)
        (node,) = where.arguments
        sql, kind = printers.expression(node), node.type
        assert isinstance(kind, Plain)
        if kind.name == "text":
            bound = length_of(node)
            low, high, counted = 0, bound.constant + bound.factor * longest, f"length({sql})"
        else:
            inner = f"CAST({sql} AS TIMESTAMP)" if kind.name == "timestamp" else f"({sql})"
            counted = f"epoch_us({inner})" if kind.name == "timestamp" else f"{inner} - DATE '1970-01-01'"
            if kind.low is None or kind.high is None:
                engine.execute(f"SELECT {sql} IS NULL FROM kept").fetchall()
                continue
            low, high = kind.low, kind.high
        evaluated += 1
        values = [value for (value,) in engine.execute(f"SELECT {counted} FROM kept").fetchall()]
        assert not [value for value in values if value is not None and not low <= value <= high], text
    assert evaluated > tries * 0.5


def test_an_engine_that_reorders_arithmetic_is_found(catalog: Catalog, engine: duckdb.DuckDBPyConnection) -> None:
    """(x·a)·b is zero where x is; a·b, which its optimizer makes of it, is not."""
    text = "(4611686018427387904 * zero) * 7"
    sql, _ = printed(text, catalog, summed=False)
    assert {value for (value,) in engine.execute(f"SELECT {sql} FROM kept").fetchall()} <= {0, None}
    with duckdb.connect() as plain:
        plain.execute("CREATE TABLE kept AS SELECT 0::BIGINT AS zero FROM range(3)")
        with pytest.raises(duckdb.Error, match="Overflow"):
            plain.execute(f"SELECT {sql} FROM kept").fetchall()


def test_a_bound_that_is_too_narrow_is_found(
    catalog: Catalog, engine: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exact bounds of doubles know nothing of their last bit."""
    for module in (arithmetic, conversion):
        monkeypatch.setattr(module, "nearest", lambda value: value)
        monkeypatch.setattr(module, "in_steps", lambda value, step: value / step)
    with pytest.raises((AssertionError, duckdb.Error)):
        test_nothing_raises_and_nothing_strays(catalog, engine, 2500, 11)

"""What Spark computes of each function is what DuckDB does, and an independent reading; the rest is refused."""

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction
from itertools import product
from math import inf, nextafter
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa
import pytest
import sqlglot

from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import loads
from lapwing.engines.duckdb import expressions as duckdb_expressions
from lapwing.engines.duckdb import printers as duckdb_printers
from lapwing.engines.spark import expressions, printers
from lapwing.engines.spark.capabilities import CAPABILITIES
from lapwing.engines.spark.cluster import Cluster
from lapwing.errors import QueryRefused
from lapwing.query.bind.bind import bind
from lapwing.query.expressions.as_read import key_of
from lapwing.query.expressions.calls import bind_both, bind_expression
from lapwing.query.expressions.expression import ColumnReference, Expression, Operation, walk
from lapwing.query.expressions.magnitudes import class_of, magnitudes_of
from lapwing.query.expressions.types import Mode, Real
from lapwing.query.from_clause.scope import Scope, kept, rows_of
from lapwing.query.measures.measures import argument_of
from lapwing.query.relations.public_rows import NOTHING_PUBLIC
from tests.query import test_functions as known
from tests.query.test_expressions import parsed
from tests.support.effort import SEED, is_long, one_in
from tests.support.query.evaluator import Near, Undecided, as_moment, evaluate

MORE = [
    *("a + b", "a - b", "-a", "ABS(a)", "a * b", "a / b", "ROUND(b / 7)", "b / 8 + a", "b * b * b * b * b * b * b"),
    *("ROUND(b, -1)", "ROUND(a * 0.25)", "FLOOR(a * 0.25)", "CEIL(b * 0.125)", "FLOOR(b / 3)", "LEAST(a, b)"),
    *("GREATEST(a, i)", "GREATEST(a * 0.5, b)", "COALESCE(a, b)", "COALESCE(a * 0.5, b, 7)", "NOT q", "q AND a > 0"),
    *("q OR b < 5", "a BETWEEN -2 AND 7", "a IN (0, 7, 9)", "a * 0.5 > b", "i > a", "i = 0", "a <> b", "i > a * 0.001"),
    *("e BETWEEN d AND u",),
    *("DATE_TRUNC('quarter', u)", "DATE_TRUNC('hour', u)", "DATE_TRUNC('minute', u)", "DATE_DIFF('minute', u, e)"),
    *("DATE_DIFF('second', e, u)", "DATE_DIFF('week', d, u)", "u + INTERVAL (a) DAY", "u + INTERVAL (b) SECOND"),
    *("s LIKE 'a%'", "s LIKE '_b%'", r"s LIKE 'a\_b'", "s LIKE '%-%-%'", "s LIKE 'a#%b' ESCAPE '#'", "s LIKE ''"),
    *("s LIKE '%\n%'", "s LIKE '😀_'", "s = 'abc'", "s <> t", "s >= 'Ä'", "s || '''' || t", "s = 'a''b\\${c}'"),
    *(f"STRFTIME({x}, '%{one}')" for x in "deu" for one in "YmdHMSyjbBaAuwVGIpf%"),
    *("STRFTIME(u, 'it''s %% %Y-%m-%dT%H:%M:%S.%f %p')", "STRFTIME(d, 'on a day')", "STRFTIME(u, '%j%%%a')"),
    *("STRFTIME(d + INTERVAL (b) DAY, '%G-W%V-%u')", "MONTHNAME(d)", "DAYNAME(d)", "CAST(u AS VARCHAR) || t"),
    *("UPPER(s || 'ıİſßςΣǅŉ😀𐐨e\u0301')", "LOWER(s || 'ıİſßςΣǅŉ😀𐐀E\u0301')", "UPPER(LOWER(s))", "LOWER(t) = 'b'"),
    "LOWER(s || 'İΣ')",
    *("s ILIKE 'Ä%'", "s ILIKE '%B%C%'", "s ILIKE '_😀%'", "s ILIKE 'A!%B' ESCAPE '!'", "s ILIKE 'ÜNÏ'", "s ILIKE ''"),
    *("TIME_BUCKET(INTERVAL '25 minutes', u)", "DATE_BIN('7 hours', u, TIMESTAMP '2001-01-01 00:30:00')"),
    *("'ıİſß' || s ILIKE 'IiSẞ%'", "s || 'K' ILIKE '%k%'"),
    *("-(b * b * b * b * b * b * b)", "ABS(a * b * b * b * b * b * b * b) + b", "CAST(q AS INTEGER)"),
    *("LEAST(b * b * b * b * b * b * b, a)", "b * b * b * b * b * b * b > i"),
    f"{' + '.join(['a * b'] * 9)} BETWEEN -2 AND b",
    # -0.0 is 0, also in a list of more than ten, which Spark looks up by another table.
    *(f"-(a / 7) IN ({', '.join(map(str, range(most)))})" for most in (2, 14)), "-(a / 7) = 0", "NULLIF(-(a / 7), 0)",
    *("LEAST(-(a / 7), a / 7)", "1 / (-(a / 7))", "SIGN(-(a / 7))", "CASE -(a / 7) WHEN 0 THEN 1 ELSE 2 END"),
]  # fmt: skip
MEASURED = [
    *("SUM(b / 8)", "SUM(a / (b * b + 0.5))", "SUM(b, contribution_bounds_per_row => AUTO)"),
    *("SUM(a * 0.001, contribution_bounds_per_row => AUTO)", "SUM(b / 3, contribution_bounds_per_row => AUTO)"),
    "SUM(a / (b * b * b * b * b + 0.5), contribution_bounds_per_row => AUTO)",
    "SUM(i, contribution_bounds_per_row => AUTO)",
]
"""Of these, what is added up of a row, or its class among possible bounds."""

UNREAD = (
    *("STRFTIME", "MONTHNAME", "DAYNAME", "CAST(u AS VARCHAR)", "UPPER(s ||", "LOWER(s ||", "s ILIKE", "'ıİſß'"),
    *("s || 'K'",),
    "u + INTERVAL (b) SECOND",
    "ROUND(b, -1)",
    "DATE_TRUNC('quarter'",
    "DATE_TRUNC('hour'",
    "DATE_TRUNC('minute'",
    "DATE_DIFF('minute'",
    "DATE_DIFF('second'",
    "SUM(",
    "TIME_BUCKET(",
    "DATE_BIN(",
)
"""What the evaluator has no word for: of these, DuckDB is the judge."""


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return loads(known.CATALOG, file="functions.toml", folder=Path())


def bound(text: str, catalog: Catalog) -> Expression:
    """Bind an expression, or what a measure computes of a row."""
    if text not in MEASURED:
        return known.bound(text, catalog)
    plan = bind(f"SELECT {text} FROM kept", catalog)
    asked = plan.searches[0].question if plan.searches else plan.question
    argument = argument_of(asked.measures[0])
    assert argument is not None
    return argument


def rows(more: int) -> list[dict[str, Any]]:
    """Every value of every column, many together, and as many others as are drawn."""
    chance = random.Random(SEED)
    low, high = date(1900, 1, 1), date(2030, 12, 31)

    def drawn(name: str) -> Any:
        match name:
            case "a" | "b":
                return chance.randint(*{"a": (-9, 9), "b": (-40, 1000)}[name])
            case "i":
                return chance.choice([1, -1]) * chance.randrange(2 ** chance.randrange(1, 63))
            case "s" | "t":
                return "".join(chance.choices("ab-cÄßıİſΣςK\u0301😀𐐨 \u00a0\u2003%_'\\12\n\t", k=chance.randrange(9)))
            case "d" | "e":
                return low + timedelta(days=chance.randrange((high - low).days))
        return chance.choice(known.COLUMNS[name][1])

    return known.rows() + [{name: drawn(name) for name in known.COLUMNS} for _ in range(more)]


def has(node: Expression, catalog: Catalog) -> bool:
    """Tell whether Spark answers a question about an expression."""
    question = bind("SELECT COUNT(*) AS n FROM kept", catalog).question
    asked = replace(question, selection=replace(question.selection, where=Operation(
        function="is_null", arguments=(node,), type=known.bound("q", catalog).type)))  # fmt: skip
    try:
        CAPABILITIES.require(asked)
    except QueryRefused:
        return False
    return True


def on_spark(nodes: Sequence[Expression], data: Sequence[dict[str, Any]], cluster: Cluster) -> list[list[Any]]:
    """Return what Spark computes of expressions in rows, a list an expression."""
    columns = {name: [row[name] for row in data] for name in known.COLUMNS}
    kinds = {"BIGINT": pa.int64(), "BOOLEAN": pa.bool_(), "VARCHAR": pa.string(), "DATE": pa.date32(),
             "TIMESTAMP": pa.timestamp("us")}  # fmt: skip
    arrays = [pa.array(values, kinds[known.COLUMNS[name][0]]) for name, values in columns.items()]
    view = cluster.load(pa.table([*arrays, pa.array(range(len(data)))], names=[*columns, "place"]))
    items = ", ".join(expressions.expression(node) for node in nodes)
    found = cluster.rows(f"SELECT {items} FROM {view} ORDER BY place")
    cluster.forget(view)
    return [list(values) for values in zip(*found, strict=True)]


def on_duckdb(nodes: Sequence[Expression], data: Sequence[dict[str, Any]]) -> list[list[Any]]:
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        columns = ", ".join(f"{name} {kind}" for name, (kind, _) in known.COLUMNS.items())
        connection.execute(f"CREATE TABLE kept ({columns})")
        marks = ", ".join("?" for _ in known.COLUMNS)
        connection.executemany(f"INSERT INTO kept VALUES ({marks})", [list(row.values()) for row in data])
        return [
            [
                value
                for (value,) in connection.execute(f"SELECT {duckdb_expressions.expression(node)} FROM kept").fetchall()
            ]
            for node in nodes
        ]


def differences(
    text: str, node: Expression, ours: Sequence[Any], theirs: Sequence[Any], data: Sequence[Any]
) -> list[Any]:
    """Return the rows in which Spark differs from DuckDB, or from the evaluator where that decides."""
    wrong: list[Any] = []
    read = not text.startswith(UNREAD)
    tree = sqlglot.parse_one(f"SELECT {text if read else 0}", dialect="duckdb").expressions[0]
    for row, one, other in zip(data, ours, theirs, strict=True):
        if one != other or isinstance(one, bool) != isinstance(other, bool):
            wrong.append((text, row, one, other))
        if not read:
            continue
        value = known.exact(one, node.type)
        try:
            wanted = evaluate(tree, known.as_row(row))
        except Undecided:
            continue
        if isinstance(wanted, Near) and value is not None:
            slack = wanted.error + abs(wanted.value) / 10**12 if isinstance(node.type, Real) else 0
            wrong += [(text, row, one, wanted)] if abs(Fraction(value) - wanted.value) > slack else []
        elif as_moment(value) != as_moment(wanted) if isinstance(wanted, date) else value != wanted:
            wrong.append((text, row, one, wanted))
    return wrong


def compared(texts: Sequence[str], catalog: Catalog, cluster: Cluster, more: int) -> list[Any]:
    printed = {text: bound(text, catalog) for text in texts}
    answered = [text for text in texts if has(printed[text], catalog)]
    data, nodes = rows(more), [printed[text] for text in answered]
    pairs = zip(answered, nodes, on_spark(nodes, data, cluster), on_duckdb(nodes, data), strict=True)
    return [wrong for text, node, ours, theirs in pairs for wrong in differences(text, node, ours, theirs, data)]


def test_every_function_means_the_same_on_both_engines(catalog: Catalog, cluster: Cluster) -> None:
    texts = [*known.SAME, *known.OWN, *MORE, *MEASURED]
    assert compared(texts, catalog, cluster, 2000 if is_long() else 50) == []


DOUBLES = [
    *("f = g", "f <> g", "f < g", "f <= g", "f > g", "f >= g", "f IS DISTINCT FROM g", "f IS NULL", "f IN (0, 1, 3)"),
    *("LEAST(f, g)", "GREATEST(f, g)", "f BETWEEN g AND 3", "SIGN(f)", "NULLIF(f, 0)", "COALESCE(f, g)"),
    *("CASE WHEN f > g THEN f ELSE g END", "CAST(f AS BOOLEAN)", f"f IN ({', '.join(map(str, range(14)))})"),
]
"""Of numbers without bounds nothing is computed but what orders them."""
DOUBLE: Final = """
[dataset]
name = "doubles"
ledger = "sqlite:doubles.db"
[budget]
epsilon = 1
delta = 1e-6
[tables.kept]
source = "kept.parquet"
privacy_unit = "row"
[tables.kept.columns]
f = { type = "float" }
g = { type = "float" }
"""


def doubles_apart(cluster: Cluster) -> list[Any]:
    """Return where Spark orders two doubles in another way than DuckDB: of each pair of what cleaning leaves."""
    described = loads(DOUBLE, file="doubles.toml", folder=Path())
    nodes = [known.bound(text, described) for text in DOUBLES]
    ends = [-inf, inf, 0.0, 5e-324, -5e-324, 1.0, nextafter(1, 2), 3.0, 2.0**53 + 2, 9.2e18, 1e300, -1e300, None]
    pairs = list(product(ends, ends))
    data = pa.table({"f": [f for f, _ in pairs], "g": [g for _, g in pairs], "place": range(len(pairs))})
    view = cluster.load(data)
    ours = cluster.rows(f"SELECT {', '.join(map(expressions.expression, nodes))} FROM {view} ORDER BY place")
    cluster.forget(view)
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("kept", data)
        items = ", ".join(map(duckdb_expressions.expression, nodes))
        theirs = connection.execute(f"SELECT {items} FROM kept ORDER BY place").fetchall()
    return [(pair, one, other) for pair, one, other in zip(pairs, ours, theirs, strict=True) if one != other]


def test_doubles_are_in_the_same_order(cluster: Cluster) -> None:
    """NaN and -0.0 are none of those that cleaning leaves: see `test_kept_rows`."""
    assert doubles_apart(cluster) == []


def test_doubles_that_lose_their_last_bits_are_found(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(printers.PRINTERS, "equal", lambda _node, a: f"(CAST({a[0]} AS FLOAT) = CAST({a[1]} AS FLOAT))")
    assert doubles_apart(cluster)


def misplaced(kind: Real, cluster: Cluster) -> list[Any]:
    """Return the doubles that Spark puts into another class than the first whose edge they do not pass."""
    column = ColumnReference(name="x", type=kind)
    magnitudes = magnitudes_of(column)
    ends = [sign * 2.0**k for k in range(-34, 66) for sign in (1, -1)]
    data = [near for end in ends for near in (nextafter(end, -inf), end, nextafter(end, inf))]
    data = [min(max(x, float(kind.low or x)), float(kind.high or x)) for x in [*data, 0.0, -0.0, 5e-324, 3.0, 1e300]]
    view = cluster.load(pa.table({"x": data}))
    printed = expressions.expression(class_of(column, magnitudes))
    asked = cluster.rows(f"SELECT x, {printed} FROM {view}")
    cluster.forget(view)
    return [(x, place) for x, place in asked if place != class_by_edges(x, magnitudes.edges)]


def class_by_edges(x: float, edges: Sequence[Fraction]) -> int:
    """Return the number of the edge that is the nearest bound of a value, seen from 0."""
    value = Fraction(x)
    beyond = [place for place, edge in enumerate(edges) if abs(edge) >= abs(value) and edge * value > 0]
    if not value:
        return edges.index(Fraction(0))
    if not beyond:
        return len(edges) - 1 if value > 0 else 0
    return min(beyond) if value > 0 else max(beyond)


@pytest.mark.parametrize("kind", one_in(2, [Real(low=None, high=None), Real(low=Fraction(-3), high=Fraction(10**6))]))
def test_numbers_without_steps_are_in_their_class(kind: Real, cluster: Cluster) -> None:
    """Exactly, also next to an edge, where a logarithm would not tell."""
    assert misplaced(kind, cluster) == []


def test_a_class_by_a_logarithm_is_found(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(printers, "_digits", lambda whole: f"CAST(ceil(log2({whole[5:-1]})) AS INT)")
    assert misplaced(Real(low=None, high=None), cluster)


# ---- numbers as they are read ----------------------------------------------------------------------------------------

READ = """
[dataset]
name = "read"
ledger = "sqlite:read.db"
[budget]
epsilon = 1
[tables.kept]
source = "kept.parquet"
privacy_unit = "row"
[tables.kept.columns]
f = { type = "float", lower = -3, upper = 40, step = 0.1 }
"""
MODES: tuple[Mode, ...] = ("read", "within")
ROUNDING = ("FLOOR(f)", "CEIL(f)", "ROUND(f)", "ROUND(f, 1)", "ROUND(f, -1)", "TRUNC(f)", "FLOOR(f / 7)", "f * 3")


def of_read() -> list[Expression]:
    """Return functions of a number as it is read and within its bounds, and the numbers as keys."""
    described = loads(READ, file="read.toml", folder=Path())
    source = Scope(text="", catalog=described, facts=NOTHING_PUBLIC)
    scope = rows_of(kept(described.tables[0], "kept", source), source)
    nodes = [bind_expression(parsed(text), scope.seen(mode)) for text in ROUNDING for mode in MODES]
    keys = [key_of(bind_both(parsed(text), scope), ()) for text in ("f", "FLOOR(f)", "CEIL(f / 7)")]
    return [*nodes, *keys]


def read_apart(cluster: Cluster) -> list[Any]:
    """Return on which doubles Spark and DuckDB differ about these."""
    near = [end + d for end in (-3.0, 0.0, 0.5, 1.0, 2.5, 18.0, 39.9, 40.0) for d in (-1e-12, 0.0, 1e-12, 0.05)]
    far = [sign * x for x in (2.0**52 + 1, 2.0**53 + 2, 9.3e18, 1e40, 2.0**150) for sign in (1, -1)]
    data = pa.table({"f as read": [*near, *far, None], "place": range(len(near) + len(far) + 1)})
    nodes, view = of_read(), cluster.load(data)
    ours = cluster.rows(f"SELECT {', '.join(map(expressions.expression, nodes))} FROM {view} ORDER BY place")
    cluster.forget(view)
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("kept", data)
        items = ", ".join(map(duckdb_expressions.expression, nodes))
        theirs = connection.execute(f"SELECT {items} FROM kept ORDER BY place").fetchall()
    rows = zip(data["f as read"].to_pylist(), ours, theirs, strict=True)
    return [(x, one, other) for x, one, other in rows if tuple(one) != tuple(other)]


def test_numbers_as_they_are_read_are_rounded_alike(cluster: Cluster) -> None:
    assert read_apart(cluster) == []


@pytest.mark.parametrize("printer", ["exact_steps", "floor_real"])
def test_a_number_that_is_rounded_otherwise_is_found(
    printer: str, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = {"exact_steps": printers.PRINTERS["to_fixed"], "floor_real": printers.PRINTERS["round_real"]}[printer]
    monkeypatch.setitem(printers.PRINTERS, printer, other)
    assert read_apart(cluster)


@pytest.mark.long
def test_every_printer_is_reached_by_these_texts(catalog: Catalog) -> None:
    """A printer that nothing reaches is a printer that nothing checks."""
    nodes = [bound(text, catalog) for text in [*known.SAME, *known.OWN, *MORE, *MEASURED]] + of_read()
    reached = {node.function for one in nodes if has(one, catalog) for node in walk(one) if isinstance(node, Operation)}
    assert set(printers.PRINTERS) - reached == set()


def test_no_printer_is_for_a_function_that_there_is_not() -> None:
    assert set(printers.PRINTERS) <= set(duckdb_printers.PRINTERS)


@pytest.mark.parametrize(
    ("printer", "bug", "text"),
    one_in(
        3,
        [
            ("length", "CAST(octet_length({}) AS BIGINT)", "LENGTH(s)"),
            ("concat", "concat({}, {}, {})", "CONCAT(s, t, 'x')"),
            ("distinct", "({} <> {})", "a IS DISTINCT FROM b"),
            ("month_name", "date_format({}, 'MMM')", "MONTHNAME(d)"),
            ("lower", "lower({})", "LOWER(s || 'İΣ')"),
            ("quotient", "CAST(floor({} / NULLIF({}, 0)) AS BIGINT)", "b // 7"),
        ],
        many=True,
    ),
)
def test_a_wrong_printer_is_found(
    printer: str, bug: str, text: str, catalog: Catalog, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(printers.PRINTERS, printer, lambda _node, a: bug.format(*a))
    assert compared([text], catalog, cluster, 50)


@pytest.mark.parametrize(
    ("printer", "bug", "text"),
    one_in(
        3,
        [
            ("multiply", "(9223372036854775807L * CAST({} AS BIGINT) * {})", "a * b"),
            ("make_date", "make_date({}, {}, {})", "MAKE_DATE(2020 + a, ABS(a), 30)"),
            ("in_calendar", "CAST('x' || CAST({} AS STRING) AS DATE)", "YEAR(d)"),
        ],
        many=True,
    ),
)
def test_a_printer_that_is_not_total_is_found(
    printer: str, bug: str, text: str, catalog: Catalog, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In ANSI mode it raises on data; with that off it would make NULL or wrap around, unseen by who reads the logs."""
    assert compared([text], catalog, cluster, 0) == []
    monkeypatch.setitem(printers.PRINTERS, printer, lambda _node, a: bug.format(*a))
    with pytest.raises(Exception, match=r"OVERFLOW|INVALID|DATETIME"):
        compared([text], catalog, cluster, 0)

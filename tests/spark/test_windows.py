"""Windows on Spark: what they add to the rows of a unit is what they add on DuckDB, row by row, ties and NULLs too."""

import random
from collections.abc import Sequence
from datetime import date, datetime
from math import inf
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import loads
from lapwing.engines.duckdb import relations as duckdb_relations
from lapwing.engines.spark import relations
from lapwing.engines.spark.capabilities import CAPABILITIES
from lapwing.engines.spark.cluster import Cluster
from lapwing.engines.spark.literals import identifier
from lapwing.query.bind.bind import bind
from lapwing.query.plan.capabilities import relations_of
from lapwing.query.plan.plan import Question
from lapwing.query.relations.relation import FilteredRows, ProtectedRows
from lapwing.query.relations.windowed import Windowed
from tests.support.effort import SEED
from tests.support.query.printing import print_otherwise
from tests.support.refusals import refused_as

CATALOG: Final = """
[dataset]
name = "windows"
ledger = "sqlite:windows.db"
[budget]
epsilon = 1
delta = 1e-6
[tables.kept]
source = "kept.parquet"
privacy_unit = "who"
max_rows_per_unit = 40
[tables.kept.columns]
i = { type = "integer", lower = -5, upper = 5 }
p = { type = "decimal", lower = -2, upper = 2, step = 0.5 }
w = { type = "integer", lower = -4503599627370495, upper = 4503599627370495 }
n = { type = "integer" }
f = { type = "float" }
s = { type = "string" }
d = { type = "date", lower = 0001-01-01, upper = 9999-12-31 }
m = { type = "timestamp", lower = 1900-01-01T00:00:00Z, upper = 2030-12-31T00:00:00Z }
q = { type = "boolean" }
"""
VALUES: Final[dict[str, tuple[pa.DataType, list[Any]]]] = {
    "i": (pa.int64(), [None, -5, -1, 0, 0, 1, 5]),
    "p": (pa.int64(), [None, -4, -1, 0, 1, 4]),
    "w": (pa.int64(), [None, -(2**52) + 1, 2**52 - 1, 0, 1, 2**51]),
    "n": (pa.int64(), [None, -(2**63), 2**63 - 1, 0, 7]),
    "f": (pa.float64(), [None, -inf, inf, 0.0, 5e-324, -1e300, 2.5]),
    "s": (pa.string(), [None, "", "a", "A", "ß", "ı", "e\u0301", "é", "\uffff", "😀", "a\x00"]),
    "d": (pa.date32(), [None, date(1, 1, 1), date(9999, 12, 31), date(2000, 2, 29), date(2000, 3, 1)]),
    "m": (pa.timestamp("us"), [None, datetime(1900, 1, 1), datetime(2030, 12, 31), datetime(2000, 1, 1, 0, 0, 0, 1)]),
    "q": (pa.bool_(), [None, True, False]),
}
"""Few values, so that there are ties: those that order texts, zeros and the ends of calendars in another way."""
OVER: Final = "OVER (PARTITION BY who ORDER BY"
WINDOWS: Final = (
    *(f"{name}() {OVER} {order})" for name in ("ROW_NUMBER", "RANK", "DENSE_RANK", "PERCENT_RANK", "CUME_DIST")
      for order in ("i, s", "f DESC NULLS FIRST, d", "s DESC", "m NULLS FIRST, q DESC")),
    *(f"NTILE({tiles}) {OVER} n, p)" for tiles in (1, 3, 1000)),
    *(f"{name}({given}) {OVER} {order})" for name in ("LAG", "LEAD") for given, order in (
        ("s", "i"), ("i, 2", "s, f"), ("p, 1, 0.25", "d DESC"), ("i, 0, 3", "m"), ("d, 3, DATE '0001-01-01'", "n"),
        ("f, 1, 1.5", "q, s"), ("s, 1, 'ß😀'", "q"), ("m, 1, NULL", "w"), ("n, 1, 1e25", "w"), ("q, 2, TRUE", "p"))),
    *(f"{name}(i{n} IGNORE NULLS) {OVER} s)" for name in ("LAG", "LEAD") for n in ("", ", 2", ", 2, 4")),
    *(f"{name} {nulls} {OVER} d, i{frame})" for name in ("FIRST_VALUE(s)", "LAST_VALUE(p)", "NTH_VALUE(i, 2)")
      for nulls in ("", "IGNORE NULLS") for frame in (
        " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING", " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW",
        " ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING", " ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING")),
    *(f"{name} {OVER} {order}{frame})" for name in ("SUM(i)", "AVG(p)", "COUNT(s)", "COUNT(*)", "MIN(f)", "MAX(s)",
        "BOOL_AND(q)", "BOOL_OR(q)", "SUM(w * 512)") for order, frame in (
        ("i", ""), ("s DESC, d", " ROWS UNBOUNDED PRECEDING"), ("m", " ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING"),
        ("f, n", " ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING"),
        ("i", " RANGE BETWEEN 1 PRECEDING AND 2 FOLLOWING"),
        ("p DESC NULLS FIRST", " RANGE BETWEEN 0.5 PRECEDING AND CURRENT ROW"),
        ("w * 512", " RANGE BETWEEN 2305843009213693951 PRECEDING AND 1 FOLLOWING"),
        ("w * 512 DESC", " RANGE BETWEEN UNBOUNDED PRECEDING AND 2305843009213693951 FOLLOWING"),
        ("d", " RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND INTERVAL 1 DAY FOLLOWING"),
        ("m DESC", " RANGE BETWEEN INTERVAL 30 DAY FOLLOWING AND UNBOUNDED FOLLOWING"))),
    "SUM(i) OVER (PARTITION BY who)", "AVG(i) OVER (PARTITION BY who, f)", "COUNT(*) OVER (PARTITION BY who, s, d)",
    "MAX(s) OVER (PARTITION BY who, i / 3)", "MIN(d) FILTER (WHERE q) OVER (PARTITION BY who ORDER BY i)",
)  # fmt: skip


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return loads(CATALOG, file="windows.toml", folder=Path())


def question_of(items: Sequence[str], catalog: Catalog) -> Question:
    named = ", ".join(f"{item} AS x{i}" for i, item in enumerate(items))
    known = " AND ".join(f"(x{i} IS NULL) IS NOT NULL" for i in range(len(items)))
    return bind(f"SELECT COUNT(*) AS n FROM (SELECT {named} FROM kept) WHERE {known}", catalog).question


def windowed(question: Question) -> FilteredRows:
    (node,) = (one for one in relations_of(question.selection) if isinstance(one, Windowed))
    return FilteredRows(relation=node)


def rows_kept(node: FilteredRows, units: int) -> pa.Table:
    """Return rows that exist: of few values, some equal, of units that have up to twelve."""
    chance = random.Random(SEED)
    (table,) = (one for one in relations_of(node) if isinstance(one, ProtectedRows))
    rows: list[dict[str, Any]] = []
    for unit in range(units):
        own = [
            {name: chance.choice(values) for name, (_, values) in VALUES.items()} for _ in range(chance.randrange(8))
        ]
        rows += [{"unit": unit, **row} for row in [*own, *chance.choices(own, k=min(len(own), 4))]]
    shape = pa.schema([("unit", pa.int64()), *((name, kind) for name, (kind, _) in VALUES.items())])
    made = pa.Table.from_pylist(chance.sample(rows, len(rows)), schema=shape)
    read = [column.name for column in table.columns if column.name not in VALUES]
    for name in read:
        steps = made[name.removesuffix(" as read")].cast(pa.float64())
        made = made.append_column(name, pc.multiply(steps, 0.5) if name.startswith("p") else steps)
    return made


def in_order(rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, rows), key=lambda row: [(value is not None, value) for value in row])


def apart(items: Sequence[str], catalog: Catalog, cluster: Cluster, units: int) -> list[Any]:
    """Return the rows with windows that only one of both engines finds."""
    selection = windowed(question_of(items, catalog))
    kept, added = rows_kept(selection, units), selection.relation.columns
    view = cluster.load(kept)
    shown = ", ".join(identifier(column.name) for column in added)
    layer = f"`kept kept` AS (SELECT * FROM {view})"
    ours = cluster.rows(f"WITH {layer} SELECT {shown} {relations.selected(selection)}")
    cluster.forget(view)
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("loaded", kept)
        shown = ", ".join(f'"{column.name}"' for column in added)
        theirs = connection.execute(
            f'WITH "kept kept" AS (SELECT * FROM loaded) SELECT {shown} {duckdb_relations.selected(selection)}'
        ).fetchall()
    return [pair for pair in zip(in_order(ours), in_order(theirs), strict=True) if pair[0] != pair[1]]


TOGETHER: Final = tuple(WINDOWS[place::19] for place in range(19))
"""Several at once, which break ties by one number of a unit's rows."""


def test_windows_add_the_same_on_both_engines(catalog: Catalog, cluster: Cluster) -> None:
    for items in TOGETHER[:2]:
        assert apart(items, catalog, cluster, 10) == []


@pytest.mark.long
def test_all_windows_add_the_same_on_both_engines(catalog: Catalog, cluster: Cluster) -> None:
    for items in [*((item,) for item in WINDOWS), *TOGETHER]:
        assert apart(items, catalog, cluster, 40) == [], items


@pytest.mark.long
@pytest.mark.parametrize(
    ("right", "wrong", "item"),
    [
        (" NULLS LAST", " NULLS FIRST", "LAG(s) OVER (PARTITION BY who ORDER BY s, i)"),
        ("`i` NULLS LAST", "`i` DESC NULLS LAST", "FIRST_VALUE(i) OVER (PARTITION BY who ORDER BY q)"),
        ("PARTITION BY `unit`", "PARTITION BY TRUE", "ROW_NUMBER() OVER (PARTITION BY who ORDER BY n)"),
        ("ROWS BETWEEN", "RANGE BETWEEN", "COUNT(*) OVER (PARTITION BY who ORDER BY q ROWS UNBOUNDED PRECEDING)"),
    ],
)
def test_another_window_is_found(
    right: str, wrong: str, item: str, catalog: Catalog, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert apart([item], catalog, cluster, 20) == []
    print_otherwise(lambda text: text.replace(right, wrong), monkeypatch, relations)
    assert apart([item], catalog, cluster, 20)


def test_distinct_values_in_a_window_are_refused(catalog: Catalog) -> None:
    with refused_as("not_supported_by_engine", saying="count distinct"):
        CAPABILITIES.require(question_of(["COUNT(DISTINCT i) OVER (PARTITION BY who)"], catalog))

"""Rows as somebody sends them who wants that a question fails: ends of every type, NULL, no row, all alike."""

import math
from collections.abc import Iterator, Mapping
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

import lapwing as lw

FAR: Final = 2**63
TYPES: Final[Mapping[str, pa.DataType]] = {
    "person": pa.int64(),
    "x": pa.float64(),
    "n": pa.int64(),
    "big": pa.int64(),
    "wide": pa.int64(),
    "text": pa.string(),
    "k": pa.string(),
    "day": pa.date32(),
    "at": pa.timestamp("us"),
    "yes": pa.bool_(),
}
VALUES: Final[Mapping[str, list[Any]]] = {
    "person": [0, 1, 1, 1, 1, 1, -FAR, FAR - 1, None, 7, 8],
    "x": [math.inf, -math.inf, math.nan, 1e308, -1e308, 5e-324, -0.0, 0.5, None, 9.999999999, 1 / 3, 2.0**150, 2.0**53],
    "n": [FAR - 1, -FAR, 0, 5, -5, None, 1],
    "big": [FAR - 1, -FAR, None, 0, 1],
    "wide": [2**56, -(2**56), 2**50, FAR - 1, None, 3],
    "text": [
        *("", "\0", "x" * 50_000, "é" * 300, "\ud7ff\U0010ffff", "%_\\", "'; DROP TABLE t; --", "[" * 5000, "1e999"),
        *("NaN", "-inf", "9" * 400, None, "a" * 256 + "b", "\u202e\u0301", "2024-13-45", "true"),
    ],
    "k": ["a", "b", "c", None, "", "a\0", "A"],
    "day": [-(2**31), 2**31 - 1, 0, None, -719_529, 2_932_897],
    "at": [-FAR + 2, FAR - 1, 0, None, 253_402_300_800_000_000, -62_135_596_800_000_001],
    "yes": [True, False, None],
}
"""Of each column as many as no other has, so that every pair of values meets somewhere."""


def of(values: Mapping[str, list[Any]]) -> pa.Table:
    """Return values as a table; days are numbers of days, and moments of microseconds: so all of them are there."""
    stored = {**TYPES, "day": pa.int32(), "at": pa.int64()}
    return pa.table({name: pa.array(values[name], stored[name]).cast(kind) for name, kind in TYPES.items()})


def tables() -> dict[str, pa.Table]:
    """Return tables by what is special in them."""
    mixed = {name: list(islice(cycle(values), 240)) for name, values in VALUES.items()}
    first = {name: values[:1] for name, values in VALUES.items()}
    return {
        "mixed": of(mixed),
        "no row": of({name: [] for name in TYPES}),
        "one row": of(first),
        "NULL": of({name: [None] * 9 for name in TYPES} | {"person": [1] * 9}),
        "nobody": of({name: [None] * 9 for name in TYPES}),
        "alike": of({name: values * 50 for name, values in first.items()}),
    }


CATALOG: Final = """
[dataset]
name = "{name}"
engine = "{engine}"
{at}ledger = "sqlite:{name}.db"
[budget]
epsilon = 10000
delta = 1e-3
delta_keys = 5e-4
[tables.t]
source = "t.parquet"
privacy_unit = "person"
max_rows_per_unit = 3
rows_at_most = 1000
[tables.t.columns]
x = {{ type = "float", lower = -10, upper = 10 }}
n = {{ type = "integer", lower = -5, upper = 5 }}
big = {{ type = "integer" }}
wide = {{ type = "integer", lower = -1125899906842624, upper = 1125899906842624 }}
text = {{ type = "string" }}
k = {{ type = "string", values = ["a", "b"], other = "other" }}
day = {{ type = "date", lower = 2020-01-01, upper = 2020-12-31 }}
at = {{ type = "timestamp" }}
yes = {{ type = "boolean" }}
"""
QUESTIONS: Final = (
    "SELECT COUNT(*) AS a, COUNT(DISTINCT person) AS b, SUM(x) AS c, AVG(n) AS d, VAR_POP(x) AS e, SUM(wide) FROM t",
    "SELECT k, COUNT(DISTINCT person) AS a, AVG(x) AS b FROM t GROUP BY k",
    "SELECT n, COUNT(*) AS a FROM t GROUP BY n",
    "SELECT FLOOR(x) AS f, COUNT(*) AS a FROM t GROUP BY f",
    "SELECT COUNT(*) AS a FROM t WHERE x >= 0.5 AND wide / n > 1 OR SQRT(x) > 1 OR LN(big) < 9 OR x * x > wide",
    "SELECT SUM(LENGTH(text)) AS a, COUNT_IF(UPPER(text) LIKE '%a%b%' OR SUBSTR(text, 2, 3) < 'x') AS b FROM t",
    "SELECT COUNT_IF(TRY_CAST(text AS INTEGER) > 1) AS a, COUNT_IF(TRY_CAST(text AS DATE) > '2020-01-01') AS b FROM t",
    "SELECT MONTH(day) AS m, COUNT(*) AS a, COUNT_IF(YEAR(at) > 1990) AS b FROM t GROUP BY m",
    "SELECT COUNT(*) FROM t WHERE at + INTERVAL 30 MONTH > TIMESTAMP '2020-01-01' OR DATE_DIFF('day', at, day) > 3",
    "SELECT AVG(s) AS a FROM (SELECT person, LEAST(GREATEST(SUM(x), -5), 5) AS s FROM t GROUP BY person)",
    "SELECT COUNT(*) AS a FROM (SELECT x, ROW_NUMBER() OVER (PARTITION BY person ORDER BY x, at) AS r FROM t) "
    "WHERE r <= 1",
    "SELECT MEDIAN(x) AS a, MAX(n) AS b FROM t",
    "SELECT COUNT(*) AS a FROM (SELECT DISTINCT person, x, text FROM t)",
)
PRIVATE: Final = ("SELECT text, COUNT(*) AS a FROM t GROUP BY text", "SELECT big, COUNT(*) AS a FROM t GROUP BY big")
"""Questions whose keys are private, which take a part of δ."""


def written(folder: Path, table: pa.Table, name: str = "hostile", engine: str = "duckdb") -> Path:
    """Write a table with its catalog, and return the path of the catalog."""
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, folder / "t.parquet")
    path = folder / "lapwing.toml"
    at = 'cluster = "local[2]"\n' if engine == "spark" else ""
    path.write_text(CATALOG.format(name=name, engine=engine, at=at), encoding="utf-8")
    return path


def shapes(session: lw.Session) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Ask all questions, and yield how many rows each answer has, and what they are called; none if it is refused."""
    for text in QUESTIONS:
        try:
            found = session.sql(text, epsilon=1).to_arrow()
        except lw.QueryRefused:  # by some engines: before the charge, whatever the rows are
            yield 0, ()
            continue
        yield found.num_rows, tuple(found.column_names)
    for text in PRIVATE:  # how many keys are found is chosen by a mechanism
        yield 0, tuple(session.sql(text, epsilon=1, delta=1e-6).to_arrow().column_names)
    require_answered(session)


def require_answered(session: lw.Session | lw.graphs.GraphSession) -> None:
    """Every charge has its answer, and no fault stands."""
    view = session.budget()
    assert view.faults == 0
    assert all(one.answered for one in view.history)

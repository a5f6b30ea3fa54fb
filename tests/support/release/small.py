"""Small protected tables with a catalog of every kind of column, for tests of whole questions."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from functools import cache
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

import lapwing as lw
from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import loads
from lapwing.engines import DuckDB
from lapwing.engines.base import Exact
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.exact.entropy import Entropy
from lapwing.opening import open_session
from lapwing.query.bind.bind import bind
from lapwing.query.plan.plan import Question
from lapwing.query.pricing.calibrate import calibrate
from lapwing.query.pricing.quote import Quote
from lapwing.session import Session
from tests.support.engines.tables import digests
from tests.support.fixed_entropy import StreamEntropy

Row = dict[str, Any]

SCHEMA = pa.schema(
    [
        ("person", pa.int64()),
        ("town", pa.string()),
        ("plan", pa.string()),
        ("age", pa.int64()),
        ("size", pa.int64()),
        ("day", pa.date32()),
        ("seen", pa.timestamp("us")),
        ("code", pa.int64()),
        ("cost", pa.float64()),
    ]
)

CATALOG = """
[dataset]
name = "small"
ledger = "sqlite:small.db"
[budget]
{budget}
[tables.visits]
source = "visits.parquet"
privacy_unit = "{unit}"
{table}
[tables.visits.columns]
town = {{ type = "string" }}
plan = {{ type = "string", values = ["a", "b"]{plan} }}
age = {{ type = "integer", lower = -1, upper = 3{age} }}
size = {{ type = "integer", lower = 0, upper = 10, step = 5, values = [0, 5, 10] }}
day = {{ type = "date" }}
seen = {{ type = "timestamp" }}
code = {{ type = "integer" }}
cost = {{ type = "float", lower = 0, upper = 8, step = 0.5 }}
[tables.codes]
source = "codes.parquet"
public = true
[tables.codes.columns]
plan = {{ type = "string" }}
tier = {{ type = "string" }}
"""
GDP = "epsilon = 100\ndelta = 1e-3\ndelta_keys = 5e-4"
ZCDP = GDP + '\nmeasure = "zcdp"'
PURE = 'epsilon = 100\ndelta = 5e-4\ndelta_keys = 5e-4\nmeasure = "pure"'
BUDGETS = {"gdp": GDP, "zcdp": ZCDP, "pure": PURE}
CODES = [{"plan": "a", "tier": "gold"}, {"plan": "a", "tier": "tin"}, {"plan": "b", "tier": "tin"}]


def row(person: int | None, **values: Any) -> Row:
    """A row with ordinary values."""
    ordinary: Row = {
        "town": "Ulm",
        "plan": "a",
        "age": 1,
        "size": 5,
        "day": date(2026, 1, 1),
        "seen": datetime(2026, 1, 1),
        "code": 7,
        "cost": 1.5,
    }
    return {"person": person, **ordinary, **values}


def write(folder: Path, rows: Sequence[Row]) -> None:
    pq.write_table(pa.Table.from_pylist(list(rows), schema=SCHEMA), folder / "visits.parquet")
    pq.write_table(pa.Table.from_pylist(CODES), folder / "codes.parquet")


def catalog(
    folder: Path,
    *,
    budget: str = GDP,
    unit: str = "person",
    most: int = 2,
    part: str | None = None,
    plan: str = "",
    age: str = "",
) -> Catalog:
    """Return a catalog; `plan` and `age` add to what is declared of these columns."""
    table = "" if unit == "row" else f"max_rows_per_unit = {most}"
    if part is not None:
        table += f'\npart = "{part}"'
    text = CATALOG.format(budget=budget, unit=unit, table=table, plan=plan, age=age)
    return replace(_read(text), folder=folder)


@cache
def _read(text: str) -> Catalog:
    """Read a catalog, once in a process."""
    return loads(text, file="small", folder=Path())


def opened(folder: Path, rows: Sequence[Row], *, entropy: Entropy | None = None, **facts: Any) -> Session:
    """Write a table and open a session on it with repeatable noise."""
    write(folder, rows)
    return open_session(catalog(folder, **facts), entropy=entropy or StreamEntropy("small"))


def shown(answer: lw.Answer) -> list[dict[str, Any]]:
    return cast(list[dict[str, Any]], answer.rows())


def priced(text: str, described: Catalog, **asked: Any) -> Quote:
    """Bind and price a question as a session does."""
    plan = bind(text, described, PublicData(described))
    return calibrate(plan, described.budget, **asked)


def exact(question: Question, described: Catalog, rows: Sequence[Row]) -> Exact:
    """Return what the engine finds in a table."""
    write(described.folder, rows)
    public = PublicData(described)
    engine = DuckDB(described, public=public, threads=1)
    try:
        return engine.run(question, digests(engine, question))
    finally:
        engine.close()
        public.close()

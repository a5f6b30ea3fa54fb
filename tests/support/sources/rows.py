"""The same rows behind every door: a table of visits, and catalogs that take it from somewhere."""

import sqlite3
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any, Final

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import loads
from lapwing.engines import open_engine
from lapwing.query.bind.bind import bind
from lapwing.sources import SourceSnapshot, fetch
from tests.support.engines.reused import reusing

SCHEMA: Final = pa.schema(
    {
        "person": pa.int64(),
        "plan": pa.string(),
        "cost": pa.decimal128(10, 2),
        "weight": pa.float64(),
        "insured": pa.bool_(),
        "day": pa.date32(),
        "at": pa.timestamp("us"),
    }
)
POSTGRES: Final = (
    "person bigint, plan text, cost numeric(10, 2), weight double precision, insured boolean, day date, at timestamptz"
)
SQLITE: Final = "person INTEGER, plan TEXT, cost NUMERIC(10, 2), weight REAL, insured BOOLEAN, day DATE, at TIMESTAMP"
COLUMNS: Final = {
    "person": '{ type = "integer" }',
    "plan": '{ type = "string", values = ["a", "B", "ß"] }',
    "cost": '{ type = "decimal", lower = 0, upper = 500, step = 0.01 }',
    "weight": '{ type = "float", lower = 0, upper = 200, step = 0.125 }',
    "insured": '{ type = "boolean" }',
    "day": '{ type = "date", lower = 2024-01-01, upper = 2024-12-31 }',
    "at": '{ type = "timestamp", lower = 2024-01-01T00:00:00Z, upper = 2024-12-31T00:00:00Z }',
}
QUESTIONS: Final = (
    "SELECT plan, COUNT(*) FROM visits GROUP BY plan",
    "SELECT insured, SUM(cost), SUM(weight) FROM visits GROUP BY insured",
    "SELECT COUNT_IF(day < DATE '2024-03-01'), COUNT_IF(at >= TIMESTAMP '2024-02-01 23:30:00') FROM visits",
    "SELECT SUM(EXTRACT(hour FROM at)) FROM visits WHERE plan <> 'B'",
)


def visits(count: int = 400, seed: int = 1, first: int = 0) -> pa.Table:
    """Return rows with what is awkward in them: NULL, negative amounts, odd letters, moments around midnight.

    Args: first: the least number of a person.
    """
    random = Random(seed)

    def maybe(value: Any) -> Any:
        return None if random.random() < 0.05 else value

    rows = [
        {
            "person": maybe(first + random.randrange(count // 4)),
            "plan": maybe(random.choice(["a", "B", "ß", "b", "é", "é", "", "ab" * 200])),
            "cost": maybe(Decimal(random.randrange(-5_000, 60_000)) / 100),
            "weight": maybe(random.choice([0.0, -0.0, 0.1, 1e-300, 1e300, 81.5, random.random() * 100])),
            "insured": maybe(random.random() < 0.5),
            "day": maybe(date(2023, 12, 1) + timedelta(days=random.randrange(400))),
            "at": maybe(datetime(2023, 12, 31, 22) + timedelta(microseconds=random.randrange(10**13))),
        }
        for _ in range(count)
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def fill_postgres(url: str, rows: pa.Table, table: str = "visits") -> str:
    """Put rows into a table of PostgreSQL, which is made if it is not there; return its address."""
    with psycopg.connect(url) as connection:
        connection.execute(f"CREATE TABLE IF NOT EXISTS {table} ({POSTGRES})")
        with connection.cursor() as cursor, cursor.copy(f"COPY {table} FROM STDIN") as copy:
            for row in rows.to_pylist():
                copy.write_row([*list(row.values())[:-1], _zoned(row["at"])])
    return f"{url}#public.{table}"


def _zoned(moment: datetime | None) -> datetime | None:
    """Return a moment in the zone of somewhere else, which is the same moment."""
    return None if moment is None else moment.replace(tzinfo=UTC)


def fill_sqlite(file: Path, rows: pa.Table, table: str = "visits") -> str:
    """Put rows into a table of SQLite; return its address, relative to the file's folder."""
    with sqlite3.connect(file) as connection:
        connection.execute(f"CREATE TABLE IF NOT EXISTS {table} ({SQLITE})")
        plain = [
            [str(value) if isinstance(value, Decimal | date) else value for value in row.values()]
            for row in rows.to_pylist()
        ]
        marks = ", ".join("?" * rows.num_columns)
        connection.executemany(f"INSERT INTO {table} VALUES ({marks})", plain)
    connection.close()
    return f"sqlite:{file.name}#{table}"


def fill_parquet(file: Path, rows: pa.Table) -> str:
    """Put rows into a Parquet file; return its address, relative to the file's folder."""
    pq.write_table(rows, file, row_group_size=97)
    return f"parquet:{file.name}"


def catalog(
    folder: Path,
    source: str,
    *,
    columns: Mapping[str, str] = COLUMNS,
    more: str = "",
    ledger: str = "sqlite:visits.db",
    unit: str = "person",
) -> Catalog:
    """Return the catalog of one table that comes from somewhere, which is also written to the folder."""
    lines = [f'"{name}" = {declared}' for name, declared in columns.items()]
    text = "\n".join(
        [
            *("[dataset]", 'name = "visits"', f'ledger = "{ledger}"', "[budget]", "epsilon = 10", "delta = 1e-6"),
            *("[tables.visits]", f"source = '{source}'", f'privacy_unit = "{unit}"'),
            "" if unit == "row" else "max_rows_per_unit = 3",
            more,
            "[tables.visits.columns]",
            *lines,
            "",
        ]
    )
    (folder / "lapwing.toml").write_text(text)
    return loads(text, file="lapwing.toml", folder=folder)


def exact(catalog: Catalog, text: str) -> dict[Any, Any]:
    """Return the exact integers of a question, of what was fetched last or is in the file."""
    with reusing():
        engine, public = open_engine(catalog)
    try:
        question = bind(text, catalog, public).question
        digests = {table.name: engine.digest(table) for table in question.lineage}
        return dict(engine.run(question, digests).cells)
    finally:
        engine.close()
        public.close()


def fetched(folder: Path, source: str, **options: Any) -> tuple[Catalog, SourceSnapshot]:
    """Return the catalog of a source, and what was fetched."""
    made = catalog(folder, source, **options)
    return made, fetch(made)


def fill_delta(folder: Path, rows: pa.Table) -> str:
    """Append rows to a Delta table; return its address, relative to the folder above."""
    from deltalake import write_deltalake

    write_deltalake(str(folder), rows, mode="append")
    return f"delta:{folder.name}"


def fill_iceberg(folder: Path, rows: pa.Table, name: str = "visits") -> str:
    """Append rows to a table of an Iceberg catalog in SQLite, of which the environment knows; return its address."""
    from pyiceberg.catalog import load_catalog

    catalog = load_catalog("lake", **iceberg_catalog(folder))
    catalog.create_namespace_if_not_exists("clinic")
    catalog.create_table_if_not_exists(f"clinic.{name}", schema=rows.schema).append(rows)
    catalog.close()
    return f"iceberg:lake#clinic.{name}"


def iceberg_catalog(folder: Path) -> dict[str, str]:
    """Return what an Iceberg catalog in a folder is opened by."""
    return {"type": "sql", "uri": f"sqlite:///{folder}/lake.db", "warehouse": f"file://{folder}/warehouse"}


def know_iceberg(folder: Path, monkeypatch: pytest.MonkeyPatch, **settings: str) -> None:
    """Let the environment know the Iceberg catalog in a folder; PyIceberg looks at it once, when it is imported.

    Args: settings: that are others than those of the catalog in the folder.
    """
    import pyiceberg.catalog
    from pyiceberg.utils.config import Config

    for key, value in (iceberg_catalog(folder) | settings).items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__LAKE__{key.upper()}", value)
    monkeypatch.setattr(pyiceberg.catalog, "_ENV_CONFIG", Config())

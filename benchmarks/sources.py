"""How long it takes to fetch 10 M rows of four columns from PostgreSQL, and from a file in SQLite and a Delta table.

Beside it, in the same run and against the same server: the rows as plain ADBC hands them over, thrown away; the rows as
`COPY … TO STDOUT` of psycopg hands them over, in binary form, thrown away; and both written into a Parquet file, ADBC's
by PyArrow, which is what one would do without a digest and without an order. Each is a process of its own, so that its
greatest memory can be told. Seconds by the clock, seconds of this side's processor time, and megabytes.

    python benchmarks/sources.py [ROWS]
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
ROWS: Final = 10_000_000
QUERY: Final = "SELECT person_id, plan, cost::text AS cost, at FROM visits"
MADE: Final = """
CREATE TABLE visits AS SELECT (i * 7919 % 1000000)::int8 AS person_id, 'plan ' || i % 5 AS plan,
  (i * 31 % 500000 / 100.0)::numeric(10, 2) AS cost, timestamptz '2024-01-01' + i % 31536000 * interval '1 second' AS at
FROM generate_series(1::int8, {rows}) i
"""
CATALOG: Final = """
[dataset]
name = "visits"
ledger = "sqlite:visits.db"
[budget]
epsilon = 1
[tables.visits]
source = '{source}'
privacy_unit = "person_id"
max_rows_per_unit = 10
[tables.visits.columns]
person_id = {{ type = "integer" }}
plan = {{ type = "string" }}
cost = {{ type = "decimal", step = 0.01 }}
at = {{ type = "timestamp" }}
"""


def lapwing(source: str, folder: Path) -> int:
    """Fetch a snapshot."""
    from lapwing.catalog.toml import loads
    from lapwing.sources import fetch

    catalog = loads(CATALOG.format(source=source), file="visits.toml", folder=folder)
    return fetch(catalog).tables["visits"].rows


def adbc(url: str, folder: Path) -> int:
    """Read batches and throw them away."""
    import adbc_driver_postgresql.dbapi

    with adbc_driver_postgresql.dbapi.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(QUERY)
        return sum(batch.num_rows for batch in cursor.fetch_record_batch())


def adbc_to_parquet(url: str, folder: Path) -> int:
    """Read batches and write them as they come."""
    import adbc_driver_postgresql.dbapi
    import pyarrow.parquet as pq

    with adbc_driver_postgresql.dbapi.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(QUERY)
        batches, rows = cursor.fetch_record_batch(), 0
        with pq.ParquetWriter(folder / "plain.parquet", batches.schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
                rows += batch.num_rows
        return rows


def copy(url: str, folder: Path) -> int:
    """Read the bytes of a binary copy, undecoded; how many rows they are is not looked at."""
    import psycopg

    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        with cursor.copy(f"COPY ({QUERY}) TO STDOUT (FORMAT binary)") as blocks:
            for _ in blocks:
                pass
        return cursor.rowcount


WAYS: Final = {"lapwing": lapwing, "ADBC": adbc, "ADBC to Parquet": adbc_to_parquet, "COPY": copy}


def measured(way: str, source: str) -> None:
    """Run one way in this process, and print what it took."""
    with tempfile.TemporaryDirectory() as folder:
        began, used = time.monotonic(), time.process_time()
        rows = WAYS[way](source, Path(folder))
        took = f"{time.monotonic() - began:6.1f} s  {time.process_time() - used:6.1f} s of processor"
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{took}  {most:5.0f} MB  {rows:,} rows", flush=True)


def alone(name: str, way: str, source: str) -> None:
    """Run one way in a process of its own."""
    print(f"{name:<28}", end=" ", flush=True)
    subprocess.run([sys.executable, __file__, "--way", way, source], check=True)


def main(rows: int) -> None:
    """Start a server, make the rows, and measure all ways."""
    sys.path.insert(0, str(ROOT))
    import psycopg
    from tests.support.postgres import server

    with tempfile.TemporaryDirectory() as made, server(None, fsync="off", max_wal_size="8GB") as running:
        with psycopg.connect(running.url(), autocommit=True) as connection:
            connection.execute(MADE.format(rows=rows))
            connection.execute("VACUUM ANALYZE visits")
        for way in ("ADBC", "COPY", "ADBC to Parquet"):
            alone(way, way, running.url())
        alone("Lapwing, PostgreSQL", "lapwing", f"{running.url()}#visits")
        for name, source in others(running.url(), Path(made)):
            alone(f"Lapwing, {name}", "lapwing", source)


def others(url: str, folder: Path) -> list[tuple[str, str]]:
    """Put the same rows elsewhere, and return the addresses."""
    import sqlite3

    import adbc_driver_postgresql.dbapi
    from deltalake import write_deltalake

    with sqlite3.connect(folder / "visits.db") as there:
        there.execute("CREATE TABLE visits (person_id INTEGER, plan TEXT, cost NUMERIC(10, 2), at TIMESTAMP)")
        with adbc_driver_postgresql.dbapi.connect(url) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT person_id, plan, cost::float8, (at AT TIME ZONE 'UTC')::text FROM visits")
            for batch in cursor.fetch_record_batch():
                columns = [column.to_pylist() for column in batch.columns]
                there.executemany("INSERT INTO visits VALUES (?, ?, ?, ?)", zip(*columns, strict=True))
    there.close()
    with adbc_driver_postgresql.dbapi.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT person_id, plan, cost::float8 AS cost, at AT TIME ZONE 'UTC' AS at FROM visits")
        write_deltalake(str(folder / "lake"), cursor.fetch_record_batch())
    return [("SQLite", f"sqlite:{folder}/visits.db#visits"), ("Delta Lake", f"delta:{folder}/lake")]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--way"]:
        measured(*sys.argv[2:])
    else:
        main(int(sys.argv[1]) if sys.argv[1:] else ROWS)

"""Questions asked of a few small tables: of the engine, which finds exact values without noise, and of plain DuckDB."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from lapwing.catalog.toml import load
from lapwing.engines import DuckDB
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.query.bind.bind import bind
from lapwing.query.plan.plan import Plan, Question

Tables = dict[str, pa.Table]
Cells = dict[tuple[Any, ...], tuple[int, ...]]
TOML = "catalog.toml"


class World:
    """An engine over tables that are written into a folder, as a catalog describes them."""

    def __init__(self, folder: Path, catalog: str, found: Tables) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / TOML).write_text(catalog)
        for name, table in found.items():
            pq.write_table(table, folder / f"{name}.parquet")
        self.catalog = load(folder / TOML)
        self.public = PublicData(self.catalog)
        self.engine = DuckDB(self.catalog, public=self.public, threads=1)

    def __enter__(self) -> "World":
        return self

    def __exit__(self, *_: object) -> None:
        self.engine.close()
        self.public.close()

    def plan(self, text: str) -> Plan:
        return bind(text, self.catalog, self.public)

    def exact(self, question: Question) -> Cells:
        digests = {table.name: self.engine.digest(table) for table in question.lineage}
        return dict(self.engine.run(question, digests).cells)


def plain(text: str, found: Tables) -> list[tuple[Any, ...]]:
    """Ask plain DuckDB, of the tables as they are."""
    return holding(found).execute(text).fetchall()


def left(queries: Mapping[str, str], found: Tables) -> Tables:
    """Return tables of which some hold only what queries over all of them select."""
    connection = holding(found)
    return found | {name: connection.sql(query).to_arrow_table() for name, query in queries.items()}


def holding(found: Tables) -> duckdb.DuckDBPyConnection:
    """Return a plain database with some tables in the place of those of these names that it had."""
    connection = _plain_database()
    for name, table in found.items():
        connection.register(name, table)
    return connection


@cache
def _plain_database() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()

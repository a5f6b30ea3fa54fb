"""Engines run questions over private data and return exact integers."""

from lapwing.engines.base import FAILED, NOTHING, Cells, Engine, Exact, IndexedEngine, Leaves, PublicTables
from lapwing.engines.duckdb.engine import DuckDB
from lapwing.engines.registry import (
    FILE_ENGINE,
    digests,
    open_checking_engine,
    open_engine,
    open_event_reader,
    open_indexed_engine,
    open_public_tables,
)

__all__ = [
    "FAILED",
    "FILE_ENGINE",
    "NOTHING",
    "Cells",
    "DuckDB",
    "Engine",
    "Exact",
    "IndexedEngine",
    "Leaves",
    "PublicTables",
    "digests",
    "open_checking_engine",
    "open_engine",
    "open_event_reader",
    "open_indexed_engine",
    "open_public_tables",
]

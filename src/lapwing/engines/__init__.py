"""Engines run the SQL of a question over private data and return exact integers."""

from lapwing.engines.base import Cells, Engine, Exact, Leaves, digests
from lapwing.engines.duckdb import DuckDB
from lapwing.engines.holders import Holders

__all__ = ["Cells", "DuckDB", "Engine", "Exact", "Holders", "Leaves", "digests"]

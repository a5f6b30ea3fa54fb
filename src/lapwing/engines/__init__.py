"""Engines run the SQL of a question over private data and return exact integers."""

from lapwing.engines.base import Cells, Engine, Exact, Holders, Leaves
from lapwing.engines.duckdb import DuckDB

__all__ = ["Cells", "DuckDB", "Engine", "Exact", "Holders", "Leaves"]

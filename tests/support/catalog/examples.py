"""A small catalog as text, and as values."""

from pathlib import Path

from lapwing.catalog import Catalog
from lapwing.catalog.toml import loads

TEXT = """\
[dataset]
name = "clinic"
engine = "duckdb"
ledger = "sqlite:visits.lapwing.db"

[budget]
epsilon = 3.0
delta = 1e-6
delta_keys = 1e-7
measure = "gdp"
neighbouring = "add_remove"

[tables.visits]
source = "visits.parquet"
privacy_unit = "person_id"
max_rows_per_unit = 10

[tables.visits.columns]
plan = { type = "string", values = ["a", "b", "c"], other = "other" }
cost = { type = "decimal", lower = 0, upper = 5000, step = 0.01 }
age  = { type = "integer", lower = 0, upper = 110 }
fare = { type = "float", lower = 0, upper = 1 }
paid = { type = "boolean" }
town = { type = "string" }
day  = { type = "date", lower = 2020-01-01, upper = 2024-12-31, values = [2020-02-29] }
seen = { type = "timestamp", lower = 2020-01-01T00:00:00Z, upper = 2024-12-31T12:00:00+02:00 }
"""

FOLDER = Path("/data")


def catalog(content: str = TEXT) -> Catalog:
    """Read the text as the file lapwing.toml of a folder."""
    return loads(content, file="lapwing.toml", folder=FOLDER)


def changed(old: str, new: str) -> str:
    """Return the text with one place changed."""
    assert TEXT.count(old) == 1, old
    return TEXT.replace(old, new)

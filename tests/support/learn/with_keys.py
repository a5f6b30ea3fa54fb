"""The same small tables, in a ledger that keeps a part of its delta for lists of steps."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import lapwing as lw
from tests.support.learn.people import ROWS_PER_PERSON, Row, table_of

KEYS = "1e-6"
CATALOG = """
[dataset]
name = "visits"
ledger = "sqlite:visits.lapwing.db"

[budget]
epsilon = {epsilon}
delta = {delta}
delta_keys = {keys}
measure = "{measure}"
neighbouring = "{neighbouring}"

[tables.visits]
source = "visits.parquet"
privacy_unit = "person"
max_rows_per_unit = {rows}

[tables.visits.columns]
person = {{ type = "string" }}
age = {{ type = "integer", lower = 0, upper = 100 }}
pay = {{ type = "decimal", lower = 0, upper = 200, step = 0.1 }}
plan = {{ type = "string", values = ["a", "b", "c"] }}
ill = {{ type = "boolean" }}
"""


def opened(folder: Path, rows: list[Row], **more: Any) -> lw.Session:
    folder.mkdir(exist_ok=True)
    pq.write_table(table_of(rows), folder / "visits.parquet")
    facts = {"epsilon": 1000, "delta": "1e-5", "keys": KEYS, "measure": "gdp", "neighbouring": "add_remove"}
    (folder / "lapwing.toml").write_text(CATALOG.format(**(facts | {"rows": ROWS_PER_PERSON} | more)))
    return lw.connect(folder / "lapwing.toml")

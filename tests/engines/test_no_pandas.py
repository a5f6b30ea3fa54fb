"""Private keys are found without pandas, which takes 0.3 s to load where it is installed."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ASKED = """
import sys
from lapwing.opening import connect
with connect("lapwing.toml") as session:
    rows = session.sql("SELECT shop, COUNT(*) AS n FROM v GROUP BY shop", epsilon=9, delta=1e-4).rows()
print(len(rows), "pandas" in sys.modules)
"""
CATALOG = """
[dataset]
name = "d"
ledger = "sqlite:d.db"
[budget]
epsilon = 10
delta = 1e-3
delta_keys = 5e-4
[tables.v]
source = "v.parquet"
privacy_unit = "person"
max_rows_per_unit = 2
columns = { shop = { type = "string" } }
"""


@pytest.mark.long
def test_private_keys_do_not_load_pandas(tmp_path: Path) -> None:
    pq.write_table(pa.table({"person": range(1000), "shop": ["a", "b"] * 500}), tmp_path / "v.parquet")
    (tmp_path / "lapwing.toml").write_text(CATALOG)
    done = subprocess.run([sys.executable, "-c", ASKED], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2", "False"]

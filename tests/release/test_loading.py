"""Nothing is loaded between a charge and its answer: what fails to load then would cost the price."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.docs.pages import ROOT

CATALOG = """
[dataset]
name = "visits"
ledger = "sqlite:visits.db"
[budget]
epsilon = 100
delta = 1e-3
delta_keys = 1e-4
[tables.visits]
source = "visits.parquet"
privacy_unit = "person"
max_rows_per_unit = 5
[tables.visits.columns]
plan = { type = "string", values = ["a", "b"] }
town = { type = "string" }
cost = { type = "integer", lower = 0, upper = 50 }
"""
SCRIPT = """
import sys
from pathlib import Path
import pyarrow as pa, pyarrow.parquet as pq
import lapwing as lw
from lapwing.engines.duckdb import engine
from lapwing.ledger.ledger import Ledger

rows = {"person": [1, 1, 2, 3], "plan": list("abaa"), "town": list("uuvv"), "cost": [1, 2, 3, 4]}
pq.write_table(pa.table(rows), "visits.parquet")
Path("lapwing.toml").write_text(CATALOG)

late = set()
charge, record = Ledger.charge_all, Ledger.record_answer

def charging(self, *arguments):
    outcome = charge(self, *arguments)
    charging.loaded = set(sys.modules)
    return outcome

def recording(self, *arguments):
    late.update(name for name in sys.modules if name.startswith("lapwing") and name not in charging.loaded)
    return record(self, *arguments)

Ledger.charge_all, Ledger.record_answer = charging, recording
if "unprepared" in sys.argv:
    engine.prepare = lambda question: None
with lw.connect("lapwing.toml") as session:
    options = "WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 1)"
    for text in (
        "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan",
        "SELECT plan, AVG(cost) AS m, VARIANCE(cost) AS v FROM visits GROUP BY ROLLUP (plan)",
        "SELECT MEDIAN(cost) AS m FROM visits",
        "SELECT COUNT(*) AS n FROM (SELECT person, MAX(cost) AS most FROM visits GROUP BY person) WHERE most > 1",
        "SELECT SUM(cost, contribution_bounds_per_row => AUTO) AS s FROM visits",
        "SELECT COUNT(*, contribution_bounds_per_group => (0, 2)) AS n "
        "FROM visits AS x JOIN visits AS y ON x.plan = y.plan",
    ):
        session.sql(text, epsilon=1)
    session.sql(f"SELECT {options} town, COUNT(*) AS n FROM visits GROUP BY town", epsilon=1, delta=1e-6)
print(*sorted(late))
"""


def loaded_late(folder: Path, *arguments: str) -> list[str]:
    """Return which of our modules a process loads between charges and answers of several kinds of questions."""
    environment = {"PYTHONPATH": f"{ROOT / 'src'}", "LANG": "C.UTF-8"}
    command = [sys.executable, "-c", SCRIPT.replace("CATALOG", repr(CATALOG)), *arguments]
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


@pytest.mark.long
def test_nothing_is_loaded_once_a_question_is_paid(tmp_path: Path) -> None:
    assert loaded_late(tmp_path) == []


@pytest.mark.long
def test_what_is_not_loaded_before_is_noticed(tmp_path: Path) -> None:
    """The planted bug: an engine that prepares nothing."""
    assert "lapwing.engines.holders" in loaded_late(tmp_path, "unprepared")

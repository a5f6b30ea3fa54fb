"""`lapwing synthesize`: rows in a file, the report beside, and nothing charged for what cannot be written."""

import json
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.synthesis import asking
from tests.support.cli.command import Run
from tests.support.effort import one_in
from tests.support.synthesis.joint_model import JointModel

pytestmark = pytest.mark.usefixtures("visits")


def test_rows_and_report_are_written(run: Run) -> None:
    with patch.object(asking, "GraphicalModel", JointModel):
        for name, report in (("rows.parquet", "r.json"), ("rows.csv", "r.csv"), ("rows.arrow", "r.json")):
            outcome = run(
                "synthesize", "cost", "plan", "--epsilon", "0.2", "--method", "mst", "-o", name, "--report", report
            )
            assert outcome.status == 0, outcome.err
            assert "no guarantee of accuracy" in " ".join(outcome.err.split())
            assert "of the budget left" in outcome.err
            assert "cost × plan" in outcome.out
    rows = pq.read_table("rows.parquet")
    assert rows.column_names == ["cost", "plan"]
    assert rows.num_rows > 10
    assert pyarrow.csv.read_csv("rows.csv").column_names == ["cost", "plan"]
    with pa.ipc.open_stream("rows.arrow") as stream:
        assert stream.read_all().schema == rows.schema
    document = json.loads(Path("r.json").read_text())
    assert [table["columns"] for table in document["tables"]] == [["cost"], ["plan"], ["cost", "plan"]]
    assert document["error"]["low"] <= document["error"]["estimate"] <= document["error"]["high"]
    assert Path("r.csv").read_text().startswith("columns,cell,measured,low,high,synthetic\ncost,")


@pytest.mark.parametrize(
    "more",
    one_in(
        2,
        [
            ("-o", "rows.txt"),
            ("-o", "nowhere/rows.csv"),
            ("-o", "rows.csv", "--report", "report.md"),
            ("-o", "rows.csv", "--table", "other"),
        ],
    ),
)
def test_what_cannot_be_written_costs_nothing(run: Run, more: tuple[str, ...]) -> None:
    outcome = run("synthesize", "cost", "plan", "--epsilon", "0.2", *more)
    assert outcome.status == 2
    assert "Nothing was charged." in outcome.err
    with lw.connect("lapwing.toml") as session:
        assert session.budget().spent.amount == 0

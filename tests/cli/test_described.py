"""Texts of the data dictionary in what the terminal writes: labels on request, metadata of fields, titles of charts."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from tests.support.cli.command import Run
from tests.support.server.world import service_in, serving

COUNTS = "SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan"
OVER_TWO = (
    "WITH a AS (SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan), "
    "b AS (SELECT plan, COUNT(*) AS m FROM visits GROUP BY plan) SELECT a.plan, n, m FROM a JOIN b USING (plan)"
)
TEXTS = 'title = "Plan [bold]", values = [{ value = "a", label = "Adult" }, "b"]'


@pytest.fixture
def told(visits: Path) -> Path:
    """A folder whose catalog has a title and a label."""
    catalog = visits / "lapwing.toml"
    plain = catalog.read_text(encoding="utf-8")
    text = plain.replace('values = ["a", "b"]', TEXTS)
    assert text != plain
    catalog.write_text(text, encoding="utf-8")
    return visits


def read(text: str) -> list[str]:
    return [row["plan"] for row in csv.DictReader(io.StringIO(text))]


def test_labels_stand_in_the_place_of_codes_if_asked_for(told: Path, run: Run) -> None:
    coded = run("query", COUNTS, "--epsilon", "1")
    labelled = run("query", COUNTS, "--epsilon", "1", "--labels")
    assert (read(coded.out), read(labelled.out)) == (["a", "b"], ["Adult", "b"])
    assert coded.out.replace("\na,", "\nAdult,") == labelled.out
    table = run("query", COUNTS, "--epsilon", "1", "--labels", "--format", "table").out
    assert ("Adult" in table, "\na " in table) == (True, False)
    document = json.loads(run("query", COUNTS, "--epsilon", "1", "--labels", "--format", "json").out)
    assert [row["plan"] for row in document["rows"]] == ["Adult", "b"]
    assert len(document["notes"]) == len(document["note_codes"])
    without = run("query", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "1", "--labels")
    assert (without.status, "has no labels for" in without.err, "has no labels for" in labelled.err) == (0, True, False)
    assert told.exists()


def test_files_have_the_texts_as_metadata_of_their_fields(told: Path, run: Run) -> None:
    for form in ("parquet", "arrow"):
        assert run("query", COUNTS, "--epsilon", "1", "-o", f"x.{form}").status == 0
    tables = (pq.read_table(told / "x.parquet"), pa.ipc.open_stream((told / "x.arrow").read_bytes()).read_all())
    for table in tables:
        metadata = table.schema.field("plan").metadata
        assert (metadata[b"title"], json.loads(metadata[b"labels"])) == (b"Plan [bold]", {"a": "Adult"})
        assert table.schema.field("n").metadata is None
        assert table.column("plan").to_pylist() == ["a", "b"]


def test_charts_have_titles_and_labels(told: Path, run: Run) -> None:
    assert run("query", COUNTS, "--epsilon", "1", "--plot", "chart.json").status == 0
    chart = json.loads((told / "chart.json").read_text(encoding="utf-8"))
    assert [row["plan"] for row in chart["data"]["values"]] == ["Adult", "b"]
    assert chart["encoding"]["x"]["title"] == "Plan [bold]"
    drawn = run("query", COUNTS, "--epsilon", "1", "--plot")
    assert read(drawn.out) == ["a", "b"]  # the chart has labels, the data of a program have codes
    _, _, picture = drawn.err.partition("n by Plan [bold]\n")
    assert [line.split()[0] for line in picture.splitlines()[:2]] == ["Adult", "b"]


def test_a_chart_in_python_has_titles_and_labels(told: Path) -> None:
    with lw.connect(told / "lapwing.toml") as session:
        answer = session.sql(COUNTS, epsilon=1)
        of_a_join = session.sql(OVER_TWO, epsilon=1)
        computed = session.sql("SELECT UPPER(plan) AS plan, COUNT(*) AS n FROM visits GROUP BY 1", epsilon=1)
    for plotted in (answer, of_a_join):
        chart = plotted.plot().to_dict()
        assert [row["plan"] for row in chart["data"]["values"]] == ["Adult", "b"]
        assert chart["encoding"]["x"]["title"] == "Plan [bold]"
        assert [row["plan"] for row in plotted.rows()] == ["a", "b"]
    assert [row["plan"] for row in computed.plot().to_dict()["data"]["values"]] == ["A", "B"]


def test_a_shell_shows_labels_if_told_to(told: Path, run: Run) -> None:
    asked = f".epsilon 1\n.mode csv\n{COUNTS};\n.labels on\n{COUNTS};\n.plot\n.plot chart.json\n.labels\n.save x.csv\n"
    outcome = run("shell", stdin=asked.encode())
    assert outcome.status == 0, outcome.err
    assert [line.partition(",")[0] for line in outcome.out.splitlines()] == ["plan", "a", "b", "plan", "Adult", "b"]
    assert "n by Plan [bold]" in outcome.err
    assert json.loads(Path("chart.json").read_text(encoding="utf-8"))["data"]["values"][0]["plan"] == "Adult"
    assert read(Path("x.csv").read_text(encoding="utf-8")) == ["Adult", "b"], told


@pytest.mark.long
def test_the_answer_of_a_server_is_described_as_one_here(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with serving(service_in(tmp_path / "service")) as world:
        world.catalog_file()
        known = world.ask("GET", "/v1/datasets/open/catalog", "carol").document
        body: dict[str, Any] = {
            "catalog": known["catalog"].replace('values = ["a", "b"]', TEXTS),
            "was": known["state"],
        }
        assert world.ask("PUT", "/v1/datasets/open/catalog", "carol", body).status == 200
        monkeypatch.setenv("LAPWING_TOKEN", world.tokens["alice"])
        there = ("--epsilon", "1", "--server", world.address, "--dataset", "open")
        outcome = run("query", COUNTS, *there, "--labels", "--plot", "chart.json")
        assert read(outcome.out) == ["Adult", "b"], outcome.err
        assert read(run("query", COUNTS, *there).out) == ["a", "b"]
        assert run("query", COUNTS, *there, "-o", "x.parquet").status == 0
        with lw.connect(world.address, dataset="open", token=world.tokens["alice"]) as session:
            in_python = session.sql(COUNTS, epsilon=1).plot().to_dict()
    chart = json.loads(Path("chart.json").read_text(encoding="utf-8"))
    for each in (chart, in_python):
        assert [row["plan"] for row in each["data"]["values"]] == ["Adult", "b"]
        assert each["encoding"]["x"]["title"] == "Plan [bold]"
    assert pq.read_table("x.parquet").schema.field("plan").metadata[b"title"] == b"Plan [bold]"

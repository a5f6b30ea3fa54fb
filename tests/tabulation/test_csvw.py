"""The metadata of published CSV files: every column in order, with the type that its values have."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

from lapwing.tabulation import PublishedRelease, ReleaseTable, TableRelease, faults_of, run_release
from lapwing.tabulation.csvw import APOSTROPHES, METADATA
from tests.support.release.small import GDP, opened, row

READ: dict[str, Callable[[str], object]] = {
    "boolean": {"true": True, "false": False}.__getitem__,
    "integer": int,
    "double": float,
    "string": str,
}
TABLES = (
    ReleaseTable(name="counts", query='SELECT plan AS "the plan", size, COUNT(*) AS n FROM visits GROUP BY ALL'),
    ReleaseTable(name="means", query="SELECT plan, AVG(age) AS m FROM visits GROUP BY plan"),
)


def test_metadata_describes_the_files(tmp_path: Path) -> None:
    rows = [row(n, plan="ab"[n % 2], size=5 * (n % 3), age=n % 5 - 1) for n in range(60)]
    release = TableRelease(title="Visits", epsilon=2, tables=TABLES)
    with opened(tmp_path, rows, budget=GDP) as session:
        released = run_release(session, release)
        manifest = released.write(tmp_path / "out")
    document = json.loads((tmp_path / "out" / METADATA).read_text())
    assert document["@context"] == "http://www.w3.org/ns/csvw"
    assert len(document["tables"]) == 2
    for table in document["tables"]:
        head, *lines = csv.reader((tmp_path / "out" / table["url"]).read_text().splitlines())
        columns = table["tableSchema"]["columns"]
        assert [column["titles"] for column in columns] == head
        for line in lines:
            for value, column in zip(line, columns, strict=True):
                READ[column["datatype"]](value)
    columns = document["tables"][0]["tableSchema"]["columns"]
    described = {column["titles"]: column.get("dc:description") for column in columns}
    assert described["the plan"] is None
    assert described["n"].startswith("With noise")
    assert described["n_low"] == "The lower end of the 95 % interval of n."
    assert faults_of(manifest) == []
    (tmp_path / "out" / METADATA).unlink()
    assert faults_of(manifest) == ["csv-metadata.json is missing"]


def test_no_text_runs_as_a_formula(tmp_path: Path) -> None:
    """Two texts that differ by an apostrophe stay two, and are read again as they were."""
    keys = "CASE plan WHEN 'a' THEN '=1+1' ELSE '''=1+1' END AS \"@plan\""
    table = ReleaseTable(name="counts", query=f"SELECT {keys}, COUNT(*) AS n FROM visits GROUP BY ALL")
    with opened(tmp_path, [row(n, plan="ab"[n % 2]) for n in range(60)], budget=GDP) as session:
        released = run_release(session, TableRelease(title="Visits", epsilon=2, tables=(table,)))
        manifest = released.write(tmp_path / "out")
    document = json.loads((tmp_path / "out" / METADATA).read_text())["tables"][0]
    (head, *lines) = csv.reader((tmp_path / "out" / document["url"]).read_text().splitlines())
    assert head[0] == document["tableSchema"]["columns"][0]["titles"] == "'@plan"
    assert {line[0] for line in lines} == {"'=1+1", "''=1+1"}
    assert APOSTROPHES in document["dc:description"]
    again = PublishedRelease.from_file(manifest).numbers[0]
    assert again.key_names == ("@plan",)
    assert list(again.figures) == [(key,) for key in released.tables[0].answer.to_arrow()["@plan"].to_pylist()]

"""An unreliable cell is published as the smallest reliable cell around it, by released numbers only."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from lapwing.tabulation import PublishedRelease, ReleaseTable, TableRelease, UnreliableCells, run_release
from tests.support.release.small import opened, row

ROWS: Final = [row(n, plan="ab"[n % 20 == 0], size=5 * (n % 3), age=n % 5 - 1) for n in range(200)]
BY: Final = [[], ["plan"], ["plan", "size"], ["plan", "size", "age"]]
COUNTS: Final = ReleaseTable.margins("n", select="COUNT(*) AS n", source="visits", by=BY)
OLD: Final = ReleaseTable.margins("old", select="COUNT(*) AS n", source="visits", by=[["size"]], where="age > 1")
RELEASE: Final = TableRelease(
    title="Visits", epsilon=2, tables=(*COUNTS, *OLD), unreliable_cells=UnreliableCells.COARSEN, unreliable=0.4
)


def test_the_smallest_reliable_cell_is_shown(tmp_path: Path) -> None:
    with opened(tmp_path, ROWS) as session:
        released = run_release(session, RELEASE)
    tables = [released.arrow(place).to_pylist() for place in range(len(RELEASE.tables))]
    coarser = {("plan", "size"): tables[2], ("plan",): tables[1], (): tables[0]}
    assert not any(cell["n_unreliable"] for cell in (*tables[0], tables[1][0]))
    for cell in tables[3]:
        around = [
            next(other for other in rows if all(other[key] == cell[key] for key in keys))
            for keys, rows in coarser.items()
        ]
        found = next((pair for pair in zip(coarser, around, strict=True) if not pair[1]["n_unreliable"]), None)
        assert found is not None
        assert cell["n_unreliable"] is (cell["n"] is None)
        if not cell["n_unreliable"]:
            assert cell["n_coarser"] is None
            continue
        keys, other = found
        assert cell["n_coarser_by"] == (", ".join(keys) or "in all")
        assert [cell[f"n_coarser{end}"] for end in ("", "_low", "_high")] == [
            other[f"n{end}"] for end in ("", "_low", "_high")
        ]
    assert {cell["n_coarser_by"] for cell in tables[3] if cell["n_unreliable"]} == {"plan, size", "in all"}
    assert not any(cell["n_coarser_by"] for cell in tables[4])  # other rows have no coarser table here


@pytest.mark.long
def test_readers_take_coarser_cells_for_no_keys(tmp_path: Path) -> None:
    with opened(tmp_path, ROWS) as session:
        manifest = run_release(session, replace(RELEASE, rounding=5)).write(tmp_path / "out")
    release = PublishedRelease.from_file(manifest)
    assert release.numbers[3].key_names == ("plan", "size", "age")
    assert "_coarser" in manifest.with_name("method.html").read_text()
    columns = json.loads(manifest.with_name("csv-metadata.json").read_text())["tables"][3]["tableSchema"]["columns"]
    assert all(column["dc:description"] for column in columns[3:])

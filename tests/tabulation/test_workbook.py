"""A workbook of a release: all numbers, notes, no formula, and the same bytes again."""

import io
import re
import zipfile
from pathlib import Path
from typing import Final
from unittest.mock import patch

import pyarrow as pa
import pytest

from lapwing.answer.workbooks import Sheet, workbook
from lapwing.errors import InvalidParameter
from lapwing.tabulation import FileFormat, ReleaseTable, TableRelease, faults_of, run_release
from lapwing.tabulation.workbook import _number_formats
from tests.support.release.small import opened, row

HOSTILE: Final = "=cmd|' /C calc'!A0"
COUNTS: Final = ReleaseTable.margins("=n [x]", select="COUNT(*) AS n", source="visits", by=[[], ["plan", "size"]])
RELEASE: Final = TableRelease(title=HOSTILE, epsilon=2, tables=COUNTS, formats=(FileFormat.CSV, FileFormat.XLSX))


@pytest.mark.long
def test_it_has_notes_and_tables_and_no_formula(tmp_path: Path) -> None:
    with opened(tmp_path, [row(n) for n in range(60)]) as session:
        released = run_release(session, RELEASE)
        manifest = released.write(tmp_path / "out")
        run_release(session, RELEASE).write(tmp_path / "again")
    content = (tmp_path / "out" / "tables.xlsx").read_bytes()
    assert content == (tmp_path / "again" / "tables.xlsx").read_bytes()
    assert not faults_of(manifest)
    with zipfile.ZipFile(io.BytesIO(content)) as book:
        parts = {name: book.read(name).decode() for name in book.namelist() if name.endswith(".xml")}
    sheets = [parts[f"xl/worksheets/sheet{place}.xml"] for place in (1, 2, 3)]
    assert all("<f>" not in sheet and "hyperlink" not in sheet for sheet in sheets)
    assert "calc" in parts["xl/sharedStrings.xml"]
    assert 'quotePrefix="1"' in parts["xl/styles.xml"]
    assert 'name="02 n x by plan, size"' in parts["xl/workbook.xml"]
    for cell in released.arrow(1).to_pylist():
        assert f"<v>{cell['n']}</v>" in sheets[2]
    (tmp_path / "out" / "tables.xlsx").write_bytes(content + b" ")
    assert faults_of(manifest)


def test_numbers_have_the_digits_that_their_interval_knows() -> None:
    """A key stays as it is: a year has no comma. An exact number has no interval to cut it by."""
    rows = pa.table(
        {
            "year": [2026, 2027],
            "n": [12_345, 0],
            "n_low": [12_300, -45],
            "share": [0.0576981, 0.0554980],
            "share_low": [0.0566, 0.0544],
            "share_high": [0.0588, 0.0568],
            "exact": [0.5, 0.25],
        }
    )
    patterns = _number_formats(rows, ("n", "share", "exact"))
    four = dict.fromkeys(("share", "share_low", "share_high"), "#,##0.0000")
    assert patterns == {"n": "#,##0", "n_low": "#,##0", **four, "exact": "#,##0.000000"}


def test_a_sheet_has_its_formats_widths_and_heads() -> None:
    rows = pa.table({"year": [2026], "n": [12_345]})
    sheets = [
        Sheet(name="notes", content=[["Title", 3], ["text", 4]], widths=(32, 80), heads=frozenset({0})),
        Sheet(name="rows", content=rows, number_formats={"n": "#,##0"}),
    ]
    with zipfile.ZipFile(io.BytesIO(workbook(sheets))) as book:
        notes, table = (book.read(f"xl/worksheets/sheet{place}.xml").decode() for place in (1, 2))
        styles = book.read("xl/styles.xml").decode()
    assert 'width="32.7109375"' in notes
    assert 'width="80.7109375"' in notes
    assert 'orientation="landscape"' in table
    laws = re.findall(r'<xf numFmtId="(\d+)"', styles.partition("<cellXfs")[2])
    (style,) = re.findall(r'<c r="B2" s="(\d+)"', table)
    assert f'numFmtId="{laws[int(style)]}" formatCode="#,##0"' in styles
    assert '<c r="A2"><v>2026</v>' in table


@pytest.mark.long
def test_without_the_extra_nothing_is_charged(tmp_path: Path) -> None:
    with (
        opened(tmp_path, [row(1)]) as session,
        patch("lapwing.tabulation.running.can_write_workbooks", return_value=False),
        pytest.raises(InvalidParameter, match="extra"),
    ):
        run_release(session, RELEASE)
    with opened(tmp_path, [row(1)]) as session:
        assert not session.history()

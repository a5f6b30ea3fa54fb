"""A workbook of a release: all numbers, notes, no formula, and the same bytes again."""

import io
import zipfile
from pathlib import Path
from typing import Final
from unittest.mock import patch

import pytest

from lapwing.errors import InvalidParameter
from lapwing.tabulation import FileFormat, ReleaseTable, TableRelease, faults_of, run_release
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

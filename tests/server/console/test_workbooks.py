"""Downloads for Excel: no text is a formula, numbers stay numbers, and what Excel cannot hold is a text."""

import io
import zipfile
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from lapwing.answer.workbooks import MOST_COLUMNS
from lapwing.server.console.answer.workbook import workbook_of
from lapwing.server.console.inside import ApiRefusal
from tests.server.console.test_downloads import HOSTILE

DOCUMENT = {"id": "a1", "created": "2026-11-30T07:00:00", "notes": ["=cmd|' /C calc'!A0"]}


def parts_of(content: bytes) -> dict[str, str]:
    with zipfile.ZipFile(io.BytesIO(content)) as book:
        assert book.testzip() is None
        return {name: book.read(name).decode() for name in book.namelist() if name.endswith(".xml")}


def test_texts_like_formulas_are_texts() -> None:
    parts = parts_of(workbook_of(pa.table({"=key": [*HOSTILE, "plain"], "n": range(10)}), DOCUMENT))
    sheets = [text for name, text in parts.items() if name.startswith("xl/worksheets/sheet")]
    assert len(sheets) == 2
    assert all("<f>" not in sheet and "hyperlink" not in sheet for sheet in sheets)
    assert sheets[0].count('t="s"') == len(HOSTILE) + 3  # with the header and the plain one
    assert "=cmd|" in parts["xl/sharedStrings.xml"]
    assert parts["xl/styles.xml"].count('quotePrefix="1"') == 2
    assert "contain noise" in parts["xl/sharedStrings.xml"]


def test_a_formula_would_be_found() -> None:
    """The twin: a workbook in which the same text is a formula."""
    import xlsxwriter

    sink = io.BytesIO()
    with xlsxwriter.Workbook(sink, {"in_memory": True}) as book:
        book.add_worksheet().write(0, 0, HOSTILE[0])
    assert "<f>" in parts_of(sink.getvalue())["xl/worksheets/sheet1.xml"]


def test_numbers_days_and_what_excel_cannot_hold() -> None:
    table = pa.table(
        {
            "n": [-3, 2**53 + 1, None],
            "x": [0.5, float("inf"), float("nan")],
            "d": [Decimal("1.20"), None, None],
            "day": [date(2026, 11, 30), date(1, 1, 1), None],
            "at": [datetime(2026, 11, 30, 12, tzinfo=UTC), None, None],
            "long": ["x" * 40_000, "", "b"],
            "yes": [True, False, None],
        }
    )
    parts = parts_of(workbook_of(table, DOCUMENT))
    sheet, texts = parts["xl/worksheets/sheet1.xml"], parts["xl/sharedStrings.xml"]
    assert "<v>-3</v>" in sheet
    assert "<v>0.5</v>" in sheet
    assert "<v>46356" in sheet
    assert "9007199254740993" in texts  # exact, as a text
    assert ">inf<" in texts
    assert "0001-01-01" in texts
    assert f"{'x' * 32_766}…<" in texts


def test_what_is_too_wide_for_excel_is_refused() -> None:
    with pytest.raises(ApiRefusal) as refused:
        workbook_of(pa.table({f"n{place}": [1] for place in range(MOST_COLUMNS + 1)}), DOCUMENT)
    assert refused.value.document["type"].endswith("not_found")

"""Downloads as CSV: a text that a spreadsheet would run as a formula is a text there, and numbers stay numbers."""

import csv
import io
from decimal import Decimal

import pyarrow as pa
import pytest

from lapwing.answer.spreadsheet_csv import csv_of

HOSTILE = ["=cmd|' /C calc'!A0", "+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1+1", '=HYPERLINK("x","y")']


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_texts_like_formulas_are_texts(kind: pa.DataType) -> None:
    texts = pa.array([*HOSTILE, "plain", "a=1", None]).cast(kind)
    (name, *rows) = csv.reader(io.StringIO(csv_of(pa.table({"=key": texts})).decode(), newline=""))
    assert name == ["'=key"]
    assert [row[0] if row else "" for row in rows] == [*(f"'{text}" for text in HOSTILE), "plain", "a=1", ""]


def test_numbers_and_dates_are_as_they_were() -> None:
    numbers = pa.table({"n": [-3, 4], "x": [-0.5, float("inf")], "d": pa.array([Decimal("-1.20"), Decimal("3.00")])})
    written = csv_of(numbers).decode().splitlines()
    assert written == ['"n","x","d"', "-3,-0.5,-1.20", "4,inf,3.00"]

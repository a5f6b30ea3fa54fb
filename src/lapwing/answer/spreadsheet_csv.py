"""Tables as CSV for spreadsheets, in which no text runs as a formula; and such tables read again."""

from io import BytesIO
from typing import TYPE_CHECKING, Any

from lapwing.answer.workbooks import FORMULAS

if TYPE_CHECKING:
    import pyarrow as pa


def csv_of(table: "pa.Table") -> bytes:
    """Return a table as CSV for spreadsheets, in which no text is a formula.

    A text that begins like one gets an apostrophe before it, which spreadsheets do not show. Numbers stay as they are.
    Programs get texts unchanged: from the API, the command line and Parquet.
    """
    from pyarrow import csv  # here: a large library

    sink = BytesIO()
    csv.write_csv(without_formulas(table), sink)
    return sink.getvalue()


def without_formulas(table: "pa.Table") -> "pa.Table":
    """Return a table whose texts and names of columns are as `plain_text` has them."""
    import pyarrow as pa  # here: a large library

    columns = [
        pa.array([plain_text(text) for text in column.to_pylist()], pa.string())
        if _holds_texts(column.type)
        else column
        for column in table.columns
    ]
    return pa.table(columns, names=[plain_text(name) for name in table.column_names])


def with_formulas(table: "pa.Table") -> "pa.Table":
    """Return the table that `without_formulas` was given: its texts as they were."""
    import pyarrow as pa  # here: a large library

    columns = [
        pa.array([_first_text(text) for text in column.to_pylist()], pa.string())
        if _holds_texts(column.type)
        else column
        for column in table.columns
    ]
    return pa.table(columns, names=[_first_text(name) for name in table.column_names])


def plain_text(text: Any) -> Any:
    """Return a text that no spreadsheet runs. Different texts stay different.

    >>> plain_text("=1+1"), plain_text("'=1+1"), plain_text("a=1"), plain_text(None)
    ("'=1+1", "''=1+1", 'a=1', None)
    """
    return f"'{text}" if isinstance(text, str) and text.lstrip("'").startswith(FORMULAS) else text


def _first_text(text: Any) -> Any:
    """Return the text that `plain_text` was given."""
    return text[1:] if isinstance(text, str) and text.startswith("'") and plain_text(text) != text else text


def _holds_texts(kind: "pa.DataType") -> bool:
    import pyarrow as pa

    held = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(held) or pa.types.is_large_string(held) or pa.types.is_string_view(held))

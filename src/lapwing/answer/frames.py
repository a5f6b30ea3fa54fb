"""Answers as frames of the libraries that people analyse with, where these are installed."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lapwing.errors import InvalidParameter

if TYPE_CHECKING:
    import pyarrow as pa


def pandas_frame(table: "pa.Table") -> Any:
    """Return a table as a pandas DataFrame; whole numbers with NULLs stay whole (nullable types)."""
    pandas = _library("pandas")
    return table.to_pandas(types_mapper=_nullable(pandas).get)


def polars_frame(table: "pa.Table") -> Any:
    """Return a table as a polars DataFrame."""
    return _library("polars").from_arrow(table)


def _nullable(pandas: Any) -> dict["pa.DataType", Any]:
    import pyarrow as pa  # here: Arrow takes longer to load than most questions to answer

    return {pa.int64(): pandas.Int64Dtype(), pa.bool_(): pandas.BooleanDtype(), pa.string(): pandas.StringDtype()}


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise InvalidParameter(f"{name} is not installed: pip install {name}, or use to_arrow() or rows().") from None

"""What is known of synthetic rows, as a JSON document; the rows themselves are Arrow."""

from typing_extensions import TypedDict  # pydantic describes those of `typing` from Python 3.12 on only


class ErrorDocument(TypedDict):
    """How far the synthetic rows are from the real ones over so many `tables`, as a share of rows."""

    estimate: float
    low: float
    high: float
    tables: int


class MeasuredDocument(TypedDict):
    """A table that was measured, cell by cell, those of the last column varying first.

    `labels` are of the cells of each column; each of the numbers `measured` is within `half_width` of the real one with
    95 % probability; `synthetic` are those of the synthetic rows, scaled to as many as there are about.
    """

    columns: list[str]
    labels: list[list[str]]
    measured: list[int]
    half_width: int
    synthetic: list[float]


class SynthesisDocument(TypedDict):
    """Synthetic rows without the rows: how they were made, what they cost, and how near they are.

    `cost` is a loss as ledgers write it; `stored` says that they were bought before; `left_out` names tables that were
    too large to be looked at.
    """

    method: str
    columns: list[str]
    rows: int
    error: ErrorDocument
    cost: dict[str, str]
    stored: bool
    left_out: list[list[str]]
    tables: list[MeasuredDocument]
    warning: str

"""Cells of columns: every row has one of each, by the catalog alone, and what is drawn of a cell lies in it."""

from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.errors import InvalidParameter
from lapwing.exact.entropy import SYSTEM
from lapwing.release.versions import current_digests
from lapwing.session import access_of
from lapwing.synthesis.attributes import Attribute, attributes_of
from lapwing.synthesis.reading import TableReading, Tabulation, reading_of

CATALOG = """
[dataset]
name = "cells"
ledger = "sqlite:cells.lapwing.db"
[budget]
epsilon = 10
delta = 1e-6
[tables.t]
source = "t.parquet"
privacy_unit = "person"
max_rows_per_unit = 2
[tables.t.columns]
person = { type = "string" }
age = { type = "integer", lower = 0, upper = 99 }
rank = { type = "integer", values = [1, 2, 7], nullable = false }
pay = { type = "float", lower = 0, upper = 10 }
cost = { type = "decimal", lower = -1, upper = 1, step = 0.05, nullable = false }
plan = { type = "string", values = ["x", "it's"] }
town = { type = "string", values = ["A", "B"], other = "elsewhere" }
ill = { type = "boolean" }
sure = { type = "boolean", nullable = false }
day = { type = "date", lower = 2020-01-01, upper = 2020-12-31 }
at = { type = "timestamp", lower = 2020-01-01T00:00:00Z, upper = 2020-01-01T23:00:00Z }
name = { type = "string" }
only = { type = "integer", lower = 3, upper = 3, nullable = false }
"""
ROWS: list[dict[str, Any]] = [
    {"person": "a", "age": -5, "rank": 1, "pay": 0.0, "cost": Decimal("-1"), "plan": "x", "town": "A", "ill": True,
     "sure": True, "day": date(2019, 1, 1), "at": datetime(2020, 1, 1, 0, 0)},
    {"person": "b", "age": 99, "rank": 7, "pay": 10.0, "cost": Decimal("1"), "plan": "it's", "town": "Z", "ill": False,
     "sure": False, "day": date(2020, 12, 31), "at": datetime(2020, 1, 1, 23, 0)},
    {"person": "c", "age": None, "rank": 5, "pay": None, "cost": None, "plan": "q", "town": None, "ill": None,
     "sure": None, "day": None, "at": None},
    {"person": "d", "age": 50, "rank": 2, "pay": 4.9, "cost": Decimal("0.05"), "plan": None, "town": "B", "ill": True,
     "sure": True, "day": date(2020, 7, 1), "at": datetime(2020, 1, 1, 12, 30)},
    *[{"person": "many", "age": 50, "rank": 2, "pay": 4.9, "cost": Decimal("0.05"), "plan": None, "town": "B",
       "ill": True, "sure": True, "day": date(2020, 7, 1), "at": datetime(2020, 1, 1, 12, 30)}] * 5,
]  # fmt: skip
NAMES = ["age", "rank", "pay", "cost", "plan", "town", "ill", "sure", "day", "at"]
# The cells of the first four rows, two bins each; NULL, and what is not listed, has the last.
CELLS = [
    [0, 0, 0, 0, 0, 0, 1, 1, 0, 0],
    [1, 2, 1, 1, 1, 2, 0, 0, 1, 1],
    [2, 3, 2, 0, 2, 2, 2, 0, 2, 2],
    [1, 1, 0, 1, 2, 1, 1, 1, 0, 1],
]


@pytest.fixture(scope="module")
def read(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[lw.Session, tuple[Attribute, ...], TableReading, Tabulation]]:
    folder: Path = tmp_path_factory.mktemp("cells")
    types = {"cost": pa.decimal128(10, 2), "age": pa.int64(), "only": pa.int64(), "name": pa.string()}
    columns = {name: [row.get(name) for row in ROWS] for name in ["person", *NAMES, "name", "only"]}
    pq.write_table(
        pa.table({name: pa.array(v, type=types.get(name)) for name, v in columns.items()}), folder / "t.parquet"
    )
    (folder / "lapwing.toml").write_text(CATALOG)
    with lw.connect(folder / "lapwing.toml") as session:
        table, access = session.catalog.tables[0], access_of(session)
        attributes = attributes_of(table, NAMES, 2)
        what = reading_of(table, attributes, None, lambda text: session.plan(text, (), epsilon=1))
        digests = current_digests(what.question.lineage, access.engine, access.ledger.seen())
        yield session, attributes, what, what.read(access.engine, digests)


def test_every_row_has_a_cell_of_every_column(read: Any) -> None:
    _, attributes, what, rows = read
    assert what.sizes == tuple(one.size for one in attributes) == (3, 4, 3, 2, 3, 3, 3, 2, 3, 3)
    found = {tuple(cells): count for cells, count in zip(rows.cells.tolist(), rows.counts.tolist(), strict=True)}
    # "many" has five rows, of which two exist; the row of "d" is the same.
    assert found == Counter({tuple(CELLS[0]): 1, tuple(CELLS[1]): 1, tuple(CELLS[2]): 1, tuple(CELLS[3]): 3})
    assert what.rows_per_unit == 2
    assert rows.marginal((0, 6)).sum() == 6
    assert rows.marginal((0,)).tolist() == [1, 4, 1]
    assert "Tabulation" in repr(type(rows))
    assert "cells" not in repr(rows)  # private data, which no message shows


@pytest.mark.parametrize(("neighbouring", "l1", "l2_squared"), [("add_remove", 2, 4), ("replace_one", 4, 8)])
def test_how_far_a_unit_moves_a_table(read: Any, neighbouring: str, l1: int, l2_squared: int) -> None:
    sensitivity = read[2].sensitivity(neighbouring)
    assert (sensitivity.l1, sensitivity.l2_squared) == (l1, l2_squared)


def test_what_is_drawn_of_a_cell_lies_in_it(read: Any) -> None:
    _, attributes, _, _ = read
    types = {"age": "int64", "rank": "int64", "pay": "double", "cost": "decimal128(38, 2)", "plan": "string",
             "town": "string", "ill": "bool", "sure": "bool", "day": "date32[day]", "at": "timestamp[us]"}  # fmt: skip
    inside = {
        "age": [lambda v: 0 <= v <= 49, lambda v: 50 <= v <= 99],
        "pay": [lambda v: 0 <= v <= 5.001, lambda v: 4.999 <= v <= 10],
        "cost": [lambda v: -1 <= v <= 0, lambda v: Decimal("0.05") <= v <= 1],
        "day": [
            lambda v: date(2020, 1, 1) <= v <= date(2020, 7, 1),
            lambda v: date(2020, 7, 2) <= v <= date(2020, 12, 31),
        ],
        "at": [lambda v: v.hour <= 12, lambda v: 11 <= v.hour <= 23],
    }
    listed: dict[str, list[Any]] = {
        "rank": [1, 2, 7, None],
        "plan": ["x", "it's", None],
        "town": ["A", "B", "elsewhere"],
        "ill": [False, True, None],
        "sure": [False, True],
    }
    for one in attributes:
        for cell in range(one.size):
            values = one.draw(np.full(60, cell), SYSTEM)
            assert str(values.type) == types[one.name]
            if one.name in listed:
                assert set(values.to_pylist()) == {listed[one.name][cell]}
            elif cell == 2:
                assert set(values.to_pylist()) == {None}
            else:
                assert all(inside[one.name][cell](value) for value in values.to_pylist())
                assert len(set(values.to_pylist())) > 3
    assert [one.labels for one in attributes if one.name in ("age", "ill")] == [
        ("0 to 49", "50 to 99", "NULL"),
        ("false", "true", "NULL"),
    ]


def test_bins_have_every_value_once(read: Any) -> None:
    table = read[0].catalog.tables[0]
    for bins in (2, 7, 16, 256):
        (one,) = attributes_of(table, ["age"], bins)
        assert len(one.bins) <= bins
        assert [step for low, high in one.bins for step in range(low, high + 1)] == list(range(100))
    ages, days = attributes_of(table, ["age", "day"], {"age": 10})
    assert (len(ages.bins), len(days.bins)) == (10, 16)


@pytest.mark.parametrize(
    ("names", "bins", "what"),
    [
        (["name"], 4, "values of column .name. are not public. Leave it out"),
        (["only"], 4, "can have only one value"),
        (["nothing"], 4, "'nothing' is not a column of t"),
        (["age"], 1, "bins is 1"),
        (["age"], True, "bins is True"),
        (["age"], {"pay": 4}, "bins names"),
    ],
)
def test_columns_that_cannot_be_drawn_are_refused(read: Any, names: list[str], bins: Any, what: str) -> None:
    with pytest.raises(InvalidParameter, match=what):
        attributes_of(read[0].catalog.tables[0], names, bins)

"""What is stored of a value does not change how it is read, whatever other values make of its column."""

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.sources import fetch
from lapwing.sources.conforming import candidates, conformed, plain
from tests.support.effort import only
from tests.support.sources import rows
from tests.support.sources.rows import exact

BIG = 2**53
COLUMNS = {
    "integer": '{ type = "integer", lower = 9007199254740980, upper = 9007199254740992 }',
    "decimal": '{ type = "decimal", lower = 900719925474097, upper = 900719925474099, step = 0.1 }',
    "float": '{ type = "float", lower = 0, upper = 1000, step = 0.25 }',
    "date": '{ type = "date", lower = 2024-01-01, upper = 2024-12-31 }',
    "timestamp": '{ type = "timestamp", lower = 2024-01-01T00:00:00Z, upper = 2024-12-31T00:00:00Z }',
    "boolean": '{ type = "boolean" }',
}
CASES: list[tuple[str, list[Any], Any]] = [
    ("integer", [str(BIG + i) for i in range(-3, 4)], "abc"),
    ("integer", [Decimal(BIG + i) for i in range(-3, 4)], Decimal("0.5")),
    ("integer", [float(BIG + i) for i in range(-3, 1)], 0.5),
    ("decimal", [str(Decimal(BIG + i) / 10) for i in range(-3, 4)], "abc"),
    ("decimal", [Decimal(BIG + i) / 10 for i in range(-3, 4)], Decimal("0.001")),
    ("decimal", [900719925474097.5, 900719925474098.25, 900719925474098.5], 0.001),
    ("float", ["0.1", "1e-300", "81.375", "nan", "inf"], "abc"),
    ("float", [Decimal("0.1"), Decimal("81.375")], None),
    ("date", ["2024-02-29", "2023-02-28", "2024-12-31"], "1/2/2024"),
    ("timestamp", ["2024-02-29 23:59:59.999999", "2024-02-29T00:00:00Z", "2024-03-01 00:00:00+00"], "noon"),
    ("boolean", ["true", "false"], "perhaps"),
    ("boolean", [0, 1, 1], 2),
]


def answers(folder: Path, kind: str, values: list[Any], number: int) -> list[Any]:
    """Return the exact integers of each value alone among these, by row."""
    folder.mkdir()
    table = pa.table({"place": range(len(values)), kind: values})
    pq.write_table(table, folder / "t.parquet")
    columns = {"place": '{ type = "integer", values = [0, 1, 2, 3, 4, 5, 6] }', kind: COLUMNS[kind]}
    made = rows.catalog(folder, "parquet:t.parquet", columns=columns, unit="row")
    fetch(made)
    parts = {"date": "SUM(EXTRACT(day FROM date))", "timestamp": "SUM(EXTRACT(hour FROM timestamp))"}
    asked = {**parts, "boolean": "COUNT_IF(boolean)"}.get(kind, f"SUM({kind})")
    found = exact(made, f"SELECT place, {asked}, COUNT({kind}) FROM visits GROUP BY place")
    return [found.get((place,)) for place in range(number)]


@pytest.mark.parametrize(
    ("kind", "values", "odd"),
    only([0], CASES, many=True),
    ids=[f"{kind} {number}" for number, (kind, *_) in enumerate(CASES)],
)
def test_one_odd_value_changes_how_no_other_is_read(kind: str, values: list[Any], odd: Any, tmp_path: Path) -> None:
    number = len(values)
    alone = answers(tmp_path / "alone", kind, values, number)
    assert alone == answers(tmp_path / "among", kind, [*values, odd], number)
    assert any(alone)


def test_people_of_no_declared_type_are_their_texts() -> None:
    assert candidates(None) == []
    texts = pa.array(["07", "7"])
    assert plain(texts).to_pylist() == ["07", "7"]
    assert plain(pa.array([7], pa.int32())).type == plain(pa.array([7], pa.uint8())).type == pa.int64()


@pytest.mark.parametrize(
    ("delivered", "kind", "stored"),
    [
        (pa.array([-0.0, float("nan")]), pa.float64(), None),
        (pa.array(["0x1F"]), pa.int64(), "as it is"),
        (pa.array([" 12"]), pa.int64(), "as it is"),
        (pa.array(["2024-02-30"]), pa.date32(), "as it is"),
        (pa.array([datetime(2024, 1, 1)]), pa.date32(), [date(2024, 1, 1)]),
        (pa.array([datetime(2024, 1, 1, 5)]), pa.date32(), "as it is"),
        (pa.array([date(2024, 1, 1)]), pa.timestamp("us"), [datetime(2024, 1, 1)]),
        (pa.array([2, None]), pa.bool_(), "as it is"),
        (pa.array([True, None]), pa.large_string(), ["true", None]),
        (pa.array([1.5]), pa.large_string(), "as it is"),
        (pa.array([None, None], pa.large_string()), pa.int64(), [None, None]),
        (pa.array([2**63], pa.uint64()), pa.int64(), "as it is"),
        (pa.array([0.1]), pa.decimal128(18, 2), [Decimal("0.10")]),
        (pa.array([0.125]), pa.decimal128(18, 2), "as it is"),
        (pa.array([float("nan"), 1.0]), pa.int64(), [None, 1]),
        (pa.array([float("inf")]), pa.int64(), "as it is"),
        (pa.array([str(BIG), str(-BIG)]), pa.int64(), [BIG, -BIG]),
        (pa.array([str(BIG + 1)]), pa.int64(), "as it is"),
        (pa.array([Decimal(BIG + 1)]), pa.int64(), "as it is"),
        (pa.array([Decimal(BIG + 1)]), pa.decimal128(18, 0), "as it is"),
        (pa.array([BIG + 1]), pa.int64(), [BIG + 1]),
        (pa.array([str(-(2**63))]), pa.int64(), "as it is"),
    ],
)
def test_what_fits(delivered: pa.Array, kind: pa.DataType, stored: Any) -> None:
    found = conformed(plain(delivered), kind)
    if stored is None:
        assert str(found and found.to_pylist()) == "[0.0, nan]"
    elif stored == "as it is":
        assert found is None
    else:
        assert found is not None
        assert found.to_pylist() == stored

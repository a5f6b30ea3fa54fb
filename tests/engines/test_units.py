"""Who a row belongs to: equality of the unit, whatever its physical type; rows of nobody do not exist."""

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.engines import DuckDB
from lapwing.errors import DataFault
from tests.support.effort import one_in, only
from tests.support.engines.tables import ask, catalog, parquet

QUESTION = "SELECT COUNT(DISTINCT person) AS people, COUNT(*) AS n FROM t"
DAY, LATER = datetime(2026, 1, 1, 8), datetime(2026, 1, 1, 9)
# Physical values with the number of people they are, and of their rows that are kept, one a person.
IDENTITIES: list[tuple[str, pa.DataType, list[Any], int]] = [
    *((str(kind), kind, [1, 1, 2, None, None], 2) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())),
    *((str(kind), kind, [1, 1, 2, 200, None], 3) for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())),
    ("uint64 at its end", pa.uint64(), [2**64 - 1, 2**64 - 1, 2**64 - 2, None], 2),
    ("text", pa.string(), ["1", "1", "01", " 1", "a", "A", "", None], 6),
    ("dictionary", pa.dictionary(pa.int8(), pa.string()), ["1", "1", "b", None], 2),
    ("accents", pa.string(), ["\u00e9", "e\u0301", "e"], 3),
    ("decimal", pa.decimal128(10, 2), [Decimal("1.00"), Decimal("1.00"), Decimal("1.01"), None], 2),
    ("date", pa.date32(), [date(2026, 1, 1), date(2026, 1, 1), None], 1),
    ("timestamp", pa.timestamp("us"), [DAY, DAY, LATER, None], 2),
    ("zoned timestamp", pa.timestamp("us", "Asia/Tokyo"), [DAY, LATER, LATER, None], 2),
    ("nanoseconds", pa.timestamp("ns"), [1, 2, 2, None], 2),
    ("binary", pa.binary(), [b"\x00", b"\\x00", b"\xff", b"\xff", None], 3),
    ("fixed binary", pa.binary(2), [b"ab", b"ab", b"ba", None], 2),
    ("list", pa.list_(pa.int32()), [[1, 2], [1, 2], [1], [], None], 3),
    ("struct", pa.struct([("a", pa.int32()), ("b", pa.int32())]), [{"a": 1, "b": 2}, {"a": 2, "b": 1}, None], 2),
]


def counted(folder: Path, columns: dict[str, str], **facts: Any) -> tuple[int, int]:
    found = catalog(folder, columns, unit="person", **facts)
    engine = DuckDB(found, threads=1)
    (cell,) = ask(engine, found, QUESTION).values()
    engine.close()
    rows, people = cell
    return people, rows


@pytest.mark.parametrize(
    ("name", "kind", "values", "people"), only([0], IDENTITIES, many=True), ids=[name for name, *_ in IDENTITIES]
)
def test_a_unit_that_is_not_declared_is_its_value(
    name: str, kind: pa.DataType, values: list[Any], people: int, tmp_path: Path
) -> None:
    array = pa.array(values, pa.string()).cast(kind) if pa.types.is_dictionary(kind) else pa.array(values, kind)
    parquet(tmp_path, {"person": array})
    assert counted(tmp_path, {}, rows=1) == (people, people)
    assert counted(tmp_path, {}, rows=100) == (people, len([value for value in values if value is not None]))


def test_uuids_are_units(tmp_path: Path) -> None:
    import duckdb

    with duckdb.connect() as connection:
        ids = [str(UUID(int=n)) for n in (1, 1, 2)]
        query = f"SELECT unnest(['{ids[0]}', '{ids[1]}', '{ids[2]}', NULL])::UUID AS person"
        connection.execute(f"COPY ({query}) TO '{tmp_path}/t.parquet' (FORMAT parquet)")
    assert counted(tmp_path, {}, rows=1) == (2, 2)


DECLARED: list[tuple[str, pa.DataType, list[Any], int]] = [
    ("integer", pa.string(), ["1", "01", " 1 ", "1.0", "2", "x", "", "1e60", None], 2),
    ("integer", pa.int32(), [1, 1, 2, None], 2),
    ("integer", pa.decimal128(38, 0), [Decimal("1" + "0" * 37), Decimal("1" + "0" * 36 + "1"), Decimal(1), None], 3),
    ("integer", pa.uint64(), [2**64 - 1, 2**64 - 2, None], 2),
    ("string", pa.string(), ["1", "01", "1", None], 2),
    ("string", pa.int64(), [1, 1, 2, None], 2),
    ("date", pa.timestamp("us"), [DAY, LATER, None], 1),
    ("date", pa.string(), ["2026-01-01", "2026-1-1", "2026-01-02", "x", None], 2),
    ("timestamp", pa.string(), ["2026-01-01 00:00", "2026-01-01", "2026-01-01T00:00:00Z", None], 1),
]


@pytest.mark.parametrize(("declared", "kind", "values", "people"), one_in(10, DECLARED, many=True))
def test_a_unit_that_is_declared_is_its_value_of_that_type(
    declared: str, kind: pa.DataType, values: list[Any], people: int, tmp_path: Path
) -> None:
    """What cannot be read as the declared type is a row of nobody."""
    parquet(tmp_path, {"person": pa.array(values, kind)})
    assert counted(tmp_path, {"person": f'{{ type = "{declared}" }}'}, rows=1) == (people, people)


def test_a_unit_is_the_same_in_a_csv_file(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('person,x\n1,a\n"1",b\n01,c\n,d\n"",e\n2,f\n')
    assert counted(tmp_path, {}, source="t.csv") == (3, 4)
    assert counted(tmp_path, {"person": '{ type = "integer" }'}, source="t.csv", rows=5) == (2, 4)


def test_bounds_of_a_unit_do_not_make_people_one(tmp_path: Path) -> None:
    """A value outside its bounds is moved to the nearest bound; a person is not."""
    parquet(tmp_path, {"person": [1, 500, 600]})
    declared = {"person": '{ type = "integer", lower = 0, upper = 10 }'}
    assert counted(tmp_path, declared, rows=1) == (3, 3)


@pytest.mark.parametrize("kind", one_in(3, [pa.float32(), pa.float64(), pa.bool_()]))
def test_what_cannot_tell_people_apart_is_no_unit(kind: pa.DataType, tmp_path: Path) -> None:
    pq.write_table(pa.table({"person": pa.array([0, 1, None]).cast(kind)}), tmp_path / "t.parquet")
    with pytest.raises(DataFault, match="must be an integer or a text"):
        counted(tmp_path, {})


def test_a_column_called_unit_is_not_the_unit(tmp_path: Path) -> None:
    parquet(tmp_path, {"person": [1, 1, 1, 2], "unit": ["a", "b", "c", "d"], "Unit_": [1, 2, 3, 4]})
    assert counted(tmp_path, {"unit": '{ type = "string" }', "unit_": '{ type = "integer" }'}, rows=1) == (2, 2)


def test_a_unit_called_unit(tmp_path: Path) -> None:
    parquet(tmp_path, {"unit": [1, 1, 1, 2, None]})
    found = catalog(tmp_path, {}, unit="unit", rows=1)
    engine = DuckDB(found, threads=1)
    assert ask(engine, found, "SELECT COUNT(DISTINCT unit), COUNT(*) FROM t") == {(): (2, 2)}
    engine.close()

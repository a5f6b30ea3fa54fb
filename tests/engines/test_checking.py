"""What `DuckDB.check` counts is what is there, and what it calls unreadable is what questions take for NULL."""

import csv
import random
from collections import Counter
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.catalog.toml import loads
from lapwing.engines import DuckDB
from lapwing.engines.data_check import TableCheck
from lapwing.engines.duckdb.cleaned import clean
from lapwing.errors import DataFault
from tests.support.effort import only

TABLE = """\
[dataset]
name = "visits"
ledger = "sqlite:visits.db"
[budget]
epsilon = 1
[tables.visits]
source = "{source}"
privacy_unit = "person"
max_rows_per_unit = 3
[tables.visits.columns]
{columns}
"""
LINKED = """\
[tables.items]
source = "items.csv"
max_rows_per_unit = 4
link = { table = "visits", on = { visit = "id" } }
[tables.items.columns]
visit = { type = "integer" }
"""


def engine_of(folder: Path, columns: str, source: str = "visits.csv", more: str = "") -> DuckDB:
    return DuckDB(loads(TABLE.format(source=source, columns=columns) + more, file="visits.toml", folder=folder))


def check(engine: DuckDB, place: int = 0) -> TableCheck:
    try:
        return engine.check(engine._catalog.tables[place])
    finally:
        engine.close()


def write(folder: Path, rows: list[list[Any]], name: str = "visits.csv") -> None:
    with (folder / name).open("w", newline="") as file:
        csv.writer(file).writerows(rows)


@pytest.mark.long
def test_a_file_whose_last_quarter_is_of_another_kind(tmp_path: Path) -> None:
    drawn = random.Random(7)
    rows: list[list[Any]] = []
    for i in range(2_000):
        late = i >= 1_500
        row: list[Any] = [drawn.randrange(300)]
        row.append(f"A{drawn.randrange(9)}" if late else drawn.randrange(120))
        row.append(f"{drawn.randrange(5_000) / 100:.2f}" if late else drawn.randrange(50))
        row.append("03/05/2024" if late and i % 2 else f"2024-05-{1 + i % 28:02}")
        rows.append([*row, drawn.choice(["a", "b", "c", ""]), "é" * (i % 200)])
    write(tmp_path, [["person", "code", "amount", "day", "plan", "note"], *rows])
    columns = """\
code = { type = "integer", lower = 0, upper = 99 }
amount = { type = "integer", lower = 5, upper = 40 }
day = { type = "date", lower = 2024-05-03, upper = 2024-05-20 }
plan = { type = "string", values = ["a", "b"] }
note = { type = "string" }
"""
    found = check(engine_of(tmp_path, columns))
    code, amount, day, plan, note = found.columns
    codes, amounts, days = ([row[place] for row in rows] for place in (1, 2, 3))

    assert (found.rows, found.passes, [one.name for one in found.unfit]) == (2_000, False, ["code", "amount", "day"])
    texts = Counter(value for value in codes if isinstance(value, str))
    assert (code.unreadable, code.fractions, code.nulls) == (500, 0, 0)
    assert list(code.examples) == sorted(texts.items(), key=lambda pair: (-pair[1], pair[0]))[:3]
    assert (code.below, code.above) == (0, sum(isinstance(value, int) and value > 99 for value in codes))
    assert code.distinct == len({value for value in codes if isinstance(value, int)})

    numbers = [float(value) for value in amounts]
    assert (amount.unreadable, amount.fractions) == (0, sum(not value.is_integer() for value in numbers))
    assert (amount.below, amount.above) == (sum(x < 5 for x in numbers), sum(x > 40 for x in numbers))
    assert (amount.least, amount.greatest) == (f"{min(numbers):,.10g}", f"{max(numbers):,.10g}")

    read = [date.fromisoformat(value) for value in days if "/" not in value]
    assert (day.unreadable, list(day.examples)) == (250, [("03/05/2024", 250)])
    assert (day.below, day.above) == (sum(x.day < 3 for x in read), sum(x.day > 20 for x in read))
    assert (day.least, day.greatest, day.distinct) == (str(min(read)), str(max(read)), len(set(read)))

    plans = Counter(row[4] for row in rows)
    assert (plan.nulls, plan.unlisted, plan.distinct) == (plans[""], plans["c"], 3)
    assert (note.nulls, note.too_long, note.longest) == (10, sum(2 * len(row[5]) > 256 for row in rows), 398)

    people = Counter(row[0] for row in rows)
    assert found.units is not None
    assert (found.units.units, found.units.greatest, found.units.without) == (len(people), max(people.values()), 0)
    for most in (1, 3, 7, found.units.greatest):
        cut = [rows - most for rows in people.values() if rows > most]
        assert found.units.beyond(most) == (sum(cut), len(cut))
    assert 3 in found.units.choices()


VALUES = {
    "integer": ["1", " 2", "2.5", "-0", "1e3", "1e400", "nan", "inf", "A1", "1,5", "0x1F", "", "9" * 30, "1_0", "--1"],
    "float": ["1", "2.5", "nan", "NaN", "inf", "-inf", "1e400", "A1", "1,5", "", "1e-400", "."],
    "decimal": ["1", "2.505", "nan", "inf", "A1", "1,5", "", "9" * 40],
    "boolean": ["true", "f", "1", "0", "yes", "no", "TRUE", "maybe", ""],
    "date": ["2024-02-29", "2023-02-29", "03/05/2024", "2024-5-3", "20240503", "soon", "infinity", "0000-01-01", ""],
    "timestamp": ["2024-02-29", "2024-02-29 10:00", "2024-02-29T10:00:00Z", "2024-02-29 25:00", "now", "", "10:00"],
    "string": ["x", "é" * 200, "", "y" * 256],
}
BOUNDS = {
    "integer": ["", ", lower = -5, upper = 5"],
    "float": ["", ", lower = -5, upper = 5"],
    "decimal": [", lower = -5, upper = 5, step = 0.01"],
    "date": ["", ", lower = 2024-01-01, upper = 2024-12-31"],
    "timestamp": ["", ", lower = 2024-01-01T00:00:00, upper = 2024-12-31T00:00:00"],
}


@pytest.mark.parametrize("kind", only([0], VALUES))
@pytest.mark.parametrize("source", only([0], ["visits.csv", "visits.parquet"]))
def test_what_counts_as_null_is_what_is_missing_unreadable_or_too_long(kind: str, source: str, tmp_path: Path) -> None:
    values = VALUES[kind]
    if source.endswith("csv"):
        write(tmp_path, [["person", "x"], *([row, value] for row, value in enumerate(values))])
    else:
        table = pa.table({"person": list(range(len(values))), "x": [value or None for value in values]})
        pq.write_table(table, tmp_path / source)
    for bounds in BOUNDS.get(kind, [""]):
        engine = engine_of(tmp_path, f'x = {{ type = "{kind}"{bounds} }}', source)
        table, column = engine._catalog.tables[0], engine._catalog.tables[0].columns[0]
        location = engine._describe(table).source
        cleaned = clean(column, location.types["x"])
        ((null,),) = engine.fetch(f"SELECT COUNT(*) FILTER ({cleaned} IS NULL) FROM {location.relation}")
        refused = engine.unfit_columns(table)
        (found,) = check(engine).columns
        assert found.nulls + found.unreadable + (found.too_long or 0) == null
        assert refused == (["x"] if found.unfit else [])


@pytest.mark.parametrize("bounds", ["", ", lower = -5, upper = 5"])
def test_doubles_in_an_integer_column(bounds: str, tmp_path: Path) -> None:
    values = [1.0, float("nan"), 2.5, None, -0.0, float("inf"), 1e300]
    pq.write_table(pa.table({"person": list(range(len(values))), "x": values}), tmp_path / "visits.parquet")

    (found,) = check(engine_of(tmp_path, f'x = {{ type = "integer"{bounds} }}', "visits.parquet")).columns

    beyond = 0 if bounds else 2  # what no integer of 64 bits holds: with bounds it counts as the bound
    assert (found.nulls, found.unreadable, found.fractions, found.above) == (2, beyond, 1, 2 if bounds else None)


def test_decimals_in_an_integer_column(tmp_path: Path) -> None:
    values = pa.array([Decimal("1.00"), Decimal("2.50"), None], pa.decimal128(10, 2))
    pq.write_table(pa.table({"person": [1, 2, 3], "x": values}), tmp_path / "visits.parquet")

    (found,) = check(engine_of(tmp_path, 'x = { type = "integer" }', "visits.parquet")).columns

    assert (found.nulls, found.unreadable, found.fractions, list(found.examples)) == (1, 0, 1, [("2.50", 1)])


def test_twin_a_count_that_takes_unreadable_values_for_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lapwing.engines.duckdb.checking._unreadable", lambda column, physical: "false")
    write(tmp_path, [["person", "x"], [1, "A1"], [2, "3"]])
    engine = engine_of(tmp_path, 'x = { type = "integer" }')

    assert engine.unfit_columns(engine._catalog.tables[0]) == []
    engine.close()


@pytest.mark.long
def test_rows_that_are_nobodys_and_keys_that_several_rows_have(tmp_path: Path) -> None:
    write(tmp_path, [["person", "id"], [1, 10], [1, 11], [2, 12], ["", 13], ["x", 14], [3, 12]])
    write(tmp_path, [["visit"], [10], [10], [11], [12], [13], [99], [""]], "items.csv")
    columns = 'person = { type = "integer" }\nid = { type = "integer" }'

    visits = check(engine_of(tmp_path, columns, more=LINKED))
    assert visits.units is not None
    assert (visits.units.without, visits.units.units, dict(visits.units.sizes)) == (2, 3, {1: 2, 2: 1})
    assert (list(visits.repeated), visits.passes) == ([(("id",), 1)], False)

    write(tmp_path, [["person", "id"], [1, 10], [1, 11], [2, 12], ["", 13], ["x", 14]])
    engine = engine_of(tmp_path, columns, more=LINKED)
    assert engine.unfit_columns(engine._catalog.tables[0]) == ["person"]
    items = check(engine, 1)
    assert items.units is not None
    assert (items.units.column, items.units.without, dict(items.units.sizes)) == (None, 3, {3: 1, 1: 1})
    assert (list(items.repeated), items.passes) == ([], True)


@pytest.mark.long
def test_every_row_a_unit_and_no_row_at_all(tmp_path: Path) -> None:
    write(tmp_path, [["person", "x"], [1, 2], [1, "A1"]])
    text = TABLE.format(source="visits.csv", columns='x = { type = "integer" }').replace('"person"', '"row"')
    engine = DuckDB(loads(text.replace("rows_per_unit = 3", "rows_per_unit = 1"), file="visits.toml", folder=tmp_path))
    assert engine.unfit_columns(engine._catalog.tables[0]) == ["x"]
    assert check(engine).units is None

    write(tmp_path, [["person", "x"]])
    found = check(engine_of(tmp_path, 'x = { type = "integer" }'))
    assert (found.rows, found.passes, found.units and found.units.units) == (0, True, 0)
    assert (found.columns[0].least, found.columns[0].distinct) == (None, 0)


def test_a_file_that_cannot_be_read_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text('person,x\n1,2\n2,"3\n')
    with pytest.raises(DataFault, match="cannot be read to its end"):
        check(engine_of(tmp_path, 'x = { type = "string" }'))

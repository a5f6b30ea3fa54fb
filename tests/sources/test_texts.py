"""Texts with NUL in them, and of a million characters: by every door that can deliver them, as from a file."""

from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.errors import DataFault
from lapwing.sources import conforming
from tests.support.effort import only
from tests.support.sources import rows
from tests.support.sources.rows import exact, fetched

LONG = "é" * 10**6
ROWS = pa.table(
    {
        "person": pa.array(range(9), pa.int64()),
        "plan": pa.array(["a", "a\0", "a\0b", "\0", "", None, "a\0b", LONG, "B"]),
        "note": pa.array(["a", "b", LONG, "x" * 10**6, "x" * 2000, None, "\0" * 300, "", "ab"]),
    }
)
COLUMNS = {
    "person": '{ type = "integer" }',
    "plan": '{ type = "string", values = ["a", "B", ""], other = "other" }',
    "note": '{ type = "string", max_length = 2000 }',
}
QUESTIONS = (
    "SELECT plan, COUNT(*) FROM visits GROUP BY plan",
    "SELECT COUNT(note), COUNT(plan), COUNT(DISTINCT plan) FROM visits",
    "SELECT SUM(LEAST(LENGTH(note), 300)) FROM visits WHERE plan <> 'a'",
)


def from_sqlite(folder: Path, _: pytest.FixtureRequest) -> str:
    import sqlite3

    with sqlite3.connect(folder / "clinic.db") as connection:
        connection.execute("CREATE TABLE visits (person INTEGER, plan TEXT, note TEXT)")
        connection.executemany("INSERT INTO visits VALUES (?, ?, ?)", [tuple(row.values()) for row in ROWS.to_pylist()])
    connection.close()
    return "sqlite:clinic.db#visits"


def from_parquet(folder: Path, _: pytest.FixtureRequest) -> str:
    return rows.fill_parquet(folder / "visits.parquet", ROWS)


def from_delta(folder: Path, _: pytest.FixtureRequest) -> str:
    return rows.fill_delta(folder / "lake", ROWS)


def from_iceberg(folder: Path, request: pytest.FixtureRequest) -> str:
    rows.know_iceberg(folder, request.getfixturevalue("monkeypatch"))
    return rows.fill_iceberg(folder, ROWS)


def from_flight_sql(folder: Path, request: pytest.FixtureRequest) -> str:
    server = request.getfixturevalue("flight_server")
    server.tables["visits"] = ROWS
    return f"{server.address}#visits"


DOORS = (from_sqlite, from_parquet, from_delta, from_iceberg, from_flight_sql)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[Any]]:
    folder = tmp_path_factory.mktemp("reference")
    source = rows.fill_parquet(folder / "there.parquet", ROWS)
    plain = rows.catalog(folder, "there.parquet", columns=COLUMNS, unit="row")
    answers = [exact(plain, text) for text in QUESTIONS]
    return fetched(folder, source, columns=COLUMNS, unit="row")[1].digests["visits"], answers


@pytest.mark.long
@pytest.mark.parametrize("door", only([1], DOORS))
def test_they_are_what_they_are_by_every_door(
    door: Any, tmp_path: Path, request: pytest.FixtureRequest, reference: tuple[str, list[Any]]
) -> None:
    made, snapshot = fetched(tmp_path, door(tmp_path, request), columns=COLUMNS, unit="row")
    assert [exact(made, text) for text in QUESTIONS] == reference[1]
    assert snapshot.digests["visits"] == reference[0]


def test_of_a_file_they_are_told_apart(reference: tuple[str, list[Any]]) -> None:
    """A text that ends at its first NUL, as in C, would be another: a, "a\\0" and "a\\0b" are three."""
    by_plan, counted, _ = reference[1]
    assert (by_plan[("a",)], by_plan[("",)], by_plan[("B",)], by_plan[("other",)]) == ((1,), (1,), (1,), (6,))
    assert counted[()][0] == 6, "of nine notes one is NULL, and two are longer than 2,000 bytes"


def test_a_text_that_ends_at_nul_would_be_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reference: tuple[str, list[Any]]
) -> None:
    """The planted bug: texts as C has them."""
    text = conforming._text

    def cut(array: pa.Array) -> pa.Array:
        texts = [None if value is None else value.split("\0")[0] for value in text(array).to_pylist()]
        return pa.array(texts, pa.large_string())

    monkeypatch.setattr(conforming, "_text", cut)
    made, snapshot = fetched(tmp_path, from_parquet(tmp_path, None), columns=COLUMNS, unit="row")  # type: ignore[arg-type]
    assert snapshot.digests["visits"] != reference[0]
    assert exact(made, QUESTIONS[0]) != reference[1][0]


def test_postgresql_has_no_nul(postgres: str, tmp_path: Path) -> None:
    """Nor has a source by any other door a text that is none."""
    with psycopg.connect(postgres) as connection, pytest.raises((psycopg.DataError, ValueError)):
        connection.execute("SELECT %s::text", ("a\0b",))
    broken = pa.array([b"a", b"\xff\xfe"]).view(pa.string())
    pq.write_table(pa.table({"person": [1, 2], "plan": broken, "note": ["", ""]}), tmp_path / "broken.parquet")
    with pytest.raises(DataFault, match=r"plan of table visits holds a text that is not UTF-8"):
        fetched(tmp_path, "parquet:broken.parquet", columns=COLUMNS, unit="row")

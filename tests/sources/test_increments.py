"""What came since is added to what was fetched before, with the digest of everything; or everything is read again."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from lapwing.sources import SourceSnapshot, delivery, fetch
from tests.support.effort import only
from tests.support.sources import rows
from tests.support.sources.rows import visits

ROWS = visits()


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How rows were read: "all", or "added"."""
    seen: list[str] = []
    stream, together = delivery.DeliveredBatches, delivery._together

    def streaming(reader: Any, *rest: Any) -> Any:
        if isinstance(reader, pa.RecordBatchReader):
            seen.append("all")
        return stream(reader, *rest)

    def adding(*arguments: Any) -> Any:
        seen.append("added")
        return together(*arguments)

    monkeypatch.setattr(delivery, "DeliveredBatches", streaming)
    monkeypatch.setattr(delivery, "_together", adding)
    return seen


def postgresql(folder: Path, request: pytest.FixtureRequest) -> tuple[str, Callable[[pa.Table], object]]:
    url = request.getfixturevalue("postgres")
    with psycopg.connect(url) as connection:
        connection.execute(f"CREATE TABLE visits ({rows.POSTGRES}, number bigint GENERATED ALWAYS AS IDENTITY)")

    def add(table: pa.Table) -> None:
        names = ", ".join(table.column_names)
        into = f"COPY visits ({names}) FROM STDIN"
        with psycopg.connect(url) as connection, connection.cursor() as cursor, cursor.copy(into) as copy:
            for row in table.to_pylist():
                copy.write_row([*list(row.values())[:-1], rows._zoned(row["at"])])

    return f"{url}&append=number#visits", add


def sqlite(folder: Path, _: pytest.FixtureRequest) -> tuple[str, Callable[[pa.Table], object]]:
    return "sqlite:clinic.db?append=rowid#visits", lambda table: rows.fill_sqlite(folder / "clinic.db", table)


def delta(folder: Path, _: pytest.FixtureRequest) -> tuple[str, Callable[[pa.Table], object]]:
    return "delta:lake", lambda table: rows.fill_delta(folder / "lake", table)


def iceberg(folder: Path, request: pytest.FixtureRequest) -> tuple[str, Callable[[pa.Table], object]]:
    rows.know_iceberg(folder, request.getfixturevalue("monkeypatch"))
    return "iceberg:lake#clinic.visits", lambda table: rows.fill_iceberg(folder, table)


def digest(snapshot: SourceSnapshot) -> str:
    return snapshot.digests["visits"]


@pytest.mark.parametrize("door", only([2], [postgresql, sqlite, delta, iceberg]))
def test_what_was_added_has_the_digest_of_everything(
    door: Any, tmp_path: Path, request: pytest.FixtureRequest, read: list[str]
) -> None:
    source, add = door(tmp_path, request)
    add(ROWS)
    made = rows.catalog(tmp_path, source)
    fetch(made)
    for number in range(3):
        add(visits(60, seed=number + 5))
        fresh = fetch(made)
        assert read[-1] == "added"
        assert digest(fetch(made, whole=True)) == digest(fresh)
    assert read == ["all", *["added", "all"] * 3]
    assert fresh.tables["visits"].rows == ROWS.num_rows + 180
    again = fetch(made)
    assert (read[-1], digest(again)) == ("added", digest(fresh))


@pytest.fixture
def there(tmp_path: Path) -> tuple[Any, Callable[..., object]]:
    rows.fill_sqlite(tmp_path / "clinic.db", ROWS)

    def tell(*statements: str) -> None:
        with sqlite3.connect(tmp_path / "clinic.db") as connection:
            for statement in statements:
                connection.execute(statement)
        connection.close()

    made = rows.catalog(tmp_path, "sqlite:clinic.db?append=rowid#visits")
    fetch(made)
    return made, tell


ADD = "INSERT INTO visits (person, plan) VALUES (1, 'a')"


@pytest.mark.parametrize(
    "statements",
    only(
        [0],
        [
            ["DELETE FROM visits WHERE rowid = 7"],
            ["DELETE FROM visits WHERE rowid = 7", ADD],
            ["UPDATE visits SET rowid = -7 WHERE rowid = 7", "INSERT INTO visits (rowid, plan) VALUES (-8, 'a')"],
            ["INSERT INTO visits (person, cost) VALUES (1, 'much')"],
            ["INSERT INTO visits (person, cost) VALUES (1, 12345678901234567890.25)"],
            ["INSERT INTO visits (person, at) VALUES (1, 'yesterday')", ADD],
        ],
    ),
)
def test_what_is_no_addition_is_read_from_the_beginning(
    statements: list[str], there: tuple[Any, Callable[..., object]], read: list[str]
) -> None:
    made, tell = there
    tell(*statements)
    found = digest(fetch(made))
    assert read[0] == "added"
    assert "all" in read
    assert digest(fetch(made, whole=True)) == found


def test_another_catalog_reads_from_the_beginning(
    there: tuple[Any, Callable[..., object]], tmp_path: Path, read: list[str]
) -> None:
    columns = {**rows.COLUMNS, "cost": '{ type = "decimal", lower = 0, upper = 500, step = 0.001 }'}
    fetch(rows.catalog(tmp_path, "sqlite:clinic.db?append=rowid#visits", columns=columns))
    assert read == ["all"]
    fetch(rows.catalog(tmp_path, "sqlite:clinic.db#visits", columns=columns))
    assert read == ["all", "all"]


def test_a_snapshot_that_was_touched_is_not_added_to(there: tuple[Any, Callable[..., object]], read: list[str]) -> None:
    made, tell = there
    before = fetch(made)
    file = before.folder / before.tables["visits"].file
    file.chmod(0o600)
    file.write_bytes(file.read_bytes()[:-1] + b"!")
    read.clear()
    tell(ADD)
    assert digest(fetch(made)) == digest(fetch(made, whole=True))
    assert "added" not in read


def test_a_version_before_that_rows_left_is_not_added_to(tmp_path: Path, read: list[str]) -> None:
    from deltalake import DeltaTable

    made = rows.catalog(tmp_path, rows.fill_delta(tmp_path / "lake", ROWS))
    fetch(made)
    DeltaTable(str(tmp_path / "lake")).delete("plan = 'a'")
    found = digest(fetch(made))
    assert read == ["all", "all"]
    assert digest(fetch(made, whole=True)) == found

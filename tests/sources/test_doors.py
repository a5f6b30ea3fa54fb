"""The same rows have the same digest and the same exact integers, through whatever door they come, and from a file."""

from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.effort import only
from tests.support.sources import rows
from tests.support.sources.rows import QUESTIONS, exact, fetched, visits

ROWS = visits()


def from_postgres(folder: Path, request: pytest.FixtureRequest) -> str:
    return rows.fill_postgres(request.getfixturevalue("postgres"), ROWS)


def from_sqlite(folder: Path, _: pytest.FixtureRequest) -> str:
    return rows.fill_sqlite(folder / "clinic.db", ROWS)


def from_parquet(folder: Path, _: pytest.FixtureRequest) -> str:
    return rows.fill_parquet(folder / "there.parquet", ROWS)


def from_folders(folder: Path, _: pytest.FixtureRequest) -> str:
    """A folder for each plan, whose texts are then no column of the files."""
    (folder / "split").mkdir()
    plans = ROWS["plan"].cast("string").to_pylist()
    for number, plan in enumerate(sorted({plan for plan in plans if plan and len(plan) < 9})):
        inside = folder / "split" / f"plan={plan}"
        inside.mkdir()
        chosen = ROWS.filter(pa.array([one == plan for one in plans])).drop_columns(["plan"])
        pq.write_table(chosen, inside / f"{number}.parquet")
    (folder / "split" / "_SUCCESS").touch()
    return "parquet:split"


def from_flight_sql(folder: Path, request: pytest.FixtureRequest) -> str:
    server = request.getfixturevalue("flight_server")
    server.tables["visits"] = ROWS
    return f"{server.address}#visits"


def from_any_driver(folder: Path, request: pytest.FixtureRequest) -> str:
    """PostgreSQL once more, as a database of which nothing is known but that it has a driver."""
    url = request.getfixturevalue("postgres")
    rows.fill_postgres(url, ROWS)
    with psycopg.connect(url) as connection:
        plain = "person, plan, cost::text AS cost, weight, insured, day, at"
        connection.execute(f"CREATE VIEW plain AS SELECT {plain} FROM visits")
    return f"adbc:postgresql?uri={quote(url, safe='')}#plain"


def from_delta(folder: Path, _: pytest.FixtureRequest) -> str:
    rows.fill_delta(folder / "lake", ROWS.slice(0, 150))
    return rows.fill_delta(folder / "lake", ROWS.slice(150))


def from_iceberg(folder: Path, request: pytest.FixtureRequest) -> str:
    monkeypatch = request.getfixturevalue("monkeypatch")
    rows.know_iceberg(folder, monkeypatch)
    rows.fill_iceberg(folder, ROWS.slice(0, 150))
    return rows.fill_iceberg(folder, ROWS.slice(150))


def from_object_store(folder: Path, request: pytest.FixtureRequest) -> str:
    store = request.getfixturevalue("store")
    with store.system.open_output_stream("bucket/visits/1.parquet") as one:
        pq.write_table(ROWS.slice(0, 99), one)
    with store.system.open_output_stream("bucket/visits/2.parquet") as other:
        pq.write_table(ROWS.slice(99), other)
    return "parquet:s3://bucket/visits"


def from_delta_in_an_object_store(folder: Path, request: pytest.FixtureRequest) -> str:
    from deltalake import write_deltalake

    store = request.getfixturevalue("store")
    write_deltalake("s3://bucket/lake", ROWS, storage_options=store.delta)
    return "delta:s3://bucket/lake"


DOORS = {
    "postgresql": from_postgres,
    "sqlite": from_sqlite,
    "parquet": from_parquet,
    "flight_sql": from_flight_sql,
    "adbc": from_any_driver,
    "delta": from_delta,
    "iceberg": from_iceberg,
    "an object store": from_object_store,
    "delta in an object store": from_delta_in_an_object_store,
}


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[object]]:
    """The digest, and the answers of the one proven path over a plain file beside the catalog."""
    folder = tmp_path_factory.mktemp("reference")
    source = rows.fill_parquet(folder / "there.parquet", ROWS)
    plain = rows.catalog(folder, "there.parquet")
    answers: list[object] = [exact(plain, text) for text in QUESTIONS]
    _, snapshot = fetched(folder, source)
    return snapshot.digests["visits"], answers


@pytest.mark.parametrize("door", only([0], DOORS))
def test_digest_and_integers_are_those_of_a_file(
    door: str, tmp_path: Path, request: pytest.FixtureRequest, reference: tuple[str, list[object]]
) -> None:
    made, snapshot = fetched(tmp_path, DOORS[door](tmp_path, request))
    assert snapshot.tables["visits"].rows == ROWS.num_rows
    assert [exact(made, text) for text in QUESTIONS] == reference[1]
    assert snapshot.digests["visits"] == reference[0]


@pytest.mark.long
def test_folders_are_columns(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    made, _ = fetched(tmp_path, from_folders(tmp_path, request))
    assert exact(made, QUESTIONS[0]) == exact(rows.catalog(tmp_path, "split/**/*.parquet"), QUESTIONS[0])


@pytest.mark.long
@pytest.mark.parametrize("rows_left", only([1], ["none", "without values"]))
def test_a_column_without_values_is_the_same_by_every_door(
    rows_left: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """SQLite, which has no types, says that such a column holds integers."""
    table = ROWS.slice(0, 0) if rows_left == "none" else pa.Table.from_pylist([{"person": 1}] * 3, schema=ROWS.schema)
    doors = (
        rows.fill_postgres(request.getfixturevalue("postgres"), table),
        rows.fill_sqlite(tmp_path / "clinic.db", table),
        rows.fill_parquet(tmp_path / "there.parquet", table),
        rows.fill_delta(tmp_path / "lake", table),
    )
    found = [fetched(tmp_path, source)[1].tables["visits"] for source in doors]
    assert len({one.digest for one in found}) == 1
    assert {one.rows for one in found} == {table.num_rows}


Change = Callable[[pa.Table], pa.Table]
CHANGES: dict[str, tuple[Change, bool]] = {
    "another order": (lambda table: table.take(list(reversed(range(table.num_rows)))), True),
    "a row less": (lambda table: table.slice(1), False),
    "a row twice": (lambda table: pa.concat_tables([table, table.slice(5, 1)]), False),
    "one cell": (lambda table: pa.concat_tables([table.slice(1), _other(table.slice(0, 1))]), False),
}


def _other(row: pa.Table) -> pa.Table:
    return row.set_column(1, "plan", pa.array(["another"]))


@pytest.mark.parametrize("change", only([0], CHANGES))
def test_the_digest_is_of_the_rows_as_a_bag(change: str, tmp_path: Path, reference: tuple[str, list[object]]) -> None:
    """And so not of the query, the address or the order, which here are others or the same, whatever the rows are."""
    alter, same = CHANGES[change]
    _, snapshot = fetched(tmp_path, rows.fill_parquet(tmp_path / "elsewhere.parquet", alter(ROWS)))
    assert (snapshot.digests["visits"] == reference[0]) == same


def test_a_digest_of_the_query_would_be_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: a digest that follows from what is asked for, and not from what was delivered."""
    from lapwing.sources.content import ContentDigest

    monkeypatch.setattr(ContentDigest, "digest", lambda self: f"{hash(str(self._schema)):064x}")
    found = set()
    for name, table in (("one", ROWS), ("other", ROWS.slice(1))):
        (tmp_path / name).mkdir()
        found.add(
            fetched(tmp_path / name, rows.fill_parquet(tmp_path / name / "t.parquet", table))[1].digests["visits"]
        )
    assert len(found) == 1, "the change went unseen, as test_the_digest_is_of_the_rows_as_a_bag would say"


def test_a_column_that_is_not_declared_is_not_fetched(tmp_path: Path) -> None:
    source = rows.fill_parquet(tmp_path / "there.parquet", ROWS)
    few = {name: rows.COLUMNS[name] for name in ("plan", "cost")}
    _, snapshot = fetched(tmp_path, source, columns=few)
    file = next(snapshot.folder.glob("*.parquet"))
    assert pa.parquet.read_schema(file).names == ["cost", "person", "plan"]

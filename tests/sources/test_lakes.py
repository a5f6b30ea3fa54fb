"""Versions of lakes: pinned, or the newest; what is not there, dies or changes is said, and nothing is taken."""

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.catalog.source_address import read_address
from lapwing.engines import open_engine
from lapwing.errors import CatalogError, DataFault, InvalidParameter
from lapwing.sources import parquet
from lapwing.sources.fetching import offered_at
from tests.sources.conftest import Store
from tests.support.effort import one_in, only
from tests.support.sources import iceberg, iceberg_rest, rows
from tests.support.sources.flight_sql import Server
from tests.support.sources.rows import fetched, visits

ROWS = visits()


def test_a_version_of_a_delta_table_can_be_pinned(tmp_path: Path) -> None:
    source = rows.fill_delta(tmp_path / "lake", ROWS)
    first = fetched(tmp_path, source)[1]
    rows.fill_delta(tmp_path / "lake", visits(50, seed=2))
    newest, pinned = fetched(tmp_path, source)[1], fetched(tmp_path, f"{source}?version=0")[1]
    assert (first.tables["visits"].version, newest.tables["visits"].version) == ("0", "1")
    assert first.digests == pinned.digests != newest.digests
    with pytest.raises(DataFault, match="has no such version"):
        fetched(tmp_path, f"{source}?version=7")
    with pytest.raises(DataFault, match="is not a number"):
        fetched(tmp_path, f"{source}?version=newest")


@pytest.mark.long
def test_a_snapshot_of_an_iceberg_table_can_be_pinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows.know_iceberg(tmp_path, monkeypatch)
    source = rows.fill_iceberg(tmp_path, ROWS)
    first = fetched(tmp_path, source)[1]
    rows.fill_iceberg(tmp_path, visits(50, seed=2))
    number = first.tables["visits"].version
    assert first.digests == fetched(tmp_path, source.replace("#", f"?snapshot={number}#"))[1].digests
    assert fetched(tmp_path, source)[1].digests != first.digests
    with pytest.raises(DataFault, match="has no such snapshot"):
        fetched(tmp_path, source.replace("#", "?snapshot=7#"))
    with pytest.raises(DataFault, match="The Iceberg table of the data is missing"):
        fetched(tmp_path, "iceberg:lake#clinic.nothing")


@pytest.mark.long
def test_a_rest_catalog_gives_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its token is in the environment, and in no message."""
    rows.know_iceberg(tmp_path, monkeypatch)
    source = rows.fill_iceberg(tmp_path, ROWS)
    expected = fetched(tmp_path, source)[1].digests
    with iceberg_rest.serving(iceberg.lake(tmp_path)) as address:
        rows.know_iceberg(tmp_path, monkeypatch, type="rest", uri=address, token=iceberg_rest.TOKEN)
        assert fetched(tmp_path, source)[1].digests == expected
        rows.know_iceberg(tmp_path, monkeypatch, type="rest", uri=address, token="another-secret")
        with pytest.raises(DataFault, match="Check the catalog") as refused:
            fetched(tmp_path, source)
    assert "secret" not in f"{refused.value} {refused.value.__cause__}"


NOWHERE = (
    "delta:nowhere", "iceberg:nowhere#a.b", "parquet:nowhere", "sqlite:nowhere.db#a", "grpc://127.0.0.1:9#a",
    "adbc:nowhere#a", "postgresql://localhost:9/a#b",
)  # fmt: skip


@pytest.mark.parametrize("source", NOWHERE)
def test_a_source_that_is_not_there(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(DataFault):
        fetched(tmp_path, source)
    with pytest.raises(DataFault):
        offered_at(source, tmp_path)
    assert not list(tmp_path.glob("*.snapshots/[0-9a-f]*"))


def test_a_file_of_a_lake_that_is_gone(tmp_path: Path) -> None:
    source = rows.fill_delta(tmp_path / "lake", ROWS)
    for file in (tmp_path / "lake").glob("*.parquet"):
        file.unlink()
    with pytest.raises(DataFault, match="cannot be read to its end"):
        fetched(tmp_path, source)


@pytest.mark.parametrize("change", ["another file", "another content", "a file less"])
def test_files_that_change_while_they_are_read(change: str, tmp_path: Path) -> None:
    folder = tmp_path / "there"
    folder.mkdir()
    for number in range(3):
        pq.write_table(ROWS, folder / f"{number}.parquet")
    with parquet.state(read_address("parquet:there"), tmp_path) as state:
        reader = state.batches((), ["plan"])
        next(reader)
        if change == "another file":
            shutil.copy(folder / "0.parquet", folder / "9.parquet")
        if change == "another content":
            pq.write_table(ROWS.slice(1), folder / "1.parquet")
        if change == "a file less":
            (folder / "2.parquet").unlink()
        with pytest.raises(DataFault, match=r"changed while they were read|cannot be read to their end"):
            for _ in reader:
                pass


FILES = {
    "a/plan=a/1.parquet": 3,
    "a/plan=B/2.parquet": 5,
    "plan=a/3.parquet": 7,
    "plan=a/4.csv": 11,
    "plan=a/_5.parquet": 13,
    "6.parquet": 17,
}
"""Files in a store, and the numbers of their rows. The first three match the pattern."""


@pytest.mark.long
def test_a_pattern_of_objects_has_the_files_that_match(store: Store, tmp_path: Path) -> None:
    """Their folders name a column. What does not match is not opened."""
    for name, count in FILES.items():
        with store.system.open_output_stream(f"bucket/visits/{name}") as there:
            pq.write_table(ROWS.drop_columns(["plan"]).slice(0, count), there)
    made, snapshot = fetched(tmp_path, "parquet:s3://bucket/visits/**/plan=*/*.parquet")
    assert snapshot.tables["visits"].rows == 3 + 5 + 7
    found = rows.exact(made, "SELECT plan, COUNT(plan) FROM visits GROUP BY plan")
    known = [sum(person is not None for person in ROWS.column("person").to_pylist()[:count]) for count in (3, 7, 5)]
    assert {cell: sums for cell, sums in found.items() if any(sums)} == {("a",): (sum(known[:2]),), ("B",): (known[2],)}
    for name in FILES:
        if "plan=" in name:
            store.system.delete_file(f"bucket/visits/{name}")
    with pytest.raises(DataFault, match="no such files"):
        fetched(tmp_path, "parquet:s3://bucket/visits/**/plan=*/*.parquet")


@pytest.mark.parametrize("source", ["s3://bucket/*.parquet", "s3a://bucket/visits", "gs://bucket/visits/a.parquet"])
def test_an_object_store_is_not_called_a_missing_file(source: str, tmp_path: Path) -> None:
    for refused in (
        lambda: rows.catalog(tmp_path, source),
        lambda: lw.protect(source, privacy_unit="person", epsilon=1),
    ):
        with pytest.raises((CatalogError, DataFault), match="write parquet: before their address"):
            refused()


# ---- Flight SQL ------------------------------------------------------------------------------------------------------


def test_a_server_that_breaks_off_says_nothing_of_its_rows(tmp_path: Path, flight_server: Server) -> None:
    flight_server.tables["visits"] = ROWS
    made, before = fetched(tmp_path, f"{flight_server.address}#visits")
    flight_server.interrupt = True
    with pytest.raises(DataFault) as broken:
        fetched(tmp_path, f"{flight_server.address}#visits")
    flight_server.interrupt = False
    with pytest.raises(DataFault) as missing:
        fetched(tmp_path, f"{flight_server.address}#nothing")
    for error in (broken.value, missing.value):
        assert "secret" not in f"{error} {error.__cause__}"
    engine, _ = open_engine(made)
    assert engine.digest(made.tables[0]) == before.digests["visits"]
    engine.close()


def test_a_wrong_password(tmp_path: Path, flight_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    flight_server.tables["visits"] = ROWS
    monkeypatch.setenv("KEPT", "something else")
    with pytest.raises(DataFault, match="rejects this user") as refused:
        fetched(tmp_path, f"{flight_server.address}#visits")
    assert "kept-secret" not in str(refused.value)
    assert "something else" not in str(refused.value)


def test_credentials_are_the_users_own(tmp_path: Path, flight_server: Server, secrets: Path) -> None:
    flight_server.tables["visits"] = ROWS
    source = f"{flight_server.address}#visits"
    secrets.chmod(0o640)
    with pytest.raises(InvalidParameter, match="can be read by others"):
        fetched(tmp_path, source)
    secrets.chmod(0o600)
    for content, said in (
        ("[", "cannot be read"),
        (f'["{flight_server.address}"]\npassword = 1\n', "is neither a text"),
    ):
        secrets.write_text(content)
        with pytest.raises(InvalidParameter, match=said):
            fetched(tmp_path, source)
    secrets.write_text(f'["{flight_server.address}"]\npassword = {{ env = "NOT_SET" }}\n')
    with pytest.raises(DataFault, match="the variable NOT_SET, which is not set"):
        fetched(tmp_path, source)
    secrets.unlink()
    with pytest.raises(InvalidParameter, match="names a file that is not there"):
        fetched(tmp_path, source)


@pytest.mark.parametrize("change", one_in(2, ["rows came", "rows went"]))
def test_a_table_that_changes_between_count_and_rows(change: str, tmp_path: Path, flight_server: Server) -> None:
    """Such a database has no state for two statements; what does not add up is not taken."""
    flight_server.tables["visits"] = ROWS
    source = f"{flight_server.address}#visits"
    _, before = fetched(tmp_path, source)
    run = flight_server._run

    def changing(statement: bytes) -> pa.Table:
        text, _ = flight_server._prepared.get(statement, ("", []))
        if text and "COUNT" not in text and "1 = 0" not in text:
            flight_server.tables["visits"] = ROWS.slice(1) if change == "rows went" else visits(500)
        return run(statement)

    flight_server._run = changing  # type: ignore[method-assign]
    flight_server.tables["visits"] = ROWS
    with pytest.raises(DataFault, match="rows than it counts in the same state; nothing was taken"):
        fetched(tmp_path, source)
    where = before.folder.parent
    assert [path.name for path in where.iterdir() if path.name != "newest"] == [before.folder.name]


CHANGED = {
    "dropped": (ROWS.drop_columns(["plan"]), r"has no column plan; it has person"),
    "renamed": (ROWS.rename_columns(["person", "tariff", *ROWS.column_names[2:]]), "has no column plan"),
    "a list": (ROWS.set_column(1, "plan", pa.array([["a"]] * ROWS.num_rows)), r"has the type list.* in the source"),
}


@pytest.mark.long
@pytest.mark.parametrize("change", only([0], CHANGED))
def test_a_column_of_a_lake_that_is_not_what_it_was(change: str, tmp_path: Path) -> None:
    from deltalake import write_deltalake

    made, before = fetched(tmp_path, rows.fill_delta(tmp_path / "lake", ROWS))
    table, said = CHANGED[change]
    write_deltalake(str(tmp_path / "lake"), table, mode="overwrite", schema_mode="overwrite")
    with pytest.raises(DataFault, match=said):
        fetched(tmp_path, "delta:lake")
    engine, _ = open_engine(made)
    assert engine.digest(made.tables[0]) == before.digests["visits"], "what was there answers"
    engine.close()


def test_what_a_service_logs_of_a_source_holds_no_password(
    tmp_path: Path, flight_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lapwing.opening import open_session
    from lapwing.server.refreshing import SourceRefresher
    from tests.server.test_refreshing import Datasets

    flight_server.tables["visits"] = ROWS
    made, _ = fetched(tmp_path, f"{flight_server.address}#visits")
    logged: list[str] = []
    monkeypatch.setattr("lapwing.server.refreshing.log", lambda event, **facts: logged.append(f"{event} {facts}"))
    with open_session(made) as session:
        datasets: Any = Datasets(session)
        for password in ("kept-secret", "another-secret"):
            monkeypatch.setenv("KEPT", password)
            SourceRefresher(datasets, 0.0).look()
    assert [line.partition(" {")[0] for line in logged] == ["data are the same", "data not refreshed"]
    assert "secret" not in " ".join(logged)
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path.name != "sources.toml")
    assert b"kept-secret" not in kept
    assert b"another-secret" not in kept

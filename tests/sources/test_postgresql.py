"""PostgreSQL as a source: one state, whatever happens meanwhile; all that it may send; nothing that it may tell."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.catalog.source_address import read_address
from lapwing.errors import CatalogError, DataFault
from lapwing.sources import fetch, postgresql
from lapwing.sources.postgresql import PostgresState
from tests.support.effort import only
from tests.support.postgres import Postgres
from tests.support.sources import rows
from tests.support.sources.rows import exact, fetched, visits

ROWS = visits()
COUNT = "SELECT COUNT(*) FROM visits"


def tell(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def content(folder: Path, source: str, columns: dict[str, str], **options: Any) -> pa.Table:
    """Return what was fetched."""
    options = {"unit": "row"} | options
    _, snapshot = fetched(folder, source, columns=columns, **options)
    return pq.read_table(snapshot.folder / snapshot.tables["visits"].file)


# ---- one state -------------------------------------------------------------------------------------------------------


@pytest.fixture
def in_between(postgres: str, monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], None]]:
    """What happens between the count and the reading of rows."""
    acts: list[Callable[[], None]] = []
    batches = PostgresState.batches

    def later(self: PostgresState, table: tuple[str, ...], columns: list[str], *rest: Any) -> pa.RecordBatchReader:
        while acts:
            acts.pop()()
        return batches(self, table, columns, *rest)

    monkeypatch.setattr(PostgresState, "batches", later)
    return acts


def test_what_changes_while_it_is_read_is_not_seen(
    postgres: str, tmp_path: Path, in_between: list[Callable[[], None]]
) -> None:
    source = rows.fill_postgres(postgres, ROWS)
    before = fetched(tmp_path, source)[1].digests
    in_between.append(
        lambda: tell(postgres, "DELETE FROM visits WHERE plan = 'a'", "INSERT INTO visits VALUES (1, 'a')")
    )
    assert fetched(tmp_path, source)[1].digests == before
    assert fetched(tmp_path, source)[1].digests != before, "and is seen the next time"


def test_read_committed_would_be_noticed(
    postgres: str, tmp_path: Path, in_between: list[Callable[[], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted bug: another isolation, where each statement sees what others have committed before it."""
    monkeypatch.setattr(postgresql, "BEGIN", "BEGIN TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY")
    source = rows.fill_postgres(postgres, ROWS)
    in_between.append(lambda: tell(postgres, "DELETE FROM visits WHERE plan = 'a'"))
    with pytest.raises(DataFault, match="delivered fewer rows than it counts in the same state"):
        fetched(tmp_path, source)


LINKED = """
[dataset]
name = "clinic"
ledger = "sqlite:clinic.db"
[budget]
epsilon = 3
[tables.people]
source = "{url}#people"
privacy_unit = "id"
max_rows_per_unit = 1
[tables.people.columns]
id = {{ type = "integer" }}
[tables.stays]
source = "{url}#stays"
link = {{ table = "people", on = {{ person = "id" }} }}
max_rows_per_unit = 9
[tables.stays.columns]
person = {{ type = "integer" }}
"""


def linked(folder: Path, url: str) -> Any:
    from lapwing.catalog.toml import loads

    return loads(LINKED.format(url=url), file="clinic.toml", folder=folder)


@pytest.mark.parametrize("isolation", only([0], ["REPEATABLE READ", "READ COMMITTED"]))
def test_linked_tables_are_of_one_state(
    isolation: str, postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person who comes between the two readings has no stays without a person; read committed would show them."""
    monkeypatch.setattr(postgresql, "BEGIN", f"BEGIN TRANSACTION ISOLATION LEVEL {isolation}, READ ONLY")
    tell(postgres, "CREATE TABLE people (id int)", "CREATE TABLE stays (person int)", "INSERT INTO people VALUES (1)")
    counted = PostgresState.rows

    def later(self: PostgresState, table: tuple[str, ...], *rest: Any) -> int | None:
        if table == ("stays",):
            tell(postgres, "INSERT INTO people VALUES (2)", "INSERT INTO stays VALUES (2)")
        return counted(self, table, *rest)

    monkeypatch.setattr(PostgresState, "rows", later)
    snapshot = fetch(linked(tmp_path, postgres))
    found = {name: table.rows for name, table in snapshot.tables.items()}
    assert found == {"people": 1, "stays": 0 if isolation == "REPEATABLE READ" else 1}


def test_a_batch_that_is_dropped_is_noticed(postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: a reader that goes on after an interruption, one batch later."""
    source = rows.fill_postgres(postgres, ROWS)
    batches = PostgresState.batches

    def dropping(self: PostgresState, table: tuple[str, ...], columns: list[str], *rest: Any) -> pa.RecordBatchReader:
        reader = batches(self, table, columns, *rest)
        several = [part for batch in reader for part in (batch.slice(0, 100), batch.slice(100, 100), batch.slice(200))]
        return pa.RecordBatchReader.from_batches(reader.schema, [several[0], *several[2:]])

    monkeypatch.setattr(PostgresState, "batches", dropping)
    with pytest.raises(DataFault, match="delivered fewer rows than it counts"):
        fetched(tmp_path, source)


@pytest.mark.long
def test_a_shifted_zone_would_be_noticed(postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted bug: timestamps as they are shown somewhere. The test of all doors compares them with a file's."""
    source = rows.fill_postgres(postgres, ROWS)
    right = fetched(tmp_path, source)[1].digests
    shifted = [word.replace("'UTC'", "'Europe/Berlin'") for word in postgresql.SETTINGS]
    monkeypatch.setattr(postgresql, "SETTINGS", shifted)
    assert fetched(tmp_path, source)[1].digests == right, "what the session's zone is does not matter"
    described = postgresql._described
    monkeypatch.setattr(
        postgresql,
        "_described",
        lambda *facts: _shifted(described(*facts)),
    )
    made, snapshot = fetched(tmp_path, source)
    assert snapshot.digests != right
    assert exact(made, rows.QUESTIONS[2]) != exact(rows.catalog(tmp_path, _plain(tmp_path)), rows.QUESTIONS[2])


def _shifted(described: Any) -> Any:
    return replace(described, copied=described.copied.replace("'UTC'", "'Europe/Berlin'"))


def _plain(folder: Path) -> str:
    rows.fill_parquet(folder / "plain.parquet", ROWS)
    return "plain.parquet"


# ---- dying ----------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_server_that_dies_leaves_what_was_there(own_postgres: Postgres, tmp_path: Path) -> None:
    url = own_postgres.url()
    source = rows.fill_postgres(url, ROWS)
    made, before = fetched(tmp_path, source)
    tell(url, "INSERT INTO visits SELECT visits.* FROM visits, generate_series(1, 500)")
    address = read_address(source)
    with postgresql.state(address, tmp_path) as state:
        reader = state.batches(address.table, ["person", "plan", "cost"])
        next(reader)
        own_postgres.stop(immediate=True)
        with pytest.raises(DataFault, match=r"nothing was taken|Try again"):
            for _ in reader:
                pass
    with pytest.raises(DataFault, match="cannot be reached"):
        fetch(made)
    assert exact(made, COUNT) == exact(rows.catalog(tmp_path, _plain(tmp_path)), COUNT)
    assert sorted(path.name for path in (tmp_path / "visits.lapwing.snapshots").iterdir()) == sorted(
        [before.folder.name, "newest"]
    )


@pytest.mark.long
def test_a_process_that_is_killed_leaves_nothing_that_answers(postgres: str, tmp_path: Path) -> None:
    source = rows.fill_postgres(postgres, ROWS)
    slow = "SELECT * FROM visits WHERE pg_catalog.pg_sleep(0.05) IS NOT NULL"
    tell(postgres, f"CREATE VIEW slowly AS {slow}")
    made, before = fetched(tmp_path, source)
    (tmp_path / "lapwing.toml").write_text((tmp_path / "lapwing.toml").read_text().replace("public.visits", "slowly"))
    process = subprocess.Popen(
        [sys.executable, "-m", "lapwing", "data", "check"],
        cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    where = before.folder.parent
    deadline = time.monotonic() + 60
    while not list(where.glob(".fetching-*/content")):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    process.kill()
    process.wait()
    assert exact(made, COUNT) == exact(rows.catalog(tmp_path, _plain(tmp_path)), COUNT), "what was there answers"
    assert list(where.glob(".fetching-*"))
    tell(postgres, "INSERT INTO visits VALUES (1, 'a')")
    assert fetch(made).tables["visits"].rows == ROWS.num_rows + 1
    assert not list(where.glob(".fetching-*"))


@pytest.mark.long
def test_a_full_disk_leaves_what_was_there(postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = rows.fill_postgres(postgres, ROWS)
    _, before = fetched(tmp_path, source)
    tell(postgres, "INSERT INTO visits VALUES (1)")

    class Full(pq.ParquetWriter):  # type: ignore[misc]
        def write_batch(self, *_: Any, **__: Any) -> None:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("lapwing.sources.delivery.pq.ParquetWriter", Full)
    with pytest.raises(lw.Fault, match=r"the disk is full\. Nothing was taken"):
        fetched(tmp_path, source)
    assert [path.name for path in before.folder.parent.iterdir() if path.name != "newest"] == [before.folder.name]


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "said"),
    only(
        [0],
        [
            ("ALTER TABLE visits DROP COLUMN plan", "has no column plan; it has person, cost"),
            ("ALTER TABLE visits RENAME COLUMN plan TO tariff", "has no column plan"),
            ("DROP TABLE visits", "has no table public.visits"),
            (
                "ALTER TABLE visits ALTER COLUMN plan TYPE text[] USING ARRAY[plan]",
                r"has the type text\[\] in the source",
            ),
            ("ALTER TABLE visits ALTER COLUMN plan TYPE jsonb USING to_jsonb(plan)", "of the type jsonb"),
            ("ALTER TABLE visits ALTER COLUMN day TYPE time USING '10:00'", "of the type time without time zone"),
        ],
        many=True,
    ),
)
def test_a_column_that_is_not_what_it_was(change: str, said: str, postgres: str, tmp_path: Path) -> None:
    source = rows.fill_postgres(postgres, ROWS)
    fetched(tmp_path, source)
    tell(postgres, change)
    with pytest.raises(DataFault, match=said):
        fetched(tmp_path, source)


@pytest.mark.long
def test_a_column_that_is_of_another_type_is_said_by_its_values(postgres: str, tmp_path: Path) -> None:
    """A number that became text keeps its meaning, and its digest, as long as every text is that number."""
    source = rows.fill_postgres(postgres, ROWS)
    before = fetched(tmp_path, source)[1].digests
    tell(postgres, "ALTER TABLE visits ALTER COLUMN person TYPE text")
    assert fetched(tmp_path, source)[1].digests == before
    tell(postgres, "UPDATE visits SET person = 'somebody' WHERE person = '7'")
    made, _ = fetched(tmp_path, source)
    with pytest.raises(DataFault, match="not of the declared type in person"):
        lw.connect(tmp_path / "lapwing.toml")
    assert exact(made, COUNT)


# ---- what it may send ------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_numbers(postgres: str, tmp_path: Path) -> None:
    tell(
        postgres,
        "CREATE DOMAIN price AS numeric(8, 2)",
        "CREATE TABLE visits (free numeric, fixed numeric(10, 2), wide numeric(40, 3), owned price, small smallint, "
        "single real, negative numeric(4, -2))",
        "INSERT INTO visits VALUES ('NaN', 'NaN', 1.5, 2.5, 3, 'NaN', 1234), "
        "(1e20, -0.01, 1e30, NULL, -3, '-Infinity', NULL)",
    )
    columns = {"free": "float", "fixed": "decimal", "wide": "decimal", "owned": "decimal", "small": "integer"}
    columns |= {"single": "float", "negative": "integer"}
    declared = {
        name: f'{{ type = "{kind}"{", step = 0.01" if kind == "decimal" else ""} }}' for name, kind in columns.items()
    }
    table = content(tmp_path, f"{postgres}#visits", declared)
    assert sorted(map(str, table["fixed"].to_pylist())) == ["-0.01", "None"], "a numeric NaN counts as NULL"
    assert table.schema.field("fixed").type == table.schema.field("owned").type == pa.decimal128(18, 2)
    assert pa.types.is_string(table.schema.field("free").type), "NaN among exact numbers stays to be seen"
    assert pa.types.is_string(table.schema.field("wide").type) or pa.types.is_decimal(table.schema.field("wide").type)
    assert table.schema.field("small").type == table.schema.field("negative").type == pa.int64()
    assert sorted(map(str, table["negative"].to_pylist())) == ["1200", "None"]


def test_dates_without_end_lie_outside_of_any_bounds(postgres: str, tmp_path: Path) -> None:
    tell(
        postgres,
        "CREATE TABLE visits (day date, at timestamp, zoned timestamptz)",
        "INSERT INTO visits VALUES ('infinity', 'infinity', 'infinity'), ('-infinity', '-infinity', '-infinity'), "
        "('5874897-12-31', '294276-12-31', '294276-12-31'), ('4713-01-01 BC', '4713-01-01 BC', '4713-02-01 BC'), "
        "(NULL, NULL, NULL)",
    )
    bounds = "lower = 2024-01-01, upper = 2024-12-31"
    moments = "lower = 2024-01-01T00:00:00Z, upper = 2024-12-31T00:00:00Z"
    columns = {"day": f'{{ type = "date", {bounds} }}'}
    columns |= dict.fromkeys(("at", "zoned"), f'{{ type = "timestamp", {moments} }}')
    made, _ = fetched(tmp_path, f"{postgres}#visits", columns=columns, unit="row")
    question = ", ".join(
        f"COUNT_IF({name} = {kind} '2024-{end}')"
        for name, kind in (("day", "DATE"), ("at", "TIMESTAMP"), ("zoned", "TIMESTAMP"))
        for end in ("01-01", "12-31")
    )
    assert exact(made, f"SELECT {question} FROM visits") == {(): (2, 2, 2, 2, 2, 2)}


@pytest.mark.long
def test_texts(postgres: str, tmp_path: Path) -> None:
    """By bytes, whatever they are compared by there: equal are equal bytes; one of a million characters is too long."""
    tell(
        postgres,
        "CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level1', deterministic = false)",
        "CREATE TYPE sort AS ENUM ('warm', 'cold')",
        'CREATE TABLE visits (blind text COLLATE blind, german varchar(9) COLLATE "C", fixed char(4), kind sort, '
        "id uuid)",
        "INSERT INTO visits VALUES ('a', 'Ä', 'ab', 'warm', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'), "
        "('A', 'ä', 'abcd', 'cold', NULL), ('á', 'z', NULL, NULL, NULL)",
    )
    columns = dict.fromkeys(("blind", "german", "fixed", "kind", "id"), '{ type = "string" }')
    table = content(tmp_path, f"{postgres}#visits", columns)
    assert table["blind"].to_pylist() == ["A", "a", "á"]
    assert table["fixed"].to_pylist() == ["abcd", "ab", None]
    assert table["id"].to_pylist()[1] == "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
    tell(postgres, "TRUNCATE visits", "ALTER TABLE visits ADD story text", "INSERT INTO visits (story) VALUES "
         "(repeat('x', 1000000)), (repeat('ß', 1000000)), ('short')")  # fmt: skip
    made, _ = fetched(tmp_path, f"{postgres}#visits", columns={"story": '{ type = "string" }'}, unit="row")
    assert exact(made, "SELECT COUNT(story), COUNT(*) FROM visits") == {(): (1, 3)}


@pytest.mark.long
def test_odd_names(postgres: str, tmp_path: Path) -> None:
    name = '"My.Clinic"."the ""visits"""'
    tell(postgres, 'CREATE SCHEMA "My.Clinic"', f'CREATE TABLE {name} ("Person id" int, "sélect" text)')
    tell(postgres, f"INSERT INTO {name} VALUES (1, 'a')")
    table = content(
        tmp_path, f"{postgres}#{name}", {"Person id": '{ type = "integer" }', "sélect": '{ type = "string" }'}
    )
    assert table.to_pylist() == [{"Person id": 1, "sélect": "a"}]


@pytest.mark.long
def test_no_rows_and_no_columns(postgres: str, tmp_path: Path) -> None:
    tell(postgres, "CREATE TABLE visits (person int)")
    made, snapshot = fetched(tmp_path, f"{postgres}#visits", columns={}, unit="row")
    assert (snapshot.tables["visits"].rows, exact(made, COUNT)) == (0, {(): (0,)})
    tell(postgres, "INSERT INTO visits SELECT generate_series(1, 5)")
    made, snapshot = fetched(tmp_path, f"{postgres}#visits", columns={}, unit="row")
    assert (snapshot.tables["visits"].rows, exact(made, COUNT)) == (5, {(): (5,)})


# ---- what it may do, and tell ----------------------------------------------------------------------------------------


def test_a_role_that_may_only_read_is_enough_and_hidden_rows_are_no_rows(postgres: str, tmp_path: Path) -> None:
    source = rows.fill_postgres(postgres, ROWS)
    tell(postgres, "DROP ROLE IF EXISTS reader", "CREATE ROLE reader LOGIN PASSWORD 'kept-secret'")
    reader = source.replace("lapwing@", "reader@")
    try:
        with pytest.raises(DataFault, match="grant USAGE of its schema and SELECT"):
            fetched(tmp_path, reader)
        tell(postgres, "GRANT SELECT ON visits TO reader")
        assert fetched(tmp_path, reader)[1].tables["visits"].rows == ROWS.num_rows
        tell(postgres, "ALTER TABLE visits ENABLE ROW LEVEL SECURITY")
        with pytest.raises(DataFault, match="without row-level security"):
            fetched(tmp_path, reader)
    finally:
        tell(postgres, "DROP OWNED BY reader", "DROP ROLE reader")


def test_nothing_can_be_written(postgres: str, tmp_path: Path) -> None:
    rows.fill_postgres(postgres, ROWS)
    with postgresql.state(read_address(f"{postgres}#visits"), tmp_path) as state:
        assert isinstance(state, PostgresState)
        (settings,) = state._ask(
            "SELECT current_setting('transaction_isolation'), current_setting('transaction_read_only')"
        )
        assert settings == ("repeatable read", "on")
        with pytest.raises(DataFault):
            state._ask("SELECT nextval('pg_catalog.pg_toast'::text)")
        with pytest.raises(DataFault):
            state._ask("DELETE FROM visits")


SECRET = "hunter2-hunter2"


@pytest.mark.parametrize(
    "source",
    [
        f"postgresql://reader:{SECRET}@db.example.org/clinic#visits",
        f"postgresql://db.example.org/clinic?password={SECRET}#visits",
        f"postgresql://db.example.org/clinic?sslpassword={SECRET}#visits",
        f"grpc+tls://reader:{SECRET}@db.example.org:1#visits",
        f"adbc:snowflake?uri=snow://reader:{SECRET}@there#visits",
        f"adbc:snowflake?adbc.snowflake.sql.client_option.auth_token={SECRET}#visits",
        f"delta:s3://key:{SECRET}@bucket/visits",
        f"delta:s3://bucket/visits?AWS_SECRET_ACCESS_KEY={SECRET}",
    ],
)
def test_an_address_with_a_password_is_refused_and_not_repeated(source: str, tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="holds a password") as caught:
        rows.catalog(tmp_path, source)
    assert SECRET not in str(caught.value)
    with pytest.raises(lw.LapwingError) as refused:
        lw.protect(source, privacy_unit="row", epsilon=1)
    assert SECRET not in str(refused.value)


@pytest.mark.long
def test_a_password_is_in_no_file_no_message_and_no_process_list(
    own_postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = own_postgres.url()
    source = rows.fill_postgres(url, ROWS)
    tell(url, f"CREATE ROLE reader LOGIN PASSWORD '{SECRET}'", "GRANT SELECT ON visits TO reader")
    rules = own_postgres.folder / "data" / "pg_hba.conf"
    rules.write_text("local all lapwing trust\nlocal all reader scram-sha-256\n")
    own_postgres.restart()
    made = rows.catalog(tmp_path, source.replace("lapwing@", "reader@"))
    monkeypatch.delenv("PGPASSWORD", raising=False)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "none"))
    with pytest.raises(DataFault, match="rejects this user"):
        fetch(made)
    passes = tmp_path / ".pgpass"
    passes.write_text(f"*:*:*:reader:{SECRET}\n")
    passes.chmod(0o600)
    environment = {**os.environ, "PGPASSFILE": str(passes)}
    process = subprocess.Popen(
        [sys.executable, "-m", "lapwing", "data", "refresh"],
        cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    listed = ""
    while process.poll() is None:
        listed += "".join(_lines())
        time.sleep(0.1)
    said = process.communicate()[0]
    assert process.returncode == 0, said
    passes.unlink()
    monkeypatch.setenv("PGPASSWORD", "wrong-" + SECRET)
    with pytest.raises(DataFault) as wrong:
        fetch(made)
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    for shown in (listed, said, str(wrong.value), repr(wrong.value.__context__ and wrong.value.__cause__), str(kept)):
        assert SECRET not in shown
    assert "lapwing" in listed, "the list of processes has the process"


def _lines() -> Iterator[str]:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            yield (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace") + "\n"
        except OSError:
            continue


def test_over_a_network_the_server_must_say_who_it_is(own_postgres: Postgres, tmp_path: Path) -> None:
    """With its certificate alone; other hosts are asked for one unless the address says otherwise."""
    uri = postgresql._uri(read_address("postgresql://reader@db.example.org/clinic#visits"))
    assert "sslmode=verify-full" in uri
    assert "sslmode=require" in postgresql._uri(
        read_address("postgresql://db.example.org/clinic?sslmode=require#visits")
    )
    assert "sslmode" not in postgresql._uri(read_address(f"{own_postgres.url()}#visits"))

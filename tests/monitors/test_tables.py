"""Events from tables that grow, in PostgreSQL and SQLite: each row once it is committed, and once, whatever fails."""

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

import lapwing as lw
from lapwing.monitors import Monitor, create_monitor, open_monitor
from lapwing.monitors.table_source import GrowingTable, ReadPosition
from lapwing.sources.postgresql import PostgresState
from tests.monitors.test_running import Time, some_ticks
from tests.support.effort import one_in
from tests.support.monitors import truth
from tests.support.monitors.city import CELLS, EVERY, START, Event, events_of, make_city
from tests.support.postgres import Postgres

QUESTION = f"SELECT cell, COUNT(*) AS n FROM moves GROUP BY cell {EVERY}"
TABLE = "number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, person text, at timestamptz, cell text, pay int"
INSERT = "INSERT INTO moves (person, at, cell, pay) VALUES (%s, %s, %s, %s)"


def made(catalog: Path, source: str | None, **options: Any) -> Monitor:
    given: dict[str, Any] = {"epsilon": 4_000_000, "time": "at", "most": 40, "source": source} | options
    return create_monitor(catalog, "m", QUESTION, **given)


def rows_of(events: Sequence[Event]) -> list[tuple[Any, ...]]:
    return [(e.person, (START + timedelta(seconds=e.at)).isoformat() + "+00", e.cell, e.pay) for e in events]


def insert(url: str, events: Sequence[Event]) -> None:
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        cursor.executemany(INSERT, rows_of(events))


@pytest.fixture
def table(postgres: str) -> str:
    with psycopg.connect(postgres) as connection:
        connection.execute(f"CREATE TABLE moves ({TABLE})")
    return postgres


def address(url: str) -> str:
    return f"{url}&append=number#public.moves"


def north(at: float, person: str = "p1") -> Event:
    return Event(at, person, "north", 1)


def check_rows_count_as_in_files(folder: Path, table: str) -> None:
    city, clock, events = make_city(folder), Time(3), events_of()
    insert(table, events[:200])
    with made(city, address(table)) as monitor:
        some_ticks(monitor, clock, 3)
        insert(table, events[200:])
        list(monitor.run(replay=True))
        by_rows = truth.told(monitor)
    listed = [event for event in events if event.cell in CELLS]
    assert truth.off_by(by_rows, truth.counts(listed)) <= 2


@pytest.mark.long
def test_a_table_in_postgresql_is_read_as_files_are(tmp_path: Path, table: str) -> None:
    check_rows_count_as_in_files(tmp_path, table)


@pytest.mark.long
def test_twin_rows_that_are_read_again_are_noticed(tmp_path: Path, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ReadPosition, "from_text", classmethod(lambda cls, _text: cls()))
    with pytest.raises(AssertionError):
        check_rows_count_as_in_files(tmp_path, table)


@pytest.mark.long
def test_the_source_of_the_catalogs_table_is_read_if_it_grows(tmp_path: Path, table: str) -> None:
    events = events_of(number=60)
    insert(table, events)
    with made(make_city(tmp_path, source=address(table)), None) as monitor:
        told = truth.told(monitor.run(replay=True))
    assert truth.off_by(told, truth.counts([event for event in events if event.cell in CELLS])) <= 2


@pytest.mark.parametrize("harm", one_in(2, [False, True]))
def test_conditions_of_the_table_are_kept_to(
    harm: bool, tmp_path: Path, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted bug: rows as they were read, whatever the catalog says of them."""
    events = events_of(number=60)
    insert(table, events)
    city = make_city(tmp_path, source=address(table))
    section = "[tables.moves]"
    city.write_text(city.read_text().replace(section, f'{section}\nwhere = {{ cell = ["north", "west"] }}'))
    with pytest.raises(lw.InvalidParameter, match="has conditions on the rows of its source"):
        made(city, "service")
    if harm:
        monkeypatch.setattr("lapwing.sources.delivery.DeliveredBatches.restricted", lambda _self, batch: batch)
    with made(city, None) as monitor:
        told = truth.told(monitor.run(replay=True))
    kept = [event for event in events if event.cell in ("north", "west")]
    assert (truth.off_by(told, truth.counts(kept)) <= 2) != harm


@pytest.mark.long
def test_conditions_of_the_table_choose_its_events(tmp_path: Path, table: str) -> None:
    events = events_of(number=60)
    insert(table, events)
    city = make_city(tmp_path, source=address(table))
    city.write_text(
        city.read_text().replace("[tables.moves.columns]", 'where = { cell = ["north"] }\n[tables.moves.columns]')
    )
    with made(city, None) as monitor:
        told = truth.told(monitor.run(replay=True))
    assert truth.off_by(told, truth.counts([event for event in events if event.cell == "north"])) <= 2
    with pytest.raises(lw.InvalidParameter, match="conditions on the rows of its source"):
        create_monitor(city, "other", QUESTION, epsilon=1, time="at", source="service")


# ---- writers beside each other ---------------------------------------------------------------------------------------


def check_late_commits_count(folder: Path, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transaction takes a key and stays open, while others commit greater ones; another one never commits."""
    monkeypatch.setattr("lapwing.monitors.table_source.PATIENCE", 0.05)
    clock = Time(0)
    insert(table, [north(1)])
    with made(make_city(folder), address(table)) as monitor, closing(psycopg.connect(table)) as slow:
        slow.execute(INSERT, rows_of([north(2, "slow")])[0])  # key 2
        for second in range(3, 6):
            insert(table, [north(second)])
        with closing(psycopg.connect(table)) as undecided:
            undecided.execute(INSERT, rows_of([north(6, "never")])[0])
            insert(table, [north(7)])
            assert [row["north"] for row in truth.told(some_ticks(monitor, clock, 1))] == [5]
        assert [row["north"] for row in truth.told(some_ticks(monitor, clock, 1))] == [5]
        slow.commit()
        assert [row["north"] for row in truth.told(some_ticks(monitor, clock, 1))] == [6]
        insert(table, [north(8)])
        assert [row["north"] for row in truth.told(some_ticks(monitor, clock, 1))] == [7]
        (place,) = monitor._store.sources().values()
        assert ReadPosition.from_text(place) == ReadPosition(8)


@pytest.mark.long
def test_what_commits_late_counts_and_counts_once(tmp_path: Path, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check_late_commits_count(tmp_path, table, monkeypatch)


@pytest.mark.long
def test_twin_a_line_that_does_not_wait_for_writers_is_noticed(
    tmp_path: Path, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PostgresState, "writers", lambda _state, _table: frozenset())
    with pytest.raises(AssertionError):
        check_late_commits_count(tmp_path, table, monkeypatch)


@pytest.mark.long
def test_a_writer_of_a_part_is_seen(tmp_path: Path, postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with psycopg.connect(postgres) as connection:
        parted = TABLE.replace(" PRIMARY KEY", "").replace("GENERATED ALWAYS AS IDENTITY", "DEFAULT nextval('keys')")
        connection.execute("CREATE SEQUENCE keys")
        connection.execute(f"CREATE TABLE moves ({parted}) PARTITION BY LIST (pay)")
        connection.execute("CREATE TABLE ones PARTITION OF moves FOR VALUES IN (1)")
    monkeypatch.setattr("lapwing.monitors.table_source.PATIENCE", 0.05)
    clock = Time(0)
    with made(make_city(tmp_path), address(postgres)) as monitor, closing(psycopg.connect(postgres)) as slow:
        slow.execute(INSERT.replace("moves", "ones"), rows_of([north(2, "slow")])[0])
        insert(postgres, [north(3)])
        assert [row["north"] for row in truth.told(some_ticks(monitor, clock, 1))] == [1]
        slow.commit()
        assert [row["north"] for row in truth.told(some_ticks(monitor, clock, 1))] == [2]


@pytest.mark.long
@pytest.mark.parametrize(
    ("statement", "said"),
    one_in(
        6,
        [
            ("ALTER SEQUENCE moves_number_seq CACHE 10", "CACHE 1"),
            ("ALTER TABLE moves RENAME TO kept; CREATE VIEW moves AS SELECT * FROM kept", "is no table"),
            ("ALTER TABLE moves RENAME number TO other", "not an integer key|has not the columns"),
            ("DROP TABLE moves", "no table"),
            (
                "ALTER TABLE moves ALTER number DROP IDENTITY; ALTER TABLE moves ALTER number TYPE text",
                "not an integer key",
            ),
            ("DELETE FROM moves WHERE number > 1", "is less than before"),
        ],
        many=True,
    ),
)
def test_tables_that_cannot_be_followed_are_said(tmp_path: Path, table: str, statement: str, said: str) -> None:
    insert(table, [north(1), north(2)])
    clock = Time(0)
    with made(make_city(tmp_path), address(table)) as monitor:
        some_ticks(monitor, clock, 1)
        with psycopg.connect(table) as connection:
            connection.execute(statement)
        waited = list[str]()

        class Enough(Exception):
            pass

        def wait(_seconds: float) -> None:
            raise Enough

        with pytest.raises(Enough):
            list(monitor.run(replay=True, wait=wait, waiting=waited.append))
    assert re.search(said, waited[0])


# ---- sources that are gone, and credentials --------------------------------------------------------------------------


@pytest.mark.long
def test_a_source_that_is_gone_for_an_hour_is_a_clear_state(tmp_path: Path, own_postgres: Postgres) -> None:
    url = own_postgres.url()
    with psycopg.connect(url) as connection:
        connection.execute(f"CREATE TABLE moves ({TABLE})")
    insert(url, [north(1)])
    clock, stopped, said = Time(0), False, list[str]()
    with made(make_city(tmp_path), address(url)) as monitor:
        some_ticks(monitor, clock, 2)
        own_postgres.stop()
        gone_at, states = clock.now, list[str]()

        def wait(seconds: float) -> None:
            nonlocal stopped
            clock.wait(seconds)
            if not stopped and clock.now > gone_at + 3_600_000_000:
                states.append(monitor.state(clock.now))
                own_postgres.start()
                insert(url, [north(700, "p2"), north(2000, "p3")])
                stopped = True

        ticks = monitor.run(clock=clock, wait=wait, waiting=said.append)
        later = [next(ticks) for _ in range(6)]
        ticks.close()  # type: ignore[attr-defined]
        assert [tick.number for tick in later] == [3, 4, 5, 6, 7, 8], "made up in order"
        # Tick 3 counts what came late; the event of tick 4 is in its own one.
        assert [row["north"] for row in truth.told(later)] == [2, 3, 3, 3, 3, 3]
        (state,) = states
        assert state.startswith("waiting at tick 3 of 12, 6 due, since 2026-03-02 00:")
        assert "PostgreSQL database of the data cannot be reached" in state
        assert len(said) == 1
        assert "waiting" not in monitor.state(clock.now)


@pytest.mark.long
def test_a_password_comes_from_the_environment(
    tmp_path: Path, own_postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, url = "kept-secret", own_postgres.url()
    with psycopg.connect(url) as connection:
        connection.execute(f"CREATE TABLE moves ({TABLE})")
        connection.execute(f"CREATE ROLE reader LOGIN PASSWORD '{secret}'")
        connection.execute("GRANT SELECT (number, person, at, cell, pay) ON moves TO reader")
    insert(url, [north(1), north(2)])
    (own_postgres.folder / "data" / "pg_hba.conf").write_text(
        "local all lapwing trust\nlocal all reader scram-sha-256\n"
    )
    own_postgres.restart()
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "none"))
    said = list[str]()

    def wait(_seconds: float) -> None:
        monkeypatch.setenv("PGPASSWORD", secret)

    source = address(url).replace("lapwing@", "reader@")
    with made(make_city(tmp_path), source) as monitor:
        told = truth.told(monitor.run(replay=True, wait=wait, waiting=said.append))
        assert told[-1]["north"] == 2
    assert len(said) == 1
    assert "rejects this user" in said[0]
    assert all(secret.encode() not in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("postgresql://reader:secret@db/city?append=id#moves", "holds a password"),
        ("postgresql://reader@db/city#moves", "by a key that only grows"),
        ("postgresql://reader@db/city?append=id", "names no table"),
        ("sqlite:events.db?table=moves&key=id", "names no table"),
        ("delta:lake?append=id", "in PostgreSQL or SQLite"),
        ("events.parquet", "not a source of events"),
    ],
)
def test_what_is_no_source_is_refused_and_no_password_is_repeated(tmp_path: Path, source: str, said: str) -> None:
    with pytest.raises(lw.InvalidParameter, match=said) as caught:
        made(make_city(tmp_path), source)
    assert "secret" not in str(caught.value)
    with pytest.raises(lw.InvalidParameter, match="There is no monitor"):
        open_monitor(tmp_path / "lapwing.toml", "m")


# ---- places ----------------------------------------------------------------------------------------------------------


def test_a_place_remembers_what_was_read() -> None:
    place = ReadPosition().with_line(10).with_keys([12, 13, 17]).with_keys([15, 14])
    assert place == ReadPosition(10, ((12, 15), (17, 17)))
    assert ReadPosition.from_text(place.to_text()) == place
    assert place.greatest == 17
    assert place.with_line(13) == ReadPosition(13, ((14, 15), (17, 17)))
    assert place.with_line(17) == ReadPosition(17)
    unread = place.unread("k")
    found = [k for k in range(20) if eval(_in_python(unread), {"k": k})]
    assert found == [11, 16, 18, 19]


def _in_python(condition: str) -> str:
    condition = re.sub(r"k BETWEEN (\d+) AND (\d+)", r"\1 <= k <= \2", condition)
    return condition.replace("AND", "and").replace("NOT", "not")


@pytest.mark.long
def test_many_rows_are_read_a_part_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lapwing.monitors.table_source.MOST_ROWS", 7)
    events = events_of(number=50)
    with closing(sqlite3.connect(tmp_path / "events.db")) as database, database:
        database.execute("CREATE TABLE moves (person TEXT, at TIMESTAMP, cell TEXT, pay INTEGER)")
        rows = [(e.person, (START + timedelta(seconds=e.at)).isoformat(" "), e.cell, e.pay) for e in events]
        database.executemany("INSERT INTO moves VALUES (?, ?, ?, ?)", rows)
    portions, honest = [], GrowingTable.portions

    def counted(source: GrowingTable, known: Any) -> Iterator[Any]:
        for portion in honest(source, known):
            portions.append(portion.place)
            yield portion

    monkeypatch.setattr(GrowingTable, "portions", counted)
    with made(make_city(tmp_path), "sqlite:events.db?append=rowid#moves") as monitor:
        told = truth.told(monitor.run(replay=True))
    assert len(portions) == 8
    assert truth.off_by(told, truth.counts([event for event in events if event.cell in CELLS])) <= 2


def test_a_key_that_is_not_there_is_said(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "events.db")) as database, database:
        database.execute("CREATE TABLE moves (person TEXT, at TIMESTAMP, cell TEXT, pay INTEGER)")
        database.execute("INSERT INTO moves VALUES ('p1', '2026-03-02 00:00:01', 'north', 1)")
    said = list[str]()

    class Enough(Exception):
        pass

    def wait(_seconds: float) -> None:
        raise Enough

    with made(make_city(tmp_path), "sqlite:events.db?append=nothing#moves") as monitor, pytest.raises(Enough):
        list(monitor.run(replay=True, wait=wait, waiting=said.append))
    assert "not an integer key" in said[0]

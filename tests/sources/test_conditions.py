"""Conditions on the rows of a source: it leaves out the others, and by every door the same ones are left."""

import sqlite3
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.catalog.condition import Condition, conditions_of
from lapwing.catalog.section import TomlSection
from lapwing.catalog.source_address import SourceAddress, read_address
from lapwing.catalog.toml import dumps, loads
from lapwing.engines import open_engine
from lapwing.errors import CatalogError, DataFault
from lapwing.opening import open_session
from lapwing.sources import delivery, fetch, parquet, postgresql, restricting, sqlite
from lapwing.sources.conforming import conformed
from lapwing.sources.restricting import fulfilled
from tests.sources.test_doors import DOORS, ROWS
from tests.support.effort import one_in, only, some
from tests.support.sources import rows
from tests.support.sources.flight_sql import Server
from tests.support.sources.rows import QUESTIONS, exact, fetched

Row = Mapping[str, Any]
"""A row, as Python has it."""

DAY = max(day for day in ROWS["day"].to_pylist() if day is not None and day < date(2024, 7, 1))
FIRST, LAST = datetime(2024, 1, 15, 23, 30), datetime(2024, 3, 1)
CASES: dict[str, tuple[str, Callable[[Row], bool]]] = {
    "texts": ('plan = ["a", "ß", "é"]', lambda row: row["plan"] in ("a", "ß", "é")),
    "from an integer": ("person = { lower = 50 }", lambda row: row["person"] is not None and row["person"] >= 50),
    "two columns": (
        "person = [3, 7, 11, 70], insured = [true]",
        lambda row: row["person"] in (3, 7, 11, 70) and row["insured"] is True,
    ),
    "days": (
        f"day = {{ lower = 2024-02-01, upper = {DAY} }}",
        lambda row: row["day"] is not None and date(2024, 2, 1) <= row["day"] <= DAY,
    ),
    "times": (
        "at = { lower = 2024-01-16T00:30:00+01:00, upper = 2024-03-01T00:00:00Z }",
        lambda row: row["at"] is not None and FIRST <= row["at"] <= LAST,
    ),
    "days and texts": (
        'plan = ["a", "B"], day = [2024-02-01, 2024-03-05, 2024-04-01, 2023-12-25]',
        lambda row: (
            row["plan"] in ("a", "B")
            and row["day"] in (date(2024, 2, 1), date(2024, 3, 5), date(2024, 4, 1), date(2023, 12, 25))
        ),
    ),
    "nothing": ('plan = ["\'; DROP TABLE visits; --"]', lambda row: False),
}
"""What a catalog says, and the rows that are meant by it."""


def kept(case: str) -> pa.Table:
    """Return the rows that are meant."""
    return pa.Table.from_pylist([row for row in ROWS.to_pylist() if CASES[case][1](row)], schema=ROWS.schema)


@pytest.fixture
def delivered(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The streams of rows as sources delivered them."""
    streams: list[Any] = []
    made = delivery.DeliveredBatches

    def streaming(*given: Any) -> Any:
        streams.append(made(*given))
        return streams[-1]

    monkeypatch.setattr(delivery, "DeliveredBatches", streaming)
    return streams


@pytest.fixture(scope="module")
def meant(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, int]]:
    """The digests and numbers of the rows that are meant, of which the source has no others.

    Their exact integers are those of a plain file beside a catalog without conditions.
    """
    found = {}
    for case, (said, _) in some(3, CASES.items()):
        folder = tmp_path_factory.mktemp("meant")
        source = rows.fill_parquet(folder / "there.parquet", kept(case))
        made, snapshot = fetched(folder, source, unit="row", more=f"where = {{ {said} }}")
        found[case] = (snapshot.digests["visits"], kept(case).num_rows)
        plain = rows.catalog(folder, "there.parquet", unit="row")
        assert [exact(made, text) for text in QUESTIONS] == [exact(plain, text) for text in QUESTIONS]
    return found


@pytest.mark.long
@pytest.mark.parametrize("door", only([0], [door for door in DOORS if "store" not in door]))
def test_the_same_rows_are_left_by_every_door(
    door: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    meant: dict[str, tuple[str, int]],
    delivered: list[Any],
) -> None:
    source = DOORS[door](tmp_path, request)
    for case, (said, _) in some(3, CASES.items()):
        _, snapshot = fetched(tmp_path, source, unit="row", more=f"where = {{ {said} }}")
        assert (snapshot.digests["visits"], snapshot.tables["visits"].rows) == meant[case], case
        sent, days = delivered[-1].rows, door in ("sqlite", "flight_sql", "adbc") and "at =" in said
        assert sent == meant[case][1] or (days and meant[case][1] <= sent < ROWS.num_rows), f"{case}: others were sent"


def test_conditions_are_part_of_what_the_data_are(tmp_path: Path) -> None:
    """The same rows, taken by another rule, are another table, of which another host would make something else."""
    source = rows.fill_parquet(tmp_path / "there.parquet", kept("texts"))
    rules = ("", "where = { plan = ['a', 'ß', 'é'] }", "where = { plan = ['é', 'ß', 'a'] }",
             "where = { plan = ['a', 'ß', 'é', 'z'] }", "where = { plan = ['aßé'] }")  # fmt: skip
    made = [fetched(tmp_path, source, unit="row", more=rule) for rule in rules]
    digests = [snapshot.digests["visits"] for _, snapshot in made]
    assert digests[1] == digests[2]
    assert len(set(digests)) == 4
    assert [catalog.tables[0].digest for catalog, _ in made].count(made[1][0].tables[0].digest) == 2
    assert len({catalog.digest for catalog, _ in made}) == 4


def test_a_source_that_sends_too_much_is_put_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delivered: list[Any]
) -> None:
    """The planted bug of one side: a source that passes over conditions, as a driver may its parameters."""
    source = rows.fill_sqlite(tmp_path / "clinic.db", ROWS)
    said = f"where = {{ {CASES['days'][0]} }}"
    right = fetched(tmp_path, source, unit="row", more=said)[1].digests
    monkeypatch.setattr(sqlite, "where_clause", lambda *_: ("", []))
    assert fetched(tmp_path, source, unit="row", more=said)[1].digests == right
    assert [stream.rows for stream in delivered] == [kept("days").num_rows, ROWS.num_rows]


def test_a_source_that_leaves_out_too_much_would_be_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, meant: dict[str, tuple[str, int]]
) -> None:
    """The planted bug of the other side: the last day is left out by the source."""
    source = rows.fill_sqlite(tmp_path / "clinic.db", ROWS)
    clause = sqlite.where_clause

    def shorter(*given: Any) -> Any:
        text, values = clause(*given)
        return text.replace("<=", "<"), values

    monkeypatch.setattr(sqlite, "where_clause", shorter)
    _, snapshot = fetched(tmp_path, source, unit="row", more=f"where = {{ {CASES['days'][0]} }}")
    assert (snapshot.digests["visits"], snapshot.tables["visits"].rows) != meant["days"]


# ---- who evaluates them ----------------------------------------------------------------------------------------------


@pytest.mark.long
def test_postgresql_reads_the_partitions_that_are_wanted(postgres: str, tmp_path: Path) -> None:
    """And values reach it as values: COPY has no parameters, so a setting of the transaction holds each of them."""
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE TABLE visits (person int, day date, site text) PARTITION BY RANGE (day)")
        for year in (2022, 2023, 2024):
            bounds = f"FROM ('{year}-01-01') TO ('{year + 1}-01-01')"
            connection.execute(f"CREATE TABLE visits_{year} PARTITION OF visits FOR VALUES {bounds}")
            rows_of_year = f"SELECT n, DATE '{year}-01-01' + n, 'it''s' FROM generate_series(1, 300) n"
            connection.execute(f"INSERT INTO visits {rows_of_year}")
        columns = {"person": '{ type = "integer" }', "day": '{ type = "date" }', "site": '{ type = "string" }'}
        said = """where = { day = { lower = 2023-06-01, upper = 2023-12-31 }, site = ["it's", "x'; --"] }"""
        made, snapshot = fetched(tmp_path, f"{postgres}#visits", columns=columns, unit="row", more=said)
        assert snapshot.tables["visits"].rows == 300 - 150
        with postgresql.state(read_address(f"{postgres}#visits"), tmp_path) as state:
            assert isinstance(state, postgresql.PostgresState)
            clause = state._clause(("public", "visits"), made.tables[0].where)
            read = ", ".join(f"current_setting('{name}')" for name in state._handed.values())
            (values,) = state._ask(f"SELECT {read}")
        assert "2023" not in clause
        assert "it's" not in clause
        assert list(values) == ["2023-06-01", "2023-12-31", "it's", "x'; --"]
        for number, value in enumerate(values, start=1):
            connection.execute("SELECT set_config(%s, %s, false)", (f"lapwing.value_{number}", value))
        plan = "\n".join(row[0] for row in connection.execute(f"EXPLAIN (ANALYZE) SELECT * FROM visits{clause}"))
        assert "visits_2023" in plan
        assert "visits_2022" not in plan
        assert "visits_2024" not in plan


@pytest.mark.long
def test_postgresql_leaves_out_by_whatever_kind_of_column(postgres: str, tmp_path: Path) -> None:
    """Texts that a collation takes for equal are not, nor is a number that is kept as text lost."""
    with psycopg.connect(postgres, autocommit=True) as connection:
        for statement in (
            "CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level1', deterministic = false)",
            "CREATE TYPE sort AS ENUM ('warm', 'cold')",
            "CREATE TABLE visits (blind text COLLATE blind, fixed char(4), kind sort, small smallint, number text, "
            "at timestamp)",
            "INSERT INTO visits VALUES ('a', 'ab', 'warm', 1, '7', '2024-01-01'), ('A', 'ab', 'cold', 2, '07', "
            "'infinity'), ('á', 'abc', 'warm', 1, 'seven', NULL)",
        ):
            connection.execute(statement)
    columns = dict.fromkeys(("blind", "fixed", "kind"), '{ type = "string" }')
    columns |= dict.fromkeys(("small", "number"), '{ type = "integer" }') | {"at": '{ type = "timestamp" }'}
    for said, count in (
        ('blind = ["a"]', 1), ('fixed = ["ab"]', 2), ('kind = ["warm"]', 2), ('kind = ["tepid"]', 0),
        ("small = [1]", 2), ("small = [9223372036854775807]", 0), ("number = [7]", 2),
        ("at = { lower = 2023-01-01T00:00:00Z }", 2), ("at = { upper = 2024-01-01T00:00:00Z }", 1),
    ):  # fmt: skip
        _, snapshot = fetched(tmp_path, f"{postgres}#visits", columns=columns, unit="row", more=f"where = {{ {said} }}")
        assert snapshot.tables["visits"].rows == count, said


def test_values_reach_a_driver_beside_the_statement(tmp_path: Path, flight_server: Server) -> None:
    flight_server.tables["visits"] = ROWS
    said = 'where = { plan = ["a"], day = { lower = 2024-02-01 } }'
    fetched(tmp_path, f"{flight_server.address}#visits", unit="row", more=said)
    asked = [text for text in flight_server.texts if "COUNT" in text]
    assert asked == ['SELECT COUNT(*) FROM "visits" WHERE "plan" IN (?) AND "day" >= ?'] * len(asked)
    assert flight_server.values[0] == ["a", date(2024, 2, 1)]


@pytest.mark.long
def test_sqlite_reads_values_by_what_they_mean(tmp_path: Path) -> None:
    """Whatever kind of value stands there: the same rows as by `restricting` alone."""
    with sqlite3.connect(tmp_path / "clinic.db") as connection:
        connection.execute("CREATE TABLE visits (n, flag, at, plan TEXT COLLATE NOCASE)")
        connection.executemany(
            "INSERT INTO visits VALUES (?, ?, ?, ?)",
            [(5, 1, "2024-01-01 00:00:00", "a"), ("05", "true", "2024-01-01T00:00:00", "A"), (6, 0, "2024-01-02", "b"),
             ("five", "false", "2023-12-31 23:59:59.5Z", None), (None, None, None, "a\0b")],
        )  # fmt: skip
    connection.close()
    columns = {"n": '{ type = "integer" }', "flag": '{ type = "boolean" }', "at": '{ type = "timestamp" }'}
    columns["plan"] = '{ type = "string" }'
    for said, count in (
        ("n = [5]", 2), ("n = { upper = 5 }", 2), ("flag = [true]", 2), ("flag = [false]", 2), ('plan = ["a"]', 1),
        ("at = { lower = 2024-01-01T00:00:00Z }", 2), ("at = { upper = 2023-12-31T23:59:59.5Z }", 1),
    ):  # fmt: skip
        source = "sqlite:clinic.db#visits"
        _, snapshot = fetched(tmp_path, source, columns=columns, unit="row", more=f"where = {{ {said} }}")
        assert snapshot.tables["visits"].rows == count, said


AWKWARD = (
    5, "5", "05", 5.0, 5.5, 2**53 + 1, str(2**53 + 1), 1, "1", 0, "true", "TRUE", "five", "", b"5", None, 1e300,
    "9" * 40, "2024-01-05", "2024-01-05 00:00:00", "2024-01-05T12:00:00Z", "2024-1-5",
)  # fmt: skip
SAID = {
    "integer": ("v = [5, 1, 9007199254740993]", "v = { lower = 2 }"),
    "string": ('v = ["5", "5.0", "9007199254740993", "5.5", "1e+300"]',),
    "boolean": ("v = [true]", "v = [false]"),
    "date": ("v = [2024-01-05]", "v = { upper = 2024-01-05 }"),
    "timestamp": ("v = { lower = 2024-01-05T00:00:00Z }",),
}


@pytest.mark.parametrize("harm", only([0], ["", "by conforming alone", "with doubles"]))
def test_other_rows_do_not_decide_about_a_row(harm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each value alone, and all together. The planted bugs: what is read otherwise beside a text."""
    if harm == "by conforming alone":
        monkeypatch.setattr(restricting, "_read", conformed)
    if harm == "with doubles":
        clause = sqlite.where_clause

        def more(*given: Any) -> Any:
            text, values = clause(*given)
            return text.replace("'text'", "'text', 'real'"), values

        monkeypatch.setattr(sqlite, "where_clause", more)
    asked = [(said, kind) for kind, conditions in SAID.items() for said in conditions]
    with sqlite.state(_values(tmp_path / "v.db", AWKWARD), tmp_path) as state:
        together = {said: _kept(state, said, kind) for said, kind in asked}
    alone: dict[str, list[int]] = {said: [] for said, _ in asked}
    for place, value in enumerate(AWKWARD):
        with sqlite.state(_values(tmp_path / "v.db", [value]), tmp_path) as state:
            for said, kind in asked:
                alone[said] += [place] * len(_kept(state, said, kind))
    assert ([said for said, _ in asked if together[said] != alone[said]] == []) == (not harm)


def _values(file: Path, values: Sequence[object]) -> SourceAddress:
    with sqlite3.connect(file) as connection:
        connection.execute("DROP TABLE IF EXISTS visits")
        connection.execute("CREATE TABLE visits (place INTEGER, v)")
        connection.executemany("INSERT INTO visits VALUES (?, ?)", enumerate(values))
    connection.close()
    return read_address(f"sqlite:{file.name}#visits")


def _kept(state: Any, said: str, kind: str) -> list[int]:
    """Return the places of the values that are left, by the source and by what is done after it."""
    (condition,) = conditions_of(TomlSection(path="where", content=tomllib.loads(said)))
    assert condition.type == kind
    places = []
    for batch in state.batches(("visits",), ["place", "v"], [condition]):
        if batch.num_rows:
            places += batch.filter(fulfilled(batch.column("v"), condition)).column("place").to_pylist()
    return sorted(places)


@pytest.mark.long
def test_folders_of_other_values_are_not_opened(tmp_path: Path) -> None:
    (tmp_path / "split").mkdir()
    for month in ("1", "02", "__HIVE_DEFAULT_PARTITION__"):
        inside = tmp_path / "split" / f"month={month}"
        inside.mkdir()
        pq.write_table(ROWS.slice(0, 50), inside / "rows.parquet")
    broken = tmp_path / "split" / "month=3"
    broken.mkdir()
    (broken / "rows.parquet").write_bytes(b"PAR1 and nothing else")
    columns = {"plan": rows.COLUMNS["plan"], "month": '{ type = "integer" }'}

    def taken(said: str) -> int:
        more = f"where = {{ month = {said} }}" if said else ""
        _, snapshot = fetched(tmp_path, "parquet:split", columns=columns, unit="row", more=more)
        return snapshot.tables["visits"].rows

    assert (taken("[1]"), taken("[2]"), taken("{ upper = 2 }"), taken("[7]")) == (50, 50, 100, 0)
    with pytest.raises(DataFault, match="cannot be read"):
        taken("")
    with pytest.raises(DataFault, match="cannot be read"):
        taken("[3]")
    with parquet.state(read_address("parquet:split"), tmp_path) as state:
        assert isinstance(state, parquet.ParquetState)
        files, _ = state._wanted([Condition(column="month", values=(2,))])
        assert [Path(name).parent.name for name in files.files] == ["month=02"]


@pytest.mark.long
def test_partitions_of_lakes_are_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of other partitions may even be gone."""
    from deltalake import write_deltalake

    short = ROWS.filter(pa.compute.less(pa.compute.utf8_length(ROWS["plan"]), 9))  # of NULL it is not known
    write_deltalake(str(tmp_path / "lake"), short, partition_by=["plan"])
    for file in (tmp_path / "lake").glob("plan=B/*.parquet"):
        file.unlink()
    said = 'where = { plan = ["a", "ß"] }'
    found = fetched(tmp_path, "delta:lake", unit="row", more=said)[1].tables["visits"].rows
    assert found == sum(row["plan"] in ("a", "ß") for row in ROWS.to_pylist())
    with pytest.raises(DataFault, match="cannot be read to its end"):
        fetched(tmp_path, "delta:lake", unit="row")


@pytest.mark.long
@pytest.mark.parametrize("door", one_in(4, ["postgresql", "sqlite", "delta", "iceberg"]))
def test_what_came_since_is_added_by_the_same_conditions(
    door: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    from tests.sources import test_increments

    source, add = getattr(test_increments, door)(tmp_path, request)
    add(ROWS)
    said = f"where = {{ {CASES['days'][0]} }}"
    made = rows.catalog(tmp_path, source, unit="row", more=said)
    fetch(made)
    for number in range(2):
        add(rows.visits(60, seed=number + 5))
        assert fetch(made).digests == fetch(made, whole=True).digests
    other = rows.catalog(tmp_path, source, unit="row")
    assert fetch(other).tables["visits"].rows == ROWS.num_rows + 120, "other conditions begin anew"


# ---- by hand, and in public ------------------------------------------------------------------------------------------


@pytest.mark.long
def test_from_python_and_in_what_is_said_of_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = rows.fill_sqlite(tmp_path / "clinic.db", ROWS)
    options: dict[str, Any] = {"privacy_unit": "person", "epsilon": 3, "delta": 1e-6, "max_rows_per_unit": 3}
    where = {"plan": ["a", "ß"], "at": (datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 6, 30))}
    with lw.protect(source, where=where, **options) as session:
        said = str(session.tables["visits"])
        assert (
            "of which plan is a or ß and at is from 2024-01-01T00:00:00+00:00 up to 2024-06-30T00:00:00+00:00" in said
        )
        digest = session.catalog.digest
    with lw.protect(source, **options) as session:
        assert session.catalog.digest == digest, "what is left out stays as it was"
    with pytest.raises(lw.CatalogMismatch, match="where was"):
        lw.protect(source, where={"plan": ["a"]}, **options)
    with pytest.raises(CatalogError, match="is the privacy unit"):
        lw.protect(source, where={"person": [1]}, **{**options, "epsilon": 4})


REFUSED = {
    "where = 3": "where: 3 is an integer; write a section",
    'where = { plan = "a" }': "where.plan: write a list like",
    "where = { person = [1] }": "where.person: is the privacy unit",
    'where = { town = ["a"] }': "where.town: no such column is declared; the columns are",
    "where = { weight = { lower = 1 } }": "where.weight: the column is of type float; bounds may be given for",
    "where = { at = [2024-01-01T00:00:00Z] }": "where.at: the column is of type timestamp; a list of values may",
    'where = { plan = { lower = "a" } }': 'where.plan.lower: "a" is a string',
    "where = { plan = [1] }": "where.plan: 1 is not of type string",
    'where = { plan = ["a\\u0000"] }': "where.plan: has a text that a source cannot store",
    "where = { day = [] }": "where.day: lists 0 values",
    "where = { day = { } }": "where.day: has no condition",
    "where = { day = { below = 2024-01-01 } }": 'where.day: unknown "below"',
    "where = { day = { lower = 2024-02-01, upper = 2024-01-01 } }": "where.day: lower = 2024-02-01 is above",
    "where = { day = { lower = 2024-02-01T00:00:00Z } }": "is not of type date",
    "people = 9\nwhere = { insured = [true] }": "people: ",
}


@pytest.mark.parametrize("said", REFUSED)
def test_conditions_that_cannot_be_meant(said: str, tmp_path: Path) -> None:
    with pytest.raises(CatalogError) as refused:
        rows.catalog(tmp_path, "sqlite:clinic.db#visits", more=said)
    assert REFUSED[said] in str(refused.value)
    assert "tables.visits." in str(refused.value)


def test_of_files_all_rows_are_read(tmp_path: Path) -> None:
    """Whoever puts conditions to a file by hand does not get all of its rows for an answer about some."""
    pq.write_table(ROWS, tmp_path / "there.parquet")
    said = "where = { insured = [true] }"
    with pytest.raises(CatalogError, match="where: is only for tables that come from sources"):
        rows.catalog(tmp_path, "there.parquet", more=said)
    made = rows.catalog(tmp_path, "sqlite:clinic.db#visits", more=said)
    by_hand = made.with_table(replace(made.tables[0], source="there.parquet"))
    with pytest.raises(CatalogError, match="where: is only for tables that come from sources"):
        open_engine(by_hand)


def test_a_catalog_is_written_as_it_was_read(tmp_path: Path) -> None:
    said = ", ".join(CASES[case][0] for case in ("from an integer", "days and texts", "times"))
    made = rows.catalog(tmp_path, "sqlite:clinic.db#visits", more=f"where = {{ {said}, insured = [true] }}", unit="row")
    assert len(made.tables[0].where) == 5
    assert loads(dumps(made), file="lapwing.toml", folder=tmp_path) == made


@pytest.mark.parametrize("harm", only([0], [False, True]))
def test_rows_that_were_taken_by_other_conditions_do_not_answer(
    harm: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does a catalog of another host whose conditions differ. The planted bug: what is there is what is meant."""
    source = rows.fill_sqlite(tmp_path / "clinic.db", rows.visits(4_000))
    before = rows.catalog(tmp_path, source, more="where = { insured = [true] }")
    assert lw.refresh_data(before) == 1
    after = rows.catalog(tmp_path, source, more="where = { insured = [false] }")
    text = "SELECT COUNT_IF(insured) AS insured FROM visits"
    if harm:
        monkeypatch.setattr("lapwing.sources.snapshots.Fetched.require_conditions", lambda *_: None)
        with open_session(after) as session:
            assert session.sql(text, epsilon=1).rows(), "rows that the catalog leaves out were counted"
        return
    with open_session(after) as session:
        spent = session.budget().spent
        with pytest.raises(DataFault, match=r"are missing, or cannot be read") as missing:
            session.sql(text, epsilon=1)
        assert (missing.value.charged, missing.value.command) == (False, "`lapwing data refresh`")
        with pytest.raises(DataFault, match=r"fetched under other conditions than the catalog has now.* `lapwing data"):
            session.accept_data()
        assert (session.budget().spent, session.budget().version) == (spent, 1)
        assert lw.refresh_data(after) == 2
        (row,) = session.sql(text, epsilon=5).rows()
        assert abs(int(str(row["insured"]))) < 100, "nobody of those who are left is insured"
    with open_session(before) as session, pytest.raises(DataFault, match="Nothing was charged"):
        session.sql(text, epsilon=1)

"""Public tables that come from sources, and references between tables that do: answers are those of files."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import loads
from lapwing.cli import main
from lapwing.engines import open_engine
from lapwing.errors import CatalogError, DataFault
from lapwing.opening import open_session
from lapwing.sources import fetch
from lapwing.sources.postgresql import PostgresState
from tests.support.effort import one_in
from tests.support.sources import rows
from tests.support.sources.rows import exact, visits

ROWS = visits()
TARIFFS = pa.table(
    {
        "code": pa.array(["a", "B", "ß", "x", None]),
        "level": pa.array([3, 1, 2, 9, 4], pa.int64()),
        "fee": pa.array([1.5, None, -2.25, 0.0, 7.0]),
    }
)
QUESTIONS = (
    "SELECT level, COUNT(*) FROM visits JOIN tariffs ON plan = code GROUP BY level",
    "SELECT SUM(fee), SUM(level) FROM visits JOIN tariffs ON plan = code",
)
PUBLIC = """
[tables.tariffs]
public = true
source = '{source}'
{more}
[tables.tariffs.columns]
code = {{ type = "string" }}
level = {{ type = "integer" }}
fee = {{ type = "float", lower = -10, upper = 10, step = 0.25 }}
"""


def catalog(folder: Path, protected: str, public: str, more: str = "") -> Catalog:
    """Return a catalog of visits, and of public tariffs that they may be joined with."""
    rows.catalog(folder, protected)
    file = folder / "lapwing.toml"
    file.write_text(file.read_text() + PUBLIC.format(source=public, more=more))
    return loads(file.read_text(), file="lapwing.toml", folder=folder)


def from_postgresql(folder: Path, request: pytest.FixtureRequest) -> str:
    url = request.getfixturevalue("postgres")
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE tariffs (code text, level int, fee double precision)")
        with connection.cursor() as cursor:
            values = [tuple(row.values()) for row in TARIFFS.to_pylist()]
            cursor.executemany("INSERT INTO tariffs VALUES (%s, %s, %s)", values)
    return f"{url}#public.tariffs"


def from_sqlite(folder: Path, _: pytest.FixtureRequest) -> str:
    import sqlite3

    with sqlite3.connect(folder / "codes.db") as connection:
        connection.execute("CREATE TABLE tariffs (code TEXT, level INTEGER, fee REAL)")
        connection.executemany("INSERT INTO tariffs VALUES (?, ?, ?)", [tuple(r.values()) for r in TARIFFS.to_pylist()])
    connection.close()
    return "sqlite:codes.db#tariffs"


def from_delta(folder: Path, _: pytest.FixtureRequest) -> str:
    return rows.fill_delta(folder / "tariffs", TARIFFS)


def from_iceberg(folder: Path, request: pytest.FixtureRequest) -> str:
    rows.know_iceberg(folder, request.getfixturevalue("monkeypatch"))
    return rows.fill_iceberg(folder, TARIFFS, "tariffs")


def from_parquet(folder: Path, _: pytest.FixtureRequest) -> str:
    return rows.fill_parquet(folder / "tariffs.parquet", TARIFFS)


def from_flight_sql(folder: Path, request: pytest.FixtureRequest) -> str:
    server = request.getfixturevalue("flight_server")
    server.tables["tariffs"] = TARIFFS
    return f"{server.address}#tariffs"


DOORS = (from_postgresql, from_sqlite, from_delta, from_iceberg, from_parquet, from_flight_sql)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[object], str]:
    """The answers over files, and the digest of what is fetched."""
    folder = tmp_path_factory.mktemp("reference")
    pq.write_table(ROWS, folder / "there.parquet")
    source = rows.fill_parquet(folder / "tariffs.parquet", TARIFFS)
    answers: list[object] = [exact(catalog(folder, "there.parquet", "tariffs.parquet"), text) for text in QUESTIONS]
    return answers, fetch(catalog(folder, "there.parquet", source)).public["tariffs"].digest


@pytest.mark.long
@pytest.mark.parametrize("door", one_in(6, DOORS))
def test_a_public_table_by_every_door(
    door: Callable[..., str], tmp_path: Path, request: pytest.FixtureRequest, reference: tuple[list[object], str]
) -> None:
    pq.write_table(ROWS, tmp_path / "there.parquet")
    made = catalog(tmp_path, "there.parquet", door(tmp_path, request))
    with pytest.raises(DataFault, match="public data of tariffs come from a source, and were not fetched yet"):
        open_engine(made)
    assert fetch(made).public["tariffs"].digest == reference[1]
    assert [exact(made, text) for text in QUESTIONS] == reference[0]


@pytest.mark.long
def test_both_come_from_one_state(
    postgres: str, tmp_path: Path, request: pytest.FixtureRequest, reference: tuple[list[object], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Of one database both are read in one transaction, whatever is committed in between."""
    public = from_postgresql(tmp_path, request)
    made = catalog(tmp_path, rows.fill_postgres(postgres, ROWS), public)
    counted = PostgresState.rows

    def later(self: PostgresState, table: tuple[str, ...], *rest: Any) -> int | None:
        if table[-1] == "tariffs":
            with psycopg.connect(postgres) as other:
                other.execute("DELETE FROM tariffs")
        return counted(self, table, *rest)

    monkeypatch.setattr(PostgresState, "rows", later)
    snapshot = fetch(made)
    assert (snapshot.tables["visits"].rows, snapshot.public["tariffs"].digest) == (ROWS.num_rows, reference[1])
    assert [exact(made, text) for text in QUESTIONS] == reference[0]


def test_some_rows_of_a_public_table(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    pq.write_table(ROWS, tmp_path / "there.parquet")
    more = 'where = { level = { upper = 2 }, code = ["a", "B"] }'
    made = catalog(tmp_path, "there.parquet", from_sqlite(tmp_path, request), more)
    assert fetch(made).public["tariffs"].rows == 1
    assert set(exact(made, QUESTIONS[0])) == {(1,)}
    other = catalog(tmp_path, "there.parquet", made.public_tables[0].source, "where = { level = [3] }")
    with pytest.raises(DataFault, match="fetched under other conditions than the catalog has now"):
        open_engine(other)
    with pytest.raises(CatalogError, match=r"tables.tariffs.where: is only for tables that come from sources"):
        catalog(tmp_path, "there.parquet", "tariffs.parquet", more)


@pytest.mark.long
def test_a_session_keeps_the_public_table_that_it_began_with(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """And an answer is of one table: what was bought before is bought anew of another one."""
    made = catalog(tmp_path, rows.fill_sqlite(tmp_path / "clinic.db", visits(4_000)), from_sqlite(tmp_path, request))
    fetch(made)
    text = "SELECT level, COUNT(*) AS n FROM visits JOIN tariffs ON plan = code GROUP BY level"
    with open_session(made) as session:
        before = session.sql(text, epsilon=1).rows()
        rows_of(tmp_path, "UPDATE tariffs SET level = 7 WHERE code = 'a'")
        assert lw.refresh_data(made) == 1, "of public tables there are no versions"
        assert session.sql(text, epsilon=1).rows() == before
        spent = session.budget().spent
        assert {row["level"] for row in session.sql(text, epsilon=2).rows()} == {1, 2, 3, 9}
        with open_session(made) as fresh:
            assert {row["level"] for row in fresh.sql(text, epsilon=1).rows()} == {1, 2, 7, 9}
            assert fresh.budget().spent != spent
    public = tmp_path / "visits.lapwing.public"
    rows_of(tmp_path, "UPDATE tariffs SET level = 8 WHERE code = 'a'")
    fetch(made)
    assert len([path for path in public.iterdir() if path.is_dir()]) == 1, "what nobody has open any more is removed"
    assert not public.stat().st_mode & 0o077


def rows_of(folder: Path, statement: str) -> None:
    import sqlite3

    with sqlite3.connect(folder / "codes.db") as connection:
        connection.execute(statement)
    connection.close()


def test_what_is_protected_is_not_public(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Whatever else their addresses say."""
    source = from_sqlite(tmp_path, request)
    with pytest.raises(CatalogError, match=r"tables.tariffs.source: .* also the source of the protected table"):
        catalog(tmp_path, source.replace("#", "?append=rowid#"), source)


def test_a_snapshot_that_was_touched_is_refused(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    pq.write_table(ROWS, tmp_path / "there.parquet")
    made = catalog(tmp_path, "there.parquet", from_sqlite(tmp_path, request))
    fetch(made)
    (file,) = (tmp_path / "visits.lapwing.public").glob("*/*.parquet")
    pq.write_table(pq.read_table(file).slice(1), file)
    with pytest.raises(DataFault, match=r"is not what was fetched\. .*: `lapwing data refresh`"):
        open_engine(made)
    fetch(made)
    assert exact(made, QUESTIONS[0])


@pytest.mark.long
def test_at_the_command_line(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(ROWS, tmp_path / "visits.parquet")
    source = from_sqlite(tmp_path, request)
    options = ["--privacy-unit", "person", "--epsilon", "3", "--max-rows", "3", "--public", source]
    assert main(["init", "visits.parquet", *options]) == 0
    assert 'source = "sqlite:codes.db#tariffs"' in (tmp_path / "lapwing.toml").read_text()
    assert main(["data", "refresh"]) == 0
    captured = capsys.readouterr()
    assert "fetched  tariffs: 5 rows, public" in captured.err
    assert "Public tables were fetched" in captured.out
    assert main(["query", "SELECT level, COUNT(*) AS n FROM visits JOIN tariffs ON plan = code GROUP BY level",
                 "--epsilon", "1", "--format", "csv"]) == 0  # fmt: skip
    assert capsys.readouterr().out.splitlines()[0].startswith("level,n")


# ---- references ------------------------------------------------------------------------------------------------------

SHOP = """
[dataset]
name = "shop"
ledger = "sqlite:shop.db"
[budget]
epsilon = 1
[tables.sales]
source = '{sales}'
privacy_unit = "customer"
max_rows_per_unit = 100
unit = "person"
[tables.sales.columns]
customer = {{ type = "integer" }}
ticket = {{ type = "integer" }}
price = {{ type = "integer", lower = 0, upper = 100 }}
[tables.returns]
source = '{returns}'
privacy_unit = "r_customer"
max_rows_per_unit = 20
unit = "person"
[tables.returns.columns]
r_customer = {{ type = "integer" }}
r_ticket = {{ type = "integer" }}
[tables.returns.references.sales]
r_ticket = "ticket"
"""
SALES = pa.table({"customer": [1, 1, 2, 3, 3, 3], "ticket": [1, 2, 3, 4, 5, 6], "price": [5, 9, 11, 2, 80, 7]})
RETURNS = pa.table({"r_customer": [1, 2, 3, 3, 9, 2], "r_ticket": [2, 3, 5, 6, 1, 4]})
RETURNED = "SELECT COUNT(*), SUM(price) FROM sales JOIN returns ON ticket = r_ticket"


def shop(folder: Path, sales: str, returns: str) -> Catalog:
    return loads(SHOP.format(sales=sales, returns=returns), file="shop.toml", folder=folder)


@pytest.mark.long
def test_references_lead_between_tables_of_sources(postgres: str, tmp_path: Path) -> None:
    for name, table in (("sales", SALES), ("returns", RETURNS)):
        pq.write_table(table, tmp_path / f"{name}.parquet")
        with psycopg.connect(postgres) as connection, connection.cursor() as cursor:
            columns = ", ".join(f"{column} int" for column in table.column_names)
            cursor.execute(f"CREATE TABLE {name} ({columns})")
            marks = ", ".join(["%s"] * table.num_columns)
            cursor.executemany(f"INSERT INTO {name} VALUES ({marks})", [tuple(r.values()) for r in table.to_pylist()])
    files = exact(shop(tmp_path, "sales.parquet", "returns.parquet"), RETURNED)
    assert files == {(): (4, 9 + 11 + 80 + 7)}
    made = shop(tmp_path, f"{postgres}#sales", f"{postgres}#returns")
    fetch(made)
    assert exact(made, RETURNED) == files
    mixed = shop(tmp_path, "sales.parquet", f"{postgres}#returns")
    with pytest.raises(DataFault, match="refers to sales, which comes from another place"):
        fetch(mixed)


GRAPH = """
[dataset]
name = "town"
ledger = "sqlite:town.db"
[budget]
epsilon = 3
[tables.people]
source = "people.csv"
privacy_unit = "id"
max_rows_per_unit = 1
[tables.people.columns]
id = { type = "integer" }
[tables.friendships]
source = "sqlite:town.db#friendships"
rows_at_most = 20000
[tables.friendships.columns]
a = { type = "integer" }
b = { type = "integer" }
[graphs.friends]
nodes = "people"
edges = "friendships"
ends = ["a", "b"]
directed = false
privacy = "node"
"""


@pytest.mark.parametrize("table", ["friendships", "people"])
def test_graphs_are_of_files(table: str, tmp_path: Path) -> None:
    text = GRAPH
    if table == "people":
        text = text.replace("sqlite:town.db#friendships", "edges.csv").replace("people.csv", "sqlite:town.db#people")
    with pytest.raises(
        CatalogError, match=f"tables.{table}.source: comes from a source, but Lapwing reads graphs from files"
    ):
        loads(text, file="town.toml", folder=tmp_path)

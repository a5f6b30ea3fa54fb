"""Drivers that this project does not depend on, where a machine has them: each connects, lists, asks and is refused.

`pip install asyncpg pg8000 psycopg2-binary pyodbc` and Debian's `libpostgresql-jdbc-java`, `odbc-postgresql` and
`r-cran-rpostgresql` bring them. A test of a missing one is skipped.
"""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from tests.server.pgwire.test_clients import COUNT, PRICE, Wired, wired_in

pytestmark = pytest.mark.long
JDBC: Final = Path("/usr/share/java/postgresql.jar")
ODBC: Final = Path("/usr/lib/x86_64-linux-gnu/odbc/psqlodbcw.so")
BELOW: Final = "SELECT COUNT(*) AS n FROM visits WHERE code < "


@pytest.fixture(scope="module")
def wired(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wired]:
    with wired_in(tmp_path_factory.mktemp("wired")) as running:
        yield running


def bought(wired: Wired) -> list[tuple[Any, ...]]:
    """Return what each driver must get, because it is stored."""
    with wired.connect() as connection:
        return connection.execute(COUNT).fetchall()


def program(wired: Wired, command: Sequence[str], text: str = "", **more: str) -> list[str]:
    """Run a program in an environment that says where the service is, and return its lines."""
    environment = {**os.environ, "PORT": str(wired.port), "PGPASSWORD": wired.world.tokens["alice"], **more}
    done = subprocess.run(
        command, input=text, capture_output=True, text=True, timeout=120, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_asyncpg(wired: Wired) -> None:
    asyncpg = pytest.importorskip("asyncpg")

    async def asked() -> None:
        said: list[Any] = []
        expected = bought(wired)
        connection = await asyncpg.connect(
            host="127.0.0.1", port=wired.port, user="alice", password=wired.world.tokens["alice"], database="open",
            ssl=False, server_settings={"lapwing.epsilon": "0.5"},
        )  # fmt: skip
        connection.add_log_listener(lambda _, message: said.append(message.message))
        assert [tuple(row) for row in await connection.fetch(COUNT)] == expected
        assert said[0].startswith("free: bought before")
        assert isinstance(await connection.fetchval(f"{BELOW}$1", 5), int)
        listed = await connection.fetch("SELECT relname FROM pg_class WHERE relname = ANY($1::text[])", ["visits"])
        assert [tuple(row) for row in listed] == [("visits",)]
        listed = await connection.fetch("SELECT relname FROM pg_class WHERE relname = ANY($1)", ["visits"])
        assert [tuple(row) for row in listed] == [("visits",)]
        numbers = await connection.fetch("SELECT ARRAY[1, 2] AS a FROM pg_class WHERE oid = ANY($1::oid[])", [1259])
        assert numbers == await connection.fetch("SELECT conkey FROM pg_constraint")  # both have arrays of numbers
        async with connection.transaction():
            assert [tuple(row) async for row in connection.cursor(COUNT)] == expected
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.fetch("SELECT cost FROM visits")
        await connection.reset()
        await connection.close()

    asyncio.run(asked())


@pytest.mark.parametrize("name", ["pg8000.dbapi", "psycopg2"])
def test_other_drivers_of_python(wired: Wired, name: str) -> None:
    driver = pytest.importorskip(name)
    connection = driver.connect(
        host="127.0.0.1", port=wired.port, user="alice", password=wired.world.tokens["alice"], database="open"
    )
    cursor = connection.cursor()
    cursor.execute("SET lapwing.epsilon = 0.5")
    cursor.execute(COUNT)
    assert [tuple(row) for row in cursor.fetchall()] == bought(wired)
    cursor.execute(f"{BELOW}%s", (5,))
    assert len(cursor.fetchall()) == 1
    connection.commit()
    with pytest.raises(driver.Error):
        cursor.execute("SELECT cost FROM visits")
    connection.close()


def test_a_server_side_cursor_of_psycopg2(wired: Wired) -> None:
    driver = pytest.importorskip("psycopg2")
    connection = driver.connect(
        host="127.0.0.1", port=wired.port, user="alice", password=wired.world.tokens["alice"], dbname="open",
        options=PRICE,
    )  # fmt: skip
    cursor = connection.cursor(name="mine")
    cursor.itersize = 1
    cursor.execute(COUNT)
    assert list(cursor) == bought(wired)
    cursor.close()
    connection.close()


@pytest.mark.parametrize("more", ["", "UseDeclareFetch=1;", "UseServerSidePrepare=0;"])
def test_odbc(wired: Wired, more: str) -> None:
    pyodbc = pytest.importorskip("pyodbc")
    if not ODBC.exists():
        pytest.skip("psqlODBC is not installed")
    connection = pyodbc.connect(
        f"DRIVER={ODBC};SERVER=127.0.0.1;PORT={wired.port};DATABASE=open;UID=alice;PWD={wired.world.tokens['alice']};"
        f"SSLmode=disable;ConnSettings=SET lapwing.epsilon %3d 0.5;{more}"
    )
    cursor = connection.cursor()
    assert [tuple(row) for row in cursor.execute(COUNT).fetchall()] == bought(wired)
    assert len(cursor.execute(f"{BELOW}?", 5).fetchall()) == 1
    assert [row.table_name for row in cursor.tables()] == ["codes", "visits"]
    assert ("age", "int8") in [(row.column_name, row.type_name) for row in cursor.columns(table="visits")]
    for listed in (cursor.primaryKeys, cursor.foreignKeys, cursor.statistics):
        assert listed("visits").fetchall() == []
    assert cursor.getTypeInfo().fetchall()
    with pytest.raises(pyodbc.Error):
        cursor.execute("SELECT cost FROM visits")
    connection.close()


JAVA: Final = """
import java.sql.*;
public class Asked {
    static void show(ResultSet rows, int column) throws Exception {
        StringBuilder line = new StringBuilder();
        while (rows.next()) line.append(rows.getString(column)).append(' ');
        System.out.println(line.toString().trim());
    }
    public static void main(String[] none) throws Exception {
        java.util.Properties given = new java.util.Properties();
        given.put("user", "alice");
        given.put("password", System.getenv("PGPASSWORD"));
        given.put("options", "-c lapwing.epsilon=0.5");
        given.put("preferQueryMode", System.getenv("MODE"));
        String address = "jdbc:postgresql://127.0.0.1:" + System.getenv("PORT") + "/open";
        Connection c = DriverManager.getConnection(address, given);
        show(c.createStatement().executeQuery(System.getenv("COUNT")), 2);
        PreparedStatement p = c.prepareStatement("SELECT COUNT(*) AS n FROM visits WHERE plan = ? AND code < ?");
        for (int i = 0; i < 7; i++) {  // from the fifth time on by a name
            p.setString(1, "a");
            p.setInt(2, 5);
            p.executeQuery().close();
        }
        System.out.println(p.getMetaData().getColumnTypeName(1));
        DatabaseMetaData d = c.getMetaData();
        show(d.getTables(null, "public", "%", new String[] {"TABLE"}), 3);
        show(d.getColumns(null, "public", "visits", "%"), 4);
        show(d.getSchemas(), 1);
        System.out.println(d.getSQLKeywords().length() > 0);
        for (ResultSet r : new ResultSet[] {
            d.getCatalogs(), d.getTypeInfo(), d.getFunctions(null, null, "%"),
            d.getPrimaryKeys(null, "public", "visits"), d.getIndexInfo(null, "public", "visits", false, true),
            d.getImportedKeys(null, "public", "visits"),
            d.getTablePrivileges(null, "public", "visits"), d.getColumnPrivileges(null, "public", "visits", "%"),
        }) r.close();
        c.setReadOnly(true);
        c.setAutoCommit(false);
        Statement s = c.createStatement();
        s.setFetchSize(1);
        show(s.executeQuery(System.getenv("COUNT")), 2);
        c.commit();
        try {
            s.executeQuery("SELECT cost FROM visits");
        } catch (SQLException e) {
            System.out.println(e.getSQLState());
        }
        c.close();
    }
}
"""


@pytest.mark.skipif(not JDBC.exists() or shutil.which("java") is None, reason="pgjdbc is not installed")
@pytest.mark.parametrize("mode", ["extended", "simple"])
def test_pgjdbc(wired: Wired, tmp_path: Path, mode: str) -> None:
    source = tmp_path / "Asked.java"
    source.write_text(JAVA)
    lines = program(wired, ["java", "-cp", str(JDBC), str(source)], COUNT=COUNT, MODE=mode)
    counts = " ".join(str(n) for _, n in bought(wired))
    assert lines == [
        counts, "int8", "codes visits", "town plan age size day seen code cost", "information_schema pg_catalog public",
        "true", counts, "42501",
    ]  # fmt: skip


R: Final = """
library(RPostgreSQL)
c <- dbConnect(PostgreSQL(), host = "127.0.0.1", port = Sys.getenv("PORT"), user = "alice",
               password = Sys.getenv("PGPASSWORD"), dbname = "open", options = "-c lapwing.epsilon=0.5")
cat(dbGetQuery(c, Sys.getenv("COUNT"))$n, "\\n")
cat(sort(dbListTables(c)), "\\n")
cat(sort(dbListFields(c, "visits")), "\\n")
cat(dbExistsTable(c, "visits"), "\\n")
invisible(dbDisconnect(c))
"""


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed")
def test_rpostgresql(wired: Wired, tmp_path: Path) -> None:
    if subprocess.run(["Rscript", "-e", "library(RPostgreSQL)"], capture_output=True, check=False).returncode:
        pytest.skip("RPostgreSQL is not installed")
    script = tmp_path / "asked.R"
    script.write_text(R)
    counts = " ".join(str(n) for _, n in bought(wired))
    lines = [line.strip() for line in program(wired, ["Rscript", str(script)], COUNT=COUNT)]
    assert lines == [counts, "codes visits", "age code cost day plan seen size town", "TRUE"]


def test_adbc(wired: Wired) -> None:
    adbc = pytest.importorskip("adbc_driver_postgresql.dbapi")
    address = f"postgresql://alice:{wired.world.tokens['alice']}@127.0.0.1:{wired.port}/open"
    with adbc.connect(f"{address}?options=-c%20lapwing.epsilon%3D0.5") as connection, connection.cursor() as cursor:
        cursor.execute(COUNT)
        table = cursor.fetch_arrow_table().to_pydict()
        assert list(zip(table["plan"], table["n"], strict=True)) == bought(wired)
        cursor.execute(f"{BELOW}$1", (5,))
        assert len(cursor.fetchall()) == 1
        schema = connection.adbc_get_table_schema("visits")
        assert [str(field.type) for field in schema][:3] == ["string", "string", "int64"]
        assert connection.adbc_get_objects().read_all().num_rows == 1

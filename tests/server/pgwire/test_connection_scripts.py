"""What BI tools send while they connect and list tables: each statement is answered, in both protocols, for free.

The scripts in `tests/fixtures/pgwire/tools` have the statements of the tools, spelt by us. We recorded those of
Superset 6.1 (SQLAlchemy 1.4), and read the sources of Metabase, Grafana, Npgsql and RPostgres; the others are what the
tools are known to send: Metabase (`metabase/driver/postgres.clj`), Grafana (`postgresMetaQuery.ts`), RPostgres
(`tables.R`), Tableau (over JDBC) and Power BI (over Npgsql, `PostgresDatabaseInfo.cs`).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import psycopg
import pytest
from psycopg import pq

from lapwing.server.pgwire.statements import split
from tests.server.pgwire.test_clients import Wired, wired_in

VISITS: Final = {"town": 25, "plan": 25, "age": 20, "size": 20, "day": 1082, "seen": 1114, "code": 20, "cost": 701}
SCRIPTS: Final = sorted((Path(__file__).parents[2] / "fixtures" / "pgwire" / "tools").glob("*.sql"))


@pytest.fixture(scope="module")
def wired(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wired]:
    with wired_in(tmp_path_factory.mktemp("wired")) as running:
        yield running


def refused(done: pq.abc.PGresult) -> str | None:
    if done.status != pq.ExecStatus.FATAL_ERROR:
        return None
    return (done.error_message or b"").decode()


def rows_of(result: pq.abc.PGresult) -> list[list[bytes | None]]:
    return [[result.get_value(row, column) for column in range(result.nfields)] for row in range(result.ntuples)]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_what_a_tool_sends_while_it_connects_is_answered(wired: Wired, script: Path) -> None:
    statements = [one.text.encode() for one in split(script.read_text())]
    with wired.connect(options="", autocommit=True) as connection:
        wire = connection.pgconn
        done = [(sent, wire.exec_(sent)) for sent in statements]
        failed = {(sent, refused(result)) for sent, result in done}
        failed |= {(sent, refused(wire.exec_params(sent, [], result_format=0))) for sent in statements}
    assert {(sent, why) for sent, why in failed if why is not None} == set()
    assert any(b"visits" in row or b"public" in row for _, result in done for row in rows_of(result))
    assert wired.world.charges() == 0


def test_a_cursor_is_described_as_a_portal_is(wired: Wired) -> None:
    with wired.connect(options="") as connection, psycopg.ServerCursor(connection, "listed") as cursor:
        cursor.execute("SELECT relname FROM pg_class WHERE relname = 'visits'")
        assert [(one.name, one.type_code) for one in cursor.description or ()] == [("relname", 25)]
        assert cursor.fetchall() == [("visits",)]


def test_a_driver_that_writes_values_into_the_text_is_understood(wired: Wired) -> None:
    written = ("code < ('5'::int4)", "cost < ('5.5'::double precision)", "code > ('-5'::int8)", "plan = ('a'::varchar)")
    with wired.connect(autocommit=True) as connection:
        for condition in written:
            assert (
                connection.execute(f"SELECT COUNT(*) AS n FROM visits WHERE {condition} LIMIT 0".encode()).fetchall()
                == []
            )


def test_no_rows_are_free_and_have_their_types(wired: Wired) -> None:
    with wired.connect(options="", autocommit=True) as connection:
        shown = connection.execute("SELECT plan, COUNT(*) AS n FROM visits GROUP BY plan LIMIT 0")
        assert [(one.name, one.type_code) for one in shown.description or ()] == [("plan", 25), ("n", 20)]
        assert shown.fetchall() == []
        with pytest.raises(psycopg.errors.InvalidParameterValue):  # a cost is missing
            connection.execute("SELECT COUNT(*) AS n FROM (SELECT plan, 0 AS zero FROM visits) AS limit_0")
    assert wired.world.charges() == 0


def test_lists_of_filters_are_free_and_need_no_cost(wired: Wired) -> None:
    """As Superset, Metabase and Grafana ask for them."""
    texts = ("SELECT plan AS plan FROM public.visits GROUP BY plan ORDER BY plan ASC LIMIT 10000",
             "SELECT DISTINCT plan FROM visits ORDER BY 1")  # fmt: skip
    with wired.connect(options="", autocommit=True) as connection:
        for text in texts:
            assert connection.execute(text.encode()).fetchall() == [("a",), ("b",)]
    assert wired.world.charges() == 0


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("SELECT * FROM codes LIMIT 0", {"plan": 25, "tier": 25}),
        ('SELECT * FROM "public"."visits" AS "q01" WHERE (0 = 1)', VISITS),
        ("SELECT q.* FROM visits AS q WHERE 1 <> 1", VISITS),
        ("SELECT day AS d, plan FROM visits WHERE FALSE", {"d": 1082, "plan": 25}),
    ],
)
def test_a_tool_learns_columns_from_rows_that_no_table_has(wired: Wired, text: str, columns: dict[str, int]) -> None:
    """As dbplyr, Tableau and Power BI do."""
    with wired.connect(options="", autocommit=True) as connection:
        shown = connection.execute(text.encode())
        assert {column.name: column.type_code for column in shown.description or ()} == columns
        assert shown.fetchall() == []
    assert wired.world.charges() == 0


@pytest.mark.parametrize(
    "text",
    ["SELECT * FROM visits", "SELECT * FROM visits WHERE 0 = 0", "SELECT * FROM visits WHERE code = 1 AND 0 = 1",
     "SELECT * FROM visits WHERE 1 = 0 OR TRUE", "SELECT * FROM visits LIMIT 1", "SELECT * FROM nowhere LIMIT 0",
     "SELECT * EXCEPT (plan) FROM visits LIMIT 0", "SELECT * FROM visits, codes WHERE 1 = 0",
     "SELECT nobody FROM visits WHERE 1 = 0", "SELECT * FROM closed.visits WHERE 1 = 0"],
)  # fmt: skip
def test_what_is_no_such_question_is_refused(wired: Wired, text: str) -> None:
    with wired.connect(autocommit=True) as connection, pytest.raises(psycopg.Error):
        connection.execute(text.encode())
    assert wired.world.charges() == 0

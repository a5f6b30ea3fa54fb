"""Statements about the catalog of PostgreSQL: what clients ask, what is refused, and who sees what."""

import shutil
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import psycopg
import pytest
import sqlalchemy as sa

from lapwing.catalog.dictionary import Dictionary, Texts
from lapwing.documents.session_document import tables_of_catalog
from lapwing.server.datasets import Datasets
from lapwing.server.pgwire import catalog, catalog_limits, catalog_rewriting
from lapwing.server.pgwire.catalog import PublicCatalog, PublicCatalogs
from lapwing.server.pgwire.catalog_facts import Facts
from lapwing.server.pgwire.catalog_limits import NotAnswered
from tests.server.pgwire.test_clients import PRICE, Wired, sent_raw, wired_in
from tests.support.server import wire
from tests.support.server.world import data_set

RELATIONS: Final = "SELECT relname FROM pg_catalog.pg_class ORDER BY relname"


@pytest.fixture(scope="module")
def wired(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wired]:
    with wired_in(tmp_path_factory.mktemp("wired")) as running:
        yield running


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> PublicCatalog:
    session = data_set(tmp_path_factory.mktemp("public"), "open")
    tables = tables_of_catalog(session.catalog, session.public_tables)
    return PublicCatalog(Facts(person="alice", dataset="open", datasets=["open"], tables=tables, version="PostgreSQL"))


def rows_of(public: PublicCatalog, text: str, *given: object) -> list[list[Any]]:
    answered = public.answer(text, given, {"TimeZone": "UTC", "odd": "it's"}, demanded=True)
    assert answered is not None
    return answered[1]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT 'pg_class'::regclass = 1259, 'visits'::regclass::oid > 16000, to_regclass('nobody')",
         [[True, True, None]]),
        ("SELECT c.oid::pg_catalog.regclass FROM pg_class c WHERE relname OPERATOR(pg_catalog.~) '^(co)' "
         "COLLATE pg_catalog.default", [["codes"]]),
        ("SELECT 25::regtype::text, 'visits'::regclass::text, pg_catalog.format_type(1009, -1)",
         [["text", "visits", "text[]"]]),
        ("SELECT nspname FROM pg_namespace WHERE nspname = ANY (current_schemas(true)) ORDER BY 1",
         [["pg_catalog"], ["public"]]),
        ("SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'visits' AND "
         "ordinal_position > 7", [["cost", "double precision"]]),
        ("SELECT current_setting('timezone'), setting FROM pg_settings WHERE name = 'odd'", [["UTC", "it's"]]),
        ("SELECT has_table_privilege('visits', 'SELECT'), has_table_privilege('visits', 'INSERT')", [[True, False]]),
        ("SELECT s, array_upper(ARRAY[7, 8], 1) FROM pg_catalog.generate_series(1, 2) s", [[1, 2], [2, 2]]),
        ("WITH c AS (SELECT 1 AS x) SELECT E'a\\nb', x FROM c, pg_catalog.pg_am WHERE amname = 'heap'", [["a\nb", 1]]),
        ("SELECT a[2] AS select, (parse_ident('Public.\"V x\"'))[2] FROM pg_am, string_to_array('p,q', ',') a "
         "WHERE amname = 'heap'", [["q", "V x"]]),
        ("SELECT CAST(CAST(format('%I.%I', 'public'::text, relname) AS regclass) AS oid) = oid, "
         "format('%s%%', relnatts) FROM pg_class WHERE relname = 'codes'", [[True, "2%"]]),
        ("SELECT pg_total_relation_size(oid), reltuples FROM pg_class WHERE relname = 'visits'", [[None, -1.0]]),
    ],
)  # fmt: skip
def test_what_clients_write_is_read_as_postgresql_reads_it(
    public: PublicCatalog, text: str, rows: list[list[Any]]
) -> None:
    assert rows_of(public, text) == rows


def test_comments_have_the_texts_of_the_data_dictionary(tmp_path: Path) -> None:
    session = data_set(tmp_path, "open")
    labels = Texts(title="Plan of 'care'", description="One of\nfour.", labels=(("a", "Small"),))
    entries: dict[tuple[str, ...], Texts] = {("visits",): Texts(title="Visits"), ("visits", "plan"): labels}
    described = replace(session.catalog, dictionary=Dictionary.of(entries))
    tables = tables_of_catalog(described, session.public_tables)
    public = PublicCatalog(
        Facts(person="alice", dataset="open", datasets=["open"], tables=tables, version="PostgreSQL")
    )
    ((table, plan, cost),) = rows_of(
        public,
        "SELECT obj_description('visits'::regclass), "
        "(SELECT col_description(attrelid, attnum) FROM pg_attribute a WHERE attrelid = c.oid AND attname = 'plan'), "
        "(SELECT col_description(attrelid, attnum) FROM pg_attribute a WHERE attrelid = c.oid AND attname = 'cost') "
        "FROM pg_class c WHERE relname = 'visits'",
    )
    assert table.startswith("Visits; protects each ")
    assert plan.startswith("Plan of 'care': One of four.; a (Small), ")
    assert cost == tables["visits"].columns[-1].allowed


HOSTILE: Final = (
    "SELECT * FROM duckdb_settings() WHERE name LIKE 'pg_%'",
    "SELECT * FROM pg_class, read_text('/etc/passwd')",
    "SELECT read_text('/etc/passwd') FROM pg_class",
    "SELECT getenv('HOME') AS pg_home",
    "SELECT pg_catalog.getenv('HOME')",
    "SELECT relname COLLATE getenv('HOME') FROM pg_class",
    "SELECT relname OPERATOR(pg_catalog.=) getenv('HOME') FROM pg_class",
    "SELECT (pg_catalog.getenv('HOME'))::regclass FROM pg_class",
    "SELECT pg_sleep(10)",
    "SELECT set_config('TimeZone', 'x', false) FROM pg_class",
    "SELECT repeat('x', 1000000000) FROM pg_class",
    "SELECT 1::pg_lsn FROM pg_class",
    "SELECT relname INTO pg_other FROM pg_class",
    "WITH x AS (DELETE FROM pg_class RETURNING 1) SELECT * FROM x",
    "SELECT * FROM pg_class, \"/etc/passwd\"",
    "SELECT * FROM pg_class, facts.people",
    "SELECT * FROM pg_class, visits",
    "SELECT * FROM pg_catalog.pg_authid",
    "SELECT * FROM other.pg_catalog.pg_class",
    "DROP TABLE pg_class",
    "SET memory_limit = '8GB'",
    "SELECT relname FROM pg_class WHERE oid = $1",
    "SELECT relname FROM pg_class WHERE oid = $0000010",
    "SELECT * FROM duckdb_databases, (WITH duckdb_databases AS (SELECT 1) SELECT count(*) FROM pg_class) x",
    "WITH a AS (SELECT * FROM duckdb_databases), duckdb_databases AS (SELECT 1 FROM pg_class) SELECT * FROM a",
    "WITH duckdb_databases AS (SELECT * FROM duckdb_databases) SELECT * FROM duckdb_databases, pg_class",
    "WITH RECURSIVE duckdb_databases AS (SELECT * FROM duckdb_databases) SELECT * FROM duckdb_databases, pg_class",
    "SELECT replace('x', 'x', relname) FROM pg_class",
    "SELECT replace(relname, 'x', 'xxx') FROM pg_class",
    "SELECT replace(relname, '', 'x') FROM pg_class",
    "SELECT string_agg(relname, relname) FROM pg_class",
    "SELECT pg_catalog.array_to_string(ARRAY[relname], relname) FROM pg_class",
    "SELECT count(*) FROM pg_class, generate_series(1, 1000000000) s",
    "SELECT generate_series(1, oid::int) FROM pg_class",
    "WITH a AS (SELECT c FROM pg_class c) SELECT 1 FROM a",
    "SELECT *, *, * FROM pg_class",
    "SELECT relname" + " || relname" * 40 + " FROM pg_class",
    "SELECT 'x'" + " || 'x'" * 3_000 + " FROM pg_class",
    "SELECT 1 FROM " + ", ".join(["pg_class"] * 33),
    "SELECT ARRAY[" + ", ".join(["relname"] * 1_000) + "] FROM pg_class",
)  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_a_statement_reaches_nothing_but_the_catalog(public: PublicCatalog, text: str) -> None:
    with pytest.raises(NotAnswered):
        public.answer(text, (), {}, demanded=True)
    assert rows_of(public, RELATIONS) == [["codes"], ["visits"]]


def test_twin_functions_that_nobody_checks_are_found(public: PublicCatalog) -> None:
    with patch.object(catalog_rewriting.Rewriter, "call", lambda self, node: node):
        assert rows_of(public, "SELECT length(repeat('x', 9)) FROM pg_am") == [[9]]
    with pytest.raises(NotAnswered):
        rows_of(public, "SELECT length(repeat('x', 9)) FROM pg_am")


def test_statements_about_tables_of_the_data_set_are_left_to_the_service(public: PublicCatalog) -> None:
    for text in ("SELECT pg_x FROM visits", "SELECT COUNT(*) FROM facts.people", "SELECT * FROM columns"):
        assert public.answer(text, (), {}, demanded=True) is None


def test_time_memory_and_rows_are_limited(public: PublicCatalog) -> None:
    endless = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 - 1 FROM t) SELECT COUNT(*) FROM t"
    with patch.object(catalog, "MOST_SECONDS", 0.1), pytest.raises(NotAnswered) as stopped:
        rows_of(public, endless)
    assert stopped.value.state in ("57014", "53200")
    with patch.object(catalog, "MOST_ROWS", 1), pytest.raises(NotAnswered) as many:
        rows_of(public, RELATIONS)
    assert many.value.state == "54000"
    assert rows_of(public, RELATIONS) == [["codes"], ["visits"]]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "int(" * 11 + "1" + ")" * 11,
        "SELECT " + "ARRAY[" * 5_000,
        "SELECT " + ", ".join(["int(" * 8 + "1" + ")" * 8] * 9),
        "SELECT '" + "x" * 20_000 + "'",
    ],
)
def test_what_the_parser_reads_too_slowly_is_not_parsed(public: PublicCatalog, text: str) -> None:
    with patch("sqlglot.parse_one", side_effect=AssertionError), pytest.raises(NotAnswered) as refused:
        rows_of(public, text)
    assert refused.value.state == "54000"


def test_the_deepest_nesting_is_parsed_quickly(public: PublicCatalog) -> None:
    with patch.object(catalog_limits, "MOST_NESTED", 7), pytest.raises(NotAnswered):
        rows_of(public, "SELECT " + "(" * 8 + "1" + ")" * 8)
    assert rows_of(public, "SELECT " + "(" * 8 + "1" + ")" * 8) == [[1]]


def test_texts_that_are_put_together_stay_short(public: PublicCatalog) -> None:
    doubled = " || ".join(["x"] * 30)
    text = f"WITH a AS (SELECT 'xxxxxxxxxx' AS x), b AS (SELECT {doubled} AS x FROM a) SELECT length({doubled}) FROM b"
    assert rows_of(public, text) == [[catalog_limits.MOST_GROWN]]
    operators = text.replace(" || x" * 29, " OPERATOR(pg_catalog.||) x" * 9)
    assert rows_of(public, operators.replace("'xxxxxxxxxx'", "'" + "x" * 1_000 + "'")) == [[catalog_limits.MOST_GROWN]]
    with patch.object(catalog_rewriting, "short", lambda node: node):  # the twin
        assert rows_of(public, text) == [[9_000]]
    with patch.object(catalog_limits, "MOST_CELLS", 10), pytest.raises(NotAnswered) as large:
        rows_of(public, "SELECT 'xxxxxxxxxxxx', relname FROM pg_class")
    assert large.value.state == "54000"


def test_a_query_of_a_with_is_meant_where_its_name_is_known(public: PublicCatalog) -> None:
    for text, rows in (
        ("WITH a AS (SELECT 1 x), b AS (SELECT a.x + 1 x FROM a) SELECT a.x, b.x, c.x FROM a, b, a c", [[1, 2, 1]]),
        ("WITH a AS (SELECT 1 AS x) SELECT (WITH a AS (SELECT 2 AS x) SELECT x FROM a), x FROM a", [[2, 1]]),
        ("WITH RECURSIVE a(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM a WHERE n < 3) SELECT count(*) FROM a", [[3]]),
        ("WITH pg_class AS (SELECT 'x' AS relname) SELECT relname FROM pg_class", [["x"]]),
    ):  # fmt: skip
        assert rows_of(public, text) == rows


def test_a_result_has_few_columns(public: PublicCatalog) -> None:
    with pytest.raises(NotAnswered) as wide:
        rows_of(public, "SELECT " + ", ".join(["1"] * (catalog_limits.MOST_COLUMNS + 1)))
    assert wide.value.state == "54011"


def test_a_catalog_that_does_not_fit_is_refused() -> None:
    def facts() -> Facts:
        raise MemoryError

    with pytest.raises(NotAnswered) as large:
        catalog.PublicCatalogs().of("alice", "open", (), facts)
    assert large.value.state == "53200"


def databases(wired: Wired, who: str) -> list[str]:
    with wired.connect(who, dbname="open") as connection:
        return [name for (name,) in connection.execute("SELECT datname FROM pg_database ORDER BY datname")]


def test_nobody_sees_data_sets_that_are_not_theirs(wired: Wired) -> None:
    assert databases(wired, "alice") == ["open"]
    assert databases(wired, "carol") == ["closed", "open"]
    with wired.connect() as connection:
        roles = connection.execute("SELECT rolname FROM pg_roles ORDER BY 1").fetchall()
        assert roles == [("alice",), ("lapwing",)]
    with patch.object(Datasets, "sees", lambda *_: True):  # the twin: without the right
        assert databases(wired, "alice") == ["closed", "open"]
    assert databases(wired, "alice") == ["open"]


def test_the_catalog_shows_what_http_shows(wired: Wired) -> None:
    shown = wired.world.ask("GET", "/v1/datasets/open", "alice").document
    with wired.connect() as connection:
        found = connection.execute(
            "SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid ORDER BY 1, attnum"
        ).fetchall()
    assert found == [(table["name"], column) for table in sorted(shown["tables"], key=lambda one: one["name"])
                     for column in table["columns"]]  # fmt: skip


def test_a_prepared_statement_has_arrays_and_parameters(wired: Wired) -> None:
    before = wired.world.charges()
    with wired.connect(options="") as connection:
        for binary in (False, True):
            cursor = connection.cursor(binary=binary)
            cursor.execute(
                "SELECT array_agg(attname ORDER BY attnum), array_agg(attnum ORDER BY attnum), max(atttypid) "
                "FROM pg_attribute WHERE attrelid = %s::regclass AND attname = ANY (%s)",
                ("visits", ["plan", "cost"]),
                prepare=True,
            )
            assert cursor.fetchall() == [(["plan", "cost"], [2, 8], 701)]
    assert wired.world.charges() == before


@pytest.mark.long
def test_sqlalchemy_reflects_tables(wired: Wired) -> None:
    token = wired.world.tokens["alice"]
    engine = sa.create_engine(f"postgresql+psycopg://alice:{token}@127.0.0.1:{wired.port}/open?sslmode=disable")
    inspector = sa.inspect(engine)
    assert inspector.get_table_names() == ["codes", "visits"]
    columns = {column["name"]: column for column in inspector.get_columns("visits")}
    assert isinstance(columns["size"]["type"], sa.BIGINT)
    assert columns["plan"]["comment"] == "a, b"
    assert inspector.get_table_comment("codes") == {"text": "public"}
    assert inspector.get_pk_constraint("visits")["constrained_columns"] == []
    assert inspector.get_foreign_keys("visits") == []
    engine.dispose()


@pytest.mark.long
@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
def test_psql_describes_tables(wired: Wired) -> None:
    address = f"host=127.0.0.1 port={wired.port} user=alice dbname=open sslmode=disable options='{PRICE}'"
    script = "\\d\n\\d+ visits\n\\dt+\n\\l\n\\dn\n\\dv\nSELECT plan, COUNT(*) AS n FROM visits GROUP BY plan \\gdesc\n"
    done = subprocess.run(
        ["psql", "-X", "-A", "-t", address],
        input=script,
        capture_output=True,
        text=True,
        timeout=60,
        env={"PGPASSWORD": wired.world.tokens["alice"], "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        check=False,
    )
    assert done.stderr in ("", "Did not find any relations.\n")
    lines = done.stdout.splitlines()
    assert lines[:2] == ["public|codes|table|lapwing", "public|visits|table|lapwing"]
    assert "size|bigint||||plain|||0 to 10; 0, 5, 10" in lines
    assert [line for line in lines if line.startswith("closed")] == []
    assert lines[-2:] == ["plan|text", "n|bigint"]


def test_a_revoked_token_lists_nothing(tmp_path: Path) -> None:
    with wired_in(tmp_path) as own, own.connect(autocommit=True) as connection:
        assert connection.execute(RELATIONS).fetchall()
        for token in own.world.service.people.tokens("alice"):
            own.world.service.people.revoke(token.id, of="alice", by="carol")
        with pytest.raises(psycopg.Error) as revoked:
            connection.execute(RELATIONS)
        assert revoked.value.sqlstate == "42501"


# ---- catalogs in memory ----------------------------------------------------------------------------------------------


def made(facts: Facts, catalogs: PublicCatalogs) -> None:
    """Ask for another catalog while one is made, and for the same one; what waits for nothing comes first."""
    begun, go_on, order = threading.Event(), threading.Event(), list[str]()

    def slow() -> Facts:
        order.append("slow begins")
        begun.set()
        go_on.wait(30)
        return facts

    with ThreadPoolExecutor(3) as threads:
        first = threads.submit(catalogs.of, "alice", "open", 1, slow)
        begun.wait(30)
        same = threads.submit(catalogs.of, "alice", "open", 1, slow)
        other = threads.submit(catalogs.of, "bob", "open", 1, lambda: facts)
        other.result(30)
        order.append("other")
        go_on.set()
        assert first.result() is same.result() is not other.result()
    assert order == ["slow begins", "other"]


def test_only_who_wants_the_same_catalog_waits_while_one_is_made(public: PublicCatalog) -> None:
    made(public._facts, PublicCatalogs())


def test_a_catalog_that_cannot_be_made_is_forgotten(public: PublicCatalog) -> None:
    def failing() -> Facts:
        raise MemoryError

    catalogs = PublicCatalogs()
    with pytest.raises(NotAnswered):
        catalogs.of("alice", "open", 1, failing)
    catalogs.of("alice", "open", 1, lambda: public._facts)


def test_described_statements_run_once(wired: Wired) -> None:
    """A description alone runs nothing, and what was described with its values is not run again."""
    text = "SELECT relname FROM pg_catalog.pg_class WHERE relname = $1"
    ran: list[str] = []
    run = PublicCatalog.run

    def counted(self: PublicCatalog, *given: Any) -> Any:
        ran.append(given[0])
        return run(self, *given)

    with patch.object(PublicCatalog, "run", counted), wired.connect(autocommit=True) as connection:
        described = sent_raw(connection, wire.parse(text, "s") + wire.describe("S", "s"))
        assert [one.kind for one in described] == [*"1tTZ"]
        assert ran == []
        portal = wire.bind([b"visits"], statement="s") + wire.describe("P") + wire.FLUSH + wire.execute()
        assert [one.kind for one in sent_raw(connection, portal)] == [*"2TDCZ"]
        assert len(ran) == 1


def test_a_portal_of_the_catalog_does_not_run_in_a_transaction_that_failed(wired: Wired) -> None:
    with wired.connect(autocommit=True) as connection:
        sent = wire.parse("SELECT relname FROM pg_class") + wire.bind(portal="p") + wire.describe("P", "p")
        connection.execute("BEGIN")
        kinds = "".join(one.kind for one in sent_raw(connection, sent + wire.query("broken"), last=b"E"))
        assert kinds.startswith("12T")
        (refused,) = [one for one in sent_raw(connection, wire.execute("p"), last=b"E") if one.kind == "E"]
        assert refused.fields["C"] == "25P02"

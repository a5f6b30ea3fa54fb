"""Spark Connect: a server that somebody else started is verified before it is asked, and answers as any master does."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from textwrap import dedent

import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from lapwing.catalog.toml import load
from lapwing.engines.spark import connect
from lapwing.engines.spark.cluster import Cluster
from lapwing.engines.spark.settings import CLOSED
from lapwing.errors import CatalogError
from lapwing.sources import fetch
from tests.spark.test_cluster import QUESTION, SMALL, TEXT, answers, asking, on_duckdb, write
from tests.support.engines import spark
from tests.support.engines.standalone import ConnectServer, connect_server, free_port
from tests.support.sources import delta_log, rows


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("sc://cluster.example.org:15002", "without encryption"),
        ("sc://cluster.example.org:15002/;use_ssl=false", "without encryption"),
        ("sc://localhost:15002/;token=secret", "SPARK_CONNECT_AUTHENTICATE_TOKEN"),
        ("sc://localhost:15002/;session_id=1", "no address"),
        ("sc://localhost:99999", "no address"),
        ("sc://:15002", "no address"),
        ("sc://", "no address"),
    ],
)
def test_addresses_that_are_refused(address: str, reason: str) -> None:
    with pytest.raises(CatalogError, match=reason) as refused:
        Cluster(address, seconds=1)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "address",
    [
        "sc://localhost",
        "sc://localhost:15002",
        "sc://[::1]:15002/",
        "sc://a.example.org:443/;use_ssl=true;user_id=lapwing",
    ],
)
def test_addresses_that_are_taken(address: str) -> None:
    Cluster(address, seconds=1)


TOLD: Mapping[str, str] = {
    **CLOSED,
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.artifact.isolation.enabled": "true",
}


@pytest.mark.parametrize(
    ("told", "problem"),
    [
        ({}, None),
        ({"spark.executor.extraJavaOptions": "-Xss4m -XX:+UseSerialGC"}, None),
        ({"spark.executor.defaultJavaOptions": ""}, "start it with --conf spark.executor.defaultJavaOptions"),
        ({"spark.driver.defaultJavaOptions": "-Dslf4j.provider=other"}, "may log values"),
        ({"spark.executor.extraJavaOptions": "-Dslf4j.provider=other"}, "may log values"),
        ({"spark.ui.enabled": "true"}, "spark.ui.enabled=false"),
        ({"spark.eventLog.enabled": "true"}, "spark.eventLog.enabled=false"),
        ({"spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension"}, "sets spark.sql.extensions"),
    ],
)
def test_what_a_server_tells_of_itself_is_verified(told: dict[str, str], problem: str | None) -> None:
    found = connect._problem("4.3.0", "4.3.0", {**TOLD, **told})
    assert found is None if problem is None else found is not None and problem in found


def test_a_server_that_keeps_silent_about_a_page_has_one() -> None:
    silent = {name: value for name, value in TOLD.items() if name != "spark.ui.enabled"}
    assert "spark.ui.enabled" in str(connect._problem("4.3.0", "4.3.0", silent))


def test_a_server_of_another_version_is_refused() -> None:
    assert "4.2.0" in str(connect._problem("4.2.0", "4.3.0", {**TOLD}))


# ---- a real server ---------------------------------------------------------------------------------------------------

CLOSED_SERVER = {
    name: value
    for name, value in {**CLOSED, **SMALL}.items()
    if name.startswith(("spark.driver", "spark.executor.default", "spark.ui", "spark.eventLog", "spark.sql"))
}
HOST = """
    import json, sys
    import lapwing as lw

    with lw.connect(sys.argv[1]) as session:
        print("ready", flush=True)
        for line in sys.stdin:
            answer = session.sql(line.strip(), epsilon=1)
            print(json.dumps([len(answer.rows()), len(session.budget().history)]), flush=True)
"""


@pytest.mark.long
@pytest.mark.parametrize("shut", [True, False])  # and the planted fault
def test_the_clients_log_is_shut_whatever_the_environment_says(shut: bool) -> None:
    """At the level of debugging it writes what it asks and what comes back."""
    pytest.importorskip("grpc")
    script = f"""
        from pyspark.sql.connect.logging import logger
        from lapwing.engines.spark.settings import shut_logger
        {"shut_logger()" if shut else ""}
        logger.debug("zone = hunter2")
    """
    environment = {**os.environ, "SPARK_CONNECT_LOG_LEVEL": "DEBUG"}
    command = [sys.executable, "-W", "ignore", "-c", dedent(script)]
    found = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert ("hunter2" in found.stderr) is not shut


@pytest.mark.long
def test_a_server_gives_the_same_integers(tmp_path: Path) -> None:
    """The third time from rows that it keeps. What it wrote holds no value: there is no logger in it."""
    spark.skip_where_missing("grpc")
    write(tmp_path, 100_000)
    with connect_server(tmp_path, CLOSED_SERVER) as server:
        found = answers(asking(tmp_path, f"sc://127.0.0.1:{server.port}", 1000, {}, 3))
    assert found == [on_duckdb(tmp_path, 1000)] * 3
    assert "trips" not in (tmp_path / "connect.log").read_text()


@pytest.mark.long
def test_a_server_reads_a_delta_table_without_its_deleted_rows(tmp_path: Path) -> None:
    """Values of partitions and positions of deleted rows are sent to the server, and joined there."""
    spark.skip_where_missing("grpc")
    write(tmp_path, 20_000)
    lake = tmp_path / "my lake"
    write_deltalake(str(lake), pq.read_table(tmp_path / "trips"), partition_by=["zone"])
    delta_log.require(lake, "deletionVectors")
    delta_log.delete(lake, range(0, 500, 3))
    delta_log.delete(lake, {7}, file=3)
    here = tmp_path / "here.toml"
    here.write_text(TEXT.format(engine="duckdb", cluster="", most=1000).replace("trips/*.parquet", "delta:my lake"))
    fetch(load(here))
    expected = sorted([list(map(str, cell)), list(sums)] for cell, sums in rows.exact(load(here), QUESTION).items())
    with connect_server(tmp_path, CLOSED_SERVER) as server:
        asked = asking(tmp_path, f"sc://127.0.0.1:{server.port}", 1000, {}, 3, source="delta:my lake")
        assert answers(asked) == [expected] * 3
    assert "lake" not in (tmp_path / "connect.log").read_text()


@pytest.mark.long
def test_a_server_that_is_started_anew_is_asked_again(tmp_path: Path) -> None:
    """A session outlives the server's: whatever it kept there is made again, and no question is charged twice."""
    spark.skip_where_missing("grpc")
    write(tmp_path, 20_000)
    port = free_port()
    catalog = tmp_path / "lapwing.toml"
    catalog.write_text(TEXT.format(engine="spark", cluster=f'cluster = "sc://127.0.0.1:{port}"', most=5))
    with ExitStack() as running:
        with connect_server(tmp_path, CLOSED_SERVER, port):
            host = running.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", dedent(HOST), str(catalog)],
                    text=True,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=running.enter_context((tmp_path / "errors").open("w")),
                )
            )
            running.callback(host.kill)

            def ask(least: int) -> list[int]:
                assert host.stdin is not None
                assert host.stdout is not None
                host.stdin.write(f"SELECT zone, COUNT(*) FROM trips WHERE fare > {least} GROUP BY zone\n")
                host.stdin.flush()
                found: list[int] = json.loads(host.stdout.readline())
                return found

            assert host.stdout is not None
            assert host.stdout.readline() == "ready\n"
            assert [ask(1), ask(2)] == [[10, 1], [10, 2]]
        with connect_server(tmp_path, CLOSED_SERVER, port):
            assert [ask(3), ask(4)] == [[10, 3], [10, 4]]
    assert (tmp_path / "errors").read_text() == ""


@pytest.mark.long
def test_a_process_that_closes_no_session_ends(tmp_path: Path) -> None:
    """Otherwise gRPC waits at the end of Python for threads that have ended."""
    spark.skip_where_missing("grpc")
    script = """
        import sys
        from lapwing.engines.spark.cluster import Cluster
        c = Cluster(sys.argv[1], seconds=100)
        v = c.keep("SELECT id FROM range(10)")
        print(c.rows(f"SELECT COUNT(*) FROM {v}"), flush=True)
        c.keep_again(v)
    """
    with connect_server(tmp_path, CLOSED_SERVER) as server:
        command = [sys.executable, "-c", dedent(script), f"sc://127.0.0.1:{server.port}"]
        assert subprocess.run(command, capture_output=True, text=True, timeout=120).stdout == "[(10,)]\n"


@pytest.mark.long
def test_a_server_with_a_page_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    spark.skip_where_missing("grpc")
    write(tmp_path, 1_000)
    with connect_server(tmp_path, CLOSED_SERVER | {"spark.ui.enabled": "true", "spark.ui.port": "0"}) as server:
        asked = asking(tmp_path, f"sc://127.0.0.1:{server.port}", 1000, {})
        _, errors = asked.communicate(timeout=500)
    assert "start it with --conf spark.ui.enabled=false" in errors


# ---- what takes too long ---------------------------------------------------------------------------------------------

FOR_HOURS = """
    import sys
    import lapwing as lw
    from lapwing.engines.spark import queries
    from lapwing.errors import EngineFault
    from lapwing.machine.interrupts import may_be_stopped

    catalog, seconds, planted = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
    with lw.connect(catalog) as session:
        cluster = session._engine._cluster
        cluster._seconds = seconds
        if planted:
            type(cluster._session).interruptTag = lambda _session, _tag: []
        queries.answer = lambda _question: "SELECT COUNT(*) FROM range(100000000000000) WHERE id % 7 = 3"
        print("ready" if may_be_stopped() else "deaf to Ctrl-C", flush=True)
        try:
            session.sql("SELECT COUNT(*) FROM trips", epsilon=1)
        except (EngineFault, lw.Interrupted) as error:
            print(type(error).__name__, *[row.unanswered for row in session.budget().history])
"""


def works(server: ConnectServer) -> bool:
    """Tell whether a server does more, for three seconds, than one that nobody asks."""
    before = server.worked()
    time.sleep(3)
    return server.worked() - before > 0.5


def comes_to(state: bool, server: ConnectServer) -> bool:
    """Tell whether a server comes to work, or to rest: what was cancelled ends with its task, and is compiled still."""
    return any(works(server) is state for _ in range(20))


@contextmanager
def asking_for_hours(folder: Path, port: int, name: str, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """Ask a question that takes hours, of a ledger of its own."""
    catalog = folder / f"{name}.toml"
    text = TEXT.format(engine="spark", cluster=f'cluster = "sc://127.0.0.1:{port}"', most=5)
    catalog.write_text(text.replace("trips.db", f"{name}.db"))
    command = [sys.executable, "-c", dedent(FOR_HOURS), str(catalog), *arguments]
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as host:
        try:
            assert host.stdout is not None
            assert host.stdout.readline() == "ready\n"
            yield host
        finally:
            host.kill()


@pytest.mark.long
@pytest.mark.usefixtures("interruptible")  # the hosts inherit it
def test_what_takes_too_long_is_cancelled_on_a_server(tmp_path: Path) -> None:
    """By the time limit and by Ctrl-C, and stays paid; with the planted fault, of no cancelling, the job goes on."""
    spark.skip_where_missing("grpc")
    write(tmp_path, 1_000)
    with connect_server(tmp_path, CLOSED_SERVER) as server:
        with asking_for_hours(tmp_path, server.port, "limit", "2") as host:
            assert host.communicate(timeout=300) == ("EngineFault fault\n", "")
        assert comes_to(False, server)
        with asking_for_hours(tmp_path, server.port, "stopped", "3600") as host:
            assert comes_to(True, server)
            host.send_signal(signal.SIGINT)
            assert host.communicate(timeout=300) == ("Interrupted interrupt\n", "")
        assert comes_to(False, server)
        with asking_for_hours(tmp_path, server.port, "planted", "2", "planted") as host:
            assert comes_to(True, server)
            host.send_signal(signal.SIGINT)
            assert all(works(server) for _ in range(3))
            assert host.poll() is None

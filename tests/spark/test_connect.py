"""Spark Connect: a server that somebody else started is verified before it is asked, and answers as any master does."""

import json
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from textwrap import dedent

import pytest

from lapwing.engines.spark import connect
from lapwing.engines.spark.cluster import Cluster
from lapwing.engines.spark.settings import CLOSED
from lapwing.errors import CatalogError
from tests.spark.test_cluster import SMALL, TEXT, answers, asking, on_duckdb, write
from tests.support.engines.standalone import connect_server, free_port


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("sc://cluster.example.org:15002", "in the clear"),
        ("sc://cluster.example.org:15002/;use_ssl=false", "in the clear"),
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
def test_a_server_gives_the_same_integers(tmp_path: Path) -> None:
    """The third time from rows that it keeps. What it wrote holds no value: there is no logger in it."""
    pytest.importorskip("grpc")
    write(tmp_path, 100_000)
    with connect_server(tmp_path, CLOSED_SERVER) as port:
        found = answers(asking(tmp_path, f"sc://127.0.0.1:{port}", 1000, {}, 3))
    assert found == [on_duckdb(tmp_path, 1000)] * 3
    assert "trips" not in (tmp_path / "connect.log").read_text()


@pytest.mark.long
def test_a_server_that_is_started_anew_is_asked_again(tmp_path: Path) -> None:
    """A session outlives the server's: whatever it kept there is made again, and no question is charged twice."""
    pytest.importorskip("grpc")
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
def test_a_server_with_a_page_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    pytest.importorskip("grpc")
    write(tmp_path, 1_000)
    with connect_server(tmp_path, CLOSED_SERVER | {"spark.ui.enabled": "true", "spark.ui.port": "0"}) as port:
        asked = asking(tmp_path, f"sc://127.0.0.1:{port}", 1000, {})
        _, errors = asked.communicate(timeout=500)
    assert "start it with --conf spark.ui.enabled=false" in errors

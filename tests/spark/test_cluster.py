"""A standalone cluster of one master and two workers: the same integers, also when a worker is lost on the way.

A process has one Spark application, and that of the other tests runs here: so what asks the cluster is a process of its
own.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.catalog.toml import loads
from lapwing.engines import DuckDB
from lapwing.query.bind.bind import bind
from tests.support.engines import spark
from tests.support.engines.standalone import Standalone, standalone
from tests.support.engines.tables import digests

pytestmark = pytest.mark.long

TEXT = """
[dataset]
name = "trips"
engine = "{engine}"
ledger = "sqlite:trips.db"
{cluster}
[budget]
epsilon = 10
delta = 1e-6
[tables.trips]
source = "trips/*.parquet"
privacy_unit = "rider"
max_rows_per_unit = {most}
[tables.trips.columns]
zone = {{ type = "integer", values = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] }}
fare = {{ type = "decimal", lower = 0, upper = 100, step = 0.01 }}
"""
QUESTION = "SELECT zone, COUNT(*), SUM(fare), COUNT(DISTINCT rider) FROM trips WHERE fare > 10 GROUP BY zone"
ASK = """
    import json, sys, time
    from pathlib import Path
    from lapwing.catalog.toml import load
    from lapwing.engines.spark.engine import Spark
    from lapwing.query.bind.bind import bind

    catalog, question, further, times = load(Path(sys.argv[1])), sys.argv[2], json.loads(sys.argv[3]), int(sys.argv[4])
    engine = Spark(catalog, seconds=500, further=further)
    asked = bind(question, catalog).question
    digests = {table.name: engine.digest(table, {"any": ""}) for table in asked.lineage}
    engine.prepare(asked)
    print("ready", flush=True)
    for _ in range(times):
        exact = engine.run(asked, digests)
        print(json.dumps(sorted([list(map(str, cell)), list(sums)] for cell, sums in exact.cells.items())), flush=True)
    engine.close()
"""


def write(folder: Path, rows: int) -> None:
    chance = np.random.default_rng(5)
    (folder / "trips").mkdir()
    for part in range(8):
        columns = {
            "rider": chance.integers(0, rows // 8, rows // 8),
            "zone": chance.integers(0, 12, rows // 8),
            "fare": chance.random(rows // 8) * 100,
        }
        pq.write_table(pa.table(columns), folder / "trips" / f"{part}.parquet")


def asking(
    folder: Path, master: str, most: int, further: dict[str, str], times: int = 1, source: str = "trips/*.parquet"
) -> "subprocess.Popen[str]":
    there = folder / f"{most}.toml"
    text = TEXT.format(engine="spark", cluster=f'cluster = "{master}"', most=most)
    there.write_text(text.replace("trips/*.parquet", source))
    command = [sys.executable, "-c", dedent(ASK), str(there), QUESTION, json.dumps(further), str(times)]
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def answers(asked: "subprocess.Popen[str]") -> list[Any]:
    out, errors = asked.communicate(timeout=550)
    assert errors == ""
    assert asked.returncode == 0
    return [json.loads(line) for line in out.splitlines() if line.startswith("[")]


SMALL = {
    **spark.SMALL,
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "8",
}


@pytest.fixture
def cluster_of_two(tmp_path: Path) -> Iterator[Standalone]:
    spark.skip_where_missing()
    (tmp_path / "cluster").mkdir()
    with standalone(tmp_path / "cluster") as running:
        yield running


def on_duckdb(folder: Path, most: int) -> list[Any]:
    catalog = loads(TEXT.format(engine="duckdb", cluster="", most=most), file="trips", folder=folder)
    engine = DuckDB(catalog)
    question = bind(QUESTION, catalog).question
    exact = engine.run(question, digests(engine, question))
    engine.close()
    return sorted([list(map(str, cell)), list(sums)] for cell, sums in exact.cells.items())


def test_a_cluster_gives_the_same_integers_whoever_computes_them(cluster_of_two: Standalone, tmp_path: Path) -> None:
    """Where no unit is cut, as DuckDB; with units cut, the same with speculation on as without."""
    write(tmp_path, 200_000)
    ((found,),) = [answers(asking(tmp_path, cluster_of_two.master, 1000, SMALL))]
    assert found == on_duckdb(tmp_path, 1000)
    eager = SMALL | {
        f"spark.speculation{name}": value
        for name, value in (("", "true"), (".multiplier", "1.01"), (".quantile", "0.1"), (".interval", "1ms"))
    }
    calm, hasty = (answers(asking(tmp_path, cluster_of_two.master, 3, settings, 2)) for settings in (SMALL, eager))
    assert calm[0] == calm[1] == hasty[0] == hasty[1]


def test_a_worker_that_is_lost_changes_nothing(cluster_of_two: Standalone, tmp_path: Path) -> None:
    write(tmp_path, 400_000)
    (calm,) = answers(asking(tmp_path, cluster_of_two.master, 3, SMALL))
    asked = asking(tmp_path, cluster_of_two.master, 3, SMALL, 3)
    assert asked.stdout is not None
    assert asked.stdout.readline() == "ready\n"
    time.sleep(2)
    killed = cluster_of_two.workers[0]
    os.killpg(killed.pid, signal.SIGKILL)  # with its executor, which is in its group
    assert answers(asked) == [calm, calm, calm]
    assert killed.wait(timeout=30) == -signal.SIGKILL


WITHOUT = """
    import sys
    import lapwing as lw
    from lapwing.engines.spark import cluster

    cluster.BEFORE = 10.0
    with lw.connect(sys.argv[1]) as session:
        print("ready", flush=True)
        sys.stdin.readline()
        try:
            session.sql(sys.argv[2], epsilon=1)
        except lw.Fault as fault:
            print(fault.code, fault.charged, len(session.budget().history), flush=True)
"""


def test_a_cluster_without_workers_is_told_and_costs_nothing(cluster_of_two: Standalone, tmp_path: Path) -> None:
    """The workers end after the data were accepted, and before a query: the charge would be lost if it came first."""
    write(tmp_path, 2_000)
    (tmp_path / "conf").mkdir()
    settings = [f"{name} {value}\n" for name, value in SMALL.items() if not name.startswith("spark.sql.")]
    (tmp_path / "conf" / "spark-defaults.conf").write_text("".join(settings))
    text = TEXT.format(engine="spark", cluster=f'cluster = "{cluster_of_two.master}"', most=5)
    (tmp_path / "lapwing.toml").write_text(text)
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_CONF_DIR": str(tmp_path / "conf")}
    command = [sys.executable, "-c", dedent(WITHOUT), str(tmp_path / "lapwing.toml"), QUESTION]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, env=environment, **pipes) as asking:  # type: ignore[call-overload]
        assert asking.stdout.readline() == "ready\n"
        for worker in cluster_of_two.workers:
            os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()
        assert asking.communicate("\n", timeout=550)[0] == "fault False 0\n"


def test_executors_write_nothing_of_values(cluster_of_two: Standalone, tmp_path: Path) -> None:
    """The planted fault: a cast that is not total, over a text that nobody may see."""
    (tmp_path / "trips").mkdir()
    pq.write_table(pa.table({"word": ["hunter2", "1"] * 50}), tmp_path / "trips" / "a.parquet")
    script = """
        import sys
        from lapwing.engines.spark.cluster import Cluster
        cluster = Cluster(sys.argv[1], seconds=300, further=eval(sys.argv[2]))
        view = cluster.read([sys.argv[3]], "word STRING")
        try:
            cluster.rows(f"SELECT SUM(CAST(word AS INT)) FROM {view}")
        except Exception as error:
            assert "hunter2" in str(error)
            print("it failed")
        cluster.close()
    """
    file = str(tmp_path / "trips" / "a.parquet")
    command = [sys.executable, "-c", dedent(script), cluster_of_two.master, repr(SMALL), file]
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=500, env=environment)
    assert found.stdout == "it failed\n"
    assert found.stderr == ""
    assert "hunter2" not in cluster_of_two.written()


HOST = """
    import json, sys
    import lapwing as lw

    with lw.connect(sys.argv[1]) as session:
        print("ready", flush=True)
        for line in sys.stdin:
            question, epsilon = json.loads(line)
            answer = session.sql(question, epsilon=epsilon)
            print(json.dumps([[str(row) for row in answer.rows()], str(session.budget().spent)]), flush=True)
"""


def test_two_hosts_share_one_ledger_before_one_cluster(
    cluster_of_two: Standalone, postgres: str, tmp_path: Path
) -> None:
    """What one host bought is free at the other, and what both buy is charged to one budget."""
    write(tmp_path, 20_000)
    (tmp_path / "conf").mkdir()
    settings = {**SMALL, "spark.cores.max": "1"}
    lines = [f"{name} {value}\n" for name, value in settings.items() if name != "spark.sql.shuffle.partitions"]
    (tmp_path / "conf" / "spark-defaults.conf").write_text("".join(lines))
    text = TEXT.format(engine="spark", cluster=f'cluster = "{cluster_of_two.master}"', most=5)
    text = text.replace("sqlite:trips.db", f"{postgres}&ledger=trips").replace("trips/*", f"{tmp_path}/trips/*")
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_CONF_DIR": str(tmp_path / "conf")}
    hosts = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "lapwing.toml").write_text(text)
        command = [sys.executable, "-c", dedent(HOST), str(tmp_path / name / "lapwing.toml")]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        hosts.append(subprocess.Popen(command, text=True, env=environment, **pipes))  # type: ignore[call-overload]

    def asked(host: Any, question: str, epsilon: float) -> Any:
        host.stdin.write(json.dumps([question, epsilon]) + "\n")
        host.stdin.flush()
        return json.loads(host.stdout.readline())

    one, other = hosts
    try:
        assert [host.stdout.readline() for host in hosts] == ["ready\n", "ready\n"]
        rows, spent = asked(one, QUESTION, 1)
        assert asked(other, QUESTION, 1) == [rows, spent]
        _, more = asked(other, "SELECT COUNT(*) FROM trips", 1)
        assert more != spent
        assert asked(one, QUESTION, 1) == [rows, more]
    finally:
        for host in hosts:
            host.stdin.close()
            host.wait(timeout=120)
            host.stdout.close()

"""Spark behind a session: versions, stored answers, refusals, faults, and that nothing is told of values."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from traceback import format_exception
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapwing as lw
from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import dumps, load, loads
from lapwing.engines import FAILED
from lapwing.engines.spark import engine as spark_engine
from lapwing.engines.spark import queries
from lapwing.engines.spark.cluster import Cluster, partitions_of
from lapwing.engines.spark.settings import SETTINGS
from lapwing.engines.spark.unit_values import summed
from lapwing.errors import CatalogError, DataChanged, DataFault, EngineFault, Fault
from lapwing.machine.switches import Switch
from lapwing.opening import open_session
from lapwing.query.bind.bind import bind
from lapwing.query.plan.plan import Question
from lapwing.release.stored import key_of
from tests.support.engines import spark
from tests.support.refusals import refused_as
from tests.support.server.queueing import until

RESERVED = "spark.sql.ansi.enforceReservedKeywords"
TEXT = """
[dataset]
name = "trips"
engine = "spark"
cluster = "local[2]"
ledger = "sqlite:trips.db"
[budget]
epsilon = 100
delta = 1e-6
delta_keys = 1e-7
[tables.trips]
source = "trips/*.parquet"
privacy_unit = "rider"
max_rows_per_unit = 50
[tables.trips.columns]
zone = { type = "string", values = ["north", "south"] }
fare = { type = "decimal", lower = 0, upper = 100, step = 0.01 }
stop = { type = "string" }
"""


def write(folder: Path, name: str, rows: int, seed: int = 0) -> None:
    chance = random.Random(seed)
    columns = {
        "rider": [chance.randrange(40) for _ in range(rows)],
        "zone": [chance.choice(["north", "south", None]) for _ in range(rows)],
        "fare": [chance.random() * 100 for _ in range(rows)],
        "stop": [f"s{chance.randrange(9)}" for _ in range(rows)],
    }
    (folder / "trips").mkdir(exist_ok=True)
    pq.write_table(pa.table(columns), folder / "trips" / name)


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    write(tmp_path, "a.parquet", 300)
    write(tmp_path, "b.parquet", 200, seed=1)
    (tmp_path / "lapwing.toml").write_text(TEXT)
    return load(tmp_path / "lapwing.toml")


def test_a_session_answers_stores_and_compares(cluster: Cluster, catalog: Catalog, tmp_path: Path) -> None:
    question = "SELECT zone, COUNT(*) AS n, AVG(fare) AS fare FROM trips GROUP BY zone"
    with lw.connect(tmp_path / "lapwing.toml") as session:
        first = session.sql(question, epsilon=50)
        assert [row["zone"] for row in first.rows()] == ["north", "south"]
        counts, means = zip(*[(row["n"], row["fare"]) for row in first.rows()], strict=True)
        assert all(60 < int(str(n)) < 300 for n in counts)
        assert all(0 <= float(str(mean)) <= 100 for mean in means)
        assert session.sql(question, epsilon=50).rows() == first.rows()
        nothing = session.sql("SELECT zone, STDDEV(fare) AS s FROM trips GROUP BY zone LIMIT 0", epsilon=5)
        assert nothing.rows() == []
        assert [len(end) for end in nothing.interval()["s"]] == [0, 0]
        spent = session.budget().spent
        with refused_as("not_supported_by_engine", saying="reverse"):
            session.sql("SELECT COUNT(*) FROM trips WHERE REVERSE(zone) = 'NORTH'", epsilon=1)
        with refused_as("not_supported_by_engine", saying="4,000,000"):
            session.sql("SELECT stop, COUNT(*) FROM trips GROUP BY stop", epsilon=1, delta=1e-8)
        write(tmp_path, "c.parquet", 10)
        with pytest.raises(DataChanged):
            session.sql("SELECT COUNT(*) FROM trips", epsilon=1)
        (tmp_path / "trips" / "c.parquet").unlink()
        os.utime(tmp_path / "trips" / "a.parquet")  # the same bytes at another time: another version
        with pytest.raises(DataChanged):
            session.sql("SELECT COUNT(*) FROM trips", epsilon=1)
        assert session.budget().spent == spent


def test_answers_of_one_engine_are_none_of_the_other(catalog: Catalog) -> None:
    files = replace(catalog, engine="duckdb", cluster=None)
    text = "SELECT zone, COUNT(*) FROM trips GROUP BY zone"
    ours, theirs = (bind(text, one).question for one in (catalog, files))
    assert str(ours) == str(theirs)
    assert key_of(ours) != key_of(theirs)
    assert catalog.digest != files.digest
    assert replace(files, engine="spark").digest == catalog.digest
    assert replace(catalog, engine="duckdb", cluster=None).tables == files.tables


def test_a_catalog_says_where_the_cluster_is(catalog: Catalog, tmp_path: Path) -> None:
    assert loads(dumps(catalog), file="again.toml", folder=tmp_path) == catalog
    with pytest.raises(CatalogError, match=r"dataset\.cluster"):
        replace(catalog, engine="duckdb")
    with pytest.raises(CatalogError, match="no master of Spark"):
        spark_engine.Spark(replace(catalog, cluster="http://here"))
    with pytest.raises(CatalogError, match="Parquet"):
        spark_engine.Spark(replace(catalog, tables=(replace(catalog.tables[0], source="trips.csv"),)))


def test_a_process_asks_one_master(cluster: Cluster) -> None:
    other = Cluster("local[1]", seconds=9)
    with pytest.raises(Fault, match="one master at a time"):
        other.open()


def test_what_fails_after_the_charge_says_nothing_more(
    cluster: Cluster, catalog: Catalog, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(queries, "answer", lambda _question: "SELECT CAST(zone || 'secret' AS INT) FROM `kept trips`")
    with open_session(catalog) as session, pytest.raises(EngineFault) as failed:
        session.sql("SELECT COUNT(*) FROM trips", epsilon=1)
    assert str(failed.value) == FAILED
    seen = "".join(format_exception(failed.value))
    said = capfd.readouterr()
    assert "secret" not in seen + said.out + said.err


def test_a_file_that_cannot_be_read_to_its_end_is_no_data(cluster: Cluster, catalog: Catalog, tmp_path: Path) -> None:
    damaged = tmp_path / "trips" / "a.parquet"
    content = bytearray(damaged.read_bytes())
    content[40:400] = bytes(360)
    damaged.write_bytes(content)
    with pytest.raises(DataFault, match="cannot be read"):
        open_session(catalog)
    damaged.write_bytes(b"PAR1")
    with pytest.raises(DataFault, match="cannot be read"):
        open_session(catalog)
    assert not (tmp_path / "trips.db").exists()


def test_types_that_are_not_proven_are_refused(catalog: Catalog, tmp_path: Path) -> None:
    for name in ("a", "b"):
        pq.write_table(
            pa.table({"rider": [1], "zone": ["north"], "fare": ["12"], "stop": ["x"]}),
            tmp_path / f"trips/{name}.parquet",
        )
    engine = spark_engine.Spark(catalog)
    with pytest.raises(DataFault, match="does not read column fare"):
        engine.rows(catalog.tables[0])


def test_files_of_other_columns_are_refused(catalog: Catalog, tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"rider": ["1"], "zone": ["north"], "fare": [1.0], "stop": ["x"]}), tmp_path / "trips/c.parquet"
    )
    with pytest.raises(DataFault, match="the same columns"):
        spark_engine.Spark(catalog).rows(catalog.tables[0])


def test_a_session_has_the_settings_that_the_proofs_rest_on(cluster: Cluster) -> None:
    assert {name: cluster._session.conf.get(name) for name in SETTINGS} == dict(SETTINGS)


def test_a_condition_in_brackets_is_no_list_of_names(cluster: Cluster) -> None:
    """With WHERE for a name, as Spark has it by default, the rows would be called that, and all of them would count."""
    query, name = "SELECT COUNT(*) FROM (SELECT x FROM VALUES (TRUE), (FALSE) AS t(x)) WHERE (x)", RESERVED
    assert cluster.rows(query) == [(1,)]
    cluster._session.conf.set(name, "false")
    try:
        assert cluster.rows(query) == [(2,)]
    finally:
        cluster._session.conf.set(name, SETTINGS[name])


def test_without_ansi_mode_numbers_would_wrap_around(cluster: Cluster) -> None:
    """Printed expressions never come there; what did would fail, and not answer with another number."""
    query, name = "SELECT SUM(x) FROM VALUES (9223372036854775807L), (1L) AS t(x)", "spark.sql.ansi.enabled"
    with pytest.raises(Exception, match="ARITHMETIC_OVERFLOW"):
        cluster.rows(query)
    cluster._session.conf.set(name, "false")
    try:
        assert cluster.rows(query) == [(-(2**63),)]
    finally:
        cluster._session.conf.set(name, SETTINGS[name])


# ---- what takes too long ---------------------------------------------------------------------------------------------

FOR_HOURS = "SELECT COUNT(*) AS measure0 FROM range(100000000000000) WHERE id % 7 = 3"
FOR_A_MOMENT = "SELECT COUNT(*) FROM range(20000000) WHERE id % 7 = 3"


def is_idle(cluster: Cluster) -> bool:
    """Tell whether the application has no job, once those that were cancelled are gone."""
    tracker, deadline = cluster._session.sparkContext.statusTracker(), time.monotonic() + 60
    while tracker.getActiveJobsIds() and time.monotonic() < deadline:
        time.sleep(0.05)
    return not tracker.getActiveJobsIds()


def test_what_takes_too_long_is_cancelled_and_stays_paid(
    cluster: Cluster, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, switch, seconds, limited = threading.Event(), Switch(), [600.0, 0.3], list[Cluster]()

    def answer(_question: object) -> str:  # what is asked before, however slow the machine, has time
        limited[0]._seconds = seconds.pop()
        asked.set()
        return FOR_HOURS

    def press() -> None:
        assert asked.wait(60)
        until(lambda: bool(cluster._session.sparkContext.statusTracker().getActiveJobsIds()))
        switch.press()

    monkeypatch.setattr(queries, "answer", answer)
    with open_session(catalog) as session:
        engine = session._engine
        assert isinstance(engine, spark_engine.Spark)
        engine._cluster._seconds = 600
        limited.append(engine._cluster)
        with pytest.raises(EngineFault, match=FAILED[:20]):
            session.sql("SELECT COUNT(*) FROM trips", epsilon=1)
        assert is_idle(cluster)
        asked.clear()
        threading.Thread(target=press).start()
        with switch.heard(), pytest.raises(lw.Interrupted) as stopped:
            session.sql("SELECT COUNT(*) FROM trips WHERE fare > 1", epsilon=1)
        assert stopped.value.charged
        assert is_idle(cluster)
        assert [row.unanswered for row in session.budget().history] == ["fault", "interrupt"]


def test_a_query_that_nothing_cancels_is_found(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: only the thread that set a session's own tag can interrupt what it asks."""
    hasty = Cluster(spark.MASTER, seconds=0.01)
    with pytest.raises(Exception, match="CANCELLED"):
        hasty.rows(FOR_HOURS)
    context = hasty._session.sparkContext
    monkeypatch.setattr(type(context), "cancelJobsWithTag", lambda _context, tag: hasty._session.interruptTag(tag))
    assert hasty.rows(FOR_A_MOMENT) == [(2857143,)]
    hasty.close()


@pytest.mark.long  # another JVM takes as long as half of the tests of this room
def test_an_application_that_ends_costs_one_answer_and_is_begun_anew(cluster: Cluster, catalog: Catalog) -> None:
    """The system kills a JVM where memory is short: what is asked next is asked of another, and finds nothing gone."""
    question = bind(SECOND, catalog).question
    with spark.engine(catalog) as engine:
        before = spark.found(spark.run(engine, question))
        running = spark.java()
        assert running is not None
        running.kill()
        running.wait()
        with pytest.raises(EngineFault) as failed:
            spark.run(engine, question)
        assert str(failed.value) == FAILED
        engine.prepare(question)
        assert spark.found(spark.run(engine, question)) == before
    assert cluster.renew()
    assert not cluster.renew()
    assert cluster.rows("SELECT 1") == [(1,)]


def test_an_application_that_was_stopped_costs_one_answer_and_is_begun_anew(cluster: Cluster, catalog: Catalog) -> None:
    """What is asked next is asked of another application in the same JVM, and finds nothing gone."""
    question = bind(SECOND, catalog).question
    with spark.engine(catalog) as engine:
        before = spark.found(spark.run(engine, question))
        cluster._session.sparkContext._jsc.stop()
        with pytest.raises(EngineFault) as failed:
            spark.run(engine, question)
        assert str(failed.value) == FAILED
        engine.prepare(question)
        assert spark.found(spark.run(engine, question)) == before
    assert cluster.renew()
    assert not cluster.renew()
    assert cluster.rows("SELECT 1") == [(1,)]


def test_ctrl_c_is_heard_by_whom_it_was_before(cluster: Cluster) -> None:
    """Spark's handler would cancel what all threads ask."""
    assert "pyspark" not in (getattr(signal.getsignal(signal.SIGINT), "__module__", None) or "")


def is_deterministic(question: Question, engine: spark_engine.Spark) -> bool:
    """Tell whether Spark itself says that a query gives the same rows whenever a task is run again."""
    sql = f"WITH {engine._layers(question)} {queries.answer(question)}"
    frame = engine._cluster._session.sql(sql)
    return bool(frame._jdf.queryExecution().analyzed().deterministic())


def test_nothing_is_drawn_on_the_cluster(cluster: Cluster, catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """So a task that is run again, or twice at a time, changes nothing; noise there would be drawn anew."""
    question = bind("SELECT zone, COUNT(*), SUM(fare) FROM trips GROUP BY zone", catalog).question
    with spark.engine(catalog) as engine:
        assert is_deterministic(question, engine)
        monkeypatch.setattr(queries, "summed", lambda value: f"{summed(value)} + CAST(round(randn()) AS BIGINT)")
        assert not is_deterministic(question, engine)


SECOND = "SELECT COUNT(*), SUM(fare), COUNT(DISTINCT rider) FROM trips WHERE fare > 10"


def test_kept_rows_give_the_same_integers(cluster: Cluster, catalog: Catalog) -> None:
    question = bind(SECOND, catalog).question
    table = replace(catalog.tables[0], max_rows_per_unit=3)
    with spark.engine(replace(catalog, tables=(table,))) as engine:
        engine._asked[
            engine._version(table)
        ] = -1  # so that the first question keeps none, as of a table of many columns
        first = spark.found(spark.run(engine, question))
        assert not engine._kept
        found = [spark.found(spark.run(engine, question)) for _ in range(2)]
        assert engine._kept
    assert [first, first] == found


@pytest.mark.parametrize(
    ("rows", "least", "partitions"),
    [(0, 4, 4), (4_000_000, 4, 4), (4_000_001, 4, 5), (10**9, 200, 1000), (10**12, 200, 20_000)],
)
def test_a_partition_has_a_million_rows(rows: int, least: int, partitions: int) -> None:
    assert partitions_of(rows, least) == partitions


def test_how_many_partitions_there_are_is_the_operators_word(cluster: Cluster) -> None:
    cluster.spread(10**9)
    assert cluster._session.conf.get("spark.sql.shuffle.partitions") == spark.SMALL["spark.sql.shuffle.partitions"]


@pytest.mark.long
def test_where_the_operator_says_nothing_partitions_grow_with_the_rows() -> None:
    spark.skip_where_missing()
    script = """
        from lapwing.engines.spark.cluster import Cluster

        cluster = Cluster("local[1]", seconds=60)
        cluster.open()
        for rows in (100, 10**9, 100):
            cluster.spread(rows)
            print(cluster._session.conf.get("spark.sql.shuffle.partitions"))
        cluster.close()
    """
    found = subprocess.run(
        [sys.executable, "-c", dedent(script)], capture_output=True, text=True, check=True, timeout=300
    )
    few = 2 * (os.cpu_count() or 1)
    assert found.stdout.split() == [str(few), "1000", "1000"]


@pytest.mark.long
def test_settings_that_change_what_sql_means_are_refused() -> None:
    """In a process of its own, as an application has one set of them."""
    spark.skip_where_missing()
    script = """
        from lapwing.engines.spark.cluster import Cluster
        from lapwing.errors import Fault
        try:
            Cluster("local[1]", seconds=60, further={"spark.sql.optimizer.maxIterations": "7"}).open()
        except Fault as fault:
            print(fault)
    """
    found = subprocess.run(
        [sys.executable, "-c", dedent(script)], capture_output=True, text=True, check=True, timeout=300
    )
    assert "spark.sql.optimizer.maxIterations" in found.stdout
    assert found.stderr == ""


@pytest.mark.long
def test_a_driver_forgets_the_plans_of_past_queries(cluster: Cluster) -> None:
    """Spark keeps those of 1,000 for its pages, which are closed. Of long queries they fill a gigabyte."""

    def kept(session: Any) -> int:
        return int(session._jsparkSession.sharedState().statusStore().executionsCount())

    for number in range(20):
        cluster.rows(f"SELECT SUM(id + {number}) FROM range(50)")
    assert cluster._run(kept) < 10


MANY_JOINS = """
    from lapwing.engines.spark.cluster import Cluster
    from lapwing.engines.spark.settings import LEAN
    from tests.support.engines.spark import SMALL

    parts = [f"SELECT k, j, SUM(v + {i}) AS v FROM rows GROUP BY k, j" for i in range(30)]
    joined = " ".join(f"JOIN ({part}) AS t{i} USING (k, j)" for i, part in enumerate(parts) if i)
    cluster = Cluster("local[2]", seconds=300, further={**SMALL, "spark.driver.memory": "640m", **PAGES})
    total = " + ".join(f"t{i}.v" for i in range(30))
    for number in range(12):
        rows = f"WITH rows AS (SELECT id % 7 AS k, id % 5 AS j, id + {number} AS v FROM range(50))"
        cluster.rows(f"{rows} SELECT k, SUM({total}) FROM ({parts[0]}) AS t0 {joined} GROUP BY k")
    cluster.close()
"""


@pytest.mark.long
@pytest.mark.parametrize(("settings", "enough"), [("LEAN", True), ("{'spark.buffer.pageSize': '16m'}", False)])
def test_a_driver_with_little_memory_answers_questions_of_many_joins(settings: str, enough: bool) -> None:
    """With large pages it does not: it fails, or only collects garbage. In a process of its own."""
    spark.skip_where_missing()
    script = dedent(MANY_JOINS).replace("PAGES", settings)
    try:
        found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=600)
        answered, told = found.returncode == 0, found.stderr
    except subprocess.TimeoutExpired as expired:
        answered, told = False, str(expired)
    assert answered == enough, told

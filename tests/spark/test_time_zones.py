"""Moments on Spark are in UTC, as on DuckDB, whatever the zone of the machine; also where clocks are put forward.

Files hold them with a zone and without one.
"""

import os
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapwing.catalog.toml import loads
from lapwing.engines import DuckDB
from lapwing.engines.spark import cluster as applications
from lapwing.engines.spark.cluster import Cluster
from lapwing.engines.spark.settings import SETTINGS
from lapwing.query.bind.bind import bind
from tests.support.docs.pages import ROOT
from tests.support.engines import spark
from tests.support.engines.tables import digests

ZONE, ELSEWHERE = "spark.sql.session.timeZone", "America/New_York"
TEXT = """
[dataset]
name = "moments"
engine = "{engine}"
ledger = "sqlite:moments.db"
{cluster}
[budget]
epsilon = 1
delta = 1e-6
delta_keys = 1e-7
[tables.moments]
source = "moments.parquet"
privacy_unit = "row"
rows_at_most = 10000
[tables.moments.columns]
zoned = {{ type = "timestamp", lower = 0002-01-01T00:00:00Z, upper = 9998-12-31T23:59:59Z }}
plain = {{ type = "timestamp", lower = 0002-01-01T00:00:00Z, upper = 9998-12-31T23:59:59Z }}
"""
CONDITIONS = [
    "HOUR({}) < 6",
    "DATE_TRUNC('day', {}) = TIMESTAMP '2024-03-10 00:00:00'",
    "{} >= TIMESTAMP '2024-03-10 02:30:00'",
    "CAST({} AS DATE) = DATE '2024-11-03'",
    "DATE_DIFF('hour', {}, TIMESTAMP '2024-11-04 00:00:00') > 20",
    "{} + INTERVAL 1 DAY < TIMESTAMP '2024-03-11 02:30:00'",
]
COUNTS = [
    f"COUNT(*) FILTER (WHERE {condition.format(column)})" for column in ("zoned", "plain") for condition in CONDITIONS
]
FIRST = f"SELECT {', '.join(COUNTS)} FROM moments"
OTHERS = [
    "SELECT DATE_TRUNC('hour', zoned), COUNT(*) FROM moments GROUP BY 1",
    "SELECT CAST(plain AS DATE), COUNT(*) FROM moments GROUP BY 1",
]


def is_same(text: str, folder: Path) -> bool:
    """Tell whether Spark finds what DuckDB does."""
    starts = [datetime(2024, 3, 9, 20), datetime(2024, 11, 2, 20), datetime(1850, 1, 1), datetime(1582, 10, 3)]
    starts += [datetime(3, 1, 1), datetime(9997, 12, 30)]
    moments = [start + place * timedelta(minutes=37) for start in starts for place in range(60)]
    columns = {"zoned": pa.array([m.replace(tzinfo=UTC) for m in moments], pa.timestamp("us", "UTC"))}
    columns["plain"] = pa.array(moments, pa.timestamp("us"))
    pq.write_table(pa.table(columns), folder / "moments.parquet")
    ours, theirs = (
        loads(TEXT.format(engine=engine, cluster=cluster), file="moments", folder=folder)
        for engine, cluster in (("spark", f'cluster = "{spark.MASTER}"'), ("duckdb", ""))
    )
    own, other = (bind(text, catalog).question for catalog in (ours, theirs))
    with spark.engine(ours) as engine, closing(DuckDB(theirs)) as files:
        return spark.found(spark.run(engine, own)) == spark.found(files.run(other, digests(files, other)))


@pytest.mark.parametrize("text", [FIRST, *(pytest.param(text, marks=pytest.mark.long) for text in OTHERS)])
def test_moments_are_in_utc(text: str, cluster: Cluster, tmp_path: Path) -> None:
    assert is_same(text, tmp_path)


def test_a_session_in_another_zone_is_found(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applications, "SETTINGS", {**SETTINGS, ZONE: ELSEWHERE})
    assert not is_same(FIRST, tmp_path)


@pytest.mark.long
def test_a_machine_in_another_zone_changes_nothing() -> None:
    """The tests above, in a process and a JVM that are elsewhere."""
    spark.skip_where_missing()
    command = [sys.executable, "-m", "pytest", "-q", "-m", "", "-p", "no:xdist", "-p", "no:cacheprovider"]
    command += ["tests/spark/test_time_zones.py", "-k", "test_moments_are_in_utc"]
    ended = subprocess.run(command, cwd=ROOT, env={**os.environ, "TZ": ELSEWHERE}, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout
    assert "3 passed" in ended.stdout

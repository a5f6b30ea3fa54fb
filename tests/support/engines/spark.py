"""Spark for tests: one small application, whose logs go nowhere, and catalogs that it may read."""

import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Final

import pytest

from lapwing.catalog.model import Catalog
from lapwing.engines.base import Exact
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.engines.spark.cluster import Cluster
from lapwing.engines.spark.engine import Spark
from lapwing.query.plan.plan import Question
from tests.support.engines.tables import by_value

MASTER: Final = "local[2]"
SMALL: Final[Mapping[str, str]] = {
    "spark.driver.memory": "1g",
    # What is compiled best takes longest to compile, and nothing here runs for long.
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.sql.shuffle.partitions": "2",
}
SECONDS: Final = 300.0


def skip_where_missing(module: str = "pyspark") -> None:
    """Skip a test where Spark, or its client, is not installed, or Java is not. Args: module: what is imported."""
    pytest.importorskip(module)
    if shutil.which("java") is None:
        pytest.skip("there is no Java")


def java() -> "subprocess.Popen[bytes] | None":
    """Return the process of the JVM that Spark's driver in this process has, if it has one."""
    context = sys.modules.get("pyspark.core.context")
    gateway = None if context is None else context.SparkContext._gateway
    return None if gateway is None else gateway.proc


@contextmanager
def application() -> Iterator[Cluster]:
    """Hold the application that all tests share; what they open beside it joins it."""
    skip_where_missing()
    with TemporaryDirectory() as classes:  # tests may put some there
        cluster = Cluster(MASTER, seconds=SECONDS, further={**SMALL, "spark.driver.extraClassPath": classes})
        cluster.open()
        try:
            yield cluster
        finally:
            cluster.close()


def on_spark(catalog: Catalog, *, master: str = MASTER) -> Catalog:
    """Return a catalog whose Parquet tables are asked on Spark; it has no others."""
    files = tuple(table for table in catalog.tables if table.source.endswith(".parquet"))
    return replace(catalog, engine="spark", cluster=master, tables=files)


@contextmanager
def engine(catalog: Catalog, public: PublicData | None = None) -> Iterator[Spark]:
    opened = Spark(catalog, public=public, seconds=SECONDS)
    try:
        yield opened
    finally:
        opened.close()


def digests(engine: Spark, question: Question) -> dict[str, str]:
    """Return the digests of the data that a question stands on, as they are."""
    return {table.name: engine.digest(table, {"any": ""}) for table in question.lineage}


def run(engine: Spark, question: Question) -> Exact:
    """Return what is found for a question, of the data as they are."""
    return engine.run(question, digests(engine, question))


def found(exact: Exact) -> tuple[object, object, object]:
    """Return what was found in a form that can be compared: cells, leaves, holders."""
    leaves = {
        measure: {cell: sorted(zip(*map(list, pair), strict=True)) for cell, pair in cells.items()}
        for measure, cells in exact.leaves.items()
    }
    return {cell: sums for cell, sums in exact.cells.items() if any(sums)}, leaves, by_value(exact.holders)

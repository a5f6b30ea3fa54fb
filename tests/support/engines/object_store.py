"""An S3 server for Spark, and a file system for its JVM that stands in for hadoop-aws (`java/StoreFileSystem.java`)."""

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

SOURCE = Path(__file__).parent / "java" / "StoreFileSystem.java"


def compile_file_system(context: Any) -> None:
    """Compile the file system to where a JVM looks for classes."""
    if shutil.which("javac") is None:
        pytest.skip("there is no Java compiler")
    classes = context.getConf().get("spark.driver.extraClassPath")
    import pyspark

    jars = Path(pyspark.__file__).parent / "jars"
    (client,) = jars.glob("hadoop-client-api-*.jar")
    subprocess.run(["javac", "-d", classes, "-cp", str(client), str(SOURCE)], check=True, timeout=120)


@contextmanager
def known(context: Any, settings: Mapping[str, str]) -> Iterator[None]:
    """Let a JVM have settings of Hadoop for a while."""
    conf = context._jsc.hadoopConfiguration()
    before = {name: conf.get(name) for name in settings}
    for name, value in settings.items():
        conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                conf.unset(name)
            else:
                conf.set(name, value)


def settings_of(address: str) -> dict[str, str]:
    """Return the settings by which a JVM reads the server as s3a://. They hold for each test alone."""
    return {
        "fs.s3a.impl": "StoreFileSystem",
        "fs.s3a.impl.disable.cache": "true",
        "store.endpoint": address,
    }


def put(system: fs.FileSystem, name: str, rows: pa.Table) -> None:
    """Write rows into an object."""
    with system.open_output_stream(name) as there:
        pq.write_table(rows, there)


def refuse_strangers(address: str, requests: int) -> None:
    """Let a server of moto ask for signatures after so many requests."""
    data, kind = str(requests).encode(), {"Content-Type": "text/plain"}
    asked = Request(f"{address}/moto-api/reset-auth", data=data, headers=kind, method="POST")
    urlopen(asked, timeout=10).close()

"""The second fence: were a question's text to reach the engine after all, it would find nothing to hold."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from lapwing.engines import DuckDB
from tests.support.engines.tables import catalog, parquet

FORBIDDEN = [
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_blob('/etc/passwd')",
    "SELECT * FROM read_json('/etc/passwd')",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM '{folder}/secret.parquet'",
    "SELECT * FROM read_parquet('{folder}/secret.parquet')",
    "SELECT * FROM read_parquet('{folder}/./t.parquet/../secret.parquet')",
    "SELECT * FROM read_parquet('{folder}/*.parquet')",
    "SELECT * FROM parquet_metadata('{folder}/secret.parquet')",
    "SELECT * FROM glob('{folder}/*')",
    "SELECT * FROM read_csv('https://example.com/x.csv')",
    "SELECT * FROM sniff_csv('/etc/passwd')",
    "ATTACH '{folder}/other.db'",
    "ATTACH ':memory:' AS other",
    "COPY (SELECT 1) TO '{folder}/out.csv'",
    "COPY (SELECT 1) TO '{folder}/t.parquet'",
    "EXPORT DATABASE '{folder}/out'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "LOAD '{folder}/evil.duckdb_extension'",
    "SET enable_external_access = true",
    "SET allowed_paths = ['/etc/passwd']",
    "RESET allowed_paths",
    "SET allowed_directories = ['/']",
    "SET lock_configuration = false",
    "SET memory_limit = '1TB'",
    "SET threads = 64",
    "SET temp_directory = '/tmp'",
    "SET disabled_optimizers = ''",
    "SET TimeZone = 'Asia/Tokyo'",
    "SET python_enable_replacements = true",
    "PRAGMA memory_limit = '1TB'",
    "SELECT * FROM here",
    "SELECT getenv('HOME')",
    "CREATE PERSISTENT SECRET s (TYPE s3)",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("locked")


@pytest.fixture(scope="module")
def engine(folder: Path) -> Iterator[DuckDB]:
    parquet(folder, {"x": [1, 2, 3]})
    parquet(folder, {"x": [42]}, "secret.parquet")
    engine = DuckDB(catalog(folder, {"x": '{ type = "integer" }'}))
    yield engine
    engine.close()


@pytest.mark.parametrize("text", FORBIDDEN)
def test_nothing_but_the_sources_can_be_reached(text: str, engine: DuckDB, folder: Path) -> None:
    here = [1, 2, 3]
    before = sorted(folder.rglob("*"))
    if text == "ATTACH ':memory:' AS other":  # harmless: it lives and dies with the engine
        return
    with pytest.raises(duckdb.Error):
        engine._connection.cursor().execute(text.format(folder=folder)).fetchall()
    assert here
    assert sorted(folder.rglob("*")) == before


def test_the_source_can_be_read(engine: DuckDB, folder: Path) -> None:
    """So that the test above does not pass because nothing works."""
    rows = engine._connection.cursor().execute(f"SELECT * FROM read_parquet('{folder}/t.parquet')").fetchall()
    assert rows == [(1,), (2,), (3,)]


def test_without_the_lock_the_file_is_read(folder: Path) -> None:
    with duckdb.connect() as plain:
        assert plain.execute(f"SELECT * FROM read_parquet('{folder}/secret.parquet')").fetchall() == [(42,)]


def test_what_is_set(engine: DuckDB) -> None:
    names = ["memory_limit", "preserve_insertion_order", "TimeZone", "enable_external_file_cache"]
    found = {name: engine.fetch(f"SELECT current_setting('{name}')")[0][0] for name in names}
    assert found == {
        "memory_limit": "953.6 MiB",
        "preserve_insertion_order": False,
        "TimeZone": "UTC",
        "enable_external_file_cache": False,
    }


ZONED = """
import sys
from datetime import datetime
from pathlib import Path
import pyarrow as pa
from lapwing.engines import DuckDB
from tests.support.engines.tables import ask, catalog, parquet
folder = Path(sys.argv[1])
parquet(folder, {"x": pa.array([datetime(2026, 1, 1, 1)], pa.timestamp("us", "UTC"))})
found = catalog(folder, {"x": '{ type = "timestamp" }'})
engine = DuckDB(found)
print(ask(engine, found, "SELECT COUNT(*) AS n FROM t WHERE x = '2026-01-01 01:00:00'")[()])
"""


@pytest.mark.long
def test_timestamps_are_utc_wherever_the_machine_stands(tmp_path: Path) -> None:
    """A connection's own setting is not its cursors'."""
    ended = subprocess.run(
        [sys.executable, "-c", ZONED, str(tmp_path)],
        env={**os.environ, "TZ": "Asia/Tokyo", "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stdout == "(1,)\n", ended.stderr

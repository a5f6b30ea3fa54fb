"""What fails after the charge fails with one message; what cannot be read is no data before anybody asks."""

import os
import re
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from lapwing.catalog.model import Catalog
from lapwing.engines import FAILED, DuckDB
from lapwing.engines.duckdb import overdue
from lapwing.engines.duckdb.database import Database
from lapwing.errors import DataFault, EngineFault
from lapwing.query.bind.bind import bind
from tests.support.effort import one_in, only
from tests.support.engines.tables import ask, catalog, digests, parquet, run
from tests.support.server.queueing import until

COLUMNS = {"x": '{ type = "integer", lower = 0, upper = 100 }', "note": '{ type = "string" }'}
QUESTION = "SELECT COUNT(*) AS n, SUM(x) AS s, COUNT(note) AS notes FROM t"
ROWS = 50_000


@pytest.fixture
def found(tmp_path: Path) -> Catalog:
    parquet(tmp_path, {"x": list(range(ROWS)), "note": [f"secret {i}" for i in range(ROWS)]})
    return catalog(tmp_path, COLUMNS)


@pytest.fixture
def engine(found: Catalog) -> Iterator[DuckDB]:
    engine = DuckDB(found)
    engine.digest(found.tables[0])
    yield engine
    engine.close()


def fault(engine: DuckDB, found: Catalog) -> EngineFault:
    """Return the fault of a question, having seen that it says one thing and holds no other."""
    first = next(iter(engine._digests.values()), "never read")
    with pytest.raises(EngineFault) as raised:
        engine.run(bind(QUESTION, found).question, {"t": first})
    assert str(raised.value) == FAILED
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None
    return raised.value


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def corrupt(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[200:400] = bytes(200)
    path.write_bytes(content)


def replace(path: Path) -> None:
    parquet(path.parent, {"x": [1], "note": ["a"]})


def touch(path: Path) -> None:
    """Write the same bytes again: it is not known to be the same without reading it."""
    path.write_bytes(path.read_bytes())


def swap(path: Path) -> None:
    """Put another file in its place that keeps size and time."""
    status = path.stat()
    other = path.with_name("other")
    shutil.copy(path, other)
    corrupt(other)
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.replace(path)


CHANGES: list[Callable[[Path], None]] = [Path.unlink, truncate, corrupt, replace, swap]


@pytest.mark.parametrize("change", only([0], CHANGES), ids=lambda change: change.__name__)
def test_a_file_that_changes_after_the_digest_is_not_answered_from(
    change: Callable[[Path], None], engine: DuckDB, found: Catalog
) -> None:
    change(found.folder / "t.parquet")
    fault(engine, found)


@pytest.mark.parametrize("change", only([0], CHANGES), ids=lambda change: change.__name__)
def test_a_file_that_changes_while_it_is_read_is_not_answered_from(
    change: Callable[[Path], None], engine: DuckDB, found: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch = DuckDB.fetch

    def changing(self: DuckDB, query: str) -> Any:
        rows = fetch(self, query)
        change(found.folder / "t.parquet")
        return rows

    monkeypatch.setattr(DuckDB, "fetch", changing)
    fault(engine, found)


def test_a_file_that_was_never_read_through_is_not_answered_from(found: Catalog) -> None:
    engine = DuckDB(found)
    fault(engine, found)
    engine.close()


@pytest.mark.parametrize(
    "error", one_in(2, [duckdb.OutOfMemoryException("secret 7"), RuntimeError("secret 7"), MemoryError()])
)
def test_every_error_reads_the_same(
    error: Exception, engine: DuckDB, found: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_self: DuckDB, _query: str) -> Any:
        raise error

    monkeypatch.setattr(DuckDB, "fetch", failing)
    fault(engine, found)


# ---- what cannot be read is refused before anybody asks --------------------------------------------------------------


def not_utf8(folder: Path) -> None:
    """Text that is not UTF-8 in a file that says it is."""
    offsets, data = np.array([0, 2, 4], dtype=np.int32), b"\xff\xfeab"
    array = pa.Array.from_buffers(pa.string(), 2, [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(data)])
    parquet(folder, {"x": [1, 2], "note": array})


def beyond_time(folder: Path) -> None:
    """A time in milliseconds that has no microseconds: the reader raises, where no TRY_CAST can help."""
    times = pa.array([10**17, 0], pa.int64()).cast(pa.timestamp("ms"))
    parquet(folder, {"x": [1, 2], "note": times})


def damaged(folder: Path) -> None:
    path = parquet(folder, {"x": list(range(ROWS)), "note": [str(i) for i in range(ROWS)]})
    corrupt(path)


def cut_off(folder: Path) -> None:
    damaged(folder)
    truncate(folder / "t.parquet")


def of_another_kind(folder: Path) -> None:
    (folder / "t.parquet").write_text("x,note\n1,a\n")


@pytest.mark.parametrize("write", only([0], [not_utf8, beyond_time, damaged, cut_off, of_another_kind]))
def test_what_cannot_be_read_to_its_end_is_no_data(write: Callable[[Path], None], tmp_path: Path) -> None:
    """Otherwise each question would fail or not, depending on whether one such row is there."""
    write(tmp_path)
    engine = DuckDB(catalog(tmp_path, COLUMNS))
    with pytest.raises(DataFault) as raised:
        engine.digest(catalog(tmp_path, COLUMNS).tables[0])
    assert str(raised.value).startswith("The file t.parquet of table t cannot be read to its end")
    engine.close()


def test_reading_through_costs_no_columns_that_are_not_declared(tmp_path: Path) -> None:
    not_utf8(tmp_path)
    found = catalog(tmp_path, {"x": COLUMNS["x"]})
    engine = DuckDB(found)
    assert ask(engine, found, "SELECT SUM(x) AS s FROM t") == {(): (3,)}
    engine.close()


def test_a_file_that_changes_while_it_is_read_through_has_no_digest(
    found: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = Database.query

    def changing(self: Database, text: str) -> Any:
        rows = query(self, text)
        touch(found.folder / "t.parquet")
        return rows

    monkeypatch.setattr(Database, "query", changing)
    engine = DuckDB(found)
    with pytest.raises(DataFault, match="changed while it was read; try again"):
        engine.digest(found.tables[0])
    engine.close()


def test_a_digest_is_remembered_for_as_long_as_the_file_stays(engine: DuckDB, found: Catalog) -> None:
    table, path = found.tables[0], found.folder / "t.parquet"
    first = engine.digest(table)
    touch(path)
    assert engine.digest(table) == first
    replace(path)
    assert engine.digest(table) != first


def test_other_data_are_not_run_even_if_they_were_read_before(engine: DuckDB, found: Catalog, tmp_path: Path) -> None:
    """What counts is the digest that the ledger accepted, not that this process has seen the file."""
    question = bind(QUESTION, found).question
    accepted = digests(engine, question)
    assert engine.run(question, accepted).cells[()][0] == ROWS
    parquet(tmp_path, {"x": [1], "note": ["other"]})
    other = digests(engine, question)
    assert engine.run(question, other).cells[()][0] == 1
    with pytest.raises(EngineFault, match=re.escape(FAILED)):
        engine.run(question, accepted)


# ---- time and space --------------------------------------------------------------------------------------------------

SLOW = "SELECT COUNT(*) FROM range(10000000) AS a(i), range(100000) AS b(j) WHERE i * j % 7 = 3"


def test_the_time_limit_ends_a_question(found: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = DuckDB(found, seconds=0.2)
    engine.digest(found.tables[0])
    monkeypatch.setattr(DuckDB, "fetch", lambda self, _: self._database.query(SLOW))
    begun = time.monotonic()
    fault(engine, found)
    assert time.monotonic() - begun < 120
    monkeypatch.undo()
    engine._database._seconds = 600.0  # what is quick takes longer than that on a busy machine
    assert run(engine, bind(QUESTION, found).question)
    engine.close()


@pytest.mark.long
@pytest.mark.usefixtures("interruptible")
def test_the_time_limit_ends_a_query_in_a_thread_that_nobody_stops(found: Catalog) -> None:
    """Such a query runs in the thread that asks; the next one of the same session is not hit."""
    database = DuckDB(found, seconds=0.3)._database

    def asked() -> None:
        with database.session() as ask:
            with pytest.raises(duckdb.InterruptException):
                ask(SLOW)
            database._seconds = 600.0  # what is quick takes longer than that on a busy machine
            assert ask("SELECT 1") == [(1,)]

    def is_worked_by_another() -> bool:
        before = len(database._idle)
        database.query("SELECT 1")
        return len(database._idle) > before

    with ThreadPoolExecutor(1) as thread:
        thread.submit(asked).result()
        assert not thread.submit(is_worked_by_another).result()
    assert is_worked_by_another()  # in the main thread, which hears Ctrl-C
    database.close()


def test_only_what_is_overdue_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overdue, "PAUSE", 0.01)
    early, late, ended = Mock(), Mock(), Mock()
    with overdue.interrupted_after(1000, early), overdue.interrupted_after(0, late):
        with overdue.interrupted_after(0.005, ended):
            pass
        ended.reset_mock()  # a busy machine may take longer than that
        seen = late.interrupt.call_count
        until(lambda: late.interrupt.call_count > seen + 1)
    assert not early.interrupt.called
    assert not ended.interrupt.called
    until(lambda: not overdue._looking)  # the thread ends where nothing runs


def test_a_forked_process_knows_nothing_of_what_runs_in_its_parent() -> None:
    with overdue.interrupted_after(1000, Mock()), overdue._lock:
        child = os.fork()
        if child == 0:
            with overdue.interrupted_after(1000, Mock()):
                os._exit(0 if len(overdue._running) == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_keyboard_interrupt_ends_a_query(engine: DuckDB, interruptible: None) -> None:
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))

    def interrupted() -> None:  # caught as well if the machine is so slow that the signal comes before the query
        timer.start()
        engine.fetch(SLOW)

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    timer.join()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert engine.fetch("SELECT 1") == [(1,)]


@pytest.mark.long
def test_too_little_memory_is_a_fault_like_any_other(
    engine: DuckDB, found: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    greedy = "SELECT list(i) FROM range(1000000000) AS t(i)"
    small = DuckDB(found, memory=50_000_000)
    small.digest(found.tables[0])
    monkeypatch.setattr(DuckDB, "fetch", lambda self, _: self._database.query(greedy))
    fault(small, found)
    small.close()


def test_the_spill_folder_is_private_and_goes_with_the_engine(found: Catalog) -> None:
    engine = DuckDB(found)
    (spill,) = engine.fetch("SELECT current_setting('temp_directory')")[0]
    assert Path(spill).stat().st_mode & 0o077 == 0
    engine.close()
    assert not Path(spill).exists()


def test_the_spill_folder_goes_when_the_engine_is_forgotten(found: Catalog) -> None:
    engine = DuckDB(found)
    (spill,) = engine.fetch("SELECT current_setting('temp_directory')")[0]
    engine._connection.close()
    del engine
    assert not Path(spill).exists()


@pytest.mark.long
def test_questions_run_side_by_side(engine: DuckDB, found: Catalog) -> None:
    question = bind(QUESTION, found).question
    wanted, seen = run(engine, question), []
    threads = [threading.Thread(target=lambda: seen.append(run(engine, question))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [wanted] * 6

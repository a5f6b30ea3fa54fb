"""Rows that threads add to the file of a service while another commit is under way."""

import sqlite3
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from lapwing.server.sqlite_store import SqliteStore

ADD = "INSERT INTO numbers (number) VALUES (?) ON CONFLICT DO NOTHING"


def added_while_held(path: Path, numbers: Sequence[int | None]) -> tuple[list[Future[None]], list[int], int]:
    """Let threads add rows while the file is held; return what came of each, the rows, and how often was committed."""
    store, statements = SqliteStore(path), list[str]()
    with store.transaction() as connection:
        connection.execute("CREATE TABLE numbers (number INTEGER NOT NULL UNIQUE)")
    with ThreadPoolExecutor(len(numbers)) as pool, store.transaction():
        futures = [pool.submit(store.add, ADD, (number,)) for number in numbers]
        while len(store._waiting) < len(numbers):
            time.sleep(0.001)
        store._writer.set_trace_callback(statements.append)
    rows = [number for (number,) in store.look("SELECT number FROM numbers ORDER BY number")]
    store.close()
    return futures, rows, statements.count("COMMIT") - 1


def test_rows_that_wait_are_kept_by_one_commit(tmp_path: Path) -> None:
    futures, rows, commits = added_while_held(tmp_path / "people.db", [1, 2, 3, 4, 5])
    assert [future.exception() for future in futures] == [None] * 5
    assert rows == [1, 2, 3, 4, 5]
    assert commits == 1


def test_an_error_of_one_row_is_nobody_elses(tmp_path: Path) -> None:
    """A planted bug that takes rows of a failed commit for kept ones loses the four others."""
    futures, rows, commits = added_while_held(tmp_path / "people.db", [1, 2, None, 4, 5])
    assert [type(future.exception()) for future in futures if future.exception()] == [sqlite3.IntegrityError]
    assert rows == [1, 2, 4, 5]
    assert commits == 0


def test_a_row_within_a_transaction_goes_with_it(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "people.db")
    with store.transaction() as connection:
        connection.execute("CREATE TABLE numbers (number INTEGER NOT NULL UNIQUE)")
    with store.transaction() as connection:
        store.add(ADD, (1,))
        connection.execute("ROLLBACK")
        connection.execute("BEGIN")
    assert not store.look("SELECT * FROM numbers")
    store.close()

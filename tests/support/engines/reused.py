"""Databases of DuckDB that one session after another uses, as long as a process of tests runs.

Opening and closing one takes 25 ms, most of what opening a session takes, and a run opens thousands. What makes each
new is that it may open the files of its session alone; those here may open any. So rooms whose tests do not ask what a
database may open use these (`reused_databases`), and those of engines, sources and threats do not.

One session uses a database at a time. When that closes it, what was attached and every table that was made go.
"""

import gc
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any, Final

import duckdb
import pytest

from lapwing.engines.duckdb import database
from lapwing.engines.duckdb.lockdown import configured, lock_down

MOST: Final = 8
"""Databases that wait for a session."""
LEFT: Final = """
    SELECT 'DETACH "' || database_name || '"' FROM duckdb_databases() WHERE NOT internal AND database_name <> 'memory'
    UNION ALL SELECT 'DROP TABLE memory.main."' || table_name || '"' FROM duckdb_tables() WHERE database_name = 'memory'
"""
"""What undoes all that a session can have made."""
_free: Final[defaultdict[tuple[int, int, int], list[duckdb.DuckDBPyConnection]]] = defaultdict(list)
"""By process, memory and threads: a child that was forked uses none of its parent's, whose threads it has not."""
_folders: Final[list[TemporaryDirectory[str]]] = []
os.register_at_fork(after_in_child=gc.freeze)  # nor may it find and end those that its parent has lost


class Reused:
    """The connection of a session to a database that others had before, and others will have."""

    def __init__(self, memory: int, threads: int) -> None:
        self._kind = os.getpid(), memory, threads
        self._database = _free[self._kind].pop() if _free[self._kind] else _opened(memory, threads)
        self._connection = self._database.cursor()
        self._is_open = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def close(self) -> None:
        """Let go of the database: what it holds is dropped, and the next session has it."""
        if not self._is_open or os.getpid() != self._kind[0]:
            return
        self._is_open = False
        try:
            for statement in self._connection.execute(LEFT).fetchall():
                self._connection.execute(*statement)
        except duckdb.Error:  # something of it still runs
            self._database.close()
        else:
            if len(_free[self._kind]) < MOST:
                _free[self._kind].append(self._database)
            else:
                self._database.close()
        self._connection.close()


def _opened(memory: int, threads: int) -> duckdb.DuckDBPyConnection:
    """Return a database that may open all files, and is locked as every other is."""
    _folders.append(TemporaryDirectory())
    opened = configured(_folders[-1].name, memory, threads)
    opened.execute("SET GLOBAL allowed_configs = ['enable_progress_bar', 'enable_progress_bar_print']")
    lock_down(opened, [], ["/"])
    return opened


def _locked(connection: Any, paths: Sequence[str], folders: Sequence[str] = ()) -> None:
    if not isinstance(connection, Reused):
        lock_down(connection, paths, folders)


@contextmanager
def reusing() -> Iterator[None]:
    """Let sessions use databases that others have used."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "configured", lambda spill, memory, threads: Reused(memory, threads))
        patch.setattr(database, "lock_down", _locked)
        yield


@pytest.fixture(autouse=True, scope="module")
def reused_databases() -> Iterator[None]:
    """Let all sessions of a module use them: for the `conftest` of a room to import."""
    with reusing():
        yield

"""What tests use in place of a new database (`tests.support.engines.reused`): it holds nothing of the one before."""

import gc
import os
from pathlib import Path
from typing import Any

import duckdb
import pytest

from lapwing.engines.duckdb.database import Database
from tests.support.engines.reused import reusing


def database() -> Database:
    return Database(paths=[], folders=[], memory=10**8, threads=1, seconds=60)


def taken(engine: Database) -> object:
    """Return the database that an engine has for now."""
    connection: Any = engine.connection
    return connection._database


def test_nothing_is_left_for_the_next(tmp_path: Path) -> None:
    with reusing():
        first = database()
        used = first.connection.execute("SELECT 7").fetchall(), id(taken(first))
        first.query(f"ATTACH '{tmp_path}/other.db' AS other")
        first.query("CREATE TABLE other.one AS SELECT 1 AS x")
        first.query("CREATE TABLE held AS SELECT 1 AS x")
        first.close()
        second = database()
        assert (second.query("SELECT 7"), id(taken(second))) == used
        for gone in ("held", "other.one"):
            with pytest.raises(duckdb.CatalogException):
                second.query(f"FROM {gone}")
        second.query("CREATE TABLE held AS SELECT 1 AS x")
        with pytest.raises(duckdb.InvalidInputException, match="locked"):
            second.query("SET GLOBAL memory_limit = '1GB'")
        second.close()
        with pytest.raises(duckdb.ConnectionException):
            second.query("SELECT 7")


def test_a_child_ends_none_that_its_parent_lost() -> None:
    """To end one takes its threads, which a forked child has not: it would crash wherever it looks for garbage."""
    with reusing():
        lost: list[Any] = [database()]
        lost.append(lost)
        gc.disable()
        try:
            del lost
            child = os.fork()
            if child == 0:
                gc.collect()
                os._exit(0)
        finally:
            gc.enable()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_two_at_once_are_two() -> None:
    with reusing():
        one, other = database(), database()
        one.query("CREATE TABLE held AS SELECT 1 AS x")
        other.query("CREATE TABLE held AS SELECT 2 AS x")
        assert (one.query("FROM held"), other.query("FROM held")) == ([(1,)], [(2,)])
        one.close()
        other.close()


def test_elsewhere_they_are_new_and_open_nothing(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("x\n1\n")
    read = f"FROM read_csv('{tmp_path}/x.csv')"
    with reusing():
        reused = database()
        assert reused.query(read) == [(1,)]
        reused.close()
    new = database()
    with pytest.raises(duckdb.PermissionException):
        new.query(read)
    new.close()

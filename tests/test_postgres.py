"""The servers of the tests: usable, separate, and gone with whoever started them, however that ended."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

from tests.support import postgres as servers
from tests.support.effort import one_in
from tests.support.postgres import Postgres

ROOT = Path(__file__).parents[1]
HOLD = """
import signal, sys
from pathlib import Path
from tests.support.postgres import QUICK, server
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the tests may have it ignored
with server(Path(sys.argv[1]), **QUICK) as running:
    print(running.folder, (running.folder / "data" / "postmaster.pid").read_text().split()[0], flush=True)
    sys.stdin.read()
"""


def test_a_test_has_an_empty_database(postgres: str) -> None:
    with psycopg.connect(postgres) as connection:
        assert connection.execute("SELECT COUNT(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (0,)
        connection.execute("CREATE TABLE kept (n integer)")


def test_databases_are_separate_and_dropped(shared_postgres: Postgres) -> None:
    with shared_postgres.database() as one, shared_postgres.database() as other:
        with psycopg.connect(one) as connection:
            connection.execute("CREATE TABLE kept (n integer)")
        with psycopg.connect(other) as connection, pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("SELECT * FROM kept")
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(one)


@pytest.mark.long
@pytest.mark.parametrize("immediate", one_in(2, [False, True]))
def test_a_server_keeps_what_was_committed(own_postgres: Postgres, immediate: bool) -> None:
    with own_postgres.database() as address:
        cut_off = psycopg.connect(address)
        with psycopg.connect(address) as connection:
            connection.execute("CREATE TABLE kept (n integer)")
            connection.execute("INSERT INTO kept VALUES (7)")
        own_postgres.restart(immediate=immediate)
        with pytest.raises(psycopg.OperationalError):
            cut_off.execute("SELECT n FROM kept")
        cut_off.close()
        with psycopg.connect(address) as connection:
            assert connection.execute("SELECT n FROM kept").fetchone() == (7,)
            assert connection.execute("SHOW fsync").fetchone() == ("on",)
        own_postgres.stop()
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(address)


def has_ended(process: int) -> bool:
    """Tell whether a process ends soon: a dead one has a number until its new parent looks."""
    for _ in range(6000):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("how", one_in(3, [signal.SIGINT, signal.SIGKILL, None]))
def test_nothing_is_left_of_a_server(postgres_files: Path, how: signal.Signals | None) -> None:
    """The reader's end of our output closes when the last process of the runner and its keeper has ended."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(postgres_files)], cwd=ROOT, text=True, start_new_session=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as runner:  # fmt: skip
        assert runner.stdin is not None
        assert runner.stdout is not None
        folder, process = runner.stdout.readline().split()
        assert Path(folder).is_dir()
        if how is None:
            runner.stdin.close()
        else:
            os.killpg(runner.pid, how)
        assert runner.stdout.read() == ""
    assert not Path(folder).exists()
    assert has_ended(int(process))


def test_without_postgres_a_test_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "programs", lambda: None)
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="apt install postgresql"), servers.server():
        pass
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="apt install postgresql"), servers.server():
        pass

"""PostgreSQL for tests: servers of our own, in folders of their own, gone when the tests are.

A server listens on a Unix socket in its folder only, so no port can be taken by somebody else. PostgreSQL refuses to
run as root; there it runs as another user, who owns the folder. Whoever stops the tests, and however, a keeper notices:
a shell that waits for the end of a pipe, which closes when this process ends, then stops the server and removes the
folder. An orderly end closes the pipe too, so there is one way to end.
"""

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from typing import Final, NoReturn, final
from urllib.parse import quote

import psycopg
import pytest
from psycopg import sql

MISSING: Final = "PostgreSQL is not installed: tests that need it are skipped. On Debian, `apt install postgresql`."
OWNER: Final = "lapwing"
"""The one role of a server, with all rights."""
CLUSTERS: Final = Path("/usr/lib/postgresql")
"""Where Debian keeps the programs, which it does not put on PATH."""
MEMORY: Final = "/dev/shm"
ROOM: Final = 4 << 30
QUICK: Final = {"synchronous_commit": "off", "full_page_writes": "off"}
SETTINGS: Final = {"listen_addresses": "", "max_connections": "200", "shared_buffers": "32MB", "log_timezone": "UTC"}
KEEPER: Final = """
trap '' HUP INT QUIT TERM
cat > /dev/null
"$1" --pgdata "$2/data" --mode immediate --timeout 300 stop > /dev/null 2>&1
rm -rf "$2"
"""
_NUMBERS: Final = count(1)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Postgres:
    """A server in a folder; `programs` is where those of PostgreSQL are, and `user` who runs them, if not we."""

    folder: Path
    programs: Path
    user: Mapping[str, object]

    def start(self) -> None:
        """Start the server, and return when it takes connections."""
        log = str(self.folder / "log")
        try:
            self._run("pg_ctl", "--pgdata", self._data, "--wait", "--timeout", "300", "--log", log, "start")
        except subprocess.CalledProcessError as error:
            raise RuntimeError(f"PostgreSQL does not start: {error.stdout}\n{Path(log).read_text()}") from error

    def stop(self, *, immediate: bool = False) -> None:
        """Stop the server: its clients are cut off, and `immediate` also cuts off its own writing, as a crash does."""
        mode = "immediate" if immediate else "fast"
        self._run("pg_ctl", "--pgdata", self._data, "--wait", "--timeout", "300", "--mode", mode, "stop")

    def restart(self, *, immediate: bool = False) -> None:
        """Stop the server and start it again."""
        self.stop(immediate=immediate)
        self.start()

    def url(self, database: str = "postgres") -> str:
        """Return the address of a database."""
        return f"postgres://{OWNER}@/{database}?host={quote(str(self.folder), safe='')}"

    @contextmanager
    def database(self) -> Iterator[str]:
        """Make an empty database, give its address, and drop it."""
        name = sql.Identifier(f"test_{os.getpid()}_{next(_NUMBERS)}")
        self._tell(sql.SQL("CREATE DATABASE {}").format(name))
        try:
            yield self.url(name.as_string().strip('"'))
        finally:
            with suppress(psycopg.OperationalError):  # stopped by the test
                self._tell(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))

    def create(self, settings: Mapping[str, str], files: Path | None = None) -> None:
        """Make the files of the server, with settings; or copy them from a server that never ran, which is quicker."""
        if files is None:
            self._run("initdb", "--pgdata", self._data, "--no-sync", "--auth", "trust", "--username", OWNER,
                      "--encoding", "UTF8", "--locale", "C")  # fmt: skip
        else:
            self._run("/bin/cp", "-a", str(files), self._data)
        told = {**SETTINGS, **settings, "unix_socket_directories": str(self.folder)}
        with (self.folder / "data" / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in told.items())

    @property
    def _data(self) -> str:
        return str(self.folder / "data")

    def _tell(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(statement)

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [str(self.programs / program), *arguments],
            check=True, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            cwd="/", **self.user,  # type: ignore[call-overload]
        )  # fmt: skip


def programs() -> Path | None:
    """Return where the programs of PostgreSQL are, the newest; None if they are not installed."""
    found = shutil.which("initdb")
    beside = [] if found is None else [Path(found).resolve().parent]
    versions = sorted(CLUSTERS.glob("[0-9]*/bin"), key=lambda path: -float(path.parent.name))
    wanted = ("initdb", "pg_ctl", "postgres")
    return next((path for path in [*beside, *versions] if all((path / name).exists() for name in wanted)), None)


def folders() -> str:
    """Return where folders of servers are: in memory if it has room, for a disk takes a while for each of their syncs.

    The path is short, since that of a socket is limited, and everybody may go through it.
    """
    in_memory = os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM
    return MEMORY if in_memory else "/tmp"


def user() -> dict[str, object]:
    """Return as whom a server is to run, as arguments of `subprocess`: not as root."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            known = pwd.getpwnam(name)
            return {"user": known.pw_uid, "group": known.pw_gid, "extra_groups": ()}
    raise RuntimeError("PostgreSQL does not run as root, and there is no user postgres or nobody.")


@contextmanager
def server(files: Path | None = None, **settings: str) -> Iterator[Postgres]:
    """Run a server of its own.

    Args: files: those of a server that never ran, to be copied.
    """
    with kept() as made:
        made.create(settings, files)
        made.start()
        yield made


@contextmanager
def kept() -> Iterator[Postgres]:
    """Give a server a folder, and remove it with all that runs there, whatever becomes of this process."""
    where = programs()
    if where is None:
        skip()
    unprivileged = user()
    folder = Path(mkdtemp(prefix="lapwing-postgres-", dir=folders()))
    if unprivileged:
        shutil.chown(folder, unprivileged["user"], unprivileged["group"])  # type: ignore[call-overload]
    keeper = subprocess.Popen(
        ["/bin/sh", "-c", KEEPER, "sh", str(where / "pg_ctl"), str(folder)],
        stdin=subprocess.PIPE, cwd="/", start_new_session=True, **unprivileged,  # type: ignore[call-overload]
    )  # fmt: skip
    try:
        yield Postgres(folder=folder, programs=where, user=unprivileged)
    finally:
        keeper.stdin.close()
        keeper.wait()


def skip() -> NoReturn:
    """Skip the test, or fail it where all tests are to run."""
    if os.environ.get("CI") == "true":
        pytest.fail(MISSING)
    pytest.skip(MISSING)


@pytest.fixture(scope="session")
def postgres_files() -> Iterator[Path]:
    """The files of a server that never runs, which others copy: to make them takes a second."""
    with kept() as made:
        made.create({})
        yield made.folder / "data"


@pytest.fixture(scope="session")
def shared_postgres(postgres_files: Path) -> Iterator[Postgres]:
    """A server for all tests of this process, which may not stop it; it forgets in a power failure, and is fast."""
    with server(postgres_files, **QUICK) as running:
        yield running


@pytest.fixture
def postgres(shared_postgres: Postgres) -> Iterator[str]:
    """The address of an empty database of the test's own."""
    with shared_postgres.database() as address:
        yield address


@pytest.fixture
def own_postgres(postgres_files: Path) -> Iterator[Postgres]:
    """A server of the test's own, which syncs, to be stopped and started."""
    with server(postgres_files) as running:
        yield running

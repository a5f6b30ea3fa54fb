"""Full disks, folders that cannot be written, a first start that is killed, and a clock that is set: nothing is lost.

What limits a whole process (the size of its files, whose it is) is done to processes of their own.
"""

import os
import resource
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from argon2 import PasswordHasher

from lapwing.errors import Fault, LapwingError, NotAuthorised
from lapwing.server import credentials, first_curator
from lapwing.server.answer_store import AnswerStore
from lapwing.server.audit_log import first_broken, lines
from lapwing.server.people import DAY, People
from lapwing.server.sqlite_store import SqliteStore
from tests.support.processes import CONTEXT
from tests.support.server.world import QUESTION, World, service_in, serving

PASSWORD: Final = "correct horse battery"
NOBODY: Final = 65534


def in_a_process(work: Callable[..., Any], *arguments: object) -> Any:
    """Return what a function returns in a process of its own."""
    with CONTEXT.Pool(1) as pool:
        return pool.apply(work, arguments)


# ---- A full disk -----------------------------------------------------------------------------------------------------


def on_a_full_disk(folder: Path) -> dict[str, Any]:
    """Run a service, let no file grow for a while, and return what is told then and afterwards."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    sys.dont_write_bytecode = True  # a module that is first imported now would be compiled into a file that is cut off
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with serving(service_in(folder)) as world:
        world.query("alice")
        requests = (
            ("POST", "/v1/people", "carol", {"name": "emil", "role": "analyst"}),
            ("POST", "/v1/people/bob/tokens", "carol", {"scopes": ["read"]}),
            ("PUT", "/v1/datasets/open/stop", "carol", {"stopped": False}),
            ("POST", "/v1/datasets/open/query", "alice", {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 0.3}),
            ("POST", "/v1/datasets/open/explain", "alice", QUESTION),
            ("GET", "/v1/me", "alice", None),
        )
        before = world.charges()
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
        full = [world.ask(*request) for request in requests]
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        again = [world.ask(*request) for request in requests]
        with world.service.store.transaction() as connection:
            broken = first_broken(iter(list(lines(connection))))
        world.session()._ledger.verify()
        return {
            "full": [(reply.status, reply.document.get("code")) for reply in full],
            "told": b" ".join(reply.content for reply in full).decode(),
            "again": [reply.status for reply in again],
            "people": [person.name for person in world.service.people.all()].count("emil"),
            "charges": world.charges() - before,
            "broken": broken,
        }


def test_a_full_disk_changes_nothing_and_is_told(tmp_path: Path) -> None:
    found = in_a_process(on_a_full_disk, tmp_path)
    assert found["full"][:3] == [(503, "fault")] * 3
    assert found["full"][3] == (503, "ledger_fault")
    assert found["full"][4] in ((200, None), (503, "ledger_fault"))  # the price of a question needs the ledger
    assert found["full"][5] == (200, None)
    assert str(tmp_path) not in found["told"]
    assert "people.db" not in found["told"]  # that is for the log
    assert found["again"] == [201, 201, 200, 200, 200, 200]
    assert (found["people"], found["charges"], found["broken"]) == (1, 1, None)


@pytest.mark.long
def test_an_answer_that_cannot_be_kept_is_free_when_it_is_asked_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise Fault("The service's file people.db cannot be used; check its disk and its permissions.")

    with monkeypatch.context() as patched:
        patched.setattr(AnswerStore, "keep", full)
        reply = world.query("alice", **{"Idempotency-Key": "a"})
        assert (reply.status, reply.document["code"]) == (503, "fault")
    assert world.charges() == 1
    again = world.query("alice", **{"Idempotency-Key": "a"})
    assert (again.status, again.document["stored"]) == (200, True)
    assert world.charges() == 1


# ---- A folder that cannot be written ---------------------------------------------------------------------------------


def in_a_locked_folder(folder: Path) -> dict[str, str]:
    """Let nobody write a folder, and return what a store in it says then."""
    SqliteStore(folder / "people.db").close()
    os.chdir(folder)  # those above it may be closed to others
    if os.geteuid() == 0:
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, NOBODY, NOBODY)
        os.setuid(NOBODY)
    Path().chmod(0o555)
    told = {}
    for name in ("people.db", "other.db"):
        try:
            SqliteStore(Path(name)).close()
            told[name] = "opened"
        except LapwingError as error:
            told[name] = f"{error.code}: {error}"
    Path().chmod(0o755)
    return told


@pytest.mark.long
def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir()
    for what, told in in_a_process(in_a_locked_folder, folder).items():
        assert told.startswith("fault: "), f"{what}: {told}"
        assert str(tmp_path) not in told


# ---- kill -9 at the first start --------------------------------------------------------------------------------------


def killed_at(statement: int, file: Path) -> bool:
    """Start for the first time in a child that dies at a statement of SQL; tell whether it died."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    left, connect = statement, sqlite3.connect

    class Dying(sqlite3.Connection):
        """A connection whose process does not live for ever."""

        def execute(self, *arguments: Any) -> sqlite3.Cursor:
            nonlocal left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return super().execute(*arguments)

    sqlite3.connect = lambda *a, **k: connect(*a, **k, factory=Dying)  # type: ignore[assignment]
    store = SqliteStore(file)
    first_curator.ensure_curator(People(store))
    store.close()
    os._exit(0)


def killed_everywhere(folder: Path) -> list[str]:
    """Kill a first start at each of its statements; return where the next start had no curator, or two schemas."""
    os.environ[first_curator.PASSWORD] = PASSWORD
    credentials.HASHER = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)  # type: ignore[misc]
    found, statement = [], 0
    while True:
        file = folder / f"people {statement}.db"
        died = killed_at(statement, file)
        store = SqliteStore(file)
        known = People(store)
        made = first_curator.ensure_curator(known)
        if [person.role for person in known.all()] != ["curator"] or (not died and made is not None):
            found.append(f"statement {statement}")
        with store.transaction() as connection:
            if first_broken(iter(list(lines(connection)))) is not None:
                found.append(f"audit at statement {statement}")
        store.close()
        if not died:
            return [*found, *([] if statement > 20 else ["it was never killed"])]
        statement += 1


@pytest.mark.long
def test_a_first_start_that_is_killed_is_done_by_the_next(tmp_path: Path) -> None:
    assert in_a_process(killed_everywhere, tmp_path) == []


# ---- The clock -------------------------------------------------------------------------------------------------------


def test_tokens_end_by_the_clock_whichever_way_it_is_set(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    people, now = world.service.people, time.time()
    secret, _ = people.issue("alice", label="", scopes={"read"}, seconds=DAY, by="carol")
    for ahead, valid in ((DAY - 60, True), (DAY + 1, False), (-365 * DAY, True), (2 * DAY, False), (0, True)):
        monkeypatch.setattr(time, "time", lambda ahead=ahead: now + ahead)
        if valid:
            assert people.caller(secret).name == "alice"
        else:
            with pytest.raises(NotAuthorised):
                people.caller(secret)
    with world.service.store.transaction() as connection:
        assert first_broken(iter(list(lines(connection)))) is None

"""The store in PostgreSQL by itself, and what the two kinds have in common."""

import os
import re
import subprocess
import sys
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Final

import psycopg
import pytest

from lapwing.errors import Fault, InvalidParameter
from lapwing.server import metrics, postgres_store, store
from lapwing.server.authentication import PATIENT, Callers
from lapwing.server.people import DAY, People
from lapwing.server.postgres_store import PostgresStore
from lapwing.server.store_places import open_store, people_of
from tests.server.test_hosts import PATIENCE, noted_together
from tests.support.postgres import Postgres
from tests.support.release import small


def test_both_schemas_have_the_same_steps_and_columns() -> None:
    folder = files("lapwing.server") / "schema"
    assert sorted(entry.name for entry in folder.iterdir()) == ["postgres", "sqlite"]
    names = [[entry.name for entry in (folder / kind).iterdir()] for kind in ("sqlite", "postgres")]
    assert sorted(names[0]) == sorted(names[1])
    for lite, post in zip(store.migrations("sqlite"), store.migrations("postgres"), strict=True):
        words = [re.findall(r"^    (?!rowid)([a-z]\w*)|TABLE (\w+)", text, re.MULTILINE) for text in (lite, post)]
        assert words[0] == words[1]


def test_writers_that_do_not_exclude_each_other_are_found(postgres_: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a transaction that writes takes no lock, and two lines of the audit log follow the same one."""
    open_store(postgres_).close()
    monkeypatch.setattr(postgres_store, "WRITING", "BEGIN")
    added = noted_together(postgres_, monkeypatch, PATIENCE)
    assert [type(future.exception()) for future in added if future.exception()] == [psycopg.errors.UniqueViolation]


@pytest.fixture
def postgres_(request: pytest.FixtureRequest) -> str:
    """The address of an empty database, by a name that is not the module's."""
    return str(request.getfixturevalue("postgres"))


@pytest.mark.long
def test_what_was_written_survives_a_crash_of_the_server(own_postgres: Postgres) -> None:
    with own_postgres.database() as address:
        opened = open_store(address)
        people = People(opened)
        people.add("carol", "curator", None, by="carol")
        secret, _ = people.issue("carol", label="", scopes={"read"}, seconds=DAY, by="carol")
        own_postgres.stop(immediate=True)
        with pytest.raises(Fault, match="check the database"):
            people.caller(secret)
        own_postgres.start()
        assert people.caller(secret).name == "carol"
        own_postgres.restart(immediate=True)
        with opened.lock("a name"):
            people.add("alice", "analyst", None, by="carol")
            own_postgres.restart(immediate=True)
        assert [person.name for person in people.all()] == ["alice", "carol"]
        opened.close()


def test_a_commit_that_is_not_synced_is_synced_all_the_same(postgres_: str) -> None:
    opened = open_store(postgres_)  # the server of the tests says off
    with opened.transaction() as connection:
        assert connection.execute("SHOW synchronous_commit").fetchone() == ("on",)
    opened.close()


def test_what_fails_in_a_transaction_is_taken_back(postgres_: str) -> None:
    opened = open_store(postgres_)
    people = People(opened)
    people.add("carol", "curator", None, by="carol")
    with pytest.raises(InvalidParameter, match="no curator"):
        people.change("carol", role="analyst", by="carol")
    assert people.named("carol").role == "curator"
    with pytest.raises(Fault), opened.reading() as connection:
        connection.execute("DELETE FROM people")
    with pytest.raises(Fault), opened.transaction() as connection:  # noqa: PT012 - what is swallowed is taken back too
        connection.execute("UPDATE people SET role = 'analyst'")
        with suppress(psycopg.Error):
            connection.execute("SELECT 1 FROM nothing")
    assert people.named("carol").role == "curator"
    opened.close()


def test_a_store_of_a_newer_lapwing_is_refused(postgres_: str, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = store.migrations("postgres")
    open_store(postgres_).close()
    monkeypatch.setattr(
        store, "migrations", lambda _kind: [*steps, "CREATE TABLE extra (x TEXT);\nCREATE TABLE people (x"]
    )
    with pytest.raises(Fault):
        open_store(postgres_)  # the second statement fails: nothing of the step may stay
    monkeypatch.setattr(store, "migrations", lambda _kind: [*steps, "CREATE TABLE extra (x TEXT)"])
    open_store(postgres_).close()
    open_store(postgres_).close()
    monkeypatch.setattr(store, "migrations", lambda _kind: steps)
    with pytest.raises(InvalidParameter, match="newer"):
        open_store(postgres_)


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("postgres://alice:secret@db/x", "holds a password"),
        ("postgresql://alice@db/x?password=secret", "holds a password"),
        ("postgres://alice@db/x?nothing=such", "begins as the address"),
    ],
)
def test_addresses_that_are_refused(address: str, reason: str) -> None:
    with pytest.raises(InvalidParameter, match=reason) as refused:
        open_store(address)
    assert "secret" not in str(refused.value)


def test_a_server_that_is_not_there_is_a_fault_without_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "secret")
    monkeypatch.setattr(postgres_store, "CONNECTING", 1)
    with pytest.raises(Fault) as failed:
        PostgresStore(f"postgres://alice@/x?host={tmp_path}")
    assert "secret" not in str(failed.value)


def test_people_are_where_the_first_ledger_is(tmp_path: Path) -> None:
    small.write(tmp_path, [small.row(1)])
    described = small.catalog(tmp_path)
    assert people_of(described) == str(described.ledger_path.parent / "lapwing.people.db")
    object.__setattr__(described, "ledger", "postgres://alice@db/budgets?ledger=visits")
    assert people_of(described) == "postgresql://alice@db/budgets"


def test_what_strangers_may_do_is_divided_among_workers(tmp_path: Path) -> None:
    opened = open_store(tmp_path / "people.db")
    callers = Callers(People(opened), 0, 1, workers=4)
    assert callers.strangers._burst == PATIENT / 4
    assert callers.strangers._rate == 1 / 4
    opened.close()


COUNT: Final = """
import sys
from lapwing.server.metrics import Metrics
metrics = Metrics()
metrics.count_question("open", "charged")
metrics.count_request("GET", "/v1/me", 200)
if sys.argv[1] == "dies":
    metrics.count_question("open", "stored")
print("counted", flush=True)
sys.stdin.read()
print(metrics.text())
"""
"""A worker: it counts, and once it is told to, says what all have counted."""


@pytest.mark.long
def test_counts_add_up(tmp_path: Path) -> None:
    environment = {**os.environ, metrics.FOLDER: str(tmp_path)}
    several = [
        subprocess.Popen(
            [sys.executable, "-c", COUNT, word],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for word in ("lives", "lives", "dies")
    ]
    for worker in several:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "counted\n"
    dead = several.pop()
    dead.kill()
    dead.communicate()
    texts = {worker.communicate()[0] for worker in several}
    assert len(texts) == 1
    (text,) = texts
    assert 'lapwing_questions_total{dataset="open",outcome="charged"} 3.0\n' in text
    assert 'lapwing_questions_total{dataset="open",outcome="stored"} 1.0\n' in text
    assert 'lapwing_requests_total{method="GET",route="/v1/me",status="200"} 3.0\n' in text

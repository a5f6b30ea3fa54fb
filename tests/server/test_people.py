"""Passwords, tokens, roles, teams, and the file that keeps them."""

import os
import re
import sqlite3
import stat
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from lapwing.errors import Fault, InvalidParameter, NotAuthorised, NotFound
from lapwing.server import credentials, first_curator, store
from lapwing.server.people import DAY, RIGHTS_OF, People
from lapwing.server.sqlite_store import SqliteStore
from lapwing.server.store import ServiceStore
from lapwing.server.store_places import open_store
from tests.support.effort import one_in, only
from tests.support.server.world import World

PASSWORD = "correct horse battery"

SHIPPED = credentials.HASHER
"""Before tests put a quick one in its place."""


@pytest.fixture
def file(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(tmp_path / "people.db")
    yield opened
    opened.close()


@pytest.fixture(params=only([0], ["sqlite", "postgres"]))
def known(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[People]:
    place = request.getfixturevalue("postgres") if request.param == "postgres" else tmp_path / "known.db"
    opened = open_store(place)
    yield with_people(opened)
    opened.close()


@cache
def kept_of_password() -> str:
    """Hashes are slow on purpose, so one is enough."""
    return credentials.password_hash(PASSWORD)


def with_people(opened: ServiceStore) -> People:
    everybody = People(opened)
    everybody.add("carol", "curator", None, by="carol")
    everybody.add("alice", "analyst", None, by="carol")
    with opened.transaction() as connection:
        connection.execute("UPDATE people SET password = ? WHERE name = 'carol'", (kept_of_password(),))
    return everybody


def issue(known: People, name: str = "alice", seconds: float = DAY) -> str:
    return known.issue(name, label="", scopes={"read"}, seconds=seconds, by="carol")[0]


def test_a_password_lets_in_its_owner_only(known: People) -> None:
    secret, token = known.login("carol", PASSWORD, None, "login", 60)
    assert known.caller(secret).rights == RIGHTS_OF["curator"]
    assert token.person == "carol"
    told = set()
    for name, password in (("carol", "wrong"), ("alice", PASSWORD), ("nobody", PASSWORD), ("carol", "")):
        with pytest.raises(NotAuthorised) as refused:
            known.login(name, password, None, "login", 60)
        told.add(str(refused.value))
    assert len(told) == 1


def test_a_name_that_nobody_has_takes_a_hash_too(known: People, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str | None] = []

    def is_password(kept: str | None, password: str) -> bool:
        asked.append(kept)
        return False

    monkeypatch.setattr(credentials, "is_password", is_password)
    with pytest.raises(NotAuthorised):
        known.login("nobody", PASSWORD, None, "login", 60)
    assert asked == [None]
    monkeypatch.undo()
    assert not credentials.is_password(None, "")  # it is a real hash, of which nobody knows the password
    assert SHIPPED.check_needs_rehash(credentials._NOBODY) is False


def test_short_passwords_are_refused(known: People) -> None:
    with pytest.raises(InvalidParameter, match="12"):
        known.add("dora", "analyst", "short", by="carol")
    assert "dora" not in [person.name for person in known.all()]


def test_a_token_ends(known: People, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = issue(known, seconds=60)
    assert known.caller(secret).name == "alice"
    later = time.time() + 61
    with monkeypatch.context() as patched:
        patched.setattr(time, "time", lambda: later)
        with pytest.raises(NotAuthorised):
            known.caller(secret)
    (token,) = known.tokens("alice")
    with pytest.raises(NotFound):
        known.revoke(token.id, of="carol", by="carol")
    known.revoke(token.id, of="alice", by="carol")
    with pytest.raises(NotAuthorised):
        known.caller(secret)


def test_a_login_by_a_password_that_was_changed_meanwhile_gives_no_token(
    known: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_password = credentials.is_password

    def changed_after(kept: str | None, password: str) -> bool:
        """Check, as another process changes the password."""
        right = is_password(kept, password)
        known.change("carol", password="another password", by="carol")
        return right

    monkeypatch.setattr(credentials, "is_password", changed_after)
    with pytest.raises(NotAuthorised):
        known.login("carol", PASSWORD, None, "login", 60)
    assert known.tokens("carol") == ()


@pytest.mark.parametrize("change", one_in(3, [{"active": False}, {"password": "another password"}]))
def test_who_is_closed_or_has_a_new_password_has_no_token(known: People, change: dict[str, object]) -> None:
    secret = issue(known)
    known.change("alice", by="carol", **change)  # type: ignore[arg-type]
    with pytest.raises(NotAuthorised):
        known.caller(secret)


def test_a_token_has_at_most_the_rights_of_its_owner(known: People) -> None:
    with pytest.raises(InvalidParameter, match="read, ask"):
        known.issue("alice", label="", scopes={"read", "admin"}, seconds=60, by="carol")
    for seconds in (0, -1, 400 * DAY):
        with pytest.raises(InvalidParameter, match="days"):
            issue(known, seconds=seconds)


def test_there_is_always_a_curator(known: People) -> None:
    for change in ({"role": "analyst"}, {"active": False}):
        with pytest.raises(InvalidParameter, match="no curator"):
            known.change("carol", by="carol", **change)
    assert known.named("carol").role == "curator"


@pytest.mark.parametrize("name", ["", "-x", "a b", "a/b", "x" * 65, "ALICE", "näme", "a\n"])
def test_names_that_are_refused(known: People, name: str) -> None:
    with pytest.raises(InvalidParameter):
        known.add(name, "analyst", None, by="carol")


def test_tokens_are_long_and_kept_as_hashes(file: SqliteStore) -> None:
    known = with_people(file)
    secrets = {issue(known) for _ in range(20)}
    assert len(secrets) == 20
    assert all(re.fullmatch(r"lapwing_[A-Za-z0-9_-]{43}", secret) for secret in secrets)
    content = file.path.read_bytes() + file.path.with_name("people.db-wal").read_bytes()
    assert not any(secret.encode() in content for secret in secrets)
    assert PASSWORD.encode() not in content
    assert b"$argon2id$" in content


def test_the_file_is_for_its_owner_only(file: SqliteStore) -> None:
    for path in file.path.parent.glob("people.db*"):
        assert stat.S_IMODE(os.stat(path).st_mode) == (0o700 if path.is_dir() else 0o600)


def test_a_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "people.db"
    SqliteStore(path).close()
    path.chmod(0o640)
    with pytest.raises(InvalidParameter, match="chmod 600"):
        SqliteStore(path)


def test_the_schema_grows_by_whole_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "people.db"
    first = store.migrations("sqlite")
    SqliteStore(path).close()
    monkeypatch.setattr(store, "migrations", lambda _kind: [*first, "CREATE TABLE extra (x);\nCREATE TABLE people (x)"])
    with pytest.raises(Fault):
        SqliteStore(path)  # the second statement fails: nothing of the step may stay
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (len(first),)
        assert not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'extra'").fetchone()
    connection.close()
    monkeypatch.setattr(store, "migrations", lambda _kind: [*first, "CREATE TABLE extra (x)"])
    SqliteStore(path).close()
    monkeypatch.setattr(store, "migrations", lambda _kind: first)
    with pytest.raises(InvalidParameter, match="newer"):
        SqliteStore(path)


def test_another_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE x (y)")
    connection.commit()
    connection.close()
    path.chmod(0o600)
    with pytest.raises(InvalidParameter, match="another program"):
        SqliteStore(path)


def test_the_first_curator_is_made_once(file: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = People(file)
    monkeypatch.delenv(first_curator.PASSWORD, raising=False)
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    with pytest.raises(InvalidParameter, match=first_curator.PASSWORD):
        first_curator.ensure_curator(nobody)
    monkeypatch.setenv(first_curator.PASSWORD, "short")
    with pytest.raises(InvalidParameter):
        first_curator.ensure_curator(nobody)
    assert nobody.all() == ()
    monkeypatch.setenv(first_curator.PASSWORD, PASSWORD)
    assert first_curator.ensure_curator(nobody) == "curator"
    monkeypatch.setenv(first_curator.PASSWORD, "another password")
    assert first_curator.ensure_curator(nobody) is None
    nobody.login("curator", PASSWORD, None, "login", 60)


def test_the_terminal_is_asked_until_it_can_be(
    file: SqliteStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(first_curator.PASSWORD, raising=False)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    given = iter(["short", PASSWORD, "something else", "x" * 1001, PASSWORD, PASSWORD])
    monkeypatch.setattr("getpass.getpass", lambda prompt: next(given))
    assert first_curator.ensure_curator(People(file)) == "curator"
    said = capsys.readouterr().err
    assert said.count("must have from 12") == 2
    assert said.count("differ") == 1
    assert next(given, None) is None
    People(file).login("curator", PASSWORD, None, "login", 60)


def test_a_name_that_cannot_be_is_said_before_the_terminal_is_asked(
    file: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(first_curator.PASSWORD, raising=False)
    monkeypatch.setenv(first_curator.NAME, "no name")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("getpass.getpass", None)
    with pytest.raises(InvalidParameter, match="name of a person"):
        first_curator.ensure_curator(People(file))


@pytest.mark.long
def test_over_http(world: World) -> None:
    service = world.service
    service.people.change("alice", password=PASSWORD, by="carol")
    reply = world.ask("POST", "/v1/login", body={"name": "alice", "password": PASSWORD, "scopes": ["read"], "hours": 1})
    assert reply.status == 200
    world.tokens["alice"] = reply.document["token"]
    assert world.ask("GET", "/v1/me", "alice").document["rights"] == ["read"]
    wrong = world.ask("POST", "/v1/login", body={"name": "alice", "password": "x"})
    assert (wrong.status, wrong.document["code"]) == (401, "not_authorised")
    changed = {"password": PASSWORD, "new_password": "another password"}
    assert world.ask("POST", "/v1/me/password", "alice", changed).status == 204
    assert world.ask("GET", "/v1/me", "alice").status == 401
    assert world.ask("POST", "/v1/login", body={"name": "alice", "password": "another password"}).status == 200
    made = world.ask("POST", "/v1/people/bob/tokens", "carol", {"scopes": ["read"], "days": 1}).document
    world.tokens["bob"] = made["token"]
    (own,) = [token for token in world.ask("GET", "/v1/me/tokens", "bob").document if token["id"] == made["id"]]
    assert "token" not in own
    assert world.ask("DELETE", f"/v1/me/tokens/{made['id']}", "bob").status == 204
    assert world.ask("GET", "/v1/me", "bob").status == 401

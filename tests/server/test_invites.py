"""Invites: each lets one person set a first password, once, for some days, and stands in no log."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest

from lapwing.errors import InvalidParameter, NotAuthorised, NotFound
from lapwing.server import invites as module
from lapwing.server import log, store
from lapwing.server.credentials import kept_of
from lapwing.server.invites import Invites
from lapwing.server.people import DAY, People
from lapwing.server.sqlite_store import SqliteStore
from lapwing.server.store import ServiceStore
from tests.support.server.world import World, on_both

PASSWORD = "green boats over the slow hill"
OTHER = "nine lamps beside an old canal"


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[ServiceStore]:
    with closing(SqliteStore(tmp_path / "people.db")) as opened:
        People(opened).add("carol", "curator", PASSWORD, by="carol")
        People(opened).add("emil", "analyst", None, by="carol")
        yield opened


def test_an_invite_works_once(kept: ServiceStore) -> None:
    invites, people = Invites(kept), People(kept)
    token, invite = invites.make("emil", days=7, by="carol")
    assert (invite.person, people.named("emil").invite_expires) == ("emil", invite.expires)
    assert invites.invited(token) == "emil"
    assert invites.accept(token, PASSWORD)[0] == "emil"
    assert people.require_password("emil", PASSWORD) == "analyst"
    assert people.named("emil").has_password
    assert people.named("emil").invite_expires is None
    for use in (lambda: invites.accept(token, OTHER), lambda: invites.invited(token)):
        with pytest.raises(NotAuthorised):
            use()
    people.require_password("emil", PASSWORD)


def used_twice(kept: ServiceStore) -> int:
    """Let two use one invite at the same moment; return how many were let in."""
    invites = Invites(kept)
    token, _ = invites.make("emil", days=7, by="carol")
    together, done = Barrier(2), list[str]()

    def hashed(password: str, name: str) -> str:
        together.wait(timeout=60)  # both have seen that the invite is open
        return f"{password} of {name}"

    def use(password: str) -> None:
        try:
            done.append(invites.accept(token, password)[0])
        except NotAuthorised:
            return

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "hash_of_new_password", hashed)
        threads = [Thread(target=use, args=(password,)) for password in (PASSWORD, OTHER)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return len(done)


def test_of_two_at_the_same_moment_one_is_let_in(kept: ServiceStore) -> None:
    assert used_twice(kept) == 1


def test_an_invite_that_is_looked_at_once_only_is_found(kept: ServiceStore) -> None:
    """Planted: what is looked at in the transaction says that any invite is open."""
    found = module.OPEN_INVITE
    looked: list[int] = []

    def planted(self: Invites, token: str) -> str:
        rows = self._store.look(found, (kept_of(token), self._clock()))
        looked.append(len(rows))
        if not rows:
            raise NotAuthorised
        return str(rows[0][0])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Invites, "invited", planted)
        patch.setattr(module, "OPEN_INVITE", "SELECT CAST(? AS TEXT), CAST(? AS TEXT)")
        assert used_twice(kept) == 2
    assert looked == [1, 1]


def test_an_invite_ends(kept: ServiceStore) -> None:
    clock = Clock()
    invites = Invites(kept, clock)
    token, _ = invites.make("emil", days=2, by="carol")
    clock.now += 2 * DAY - 1
    assert invites.invited(token) == "emil"
    clock.now += 1
    with pytest.raises(NotAuthorised) as refused:
        invites.accept(token, PASSWORD)
    with pytest.raises(NotAuthorised) as unknown:
        invites.accept("lapwing_none", PASSWORD)
    assert str(refused.value) == str(unknown.value)
    assert not People(kept).named("emil").has_password


@pytest.mark.parametrize("happens", ["withdrawn", "replaced", "disabled", "enabled again", "password set"])
def test_what_curators_do_ends_an_invite(kept: ServiceStore, happens: str) -> None:
    invites, people = Invites(kept), People(kept)
    token, _ = invites.make("emil", days=7, by="carol")
    if happens == "withdrawn":
        invites.withdraw("emil", by="carol")
    elif happens == "replaced":
        newer, _ = invites.make("emil", days=7, by="carol")
        assert invites.invited(newer) == "emil"
    elif happens == "password set":
        people.change("emil", password=OTHER, by="carol")
    else:
        people.change("emil", active=False, by="carol")
        if happens == "enabled again":
            people.change("emil", active=True, by="carol")
    with pytest.raises(NotAuthorised):
        invites.accept(token, PASSWORD)


def test_a_weak_password_leaves_the_invite_open(kept: ServiceStore) -> None:
    invites = Invites(kept)
    token, _ = invites.make("emil", days=7, by="carol")
    for weak in ("short", "aaaaaaaaaaaa", "emilemilemil"):
        with pytest.raises(InvalidParameter):
            invites.accept(token, weak)
    assert invites.accept(token, PASSWORD)[0] == "emil"


def test_who_cannot_be_invited(kept: ServiceStore) -> None:
    invites = Invites(kept)
    for days in (0, 30.5):
        with pytest.raises(InvalidParameter):
            invites.make("emil", days=days, by="carol")
    with pytest.raises(NotFound):
        invites.make("nobody", days=7, by="carol")
    with pytest.raises(NotFound):
        invites.withdraw("emil", by="carol")
    with pytest.raises(InvalidParameter):
        invites.make("carol", days=7, by="carol")  # she has a password
    People(kept).change("emil", active=False, by="carol")
    with pytest.raises(InvalidParameter):
        invites.make("emil", days=7, by="carol")


def test_a_store_without_invites_gets_them(tmp_path: Path) -> None:
    """A store of an earlier version is opened, and its people can be invited."""
    steps = store.migrations("sqlite")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "migrations", lambda _kind: steps[:16])  # as commit 2b9ec42 made it, or one before
        with closing(SqliteStore(tmp_path / "people.db")) as earlier, earlier.transaction() as connection:
            connection.execute("INSERT INTO people (name, role, created) VALUES ('emil', 'analyst', '2026-01-01')")
    with closing(SqliteStore(tmp_path / "people.db")) as opened:
        token, _ = Invites(opened).make("emil", days=7, by="carol")
        assert Invites(opened).accept(token, PASSWORD)[0] == "emil"


@on_both
def test_a_person_comes_in_by_an_invite(world: World) -> None:
    written: list[str] = []
    log.LISTENERS.append(lambda _event, line: written.append(line))
    body = {"name": "emil", "role": "analyst", "dataset": "open", "share": "1/5"}
    assert world.ask("POST", "/v1/people", "carol", body).document["has_password"] is False
    assert world.ask("GET", "/v1/datasets/open/grants", "carol").document["people"]["emil"] == "0.2"
    made = world.ask("POST", "/v1/people/emil/invite", "carol", {})
    token = made.document["token"]
    assert made.status == 201
    assert len(token) > 40  # of 256 bits
    weak = world.ask("POST", "/v1/invites/accept", None, {"token": token, "password": "aaaaaaaaaaaa"})
    assert (weak.status, weak.document["field"]) == (422, "password")
    accepted = world.ask("POST", "/v1/invites/accept", None, {"token": token, "password": PASSWORD})
    assert accepted.status == 201
    world.tokens["emil"] = accepted.document["token"]
    assert world.query("emil").status == 200
    again = world.ask("POST", "/v1/invites/accept", None, {"token": token, "password": OTHER})
    assert (again.status, again.document["code"]) == (401, "not_authorised")
    lines = [json.loads(line) for line in world.ask("GET", "/v1/audit", "audrey").content.decode().splitlines()]
    acts = [(line["actor"], line["act"]) for line in lines if line["subject"] == "emil"]
    assert acts[:4] == [
        ("carol", "person added"), ("carol", "grant made"), ("carol", "invite made"), ("emil", "invite accepted"),
    ]  # fmt: skip
    log.LISTENERS.pop()
    assert [line["subject"] for line in lines if line["act"] == "login failed"] == ["(invite)"]
    assert "/v1/invites/accept" in "".join(written)
    everywhere = "".join(written) + json.dumps(lines) + dumped(world)
    assert kept_of(token) not in json.dumps(lines)
    assert token not in everywhere
    assert PASSWORD not in everywhere


def dumped(world: World) -> str:
    """Return all rows of the tables that have secrets."""
    tables = ("people", "invites", "tokens", "sign_ins", "audit")
    return json.dumps([world.service.store.look(f"SELECT * FROM {table}") for table in tables], default=str)


@pytest.mark.parametrize(
    ("more", "field"),
    [({"dataset": "open", "share": "3"}, "share"), ({"share": "0.1"}, "dataset"), ({"dataset": "none"}, None)],
)
def test_nobody_is_added_if_the_grant_is_refused(world: World, more: dict[str, Any], field: str | None) -> None:
    refused = world.ask("POST", "/v1/people", "carol", {"name": "emil", "role": "analyst", **more})
    assert refused.document.get("field") == field
    assert refused.status == (404 if field is None else 422)
    assert "emil" not in [person.name for person in world.service.people.all()]

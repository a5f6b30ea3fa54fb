"""People who look after some data sets alone: what that gives there, and that it gives nothing elsewhere."""

import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from lapwing.server import store
from lapwing.server.people import DAY, Caller, People
from lapwing.server.sqlite_store import SqliteStore
from lapwing.server.store_places import open_store
from tests.server.test_authorisation import CREATED, FORBIDDEN, MATRIX, MISSING, OK, prepared
from tests.support.server.queueing import ended, submitted
from tests.support.server.world import QUESTION, World, on_both, service_in, serving

PLACES = ("/datasets/open", "ANSWER", "QUERY", "HOLDOUT")


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A service where dana is curator of `open`, and aude is its auditor, and nothing else; both are analysts."""
    with serving(service_in(tmp_path_factory.mktemp("roles"))) as running:
        let_in(running)
        yield running


def let_in(world: World) -> None:
    people = world.service.people
    for name, role in (("dana", "curator"), ("aude", "auditor")):
        people.add(name, "analyst", None, by="carol")
        people.give_role(name, "open", role, by="carol")  # type: ignore[arg-type]
        scopes = people.named(name).rights
        world.tokens[name], _ = people.issue(name, label="", scopes=scopes, seconds=DAY, by="carol")


def expected(method: str, path: str, told: dict[str, int], who: str) -> int | None:
    """Return what somebody is told: at `open` as who has the role everywhere, and elsewhere as an analyst."""
    if not any(place in path for place in PLACES):
        return told["bob"] if told["bob"] == FORBIDDEN else None
    return told["carol" if who == "dana" else "audrey"]


def differences(world: World, methods: tuple[str, ...], only: str = "") -> list[str]:
    names, found = prepared(world), []
    for (method, route), (path, body, told) in MATRIX.items():
        if method not in methods or (only and route != only):
            continue
        for name, known in names.items():
            path = path.replace(name, known)
        for who in ("dana", "aude"):
            wanted = expected(method, MATRIX[(method, route)][0], dict(told), who)
            if route == "/v1/holdouts/{holdout}/query":
                wanted = FORBIDDEN  # alice's
            if route == "/v1/answers/{answer}/team":
                wanted = MISSING  # alice's, too
            if wanted is None:
                continue
            status = world.ask(method, path, who, body).status
            if status != wanted:
                found.append(f"{who}: {method} {route} is {status}, not {wanted}")
    return found


def test_a_role_at_a_data_set_shows_there_what_it_shows_everywhere(both: World) -> None:
    assert differences(both, ("GET",)) == []


@pytest.mark.long
def test_a_role_at_a_data_set_lets_do_there_what_it_lets_do_everywhere(world: World) -> None:
    let_in(world)
    found = differences(world, ("GET", "POST", "PUT", "PATCH", "DELETE"))
    assert found == []


def test_a_role_that_holds_elsewhere_is_found(both: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: whichever data set it is, who has a role at one has it there."""
    monkeypatch.setattr(Caller, "may", lambda self, right: bool(self.datasets) or right in self.rights)
    assert differences(both, ("GET",), "/v1/people") != []


def test_another_data_set_is_hidden(both: World) -> None:
    for who in ("dana", "aude"):
        assert [one["name"] for one in both.ask("GET", "/v1/datasets", who).document] == ["open"]
        assert both.ask("GET", "/v1/datasets/closed", who).status == MISSING
        assert both.ask("GET", "/v1/datasets/closed/grants", who).status == FORBIDDEN
        assert both.query(who, dataset="closed").status == MISSING
    assert both.ask("GET", "/v1/me", "dana").document["datasets"] == {"open": "curator"}


def test_who_looks_after_a_data_set_asks_it_as_a_curator_and_its_auditor_buys_nothing(both: World) -> None:
    assert both.query("dana").status == OK
    assert both.query("aude").status == FORBIDDEN
    answer = both.query("alice", {**QUESTION, "epsilon": 0.25}).document["id"]
    assert both.ask("GET", f"/v1/answers/{answer}", "aude").status == OK
    share = {"share": 0.5, "trusted_with_time": False}
    assert both.ask("PUT", "/v1/datasets/open/grants/bob", "dana", share).status == 204
    assert both.ask("DELETE", "/v1/datasets/open/grants/bob", "dana").status == 204


def test_files_of_the_folders_are_not_theirs(both: World) -> None:
    known = both.ask("GET", "/v1/datasets/open/catalog", "dana").document
    other = known["catalog"].replace("codes.parquet", "../closed/codes.parquet")
    told = both.ask("POST", "/v1/datasets/open/catalog/preview", "dana", {"catalog": other})
    assert (told.status, "only some data sets" in told.document["detail"]) == (422, True)


def test_nobody_gives_themselves_a_role(both: World) -> None:
    for who in ("dana", "aude", "alice"):
        told = both.ask("PUT", "/v1/people/alice/datasets/open", who, {"role": "curator"})
        assert told.status == FORBIDDEN
    refused = both.ask("PUT", "/v1/people/carol/datasets/open", "carol", {"role": "auditor"})
    assert "curator of all data sets" in refused.document["detail"]
    assert both.ask("PUT", "/v1/people/alice/datasets/none", "carol", {"role": "auditor"}).status == MISSING


@pytest.mark.long
@on_both
def test_a_role_is_gone_when_it_is_taken_away(world: World) -> None:
    let_in(world)
    queued = ended(world, submitted(world, who="dana"))
    assert queued["status"] == "done"
    assert world.ask("DELETE", "/v1/people/dana/datasets/open", "carol").document["datasets"] == {}
    assert world.ask("GET", "/v1/datasets/open", "dana").status == MISSING
    assert world.ask("GET", "/v1/datasets/open/grants", "dana").status == FORBIDDEN
    assert world.service.policies.limits("open", "dana", world.session().price).allowances[0].share == 0


def test_a_token_has_no_more_than_its_scopes_at_a_data_set_either(both: World) -> None:
    people = both.service.people
    both.tokens["reader"], _ = people.issue("dana", label="", scopes={"read"}, seconds=DAY, by="carol")
    assert both.ask("GET", "/v1/datasets/open", "reader").status == OK
    assert both.ask("GET", "/v1/datasets/open/grants", "reader").status == FORBIDDEN
    made = both.ask("POST", "/v1/people/dana/tokens", "carol", {})
    assert (made.status, made.document["scopes"]) == (CREATED, ["read", "ask", "audit"])


def test_a_store_of_before_means_what_it_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "people.db"
    steps = store.migrations("sqlite")
    monkeypatch.setattr(store, "migrations", lambda _kind: steps[:11])
    old = SqliteStore(path)
    with old.transaction() as connection:
        connection.execute("INSERT INTO people (name, role, created) VALUES ('carol', 'curator', '2026')")
        connection.execute("INSERT INTO people (name, role, created) VALUES ('alice', 'analyst', '2026')")
    old.close()
    shutil.copy(path, tmp_path / "copy.db")
    monkeypatch.undo()
    opened = open_store(path)
    people = People(opened)
    assert [(one.name, one.role, one.active, dict(one.datasets)) for one in people.all()] == [
        ("alice", "analyst", True, {}),
        ("carol", "curator", True, {}),
    ]
    secret, _ = people.issue("carol", label="", scopes={"admin"}, seconds=DAY, by="carol")
    assert people.caller(secret).at("anything").may("admin")
    opened.close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (len(steps),)
    connection.close()

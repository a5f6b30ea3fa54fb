"""Service accounts, which are nobody, and teams."""

import json
import time
from collections.abc import Iterator

import pytest

from lapwing.errors import InvalidParameter, NotAuthorised
from lapwing.server import people as people_module
from lapwing.server.accounts import Accounts
from lapwing.server.console.browser_sessions import BrowserSessions
from lapwing.server.people import DAY
from lapwing.server.teams import Teams
from tests.support.server.world import World, service_in, serving

DENIED, MISSING = 401, 404


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with serving(service_in(tmp_path_factory.mktemp("accounts"))) as running:
        yield running


def account(world: World, name: str, owner: str = "carol", **more: object) -> dict[str, object]:
    """Add an account that may ask `open`, with a token."""
    made = world.ask("POST", "/v1/accounts", "carol", {"name": name, "owner": owner, **more})
    assert made.status == 201, made.content
    world.ask("PUT", f"/v1/datasets/open/grants/{name}", "carol", {"share": None})
    token = world.ask("POST", f"/v1/people/{name}/tokens", "carol", {"days": 300})
    world.tokens[name] = token.document["token"]
    return {**made.document, "token": token.document}


def test_a_program_asks_by_an_account_and_is_charged_by_its_name(ours: World) -> None:
    made = account(ours, "nightly", days=3)
    assert made["let_in"] is True
    assert made["token"]["expires"] == made["expires"]  # type: ignore[index]  # and not three hundred days later
    assert ours.query("nightly").status == 200
    assert ours.session().budget().history[-1].principal == "nightly"
    assert "nightly" not in [one["name"] for one in ours.ask("GET", "/v1/people", "carol").document]
    assert "nightly" in [one["name"] for one in ours.ask("GET", "/v1/accounts", "carol").document]
    lines = map(json.loads, ours.ask("GET", "/v1/audit", "carol").content.splitlines())
    (line,) = [line for line in lines if line["act"] == "service account added" and line["subject"] == "nightly"]
    assert (line["actor"], line["details"]["owner"]) == ("carol", "carol")


def test_it_signs_in_nowhere(ours: World) -> None:
    account(ours, "silent")
    people = ours.service.people
    with pytest.raises(InvalidParameter, match="service account"):
        people.change("silent", password="another sea of tall red grass", by="carol")
    with pytest.raises(InvalidParameter, match="service account"):
        people.change("silent", role="curator", by="carol")
    with pytest.raises(NotAuthorised, match="cannot sign in"):
        BrowserSessions(ours.service.store, people).begin("silent", None)
    body = {"name": "silent", "password": ""}
    assert ours.ask("POST", "/v1/login", None, body).status in (401, 403, 422)


def test_it_goes_out_with_its_owner_and_comes_back_with_them(ours: World) -> None:
    ours.service.people.add("erin", "analyst", None, by="carol")
    account(ours, "of-erin", owner="erin")
    assert ours.ask("GET", "/v1/me", "of-erin").status == 200
    ours.service.people.change("erin", active=False, by="carol")
    assert ours.ask("GET", "/v1/me", "of-erin").status == DENIED
    assert not ours.ask("GET", "/v1/accounts/of-erin", "carol").document["let_in"]
    handed = ours.ask("PATCH", "/v1/accounts/of-erin", "carol", {"owner": "carol"})
    assert handed.document["let_in"]
    assert ours.ask("GET", "/v1/me", "of-erin").status == 200


def test_it_ends_when_it_was_to_end(ours: World, monkeypatch: pytest.MonkeyPatch) -> None:
    account(ours, "short", days=1)
    later = time.time() + 1.5 * DAY
    monkeypatch.setattr(time, "time", lambda: later)
    assert ours.ask("GET", "/v1/me", "short").status == DENIED
    monkeypatch.undo()
    with ours.service.store.transaction() as connection:  # its token alone would hold longer
        connection.execute("UPDATE people SET expires = ? WHERE name = 'short'", (time.time() - 1,))
    assert ours.ask("GET", "/v1/me", "short").status == DENIED
    refused = ours.ask("POST", "/v1/people/short/tokens", "carol", {})
    assert "has ended" in refused.document["detail"]
    assert ours.ask("PATCH", "/v1/accounts/short", "carol", {"days": 2}).document["let_in"]
    shut = ours.ask("PATCH", "/v1/accounts/short", "carol", {"active": False}).document
    assert (shut["active"], shut["let_in"]) == (False, False)


def test_accounts_that_are_let_in_after_their_end_are_found(ours: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: nobody looks at its end, nor at its owner."""
    account(ours, "ended")
    with ours.service.store.transaction() as connection:
        connection.execute("UPDATE people SET expires = 1 WHERE name = 'ended'")
    assert ours.ask("GET", "/v1/me", "ended").status == DENIED
    monkeypatch.setattr(people_module, "ACTIVE_PERSON_SQL", "people.active = 1 AND ? > 0")
    assert ours.ask("GET", "/v1/me", "ended").status == 200


@pytest.mark.parametrize(
    "body",
    [
        {"name": "alice", "owner": "carol"},
        {"name": "other", "owner": "nobody"},
        {"name": "other", "owner": "nightly"},
        {"name": "other", "owner": "carol", "days": 0},
        {"name": "other", "owner": "carol", "days": 367},
        {"name": "other", "owner": "carol", "role": "curator"},
        {"name": "no name", "owner": "carol"},
    ],
)
def test_accounts_that_cannot_be(ours: World, body: dict[str, object]) -> None:
    assert ours.ask("POST", "/v1/accounts", "carol", body).status == 422
    assert ours.ask("GET", "/v1/accounts/other", "carol").status == MISSING


def test_a_team_has_who_is_in_it_and_what_counts_for_its_share(ours: World) -> None:
    assert ours.ask("POST", "/v1/teams", "carol", {"name": "Porters"}).document["members"] == []
    again = ours.ask("POST", "/v1/teams", "carol", {"name": "porters"})
    assert "already" in again.document["detail"]
    ours.ask("PATCH", "/v1/people/alice", "carol", {"team": "porters"})  # in other cases it is the same one
    ours.ask("PUT", "/v1/datasets/open/teams/porters", "carol", {"share": "1/4"})
    ours.query("alice", {"sql": "SELECT COUNT(*) AS n FROM visits WHERE cost > 1", "epsilon": 0.5})
    team = ours.ask("GET", "/v1/teams/porters", "carol").document
    assert (team["name"], team["members"], team["earlier"]) == ("Porters", ["alice"], [])
    of_open = next(one for one in team["datasets"] if one["dataset"] == "open")
    assert of_open["share"] == "0.25"
    spent = of_open["spent"]
    view = ours.session().budget()
    assert spent == pytest.approx(float(view.spending["alice"].amount / view.total.amount))
    ours.ask("PATCH", "/v1/people/alice", "carol", {"leave_team": True})
    left = ours.ask("GET", "/v1/teams/porters", "carol").document
    assert (left["members"], left["earlier"]) == ([], ["alice"])
    assert next(one for one in left["datasets"] if one["dataset"] == "open")["spent"] == spent  # it counts still


@pytest.mark.long
@pytest.mark.parametrize("people", ["postgres"], indirect=True)
def test_both_stores_have_accounts_and_teams(world: World) -> None:
    service = world.service
    accounts, teams = Accounts(service.store, service.people), Teams(service.store, service.policies)
    made = accounts.add("nightly", "analyst", owner="carol", days=2, by="carol", team="nurses")
    assert (made.let_in, made.team) == (True, "nurses")
    assert [one.name for one in accounts.all()] == ["nightly"]
    teams.add("empty", by="carol")
    assert [(one.name, one.members) for one in teams.all()] == [("empty", ()), ("nurses", ("nightly",))]
    secret, _ = service.people.issue("nightly", label="", scopes=None, seconds=DAY, by="carol")
    assert service.people.caller(secret).name == "nightly"
    service.people.change("alice", active=False, by="carol")
    accounts.change("nightly", active=False, by="carol")
    with pytest.raises(NotAuthorised):
        service.people.caller(secret)

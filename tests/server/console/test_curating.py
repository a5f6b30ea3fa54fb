"""What curators and auditors do all day: let people in, grant, stop, look at the logs; and one's own account."""

import json
import re
from pathlib import Path

import pytest

from lapwing.server.console.acting import share_of
from lapwing.server.console.inside import ApiRefusal
from tests.server.console.conftest import with_passwords
from tests.support.effort import only
from tests.support.server.browsing import PASSWORD, Shown, Visitor, visitor
from tests.support.server.world import World, on_both, service_in, serving

DORA = "another sea of tall red grass"


@pytest.fixture
def carol(place: World) -> Visitor:
    return visitor(place, "carol")


def acts(world: World) -> list[str]:
    """Return what the audit log says was done, but for tokens."""
    lines = world.ask("GET", "/v1/audit", "carol").content.splitlines()
    return [line["act"] for line in map(json.loads, lines) if "token" not in line["act"]]


@on_both
def test_somebody_is_let_in_granted_asks_and_is_shut_out(carol: Visitor, place: World) -> None:
    page = carol.go("/console/people")
    added = carol.submit(page, "/console/people", name="dora", role="analyst", team="nurses", password=DORA)
    assert added.path == "/console/people/dora?done=added"
    assert "To let this person query a data set" in added.text
    dora = Visitor(place)
    assert "You have no access to a data set yet." in dora.sign_in("dora", DORA).text

    access = carol.go("/console/data/open/access")
    granted = carol.submit(access, "/access/grant", name="dora", share="20 %", trusted="on")
    assert "Access granted." in granted.text
    assert "up to 20 % of the budget" in granted.text
    price = dora.submit(dora.go("/console/data/open/ask"), "/ask", epsilon="0.5")
    assert "Charged ε = 0.5." in dora.submit(price, "/ask/answer").text
    assert "up to 20 % of the budget" in dora.go("/console/data/open/budget").text
    assert "dora" in carol.go("/console/data/open/budget").text

    person = carol.go("/console/people/dora")
    assert "up to 20 % of the budget" in person.text
    assert "/console/data/open/access?person=dora#grant" in person.page.links
    has = {"name": "dora", "share": "20 %", "trusted": "on"}
    assert has.items() <= carol.go("/console/data/open/access?person=dora").form("/access/grant").fields.items()
    assert carol.go("/console/data/open/access?person=nobody").form("/access/grant").fields["name"] == ""
    (form,) = [form for form in person.page.forms if form.fields.get("active") == "no"]
    assert "disabled" in carol.post(form.action, form.fields).text
    assert dora.go("/console", follow=False).status == 303
    assert acts(place)[-3:] == ["person added", "grant made", "person changed"]


@pytest.mark.long
def test_a_token_is_shown_once_and_lets_a_program_in_until_it_is_ended(carol: Visitor, place: World) -> None:
    made = carol.submit(carol.go("/console/people/alice"), "/token", label="notebook", days="3", read="on")
    (token,) = re.findall(r"lapwing_[A-Za-z0-9_-]{43}", made.text)
    assert "Rights: read." in made.text
    place.tokens["made"] = token
    assert place.ask("GET", "/v1/me", "made").document["rights"] == ["read"]
    again = carol.go("/console/people/alice")
    assert token not in again.content.decode()
    id_ = place.ask("GET", "/v1/me", "made").document["token"]
    (form,) = [form for form in again.page.forms if form.fields.get("token") == id_]
    assert "Token revoked." in carol.post(form.action, form.fields).text
    assert place.ask("GET", "/v1/me", "made").status == 401


@pytest.mark.long
def test_a_data_set_is_stopped_and_goes_on(carol: Visitor, place: World) -> None:
    stopped = carol.submit(carol.go("/console/data/open/access"), "/access/stop")
    assert "Stopped. Lapwing refuses every new query." in stopped.text
    assert "stopped by the curator" in visitor(place, "alice").go("/console").text
    assert place.query("alice").status == 409 or place.query("alice").status == 403
    assert "Resumed. The data set is open to queries." in carol.submit(stopped, "/access/stop").text
    assert place.query("alice").status == 200


@pytest.mark.long
def test_policies_and_new_data(carol: Visitor, place: World) -> None:
    page = carol.go("/console/data/open/access")
    changed = carol.submit(page, "/access/default-cost", name="alice", epsilon="0,1", daily_share="2 %")
    assert "2 %" in changed.text
    assert carol.submit(page, "/access/default-cost", name="nobody", epsilon="0.1").status == 404
    changed = carol.submit(page, "/access/policy", most_epsilon="0.25", least_share="0.1 %")
    assert changed.form("/access/policy").fields["most_epsilon"] == "0.25"
    policy = place.ask("GET", "/v1/datasets/open/policy", "carol").document
    assert (policy["most_epsilon"], policy["least_share"]) == ("0.25", "0.001")
    assert place.query("alice").status == 422 or place.query("alice").document["code"] == "allowance_exhausted"
    assert "Lapwing accepted the current data as a new version." in carol.submit(page, "/access/accept").text


def assert_told(page: Shown) -> None:
    """Hold that a page says what is wrong: at the field if it is of one, else that nothing was changed."""
    assert 'aria-invalid="true"' in page.content.decode() or "Nothing was changed." in page.text


@pytest.mark.long
@pytest.mark.parametrize(
    ("action", "typed"),
    only(
        [0],
        [
            ("/access/grant", {"name": "nobody", "share": ""}),
            ("/access/grant", {"name": "alice", "share": "much %"}),
            ("/access/grant", {"name": "alice", "share": "200 %"}),
            ("/access/grant", {"name": "alice", "share": "1e9999999 %"}),
            ("/access/grant", {"name": "a/b", "share": ""}),
            ("/access/policy", {"most_epsilon": "-1"}),
            ("/access/withdraw", {"name": "carol"}),
        ],
        many=True,
    ),
)
def test_what_cannot_be_is_told_and_changes_nothing(
    carol: Visitor, place: World, action: str, typed: dict[str, str]
) -> None:
    before = place.ask("GET", "/v1/datasets/open/grants", "carol").document
    page = carol.go("/console/data/open/access")
    told = carol.submit(page, action, **typed)
    assert 400 <= told.status < 500
    assert_told(told)
    assert place.ask("GET", "/v1/datasets/open/grants", "carol").document == before


@pytest.mark.long
def test_somebody_added_with_a_grant_is_not_told_to_wait_for_one(carol: Visitor) -> None:
    page = carol.go("/console/people")
    typed = {"name": "dora", "role": "analyst", "password": DORA, "dataset": "open", "share": "3 %"}
    added = carol.submit(page, "/console/people", **typed)
    assert "Person added." in added.text
    assert "To let this person query a data set" not in added.text


@pytest.mark.long
def test_people_cannot_be_added_twice_or_without_a_name(carol: Visitor) -> None:
    for name in ("alice", "", "no name", "x" * 65):
        told = carol.submit(carol.go("/console/people"), "/console/people", name=name)
        assert told.status == 422
        assert_told(told)
    assert carol.go("/console/people/nobody").status == 404


@pytest.mark.long
def test_the_last_curator_stays(carol: Visitor) -> None:
    told = carol.submit(carol.go("/console/people/carol"), "/console/people/carol", role="analyst")
    assert "This would leave no curator" in told.text


@on_both
def test_the_audit_log_is_shown_checked_and_searched(place: World) -> None:
    audrey = visitor(place, "audrey")
    shown = audrey.go("/console/audit")
    assert "lines just now" in shown.text
    assert "person added" in audrey.go("/console/audit?about=alice").text
    assert "No lines match." in audrey.go("/console/audit?about=nothing").text
    log = audrey.go("/console/audit/file.jsonl").content
    assert json.loads(log.splitlines()[0])["sequence"] == 1
    assert log.startswith(place.ask("GET", "/v1/audit", "audrey").content[:200])
    with place.service.store.transaction() as connection:  # an edit, as who can write the file could make it
        connection.execute("UPDATE audit SET actor = 'bob' WHERE sequence = 2")
    assert "The log is broken at line 2" in audrey.go("/console/audit").text


@pytest.mark.long
def test_sign_ins_are_shown_with_those_that_failed(place: World) -> None:
    Visitor(place).sign_in("alice", "not the password")
    visitor(place, "alice")
    shown = visitor(place, "audrey").go("/console/sign-ins?about=alice")
    rows = re.findall(r'<span class="tag (bad|good)">([^<]*)</span>', shown.content.decode())
    assert rows[:2] == [("good", "signed in: console"), ("bad", "failed")]
    assert "127.0.0.1" in shown.text
    assert "person added" not in shown.text


@pytest.mark.long
def test_a_budget_by_team_is_for_curators_and_auditors(carol: Visitor, place: World) -> None:
    place.service.people.change("alice", team="nurses", by="carol")
    carol.submit(carol.go("/console/data/open/access"), "/access/grant", holder="team", name="nurses", share="50 %")
    place.query("alice")
    shown = carol.go("/console/data/open/budget").text
    assert "By team" in shown
    assert re.search(r"nurses\s*[<0-9. %]+50 %", shown)
    assert "By team" in visitor(place, "audrey").go("/console/data/open/budget").text  # as she may read the grants
    assert "By team" not in visitor(place, "alice").go("/console/data/open/budget").text


@pytest.mark.long
def test_a_ledger_is_checked(place: World, monkeypatch: pytest.MonkeyPatch) -> None:
    audrey = visitor(place, "audrey")
    place.query("alice")
    assert "entries just now" in audrey.go("/console/data/open/ledger").text
    assert "open to queries" in audrey.go("/console/health").text
    assert "lapwing_" in audrey.go("/console/health").text
    from lapwing.ledger import exporting

    planted = exporting.lines
    monkeypatch.setattr(exporting, "lines", lambda entries: (line.replace("alice", "bob") for line in planted(entries)))
    assert "The ledger failed the check:" in audrey.go("/console/data/open/ledger").text


@pytest.mark.long
def test_who_looks_after_one_data_set_has_its_pages_and_no_others(carol: Visitor, place: World) -> None:
    page = carol.submit(carol.go("/console/people/alice"), "/alice/role", dataset="closed", role="curator")
    assert "curator" in page.text
    assert "curator of closed" in carol.go("/console/people").text
    alice = visitor(place, "alice")
    assert "you are curator" in alice.go("/console").text
    for name in ("access", "cap", "versions", "catalog", "ledger", "budget", "charges"):
        assert alice.go(f"/console/data/closed/{name}").status == 200, name
    for name in ("access", "cap", "versions", "catalog", "ledger"):
        assert alice.go(f"/console/data/open/{name}").status == 403, name
    for name in ("people", "audit", "health", "register", "sign-ins"):
        assert alice.go(f"/console/{name}").status == 403, name
    closed, own = (alice.go(f"/console/data/{name}").page.links for name in ("closed", "open"))
    assert "/console/data/closed/access" in closed
    assert "/console/data/open/access" not in own
    assert "/console/people" not in closed
    granted = alice.submit(alice.go("/console/data/closed/access"), "/access/grant", name="alice", share="20 %")
    assert "Access granted." in granted.text
    taken = carol.submit(carol.go("/console/people/alice"), "/alice/role", role="")
    assert "Removed the role curator on" in taken.text


@pytest.mark.long
def test_ones_own_account(alice: Visitor, place: World) -> None:
    page = alice.go("/console/account")
    assert "this session" in page.text

    def changed(**typed: str) -> Shown:
        return alice.submit(
            page, "/account/password", **{"password": PASSWORD, "new_password": DORA, "again": DORA, **typed}
        )

    assert changed(again="something else that is long").status == 422
    assert changed(password="not the password").status == 403
    assert changed(new_password="password1234", again="password1234").status == 422
    assert alice.go("/console", follow=False).status == 200
    assert changed().path == "/console/sign-in?out=1"
    assert alice.go("/console", follow=False).status == 303
    assert "alice" in alice.sign_in("alice", DORA).text
    mine = alice.go("/console/account")
    (form,) = [form for form in mine.page.forms if form.fields.get("token")]
    assert alice.post(form.action, form.fields).path == "/console/sign-in?out=1"
    assert alice.go("/console", follow=False).status == 303


@pytest.mark.parametrize(
    ("text", "share"), [("20 %", "1/5"), ("12.5%", "1/8"), ("1/3", "1/3"), ("", None), (" 0.2 ", "0.2"), ("20", "1/5")]
)
def test_shares_are_exact(text: str, share: str | None) -> None:
    assert share_of(text) == share


@pytest.mark.parametrize("text", ["%", "x %", "1/0 %", "1e5 %", "1" * 30 + "%", "1", "1.0"])
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(ApiRefusal):
        share_of(text)


@pytest.mark.long
def test_a_budget_shows_the_delta_for_private_keys_beside_the_loss(tmp_path: Path) -> None:
    """What is left of it, what each person took, and what a question takes, before it is bought."""
    budget = 'epsilon = 30\ndelta = 2e-6\ndelta_keys = 1e-6\nmeasure = "gdp"'
    with serving(service_in(tmp_path, budget=budget)) as running:
        world = with_passwords(running)
        carol = visitor(world, "carol")
        asked = {"sql": "SELECT town, COUNT(*) AS n FROM visits GROUP BY town", "epsilon": "1", "delta": "0.0000004"}
        assert world.query("alice", asked).status == 200
        page = carol.go("/console/data/open/budget").text
        assert re.search(r"δ left for finding groups\s*δ = 6e-7\s*of 1e-6", page)
        assert re.search(r"alice\s*[<0-9. %]+4e-7", page)
        preview = world.ask("POST", "/v1/datasets/open/explain", "alice", {**asked, "delta": "0.0000003"}).document
        assert preview["share_of_remaining"] >= 0.5
    with serving(service_in(tmp_path / "none", budget="epsilon = 30")) as running:
        assert "private keys" not in visitor(with_passwords(running), "carol").go("/console/data/open/budget").text

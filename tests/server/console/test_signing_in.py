"""Signing in and out: who is let in, for how long, and what strangers can make a browser do."""

from typing import Final

import pytest

from lapwing.server.authentication import TokenBuckets
from lapwing.server.console import browser_sessions
from lapwing.server.console.app import Console
from lapwing.server.console.browser_sessions import IDLE, LONGEST, OVERLAP, ROTATION, BrowserSession, BrowserSessions
from lapwing.server.console.forms import FIELD
from lapwing.server.console.sign_in import own_path
from tests.support.effort import one_in, only
from tests.support.server.browsing import PASSWORD, Visitor, visitor
from tests.support.server.world import World, on_both

SIGN_IN: Final = "/console/sign-in"


def test_one_is_led_to_the_sign_in_and_from_there_to_the_page(place: World) -> None:
    somebody = Visitor(place)
    asked = somebody.go("/console/data/open/history?after=", follow=False)
    assert (asked.status, asked.path) == (303, f"{SIGN_IN}?next=%2Fconsole%2Fdata%2Fopen%2Fhistory%3Fafter%3D")
    shown = somebody.sign_in("alice", path=asked.path)
    assert shown.path == "/console/data/open/history?after="
    assert "Your results" in shown.text


@pytest.mark.parametrize(
    ("name", "password"), only([0], [("alice", "not the password"), ("nobody", PASSWORD), ("", "")], many=True)
)
def test_a_wrong_name_and_a_wrong_password_are_told_the_same(place: World, name: str, password: str) -> None:
    stranger = Visitor(place)
    shown = stranger.sign_in(name, password)
    assert shown.status == 401
    assert "The name or the password is wrong." in shown.text
    assert "lapwing" not in stranger.cookies
    log = place.ask("GET", "/v1/audit", "carol").content.decode()
    assert '"login failed"' in log


def test_many_guesses_are_refused(place: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place.service.callers, "strangers", TokenBuckets(0.001, 3.0))
    assert [Visitor(place).sign_in("alice", "a guess at it").status for _ in range(4)] == [401, 401, 401, 429]


def test_cookies_are_out_of_reach_of_scripts_and_of_other_sites(place: World) -> None:
    somebody = Visitor(place)
    form = somebody.go(SIGN_IN).form(SIGN_IN)
    shown = somebody.post(form.action, {**form.fields, "name": "alice", "password": PASSWORD}, follow=False)
    (cookie,) = (cookie for cookie in shown.cookies if cookie.startswith("lapwing="))
    parts = {part.strip().lower() for part in cookie.split(";")}
    assert parts >= {"httponly", "samesite=lax", "path=/"}
    assert not any(part.startswith(("domain", "expires", "max-age")) for part in parts)


def test_with_tls_cookies_go_over_tls_alone_and_to_this_host(place: World) -> None:
    console = Console(place.service, None, "https://dp.example.org", secure=True)  # type: ignore[arg-type]
    assert (console._cookie, console._sign_in._cookie) == ("__Host-lapwing", "__Host-lapwing-sign-in")
    from starlette.responses import Response

    response = Response()
    console._keep(response, "secret")
    assert "; Secure" in response.headers["set-cookie"]


@pytest.mark.long
def test_a_cookie_is_no_token(alice: Visitor) -> None:
    cookie = alice.cookies["lapwing"]
    world = alice.world
    assert world.ask("GET", "/v1/me", headers={"Authorization": f"Bearer {cookie}"}).status == 401
    assert world.ask("GET", "/v1/me", headers={"Cookie": f"lapwing={cookie}"}).status == 401
    token = Visitor(world, {"lapwing": world.tokens["alice"]})
    assert token.go("/console", follow=False).status == 303


@pytest.mark.long
def test_a_session_that_was_fixed_before_is_not_signed_in(place: World) -> None:
    """Somebody who plants a cookie, their own session's or any other, does not come to hold the victim's session."""
    planted = visitor(place, "bob").cookies["lapwing"]
    for before in (planted, "lapwing_anything"):
        victim = Visitor(place, {"lapwing": before})
        shown = victim.sign_in("alice")
        assert "alice" in shown.text
        assert victim.cookies["lapwing"] != before
        assert Visitor(place, {"lapwing": before}).go("/console", follow=False).status == 303


def test_nobody_is_signed_in_as_somebody_else_from_another_site(place: World) -> None:
    typed = {"name": "alice", "password": PASSWORD}
    victim = Visitor(place)
    assert victim.post(SIGN_IN, typed, follow=False).status == 403
    assert victim.post(SIGN_IN, {**typed, FIELD: ""}, follow=False).status == 403
    own = victim.go(SIGN_IN).form(SIGN_IN).fields
    others = Visitor(place).go(SIGN_IN).form(SIGN_IN).fields
    assert victim.post(SIGN_IN, {**others, **typed}, follow=False).status == 403
    assert victim.post(SIGN_IN, {**own, **typed}, follow=False, Origin="http://evil.example").status == 403
    assert victim.post(SIGN_IN, {**own, **typed}, follow=False, Sec_Fetch_Site="cross-site").status == 403
    assert victim.post(SIGN_IN, {**own, **typed}, follow=False, Origin=place.address).status == 303


@pytest.mark.parametrize(
    "elsewhere",
    only([0], [
        "https://evil.example", "//evil.example", "/\\evil.example", "/console//evil.example", "/console\\evil.example",
        "javascript:alert(1)", "/consoles", "/v1/me", "/console@evil.example", "/console\r\nLocation: //evil.example",
        "/console/..//evil.example", " /console", "/console\t/x", "",
    ]),
)  # fmt: skip
def test_a_sign_in_leads_nowhere_else(place: World, elsewhere: str) -> None:
    assert own_path(elsewhere) == "/console"
    somebody = Visitor(place)
    form = somebody.go(SIGN_IN).form(SIGN_IN)
    typed = {"name": "alice", "password": PASSWORD, "next": elsewhere}
    assert somebody.post(SIGN_IN, {**form.fields, **typed}, follow=False).path == "/console"


@on_both
def test_signing_out_ends_the_session_for_good(alice: Visitor) -> None:
    copied = Visitor(alice.world, dict(alice.cookies))
    shown = alice.submit(alice.go("/console"), "/console/sign-out")
    assert "You are signed out." in shown.text
    assert "lapwing" not in alice.cookies
    assert copied.go("/console", follow=False).status == 303
    tokens = alice.world.service.people.tokens("alice")
    assert [token.revoked for token in tokens if token.label == "console"] == [True]


@on_both
def test_what_ends_tokens_ends_sessions(place: World) -> None:
    people, somebody = place.service.people, visitor(place, "alice")
    people.change("alice", password="another sea of tall red grass", by="carol")
    assert somebody.go("/console", follow=False).status == 303
    somebody.sign_in("alice", "another sea of tall red grass")
    assert somebody.go("/console", follow=False).status == 200
    people.change("alice", active=False, by="carol")
    assert somebody.go("/console", follow=False).status == 303
    assert somebody.sign_in("alice", "another sea of tall red grass").status == 401


def test_a_role_that_is_taken_away_is_gone_at_once(place: World) -> None:
    somebody = visitor(place, "audrey")
    assert "closed" in somebody.go("/console").text
    assert "Audit log" in somebody.go("/console").text
    assert "All charges" in somebody.go("/console/data/open/history").text
    place.service.people.change("audrey", role="analyst", by="carol")
    assert "closed" not in somebody.go("/console").text
    assert "Audit log" not in somebody.go("/console").text
    assert somebody.go("/console/data/open/history").status == 404


class Clock:
    def __init__(self) -> None:
        self.now = 2_000_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(place: World, monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("lapwing.server.people.time.time", clock)
    return clock


@pytest.fixture
def sessions(place: World, clock: Clock) -> BrowserSessions:
    return BrowserSessions(place.service.store, place.service.people, clock)


def begun(sessions: BrowserSessions) -> tuple[str, BrowserSession]:
    session = sessions.begin("alice", None)
    assert session.secret is not None
    return session.secret, session


def test_a_session_ends_when_nobody_uses_it(sessions: BrowserSessions, clock: Clock) -> None:
    secret = begun(sessions)[0]
    clock.now += IDLE - 1
    session = sessions.find(secret)
    assert session is not None
    assert session.secret is not None
    clock.now += IDLE - 1
    session = sessions.find(session.secret)
    assert session is not None
    assert session.secret is not None
    clock.now += IDLE + 1
    assert sessions.find(session.secret) is None


def test_a_session_ends_however_much_it_is_used(sessions: BrowserSessions, clock: Clock) -> None:
    secret = begun(sessions)[0]
    end = clock.now + LONGEST
    while clock.now < end - 600:
        clock.now += 600
        session = sessions.find(secret)
        assert session is not None
        secret = session.secret or secret
    clock.now = end + 1
    assert sessions.find(secret) is None


@on_both
def test_secrets_are_changed_and_old_ones_end(sessions: BrowserSessions, clock: Clock) -> None:
    secret, first = begun(sessions)
    clock.now += ROTATION - 1
    early = sessions.find(secret)
    assert early is not None
    assert early.secret is None
    clock.now += 2
    changed = sessions.find(secret)
    assert changed is not None
    assert changed.secret not in (None, secret)
    assert changed.form == first.form  # forms of pages that are open can be sent still
    together = sessions.find(secret)  # a page that was asked for at the same moment
    assert together is not None
    assert together.secret is None
    clock.now += OVERLAP + 1
    assert sessions.find(secret) is None
    assert changed.secret is not None
    assert sessions.find(changed.secret) is not None


@pytest.mark.parametrize("path", ["/console/data/nothing", "/console/nowhere"])
def test_a_changed_secret_comes_with_pages_of_refusals_too(alice: Visitor, path: str) -> None:
    with alice.world.service.store.transaction() as connection:
        connection.execute("UPDATE browser_sessions SET rotated = rotated - ?", (2 * ROTATION,))
    refused = alice.go(path)
    assert refused.status == 404
    assert len(refused.cookies) == 1
    assert not alice.go(path).cookies  # the new secret holds


@pytest.mark.parametrize("planted", one_in(3, ["IDLE", "LONGEST", "OVERLAP"]))
def test_limits_that_do_not_hold_are_found(
    sessions: BrowserSessions, clock: Clock, monkeypatch: pytest.MonkeyPatch, planted: str
) -> None:
    """Planted: each limit a thousand times as long."""
    monkeypatch.setattr(browser_sessions, planted, 1000 * getattr(browser_sessions, planted))
    monkeypatch.setattr("lapwing.server.people.LONGEST_DAYS", 10**6)
    tests = {
        "IDLE": test_a_session_ends_when_nobody_uses_it,
        "LONGEST": test_a_session_ends_however_much_it_is_used,
        "OVERLAP": test_secrets_are_changed_and_old_ones_end,
    }
    with pytest.raises(AssertionError):
        tests[planted](sessions, clock)

"""A second factor in the console: switching it on, signing in with it, and that no session begins before the code."""

import json
import re
import time
from typing import Final

import pytest
import segno

from lapwing.server.console.account.qr_code import QUIET, qr_code
from lapwing.server.console.sign_in.steps import MINUTES, SignInSteps
from lapwing.server.one_time_codes import STEP, code_at
from tests.support.server.browsing import PASSWORD, Shown, Visitor, visitor
from tests.support.server.world import World, on_both

SIGN_IN: Final = "/console/sign-in"
CODE: Final = f"{SIGN_IN}/code"
HERE: Final = "/console/account/second-factor"


class Clock:
    def __init__(self) -> None:
        self.now = time.time()

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(place: World, monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(place.service.people.second_factors, "clock", clock)
    return clock


def shown(secret: str, clock: Clock) -> str:
    """Return what the app shows, half a minute after it was asked last."""
    clock.now += STEP
    return code_at(secret, int(clock.now) // STEP)


def switched_on(who: Visitor, clock: Clock) -> tuple[str, list[str]]:
    """Switch a second factor on by the pages; return its secret and the recovery codes."""
    page = who.submit(who.go(HERE), HERE, password=PASSWORD)
    secret = re.search(r"<code>([A-Z2-7 ]{39})</code>", page.content.decode())
    assert secret is not None
    plain = secret[1].replace(" ", "")
    done = who.submit(page, "/confirm", code=shown(plain, clock))
    return plain, re.findall(r"(?:[a-z2-7]{4}-){3}[a-z2-7]{4}", done.text)


@on_both
def test_a_second_factor_is_switched_on_asked_for_and_switched_off(place: World, clock: Clock) -> None:
    alice = visitor(place, "alice")
    assert "You sign in with only your password." in alice.go("/console/account").text
    assert alice.submit(alice.go(HERE), HERE, password="not the password").status == 403
    secret, codes = switched_on(alice, clock)
    assert len(codes) == 10
    again = alice.go(HERE)
    assert "You have 10 left" in again.text
    assert not any(hidden in again.content.decode() for hidden in (secret, *codes))

    asked = Visitor(place).go("/console/data/open/history", follow=False).path
    browser = Visitor(place)
    page = browser.sign_in("alice", path=asked)
    assert (page.path, page.status) == (CODE, 200)
    assert "lapwing" not in browser.cookies  # nobody is signed in by the password
    assert browser.go("/console", follow=False).status == 303
    wrong = browser.submit(page, CODE, code="12345")
    assert (wrong.status, "The code is wrong" in wrong.text) == (401, True)
    let_in = browser.submit(wrong, CODE, code=shown(secret, clock))
    assert let_in.path == "/console/data/open/history"
    assert "alice" in let_in.text

    other = Visitor(place)
    let_in = other.submit(other.sign_in("alice"), CODE, code=codes[0])
    assert "alice" in let_in.text
    assert "You have 9 left" in other.go(HERE).text
    renewed = other.submit(other.go(HERE), "/recovery-codes", password=PASSWORD, code=shown(secret, clock))
    assert len(re.findall(r"(?:[a-z2-7]{4}-){3}[a-z2-7]{4}", renewed.text)) == 10
    assert other.submit(other.go(HERE), "/remove", password=PASSWORD, code="000000").status == 403
    off = other.submit(other.go(HERE), "/remove", password=PASSWORD, code=shown(secret, clock))
    assert off.path == f"{HERE}?done=removed"
    assert visitor(place, "alice").go("/console").status == 200
    lines = place.ask("GET", "/v1/audit", "carol").content.decode()
    for act in ("second factor added", "recovery code used", "recovery codes made", "second factor removed"):
        assert f'"{act}"' in lines
    assert secret not in lines


@pytest.mark.long
def test_a_wrong_code_does_not_switch_it_on(place: World, clock: Clock) -> None:
    alice = visitor(place, "alice")
    begun = alice.submit(alice.go(HERE), HERE, password=PASSWORD)
    told = alice.submit(begun, "/confirm", code="12345")
    assert told.status == 422
    assert "Wait for its next code" in told.text
    assert visitor(place, "alice").go("/console").status == 200


def halfway(place: World, clock: Clock) -> tuple[Visitor, Shown, str]:
    """Return a browser in which the password was given, its page, and the secret of the app."""
    secret, _ = switched_on(visitor(place, "alice"), clock)
    browser = Visitor(place)
    return browser, browser.sign_in("alice"), secret


def test_a_code_is_taken_from_the_browser_alone_that_gave_the_password(place: World, clock: Clock) -> None:
    browser, page, secret = halfway(place, clock)
    form = page.form(CODE)
    stranger = Visitor(place)
    assert stranger.go(CODE, follow=False).path == SIGN_IN
    stranger.go(SIGN_IN)  # a cookie of a sign-in, in which no password was given
    assert stranger.post(CODE, {**form.fields, "code": shown(secret, clock)}, follow=False).status == 403
    own = stranger.go(SIGN_IN).form(SIGN_IN).fields["form_secret"]
    told = stranger.post(CODE, {"form_secret": own, "code": shown(secret, clock)}, follow=False)
    assert (told.path, "lapwing" in stranger.cookies) == (SIGN_IN, False)
    code = shown(secret, clock)
    for headers in ({"Origin": "http://evil.example"}, {"Sec_Fetch_Site": "cross-site"}):
        assert browser.post(CODE, {**form.fields, "code": code}, follow=False, **headers).status == 403
    assert browser.post(CODE, {**form.fields, "code": code}, follow=False).path == "/console"


@pytest.mark.long
def test_a_step_is_made_once_and_ends_with_the_password(place: World, clock: Clock) -> None:
    browser, page, secret = halfway(place, clock)
    copied = Visitor(place, dict(browser.cookies))
    form = page.form(CODE)
    assert browser.post(CODE, {**form.fields, "code": shown(secret, clock)}, follow=False).path == "/console"
    again = copied.post(CODE, {**form.fields, "code": shown(secret, clock)}, follow=False)
    assert (again.path, "lapwing" in copied.cookies) == (SIGN_IN, False)

    browser = Visitor(place)
    page = browser.sign_in("alice")
    place.service.people.change("alice", password="another sea of tall red grass", by="carol")
    told = browser.submit(page, CODE, code=shown(secret, clock))
    assert (told.status, "lapwing" in browser.cookies) == (401, False)


@on_both
def test_steps_are_forgotten_after_some_minutes(place: World, clock: Clock) -> None:
    steps = SignInSteps(place.service.store, clock)
    secret = steps.keep({"kind": "password", "name": "alice"})
    assert steps.look(secret, "password")["name"] == "alice"
    assert steps.look(secret, "another") is None
    assert steps.take(secret, "password") is not None
    assert steps.take(secret, "password") is None
    late = steps.keep({"kind": "password"})
    clock.now += 60 * MINUTES + 1
    assert steps.look(late, "password") is None
    steps.keep({"kind": "password"})
    assert len(place.service.store.look("SELECT hash FROM sign_ins")) == 1


@pytest.mark.long
def test_many_guesses_are_refused_and_written_down(place: World, clock: Clock) -> None:
    browser, page, secret = halfway(place, clock)
    statuses = []
    for _ in range(7):
        held = {code_at(secret, int(clock.now) // STEP + shift) for shift in (-1, 0, 1)}
        guess = next(code for code in ("000000", "000001", "000002", "000003") if code not in held)
        statuses.append(browser.submit(page, CODE, code=guess).status)
    assert statuses == [401, 401, 401, 401, 401, 429, 429]
    lines = map(json.loads, place.ask("GET", "/v1/audit", "carol").content.splitlines())
    assert len([line for line in lines if line["act"] == "login failed" and line["subject"] == "alice"]) == 5


@pytest.mark.long
def test_a_curator_sees_and_resets_it(place: World, clock: Clock) -> None:
    halfway(place, clock)
    carol = visitor(place, "carol")
    assert "second factor" in carol.go("/console/people").text
    done = carol.submit(carol.go("/console/people/alice"), "/second-factor")
    assert "Second factor turned off." in done.text
    assert visitor(place, "alice").go("/console").status == 200


def test_the_drawn_code_is_the_one_of_the_library() -> None:
    """The path is drawn into a raster, module by module, and is what the library computed, inside of a light margin."""
    text = "otpauth://totp/Lapwing:alice?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=Lapwing"
    drawn = qr_code(text)
    raster = [[0] * drawn.size for _ in range(drawn.size)]
    for x, y, width in re.findall(r"M(\d+) (\d+)h(\d+)v1h-\d+z", drawn.path):
        for place in range(int(width)):
            raster[int(y)][int(x) + place] += 1
    inside = [row[QUIET:-QUIET] for row in raster[QUIET:-QUIET]]
    assert inside == [list(row) for row in segno.make(text, error="m", micro=False).matrix]
    assert sum(map(sum, raster)) == sum(map(sum, inside))

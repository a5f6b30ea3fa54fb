"""Signing in by an identity provider: the way there and back, whom it lets in, and all that is not believed."""

import json
import time
from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import pytest
from joserfc.jwk import ECKey

from lapwing.errors import InvalidParameter
from lapwing.server.console import browser_sessions
from lapwing.server.openid import identities, provider
from lapwing.server.openid.settings import OpenIdSettings, read_settings
from tests.support.docs.pages import DOCS, blocks
from tests.support.openid.issuer import CLIENT, SECRET, Issuer, running_issuer
from tests.support.server.browsing import Shown, Visitor
from tests.support.server.world import QUICK, World, on_both, service_in, serving

START: Final = "/console/sign-in/provider"


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with running_issuer() as running:
        running.claims = {"preferred_username": "erika", "groups": ["staff", "others"]}
        yield running


@pytest.fixture
def place(tmp_path: Path, issuer: Issuer, people: str) -> Iterator[World]:
    settings = OpenIdSettings(
        issuer=issuer.address,
        client_id=CLIENT,
        client_secret=SECRET,
        label="Example login",
        scopes=("openid", "profile"),
        name_claim="preferred_username",
        groups_claim="groups",
        roles={"staff": "analyst", "stewards": "curator", "inspectors": "auditor"},
    )
    with serving(service_in(tmp_path, replace(QUICK, openid=settings), people=people)) as running:
        yield running


def came_back(place: World, issuer: Issuer, browser: Visitor, **more: str) -> Shown:
    """Go to the provider and come back; return what is shown then."""
    left = browser.go(f"{START}?next=%2Fconsole%2Faccount", follow=False)
    assert left.status == 303, left.text
    back = issuer.authorized(left.path, **more)
    assert back.startswith(f"{place.address}{START}/callback?")
    return browser.go(back.removeprefix(place.address))


def audit(place: World) -> str:
    return place.ask("GET", "/v1/audit", "carol").content.decode()


@pytest.mark.long
@on_both
def test_somebody_is_let_in_by_their_groups_and_signs_out(place: World, issuer: Issuer) -> None:
    browser = Visitor(place)
    page = browser.go("/console/sign-in?next=%2Fconsole%2Faccount")
    assert "Sign in with Example login" in page.text
    shown = came_back(place, issuer, browser)
    assert shown.path == "/console/account"
    assert "You are an analyst" in shown.text
    assert "lapwing-provider" not in browser.cookies
    assert '"identity bound"' in audit(place)
    assert place.ask("POST", "/v1/login", body={"name": "erika", "password": "x" * 12}).status == 401

    issuer.claims = {"preferred_username": "erika.married", "groups": ["inspectors"]}
    again = Visitor(place)
    assert "You are an auditor" in came_back(place, issuer, again).text  # by the subject, whatever the name
    assert "erika" in again.go("/console/account").text

    out = again.submit(again.go("/console"), "/console/sign-out")
    (link,) = [link for link in out.page.links if link.startswith(issuer.address)]
    asked = parse_qs(urlsplit(link).query)
    assert asked["post_logout_redirect_uri"] == [f"{place.address}/console/sign-in?out=1"]
    assert asked["id_token_hint"][0].count(".") == 2
    assert again.go("/console", follow=False).status == 303
    assert browser.go("/console", follow=False).status == 200
    secrets = [value for row in place.service.store.look("SELECT id_token FROM provider_sessions") for value in row]
    assert len(secrets) == 1
    assert not any(secret in audit(place) for secret in secrets)


def changed(**facts: Any) -> Callable[[Issuer], None]:
    return lambda issuer: issuer.changed.update(facts)


def other_key(issuer: Issuer) -> None:
    issuer.signing = ECKey.generate_key("P-256", {"kid": "one"})


def shared_secret(issuer: Issuer) -> None:
    """A token that is signed by what is public, as if that were a shared secret."""
    issuer.algorithm = "HS256"


def unsigned(issuer: Issuer) -> None:
    issuer.algorithm = "none"


def wrong_verifier(issuer: Issuer) -> None:
    for asked in issuer.codes.values():
        asked["code_challenge"] = "another"


LIES: Final[dict[str, Callable[[Issuer], None]]] = {
    "issuer": changed(iss="http://evil.example"), "audience": changed(aud="another"),
    "several audiences": changed(aud=[CLIENT, "another"]), "party": changed(azp="another"),
    "nonce": changed(nonce="another"), "no nonce": changed(nonce=None), "no subject": changed(sub=None),
    "no end": changed(exp=None), "ended": changed(exp=int(time.time()) - 100), "no beginning": changed(iat=None),
    "future": changed(nbf=int(time.time()) + 86_400), "another key": other_key, "shared secret": shared_secret,
    "unsigned": unsigned,
    "no group": changed(groups=["others"]), "no groups": changed(groups=None),
    "a name that is none": changed(preferred_username="../x"),
    "a name that is somebody's": changed(preferred_username="Carol"), "no name": changed(preferred_username=""),
}  # fmt: skip


def believed(place: World, issuer: Issuer, **more: str) -> bool:
    browser = Visitor(place)
    shown = came_back(place, issuer, browser, **more)
    assert ("lapwing" in browser.cookies) == (shown.status == 200)
    return "lapwing" in browser.cookies


def read_alone(token: str) -> Any:
    """Return what a token says, whoever signed it."""
    said = token.split(".")[1]
    return json.loads(urlsafe_b64decode(said + "=" * (-len(said) % 4)))


def lies_believed(place: World, issuer: Issuer) -> list[str]:
    found = []
    key = issuer.key
    for name, lie in LIES.items():
        issuer.changed, issuer.signing, issuer.algorithm, issuer.key = {}, None, "ES256", key
        lie(issuer)
        if believed(place, issuer):
            found.append(name)
    issuer.changed, issuer.signing, issuer.algorithm = {}, None, "ES256"
    if believed(place, issuer, iss="http://evil.example"):
        found.append("an answer of another provider")
    return found


def test_lies_are_not_believed(place: World, issuer: Issuer) -> None:
    assert lies_believed(place, issuer) == []
    assert believed(place, issuer)
    assert believed(place, issuer, iss=issuer.address)
    assert '"login failed"' in audit(place)


@pytest.mark.long
@pytest.mark.parametrize("planted", ["claims", "signature", "nonce", "groups"])
def test_lies_that_are_believed_are_found(
    place: World, issuer: Issuer, monkeypatch: pytest.MonkeyPatch, planted: str
) -> None:
    """Planted: claims are not looked at; nor signatures; any nonce will do; whoever is in no group is let in."""
    if planted == "claims":
        monkeypatch.setattr("joserfc.jwt.JWTClaimsRegistry.validate", lambda *_: None)
    if planted == "signature":
        monkeypatch.setattr(provider.Provider, "_signed", lambda self, token: read_alone(token))
    if planted == "nonce":
        claims = provider.Provider._claims
        monkeypatch.setattr(provider.Provider, "_claims", lambda self, token, nonce: claims(self, token, nonce=None))
    if planted == "groups":
        monkeypatch.setattr(OpenIdSettings, "role_of", lambda self, groups: "analyst")
    assert lies_believed(place, issuer) != []


@pytest.mark.long
def test_what_was_begun_in_another_browser_is_not_taken(place: World, issuer: Issuer) -> None:
    victim, attacker = Visitor(place), Visitor(place)
    begun = attacker.go(START, follow=False)
    back = issuer.authorized(begun.path).removeprefix(place.address)
    assert victim.go(back).status == 401  # nothing was begun there: nobody is signed in as somebody else
    own = victim.go(START, follow=False)
    assert victim.go(back).status == 401  # the state is another one
    assert "lapwing" not in victim.cookies
    assert victim.go(issuer.authorized(own.path).removeprefix(place.address)).status == 401  # it is gone
    kept = dict(attacker.cookies)
    assert attacker.go(back).status == 200
    assert Visitor(place, kept).go(back).status == 401  # once


def test_codes_are_worth_nothing_without_the_verifier(place: World, issuer: Issuer) -> None:
    browser = Visitor(place)
    left = browser.go(START, follow=False)
    back = issuer.authorized(left.path).removeprefix(place.address)
    wrong_verifier(issuer)
    assert browser.go(back).status == 401
    refused = Visitor(place)
    left = refused.go(START, follow=False)
    state = parse_qs(urlsplit(left.path).query)["state"][0]
    told = refused.go(f"{START}/callback?error=access_denied&error_description=%3Cscript%3E&state={state}")
    assert (told.status, "refused the sign-in" in told.text, "<script>" in told.content.decode()) == (401, True, False)


@pytest.mark.long
def test_a_sign_in_by_the_provider_leads_nowhere_else(place: World, issuer: Issuer) -> None:
    browser = Visitor(place)
    left = browser.go(f"{START}?next=%2F%2Fevil.example", follow=False)
    told = browser.go(issuer.authorized(left.path).removeprefix(place.address), follow=False)
    assert (told.status, told.path) == (303, "/console")
    (cookie,) = [cookie for cookie in left.cookies if cookie.startswith("lapwing-provider=")]
    assert {"httponly", "samesite=lax"} <= {part.strip().lower() for part in cookie.split(";")}


def test_a_fixed_session_is_not_signed_in(place: World, issuer: Issuer) -> None:
    planted = Visitor(place)
    came_back(place, issuer, planted)
    fixed = planted.cookies["lapwing"]
    issuer.changed = {"sub": "5678", "preferred_username": "frida"}
    victim = Visitor(place, {"lapwing": fixed})
    assert "frida" in came_back(place, issuer, victim).text
    assert victim.cookies["lapwing"] != fixed
    assert Visitor(place, {"lapwing": fixed}).go("/console", follow=False).status == 303


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Change the secrets of sessions, and so ask the provider, with each page."""
    monkeypatch.setattr(browser_sessions, "ROTATION", -1.0)


@pytest.mark.long
@on_both
def test_the_provider_is_asked_again_whether_somebody_may_come_in(
    place: World, issuer: Issuer, always: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = Visitor(place)
    came_back(place, issuer, browser)
    first = list(issuer.refreshes)
    assert "You are an analyst" in browser.go("/console/account").text
    assert issuer.refreshes != first  # another refresh token, for the next time
    issuer.claims["groups"] = ["inspectors"]
    browser.go("/console")
    assert "You are an auditor" in browser.go("/console/account").text  # what the groups say now
    issuer.down = True
    assert browser.go("/console", follow=False).status == 200  # for an hour
    monkeypatch.setattr(identities, "UNSEEN", -1.0)
    assert browser.go("/console", follow=False).status == 303
    issuer.down = False
    came_back(place, issuer, browser)
    assert browser.go("/console", follow=False).status == 200
    issuer.ended = True
    assert browser.go("/console", follow=False).status == 303
    assert [token.revoked for token in place.service.people.tokens("erika")] == [True, True]


@pytest.mark.long
def test_groups_may_be_in_the_userinfo(place: World, issuer: Issuer) -> None:
    issuer.claims = {}
    issuer.userinfo = {"sub": "1234", "preferred_username": "erika", "groups": "staff"}
    assert believed(place, issuer)
    issuer.userinfo["sub"] = "another"
    assert not believed(place, issuer)


@pytest.mark.long
def test_who_is_shut_out_here_stays_out(place: World, issuer: Issuer) -> None:
    assert believed(place, issuer)
    place.service.people.change("erika", active=False, by="carol")
    assert not believed(place, issuer)


@pytest.mark.long
def test_existing_people_are_bound_if_the_operator_says_so(
    place: World, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    issuer.changed = {"preferred_username": "alice"}
    assert not believed(place, issuer)
    object.__setattr__(place.service.settings.openid, "link_existing", True)
    assert believed(place, issuer)
    assert [person.name for person in place.service.people.all()] == ["alice", "audrey", "bob", "carol"]


def test_a_provider_that_cannot_be_reached_lets_passwords_in_still(place: World, issuer: Issuer) -> None:
    issuer.down = True
    told = Visitor(place).go(START)
    assert (told.status, "cannot be reached" in told.text) == (504, True)
    assert told.form("/console/sign-in").fields["name"] == ""


@pytest.mark.long
@pytest.mark.parametrize(
    "facts",
    [{"issuer": "http://evil.example"}, {"token_endpoint": "http://evil.example/token"}, {"jwks_uri": None}],
)
def test_a_provider_that_publishes_nonsense_is_not_asked(place: World, issuer: Issuer, facts: dict[str, Any]) -> None:
    issuer.facts = facts
    browser = Visitor(place)
    left = browser.go(START, follow=False)
    if left.status == 303:
        told = browser.go(issuer.authorized(left.path).removeprefix(place.address))
        assert told.status == 401 or "cannot be reached" in told.text
    assert "lapwing" not in browser.cookies


def test_the_settings_of_the_page_are_read(tmp_path: Path) -> None:
    (example,) = [one.text for one in blocks(DOCS / "how-to" / "console.md") if one.text.startswith("issuer")]
    (tmp_path / "login.secret").write_text(SECRET)
    (tmp_path / "login.secret").chmod(0o600)
    (tmp_path / "login.toml").write_text(example)
    known = read_settings(tmp_path / "login.toml")
    assert known.scopes == ("openid", "profile", "groups", "offline_access")
    assert known.role_of(frozenset({"staff", "data-stewards"})) == "curator"


def test_settings_are_read_and_what_cannot_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    (tmp_path / "secret").chmod(0o600)
    file = tmp_path / "login.toml"
    good = 'issuer = "https://login.example.org"\nclient_id = "lapwing"\nclient_secret_file = "secret"\n'
    file.write_text(good + '[roles]\nstaff = "analyst"\nstewards = "curator"\n')
    known = read_settings(file)
    assert (known.client_secret, known.label, known.scopes) == (SECRET, "login.example.org", ("openid", "profile"))
    assert SECRET not in repr(known)
    assert known.role_of(frozenset({"staff", "stewards"})) == "curator"
    assert known.role_of(frozenset({"others"})) is None
    for text, told in {
        good: "roles must give",
        good + '[roles]\nstaff = "boss"\n': "roles must give",
        good.replace("https", "http") + '[roles]\na = "analyst"\n': "https://",
        "nonsense = 1\n" + good + '[roles]\na = "analyst"\n': "nonsense is not known",
        "x": "is not TOML",
    }.items():
        file.write_text(text)
        with pytest.raises(InvalidParameter, match=told):
            read_settings(file)
    file.write_text(good + '[roles]\nstaff = "analyst"\n')
    (tmp_path / "secret").chmod(0o644)
    with pytest.raises(InvalidParameter, match="chmod 600"):
        read_settings(file)

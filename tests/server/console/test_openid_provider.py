"""The whole way with an identity provider that others wrote: npm's `oidc-provider`, from its lock."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.request import urlopen

import pytest

from lapwing.documents.people_document import Role
from lapwing.server.console import browser_sessions
from lapwing.server.openid.settings import OpenIdSettings
from tests.support.browser import person
from tests.support.browser.chromium import find_chromium, running
from tests.support.openid.issuer import CLIENT, SECRET
from tests.support.openid.npm_provider import Person, free_port, installed, program, running_provider
from tests.support.server.browsing import Visitor
from tests.support.server.world import QUICK, World, service_in, serving

pytestmark = [pytest.mark.long, pytest.mark.skipif(program("node") is None, reason="there is no Node")]
START = "/console/sign-in/provider"
ROLES: Final[dict[str, Role]] = {"staff": "analyst", "inspectors": "auditor"}


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the lock says, from npm's registry."""
    found = installed(tmp_path_factory.mktemp("npm"))
    if found is None:
        pytest.skip("npm is not there, or reaches no registry")
    return found


@pytest.fixture
def there(modules: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[World, str]]:
    """A service, and a provider that knows it."""
    port = free_port()
    settings = OpenIdSettings(
        issuer=f"http://127.0.0.1:{port}",
        client_id=CLIENT,
        client_secret=SECRET,
        label="Example login",
        scopes=("openid", "profile", "offline_access"),
        name_claim="preferred_username",
        groups_claim="groups",
        roles=ROLES,
    )
    monkeypatch.setattr(browser_sessions, "ROTATION", -1.0)  # the provider is asked again with each page
    with serving(service_in(tmp_path / "service", replace(QUICK, openid=settings))) as place:
        out = f"{place.address}/console/sign-in?out=1"
        with running_provider(modules, port, f"{place.address}{START}/callback", out) as issuer:
            yield place, issuer


def test_signing_in_being_asked_again_and_signing_out(there: tuple[World, str]) -> None:
    place, issuer = there
    out = f"{place.address}/console/sign-in?out=1"
    browser, erika = Visitor(place), Person("erika")
    left = browser.go(f"{START}?next=%2Fconsole%2Faccount", follow=False)
    back = erika.goes(left.path, f"{place.address}{START}/callback")
    shown = browser.go(back.removeprefix(place.address))
    assert (shown.path, "You are an analyst" in shown.text) == ("/console/account", True)
    assert browser.go(back.removeprefix(place.address)).status == 401  # the code is spent

    def refresh() -> str:
        return str(place.service.store.look("SELECT refresh FROM provider_sessions")[0][0])

    first = refresh()
    assert "erika" in browser.go("/console/account").text
    assert first != "None"
    page = browser.go("/console")
    signed_out = browser.submit(page, "/console/sign-out")
    (link,) = [link for link in signed_out.page.links if link.startswith(issuer)]
    assert erika.goes(link, out, logout="yes") == out
    assert browser.go("/console", follow=False).status == 303

    again = browser.go(START, follow=False)  # she has signed out there too, so she is asked for her name
    back = Person("frida").goes(again.path, f"{place.address}{START}/callback")
    assert "frida" in browser.go(back.removeprefix(place.address)).text


@pytest.mark.skipif(find_chromium() is None, reason="Chromium is not installed (apt install chromium)")
def test_somebody_comes_in_by_the_provider_in_a_browser(there: tuple[World, str]) -> None:
    """As a person goes it: to the provider's page and back, another group meanwhile, and out of both."""
    place, issuer = there
    with running(find_chromium() or "") as browser:
        erika = person.Person(browser.page(), place.address)
        erika.opens("/console/account")
        erika.presses("Sign in with Example login")
        erika.types("Enter any login", "erika")
        erika.types("and password", "any")
        erika.presses("Sign-in")
        erika.presses("Continue")
        erika.reads("You are an analyst")
        erika.sees_nothing_of("Audit log")
        with urlopen(f"{issuer}/administrator/erika/inspectors") as told:
            assert told.read() == b"done"
        erika.opens("/console")
        erika.opens("/console/account")
        erika.reads("You are an auditor, and may read.")  # rights that a session began without it never gets
        erika.presses("Sign out")
        erika.presses("Sign in again")
        erika.presses("Sign in with Example login")
        erika.presses("Continue")
        erika.presses("Audit log")
        erika.reads("identity bound")
        with urlopen(f"{issuer}/administrator/erika/nobody") as told:
            assert told.read() == b"done"
        erika.opens("/console")
        erika.reads("or with a password")  # of no group that has a role here
        with urlopen(f"{issuer}/administrator/erika/staff") as told:
            assert told.read() == b"done"
        erika.presses("Sign in with Example login")  # the provider knows who it is
        erika.presses("Continue")
        erika.reads("erika analyst")
        erika.presses("Sign out")
        erika.reads("Signed out of Lapwing")
        erika.presses("Sign out of Example login")
        erika.presses("Yes, sign me out")
        erika.reads("or with a password")
        erika.presses("Sign in with Example login")
        erika.types("Enter any login", "frida")
        assert [url for url in erika.elsewhere if not url.startswith(issuer)] == []

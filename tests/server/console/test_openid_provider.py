"""The whole way with an identity provider that others wrote: npm's `oidc-provider`, from its lock."""

from dataclasses import replace
from pathlib import Path

import pytest

from lapwing.server.console import browser_sessions
from lapwing.server.openid.settings import OpenIdSettings
from tests.support.openid.issuer import CLIENT, SECRET
from tests.support.openid.npm_provider import Person, free_port, installed, program, running_provider
from tests.support.server.browsing import Visitor
from tests.support.server.world import QUICK, service_in, serving

pytestmark = [pytest.mark.long, pytest.mark.skipif(program("node") is None, reason="there is no Node")]
START = "/console/sign-in/provider"


def test_signing_in_being_asked_again_and_signing_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "npm"
    folder.mkdir()
    modules = installed(folder)
    if modules is None:
        pytest.skip("npm is not there, or reaches no registry")
    port = free_port()
    settings = OpenIdSettings(
        issuer=f"http://127.0.0.1:{port}",
        client_id=CLIENT,
        client_secret=SECRET,
        label="Example login",
        scopes=("openid", "profile", "offline_access"),
        name_claim="preferred_username",
        groups_claim="groups",
        roles={"staff": "analyst"},
    )
    monkeypatch.setattr(browser_sessions, "ROTATION", -1.0)  # the provider is asked again with each page
    with serving(service_in(tmp_path / "service", replace(QUICK, openid=settings))) as place:
        out = f"{place.address}/console/sign-in?out=1"
        with running_provider(modules, port, f"{place.address}{START}/callback", out):
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
            (link,) = [link for link in signed_out.page.links if link.startswith(settings.issuer)]
            assert erika.goes(link, out, logout="yes") == out
            assert browser.go("/console", follow=False).status == 303

            again = browser.go(START, follow=False)  # she has signed out there too, so she is asked for her name
            back = Person("frida").goes(again.path, f"{place.address}{START}/callback")
            assert "frida" in browser.go(back.removeprefix(place.address)).text

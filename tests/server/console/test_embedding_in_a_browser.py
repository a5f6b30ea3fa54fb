"""Pages of other origins frame pages of a service: published ones where a curator allows it, all others never."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.server.console.test_in_a_browser import sign_in
from tests.server.test_client import certificate
from tests.support.browser.chromium import Browser, Page, find_chromium, running
from tests.support.server.world import QUESTION, World

pytestmark = [
    pytest.mark.skipif(find_chromium() is None, reason="Chromium is not installed (apt install chromium)"),
    pytest.mark.long,
]
TITLE: Final = "Visits for everybody"
OTHERS: Final = (
    "/console",
    "/console/sign-in",
    "/console/data/open/published",
    "/docs",
    "/v1/datasets",
)


class Framing(BaseHTTPRequestHandler):
    """A page of another site with one frame, at the address that its own names."""

    def do_GET(self) -> None:
        (framed,) = parse_qs(urlsplit(self.path).query).get("frame", [""])
        content = f'<!doctype html><title>elsewhere</title><iframe id="it" src="{framed}"></iframe>'.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *_: object) -> None:
        """Say nothing."""


@contextmanager
def site(certified: tuple[Path, Path]) -> Iterator[str]:
    """Serve the page of another site over TLS, at a port of its own."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certified)
    with ThreadingHTTPServer(("127.0.0.1", 0), Framing) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"https://localhost:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def places(settled: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Browser, Page, list[str], str]]:
    """A browser in which carol is signed in, two other sites, of which the first may embed, and a published page."""
    certified = certificate(tmp_path_factory.mktemp("certificate"))
    with site(certified) as allowed, site(certified) as other, running(find_chromium() or "") as browser:
        rule = {"allowed": True, "origins": [allowed]}
        assert settled.ask("PUT", "/v1/datasets/open/publishing", "carol", rule).status == 200
        answer = settled.query("carol", QUESTION).document["id"]
        body = {"title": TITLE, "answers": [answer]}
        published = settled.ask("POST", "/v1/datasets/open/published", "carol", body).document["address"]
        page = browser.page()
        sign_in(page, settled, "carol")
        page.ask("Security.setIgnoreCertificateErrors", {"ignore": True})
        yield browser, page, [allowed, other], published


def framed(browser: Browser, page: Page, at: str, address: str) -> str:
    """Return what a frame shows of an address, in a page of another site; empty if the browser shows nothing of it."""
    page.go(f"{at}/?frame={address}")
    targets = browser.ask("Target.getTargets", {"filter": [{"type": "iframe"}]})["targetInfos"]
    (frame,) = [target for target in targets if target["url"].startswith(("http", "chrome-error"))]
    session = browser.ask("Target.attachToTarget", {"targetId": frame["targetId"], "flatten": True})["sessionId"]
    script = {"expression": "location.protocol + document.documentElement.innerText", "returnByValue": True}
    text: str = browser.ask("Runtime.evaluate", script, session)["result"]["value"]
    return "" if text.startswith("chrome-error:") else text


def test_a_published_page_is_framed_by_the_origins_that_a_curator_names(
    settled: World, places: tuple[Browser, Page, list[str], str]
) -> None:
    browser, page, (allowed, other), published = places
    assert TITLE in framed(browser, page, allowed, settled.address + published)
    assert framed(browser, page, other, settled.address + published) == ""


@pytest.mark.parametrize("path", OTHERS)
def test_no_other_page_is_framed(settled: World, places: tuple[Browser, Page, list[str], str], path: str) -> None:
    browser, page, sites, _ = places
    assert [framed(browser, page, at, settled.address + path) for at in sites] == ["", ""]


def test_every_site_is_told_that_there_is_no_such_page(
    settled: World, places: tuple[Browser, Page, list[str], str]
) -> None:
    browser, page, sites, _ = places
    shown = [framed(browser, page, at, f"{settled.address}/published/none") for at in sites]
    assert ["The page was withdrawn, or its address is unknown." in text for text in shown] == [True, True]


def test_twin_a_page_that_forbids_nothing_is_framed(places: tuple[Browser, Page, list[str], str]) -> None:
    browser, page, (allowed, other), _ = places
    another_site = other.replace("localhost", "127.0.0.1")
    assert "https:" in framed(browser, page, allowed, f"{another_site}/")

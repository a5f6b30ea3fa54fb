"""Forms in Chromium: an error of one field empties no other, and Back leads to the page before."""

from collections.abc import Iterator

import pytest

from tests.server.console.test_in_a_browser import complaints, sign_in, typed
from tests.support.browser.accessibility import findings
from tests.support.browser.chromium import Page, find_chromium, shared
from tests.support.server.browsing import PASSWORD
from tests.support.server.world import World

pytestmark = [
    pytest.mark.skipif(find_chromium() is None, reason="Chromium is not installed (apt install chromium)"),
    pytest.mark.long,
]
SECRET = "a typed password that nobody else has"
AT = "document.activeElement"
ASKED = "new URLSearchParams(location.search).get('sql')"


@pytest.fixture
def page() -> Iterator[Page]:
    with shared() as browser:
        yield browser.page()


def sent(page: Page, action: str) -> None:
    """Press the button of a form."""
    page.run(f"document.querySelector('form[action$=\"{action}\"] button:not([type=button])').click()")


def refused_at(page: Page, id_: str) -> str:
    """Wait for an error at a field, which has the focus; return its text."""
    page.wait(f"{AT}.id == '{id_}' && {AT}.ariaInvalid == 'true'")
    return str(
        page.run(f"return document.getElementById({AT}.getAttribute('aria-describedby').split(' ')[0]).textContent")
    )


def test_an_error_keeps_what_was_typed_and_the_password(place: World, page: Page) -> None:
    sign_in(page, place, "carol")
    page.go(f"{place.address}/console/people")
    for field, text in (("name", "alice"), ("team", "porters"), ("password", SECRET)):
        typed(page, field, text)
    sent(page, "/console/people")
    assert refused_at(page, "name")
    values = "return ['name', 'team', 'password'].map((id) => document.getElementById(id).value)"
    assert page.run(values) == ["alice", "porters", SECRET]
    assert findings(page)["violations"] == []
    typed(page, "name", "emil")
    assert page.run("return document.querySelector('.fault, [aria-invalid]')") is None
    sent(page, "/console/people")
    page.wait("location.pathname == '/console/people/emil' && document.readyState == 'complete'")
    assert place.service.people.require_password("emil", SECRET) == "analyst"
    assert [text for text in complaints(page) if "422" not in text] == []


def test_a_wrong_password_of_a_sign_in_can_be_corrected(place: World, page: Page) -> None:
    page.go(f"{place.address}/console/sign-in")
    typed(page, "name", "alice")
    typed(page, "password", PASSWORD + "x")
    page.press("Enter", 13, "\r")
    assert refused_at(page, "password")
    assert page.run("return document.getElementById('password').value") == PASSWORD + "x"
    typed(page, "password", PASSWORD)
    page.press("Enter", 13, "\r")
    page.wait("location.pathname == '/console' && document.readyState == 'complete'")


def test_back_leads_to_the_page_before_what_is_shown_once(place: World, page: Page) -> None:
    """A token is shown on the page that answers a form. Back shows the person, and makes no other token."""
    sign_in(page, place, "carol")
    page.go(f"{place.address}/console/people/bob")
    tokens = len(place.service.people.tokens("bob"))
    sent(page, "/bob/token")
    page.wait("document.querySelector('main .once')")
    assert len(place.service.people.tokens("bob")) == tokens + 1
    assert page.run("return document.querySelector('main .once .scripted').hidden") is False
    page.run("history.back()")
    page.wait("!document.querySelector('main .once') && document.querySelector('h1')?.textContent == 'bob'")
    assert len(place.service.people.tokens("bob")) == tokens + 1
    assert complaints(page) == []


def test_a_form_that_was_not_sent_can_be_sent_again(place: World, page: Page) -> None:
    sign_in(page, place, "carol")
    page.go(f"{place.address}/console/data/open/access")
    page.offline(True)
    sent(page, "/access/policy")
    page.wait("document.getElementById('refusal')")
    page.offline(False)
    sent(page, "/access/policy")
    page.wait("location.search == '?done=policy'")


def test_a_refused_purchase_keeps_the_page(place: World, page: Page) -> None:
    """The reason stands above the cost, which is asked for anew, and Back is one step."""
    sign_in(page, place, "alice")
    page.go(f"{place.address}/console/data/open/ask")
    page.wait("document.querySelector('#preview [data-buy]')")
    place.service.policies.withdraw("open", "alice", by="carol")
    sent(page, "/ask/answer")
    page.wait("document.getElementById('refusal') && location.pathname.endsWith('/ask')")
    assert place.charges() == 0
    page.run("history.back()")
    page.wait("location.pathname == '/console'")


def test_back_shows_the_query_before_a_fix(place: World, page: Page) -> None:
    """The fix leads to an address, so that each step of the history is a page of its own."""
    sign_in(page, place, "alice")
    page.go(f"{place.address}/console/data/open/ask?sql=SELECT%20plam%20FROM%20visits&epsilon=1")
    page.wait("document.querySelector('[data-mend] button')")
    page.run("document.querySelector('[data-mend] button').click()")
    page.wait(f"{ASKED} == 'SELECT plan FROM visits' && document.querySelector('.cm-editor')")
    page.run("history.back()")
    page.wait(f"{ASKED} == 'SELECT plam FROM visits' && document.querySelector('.cm-editor')")
    assert page.run("return document.getElementById('sql').value") == "SELECT plam FROM visits"


def test_a_field_named_dataset_does_not_hide_what_a_form_says_of_itself(place: World, page: Page) -> None:
    """Scripts send the form, and ask before: a form's own `dataset` would be the field."""
    sign_in(page, place, "carol")
    page.go(f"{place.address}/console/people/bob")
    form = "document.querySelector('form[action$=\"/role\"]:has(select[name=dataset])')"
    assert page.run(f"return {form}.dataset.tagName") == "SELECT"
    page.run(f"{form}.setAttribute('data-confirm', 'Sure?'); window.confirm = (text) => {{ window.asked = text; }}")
    page.run(f"{form}.requestSubmit()")
    page.wait("window.asked === 'Sure?'")
    page.run("window.confirm = () => true")
    page.run("window.fetch = (at, how) => { window.way = how.headers; return new Promise(() => {}); }")
    page.run(f"{form}.requestSubmit()")
    page.wait("window.way && window.way['Lapwing-Scripted'] === '1'")
